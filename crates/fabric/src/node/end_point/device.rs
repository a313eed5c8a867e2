//! The device behind an end point: what it is told, and what it asks for.

use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::node::end_point::{EndPoint, in_lanes, io_access};
use crate::node::initiator::{Initiate, Initiator, Operation, OperationKind};
use crate::observe::registers::ChangedBy;
use tlplab_cfgspace::interrupt::{raise, take_pending};
use tlplab_cfgspace::{InterruptMode, MessageWrite, Signal};
use tlplab_device::{Action, Context as DeviceContext, DmaError, Event, OpId, Refusal, ReplyToken};
use tlplab_transaction::{Access, Payload, RequesterConfig, memory_access};
use tlplab_units::Time;
use tlplab_wire::tlp::{CompletionStatus, Kind};

impl EndPoint {
    /// The device handles an event, and what it asks for is carried out. The event, if the device is driven from outside.
    pub(crate) fn tell(&mut self, cx: &mut Context, event: Event) -> Option<Event> {
        if self.core.is_some() {
            return None; // its registers and resets tell it all that the others hear by events
        }
        let Some(device) = &mut self.device else { return Some(event) };
        let RequesterConfig { mps, mrrs, .. } = *self.initiator.requester.config();
        let mut actions = std::mem::take(&mut cx.agenda.actions);
        let mut device_cx = DeviceContext::new(cx.now(), &cx.devices, &mut self.next_op, &mut actions)
            .with_length_only(cx.length_only)
            .with_interrupts(self.interrupt_mode)
            .with_request_sizes(mps, mrrs);
        device.handle(&mut device_cx, event);
        for action in actions.drain(..) {
            self.carry_out(cx, action);
        }
        cx.agenda.actions = actions;
        None
    }

    /// Carries out the actions of a device.
    pub(crate) fn carry_out(&mut self, cx: &mut Context, action: Action) {
        let asked = cx.now();
        let operation = |stream, kind| Operation { owner: 0, stream, asked, kind };
        match action {
            Action::DmaRead { op, .. } | Action::DmaWrite { op, .. } if !self.bus_master => {
                // It hears when it may act again.
                self.started = false;
                self.report_operation(cx, 0, op, Some(Err(DmaError::BusMasterDisabled)));
            }
            Action::DmaRead { op, stream, address, bytes, carry } => {
                self.begin(cx, operation(stream, OperationKind::Read { op, address, bytes, carry }));
            }
            Action::DmaWrite { op, stream, address, data } => {
                self.begin(cx, operation(stream, OperationKind::Write { op, address, data }));
            }
            Action::Msix { stream, vector } => self.raise_message(cx, stream, vector),
            // Behind the earlier writes of the stream.
            Action::Intx { stream, asserted } => {
                self.begin(cx, operation(stream, OperationKind::Intx { asserted }));
            }
            Action::Reply { token, data } => self.reply(cx, token, Ok(data)),
            Action::ReplyError { token, refusal } => self.reply(cx, token, Err(refusal)),
            Action::Timer { at, id } => match &mut self.stopped {
                Some(stopped) => stopped.push((at.saturating_since(asked), id)),
                None => self.set_timer(cx, at, id),
            },
            Action::SetConfig { offset, data } => {
                let space = self.function.space.change(cx.now(), ChangedBy::Hardware);
                if let Err(wrong) = space.show(offset, &data) {
                    cx.fail(self.node, wrong.to_string());
                }
            }
            Action::Finished => cx.finished(self.node, 0),
            Action::Fault(message) => cx.fail(self.node, message),
        }
    }

    pub(crate) fn set_timer(&mut self, cx: &mut Context, at: Time, id: u64) {
        let event = cx.node_event(self.node);
        cx.schedule(at.max(cx.now()), EventKind::ProgramTimer, event, id);
    }

    fn reply(&mut self, cx: &mut Context, token: ReplyToken, answer: Result<Payload, Refusal>) {
        let (node, port) = (self.node, self.port);
        let answer = answer.map_err(|refusal| match refusal {
            Refusal::UnsupportedRequest => CompletionStatus::UnsupportedRequest,
            Refusal::CompleterAbort => CompletionStatus::CompleterAbort,
        });
        let Some(request) = cx.tlps.answered(token.0) else {
            return cx.fail(node, "answered a read that has ended; each read must be answered once".into());
        };
        cx.tlps.get_mut(request).asks = None;
        let tlp = cx.tlps.get(request);
        let io = match *tlp.repr.kind() {
            Kind::IoRead { port, .. } => Some(port),
            _ => None,
        };
        let access = io.map(io_access).or_else(|| memory_access(&tlp.repr));
        if let (Ok(data), Some(Access { bytes, .. })) = (&answer, access)
            && data.len() != u64::from(bytes)
        {
            let found = data.len();
            let wrong = format!(
                "answered a read of {bytes} B with {found} B; the answer must have the requested size"
            );
            return cx.fail(node, wrong);
        }
        let answer = match io {
            Some(port) => answer.map(|data| in_lanes(&data, port)),
            None => answer,
        };
        self.answer(cx, port, request, answer);
    }

    /// A device driven from outside starts operations through this.
    pub(crate) fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op - 1)
    }

    /// A device raises a message signalled interrupt.
    pub(crate) fn raise_message(&mut self, cx: &mut Context, stream: u16, vector: u16) {
        let function = &mut self.function;
        if !matches!(function.space.interrupt_mode(), InterruptMode::MsiX | InterruptMode::Msi) {
            return; // the device sets its level then
        }
        let table = function.msix.as_mut().map(|msix| &mut msix.table);
        let vectors = table.as_ref().map_or(0, |table| table.vectors());
        if function.space.interrupt_mode() == InterruptMode::MsiX && vector >= vectors {
            let wrong =
                format!("raised MSI-X vector {vector}, but it has {vectors}: from 0 to {}", vectors - 1);
            return cx.fail(self.node, wrong);
        }
        let space = function.space.change(cx.now(), ChangedBy::Hardware);
        if let Signal::Write(message) = raise(space, table, vector)
            && !(self.device.as_ref().is_some_and(|device| device.merges_messages())
                && self.has_waiting(stream, message))
        {
            self.send_message(cx, stream, message);
        }
    }

    /// True if this message waits in its stream already, and no TLP has been made of it.
    fn has_waiting(&self, stream: u16, MessageWrite { address, data }: MessageWrite) -> bool {
        let bytes = data.to_le_bytes();
        let is = |operation: &Operation| {
            let same = matches!(operation.kind, OperationKind::Interrupt { address: to, data } if (to, data) == (address, bytes));
            same && operation.stream == stream
        };
        let Initiator { requester, submissions, .. } = &self.initiator;
        submissions.iter().any(is)
            || requester.waiting_posted(self.lane(stream)).any(|(repr, data)| {
                let to = matches!(repr.kind(), Kind::MemWrite { span, .. } if span.address() == address);
                to && data.and_then(Payload::bytes) == Some(bytes.as_slice())
            })
    }

    fn send_message(&mut self, cx: &mut Context, stream: u16, message: MessageWrite) {
        let MessageWrite { address, data } = message;
        let kind = OperationKind::Interrupt { address, data: data.to_le_bytes() };
        self.begin(cx, Operation { owner: 0, stream, asked: cx.now(), kind });
    }

    /// Masks may have gone: what was pending goes out.
    pub(crate) fn interrupts_changed(&mut self, cx: &mut Context) {
        loop {
            let function = &mut self.function;
            let table = function.msix.as_mut().map(|msix| &mut msix.table);
            let space = function.space.change(cx.now(), ChangedBy::Hardware);
            let Some(message) = take_pending(space, table) else { return };
            self.send_message(cx, 0, message);
        }
    }

    /// The host reads or writes the memory of MSI-X, in whole doublewords (PCIe 5.0 §6.1.4.2).
    pub(crate) fn msix_access(
        &mut self,
        cx: &mut Context,
        bar: u8,
        offset: u64,
        bytes: u32,
        data: Option<Payload>,
    ) -> Payload {
        let Some(msix) = &mut self.function.msix else { return Payload::EMPTY };
        let Some(data) = data else { return msix.read(bar, offset, bytes).into() };
        msix.write(bar, offset, data.bytes().unwrap_or(&[]));
        self.interrupts_changed(cx);
        Payload::EMPTY
    }
}
