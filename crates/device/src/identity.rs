//! The identity of a function: its IDs, BARs and interrupts, and its configuration space.

use tlplab_cfgspace::{
    self as config, Aer, Bar, BarKind, Layout, LinkPart, Msi, MsiX, Pcie, PortType, PowerManagement, Type0,
};
use tlplab_units::{Generation, Width};

/// The contents of a function's configuration space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Class code: base class, subclass, programming interface; 24 bits.
    pub class: u32,
    /// Revision ID.
    pub revision: u8,
    /// Subsystem vendor and subsystem ID.
    pub subsystem: (u16, u16),
    /// Base address registers.
    pub bars: Vec<BarSpec>,
    /// MSI-X vectors, 0 to 2048.
    pub msix_vectors: u16,
    /// MSI vectors: 0, or a power of two up to 32.
    pub msi_vectors: u8,
    /// It can raise a legacy interrupt: it has an interrupt pin.
    pub intx: bool,
}

/// A base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarSpec {
    /// Its number, 0 to 5. A 64-bit one takes the next number as well.
    pub index: u8,
    /// Bytes of memory behind it: a power of two, at least 16.
    pub size: u64,
    /// Reads have no side effects.
    pub prefetchable: bool,
    /// It may lie above 4 GiB.
    pub is_64_bit: bool,
    /// It is in I/O space: at most 256 bytes, neither prefetchable nor 64-bit.
    pub io: bool,
}

impl BarSpec {
    /// A 64-bit, prefetchable BAR.
    pub fn memory(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: true, is_64_bit: true, io: false }
    }
    /// A 32-bit BAR whose reads may have side effects.
    pub fn registers(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: false, is_64_bit: false, io: false }
    }
    /// Registers in I/O space.
    pub fn io(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: false, is_64_bit: false, io: true }
    }

    fn register(&self) -> Bar {
        let wide = self.is_64_bit;
        let kind =
            if self.io { BarKind::Io } else { BarKind::Memory { wide, prefetchable: self.prefetchable } };
        Bar { kind, size: self.size }
    }
}

/// The reason that an identity cannot be put into configuration space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// BAR numbers are 0 to 5, and 0 to 4 for a 64-bit one.
    #[error("BAR {0} does not exist: a type 0 header has BARs 0 to 5, and a 64-bit one takes two")]
    BarNumber(u8),
    /// Two BARs share a register.
    #[error("BAR {0} is used twice; a 64-bit BAR also takes the next number")]
    BarTwice(u8),
    /// A size that no BAR can have.
    #[error(
        "BAR {index} has {size} B; its size must be a power of two, at least 16, below 4 GiB unless 64-bit, and 4 to 256 in I/O space"
    )]
    BarSize {
        /// The BAR.
        index: u8,
        /// Its size.
        size: u64,
    },
    /// An I/O BAR that is none.
    #[error(
        "BAR {0} is in I/O space, where a BAR has 4 to 256 B, a power of two, and is neither prefetchable nor 64-bit"
    )]
    IoBar(u8),
    /// More MSI-X vectors than a table holds.
    #[error("{0} MSI-X vectors; a table holds at most 2048")]
    Vectors(u16),
    /// All BARs are taken.
    #[error("the MSI-X table needs a BAR of its own, and all six are taken")]
    NoTable,
    /// A number of MSI vectors that the capability cannot say.
    #[error("{0} MSI vectors; expected 0, 1, 2, 4, 8, 16 or 32")]
    MsiVectors(u8),
    /// More than 24 bits of class code.
    #[error("class code {0:#x} has more than 24 bits")]
    Class(u32),
}

impl Identity {
    /// A function with these IDs and nothing else: revision 0, no BARs, no interrupts; the subsystem has the same IDs.
    pub const fn new(vendor: u16, device: u16, class: u32) -> Self {
        Self {
            vendor,
            device,
            class,
            revision: 0,
            subsystem: (vendor, device),
            bars: Vec::new(),
            msix_vectors: 0,
            msi_vectors: 0,
            intx: false,
        }
    }

    /// Checks it.
    ///
    /// # Errors
    /// The field that is not possible.
    pub fn check(&self) -> Result<(), IdentityError> {
        let mut used = [false; 6];
        for bar in &self.bars {
            let registers = usize::from(bar.index)..usize::from(bar.index) + 1 + usize::from(bar.is_64_bit);
            if registers.end > used.len() {
                return Err(IdentityError::BarNumber(bar.index));
            }
            let (least, limit) = match bar {
                BarSpec { io: true, prefetchable: false, is_64_bit: false, .. } => (4, 256),
                BarSpec { io: true, .. } => return Err(IdentityError::IoBar(bar.index)),
                BarSpec { is_64_bit: true, .. } => (16, 1 << 63),
                _ => (16, 1 << 31),
            };
            if !bar.size.is_power_of_two() || !(least..=limit).contains(&bar.size) {
                return Err(IdentityError::BarSize { index: bar.index, size: bar.size });
            }
            for register in registers {
                if std::mem::replace(&mut used[register], true) {
                    return Err(IdentityError::BarTwice(register as u8));
                }
            }
        }
        if self.msix_vectors > 0 && self.msix_table().is_none() {
            return Err(IdentityError::NoTable);
        }
        if self.msix_vectors > 2048 {
            return Err(IdentityError::Vectors(self.msix_vectors));
        }
        if self.msi_vectors > 32 || self.msi_vectors > 0 && !self.msi_vectors.is_power_of_two() {
            return Err(IdentityError::MsiVectors(self.msi_vectors));
        }
        if self.class >> 24 != 0 {
            return Err(IdentityError::Class(self.class));
        }
        Ok(())
    }

    /// The configuration space of a function that can what its identity says, with the usual capabilities: power management, MSI and
    /// MSI-X if it has vectors, PCI Express, error reporting. The MSI-X table is in a BAR of its own, the last that is free.
    pub fn layout(&self) -> Layout {
        let ids = config::Identity {
            revision: self.revision,
            ..config::Identity::new(self.vendor, self.device, self.class)
        };
        let mut header = Type0 { subsystem: self.subsystem, ..Type0::new(ids) };
        header.interrupt_pin = u8::from(self.intx);
        for bar in &self.bars {
            header.bars[usize::from(bar.index)] = Some(bar.register());
        }
        let table = self.msix_table();
        if let Some(bar) = table {
            let bytes = 16 * u64::from(self.msix_vectors) + u64::from(self.msix_vectors.div_ceil(64)) * 8;
            header.bars[usize::from(bar)] = Some(Bar::memory32(bytes.next_power_of_two().max(4096)));
        }
        let mut layout = Layout::new(header).capability(PowerManagement::default());
        if self.msi_vectors > 0 {
            layout = layout.capability(Msi { vectors: self.msi_vectors, wide: true, masking: true });
        }
        // The link is the fabric's to say.
        let link = LinkPart::new(Generation::Gen1, Width::ALL[0]);
        layout = layout.capability(Pcie::new(PortType::EndPoint, link));
        if let Some(bar) = table {
            let pending = 16 * u32::from(self.msix_vectors);
            let msix = MsiX { vectors: self.msix_vectors, table: (bar, 0), pending: (bar, pending) };
            layout = layout.capability(msix);
        }
        layout.extended(Aer::default())
    }

    /// The BAR for the MSI-X table: the last that is free.
    fn msix_table(&self) -> Option<u8> {
        let taken = |index: u8| {
            self.bars.iter().any(|bar| bar.index == index || bar.is_64_bit && bar.index + 1 == index)
        };
        (self.msix_vectors > 0).then(|| (0..6).rev().find(|index| !taken(*index))).flatten()
    }
}
