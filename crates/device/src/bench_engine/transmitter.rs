//! The way to the link, which reads and writes share: one TLP after the other, in whole beats.
//!
//! On the link itself TLPs are as long as its alignment says. What the device adds are beats in which nothing goes, Acks that take beats, and
//! that a TLP is not given to the link while the one before it is on its way.

use crate::bench_engine::Transmission;
use crate::bench_engine::step::Step;
use crate::contract::{Context, OpId};
use std::collections::VecDeque;
use tlplab_transaction::Payload;

/// Streams of reads and writes: they do not wait for each other behind the engine.
const READS: u16 = 0;
const WRITES: u16 = 1;
/// Bytes of a request on the wire besides its data: framing, sequence number, LCRC and a header with a 64-bit address.
const OVERHEAD: u64 = 24;

/// A TLP that waits for the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Read,
    Write {
        /// Beats after it in which nothing goes.
        idle: u64,
        /// The last of its operation.
        last: bool,
    },
}

pub(super) struct Transmitter {
    profile: Transmission,
    waiting: VecDeque<Request>,
    /// Writes that were given to the link and have not been accepted: one at a time, if a TLP takes time here.
    given: VecDeque<Request>,
    /// A timer will tell when the way is free.
    busy: bool,
    /// Reads that have left, in their order, for who wants to know by which name they come back.
    left: VecDeque<OpId>,
}

impl Transmitter {
    pub(super) fn new(profile: Transmission) -> Self {
        Self { profile, waiting: VecDeque::new(), given: VecDeque::new(), busy: false, left: VecDeque::new() }
    }

    pub(super) fn push(&mut self, cx: &mut Context<'_>, request: Request) {
        self.waiting.push_back(request);
        self.send(cx);
    }

    /// Sends waiting TLPs while the path is free.
    fn send(&mut self, cx: &mut Context<'_>) {
        while !self.busy && (self.given.is_empty() || self.profile.beat_time.is_zero()) {
            let Some(request) = self.waiting.pop_front() else { return };
            let Request { address, bytes, kind } = request;
            match kind {
                Kind::Write { .. } => {
                    cx.dma_write(WRITES, address, Payload::Length(bytes));
                    self.given.push_back(request);
                }
                Kind::Read => {
                    self.left.push_back(cx.dma_read(READS, address, bytes));
                    self.occupy(cx, 0, self.profile.acks(bytes));
                }
            }
        }
    }

    /// A request with so many doublewords of data keeps the way for its beats and some more.
    fn occupy(&mut self, cx: &mut Context<'_>, doublewords: u64, more: u64) {
        let Transmission { beat, beat_time, .. } = self.profile;
        let time = beat_time * ((OVERHEAD + 4 * doublewords).div_ceil(beat) + more);
        self.busy = !time.is_zero();
        if self.busy {
            Step::Transmit.after(cx, time);
        }
    }

    /// The link has accepted the oldest write that it was given; true if it was the last of its operation.
    pub(super) fn accepted(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(Request { address, bytes, kind: Kind::Write { idle, last } }) = self.given.pop_front()
        else {
            return false;
        };
        self.occupy(cx, (address + bytes).div_ceil(4) - address / 4, idle);
        self.send(cx);
        last
    }

    /// The way is free again.
    pub(super) fn free(&mut self, cx: &mut Context<'_>) {
        self.busy = false;
        self.send(cx);
    }

    /// The oldest read that has left and of which nobody has asked.
    pub(super) fn next_left(&mut self) -> Option<OpId> {
        self.left.pop_front()
    }
}
