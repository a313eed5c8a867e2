//! Port buffers counted in TLPs, for links that drop and replay: the bridge of gem5, which the model of Alian et al. (2018) builds
//! its root complex and switch of.
//!
//! A node accepts a request that arrives at a port only if
//! * fewer than N requests wait in the queue of the port it will leave by (at the root complex, towards memory that is the queue of the
//!   processor's side). It enters that queue when it is accepted, and waits there for the node's latency and then for its link;
//! * for a non-posted request: fewer than N accepted at the same port still wait for their response to go back by it. For the responses
//!   themselves there is always room.
//!
//! A response that is lost with a link that goes down elsewhere leaves its place taken, as a real bridge's would be.

use crate::config::FabricConfig;
use crate::config::numbering::Numbering;
use crate::kernel::ids::PortId;
use crate::link::channel::InFlight;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::packet::slab::{Queue, TlpHandle};
use tlplab_datalink::{LinkLayer, Unit};
use tlplab_units::FcClass;
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

#[derive(Clone, Debug)]
struct Room {
    limit: u16,
    /// Arriving TLPs may be refused: the link drops and replays.
    refuses: bool,
    /// Requests accepted, wherever they came in, that have not left by here yet.
    requests: u16,
    /// Non-posted requests accepted here whose response has not left by here yet.
    unanswered: u16,
}

/// The room of all ports, in the order of their numbers, and of the root complex towards memory.
#[derive(Clone)]
pub(crate) struct PortBuffers {
    rooms: Vec<Room>,
    /// True if any port refuses anything.
    in_use: bool,
}

impl PortBuffers {
    pub(crate) fn new(config: &FabricConfig, numbering: &Numbering) -> Self {
        let room = |limit: Option<u16>, refuses| Room {
            limit: limit.unwrap_or(u16::MAX),
            refuses: refuses && limit.is_some(),
            requests: 0,
            unanswered: 0,
        };
        let ports = numbering.ports.iter().map(|slot| {
            let drops = numbering.link_config(config, slot.link).drops();
            room(numbering.port_buffer(config, slot.node), drops)
        });
        let rooms: Vec<_> = ports.chain([room(config.host.port_buffer, false)]).collect();
        Self { in_use: rooms.iter().any(|room| room.refuses), rooms }
    }

    /// The link of a port went down: no response will go back by it.
    pub(crate) fn forget_responses(&mut self, port: PortId) {
        self.rooms[port.index()].unanswered = 0;
    }
}

impl Context {
    /// The arrived TLP, if the node behind `id` must have room for it: a request that the data link layer would deliver.
    #[inline]
    pub(crate) fn needs_room(&self, id: PortId, flying: &InFlight<TlpHandle>) -> Option<TlpHandle> {
        if !self.links.buffers.in_use || !self.links.buffers.rooms[id.index()].refuses {
            return None;
        }
        let Unit::Tlp(unit) = &flying.unit else { return None };
        let delivered = flying.integrity == tlplab_datalink::Integrity::Good
            && unit.shape.class != FcClass::Completion
            && self.links.ports[id.index()].engine.expects(unit);
        delivered.then_some(unit.handle)
    }

    /// Takes the places of a request that will wait in `queue` (`None`: it ends at this node); false if there are none.
    pub(crate) fn take_places(&mut self, ingress: PortId, handle: TlpHandle, queue: Option<Queue>) -> bool {
        let rooms = &mut self.links.buffers.rooms;
        let tlp = self.tlps.get_mut(handle);
        let non_posted = tlp.shape.class == FcClass::NonPosted;
        let full =
            queue.is_some_and(|Queue(i)| rooms[usize::from(i)].requests >= rooms[usize::from(i)].limit);
        let room = &mut rooms[ingress.index()];
        if full || (non_posted && room.unanswered >= room.limit) {
            return false;
        }
        room.unanswered += u16::from(non_posted);
        if let Some(Queue(i)) = queue {
            rooms[usize::from(i)].requests += 1;
        }
        tlp.queued = queue;
        true
    }

    /// A request has left the queue it waited in.
    #[inline]
    pub(crate) fn leave_request_queue(&mut self, handle: TlpHandle) {
        if self.links.buffers.in_use
            && let Some(Queue(i)) = self.tlps.get_mut(handle).queued.take()
        {
            self.links.buffers.rooms[usize::from(i)].requests -= 1;
        }
    }

    /// A TLP goes to the data link layer of `egress`.
    #[inline]
    pub(crate) fn leave_port_buffers(&mut self, egress: PortId, waiting: &Waiting) {
        if !self.links.buffers.in_use || waiting.nullified {
            return;
        }
        self.leave_request_queue(waiting.tlp);
        let room = &mut self.links.buffers.rooms[egress.index()];
        if room.refuses && ends_its_request(&self.tlps.get(waiting.tlp).repr) {
            room.unanswered = room.unanswered.saturating_sub(1);
        }
    }
}

/// True if this is the last completion of a request.
pub(crate) fn ends_its_request(repr: &Repr) -> bool {
    let Kind::Completion(completion) = repr.kind() else { return false };
    completion.status() != CompletionStatus::Success
        || completion.data_bytes() == 0
        || completion.data_bytes() >= completion.byte_count()
}
