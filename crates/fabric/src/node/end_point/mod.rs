//! End points: a port, a requester, and a device behind them.

pub(crate) mod ats;
pub(crate) mod core;
pub(crate) mod device;
pub(crate) mod registers;

use self::ats::Ats;
use self::core::Core;
use crate::kernel::ids::{NodeId, PortId};
use crate::link::Staged;
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::node::function::Function;
use crate::node::initiator::{Initiate, Initiator, Ticket};
use crate::observe::registers::ChangedBy;
use crate::packet::routing::Route;
use crate::packet::slab::TlpHandle;
use tlplab_cfgspace::{BarKind, BarWindow, InterruptMode};
use tlplab_device::{Device, Event, ReplyToken};
use tlplab_transaction::{Access, Classes, Completer, Outcome, Outgoing, Payload, memory_access};
use tlplab_units::{Duration, FcClass, Mrrs, Time};
use tlplab_wire::tlp::{AddressType, CompletionStatus, IoPort, Kind, Repr};

/// TLPs of a class that wait at the egress before the requester makes more. A flit has 236 bytes for TLPs (PCIe 6.0, section 4.2.3): as
/// many of the least size, and one.
const STAGED: Staged = Staged { framed: 2, in_flits: 236 / 12 + 2 };

/// A function of an end point: one node, which shares the port with the other functions of its device.
pub(crate) struct EndPoint {
    pub(crate) node: NodeId,
    pub(crate) port: PortId,
    /// Its source in the egress queues of the port.
    pub(crate) source: usize,
    /// Its number in the device.
    pub(crate) number: u8,
    /// All functions of the device by number, this one among them; only function 0 knows them.
    pub(crate) functions: Vec<(u8, NodeId)>,
    pub(crate) latency: Duration,
    /// The time of its device for an answer: as long as function 0 takes for a TLP.
    pub(crate) answer_time: Duration,
    /// Max_Read_Request_Size that software shall give it.
    pub(crate) mrrs: Mrrs,
    /// The time after a reset in which it answers configuration requests with Retry Status.
    pub(crate) ready: Duration,
    pub(crate) function: Function,
    /// Its device has been told that it may act.
    pub(crate) started: bool,
    /// Its device's timers, each with the time that is left, while it is pulled out: without power its time stands.
    pub(crate) stopped: Option<Vec<(Duration, u64)>>,
    /// Absent if it is driven from outside.
    pub(crate) device: Option<Box<dyn Device>>,
    /// A device at the level of TLPs, which stands in for `device`.
    pub(crate) core: Option<Box<Core>>,
    pub(crate) next_op: u64,
    /// The first operation since the last reset: nobody wants to hear of earlier ones.
    pub(crate) first_op: u64,
    /// The state of its registers: the BARs that it decodes, whether it may master the bus, and its kind of interrupt.
    pub(crate) bars: [Option<BarWindow>; 6],
    pub(crate) bus_master: bool,
    pub(crate) interrupt_mode: InterruptMode,
    pub(crate) completer: Completer,
    pub(crate) initiator: Initiator,
    pub(crate) posted_writes: bool,
    /// It is on a parallel bus.
    pub(crate) on_bus: bool,
    /// Its translations, if it can ask for some.
    pub(crate) ats: Option<Box<Ats>>,
}

impl Initiate for EndPoint {
    fn initiator(&mut self) -> &mut Initiator {
        &mut self.initiator
    }
    fn own_ports(&self) -> (&[PortId], usize) {
        (std::slice::from_ref(&self.port), self.source)
    }
    fn egress_for(&self, _route: Route) -> Option<PortId> {
        Some(self.port)
    }
    fn processing(&mut self, _now: Time, _carried: u64) -> Duration {
        self.latency
    }
    fn function_at(&self, _port: usize) -> usize {
        0
    }
    fn functions(&mut self) -> &mut [Function] {
        std::slice::from_mut(&mut self.function)
    }
    fn room(&self, cx: &Context) -> Option<Classes> {
        let mut room = None;
        for class in [FcClass::Posted, FcClass::NonPosted] {
            if cx.links.has_room(self.port, self.source, class, STAGED) {
                room = Some(room.unwrap_or(Classes::NONE).with(class));
            }
        }
        room
    }
    fn posts_writes(&self) -> bool {
        self.posted_writes
    }
    fn lane(&self, stream: u16) -> u16 {
        stream + u16::from(self.ats.is_some())
    }
    fn lane_of_operation(&mut self, now: Time, stream: u16, address: u64, bytes: u64) -> u16 {
        if self.ats.is_none() {
            return stream;
        }
        self.want_translations(now, address, bytes);
        self.lane(stream)
    }
    fn poll(&mut self, now: Time, room: Classes) -> Option<Outgoing<Ticket>> {
        let requester = &mut self.initiator.requester;
        match &mut self.ats {
            None => requester.poll_request(now, room),
            Some(ats) => ats.poll(requester, now, room, self.function.id),
        }
    }
    fn note_outcome(&mut self, cx: &mut Context, outcome: &Outcome<Ticket>) {
        if self.ats.is_some() {
            self.note_translated(cx, outcome);
        }
    }
    fn waits_for_translations(&self) -> Option<[bool; 2]> {
        self.ats.as_ref().map(|ats| ats.waits)
    }
    fn issue_piece(&mut self, _cx: &mut Context, _index: u32, _repr: Repr, _payload: Payload) -> TlpHandle {
        unreachable!("end points split no requests of others")
    }
    fn submit_intx(&mut self, cx: &mut Context, stream: u16, asserted: bool) {
        self.function.space.change(cx.now(), ChangedBy::Hardware).set_interrupt_status(asserted);
        self.update_wires(cx, stream);
    }
}

impl Answer for EndPoint {
    fn node(&self) -> NodeId {
        self.node
    }
    fn answer_time(&self) -> Duration {
        self.answer_time
    }
    fn completer(&self, _cx: &Context, _port: PortId, _request: &Repr) -> (Completer, usize) {
        (self.completer, self.source)
    }
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

    /// A TLP for this function has passed the end point's processing.
    pub(crate) fn handle_tlp(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        if self.core.is_some() {
            return self.give_to_core(cx, ingress, handle);
        }
        let repr = cx.tlps.get(handle).repr;
        match (repr.kind(), memory_access(&repr)) {
            (Kind::Completion(_), _) => self.take_completion(cx, ingress, handle),
            (Kind::Message(message), _) => self.take_message(cx, ingress, handle, *message),
            // It is the root complex that translates.
            (Kind::MemRead { .. }, _) if repr.attributes().at == AddressType::TranslationRequest => {
                cx.refuse(ingress, handle, self.completer.id, CompletionStatus::UnsupportedRequest);
            }
            (
                Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. },
                Some(access),
            ) => {
                self.bar_access(cx, ingress, handle, access, false);
            }
            (Kind::IoRead { port, .. } | Kind::IoWrite { port, .. }, _) => {
                self.bar_access(cx, ingress, handle, io_access(*port), true);
            }
            (Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. }, _) => {
                self.config_access(cx, ingress, handle, *target);
            }
            _ => cx.refuse(ingress, handle, self.completer.id, CompletionStatus::UnsupportedRequest),
        }
    }

    /// A request for a BAR: of the device, or of the MSI-X table that its function keeps for it.
    fn bar_access(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, access: Access, io: bool) {
        let id = self.completer.id;
        let Some((bar, offset)) = self.bar_of(access.address, io) else {
            return cx.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
        };
        let tlp = cx.tlps.get(handle);
        let (shape, write, kind) = (tlp.shape, is_write(&tlp.repr), *tlp.repr.kind());
        let data = write
            .then(|| if io { out_of_lanes(&tlp.payload, access) } else { data_of(&tlp.payload, access) });
        if shape.class == FcClass::Posted {
            cx.complete_posted(ingress, handle);
            cx.consume(ingress, handle);
        } else {
            // The receive buffer is free when the device has taken the request; the TLP stays until it is answered.
            cx.release_buffer(ingress, &shape);
        }
        if self.function.msix.as_ref().is_some_and(|msix| msix.claims(bar, offset)) {
            let value = self.msix_access(cx, bar, offset, access.bytes, data);
            if shape.class != FcClass::Posted {
                self.answer(cx, ingress, handle, Ok(value));
            }
            return;
        }
        let event = match data {
            Some(data) => {
                match kind {
                    Kind::DeferrableMemWrite { .. } => self.deferrable_write_done(cx, ingress, handle),
                    Kind::IoWrite { .. } => self.answer(cx, ingress, handle, Ok(Payload::EMPTY)),
                    _ => {}
                }
                Event::MmioWrite { bar, offset, data }
            }
            None => {
                cx.tlps.get_mut(handle).asks = Some(self.node);
                let reply = ReplyToken(cx.tlps.ask(handle));
                Event::MmioRead { bar, offset, bytes: access.bytes, reply }
            }
        };
        cx.agenda.push(Task::Tell { node: self.node, event });
    }

    /// Poisoned data, wrong digests and what is to be refused end here. Says whether the TLP did.
    pub(crate) fn rejects(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        cx.is_flawed(handle) && cx.reject(ingress, handle)
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
pub(crate) fn io_access(port: IoPort) -> Access {
    let enables = u32::from(port.enables());
    let first = enables.trailing_zeros().min(3);
    Access { address: u64::from(port.address() + first), bytes: (enables >> first).trailing_ones() }
}

/// The answer to a read of I/O space is a doubleword, with the bytes asked for in their places.
pub(crate) fn in_lanes(data: &Payload, port: IoPort) -> Payload {
    let mut dword = [0; 4];
    let first = (io_access(port).address & 3) as usize;
    let bytes = data.bytes().unwrap_or(&[]);
    let count = bytes.len().min(4 - first);
    dword[first..first + count].copy_from_slice(&bytes[..count]);
    Payload::from(dword)
}

/// The data of a write to I/O space: the bytes of its doubleword that it enables.
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
