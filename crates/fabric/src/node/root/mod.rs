//! The root complex: root ports, host memory, the processor and its programs.

pub(crate) mod host_memory;
pub(crate) mod host_path;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod processor;

use crate::config::{AddressMap, PeerToPeer};
use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::function::Function;
use crate::node::initiator::{Initiator, Operation, OperationKind, data_bytes};
use crate::node::intx::{WireController, wire_of};
use crate::node::root::host_memory::{CachedMemory, MemorySystem};
use crate::node::root::host_path::HostPath;
use crate::node::root::memory::MemoryServer;
use crate::node::root::peer::Splitter;
use crate::node::root::processor::RegisterAccesses;
use crate::node::routing::{BridgeRegisters, Route, claims, route_of};
use crate::packet::slab::TlpHandle;
use crate::sim::{Fabric, Task};
use crate::software::enumeration::MMIO_LOW;
use tlplab_device::{HostAction, HostContext, HostEvent, HostMemory, HostProgram};
use tlplab_transaction::{Access, Completer, Payload, memory_access};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::tlp::{CompletionStatus, Kind};

/// Where message signalled interrupts are written to: the interrupt controller's range of x86 machines.
pub const MSI_ADDRESS: u64 = 0xFEE0_0000;

pub(crate) struct Root {
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
    pub(crate) path: HostPath,
    pub(crate) server: MemoryServer,
    pub(crate) initiator: Initiator,
    pub(crate) programs: Vec<Program>,
    pub(crate) peer_to_peer: PeerToPeer,
    pub(crate) splitter: Splitter,
    pub(crate) controller: WireController,
    pub(crate) addresses: AddressMap,
}

/// A host program and its part of the processor.
pub(crate) struct Program {
    /// Absent while it handles an event, or if it is driven from outside.
    pub(crate) program: Option<Box<dyn HostProgram>>,
    pub(crate) next_op: u64,
    /// Its stream 0 in the processor's requester, and how many it has.
    pub(crate) streams: (u16, u16),
}

impl Root {
    pub(crate) fn port_for(&self, route: Route) -> Option<usize> {
        self.bridges.iter().position(|bridge| claims(bridge, route))
    }

    /// Is it the interrupt controller that a write goes to?
    pub(crate) fn is_interrupt(&self, access: Access) -> bool {
        self.addresses.interrupts.contains(&access.address)
    }

    /// Is all of the access in memory (outside the interrupt range and within its size)?
    fn holds(&self, access: Access) -> bool {
        let Some(end) = access.address.checked_add(u64::from(access.bytes)) else { return false };
        // The range of device registers below 4 GiB is a hole in memory.
        let in_hole = access.address < 1 << 32 && end > MMIO_LOW;
        end <= self.server.size() && !in_hole
    }
}

/// The message of an interrupt: the address tells the function, and the data the vector. (MSI has 16 bits of data, of which the
/// function may change the low five.)
pub(crate) fn message(function: Bdf, vector: u16) -> (u64, u32) {
    (MSI_ADDRESS + 16 * u64::from(function.0), u32::from(vector))
}

/// The function and vector of a [`message`].
fn source_of(address: u64, data: u32) -> (Bdf, u16) {
    (Bdf(((address - MSI_ADDRESS) / 16) as u16), data as u16)
}

impl Fabric {
    pub(crate) fn root(&mut self) -> &mut Root {
        match &mut self.nodes[self.root_node.index()] {
            Node::Root(root) => root,
            _ => unreachable!("the fabric has a root complex"),
        }
    }

    /// A TLP has passed the root complex's processing.
    pub(crate) fn root_takes(&mut self, ingress: PortId, handle: TlpHandle) {
        let tlp = self.tlps.get(handle);
        let (repr, route) = (tlp.repr, route_of(&tlp.repr));
        let port = self.ports[ingress.index()].index;
        if !self.root().bridges[port].passes_up(route) {
            return self.root_refuses(ingress, handle);
        }
        let own = self.root().completer.id;
        match repr.kind() {
            Kind::Completion(completion) if completion.id().requester == own => {
                self.behind_writes(ingress, handle)
            }
            Kind::Message(message) if wire_of(message.code()).is_some() => {
                self.behind_writes(ingress, handle)
            }
            Kind::Message(message) if message.target().is_none() => self.message_at_root(ingress, handle),
            _ => match self.root().port_for(route) {
                Some(port) => self.peer_to_peer(ingress, port, handle),
                None => self.memory_request(ingress, handle),
            },
        }
    }

    fn memory_request(&mut self, ingress: PortId, handle: TlpHandle) {
        let repr = self.tlps.get(handle).repr;
        let access = match (repr.kind(), memory_access(&repr)) {
            (
                Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. },
                Some(access),
            ) => access,
            _ => return self.root_refuses(ingress, handle),
        };
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        let interrupt = write && self.root().is_interrupt(access);
        if !interrupt && !self.root().holds(access) {
            return self.root_refuses(ingress, handle);
        }
        if write {
            self.posted_came();
        }
        if self.root().memory_system.is_some() && self.waits_at_root(ingress, handle) {
            return;
        }
        self.goes_to_memory(ingress, handle);
    }

    /// A request of a device, or an interrupt, has been accepted and translated.
    pub(crate) fn goes_to_memory(&mut self, ingress: PortId, handle: TlpHandle) {
        if !self.sets_out(ingress, handle) {
            self.reaches_memory(ingress, handle);
        }
    }

    /// A request of a device is at host memory, or an interrupt at its controller.
    pub(crate) fn reaches_memory(&mut self, ingress: PortId, handle: TlpHandle) {
        let repr = self.tlps.get(handle).repr;
        let Some(access) = memory_access(&repr) else { return };
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        self.leaves_queue(handle);
        if write && self.root().is_interrupt(access) {
            return self.when_written(ingress, handle);
        }
        let (now, at) = (self.now, self.node_event(self.root_node));
        let done = self.memory_time(handle, access, write);
        if write {
            // A posted write leaves the receive buffer when memory takes it.
            if done == now {
                self.memory_accepts(handle, ingress);
            } else {
                let data = handle.to_event() | u64::from(ingress.0) << 32;
                self.schedule(done, EventKind::MemoryAccept, at, data);
            }
        } else {
            if self.root().path.is_direct() {
                let shape = self.tlps.get(handle).shape;
                self.release_buffer(ingress, &shape);
            }
            let data = handle.to_event() | u64::from(ingress.0) << 32;
            if done == now {
                self.memory_done(handle, ingress);
            } else {
                self.schedule(done, EventKind::MemoryDone, at, data);
            }
        }
    }

    /// When a request that reaches memory now has its data or, if it is a posted write, is in memory.
    fn memory_time(&mut self, handle: TlpHandle, access: Access, posted: bool) -> Time {
        let now = self.now;
        let Root { server, memory_system, .. } = self.root();
        let (served, written) = (server.serve(now, access.bytes), server.written());
        let done = match (memory_system, posted) {
            (None, false) => return served + server.latency(),
            (None, true) => served,
            // Nothing is done before the writes that came before it; a read looks its lines up meanwhile.
            (Some(_), _) => written.max(served + self.delay_of(handle, access, posted)),
        };
        if posted {
            self.root().server.write_until(done);
        }
        done
    }

    pub(crate) fn root_refuses(&mut self, ingress: PortId, handle: TlpHandle) {
        let id = self.root().completer.id;
        // Answers queue behind the processor's own requests.
        self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
    }

    /// An interrupt, or a completion for the processor: neither passes a posted write (PCIe 5.0 §2.4.1, table 2-39), and a write
    /// that still waits for memory could be passed here.
    fn behind_writes(&mut self, ingress: PortId, handle: TlpHandle) {
        if !self.waits_behind_writes(ingress, handle) {
            self.when_written(ingress, handle);
        }
    }

    /// The processor gets it when memory has taken all writes that reached it.
    fn when_written(&mut self, ingress: PortId, handle: TlpHandle) {
        let (now, written) = (self.now, self.root().server.written());
        if written <= now {
            return self.processor_takes(ingress, handle);
        }
        let at = self.node_event(self.root_node);
        let data = handle.to_event() | u64::from(ingress.0) << 32;
        self.schedule(written, EventKind::MemoryAccept, at, data);
    }

    pub(crate) fn processor_takes(&mut self, ingress: PortId, handle: TlpHandle) {
        let (now, place) = (self.now, self.place_of(self.root_node));
        let tlp = self.tlps.get_mut(handle);
        if tlp.tracked {
            // The writes before it are the memory's to finish.
            tlp.ledger.charge(now, place, crate::packet::attribution::Cause::Completer);
        }
        match *self.tlps.get(handle).repr.kind() {
            Kind::Completion(_) => {
                if !self.goes_to_processor(ingress, handle) {
                    self.completion_arrived(self.root_node, ingress, handle);
                }
            }
            Kind::Message(_) => self.local_message(ingress, handle),
            _ => {
                self.interrupt(ingress, handle);
                self.write_arrived();
            }
        }
    }

    /// Memory takes the data of a posted write, or is done with the writes before an interrupt or a completion.
    pub(crate) fn memory_accepts(&mut self, handle: TlpHandle, ingress: PortId) {
        let access = memory_access(&self.tlps.get(handle).repr);
        if access.is_none_or(|access| self.root().is_interrupt(access)) {
            return self.processor_takes(ingress, handle);
        }
        let tlp = self.tlps.get(handle);
        if let (Some(access), Some(data)) = (memory_access(&tlp.repr), tlp.payload.bytes()) {
            let data = data.to_vec();
            self.root().memory.ram.write(access.address, &data);
        }
        let place = self.place_of(self.root_node);
        let now = self.now;
        let tlp = self.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, crate::packet::attribution::Cause::Completer);
        }
        self.posted_arrived(handle);
        self.consume(ingress, handle);
        self.write_arrived();
    }

    /// Memory has the data of a read or of a deferrable write.
    pub(crate) fn memory_done(&mut self, handle: TlpHandle, ingress: PortId) {
        let tlp = self.tlps.get(handle);
        if matches!(tlp.repr.kind(), Kind::DeferrableMemWrite { .. }) {
            let (flow, bytes) = (tlp.flow, data_bytes(&tlp.repr));
            if let (Some(access), Some(data)) = (memory_access(&tlp.repr), tlp.payload.bytes()) {
                let data = data.to_vec();
                self.root().memory.ram.write(access.address, &data);
            }
            self.payload_arrived(flow, bytes);
            return self.answers_from_memory(ingress, handle, Payload::EMPTY);
        }
        let carries = tlp.carry || !self.length_only;
        let access = memory_access(&tlp.repr);
        self.read_served();
        let data = match access {
            Some(access) if carries => {
                let mut bytes = vec![0; access.bytes as usize];
                self.root().memory.ram.read(access.address, &mut bytes);
                Payload::from(bytes)
            }
            Some(access) => Payload::Length(u64::from(access.bytes)),
            None => Payload::EMPTY,
        };
        self.answers_from_memory(ingress, handle, data);
    }

    fn interrupt(&mut self, ingress: PortId, handle: TlpHandle) {
        let tlp = self.tlps.get(handle);
        let address = memory_access(&tlp.repr).map_or(0, |access| access.address);
        let mut word = [0; 4];
        if let Some(data) = tlp.payload.bytes() {
            word[..data.len().min(4)].copy_from_slice(&data[..data.len().min(4)]);
        }
        let word = u32::from_le_bytes(word);
        self.interrupts += 1;
        self.consume(ingress, handle);
        self.message_came(address, word);
    }

    /// A message signalled interrupt has reached the interrupt controller.
    pub(crate) fn message_came(&mut self, address: u64, data: u32) {
        if self.enumeration.outside {
            return self.tell_programs(&HostEvent::Message { address, data });
        }
        let (source, vector) = source_of(address, data);
        self.interrupted(source, vector);
    }

    /// The interrupt of a function has reached the processor.
    pub(crate) fn interrupted(&mut self, source: Bdf, vector: u16) {
        let event = match self.enumeration.sources.get(&source) {
            Some(&device) => HostEvent::Interrupt { device, vector },
            None => HostEvent::PortInterrupt { port: source, vector },
        };
        self.tell_programs(&event);
    }

    /// Every program of the host hears of something.
    pub(crate) fn tell_programs(&mut self, event: &HostEvent) {
        for program in 0..self.root().programs.len() {
            self.agenda.push_back(Task::TellHost { program, event: event.clone() });
        }
    }

    /// A request or completion from one root port to another.
    fn peer_to_peer(&mut self, ingress: PortId, port: usize, handle: TlpHandle) {
        let root = self.root();
        let egress = root.ports[port];
        let policy = root.peer_to_peer;
        let tlp = self.tlps.get(handle);
        let shape = tlp.shape;
        let splits = matches!(tlp.repr.kind(), Kind::MemRead { .. } | Kind::MemWrite { .. });
        // Between hierarchies with different MPS somebody must cut payloads to size, and that is the root complex.
        let mps = |port: PortId| self.topology.links[self.ports[port.index()].link.index()].mps;
        let (from, to) = (mps(ingress), mps(egress));
        let policy = match policy {
            PeerToPeer::Forward if from != to => PeerToPeer::Split(from.min(to).bytes()),
            other => other,
        };
        match policy {
            PeerToPeer::Refuse if !matches!(tlp.repr.kind(), Kind::Completion(_)) => {
                self.root_refuses(ingress, handle);
            }
            PeerToPeer::Split(limit) if splits => self.split_peer_request(ingress, handle, limit),
            _ => {
                let source = self.ports[ingress.index()].index;
                let waiting = Waiting {
                    tlp: handle,
                    shape,
                    ingress: Some(ingress),
                    tail: Time::ZERO,
                    nullified: false,
                };
                self.enqueue(egress, source, waiting);
            }
        }
    }

    /// A host program handles an event, and what it asks for is carried out.
    pub(crate) fn tell_host(&mut self, program: usize, event: HostEvent) {
        if self.is_enumeration(program) {
            return self.enumeration_hears(event);
        }
        let mut actions = std::mem::take(&mut self.host_actions);
        let (now, length_only) = (self.now, self.length_only);
        let infos = std::mem::take(&mut self.device_infos);
        let root = self.root();
        let slot = &mut root.programs[program];
        let mut outside = None;
        match slot.program.take() {
            Some(mut running) => {
                let memory: &mut dyn HostMemory = &mut root.memory;
                let mut cx =
                    HostContext::new(now, length_only, &infos, memory, &mut slot.next_op, &mut actions);
                running.handle(&mut cx, event);
                slot.program = Some(running);
            }
            None => outside = Some(event),
        }
        self.device_infos = infos;
        if let Some(event) = outside {
            self.outside_host.push((now, program, event));
        }
        for action in actions.drain(..) {
            self.carry_out_host(program, action);
        }
        self.host_actions = actions;
    }

    /// What a host program asks for.
    pub(crate) fn carry_out_host(&mut self, program: usize, action: HostAction) {
        let asked = self.now;
        let node = self.root_node;
        let (first, count) = self.root().programs[program].streams;
        let operation = |stream: u16, kind| {
            // Streams beyond those its flows name share the last one.
            let stream = first + stream.min(count - 1);
            Operation { owner: program as u16, stream, asked, kind }
        };
        match action {
            HostAction::MmioRead { op, stream, address, bytes, carry } => {
                self.begin(node, operation(stream, OperationKind::Read { op, address, bytes, carry }));
            }
            HostAction::MmioWrite { op, stream, address, data } => {
                self.begin(node, operation(stream, OperationKind::Write { op, address, data }));
            }
            HostAction::Timer { at, id } => {
                // Programs number their timers themselves; the program's number goes on top.
                let event = self.node_event(node);
                let data = (program as u64) << 48 | (id & 0xFFFF_FFFF_FFFF);
                self.schedule(at.max(self.now), EventKind::ProgramTimer, event, data);
            }
            HostAction::Finished => self.finished(node, program),
            HostAction::Fault(message) => self.fail(node, message),
        }
    }
}

/// Programs and devices whose end a run may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) node: NodeId,
    pub(crate) owner: usize,
    pub(crate) finished: bool,
}
