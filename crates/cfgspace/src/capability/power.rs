//! Power management (PCIe 5.0 §7.5.2).

use crate::layout::Block;
use crate::registers::power;

/// D0 and D3hot, and which of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerManagement {
    /// D1 is supported.
    pub d1: bool,
    /// D2 is supported.
    pub d2: bool,
    /// The states from which it can wake the system: bits 0 to 4 for D0, D1, D2, D3hot, D3cold.
    pub wakes_from: u8,
}

impl PowerManagement {
    pub(crate) fn place(self, block: &mut Block<'_>) {
        let states = u16::from(self.d1) << 9 | u16::from(self.d2) << 10;
        block.set(2, 3 | states | u16::from(self.wakes_from & 0x1F) << 11);
        // No_Soft_Reset: the function keeps its registers on the way from D3hot to D0.
        block.set(power::CONTROL, 1u16 << 3);
        block.writable(power::CONTROL, 0b11u16);
        if self.wakes_from != 0 {
            block.writable(power::CONTROL, 1u16 << 8);
            block.clearable(power::CONTROL, 1u16 << 15);
            if self.wakes_from & 0x10 != 0 {
                block.sticky(power::CONTROL, 1u16 << 8 | 1 << 15);
            }
        }
    }
}
