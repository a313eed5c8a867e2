//! The places of a function's MSI-X table and pending bits, and the accesses of software to them (PCIe 5.0 §6.1.4.2).

use crate::capability::MsiX;
use crate::interrupt::MsixTable;
use crate::space::ConfigSpace;

/// The table and the pending bits, and their places in the function's BARs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsixMemory {
    place: MsiX,
    /// The table.
    pub table: MsixTable,
}

/// A part of it, and a byte offset there.
enum Part {
    Table(u32),
    Pending(u32),
}

impl MsixMemory {
    /// As after a reset.
    pub fn new(place: MsiX) -> Self {
        Self { place, table: MsixTable::new(place.vectors) }
    }
    /// That of a function; `None` without MSI-X.
    pub fn of(space: &ConfigSpace) -> Option<Self> {
        space.msix().map(Self::new)
    }

    fn part(&self, bar: u8, offset: u64) -> Option<Part> {
        let within = |(in_bar, start): (u8, u32), bytes: u32| {
            let at = u32::try_from(offset).ok()?.checked_sub(start)?;
            (in_bar == bar && at < bytes).then_some(at)
        };
        within(self.place.table, self.table.table_bytes())
            .map(Part::Table)
            .or_else(|| within(self.place.pending, self.table.pending_bytes()).map(Part::Pending))
    }

    /// True if this byte of a BAR is of the table or the pending bits.
    pub fn claims(&self, bar: u8, offset: u64) -> bool {
        self.part(bar, offset).is_some()
    }

    /// Software reads so many bytes.
    pub fn read(&self, bar: u8, offset: u64, bytes: u32) -> Vec<u8> {
        let words = (offset & !3..offset + u64::from(bytes)).step_by(4).map(|at| match self.part(bar, at) {
            Some(Part::Table(at)) => self.table.read_table(at),
            Some(Part::Pending(at)) => self.table.read_pending(at),
            None => 0,
        });
        words.flat_map(u32::to_le_bytes).skip((offset & 3) as usize).take(bytes as usize).collect()
    }

    /// Software writes, in whole doublewords; anything less changes nothing. Afterwards vectors may be due: see
    /// [`take_pending`](crate::interrupt::take_pending).
    pub fn write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        let (words, _) = data.as_chunks::<4>();
        for (at, word) in (offset..).step_by(4).zip(words) {
            if let Some(Part::Table(at)) = self.part(bar, at) {
                self.table.write_table(at, u32::from_le_bytes(*word));
            }
        }
    }
}
