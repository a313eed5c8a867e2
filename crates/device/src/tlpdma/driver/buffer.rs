//! Buffers in host memory as a driver finds them: pages that lie anywhere.

use crate::host::{HostMemory, OutOfMemory};

/// The layout of the pages of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// Pages of 4 KiB of which no two neighbours lie side by side.
    #[default]
    Small,
    /// Pages of 2 MiB, likewise.
    Large,
}

impl PageSize {
    /// Bytes of a page.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Small => 4 << 10,
            Self::Large => 2 << 20,
        }
    }
}

/// A buffer of an application: neighbouring in its eyes, scattered in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    base: u64,
    pages: u64,
    page: u64,
    /// The start in its first page.
    offset: u64,
}

impl Buffer {
    pub(super) fn new(
        memory: &mut dyn HostMemory,
        size: PageSize,
        offset: u64,
        bytes: u64,
    ) -> Result<Self, OutOfMemory> {
        let page = size.bytes();
        let offset = offset % page;
        let pages = (offset + bytes).div_ceil(page).max(1);
        Ok(Self { base: memory.alloc(pages * page, page)?, pages, page, offset })
    }

    /// The pieces of memory from byte `at` on, each within a page: address and length.
    pub(super) fn pieces(self, at: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = self.offset + at + bytes;
        let mut next = self.offset + at;
        std::iter::from_fn(move || {
            let left = end.checked_sub(next).filter(|left| *left > 0)?;
            let (page, within) = (next / self.page, next % self.page);
            let piece = left.min(self.page - within);
            next += piece;
            // The last page of the buffer is the first in memory: none is followed by its neighbour.
            Some((self.base + (self.pages - 1 - page) * self.page + within, piece))
        })
    }

    pub(super) fn write(self, memory: &mut dyn HostMemory, at: u64, data: &[u8]) {
        let mut rest = data;
        for (address, bytes) in self.pieces(at, data.len() as u64) {
            let (piece, others) = rest.split_at(bytes as usize);
            memory.write(address, piece);
            rest = others;
        }
    }

    pub(super) fn read(self, memory: &mut dyn HostMemory, at: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        let mut from = 0;
        for (address, bytes) in self.pieces(at, bytes) {
            memory.read(address, &mut data[from..from + bytes as usize]);
            from += bytes as usize;
        }
        data
    }
}

/// The data of a transfer: `bytes` of them from byte `at` on; every number has data of its own.
pub(super) fn content(number: u64, at: u64, bytes: u64) -> Vec<u8> {
    let of = |i: u64| ((i ^ number << 40).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    (at..at + bytes).map(of).collect()
}
