//! A port of a crossbar: TLPs pass as they are, in order, and while the port is up none is refused or lost. One that has left counts as acknowledged.
//!
//! Devices are attached to it where there is no link: an on-chip interconnect, or the crossbar that simulators use in place of PCI
//! Express. It has no data link layer at all, so none of [`Config`]'s policies applies. Room is the owner's affair.

use crate::LinkLayer;
use crate::config::Config;
use crate::event::{Counters, Event, Integrity, Timer, TlpShape, TlpUnit, Unit};
use crate::flow::CreditsLeft;
use crate::replay::Occupancy;
use alloc::collections::VecDeque;
use tlplab_units::{FcClass, Time, Vc, Width};

/// One end of a crossbar's port. See [`LinkLayer`] for its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectPort<H> {
    config: Config,
    queue: VecDeque<(H, TlpShape, bool)>,
    active: bool,
    counters: Counters,
}

impl<H: Copy> DirectPort<H> {
    /// A port that is down.
    pub fn new(config: Config) -> Self {
        Self { config, queue: VecDeque::new(), active: false, counters: Counters::default() }
    }

    /// Makes it active at once.
    pub fn activate_with(&mut self, now: Time, _peer: &Config) {
        self.link_up(now);
    }

    /// A crossbar has no lanes.
    pub const fn set_width(&mut self, _width: Width) {}
    /// The configuration it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Credits left for sending: without limit.
    pub fn credits(&self, _vc: Vc, _class: FcClass) -> CreditsLeft {
        CreditsLeft { header: None, data: None }
    }
    /// There is no replay buffer.
    pub fn replay_occupancy(&self) -> Occupancy {
        Occupancy::default()
    }
    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl<H: Copy> LinkLayer<H> for DirectPort<H> {
    fn link_up(&mut self, _now: Time) {
        self.active = true;
    }

    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        for (handle, ..) in self.queue.drain(..) {
            events(Event::Lost(handle));
        }
        if core::mem::take(&mut self.active) {
            events(Event::Down);
        }
    }

    fn link_recovering(&mut self, _now: Time) {}

    fn link_recovered(&mut self, _now: Time) {}

    fn is_active(&self) -> bool {
        self.active
    }

    #[inline]
    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.queue.push_back((handle, shape, false));
    }

    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.queue.push_back((handle, shape, true));
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Unit<H>> {
        let (handle, shape, nullified) = self.queue.pop_front()?;
        *if nullified { &mut self.counters.nullified_sent } else { &mut self.counters.tlps_sent } += 1;
        Some(Unit::Tlp(TlpUnit { nullified, ..TlpUnit::new(handle, shape) }))
    }

    #[inline]
    fn transmitted(&mut self, _now: Time) {}

    #[inline]
    fn expects(&self, tlp: &TlpUnit<H>) -> bool {
        self.active && !tlp.nullified
    }

    /// A TLP that arrives has arrived for both ends: nobody else would tell the sender's owner.
    #[inline]
    fn handle_unit(
        &mut self,
        _now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        let Unit::Tlp(tlp) = unit else { return };
        let event = tlp.arrived(integrity);
        self.counters.count_event(&event);
        events(event);
        if !tlp.nullified {
            events(Event::Acked(tlp.handle));
        }
    }

    #[inline]
    fn release(&mut self, _now: Time, _shape: &TlpShape) {}

    fn handle_timeout(&mut self, _now: Time, _events: &mut impl FnMut(Event<H>)) {}

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        None
    }
}
