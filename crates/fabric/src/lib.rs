//! The discrete-event simulator of PCIe fabrics
