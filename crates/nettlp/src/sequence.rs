//! Sequence numbers of datagrams: what is missing, what came twice, what came late.

use tlplab_wire::nettlp::Header;

/// How many of the latest headers are remembered, to recognise duplicates.
const REMEMBERED: usize = 512;

/// What a header says about its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The sender does not count: sequence number and time stamp are 0, as the published library has them.
    Uncounted,
    /// Above all before it.
    New,
    /// Below one that came before, and not seen yet.
    Late,
    /// Sequence number and time stamp were seen before.
    Duplicate,
}

/// The numbers that have come to one lane from one peer.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// With the port that each came to: lanes of a peer count by themselves, but no port belongs to two of them.
    recent: Box<[(u16, Header); REMEMBERED]>,
    pub(crate) seen: Option<Seen>,
}

/// Where a lane is in its peer's count.
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
    pub(crate) fn new() -> Self {
        Self { recent: Box::new([(0, Header::default()); REMEMBERED]), seen: None }
    }

    /// Notes the header of a datagram that came to `port`.
    pub(crate) fn note(&mut self, port: u16, header: Header) -> Arrival {
        if header == Header::default() {
            return Arrival::Uncounted;
        }
        let place = &mut self.recent[usize::from(header.sequence) % REMEMBERED];
        if *place == (port, header) {
            return Arrival::Duplicate;
        }
        *place = (port, header);
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
    pub(crate) fn join(self, other: Self) -> Self {
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
    pub(crate) fn lost(self) -> u64 {
        self.span.saturating_sub(self.distinct)
    }
}
