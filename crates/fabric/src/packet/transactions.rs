//! Transactions under way.
//!
//! A transaction is one operation of a device or the processor: a DMA read or write of any size, an MMIO access, an interrupt. It ends
//! when its last byte has arrived.

use crate::kernel::ids::{FlowId, NodeId};
use crate::packet::attribution::{Ledger, Snapshot};
use tlplab_device::OpId;
use tlplab_units::Time;

/// A transaction: its place in the slab, and a number that tells it from others that had or will have this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransactionRef {
    index: u32,
    generation: u32,
}

/// The ending of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All data arrived.
    Done,
    /// Unsupported request.
    Unsupported,
    /// Completer abort.
    Aborted,
    /// The data came marked as bad.
    Poisoned,
    /// No completion in time.
    TimedOut,
    /// A reset of its requester ended it, or it was posted and lost with a link, or nobody claimed it.
    Lost,
    /// A completion contradicted its request.
    Malformed,
}

impl Ending {
    /// Its name in documents.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unsupported => "ur",
            Self::Aborted => "ca",
            Self::Poisoned => "poisoned",
            Self::TimedOut => "timeout",
            Self::Lost => "lost",
            Self::Malformed => "malformed",
        }
    }
}

/// A transaction under way.
#[derive(Clone)]
pub(crate) struct Transaction {
    /// Unique in the run.
    pub(crate) number: u64,
    /// Its node.
    pub(crate) node: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) started: Time,
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) read: bool,
    /// Of posted writes: nobody answers.
    pub(crate) posted: bool,
    /// Posted TLPs that have not arrived yet.
    pub(crate) pending: u32,
    /// The requester has more TLPs to make of it.
    pub(crate) issuing: bool,
    pub(crate) ending: Ending,
    /// The state of its egress at its start.
    pub(crate) snapshot: Snapshot,
    /// The time at which it reached the requester: its owner's processing is over.
    pub(crate) submitted: Time,
    /// The owner's name for it.
    pub(crate) op: OpId,
    /// The program of its node that owns it.
    pub(crate) owner: u16,
    /// The answer needs its data even in a length-only run.
    pub(crate) carry: bool,
    /// The ledger of a TLP of it that is gone without an effect.
    pub(crate) gone: Option<Ledger>,
}

/// The number of no transaction: of a slot that is free.
const OVER: u64 = u64::MAX;

/// Transactions under way, in a slab.
#[derive(Clone, Default)]
pub(crate) struct Transactions {
    slots: Vec<Transaction>,
    free: Vec<u32>,
    started: u64,
}

impl Transactions {
    /// Opens a transaction; its slot keeps the allocation of its snapshot.
    pub(crate) fn open(
        &mut self,
        node: NodeId,
        flow: FlowId,
        started: Time,
        read: bool,
        address: u64,
        bytes: u64,
    ) -> TransactionRef {
        let number = self.started;
        self.started += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Transaction {
                number,
                node,
                flow,
                started,
                bytes,
                address,
                read,
                posted: false,
                pending: 0,
                issuing: true,
                ending: Ending::Done,
                snapshot: Snapshot::default(),
                submitted: started,
                op: OpId(0),
                owner: 0,
                carry: false,
                gone: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        (slot.number, slot.flow, slot.started, slot.bytes) = (number, flow, started, bytes);
        (slot.address, slot.read, slot.pending, slot.issuing) = (address, read, 0, true);
        (slot.node, slot.submitted) = (node, started);
        (slot.ending, slot.posted, slot.gone) = (Ending::Done, false, None);
        TransactionRef { index, generation: number as u32 }
    }

    pub(crate) fn get(&mut self, transaction: TransactionRef) -> &mut Transaction {
        &mut self.slots[transaction.index as usize]
    }

    /// Its number, as long as it is under way.
    pub(crate) fn number(&self, transaction: TransactionRef) -> Option<u64> {
        let number = self.slots[transaction.index as usize].number;
        (number != OVER && number as u32 == transaction.generation).then_some(number)
    }

    pub(crate) fn close(&mut self, transaction: TransactionRef) {
        self.slots[transaction.index as usize].number = OVER;
        self.free.push(transaction.index);
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Bytes that a memory request really writes.
pub(crate) fn data_bytes(repr: &tlplab_wire::tlp::Repr) -> u64 {
    tlplab_transaction::memory_access(repr).map_or(0, |access| u64::from(access.bytes))
}
