//! The capabilities below 100h, with which a function describes itself piece by piece (PCIe 5.0 §7.5, §7.7, §7.9).

mod msi;
mod pcie;
mod power;

pub use msi::{Msi, MsiX};
pub use pcie::{LinkPart, Pcie, PcieVersion, PortType, Slot};
pub use power::PowerManagement;

use crate::layout::{Block, LayoutError};
use crate::registers::{self, id};

/// A capability below 100h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Power states.
    PowerManagement(PowerManagement),
    /// Message signalled interrupts.
    Msi(Msi),
    /// Message signalled interrupts from a table in a BAR.
    MsiX(MsiX),
    /// PCI Express.
    Pcie(Pcie),
    /// The subsystem of a bridge.
    SubsystemId {
        /// Subsystem vendor ID.
        vendor: u16,
        /// Subsystem ID.
        subsystem: u16,
    },
    /// The maker's own: the bytes behind the header of three bytes, read-only.
    Vendor(Vec<u8>),
}

impl Capability {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PowerManagement(_) => "power management",
            Self::Msi(_) => "MSI",
            Self::MsiX(_) => "MSI-X",
            Self::Pcie(_) => "PCI Express",
            Self::SubsystemId { .. } => "subsystem ID",
            Self::Vendor(_) => "vendor specific",
        }
    }

    pub(crate) fn id(&self) -> u8 {
        match self {
            Self::PowerManagement(_) => id::POWER,
            Self::Msi(_) => id::MSI,
            Self::MsiX(_) => id::MSIX,
            Self::Pcie(_) => id::PCIE,
            Self::SubsystemId { .. } => id::SUBSYSTEM,
            Self::Vendor(_) => id::VENDOR,
        }
    }

    /// The bytes it takes, up to the next dword.
    pub(crate) fn bytes(&self) -> u16 {
        match self {
            Self::PowerManagement(_) => registers::power::BYTES,
            Self::Msi(msi) => msi.bytes(),
            Self::MsiX(_) => registers::msix::BYTES,
            Self::Pcie(pcie) => pcie.bytes(),
            Self::SubsystemId { .. } => 8,
            Self::Vendor(bytes) => (bytes.len() as u16 + 3).next_multiple_of(4),
        }
    }

    pub(crate) fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        match self {
            Self::PowerManagement(power) => power.place(block),
            Self::Msi(msi) => return msi.place(block),
            Self::MsiX(msix) => return msix.place(block),
            Self::Pcie(pcie) => return pcie.place(block),
            Self::SubsystemId { vendor, subsystem } => {
                block.set(4, *vendor);
                block.set(6, *subsystem);
            }
            Self::Vendor(bytes) => {
                block.require(bytes.len() <= 189, "length", bytes.len() as u64, "at most 189 bytes")?;
                block.set(2, bytes.len() as u8 + 3);
                for (at, byte) in (3..).zip(bytes) {
                    block.set(at, *byte);
                }
            }
        }
        Ok(())
    }
}

macro_rules! from_piece {
    ($($name:ident),+) => {
        $(impl From<$name> for Capability {
            fn from(piece: $name) -> Self {
                Self::$name(piece)
            }
        })+
    };
}
from_piece!(PowerManagement, Msi, MsiX, Pcie);
