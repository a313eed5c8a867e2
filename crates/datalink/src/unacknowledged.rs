//! The smallest custom data link layer: a function decides about each TLP that arrives.

use crate::event::{Event, Integrity, TlpShape, TlpUnit, Unit};
use crate::{CustomLinkLayer, LinkLayer};
use alloc::collections::VecDeque;
use tlplab_units::Time;

/// A data link layer without credits, acknowledgement and replay. TLPs leave in order; for each that arrives a function gives its event, as
/// [`TlpUnit::arrived`] does: delivered, or discarded and so lost.
pub struct Unacknowledged<H, R> {
    up: bool,
    queue: VecDeque<TlpUnit<H>>,
    receive: R,
}

impl<H: Copy, R: FnMut(&TlpUnit<H>, Integrity) -> Event<H>> Unacknowledged<H, R> {
    /// A layer whose link is down.
    pub const fn new(receive: R) -> Self {
        Self { up: false, queue: VecDeque::new(), receive }
    }
}

impl<H: Copy, R: FnMut(&TlpUnit<H>, Integrity) -> Event<H>> LinkLayer<H> for Unacknowledged<H, R> {
    fn link_up(&mut self, _now: Time) {
        self.up = true;
    }
    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        self.up = false;
        self.queue.drain(..).for_each(|tlp| events(Event::Lost(tlp.handle)));
    }
    fn is_active(&self) -> bool {
        self.up
    }
    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.queue.push_back(TlpUnit::new(handle, shape));
    }
    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.queue.push_back(TlpUnit { nullified: true, ..TlpUnit::new(handle, shape) });
    }
    fn poll_transmit(&mut self, _now: Time) -> Option<Unit<H>> {
        self.queue.pop_front().map(Unit::Tlp)
    }
    fn handle_unit(
        &mut self,
        _now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        let Unit::Tlp(tlp) = unit else { return };
        events((self.receive)(tlp, integrity));
        if !tlp.nullified {
            // For the sender, which keeps nothing.
            events(Event::Acked(tlp.handle));
        }
    }
}

impl<H: Copy + Send + 'static, R> CustomLinkLayer<H> for Unacknowledged<H, R> where
    R: FnMut(&TlpUnit<H>, Integrity) -> Event<H> + Send + 'static
{
}
