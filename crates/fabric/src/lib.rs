//! The discrete-event simulator of PCIe fabrics
pub mod config;
