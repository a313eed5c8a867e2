//! Sequence numbers of datagrams: what is missing, what came twice, what came late.

use tlplab_wire::nettlp::Header;

/// Where headers are remembered, to recognise duplicates: by the low bits of their number, so many of each. Lanes of a peer count by
/// themselves; sixteen of them in step still have their last 4096 each, one alone its last 65536. At the highest rate that an adapter lets in
/// that is longer than a tag rests.
const SETS: usize = 4096;
const WAYS: usize = 16;

/// Numbers further apart than this are not of one count: the sender began anew, or there are several.
const FAR: u16 = 4096;

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
    /// Headers, each with the port that it came to (no port belongs to two lanes); zero is none. As long as nothing is written there, it
    /// takes no memory.
    recent: Vec<u64>,
    /// In each set, the oldest.
    oldest: Vec<u8>,
    /// Of an adapter there is one count for all lanes, and each lane sees gaps where the others are. A device has a count for each lane.
    by_lane: bool,
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
    /// What comes from an adapter.
    pub(crate) fn of_adapter() -> Self {
        Self { recent: vec![0; SETS * WAYS], oldest: vec![0; SETS], by_lane: false, seen: None }
    }

    /// What comes from a device, of any number of lanes. Only of a single one is it known what is missing.
    pub(crate) fn of_device() -> Self {
        Self { by_lane: true, ..Self::of_adapter() }
    }

    /// Numbers that did not come.
    pub(crate) fn lost(&self) -> u64 {
        self.seen.map_or(0, Seen::lost)
    }

    /// Notes the header of a datagram that came to `port`.
    pub(crate) fn note(&mut self, port: u16, header: Header) -> Arrival {
        if header == Header::default() {
            return Arrival::Uncounted;
        }
        if self.remember(port, header) {
            return Arrival::Duplicate;
        }
        let Some(seen) = &mut self.seen else {
            self.seen = Some(Seen { first: header.sequence, span: 1, distinct: 1 });
            return Arrival::New;
        };
        seen.distinct += 1;
        let ahead = header.sequence.wrapping_sub(seen.highest()) as i16;
        if self.by_lane && ahead.unsigned_abs() > FAR {
            seen.first = header.sequence.wrapping_sub(seen.span as u16);
            seen.span += 1;
            return Arrival::New;
        }
        match ahead {
            1.. => {
                seen.span += ahead as u64;
                Arrival::New
            }
            _ => Arrival::Late,
        }
    }

    /// Was it there already?
    fn remember(&mut self, port: u16, header: Header) -> bool {
        let number = usize::from(header.sequence) % SETS;
        let entry = u64::from(port) << 48 | u64::from(header.sequence) << 32 | u64::from(header.timestamp);
        let set = &mut self.recent[number * WAYS..][..WAYS];
        if set.contains(&entry) {
            return true;
        }
        let oldest = &mut self.oldest[number];
        set[usize::from(*oldest)] = entry;
        *oldest = (*oldest + 1) % WAYS as u8;
        false
    }
}

impl Seen {
    fn highest(self) -> u16 {
        self.first.wrapping_add((self.span - 1) as u16)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u32) -> Header {
        Header { sequence: sequence as u16, timestamp: 1000 + 700 * sequence }
    }

    /// One lane alone, and sixteen in step, each with the same numbers and time stamps.
    #[test]
    fn copies_are_recognised_however_late() {
        for (lanes, behind) in [(1, 1), (1, 1000), (1, 60_000), (2, 1000), (16, 4000)] {
            let mut sequence = Sequence::of_device();
            for number in 0..100_000 {
                for lane in 0..lanes {
                    assert_ne!(sequence.note(0x3000 + lane, header(number)), Arrival::Duplicate);
                    if let Some(earlier) = number.checked_sub(behind) {
                        assert_eq!(sequence.note(0x3000 + lane, header(earlier)), Arrival::Duplicate);
                    }
                }
            }
        }
    }

    #[test]
    fn a_device_that_begins_anew_has_lost_nothing() {
        for restart in [10, 5000, 20_000, 50_000, 60_000] {
            let mut sequence = Sequence::of_device();
            (1..=restart).for_each(|number| _ = sequence.note(0x3000, header(number)));
            let again = |number: u32| Header { timestamp: 5 + number, ..header(number) };
            (1..=20_000).for_each(|number| _ = sequence.note(0x3000, again(number)));
            assert_eq!(sequence.lost(), 0, "after {restart}");
        }
        let mut sequence = Sequence::of_device();
        (1..=90_000).filter(|n| n % 100 != 7).for_each(|number| _ = sequence.note(0x3000, header(number)));
        assert_eq!(sequence.lost(), 900);
    }
}
