//! Devices at the level of TLPs ("cores"): what their end point hands to them and takes from them.
//!
//! The end point stands where the hard IP of a device does. It has the receive buffer (a TLP stays in it until the core takes it, then its
//! credits return), configuration space, and the egress queues. The core makes its own requests and completions; the fabric keeps
//! account of them: a request opens a transaction, as an operation of any other device does.

use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::initiator::data_bytes;
use crate::packet::attribution::Cause;
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::transactions::{Ending, TransactionRef};
use crate::sim::Fabric;
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::InterruptMode;
use tlplab_cfgspace::interrupt::function_masked;
use tlplab_device::{Room, TlpDevice, TlpOutput, TlpRegisters};
use tlplab_transaction::{Access, Payload, lay_out, memory_access, padding_before};
use tlplab_units::{Duration, FcClass, Time};
use tlplab_wire::tlp::{Attributes, Completion, CompletionStatus, Kind, Packet, Repr, TransactionId};

/// TLPs of a class that wait at the egress before the core is told that there is no room: enough that the wire never waits for it.
const STAGED: usize = 4;
/// The same where a flit takes all that wait.
const STAGED_FOR_FLITS: usize = 20;

/// A device at the level of TLPs, as its end point sees it.
pub(crate) struct Core {
    pub(crate) device: Box<dyn TlpDevice>,
    /// What came of its last run, and how far it has got.
    pub(crate) output: TlpOutput,
    /// That waits for its event, and the device meanwhile.
    pub(crate) pending: bool,
    pub(crate) idle: bool,
    /// The level of its legacy interrupt that the fabric knows of.
    pub(crate) intx: bool,
    /// What it was told last.
    registers: TlpRegisters,
    /// TLPs that it has been shown and has not taken, by class. `None`: enumeration wrote it before time began.
    held: [VecDeque<Option<TlpHandle>>; 3],
    /// Requests that it has to answer.
    asked: BTreeMap<TransactionId, TlpHandle>,
    /// Its own reads that are under way, by tag.
    reads: BTreeMap<u16, Read>,
    /// Completions of these that it was given and has not taken yet. A tag is free once its last one was given: what is taken later may
    /// find its tag in another read.
    given: BTreeMap<TlpHandle, Given>,
    timeout: Duration,
}

struct Given {
    /// What it is the last completion of.
    ends: Option<TransactionRef>,
    /// It or one before it of this read.
    poisoned: bool,
}

struct Read {
    transaction: TransactionRef,
    due: Time,
    poisoned: bool,
}

impl Core {
    pub(crate) fn new(device: Box<dyn TlpDevice>, timeout: Duration) -> Self {
        Self {
            device,
            output: TlpOutput::default(),
            pending: false,
            // Its reset takes clock edges.
            idle: false,
            intx: false,
            registers: TlpRegisters::default(),
            held: Default::default(),
            asked: BTreeMap::new(),
            reads: BTreeMap::new(),
            given: BTreeMap::new(),
            timeout,
        }
    }

    /// Where it goes on from, if anything may come of that.
    pub(crate) fn runs_from(&self) -> Option<Time> {
        (!self.idle && !self.pending).then_some(self.output.time)
    }
}

impl Fabric {
    pub(crate) fn core(&mut self, node: NodeId) -> &mut Core {
        self.end_point(node).core.as_mut().expect("a node among those with clocks")
    }

    pub(crate) fn has_core(&self, node: NodeId) -> bool {
        matches!(&self.nodes[node.index()], Node::EndPoint(end_point) if end_point.core.is_some())
    }

    pub(crate) fn room_for_core(&self, node: NodeId) -> Room {
        let Node::EndPoint(end_point) = &self.nodes[node.index()] else { return Room::default() };
        let port = &self.ports[end_point.port.index()];
        let staged = match port.mode {
            tlplab_units::LinkMode::NonFlit => STAGED,
            tlplab_units::LinkMode::Flit => STAGED_FOR_FLITS,
        };
        let free = |class: &FcClass| port.egress.len_of(end_point.source, *class) < staged;
        FcClass::ALL.into_iter().filter(free).fold(Room::default(), Room::with)
    }

    /// Registers may have changed: the core obeys them from now on.
    pub(crate) fn tell_registers(&mut self, node: NodeId, reset: bool) {
        if !self.has_core(node) {
            return;
        }
        let end_point = self.end_point(node);
        let (space, command) = (&end_point.function.space, end_point.function.space.command());
        let pcie = space.pcie();
        let registers = TlpRegisters {
            id: end_point.function.id,
            mps: pcie.map_or(TlpRegisters::default().mps, |pcie| pcie.mps),
            mrrs: pcie.map_or(TlpRegisters::default().mrrs, |pcie| pcie.mrrs),
            bus_master: command.bus_master,
            extended_tag: pcie.is_some_and(|pcie| pcie.tag_bits >= 8),
            msix_enable: space.interrupt_mode() == InterruptMode::MsiX,
            msix_mask: function_masked(space),
            intx_disable: command.intx_disable,
        };
        if !reset && registers == self.core(node).registers {
            return;
        }
        self.catch_up(node);
        let core = self.core(node);
        core.registers = registers;
        core.device.configure(&registers, reset);
    }

    /// A core is reset: what it holds and what it does is gone.
    pub(crate) fn reset_core(&mut self, node: NodeId) {
        if !self.has_core(node) {
            return;
        }
        let port = self.end_point(node).port;
        let core = self.core(node);
        let held = std::mem::take(&mut core.held).into_iter().flatten().flatten();
        let (held, mut asked) = (held.collect::<Vec<_>>(), std::mem::take(&mut core.asked));
        let (reads, given) = (std::mem::take(&mut core.reads), std::mem::take(&mut core.given));
        (core.pending, core.intx) = (false, false);
        core.output = TlpOutput { time: core.output.time, ..TlpOutput::default() };
        for handle in held {
            asked.retain(|_, request| *request != handle);
            self.consume(port, handle);
        }
        asked.into_values().for_each(|request| self.drop_tlp(request));
        let ending = given.into_values().filter_map(|given| given.ends);
        for transaction in reads.into_values().map(|read| read.transaction).chain(ending) {
            self.end_transaction(transaction, None, Ending::Lost);
        }
        self.tell_registers(node, true);
    }

    /// A TLP for a core's function has passed the end point's processing.
    pub(crate) fn core_gets(&mut self, node: NodeId, ingress: PortId, handle: TlpHandle) {
        let repr = self.tlps.get(handle).repr;
        let bar = match repr.kind() {
            Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
                return self.end_point_config(ingress, handle, *target);
            }
            Kind::Message(_) => return self.consume(ingress, handle),
            Kind::Completion(completion) => {
                self.completion_given(node, handle, completion);
                None
            }
            kind => {
                let (address, io) = match kind {
                    Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => (port.address().into(), true),
                    _ => (memory_access(&repr).map_or(0, |access| access.address), false),
                };
                let end_point = self.end_point(node);
                let id = end_point.completer.id;
                let Some((bar, _)) = end_point.bar_of(address, io) else {
                    return self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
                };
                Some(bar)
            }
        };
        let class = self.tlps.get(handle).shape.class;
        self.show_core(node, &repr, self.tlps.get(handle).payload.clone(), bar);
        let core = self.core(node);
        core.held[class.index()].push_back(Some(handle));
        if class == FcClass::NonPosted {
            core.asked.insert(repr.transaction_id(), handle);
        }
    }

    /// Enumeration writes to a core's memory before time begins.
    pub(crate) fn write_core_at_once(&mut self, node: NodeId, address: u64, bar: u8, value: u32) {
        let Ok(repr) = Repr::mem_write(TransactionId::default(), address, 4) else { return };
        self.show_core(node, &repr, value.to_le_bytes().into(), Some(bar));
        self.core(node).held[FcClass::Posted.index()].push_back(None);
    }

    fn show_core(&mut self, node: NodeId, repr: &Repr, payload: Payload, bar: Option<u8>) {
        self.catch_up(node);
        // The digest was checked at the port and ends there.
        let attributes = Attributes { digest: false, ..*repr.attributes() };
        let repr = repr.with_attributes(attributes).unwrap_or(*repr);
        let mut data = vec![0; repr.payload_bytes() as usize];
        let mut tlp = vec![0; repr.wire_bytes() as usize];
        let written = lay_out(&repr, payload.bytes().unwrap_or_default(), &mut data);
        match written.and_then(|()| repr.emit(&mut tlp, &data)) {
            Ok(bytes) => self.core(node).device.receive(&tlp[..bytes], bar),
            Err(error) => self.fail(node, format!("a TLP for it cannot be written down: {error}")),
        }
    }

    /// What a core has put out: credits first, then a TLP, and the interrupt behind that.
    pub(crate) fn core_spoke(&mut self, node: NodeId, taken: [u32; 3], tlp: &[u8], intx: bool) {
        for class in FcClass::ALL {
            for _ in 0..taken[class.index()] {
                match self.core(node).held[class.index()].pop_front() {
                    Some(Some(handle)) => self.core_took(node, handle),
                    Some(None) => {}
                    None => {
                        let wrong = format!("its model took more TLPs of class {class:?} than it was given");
                        return self.fail(node, wrong);
                    }
                }
            }
        }
        if !tlp.is_empty()
            && let Err(wrong) = self.core_sends(node, tlp)
        {
            let header: Vec<_> = tlp.chunks(4).take(4).map(hex).collect();
            return self.fail(node, format!("{wrong} (a TLP that begins with {})", header.join(" ")));
        }
        if std::mem::replace(&mut self.core(node).intx, intx) != intx {
            self.set_intx(node, 0, intx);
        }
    }

    /// A core has taken a TLP: the receive buffer is free, and posted data and completions have arrived.
    fn core_took(&mut self, node: NodeId, handle: TlpHandle) {
        let (now, place, port) = (self.now, self.place_of(node), self.end_point(node).port);
        let tlp = self.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        let (repr, shape) = (tlp.repr, tlp.shape);
        match repr.kind() {
            Kind::Completion(completion) => {
                self.completion_taken(node, port, handle, completion);
                self.consume(port, handle);
            }
            _ if shape.class == FcClass::Posted => {
                self.posted_arrived(handle);
                self.consume(port, handle);
            }
            _ => self.release_buffer(port, &shape),
        }
    }

    /// Which of a core's own reads a completion belongs to.
    fn completion_given(&mut self, node: NodeId, handle: TlpHandle, completion: &Completion) {
        let tlp = self.tlps.get(handle);
        let (poisoned, orphaned) = (tlp.repr.attributes().poisoned, tlp.orphaned);
        let tag = completion.id().tag.value();
        let core = self.core(node);
        let Some(read) = core.reads.get_mut(&tag).filter(|_| !orphaned) else { return };
        read.poisoned |= poisoned;
        let (transaction, poisoned) = (read.transaction, read.poisoned);
        let bytes = completion.length().map_or(0, |_| completion.data_bytes());
        let last = completion.status() != CompletionStatus::Success || completion.byte_count() <= bytes;
        if last {
            core.reads.remove(&tag);
        }
        core.given.insert(handle, Given { ends: last.then_some(transaction), poisoned });
    }

    /// Account of a completion of a core's own read.
    fn completion_taken(&mut self, node: NodeId, port: PortId, handle: TlpHandle, completion: &Completion) {
        let tlp = self.tlps.get(handle);
        let (flow, tracked) = (tlp.flow, tlp.tracked.then_some(handle));
        let Some(given) = self.core(node).given.remove(&handle) else {
            self.unexpected += 1;
            return self.detect(port, crate::node::errors::ErrorKind::UnexpectedCompletion, Some(handle));
        };
        let ending = match completion.status() {
            CompletionStatus::Success if given.poisoned => Ending::Poisoned,
            CompletionStatus::Success => Ending::Done,
            CompletionStatus::CompleterAbort => Ending::Aborted,
            CompletionStatus::UnsupportedRequest | CompletionStatus::RetryStatus => Ending::Unsupported,
        };
        if ending == Ending::Done {
            let bytes = completion.length().map_or(0, |_| completion.data_bytes());
            self.payload_arrived(flow, bytes.into());
        }
        if let Some(transaction) = given.ends {
            self.end_transaction(transaction, tracked, ending);
        }
        self.tlps.get_mut(handle).tracked = false;
    }

    /// A core sends a TLP. What no device may do fails the run, since it is the model's mistake.
    fn core_sends(&mut self, node: NodeId, bytes: &[u8]) -> Result<(), String> {
        let packet = Packet::new(bytes);
        let parsed = packet.check_len().and_then(|()| Repr::parse(&packet));
        let repr = parsed.map_err(|error| format!("sent what is no TLP: {error}"))?;
        let (start, held) = (padding_before(&repr) as usize, tlplab_transaction::data_bytes(&repr) as usize);
        let payload = packet.payload().get(start..start + held);
        let payload = payload.ok_or("sent a TLP whose payload is shorter than it says")?;
        let payload = Payload::from(payload);
        let port = self.end_point(node).port;
        let repr = self.with_digest(port, repr);
        match *repr.kind() {
            Kind::Completion(completion) => {
                self.core_completes(node, repr, payload, completion);
                Ok(())
            }
            Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } => {
                let enables = span.enables();
                let holes = |enables: u8| {
                    let low = enables.checked_shr(enables.trailing_zeros()).unwrap_or(0);
                    low & low.wrapping_add(1) != 0
                };
                let broken = holes(enables.first()) || holes(enables.last());
                if broken || span.length().dw() > 1 && (enables.first() < 8 || enables.last() & 1 == 0) {
                    return Err("sent a request whose byte enables have holes, which is not supported".into());
                }
                self.core_requests(node, repr, payload)
            }
            _ => {
                Err(format!("sent a {}; a core sends memory reads and writes, and completions", repr.name()))
            }
        }
    }

    fn core_requests(&mut self, node: NodeId, repr: Repr, payload: Payload) -> Result<(), String> {
        let Some(access) = memory_access(&repr) else { return Ok(()) };
        let id = repr.transaction_id();
        let read = matches!(repr.kind(), Kind::MemRead { .. });
        let end_point = self.end_point(node);
        let (own, was_started) = (end_point.function.id, end_point.started);
        let registers = self.core(node).registers;
        if id.requester != own {
            return Err(format!("sent a request as {}, but its own ID is {own}", id.requester));
        }
        if !registers.bus_master {
            if !was_started {
                return Err("sent a memory request though Bus Master Enable has never been set".into());
            }
            // It was on its way when software took the leave to send it.
            let flow = self.core_flow(node, read);
            let (now, bytes) = (self.now, if read { u64::from(access.bytes) } else { data_bytes(&repr) });
            let transaction = self.transactions.open(node, flow, now, read, access.address, bytes);
            self.end_transaction(transaction, None, Ending::Lost);
            return Ok(());
        }
        if read && id.tag.value() > if registers.extended_tag { 255 } else { 31 } {
            return Err(format!(
                "sent a read with tag {}, of more bits than software lets it use",
                id.tag.value()
            ));
        }
        if let Kind::MemRead { span, .. } = repr.kind()
            && span.length().bytes() > registers.mrrs.bytes()
        {
            let (bytes, most) = (span.length().bytes(), registers.mrrs.bytes());
            return Err(format!("sent a read of {bytes} B; Max_Read_Request_Size is {most}"));
        }
        self.core_request_sets_out(node, repr, payload, access, read);
        Ok(())
    }

    /// A request sets out, and a transaction with it, unless it is an interrupt.
    fn core_request_sets_out(
        &mut self,
        node: NodeId,
        repr: Repr,
        payload: Payload,
        access: Access,
        read: bool,
    ) {
        let now = self.now;
        let flow = self.core_flow(node, read);
        let (port, source) = (self.end_point(node).port, self.end_point(node).source);
        let handle = self.tlps.insert(repr, payload, flow);
        if read || !self.root().is_interrupt(access) {
            let bytes = if read { u64::from(access.bytes) } else { data_bytes(&repr) };
            let transaction = self.transactions.open(node, flow, now, read, access.address, bytes);
            let record = self.transactions.get(transaction);
            (record.posted, record.issuing, record.pending) = (!read, false, u32::from(!read));
            let tlp = self.tlps.get_mut(handle);
            (tlp.transaction, tlp.tracked, tlp.awaited, tlp.carry) = (Some(transaction), true, !read, true);
            tlp.ledger.open(now);
            if read {
                self.read_begins(node, repr.transaction_id().tag.value(), transaction);
            }
        }
        self.enqueue(port, source, Waiting::own(handle, shape_of(&repr)));
    }

    fn core_flow(&mut self, node: NodeId, read: bool) -> FlowId {
        self.initiator(node).flow(u16::from(!read))
    }

    fn read_begins(&mut self, node: NodeId, tag: u16, transaction: TransactionRef) {
        let now = self.now;
        let core = self.core(node);
        let due = now + core.timeout;
        let before = core.reads.insert(tag, Read { transaction, due, poisoned: false });
        if let Some(before) = before {
            // The core has given it up.
            self.end_transaction(before.transaction, None, Ending::TimedOut);
        }
        self.arm_core(node);
    }

    /// There is an event when the oldest read of a core is due.
    fn arm_core(&mut self, node: NodeId) {
        let at = self.node_event(node);
        let Some(due) = self.core(node).reads.values().map(|read| read.due).min() else { return };
        let timer = &mut self.initiator(node).timer;
        if due < *timer {
            *timer = due;
            self.schedule(due, EventKind::RequesterTimer, at, due.as_fs());
        }
    }

    /// Reads whose completions have not come in time are over, as far as the fabric's account goes.
    pub(crate) fn core_reads_time_out(&mut self, node: NodeId) {
        let now = self.now;
        let port = self.end_point(node).port;
        let core = self.core(node);
        let late: Vec<u16> =
            core.reads.iter().filter(|(_, read)| read.due <= now).map(|(tag, _)| *tag).collect();
        for tag in late {
            if let Some(read) = self.core(node).reads.remove(&tag) {
                self.end_transaction(read.transaction, None, Ending::TimedOut);
                self.detect_timeout(node, port);
            }
        }
        self.arm_core(node);
    }

    /// A core answers a request. Its completion goes out in any case; the requester says what is wrong with one that it cannot use.
    fn core_completes(&mut self, node: NodeId, repr: Repr, payload: Payload, completion: Completion) {
        let (now, place) = (self.now, self.place_of(node));
        let (port, source) = (self.end_point(node).port, self.end_point(node).source);
        let Some(&request) = self.core(node).asked.get(&completion.id()) else {
            let flow = self.core_flow(node, true);
            let handle = self.tlps.insert(repr, payload, flow);
            return self.enqueue(port, source, Waiting::own(handle, shape_of(&repr)));
        };
        let bytes = completion.length().map_or(0, |_| completion.data_bytes());
        let last = completion.status() != CompletionStatus::Success || completion.byte_count() <= bytes;
        if completion.status() != CompletionStatus::Success {
            self.detect_refusal(port, request, completion.status());
        }
        let tlp = self.tlps.get_mut(request);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        // A write that is answered carries no data.
        let last = last || matches!(tlp.repr.kind(), Kind::IoWrite { .. } | Kind::DeferrableMemWrite { .. });
        let waiting = self.make_completion(port, request, repr, payload, last);
        self.enqueue(port, source, waiting);
        if last {
            self.core(node).asked.remove(&completion.id());
            self.drop_tlp(request);
        }
    }
}

fn hex(dword: &[u8]) -> String {
    dword.iter().map(|byte| format!("{byte:02x}")).collect()
}
