//! Advanced error reporting: the registers (PCIe 5.0 §7.8.4). Their behaviour is in [`crate::error`].

use crate::error::{CORRECTABLE_BITS, CORRECTABLE_MASKED, FATAL_BITS, UNCORRECTABLE_BITS};
use crate::layout::Block;
use crate::registers::aer;

/// Advanced error reporting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aer {
    /// With the registers of a root port.
    pub root: bool,
    /// It can generate and check ECRC.
    pub ecrc: bool,
}

impl Aer {
    pub(crate) fn place(self, block: &mut Block<'_>) {
        block.clearable(aer::UNCORRECTABLE_STATUS, UNCORRECTABLE_BITS);
        block.writable(aer::UNCORRECTABLE_MASK, UNCORRECTABLE_BITS);
        block.writable(aer::SEVERITY, UNCORRECTABLE_BITS);
        block.set(aer::SEVERITY, FATAL_BITS);
        block.clearable(aer::CORRECTABLE_STATUS, CORRECTABLE_BITS);
        block.writable(aer::CORRECTABLE_MASK, CORRECTABLE_BITS);
        block.set(aer::CORRECTABLE_MASK, CORRECTABLE_MASKED);
        block.logged(aer::CONTROL, aer::FIRST_ERROR);
        if self.ecrc {
            block.set(aer::CONTROL, aer::ECRC_CAPABLE);
            block.writable(aer::CONTROL, aer::ECRC_ENABLE);
        }
        for dword in 0..4 {
            block.logged(aer::HEADER_LOG + 4 * dword, u32::MAX);
        }
        if self.root {
            block.writable(aer::ROOT_COMMAND, 0b111u32);
            block.clearable(aer::ROOT_STATUS, 0x7Fu32);
            block.logged(aer::SOURCES, u32::MAX);
        }
        for register in (aer::UNCORRECTABLE_STATUS..=aer::HEADER_LOG + 12).step_by(4) {
            block.sticky(register, u32::MAX);
        }
        block.sticky(aer::ROOT_STATUS, u32::MAX);
        block.sticky(aer::SOURCES, u32::MAX);
    }
}
