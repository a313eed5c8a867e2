//! The sending side of ack/nak: the replay buffer, its timer and REPLAY_NUM (PCIe 5.0 §3.6.2).

use crate::ack::{SEQUENCE_HALF, SEQUENCE_MASK, distance};
use crate::config::ReplayBuffer;
use crate::event::{Event, ProtocolError, TLP_FRAMING, TlpShape, TlpUnit};
use alloc::collections::VecDeque;
use tlplab_units::{Duration, Time};

/// REPLAY_NUM has two bits.
const REPLAY_NUM_MAX: u8 = 3;

/// What the replay buffer holds.
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
}

/// A replay begins; does it still make sense, or must the link be retrained first?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Again,
    Retrain,
}

impl ReplayTimer {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { at: Time::NEVER, limit, number: 0 }
    }
    pub(crate) const fn deadline(&self) -> Time {
        self.at
    }
    pub(crate) const fn hold(&mut self) {
        self.at = Time::NEVER;
    }
    /// The last symbol of something that awaits acknowledgement has left.
    #[inline]
    pub(crate) fn start(&mut self, now: Time) {
        if self.at == Time::NEVER {
            self.at = now + self.limit;
        }
    }
    /// The peer acknowledged something new.
    #[inline]
    pub(crate) fn progress(&mut self, now: Time, outstanding: bool) {
        self.number = 0;
        self.at = if outstanding { now + self.limit } else { Time::NEVER };
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<H> {
    handle: H,
    shape: TlpShape,
}

/// TLPs from the moment they are handed over until the peer has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replay<H> {
    entries: VecDeque<Entry<H>>,
    /// Sequence number of the first entry: ACKD_SEQ + 1.
    first: u16,
    /// The next entry for the wire.
    cursor: usize,
    /// Entries that were on the wire at least once.
    sent: usize,
    bytes: u32,
    max_tlps: usize,
    max_bytes: u32,
    pub(crate) timer: ReplayTimer,
}

impl<H: Copy> Replay<H> {
    pub(crate) fn new(buffer: ReplayBuffer, limit: Duration) -> Self {
        let half = usize::from(SEQUENCE_HALF);
        Self {
            entries: VecDeque::new(),
            first: 0,
            cursor: 0,
            sent: 0,
            bytes: 0,
            max_tlps: buffer.tlps.map_or(half, |n| half.min(n as usize)),
            max_bytes: buffer.bytes.unwrap_or(u32::MAX),
            timer: ReplayTimer::new(limit),
        }
    }

    #[inline]
    pub(crate) fn has_room(&self, shape: &TlpShape) -> bool {
        self.entries.len() < self.max_tlps && self.max_bytes - self.bytes >= shape.bytes + TLP_FRAMING
    }

    #[inline]
    pub(crate) fn push(&mut self, handle: H, shape: TlpShape) {
        self.bytes += shape.bytes + TLP_FRAMING;
        self.entries.push_back(Entry { handle, shape });
    }

    /// The next TLP for the wire: first what is replayed, then what is new.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<TlpUnit<H>> {
        let &Entry { handle, shape } = self.entries.get(self.cursor)?;
        let sequence = self.sequence(self.cursor);
        let replay = self.cursor < self.sent;
        self.cursor += 1;
        self.sent = self.sent.max(self.cursor);
        Some(TlpUnit { handle, shape, sequence, replay, nullified: false })
    }

    const fn sequence(&self, index: usize) -> u16 {
        self.first.wrapping_add(index as u16) & SEQUENCE_MASK
    }

    /// The number the next new TLP gets.
    pub(crate) fn next_sequence(&self) -> u16 {
        self.sequence(self.entries.len())
    }

    /// A TLP's last symbol has left.
    #[inline]
    pub(crate) fn transmitted(&mut self, now: Time) {
        if self.sent > 0 {
            self.timer.start(now);
        }
    }

    /// The peer has all TLPs up to `sequence`. Says whether that is news.
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        sequence: u16,
        events: &mut impl FnMut(Event<H>),
    ) -> Result<bool, ProtocolError> {
        let last_acknowledged = self.first.wrapping_sub(1) & SEQUENCE_MASK;
        let news = usize::from(distance(sequence, last_acknowledged));
        if news == 0 {
            return Ok(false);
        }
        if news > self.sent {
            let last = self.sequence(self.sent).wrapping_sub(1) & SEQUENCE_MASK;
            if distance(last, sequence) <= SEQUENCE_HALF {
                return Ok(false);
            }
            return Err(ProtocolError::AckOfUnsent { got: sequence, last });
        }
        for Entry { handle, shape } in self.entries.drain(..news) {
            self.bytes -= shape.bytes + TLP_FRAMING;
            events(Event::Acked(handle));
        }
        self.first = (self.first + news as u16) & SEQUENCE_MASK;
        self.sent -= news;
        self.cursor = self.cursor.saturating_sub(news);
        self.timer.progress(now, self.sent > 0);
        Ok(true)
    }

    /// Sends everything unacknowledged again, oldest first; `None` if there is nothing.
    pub(crate) fn restart(&mut self) -> Option<Attempt> {
        if self.sent == 0 {
            self.timer.hold();
            return None;
        }
        self.cursor = 0;
        Some(self.timer.attempt())
    }

    /// Gives everything back.
    pub(crate) fn clear(&mut self, events: &mut impl FnMut(Event<H>)) {
        for entry in self.entries.drain(..) {
            events(Event::Lost(entry.handle));
        }
        self.first = 0;
        self.cursor = 0;
        self.sent = 0;
        self.bytes = 0;
        self.timer = ReplayTimer::new(self.timer.limit);
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy { tlps: self.entries.len() as u32, bytes: self.bytes }
    }
}
