//! Invalidations: functions that may keep translations are told to forget those of a range, and say when they have (PCIe 5.0 §10.3).

use crate::kernel::ids::{NodeId, PortId};
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::root::Root;
use crate::packet::routing::Route;
use crate::packet::slab::{TlpHandle, shape_of};
use std::collections::VecDeque;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{Invalidation, Kind, Message, Repr};

/// Invalidations that devices were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvalidationCount {
    /// Requests that left.
    pub sent: u64,
    /// Invalidations that were completed.
    pub completed: u64,
    /// From the change of the tables until the completion was there, the longest.
    pub longest: Duration,
    /// The same of all that were completed, in all.
    pub waited: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    function: NodeId,
    itag: u8,
    since: Time,
}

/// Invalidations under way, and invalidations that wait because a function has no room.
#[derive(Clone, Debug, Default)]
pub(super) struct Invalidations {
    pending: Vec<Pending>,
    waiting: VecDeque<(NodeId, Invalidation, Time)>,
    count: InvalidationCount,
}

impl Invalidations {
    pub(super) fn count(&self) -> InvalidationCount {
        self.count
    }

    /// A number that is free for a function, if it has room for one more.
    fn itag(&self, function: NodeId, depth: u8) -> Option<u8> {
        let taken = |itag: u8| self.pending.iter().any(|p| p.function == function && p.itag == itag);
        (0..depth.min(32)).find(|itag| !taken(*itag))
    }
}

impl Root {
    /// A function is to forget the translations of a range.
    pub(super) fn invalidate(&mut self, cx: &mut Context, function: NodeId, from: u64, bytes: u64) {
        let Some(agent) = &mut self.agent else { return };
        let now = cx.now();
        let ranges = Invalidation::covering(from, bytes).map(|range| (function, range, now));
        agent.invalidations.waiting.extend(ranges);
        self.send_invalidations(cx);
    }

    /// Requests leave for which their functions have room.
    fn send_invalidations(&mut self, cx: &mut Context) {
        let Some(agent) = &mut self.agent else { return };
        let invalidations = &mut agent.invalidations;
        // Of a function that was reset since nothing is to come.
        let awaited =
            |one: &Pending| cx.translator(one.function).is_some_and(|other| one.since >= other.since);
        invalidations.pending.retain(awaited);
        let mut later: VecDeque<(NodeId, Invalidation, Time)> = VecDeque::new();
        let mut leaving = Vec::new();
        while let Some((function, range, since)) = invalidations.waiting.pop_front() {
            // A function that may not keep translations has none.
            let Some(translator) = cx.translator(function) else { continue };
            let in_order = later.iter().all(|(other, ..)| *other != function);
            match invalidations.itag(function, translator.queue_depth).filter(|_| in_order) {
                Some(itag) => {
                    invalidations.pending.push(Pending { function, itag, since });
                    invalidations.count.sent += 1;
                    leaving.push((function, range, itag));
                }
                None => later.push_back((function, range, since)),
            }
        }
        invalidations.waiting = later;
        for (function, range, itag) in leaving {
            self.send_invalidation(cx, function, range, itag);
        }
    }

    fn send_invalidation(&mut self, cx: &mut Context, function: NodeId, range: Invalidation, itag: u8) {
        let target = cx.topology.nodes[function.index()].id;
        let Some(port) = self.port_for(Route::Id(target)) else { return };
        let Ok(message) = Message::invalidate_request(self.completer.id, target, itag) else { return };
        let egress = self.ports[port];
        let repr = cx.with_digest(egress, Repr::from(Kind::Message(message)));
        let tlp = cx.tlps.insert(repr, Payload::from(range.to_bytes()), cx.host.messages);
        cx.enqueue_at_egress(egress, self.ports.len(), Waiting::own(tlp, shape_of(&repr)));
    }

    /// A function says that it has forgotten, and that no request with what it has forgotten is under way. (Copies in other traffic classes do not
    /// come: there is one.)
    pub(in crate::node::root) fn invalidation_completed(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        message: Message,
    ) {
        let now = cx.now();
        if let (Some(agent), Some(function), Some((itags, _))) =
            (&mut self.agent, cx.function_with(message.id().requester), message.completed_itags())
        {
            let Invalidations { pending, count, .. } = &mut agent.invalidations;
            pending.retain(|one| {
                let done = one.function == function && itags >> one.itag & 1 == 1;
                if done {
                    count.completed += 1;
                    count.waited += now - one.since;
                    count.longest = count.longest.max(now - one.since);
                }
                !done
            });
        }
        cx.consume(ingress, handle);
        self.send_invalidations(cx);
    }
}
