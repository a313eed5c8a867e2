//! How software learns of an error (PCIe 5.0 §6.2): the function that detects it sets its status bits and logs the header; if it is
//! enabled to, it sends a message to the root complex, which every bridge on the way may stop; the root port logs what arrives and raises
//! its interrupt. What the registers say decides everything: [`tlplab_cfgspace::error`].
//!
//! A message is a TLP like others and can be lost like them. A function has at most one of each severity on its way: what happens until
//! that has arrived is in its registers only. So messages whose own way makes errors cannot go on for ever, nor fill a queue.

use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::node::errors::ReportedError;
use crate::packet::slab::{Tlp, TlpHandle, shape_of};
use crate::sim::{Fabric, Task};
use tlplab_cfgspace::error::{self, FailedCompletion};
use tlplab_cfgspace::interrupt::raise;
use tlplab_cfgspace::{ErrorKind, ErrorMessage, InterruptMode, Signal};
use tlplab_datalink::Integrity;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{Kind, Repr, message::Code};

/// An error message that a function has to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    function: FunctionAt,
    message: ErrorMessage,
    /// What it tells of.
    port: PortId,
    kind: ErrorKind,
}

impl Fabric {
    /// The functions behind `port` that an error concerns: of a device with several, all of them unless it is about a TLP that one of
    /// them claims (PCIe 5.0 §6.2.4).
    pub(crate) fn functions_concerned(
        &self,
        port: PortId,
        kind: ErrorKind,
        tlp: Option<TlpHandle>,
    ) -> Vec<FunctionAt> {
        let (node, index) = (self.ports[port.index()].node, self.ports[port.index()].index);
        match &self.nodes[node.index()] {
            Node::Root(_) => vec![root_port(node, index)],
            Node::Switch(_) => vec![FunctionAt { node, index }],
            Node::Bridge(_) => vec![FunctionAt { node, index: 0 }],
            Node::EndPoint(device) => {
                let claimant = tlp
                    .filter(|_| may_be_of_one_function(kind))
                    .and_then(|tlp| self.claimant(node, &self.tlps.get(tlp).repr));
                match claimant {
                    Some(node) => vec![FunctionAt { node, index: 0 }],
                    None => device.functions.iter().map(|&(_, node)| FunctionAt { node, index: 0 }).collect(),
                }
            }
        }
    }

    /// The function that stands for the requester of `node` at one of its ports.
    pub(crate) fn requester_at(&self, node: NodeId, port: PortId) -> FunctionAt {
        match &self.nodes[node.index()] {
            Node::Root(_) => root_port(node, self.ports[port.index()].index),
            _ => FunctionAt { node, index: 0 },
        }
    }

    /// The registers of `functions` record an error; messages follow when this event is over, at most one of each severity.
    pub(crate) fn report_error(
        &mut self,
        functions: &[FunctionAt],
        port: PortId,
        kind: ErrorKind,
        header: Option<[u8; 16]>,
    ) {
        let mut sent = Vec::new();
        for &function in functions {
            let message = error::report(&mut self.function(function).space, kind, header);
            if let Some(message) = message.filter(|message| !sent.contains(message)) {
                sent.push(message);
                self.agenda.push_back(Task::Report(Report { function, message, port, kind }));
            }
        }
    }

    /// Where replays are the flow control, as in gem5's model, they are no error to tell anybody of.
    pub(crate) fn replays_for_room(&self, port: PortId, kind: ErrorKind) -> bool {
        matches!(kind, ErrorKind::ReplayTimer | ErrorKind::ReplayNumRollover)
            && self.ports[port.index()].engine.config().flow_control.drops()
    }

    /// A completion said that a request of `node` failed.
    #[cold]
    pub(crate) fn request_failed(&mut self, node: NodeId, ingress: Option<PortId>, how: FailedCompletion) {
        if let Some(port) = ingress {
            let function = self.requester_at(node, port);
            error::receive_completion(&mut self.function(function).space, how);
        }
    }

    /// A function tells the root complex of an error.
    pub(crate) fn send_report(&mut self, report: Report) {
        let Report { function: at, message, port, kind } = report;
        let source = self.function(at).id;
        let sent = match &self.nodes[at.node.index()] {
            Node::Root(_) => {
                self.log_at_root(at, message, source);
                true
            }
            Node::EndPoint(end_point) => {
                let (port, queue) = (end_point.port, end_point.source);
                self.send_error_message(at, (port, queue), message)
            }
            Node::Bridge(bridge) => {
                let upstream = (bridge.ports[0], 0);
                self.send_error_message(at, upstream, message)
            }
            Node::Switch(switch) => {
                let upstream = (switch.ports[0], at.index);
                self.upstream_port_passes(at, message) && self.send_error_message(at, upstream, message)
            }
        };
        if sent && let Some(count) = self.errors.detected.get_mut(&(port, kind)) {
            let before = count.messages.map_or(0, |(_, n)| n);
            count.messages = Some((message, before + 1));
        }
    }

    /// Below a switch's upstream port is a bus of its downstream ports: their messages go over that bridge.
    fn upstream_port_passes(&mut self, from: FunctionAt, message: ErrorMessage) -> bool {
        from.index == 0 || matches!(self.nodes[from.node.index()], Node::Bridge(_)) || {
            let bridge = FunctionAt { index: 0, ..from };
            error::forward(&mut self.function(bridge).space, message)
        }
    }

    /// Puts a message into a queue of its function's way up; says whether it had to.
    fn send_error_message(
        &mut self,
        from: FunctionAt,
        (egress, queue): (PortId, usize),
        message: ErrorMessage,
    ) -> bool {
        let requester = self.function(from).id;
        let Ok(repr) = Repr::message(requester, code_of(message)) else { return false };
        if let Some(earlier) = self.function(from).reports[message as usize]
            && self.tlps.is_live(earlier)
            && message_of(self.tlps.get(earlier)) == Some((message, requester))
        {
            return false;
        }
        let repr = self.with_digest(egress, repr);
        let flow = self.flow_at(from.node);
        let handle = self.tlps.insert(repr, Payload::EMPTY, flow);
        self.function(from).reports[message as usize] = Some(handle);
        self.enqueue(egress, queue, Waiting::own(handle, shape_of(&repr)));
        true
    }

    /// What the messages of a node are accounted to: the first flow of its requester, or else of the host's.
    fn flow_at(&mut self, node: NodeId) -> FlowId {
        let node = if matches!(self.nodes[node.index()], Node::Switch(_) | Node::Bridge(_)) {
            self.root_node
        } else {
            node
        };
        self.initiator(node).flow(0)
    }

    /// A message to the root complex comes into a switch from below.
    pub(crate) fn pass_to_root(&mut self, ingress: PortId, handle: TlpHandle) {
        let (node, index) = (self.ports[ingress.index()].node, self.ports[ingress.index()].index);
        let at = FunctionAt { node, index };
        let passes = message_of(self.tlps.get(handle)).is_none_or(|(message, _)| {
            error::forward(&mut self.function(at).space, message) && self.upstream_port_passes(at, message)
        });
        if passes {
            let upstream = self.own_ports(node)[0];
            self.forward_to(ingress, upstream, handle, Integrity::Good, Time::ZERO);
        } else {
            self.consume(ingress, handle);
        }
    }

    /// A message has reached the root complex.
    pub(crate) fn message_at_root(&mut self, ingress: PortId, handle: TlpHandle) {
        self.messages += 1;
        if let Some((message, source)) = message_of(self.tlps.get(handle)) {
            let at = root_port(self.root_node, self.ports[ingress.index()].index);
            if error::forward(&mut self.function(at).space, message) {
                self.log_at_root(at, message, source);
            }
        }
        self.consume(ingress, handle);
    }

    /// A root port logs a message, and raises its interrupt if software wants that.
    fn log_at_root(&mut self, at: FunctionAt, message: ErrorMessage, source: Bdf) {
        let Some(port) = at.index.checked_sub(1).map(|index| self.own_ports(at.node)[index]) else {
            return; // the host bridge reports to nobody
        };
        let interrupts = error::log_at_root(&mut self.function(at).space, message, source);
        let first = self.now;
        let new = ReportedError { port, source, message, count: 0, first, interrupts: 0 };
        let reported = self.errors.reported.entry((port, source, message)).or_insert(new);
        reported.count += 1;
        reported.interrupts += u64::from(interrupts);
        if interrupts {
            self.error_interrupts(at);
        }
    }

    /// A root port tells of errors by MSI only: software that leaves Root Error Status as it is would hold a wire that others share.
    fn error_interrupts(&mut self, at: FunctionAt) {
        let space = &mut self.function(at).space;
        if space.interrupt_mode() == InterruptMode::Msi
            && let Signal::Write(message) = raise(space, None, 0)
        {
            self.send_port_message(at, message);
        }
    }
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

fn root_port(node: NodeId, port: usize) -> FunctionAt {
    FunctionAt { node, index: port + 1 }
}

fn code_of(message: ErrorMessage) -> Code {
    match message {
        ErrorMessage::Correctable => Code::ErrCor,
        ErrorMessage::NonFatal => Code::ErrNonfatal,
        ErrorMessage::Fatal => Code::ErrFatal,
    }
}

/// What a TLP reports and whose report it is, if it is an error message.
fn message_of(tlp: &Tlp) -> Option<(ErrorMessage, Bdf)> {
    let Kind::Message(message) = tlp.repr.kind() else { return None };
    Some((ErrorMessage::from_code(message.code() as u8)?, message.id().requester))
}
