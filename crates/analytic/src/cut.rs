//! The conversion of transfers into TLPs, counted in closed form: groups of equal requests, completions, doublewords, flow-control units.

/// No request crosses a multiple of this many bytes (PCIe 5.0 §2.2.7).
const PAGE: u64 = 4096;

/// Consecutive bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of the first byte; what counts is where it lies in its page of 4 KiB.
    pub start: u64,
    /// Length in bytes, at least 1.
    pub bytes: u64,
}

impl Span {
    /// `bytes` from `start` on.
    pub const fn new(start: u64, bytes: u64) -> Self {
        Self { start, bytes }
    }
    const fn end(self) -> u64 {
        self.start + self.bytes
    }
    /// Doublewords it touches: what a TLP with these bytes carries (§2.2.5).
    pub const fn doublewords(self) -> u64 {
        self.end().div_ceil(4) - self.start / 4
    }
    /// Flow-control units of 16 bytes that a TLP with these bytes takes (§2.6.1).
    pub const fn credits(self) -> u64 {
        self.doublewords().div_ceil(4)
    }
}

/// The addresses at which a requester cuts a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requests {
    /// At multiples of the limit: only the first and the last request may be short.
    #[default]
    Aligned,
    /// At the limit and at the end of a page.
    Packed,
}

/// The addresses at which a completer cuts the answer to a read (§2.3.1.1 permits both).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completions {
    /// As late as the MPS allows, at a multiple of the RCB.
    #[default]
    Max,
    /// At every multiple of the RCB.
    Rcb,
}

/// Requests that are alike: one of them, and how many there are.
pub type Group = (Span, u64);

/// The requests of a transfer, each at most `limit` bytes (a power of two, 128 to 4096). None crosses 4 KiB, and none has more
/// doublewords than the limit.
pub fn requests(transfer: Span, limit: u64, policy: Requests) -> impl Iterator<Item = Group> {
    let groups = match policy {
        Requests::Aligned => {
            let [head, full, tail] = by_multiples(transfer, limit, limit);
            [head, full, tail, (transfer, 0), (transfer, 0)]
        }
        Requests::Packed => {
            let to_page = (PAGE - transfer.start % PAGE).min(transfer.bytes);
            let [first, full, last] = by_length(Span { bytes: to_page, ..transfer }, limit);
            let rest = Span::new(0, transfer.bytes - to_page);
            let [_, whole, end] = by_multiples(rest, limit, limit);
            [first, full, last, whole, end]
        }
    };
    groups.into_iter().filter(|(_, count)| *count > 0)
}

/// Cut at multiples of `limit`: what comes before the first, whole ones, what comes after the last.
fn by_multiples(transfer: Span, limit: u64, boundary: u64) -> [Group; 3] {
    let before = (boundary - transfer.start % boundary) % boundary;
    let before = before.min(transfer.bytes);
    let left = transfer.bytes - before;
    let at = transfer.start + before;
    [
        (Span { bytes: before, ..transfer }, u64::from(before > 0)),
        (Span::new(at, limit), left / limit),
        (Span::new(at, left % limit), u64::from(!left.is_multiple_of(limit))),
    ]
}

/// Cut whenever `limit` bytes of doublewords are full: the first, which may start within a doubleword, whole ones, the last.
fn by_length(transfer: Span, limit: u64) -> [Group; 3] {
    let first = (limit - transfer.start % 4).min(transfer.bytes);
    let left = transfer.bytes - first;
    let at = transfer.start + first;
    [
        (Span { bytes: first, ..transfer }, 1),
        (Span::new(at, limit), left / limit),
        (Span::new(at, left % limit), u64::from(!left.is_multiple_of(limit))),
    ]
}

/// Completions that answer one request.
pub fn completions(request: Span, mps: u64, rcb: u64, policy: Completions) -> u64 {
    let Span { start, bytes } = request;
    match policy {
        Completions::Rcb => request.end().div_ceil(rcb) - start / rcb,
        Completions::Max if start % 4 + bytes <= mps => 1,
        Completions::Max => {
            let cut = (start / 4 * 4 + mps) / rcb * rcb;
            1 + (request.end() - cut).div_ceil(mps)
        }
    }
}
