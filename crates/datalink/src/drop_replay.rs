//! A port without flow control: what a full receiver drops, the replay timer sends again.
//!
//! This is the link of the gem5 model of Alian, Srinivasan and Kim ("Simulating PCI-Express Interconnect for Future System
//! Exploration", IISWC 2018, section V.C), not of any specification. How it differs from [`Port`](crate::Port):
//! * There are no credits, no InitFC and no UpdateFC: the link is active as soon as it is up, and TLPs are sent while the replay
//!   buffer has room. An owner without room for a TLP does not hand it to its port, which then knows nothing of it.
//! * There is no Nak. What is damaged, dropped or out of sequence is answered by silence, and comes again when the peer's replay
//!   timer expires. The timer starts with the first unacknowledged TLP sent, and anew with each Ack that brings progress and at each expiry;
//!   there is no REPLAY_NUM, so attempts never end.
//! * An Ack leaves at once if nothing else wants the wire ([`poll_idle`](LinkLayer::poll_idle)), otherwise after a third of the replay timeout.
//! * Unless configured otherwise the replay timeout is [`undelayed_replay_timeout`](crate::limits::undelayed_replay_timeout).

use crate::LinkLayer;
use crate::ack::{Position, Receiver, Reply};
use crate::config::Config;
use crate::event::{
    Blocked, Counters, Discard, Event, Integrity, ProtocolError, TLP_FRAMING, Timer, TlpShape, TlpUnit, Unit,
};
use crate::flow::CreditsLeft;
use crate::port::{Kept, earliest};
use crate::replay::{Occupancy, Outgoing, Replay};
use crate::sequence::TlpNumbers;
use alloc::collections::VecDeque;
use tlplab_units::{FcClass, Time, Vc};
use tlplab_wire::dllp::{self, Sequence};

/// One end of a link without flow control. See [`LinkLayer`] for how it is driven, and the [module](self) for what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropReplayPort<H> {
    config: Config,
    receiver: Receiver<TlpNumbers>,
    replay: Replay<Kept<H>, TlpNumbers>,
    nullified: VecDeque<(H, TlpShape)>,
    active: bool,
    recovering: bool,
    /// The unit on the wire is a TLP that will be acknowledged.
    sending_tlp: bool,
    counters: Counters,
}

impl<H: Copy> DropReplayPort<H> {
    /// A port whose link is down. [`Config::check`] says whether it can work.
    pub fn new(config: Config) -> Self {
        Self {
            receiver: Receiver::new(config.ack_latency(), config.ack.every),
            replay: Replay::new(config.replay, config.replay_timeout()),
            nullified: VecDeque::new(),
            active: false,
            recovering: false,
            sending_tlp: false,
            counters: Counters::default(),
            config,
        }
    }

    /// Makes the link active at once; there is nothing to be agreed with the peer.
    pub fn activate_with(&mut self, now: Time, _peer: &Config) {
        self.link_up(now);
    }

    /// What it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Credits left for sending: without limit.
    pub fn credits(&self, _vc: Vc, _class: FcClass) -> CreditsLeft {
        CreditsLeft { header: None, data: None }
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

    #[inline]
    fn ack(&mut self) -> Unit<H> {
        self.counters.acks_sent += 1;
        let (Reply::Ack(sequence) | Reply::Nak(sequence)) = self.receiver.reply();
        Unit::Dllp(dllp::Repr::Ack(Sequence::new(sequence)))
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

    #[inline]
    fn handle_tlp(
        &mut self,
        now: Time,
        tlp: &TlpUnit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        let (reason, counter) = match (integrity, self.receiver.position(tlp.sequence)) {
            _ if !self.active => {
                return events(Event::Discarded { handle: tlp.handle, reason: Discard::NotActive });
            }
            (Integrity::Bad, _) => (Discard::BadLcrc, &mut self.counters.bad_lcrc),
            _ if tlp.nullified => (Discard::Nullified, &mut self.counters.nullified_received),
            (_, Position::Next) => {
                self.receiver.accept(now);
                self.counters.tlps_received += 1;
                return events(Event::Deliver(tlp.handle));
            }
            (_, Position::Before) => {
                self.receiver.duplicate();
                (Discard::Duplicate, &mut self.counters.duplicates)
            }
            (_, Position::After) => (Discard::OutOfSequence, &mut self.counters.out_of_sequence),
        };
        *counter += 1;
        events(Event::Discarded { handle: tlp.handle, reason });
    }

    #[inline]
    fn handle_dllp(&mut self, now: Time, dllp: &dllp::Repr, events: &mut impl FnMut(Event<H>)) {
        // No other DLLP means anything to this layer.
        let dllp::Repr::Ack(sequence) = dllp else { return };
        self.counters.acks_received += 1;
        if let Err(error) = self.replay.acknowledge(now, sequence.value(), events) {
            self.report(error, events);
        }
    }
}

impl<H: Copy> LinkLayer<H> for DropReplayPort<H> {
    fn link_up(&mut self, _now: Time) {
        self.active = true;
        self.recovering = false;
    }

    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        self.receiver.reset();
        self.replay.clear(events);
        for (handle, _) in self.nullified.drain(..) {
            events(Event::Lost(handle));
        }
        self.recovering = false;
        self.sending_tlp = false;
        if core::mem::take(&mut self.active) {
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
        self.active
    }

    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        if !self.active {
            Err(Blocked::LinkDown)
        } else if self.replay.has_room(shape.bytes + TLP_FRAMING) {
            Ok(())
        } else {
            Err(Blocked::ReplayBuffer)
        }
    }

    #[inline]
    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        debug_assert_eq!(self.admit(&shape), Ok(()), "send() without admit()");
        self.replay.push(Kept { handle, shape });
    }

    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.nullified.push_back((handle, shape));
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Unit<H>> {
        if self.recovering {
            return None;
        }
        self.sending_tlp = false;
        if self.receiver.is_due() {
            return Some(self.ack());
        }
        let tlp = self.poll_tlp()?;
        self.sending_tlp = !tlp.nullified;
        Some(Unit::Tlp(tlp))
    }

    #[inline]
    fn poll_idle(&mut self, _now: Time) -> Option<Unit<H>> {
        (self.receiver.owes() && !self.recovering).then(|| self.ack())
    }

    #[inline]
    fn transmitted(&mut self, now: Time) {
        if core::mem::take(&mut self.sending_tlp) {
            self.replay.transmitted(now);
        }
    }

    #[inline]
    fn expects(&self, tlp: &TlpUnit<H>) -> bool {
        !tlp.nullified && self.active && self.receiver.position(tlp.sequence) == Position::Next
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

    /// Room is the owner's affair.
    #[inline]
    fn release(&mut self, _now: Time, _shape: &TlpShape) {}

    fn handle_timeout(&mut self, now: Time, _events: &mut impl FnMut(Event<H>)) {
        self.receiver.handle_timeout(now);
        if now >= self.replay.timer.deadline() {
            self.counters.replay_timeouts += 1;
            self.counters.replays += u64::from(self.replay.restart_unlimited(now));
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        earliest([(self.receiver.deadline(), Timer::Ack), (self.replay.timer.deadline(), Timer::Replay)])
    }
}
