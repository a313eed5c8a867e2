//! Errors that ports detect (PCIe 5.0 §6.2): one stream through `Context::detect`, which counts them, and has the functions concerned
//! record and report them when the present event is over.

use crate::config::Malformation;
use crate::kernel::ids::{FunctionAt, PortId};
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::observe::errors::{ErrorCount, ErrorKind, ErrorMessage, PeerRefusal, RefusedPeers};
use crate::packet::flaw::Flaw;
use crate::packet::slab::{Tlp, TlpHandle};
use crate::packet::transactions::Ending;
use tlplab_datalink::{Discard, ProtocolError};
use tlplab_units::{FcClass, LinkMode};
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// An error that has been counted, for the functions concerned.
#[derive(Clone, Debug)]
pub(crate) struct Detection {
    pub(crate) port: PortId,
    pub(crate) kind: ErrorKind,
    /// Of the TLP that it concerns, as on the wire.
    pub(crate) header: Option<[u8; 16]>,
    pub(crate) concerns: Concerns,
    /// The messages that functions have to send of it, once their registers have recorded it.
    pub(crate) messages: Option<Vec<(FunctionAt, ErrorMessage)>>,
}

/// The subject of an error.
#[derive(Clone, Debug)]
pub(crate) enum Concerns {
    /// The functions behind its port; of a device with several the one that claims this TLP, if it may be of one function.
    Port(Option<Box<Repr>>),
    /// One function.
    Function(FunctionAt),
}

impl Context {
    /// `port` detects an error; `tlp` is what it concerns.
    #[cold]
    pub(crate) fn detect(&mut self, port: PortId, kind: ErrorKind, tlp: Option<TlpHandle>) {
        let header = tlp.and_then(|handle| header_of(self.tlps.get(handle)));
        self.count_error(port, kind, header);
        if !self.replays_for_room(port, kind) {
            let of = tlp.map(|handle| Box::new(self.tlps.get(handle).repr));
            let concerns = Concerns::Port(of);
            self.agenda.push(Task::Report(Box::new(Detection {
                port,
                kind,
                header,
                concerns,
                messages: None,
            })));
        }
    }

    /// A request of `function` that left by `port` was not completed in time.
    pub(crate) fn detect_timeout(&mut self, function: FunctionAt, port: PortId) {
        let kind = ErrorKind::CompletionTimeout;
        self.count_error(port, kind, None);
        let concerns = Concerns::Function(function);
        self.agenda.push(Task::Report(Box::new(Detection {
            port,
            kind,
            header: None,
            concerns,
            messages: None,
        })));
    }

    fn count_error(&mut self, port: PortId, kind: ErrorKind, header: Option<[u8; 16]>) {
        let first = self.kernel.now();
        let new = ErrorCount { port, kind, count: 0, first, header, messages: None };
        self.observe.errors.detected.entry((port, kind)).or_insert(new).count += 1;
    }

    /// A TLP that came in by `port` is refused its way to a peer; the error is for the caller to detect.
    #[cold]
    pub(crate) fn note_refused_peer(&mut self, port: PortId, tlp: TlpHandle, reason: PeerRefusal) {
        let repr = &self.tlps.get(tlp).repr;
        let (sender, completion) = match repr.kind() {
            Kind::Completion(completion) => (completion.completer(), true),
            _ => (repr.transaction_id().requester, false),
        };
        let first = self.kernel.now();
        let new = RefusedPeers { port, reason, requests: 0, completions: 0, first, sender };
        let count = self.observe.errors.refused_peers.entry((port, reason)).or_insert(new);
        count.requests += u64::from(!completion);
        count.completions += u64::from(completion);
    }

    /// The data link layer of `port` dropped a TLP.
    pub(crate) fn detect_discard(&mut self, port: PortId, reason: Discard) {
        let missed = match reason {
            Discard::BadLcrc => false,
            // Reported with the Nak that asks for the missing one, and no more until it comes (§3.6.3.1).
            Discard::OutOfSequence => self.links.ports[port.index()].missing,
            Discard::Nullified | Discard::Duplicate | Discard::NotActive => return,
        };
        self.links.ports[port.index()].missing = true;
        // Damaged flits are reported as such.
        if !missed && self.links.ports[port.index()].mode == LinkMode::NonFlit {
            self.detect(port, ErrorKind::BadTlp, None);
        }
    }

    /// The peer of `port` broke a rule of the data link layer's protocol.
    pub(crate) fn detect_protocol_error(&mut self, port: PortId, error: ProtocolError) {
        self.observe.keep_protocol_error(self.kernel.now(), port, error);
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

    /// True if the transaction layer of `port` must drop this TLP as soon as it has it.
    pub(crate) fn is_stopped(&self, port: PortId, tlp: TlpHandle) -> bool {
        let tlp = self.tlps.get(tlp);
        tlp.repr.payload_dw() > self.links.ports[port.index()].max_payload.bytes() / 4
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

    /// True if a TLP has a flaw that is judged where it ends.
    #[inline]
    pub(crate) fn is_flawed(&self, handle: TlpHandle) -> bool {
        let tlp = self.tlps.get(handle);
        tlp.flaw.is_some() || tlp.repr.attributes().poisoned
    }

    /// Judges a flawed TLP that ends behind `ingress`: poisoned data, wrong digests and what is to be refused end here. Says whether it did.
    #[cold]
    pub(crate) fn reject(&mut self, ingress: PortId, handle: TlpHandle) -> bool {
        let tlp = self.tlps.get(handle);
        let (class, flaw) = (tlp.shape.class, tlp.flaw);
        if flaw == Some(Flaw::Ecrc) && self.links.checks_digests(ingress) {
            self.detect(ingress, ErrorKind::Ecrc, Some(handle));
            self.consume(ingress, handle);
            return true;
        }
        if tlp.repr.attributes().poisoned {
            self.detect(ingress, ErrorKind::Poisoned { handled: false }, Some(handle));
            let id = self.answers_for(ingress);
            match class {
                FcClass::Posted => {
                    self.fail_posted(handle, Ending::Poisoned);
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

    /// True if replays are the flow control of the link, as in gem5's model: they are not reported as errors.
    fn replays_for_room(&self, port: PortId, kind: ErrorKind) -> bool {
        matches!(kind, ErrorKind::ReplayTimer | ErrorKind::ReplayNumRollover)
            && self.links.ports[port.index()].engine.config().flow_control.drops()
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
