//! End points: a port, a requester, and a device behind them.

pub(crate) mod clocks;
pub(crate) mod core;

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::node::Node;
use crate::node::end_point::core::Core;
use crate::node::function::Function;
use crate::node::initiator::{Initiator, Operation, OperationKind};
use crate::packet::slab::TlpHandle;
use crate::sim::{Fabric, Task};
use tlplab_cfgspace::{BarKind, BarWindow, InterruptMode};
use tlplab_device::{Action, Context, Device, DmaError, Event, OpId, Refusal, ReplyToken};
use tlplab_transaction::{Access, Completer, Payload, RequesterConfig, memory_access};
use tlplab_units::{Duration, FcClass, Mrrs};
use tlplab_wire::tlp::{CompletionStatus, IoPort, Kind, Repr};

/// A function of an end point: one node, which shares the port with the other functions of its device.
pub(crate) struct EndPoint {
    pub(crate) port: PortId,
    /// Its source in the egress queues of the port.
    pub(crate) source: usize,
    /// All functions of the device by number, this one among them; only function 0 knows them.
    pub(crate) functions: Vec<(u8, NodeId)>,
    pub(crate) latency: Duration,
    /// Max_Read_Request_Size that software shall give it.
    pub(crate) mrrs: Mrrs,
    /// How long after a reset it asks configuration requests to come again.
    pub(crate) ready: Duration,
    pub(crate) function: Function,
    /// Its device has been told that it may act.
    pub(crate) started: bool,
    /// Absent while it handles an event, or if it is driven from outside.
    pub(crate) device: Option<Box<dyn Device>>,
    /// A device at the level of TLPs, which stands in for `device`.
    pub(crate) core: Option<Box<Core>>,
    pub(crate) next_op: u64,
    /// The first operation since the last reset: nobody wants to hear of earlier ones.
    pub(crate) first_op: u64,
    /// What its registers say: the BARs it decodes, whether it may master the bus, and how it interrupts.
    pub(crate) bars: [Option<BarWindow>; 6],
    pub(crate) bus_master: bool,
    pub(crate) interrupt_mode: InterruptMode,
    pub(crate) completer: Completer,
    pub(crate) initiator: Initiator,
    pub(crate) posted_writes: bool,
    /// It is on a parallel bus.
    pub(crate) on_bus: bool,
}

impl EndPoint {
    /// The BAR that claims an address of memory or I/O space, and the offset in it.
    pub(crate) fn bar_of(&self, address: u64, io: bool) -> Option<(u8, u64)> {
        (0u8..).zip(&self.bars).find_map(|(index, bar)| {
            let BarWindow { base, size, kind } = (*bar)?;
            let claims = (kind == BarKind::Io) == io && base <= address && address - base < size;
            claims.then(|| (index, address - base))
        })
    }

    /// Registers may have changed.
    pub(crate) fn look_again(&mut self) {
        let space = &self.function.space;
        self.bars = space.bars();
        self.bus_master = space.command().bus_master;
        self.interrupt_mode = space.interrupt_mode();
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
        let repr = self.tlps.get(handle).repr;
        let node = self.function_for(self.ports[ingress.index()].node, &repr);
        if self.has_core(node) {
            return self.core_gets(node, ingress, handle);
        }
        match (repr.kind(), memory_access(&repr)) {
            (Kind::Completion(_), _) => self.completion_arrived(node, ingress, handle),
            (Kind::Message(_), _) => self.consume(ingress, handle),
            (
                Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. },
                Some(access),
            ) => {
                self.bar_access(node, ingress, handle, access, false);
            }
            (Kind::IoRead { port, .. } | Kind::IoWrite { port, .. }, _) => {
                self.bar_access(node, ingress, handle, io_access(*port), true);
            }
            (Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. }, _) => {
                self.end_point_config(ingress, handle, *target);
            }
            _ => {
                let id = self.end_point(node).completer.id;
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    /// A request for a BAR: of the device, or of the MSI-X table that its function keeps for it.
    fn bar_access(&mut self, node: NodeId, ingress: PortId, handle: TlpHandle, access: Access, io: bool) {
        let end_point = self.end_point(node);
        let id = end_point.completer.id;
        let Some((bar, offset)) = end_point.bar_of(access.address, io) else {
            return self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
        };
        let tlp = self.tlps.get(handle);
        let (shape, write, kind) = (tlp.shape, is_write(&tlp.repr), *tlp.repr.kind());
        let data = write
            .then(|| if io { out_of_lanes(&tlp.payload, access) } else { data_of(&tlp.payload, access) });
        if shape.class == FcClass::Posted {
            self.posted_arrived(handle);
            self.consume(ingress, handle);
        } else {
            // The receive buffer is free when the device has taken the request; the TLP stays until it is answered.
            self.release_buffer(ingress, &shape);
        }
        if self.end_point(node).function.msix.as_ref().is_some_and(|msix| msix.claims(bar, offset)) {
            let value = self.msix_access(node, bar, offset, access.bytes, data);
            if shape.class != FcClass::Posted {
                self.answer(ingress, handle, Ok(value));
            }
            return;
        }
        let event = match data {
            Some(data) => {
                match kind {
                    Kind::DeferrableMemWrite { .. } => self.deferrable_write_done(ingress, handle),
                    Kind::IoWrite { .. } => self.answer(ingress, handle, Ok(Payload::EMPTY)),
                    _ => {}
                }
                Event::MmioWrite { bar, offset, data }
            }
            None => {
                self.tlps.get_mut(handle).asks = Some(node);
                let reply = ReplyToken(self.tlps.ask(handle));
                Event::MmioRead { bar, offset, bytes: access.bytes, reply }
            }
        };
        self.agenda.push_back(Task::Tell { node, event });
    }

    /// The device handles an event, and what it asks for is carried out.
    pub(crate) fn tell(&mut self, node: NodeId, event: Event) {
        let end_point = self.end_point(node);
        if end_point.core.is_some() {
            return; // its registers and resets tell it all that the others hear by events
        }
        let Some(mut device) = end_point.device.take() else {
            self.outside.push((self.now, node, event));
            return;
        };
        let mut next_op = end_point.next_op;
        let mode = end_point.interrupt_mode;
        let RequesterConfig { mps, mrrs, .. } = *end_point.initiator.requester.config();
        let mut actions = std::mem::take(&mut self.actions);
        let mut cx = Context::new(self.now, self.length_only, &self.device_infos, &mut next_op, &mut actions)
            .with_interrupts(mode)
            .with_request_sizes(mps, mrrs);
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
            Action::DmaRead { op, .. } | Action::DmaWrite { op, .. } if !self.end_point(node).bus_master => {
                self.operation_over(node, 0, op, Some(Err(DmaError::BusMasterDisabled)));
            }
            Action::DmaRead { op, stream, address, bytes, carry } => {
                self.begin(node, operation(stream, OperationKind::Read { op, address, bytes, carry }));
            }
            Action::DmaWrite { op, stream, address, data } => {
                self.begin(node, operation(stream, OperationKind::Write { op, address, data }));
            }
            Action::Msix { stream, vector } => self.raise_message(node, stream, vector),
            Action::Intx { stream, asserted } => self.set_intx(node, stream, asserted),
            Action::Reply { token, data } => self.reply(node, token, Ok(data)),
            Action::ReplyError { token, refusal } => self.reply(node, token, Err(refusal)),
            Action::Timer { at, id } => {
                let event = self.node_event(node);
                self.schedule(at.max(self.now), EventKind::ProgramTimer, event, id);
            }
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
        let Some(request) = self.tlps.answered(token.0) else {
            return self.fail(node, "answered a read that is over; each is answered once".into());
        };
        self.tlps.get_mut(request).asks = None;
        let tlp = self.tlps.get(request);
        let io = match *tlp.repr.kind() {
            Kind::IoRead { port, .. } => Some(port),
            _ => None,
        };
        let access = io.map(io_access).or_else(|| memory_access(&tlp.repr));
        if let (Ok(data), Some(Access { bytes, .. })) = (&answer, access)
            && data.len() != u64::from(bytes)
        {
            let found = data.len();
            let wrong =
                format!("answered a read of {bytes} B with {found} B; it must be as many as were asked for");
            return self.fail(node, wrong);
        }
        let answer = match io {
            Some(port) => answer.map(|data| in_lanes(&data, port)),
            None => answer,
        };
        self.answer(port, request, answer);
    }

    /// A device driven from outside starts operations through this.
    pub(crate) fn next_op(&mut self, node: NodeId) -> OpId {
        let end_point = self.end_point(node);
        end_point.next_op += 1;
        OpId(end_point.next_op - 1)
    }
}

fn is_write(request: &Repr) -> bool {
    matches!(
        request.kind(),
        Kind::MemWrite { .. }
            | Kind::DeferrableMemWrite { .. }
            | Kind::IoWrite { .. }
            | Kind::CfgWrite { .. }
    )
}

/// The bytes of I/O space that a request names.
fn io_access(port: IoPort) -> Access {
    let enables = u32::from(port.enables());
    let first = enables.trailing_zeros().min(3);
    Access { address: u64::from(port.address() + first), bytes: (enables >> first).trailing_ones() }
}

/// The answer to a read of I/O space is a doubleword, with the bytes asked for in their places.
fn in_lanes(data: &Payload, port: IoPort) -> Payload {
    let mut dword = [0; 4];
    let first = (io_access(port).address & 3) as usize;
    let bytes = data.bytes().unwrap_or(&[]);
    let count = bytes.len().min(4 - first);
    dword[first..first + count].copy_from_slice(&bytes[..count]);
    Payload::from(dword)
}

/// What a write to I/O space writes: the bytes of its doubleword that it names.
fn out_of_lanes(dword: &Payload, access: Access) -> Payload {
    let bytes = dword.bytes().unwrap_or(&[]).iter().skip((access.address & 3) as usize);
    Payload::from(bytes.take(access.bytes as usize).copied().collect::<Vec<_>>())
}

/// The valid bytes of a write's payload.
fn data_of(payload: &Payload, access: Access) -> Payload {
    match payload {
        Payload::Length(_) => Payload::Length(u64::from(access.bytes)),
        Payload::Bytes(_) => payload.clone(),
    }
}
