//! TLPs live in a slab and travel as handles.

use crate::kernel::ids::{FlowId, NodeId};
use crate::packet::attribution::Ledger;
use crate::packet::flaw::Flaw;
use crate::packet::transactions::TransactionRef;
use tlplab_datalink::TlpShape;
use tlplab_transaction::Payload;
use tlplab_units::FcClass;
use tlplab_wire::tlp::{CompletionStatus, Repr};

/// A TLP in the slab, as a data link layer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlpHandle(u32);

/// A queue of requests: a port's, or (numbered after the ports) that of the root complex towards memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue(pub(crate) u16);

/// A place among the few that a node has for TLPs of a class that wait further on: behind a passage of the root complex, or at an egress of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) node: NodeId,
    /// The number of the passage, of the egress, or of the turn.
    pub(crate) at: u8,
    pub(crate) class: FcClass,
}

/// A TLP on its way. It is referenced by the queue it waits in and by the replay buffers that hold it.
#[derive(Clone)]
pub(crate) struct Tlp {
    pub(crate) repr: Repr,
    pub(crate) payload: Payload,
    pub(crate) shape: TlpShape,
    pub(crate) flow: FlowId,
    /// The transaction it belongs to, if it is accounted to one.
    pub(crate) transaction: Option<TransactionRef>,
    /// The ledger of its time; meaningful while it is on a transaction's critical path.
    pub(crate) ledger: Ledger,
    pub(crate) tracked: bool,
    /// A posted request whose transaction waits for its arrival.
    pub(crate) awaited: bool,
    /// The answer needs its data even in a length-only run.
    pub(crate) carry: bool,
    /// The refusal of the request, while the refusal is on its way.
    pub(crate) refusal: Option<CompletionStatus>,
    /// The damage by a fault that `repr` cannot express.
    pub(crate) flaw: Option<Flaw>,
    /// The number of the read that a device has still to answer; 0: none.
    pub(crate) question: u32,
    /// No TLP of its operation follows.
    pub(crate) last_of_op: bool,
    /// The port buffer in which it has a place among the requests.
    pub(crate) queued: Option<Queue>,
    /// The function that made it, if its port has several.
    pub(crate) maker: Option<NodeId>,
    /// The device that has yet to answer it.
    pub(crate) asks: Option<NodeId>,
    /// The place that it takes while it waits further on.
    pub(crate) held: Option<Hold>,
    /// Its requester was reset meanwhile, so nobody waits for the completion; of a message about a legacy interrupt, the link that it came by went down.
    pub(crate) orphaned: bool,
    references: u16,
}

/// The shape of a TLP that the data link layer needs.
pub(crate) fn shape_of(repr: &Repr) -> TlpShape {
    TlpShape {
        vc: tlplab_units::Vc::ZERO,
        class: repr.fc_class(),
        bytes: repr.wire_bytes(),
        data_credits: repr.data_credits(),
    }
}

#[derive(Clone, Default)]
pub(crate) struct TlpSlab {
    slots: Vec<Tlp>,
    free: Vec<u32>,
    /// Reads that devices were asked to answer.
    questions: u32,
}

impl TlpSlab {
    /// Stores a TLP with one reference. Slots are reused, so a steady run does not allocate.
    pub(crate) fn insert(&mut self, repr: Repr, payload: Payload, flow: FlowId) -> TlpHandle {
        let shape = shape_of(&repr);
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.repr = repr;
            slot.payload = payload;
            slot.shape = shape;
            slot.flow = flow;
            slot.transaction = None;
            (slot.tracked, slot.awaited, slot.carry, slot.last_of_op) = (false, false, false, false);
            (slot.refusal, slot.flaw, slot.queued, slot.held) = (None, None, None, None);
            slot.question = 0;
            (slot.maker, slot.asks, slot.orphaned) = (None, None, false);
            slot.references = 1;
            return TlpHandle(index);
        }
        self.slots.push(Tlp {
            repr,
            payload,
            shape,
            flow,
            transaction: None,
            ledger: Ledger::default(),
            tracked: false,
            awaited: false,
            carry: false,
            refusal: None,
            flaw: None,
            question: 0,
            last_of_op: false,
            queued: None,
            maker: None,
            asks: None,
            held: None,
            orphaned: false,
            references: 1,
        });
        TlpHandle(self.slots.len() as u32 - 1)
    }

    pub(crate) fn get(&self, handle: TlpHandle) -> &Tlp {
        &self.slots[handle.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, handle: TlpHandle) -> &mut Tlp {
        &mut self.slots[handle.0 as usize]
    }

    /// A read waits for the answer of a device. The token names this waiting, which no other one shares.
    pub(crate) fn ask(&mut self, handle: TlpHandle) -> u64 {
        self.questions = self.questions.wrapping_add(1).max(1);
        self.get_mut(handle).question = self.questions;
        u64::from(self.questions) << 32 | handle.to_event()
    }

    /// True if a read waits for an answer under this token.
    pub(crate) fn is_asked(&self, token: u64) -> bool {
        let tlp = self.slots.get(token as u32 as usize);
        tlp.is_some_and(|tlp| tlp.question != 0 && tlp.question == (token >> 32) as u32)
    }

    /// The read that waits for an answer under a token, which is over now; `None` if it was answered already, or is gone.
    pub(crate) fn answered(&mut self, token: u64) -> Option<TlpHandle> {
        let handle = TlpHandle(token as u32);
        let tlp = self.slots.get_mut(handle.0 as usize)?;
        let waits = tlp.question != 0 && tlp.question == (token >> 32) as u32;
        waits.then(|| {
            tlp.question = 0;
            handle
        })
    }

    /// Two different TLPs at once.
    pub(crate) fn pair_mut(&mut self, a: TlpHandle, b: TlpHandle) -> (&mut Tlp, &mut Tlp) {
        let [a, b] = self
            .slots
            .get_disjoint_mut([a.0 as usize, b.0 as usize])
            .expect("two different TLPs of this slab");
        (a, b)
    }

    pub(crate) fn hold(&mut self, handle: TlpHandle) {
        self.get_mut(handle).references += 1;
    }

    /// Drops a reference. Returns the transaction of a TLP that is gone on the critical path, and whether it is a posted request that
    /// has not arrived. Its ledger stays until its place is taken.
    pub(crate) fn release(&mut self, handle: TlpHandle) -> Option<(TransactionRef, bool)> {
        let tlp = self.get_mut(handle);
        tlp.references -= 1;
        if tlp.references > 0 {
            return None;
        }
        tlp.payload = Payload::EMPTY;
        tlp.question = 0;
        let (awaited, on_its_way) = (tlp.awaited, tlp.tracked && tlp.shape.class != FcClass::Posted);
        let gone = tlp.transaction.take().filter(|_| awaited || on_its_way);
        self.free.push(handle.0);
        gone.map(|transaction| (transaction, awaited))
    }

    /// True if there is a TLP with this handle, perhaps another than before.
    pub(crate) fn is_live(&self, handle: TlpHandle) -> bool {
        self.get(handle).references > 0
    }

    /// The TLPs that exist.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (TlpHandle, &mut Tlp)> {
        let all = (0..).map(TlpHandle).zip(&mut self.slots);
        all.filter(|(_, tlp)| tlp.references > 0)
    }

    /// The number of TLPs.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl TlpHandle {
    pub(crate) fn to_event(self) -> u64 {
        u64::from(self.0)
    }
    pub(crate) fn from_event(data: u64) -> Self {
        Self(data as u32)
    }
}
