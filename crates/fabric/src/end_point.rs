//! End points: a port, a requester, and a device behind them.

use crate::ids::{NodeId, PortId};
use crate::initiator::{Initiator, Operation, OperationKind};
use crate::node::Node;
use crate::queue::EventKind;
use crate::root::MSI_ADDRESS;
use crate::sim::{Fabric, Task};
use crate::slab::TlpHandle;
use tlplab_device::{Action, Context, Device, Event, OpId, Refusal, ReplyToken};
use tlplab_transaction::{Access, Completer, Payload, memory_access};
use tlplab_units::{Duration, FcClass};
use tlplab_wire::tlp::{CompletionStatus, Kind};

pub(crate) struct EndPoint {
    pub(crate) port: PortId,
    pub(crate) latency: Duration,
    /// Index of its device in the host's list.
    pub(crate) number: u16,
    /// Absent while it handles an event, or if it is driven from outside.
    pub(crate) device: Option<Box<dyn Device>>,
    pub(crate) next_op: u64,
    /// Base address and size of each BAR.
    pub(crate) bars: [Option<(u64, u64)>; 6],
    pub(crate) completer: Completer,
    pub(crate) initiator: Initiator,
    pub(crate) posted_writes: bool,
}

impl EndPoint {
    fn bar_of(&self, address: u64) -> Option<(u8, u64)> {
        (0u8..).zip(&self.bars).find_map(|(index, bar)| {
            let (base, size) = (*bar)?;
            (base <= address && address - base < size).then(|| (index, address - base))
        })
    }
}

impl Fabric {
    pub(crate) fn end_point(&mut self, node: NodeId) -> &mut EndPoint {
        match &mut self.nodes[node.index()] {
            Node::EndPoint(end_point) => end_point,
            _ => unreachable!("this node is an end point"),
        }
    }

    /// A TLP has passed the end point's processing.
    pub(crate) fn end_point_takes(&mut self, ingress: PortId, handle: TlpHandle) {
        let node = self.ports[ingress.index()].node;
        let tlp = self.tlps.get(handle);
        let (class, access) = (tlp.shape.class, memory_access(&tlp.repr));
        match (tlp.repr.kind(), access) {
            (Kind::Completion(_), _) => self.completion_arrived(node, ingress, handle),
            (Kind::Message(_), _) => self.consume(ingress, handle),
            (
                Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. },
                Some(access),
            ) => {
                self.bar_access(node, ingress, handle, class, access);
            }
            _ => {
                let id = self.end_point(node).completer.id;
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    fn bar_access(
        &mut self,
        node: NodeId,
        ingress: PortId,
        handle: TlpHandle,
        class: FcClass,
        access: Access,
    ) {
        let end_point = self.end_point(node);
        let id = end_point.completer.id;
        let Some((bar, offset)) = end_point.bar_of(access.address) else {
            return self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
        };
        let data = data_of(&self.tlps.get(handle).payload, access);
        let event = if class == FcClass::Posted {
            self.posted_arrived(handle);
            self.consume(ingress, handle);
            Event::MmioWrite { bar, offset, data }
        } else if matches!(self.tlps.get(handle).repr.kind(), Kind::DeferrableMemWrite { .. }) {
            let shape = self.tlps.get(handle).shape;
            self.release_buffer(ingress, &shape);
            self.deferrable_write_done(ingress, handle);
            Event::MmioWrite { bar, offset, data }
        } else {
            // The receive buffer is free when the device has taken the request; the TLP stays until it is answered.
            let shape = self.tlps.get(handle).shape;
            self.release_buffer(ingress, &shape);
            Event::MmioRead { bar, offset, bytes: access.bytes, reply: ReplyToken(handle.to_event()) }
        };
        self.agenda.push_back(Task::Tell { node, event });
    }

    /// The device handles an event, and what it asks for is carried out.
    pub(crate) fn tell(&mut self, node: NodeId, event: Event) {
        let end_point = self.end_point(node);
        let Some(mut device) = end_point.device.take() else {
            self.outside.push((self.now, node, event));
            return;
        };
        let mut next_op = end_point.next_op;
        let mut actions = std::mem::take(&mut self.actions);
        let mut cx = Context::new(self.now, self.length_only, &self.device_infos, &mut next_op, &mut actions);
        device.handle(&mut cx, event);
        let end_point = self.end_point(node);
        end_point.device = Some(device);
        end_point.next_op = next_op;
        for action in actions.drain(..) {
            self.carry_out(node, action);
        }
        self.actions = actions;
    }

    /// What a device asks for.
    pub(crate) fn carry_out(&mut self, node: NodeId, action: Action) {
        let asked = self.now;
        let operation = |stream, kind| Operation { owner: 0, stream, asked, kind };
        match action {
            Action::DmaRead { op, stream, address, bytes, carry } => {
                self.begin(node, operation(stream, OperationKind::Read { op, address, bytes, carry }));
            }
            Action::DmaWrite { op, stream, address, data } => {
                self.begin(node, operation(stream, OperationKind::Write { op, address, data }));
            }
            Action::Msix { stream, vector } => {
                let number = u32::from(self.end_point(node).number);
                let data = (number << 16 | u32::from(vector)).to_le_bytes();
                let kind = OperationKind::Interrupt { address: MSI_ADDRESS, data };
                self.begin(node, operation(stream, kind));
            }
            Action::Reply { token, data } => self.reply(node, token, Ok(data)),
            Action::ReplyError { token, refusal } => self.reply(node, token, Err(refusal)),
            Action::Timer { at, id } => {
                let event = self.node_event(node);
                self.schedule(at.max(self.now), EventKind::ProgramTimer, event, id);
            }
            Action::Intx { .. } => {} // MSI-X is always enabled here
            Action::Finished => self.finished(node, 0),
            Action::Fault(message) => self.fail(node, message),
        }
    }

    fn reply(&mut self, node: NodeId, token: ReplyToken, answer: Result<Payload, Refusal>) {
        let port = self.end_point(node).port;
        let answer = answer.map_err(|refusal| match refusal {
            Refusal::UnsupportedRequest => CompletionStatus::UnsupportedRequest,
            Refusal::CompleterAbort => CompletionStatus::CompleterAbort,
        });
        self.answer(port, TlpHandle::from_event(token.0), answer);
    }

    /// A device driven from outside starts operations through this.
    pub(crate) fn next_op(&mut self, node: NodeId) -> OpId {
        let end_point = self.end_point(node);
        end_point.next_op += 1;
        OpId(end_point.next_op - 1)
    }
}

/// The valid bytes of a posted request's payload.
pub(crate) fn data_of(payload: &Payload, access: Access) -> Payload {
    match payload {
        Payload::Length(_) => Payload::Length(u64::from(access.bytes)),
        Payload::Bytes(_) => payload.clone(),
    }
}
