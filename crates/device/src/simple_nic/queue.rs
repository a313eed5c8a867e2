//! A ring as the device sees it: what was posted, what is fetched, and how far it is.

use super::FETCH;
use super::regs::{Descriptor, LARGEST_RING};
use crate::contract::{Context, DmaError, OpId};
use std::collections::VecDeque;
use tlplab_transaction::Payload;

/// Descriptors that one read fetches at most.
const BATCH: u32 = 8;
/// Descriptors that are held or under way at most.
pub(super) const DEPTH: usize = 64;

/// A descriptor that was fetched, and its place in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    pub(super) address: u64,
    /// `None` if it could not be read.
    pub(super) descriptor: Option<Descriptor>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    base: u64,
    /// 0 for the published protocol.
    size: u32,
    /// Descriptors ever posted, and done.
    tail: u32,
    head: u32,
    /// Places of the descriptors to fetch, in order. At most as many as the ring has.
    wanted: VecDeque<u32>,
    /// The place that is posted next.
    place: u32,
    fetch: Option<(OpId, u64, u32)>,
    /// The descriptors that were fetched and not taken.
    ready: VecDeque<Fetched>,
}

impl Queue {
    pub(super) fn new(base: u64, size: u32) -> Self {
        Self { base, size: size.min(LARGEST_RING), ..Self::default() }
    }

    pub(super) fn is_ring(&self) -> bool {
        self.size > 0
    }
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// The driver has posted; false if it cannot have.
    pub(super) fn doorbell(&mut self, value: u32) -> bool {
        if self.size == 0 {
            let room = self.wanted.len() < DEPTH;
            if room {
                self.wanted.push_back(value);
            }
            return room;
        }
        let (posted, before) = (value.wrapping_sub(self.head), self.tail.wrapping_sub(self.head));
        if posted > self.size || posted < before {
            return false;
        }
        for _ in before..posted {
            self.wanted.push_back(self.place);
            self.place = (self.place + 1) % self.size;
        }
        self.tail = value;
        true
    }

    /// Fetches the next batch if none is on its way and there is room beside the `under_way` that the owner has.
    pub(super) fn fetch(&mut self, cx: &mut Context<'_>, under_way: usize) {
        let room = DEPTH.saturating_sub(under_way + self.ready.len()) as u32;
        let Some(&first) = self.wanted.front().filter(|_| self.fetch.is_none() && room > 0) else { return };
        let in_a_row = self.wanted.iter().zip(first..).take_while(|(place, next)| *place == next);
        let count = in_a_row.take(BATCH.min(room) as usize).count() as u32;
        self.wanted.drain(..count as usize);
        let address = self.base.wrapping_add(u64::from(first) * Descriptor::BYTES);
        let op = cx.dma_read_control(FETCH, address, u64::from(count) * Descriptor::BYTES);
        self.fetch = Some((op, address, count));
    }

    /// A read is over; false if it was none of this queue's.
    pub(super) fn fetched(&mut self, op: OpId, result: &Result<Payload, DmaError>) -> bool {
        let Some((_, first, count)) = self.fetch.take_if(|(fetch, ..)| *fetch == op) else { return false };
        let bytes = result.as_ref().ok().and_then(Payload::bytes).unwrap_or_default();
        let (descriptors, _) = bytes.as_chunks::<{ Descriptor::BYTES as usize }>();
        for number in 0..count {
            let descriptor = descriptors.get(number as usize).map(Descriptor::from_bytes);
            let address = first + u64::from(number) * Descriptor::BYTES;
            self.ready.push_back(Fetched { address, descriptor });
        }
        true
    }

    /// The next descriptor; it stays until it is taken.
    pub(super) fn next(&self) -> Option<Fetched> {
        self.ready.front().copied()
    }
    pub(super) fn take(&mut self) -> Option<Fetched> {
        self.ready.pop_front()
    }
    /// The oldest descriptor that is not done is done.
    pub(super) fn done(&mut self) {
        self.head = self.head.wrapping_add(1);
    }
}
