//! Links that go down, come up, and retrain.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::node::errors::ErrorKind;
use crate::node::function::Function;
use crate::packet::attribution::{Cause, Partition};
use crate::packet::slab::TlpHandle;
use crate::sim::Fabric;
use tlplab_datalink::{Engine, LinkLayer, TlpUnit, Unit};
use tlplab_transaction::Payload;
use tlplab_units::{FcClass, Time};
use tlplab_wire::tlp::CompletionStatus;

/// What an `EventKind::LinkState` event says.
pub(crate) const DOWN: u64 = 0;
/// The physical link is up again.
pub(crate) const UP: u64 = 1;
/// Recovery is over.
pub(crate) const RECOVERED: u64 = 2;
/// Software resets what is below.
const RESET: u64 = 3;

impl Fabric {
    /// A fault, or the end of a recovery. The event is kept by one port and concerns both.
    pub(crate) fn link_state(&mut self, id: PortId, what: u64) {
        let changed = match what {
            DOWN => self.goes_down(id, true),
            RESET => self.goes_down(id, false),
            UP => self.train_again(id),
            _ => {
                self.ends(id).into_iter().for_each(|end| self.recovered(end));
                vec![id]
            }
        };
        for link in changed {
            for end in self.ends(link) {
                self.try_transmit(end);
                self.arm(end);
            }
        }
    }

    /// Both ends of a link, the given one first.
    fn ends(&self, id: PortId) -> [PortId; 2] {
        [id, self.ports[id.index()].peer]
    }

    /// The link of `lower` goes down, and with it all links below: what is there is reset (PCIe 5.0 §2.9.1, §6.6.1). Returns the links
    /// that were up. By surprise it is an error of the port above.
    fn goes_down(&mut self, lower: PortId, by_surprise: bool) -> Vec<PortId> {
        let mut down = self.links_below(lower);
        down.retain(|link| {
            let held = &mut self.ports[link.index()].held_down;
            *held += 1;
            *held == 1
        });
        let upper = self.ports[lower.index()].peer;
        let surprised = by_surprise && self.ports[upper.index()].engine.is_active();
        // One after the other for all links, as nothing may start on one because another has gone.
        let ends: Vec<_> = down.iter().flat_map(|link| self.ends(*link)).collect();
        ends.iter().for_each(|end| self.cut(*end));
        ends.iter().for_each(|end| self.stop_wire(*end));
        ends.iter().for_each(|end| self.link_down(*end));
        down.iter().for_each(|link| self.empty_node(*link));
        ends.iter().for_each(|end| self.discard_waiting(*end));
        ends.iter().for_each(|end| self.wires_lost(*end));
        for &link in &down {
            self.hot_reset(link);
            self.show_link(self.ports[link.index()].peer);
        }
        if down.contains(&lower) {
            self.outage_begins(lower);
        }
        if surprised {
            self.detect(upper, ErrorKind::SurpriseDown, None);
        }
        down
    }

    /// Secondary Bus Reset of Bridge Control is set, which resets all that is below the bridge's links, or clear (PCIe 5.0 §7.5.1.3.13).
    pub(crate) fn secondary_bus_reset(&mut self, at: FunctionAt) {
        let resets =
            |function: &Function| function.space.bridge().is_some_and(|bridge| bridge.secondary_reset);
        let ports: Vec<(PortId, bool)> = match &self.nodes[at.node.index()] {
            Node::Root(root) => {
                root.ports.iter().zip(&root.functions[1..]).map(|(port, own)| (*port, resets(own))).collect()
            }
            // Below the upstream port are all downstream ports.
            Node::Switch(switch) => {
                let all = resets(&switch.functions[0]);
                let below = switch.ports.iter().zip(&switch.functions).skip(1);
                below.map(|(port, own)| (*port, all || resets(own))).collect()
            }
            Node::EndPoint(_) | Node::Bridge(_) => return,
        };
        for (port, reset) in ports {
            if std::mem::replace(&mut self.ports[port.index()].resets_below, reset) != reset {
                let lower = self.ports[port.index()].peer;
                let what = if reset { RESET } else { UP };
                self.schedule(self.now, EventKind::LinkState, u32::from(lower.0), what);
            }
        }
    }

    /// What held the link of `lower` down holds it no longer. Returns the links that come up.
    fn train_again(&mut self, lower: PortId) -> Vec<PortId> {
        let mut up = self.links_below(lower);
        up.retain(|link| {
            let held = &mut self.ports[link.index()].held_down;
            *held -= 1;
            *held == 0
        });
        for &link in &up {
            self.leave_reset(link);
            self.ends(link).into_iter().for_each(|end| self.link_up(end));
            self.show_link(self.ports[link.index()].peer);
        }
        up
    }

    pub(crate) fn link_up(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        port.wire_up = !port.on_bus;
        port.engine.link_up(now);
        // Without flow control to be initialised it is active at once.
        port.discards &= !port.engine.is_active();
        self.block_all(id, None);
    }

    /// Nothing more is sent.
    fn stop_wire(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        (port.wire_up, port.recovering, port.transmitting) = (false, false, false);
        port.partition.idle(now);
        (port.discards, port.missing) = (true, false);
    }

    fn link_down(&mut self, id: PortId) {
        let now = self.now;
        self.port_buffers.forget_responses(id);
        let port = &mut self.ports[id.index()];
        let leaving = std::mem::take(&mut port.leaving);
        let mut events = std::mem::take(&mut self.link_events);
        port.engine.link_down(now, &mut |event| events.push(event));
        for event in events.drain(..) {
            self.link_event(id, event, None);
        }
        self.link_events = events;
        leaving.into_iter().for_each(|entry| self.release_when_whole(entry));
        self.block_all(id, Some(Cause::LinkDown));
    }

    /// Whatever `id` has on the wire is lost. A TLP that the peer has begun to forward counts as having arrived just before, so that it
    /// is neither forwarded twice nor half.
    fn cut(&mut self, id: PortId) {
        let now = self.now;
        let ingress = self.ports[id.index()].peer;
        let direct = matches!(self.ports[id.index()].engine, Engine::Direct(_));
        let cut: Vec<_> = self.ports[id.index()].channel.cut(now).collect();
        for flying in cut {
            match flying.unit {
                Unit::Tlp(TlpUnit { handle, nullified: true, .. }) => self.drop_tlp(handle),
                _ if flying.forwarded => self.take(ingress, &flying),
                // A crossbar keeps nothing until it has arrived, so nobody else will say that it is lost.
                Unit::Tlp(TlpUnit { handle, .. }) if direct => self.lose_tlp(id, handle),
                _ => {}
            }
        }
    }

    /// What waits for a link that is down cannot go: posted requests and completions are dropped, requests of others are answered
    /// (PCIe 5.0 §2.9.1).
    fn discard_waiting(&mut self, id: PortId) {
        self.waits_in_vain(id);
        let waiting = self.ports[id.index()].drain_waiting();
        waiting.into_iter().for_each(|entry| self.discard(id, entry));
        self.discard_lines(id);
    }

    /// Drops what was to leave by `id`.
    pub(crate) fn discard(&mut self, id: PortId, entry: Waiting) {
        if let Some(ingress) = entry.ingress
            && entry.tail > self.now
        {
            // Its tail is still to come (cut-through); then its fate is decided again.
            return self.schedule(
                entry.tail,
                EventKind::Processed,
                u32::from(ingress.0),
                entry.tlp.to_event(),
            );
        }
        self.ports[id.index()].counters.discarded += 1;
        match entry.ingress {
            Some(ingress) => {
                let completer = self.answers_for(ingress);
                self.refuse(ingress, entry.tlp, completer, CompletionStatus::UnsupportedRequest);
            }
            None if self.ports[id.index()].node == self.root_node
                && entry.shape.class != FcClass::Completion =>
            {
                // Programs learn of it as late as they would have learnt that it has left.
                let bytes = u64::from(entry.shape.bytes) + 8;
                let at = self.now + self.ports[id.index()].channel.rate().time_of(bytes);
                self.schedule(at, EventKind::Terminated, u32::from(id.0), entry.tlp.to_event());
            }
            None => self.lose_tlp(id, entry.tlp),
        }
    }

    /// The processor's own request could not leave by a root port: a posted one is lost, others are answered as unsupported.
    pub(crate) fn terminated(&mut self, id: PortId, request: TlpHandle) {
        let (now, root) = (self.now, self.root_node);
        let (repr, flow) = (self.tlps.get(request).repr, self.tlps.get(request).flow);
        let status = CompletionStatus::UnsupportedRequest;
        match self.root().completer.refuse(&repr, status) {
            None => self.left_its_maker(id, request),
            Some(completion) => {
                self.refused += 1;
                self.detect_refusal(id, request, status);
                let answer = self.tlps.insert(completion, Payload::EMPTY, flow);
                self.pass_history(request, answer, Cause::Completer, root);
                let outcome = self.initiator(root).requester.handle_completion(now, &completion, None);
                self.outcome(root, Some(answer), outcome);
                self.drop_tlp(answer);
            }
        }
        self.drop_tlp(request);
        self.pump_soon(root);
    }

    /// REPLAY_NUM rolled over: the link goes through recovery, keeping all state.
    pub(crate) fn retrain(&mut self, id: PortId) {
        let now = self.now;
        let peer = self.ports[id.index()].peer;
        let recovery = self.topology.links[self.ports[id.index()].link.index()].recovery;
        if self.ports[id.index()].recovering {
            return;
        }
        self.cut(id);
        self.cut(peer);
        for end in [id, peer] {
            let port = &mut self.ports[end.index()];
            (port.wire_up, port.recovering, port.transmitting) = (false, true, false);
            port.recovery_ends = now + recovery;
            port.engine.link_recovering(now);
            port.partition.idle(now);
            self.block_all(end, Some(Cause::LinkDown));
            // What left just now is lost on the wire, but not in the replay buffer, so its receive buffer is free.
            let leaving = std::mem::take(&mut self.ports[end.index()].leaving);
            leaving.into_iter().for_each(|entry| self.release_when_whole(entry));
        }
        self.schedule(now + recovery, EventKind::LinkState, u32::from(id.0), RECOVERED);
    }

    fn recovered(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        // Since then it may have gone down, come up, and begun another.
        if port.recovering && port.recovery_ends == now {
            (port.wire_up, port.recovering) = (true, false);
            port.engine.link_recovered(now);
            self.block_all(id, None);
        }
    }

    fn block_all(&mut self, id: PortId, cause: Option<Cause>) {
        let now = self.now;
        for class in FcClass::ALL {
            let slot = cause.map(Partition::slot);
            self.ports[id.index()].partition.block(now, class.index(), slot);
        }
    }

    /// A run asks a link to go down or come up at a time.
    pub(crate) fn plan_link_state(&mut self, id: PortId, at: Time, what: u64) {
        self.schedule(at, EventKind::LinkState, u32::from(id.0), what);
    }
}
