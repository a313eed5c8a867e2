//! Custom data link layers, as an [`Engine`](crate::Engine) carries them.
//!
//! A custom layer implements [`LinkLayer`], as the built-in ports do, and [`CustomLinkLayer`], whose methods all have defaults. The engine
//! keeps the configuration and counts units and events.

use crate::LinkLayer;
use crate::config::Config;
use crate::event::{Blocked, Counters, Discard, Event, Integrity, Timer, TlpShape, TlpUnit, Unit};
use crate::flow::CreditsLeft;
use crate::replay::Occupancy;
use alloc::boxed::Box;
use core::fmt;
use tlplab_units::{FcClass, Time, Vc, Width};

/// The questions of a fabric to a data link layer besides the protocol.
pub trait CustomLinkLayer<H: Copy>: LinkLayer<H> + Send + 'static {
    /// The link is up since before time 0: what an exchange with a port of configuration `peer` would have led to.
    fn established(&mut self, now: Time, _peer: &Config) {
        self.link_up(now);
    }
    /// Credits left for sending; without limit, unless it says otherwise.
    fn credits(&self, _vc: Vc, _class: FcClass) -> CreditsLeft {
        CreditsLeft { header: None, data: None }
    }
    /// The contents of the replay buffer, in numbers; nothing, unless it says otherwise.
    fn replay_occupancy(&self) -> Occupancy {
        Occupancy::default()
    }
    /// Its counters. The engine counts the units in both directions, and shows that, unless the layer keeps counters of its own.
    fn counters(&self) -> Option<&Counters> {
        None
    }
    /// The link has another width than it was built with, after a recovery.
    fn set_width(&mut self, _width: Width) {}
    /// True if it keeps a TLP until its peer has it, and so reports the TLPs lost when the link goes down. If not, the receiver reports
    /// [`Event::Acked`] beside [`Event::Deliver`] or [`Event::Discarded`], and what is on the wire when the link goes down is lost with it.
    fn keeps_until_acked(&self) -> bool {
        false
    }
    /// A copy that goes on from here as this layer does; none, if part of its state is elsewhere.
    fn snapshot(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// An [`CustomLinkLayer`] behind a pointer.
trait Erased<H>: Send {
    fn link_up(&mut self, now: Time);
    fn link_down(&mut self, now: Time, events: &mut dyn FnMut(Event<H>));
    fn link_recovering(&mut self, now: Time);
    fn link_recovered(&mut self, now: Time);
    fn is_active(&self) -> bool;
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked>;
    fn send(&mut self, now: Time, handle: H, shape: TlpShape);
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape);
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>>;
    fn transmitted(&mut self, now: Time);
    fn expects(&self, unit: &TlpUnit<H>) -> bool;
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut dyn FnMut(Event<H>),
    );
    fn release(&mut self, now: Time, shape: &TlpShape);
    fn handle_timeout(&mut self, now: Time, events: &mut dyn FnMut(Event<H>));
    fn deadline(&self) -> Option<(Time, Timer)>;
    fn established(&mut self, now: Time, peer: &Config);
    fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft;
    fn replay_occupancy(&self) -> Occupancy;
    fn counters(&self) -> Option<&Counters>;
    fn set_width(&mut self, width: Width);
    fn keeps_until_acked(&self) -> bool;
    fn snapshot(&self) -> Option<Box<dyn Erased<H>>>;
}

impl<H: Copy, L: CustomLinkLayer<H>> Erased<H> for L {
    fn link_up(&mut self, now: Time) {
        LinkLayer::link_up(self, now);
    }
    fn link_down(&mut self, now: Time, mut events: &mut dyn FnMut(Event<H>)) {
        LinkLayer::link_down(self, now, &mut events);
    }
    fn link_recovering(&mut self, now: Time) {
        LinkLayer::link_recovering(self, now);
    }
    fn link_recovered(&mut self, now: Time) {
        LinkLayer::link_recovered(self, now);
    }
    fn is_active(&self) -> bool {
        LinkLayer::is_active(self)
    }
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        LinkLayer::admit(self, shape)
    }
    fn send(&mut self, now: Time, handle: H, shape: TlpShape) {
        LinkLayer::send(self, now, handle, shape);
    }
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape) {
        LinkLayer::send_nullified(self, now, handle, shape);
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        LinkLayer::poll_transmit(self, now)
    }
    fn transmitted(&mut self, now: Time) {
        LinkLayer::transmitted(self, now);
    }
    fn expects(&self, unit: &TlpUnit<H>) -> bool {
        LinkLayer::expects(self, unit)
    }
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        mut events: &mut dyn FnMut(Event<H>),
    ) {
        LinkLayer::handle_unit(self, now, unit, integrity, &mut events);
    }
    fn release(&mut self, now: Time, shape: &TlpShape) {
        LinkLayer::release(self, now, shape);
    }
    fn handle_timeout(&mut self, now: Time, mut events: &mut dyn FnMut(Event<H>)) {
        LinkLayer::handle_timeout(self, now, &mut events);
    }
    fn deadline(&self) -> Option<(Time, Timer)> {
        LinkLayer::deadline(self)
    }
    fn established(&mut self, now: Time, peer: &Config) {
        CustomLinkLayer::established(self, now, peer);
    }
    fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        CustomLinkLayer::credits(self, vc, class)
    }
    fn replay_occupancy(&self) -> Occupancy {
        CustomLinkLayer::replay_occupancy(self)
    }
    fn counters(&self) -> Option<&Counters> {
        CustomLinkLayer::counters(self)
    }
    fn set_width(&mut self, width: Width) {
        CustomLinkLayer::set_width(self, width);
    }
    fn keeps_until_acked(&self) -> bool {
        CustomLinkLayer::keeps_until_acked(self)
    }
    fn snapshot(&self) -> Option<Box<dyn Erased<H>>> {
        Some(Box::new(CustomLinkLayer::snapshot(self)?))
    }
}

/// One end of a link with a custom layer.
pub struct CustomPort<H> {
    config: Config,
    counters: Counters,
    layer: Box<dyn Erased<H>>,
}

impl<H: Copy> CustomPort<H> {
    pub(crate) fn new(config: Config, layer: impl CustomLinkLayer<H>) -> Self {
        Self { config, counters: Counters::default(), layer: Box::new(layer) }
    }
    pub(crate) fn activate_with(&mut self, now: Time, peer: &Config) {
        self.layer.established(now, peer);
    }
    pub(crate) fn set_width(&mut self, width: Width) {
        self.config.width = width;
        self.layer.set_width(width);
    }
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }
    pub(crate) fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        self.layer.credits(vc, class)
    }
    pub(crate) fn replay_occupancy(&self) -> Occupancy {
        self.layer.replay_occupancy()
    }
    pub(crate) fn counters(&self) -> &Counters {
        self.layer.counters().unwrap_or(&self.counters)
    }
    pub(crate) fn keeps_until_acked(&self) -> bool {
        self.layer.keeps_until_acked()
    }
    /// A copy, if the layer gives one of itself.
    pub(crate) fn snapshot(&self) -> Option<Self> {
        let layer = self.layer.snapshot()?;
        Some(Self { config: self.config.clone(), counters: self.counters, layer })
    }
}

impl<H> fmt::Debug for CustomPort<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomPort").field("config", &self.config).field("counters", &self.counters).finish()
    }
}

impl Counters {
    /// Counts what a layer reports.
    pub(crate) fn count_event<H>(&mut self, event: &Event<H>) {
        let counter = match event {
            Event::Deliver(_) => &mut self.tlps_received,
            Event::Discarded { reason: Discard::BadLcrc, .. } => &mut self.bad_lcrc,
            Event::Discarded { reason: Discard::Nullified, .. } => &mut self.nullified_received,
            Event::Discarded { reason: Discard::Duplicate, .. } => &mut self.duplicates,
            Event::Discarded { reason: Discard::OutOfSequence, .. } => &mut self.out_of_sequence,
            Event::Retrain(_) => &mut self.retrains,
            Event::Error(_) => &mut self.protocol_errors,
            _ => return,
        };
        *counter += 1;
    }
}

impl<H: Copy> LinkLayer<H> for CustomPort<H> {
    fn link_up(&mut self, now: Time) {
        self.layer.link_up(now);
    }
    fn link_down(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        self.layer.link_down(now, events);
    }
    fn link_recovering(&mut self, now: Time) {
        self.layer.link_recovering(now);
    }
    fn link_recovered(&mut self, now: Time) {
        self.layer.link_recovered(now);
    }
    fn is_active(&self) -> bool {
        self.layer.is_active()
    }
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        self.layer.admit(shape)
    }
    fn send(&mut self, now: Time, handle: H, shape: TlpShape) {
        self.layer.send(now, handle, shape);
    }
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape) {
        self.layer.send_nullified(now, handle, shape);
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        let unit = self.layer.poll_transmit(now)?;
        match &unit {
            Unit::Tlp(tlp) if tlp.nullified => self.counters.nullified_sent += 1,
            Unit::Tlp(tlp) if tlp.replay => self.counters.tlps_replayed += 1,
            Unit::Tlp(_) => self.counters.tlps_sent += 1,
            Unit::Dllp(_) | Unit::Flit(_) => {}
        }
        Some(unit)
    }
    fn transmitted(&mut self, now: Time) {
        self.layer.transmitted(now);
    }
    fn expects(&self, unit: &TlpUnit<H>) -> bool {
        self.layer.expects(unit)
    }
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        let Self { layer, counters, .. } = self;
        layer.handle_unit(now, unit, integrity, &mut |event| {
            counters.count_event(&event);
            events(event);
        });
    }
    fn release(&mut self, now: Time, shape: &TlpShape) {
        self.layer.release(now, shape);
    }
    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        let Self { layer, counters, .. } = self;
        if layer.deadline().is_some_and(|(_, timer)| timer == Timer::Replay) {
            counters.replay_timeouts += 1;
        }
        layer.handle_timeout(now, &mut |event| {
            counters.count_event(&event);
            events(event);
        });
    }
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.layer.deadline()
    }
}
