//! The root complex: root ports, host memory, the processor and its programs.

pub(crate) mod domains;
pub(crate) mod host_memory;
pub(crate) mod host_path;
pub(crate) mod memory;
pub(crate) mod peer;
mod pme;
pub(crate) mod processor;
pub(crate) mod programs;
pub(crate) mod translation;
pub(crate) mod turns;

use crate::config::{AddressMap, MMIO_LOW, PeerToPeer};
use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::answer::Answer;
use crate::node::bridges::Bridges;
use crate::node::error_messages::message_of;
use crate::node::function::{Function, Functions};
use crate::node::initiator::{Initiate, Initiator};
use crate::node::wires::{WireController, take_local_message, wire_of};
use crate::observe::errors::{ErrorMessage, PeerRefusal, ReportedError};
use crate::observe::registers::ChangedBy;
use crate::packet::access::PeerWay;
use crate::packet::attribution::Cause;
use crate::packet::routing::{BridgeRegisters, Route, claims, route_of};
use crate::packet::slab::TlpHandle;
use crate::packet::wires::Wires;
use domains::Domains;
use host_memory::{CachedMemory, MemorySystem};
use host_path::HostPath;
use memory::MemoryServer;
use peer::Splitter;
use processor::{Register, RegisterAccess, RegisterAccesses};
use programs::Program;
use std::collections::VecDeque;
use tlplab_cfgspace::interrupt::raise;
use tlplab_cfgspace::{AcsControls, InterruptMode, MessageWrite, Signal, Written, error};
use tlplab_transaction::{Access, Completer, CompletionError, Payload, memory_access};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::tlp::message::Code;
use tlplab_wire::tlp::{AddressType, CompletionStatus, Kind, Repr};
use translation::TranslationAgent;

pub(crate) struct Root {
    pub(crate) node: NodeId,
    pub(crate) latency: Duration,
    pub(crate) ports: Vec<PortId>,
    /// The functions on bus 0: the host bridge, then each root port's bridge.
    pub(crate) functions: Vec<Function>,
    /// By port: what its function's registers say of routing.
    pub(crate) bridges: Vec<BridgeRegisters>,
    /// The processor's accesses to registers, under way.
    pub(crate) registers: RegisterAccesses,
    pub(crate) completer: Completer,
    pub(crate) memory: CachedMemory,
    pub(crate) memory_system: Option<Box<MemorySystem>>,
    /// The translation agent, where any addresses are translated.
    pub(crate) agent: Option<Box<TranslationAgent>>,
    pub(crate) path: HostPath,
    pub(crate) domains: Domains,
    pub(crate) server: MemoryServer,
    pub(crate) initiator: Initiator,
    pub(crate) programs: Vec<Program>,
    pub(crate) peer_to_peer: PeerToPeer,
    pub(crate) splitter: Splitter,
    pub(crate) turns: turns::Turns,
    pub(crate) controller: WireController,
    /// Power management events that wait until their root port can show them.
    pub(crate) pmes: VecDeque<(usize, Bdf)>,
    pub(crate) addresses: AddressMap,
}

impl Initiate for Root {
    fn initiator(&mut self) -> &mut Initiator {
        &mut self.initiator
    }
    fn own_ports(&self) -> (&[PortId], usize) {
        (&self.ports, self.ports.len())
    }
    fn egress_for(&self, route: Route) -> Option<PortId> {
        self.port_for(route).map(|port| self.ports[port])
    }
    fn processing(&mut self, now: Time, carried: u64) -> Duration {
        self.latency + self.pass_processor_stages(now, carried)
    }
    fn function_at(&self, port: usize) -> usize {
        port + 1
    }
    fn functions(&mut self) -> &mut [Function] {
        &mut self.functions
    }
    fn register_at(&self, address: u64) -> Option<Register> {
        Register::at(address, &self.addresses)
    }
    fn submit_register(&mut self, cx: &mut Context, access: RegisterAccess) {
        self.access_register(cx, access);
    }
    fn register_done(
        &mut self,
        cx: &mut Context,
        index: u32,
        completion: Option<TlpHandle>,
        result: Result<Payload, CompletionError>,
    ) {
        self.register_completed(cx, index, completion, result);
    }
    fn issue_piece(&mut self, cx: &mut Context, index: u32, repr: Repr, payload: Payload) -> TlpHandle {
        self.send_piece(cx, index, repr, payload)
    }
    fn piece_done(
        &mut self,
        cx: &mut Context,
        index: u32,
        offset: u32,
        completion: Option<TlpHandle>,
        result: Result<Payload, CompletionError>,
    ) {
        self.piece_completed(cx, index, offset, completion, result);
    }
}

impl Answer for Root {
    fn node(&self) -> NodeId {
        self.node
    }
    fn answer_time(&self) -> Duration {
        self.latency
    }
    /// Payloads are limited by the hierarchy behind the root port.
    fn completer(&self, cx: &Context, port: PortId, _request: &Repr) -> (Completer, usize) {
        (Completer { mps: cx.links.max_payload(port), ..self.completer }, self.ports.len())
    }
    fn send_completion(&mut self, cx: &mut Context, egress: PortId, source: usize, completion: Waiting) {
        if self.domains.hold_memory() {
            return self.send_from_memory(cx, egress, completion);
        }
        cx.enqueue_at_egress(egress, source, completion);
    }
    fn answers(&mut self, now: Time) {
        if let Some(system) = &mut self.memory_system {
            system.answers(now);
        }
    }
}

impl Functions for Root {
    fn function(&mut self, index: usize) -> &mut Function {
        &mut self.functions[index]
    }

    /// Its functions have their numbers by nature.
    fn set_id(&mut self, _cx: &mut Context, _index: usize, _id: Bdf) {}

    fn obey_registers(&mut self, cx: &mut Context, index: usize, written: Written) {
        // The host bridge's are not about a link.
        let Some(port) = index.checked_sub(1) else { return };
        self.bridges[port] = self.functions[index].follow_bridge_registers(cx, self.ports[port], written);
        self.obey_bridge_control(cx, index, written);
        if written.root {
            self.show_next_pme(cx, index);
        }
    }
}

impl Bridges for Root {
    /// That of a root port is there at once.
    fn send_port_message(&mut self, cx: &mut Context, _index: usize, message: MessageWrite) {
        cx.observe.counts.interrupts += 1;
        cx.agenda.push(Task::Message { address: message.address, data: message.data });
    }

    fn send_pme(&mut self, cx: &mut Context, index: usize) {
        let requester = self.functions[index].id;
        self.take_pme(cx, index, requester);
    }

    fn update_wires(&mut self, cx: &mut Context, _index: usize) {
        let mut wires = Wires::NONE;
        for (device, (port, function)) in (1..).zip(self.ports.iter().zip(&self.functions[1..])) {
            let below = cx.links.wires_below(*port).with(Wires::of(&function.space));
            wires = wires.with(below.turned(device));
        }
        self.controller.set(cx, wires);
    }

    fn obey_secondary_bus_reset(&mut self, cx: &mut Context) {
        for (port, own) in self.ports.iter().zip(&self.functions[1..]) {
            cx.reset_below(*port, own.resets_below());
        }
    }
}

impl Root {
    pub(crate) fn port_for(&self, route: Route) -> Option<usize> {
        self.bridges.iter().position(|bridge| claims(bridge, route))
    }

    /// True if a write goes to the interrupt controller.
    pub(crate) fn is_interrupt(&self, access: Access) -> bool {
        self.addresses.interrupts.contains(&access.address)
    }

    /// True if all of the access is in memory: outside the interrupt range and within its size, or as memory says.
    fn holds(&self, requester: Bdf, access: Access, writes: bool) -> bool {
        let granted = self.memory.ram.grants(requester, access.address, access.bytes.into(), writes);
        if let Some(granted) = granted {
            return granted;
        }
        let Some(end) = access.address.checked_add(u64::from(access.bytes)) else { return false };
        // The range of device registers below 4 GiB is a hole in memory.
        let in_hole = access.address < 1 << 32 && end > MMIO_LOW;
        end <= self.server.size() && !in_hole
    }
}

impl Root {
    /// A TLP has passed the root complex's processing.
    pub(crate) fn handle_tlp(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        if self.rejects(cx, ingress, handle) {
            return;
        }
        let tlp = cx.tlps.get(handle);
        let (repr, route) = (tlp.repr, route_of(&tlp.repr));
        let port = cx.links.index(ingress);
        let from = &self.bridges[port];
        if !from.admits(&repr) {
            let reason = from.objection_to(&repr);
            return cx.refuse_access(ingress, handle, self.completer.id, reason);
        }
        if !from.passes_up(route) {
            return self.refuse_request(cx, ingress, handle);
        }
        if self.agent.is_some() && repr.kind().is_memory() && self.translates(cx, ingress, handle) {
            return;
        }
        let own = self.completer.id;
        match repr.kind() {
            Kind::Completion(completion) if completion.id().requester == own => {
                self.hold_behind_writes(cx, ingress, handle)
            }
            Kind::Message(message) if wire_of(message.code()).is_some() => {
                self.hold_behind_writes(cx, ingress, handle)
            }
            Kind::Message(message)
                if message.completed_itags().is_some() && message.target() == Some(own) =>
            {
                self.hold_behind_writes(cx, ingress, handle)
            }
            Kind::Message(message) if message.target().is_none() => self.take_message(cx, ingress, handle),
            _ => match self.port_for(route) {
                Some(port) => self.peer_to_peer(cx, ingress, port, handle),
                None => self.accept_memory_request(cx, ingress, handle),
            },
        }
    }

    fn accept_memory_request(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let repr = cx.tlps.get(handle).repr;
        let access = match (repr.kind(), memory_access(&repr)) {
            (
                Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. },
                Some(access),
            ) if repr.attributes().at != AddressType::TranslationRequest => access,
            _ => return self.refuse_request(cx, ingress, handle),
        };
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        let interrupt = write && self.is_interrupt(access);
        let writes = !matches!(repr.kind(), Kind::MemRead { .. });
        if !interrupt && !self.holds(repr.transaction_id().requester, access, writes) {
            return self.refuse_request(cx, ingress, handle);
        }
        if write {
            self.count_posted_write();
        }
        if self.memory_system.is_some() && self.hold_at_root(cx, ingress, handle) {
            return;
        }
        self.send_to_memory(cx, ingress, handle);
    }

    /// A request of a device, or an interrupt, has been accepted and translated.
    pub(crate) fn send_to_memory(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        if self.domains.hold_memory() {
            return self.send_to_memory_domain(cx, ingress, handle);
        }
        self.reach_memory(cx, ingress, handle);
    }

    /// It is where memory is.
    pub(crate) fn reach_memory(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        if !self.enter_host_path(cx, ingress, handle) {
            self.access_memory(cx, ingress, handle);
        }
    }

    /// A request of a device is at host memory, or an interrupt at its controller.
    pub(crate) fn access_memory(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let repr = cx.tlps.get(handle).repr;
        let Some(access) = memory_access(&repr) else { return };
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        cx.leave_request_queue(handle);
        cx.leave_hold(handle);
        if write && self.is_interrupt(access) {
            return self.deliver_when_written(cx, ingress, handle);
        }
        let (now, at) = (cx.now(), cx.node_event(self.node));
        let done = self.time_memory_access(cx, handle, access, write);
        if write {
            // A posted write leaves the receive buffer when memory takes it.
            if done == now {
                self.complete_memory_write(cx, handle, ingress);
            } else {
                let data = handle.to_event() | u64::from(ingress.0) << 32;
                cx.schedule(done, EventKind::MemoryAccept, at, data);
            }
        } else {
            if self.path.is_direct() {
                let shape = cx.tlps.get(handle).shape;
                cx.release_buffer(ingress, &shape);
            }
            let data = handle.to_event() | u64::from(ingress.0) << 32;
            if done == now {
                self.complete_memory_access(cx, handle, ingress);
            } else {
                cx.schedule(done, EventKind::MemoryDone, at, data);
            }
        }
    }

    /// The time at which a request that reaches memory now has its data or, if it is a posted write, is in memory.
    fn time_memory_access(
        &mut self,
        cx: &mut Context,
        handle: TlpHandle,
        access: Access,
        posted: bool,
    ) -> Time {
        let now = cx.now();
        let (served, written) = (self.server.serve(now, access.bytes), self.server.written());
        let done = match (&self.memory_system, posted) {
            (None, false) => return served + self.server.latency(),
            (None, true) => served,
            // Nothing is done before the writes that came before it; a read looks its lines up meanwhile.
            (Some(_), _) => written.max(served + self.delay_of(cx, handle, access, posted)),
        };
        if posted {
            self.server.write_until(done);
        }
        done
    }

    pub(crate) fn refuse_request(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let id = self.completer.id;
        // Answers queue behind the processor's own requests.
        cx.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
    }

    /// An interrupt, or a completion for the processor: neither passes a posted write (PCIe 5.0 §2.4.1, table 2-39), and a write
    /// that still waits for memory could be passed here.
    fn hold_behind_writes(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        if !self.queue_behind_writes(ingress, handle) {
            self.deliver_when_written(cx, ingress, handle);
        }
    }

    /// The processor gets it when memory has taken all writes that reached it.
    fn deliver_when_written(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let (now, written) = (cx.now(), self.server.written());
        if written <= now {
            return self.deliver_to_processor(cx, ingress, handle);
        }
        let at = cx.node_event(self.node);
        let data = handle.to_event() | u64::from(ingress.0) << 32;
        cx.schedule(written, EventKind::MemoryAccept, at, data);
    }

    pub(crate) fn deliver_to_processor(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            // The writes before it are the memory's to finish.
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        match *cx.tlps.get(handle).repr.kind() {
            Kind::Completion(_) => {
                if !self.send_to_processor(cx, ingress, handle) {
                    self.take_completion(cx, ingress, handle);
                }
            }
            Kind::Message(message) if message.completed_itags().is_some() => {
                self.invalidation_completed(cx, ingress, handle, message);
            }
            Kind::Message(_) => {
                if take_local_message(cx, ingress, handle) {
                    self.update_wires(cx, 0);
                }
            }
            _ => {
                self.interrupt(cx, ingress, handle);
                self.release_posted_write(cx);
            }
        }
    }

    /// Memory takes the data of a posted write, or is done with the writes before an interrupt or a completion.
    pub(crate) fn complete_memory_write(&mut self, cx: &mut Context, handle: TlpHandle, ingress: PortId) {
        let access = memory_access(&cx.tlps.get(handle).repr);
        if access.is_none_or(|access| self.is_interrupt(access)) {
            return self.deliver_to_processor(cx, ingress, handle);
        }
        self.write_memory(cx, handle);
        let place = cx.place_of(self.node);
        let now = cx.now();
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        cx.complete_posted(ingress, handle);
        cx.consume(ingress, handle);
        self.release_posted_write(cx);
    }

    /// The data of a write are in memory.
    fn write_memory(&mut self, cx: &Context, handle: TlpHandle) {
        let tlp = cx.tlps.get(handle);
        if let (Some(access), Some(data)) = (memory_access(&tlp.repr), tlp.payload.bytes()) {
            self.memory.ram.write_for(tlp.repr.transaction_id().requester, access.address, data);
        }
    }

    /// Memory has the data of a read or of a deferrable write.
    pub(crate) fn complete_memory_access(&mut self, cx: &mut Context, handle: TlpHandle, ingress: PortId) {
        let tlp = cx.tlps.get(handle);
        if matches!(tlp.repr.kind(), Kind::DeferrableMemWrite { .. }) {
            self.write_memory(cx, handle);
            cx.deferrable_data_arrived(ingress, handle);
            return self.return_from_memory(cx, ingress, handle, Payload::EMPTY);
        }
        let carries = tlp.carry || !cx.length_only;
        let (access, requester) = (memory_access(&tlp.repr), tlp.repr.transaction_id().requester);
        self.release_read(cx);
        let data = match access {
            Some(access) if carries => {
                let mut bytes = vec![0; access.bytes as usize];
                self.memory.ram.read_for(requester, access.address, &mut bytes);
                Payload::from(bytes)
            }
            Some(access) => Payload::Length(u64::from(access.bytes)),
            None => Payload::EMPTY,
        };
        self.return_from_memory(cx, ingress, handle, data);
    }

    fn interrupt(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let tlp = cx.tlps.get(handle);
        let address = memory_access(&tlp.repr).map_or(0, |access| access.address);
        let mut word = [0; 4];
        if let Some(data) = tlp.payload.bytes() {
            word[..data.len().min(4)].copy_from_slice(&data[..data.len().min(4)]);
        }
        let word = u32::from_le_bytes(word);
        cx.observe.counts.interrupts += 1;
        cx.consume(ingress, handle);
        cx.agenda.push(Task::Message { address, data: word });
    }

    /// A request or completion from one root port to another.
    fn peer_to_peer(&mut self, cx: &mut Context, ingress: PortId, port: usize, handle: TlpHandle) {
        if !self.admits_peer(cx, ingress, port, handle) {
            return;
        }
        let from = &self.bridges[cx.links.index(ingress)];
        // What egress control allows goes straight, past the IOMMU (PCIe 5.0 table 6-11).
        let redirects = match self.ports[port] == ingress {
            true => from.access.enabled.contains(AcsControls::REQUEST_REDIRECT),
            false => from.way_to_peer(&cx.tlps.get(handle).repr, port + 1) == PeerWay::Redirected,
        };
        if !redirects || !self.hold_redirected(cx, ingress, handle) {
            self.pass_to_peer(cx, ingress, port, handle);
        }
    }

    /// True if a TLP may go from one root port to another, or back by the same; if not, it is refused.
    fn admits_peer(&mut self, cx: &mut Context, ingress: PortId, port: usize, handle: TlpHandle) -> bool {
        let repr = &cx.tlps.get(handle).repr;
        let from = &self.bridges[cx.links.index(ingress)];
        if self.ports[port] == ingress {
            // Without the capability the root complex sends back what came from below.
            if from.access.present && !from.forwards_up() {
                cx.note_refused_peer(ingress, handle, PeerRefusal::NoUpstreamForwarding);
                self.refuse_request(cx, ingress, handle);
                return false;
            }
        } else if from.way_to_peer(repr, port + 1) == PeerWay::Forbidden {
            cx.refuse_access(ingress, handle, self.completer.id, PeerRefusal::EgressControl);
            return false;
        }
        true
    }

    fn pass_to_peer(&mut self, cx: &mut Context, ingress: PortId, port: usize, handle: TlpHandle) {
        let (egress, policy) = (self.ports[port], self.peer_to_peer);
        let tlp = cx.tlps.get(handle);
        let splits = matches!(tlp.repr.kind(), Kind::MemRead { .. } | Kind::MemWrite { .. });
        // Between hierarchies with different MPS somebody must cut payloads to size, and that is the root complex.
        let (from, to) = (cx.planned_payload(ingress), cx.planned_payload(egress));
        let policy = match policy {
            PeerToPeer::Forward if from != to => PeerToPeer::Split(from.min(to).bytes()),
            other => other,
        };
        match policy {
            PeerToPeer::Refuse if !matches!(tlp.repr.kind(), Kind::Completion(_)) => {
                cx.note_refused_peer(ingress, handle, PeerRefusal::RootComplex);
                self.refuse_request(cx, ingress, handle);
            }
            PeerToPeer::Split(limit) if splits => self.split_peer_request(cx, ingress, handle, limit),
            _ if self.turns.wait() => self.wait_for_turn(cx, ingress, handle),
            _ => self.send_to_port(cx, ingress, port, handle),
        }
    }

    /// Poisoned data, wrong digests and what is to be refused end here, unless the TLP goes on to another root port.
    fn rejects(&self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        if !cx.is_flawed(handle) {
            return false;
        }
        if self.port_for(route_of(&cx.tlps.get(handle).repr)).is_some() {
            cx.note_poison(ingress, handle);
            return false;
        }
        cx.reject(ingress, handle)
    }

    /// The processor's own request could not leave by a root port: a posted one is lost, others are answered as unsupported.
    pub(crate) fn terminated(&mut self, cx: &mut Context, port: PortId, request: TlpHandle) {
        let (repr, flow) = (cx.tlps.get(request).repr, cx.tlps.get(request).flow);
        let status = CompletionStatus::UnsupportedRequest;
        match self.completer.refuse(&repr, status) {
            None => cx.report_departure(port, request),
            Some(completion) => {
                cx.observe.counts.refused += 1;
                cx.detect_refusal(port, request, status);
                let answer = cx.tlps.insert(completion, Payload::EMPTY, flow);
                cx.pass_history(request, answer, Cause::Completer, self.node);
                let outcome = self.initiator.requester.handle_completion(cx.now(), &completion, None);
                self.outcome(cx, Some((port, answer)), outcome);
                cx.drop_tlp(answer);
            }
        }
        cx.drop_tlp(request);
        cx.agenda.pump(self.node);
    }

    /// A message that ends at the root complex.
    fn take_message(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let index = cx.links.index(ingress) + 1;
        if let Kind::Message(message) = cx.tlps.get(handle).repr.kind()
            && message.code() == Code::PmPme
        {
            let requester = message.id().requester;
            self.take_pme(cx, index, requester);
        } else if let Some((message, source)) = message_of(cx.tlps.get(handle))
            && error::forward(self.functions[index].space.change(cx.now(), ChangedBy::Hardware), message)
        {
            self.log_error(cx, index, message, source);
        }
        cx.consume(ingress, handle);
    }

    /// A root port logs a message, and raises its interrupt if software wants that.
    pub(crate) fn log_error(&mut self, cx: &mut Context, index: usize, message: ErrorMessage, source: Bdf) {
        let Some(port) = index.checked_sub(1).map(|port| self.ports[port]) else {
            return; // the host bridge reports to nobody
        };
        let space = self.functions[index].space.change(cx.now(), ChangedBy::Hardware);
        let interrupts = error::log_at_root(space, message, source);
        let new = ReportedError { port, source, message, count: 0, first: cx.now(), interrupts: 0 };
        let reported = cx.observe.errors.reported.entry((port, source, message)).or_insert(new);
        reported.count += 1;
        reported.interrupts += u64::from(interrupts);
        // By MSI only: software that leaves Root Error Status as it is would hold a wire that others share.
        if interrupts
            && space.interrupt_mode() == InterruptMode::Msi
            && let Signal::Write(message) = raise(space, None, 0)
        {
            self.send_port_message(cx, index, message);
        }
    }

    /// The last completion of an answer has left.
    pub(crate) fn answered(&mut self, now: Time) {
        self.answers(now);
    }

    /// The handlers of a legacy interrupt have had their time.
    pub(crate) fn handler_over(&mut self, cx: &mut Context, data: u64) {
        self.controller.handler_over(cx, data);
    }
}
