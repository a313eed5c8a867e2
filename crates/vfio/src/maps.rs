//! The ranges of guest memory that the device may access.

use std::collections::BTreeMap;

/// A range of guest memory, at the addresses that the device uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaRange {
    /// First byte.
    pub address: u64,
    /// Length; not 0.
    pub bytes: u64,
    /// Its start in the file that backs it.
    pub offset: u64,
    /// The device may read it.
    pub readable: bool,
    /// The device may write it.
    pub writable: bool,
    /// It is mapped here; otherwise the client is asked for every access.
    pub mapped: bool,
}

impl DmaRange {
    /// The last byte.
    fn last(&self) -> u64 {
        self.address + (self.bytes - 1)
    }
}

/// A part of a transfer, which lies in one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) mapped: bool,
}

/// All ranges; none overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps(BTreeMap<u64, DmaRange>);

impl Maps {
    /// True if it has at least a byte, ends within 64 bits, and no byte of it is in another range.
    pub(crate) fn is_free(&self, address: u64, bytes: u64) -> bool {
        let Some(last) = bytes.checked_sub(1).and_then(|more| address.checked_add(more)) else {
            return false;
        };
        self.0.range(..=last).next_back().is_none_or(|(_, range)| range.last() < address)
    }

    pub(crate) fn insert(&mut self, range: DmaRange) {
        self.0.insert(range.address, range);
    }

    /// Takes out the ranges within `bytes` at `address`; none, if one lies there only in part, or there is none.
    pub(crate) fn remove(&mut self, address: u64, bytes: u64) -> Option<Vec<DmaRange>> {
        let last = address.checked_add(bytes.checked_sub(1)?)?;
        let touched: Vec<DmaRange> = self
            .0
            .range(..=last)
            .rev()
            .map(|(_, range)| *range)
            .take_while(|range| range.last() >= address)
            .collect();
        let whole = touched.iter().all(|range| range.address >= address && range.last() <= last);
        if touched.is_empty() || !whole {
            return None;
        }
        self.0.retain(|at, _| touched.iter().all(|range| range.address != *at));
        Some(touched)
    }

    /// Takes out all ranges.
    pub(crate) fn clear(&mut self) -> Vec<DmaRange> {
        std::mem::take(&mut self.0).into_values().collect()
    }

    /// The parts of a transfer, in the order of addresses; or the first address that the device may not access.
    pub(crate) fn pieces(&self, address: u64, bytes: u64, write: bool) -> Result<Vec<Piece>, u64> {
        let (mut at, mut left, mut pieces) = (address, bytes, Vec::new());
        while left > 0 {
            let range = self.0.range(..=at).next_back().map(|(_, range)| range);
            let range = range.filter(|range| at <= range.last()).ok_or(at)?;
            if !(if write { range.writable } else { range.readable }) {
                return Err(at);
            }
            let bytes = left.min(range.last() - at + 1);
            pieces.push(Piece { address: at, bytes, mapped: range.mapped });
            left -= bytes;
            // A transfer that reaches the end of all addresses ends there.
            at = match at.checked_add(bytes) {
                Some(next) => next,
                None if left == 0 => break,
                None => return Err(0),
            };
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(address: u64, bytes: u64, mapped: bool) -> DmaRange {
        DmaRange { address, bytes, offset: 0, readable: true, writable: mapped, mapped }
    }

    fn maps(ranges: &[DmaRange]) -> Maps {
        let mut maps = Maps::default();
        for range in ranges {
            assert!(maps.is_free(range.address, range.bytes));
            maps.insert(*range);
        }
        maps
    }

    #[test]
    fn a_transfer_over_two_ranges_has_two_pieces() {
        let maps = maps(&[range(0x1000, 0x1000, true), range(0x2000, 0x1000, false)]);
        let pieces = maps.pieces(0x1F00, 0x200, false).expect("both are readable");
        let piece = |address, mapped| Piece { address, bytes: 0x100, mapped };
        assert_eq!(pieces, [piece(0x1F00, true), piece(0x2000, false)]);
        assert_eq!(maps.pieces(0x1F00, 0x200, true), Err(0x2000));
        assert_eq!(maps.pieces(0xFFF, 2, false), Err(0xFFF));
        assert_eq!(maps.pieces(0x2FFF, 2, false), Err(0x3000));
        assert_eq!(maps.pieces(0x5000, 0, false), Ok(Vec::new()));
    }

    #[test]
    fn a_range_reaches_the_last_address() {
        let end = u64::MAX - 0xFFF;
        let maps = maps(&[range(end, 0x1000, true)]);
        assert_eq!(maps.pieces(end, 0x1000, true).map(|pieces| pieces.len()), Ok(1));
        assert_eq!(maps.pieces(u64::MAX, 2, true), Err(0));
        assert!(!maps.is_free(u64::MAX, 2));
        assert!(!maps.is_free(0, 0));
    }

    #[test]
    fn ranges_do_not_overlap_and_go_as_a_whole() {
        let mut maps = maps(&[range(0x1000, 0x1000, true), range(0x4000, 0x1000, true)]);
        for (address, bytes) in [(0x1FFF, 1), (0, 0x1001), (0x800, 0x4000), (0x1800, 8)] {
            assert!(!maps.is_free(address, bytes), "{address:#x}");
        }
        assert_eq!(maps.remove(0x1000, 0x800), None);
        assert_eq!(maps.remove(0x2000, 0x1000), None);
        assert_eq!(maps.remove(0, 0x5000).map(|gone| gone.len()), Some(2));
        assert_eq!(maps.clear(), []);
    }
}
