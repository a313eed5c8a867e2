//! A port in non-flit mode: framed TLPs with sequence numbers, and DLLPs.

use crate::LinkLayer;
use crate::ack::{Position, Reply};
use crate::config::Config;
use crate::end::End;
use crate::event::{
    Blocked, Counters, Discard, Event, Integrity, ProtocolError, TLP_FRAMING, Timer, TlpShape, TlpUnit, Unit,
};
use crate::flow::CreditsLeft;
use crate::framed::{Kept, Nullified};
use crate::replay::Occupancy;
use crate::sequence::TlpNumbers;
use tlplab_units::{FcClass, Time, Vc, Width};
use tlplab_wire::dllp::{self, Sequence};

/// One end of a non-flit link. See [`LinkLayer`] for its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port<H> {
    end: End<Kept<H>, TlpNumbers>,
    nullified: Nullified<H>,
}

impl<H: Copy> Port<H> {
    /// A port whose link is down. [`Config::check`] tests that it can work.
    pub fn new(config: Config) -> Self {
        Self { end: End::new(config), nullified: Nullified::new() }
    }

    /// Both ends of a link that is up since time 0.
    pub fn established(a: Config, b: Config) -> (Self, Self) {
        let (mut one, mut other) = (Self::new(a.clone()), Self::new(b.clone()));
        one.activate_with(Time::ZERO, &b);
        other.activate_with(Time::ZERO, &a);
        (one, other)
    }

    /// Makes the link active at once, as if the exchange with a port of configuration `peer` had just ended.
    pub fn activate_with(&mut self, now: Time, peer: &Config) {
        self.end.control.activate_with(now, peer);
    }

    /// The configuration it was built with, but for the width that the link has now.
    pub fn config(&self) -> &Config {
        self.end.control.config()
    }
    /// The link has another width: limits of timers that depend on it follow, from the next start on.
    pub fn set_width(&mut self, width: Width) {
        self.end.set_width(width);
    }
    /// Credits left for sending.
    pub fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        self.end.control.flow.left(vc, class)
    }
    /// The contents of the replay buffer, in numbers.
    pub fn replay_occupancy(&self) -> Occupancy {
        self.end.replay.occupancy()
    }
    pub(crate) fn is_resting(&self) -> bool {
        self.end.is_resting()
    }
    pub(crate) fn skip_refreshes(&mut self, until: Time) -> u64 {
        self.end.control.flow.skip_refreshes(until)
    }
    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.end.counters
    }

    #[inline]
    fn poll_reply(&mut self) -> Option<dllp::Repr> {
        Some(match self.end.receiver.poll()? {
            Reply::Ack(sequence) => {
                self.end.counters.acks_sent += 1;
                dllp::Repr::Ack(Sequence::new(sequence))
            }
            Reply::Nak(sequence) => {
                self.end.counters.naks_sent += 1;
                dllp::Repr::Nak(Sequence::new(sequence))
            }
        })
    }

    fn discard(&mut self, handle: H, reason: Discard, events: &mut impl FnMut(Event<H>)) {
        match reason {
            Discard::BadLcrc => self.end.counters.bad_lcrc += 1,
            Discard::Nullified => self.end.counters.nullified_received += 1,
            Discard::Duplicate => self.end.counters.duplicates += 1,
            Discard::OutOfSequence => self.end.counters.out_of_sequence += 1,
            Discard::NotActive => {}
        }
        events(Event::Discarded { handle, reason });
    }

    #[inline]
    fn handle_tlp(
        &mut self,
        now: Time,
        tlp: &TlpUnit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        if integrity == Integrity::Bad {
            if self.end.control.is_active() {
                self.end.receiver.refuse();
            }
            return self.discard(tlp.handle, Discard::BadLcrc, events);
        }
        if tlp.nullified {
            return self.discard(tlp.handle, Discard::Nullified, events);
        }
        if !self.end.control.accepts(now, &tlp.shape, events) {
            return self.discard(tlp.handle, Discard::NotActive, events);
        }
        match self.end.receiver.position(tlp.sequence) {
            Position::Next => {
                self.end.receiver.accept(now);
                self.end.counters.tlps_received += 1;
                if let Err(error) = self.end.control.flow.receive(&tlp.shape) {
                    self.end.report(error, events);
                }
                events(Event::Deliver(tlp.handle));
            }
            Position::Before => {
                self.end.receiver.duplicate();
                self.discard(tlp.handle, Discard::Duplicate, events);
            }
            Position::After => {
                self.end.receiver.refuse();
                self.discard(tlp.handle, Discard::OutOfSequence, events);
            }
        }
    }

    fn handle_dllp(&mut self, now: Time, dllp: &dllp::Repr, events: &mut impl FnMut(Event<H>)) {
        let result = match dllp {
            dllp::Repr::Ack(sequence) => {
                self.end.counters.acks_received += 1;
                self.end.replay.acknowledge(now, sequence.value(), events).map(|_| ())
            }
            dllp::Repr::Nak(sequence) => {
                self.end.counters.naks_received += 1;
                let valid = self.end.replay.acknowledge(now, sequence.value(), events);
                if valid.is_ok() {
                    self.end.restart(events);
                }
                valid.map(|_| ())
            }
            _ => return self.end.handle_dllp(now, dllp, events),
        };
        if let Err(error) = result {
            self.end.report(error, events);
        }
    }
}

impl<H: Copy> LinkLayer<H> for Port<H> {
    fn link_up(&mut self, _now: Time) {
        self.end.up();
    }

    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        self.end.down(events, |events| self.nullified.clear(events));
    }

    fn link_recovering(&mut self, _now: Time) {
        self.end.hold();
    }

    fn link_recovered(&mut self, now: Time) {
        self.end.go_on(now);
    }

    fn is_active(&self) -> bool {
        self.end.control.is_active()
    }

    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        self.end.control.flow.admit(shape)?;
        if self.end.replay.has_room(shape.bytes + TLP_FRAMING) { Ok(()) } else { Err(Blocked::ReplayBuffer) }
    }

    #[inline]
    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        debug_assert_eq!(self.admit(&shape), Ok(()), "send() without admit()");
        self.end.control.flow.consume(&shape);
        self.end.replay.push(Kept { handle, shape });
    }

    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.nullified.push(handle, shape);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        if self.end.recovering {
            return None;
        }
        self.end.sending = false;
        if let Some(dllp) = self.poll_reply() {
            return Some(Unit::Dllp(dllp));
        }
        if let Some(dllp) = self.end.control.poll(now) {
            self.end.counters.count_dllp(&dllp);
            return Some(Unit::Dllp(dllp));
        }
        let tlp = self.nullified.poll(&mut self.end.replay, &mut self.end.counters)?;
        self.end.sending = !tlp.nullified;
        Some(Unit::Tlp(tlp))
    }

    #[inline]
    fn transmitted(&mut self, now: Time) {
        self.end.transmitted(now);
    }

    fn expects(&self, tlp: &TlpUnit<H>) -> bool {
        !tlp.nullified
            && self.end.control.flow.is_open(tlp.shape.vc)
            && self.end.receiver.position(tlp.sequence) == Position::Next
    }

    #[inline]
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        match (unit, integrity) {
            (Unit::Tlp(tlp), integrity) => self.handle_tlp(now, tlp, integrity, events),
            (Unit::Dllp(_), Integrity::Bad) => self.end.counters.bad_dllps += 1,
            (Unit::Dllp(dllp), Integrity::Good) => self.handle_dllp(now, dllp, events),
            (Unit::Flit(_), _) => {
                self.end.report(ProtocolError::WrongMode { got: "flit", mode: "non-flit" }, events);
            }
        }
    }

    #[inline]
    fn release(&mut self, now: Time, shape: &TlpShape) {
        self.end.control.flow.release(now, shape);
    }

    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        self.end.handle_timeout(now, events);
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.end.deadline()
    }

    #[inline]
    fn due(&self) -> Time {
        self.end.due()
    }
}
