//! Completions: what nodes answer to requests.

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::completion::part_of;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::packet::attribution::Cause;
use crate::packet::slab::TlpHandle;
use tlplab_transaction::{Completer, CompletionPolicy, Payload};
use tlplab_units::{Bdf, Duration, Mps, Rcb, Time};
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// A node that answers requests.
pub(crate) trait Answer {
    fn node(&self) -> NodeId;
    /// The time that it takes for an answer.
    fn answer_time(&self) -> Duration;
    /// The completer of a request at a port, and its source in the egress queues.
    fn completer(&self, cx: &Context, port: PortId, request: &Repr) -> (Completer, usize);
    /// The completions of an answer leave now.
    fn answers(&mut self, _now: Time) {}

    /// A completion sets out for `egress`.
    fn send_completion(&mut self, cx: &mut Context, egress: PortId, source: usize, completion: Waiting) {
        cx.enqueue_at_egress(egress, source, completion);
    }

    /// The answer to a request is there: data, or a refusal. Its completions reach the queues of `egress` after the node's processing.
    fn answer(
        &mut self,
        cx: &mut Context,
        egress: PortId,
        request: TlpHandle,
        answer: Result<Payload, CompletionStatus>,
    ) {
        let (now, place) = (cx.now(), cx.place_of(self.node()));
        if let Err(status) = answer {
            cx.detect_refusal(egress, request, status);
        }
        let tlp = cx.tlps.get_mut(request);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        tlp.refusal = answer.as_ref().err().copied();
        tlp.payload = answer.unwrap_or(Payload::EMPTY);
        let latency = self.answer_time() + cx.response_time(egress, request);
        if latency.is_zero() {
            self.send_completions(cx, egress, request);
        } else {
            cx.schedule(now + latency, EventKind::Answer, u32::from(egress.0), request.to_event());
        }
    }

    /// The data of a deferrable write are where they should be: it is completed.
    fn deferrable_write_done(&mut self, cx: &mut Context, egress: PortId, request: TlpHandle) {
        cx.deferrable_data_arrived(egress, request);
        self.answer(cx, egress, request, Ok(Payload::EMPTY));
    }

    /// The node has processed the answer; the request is over.
    fn send_completions(&mut self, cx: &mut Context, egress: PortId, request: TlpHandle) {
        let (completer, source) = self.completer(cx, egress, &cx.tlps.get(request).repr);
        self.answers(cx.now());
        let tlp = cx.tlps.get_mut(request);
        let (repr, data) = (tlp.repr, std::mem::replace(&mut tlp.payload, Payload::EMPTY));
        match tlp.refusal {
            Some(status) => {
                if let Some(refused) = completer.refuse(&repr, status) {
                    let waiting = cx.make_completion(egress, request, refused, Payload::EMPTY, true);
                    cx.enqueue_at_egress(egress, source, waiting);
                }
            }
            None if matches!(repr.kind(), Kind::MemRead { .. }) && cx.links.answers_by_lines(egress) => {
                cx.tlps.get_mut(request).payload = data;
                return cx.answer_by_lines(egress, request, completer.succeed(&repr));
            }
            None => {
                for completion in completer.succeed(&repr) {
                    let part = part_of(&data, &completion);
                    let waiting = cx.make_completion(egress, request, completion.repr, part, completion.last);
                    self.send_completion(cx, egress, source, waiting);
                }
            }
        }
        cx.drop_tlp(request);
    }
}

/// The completer of a bridge or a port of a switch: at most a doubleword.
pub(crate) fn register_completer(id: Bdf) -> Completer {
    Completer { id, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max }
}
