//! Single-root IO virtualisation (PCIe 5.0 §9.3.3).

use crate::header::{Bar, place_bar};
use crate::layout::{Block, LayoutError};
use crate::registers::sriov;

/// Virtual functions. This is their control; what they are when they are switched on is the owner's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrIov {
    /// How many there can be.
    pub total: u16,
    /// From the physical function's routing ID to the first one's.
    pub first_offset: u16,
    /// From one's routing ID to the next one's.
    pub stride: u16,
    /// Their device ID.
    pub device: u16,
    /// What each of them has of these BARs; a 64-bit one also takes the next place.
    pub bars: [Option<Bar>; 6],
}

impl SrIov {
    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        block.require(self.total > 0, "total functions", self.total, "at least 1")?;
        let (enable, memory, ari) = (1u16 << 0, 1u16 << 3, 1u16 << 4);
        block.writable(0x08, enable | memory | ari);
        block.set(0x0C, self.total); // InitialVFs
        block.set(0x0E, self.total);
        block.writable(0x10, 0xFFFFu16); // NumVFs
        block.set(0x14, self.first_offset);
        block.set(0x16, self.stride);
        block.set(0x1A, self.device);
        block.set(0x1C, 0x553u32); // pages of 4, 8, 64, 256 KiB, 1 and 4 MiB
        block.set(0x20, 1u32);
        block.writable(0x20, 0x553u32);
        let mut taken = false;
        for (index, bar) in (0..).zip(self.bars) {
            let Some(bar) = bar else {
                taken = false;
                continue;
            };
            let wide = bar.kind.is_wide();
            block.require(
                !(taken || wide && index == 5),
                "VF BAR",
                index,
                "free behind a 64-bit BAR, which takes two places",
            )?;
            let right = bar.size.is_power_of_two() && bar.size >= 4096 && (wide || bar.size <= 1 << 31);
            block.require(
                right && !bar.kind.is_io(),
                "VF BAR size",
                bar.size,
                "memory, a power of two from 4 KiB",
            )?;
            taken = wide;
            place_bar(block, sriov::BARS + 4 * index, bar);
        }
        Ok(())
    }
}
