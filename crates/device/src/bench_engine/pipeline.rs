//! What an operation passes on its way through the engine: issue, transmission, the fabric, completion.

use crate::bench_engine::profile::time_of;
use crate::bench_engine::{EngineProfile, Interface};
use crate::contract::{Context, OpId};
use std::collections::VecDeque;
use tlplab_transaction::Payload;
use tlplab_transaction::split::{RequestPolicy, split_request};
use tlplab_units::{Duration, Time};

/// An operation of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) write: bool,
    pub(super) address: u64,
    pub(super) size: u64,
}

/// What the engine waits for with a timer. The slot of an operation goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An operation has been issued: its TLPs may go.
    Issued(u32),
    /// The transmitter is free.
    Transmit,
    /// An operation is over.
    Over(u32),
    /// The next operation may begin.
    Next,
}

impl Step {
    pub(super) fn id(self) -> u64 {
        match self {
            Self::Issued(slot) => u64::from(slot),
            Self::Transmit => 1 << 32,
            Self::Over(slot) => 2 << 32 | u64::from(slot),
            Self::Next => 3 << 32,
        }
    }
    pub(super) fn of(id: u64) -> Self {
        match id >> 32 {
            0 => Self::Issued(id as u32),
            1 => Self::Transmit,
            2 => Self::Over(id as u32),
            _ => Self::Next,
        }
    }
}

/// A request that waits for the transmitter.
#[derive(Clone, Copy, Debug)]
struct Piece {
    slot: u32,
    write: bool,
    address: u64,
    bytes: u64,
    last: bool,
}

/// Bytes of a request on the wire besides its data: framing, sequence number, LCRC and a header with a 64-bit address.
const OVERHEAD: u64 = 24;
/// Streams of reads and writes: they do not wait for each other.
const READS: u16 = 0;
const WRITES: u16 = 1;

pub(super) struct Pipeline {
    profile: EngineProfile,
    interface: Interface,
    device_offset: u64,
    /// When the engine can begin another operation.
    free: Time,
    /// When the device's memory can take more of what was read.
    memory_free: Time,
    transmit_free: Time,
    transmitting: bool,
    waiting: VecDeque<Piece>,
    /// The operation in each slot.
    slots: Vec<Operation>,
    /// What is under way in the fabric, oldest first: of a write, its last request.
    under_way: VecDeque<(OpId, u32)>,
}

impl Pipeline {
    pub(super) fn new(profile: EngineProfile, interface: Interface, device_offset: u64) -> Self {
        let none = Operation { write: false, address: 0, size: 0 };
        let slots = match interface {
            Interface::Command => profile.command.slots,
            Interface::Dma => profile.dma.slots,
        };
        Self {
            profile,
            interface,
            device_offset,
            free: Time::ZERO,
            memory_free: Time::ZERO,
            transmit_free: Time::ZERO,
            transmitting: false,
            waiting: VecDeque::new(),
            slots: vec![none; slots as usize],
            under_way: VecDeque::with_capacity(slots as usize),
        }
    }

    /// Operations that it takes at once.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// An operation begins, now or as soon as the engine is free.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, slot: u32, operation: Operation) {
        self.slots[slot as usize] = operation;
        let start = self.free.max(cx.now());
        let issue = match self.interface {
            Interface::Command => self.profile.command.issue,
            Interface::Dma => {
                let dma = &self.profile.dma;
                self.free = start + dma.occupies(self.device_offset, operation.size);
                let inside = if operation.write { operation.size } else { 0 };
                dma.issue + time_of(inside, dma.internal_rate)
            }
        };
        if start + issue == cx.now() {
            self.issued(cx, slot);
        } else {
            cx.timer(start + issue, Step::Issued(slot).id());
        }
    }

    /// An operation has been issued: its requests wait for the transmitter.
    pub(super) fn issued(&mut self, cx: &mut Context<'_>, slot: u32) {
        let Operation { write, address, size } = self.slots[slot as usize];
        if write {
            for chunk in split_request(address, size, self.profile.mps, RequestPolicy::Aligned) {
                let bytes = u64::from(chunk.bytes);
                let last = chunk.offset + bytes == size;
                self.waiting.push_back(Piece { slot, write, address: chunk.address, bytes, last });
            }
        } else {
            self.waiting.push_back(Piece { slot, write, address, bytes: size, last: true });
        }
        if !self.transmitting {
            self.transmit(cx);
        }
    }

    /// The transmitter takes requests while it is free.
    pub(super) fn transmit(&mut self, cx: &mut Context<'_>) {
        self.transmitting = false;
        while let Some(piece) = self.waiting.front().copied() {
            if self.transmit_free > cx.now() {
                self.transmitting = true;
                return cx.timer(self.transmit_free, Step::Transmit.id());
            }
            self.waiting.pop_front();
            let carried = if piece.write { piece.bytes } else { 0 };
            self.transmit_free = cx.now() + time_of(OVERHEAD + carried, self.profile.transmit);
            let op = if piece.write {
                cx.dma_write(WRITES, piece.address, Payload::Length(piece.bytes))
            } else {
                cx.dma_read(READS, piece.address, piece.bytes)
            };
            if piece.last {
                self.under_way.push_back((op, piece.slot));
            }
        }
    }

    /// The fabric is done with an operation of its own: the slot of the engine's operation that ends with it now, if one does.
    pub(super) fn done(&mut self, cx: &mut Context<'_>, op: OpId) -> Option<u32> {
        let index = self.under_way.iter().position(|(under_way, _)| *under_way == op)?;
        let (_, slot) = self.under_way.remove(index)?;
        let Operation { write, size, .. } = self.slots[slot as usize];
        let completion = match self.interface {
            Interface::Command => self.profile.command.completion,
            Interface::Dma => {
                self.profile.dma.completion + self.moves(cx.now(), if write { 0 } else { size })
            }
        };
        if completion.is_zero() {
            return Some(slot);
        }
        cx.timer(cx.now() + completion, Step::Over(slot).id());
        None
    }

    /// What was read moves to the device's memory, one operation after the other.
    fn moves(&mut self, now: Time, bytes: u64) -> Duration {
        self.memory_free = self.memory_free.max(now) + time_of(bytes, self.profile.dma.internal_rate);
        self.memory_free.saturating_since(now)
    }
}
