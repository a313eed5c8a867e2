//! TLPs that were sent and are not acknowledged: the replay buffer.

use super::round_trip::RoundTrip;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::link::{NUMBERS, distance};

/// TLPs that may be under way, and their bytes: as much as the receiver's socket holds, however the kernel counts.
pub(super) const WINDOW: usize = 128;
const WINDOW_BYTES: usize = 32 << 10;
/// Later TLPs that have come before one is taken for lost, however young: so many overtake where each port has a socket.
const OVERTAKEN: usize = 16;
/// The time without an acknowledgement after which the peer counts as gone, if it was also sent the same so many times in vain: a machine that stood
/// still has heard nothing, either.
const GONE: Duration = Duration::from_ms(2000);
const IN_VAIN: u32 = 8;

/// A TLP under way.
#[derive(Clone, Debug)]
struct Entry<T> {
    port: u16,
    datagram: Box<[u8]>,
    /// The time of its last transmission.
    sent: Time,
    /// It was sent more than once: its acknowledgement measures nothing.
    twice: bool,
    /// It has come, though one before it has not.
    there: bool,
    /// To be sent again.
    again: bool,
    /// The owner of the operation that ends with it.
    token: Option<T>,
}

#[derive(Clone, Debug)]
pub(super) struct Sender<T> {
    /// Number of the first one in `under_way`.
    first: u32,
    under_way: VecDeque<Entry<T>>,
    bytes: usize,
    trip: RoundTrip,
    /// After a wait in vain: all before this number are likely to be lost as well.
    suspect: Option<u32>,
    /// The time of the last acknowledgement, or of the first TLP after a pause.
    since: Time,
}

impl<T: Copy> Sender<T> {
    pub(super) fn new(now: Time, first: u32) -> Self {
        let (under_way, trip) = (VecDeque::new(), RoundTrip::default());
        Self { first, under_way, bytes: 0, trip, suspect: None, since: now }
    }

    pub(super) fn has_room(&self) -> bool {
        self.under_way.len() < WINDOW && self.bytes < WINDOW_BYTES
    }
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }
    /// True if this TLP is under way.
    pub(super) fn holds(&self, sequence: u32) -> bool {
        (distance(self.first, sequence) as usize) < self.under_way.len()
    }
    /// The number of the next one.
    pub(super) fn next(&self) -> u32 {
        (self.first + self.under_way.len() as u32) % NUMBERS
    }

    /// Keeps a TLP that leaves now, under the [next](Self::next) number.
    pub(super) fn keep(&mut self, now: Time, port: u16, datagram: &[u8], token: Option<T>) {
        if self.under_way.is_empty() {
            self.since = now;
        }
        self.bytes += datagram.len();
        self.under_way.push_back(Entry {
            port,
            datagram: datagram.into(),
            sent: now,
            twice: false,
            there: false,
            again: false,
            token,
        });
    }

    /// All before `number` have come, and of those behind it the ones of `beyond`. Calls `done` with what is over.
    pub(super) fn acknowledged(&mut self, now: Time, number: u32, beyond: u64, mut done: impl FnMut(T)) {
        let count = distance(self.first, number) as usize;
        // An old one, which came late, or nonsense.
        if count > self.under_way.len() {
            return;
        }
        // Of one that had to wait for another to be sent again the time says nothing.
        let (mut trip, mut waited) = (None, false);
        for entry in self.under_way.drain(..count) {
            self.bytes -= entry.datagram.len();
            waited |= entry.twice;
            trip = (!entry.there).then(|| now.saturating_since(entry.sent));
            entry.token.into_iter().for_each(&mut done);
        }
        self.first = number;
        if count > 0 {
            trip.filter(|_| !waited).into_iter().for_each(|trip| self.trip.measured(trip));
            self.trip.heard();
            self.since = now;
            self.go_on();
        }
        if beyond != 0 {
            self.note_gaps(now, beyond);
        }
    }

    /// TLPs sent before the fruitless wait follow, one with each acknowledgement.
    fn go_on(&mut self) {
        let Some(suspect) = self.suspect else { return };
        let ahead = distance(self.first, suspect);
        match self.under_way.front_mut() {
            Some(front) if (1..NUMBERS / 2).contains(&ahead) => front.again |= !front.there,
            _ => self.suspect = None,
        }
    }

    fn note_gaps(&mut self, now: Time, beyond: u64) {
        let mut behind = 0;
        for at in (0..self.under_way.len().saturating_sub(1).min(64)).rev() {
            let entry = &mut self.under_way[at + 1];
            if beyond >> at & 1 == 1 {
                if behind == 0 && !entry.there && !entry.twice {
                    self.trip.measured(now.saturating_since(entry.sent));
                }
                (entry.there, entry.again) = (true, false);
                behind += 1;
            } else if behind > 0 {
                self.doubt(now, at + 1, behind);
            }
        }
        self.doubt(now, 0, behind);
    }

    /// True if it counts as lost because that many later TLPs have arrived.
    fn doubt(&mut self, now: Time, at: usize, behind: usize) {
        let overdue = self.trip.overdue();
        let Some(entry) = self.under_way.get_mut(at) else { return };
        let old = now.saturating_since(entry.sent) >= overdue;
        entry.again |= !entry.there && behind > 0 && (old || behind >= OVERTAKEN && !entry.twice);
    }

    /// The next TLP that is to be sent again: number, port, datagram.
    pub(super) fn again(&mut self, now: Time) -> Option<(u32, u16, &[u8])> {
        let at = self.under_way.iter().position(|entry| entry.again)?;
        let entry = &mut self.under_way[at];
        (entry.again, entry.twice, entry.sent) = (false, true, now);
        Some(((self.first + at as u32) % NUMBERS, entry.port, &entry.datagram))
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.under_way.front().map(|front| front.sent + self.trip.limit())
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.suspect = Some(self.next());
            self.trip.in_vain();
            self.under_way[0].again = true;
        }
    }

    /// True if the peer is gone.
    pub(super) fn is_alone(&self, now: Time) -> bool {
        let (silence, in_vain) = (now.saturating_since(self.since), self.trip.waits_in_vain());
        !self.under_way.is_empty() && silence >= GONE && in_vain >= IN_VAIN
    }

    /// The operations that are not over; they are forgotten, while their TLPs go on.
    pub(super) fn forget(&mut self) -> impl Iterator<Item = T> {
        self.under_way.iter_mut().filter_map(|entry| entry.token.take())
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.since = self.since.earlier(by);
        self.under_way.iter_mut().for_each(|entry| entry.sent = entry.sent.earlier(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u32 = NUMBERS - 2;

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_us(n)
    }

    fn number(place: u32) -> u32 {
        (FIRST + place) % NUMBERS
    }

    /// A sender with `count` TLPs of 100 bytes under way, which left at `at` µs.
    fn sender(at: u64, count: u32) -> Sender<u32> {
        let mut sender = Sender::new(Time::ZERO, FIRST);
        keep(&mut sender, at, count);
        sender
    }

    fn keep(sender: &mut Sender<u32>, at: u64, count: u32) {
        let before = distance(FIRST, sender.next());
        (before..before + count)
            .for_each(|token| sender.keep(us(at), 0x3000 + token as u16, &[token as u8; 100], Some(token)));
    }

    /// Operations that end with an acknowledgement of all before `place`, and of those behind it that `beyond` names.
    fn acknowledge(sender: &mut Sender<u32>, at: u64, place: u32, beyond: u64) -> Vec<u32> {
        let mut over = Vec::new();
        sender.acknowledged(us(at), number(place), beyond, |token| over.push(token));
        over
    }

    /// The places of what is sent again, at `at` µs.
    fn again(sender: &mut Sender<u32>, at: u64) -> Vec<u32> {
        std::iter::from_fn(|| {
            let (sequence, port, datagram) = sender.again(us(at))?;
            let place = distance(FIRST, sequence);
            assert_eq!((port, datagram), (0x3000 + place as u16, &[place as u8; 100][..]));
            Some(place)
        })
        .collect()
    }

    #[test]
    fn the_window_is_128_tlps_and_32_kib() {
        let mut full = sender(0, 127);
        assert!(full.has_room());
        keep(&mut full, 0, 1);
        assert!(!full.has_room());
        assert_eq!(acknowledge(&mut full, 1, 1, 0), [0]);
        assert!(full.has_room());
        let mut large = Sender::new(Time::ZERO, FIRST);
        large.keep(us(0), 0x3000, &vec![0; (32 << 10) - 1], Some(0));
        assert!(large.has_room());
        large.keep(us(0), 0x3000, &[0], Some(1));
        assert!(!large.has_room());
        acknowledge(&mut large, 1, 2, 0);
        assert!(large.has_room());
        large.keep(us(0), 0x3000, &vec![0; 32 << 10], Some(2));
        assert!(!large.has_room(), "what was acknowledged is no longer counted");
    }

    #[test]
    fn numbers_wrap_and_old_acknowledgements_are_ignored() {
        let mut sender = sender(0, 5);
        assert_eq!((sender.next(), sender.under_way()), (3, 5));
        assert!(sender.holds(number(0)) && sender.holds(number(4)));
        assert!(!sender.holds(number(5)) && !sender.holds(number(0).wrapping_sub(1)));
        assert_eq!(acknowledge(&mut sender, 1, 3, 0), [0, 1, 2]);
        assert_eq!(acknowledge(&mut sender, 1, 2, 0), []);
        assert_eq!(acknowledge(&mut sender, 1, 6, 0), [], "nothing was sent beyond");
        assert!(!sender.holds(number(2)) && sender.holds(number(3)));
        assert_eq!(acknowledge(&mut sender, 1, 5, 0), [3, 4]);
        assert!(!sender.holds(number(5)));
    }

    #[test]
    fn an_old_overtaken_datagram_is_sent_again() {
        // Before anything is known, 25 ms are old.
        let mut sender = sender(0, 4);
        assert_eq!(acknowledge(&mut sender, 24_999, 0, 0b001), []);
        // From here on a round trip is known to take 25 ms, and one of 31 ms is old.
        assert_eq!(again(&mut sender, 24_999), []);
        assert_eq!(acknowledge(&mut sender, 31_248, 0, 0b001), []);
        assert_eq!(again(&mut sender, 31_248), []);
        assert_eq!(acknowledge(&mut sender, 31_249, 0, 0b001), []);
        assert_eq!(again(&mut sender, 31_249), [0]);
        // 3 took 33 ms: round trips take 26 ms now, and 32.5 ms are old. 0 left a moment ago.
        assert_eq!(acknowledge(&mut sender, 33_000, 0, 0b101), []);
        assert_eq!(again(&mut sender, 33_000), [2]);
        assert_eq!(again(&mut sender, 33_000), []);
        // What has come meanwhile is not sent again.
        assert_eq!(acknowledge(&mut sender, 99_000, 0, 0b110), []);
        assert_eq!(again(&mut sender, 99_000), [0]);
        assert_eq!(acknowledge(&mut sender, 99_000, 4, 0), [0, 1, 2, 3]);
    }

    #[test]
    fn a_datagram_overtaken_by_16_is_sent_again_once() {
        let mut sender = sender(0, 18);
        assert_eq!(acknowledge(&mut sender, 10, 0, 0x7FFF << 1), []);
        assert_eq!(again(&mut sender, 10), [], "15 came before it");
        assert_eq!(acknowledge(&mut sender, 10, 0, 0xFFFF << 1), []);
        assert_eq!(again(&mut sender, 10), [0, 1], "16 came before both");
        assert_eq!(acknowledge(&mut sender, 10, 0, 0xFFFF << 1), []);
        assert_eq!(again(&mut sender, 10), []);
        // Nothing has come behind the last.
        let mut last = self::sender(0, 2);
        assert_eq!(acknowledge(&mut last, 50_000, 1, 0), [0]);
        assert_eq!(acknowledge(&mut last, 90_000, 1, 0b10), []);
        assert_eq!(again(&mut last, 90_000), []);
    }

    #[test]
    fn after_a_wait_in_vain_each_acknowledgement_lets_one_more_follow() {
        let mut sender = sender(0, 5);
        assert_eq!(sender.deadline(), Some(us(20_000)));
        sender.handle_timeout(us(19_999));
        assert_eq!(again(&mut sender, 19_999), []);
        sender.handle_timeout(us(20_000));
        assert_eq!(again(&mut sender, 20_000), [0]);
        assert_eq!(sender.deadline(), Some(us(60_000)), "twice as long");
        // 5 leaves behind it: it was not sent before the wait.
        keep(&mut sender, 20_000, 1);
        assert_eq!(acknowledge(&mut sender, 20_100, 1, 0), [0]);
        assert_eq!(again(&mut sender, 20_100), [1]);
        // 2 came the first time.
        assert_eq!(acknowledge(&mut sender, 20_200, 1, 0b1), []);
        assert_eq!(acknowledge(&mut sender, 20_200, 2, 0), [1]);
        assert_eq!(again(&mut sender, 20_200), []);
        assert_eq!(acknowledge(&mut sender, 20_300, 4, 0), [2, 3]);
        assert_eq!(again(&mut sender, 20_300), [4]);
        assert_eq!(acknowledge(&mut sender, 20_400, 5, 0), [4]);
        assert_eq!(again(&mut sender, 20_400), []);
        // Nothing is suspect any more.
        keep(&mut sender, 20_400, 1);
        assert_eq!(acknowledge(&mut sender, 20_500, 6, 0), [5]);
        assert_eq!(again(&mut sender, 20_500), []);
    }

    #[test]
    fn repeated_or_waiting_datagrams_measure_no_round_trip() {
        // Acknowledged in turn after 8 ms: RFC 6298 waits 8 + 4 · 4 ms.
        let mut plain = sender(0, 1);
        acknowledge(&mut plain, 8_000, 1, 0);
        keep(&mut plain, 8_000, 1);
        assert_eq!(plain.deadline(), Some(us(32_000)));
        // After it was sent twice: as before, nothing is known.
        let mut twice = sender(0, 2);
        twice.handle_timeout(us(20_000));
        assert_eq!(again(&mut twice, 20_000), [0]);
        acknowledge(&mut twice, 28_000, 1, 0);
        assert_eq!(twice.deadline(), Some(us(20_000)), "1 left at 0; the wait is 20 ms again");
        // One that waited for it measures nothing, either.
        let mut behind = sender(0, 2);
        behind.handle_timeout(us(20_000));
        assert_eq!(again(&mut behind, 20_000), [0]);
        acknowledge(&mut behind, 28_000, 2, 0);
        keep(&mut behind, 28_000, 1);
        assert_eq!(behind.deadline(), Some(us(48_000)));
        // The last of those beyond a gap measures, once: 8 ms.
        let mut gap = sender(0, 3);
        acknowledge(&mut gap, 8_000, 0, 0b11);
        assert_eq!(gap.deadline(), Some(us(24_000)));
        acknowledge(&mut gap, 80_000, 0, 0b11);
        assert_eq!(gap.deadline(), Some(us(24_000)));
        // It was measured when it came, not when the gap closed.
        acknowledge(&mut gap, 80_000, 3, 0);
        keep(&mut gap, 80_000, 1);
        assert_eq!(gap.deadline(), Some(us(104_000)));
    }

    #[test]
    fn a_peer_that_acknowledges_nothing_for_two_seconds_is_gone() {
        let mut sender = sender(500, 2);
        // Repeated in vain, at the times when it is due.
        let in_vain = |sender: &mut Sender<u32>, times: u32| {
            (0..times).for_each(|_| {
                let due = sender.deadline().unwrap();
                sender.handle_timeout(due);
                while sender.again(due).is_some() {}
            });
        };
        in_vain(&mut sender, IN_VAIN - 1);
        assert!(!sender.is_alone(us(9_000_000)), "this machine may have stood still");
        in_vain(&mut sender, 1);
        assert!(!sender.is_alone(us(2_000_499)) && sender.is_alone(us(2_000_500)));
        acknowledge(&mut sender, 1_000, 1, 0);
        assert!(!sender.is_alone(us(9_000_000)), "it answers again");
        in_vain(&mut sender, IN_VAIN);
        assert!(!sender.is_alone(us(2_000_999)) && sender.is_alone(us(2_001_000)));
        sender.rebase(Duration::from_us(1_000));
        assert!(!sender.is_alone(us(1_999_999)) && sender.is_alone(us(2_000_000)));
        acknowledge(&mut sender, 1_000, 2, 0);
        assert!(!sender.is_alone(us(9_000_000)), "nobody owes anything");
        keep(&mut sender, 5_000_000, 1);
        in_vain(&mut sender, IN_VAIN);
        assert!(!sender.is_alone(us(6_999_999)) && sender.is_alone(us(7_000_000)));
    }

    /// Each acknowledgement makes room for the bytes that it covers, and for no more.
    #[test]
    fn the_window_has_room_for_the_bytes_that_were_acknowledged() {
        let mut sender = Sender::new(Time::ZERO, FIRST);
        let datagram = vec![0; WINDOW_BYTES / 4];
        let mut kept = 0;
        for acknowledged in 0..8 {
            while sender.has_room() {
                sender.keep(us(0), 0x3000, &datagram, Some(kept));
                kept += 1;
            }
            assert_eq!(kept, acknowledged + 4);
            assert_eq!(acknowledge(&mut sender, 1, acknowledged + 1, 0), [acknowledged]);
        }
    }
}
