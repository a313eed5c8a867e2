//! The amount that a lane writes before it asks whether it has been taken: writes are posted, and what does not fit the adapter's socket is lost.

use super::{Direction, PerfConfig};
use std::collections::VecDeque;

/// Most bytes between two flushes, as in [`Context::dma_write`](crate::Context::dma_write).
const BYTES: u32 = 32 << 10;
/// Most requests: the kernel counts more for a small datagram than its bytes.
const REQUESTS: u32 = 128;

/// The pace of one lane.
pub(super) struct Pace {
    paced: bool,
    mps: u32,
    bytes: u32,
    requests: u32,
    flushing: bool,
    /// Bytes that a flush reads: none, unless that is not answered.
    flush_bytes: u64,
    /// True if one has been answered.
    answered: bool,
    /// Slots that wait for the flush, in order.
    waiting: VecDeque<u32>,
}

impl Pace {
    pub(super) fn new(config: &PerfConfig) -> Self {
        Self {
            paced: config.paced && config.direction == Direction::Write,
            mps: config.endpoint.mps.bytes(),
            bytes: 0,
            requests: 0,
            flushing: false,
            flush_bytes: 0,
            answered: false,
            waiting: VecDeque::new(),
        }
    }

    /// The part of `left` bytes that may be sent now; `None` makes the slot wait for a flush.
    pub(super) fn admit(&mut self, slot: u32, left: u32) -> Option<u32> {
        if !self.paced {
            return Some(left);
        }
        let bytes = left.min(BYTES);
        let requests = bytes.div_ceil(self.mps);
        let full = self.bytes + bytes > BYTES || self.requests + requests > REQUESTS.max(requests);
        if self.flushing || full && self.bytes > 0 {
            self.waiting.push_back(slot);
            return None;
        }
        self.bytes += bytes;
        self.requests += requests;
        Some(bytes)
    }

    /// The bytes that a flush reads, if none is under way.
    pub(super) fn begin_flush(&mut self) -> Option<u64> {
        let begins = !self.flushing;
        self.flushing = true;
        begins.then_some(self.flush_bytes)
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.flushing
    }

    /// A flush was not answered: another kind is tried first (the published memory answers no read without bytes), then it must have been answered
    /// before.
    pub(super) fn tolerate(&mut self) -> bool {
        let goes_on = self.answered || self.flush_bytes == 0;
        if !self.answered {
            self.flush_bytes = 1;
        }
        goes_on
    }

    /// The operation of this slot has failed: it waits for no flush.
    pub(super) fn forget(&mut self, slot: u32) {
        self.waiting.retain(|waiting| *waiting != slot);
    }

    /// A flush was answered.
    pub(super) fn take_answer(&mut self) {
        self.answered = true;
    }

    /// It is over; who waited for it.
    pub(super) fn end_flush(&mut self) -> VecDeque<u32> {
        (self.bytes, self.requests, self.flushing) = (0, 0, false);
        std::mem::take(&mut self.waiting)
    }
}
