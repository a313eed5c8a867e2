//! Devices at the level of TLPs ("cores"): what their end point hands to them and takes from them.
//!
//! The end point stands where the hard IP of a device does. It has the receive buffer (a TLP stays in it until the core takes it, then its
//! credits return), configuration space, and the egress queues. The core makes its own requests and completions; the fabric keeps
//! account of them: a request opens a transaction, as an operation of any other device does.

use crate::kernel::ids::{FlowId, FunctionAt, PortId};
use crate::kernel::queue::EventKind;
use crate::link::Staged;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::end_point::EndPoint;
use crate::node::initiator::{Initiate, Operation, OperationKind};
use crate::observe::errors::ErrorKind;
use crate::packet::attribution::Cause;
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::transactions::{Ending, TransactionRef, data_bytes};
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::interrupt::function_masked;
use tlplab_cfgspace::{InterruptMode, MsiView};
use tlplab_device::{Room, TlpDevice, TlpOutput, TlpRegisters};
use tlplab_transaction::{Access, Payload, lay_out, memory_access, padding_before};
use tlplab_units::{Duration, FcClass, Time};
use tlplab_wire::tlp::{Attributes, Completion, CompletionStatus, Kind, Packet, Repr, TransactionId};

/// TLPs of a class that wait at the egress before the core is told that there is no room: enough that the wire never waits for it.
const STAGED: Staged = Staged { framed: 4, in_flits: 20 };

/// A device at the level of TLPs, as its end point sees it.
pub(crate) struct Core {
    pub(crate) device: Box<dyn TlpDevice>,
    /// The output of its last run, and the time that it has reached.
    pub(crate) output: TlpOutput,
    /// That waits for its event, and the device meanwhile.
    pub(crate) pending: bool,
    pub(crate) idle: bool,
    /// It has ever said that nothing happens any more.
    pub(crate) rests: bool,
    /// The level of its legacy interrupt that the fabric knows of.
    pub(crate) intx: bool,
    /// The last registers given to it.
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

#[derive(Clone)]
struct Given {
    /// The transaction whose last completion it is.
    ends: Option<TransactionRef>,
    /// It or one before it of this read.
    poisoned: bool,
}

#[derive(Clone)]
struct Read {
    transaction: TransactionRef,
    due: Time,
    poisoned: bool,
    /// A completion of it was dropped.
    incomplete: bool,
}

impl Core {
    pub(crate) fn new(device: Box<dyn TlpDevice>, timeout: Duration) -> Self {
        Self {
            device,
            output: TlpOutput::default(),
            pending: false,
            // Its reset takes clock edges.
            idle: false,
            rests: false,
            intx: false,
            registers: TlpRegisters::default(),
            held: Default::default(),
            asked: BTreeMap::new(),
            reads: BTreeMap::new(),
            given: BTreeMap::new(),
            timeout,
        }
    }

    /// The time from which it goes on, if it has work there.
    pub(crate) fn runs_from(&self) -> Option<Time> {
        (!self.idle && !self.pending).then_some(self.output.time)
    }
}

impl EndPoint {
    pub(crate) fn core(&mut self) -> &mut Core {
        self.core.as_mut().expect("a node among those with clocks")
    }

    /// By class: whether the core may send another TLP.
    fn room_for_core(&self, cx: &Context) -> Room {
        let free = |class: &FcClass| cx.links.waits_fewer(self.port, self.source, *class, STAGED);
        FcClass::ALL.into_iter().filter(free).fold(Room::default(), Room::with)
    }

    /// The core goes on, at most to `limit`; at the end of its `slice` there is an event in any case.
    pub(crate) fn run_clock(&mut self, cx: &mut Context, limit: Time, slice: Time) {
        let room = self.room_for_core(cx);
        let core = self.core();
        let (before, was_intx) = (core.output.time, core.intx);
        let result = core.device.run(limit, room, &mut core.output);
        let (time, idle) = (core.output.time, core.output.idle);
        let says = !core.output.tlp.is_empty() || core.output.taken != [0; 3] || core.output.intx != was_intx;
        core.idle = idle;
        core.rests |= idle;
        core.pending = says || !idle && time >= slice;
        let pending = core.pending;
        if let Err(message) = result {
            return cx.fail(self.node, message);
        }
        if time < before || time > limit || time == before && !says && !idle {
            let wrong = format!("its model should run from {before} to {limit}, but reports {time}");
            return cx.fail(self.node, wrong);
        }
        if pending {
            let at = cx.node_event(self.node);
            cx.schedule(time.max(cx.now()), EventKind::Clocked, at, time.as_fs());
        }
    }

    /// The output of the core, or the end of a slice of its time.
    pub(crate) fn clocked(&mut self, cx: &mut Context, put_out: Time) {
        let core = self.core();
        // A reset may have taken back what this event is of.
        if !core.pending || core.output.time != put_out {
            return;
        }
        core.pending = false;
        let mut tlp = std::mem::take(&mut core.output.tlp);
        let taken = std::mem::take(&mut core.output.taken);
        let intx = core.output.intx;
        self.obey_core(cx, taken, &tlp, intx);
        tlp.clear();
        self.core().output.tlp = tlp;
    }

    /// Before the core is told of something: it is up to date.
    fn catch_up(&mut self, cx: &mut Context) {
        let now = cx.now();
        let core = self.core();
        if core.idle && !core.pending && core.output.time < now {
            self.run_clock(cx, now, Time::NEVER);
        }
        self.core().idle = false;
    }

    /// Registers may have changed: the core obeys them from now on.
    pub(crate) fn tell_registers(&mut self, cx: &mut Context, reset: bool) {
        if self.core.is_none() {
            return;
        }
        let (space, command) = (&self.function.space, self.function.space.command());
        let pcie = space.pcie();
        let registers = TlpRegisters {
            id: self.function.id,
            mps: pcie.map_or(TlpRegisters::default().mps, |pcie| pcie.mps),
            mrrs: pcie.map_or(TlpRegisters::default().mrrs, |pcie| pcie.mrrs),
            bus_master: command.bus_master,
            extended_tag: pcie.is_some_and(|pcie| pcie.tag_bits >= 8),
            msix_enable: space.interrupt_mode() == InterruptMode::MsiX,
            msix_mask: function_masked(space),
            msi: MsiView {
                enable: space.interrupt_mode() == InterruptMode::Msi,
                ..space.msi().unwrap_or_default()
            },
            intx_disable: command.intx_disable,
            read_boundary_128: pcie.is_some_and(|pcie| pcie.read_boundary_128),
        };
        if !reset && registers == self.core().registers {
            return;
        }
        self.catch_up(cx);
        let core = self.core();
        core.registers = registers;
        core.device.configure(&registers, reset);
    }

    /// A core is reset: what it holds and what it does is gone.
    pub(crate) fn reset_core(&mut self, cx: &mut Context) {
        if self.core.is_none() {
            return;
        }
        let port = self.port;
        let core = self.core();
        let held = std::mem::take(&mut core.held).into_iter().flatten().flatten();
        let (held, mut asked) = (held.collect::<Vec<_>>(), std::mem::take(&mut core.asked));
        let (reads, given) = (std::mem::take(&mut core.reads), std::mem::take(&mut core.given));
        (core.pending, core.intx) = (false, false);
        core.output = TlpOutput { time: core.output.time, ..TlpOutput::default() };
        for handle in held {
            asked.retain(|_, request| *request != handle);
            cx.consume(port, handle);
        }
        asked.into_values().for_each(|request| cx.drop_tlp(request));
        let ending = given.into_values().filter_map(|given| given.ends);
        for transaction in reads.into_values().map(|read| read.transaction).chain(ending) {
            cx.end_transaction(transaction, None, Ending::Lost);
        }
        self.tell_registers(cx, true);
    }

    /// A TLP for a core's function has passed the end point's processing.
    pub(crate) fn give_to_core(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let repr = cx.tlps.get(handle).repr;
        let bar = match repr.kind() {
            Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
                return self.config_access(cx, ingress, handle, *target);
            }
            Kind::Message(_) => return cx.consume(ingress, handle),
            Kind::Completion(_) => None,
            kind => {
                let (address, io) = match kind {
                    Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => (port.address().into(), true),
                    _ => (memory_access(&repr).map_or(0, |access| access.address), false),
                };
                let Some((bar, _)) = self.bar_of(address, io) else {
                    return cx.refuse(
                        ingress,
                        handle,
                        self.completer.id,
                        CompletionStatus::UnsupportedRequest,
                    );
                };
                Some(bar)
            }
        };
        let class = cx.tlps.get(handle).shape.class;
        if !self.show_core(cx, &repr, cx.tlps.get(handle).payload.clone(), bar) {
            return self.completion_dropped(cx, ingress, handle);
        }
        if let Kind::Completion(completion) = repr.kind() {
            self.completion_given(cx, handle, completion);
        }
        let core = self.core();
        core.held[class.index()].push_back(Some(handle));
        if class == FcClass::NonPosted {
            core.asked.insert(repr.transaction_id(), handle);
        }
    }

    /// Enumeration writes to a core's memory before time begins.
    pub(crate) fn write_core_at_once(&mut self, cx: &mut Context, address: u64, bar: u8, value: u32) {
        let Ok(repr) = Repr::mem_write(TransactionId::default(), address, 4) else { return };
        let _ = self.show_core(cx, &repr, value.to_le_bytes().into(), Some(bar));
        self.core().held[FcClass::Posted.index()].push_back(None);
    }

    /// False if the core has no room for it.
    fn show_core(&mut self, cx: &mut Context, repr: &Repr, payload: Payload, bar: Option<u8>) -> bool {
        self.catch_up(cx);
        // The digest was checked at the port and ends there.
        let attributes = Attributes { digest: false, ..*repr.attributes() };
        let repr = repr.with_attributes(attributes).unwrap_or(*repr);
        let mut data = vec![0; repr.payload_bytes() as usize];
        let mut tlp = vec![0; repr.wire_bytes() as usize];
        let written = lay_out(&repr, payload.bytes().unwrap_or_default(), &mut data);
        match written.and_then(|()| repr.emit(&mut tlp, &data)) {
            Ok(bytes) => self.core().device.receive(&tlp[..bytes], bar),
            Err(error) => {
                cx.fail(self.node, format!("a TLP for it cannot be encoded: {error}"));
                true
            }
        }
    }

    /// Carries out the output of a core: credits first, then a TLP, and the interrupt behind that.
    pub(crate) fn obey_core(&mut self, cx: &mut Context, taken: [u32; 3], tlp: &[u8], intx: bool) {
        for class in FcClass::ALL {
            for _ in 0..taken[class.index()] {
                match self.core().held[class.index()].pop_front() {
                    Some(Some(handle)) => self.release_from_core(cx, handle),
                    Some(None) => {}
                    None => {
                        let wrong = format!("its model took more TLPs of class {class:?} than it was given");
                        return cx.fail(self.node, wrong);
                    }
                }
            }
        }
        if !tlp.is_empty()
            && let Err(wrong) = self.send_from_core(cx, tlp)
        {
            let header: Vec<_> = tlp.chunks(4).take(4).map(hex).collect();
            return cx.fail(self.node, format!("{wrong} (a TLP that begins with {})", header.join(" ")));
        }
        if std::mem::replace(&mut self.core().intx, intx) != intx {
            self.begin(
                cx,
                Operation {
                    owner: 0,
                    stream: 0,
                    asked: cx.now(),
                    kind: OperationKind::Intx { asserted: intx },
                },
            );
        }
    }

    /// A core has taken a TLP: the receive buffer is free, and posted data and completions have arrived.
    fn release_from_core(&mut self, cx: &mut Context, handle: TlpHandle) {
        let (now, place, port) = (cx.now(), cx.place_of(self.node), self.port);
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        let (repr, shape) = (tlp.repr, tlp.shape);
        match repr.kind() {
            Kind::Completion(completion) => {
                self.completion_taken(cx, port, handle, completion);
                cx.consume(port, handle);
            }
            _ if shape.class == FcClass::Posted => {
                cx.complete_posted(port, handle);
                cx.consume(port, handle);
            }
            _ => cx.release_buffer(port, &shape),
        }
    }

    /// The read of a core that a completion belongs to.
    fn completion_given(&mut self, cx: &Context, handle: TlpHandle, completion: &Completion) {
        let tlp = cx.tlps.get(handle);
        let (poisoned, orphaned) = (tlp.repr.attributes().poisoned, tlp.orphaned);
        let tag = completion.id().tag.value();
        let core = self.core();
        let Some(read) = core.reads.get_mut(&tag).filter(|_| !orphaned) else { return };
        read.poisoned |= poisoned;
        let (transaction, poisoned) = (read.transaction, read.poisoned);
        let bytes = completion.length().map_or(0, |_| completion.data_bytes());
        let last = completion.status() != CompletionStatus::Success || completion.byte_count() <= bytes;
        let last = last && !read.incomplete;
        if last {
            core.reads.remove(&tag);
        }
        core.given.insert(handle, Given { ends: last.then_some(transaction), poisoned });
    }

    /// A completion that a core has no room for: its read lacks data, and ends when it is overdue or its tag is in use again.
    fn completion_dropped(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let tlp = cx.tlps.get(handle);
        let (tag, orphaned) = (tlp.repr.transaction_id().tag.value(), tlp.orphaned);
        if let Some(read) = self.core().reads.get_mut(&tag).filter(|_| !orphaned) {
            read.incomplete = true;
        }
        cx.detect(ingress, ErrorKind::ReceiverOverflow, Some(handle));
        cx.consume(ingress, handle);
    }

    /// Account of a completion of a core's own read.
    fn completion_taken(
        &mut self,
        cx: &mut Context,
        port: PortId,
        handle: TlpHandle,
        completion: &Completion,
    ) {
        let tlp = cx.tlps.get(handle);
        let (flow, tracked) = (tlp.flow, tlp.tracked.then_some(handle));
        let Some(given) = self.core().given.remove(&handle) else {
            cx.observe.counts.unexpected += 1;
            return cx.detect(port, ErrorKind::UnexpectedCompletion, Some(handle));
        };
        let ending = match completion.status() {
            CompletionStatus::Success if given.poisoned => Ending::Poisoned,
            CompletionStatus::Success => Ending::Done,
            CompletionStatus::CompleterAbort => Ending::Aborted,
            CompletionStatus::UnsupportedRequest | CompletionStatus::RetryStatus => Ending::Unsupported,
        };
        if ending == Ending::Done {
            let bytes = completion.length().map_or(0, |_| completion.data_bytes());
            cx.payload_arrived(port, flow, bytes.into());
        }
        if let Some(transaction) = given.ends {
            cx.end_transaction(transaction, tracked, ending);
        }
        cx.tlps.get_mut(handle).tracked = false;
    }

    /// A core sends a TLP. What no device may do fails the run, since it is the model's mistake.
    fn send_from_core(&mut self, cx: &mut Context, bytes: &[u8]) -> Result<(), String> {
        let packet = Packet::new(bytes);
        let parsed = packet.check_len().and_then(|()| Repr::parse(&packet));
        let repr = parsed.map_err(|error| format!("sent bytes that are not a TLP: {error}"))?;
        let (start, held) = (padding_before(&repr) as usize, tlplab_transaction::data_bytes(&repr) as usize);
        let payload = packet.payload().get(start..start + held);
        let payload = payload.ok_or("sent a TLP whose payload is shorter than its header states")?;
        let payload = Payload::from(payload);
        let port = self.port;
        let repr = cx.with_digest(port, repr);
        match *repr.kind() {
            Kind::Completion(completion) => {
                self.complete_from_core(cx, repr, payload, completion);
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
                self.request_from_core(cx, repr, payload)
            }
            _ => {
                Err(format!("sent a {}; a core sends memory reads and writes, and completions", repr.name()))
            }
        }
    }

    fn request_from_core(&mut self, cx: &mut Context, repr: Repr, payload: Payload) -> Result<(), String> {
        let Some(access) = memory_access(&repr) else { return Ok(()) };
        let id = repr.transaction_id();
        let read = matches!(repr.kind(), Kind::MemRead { .. });
        let (own, was_started) = (self.function.id, self.started);
        let registers = self.core().registers;
        if id.requester != own {
            return Err(format!("sent a request as {}, but its own ID is {own}", id.requester));
        }
        if !registers.bus_master {
            if !was_started {
                return Err("sent a memory request though Bus Master Enable has never been set".into());
            }
            // It was on its way when software took the leave to send it.
            let flow = self.core_flow(read);
            let (now, bytes) = (cx.now(), if read { u64::from(access.bytes) } else { data_bytes(&repr) });
            let transaction = cx.open_transaction(self.node, flow, now, read, access.address, bytes);
            cx.end_transaction(transaction, None, Ending::Lost);
            return Ok(());
        }
        if read && id.tag.value() > if registers.extended_tag { 255 } else { 31 } {
            return Err(format!(
                "sent a read with tag {}, which has more bits than software has enabled",
                id.tag.value()
            ));
        }
        if let Kind::MemRead { span, .. } = repr.kind()
            && span.length().bytes() > registers.mrrs.bytes()
        {
            let (bytes, most) = (span.length().bytes(), registers.mrrs.bytes());
            return Err(format!("sent a read of {bytes} B; Max_Read_Request_Size is {most}"));
        }
        self.send_request_from_core(cx, repr, payload, access, read);
        Ok(())
    }

    /// A request sets out, and a transaction with it, unless it is an interrupt.
    fn send_request_from_core(
        &mut self,
        cx: &mut Context,
        repr: Repr,
        payload: Payload,
        access: Access,
        read: bool,
    ) {
        let now = cx.now();
        let flow = self.core_flow(read);
        let (port, source) = (self.port, self.source);
        let handle = cx.tlps.insert(repr, payload, flow);
        if read || !cx.host.is_interrupt(access) {
            let bytes = if read { u64::from(access.bytes) } else { data_bytes(&repr) };
            let transaction = cx.open_transaction(self.node, flow, now, read, access.address, bytes);
            let record = cx.transactions.get(transaction);
            (record.posted, record.issuing, record.pending) = (!read, false, u32::from(!read));
            let tlp = cx.tlps.get_mut(handle);
            (tlp.transaction, tlp.tracked, tlp.awaited, tlp.carry) = (Some(transaction), true, !read, true);
            tlp.ledger.open(now);
            if read {
                self.read_begins(cx, repr.transaction_id().tag.value(), transaction);
            }
        }
        cx.enqueue_at_egress(port, source, Waiting::own(handle, shape_of(&repr)));
    }

    fn core_flow(&mut self, read: bool) -> FlowId {
        self.initiator.flow(u16::from(!read))
    }

    fn read_begins(&mut self, cx: &mut Context, tag: u16, transaction: TransactionRef) {
        let now = cx.now();
        let core = self.core();
        let due = now + core.timeout;
        let before = core.reads.insert(tag, Read { transaction, due, poisoned: false, incomplete: false });
        if let Some(before) = before {
            // The core has given it up.
            cx.end_transaction(before.transaction, None, Ending::TimedOut);
        }
        self.arm_core(cx);
    }

    /// There is an event when the oldest read of a core is due.
    fn arm_core(&mut self, cx: &mut Context) {
        let at = cx.node_event(self.node);
        let Some(due) = self.core().reads.values().map(|read| read.due).min() else { return };
        let timer = &mut self.initiator.timer;
        if due < *timer {
            *timer = due;
            cx.schedule(due, EventKind::RequesterTimer, at, due.as_fs());
        }
    }

    /// Reads whose completions have not come in time are over, as far as the fabric's account goes.
    pub(crate) fn time_out_core_reads(&mut self, cx: &mut Context) {
        let now = cx.now();
        let port = self.port;
        let core = self.core();
        let late: Vec<u16> =
            core.reads.iter().filter(|(_, read)| read.due <= now).map(|(tag, _)| *tag).collect();
        for tag in late {
            if let Some(read) = self.core().reads.remove(&tag) {
                cx.end_transaction(read.transaction, None, Ending::TimedOut);
                cx.detect_timeout(FunctionAt { node: self.node, index: 0 }, port);
            }
        }
        self.arm_core(cx);
    }

    /// A core answers a request. Its completion goes out in any case; the requester says what is wrong with one that it cannot use.
    fn complete_from_core(&mut self, cx: &mut Context, repr: Repr, payload: Payload, completion: Completion) {
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let (port, source) = (self.port, self.source);
        let Some(&request) = self.core().asked.get(&completion.id()) else {
            let flow = self.core_flow(true);
            let handle = cx.tlps.insert(repr, payload, flow);
            return cx.enqueue_at_egress(port, source, Waiting::own(handle, shape_of(&repr)));
        };
        let bytes = completion.length().map_or(0, |_| completion.data_bytes());
        let last = completion.status() != CompletionStatus::Success || completion.byte_count() <= bytes;
        if completion.status() != CompletionStatus::Success {
            cx.detect_refusal(port, request, completion.status());
        }
        let tlp = cx.tlps.get_mut(request);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        // A write that is answered carries no data.
        let last = last || matches!(tlp.repr.kind(), Kind::IoWrite { .. } | Kind::DeferrableMemWrite { .. });
        let waiting = cx.make_completion(port, request, repr, payload, last);
        cx.enqueue_at_egress(port, source, waiting);
        if last {
            self.core().asked.remove(&completion.id());
            cx.drop_tlp(request);
        }
    }
}

fn hex(dword: &[u8]) -> String {
    dword.iter().map(|byte| format!("{byte:02x}")).collect()
}
