//! What end points and the processor have in common: operations become TLPs, completions become results.

use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::errors::ErrorKind;
use crate::node::root::processor::{Register, RegisterAccess};
use crate::node::routing::{Route, route_of};
use crate::observe::timeline::Gauge;
use crate::packet::attribution::{Cause, Partition};
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::transactions::{Ending, TransactionRef};
use crate::sim::{Fabric, Task};
use std::collections::VecDeque;
use tlplab_device::{DmaError, OpId};
use tlplab_transaction::{Classes, CompletionError, Outcome, Outgoing, Payload, Progress, Requester};
use tlplab_units::{FcClass, LinkMode, Time};
use tlplab_wire::tlp::{Attributes, Repr, TransactionId};

/// Whom a request of a requester belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticket {
    /// An operation of a device or host program.
    Transaction(TransactionRef),
    /// An access of the processor to a register in configuration or I/O space.
    Register {
        /// Index among those under way.
        index: u32,
        /// The operation.
        transaction: TransactionRef,
    },
    /// An interrupt: accounted to nobody.
    Interrupt(FlowId),
    /// A message about a legacy wire, accounted to nobody, too.
    Wire {
        /// The flow that it goes with.
        flow: FlowId,
        /// 0 to 3 for INTA to INTD.
        wire: u8,
    },
    /// A piece of a peer-to-peer request that the root complex splits.
    Piece {
        /// Index among the requests being split.
        request: u32,
        /// Its first byte in the request.
        offset: u32,
    },
}

/// An operation on its way from its owner to the requester.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) owner: u16,
    pub(crate) stream: u16,
    pub(crate) asked: Time,
    pub(crate) kind: OperationKind,
}

impl Operation {
    /// Bytes of data that it carries.
    fn carried(&self) -> u64 {
        match &self.kind {
            OperationKind::Write { data, .. } => data.len(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum OperationKind {
    Read { op: OpId, address: u64, bytes: u64, carry: bool },
    Write { op: OpId, address: u64, data: Payload },
    Interrupt { address: u64, data: [u8; 4] },
    Intx { asserted: bool },
}

pub(crate) struct Initiator {
    pub(crate) requester: Requester<Ticket>,
    /// Operations that are being processed, in order.
    pub(crate) submissions: VecDeque<Operation>,
    /// Flow of each stream.
    pub(crate) flows: Vec<FlowId>,
    /// When the pending timer event is due.
    pub(crate) timer: Time,
    pub(crate) tags: Gauge,
}

/// TLPs of a class that wait at the egress before the requester makes more: enough that the wire never waits for it.
const STAGED: usize = 2;
/// The same where a flit, of 236 bytes for TLPs (PCIe 6.0, section 4.2.3), takes all that wait: as many of the least size, and one.
const STAGED_FOR_FLITS: usize = 236 / 12 + 2;

impl Initiator {
    pub(crate) fn flow(&self, stream: u16) -> FlowId {
        self.flows[usize::from(stream).min(self.flows.len() - 1)]
    }
}

impl Fabric {
    /// The source of a node's own requests in its egress queues.
    pub(crate) fn own_source(&self, node: NodeId) -> usize {
        match &self.nodes[node.index()] {
            Node::EndPoint(end_point) => end_point.source,
            Node::Root(root) => root.ports.len(),
            Node::Switch(_) | Node::Bridge(_) => 0,
        }
    }

    pub(crate) fn initiator(&mut self, node: NodeId) -> &mut Initiator {
        match &mut self.nodes[node.index()] {
            Node::EndPoint(end_point) => &mut end_point.initiator,
            Node::Root(root) => &mut root.initiator,
            Node::Switch(_) | Node::Bridge(_) => unreachable!("switches and bridges start no operations"),
        }
    }

    /// The egress of a request of a node's own: its port, or the root port that claims the route. With the queue's source.
    pub(crate) fn own_egress(&self, node: NodeId, route: Route) -> Option<(PortId, usize)> {
        match &self.nodes[node.index()] {
            Node::EndPoint(end_point) => Some((end_point.port, end_point.source)),
            Node::Root(root) => Some((root.ports[root.port_for(route)?], root.ports.len())),
            Node::Switch(_) | Node::Bridge(_) => None,
        }
    }

    fn posts_writes(&self, node: NodeId) -> bool {
        !matches!(&self.nodes[node.index()], Node::EndPoint(end_point) if !end_point.posted_writes)
    }

    /// An owner asks for an operation; it reaches the requester after the node's processing.
    pub(crate) fn begin(&mut self, node: NodeId, operation: Operation) {
        let mut latency = self.nodes[node.index()].latency();
        if node == self.root_node {
            latency += self.leaves_processor(operation.carried());
        }
        self.initiator(node).submissions.push_back(operation);
        if latency.is_zero() {
            self.submit(node);
        } else {
            let at = self.node_event(node);
            self.schedule(self.now + latency, EventKind::Submit, at, 0);
        }
    }

    /// The oldest operation has been processed.
    pub(crate) fn submit(&mut self, node: NodeId) {
        let Some(operation) = self.initiator(node).submissions.pop_front() else { return };
        let Operation { owner, stream, asked, kind } = operation;
        let (op, address, bytes, read, carry, data) = match kind {
            OperationKind::Interrupt { address, data } => {
                return self.submit_interrupt(node, stream, address, data);
            }
            OperationKind::Intx { asserted } => return self.submit_intx(node, stream, asserted),
            OperationKind::Read { op, address, bytes, carry } => (op, address, bytes, true, carry, None),
            OperationKind::Write { op, address, data } => (op, address, data.len(), false, false, Some(data)),
        };
        let posts = self.posts_writes(node);
        if node == self.root_node
            && let Some(register) = Register::at(address, &self.root().addresses)
        {
            let access = RegisterAccess { owner, stream, asked, op, address, register, bytes, data };
            return self.submit_register(access);
        }
        let Some((egress, _)) = self.own_egress(node, Route::Memory(address)) else {
            let (now, flow) = (self.now, self.initiator(node).flow(stream));
            let transaction = self.transactions.open(node, flow, asked, read, address, bytes);
            let record = self.transactions.get(transaction);
            (record.issuing, record.submitted) = (false, now);
            self.end_transaction(transaction, None, Ending::Unsupported);
            let error = CompletionError::UnsupportedRequest { address };
            return self.operation_over(node, owner, op, read.then_some(Err(error.into())));
        };
        let now = self.now;
        let flow = self.initiator(node).flow(stream);
        let transaction = self.transactions.open(node, flow, asked, read, address, bytes);
        let record = self.transactions.get(transaction);
        (record.op, record.owner, record.carry, record.submitted) = (op, owner, carry, now);
        record.posted = !read && posts;
        let class = if record.posted { FcClass::Posted } else { FcClass::NonPosted };
        self.ports[egress.index()].partition.snapshot(class.index(), now, &mut record.snapshot);
        let requester = &mut self.initiator(node).requester;
        let ticket = Ticket::Transaction(transaction);
        let accepted = match data {
            None => requester.read(now, stream, ticket, address, bytes),
            Some(data) if posts => requester.write(now, stream, ticket, address, data),
            Some(data) => requester.write_deferrable(now, stream, ticket, address, data),
        };
        if let Err(error) = accepted {
            self.transactions.close(transaction);
            return self.operation_over(node, owner, op, Some(Err(DmaError::Request(error))));
        }
        self.pump_soon(node);
    }

    fn submit_interrupt(&mut self, node: NodeId, stream: u16, address: u64, data: [u8; 4]) {
        let now = self.now;
        let initiator = self.initiator(node);
        let ticket = Ticket::Interrupt(initiator.flow(stream));
        // Neither RO nor No Snoop is set in a message signalled interrupt (PCIe 5.0 §2.2.6.4, §2.2.6.5).
        let own = initiator.requester.config().attributes;
        let attributes = Attributes { relaxed_ordering: false, no_snoop: false, ..own };
        let template = Repr::mem_write(TransactionId::default(), address, 4);
        if let Ok(template) = template.and_then(|repr| repr.with_attributes(attributes)) {
            // Its data are a doubleword, so this cannot be refused.
            let _ = initiator.requester.request(now, stream, ticket, template, Some(Payload::from(data)));
            self.pump_soon(node);
        }
    }

    /// Makes TLPs of operations while the egress has room and tags are free.
    pub(crate) fn pump(&mut self, node: NodeId) {
        let now = self.now;
        while let Some(room) = self.room(node)
            && let Some(outgoing) = self.initiator(node).requester.poll_request(now, room)
        {
            self.issue(node, outgoing);
        }
        self.note_tags(node);
        self.arm_requester(node);
    }

    fn room(&self, node: NodeId) -> Option<Classes> {
        let Node::EndPoint(end_point) = &self.nodes[node.index()] else { return Some(Classes::ALL) };
        let (port, source) = (&self.ports[end_point.port.index()], end_point.source);
        let staged = port.staged(match port.mode {
            LinkMode::NonFlit => STAGED,
            LinkMode::Flit => STAGED_FOR_FLITS,
        });
        let mut room = Classes::NONE;
        let mut any = false;
        for class in [FcClass::Posted, FcClass::NonPosted] {
            if port.waiting_of(source, class) < staged {
                room = room.with(class);
                any = true;
            }
        }
        any.then_some(room)
    }

    fn issue(&mut self, node: NodeId, outgoing: Outgoing<Ticket>) {
        let place = self.place_of(node);
        let stages = if node == self.root_node { self.root().path.of_processor() } else { [None; 2] };
        let payload = outgoing.payload.unwrap_or(Payload::EMPTY);
        let Some((egress, source)) = self.own_egress(node, route_of(&outgoing.repr)) else { return };
        let handle = match outgoing.op {
            Ticket::Transaction(transaction) | Ticket::Register { transaction, .. } => {
                let record = self.transactions.get(transaction);
                record.issuing = !outgoing.last_of_op;
                record.pending += u32::from(record.posted);
                let handle = self.tlps.insert(outgoing.repr, payload, record.flow);
                let tlp = self.tlps.get_mut(handle);
                tlp.transaction = Some(transaction);
                (tlp.tracked, tlp.awaited, tlp.carry) = (true, record.posted, record.carry);
                tlp.ledger.open(record.started);
                tlp.ledger.submitted(record.submitted, stages, place);
                tlp.ledger.waits_since(&record.snapshot);
                tlp.last_of_op = outgoing.last_of_op;
                handle
            }
            Ticket::Interrupt(flow) | Ticket::Wire { flow, .. } => {
                self.tlps.insert(outgoing.repr, payload, flow)
            }
            Ticket::Piece { request, .. } => self.issue_piece(request, outgoing.repr, payload),
        };
        let shape = shape_of(&outgoing.repr);
        let waiting = Waiting::own(handle, shape);
        if matches!(outgoing.op, Ticket::Transaction(_) | Ticket::Register { .. }) {
            self.enqueue_waiting(egress, source, waiting);
        } else {
            self.enqueue(egress, source, waiting);
        }
    }

    /// Tells the egress whether its non-posted class waits for tags.
    fn note_tags(&mut self, node: NodeId) {
        let now = self.now;
        let initiator = self.initiator(node);
        let blocked = initiator.requester.blocked_on_tags();
        let (in_use, mut gauge) = (u64::from(initiator.requester.tags_in_use()), initiator.tags);
        self.timeline.set(&mut gauge, now, in_use);
        self.initiator(node).tags = gauge;
        let class = FcClass::NonPosted.index();
        let slot = Partition::slot(Cause::TagWait);
        let own_source = self.own_source(node);
        for i in 0..self.own_ports(node).len() {
            let id = self.own_ports(node)[i];
            let port = &mut self.ports[id.index()];
            let waits = blocked && port.egress.len_of(own_source, FcClass::NonPosted) == 0;
            if waits {
                port.partition.block(now, class, Some(slot));
            } else if port.partition.blocked(class) == Some(slot) {
                port.partition.block(now, class, None);
            }
        }
    }

    pub(crate) fn arm_requester(&mut self, node: NodeId) {
        let at = self.node_event(node);
        let initiator = self.initiator(node);
        if let Some(due) = initiator.requester.deadline()
            && due < initiator.timer
        {
            initiator.timer = due;
            self.schedule(due.max(self.now), EventKind::RequesterTimer, at, due.as_fs());
        }
    }

    /// The requester's deadline has come (unless it has moved).
    pub(crate) fn requester_timer(&mut self, node: NodeId, due: Time) {
        let now = self.now;
        let initiator = self.initiator(node);
        if initiator.timer != due {
            return;
        }
        initiator.timer = Time::NEVER;
        while let Some(outcome) = self.initiator(node).requester.handle_timeout(now) {
            self.detect_outcome(node, None, &outcome);
            self.outcome(node, None, outcome);
        }
        if self.has_core(node) {
            self.core_reads_time_out(node);
        }
        self.pump_soon(node);
    }

    /// A completion for a requester of this node has been processed.
    pub(crate) fn completion_arrived(&mut self, node: NodeId, ingress: PortId, handle: TlpHandle) {
        let now = self.now;
        let tlp = self.tlps.get(handle);
        if tlp.orphaned {
            self.unexpected += 1;
            self.detect(ingress, ErrorKind::UnexpectedCompletion, Some(handle));
            return self.consume(ingress, handle);
        }
        let (repr, payload) = (tlp.repr, tlp.payload.clone());
        let data = if tlp.carry || !self.length_only { payload.bytes() } else { None };
        let outcome = self.initiator(node).requester.handle_completion(now, &repr, data);
        self.detect_outcome(node, Some((ingress, handle)), &outcome);
        self.outcome(node, Some(handle), outcome);
        self.tlps.get_mut(handle).tracked = false; // what it brought is accounted for
        self.consume(ingress, handle);
        self.pump_soon(node);
    }

    pub(crate) fn outcome(&mut self, node: NodeId, handle: Option<TlpHandle>, outcome: Outcome<Ticket>) {
        let Some(&Progress { op, bytes, .. }) = outcome.progress() else {
            self.unexpected += 1;
            return;
        };
        match op {
            Ticket::Transaction(transaction) => {
                let flow = self.transactions.get(transaction).flow;
                self.payload_arrived(flow, u64::from(bytes));
                if let Outcome::OperationDone(_, result) = outcome {
                    let record = self.transactions.get(transaction);
                    let (owner, op, read) = (record.owner, record.op, record.read);
                    let ending = result.as_ref().err().map_or(Ending::Done, ending_of);
                    self.end_transaction(transaction, handle, ending);
                    self.operation_over(node, owner, op, read.then(|| result.map_err(DmaError::from)));
                }
            }
            Ticket::Register { index, .. } => {
                if let Outcome::OperationDone(_, result) = outcome {
                    self.register_done(index, handle, result);
                }
            }
            Ticket::Piece { request, offset } => {
                if let Outcome::OperationDone(_, result) = outcome {
                    self.piece_done(request, offset, handle, result);
                }
            }
            Ticket::Interrupt(_) | Ticket::Wire { .. } => {}
        }
    }

    /// The owner of an operation hears how it ended: a read with its data, a write (`None`) accepted.
    pub(crate) fn operation_over(
        &mut self,
        node: NodeId,
        owner: u16,
        op: OpId,
        result: Option<Result<Payload, DmaError>>,
    ) {
        self.agenda.push_back(Task::Over { node, owner, op, result });
    }

    /// A TLP that was made at this node has gone to its data link layer.
    pub(crate) fn left_its_maker(&mut self, egress: PortId, handle: TlpHandle) {
        let node = self.ports[egress.index()].node;
        if matches!(self.nodes[node.index()], Node::Switch(_) | Node::Bridge(_)) {
            return;
        }
        let node = self.function_for(node, &self.tlps.get(handle).repr);
        let tlp = self.tlps.get_mut(handle);
        if tlp.awaited
            && tlp.last_of_op
            && let Some(transaction) = tlp.transaction
        {
            let record = self.transactions.get(transaction);
            let (owner, op) = (record.owner, record.op);
            self.operation_over(node, owner, op, None);
        }
        self.pump_soon(node);
    }

    /// The data of a posted request are where they should be.
    pub(crate) fn posted_arrived(&mut self, handle: TlpHandle) {
        let tlp = self.tlps.get_mut(handle);
        if !std::mem::take(&mut tlp.awaited) {
            return;
        }
        let Some(transaction) = tlp.transaction else { return };
        let (flow, bytes) = (tlp.flow, data_bytes(&tlp.repr));
        self.payload_arrived(flow, bytes);
        self.posted_settled(transaction, Some(handle));
    }

    /// The data of a posted request came, but are no good.
    pub(crate) fn posted_failed(&mut self, handle: TlpHandle, ending: Ending) {
        let tlp = self.tlps.get_mut(handle);
        if std::mem::take(&mut tlp.awaited)
            && let Some(transaction) = tlp.transaction
        {
            self.transactions.get(transaction).ending = ending;
            self.posted_settled(transaction, Some(handle));
        }
    }

    /// A posted request was lost.
    pub(crate) fn posted_lost(&mut self, transaction: TransactionRef) {
        self.transactions.get(transaction).ending = Ending::Lost;
        self.posted_settled(transaction, None);
    }

    fn posted_settled(&mut self, transaction: TransactionRef, handle: Option<TlpHandle>) {
        let record = self.transactions.get(transaction);
        record.pending -= 1;
        if record.pending == 0 && !record.issuing {
            let ending = record.ending;
            self.end_transaction(transaction, handle, ending);
        }
    }
}

/// Bytes that a memory request really writes.
pub(crate) fn data_bytes(repr: &tlplab_wire::tlp::Repr) -> u64 {
    tlplab_transaction::memory_access(repr).map_or(0, |access| u64::from(access.bytes))
}

pub(crate) fn ending_of(error: &CompletionError) -> Ending {
    match error {
        CompletionError::UnsupportedRequest { .. } | CompletionError::RetryStatus => Ending::Unsupported,
        CompletionError::CompleterAbort { .. } => Ending::Aborted,
        CompletionError::Poisoned { .. } => Ending::Poisoned,
        CompletionError::Timeout { .. } | CompletionError::Undelivered { .. } => Ending::TimedOut,
        CompletionError::Mismatch { .. } => Ending::Malformed,
    }
}
