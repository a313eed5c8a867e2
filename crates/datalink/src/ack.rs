//! The receiving side of ack/nak, for TLPs and for flits: the next sequence number, and the Ack or Nak that the peer is due (PCIe 5.0 §3.6.3).

use crate::sequence::Numbers;
use core::marker::PhantomData;
use tlplab_units::{Duration, Time};

/// The position of a sequence number relative to NEXT_RCV_SEQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Next,
    Before,
    After,
}

/// The acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Ack(u16),
    Nak(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receiver<N> {
    /// NEXT_RCV_SEQ.
    next: u16,
    /// NAK_SCHEDULED: set with a Nak, cleared by the TLP it asks for; meanwhile there is no second Nak.
    nak_scheduled: bool,
    nak_due: bool,
    ack_due: bool,
    /// TLPs that no Ack or Nak covers.
    unacknowledged: u16,
    /// AckNak_LATENCY_TIMER.
    ack_at: Time,
    latency: Duration,
    every: u16,
    numbers: PhantomData<N>,
}

impl<N: Numbers> Receiver<N> {
    pub(crate) fn new(latency: Duration, every: Option<u16>) -> Self {
        Self {
            next: N::FIRST,
            nak_scheduled: false,
            nak_due: false,
            ack_due: false,
            unacknowledged: 0,
            ack_at: Time::NEVER,
            latency,
            every: every.unwrap_or(u16::MAX),
            numbers: PhantomData,
        }
    }
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.latency, Some(self.every));
    }
    /// From the next TLP on.
    pub(crate) fn set_latency(&mut self, latency: Duration) {
        self.latency = latency;
    }
    #[inline]
    pub(crate) fn position(&self, sequence: u16) -> Position {
        if sequence == self.next {
            Position::Next
        } else if N::distance(self.next, sequence) <= N::WINDOW {
            Position::Before
        } else {
            Position::After
        }
    }
    /// The last one that came.
    pub(crate) fn last(&self) -> u16 {
        N::before(self.next)
    }
    /// The next one came, good.
    #[inline]
    pub(crate) fn accept(&mut self, now: Time) {
        self.next = N::after(self.next, 1);
        self.nak_scheduled = false;
        // An engine that makes its Acks itself (`drop_replay`) never asks here.
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        if self.latency.is_zero() || self.unacknowledged >= self.every {
            self.ack_due = true;
        } else if self.ack_at == Time::NEVER {
            self.ack_at = now + self.latency;
        }
    }
    /// True if an Ack or a Nak is due.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.nak_due || self.ack_due
    }
    /// A TLP came that was delivered before: the peer has missed an Ack.
    pub(crate) const fn duplicate(&mut self) {
        self.ack_due = true;
    }
    /// A TLP is damaged or missing.
    pub(crate) const fn refuse(&mut self) {
        if !self.nak_scheduled {
            self.nak_scheduled = true;
            self.nak_due = true;
        }
    }
    #[inline]
    pub(crate) const fn deadline(&self) -> Time {
        self.ack_at
    }
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if now >= self.ack_at {
            self.ack_at = Time::NEVER;
            self.ack_due = true;
        }
    }
    /// The Ack or Nak that is due now. It covers everything that arrived.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Reply> {
        self.is_due().then(|| self.reply())
    }
    /// The Ack or Nak that a flit carries, due or not.
    #[inline]
    pub(crate) fn reply(&mut self) -> Reply {
        let last = self.last();
        let reply = if self.nak_due { Reply::Nak(last) } else { Reply::Ack(last) };
        self.nak_due = false;
        self.ack_due = false;
        self.unacknowledged = 0;
        self.ack_at = Time::NEVER;
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::TlpNumbers;

    type TlpReceiver = Receiver<TlpNumbers>;

    #[test]
    fn positions_around_the_wrap() {
        let mut rx = TlpReceiver::new(Duration::from_ns(10), None);
        for _ in 0..4095 {
            rx.accept(Time::ZERO);
        }
        assert_eq!(rx.position(4095), Position::Next);
        assert_eq!(rx.position(0), Position::After);
        assert_eq!(rx.position(4094), Position::Before);
        assert_eq!(rx.position(4095 - 2048), Position::Before);
        assert_eq!(rx.position(4095 - 2049), Position::After);
        rx.accept(Time::ZERO);
        assert_eq!(rx.position(0), Position::Next);
    }

    #[test]
    fn an_ack_falls_due_after_65536_tlps_without_a_poll() {
        let mut rx = TlpReceiver::new(Duration::from_ns(10), None);
        for _ in 0..=u32::from(u16::MAX) {
            rx.accept(Time::ZERO);
        }
        assert!(rx.is_due());
    }

    #[test]
    fn one_nak_until_the_missing_tlp_comes() {
        let mut rx = TlpReceiver::new(Duration::from_ns(10), None);
        rx.accept(Time::ZERO);
        rx.refuse();
        rx.refuse();
        assert_eq!(rx.poll(), Some(Reply::Nak(0)));
        rx.refuse();
        assert_eq!((rx.poll(), rx.deadline()), (None, Time::NEVER));
        rx.accept(Time::ZERO);
        rx.refuse();
        assert_eq!(rx.poll(), Some(Reply::Nak(1)));
    }

    #[test]
    fn an_ack_waits_for_its_latency_or_its_count() {
        let mut rx = TlpReceiver::new(Duration::from_ns(10), Some(3));
        rx.accept(Time::ZERO);
        assert_eq!((rx.poll(), rx.deadline()), (None, Time::ZERO + Duration::from_ns(10)));
        rx.accept(Time::ZERO + Duration::from_ns(5));
        rx.handle_timeout(rx.deadline());
        assert_eq!((rx.poll(), rx.deadline()), (Some(Reply::Ack(1)), Time::NEVER));
        for _ in 0..3 {
            rx.accept(Time::ZERO + Duration::from_ns(20));
        }
        assert_eq!(rx.poll(), Some(Reply::Ack(4)));
        rx.duplicate();
        assert_eq!(rx.poll(), Some(Reply::Ack(4)));
    }
}
