//! The sending side of ack/nak, for TLPs and for flits: the replay buffer, its timer and REPLAY_NUM (PCIe 5.0 §3.6.2).

use crate::config::ReplayBuffer;
use crate::event::{Event, ProtocolError};
use crate::sequence::Numbers;
use alloc::collections::VecDeque;
use core::marker::PhantomData;
use tlplab_units::{Duration, Time};

/// REPLAY_NUM has two bits.
const REPLAY_NUM_MAX: u8 = 3;

/// The contents of a replay buffer, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// TLPs (flit mode: flits).
    pub tlps: u32,
    /// Bytes with framing (flit mode: 256 per flit).
    pub bytes: u32,
}

/// REPLAY_TIMER and REPLAY_NUM, the same for TLPs and flits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayTimer {
    at: Time,
    limit: Duration,
    number: u8,
    /// It stands still: the link is in Recovery.
    stopped: bool,
}

/// The kind of replay that begins: at once, or after the link has been retrained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Again,
    Retrain,
}

impl ReplayTimer {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { at: Time::NEVER, limit, number: 0, stopped: false }
    }
    #[inline]
    pub(crate) const fn deadline(&self) -> Time {
        self.at
    }
    /// From the next start on.
    pub(crate) const fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }
    pub(crate) const fn hold(&mut self) {
        self.at = Time::NEVER;
    }
    /// The link goes into Recovery. Acks of what has left come on, but begin nothing.
    pub(crate) const fn stop(&mut self) {
        self.hold();
        self.stopped = true;
    }
    /// Recovery is over.
    pub(crate) const fn go_on(&mut self) {
        self.stopped = false;
    }
    /// The last symbol of something that awaits acknowledgement has left.
    #[inline]
    pub(crate) fn start(&mut self, now: Time) {
        if self.at == Time::NEVER && !self.stopped {
            self.at = now + self.limit;
        }
    }
    /// The peer acknowledged something new.
    #[inline]
    pub(crate) fn progress(&mut self, now: Time, outstanding: bool) {
        self.number = 0;
        self.at = if outstanding && !self.stopped { now + self.limit } else { Time::NEVER };
    }
    pub(crate) const fn attempt(&mut self) -> Attempt {
        self.hold();
        if self.number == REPLAY_NUM_MAX {
            self.number = 0;
            Attempt::Retrain
        } else {
            self.number += 1;
            Attempt::Again
        }
    }
}

/// An entry of a replay buffer: a TLP or a flit.
pub(crate) trait Entry<H> {
    /// Bytes it takes in the buffer.
    fn bytes(&self) -> u32;
    /// The owner's handles in it.
    fn handles(&self, each: impl FnMut(H));
}

/// The next entry for the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing<E> {
    pub(crate) entry: E,
    pub(crate) sequence: u16,
    pub(crate) replay: bool,
}

/// Entries from the moment they are handed over until the peer has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replay<E, N> {
    entries: VecDeque<E>,
    /// Sequence number of the first entry: ACKD_SEQ + 1.
    first: u16,
    /// The next entry for the wire.
    cursor: usize,
    /// Entries that were on the wire at least once.
    sent: usize,
    bytes: u32,
    max_entries: usize,
    max_bytes: u32,
    pub(crate) timer: ReplayTimer,
    numbers: PhantomData<N>,
}

impl<E: Clone, N: Numbers> Replay<E, N> {
    pub(crate) fn new(buffer: ReplayBuffer, limit: Duration) -> Self {
        let window = usize::from(N::WINDOW);
        Self {
            entries: VecDeque::new(),
            first: N::FIRST,
            cursor: 0,
            sent: 0,
            bytes: 0,
            max_entries: buffer.tlps.map_or(window, |n| window.min(n as usize)),
            max_bytes: buffer.bytes.unwrap_or(u32::MAX),
            timer: ReplayTimer::new(limit),
            numbers: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        self.entries.len() < self.max_entries && self.max_bytes - self.bytes >= bytes
    }

    #[inline]
    pub(crate) fn push<H>(&mut self, entry: E)
    where
        E: Entry<H>,
    {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    /// The next entry for the wire: first replayed ones, then new ones.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Outgoing<E>> {
        let entry = self.entries.get(self.cursor)?.clone();
        let sequence = self.sequence(self.cursor);
        let replay = self.cursor < self.sent;
        self.cursor += 1;
        self.sent = self.sent.max(self.cursor);
        Some(Outgoing { entry, sequence, replay })
    }

    #[inline]
    fn sequence(&self, index: usize) -> u16 {
        N::after(self.first, index as u16)
    }

    /// The number the next new entry gets.
    pub(crate) fn next_sequence(&self) -> u16 {
        self.sequence(self.entries.len())
    }

    /// An entry's last symbol has left.
    #[inline]
    pub(crate) fn transmitted(&mut self, now: Time) {
        if self.sent > 0 {
            self.timer.start(now);
        }
    }

    /// The peer has everything up to `sequence`; true if that is news.
    #[inline]
    pub(crate) fn acknowledge<H>(
        &mut self,
        now: Time,
        sequence: u16,
        events: &mut impl FnMut(Event<H>),
    ) -> Result<bool, ProtocolError>
    where
        E: Entry<H>,
    {
        let news = usize::from(N::distance(sequence, N::before(self.first)));
        if news == 0 {
            return Ok(false);
        }
        if news > self.sent {
            let last = N::before(self.sequence(self.sent));
            if N::distance(last, sequence) <= N::WINDOW {
                return Ok(false);
            }
            return Err(ProtocolError::AckOfUnsent { got: sequence, last });
        }
        for entry in self.entries.drain(..news) {
            self.bytes -= entry.bytes();
            entry.handles(|handle| events(Event::Acked(handle)));
        }
        self.first = N::after(self.first, news as u16);
        self.sent -= news;
        self.cursor = self.cursor.saturating_sub(news);
        self.timer.progress(now, self.sent > 0);
        Ok(true)
    }

    /// Sends everything unacknowledged again, oldest first; `None` if there is nothing.
    pub(crate) fn restart(&mut self) -> Option<Attempt> {
        self.rewind().then(|| self.timer.attempt())
    }

    /// As [`restart`](Self::restart), but attempts do not end and a replay under way is not begun again. The timer starts with the next entry sent.
    /// True if a replay begins.
    pub(crate) fn restart_unlimited(&mut self) -> bool {
        self.timer.hold();
        self.place().is_none() && self.rewind()
    }

    /// The place in the buffer that a replay has reached; `None` if there is none under way.
    #[inline]
    pub(crate) fn place(&self) -> Option<usize> {
        (self.cursor < self.sent).then_some(self.cursor)
    }

    /// A replay goes on at a place in the buffer; it is over if nothing that was sent is there.
    pub(crate) fn go_on_at(&mut self, place: usize) {
        self.cursor = place.min(self.sent);
    }

    /// An Ack came, with news or without: the timer begins anew if something is unacknowledged besides what is just being sent.
    pub(crate) fn timer_anew(&mut self, now: Time, sending: bool) {
        self.timer.progress(now, self.sent > usize::from(sending));
    }

    /// The next entry for the wire is the oldest unacknowledged one; false if there is none.
    pub(crate) fn rewind(&mut self) -> bool {
        if self.sent == 0 {
            self.timer.hold();
            return false;
        }
        self.cursor = 0;
        true
    }

    /// Gives everything back.
    pub(crate) fn clear<H>(&mut self, events: &mut impl FnMut(Event<H>))
    where
        E: Entry<H>,
    {
        for entry in self.entries.drain(..) {
            entry.handles(|handle| events(Event::Lost(handle)));
        }
        self.first = N::FIRST;
        self.cursor = 0;
        self.sent = 0;
        self.bytes = 0;
        self.timer = ReplayTimer::new(self.timer.limit);
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy { tlps: self.entries.len() as u32, bytes: self.bytes }
    }
}
