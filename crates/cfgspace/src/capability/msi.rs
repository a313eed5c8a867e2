//! MSI and MSI-X (PCIe 5.0 §7.7.1, §7.7.2).

use crate::header::Bar;
use crate::layout::{Block, LayoutError};
use crate::registers::{msi, msix};
use crate::space::ConfigSpace;

/// Interrupts as memory writes, to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msi {
    /// Vectors asked for: 1, 2, 4, 8, 16 or 32.
    pub vectors: u8,
    /// The address has 64 bits.
    pub wide: bool,
    /// Each vector can be masked.
    pub masking: bool,
}

impl Msi {
    pub(crate) fn bytes(self) -> u16 {
        match (self.wide, self.masking) {
            (false, false) => 0x0C,
            (true, false) => 0x10,
            (false, true) => 0x14,
            (true, true) => 0x18,
        }
    }

    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let right = self.vectors.is_power_of_two() && self.vectors <= 32;
        block.require(right, "vectors", self.vectors, "1, 2, 4, 8, 16 or 32")?;
        block.set(2, (self.vectors.trailing_zeros() as u16) << 1);
        block.writable(2, 0b0111_0001u16); // MSI Enable, Multiple Message Enable
        block.writable(msi::ADDRESS, !0b11u32);
        let mut data = msi::ADDRESS + 4;
        if self.wide {
            block.set(0, msi::WIDE);
            block.writable(data, u32::MAX);
            data += 4;
        }
        block.writable(data, 0xFFFFu16);
        if self.masking {
            block.set(0, msi::MASKING);
            let vectors = (1u64 << self.vectors) - 1;
            block.writable(data + 4, vectors as u32);
            block.logged(data + 8, vectors as u32);
        }
        Ok(())
    }
}

/// Interrupts as memory writes, each with its address and data in a table in a BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiX {
    /// Entries of the table: 1 to 2048.
    pub vectors: u16,
    /// The BAR that holds the table, and the offset in it: a multiple of 8.
    pub table: (u8, u32),
    /// The BAR that holds the pending bits, and the offset in it: a multiple of 8.
    pub pending: (u8, u32),
}

impl MsiX {
    /// Checks that table and pending bits are in memory of the function, each in its own bytes.
    pub(crate) fn check(self, bars: &[Option<Bar>]) -> Result<(), LayoutError> {
        let vectors = u64::from(self.vectors);
        let place = |offset: u32, bytes: u64| u64::from(offset)..u64::from(offset) + bytes;
        let table = place(self.table.1, 16 * vectors);
        let pending = place(self.pending.1, 8 * vectors.div_ceil(64));
        let meet = self.table.0 == self.pending.0 && table.start < pending.end && pending.start < table.end;
        for (part, bar, range) in [("table", self.table.0, table), ("pending bits", self.pending.0, pending)]
        {
            let why = match bars.get(usize::from(bar)).copied().flatten() {
                None => "do not exist: the function has no such BAR",
                Some(found) if found.kind.is_io() => "are in I/O space; they must be in memory",
                Some(found) if range.end > found.size => "are not all inside it; make the BAR larger",
                _ if meet => "overlap the other part; give each part its own bytes",
                _ => continue,
            };
            return Err(LayoutError::MsixMemory { part, bar, range, why });
        }
        Ok(())
    }

    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let right = (1..=2048).contains(&self.vectors);
        block.require(right, "vectors", self.vectors, "1 to 2048")?;
        block.set(2, self.vectors - 1);
        block.writable(0, msix::WRITABLE);
        for (at, (bar, offset)) in [(msix::TABLE, self.table), (msix::PENDING, self.pending)] {
            block.require(bar < 6, "BAR", bar, "0 to 5")?;
            block.require(offset.is_multiple_of(8), "offset", offset, "a multiple of 8")?;
            block.set(at, offset);
            block.set(at, bar);
        }
        Ok(())
    }
}

impl ConfigSpace {
    /// The MSI-X capability, if there is one: the number of vectors, and the places of table and pending bits.
    pub fn msix(&self) -> Option<MsiX> {
        let start = self.positions.msix?.start;
        let place = |at: u16| {
            let register = self.read(start + at);
            ((register & 7) as u8, register & !7)
        };
        let vectors = (self.read(start) >> 16 & 0x7FF) as u16 + 1;
        Some(MsiX { vectors, table: place(msix::TABLE), pending: place(msix::PENDING) })
    }
}
