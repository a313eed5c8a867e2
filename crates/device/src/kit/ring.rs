//! The device's side of a ring of descriptors in host memory, whose doorbell counts.
//!
//! ```text
//!        done          fetched         tail
//!  ───────┼───────────────┼──────────────┼──────▶  descriptors ever posted, modulo 2^32
//!   over     under way       waiting
//! ```
//!
//! Software writes descriptors and then the tail: how many it has ever posted. The device fetches what waits in batches, one read at a time,
//! none of which goes over the end of the ring; when the work of the oldest descriptors is over, its head moves on.
//!
//! ```
//! use tlplab_device::{Action, Context, OpId, kit::{Batch, Ring}};
//! use tlplab_units::Time;
//!
//! let (mut next_op, mut actions) = (0, Vec::new());
//! let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
//! let mut ring = Ring::new(0, 16); // stream 0, descriptors of 16 B
//! ring.fetch(&mut cx, 0x1000, 4, 3, 8); // at 0x1000, 4 entries, 3 posted, at most 8 at once
//! assert_eq!(ring.over(OpId(0)), Some(Batch { address: 0x1000, count: 3 }));
//! ring.advance(3); // they are here …
//! ring.finish(); // … and one is done
//! ring.fetch(&mut cx, 0x1000, 4, 5, 8); // two more: one before the end of the ring, one behind it
//! assert_eq!(ring.over(OpId(1)), Some(Batch { address: 0x1030, count: 1 }));
//! assert_eq!((ring.fetched(), ring.done()), (3, 1));
//! ```

use crate::contract::{Context, OpId};

/// Descriptors that follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The address of the first.
    pub address: u64,
    /// Their number.
    pub count: u32,
}

/// The progress of the device with a ring; see the [module](self).
#[derive(Clone, Debug)]
pub struct Ring {
    stream: u16,
    bytes: u32,
    fetched: u32,
    done: u32,
    fetch: Option<(OpId, Batch)>,
}

impl Ring {
    /// A ring of which nothing is fetched. `stream` is that of fetches, a descriptor has so many bytes.
    pub fn new(stream: u16, bytes: u32) -> Self {
        Self { stream, bytes, fetched: 0, done: 0, fetch: None }
    }
    /// Descriptors ever fetched, modulo 2^32.
    #[inline]
    pub fn fetched(&self) -> u32 {
        self.fetched
    }
    /// Descriptors ever done, modulo 2^32: the head.
    #[inline]
    pub fn done(&self) -> u32 {
        self.done
    }
    /// True if descriptors are on their way.
    #[inline]
    pub fn is_fetching(&self) -> bool {
        self.fetch.is_some()
    }
    /// The address of the descriptor with that number in a ring of this many entries.
    #[inline]
    pub fn address(&self, base: u64, entries: u32, number: u32) -> u64 {
        base.wrapping_add(u64::from(number % entries.max(1)) * u64::from(self.bytes))
    }

    /// Fetches what waits of a ring at `base`, `most` at once, unless a fetch is under way. A ring without entries has none.
    pub fn fetch(&mut self, cx: &mut Context<'_>, base: u64, entries: u32, tail: u32, most: u32) {
        if self.fetch.is_some() || entries == 0 {
            return;
        }
        let until_end = entries - self.fetched % entries;
        let count = tail.wrapping_sub(self.fetched).min(most).min(until_end);
        if count > 0 {
            let address = self.address(base, entries, self.fetched);
            let op = cx.dma_read_control(self.stream, address, u64::from(count) * u64::from(self.bytes));
            self.fetch = Some((op, Batch { address, count }));
        }
    }
    /// A read is over: what it fetched. `None` if it was none of this ring's.
    #[inline]
    pub fn over(&mut self, op: OpId) -> Option<Batch> {
        self.fetch.take_if(|(fetch, _)| *fetch == op).map(|(_, batch)| batch)
    }
    /// The device has the next descriptors, or has given them up.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        self.fetched = self.fetched.wrapping_add(count);
    }
    /// The oldest descriptor is done.
    #[inline]
    pub fn finish(&mut self) {
        self.done = self.done.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Action;
    use proptest::prelude::*;
    use tlplab_units::Time;

    const BASE: u64 = 0x4000;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Post(u32),
        Fetch(u32),
        Answer,
        Finish,
    }

    proptest! {
        /// Software never posts more than the ring has room for, as the head tells it.
        #[test]
        fn indices_never_run_past_each_other(
            log2 in 0u32..5,
            first in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
            steps in proptest::collection::vec(prop_oneof![
                (0u32..20).prop_map(Step::Post),
                (0u32..10).prop_map(Step::Fetch),
                Just(Step::Answer),
                Just(Step::Finish),
            ], 0..300),
        ) {
            let entries = 1 << log2;
            let mut ring = Ring { fetched: first, done: first, ..Ring::new(3, 16) };
            let (mut tail, mut next_op, mut under_way) = (first, 0, Vec::new());
            // The numbers of the descriptors that have to be fetched and done next.
            let (mut next, mut oldest) = (first, first);
            for step in steps {
                let mut actions = Vec::new();
                let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
                let mut expected = 0;
                match step {
                    Step::Post(count) => {
                        tail = tail.wrapping_add(count.min(entries - tail.wrapping_sub(ring.done())));
                    }
                    Step::Fetch(most) => {
                        let free = under_way.is_empty();
                        let together = most.min(entries - next % entries);
                        expected = if free { tail.wrapping_sub(next).min(together) } else { 0 };
                        ring.fetch(&mut cx, BASE, entries, tail, most);
                    }
                    Step::Answer => if let Some(op) = under_way.pop() {
                        let batch = ring.over(op).expect("its own read");
                        prop_assert_eq!(ring.over(op), None);
                        for number in 0..batch.count {
                            let place = next % entries;
                            prop_assert_eq!(batch.address + u64::from(number) * 16, BASE + u64::from(place) * 16);
                            next = next.wrapping_add(1);
                        }
                        ring.advance(batch.count);
                    },
                    Step::Finish => if ring.done() != ring.fetched() {
                        ring.finish();
                        oldest = oldest.wrapping_add(1);
                    },
                }
                prop_assert_eq!(actions.len(), usize::from(expected > 0), "what waits is fetched");
                for action in actions {
                    let Action::DmaRead { op, stream: 3, address, bytes, carry: true } = action else {
                        panic!("a fetch, as bytes in every run: {action:?}")
                    };
                    prop_assert_eq!(bytes, u64::from(expected) * 16);
                    prop_assert!(address >= BASE && address + bytes <= BASE + u64::from(entries) * 16);
                    under_way.push(op);
                }
                prop_assert!(under_way.len() <= 1 && ring.is_fetching() == (under_way.len() == 1));
                prop_assert_eq!((ring.fetched(), ring.done()), (next, oldest));
                let (done, posted) = (ring.fetched().wrapping_sub(ring.done()), tail.wrapping_sub(ring.done()));
                prop_assert!(done <= posted && posted <= entries);
            }
        }
    }

    #[test]
    fn a_ring_without_entries_or_without_room_is_left_alone() {
        let (mut next_op, mut actions) = (0, Vec::new());
        let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
        let mut ring = Ring::new(0, 16);
        ring.fetch(&mut cx, 0, 0, 5, 8);
        ring.fetch(&mut cx, 0, 4, 5, 0);
        ring.fetch(&mut cx, 0, 4, 0, 8);
        assert!(actions.is_empty() && !ring.is_fetching());
        assert_eq!(ring.over(OpId(0)), None);
    }
}
