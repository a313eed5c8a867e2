//! Reports of errors to software (PCIe 5.0 §6.2): the function that detects it sets its status bits and logs the header; if it is
//! enabled to, it sends a message to the root complex, which every bridge on the way may stop; the root port logs what arrives and raises
//! its interrupt. What the registers say decides everything: [`tlplab_cfgspace::error`].
//!
//! A message is a TLP like others and can be lost like them. A function has at most one of each severity on its way: what happens until
//! that has arrived is in its registers only. So messages whose own way makes errors cannot go on for ever, nor fill a queue.

use crate::kernel::ids::{FlowId, FunctionAt, PortId};
use crate::link::Links;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::errors::{Concerns, Detection};
use crate::node::function::Functions;
use crate::node::initiator::Initiate;
use crate::node::{Node, Nodes};
use crate::observe::registers::ChangedBy;
use crate::packet::slab::{Tlp, TlpHandle, shape_of};
use tlplab_cfgspace::error;
use tlplab_cfgspace::{ErrorKind, ErrorMessage};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{Kind, Repr, message::Code};

impl Nodes {
    /// The registers of the functions concerned record an error, and messages are sent, at most one of each severity.
    pub(crate) fn report(&mut self, cx: &mut Context, mut detection: Detection) {
        self.record(&cx.links, cx.now(), &mut detection);
        for (at, message) in detection.messages.into_iter().flatten() {
            self.send_report(cx, at, message, (detection.port, detection.kind));
        }
    }

    /// Errors that have been detected are recorded before functions are reset.
    pub(crate) fn record_detections(&mut self, cx: &mut Context) {
        let now = cx.now();
        cx.agenda.detections().for_each(|detection| self.record(&cx.links, now, detection));
    }

    fn record(&mut self, links: &Links, now: Time, detection: &mut Detection) {
        if detection.messages.is_some() {
            return;
        }
        let Detection { port, kind, header, .. } = *detection;
        let functions = match &detection.concerns {
            Concerns::Function(function) => vec![*function],
            Concerns::Port(tlp) => self.functions_concerned(links, port, kind, tlp.as_deref()),
        };
        let messages: &mut Vec<(FunctionAt, ErrorMessage)> = detection.messages.insert(Vec::new());
        for at in functions {
            let function = self[at.node].functions().function(at.index);
            let message = error::report(function.space.change(now, ChangedBy::Hardware), kind, header);
            if let Some(message) = message.filter(|new| messages.iter().all(|(_, sent)| sent != new)) {
                messages.push((at, message));
            }
        }
    }

    /// The functions behind `port` that an error concerns: of a device with several, all of them unless it is about a TLP that one of
    /// them claims (PCIe 5.0 §6.2.4).
    fn functions_concerned(
        &self,
        links: &Links,
        port: PortId,
        kind: ErrorKind,
        tlp: Option<&Repr>,
    ) -> Vec<FunctionAt> {
        let (node, index) = (links.node(port), links.index(port));
        match &self[node] {
            Node::Root(root) => vec![FunctionAt { node, index: root.function_at(index) }],
            Node::Switch(_) => vec![FunctionAt { node, index }],
            Node::Bridge(_) => vec![FunctionAt { node, index: 0 }],
            // It has no registers to record it in.
            Node::Custom(_) => Vec::new(),
            Node::EndPoint(_) => {
                let tlp = tlp.filter(|_| may_be_of_one_function(kind));
                let claimant = tlp.and_then(|tlp| self.claimant(node, tlp));
                let concerned = claimant.map_or_else(|| self.functions_of(node), |function| vec![function]);
                concerned.into_iter().map(|node| FunctionAt { node, index: 0 }).collect()
            }
        }
    }

    /// A function tells the root complex of an error.
    fn send_report(
        &mut self,
        cx: &mut Context,
        at: FunctionAt,
        message: ErrorMessage,
        of: (PortId, ErrorKind),
    ) {
        let host = cx.host.messages;
        let node = at.node;
        let sent = match &mut self[node] {
            Node::Root(root) => {
                let source = root.function(at.index).id;
                root.log_error(cx, at.index, message, source);
                true
            }
            Node::EndPoint(end_point) => {
                let (way, flow) = ((end_point.port, end_point.source), end_point.initiator.flow(0));
                send_error_message(cx, &mut **end_point, at, way, flow, message)
            }
            Node::Bridge(bridge) => {
                let way = (bridge.ports[0], 0);
                send_error_message(cx, &mut **bridge, at, way, host, message)
            }
            Node::Custom(_) => false,
            Node::Switch(switch) => {
                let way = (switch.ports[0], at.index);
                switch.upstream_port_passes(cx.now(), at.index, message)
                    && send_error_message(cx, &mut **switch, at, way, host, message)
            }
        };
        if sent && let Some(count) = cx.observe.errors.detected.get_mut(&of) {
            let before = count.messages.map_or(0, |(_, n)| n);
            count.messages = Some((message, before + 1));
        }
    }
}

/// Puts a message into a queue of its function's way up; says whether it had to.
fn send_error_message(
    cx: &mut Context,
    node: &mut dyn Functions,
    from: FunctionAt,
    (egress, queue): (PortId, usize),
    flow: FlowId,
    message: ErrorMessage,
) -> bool {
    let function = node.function(from.index);
    let requester = function.id;
    let Ok(repr) = Repr::message(requester, code_of(message)) else { return false };
    let earlier: &mut Option<TlpHandle> = &mut function.reports[message as usize];
    if let Some(earlier) = *earlier
        && cx.tlps.is_live(earlier)
        && message_of(cx.tlps.get(earlier)) == Some((message, requester))
    {
        return false;
    }
    let repr = cx.with_digest(egress, repr);
    let handle = cx.tlps.insert(repr, Payload::EMPTY, flow);
    cx.tlps.get_mut(handle).maker = Some(from.node);
    *earlier = Some(handle);
    cx.enqueue_at_egress(egress, queue, Waiting::own(handle, shape_of(&repr)));
    true
}

/// Errors about a TLP that may belong to one function of a device; all others are about the link, or about what no function can say of
/// its own (PCIe 5.0 §6.2.4).
fn may_be_of_one_function(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Poisoned { .. }
            | ErrorKind::CompleterAbort { .. }
            | ErrorKind::UnsupportedRequest { .. }
            | ErrorKind::UnexpectedCompletion
    )
}

fn code_of(message: ErrorMessage) -> Code {
    match message {
        ErrorMessage::Correctable => Code::ErrCor,
        ErrorMessage::NonFatal => Code::ErrNonfatal,
        ErrorMessage::Fatal => Code::ErrFatal,
    }
}

/// The error that a TLP reports and its reporter, if it is an error message.
pub(crate) fn message_of(tlp: &Tlp) -> Option<(ErrorMessage, Bdf)> {
    let Kind::Message(message) = tlp.repr.kind() else { return None };
    Some((ErrorMessage::from_code(message.code() as u8)?, message.id().requester))
}
