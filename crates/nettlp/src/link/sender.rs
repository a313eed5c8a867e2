//! What was sent and is not acknowledged: the replay buffer.

use super::round_trip::RoundTrip;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::link::{NUMBERS, distance};

/// TLPs that may be under way, and their bytes: as much as the receiver's socket holds, however the kernel counts.
pub(super) const WINDOW: usize = 128;
const WINDOW_BYTES: usize = 32 << 10;
/// Later TLPs that have come before one is taken for lost, however young: so many overtake where each port has a socket.
const OVERTAKEN: usize = 16;
/// How long nothing is acknowledged before the peer is taken for gone.
const GONE: Duration = Duration::from_ms(2000);

/// A TLP under way.
#[derive(Clone, Debug)]
struct Entry<T> {
    port: u16,
    datagram: Box<[u8]>,
    /// When it left last.
    sent: Time,
    /// It was sent more than once: its acknowledgement measures nothing.
    twice: bool,
    /// It has come, though one before it has not.
    there: bool,
    /// To be sent again.
    again: bool,
    /// Whose operation is over with it.
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
    /// When something was acknowledged last, or the first TLP left after a pause.
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
    /// Is this one of those under way?
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

    /// What was sent before the wait in vain follows, one with each acknowledgement.
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

    /// So many behind this one have come: is it lost?
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

    /// Is the peer gone?
    pub(super) fn is_alone(&self, now: Time) -> bool {
        !self.under_way.is_empty() && now.saturating_since(self.since) >= GONE
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
