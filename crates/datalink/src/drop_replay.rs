//! A port without flow control: TLPs that a full receiver drops are sent again when the replay timer expires.
//!
//! This is the link of the gem5 model of Alian, Srinivasan and Kim ("Simulating PCI-Express Interconnect for Future System
//! Exploration", IISWC 2018, section V.C), not of any specification. Its differences from [`Port`](crate::Port):
//! * There are no credits, no InitFC and no UpdateFC: the link is active as soon as it is up, and TLPs are sent while the replay
//!   buffer has room. An owner without room for a TLP does not hand it to its port, which then knows nothing of it.
//! * There is no Nak. A TLP that is damaged or dropped is answered by silence, and comes again when the peer's replay timer expires.
//! * The replay timer starts when a TLP has been sent, unless it runs, and anew with *every* Ack, even one that brings no progress. When it
//!   expires all of the replay buffer is sent again, oldest first, and nothing new is admitted meanwhile. There is no REPLAY_NUM:
//!   attempts never end.
//! * A TLP that arrives whole, in sequence or not, is acknowledged at once if the wire is free. If not, the Ack goes next, and from then
//!   on Acks come a third of the replay timeout apart, until such a time has passed without a new TLP.
//! * Unless configured otherwise the replay timeout is [`undelayed_replay_timeout`](crate::limits::undelayed_replay_timeout).
//!
//! The code of that model slips in two ways. Its replay counts places in the replay buffer, and does not notice that an Ack of the peer
//! moves the TLPs to the front: it passes over as many as were taken away. And where an Ack of its own goes first, the TLP whose turn it
//! was is passed over. The TLPs that follow are out of sequence, and the next timeout is due. Its published percentages come from
//! there; [`FlowControl::DropAndReplaySlipping`] does the same.

use crate::LinkLayer;
use crate::ack::{Position, Receiver};
use crate::config::{Config, FlowControl};
use crate::end::earliest;
use crate::event::{
    Blocked, Counters, Discard, Event, Integrity, ProtocolError, TLP_FRAMING, Timer, TlpShape, TlpUnit, Unit,
};
use crate::flow::CreditsLeft;
use crate::framed::{Kept, Nullified};
use crate::replay::{Occupancy, Replay};
use crate::sequence::TlpNumbers;
use tlplab_units::{Duration, FcClass, Time, Vc, Width};
use tlplab_wire::dllp::{self, Sequence};

/// One end of a link without flow control. See [`LinkLayer`] for its use, and the [module](self) for its behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropReplayPort<H> {
    config: Config,
    receiver: Receiver<TlpNumbers>,
    replay: Replay<Kept<H>, TlpNumbers>,
    nullified: Nullified<H>,
    active: bool,
    recovering: bool,
    on_wire: OnWire,
    acks: Acks,
    counters: Counters,
}

/// The unit that this end is sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OnWire {
    #[default]
    Nothing,
    /// A TLP that will be acknowledged, for the first time.
    First,
    /// The same again.
    Copy,
    /// A unit that will not be acknowledged.
    Other,
}

/// The Acks that the peer is due, and their timer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Acks {
    due: bool,
    /// Until then no Ack is made.
    timer: Time,
    /// The last TLP that the peer knows of, when the timer started.
    told: u16,
    interval: Duration,
}

impl Acks {
    const fn new(interval: Duration) -> Self {
        Self { due: false, timer: Time::NEVER, told: 0, interval }
    }

    /// A TLP came; `last` is the last one in sequence.
    #[inline]
    fn came(&mut self, now: Time, last: u16, wire: OnWire) {
        if self.timer == Time::NEVER {
            self.due = true;
            if wire != OnWire::Nothing {
                (self.timer, self.told) = (now + self.interval, last);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time, last: u16) {
        if now < self.timer {
            return;
        }
        self.timer = Time::NEVER;
        if self.told != last {
            self.due = true;
            (self.timer, self.told) = (now + self.interval, last);
        }
    }
}

impl<H: Copy> DropReplayPort<H> {
    /// A port whose link is down. [`Config::check`] tests that it can work.
    pub fn new(config: Config) -> Self {
        Self {
            receiver: Receiver::new(config.ack_latency(), config.ack.every),
            replay: Replay::new(config.replay, config.replay_timeout()),
            nullified: Nullified::new(),
            active: false,
            recovering: false,
            on_wire: OnWire::Nothing,
            acks: Acks::new(config.ack_latency()),
            counters: Counters::default(),
            config,
        }
    }

    /// Makes the link active at once; there is nothing to be agreed with the peer.
    pub fn activate_with(&mut self, now: Time, _peer: &Config) {
        self.link_up(now);
    }

    /// The configuration it was built with, but for the width that the link has now.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// The link has another width: limits of timers that depend on it follow, from the next start on.
    pub fn set_width(&mut self, width: Width) {
        self.config.width = width;
        self.receiver.set_latency(self.config.ack_latency());
        self.acks.interval = self.config.ack_latency();
        self.replay.timer.set_limit(self.config.replay_timeout());
    }
    /// Credits left for sending: without limit.
    pub fn credits(&self, _vc: Vc, _class: FcClass) -> CreditsLeft {
        CreditsLeft { header: None, data: None }
    }
    /// The contents of the replay buffer, in numbers.
    pub fn replay_occupancy(&self) -> Occupancy {
        self.replay.occupancy()
    }
    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn report(&mut self, error: ProtocolError, events: &mut impl FnMut(Event<H>)) {
        self.counters.protocol_errors += 1;
        events(Event::Error(error));
    }

    fn slips(&self) -> bool {
        self.config.flow_control == FlowControl::DropAndReplaySlipping
    }

    #[inline]
    fn ack(&mut self) -> Unit<H> {
        self.counters.acks_sent += 1;
        self.acks.due = false;
        Unit::Dllp(dllp::Repr::Ack(Sequence::new(self.receiver.last())))
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
                self.acks.came(now, self.receiver.last(), self.on_wire);
                self.counters.tlps_received += 1;
                return events(Event::Deliver(tlp.handle));
            }
            (_, position) => {
                self.acks.came(now, self.receiver.last(), self.on_wire);
                match position {
                    Position::Before => (Discard::Duplicate, &mut self.counters.duplicates),
                    _ => (Discard::OutOfSequence, &mut self.counters.out_of_sequence),
                }
            }
        };
        *counter += 1;
        events(Event::Discarded { handle: tlp.handle, reason });
    }

    #[inline]
    fn handle_dllp(&mut self, now: Time, dllp: &dllp::Repr, events: &mut impl FnMut(Event<H>)) {
        // No other DLLP means anything to this layer.
        let dllp::Repr::Ack(sequence) = dllp else { return };
        self.counters.acks_received += 1;
        let slips = self.slips();
        let place = self.replay.place();
        match self.replay.acknowledge(now, sequence.value(), events) {
            Ok(_) => {
                self.replay.timer_anew(now, self.on_wire == OnWire::First);
                if let Some(place) = place.filter(|_| slips) {
                    self.replay.go_on_at(place);
                }
            }
            Err(error) => self.report(error, events),
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
        self.acks = Acks::new(self.acks.interval);
        self.replay.clear(events);
        self.nullified.clear(events);
        self.recovering = false;
        self.on_wire = OnWire::Nothing;
        if core::mem::take(&mut self.active) {
            events(Event::Down);
        }
    }

    fn link_recovering(&mut self, _now: Time) {
        self.recovering = true;
        self.on_wire = OnWire::Nothing;
        self.replay.timer.stop();
    }

    fn link_recovered(&mut self, now: Time) {
        self.recovering = false;
        self.replay.timer.go_on();
        self.replay.transmitted(now);
    }

    fn is_active(&self) -> bool {
        self.active
    }

    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        if !self.active {
            Err(Blocked::LinkDown)
        } else if self.replay.place().is_none() && self.replay.has_room(shape.bytes + TLP_FRAMING) {
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
        self.nullified.push(handle, shape);
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Unit<H>> {
        if self.recovering {
            return None;
        }
        if self.acks.due {
            self.on_wire = OnWire::Other;
            if let Some(place) = self.replay.place().filter(|_| self.slips()) {
                self.replay.go_on_at(place + 1);
            }
            return Some(self.ack());
        }
        let tlp = self.nullified.poll(&mut self.replay, &mut self.counters)?;
        self.on_wire = match (tlp.nullified, tlp.replay) {
            (true, _) => OnWire::Other,
            (false, true) => OnWire::Copy,
            (false, false) => OnWire::First,
        };
        Some(Unit::Tlp(tlp))
    }

    #[inline]
    fn transmitted(&mut self, now: Time) {
        if matches!(core::mem::take(&mut self.on_wire), OnWire::First | OnWire::Copy) {
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
        self.acks.handle_timeout(now, self.receiver.last());
        if now >= self.replay.timer.deadline() && self.replay.restart_unlimited() {
            self.counters.replay_timeouts += 1;
            self.counters.replays += 1;
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        earliest([(self.acks.timer, Timer::Ack), (self.replay.timer.deadline(), Timer::Replay)])
    }
}
