//! The adapter's sequence numbers: what is missing, what came twice, what came late.

use tlplab_wire::nettlp::Header;

/// How many of the latest headers are remembered, to recognise duplicates.
const REMEMBERED: usize = 512;

/// What a header says about its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The sender does not count: sequence number and time stamp are 0, as those of software are.
    Uncounted,
    /// Above all before it.
    New,
    /// Below one that came before, and not seen yet.
    Late,
    /// Sequence number and time stamp were seen before.
    Duplicate,
}

/// The numbers that have come to one lane.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    recent: Box<[Header; REMEMBERED]>,
    pub(super) seen: Option<Seen>,
}

/// Where a lane is in the adapter's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The first number that came.
    pub first: u16,
    /// Numbers from the first to the highest, both included.
    pub span: u64,
    /// Datagrams that carried them.
    pub distinct: u64,
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self { recent: Box::new([Header::default(); REMEMBERED]), seen: None }
    }

    /// Notes a datagram's header.
    pub(super) fn note(&mut self, header: Header) -> Arrival {
        if header == Header::default() {
            return Arrival::Uncounted;
        }
        let place = &mut self.recent[usize::from(header.sequence) % REMEMBERED];
        if *place == header {
            return Arrival::Duplicate;
        }
        *place = header;
        let Some(seen) = &mut self.seen else {
            self.seen = Some(Seen { first: header.sequence, span: 1, distinct: 1 });
            return Arrival::New;
        };
        seen.distinct += 1;
        let highest = seen.first.wrapping_add((seen.span - 1) as u16);
        match header.sequence.wrapping_sub(highest) as i16 {
            ahead @ 1.. => {
                seen.span += ahead as u64;
                Arrival::New
            }
            _ => Arrival::Late,
        }
    }
}

impl Seen {
    /// What two lanes of one device have seen together. The adapter has one count for all, so the lane that is furthest knows best how many
    /// there were.
    pub(super) fn join(self, other: Self) -> Self {
        let (near, far) = if self.span < other.span { (self, other) } else { (other, self) };
        // Lanes begin within a few datagrams of each other, before or behind.
        let begins = i64::from(near.first.wrapping_sub(far.first) as i16);
        let before = begins.min(0).unsigned_abs();
        let end = far.span.max(near.span.saturating_add_signed(begins));
        Self {
            first: far.first.wrapping_sub(before as u16),
            span: end + before,
            distinct: far.distinct + near.distinct,
        }
    }

    /// Numbers that did not come.
    pub(super) fn lost(self) -> u64 {
        self.span.saturating_sub(self.distinct)
    }
}
