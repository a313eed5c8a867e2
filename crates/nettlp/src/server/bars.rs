//! The addresses of a device's BARs in the address space of the host.

use crate::endpoint::Window;
use tlplab_cfgspace::{Bar, Header, Layout};

/// Stands for the last 4 KiB of the card's window where the MSI-X table is there, and not a BAR of the device's.
pub(super) const TABLE: u8 = 6;
/// Bytes of the window that the MSI-X table takes, at its end.
const TABLE_BYTES: u64 = 4096;

/// The BARs of a device and their addresses, as the host reaches them through the adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BarMap {
    bars: Vec<(u8, Window)>,
}

/// The reason that BARs do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarMapError {
    /// The adapter's window is too small.
    #[error(
        "BAR {bar} with {size} B does not fit into the adapter's window of {window} B behind the BARs before it"
    )]
    TooBig {
        /// The BAR.
        bar: u8,
        /// Its size.
        size: u64,
        /// The window's size.
        window: u64,
    },
    /// The window does not begin where its largest BAR could.
    #[error(
        "the window at {base:#x} is not aligned to the {size} B of BAR {bar}, which must begin at a multiple of its size"
    )]
    Misaligned {
        /// The BAR.
        bar: u8,
        /// Its size.
        size: u64,
        /// The window's address.
        base: u64,
    },
}

impl BarMap {
    /// The function at the adapter is the device itself: each BAR is where its configuration space says. `bases` has an address for each
    /// BAR that software has placed.
    pub fn own(layout: &Layout, bases: [Option<u64>; 6]) -> Self {
        let bars = memory_bars(layout)
            .filter_map(|(bar, size)| bases[usize::from(bar)].map(|base| (bar, Window { base, size })))
            .collect();
        Self { bars }
    }

    /// The function at the adapter is the adapter's card, one BAR of which is bridged to the device (the window, BAR4): the device's memory
    /// BARs lie in it one after the other, in order of number, each at a multiple of its size. Those in I/O space are out of reach.
    ///
    /// # Errors
    /// They need more room than the window has.
    pub fn packed(layout: &Layout, window: Window) -> Result<Self, BarMapError> {
        let mut bars = Vec::new();
        let mut next = 0u64;
        for (bar, size) in memory_bars(layout) {
            let too_big = BarMapError::TooBig { bar, size, window: window.size };
            let offset = next.checked_next_multiple_of(size).ok_or(too_big)?;
            next = offset.checked_add(size).filter(|end| *end <= window.size).ok_or(too_big)?;
            if !window.base.is_multiple_of(size) {
                return Err(BarMapError::Misaligned { bar, size, base: window.base });
            }
            bars.push((bar, Window { base: window.base + offset, size }));
        }
        Ok(Self { bars })
    }

    /// The card's MSI-X table is in the window, too, in its last 4 KiB; whatever BAR reaches so far loses them. The port holds it:
    /// [`Vectors::in_window`](super::Vectors::in_window).
    #[must_use]
    pub fn with_table(mut self, window: Window) -> Self {
        let base = window.base + window.size.saturating_sub(TABLE_BYTES);
        self.bars.insert(0, (TABLE, Window { base, size: TABLE_BYTES }));
        self
    }

    /// Each BAR and where it is.
    pub fn bars(&self) -> &[(u8, Window)] {
        &self.bars
    }

    /// The windows for [`EndpointConfig::windows`](crate::EndpointConfig::windows), in the order of [`bars`](Self::bars).
    pub(super) fn windows(&self) -> Vec<Window> {
        self.bars.iter().map(|(_, window)| *window).collect()
    }

    /// The BAR of that window, and the offset of an address in it.
    pub(super) fn locate(&self, window: usize, address: u64) -> (u8, u64) {
        let (bar, window) = self.bars[window];
        (bar, address - window.base)
    }
}

/// Number and size of each BAR in memory space.
fn memory_bars(layout: &Layout) -> impl Iterator<Item = (u8, u64)> {
    let bars: &[Option<Bar>] = match &layout.header {
        Header::Type0(header) => &header.bars,
        Header::Type1(header) => &header.bars,
    };
    (0..)
        .zip(bars)
        .filter_map(|(number, bar)| bar.filter(|bar| !bar.kind.is_io()).map(|bar| (number, bar.size)))
}
