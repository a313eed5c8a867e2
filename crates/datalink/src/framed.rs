//! TLPs that are framed one by one: their entries in the replay buffer, and those that are nullified.

use crate::event::{Counters, Event, TLP_FRAMING, TlpShape, TlpUnit};
use crate::replay::{Entry, Outgoing, Replay};
use crate::sequence::TlpNumbers;
use alloc::collections::VecDeque;

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

/// TLPs that go out nullified: before all others, and without a place in the replay buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nullified<H>(VecDeque<(H, TlpShape)>);

impl<H: Copy> Nullified<H> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn push(&mut self, handle: H, shape: TlpShape) {
        self.0.push_back((handle, shape));
    }

    /// Gives all back.
    pub(crate) fn clear(&mut self, events: &mut impl FnMut(Event<H>)) {
        self.0.drain(..).for_each(|(handle, _)| events(Event::Lost(handle)));
    }

    /// The next TLP for the wire: one of these, or the next of `replay`.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        replay: &mut Replay<Kept<H>, TlpNumbers>,
        counters: &mut Counters,
    ) -> Option<TlpUnit<H>> {
        if let Some((handle, shape)) = self.0.pop_front() {
            counters.nullified_sent += 1;
            let sequence = replay.next_sequence();
            return Some(TlpUnit { handle, shape, sequence, replay: false, nullified: true });
        }
        let Outgoing { entry: Kept { handle, shape }, sequence, replay } = replay.poll()?;
        *if replay { &mut counters.tlps_replayed } else { &mut counters.tlps_sent } += 1;
        Some(TlpUnit { handle, shape, sequence, replay, nullified: false })
    }
}
