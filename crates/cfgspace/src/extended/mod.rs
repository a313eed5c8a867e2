//! The extended capabilities, from 100h (PCIe 5.0 §7.6 to §7.9, §9.3, §10.5).

mod acs;
mod aer;
mod resizable;
mod sriov;

pub use acs::{AccessControl, Acs, AcsControls};
pub use aer::Aer;
pub use resizable::{Resizable, ResizableBar};
pub use sriov::SrIov;

use crate::layout::{Block, LayoutError};
use crate::registers::{self, id};

/// An extended capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtendedCapability {
    /// Advanced error reporting.
    Aer(Aer),
    /// The serial number of the card.
    SerialNumber(u64),
    /// Access control between peers.
    Acs(Acs),
    /// Function numbers in the place of device numbers.
    Ari {
        /// The next function of the device; 0 ends the list.
        next_function: u8,
    },
    /// Virtual functions.
    SrIov(SrIov),
    /// Address translation services.
    Ats {
        /// Invalidations that can be queued: 1 to 32.
        queue_depth: u8,
    },
    /// Process address spaces.
    Pasid {
        /// Bits of identifier, at most 20.
        width: u8,
    },
    /// Tolerance of latency; software writes the limits.
    Ltr,
    /// BARs of several sizes.
    ResizableBar(ResizableBar),
    /// Equalisation of the lanes of a link of 8 GT/s or more.
    SecondaryPcie {
        /// Lanes of the link.
        lanes: u8,
    },
    /// The maker's own: the bytes behind the two headers, read-only.
    VendorSpecific {
        /// The maker's identifier of the structure.
        id: u16,
        /// Its revision, at most 15.
        revision: u8,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

impl ExtendedCapability {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Aer(_) => "AER",
            Self::SerialNumber(_) => "device serial number",
            Self::Acs(_) => "ACS",
            Self::Ari { .. } => "ARI",
            Self::SrIov(_) => "SR-IOV",
            Self::Ats { .. } => "ATS",
            Self::Pasid { .. } => "PASID",
            Self::Ltr => "LTR",
            Self::ResizableBar(_) => "resizable BAR",
            Self::SecondaryPcie { .. } => "secondary PCI Express",
            Self::VendorSpecific { .. } => "vendor-specific extended",
        }
    }

    pub(crate) fn id(&self) -> u16 {
        match self {
            Self::Aer(_) => id::AER,
            Self::SerialNumber(_) => id::SERIAL_NUMBER,
            Self::Acs(_) => id::ACS,
            Self::Ari { .. } => id::ARI,
            Self::SrIov(_) => id::SRIOV,
            Self::Ats { .. } => id::ATS,
            Self::Pasid { .. } => id::PASID,
            Self::Ltr => id::LTR,
            Self::ResizableBar(_) => id::RESIZABLE,
            Self::SecondaryPcie { .. } => id::SECONDARY,
            Self::VendorSpecific { .. } => id::VENDOR_SPECIFIC,
        }
    }

    pub(crate) fn version(&self) -> u8 {
        if matches!(self, Self::Aer(_)) { 2 } else { 1 }
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> u16 {
        match self {
            Self::Aer(_) => registers::aer::BYTES,
            Self::SerialNumber(_) => 12,
            Self::Acs(acs) => acs.bytes(),
            Self::Ari { .. } | Self::Ats { .. } | Self::Pasid { .. } | Self::Ltr => 8,
            Self::SrIov(_) => registers::sriov::BYTES,
            Self::ResizableBar(bars) => bars.bytes(),
            Self::SecondaryPcie { lanes } => (12 + 2 * u16::from(*lanes)).next_multiple_of(4),
            Self::VendorSpecific { bytes, .. } => (8 + bytes.len().min(4096) as u16).next_multiple_of(4),
        }
    }

    pub(crate) fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        match self {
            Self::Aer(aer) => aer.place(block),
            Self::SerialNumber(number) => {
                block.set(4, *number as u32);
                block.set(8, (*number >> 32) as u32);
            }
            Self::Acs(acs) => return acs.place(block),
            Self::Ari { next_function } => block.set(5, *next_function),
            Self::SrIov(sriov) => return sriov.place(block),
            Self::Ats { queue_depth } => {
                block.require((1..=32).contains(queue_depth), "queue depth", *queue_depth, "1 to 32")?;
                let page_aligned = true;
                block.set_field(4, 0, *queue_depth % 32);
                block.set_field(4, 5, page_aligned);
                block.writable(registers::ats::CONTROL, registers::ats::ENABLE | registers::ats::UNIT);
            }
            Self::Pasid { width } => {
                block.require(*width <= 20, "width", *width, "at most 20 bits")?;
                block.set(4, 0b110u16);
                block.set_field(4, 8, *width);
                block.writable(6, 0b111u16);
            }
            Self::Ltr => block.writable(4, 0x1FFF_1FFFu32),
            Self::ResizableBar(bars) => return bars.place(block),
            Self::SecondaryPcie { lanes } => place_secondary(block, *lanes),
            Self::VendorSpecific { id, revision, bytes } => {
                block.require(*revision < 16, "revision", *revision, "at most 15")?;
                block.set_field(4, 0, *id);
                block.set_field(4, 16, *revision);
                block.set_field(4, 20, 8 + bytes.len() as u32);
                for (at, byte) in (8..).zip(bytes) {
                    block.set(at, *byte);
                }
            }
        }
        Ok(())
    }
}

fn place_secondary(block: &mut Block<'_>, lanes: u8) {
    block.writable(4, 0b11u32);
    block.clearable(8, ((1u64 << lanes.min(32)) - 1) as u32);
    block.sticky(8, u32::MAX);
    for lane in 0..u16::from(lanes) {
        block.set(12 + 2 * lane, 0x7F7Fu16); // presets that are reserved until firmware chooses
    }
}

macro_rules! from_piece {
    ($($name:ident),+) => {
        $(impl From<$name> for ExtendedCapability {
            fn from(piece: $name) -> Self {
                Self::$name(piece)
            }
        })+
    };
}
from_piece!(Acs, Aer, SrIov, ResizableBar);
