//! Links: ports with their egress queues, the data link layer at both ends, the wire between with its faults; and parallel buses.
//!
//! [`context`] is what nodes see of them. `transmit` takes TLPs from the queues (`egress`) to the wire (`channel`), `receive` from there to the
//! receive buffer, from which the node gets them; `completion` has what a port does with a TLP besides. `state` is about links that go down.

pub(crate) mod agenda;
pub(crate) mod bus;
pub(crate) mod channel;
pub(crate) mod channel_model;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod egress;
pub(crate) mod errors;
pub(crate) mod fate;
pub(crate) mod fault;
pub(crate) mod lines;
pub(crate) mod make;
pub(crate) mod port;
pub(crate) mod port_buffer;
pub(crate) mod receive;
pub(crate) mod results;
pub(crate) mod stages;
pub(crate) mod state;

pub(crate) mod transmit;

use crate::config::HEADER_CHECK;
use crate::kernel::ids::{LinkId, NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::packet::attribution::{Cause, Partition, Snapshot};
use crate::packet::slab::TlpHandle;
use crate::packet::wires::Wires;
use bus::Bus;
use channel::WireTime;
use channel_model::{CustomChannel, Passage};
use context::Context;
use port::Port;
use port_buffer::PortBuffers;
use std::collections::VecDeque;
use tlplab_datalink::{Event, LinkLayer};
use tlplab_units::{Duration, FcClass, Generation, LinkMode, Mps, Time, Width};
use tlplab_wire::dllp;

/// All links.
#[derive(Clone)]
pub(crate) struct Links {
    ports: Vec<Port>,
    buffers: PortBuffers,
    /// By node: the parallel bus below it.
    buses: Vec<Option<Box<Bus>>>,
    /// An allocation that lives from event to event.
    events: Vec<Event<TlpHandle>>,
    /// TLPs that nodes without latency have to take before anything else happens.
    arrivals: VecDeque<(PortId, TlpHandle)>,
    /// Some node has few places for TLPs that wait further on.
    holds: bool,
}

/// The properties of nodes that a port needs.
#[derive(Clone)]
pub(crate) struct PortSetup {
    /// From the arrival of a TLP in its receive buffer to the decision of its node, without stages.
    pub(crate) latency: Duration,
    /// Its node, if that has a requester.
    pub(crate) requester: Option<NodeId>,
    /// TLPs have a checksum of their headers.
    pub(crate) header_checked: bool,
    /// The peer is a switch that forwards after the header.
    pub(crate) peer_cuts_through: bool,
    /// TLPs that come in here and leave by a faster port are stored.
    pub(crate) stores_for_faster: bool,
}

/// The number of TLPs of a class that may wait at the egress before a requester makes more: enough that the wire never waits for it.
#[derive(Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) framed: usize,
    /// The number where a flit takes all that wait.
    pub(crate) in_flits: usize,
}

impl Staged {
    fn of(self, mode: LinkMode) -> usize {
        match mode {
            LinkMode::NonFlit => self.framed,
            LinkMode::Flit => self.in_flits,
        }
    }
}

impl Links {
    pub(crate) fn new(ports: Vec<Port>, buffers: PortBuffers, nodes: usize, holds: bool) -> Self {
        Self {
            ports,
            buffers,
            buses: (0..nodes).map(|_| None).collect(),
            events: Vec::new(),
            arrivals: VecDeque::new(),
            holds,
        }
    }

    /// Puts a parallel bus below a bridge.
    pub(crate) fn add_bus(&mut self, bridge: NodeId, bus: Bus) {
        self.buses[bridge.index()] = Some(Box::new(bus));
    }

    /// A TLP that a node without latency has to take before anything else happens.
    #[inline]
    pub(crate) fn next_arrival(&mut self) -> Option<(PortId, TlpHandle)> {
        self.arrivals.pop_front()
    }

    /// An allocation for what data link layers say, to be [given back](Self::give_back).
    pub(crate) fn borrow_events(&mut self) -> Vec<Event<TlpHandle>> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn give_back(&mut self, mut events: Vec<Event<TlpHandle>>) {
        events.clear();
        self.events = events;
    }

    /// Gives a port the properties of its node and of the one at the other end.
    pub(crate) fn set_up(&mut self, port: PortId, setup: PortSetup) {
        let port = &mut self.ports[port.index()];
        port.latency = setup.latency;
        port.requester = setup.requester;
        port.header_check = if setup.header_checked { HEADER_CHECK } else { 0 };
        port.stores_for_faster = setup.stores_for_faster;
        // Whether there is room for a TLP is known when all of it is there.
        port.peer_cuts_through = setup.peer_cuts_through && !port.engine.config().flow_control.drops();
    }

    /// The bytes of a framed TLP of this size on the wire of a port.
    pub(crate) fn time_on_wire(&self, port: PortId, bytes: u32) -> Duration {
        self.ports[port.index()].time_on_wire(bytes)
    }

    /// The number of ports.
    pub(crate) fn count(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len()).map(|port| PortId(port as u16))
    }

    pub(crate) fn node(&self, port: PortId) -> NodeId {
        self.ports[port.index()].node
    }

    /// Its index among its node's ports.
    pub(crate) fn index(&self, port: PortId) -> usize {
        self.ports[port.index()].index
    }

    /// The source, in the queues at `egress`, of an ingress of the same node, or of another partition of its chip.
    #[inline]
    pub(crate) fn source(&self, ingress: PortId, egress: PortId) -> usize {
        let (from, to) = (&self.ports[ingress.index()], &self.ports[egress.index()]);
        if from.node == to.node {
            return from.index;
        }
        let inside = from.inside.iter().find(|(node, _)| *node == to.node);
        inside.map_or(from.index, |(_, source)| *source)
    }

    pub(crate) fn peer(&self, port: PortId) -> PortId {
        self.ports[port.index()].peer
    }

    pub(crate) fn link(&self, port: PortId) -> LinkId {
        self.ports[port.index()].link
    }

    /// Speed and width of the link, as it is now.
    pub(crate) fn speed_and_width(&self, port: PortId) -> (Generation, Width) {
        let config = self.ports[port.index()].engine.config();
        (config.generation, config.width)
    }

    /// The number of units that each fault of a direction has hit, by its place among those of the link.
    pub(crate) fn struck(&self, port: PortId) -> impl Iterator<Item = (usize, u64)> {
        let port = &self.ports[port.index()];
        port.channel.struck().chain(port.tampering.struck())
    }

    /// True if it transmits towards the root complex.
    pub(crate) fn leads_up(&self, port: PortId) -> bool {
        self.ports[port.index()].direction == 0
    }

    /// True if a link with a slot for hot-plug leads down from it.
    pub(crate) fn has_slot(&self, port: PortId) -> bool {
        let port = &self.ports[port.index()];
        port.direction == 1 && !port.on_bus
    }

    /// True if the physical layer finds a component at the other end of the link.
    pub(crate) fn is_present(&self, port: PortId) -> bool {
        let port = &self.ports[port.index()];
        port.wire_up || port.recovering
    }

    /// One more fault holds the link of `lower`, or one above it, down. Says whether it is the first.
    pub(crate) fn hold_down(&mut self, lower: PortId) -> bool {
        let held = &mut self.ports[lower.index()].held_down;
        *held += 1;
        *held == 1
    }

    /// One of the faults is over. Says whether it was the last.
    pub(crate) fn let_up(&mut self, lower: PortId) -> bool {
        let held = &mut self.ports[lower.index()].held_down;
        *held -= 1;
        *held == 0
    }

    pub(crate) fn is_held_down(&self, lower: PortId) -> bool {
        self.ports[lower.index()].held_down > 0
    }

    /// A TLP was dropped because the node behind a port had no room for it.
    pub(crate) fn count_no_room(&mut self, port: PortId) {
        let sender = self.peer(port);
        self.ports[sender.index()].counters.no_room += 1;
    }

    /// Nobody below a port asserts anything any more, and whoever is above has forgotten what it was told. Says whether anything was
    /// asserted below.
    pub(crate) fn forget_wires(&mut self, port: PortId) -> bool {
        let port = &mut self.ports[port.index()];
        port.wires_told = Wires::NONE;
        std::mem::take(&mut port.wires_below) != Wires::NONE
    }

    /// Max_Payload_Size of a port.
    pub(crate) fn max_payload(&self, port: PortId) -> Mps {
        self.ports[port.index()].max_payload
    }

    pub(crate) fn set_max_payload(&mut self, port: PortId, mps: Mps) {
        self.ports[port.index()].max_payload = mps;
    }

    /// A function of the device behind a port has this Max_Payload_Size.
    pub(crate) fn note_payload(&mut self, port: PortId, source: usize, mps: Option<Mps>) {
        let payloads = &mut self.ports[port.index()].payloads;
        if payloads.len() <= source {
            payloads.resize(source + 1, None);
        }
        payloads[source] = mps;
    }

    /// The port takes what one of the functions behind it does (PCIe 5.0 §2.2.2).
    pub(crate) fn limit_payload(&mut self, port: PortId) {
        let port = &mut self.ports[port.index()];
        if let Some(mps) = port.payloads.iter().copied().flatten().max() {
            port.max_payload = mps;
        }
    }

    /// True if the lines of answers to reads come to this port one by one.
    pub(crate) fn answers_by_lines(&self, port: PortId) -> bool {
        self.ports[port.index()].lines.is_some()
    }

    /// True if TLPs that end behind a port are checked against their digest, and those made there get one.
    pub(crate) fn checks_digests(&self, port: PortId) -> bool {
        self.ports[port.index()].checks_digests
    }

    /// The configuration with which the data link layer of a port was built.
    pub(crate) fn data_link_config(&self, port: PortId) -> &tlplab_datalink::Config {
        self.ports[port.index()].engine.config()
    }

    /// The data link layer of a port is active.
    pub(crate) fn is_active(&self, port: PortId) -> bool {
        self.ports[port.index()].engine.is_active()
    }

    /// Notes what `egress` has done for a class so far: an operation starts to wait for it.
    pub(crate) fn snapshot(&mut self, egress: PortId, class: FcClass, now: Time, into: &mut Snapshot) {
        self.ports[egress.index()].partition.snapshot(class.index(), now, into);
    }

    /// True if the requester behind `port` may make more requests of a class: fewer than `staged` of its source wait.
    pub(crate) fn has_room(&self, port: PortId, source: usize, class: FcClass, staged: Staged) -> bool {
        let port = &self.ports[port.index()];
        port.waiting_of(source, class) < port.staged(staged.of(port.mode))
    }

    /// True if fewer than `staged` TLPs of a source's class wait at `port`.
    pub(crate) fn waits_fewer(&self, port: PortId, source: usize, class: FcClass, staged: Staged) -> bool {
        let port = &self.ports[port.index()];
        port.egress.len_of(source, class) < staged.of(port.mode)
    }

    /// Requests of a requester wait for tags, and none of them waits for the egress: that is the reason, then. Or they do not.
    pub(crate) fn note_tag_wait(&mut self, port: PortId, source: usize, blocked: bool, now: Time) {
        let port = &mut self.ports[port.index()];
        let (class, slot) = (FcClass::NonPosted, Partition::slot(Cause::TagWait));
        let waits = blocked && port.egress.len_of(source, class) == 0;
        port.partition.block_requester(now, class.index(), slot, waits);
    }

    /// By class, posted and non-posted: requests of a requester wait for translations, and none of them waits for the egress.
    pub(crate) fn note_translation_wait(&mut self, port: PortId, source: usize, waits: [bool; 2], now: Time) {
        let port = &mut self.ports[port.index()];
        let slot = port.partition.cause_slot(Cause::TranslationWait);
        for (class, waits) in [FcClass::Posted, FcClass::NonPosted].into_iter().zip(waits) {
            let waits = waits && port.egress.len_of(source, class) == 0;
            port.partition.block_requester(now, class.index(), slot, waits);
        }
    }

    /// The wires that the ports below have raised, as `port` knows of them.
    pub(crate) fn wires_below(&self, port: PortId) -> Wires {
        self.ports[port.index()].wires_below
    }

    /// A message from below raises or lowers a wire.
    pub(crate) fn set_wire_below(&mut self, port: PortId, wire: u8, asserted: bool) {
        self.ports[port.index()].wires_below.set(wire, asserted);
    }

    /// Notes what the port above is to be told; what it knew before, unless the link is down and will tell all when it comes up.
    pub(crate) fn tell_wires(&mut self, port: PortId, wires: Wires) -> Option<Wires> {
        let port = &mut self.ports[port.index()];
        (!port.discards).then(|| std::mem::replace(&mut port.wires_told, wires))
    }

    /// A message that was to tell of a wire is not sent: whoever is above knows the level before it. Each message of a wire changes it.
    pub(crate) fn wire_not_told(&mut self, port: PortId, wire: u8) {
        let told = &mut self.ports[port.index()].wires_told;
        told.set(wire, !told.is_asserted(wire));
    }

    /// The wires that a function of the device behind `port` asserts; those of all its functions.
    pub(crate) fn assert_wires(&mut self, port: PortId, source: usize, wires: Wires) -> Wires {
        let own = &mut self.ports[port.index()].wires_asserted;
        if own.len() <= source {
            own.resize(source + 1, Wires::NONE);
        }
        own[source] = wires;
        own.iter().copied().fold(Wires::NONE, Wires::with)
    }
}

impl Links {
    /// The channel model behind `port`, to be [given back](Self::give_channel).
    pub(crate) fn take_channel(&mut self, port: PortId) -> Option<CustomChannel> {
        self.ports[port.index()].channel.own.take()
    }

    /// Gives it back with what it has decided of a unit: so late that is.
    pub(crate) fn give_channel(
        &mut self,
        port: PortId,
        own: CustomChannel,
        wire: WireTime,
        passage: Passage,
    ) -> Duration {
        let channel = &mut self.ports[port.index()].channel;
        channel.own = Some(own);
        channel.lateness(wire, passage)
    }

    /// A port with a custom channel or data link layer that gives no copy of itself.
    pub(crate) fn without_copy(&self) -> Option<PortId> {
        let has_none = |port: &Port| {
            !port.engine.has_copy() || port.channel.own.as_ref().is_some_and(|own| !own.has_copy())
        };
        self.ports.iter().position(has_none).map(|port| PortId(port as u16))
    }

    /// True if nothing is on its way anywhere, nothing waits, and no refresh of credits tells the other end anything. A custom channel sees
    /// every unit, so its link never rests; nor does one whose faults a refresh concerns.
    pub(crate) fn are_resting(&self) -> bool {
        self.ports.iter().all(|port| {
            port.engine.is_resting()
                && !port.channel.concerns_refreshes()
                && port.updates_lost == 0
                && !port.transmitting
                && port.egress.len() == 0
                && port.channel.is_empty()
        })
    }
}

impl Context {
    /// Nothing happens until then but refreshes of credits: they are left out.
    pub(crate) fn skip_refreshes(&mut self, until: Time) {
        self.kernel.remove_link_timers();
        for index in 0..self.links.ports.len() {
            let port = &mut self.links.ports[index];
            let refreshes = port.engine.skip_refreshes(until);
            port.counters.update_fcs += refreshes;
            port.counters.worked_out += refreshes;
            if port.mode == LinkMode::NonFlit {
                port.counters.dllp += refreshes * u64::from(dllp::WIRE_BYTES);
            }
            (port.timer, port.later_timer) = (Time::NEVER, Time::NEVER);
            let due = port.engine.due();
            if due != Time::NEVER {
                port.timer = due;
                self.schedule(due, EventKind::LinkTimer, index as u32, due.as_fs());
            }
        }
    }
}
