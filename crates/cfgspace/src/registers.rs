//! Offsets and bits, by register block, where more than one place needs them (PCIe 5.0 §7.5 to §7.9).

/// The header's registers.
pub(crate) mod header {
    pub(crate) const VENDOR: u16 = 0x00;
    pub(crate) const COMMAND: u16 = 0x04;
    pub(crate) const STATUS: u16 = 0x06;
    pub(crate) const CLASS: u16 = 0x08;
    pub(crate) const HEADER_TYPE: u16 = 0x0C;
    pub(crate) const BARS: u16 = 0x10;
    pub(crate) const BUS_NUMBERS: u16 = 0x18;
    pub(crate) const IO_WINDOW: u16 = 0x1C;
    pub(crate) const SECONDARY_STATUS: u16 = 0x1E;
    pub(crate) const MEMORY_WINDOW: u16 = 0x20;
    pub(crate) const PREFETCHABLE_WINDOW: u16 = 0x24;
    pub(crate) const PREFETCHABLE_BASE_UPPER: u16 = 0x28;
    pub(crate) const PREFETCHABLE_LIMIT_UPPER: u16 = 0x2C;
    pub(crate) const SUBSYSTEM: u16 = 0x2C;
    pub(crate) const ROM_TYPE0: u16 = 0x30;
    pub(crate) const IO_UPPER: u16 = 0x30;
    pub(crate) const CAPABILITIES: u16 = 0x34;
    pub(crate) const ROM_TYPE1: u16 = 0x38;
    pub(crate) const INTERRUPT: u16 = 0x3C;
    pub(crate) const BRIDGE_CONTROL: u16 = 0x3E;
}

/// Bits of the command register.
pub(crate) mod command {
    pub(crate) const IO: u16 = 1 << 0;
    pub(crate) const MEMORY: u16 = 1 << 1;
    pub(crate) const BUS_MASTER: u16 = 1 << 2;
    pub(crate) const PARITY_RESPONSE: u16 = 1 << 6;
    pub(crate) const SERR: u16 = 1 << 8;
    pub(crate) const INTX_DISABLE: u16 = 1 << 10;
    pub(crate) const WRITABLE: u16 = IO | MEMORY | BUS_MASTER | PARITY_RESPONSE | SERR | INTX_DISABLE;
}

/// Bits of the status and the secondary status register.
pub(crate) mod status {
    pub(crate) const INTERRUPT: u16 = 1 << 3;
    pub(crate) const CAPABILITIES: u16 = 1 << 4;
    pub(crate) const MASTER_DATA_PARITY: u16 = 1 << 8;
    pub(crate) const SIGNALED_TARGET_ABORT: u16 = 1 << 11;
    pub(crate) const RECEIVED_TARGET_ABORT: u16 = 1 << 12;
    pub(crate) const RECEIVED_MASTER_ABORT: u16 = 1 << 13;
    /// Signaled System Error; in the secondary status register, Received System Error.
    pub(crate) const SYSTEM_ERROR: u16 = 1 << 14;
    pub(crate) const DETECTED_PARITY: u16 = 1 << 15;
    pub(crate) const CLEARABLE: u16 = MASTER_DATA_PARITY
        | SIGNALED_TARGET_ABORT
        | RECEIVED_TARGET_ABORT
        | RECEIVED_MASTER_ABORT
        | SYSTEM_ERROR
        | DETECTED_PARITY;
}

/// Bits of the bridge control register.
pub(crate) mod bridge_control {
    pub(crate) const PARITY_RESPONSE: u16 = 1 << 0;
    pub(crate) const SERR: u16 = 1 << 1;
    pub(crate) const SECONDARY_BUS_RESET: u16 = 1 << 6;
    /// With ISA and VGA enables, which are kept but forward nothing.
    pub(crate) const WRITABLE: u16 = PARITY_RESPONSE | SERR | 0b11100 | SECONDARY_BUS_RESET;
}

/// Identifiers of capabilities, below 100h and extended.
pub(crate) mod id {
    pub(crate) const POWER: u8 = 0x01;
    pub(crate) const MSI: u8 = 0x05;
    pub(crate) const VENDOR: u8 = 0x09;
    pub(crate) const SUBSYSTEM: u8 = 0x0D;
    pub(crate) const PCIE: u8 = 0x10;
    pub(crate) const MSIX: u8 = 0x11;

    pub(crate) const AER: u16 = 0x0001;
    pub(crate) const SERIAL_NUMBER: u16 = 0x0003;
    pub(crate) const VENDOR_SPECIFIC: u16 = 0x000B;
    pub(crate) const ACS: u16 = 0x000D;
    pub(crate) const ARI: u16 = 0x000E;
    pub(crate) const ATS: u16 = 0x000F;
    pub(crate) const SRIOV: u16 = 0x0010;
    pub(crate) const RESIZABLE: u16 = 0x0015;
    pub(crate) const LTR: u16 = 0x0018;
    pub(crate) const SECONDARY: u16 = 0x0019;
    pub(crate) const PASID: u16 = 0x001B;
}

/// Power management.
pub(crate) mod power {
    pub(crate) const BYTES: u16 = 8;
    pub(crate) const CONTROL: u16 = 4;
    pub(crate) const PME_ENABLE: u16 = 1 << 8;
    pub(crate) const PME_STATUS: u16 = 1 << 15;
}

/// MSI; the offsets of data, mask and pending depend on the width of the address.
pub(crate) mod msi {
    pub(crate) const ENABLE: u32 = 1 << 16;
    pub(crate) const WIDE: u32 = 1 << 23;
    pub(crate) const MASKING: u32 = 1 << 24;
    pub(crate) const ADDRESS: u16 = 4;
}

/// MSI-X.
pub(crate) mod msix {
    pub(crate) const BYTES: u16 = 12;
    pub(crate) const ENABLE: u32 = 1 << 31;
    pub(crate) const FUNCTION_MASK: u32 = 1 << 30;
    pub(crate) const WRITABLE: u32 = ENABLE | FUNCTION_MASK;
    pub(crate) const TABLE: u16 = 4;
    pub(crate) const PENDING: u16 = 8;
}

/// The PCI Express capability.
pub(crate) mod pcie {
    pub(crate) const BYTES: u16 = 0x3C;
    pub(crate) const CAPABILITIES: u16 = 0x02;
    pub(crate) const DEVICE_CAPABILITIES: u16 = 0x04;
    /// Of Device Capabilities: 8 bits of tag.
    pub(crate) const EXTENDED_TAG: u32 = 1 << 5;
    pub(crate) const FLR_CAPABLE: u32 = 1 << 28;
    pub(crate) const DEVICE_CONTROL: u16 = 0x08;
    pub(crate) const EXTENDED_TAG_ENABLE: u16 = 1 << 8;
    pub(crate) const INITIATE_FLR: u32 = 1 << 15;
    pub(crate) const DEVICE_STATUS: u16 = 0x0A;
    pub(crate) const LINK_CAPABILITIES: u16 = 0x0C;
    pub(crate) const DLL_ACTIVE_REPORTING: u32 = 1 << 20;
    pub(crate) const LINK_CONTROL: u16 = 0x10;
    pub(crate) const READ_BOUNDARY_128: u16 = 1 << 3;
    pub(crate) const LINK_DISABLE: u16 = 1 << 4;
    pub(crate) const RETRAIN_LINK: u32 = 1 << 5;
    pub(crate) const LINK_STATUS: u16 = 0x12;
    pub(crate) const LINK_TRAINING: u16 = 1 << 11;
    pub(crate) const DLL_ACTIVE: u16 = 1 << 13;
    pub(crate) const BANDWIDTH_CHANGED: u16 = 1 << 14;
    pub(crate) const AUTONOMOUS_CHANGED: u16 = 1 << 15;
    pub(crate) const SLOT_CAPABILITIES: u16 = 0x14;
    pub(crate) const SLOT_CONTROL: u16 = 0x18;
    pub(crate) const SLOT_STATUS: u16 = 0x1A;
    pub(crate) const PRESENCE_CHANGED: u16 = 1 << 3;
    pub(crate) const HOT_PLUG_INTERRUPT: u16 = 1 << 5;
    pub(crate) const PRESENT: u16 = 1 << 6;
    pub(crate) const DLL_CHANGED: u16 = 1 << 8;
    pub(crate) const DLL_CHANGED_ENABLE: u16 = 1 << 12;
    pub(crate) const ROOT_CONTROL: u16 = 0x1C;
    pub(crate) const PME_INTERRUPT: u16 = 1 << 3;
    pub(crate) const RRS_VISIBILITY: u16 = 1 << 4;
    pub(crate) const ROOT_CAPABILITIES: u16 = 0x1E;
    pub(crate) const ROOT_STATUS: u16 = 0x20;
    /// Of the upper half of Root Status.
    pub(crate) const PME_STATUS: u16 = 1;
    pub(crate) const PME_PENDING: u16 = 1 << 1;
    pub(crate) const DEVICE_CAPABILITIES_2: u16 = 0x24;
    pub(crate) const TEN_BIT_COMPLETER: u32 = 1 << 16;
    pub(crate) const TEN_BIT_REQUESTER: u32 = 1 << 17;
    pub(crate) const DEVICE_CONTROL_2: u16 = 0x28;
    pub(crate) const TEN_BIT_ENABLE: u16 = 1 << 12;
    /// Of Device Control 2, and in Device Capabilities 2 that it can.
    pub(crate) const ARI_FORWARDING: u16 = 1 << 5;
    pub(crate) const LINK_CAPABILITIES_2: u16 = 0x2C;
    pub(crate) const LINK_CONTROL_2: u16 = 0x30;
}

/// SR-IOV.
pub(crate) mod sriov {
    pub(crate) const BYTES: u16 = 0x40;
    pub(crate) const CONTROL: u16 = 0x08;
    pub(crate) const ENABLE: u16 = 1 << 0;
    pub(crate) const MEMORY_ENABLE: u16 = 1 << 3;
    pub(crate) const ARI_HIERARCHY: u16 = 1 << 4;
    pub(crate) const WRITABLE: u16 = ENABLE | MEMORY_ENABLE | ARI_HIERARCHY;
    /// InitialVFs, with TotalVFs behind.
    pub(crate) const INITIAL: u16 = 0x0C;
    /// NumVFs.
    pub(crate) const COUNT: u16 = 0x10;
    /// First VF Offset, with VF Stride behind.
    pub(crate) const OFFSET: u16 = 0x14;
    pub(crate) const PAGE_SIZE: u16 = 0x20;
    pub(crate) const BARS: u16 = 0x24;
}

/// Address translation services.
pub(crate) mod ats {
    /// Control, behind the capability register.
    pub(crate) const CONTROL: u16 = 0x06;
    pub(crate) const ENABLE: u16 = 1 << 15;
    /// Smallest Translation Unit: pages of 4 KiB, as a power of two.
    pub(crate) const UNIT: u16 = 0x1F;
    pub(crate) const QUEUE_DEPTH: u16 = 0x1F;
}

/// Access control services.
pub(crate) mod acs {
    pub(crate) const CAPABILITIES: u16 = 0x04;
    pub(crate) const CONTROL: u16 = 0x06;
    /// Egress Control Vector.
    pub(crate) const VECTOR: u16 = 0x08;
}

/// Advanced error reporting.
pub(crate) mod aer {
    pub(crate) const UNCORRECTABLE_STATUS: u16 = 0x04;
    pub(crate) const UNCORRECTABLE_MASK: u16 = 0x08;
    pub(crate) const SEVERITY: u16 = 0x0C;
    pub(crate) const CORRECTABLE_STATUS: u16 = 0x10;
    pub(crate) const CORRECTABLE_MASK: u16 = 0x14;
    pub(crate) const CONTROL: u16 = 0x18;
    pub(crate) const FIRST_ERROR: u32 = 0x1F;
    /// Generation and check of ECRC.
    pub(crate) const ECRC_CAPABLE: u32 = 1 << 5 | 1 << 7;
    pub(crate) const ECRC_ENABLE: u32 = 1 << 6 | 1 << 8;
    pub(crate) const HEADER_LOG: u16 = 0x1C;
    pub(crate) const ROOT_COMMAND: u16 = 0x2C;
    pub(crate) const ROOT_STATUS: u16 = 0x30;
    pub(crate) const SOURCES: u16 = 0x34;
    /// With the log of TLP prefixes.
    pub(crate) const BYTES: u16 = 0x48;
}

/// A size as in Device Control: 0 for 128 bytes, 1 for 256.
pub(crate) fn exponent(bytes: u32) -> u16 {
    bytes.trailing_zeros() as u16 - 7
}
