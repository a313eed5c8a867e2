//! The division of a long transfer into TLPs: requests by MPS, MRRS and 4 KiB, completions by MPS and RCB. Pure arithmetic, no allocation.

use tlplab_units::{Mps, Rcb};

/// No request crosses a naturally aligned boundary of this many bytes (PCIe 5.0 §2.2.7).
pub const PAGE: u64 = 4096;

/// The places at which a requester cuts a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RequestPolicy {
    /// Requests end at multiples of the limit, so only the first and the last may be short, as those of DMA engines.
    #[default]
    Aligned,
    /// Every request is as long as the limit and 4 KiB allow, wherever it starts: fewest requests inside a page.
    Packed,
}

/// One request of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes; 0 for a zero-length request.
    pub bytes: u32,
    /// Bytes of the transfer before this request.
    pub offset: u64,
}

/// The requests of a transfer; see [`split_request`].
#[derive(Clone, Debug)]
pub struct RequestChunks {
    address: u64,
    /// Bytes still to be requested.
    left: u64,
    offset: u64,
    limit: u32,
    policy: RequestPolicy,
    finished: bool,
}

/// Splits a transfer of `bytes` at `address` into requests of at most `limit` bytes (MPS for writes, MRRS for reads, less where a root
/// complex cuts more finely; a power of two from 4 to 4096).
///
/// No request crosses 4 KiB (PCIe 5.0 §2.2.7), and none spans more doublewords than `limit` holds: an unaligned start costs part
/// of its first doubleword. A transfer of 0 bytes is one zero-length request. The transfer may not pass the top of the 64-bit address space.
///
/// ```
/// use tlplab_transaction::split::{RequestPolicy, split_request};
/// let sizes = |policy| split_request(0x1F40, 600, 256, policy).map(|c| c.bytes).collect::<Vec<_>>();
/// assert_eq!(sizes(RequestPolicy::Aligned), [192, 256, 152]);
/// assert_eq!(sizes(RequestPolicy::Packed), [192, 256, 152]); // 0x2000 is a page
/// ```
pub fn split_request(address: u64, bytes: u64, limit: u32, policy: RequestPolicy) -> RequestChunks {
    debug_assert!(limit.is_power_of_two() && (4..=4096).contains(&limit), "limit {limit}");
    debug_assert!(bytes == 0 || address.checked_add(bytes - 1).is_some(), "{address:#x} + {bytes} wraps");
    RequestChunks { address, left: bytes, offset: 0, limit, policy, finished: false }
}

impl RequestChunks {
    /// True if no more requests are to come.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// First byte of the next request.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes still to be requested.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next request, without taking it.
    pub fn peek(&self) -> Option<Chunk> {
        if self.finished {
            return None;
        }
        let limit = u64::from(self.limit);
        let room = match self.policy {
            RequestPolicy::Aligned => limit - self.address % limit,
            RequestPolicy::Packed => (limit - self.address % 4).min(PAGE - self.address % PAGE),
        };
        Some(Chunk { address: self.address, bytes: room.min(self.left) as u32, offset: self.offset })
    }
}

impl Iterator for RequestChunks {
    type Item = Chunk;
    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.peek()?;
        let bytes = u64::from(chunk.bytes);
        self.left -= bytes;
        self.offset += bytes;
        self.address = self.address.wrapping_add(bytes);
        self.finished = self.left == 0;
        Some(chunk)
    }
}

/// The places at which a completer cuts the data of one read (PCIe 5.0 §2.3.1.1 permits all of them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompletionPolicy {
    /// A completion ends at every RCB boundary, so it holds at most one RCB.
    Rcb,
    /// Completions are as long as MPS allows, and end at RCB boundaries.
    #[default]
    Max,
    /// As `Max`, but a read that starts inside an RCB and passes its end has a completion for this part alone, as seen of root complexes of
    /// Haswell processors.
    SplitHead,
    /// As `SplitHead`, and the part of an RCB at the end of the read comes alone, too, as seen of those of Sandy and Ivy Bridge.
    SplitEnds,
}

/// One completion of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionChunk {
    /// Bytes of the read before this completion.
    pub offset: u32,
    /// Bytes of the read it carries; 0 in the answer to a zero-length read, which still carries one doubleword.
    pub bytes: u32,
    /// The Byte Count field: bytes of the read from this completion on, 1 to 4096 (§2.2.9).
    pub byte_count: u16,
    /// The Lower Address field: the seven low bits of the address of its first byte (§2.2.9).
    pub lower_address: u8,
    /// True for the last completion of its read.
    pub last: bool,
}

/// The completions of one read; see [`split_completion`].
#[derive(Clone, Copy, Debug)]
pub struct CompletionChunks {
    address: u64,
    left: u32,
    offset: u32,
    rcb: u32,
    mps: u32,
    policy: CompletionPolicy,
    finished: bool,
}

/// Splits the answer to a read of `bytes` (at most 4096) at `address` into completions.
///
/// Every completion but the last ends at an RCB boundary and none spans more doublewords than MPS holds, so a read that does not
/// cross an RCB boundary has exactly one (§2.3.1.1). A zero-length read (`bytes` = 0) has one, with byte count 1 (§2.2.9, table 2-38).
///
/// ```
/// use tlplab_transaction::split::{CompletionPolicy, split_completion};
/// use tlplab_units::{Mps, Rcb};
/// let (rcb, mps) = (Rcb::new(64).unwrap(), Mps::new(128).unwrap());
/// let answer: Vec<_> = split_completion(0x103C, 200, rcb, mps, CompletionPolicy::Max)
///     .map(|c| (c.bytes, c.byte_count, c.lower_address))
///     .collect();
/// assert_eq!(answer, [(68, 200, 0x3C), (128, 132, 0), (4, 4, 0)]);
/// ```
pub fn split_completion(
    address: u64,
    bytes: u32,
    rcb: Rcb,
    mps: Mps,
    policy: CompletionPolicy,
) -> CompletionChunks {
    debug_assert!(bytes <= 4096, "a read of {bytes} B");
    CompletionChunks {
        address,
        left: bytes,
        offset: 0,
        rcb: rcb.bytes(),
        mps: mps.bytes(),
        policy,
        finished: false,
    }
}

impl Iterator for CompletionChunks {
    type Item = CompletionChunk;
    fn next(&mut self) -> Option<CompletionChunk> {
        self.next_within(u32::MAX)
    }
}

impl CompletionChunks {
    /// The next completion, where of the read only the first `available` bytes are there: all of them, or as many as there are up to an RCB
    /// boundary. `None` too if none has come since the completion before.
    pub fn next_within(&mut self, available: u32) -> Option<CompletionChunk> {
        if self.finished || (available <= self.offset && self.left > 0) {
            return None;
        }
        if self.left == 0 {
            self.finished = true;
            let lower_address = (self.address & 0x7C) as u8;
            return Some(CompletionChunk { offset: 0, bytes: 0, byte_count: 1, lower_address, last: true });
        }
        let rcb = u64::from(self.rcb);
        let to_boundary = rcb - self.address % rcb;
        // The payload starts at the doubleword that holds the first byte.
        let room = u64::from(self.mps) - self.address % 4;
        let left = u64::from(self.left);
        let longest = if left <= room { left } else { room - (self.address + room) % rcb };
        let bytes = match self.policy {
            CompletionPolicy::Rcb => to_boundary.min(left),
            CompletionPolicy::Max => longest,
            CompletionPolicy::SplitHead | CompletionPolicy::SplitEnds if to_boundary < rcb => {
                to_boundary.min(left)
            }
            CompletionPolicy::SplitEnds if left <= room && left > rcb => left - left % rcb,
            CompletionPolicy::SplitHead | CompletionPolicy::SplitEnds => longest,
        };
        let bytes = bytes.min(u64::from(available - self.offset)) as u32;
        let chunk = CompletionChunk {
            offset: self.offset,
            bytes,
            byte_count: self.left as u16,
            lower_address: (self.address & 0x7F) as u8,
            last: bytes == self.left,
        };
        self.address = self.address.wrapping_add(u64::from(bytes));
        self.offset += bytes;
        self.left -= bytes;
        self.finished = chunk.last;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completions(
        address: u64,
        bytes: u32,
        rcb: u32,
        mps: u32,
        policy: CompletionPolicy,
    ) -> Vec<(u32, u16, u8)> {
        split_completion(address, bytes, Rcb::new(rcb).unwrap(), Mps::new(mps).unwrap(), policy)
            .map(|c| (c.bytes, c.byte_count, c.lower_address))
            .collect()
    }
    fn requests(address: u64, bytes: u64, limit: u32, policy: RequestPolicy) -> Vec<(u64, u32, u64)> {
        split_request(address, bytes, limit, policy).map(|c| (c.address, c.bytes, c.offset)).collect()
    }

    /// All by hand from §2.2.9 and §2.3.1.1.
    #[test]
    fn completions_by_hand() {
        use CompletionPolicy::{Max, Rcb};
        assert_eq!(completions(0x103C, 200, 64, 128, Max), [(68, 200, 0x3C), (128, 132, 0), (4, 4, 0)]);
        assert_eq!(
            completions(0x103C, 200, 64, 128, Rcb),
            [(4, 200, 0x3C), (64, 196, 0x40), (64, 132, 0), (64, 68, 0x40), (4, 4, 0)]
        );
        assert_eq!(completions(0x1000, 4096, 64, 4096, Max), [(4096, 4096, 0)]);
        assert_eq!(completions(0x1000, 512, 64, 256, Max), [(256, 512, 0), (256, 256, 0)]);
        // RCB 128 of an end point: 0x1010 to 0x1080, then a whole MPS, then the rest.
        assert_eq!(completions(0x1010, 384, 128, 256, Max), [(240, 384, 0x10), (144, 144, 0)]);
        assert_eq!(completions(0x1010, 256, 128, 128, Max), [(112, 256, 0x10), (128, 144, 0), (16, 16, 0)]);
        // 128 bytes from an odd address are 33 doublewords: more than MPS 128.
        assert_eq!(completions(0x1001, 128, 64, 128, Max), [(127, 128, 1), (1, 1, 0)]);
        use CompletionPolicy::{SplitEnds, SplitHead};
        let head = [(16, 600, 0x30), (256, 584, 0x40), (256, 328, 0x40)];
        assert_eq!(completions(0x1030, 600, 64, 256, SplitHead), [&head[..], &[(72, 72, 0x40)]].concat());
        let tail = [(64, 72, 0x40), (8, 8, 0)];
        assert_eq!(completions(0x1030, 600, 64, 256, SplitEnds), [&head[..], &tail].concat());
        assert_eq!(completions(0x1040, 128, 64, 256, SplitEnds), [(128, 128, 0x40)]);
        assert_eq!(completions(0x1040, 100, 64, 256, SplitHead), [(100, 100, 0x40)]);
        assert_eq!(completions(0x1040, 100, 64, 256, SplitEnds), [(64, 100, 0x40), (36, 36, 0)]);
        assert_eq!(
            completions(0x1041, 300, 64, 256, SplitEnds),
            [(63, 300, 0x41), (192, 237, 0), (45, 45, 0x40)]
        );
        assert_eq!(completions(0x1044, 60, 64, 128, SplitEnds), [(60, 60, 0x44)]);
        // Inside one RCB there is one completion.
        assert_eq!(completions(0x103F, 1, 64, 128, Rcb), [(1, 1, 0x3F)]);
        assert_eq!(completions(0x1044, 60, 64, 128, Rcb), [(60, 60, 0x44)]);
        assert_eq!(completions(0x1066, 0, 64, 128, Max), [(0, 1, 0x64)]);
    }

    /// Lines that come one by one, and that come while others wait.
    #[test]
    fn completions_carry_the_lines_available_so_far() {
        let (rcb, mps) = (Rcb::new(64).unwrap(), Mps::new(256).unwrap());
        let mut chunks = split_completion(0x1030, 600, rcb, mps, CompletionPolicy::SplitHead);
        // One line, none, two more, all, and again.
        let available = [16, 16, 144, 600, 600, 600];
        let got = available.map(|bytes| chunks.next_within(bytes).map(|c| (c.bytes, c.byte_count, c.last)));
        let rest = [Some((128, 584, false)), Some((256, 456, false)), Some((200, 200, true)), None];
        assert_eq!(got[..2], [Some((16, 600, false)), None]);
        assert_eq!(got[2..], rest);
        let mut nothing = split_completion(0x1030, 0, rcb, mps, CompletionPolicy::Max);
        assert!(nothing.next_within(0).is_some_and(|c| c.last));
    }

    #[test]
    fn requests_by_hand() {
        use RequestPolicy::{Aligned, Packed};
        assert_eq!(requests(0x1000, 512, 256, Aligned), [(0x1000, 256, 0), (0x1100, 256, 256)]);
        assert_eq!(
            requests(0x10F0, 300, 256, Aligned),
            [(0x10F0, 16, 0), (0x1100, 256, 16), (0x1200, 28, 272)]
        );
        assert_eq!(requests(0x10F0, 300, 256, Packed), [(0x10F0, 256, 0), (0x11F0, 44, 256)]);
        assert_eq!(requests(0x1FFC, 8, 512, Packed), [(0x1FFC, 4, 0), (0x2000, 4, 4)]);
        // Unaligned: 128 bytes would span 33 doublewords.
        assert_eq!(requests(0x1003, 130, 128, Packed), [(0x1003, 125, 0), (0x1080, 5, 125)]);
        assert_eq!(requests(0x1234, 0, 128, Aligned), [(0x1234, 0, 0)]);
        assert_eq!(requests(u64::MAX - 3, 4, 128, Aligned), [(u64::MAX - 3, 4, 0)]);
    }
}
