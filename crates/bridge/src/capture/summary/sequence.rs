//! The running numbers of adapters.
//!
//! An adapter numbers what it sends and stamps it with a clock of its own; software sends zeros. Two adapters may have one address, as in
//! the captures of figure 13, so a sender's datagrams are told apart by their clocks: those whose time stamps go on as the capture's
//! times do are from one adapter. A program with several threads may count in each, by one clock: then an old number comes with a new time
//! stamp, whereas what is late or doubled has an old one.

use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::Header;

/// How far the clocks of adapter and capture may drift apart between two datagrams: for the delay that capturing has, and a part of the
/// time that passed.
const TOLERANCE: Duration = Duration::from_ns(1_000_000);
const DRIFT: u64 = 1000;
/// More adapters than this behind one address are not told apart.
const MOST: usize = 64;
/// A number so far behind is a new beginning.
const REORDERED: u16 = 1024;
/// The clock's range: it wraps every 27.5 s.
const RANGE: u128 = 1 << 32;

/// What the running numbers of one sender say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// Adapters that number what they send, told apart by their clocks; more exactly, counters.
    pub adapters: u32,
    /// Places where numbers are missing.
    pub gaps: u64,
    /// Numbers that are missing and never came later.
    pub missing: u64,
    /// Datagrams whose number was there already.
    pub duplicates: u64,
    /// Datagrams that came after one with a higher number.
    pub reordered: u64,
}

/// The adapters of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    adapters: Vec<Adapter>,
    found: Sequences,
}

#[derive(Clone, Debug)]
struct Adapter {
    last: Header,
    at: Time,
    /// Numbers that were missing a short while ago, the newest last.
    missing: Vec<u16>,
}

impl Clocks {
    /// A datagram was seen.
    pub(super) fn see(&mut self, header: Header, time: Time) {
        if header == Header::default() {
            return;
        }
        let theirs = |adapter: &&mut Adapter| adapter.could_send(header, time);
        // The counter whose next number it is, or else the one that is the least ahead or behind.
        let nearest = self.adapters.iter_mut().filter(theirs).min_by_key(|adapter| adapter.distance(header));
        let Some(adapter) = nearest else {
            if self.adapters.len() < MOST {
                self.adapters.push(Adapter { last: header, at: time, missing: Vec::new() });
                self.found.adapters += 1;
            }
            return;
        };
        adapter.see(header, time, &mut self.found);
    }

    pub(super) fn finish(self) -> Sequences {
        self.found
    }
}

impl Adapter {
    /// Did as much time pass on its clock as in the capture?
    fn could_send(&self, header: Header, time: Time) -> bool {
        let tick = Header::TICK.as_fs();
        let passed = time - self.at;
        let range = RANGE * u128::from(tick);
        let ours = u128::from(passed.as_fs()) % range;
        // Of one that is late it is a little below the range.
        let its = u128::from(header.timestamp.wrapping_sub(self.last.timestamp)) * u128::from(tick);
        // Around the clock's range, both are near each other if they are so either way.
        let apart = ours.abs_diff(its);
        let same_clock =
            apart.min(range - apart) <= u128::from(TOLERANCE.as_fs()) + u128::from(passed.as_fs() / DRIFT);
        let old_number = self.last.sequence.wrapping_sub(header.sequence) < REORDERED;
        let new_stamp = (1..1 << 31).contains(&header.timestamp.wrapping_sub(self.last.timestamp));
        same_clock && !(old_number && new_stamp)
    }

    /// How far its next number is from this one.
    fn distance(&self, header: Header) -> u16 {
        let ahead = header.sequence.wrapping_sub(self.last.sequence.wrapping_add(1));
        ahead.min(ahead.wrapping_neg())
    }

    fn see(&mut self, header: Header, time: Time, found: &mut Sequences) {
        let ahead = header.sequence.wrapping_sub(self.last.sequence);
        let behind = self.last.sequence.wrapping_sub(header.sequence);
        if ahead == 1 {
        } else if behind == 0 {
            found.duplicates += 1;
        } else if behind < REORDERED {
            match self.missing.iter().position(|&number| number == header.sequence) {
                Some(at) => {
                    self.missing.remove(at);
                    found.missing -= 1;
                    found.reordered += 1;
                }
                None => found.duplicates += 1,
            }
            return; // what came later stays the newest
        } else {
            found.gaps += 1;
            found.missing += u64::from(ahead) - 1;
            let forget = self.missing.len().saturating_sub(usize::from(REORDERED));
            self.missing.drain(..forget);
            let newest = ahead.min(REORDERED);
            self.missing.extend((1..newest).rev().map(|back| header.sequence.wrapping_sub(back)));
        }
        (self.last, self.at) = (header, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1000;

    /// Feeds (time in µs, sequence, clock in ticks).
    fn see(frames: &[(u64, u16, u64)]) -> Sequences {
        let mut clocks = Clocks::default();
        for &(us, sequence, ticks) in frames {
            let header = Header { sequence, timestamp: ticks as u32 };
            clocks.see(header, Time::ZERO + Duration::from_ns(us * MICROSECOND));
        }
        clocks.finish()
    }

    fn ticks(us: u64) -> u64 {
        us * 10_000 / 64
    }

    #[test]
    fn gaps_duplicates_and_late_ones() {
        let clean: Vec<_> = (0..70_000u64).map(|n| (n, n as u16, ticks(n))).collect();
        assert_eq!(see(&clean), Sequences { adapters: 1, ..Sequences::default() }, "numbers wrap");
        // 3, 6, 7, 8 are missing; 4 came late, then again; 5 twice. Stamps are those of sending.
        let all = (10..).zip([1u16, 2, 5, 4, 4, 5, 9, 10]).map(|(at, n)| (at, n, ticks(n.into())));
        let found = Sequences { adapters: 1, gaps: 2, missing: 4, duplicates: 2, reordered: 1 };
        assert_eq!(see(&all.collect::<Vec<_>>()), found);
    }

    #[test]
    fn two_adapters_with_one_address_are_two() {
        let other = 0x9000_0000;
        let frames: Vec<_> = (0..100u64)
            .flat_map(|n| {
                [(2 * n, n as u16, ticks(2 * n)), (2 * n + 1, 700 + n as u16, other + ticks(2 * n + 1))]
            })
            .collect();
        assert_eq!(see(&frames), Sequences { adapters: 2, ..Sequences::default() });
        // Three threads with a number each, at different paces, by one clock.
        let lane = |pace: u64, first: u16| {
            (0..300).step_by(pace as usize).zip(first..).map(move |(at, n)| (10 * at + pace, n))
        };
        let mut threads: Vec<_> = lane(1, 1).chain(lane(2, 1)).chain(lane(5, 1)).collect();
        threads.sort_unstable();
        let threads: Vec<_> = threads.into_iter().map(|(at, n)| (at, n, ticks(at))).collect();
        assert_eq!(see(&threads), Sequences { adapters: 3, ..Sequences::default() });
        // Software numbers nothing.
        assert_eq!(see(&[(0, 0, 0), (5, 0, 0)]), Sequences::default());
    }
}
