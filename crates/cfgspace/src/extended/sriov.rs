//! Single-root IO virtualisation (PCIe 5.0 §9.3.3).

use crate::header::{Bar, place_bar};
use crate::layout::{Block, LayoutError};
use crate::registers::sriov;

/// Virtual functions. This is their control; their behaviour when they are switched on is up to the owner. Enumeration keeps bus
/// numbers and addresses for them, and leaves them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrIov {
    /// The number that there can be.
    pub total: u16,
    /// From the physical function's routing ID to the first one's.
    pub first_offset: u16,
    /// From one's routing ID to the next one's.
    pub stride: u16,
    /// Their device ID.
    pub device: u16,
    /// The BARs of each of them; a 64-bit one also takes the next place.
    pub bars: [Option<Bar>; 6],
}

impl SrIov {
    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        block.require(self.total > 0, "total functions", self.total, "at least 1")?;
        block.writable(sriov::CONTROL, sriov::WRITABLE);
        block.set(sriov::INITIAL, self.total);
        block.set(sriov::INITIAL + 2, self.total);
        block.writable(sriov::COUNT, 0xFFFFu16);
        block.set(sriov::OFFSET, self.first_offset);
        block.set(sriov::OFFSET + 2, self.stride);
        block.set(0x1A, self.device);
        block.set(0x1C, 0x553u32); // pages of 4, 8, 64, 256 KiB, 1 and 4 MiB
        block.set(sriov::PAGE_SIZE, 1u32);
        block.writable(sriov::PAGE_SIZE, 0x553u32);
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
                "unused: the 64-bit BAR before it takes two numbers",
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
