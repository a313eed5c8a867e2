//! The receive side of a port: from the wire through the data link layer to the node.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::channel::InFlight;
use crate::link::context::Context;
use crate::link::port::Port;
use crate::observe::errors::ErrorKind;
use crate::packet::attribution::Cause;
use crate::packet::flaw::Flaw;
use crate::packet::slab::TlpHandle;
use tlplab_datalink::{Event, Integrity, LinkLayer, TlpUnit, Unit};
use tlplab_units::{Duration, FcClass, LinkMode, Time};

impl Context {
    /// Takes the first unit in flight to `id`, which has arrived, off the wire; `None` if a link that went down took it.
    #[inline]
    pub(crate) fn take_off_wire(&mut self, id: PortId) -> Option<InFlight<TlpHandle>> {
        let (now, peer) = (self.kernel.now(), self.links.ports[id.index()].peer);
        self.links.ports[peer.index()].channel.arrive(now)
    }

    /// The data link layer of `id` gets a unit. What it says of that is added to `events`.
    pub(crate) fn hand_to_data_link_layer(
        &mut self,
        id: PortId,
        flying: &InFlight<TlpHandle>,
        events: &mut Vec<Event<TlpHandle>>,
    ) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        port.engine.handle_unit(now, &flying.unit, flying.integrity, &mut |event| events.push(event));
        if flying.integrity == Integrity::Bad {
            match flying.unit {
                Unit::Tlp(_) => {}
                Unit::Dllp(_) => self.detect(id, ErrorKind::BadDllp, None),
                Unit::Flit(_) => self.detect(id, ErrorKind::Receiver, None),
            }
        }
    }

    /// The deadline of the data link layer of `id` that was `due` has come, unless it has moved; false if it has.
    pub(crate) fn link_timer(&mut self, id: PortId, due: Time, events: &mut Vec<Event<TlpHandle>>) -> bool {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if port.timer != due {
            return false; // an earlier deadline came up meanwhile, and its event with it
        }
        port.timer = std::mem::replace(&mut port.later_timer, Time::NEVER);
        if port.engine.due() > now {
            self.arm(id);
            return false;
        }
        let timeouts = port.engine.counters().replay_timeouts;
        port.engine.handle_timeout(now, &mut |event| events.push(event));
        if port.engine.counters().replay_timeouts > timeouts {
            self.detect(id, ErrorKind::ReplayTimer, None);
        }
        true
    }

    /// Obeys what the data link layer of `id` says. True if that is that the link is up, which others must hear.
    pub(crate) fn link_event(
        &mut self,
        id: PortId,
        event: Event<TlpHandle>,
        flying: Option<&InFlight<TlpHandle>>,
    ) -> bool {
        match event {
            Event::Deliver(tlp) => {
                self.links.ports[id.index()].missing = false;
                if let Some(flying) = flying.filter(|f| !f.forwarded) {
                    self.tlps.hold(tlp);
                    self.charge_wire(id, tlp, flying);
                    self.received(id, tlp);
                }
            }
            Event::Acked(tlp) => {
                self.unblock(id, None);
                self.drop_tlp(tlp);
            }
            Event::Lost(tlp) => self.lose_tlp(id, tlp),
            Event::CreditsArrived { class, .. } => {
                self.measure_credits(id, class);
                self.unblock(id, Some(class));
            }
            Event::Up => {
                self.links.ports[id.index()].discards = false;
                self.unblock(id, None);
                return true;
            }
            Event::Retrain(_) => {
                self.detect(id, ErrorKind::ReplayNumRollover, None);
                self.retrain(id);
            }
            Event::Discarded { reason, .. } => self.detect_discard(id, reason),
            Event::Down => {}
            Event::Error(error) => self.detect_protocol_error(id, error),
        }
        false
    }

    /// Heads that were refused are to be asked again, so nobody knows whether they are blocked still.
    fn unblock(&mut self, id: PortId, class: Option<FcClass>) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if !port.partition.is_blocked() {
            return;
        }
        for c in FcClass::ALL.into_iter().filter(|c| class.is_none_or(|only| only == *c)) {
            if port.partition.is_blocked_at(c.index()) {
                port.partition.block(now, c.index(), None);
            }
        }
    }

    /// Charges the way over the wire: copies that were lost, ordered sets before it, its own bytes, the flight.
    fn charge_wire(&mut self, id: PortId, handle: TlpHandle, flying: &InFlight<TlpHandle>) {
        let tlp = self.tlps.get_mut(handle);
        if !tlp.tracked {
            return;
        }
        let sender = self.links.ports[id.index()].peer;
        let cause = match &flying.unit {
            Unit::Tlp(tlp) if tlp.replay => Cause::Replay,
            Unit::Flit(flit) if flit.replay => Cause::Replay,
            // A TLP that began in an earlier flit.
            Unit::Flit(_) => Cause::Serialisation,
            _ => Cause::DataLink,
        };
        let way = flying.on_wire + self.links.ports[sender.index()].channel.delay + flying.late;
        let before = (self.kernel.now() - tlp.ledger.charged()).saturating_sub(way);
        let started = tlp.ledger.charged() + before;
        self.charge_way(sender, handle, started, cause, flying.late);
    }

    /// Charges the way from the data link layer of `sender` to here: what was before the TLP until `started`, stages, its bytes, the
    /// flight, which took so much longer than usual as it was `late`.
    fn charge_way(
        &mut self,
        sender: PortId,
        handle: TlpHandle,
        started: Time,
        before: Cause,
        late: Duration,
    ) {
        let (now, place) = (self.kernel.now(), Port::place(sender));
        let Port { channel, stages, .. } = &self.links.ports[sender.index()];
        let ledger = &mut self.tlps.get_mut(handle).ledger;
        ledger.charge(started, place, before);
        let flight = channel.flight + late;
        match stages {
            None => {
                ledger.charge(now - flight, place, Cause::Serialisation);
                ledger.charge(now, place, Cause::Flight);
            }
            Some(stages) => {
                stages.charge_way(ledger, place, (now - channel.delay - late) - started, flight);
            }
        }
    }

    /// A node has a good TLP in the receive buffer of `id`: it is processed next.
    pub(crate) fn received(&mut self, id: PortId, tlp: TlpHandle) {
        self.received_after(id, tlp, Duration::ZERO);
    }

    /// As [`Self::received`], so much later.
    pub(crate) fn received_after(&mut self, id: PortId, tlp: TlpHandle, more: Duration) {
        if self.is_stopped(id, tlp) {
            return self.stop(id, tlp);
        }
        let latency = self.links.ports[id.index()].latency + more + self.take_delay(tlp);
        if latency.is_zero() {
            self.links.arrivals.push_back((id, tlp));
        } else {
            self.schedule(self.kernel.now() + latency, EventKind::Processed, u32::from(id.0), tlp.to_event());
        }
    }

    /// So much longer a fault makes a TLP take, once.
    fn take_delay(&mut self, tlp: TlpHandle) -> Duration {
        match self.tlps.get(tlp).flaw {
            Some(Flaw::Late(by)) => {
                self.tlps.get_mut(tlp).flaw = None;
                by
            }
            _ => Duration::ZERO,
        }
    }

    /// The node's latency is over.
    #[inline]
    pub(crate) fn charge_processing(&mut self, id: PortId, handle: TlpHandle) {
        if self.tlps.get(handle).tracked {
            self.charge_rx_transaction(id, handle);
            self.charge_node(id, handle);
        }
    }

    /// The node behind `id` has had a TLP until now.
    #[inline]
    pub(crate) fn charge_node(&mut self, id: PortId, handle: TlpHandle) {
        let (now, place) = (self.kernel.now(), self.place_of(self.links.ports[id.index()].node));
        let tlp = self.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
    }

    /// The header of the first unit in flight to a switch has arrived: the TLP, if forwarding may begin.
    pub(crate) fn header_arrived(&mut self, id: PortId) -> Option<TlpUnit<TlpHandle>> {
        let now = self.kernel.now();
        let peer = self.links.ports[id.index()].peer;
        let [port, sender] = self
            .links
            .ports
            .get_disjoint_mut([id.index(), peer.index()])
            .expect("a link has two different ports");
        let flying = sender.channel.first_in_flight()?;
        let Unit::Tlp(unit) = flying.unit else { return None };
        if flying.forwarded || !port.engine.expects(&unit) {
            return None;
        }
        let integrity = flying.integrity;
        if flying.arrives - flying.on_wire > now {
            return None; // the header of a TLP that a link going down has taken with it; this one comes later
        }
        if self.is_stopped(id, unit.handle) || matches!(self.tlps.get(unit.handle).flaw, Some(Flaw::Late(_)))
        {
            return None;
        }
        let header = self.tlps.get(unit.handle).repr.header_bytes();
        let port = &mut self.links.ports[id.index()];
        if integrity == Integrity::Bad && port.header_is_bad(header, unit.shape.bytes + 8) {
            return None; // the header's own checksum says so; the sender will hear of it when all of it is there
        }
        Some(unit)
    }

    /// A TLP whose tail may still be coming is forwarded to `egress`, once the node's latency is over: then `event` happens.
    pub(crate) fn begin_forwarding(
        &mut self,
        id: PortId,
        unit: TlpUnit<TlpHandle>,
        egress: PortId,
        event: EventKind,
    ) {
        let (now, peer) = (self.kernel.now(), self.links.ports[id.index()].peer);
        let out = &self.links.ports[egress.index()];
        if out.mode == LinkMode::Flit || out.discards {
            // A flit is checked as a whole before it counts, so nothing starts before the tail is there; and what is to be discarded
            // must have arrived first.
            return;
        }
        if self.links.ports[id.index()].stores_for_faster && self.is_faster(egress, peer) {
            return;
        }
        let sender = &mut self.links.ports[peer.index()];
        let delay = sender.channel.delay;
        let Some(flying) = sender.channel.first_in_flight() else { return };
        flying.forwarded = true;
        let (arrives, integrity, on_wire, late) =
            (flying.arrives, flying.integrity, flying.on_wire, flying.late);
        let latency = self.links.ports[id.index()].latency;
        let serialisation = self.links.ports[egress.index()].time_on_wire(unit.shape.bytes);
        // The egress must not run dry: its last byte may not leave before the last byte has arrived and been processed.
        let ready = (now + latency).max((arrives + latency) - serialisation.min(arrives - now));
        let handle = match integrity {
            Integrity::Good => {
                self.tlps.hold(unit.handle);
                if self.tlps.get(unit.handle).tracked {
                    let before = if unit.replay { Cause::Replay } else { Cause::DataLink };
                    self.charge_way(peer, unit.handle, arrives - on_wire - delay - late, before, late);
                }
                unit.handle
            }
            // A copy goes on, to be nullified; the original will come again.
            Integrity::Bad => {
                let tlp = self.tlps.get(unit.handle);
                let (repr, payload, flow) = (tlp.repr, tlp.payload.clone(), tlp.flow);
                self.tlps.insert(repr, payload, flow)
            }
        };
        let data =
            handle.to_event() | u64::from(integrity == Integrity::Bad) << 32 | u64::from(egress.0) << 40;
        self.schedule(ready, event, u32::from(id.0), data);
    }

    /// True if a port sends faster than another one.
    fn is_faster(&self, one: PortId, other: PortId) -> bool {
        let time = |port: PortId| self.links.ports[port.index()].channel.rate().time_of(1 << 10);
        time(one) < time(other)
    }

    /// A TLP whose tail may still be coming has passed the switch.
    pub(crate) fn forward_early(&mut self, id: PortId, data: u64) {
        let (handle, integrity) = early(data);
        let egress = PortId((data >> 40) as u16);
        let tail = self.pass_early(id, handle);
        self.forward_to(id, egress, handle, integrity, tail);
    }

    /// A TLP whose tail may still be coming has passed a switch's processing, by the event that [`begin_forwarding`](Self::begin_forwarding) planned.
    /// The arrival of its last byte; the past, if it has arrived.
    pub(crate) fn pass_early(&mut self, id: PortId, handle: TlpHandle) -> Time {
        let (node, sender) = (self.links.ports[id.index()].node, self.links.ports[id.index()].peer);
        let (place, latency) = (self.place_of(node), self.links.ports[id.index()].latency);
        let now = self.kernel.now();
        let tlp = self.tlps.get_mut(handle);
        if tlp.tracked {
            // Beyond the latency it waited for the tail, which a slower ingress still serialises.
            let tail = (now - tlp.ledger.charged()).saturating_sub(latency);
            tlp.ledger.charge_for(tail, Port::place(sender), Cause::Serialisation);
            self.charge_rx_transaction(id, handle);
            self.tlps.get_mut(handle).ledger.charge(now, place, Cause::Processing);
        }
        self.tail_of(id, handle)
    }

    /// The arrival at `id` of the last byte of a TLP that is being forwarded; the past, if it has arrived.
    pub(crate) fn tail_of(&mut self, id: PortId, handle: TlpHandle) -> Time {
        let sender = self.links.ports[id.index()].peer;
        // The first unit in flight is the one being forwarded, unless it has arrived already.
        match self.links.ports[sender.index()].channel.first_in_flight() {
            Some(InFlight { unit: Unit::Tlp(unit), arrives, forwarded: true, .. })
                if unit.handle == handle =>
            {
                *arrives
            }
            _ => Time::ZERO,
        }
    }
}

/// The TLP that is being forwarded, and how it has come, of the event of [`Context::begin_forwarding`].
pub(crate) fn early(data: u64) -> (TlpHandle, Integrity) {
    let integrity = if data >> 32 & 1 == 1 { Integrity::Bad } else { Integrity::Good };
    (TlpHandle::from_event(data & 0xFFFF_FFFF), integrity)
}
