//! A port in non-flit mode: framed TLPs with sequence numbers, and DLLPs.

use crate::LinkLayer;
use crate::ack::{Position, Receiver, Reply};
use crate::config::Config;
use crate::event::{
    Blocked, Counters, Discard, Event, Integrity, ProtocolError, Retrain, TLP_FRAMING, Timer, TlpShape,
    TlpUnit, Unit,
};
use crate::flow::CreditsLeft;
use crate::init::LinkControl;
use crate::replay::{Attempt, Entry, Occupancy, Outgoing, Replay};
use crate::sequence::TlpNumbers;
use alloc::collections::VecDeque;
use tlplab_units::{FcClass, Time, Vc};
use tlplab_wire::dllp::{self, FcPhase, FeatureBits, Sequence};

/// A TLP in the replay buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept<H> {
    pub(crate) handle: H,
    pub(crate) shape: TlpShape,
}

impl<H: Copy> Entry<H> for Kept<H> {
    fn bytes(&self) -> u32 {
        self.shape.bytes + TLP_FRAMING
    }
    fn handles(&self, mut each: impl FnMut(H)) {
        each(self.handle);
    }
}

/// One end of a non-flit link. See [`LinkLayer`] for how it is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port<H> {
    link: LinkControl,
    receiver: Receiver<TlpNumbers>,
    replay: Replay<Kept<H>, TlpNumbers>,
    nullified: VecDeque<(H, TlpShape)>,
    /// The link is in, or waits for, Recovery.
    recovering: bool,
    /// The unit on the wire is a TLP that will be acknowledged.
    sending_tlp: bool,
    counters: Counters,
}

impl<H: Copy> Port<H> {
    /// A port whose link is down. [`Config::check`] says whether it can work.
    pub fn new(config: Config) -> Self {
        Self {
            receiver: Receiver::new(config.ack_latency(), config.ack.every),
            replay: Replay::new(config.replay, config.replay_timeout()),
            nullified: VecDeque::new(),
            recovering: false,
            sending_tlp: false,
            counters: Counters::default(),
            link: LinkControl::new(config),
        }
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
        self.link.activate_with(now, peer);
    }

    /// What it was built with.
    pub fn config(&self) -> &Config {
        self.link.config()
    }
    /// Credits left for sending.
    pub fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        self.link.flow.left(vc, class)
    }
    /// What the replay buffer holds.
    pub fn replay_occupancy(&self) -> Occupancy {
        self.replay.occupancy()
    }
    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn report(&mut self, error: ProtocolError, events: &mut impl FnMut(Event<H>)) {
        self.counters.protocol_errors += 1;
        events(Event::Error(error));
    }

    fn restart_replay(&mut self, events: &mut impl FnMut(Event<H>)) {
        let Some(attempt) = self.replay.restart() else { return };
        self.counters.replays += 1;
        if attempt == Attempt::Retrain {
            self.counters.retrains += 1;
            self.recovering = true;
            events(Event::Retrain(Retrain::ReplayNumRollover));
        }
    }

    #[inline]
    fn poll_reply(&mut self) -> Option<dllp::Repr> {
        Some(match self.receiver.poll()? {
            Reply::Ack(sequence) => {
                self.counters.acks_sent += 1;
                dllp::Repr::Ack(Sequence::new(sequence))
            }
            Reply::Nak(sequence) => {
                self.counters.naks_sent += 1;
                dllp::Repr::Nak(Sequence::new(sequence))
            }
        })
    }

    #[inline]
    fn poll_tlp(&mut self) -> Option<TlpUnit<H>> {
        if let Some((handle, shape)) = self.nullified.pop_front() {
            self.counters.nullified_sent += 1;
            let sequence = self.replay.next_sequence();
            return Some(TlpUnit { handle, shape, sequence, replay: false, nullified: true });
        }
        let Outgoing { entry: Kept { handle, shape }, sequence, replay } = self.replay.poll()?;
        *if replay { &mut self.counters.tlps_replayed } else { &mut self.counters.tlps_sent } += 1;
        Some(TlpUnit { handle, shape, sequence, replay, nullified: false })
    }

    fn discard(&mut self, handle: H, reason: Discard, events: &mut impl FnMut(Event<H>)) {
        match reason {
            Discard::BadLcrc => self.counters.bad_lcrc += 1,
            Discard::Nullified => self.counters.nullified_received += 1,
            Discard::Duplicate => self.counters.duplicates += 1,
            Discard::OutOfSequence => self.counters.out_of_sequence += 1,
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
            if self.link.is_active() {
                self.receiver.refuse();
            }
            return self.discard(tlp.handle, Discard::BadLcrc, events);
        }
        if tlp.nullified {
            return self.discard(tlp.handle, Discard::Nullified, events);
        }
        if !self.link.accepts(now, &tlp.shape, events) {
            return self.discard(tlp.handle, Discard::NotActive, events);
        }
        match self.receiver.position(tlp.sequence) {
            Position::Next => {
                self.receiver.accept(now);
                self.counters.tlps_received += 1;
                if let Err(error) = self.link.flow.receive(&tlp.shape) {
                    self.report(error, events);
                }
                events(Event::Deliver(tlp.handle));
            }
            Position::Before => {
                self.receiver.duplicate();
                self.discard(tlp.handle, Discard::Duplicate, events);
            }
            Position::After => {
                self.receiver.refuse();
                self.discard(tlp.handle, Discard::OutOfSequence, events);
            }
        }
    }

    fn handle_dllp(&mut self, now: Time, dllp: &dllp::Repr, events: &mut impl FnMut(Event<H>)) {
        let result = match dllp {
            dllp::Repr::Ack(sequence) => {
                self.counters.acks_received += 1;
                self.replay.acknowledge(now, sequence.value(), events).map(|_| ())
            }
            dllp::Repr::Nak(sequence) => {
                self.counters.naks_received += 1;
                let valid = self.replay.acknowledge(now, sequence.value(), events);
                if valid.is_ok() {
                    self.restart_replay(events);
                }
                valid.map(|_| ())
            }
            dllp::Repr::FlowControl(fc) => {
                self.counters.update_fcs_received += u64::from(fc.phase == FcPhase::Update);
                self.link.handle_flow_control(now, fc, events)
            }
            dllp::Repr::Feature { ack, supported } => {
                let scales = supported.bits() & FeatureBits::SCALED_FLOW_CONTROL.bits() != 0;
                self.link.handle_feature(*ack, scales);
                Ok(())
            }
            // Power management and vendor DLLPs mean nothing to this layer.
            dllp::Repr::Pm(_) | dllp::Repr::Vendor(_) | dllp::Repr::Nop => Ok(()),
        };
        if let Err(error) = result {
            self.report(error, events);
        }
    }
}

impl<H: Copy> LinkLayer<H> for Port<H> {
    fn link_up(&mut self, _now: Time) {
        self.recovering = false;
        self.link.up();
    }

    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        let was_active = self.link.is_active();
        self.link.down();
        self.receiver.reset();
        self.replay.clear(events);
        for (handle, _) in self.nullified.drain(..) {
            events(Event::Lost(handle));
        }
        self.recovering = false;
        self.sending_tlp = false;
        if was_active {
            events(Event::Down);
        }
    }

    fn link_recovering(&mut self, _now: Time) {
        self.recovering = true;
        self.sending_tlp = false;
        self.replay.timer.hold();
    }

    fn link_recovered(&mut self, now: Time) {
        self.recovering = false;
        self.replay.transmitted(now);
    }

    fn is_active(&self) -> bool {
        self.link.is_active()
    }

    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        self.link.flow.admit(shape)?;
        if self.replay.has_room(shape.bytes + TLP_FRAMING) { Ok(()) } else { Err(Blocked::ReplayBuffer) }
    }

    #[inline]
    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        debug_assert_eq!(self.admit(&shape), Ok(()), "send() without admit()");
        self.link.flow.consume(&shape);
        self.replay.push(Kept { handle, shape });
    }

    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.nullified.push_back((handle, shape));
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        if self.recovering {
            return None;
        }
        self.sending_tlp = false;
        if let Some(dllp) = self.poll_reply() {
            return Some(Unit::Dllp(dllp));
        }
        if let Some(dllp) = self.link.poll(now) {
            self.counters.count_dllp(&dllp);
            return Some(Unit::Dllp(dllp));
        }
        let tlp = self.poll_tlp()?;
        self.sending_tlp = !tlp.nullified;
        Some(Unit::Tlp(tlp))
    }

    #[inline]
    fn transmitted(&mut self, now: Time) {
        if core::mem::take(&mut self.sending_tlp) {
            self.replay.transmitted(now);
        }
    }

    fn expects(&self, tlp: &TlpUnit<H>) -> bool {
        !tlp.nullified
            && self.link.flow.is_open(tlp.shape.vc)
            && self.receiver.position(tlp.sequence) == Position::Next
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
            (Unit::Dllp(_), Integrity::Bad) => self.counters.bad_dllps += 1,
            (Unit::Dllp(dllp), Integrity::Good) => self.handle_dllp(now, dllp, events),
            (Unit::Flit(_), _) => {
                self.report(ProtocolError::WrongMode { got: "flit", mode: "non-flit" }, events);
            }
        }
    }

    #[inline]
    fn release(&mut self, _now: Time, shape: &TlpShape) {
        self.link.flow.release(shape);
    }

    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        self.receiver.handle_timeout(now);
        if now >= self.link.repeat_at() {
            self.link.handle_repeat();
        }
        if now >= self.link.flow.refresh_at() {
            self.link.flow.handle_refresh(now);
        }
        if now >= self.replay.timer.deadline() {
            self.counters.replay_timeouts += 1;
            self.restart_replay(events);
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        earliest([
            (self.receiver.deadline(), Timer::Ack),
            (self.replay.timer.deadline(), Timer::Replay),
            (self.link.flow.refresh_at(), Timer::Refresh),
            (self.link.repeat_at(), Timer::Init),
        ])
    }
}

/// The first of a port's deadlines; of equal ones the first named.
#[inline]
pub(crate) fn earliest<const N: usize>(deadlines: [(Time, Timer); N]) -> Option<(Time, Timer)> {
    let mut first = deadlines[0];
    for next in &deadlines[1..] {
        if next.0 < first.0 {
            first = *next;
        }
    }
    (first.0 != Time::NEVER).then_some(first)
}
