//! Memory that exists where it was written.

use crate::host::{HostMemory, OutOfMemory};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// Sparse memory: pages exist once written; all else reads as zero.
#[derive(Clone, Debug, Default)]
pub struct Pages(BTreeMap<u64, Box<[u8; PAGE as usize]>>);

impl Pages {
    /// Memory without a page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies what is at `address` into `out`.
    pub fn read(&self, address: u64, out: &mut [u8]) {
        for (start, place, range) in pieces(address, out.len()) {
            match self.0.get(&start) {
                Some(page) => out[range.clone()].copy_from_slice(&page[place..place + range.len()]),
                None => out[range].fill(0),
            }
        }
    }

    /// Copies `data` to `address`.
    pub fn write(&mut self, address: u64, data: &[u8]) {
        for (start, place, range) in pieces(address, data.len()) {
            let page = self.0.entry(start).or_insert_with(|| Box::new([0; PAGE as usize]));
            page[place..place + range.len()].copy_from_slice(&data[range]);
        }
    }

    /// Makes `bytes` from `address` on read as zero. Whole pages are gone.
    pub fn clear(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let (first, last) = (address.next_multiple_of(PAGE).min(end), (end - end % PAGE).max(address));
        for edge in [address..first, last.max(first)..end] {
            let start = edge.start - edge.start % PAGE;
            if let Some(page) = self.0.get_mut(&start).filter(|_| !edge.is_empty()) {
                page[(edge.start - start) as usize..(edge.end - start) as usize].fill(0);
            }
        }
        while let Some((&start, _)) = self.0.range(first..last.max(first)).next() {
            self.0.remove(&start);
        }
    }

    /// True if any page of this range was ever written.
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let first = address - address % PAGE;
        self.0.range(first..=address.saturating_add(bytes.saturating_sub(1))).next().is_some()
    }
}

/// Cuts a range at pages: start of the page, place in the page, range of the buffer.
fn pieces(address: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = address.wrapping_add(done as u64);
        let place = (at % PAGE) as usize;
        let piece = (PAGE as usize - place).min(len - done);
        let range = done..done + piece;
        done += piece;
        (piece > 0).then_some((at - place as u64, place, range))
    })
}

/// Host memory: sparse pages, and an allocator that only goes up.
#[derive(Clone, Debug)]
pub struct HostRam {
    pages: Pages,
    next: u64,
    end: u64,
}

impl HostRam {
    /// Memory whose allocations lie in `bytes` from `base` on. Other addresses can be read and written, too.
    pub fn new(base: u64, bytes: u64) -> Self {
        Self { pages: Pages::new(), next: base, end: base.saturating_add(bytes) }
    }
    /// The written pages.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }
}

impl HostMemory for HostRam {
    fn read(&self, address: u64, out: &mut [u8]) {
        self.pages.read(address, out);
    }
    fn write(&mut self, address: u64, data: &[u8]) {
        self.pages.write(address, data);
    }
    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64, OutOfMemory> {
        let none = OutOfMemory { bytes };
        let start = self.next.checked_next_multiple_of(align.max(1)).ok_or(none)?;
        let end = start.checked_add(bytes).filter(|&end| end <= self.end).ok_or(none)?;
        self.next = end;
        Ok(start)
    }
    fn snapshot(&self) -> Option<Box<dyn HostMemory + Send>> {
        Some(Box::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join() {
        let mut pages = Pages::new();
        let data: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
        pages.write(4000, &data);
        let mut out = vec![0xFF; 9010];
        pages.read(3995, &mut out);
        assert_eq!((&out[..5], &out[5..9005], &out[9005..]), (&[0; 5][..], &data[..], &[0; 5][..]));
        assert!(pages.holds(0, 1) && pages.holds(12_999, 1) && !pages.holds(16_384, 1 << 20));
        pages.read(u64::MAX - 1, &mut out[..2]);
        assert_eq!(out[..2], [0, 0]);
    }

    #[test]
    fn clearing_zeroes_exactly_its_range() {
        for (at, bytes) in [(0, 16_384), (10, 5), (4000, 200), (4096, 4096), (100, 9000), (8191, 2), (5, 0)] {
            let mut pages = Pages::new();
            pages.write(0, &[7; 16_384]);
            pages.clear(at, bytes);
            let mut out = vec![0; 16_384];
            pages.read(0, &mut out);
            let cleared = |byte: usize| (at..at + bytes).contains(&(byte as u64));
            assert!(out.iter().enumerate().all(|(byte, value)| *value == if cleared(byte) { 0 } else { 7 }));
        }
        let mut pages = Pages::new();
        pages.write(4096, &[7; 4096]);
        pages.clear(0, 1 << 40);
        assert!(!pages.holds(0, 1 << 20));
    }

    #[test]
    fn allocations_do_not_overlap() {
        let mut ram = HostRam::new(0x1001, 0x2000);
        assert_eq!(ram.alloc(10, 64), Ok(0x1040));
        assert_eq!(ram.alloc(1, 64), Ok(0x1080));
        assert_eq!(ram.alloc(0x2000, 1), Err(OutOfMemory { bytes: 0x2000 }));
    }
}
