//! The addresses that are accessed, and their content.

use tlplab_device::random::Random;

/// The order of the addresses of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Always the first.
    Fix,
    /// One behind the other.
    #[default]
    Seq,
    /// Every 512 bytes.
    Seq512,
    /// At the beginning of any page of 4 KiB.
    Random,
}

const PAGE: u64 = 4096;

/// Memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Region {
    /// Part `part` of `parts` equal ones.
    pub(super) fn part(self, part: u64, parts: u64) -> Self {
        let bytes = self.bytes / parts;
        Self { address: self.address + part * bytes, bytes }
    }
}

impl Pattern {
    /// From one possible beginning of an operation to the next, in bytes, and the first.
    fn grid(self, region: Region, length: u64) -> (u64, u64) {
        match self {
            Self::Fix => (u64::MAX, region.address),
            Self::Seq => (length, region.address),
            Self::Seq512 => (512, region.address),
            Self::Random => (PAGE, region.address - region.address % PAGE),
        }
    }

    /// The index of the start that this address is at, or behind.
    pub(super) fn place(self, region: Region, length: u64, address: u64) -> usize {
        let (step, first) = self.grid(region, length);
        (address.saturating_sub(first) / step) as usize
    }

    /// The beginning with that number.
    pub(super) fn beginning(self, region: Region, length: u64, place: usize) -> u64 {
        let (step, first) = self.grid(region, length);
        (first + place as u64 * if place == 0 { 0 } else { step }).max(region.address)
    }
}

/// The addresses of a lane; an access of `length` bytes fits into the region at each of them.
pub(super) struct Addresses {
    pattern: Pattern,
    region: Region,
    length: u64,
    next: u64,
    random: Random,
}

impl Addresses {
    pub(super) fn new(pattern: Pattern, region: Region, length: u64, random: Random) -> Self {
        Self { pattern, region, length, next: region.address, random }
    }

    pub(super) fn next(&mut self) -> u64 {
        let Self { region, length, .. } = *self;
        let last = region.address + (region.bytes - length);
        let step = match self.pattern {
            Pattern::Fix => return region.address,
            Pattern::Random => {
                // Pages that begin in the region, and the region's own beginning where it is not at one.
                let pages = last / PAGE - region.address / PAGE + 1;
                let page = region.address / PAGE + self.random.below(pages);
                return (page * PAGE).max(region.address);
            }
            Pattern::Seq => length,
            Pattern::Seq512 => 512,
        };
        let address = if self.next > last { region.address } else { self.next };
        self.next = address + step;
        address
    }
}

/// Bytes that depend on their address and a key, so that a byte from a wrong place or of an earlier run is told from the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content(pub u64);

impl Content {
    /// Eight bytes that begin at a multiple of eight.
    fn word(self, number: u64) -> [u8; 8] {
        // The finaliser of SplitMix64: two neighbours have nothing in common.
        let z = (number ^ self.0).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31).to_le_bytes()
    }

    /// The data that a lane writes in this one of its operations: different data wherever it goes on its next lap.
    #[must_use]
    pub fn of(self, lane: u8, serial: u64) -> Self {
        let operation = (u64::from(lane) << 56 | serial).wrapping_add(1);
        Self(self.0 ^ operation.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The content of `bytes` bytes from `address` on.
    pub fn at(self, address: u64, bytes: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes + 16);
        let skip = (address % 8) as usize;
        let mut number = address / 8;
        while all.len() < bytes + skip {
            all.extend(self.word(number));
            number += 1;
        }
        all.truncate(bytes + skip);
        all.drain(..skip);
        all
    }

    /// True if this stands at `address`.
    pub fn is(self, address: u64, bytes: &[u8]) -> bool {
        let head = bytes.len().min((address.wrapping_neg() % 8) as usize);
        let (head, rest) = bytes.split_at(head);
        let (words, tail) = rest.as_chunks::<8>();
        let first = address.div_ceil(8);
        head == &self.word(address / 8)[(address % 8) as usize..][..head.len()]
            && words.iter().zip(first..).all(|(word, number)| *word == self.word(number))
            && *tail == self.word(first + words.len() as u64)[..tail.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: Pattern, region: Region, length: u64, count: usize) -> Vec<u64> {
        let mut addresses = Addresses::new(pattern, region, length, Random::keyed(1, "lane", "test"));
        (0..count).map(|_| addresses.next()).collect()
    }

    #[test]
    fn patterns_stay_in_their_region() {
        let region = Region { address: 0x1000, bytes: 1500 };
        assert_eq!(first(Pattern::Fix, region, 500, 3), [0x1000; 3]);
        assert_eq!(first(Pattern::Seq, region, 500, 4), [0x1000, 0x1000 + 500, 0x1000 + 1000, 0x1000]);
        assert_eq!(first(Pattern::Seq512, region, 500, 3), [0x1000, 0x1200, 0x1000]);
        assert_eq!(first(Pattern::Seq512, region, 476, 4), [0x1000, 0x1200, 0x1400, 0x1000]);
        assert_eq!(region.part(2, 3), Region { address: 0x1000 + 1000, bytes: 500 });

        let region = Region { address: 0x1800, bytes: 0x3000 };
        let mut seen = first(Pattern::Random, region, 0x800, 1000);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0x1800, 0x2000, 0x3000, 0x4000], "a page that would end outside is none");
    }

    #[test]
    fn content_is_a_function_of_the_address() {
        let content = Content(7);
        let whole = content.at(0, 64);
        for (address, bytes) in (0..24).flat_map(|address| (0..40).map(move |bytes| (address, bytes))) {
            let part = content.at(address as u64, bytes);
            assert_eq!(part, whole[address..address + bytes]);
            assert!(content.is(address as u64, &part));
            for wrong in 0..bytes {
                let mut other = part.clone();
                other[wrong] ^= 0x10;
                assert!(!content.is(address as u64, &other), "{bytes} at {address}, byte {wrong}");
            }
        }
        assert!(!Content(8).is(0, &whole));
    }
}
