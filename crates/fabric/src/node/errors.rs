//! Errors that receivers and requesters detect (PCIe 5.0 §6.2): one stream through `Fabric::detect`, which counts them here and lets the
//! function concerned report them (`error_messages`).
//!
//! Who looks for what: the data link layer's errors are heard in `receive` (bad CRCs, broken protocols) and `sim` (replay timers);
//! `receive` also keeps malformed TLPs from the nodes; `initiator` hears of completions that are unexpected, wrong or late; `switch`
//! refuses what nobody claims; poisoned data and wrong digests are judged here, where a TLP ends.

use crate::config::Malformation;
use crate::kernel::ids::{NodeId, PortId};
use crate::link::fault::Flaw;
use crate::node::Node;
use crate::node::initiator::Ticket;
use crate::node::root::processor::Register;
use crate::node::routing::{Route, route_of};
use crate::packet::slab::{Tlp, TlpHandle};
use crate::packet::transactions::Ending;
use crate::sim::Fabric;
use std::collections::BTreeMap;
use tlplab_cfgspace::error::FailedCompletion;
pub use tlplab_cfgspace::{ErrorKind, ErrorMessage};
use tlplab_datalink::{Discard, ProtocolError};
use tlplab_transaction::{CompletionError, Outcome};
use tlplab_units::{Bdf, FcClass, LinkMode, Time};
use tlplab_wire::tlp::{CompletionStatus, Kind};

/// Of so many protocol errors every detail is kept; all are counted.
const PROTOCOL_ERRORS_KEPT: usize = 1000;

/// An error at a place, as often as it was detected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The port that detected it.
    pub port: PortId,
    /// What it is.
    pub kind: ErrorKind,
    /// How often.
    pub count: u64,
    /// The first time.
    pub first: Time,
    /// Header of the first TLP it concerns, as on the wire; 3 DW end in zeros.
    pub header: Option<[u8; 16]>,
    /// The last message that told the root complex of it, and how many did.
    pub messages: Option<(ErrorMessage, u64)>,
}

/// An error message that got as far as a root port's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// The root port.
    pub port: PortId,
    /// The function that reported an error, perhaps the root port itself.
    pub source: Bdf,
    /// How bad it is.
    pub message: ErrorMessage,
    /// How often.
    pub count: u64,
    /// The first time.
    pub first: Time,
    /// How often the root port raised its interrupt for it.
    pub interrupts: u64,
}

/// All errors so far, in a bounded number of entries.
#[derive(Default)]
pub(crate) struct ErrorLog {
    pub(crate) detected: BTreeMap<(PortId, ErrorKind), ErrorCount>,
    pub(crate) reported: BTreeMap<(PortId, Bdf, ErrorMessage), ReportedError>,
}

impl Fabric {
    /// The errors that were detected, by port and kind.
    pub fn errors(&self) -> impl Iterator<Item = &ErrorCount> {
        self.errors.detected.values()
    }

    /// The error messages that root ports logged, by port, source and severity.
    pub fn reported_errors(&self) -> impl Iterator<Item = &ReportedError> {
        self.errors.reported.values()
    }

    /// `port` detects an error; `tlp` is what it concerns.
    #[cold]
    pub(crate) fn detect(&mut self, port: PortId, kind: ErrorKind, tlp: Option<TlpHandle>) {
        let header = tlp.and_then(|handle| header_of(self.tlps.get(handle)));
        self.count_error(port, kind, header);
        if !self.replays_for_room(port, kind) {
            let functions = self.functions_concerned(port, kind, tlp);
            self.report_error(&functions, port, kind, header);
        }
    }

    fn count_error(&mut self, port: PortId, kind: ErrorKind, header: Option<[u8; 16]>) {
        let first = self.now;
        let new = ErrorCount { port, kind, count: 0, first, header, messages: None };
        self.errors.detected.entry((port, kind)).or_insert(new).count += 1;
    }

    /// The data link layer of `port` dropped a TLP.
    pub(crate) fn detect_discard(&mut self, port: PortId, reason: Discard) {
        let missed = match reason {
            Discard::BadLcrc => false,
            // Reported with the Nak that asks for the missing one, and no more until it comes (§3.6.3.1).
            Discard::OutOfSequence => self.ports[port.index()].missing,
            Discard::Nullified | Discard::Duplicate | Discard::NotActive => return,
        };
        self.ports[port.index()].missing = true;
        // Damaged flits are reported as such.
        if !missed && self.ports[port.index()].mode == LinkMode::NonFlit {
            self.detect(port, ErrorKind::BadTlp, None);
        }
    }

    /// The peer of `port` broke a rule of the data link layer's protocol.
    pub(crate) fn detect_protocol_error(&mut self, port: PortId, error: ProtocolError) {
        if self.protocol_errors.len() < PROTOCOL_ERRORS_KEPT {
            self.protocol_errors.push((self.now, port, error));
        }
        let kind = match error {
            ProtocolError::AckOfUnsent { .. } | ProtocolError::WrongMode { .. } => {
                ErrorKind::DataLinkProtocol
            }
            ProtocolError::ReceiverOverflow { .. } => ErrorKind::ReceiverOverflow,
            ProtocolError::CreditLimit { .. } | ProtocolError::UpdateOfInfinite { .. } => {
                ErrorKind::FlowControlProtocol
            }
        };
        self.detect(port, kind, None);
    }

    /// Must the transaction layer of `port` drop this TLP as soon as it has it?
    pub(crate) fn is_stopped(&self, port: PortId, tlp: TlpHandle) -> bool {
        let tlp = self.tlps.get(tlp);
        tlp.repr.payload_dw() > self.ports[port.index()].max_payload.bytes() / 4
            || matches!(tlp.flaw, Some(Flaw::Malformed(_) | Flaw::Lost))
    }

    /// Drops a TLP that [is stopped](Self::is_stopped).
    #[cold]
    pub(crate) fn stop(&mut self, port: PortId, tlp: TlpHandle) {
        if self.tlps.get(tlp).flaw != Some(Flaw::Lost) {
            self.detect(port, ErrorKind::Malformed, Some(tlp));
        }
        self.consume(port, tlp);
    }

    /// Judges a TLP that has passed the processing of an end point or the root complex and may end there. Says whether it did.
    pub(crate) fn is_rejected(&mut self, ingress: PortId, handle: TlpHandle) -> bool {
        let tlp = self.tlps.get(handle);
        if tlp.flaw.is_none() && !tlp.repr.attributes().poisoned {
            return false;
        }
        let route = route_of(&tlp.repr);
        match self.node_of(ingress) {
            Node::Root(root) if root.port_for(route).is_some() => {
                self.note_poison(ingress, handle);
                false
            }
            _ => self.reject(ingress, handle),
        }
    }

    #[cold]
    fn reject(&mut self, ingress: PortId, handle: TlpHandle) -> bool {
        let tlp = self.tlps.get(handle);
        let (class, flaw) = (tlp.shape.class, tlp.flaw);
        if flaw == Some(Flaw::Ecrc) && self.ports[ingress.index()].checks_digests {
            self.detect(ingress, ErrorKind::Ecrc, Some(handle));
            self.consume(ingress, handle);
            return true;
        }
        if tlp.repr.attributes().poisoned {
            self.detect(ingress, ErrorKind::Poisoned { handled: false }, Some(handle));
            let id = self.answers_for(ingress);
            match class {
                FcClass::Posted => {
                    self.posted_failed(handle, Ending::Poisoned);
                    self.consume(ingress, handle);
                }
                // What is to be written is unknown, so nothing is (§2.7.2.1).
                FcClass::NonPosted => {
                    self.refuse_quietly(ingress, handle, id, CompletionStatus::UnsupportedRequest);
                }
                FcClass::Completion => return false,
            }
            return true;
        }
        if let Some(Flaw::Refused(status)) = flaw {
            let id = self.answers_for(ingress);
            self.refuse(ingress, handle, id, status);
            return true;
        }
        false
    }

    /// A TLP passes a switch or the root complex: poison is noted and goes on (§2.7.2.2).
    pub(crate) fn note_poison(&mut self, ingress: PortId, handle: TlpHandle) {
        if self.tlps.get(handle).repr.attributes().poisoned {
            self.detect(ingress, ErrorKind::Poisoned { handled: true }, Some(handle));
        }
    }

    /// A request is refused with `status`, or a completion finds nobody.
    pub(crate) fn detect_refusal(&mut self, port: PortId, tlp: TlpHandle, status: CompletionStatus) {
        let request = self.tlps.get(tlp);
        let completion = matches!(request.repr.kind(), Kind::Completion(_));
        let posted = request.shape.class == FcClass::Posted;
        let kind = match status {
            _ if completion => ErrorKind::UnexpectedCompletion,
            CompletionStatus::UnsupportedRequest => ErrorKind::UnsupportedRequest { posted },
            CompletionStatus::CompleterAbort => ErrorKind::CompleterAbort { posted },
            CompletionStatus::Success | CompletionStatus::RetryStatus => return,
        };
        self.detect(port, kind, Some(tlp));
    }

    /// What a completion that came by `ingress`, or the time that has passed, means for the requester of `node`.
    pub(crate) fn detect_outcome(
        &mut self,
        node: NodeId,
        ingress: Option<(PortId, TlpHandle)>,
        outcome: &Outcome<Ticket>,
    ) {
        let (port, tlp) = (ingress.map(|(port, _)| port), ingress.map(|(_, tlp)| tlp));
        let kind = match outcome.progress().map(|p| p.error) {
            Some(None | Some(CompletionError::RetryStatus | CompletionError::Undelivered { .. })) => return,
            Some(Some(CompletionError::Timeout { address, .. })) => {
                let Some(port) = self.port_towards(node, address) else { return };
                return self.detect_timeout(node, port);
            }
            Some(Some(CompletionError::UnsupportedRequest { .. })) => {
                return self.request_failed(node, port, FailedCompletion::UnsupportedRequest);
            }
            Some(Some(CompletionError::CompleterAbort { .. })) => {
                return self.request_failed(node, port, FailedCompletion::CompleterAbort);
            }
            Some(Some(CompletionError::Poisoned { .. })) => {
                return self.request_failed(node, port, FailedCompletion::Poisoned);
            }
            None => ErrorKind::UnexpectedCompletion,
            Some(Some(CompletionError::Mismatch { .. })) => ErrorKind::Malformed,
        };
        if let Some(port) = port {
            self.detect(port, kind, tlp);
        }
    }

    /// A request of `node` that left by `port` was not completed in time.
    pub(crate) fn detect_timeout(&mut self, node: NodeId, port: PortId) {
        let function = self.requester_at(node, port);
        self.count_error(port, ErrorKind::CompletionTimeout, None);
        self.report_error(&[function], port, ErrorKind::CompletionTimeout, None);
    }

    /// The port by which a node's requests for an address leave; the first if none claims it any more.
    fn port_towards(&self, node: NodeId, address: u64) -> Option<PortId> {
        let register = match &self.nodes[node.index()] {
            Node::Root(root) => Register::at(address, &root.addresses),
            _ => None,
        };
        let route = register.map_or(Route::Memory(address), Register::route);
        let claiming = self.own_egress(node, route).map(|(port, _)| port);
        claiming.or_else(|| self.own_ports(node).first().copied())
    }
}

/// The header of a TLP as it stands on the wire, with what a fault did to it.
fn header_of(tlp: &Tlp) -> Option<[u8; 16]> {
    let mut bytes = [0; tlplab_wire::tlp::emit::MAX_HEADER_BYTES];
    let end = tlp.repr.emit_header(&mut bytes).ok()?;
    let start = tlp.repr.prefixes().bytes() as usize;
    let mut header = [0; 16];
    header[..end - start].copy_from_slice(&bytes[start..end]);
    let length = tlp.repr.payload_dw();
    match tlp.flaw {
        // 0_1111 is no type of any format.
        Some(Flaw::Malformed(Malformation::Type)) => header[0] = header[0] & 0xE0 | 0x0F,
        Some(Flaw::Malformed(Malformation::Length)) => set_length(&mut header, length + 1),
        // No device may be set to more than 4 KiB, which is written as 0.
        Some(Flaw::Malformed(Malformation::Payload)) => set_length(&mut header, 1024),
        Some(Flaw::Malformed(Malformation::Boundary)) => {
            let low = end - start - 2;
            (header[low], header[low + 1]) = (header[low] | 0x0F, 0xFC);
            set_length(&mut header, length.max(2));
        }
        _ => {}
    }
    Some(header)
}

fn set_length(header: &mut [u8; 16], dw: u32) {
    header[2] = header[2] & 0xFC | (dw >> 8 & 3) as u8;
    header[3] = dw as u8;
}
