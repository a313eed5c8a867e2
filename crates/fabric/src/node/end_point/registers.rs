//! The state of the registers of an end point's function, and its resets (PCIe 5.0 §6.6).
//!
//! Of what was asked for before a reset, nothing is heard any more at the requester; every transaction of it ends as lost, unless it has
//! left in full and arrives. Completions that are still on their way find nobody.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::node::end_point::EndPoint;
use crate::node::function::{Function, Functions};
use crate::node::initiator::{Initiate, OperationKind, Ticket};
use crate::node::wires::message;
use crate::observe::registers::ChangedBy;
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::Ending;
use crate::packet::wires::Wires;
use tlplab_cfgspace::enumerate::MpsPolicy;
use tlplab_cfgspace::{MsixMemory, Reset, Written};
use tlplab_device::Event;
use tlplab_units::{Bdf, FcClass, Mps};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus};

impl Functions for EndPoint {
    fn function(&mut self, _index: usize) -> &mut Function {
        &mut self.function
    }

    fn set_id(&mut self, cx: &mut Context, _index: usize, id: Bdf) {
        if self.function.id == id {
            return;
        }
        self.function.id = id;
        self.update_limits(cx);
        cx.topology.nodes[self.node.index()].id = id;
    }

    fn obey_registers(&mut self, cx: &mut Context, _index: usize, written: Written) {
        if written.device_control {
            self.note_payload(cx);
            cx.links.limit_payload(self.port);
        }
        self.read_registers_back(cx);
        self.update_limits(cx);
        if written.translation {
            self.obey_translation_control(cx);
        }
        self.start_when_allowed(cx);
        if written.function_level_reset {
            self.reset(cx, Reset::FunctionLevel);
        }
        if written.interrupts {
            self.interrupts_changed(cx);
            self.update_wires(cx, 0);
        }
    }
}

impl EndPoint {
    /// A configuration request: if it names this function, it reads or writes its registers.
    pub(crate) fn config_access(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        target: CfgTarget,
    ) {
        if target.is_type1() || !self.is_named(target.function()) {
            let id = cx.answers_for(ingress);
            return cx.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
        }
        self.take_config_request(cx, ingress, handle, 0, target);
    }

    /// True if it is the function with this ID of its device. (A device number that gets here is part of the function's: without ARI it is 0.)
    pub(crate) fn is_named(&self, function: Bdf) -> bool {
        // On a bus the device number says which device it is.
        self.number == if self.on_bus { function.function() } else { function.0 as u8 }
    }

    /// Registers may have changed.
    fn read_registers_back(&mut self, cx: &mut Context) {
        let space = &self.function.space;
        self.bars = space.bars();
        self.bus_master = space.command().bus_master;
        self.interrupt_mode = space.interrupt_mode();
        self.show_bars(cx);
    }

    /// On a bus, targets are found by what they decode.
    pub(crate) fn show_bars(&self, cx: &mut Context) {
        if self.on_bus {
            cx.decode_on_bus(self.port, self.number, self.bars);
        }
    }

    /// Of the functions of a device, its port takes what one of them does.
    pub(crate) fn note_payload(&self, cx: &mut Context) {
        let mps = self.function.space.pcie().map(|pcie| pcie.mps);
        cx.links.note_payload(self.port, self.source, mps);
    }

    /// ID and limits of requester and completer follow the registers.
    pub(crate) fn update_limits(&mut self, cx: &mut Context) {
        self.note_payload(cx);
        let (mps, mrrs) = match self.function.space.pcie() {
            Some(pcie) => (pcie.mps, pcie.mrrs),
            // A device on a bus has no registers for them.
            None if self.on_bus => (self.completer.mps, self.mrrs),
            None => return,
        };
        let id = self.function.id;
        (self.completer.id, self.completer.mps) = (id, mps);
        self.initiator.requester.reconfigure(id, mps, mrrs);
        self.tell_registers(cx, false);
    }

    /// A device may act as soon as software lets it master the bus.
    pub(crate) fn start_when_allowed(&mut self, cx: &mut Context) {
        if cx.host.lets_start && self.bus_master && !std::mem::replace(&mut self.started, true) {
            cx.agenda.push(Task::Tell { node: self.node, event: Event::Start });
        }
    }

    /// The wires that the function asserts may have changed: by its device, by software, or by a reset. The functions of a device share the wires of
    /// its link.
    pub(crate) fn update_wires(&mut self, cx: &mut Context, stream: u16) {
        let wires = cx.links.assert_wires(self.port, self.source, Wires::of(&self.function.space));
        let Some(before) = cx.links.tell_wires(self.port, wires) else { return };
        let now = cx.now();
        for (wire, level) in wires.changes_since(before) {
            let ticket = Ticket::Wire { flow: self.initiator.flow(stream), wire };
            // A message without data is a request that cannot be refused.
            let template = message(self.function.id, wire, level);
            let _ = self.initiator.requester.request(now, self.lane(stream), ticket, template, None);
            cx.agenda.pump(self.node);
        }
    }

    /// The function is reset: its registers as far as the reset reaches, and all that its device does.
    pub(crate) fn reset(&mut self, cx: &mut Context, reset: Reset) {
        self.forget_work(cx, reset);
        self.function.space.change(cx.now(), ChangedBy::Reset).reset(reset);
        let keeps_table = self.core.is_none();
        self.function.msix = MsixMemory::of(&self.function.space).filter(|_| keeps_table);
        self.leave_reset(cx);
        self.read_registers_back(cx);
        self.started = false;
        if reset != Reset::FunctionLevel {
            self.function.id = Bdf(0);
            cx.topology.nodes[self.node.index()].id = Bdf(0);
        }
        self.reset_core(cx);
        if let Some(ats) = &mut self.ats {
            ats.restart(false);
        }
        self.obey_translation_control(cx);
        self.update_limits(cx);
        self.update_wires(cx, 0);
        cx.agenda.push(Task::Tell { node: self.node, event: Event::Reset });
    }

    /// Its card is pulled out.
    pub(crate) fn stop_time(&mut self) {
        self.stopped.get_or_insert_default();
    }

    /// Its link is coming up: if its card was pulled out, that is back, and its device's time goes on.
    pub(crate) fn go_on(&mut self, cx: &mut Context) {
        for (left, id) in self.stopped.take().into_iter().flatten() {
            self.set_timer(cx, cx.now() + left, id);
        }
    }

    /// The function needs its time before it can be configured (PCIe 5.0 §6.6.1).
    pub(crate) fn leave_reset(&mut self, cx: &Context) {
        self.function.ready = cx.now() + self.ready;
    }

    /// A function that is reset forgets what it does and what it was asked. Posted TLPs that wait for the wire still go, if it is there.
    fn forget_work(&mut self, cx: &mut Context, reset: Reset) {
        let own = cx.node_event(self.node);
        cx.kernel.cancel(|event| {
            event.at == own && matches!(event.kind, EventKind::ProgramTimer | EventKind::Submit)
        });
        cx.agenda.forget_device(self.node);
        self.stopped.iter_mut().for_each(Vec::clear);
        self.first_op = self.next_op;
        let id = self.function.id;
        let forgets_requests = reset != Reset::FunctionLevel && id != Bdf(0);
        let mut unanswered = Vec::new();
        for (handle, tlp) in cx.tlps.all_mut() {
            if tlp.asks == Some(self.node) {
                (tlp.asks, tlp.question) = (None, 0);
                unanswered.push(handle);
            }
            let returns = tlp.shape.class != FcClass::Posted && tlp.repr.transaction_id().requester == id;
            tlp.orphaned |= forgets_requests && returns;
        }
        unanswered.into_iter().for_each(|request| cx.drop_tlp(request));
        self.cancel_operations(cx, reset);
    }

    /// All operations end, but those of which nothing is left to be sent or answered.
    fn cancel_operations(&mut self, cx: &mut Context, reset: Reset) {
        let now = cx.now();
        let initiator = &mut self.initiator;
        let submissions = std::mem::take(&mut initiator.submissions);
        let mut cancelled = Vec::new();
        if reset == Reset::FunctionLevel {
            initiator.requester.cancel_all(now, |ticket| cancelled.push(ticket));
        } else {
            initiator.requester.reset(now, |ticket| cancelled.push(ticket));
        }
        for ticket in cancelled {
            let transaction = match ticket {
                Ticket::Transaction(transaction) => transaction,
                // Other resets come with a link that is down, above which everything is forgotten.
                Ticket::Wire { wire, .. } if reset == Reset::FunctionLevel => {
                    cx.links.wire_not_told(self.port, wire);
                    continue;
                }
                _ => continue,
            };
            let record = cx.transactions.get(transaction);
            (record.issuing, record.ending) = (false, Ending::Lost);
            // Parts of a write that are under way end it.
            if record.pending == 0 {
                cx.end_transaction(transaction, None, Ending::Lost);
            }
        }
        for operation in submissions {
            let (address, bytes, read) = match operation.kind {
                OperationKind::Read { address, bytes, .. } => (address, bytes, true),
                OperationKind::Write { address, data, .. } => (address, data.len(), false),
                OperationKind::Interrupt { .. } | OperationKind::Intx { .. } => continue,
            };
            let flow = self.initiator.flow(operation.stream);
            cx.observe.one_less(now, flow);
            let transaction = cx.open_transaction(self.node, flow, operation.asked, read, address, bytes);
            let record = cx.transactions.get(transaction);
            (record.issuing, record.submitted) = (false, now);
            cx.end_transaction(transaction, None, Ending::Lost);
        }
        self.arm_requester(cx);
    }

    /// Firmware sets the sizes of requests that its policy allows, and that the configuration asks for.
    pub(crate) fn set_request_sizes(&mut self, cx: &mut Context, policy: MpsPolicy) {
        let mps: Mps = cx.planned_payload(self.port);
        let space = self.function.space.change(cx.now(), ChangedBy::Hardware);
        space.set_request_sizes(mps, policy.limit_reads(mps, self.mrrs));
        self.update_limits(cx);
    }
}
