//! Power management (PCIe 5.0 §7.5.2).

use crate::layout::Block;
use crate::registers::power;

/// D0 and D3hot, and those of the others that are supported.
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
        let version = 3u8;
        block.set_field(2, 0, version);
        block.set_field(2, 9, self.d1);
        block.set_field(2, 10, self.d2);
        block.set_field(2, 11, self.wakes_from & 0x1F);
        // No_Soft_Reset: the function keeps its registers on the way from D3hot to D0.
        block.set_field(power::CONTROL, 3, true);
        block.writable(power::CONTROL, 0b11u16);
        if self.wakes_from != 0 {
            block.writable(power::CONTROL, power::PME_ENABLE);
            block.clearable(power::CONTROL, power::PME_STATUS);
            if self.wakes_from & 0x10 != 0 {
                block.sticky(power::CONTROL, power::PME_ENABLE);
                block.sticky(power::CONTROL, power::PME_STATUS);
            }
        }
    }
}
