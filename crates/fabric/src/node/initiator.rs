//! The common part of end points and the processor: operations become TLPs, completions become results.

use crate::kernel::ids::{FlowId, FunctionAt, PortId};
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::answer::Answer;
use crate::node::function::Function;
use crate::node::root::processor::{Register, RegisterAccess};
use crate::observe::errors::ErrorKind;
use crate::observe::registers::ChangedBy;
use crate::observe::timeline::Gauge;
use crate::packet::routing::{Route, route_of};
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::transactions::{Ending, TransactionRef};
use std::collections::VecDeque;
use tlplab_cfgspace::error::{self, FailedCompletion};
use tlplab_device::{DmaError, OpId};
use tlplab_transaction::{Classes, CompletionError, Outcome, Outgoing, Payload, Progress, Requester};
use tlplab_units::{Duration, FcClass, Time};
use tlplab_wire::tlp::{Attributes, Repr, TransactionId};

/// The owner of a request of a requester.
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
    /// A request for the translation of a page.
    Translation {
        /// Its number, by its address.
        page: u64,
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
    /// False for interrupts, which are accounted to nobody.
    pub(crate) fn becomes_transaction(&self) -> bool {
        matches!(self.kind, OperationKind::Read { .. } | OperationKind::Write { .. })
    }

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

#[derive(Clone)]
pub(crate) struct Initiator {
    pub(crate) requester: Requester<Ticket>,
    /// Operations that are being processed, in order.
    pub(crate) submissions: VecDeque<Operation>,
    /// Flow of each stream.
    pub(crate) flows: Vec<FlowId>,
    /// The due time of the pending timer event.
    pub(crate) timer: Time,
    pub(crate) tags: Gauge,
}

impl Initiator {
    pub(crate) fn flow(&self, stream: u16) -> FlowId {
        self.flows[usize::from(stream).min(self.flows.len() - 1)]
    }
}

/// A node with a requester: a function of an end point, or the root complex for the processor.
pub(crate) trait Initiate: Answer {
    fn initiator(&mut self) -> &mut Initiator;
    /// The ports that its requests leave by, and which source of their egress queues they are.
    fn own_ports(&self) -> (&[PortId], usize);
    /// The port of them that a request with this route leaves by.
    fn egress_for(&self, route: Route) -> Option<PortId>;
    /// The time that the node takes for an operation with this many bytes, before the requester has it.
    fn processing(&mut self, now: Time, carried: u64) -> Duration;
    /// The function that stands for the requester at one of its ports: its place among the node's functions.
    fn function_at(&self, port: usize) -> usize;
    /// Its functions.
    fn functions(&mut self) -> &mut [Function];
    /// Classes of requests that there is room for.
    fn room(&self, _cx: &Context) -> Option<Classes> {
        Some(Classes::ALL)
    }
    fn posts_writes(&self) -> bool {
        true
    }
    /// The stream of the requester that a stream of an owner is.
    fn lane(&self, stream: u16) -> u16 {
        stream
    }
    /// An operation reaches the requester: the stream that it goes to.
    fn lane_of_operation(&mut self, _now: Time, stream: u16, _address: u64, _bytes: u64) -> u16 {
        stream
    }
    /// The next TLP that the requester may send.
    fn poll(&mut self, now: Time, room: Classes) -> Option<Outgoing<Ticket>> {
        self.initiator().requester.poll_request(now, room)
    }
    /// Further effects of a completion, or the lack of one.
    fn note_outcome(&mut self, _cx: &mut Context, _outcome: &Outcome<Ticket>) {}
    /// By class, posted and non-posted: requests wait for translations of their addresses; `None` where there is no such thing.
    fn waits_for_translations(&self) -> Option<[bool; 2]> {
        None
    }
    /// The register at an address, where that is no memory.
    fn register_at(&self, _address: u64) -> Option<Register> {
        None
    }
    fn submit_register(&mut self, _cx: &mut Context, _access: RegisterAccess) {}
    fn register_done(
        &mut self,
        _cx: &mut Context,
        _index: u32,
        _completion: Option<TlpHandle>,
        _result: Result<Payload, CompletionError>,
    ) {
    }
    /// A piece of a request that the node splits becomes a TLP.
    fn issue_piece(&mut self, cx: &mut Context, index: u32, repr: Repr, payload: Payload) -> TlpHandle;
    fn piece_done(
        &mut self,
        _cx: &mut Context,
        _index: u32,
        _offset: u32,
        _completion: Option<TlpHandle>,
        _result: Result<Payload, CompletionError>,
    ) {
    }
    /// The device's interrupt changes its level.
    fn submit_intx(&mut self, _cx: &mut Context, _stream: u16, _asserted: bool) {}

    /// An owner asks for an operation; it reaches the requester after the node's processing.
    fn begin(&mut self, cx: &mut Context, operation: Operation) {
        let latency = self.processing(cx.now(), operation.carried());
        if cx.observe.counts_outstanding && operation.becomes_transaction() {
            let flow = self.initiator().flow(operation.stream);
            cx.observe.one_more(cx.now(), flow);
        }
        self.initiator().submissions.push_back(operation);
        if latency.is_zero() {
            self.submit(cx);
        } else {
            cx.schedule(cx.now() + latency, EventKind::Submit, cx.node_event(self.node()), 0);
        }
    }

    /// The oldest operation has been processed.
    fn submit(&mut self, cx: &mut Context) {
        let Some(operation) = self.initiator().submissions.pop_front() else { return };
        let Operation { owner, stream, asked, kind } = operation;
        let (op, address, bytes, read, carry, data) = match kind {
            OperationKind::Interrupt { address, data } => {
                return self.submit_interrupt(cx, stream, address, data);
            }
            OperationKind::Intx { asserted } => return self.submit_intx(cx, stream, asserted),
            OperationKind::Read { op, address, bytes, carry } => (op, address, bytes, true, carry, None),
            OperationKind::Write { op, address, data } => (op, address, data.len(), false, false, Some(data)),
        };
        let flow = self.initiator().flow(stream);
        // It is counted as a transaction from now on, or is none.
        cx.observe.one_less(cx.now(), flow);
        if let Some(register) = self.register_at(address) {
            let access = RegisterAccess { owner, stream, asked, op, address, register, bytes, data };
            return self.submit_register(cx, access);
        }
        let (now, node, posts) = (cx.now(), self.node(), self.posts_writes());
        let Some(egress) = self.egress_for(Route::Memory(address)) else {
            let transaction = cx.open_transaction(node, flow, asked, read, address, bytes);
            let record = cx.transactions.get(transaction);
            (record.issuing, record.submitted) = (false, now);
            cx.end_transaction(transaction, None, Ending::Unsupported);
            let error = CompletionError::UnsupportedRequest { address };
            return self.report_operation(cx, owner, op, read.then_some(Err(error.into())));
        };
        let transaction = cx.open_transaction(node, flow, asked, read, address, bytes);
        let record = cx.transactions.get(transaction);
        (record.op, record.owner, record.carry, record.submitted) = (op, owner, carry, now);
        record.posted = !read && posts;
        let class = if record.posted { FcClass::Posted } else { FcClass::NonPosted };
        cx.links.snapshot(egress, class, now, &mut record.snapshot);
        let lane = self.lane_of_operation(now, stream, address, bytes);
        let requester = &mut self.initiator().requester;
        let ticket = Ticket::Transaction(transaction);
        let accepted = match data {
            None => requester.read(now, lane, ticket, address, bytes),
            Some(data) if posts => requester.write(now, lane, ticket, address, data),
            Some(data) => requester.write_deferrable(now, lane, ticket, address, data),
        };
        if let Err(error) = accepted {
            cx.close_transaction(transaction, flow);
            return self.report_operation(cx, owner, op, Some(Err(DmaError::Request(error))));
        }
        cx.agenda.pump(node);
    }

    fn submit_interrupt(&mut self, cx: &mut Context, stream: u16, address: u64, data: [u8; 4]) {
        let lane = self.lane(stream);
        let initiator = self.initiator();
        let ticket = Ticket::Interrupt(initiator.flow(stream));
        // Neither RO nor No Snoop is set in a message signalled interrupt (PCIe 5.0 §2.2.6.4, §2.2.6.5).
        let own = initiator.requester.config().attributes;
        let attributes = Attributes { relaxed_ordering: false, no_snoop: false, ..own };
        let template = Repr::mem_write(TransactionId::default(), address, 4);
        if let Ok(template) = template.and_then(|repr| repr.with_attributes(attributes)) {
            // Its data are a doubleword, so this cannot be refused.
            let data = Some(Payload::from(data));
            let _ = initiator.requester.request(cx.now(), lane, ticket, template, data);
            cx.agenda.pump(self.node());
        }
    }

    /// Makes TLPs of operations while the egress has room and tags are free.
    fn pump(&mut self, cx: &mut Context) {
        let now = cx.now();
        while let Some(room) = self.room(cx)
            && let Some(outgoing) = self.poll(now, room)
        {
            self.issue(cx, outgoing);
        }
        self.note_tags(cx);
        self.arm_requester(cx);
    }

    fn issue(&mut self, cx: &mut Context, outgoing: Outgoing<Ticket>) {
        let node = self.node();
        let place = cx.place_of(node);
        let stages = if node == cx.host.node { cx.host.processor_stages } else { [None; 2] };
        let payload = outgoing.payload.unwrap_or(Payload::EMPTY);
        let Some(egress) = self.egress_for(route_of(&outgoing.repr)) else { return };
        let handle = match outgoing.op {
            Ticket::Transaction(transaction) | Ticket::Register { transaction, .. } => {
                let record = cx.transactions.get(transaction);
                record.issuing = !outgoing.last_of_op;
                record.pending += u32::from(record.posted);
                let handle = cx.tlps.insert(outgoing.repr, payload, record.flow);
                let tlp = cx.tlps.get_mut(handle);
                tlp.transaction = Some(transaction);
                (tlp.tracked, tlp.awaited, tlp.carry) = (true, record.posted, record.carry);
                tlp.ledger.open(record.started);
                tlp.ledger.submitted(record.submitted, stages, place);
                tlp.ledger.waits_since(&record.snapshot);
                tlp.last_of_op = outgoing.last_of_op;
                handle
            }
            Ticket::Interrupt(flow) | Ticket::Wire { flow, .. } => {
                cx.tlps.insert(outgoing.repr, payload, flow)
            }
            Ticket::Translation { .. } => {
                let flow = self.initiator().flow(0);
                let handle = cx.tlps.insert(outgoing.repr, payload, flow);
                // The answer is needed whatever else is simulated.
                cx.tlps.get_mut(handle).carry = true;
                handle
            }
            Ticket::Piece { request, .. } => self.issue_piece(cx, request, outgoing.repr, payload),
        };
        cx.tlps.get_mut(handle).maker = Some(node);
        let shape = shape_of(&outgoing.repr);
        let (waiting, source) = (Waiting::own(handle, shape), self.own_ports().1);
        if matches!(outgoing.op, Ticket::Transaction(_) | Ticket::Register { .. }) {
            cx.enqueue_waiting_operation(egress, source, waiting);
        } else {
            cx.enqueue_at_egress(egress, source, waiting);
        }
    }

    /// Tells the egress whether its non-posted class waits for tags.
    #[inline]
    fn note_tags(&mut self, cx: &mut Context) {
        let now = cx.now();
        let initiator = self.initiator();
        let blocked = initiator.requester.blocked_on_tags();
        let in_use = u64::from(initiator.requester.tags_in_use());
        cx.observe.timeline.set(&mut initiator.tags, now, in_use);
        let (ports, source) = self.own_ports();
        for port in ports {
            cx.links.note_tag_wait(*port, source, blocked, now);
        }
        if let (Some(waits), [port]) = (self.waits_for_translations(), ports) {
            cx.links.note_translation_wait(*port, source, waits, now);
        }
    }

    #[inline]
    fn arm_requester(&mut self, cx: &mut Context) {
        let at = cx.node_event(self.node());
        let initiator = self.initiator();
        if let Some(due) = initiator.requester.deadline()
            && due < initiator.timer
        {
            initiator.timer = due;
            cx.schedule(due.max(cx.now()), EventKind::RequesterTimer, at, due.as_fs());
        }
    }

    /// The requester's deadline has come (unless it has moved); false if it has.
    fn handle_requester_timeout(&mut self, cx: &mut Context, due: Time) -> bool {
        let now = cx.now();
        let initiator = self.initiator();
        if initiator.timer != due {
            return false;
        }
        initiator.timer = Time::NEVER;
        while let Some(outcome) = self.initiator().requester.handle_timeout(now) {
            self.detect_outcome(cx, None, &outcome);
            self.outcome(cx, None, outcome);
        }
        cx.agenda.pump(self.node());
        true
    }

    /// A completion for the requester has been processed.
    fn take_completion(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let now = cx.now();
        let tlp = cx.tlps.get(handle);
        if tlp.orphaned {
            cx.observe.counts.unexpected += 1;
            cx.detect(ingress, ErrorKind::UnexpectedCompletion, Some(handle));
            return cx.consume(ingress, handle);
        }
        let (repr, payload) = (tlp.repr, tlp.payload.clone());
        let data = if tlp.carry || !cx.length_only { payload.bytes() } else { None };
        let outcome = self.initiator().requester.handle_completion(now, &repr, data);
        self.detect_outcome(cx, Some((ingress, handle)), &outcome);
        self.outcome(cx, Some((ingress, handle)), outcome);
        cx.tlps.get_mut(handle).tracked = false; // what it brought is accounted for
        cx.consume(ingress, handle);
        cx.agenda.pump(self.node());
    }

    fn outcome(&mut self, cx: &mut Context, answer: Option<(PortId, TlpHandle)>, outcome: Outcome<Ticket>) {
        let handle = answer.map(|(_, handle)| handle);
        self.note_outcome(cx, &outcome);
        let Some(&Progress { op, bytes, .. }) = outcome.progress() else {
            cx.observe.counts.unexpected += 1;
            return;
        };
        match op {
            Ticket::Transaction(transaction) => {
                let flow = cx.transactions.get(transaction).flow;
                if let Some((ingress, _)) = answer {
                    cx.payload_arrived(ingress, flow, u64::from(bytes));
                }
                if let Outcome::OperationDone(_, result) = outcome {
                    let record = cx.transactions.get(transaction);
                    let (owner, op, read) = (record.owner, record.op, record.read);
                    let ending = result.as_ref().err().map_or(Ending::Done, ending_of);
                    cx.end_transaction(transaction, handle, ending);
                    self.report_operation(cx, owner, op, read.then(|| result.map_err(DmaError::from)));
                }
            }
            Ticket::Register { index, .. } => {
                if let Outcome::OperationDone(_, result) = outcome {
                    self.register_done(cx, index, handle, result);
                }
            }
            Ticket::Piece { request, offset } => {
                if let Outcome::OperationDone(_, result) = outcome {
                    self.piece_done(cx, request, offset, handle, result);
                }
            }
            Ticket::Interrupt(_) | Ticket::Wire { .. } | Ticket::Translation { .. } => {}
        }
    }

    /// The owner of an operation hears how it ended: a read with its data, a write (`None`) accepted.
    fn report_operation(
        &self,
        cx: &mut Context,
        owner: u16,
        op: OpId,
        result: Option<Result<Payload, DmaError>>,
    ) {
        cx.agenda.push(Task::Over { node: self.node(), owner, op, result });
    }

    /// The effect on the requester of a completion that came by `ingress`, or of the time that has passed.
    fn detect_outcome(
        &mut self,
        cx: &mut Context,
        ingress: Option<(PortId, TlpHandle)>,
        outcome: &Outcome<Ticket>,
    ) {
        let (port, tlp) = (ingress.map(|(port, _)| port), ingress.map(|(_, tlp)| tlp));
        let kind = match outcome.progress().map(|p| p.error) {
            Some(None | Some(CompletionError::RetryStatus | CompletionError::Undelivered { .. })) => return,
            Some(Some(CompletionError::Timeout { address, .. })) => {
                let Some(port) = self.port_towards(address) else { return };
                let function =
                    FunctionAt { node: self.node(), index: self.function_at(cx.links.index(port)) };
                return cx.detect_timeout(function, port);
            }
            Some(Some(CompletionError::UnsupportedRequest { .. })) => {
                return self.request_failed(cx, port, FailedCompletion::UnsupportedRequest);
            }
            Some(Some(CompletionError::CompleterAbort { .. })) => {
                return self.request_failed(cx, port, FailedCompletion::CompleterAbort);
            }
            Some(Some(CompletionError::Poisoned { .. })) => {
                return self.request_failed(cx, port, FailedCompletion::Poisoned);
            }
            None => ErrorKind::UnexpectedCompletion,
            Some(Some(CompletionError::Mismatch { .. })) => ErrorKind::Malformed,
        };
        if let Some(port) = port {
            cx.detect(port, kind, tlp);
        }
    }

    /// A completion said that a request failed.
    #[cold]
    fn request_failed(&mut self, cx: &Context, ingress: Option<PortId>, how: FailedCompletion) {
        if let Some(port) = ingress {
            let index = self.function_at(cx.links.index(port));
            let space = self.functions()[index].space.change(cx.now(), ChangedBy::Hardware);
            error::receive_completion(space, how);
        }
    }

    /// The port by which requests for an address leave; the first if none claims it any more.
    fn port_towards(&self, address: u64) -> Option<PortId> {
        let route = self.register_at(address).map_or(Route::Memory(address), Register::route);
        self.egress_for(route).or_else(|| self.own_ports().0.first().copied())
    }
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
