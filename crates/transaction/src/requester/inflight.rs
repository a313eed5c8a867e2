//! The requests that wait for completions: one slot per tag, in a list by the time they left.

use crate::error::CompletionError;
use tlplab_units::{Duration, Time, TrafficClass};
use tlplab_wire::tlp::{Attributes, Kind, Repr};

/// The completions that a request lets expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A memory read: data in any number of completions, with byte count and lower address.
    Memory { locked: bool, zero_length: bool },
    /// An atomic: its operand; the lower address is reserved (PCIe 5.0 §2.2.9).
    Operand,
    /// IO or configuration read: one doubleword, byte count 4, lower address 0 (§2.2.9).
    Register,
    /// A write that is completed: no data.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Live,
    /// Abandoned: its completions are late.
    Resting,
}

/// A tag's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// Index of the operation it belongs to.
    pub(super) operation: u32,
    /// Address of the next byte to come.
    pub(super) address: u64,
    /// Byte Count of the next completion.
    pub(super) left: u32,
    /// Place of the next byte in the operation.
    pub(super) offset: u64,
    pub(super) answer: Answer,
    /// Only configuration requests may be answered by RRS.
    pub(super) config: bool,
    pub(super) class: TrafficClass,
    pub(super) relaxed_ordering: bool,
    pub(super) no_snoop: bool,
    pub(super) sent: Time,
    /// Poisoned data came; the remaining completions are still awaited.
    pub(super) error: Option<CompletionError>,
    /// The number of times that it may still be issued again.
    pub(super) retries: u8,
    previous: u16,
    next: u16,
}

const NONE: u16 = u16::MAX;

impl Slot {
    const FREE: Self = Self {
        state: State::Free,
        operation: 0,
        address: 0,
        left: 0,
        offset: 0,
        answer: Answer::Nothing,
        config: false,
        class: TrafficClass::ZERO,
        relaxed_ordering: false,
        no_snoop: false,
        sent: Time::ZERO,
        error: None,
        retries: 0,
        previous: NONE,
        next: NONE,
    };

    /// The same request, issued again at `sent`.
    pub(super) fn again(self, sent: Time) -> Self {
        Self { sent, retries: self.retries - 1, ..self }
    }

    /// The slot of a non-posted request that leaves now; `offset` is its place in the operation.
    pub(super) fn new(repr: &Repr, operation: u32, offset: u64, sent: Time) -> Self {
        let (answer, address, left) = match repr.kind() {
            Kind::MemRead { span, locked, .. } => (
                Answer::Memory { locked: *locked, zero_length: span.is_zero_length() },
                span.first_byte(),
                span.byte_count(),
            ),
            Kind::AtomicOp { target, .. } => (Answer::Operand, target.address(), target.operand_bytes()),
            Kind::IoRead { port, .. } => (Answer::Register, u64::from(port.address()), 4),
            Kind::CfgRead { target, .. } => (Answer::Register, u64::from(target.register()), 4),
            Kind::IoWrite { port, .. } => (Answer::Nothing, u64::from(port.address()), 4),
            Kind::CfgWrite { target, .. } => (Answer::Nothing, u64::from(target.register()), 4),
            Kind::DeferrableMemWrite { span, .. } => (Answer::Nothing, span.first_byte(), 4),
            Kind::MemWrite { .. } | Kind::Message(_) | Kind::Completion(_) => {
                unreachable!("{} has no completion", repr.name())
            }
        };
        let &Attributes { tc, relaxed_ordering, no_snoop, .. } = repr.attributes();
        let config = matches!(repr.kind(), Kind::CfgRead { .. } | Kind::CfgWrite { .. });
        let state = State::Live;
        Self {
            state,
            operation,
            address,
            left,
            offset,
            answer,
            config,
            class: tc,
            relaxed_ordering,
            no_snoop,
            sent,
            ..Self::FREE
        }
    }
}

/// One slot per tag. Live slots form a list, oldest first: every request has the same time limit, so that is the order of deadlines.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    oldest: u16,
    newest: u16,
    live: usize,
}

impl InFlight {
    pub(super) fn new(tags: u16) -> Self {
        Self { slots: vec![Slot::FREE; usize::from(tags)], oldest: NONE, newest: NONE, live: 0 }
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }
    pub(super) fn get(&self, index: usize) -> &Slot {
        &self.slots[index]
    }
    pub(super) fn get_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }
    /// The index of the oldest live slot.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(usize::from(self.oldest))
    }
    /// The time at which the oldest request exceeds `limit`.
    pub(super) fn deadline(&self, limit: Duration) -> Option<Time> {
        self.oldest().map(|index| self.slots[index].sent + limit)
    }

    /// The send times of all slots.
    pub(super) fn times(&mut self) -> impl Iterator<Item = &mut Time> {
        self.slots.iter_mut().map(|slot| &mut slot.sent)
    }

    pub(super) fn insert(&mut self, index: usize, slot: Slot) {
        debug_assert!(self.slots[index].state == State::Free);
        self.slots[index] = Slot { previous: self.newest, next: NONE, ..slot };
        match self.newest {
            NONE => self.oldest = index as u16,
            newest => self.slots[usize::from(newest)].next = index as u16,
        }
        self.newest = index as u16;
        self.live += 1;
    }

    /// Takes a live slot out of the list and gives it another state.
    pub(super) fn remove(&mut self, index: usize, state: State) {
        let Slot { previous, next, state: was, .. } = self.slots[index];
        debug_assert!(was == State::Live && state != State::Live);
        match previous {
            NONE => self.oldest = next,
            previous => self.slots[usize::from(previous)].next = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.slots[usize::from(next)].previous = previous,
        }
        self.slots[index].state = state;
        self.live -= 1;
    }

    /// A resting slot is free again.
    pub(super) fn wake(&mut self, index: usize) {
        debug_assert!(self.slots[index].state == State::Resting);
        self.slots[index].state = State::Free;
    }
}
