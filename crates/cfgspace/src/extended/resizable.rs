//! BARs of several sizes (PCIe 5.0 §7.8.6).

use crate::header::{Bar, BarKind};
use crate::layout::{Block, LayoutError};
use crate::registers::header;
use crate::space::ConfigSpace;

/// The BARs of which software chooses the size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResizableBar {
    /// One to six of them.
    pub bars: Vec<Resizable>,
}

/// A BAR of which software chooses the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resizable {
    /// The number of a BAR of the header. Its size there should be the one it starts with here.
    pub bar: u8,
    /// The sizes: bit 0 for 1 MiB, bit 1 for 2 MiB, up to bit 27 for 128 TiB.
    pub sizes: u32,
    /// The size it has after a reset: 0 for 1 MiB, 1 for 2 MiB.
    pub size: u8,
}

impl ResizableBar {
    pub(crate) fn bytes(&self) -> u16 {
        4 + 8 * self.bars.len().min(6) as u16
    }

    /// Checks that they are memory of the function, and that their sizes are such as their addresses can have.
    pub(crate) fn check(&self, bars: &[Option<Bar>]) -> Result<(), LayoutError> {
        for resizable in &self.bars {
            let bar = bars.get(usize::from(resizable.bar)).copied().flatten();
            let (field, found, wanted) = match bar.map(|bar| bar.kind) {
                None | Some(BarKind::Io) => ("BAR", resizable.bar.into(), "a BAR in memory"),
                Some(BarKind::Memory { wide: false, .. }) if resizable.sizes >> 12 != 0 => {
                    ("sizes", resizable.sizes.into(), "at most 2 GiB (bit 11) for a BAR of 32 bits")
                }
                Some(BarKind::Memory { .. }) => continue,
            };
            return Err(LayoutError::Field { name: "resizable BAR", field, found, wanted });
        }
        Ok(())
    }

    pub(crate) fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let count = self.bars.len();
        block.require((1..=6).contains(&count), "BARs", count as u64, "1 to 6")?;
        for (at, resizable) in (4..).step_by(8).zip(&self.bars) {
            let Resizable { bar, sizes, size } = *resizable;
            block.require(size < 28 && sizes >> size & 1 == 1, "size", size, "one of its sizes")?;
            block.set(at, sizes << 4);
            block.set_field(at + 4, 0, bar);
            block.set_field(at + 4, 5, count as u32);
            block.set_field(at + 4, 8, size);
            block.writable(at + 4, 0x3F00u32);
        }
        Ok(())
    }
}

impl ConfigSpace {
    /// A control register of a resizable BAR was written. A size that the BAR cannot have is not taken; `true` if there is a new one.
    pub(crate) fn resize_bar(&mut self, control: u16, changed: u32) -> bool {
        let (sizes, size) = (self.read(control - 4) >> 4, self.read(control) >> 8 & 0x3F);
        if size >= 28 || sizes >> size & 1 == 0 {
            self.update32(control, changed, self.read(control) ^ changed);
            return false;
        }
        self.apply_bar_sizes();
        changed != 0
    }

    /// Gives resizable BARs the size that their control register says, by the bits of the BAR that can be written.
    pub(crate) fn apply_bar_sizes(&mut self) {
        let Some(span) = self.positions.resizable else { return };
        for control in (span.start + 8..span.start + span.bytes).step_by(8) {
            let value = self.read(control);
            let (bar, size) = (value as u16 & 7, value >> 8 & 0x3F);
            let at = header::BARS + 4 * bar;
            let writable: u64 = !0 << (20 + size.min(43));
            self.resize(at, writable as u32);
            if BarKind::from_bits(self.read(at)).is_some_and(BarKind::is_wide) {
                self.resize(at + 4, (writable >> 32) as u32);
            }
        }
    }

    /// Bits of the address below the size are read-only zeros.
    fn resize(&mut self, at: u16, writable: u32) {
        let word = usize::from(at / 4);
        let gone = self.rules[word].writable & !writable;
        self.rules[word].writable = writable;
        self.update32(at, gone, 0);
    }
}
