//! A port of any kind.

use crate::config::{Config, FlowControl};
use crate::event::{Blocked, Counters, Event, Integrity, Timer, TlpShape, TlpUnit, Unit};
use crate::flow::CreditsLeft;
use crate::replay::Occupancy;
use crate::{CustomLinkLayer, CustomPort, DirectPort, DropReplayPort, FlitPort, LinkLayer, Port};
use tlplab_units::{FcClass, LinkMode, Time, Vc, Width};

/// One end of a link in the mode its [`Config`] names.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "all are large; there is one per port")]
pub enum Engine<H> {
    /// Framed TLPs and DLLPs.
    NonFlit(Port<H>),
    /// Flits.
    Flit(FlitPort<H>),
    /// Framed TLPs without credits.
    DropReplay(DropReplayPort<H>),
    /// No data link layer at all.
    Direct(DirectPort<H>),
    /// A custom layer.
    Custom(CustomPort<H>),
}

impl<H: Copy> Clone for Engine<H> {
    /// # Panics
    /// A custom layer that gives no copy of itself: ask [`has_copy`](Self::has_copy) first.
    fn clone(&self) -> Self {
        match self {
            Self::NonFlit(port) => Self::NonFlit(port.clone()),
            Self::Flit(port) => Self::Flit(port.clone()),
            Self::DropReplay(port) => Self::DropReplay(port.clone()),
            Self::Direct(port) => Self::Direct(port.clone()),
            Self::Custom(port) => Self::Custom(port.snapshot().expect("it was asked whether it has a copy")),
        }
    }
}

macro_rules! each {
    ($engine:expr, $port:ident => $call:expr) => {
        match $engine {
            Self::NonFlit($port) => $call,
            Self::Flit($port) => $call,
            Self::DropReplay($port) => $call,
            Self::Direct($port) => $call,
            Self::Custom($port) => $call,
        }
    };
}

impl<H: Copy> Engine<H> {
    /// A port whose link is down. [`Config::check`] tests that it can work.
    pub fn new(config: Config) -> Self {
        match (config.mode, config.flow_control) {
            (_, FlowControl::Crossbar) => Self::Direct(DirectPort::new(config)),
            (LinkMode::Flit, _) => Self::Flit(FlitPort::new(config)),
            (LinkMode::NonFlit, FlowControl::Credits) => Self::NonFlit(Port::new(config)),
            (LinkMode::NonFlit, FlowControl::DropAndReplay | FlowControl::DropAndReplaySlipping) => {
                Self::DropReplay(DropReplayPort::new(config))
            }
        }
    }
    /// A port with a custom layer, whose link is down. `config` has speed, width and payload of the framed link.
    pub fn custom(config: Config, layer: impl CustomLinkLayer<H>) -> Self {
        Self::Custom(CustomPort::new(config, layer))
    }
    /// True if it can be copied as it is.
    pub fn has_copy(&self) -> bool {
        !matches!(self, Self::Custom(port) if port.snapshot().is_none())
    }
    /// True if it keeps a TLP until its peer has it, and reports lost TLPs to its owner.
    pub fn keeps_until_acked(&self) -> bool {
        match self {
            Self::NonFlit(_) | Self::Flit(_) | Self::DropReplay(_) => true,
            Self::Direct(_) => false,
            Self::Custom(port) => port.keeps_until_acked(),
        }
    }
    /// Both ends of a link that is up since time 0, in the state that an exchange would have led to.
    pub fn established(a: Config, b: Config) -> (Self, Self) {
        let (mut one, mut other) = (Self::new(a.clone()), Self::new(b.clone()));
        one.activate_with(Time::ZERO, &b);
        other.activate_with(Time::ZERO, &a);
        (one, other)
    }
    /// Makes the link active at once, as if the exchange with a port of configuration `peer` had just ended.
    pub fn activate_with(&mut self, now: Time, peer: &Config) {
        each!(self, port => port.activate_with(now, peer));
    }
    /// The link has another width than it was built with, after a recovery: limits of timers that depend on it follow (PCIe 5.0 §3.6.2.1).
    pub fn set_width(&mut self, width: Width) {
        each!(self, port => port.set_width(width));
    }
    /// The configuration it was built with, but for the width that the link has now.
    pub fn config(&self) -> &Config {
        each!(self, port => port.config())
    }
    /// Credits left for sending.
    pub fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        each!(self, port => port.credits(vc, class))
    }
    /// The contents of the replay buffer, in numbers.
    pub fn replay_occupancy(&self) -> Occupancy {
        each!(self, port => port.replay_occupancy())
    }
    /// True if it waits for nothing but the next refresh of its peer's credits, which tells the peer nothing new. Units that it has to send at
    /// once, and units on the wire, are known to its owner.
    pub fn is_resting(&self) -> bool {
        match self {
            Self::NonFlit(port) => port.is_resting(),
            Self::Flit(port) => port.is_resting(),
            Self::DropReplay(_) | Self::Direct(_) => self.deadline().is_none(),
            Self::Custom(_) => false,
        }
    }
    /// Of a port that [rests](Self::is_resting): leaves out the refreshes that were due by `until`, and returns their number.
    pub fn skip_refreshes(&mut self, until: Time) -> u64 {
        match self {
            Self::NonFlit(port) => port.skip_refreshes(until),
            Self::Flit(port) => port.skip_refreshes(until),
            Self::DropReplay(_) | Self::Direct(_) | Self::Custom(_) => 0,
        }
    }
    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        each!(self, port => port.counters())
    }
}

impl<H: Copy> LinkLayer<H> for Engine<H> {
    fn link_up(&mut self, now: Time) {
        each!(self, port => port.link_up(now));
    }
    fn link_down(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        each!(self, port => port.link_down(now, events));
    }
    fn link_recovering(&mut self, now: Time) {
        each!(self, port => port.link_recovering(now));
    }
    fn link_recovered(&mut self, now: Time) {
        each!(self, port => port.link_recovered(now));
    }
    fn is_active(&self) -> bool {
        each!(self, port => port.is_active())
    }
    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        each!(self, port => port.admit(shape))
    }
    #[inline]
    fn send(&mut self, now: Time, handle: H, shape: TlpShape) {
        each!(self, port => port.send(now, handle, shape));
    }
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape) {
        each!(self, port => port.send_nullified(now, handle, shape));
    }
    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        each!(self, port => port.poll_transmit(now))
    }
    #[inline]
    fn transmitted(&mut self, now: Time) {
        each!(self, port => port.transmitted(now));
    }
    #[inline]
    fn expects(&self, unit: &TlpUnit<H>) -> bool {
        each!(self, port => port.expects(unit))
    }
    #[inline]
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        each!(self, port => port.handle_unit(now, unit, integrity, events));
    }
    #[inline]
    fn release(&mut self, now: Time, shape: &TlpShape) {
        each!(self, port => port.release(now, shape));
    }
    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        each!(self, port => port.handle_timeout(now, events));
    }
    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        each!(self, port => port.deadline())
    }
    #[inline]
    fn due(&self) -> Time {
        each!(self, port => port.due())
    }
}
