//! Links that go down, come up, and retrain.

use crate::attribution::{Cause, Partition};
use crate::egress::Waiting;
use crate::errors::ErrorKind;
use crate::ids::PortId;
use crate::queue::EventKind;
use crate::sim::Fabric;
use tlplab_datalink::{LinkLayer, TlpUnit, Unit};
use tlplab_units::{FcClass, Time};
use tlplab_wire::tlp::CompletionStatus;

/// What an `EventKind::LinkState` event says.
pub(crate) const DOWN: u64 = 0;
/// The physical link is up again.
pub(crate) const UP: u64 = 1;
/// Recovery is over.
pub(crate) const RECOVERED: u64 = 2;

impl Fabric {
    /// A fault, or the end of a recovery. The event is kept by one port and concerns both.
    pub(crate) fn link_state(&mut self, id: PortId, what: u64) {
        let ends = [id, self.ports[id.index()].peer];
        match what {
            DOWN => {
                ends.into_iter().for_each(|end| self.cut(end));
                ends.into_iter().for_each(|end| self.link_down(end));
            }
            UP => ends.into_iter().for_each(|end| self.link_up(end)),
            _ => ends.into_iter().for_each(|end| self.recovered(end)),
        }
        for end in ends {
            self.try_transmit(end);
            self.arm(end);
        }
    }

    pub(crate) fn link_up(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        port.wire_up = true;
        port.engine.link_up(now);
        // Without flow control to be initialised it is active at once.
        port.discards &= !port.engine.is_active();
        self.block_all(id, None);
    }

    fn link_down(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        if !port.wire_up && !port.recovering {
            return;
        }
        let surprised = port.direction == 1 && port.engine.is_active();
        (port.wire_up, port.recovering, port.transmitting) = (false, false, false);
        port.partition.idle(now);
        (port.discards, port.missing) = (true, false);
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
        self.discard_waiting(id);
        self.wires_lost(id);
        if surprised {
            self.detect(id, ErrorKind::SurpriseDown, None);
        }
    }

    /// Whatever `id` has on the wire is lost. A TLP that the peer has begun to forward counts as having arrived just before, so that it
    /// is neither forwarded twice nor half.
    fn cut(&mut self, id: PortId) {
        let now = self.now;
        let ingress = self.ports[id.index()].peer;
        let cut: Vec<_> = self.ports[id.index()].channel.cut(now).collect();
        for flying in cut {
            match flying.unit {
                Unit::Tlp(TlpUnit { handle, nullified: true, .. }) => self.drop_tlp(handle),
                _ if flying.forwarded => self.take(ingress, &flying),
                _ => {}
            }
        }
    }

    /// What waits for a link that is down cannot go: posted requests and completions are dropped, requests of others are answered
    /// (PCIe 5.0 §2.9.1); the node's own requests run into their completion timeout.
    fn discard_waiting(&mut self, id: PortId) {
        let waiting: Vec<_> = self.ports[id.index()].egress.drain().collect();
        waiting.into_iter().for_each(|entry| self.discard(id, entry));
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
            None => {
                if !entry.nullified {
                    self.left_its_maker(id, entry.tlp);
                }
                self.drop_tlp(entry.tlp);
            }
        }
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
        if port.recovering {
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
