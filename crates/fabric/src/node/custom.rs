//! Custom nodes: each stands between two links and decides about every TLP that passes.
//!
//! Such a node has two ports and no function, so it is invisible to software: bus numbers, addresses and interrupts are the same with and without
//! it. For more than two ports, put a switch next to such nodes.

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::answer::{Answer, register_completer};
use crate::observe::probe::TlpRecord;
use crate::packet::slab::{TlpHandle, shape_of};
use tlplab_datalink::Integrity;
use tlplab_transaction::{Completer, Payload, memory_access};
use tlplab_units::{Bdf, Duration, FcClass, Time};
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// The behaviour of a custom node. The fabric handles its ports as those of a switch: credits, queues, replay, captures, attribution.
pub trait NodeModel: Send {
    /// A TLP has arrived at a port and the node's latency has passed. Returns its fate.
    fn handle_tlp(&mut self, cx: &mut NodeContext<'_>, from: Side, tlp: &TlpRecord<'_>) -> Verdict;

    /// A timer has expired.
    fn handle_timer(&mut self, _cx: &mut NodeContext<'_>, _id: u64) {}

    /// The link above went down, or software reset the hierarchy below it: timers and TLPs inside the node are gone.
    fn reset(&mut self, _cx: &mut NodeContext<'_>) {}

    /// A copy that goes on from here as this node does; none, if part of its state is elsewhere.
    fn snapshot(&self) -> Option<Box<dyn NodeModel>> {
        None
    }
}

/// A port of a node in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one towards the root complex.
    Up,
    /// The one away from it.
    Down,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Up => 0,
            Self::Down => 1,
        }
    }
}

/// The fate of a TLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on by the other port.
    Forward,
    /// It ends here without notice: the requester of a non-posted request waits for its completion timeout.
    Drop,
    /// It ends here. A request that is answered gets a completion with this status, in the name of the component beyond; the error is counted at the
    /// port it came by.
    Refuse(CompletionStatus),
    /// It ends here, and well: a read is answered with these data, as many bytes as it asks for, in the name of the component beyond; a write is
    /// taken, whatever the payload. The run fails if the length is another one, and for what is no memory request.
    Complete(Payload),
    /// The node is asked again after this time. Later TLPs are not held up, so a node that must keep order has to delay all of them.
    Wait(Duration),
}

/// The actions of a node while it handles an event.
pub struct NodeContext<'a> {
    cx: &'a mut Context,
    node: NodeId,
    ports: [PortId; 2],
}

impl NodeContext<'_> {
    /// The present.
    pub fn now(&self) -> Time {
        self.cx.now()
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.cx.topology.nodes[self.node.index()].name
    }

    /// The ID of the component beyond a port, nodes like this one not counted, as software has numbered it; 0 until it has.
    pub fn id_beyond(&self, side: Side) -> Bdf {
        self.cx.id_beyond(self.ports[side.index()])
    }

    /// Sends a TLP of the node's own by a port, behind what waits there. It belongs to no transaction; what answers it comes to
    /// [`NodeModel::handle_tlp`] as everything does.
    ///
    /// The run fails if `payload` is not as long as `repr` says, or longer than the other end of the link takes.
    pub fn send(&mut self, side: Side, repr: Repr, payload: Payload) {
        let (egress, bytes) = (self.ports[side.index()], u64::from(repr.payload_bytes()));
        let most = self.cx.links.max_payload(self.cx.links.peer(egress)).bytes();
        if payload.len() != bytes || bytes > u64::from(most) {
            let length = payload.len();
            return self.fail(format!(
                "a TLP of its own has {length} B of payload, but its header states {bytes} B; at most {most} B may be sent"
            ));
        }
        let repr = self.cx.with_digest(egress, repr);
        let tlp = self.cx.tlps.insert(repr, payload, self.cx.host.messages);
        self.cx.enqueue_at_egress(egress, side.index(), Waiting::own(tlp, shape_of(&repr)));
    }

    /// Asks for [`NodeModel::handle_timer`] at `at` (now, if that has passed).
    pub fn timer(&mut self, at: Time, id: u64) {
        let at = at.max(self.cx.now());
        self.cx.schedule(at, EventKind::NodeTimer, self.cx.node_event(self.node), id);
    }

    /// Ends the run with a message: what went wrong, where, and what would be right.
    pub fn fail(&mut self, message: String) {
        self.cx.fail(self.node, message);
    }
}

/// A custom node at its place.
pub(crate) struct CustomNode {
    pub(crate) node: NodeId,
    pub(crate) latency: Duration,
    /// The one towards the root complex first.
    pub(crate) ports: [PortId; 2],
    model: Box<dyn NodeModel>,
}

impl CustomNode {
    pub(crate) fn new(
        node: NodeId,
        latency: Duration,
        ports: [PortId; 2],
        model: Box<dyn NodeModel>,
    ) -> Self {
        Self { node, latency, ports, model }
    }

    pub(crate) fn snapshot(&self) -> Option<Self> {
        Some(Self { model: self.model.snapshot()?, ..*self })
    }

    fn tell<T>(
        &mut self,
        cx: &mut Context,
        event: impl FnOnce(&mut dyn NodeModel, &mut NodeContext<'_>) -> T,
    ) -> T {
        event(&mut *self.model, &mut NodeContext { cx, node: self.node, ports: self.ports })
    }

    pub(crate) fn handle_timer(&mut self, cx: &mut Context, id: u64) {
        self.tell(cx, |model, cx| model.handle_timer(cx, id));
    }

    pub(crate) fn reset(&mut self, cx: &mut Context) {
        let at = cx.node_event(self.node);
        cx.kernel.cancel(|event| event.kind == EventKind::NodeTimer && event.at == at);
        self.tell(cx, |model, cx| model.reset(cx));
    }

    /// A TLP has arrived in full and passed the node's processing.
    pub(crate) fn handle_tlp(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let from = if ingress == self.ports[0] { Side::Up } else { Side::Down };
        let tlp = cx.tlps.get(handle);
        let (repr, payload, flow) = (tlp.repr, tlp.payload.clone(), tlp.flow);
        let transaction = tlp.transaction.and_then(|transaction| cx.transactions.number(transaction));
        let record = TlpRecord { repr: &repr, payload: payload.bytes(), flow, transaction };
        let verdict = self.tell(cx, |model, cx| model.handle_tlp(cx, from, &record));
        let egress = self.ports[from.other().index()];
        match verdict {
            Verdict::Forward => cx.forward_to(ingress, egress, handle, Integrity::Good, Time::ZERO),
            Verdict::Drop => cx.consume(ingress, handle),
            Verdict::Refuse(status) => cx.refuse(ingress, handle, cx.answers_for(ingress), status),
            Verdict::Complete(data) => self.complete(cx, ingress, handle, data),
            Verdict::Wait(time) => {
                let at = cx.now() + time.max(Duration::from_fs(1));
                cx.schedule(at, EventKind::NodeWaited, u32::from(ingress.0), handle.to_event());
            }
        }
    }

    fn complete(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, data: Payload) {
        if cx.is_flawed(handle) && cx.reject(ingress, handle) {
            return;
        }
        let tlp = cx.tlps.get(handle);
        let (repr, shape) = (tlp.repr, tlp.shape);
        let asked = match (repr.kind(), memory_access(&repr)) {
            (Kind::MemRead { .. }, Some(access)) => Some(u64::from(access.bytes)),
            (Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. }, _) => None,
            _ => {
                cx.fail(
                    self.node,
                    format!("it completes a {}; only memory reads and writes can be completed", repr.name()),
                );
                return cx.consume(ingress, handle);
            }
        };
        if let Some(bytes) = asked
            && data.len() != bytes
        {
            let length = data.len();
            cx.fail(self.node, format!("it answers a read of {bytes} B with {length} B"));
            return cx.consume(ingress, handle);
        }
        if shape.class == FcClass::Posted {
            cx.complete_posted(ingress, handle);
            return cx.consume(ingress, handle);
        }
        cx.release_buffer(ingress, &shape);
        match asked {
            Some(_) => self.answer(cx, ingress, handle, Ok(data)),
            None => self.deferrable_write_done(cx, ingress, handle),
        }
    }
}

impl Answer for CustomNode {
    fn node(&self) -> NodeId {
        self.node
    }
    fn answer_time(&self) -> Duration {
        self.latency
    }
    /// The component beyond would have answered.
    fn completer(&self, cx: &Context, port: PortId, _request: &Repr) -> (Completer, usize) {
        let mps = cx.links.max_payload(port).min(cx.links.max_payload(cx.links.peer(port)));
        (Completer { mps, ..register_completer(cx.answers_for(port)) }, cx.links.index(port))
    }
}
