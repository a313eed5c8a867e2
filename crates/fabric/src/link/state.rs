//! Ports whose link goes down, comes up, or retrains.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::channel::InFlight;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port::{Leaving, Port};
use crate::link::transmit::update_in;
use crate::packet::attribution::{Cause, Partition};
use crate::packet::slab::TlpHandle;
use tlplab_datalink::{LinkLayer, TlpUnit, Unit};
use tlplab_units::{FcClass, Time, Width};
use tlplab_wire::tlp::CompletionStatus;

/// The values of an `EventKind::LinkState` event.
pub(crate) const DOWN: u64 = 0;
/// The physical link is up again.
pub(crate) const UP: u64 = 1;
/// Recovery is over.
pub(crate) const RECOVERED: u64 = 2;
/// Software resets what is below.
pub(crate) const RESET: u64 = 3;
/// Lanes have failed; so many are left, eight bits further up.
pub(crate) const NARROWED: u64 = 4;

/// The value of an `EventKind::LinkState` event for a link with this number of lanes left.
pub(crate) fn narrowed(width: Width) -> u64 {
    NARROWED | u64::from(width.lanes()) << 8
}

impl Context {
    /// Both ends of a link, the given one first.
    pub(crate) fn ends(&self, id: PortId) -> [PortId; 2] {
        [id, self.links.ports[id.index()].peer]
    }

    /// A TLP of a link that goes down counts as having arrived just before.
    fn take_forwarded(&mut self, id: PortId, flying: &InFlight<TlpHandle>) {
        let mut events = Vec::new();
        self.hand_to_data_link_layer(id, flying, &mut events);
        for event in events {
            self.link_event(id, event, Some(flying));
        }
    }

    pub(crate) fn link_up(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        port.wire_up = !port.on_bus;
        // The peer learns all credits anew.
        port.updates_lost = 0;
        port.engine.link_up(now);
        // Without flow control to be initialised it is active at once.
        port.discards &= !port.engine.is_active();
        self.block_all(id, None);
    }

    /// Nothing more is sent.
    pub(crate) fn stop_wire(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        (port.wire_up, port.recovering, port.transmitting) = (false, false, false);
        port.partition.idle(now);
        (port.discards, port.missing) = (true, false);
    }

    pub(crate) fn link_down(&mut self, id: PortId) {
        let now = self.kernel.now();
        self.links.buffers.forget_responses(id);
        let port = &mut self.links.ports[id.index()];
        let leaving = std::mem::take(&mut port.leaving);
        let mut events = std::mem::take(&mut self.links.events);
        port.engine.link_down(now, &mut |event| events.push(event));
        for event in events.drain(..) {
            self.link_event(id, event, None);
        }
        self.links.events = events;
        leaving.into_iter().for_each(|entry| self.release_when_whole(entry));
        self.block_all(id, Some(Cause::LinkDown));
    }

    /// All units that `id` has on the wire are lost. A TLP that the peer has begun to forward counts as having arrived just before, so that it
    /// is neither forwarded twice nor half.
    pub(crate) fn cut(&mut self, id: PortId) {
        let now = self.kernel.now();
        let ingress = self.links.ports[id.index()].peer;
        let keeps = self.links.ports[id.index()].engine.keeps_until_acked();
        let cut: Vec<_> = self.links.ports[id.index()].channel.cut(now).collect();
        for flying in cut {
            if let Some(update) = update_in(&flying.unit) {
                self.links.ports[id.index()].note_update(update.class, true);
            }
            match flying.unit {
                Unit::Tlp(TlpUnit { handle, nullified: true, .. }) => self.drop_tlp(handle),
                _ if flying.forwarded => self.take_forwarded(ingress, &flying),
                // A crossbar keeps nothing until it has arrived, so nobody else will say that it is lost.
                Unit::Tlp(TlpUnit { handle, .. }) if !keeps => self.lose_tlp(id, handle),
                _ => {}
            }
        }
    }

    /// TLPs that wait for a link that is down cannot go: posted requests and completions are dropped, requests of others are answered
    /// (PCIe 5.0 §2.9.1).
    pub(crate) fn discard_waiting(&mut self, id: PortId) {
        self.end_waits(id);
        let waiting = self.links.ports[id.index()].drain_waiting();
        waiting.into_iter().for_each(|entry| self.discard(id, entry));
        self.discard_lines(id);
    }

    /// Drops what was to leave by `id`.
    pub(crate) fn discard(&mut self, id: PortId, entry: Waiting) {
        if let Some(ingress) = entry.ingress
            && entry.tail > self.kernel.now()
        {
            // Its tail is still to come (cut-through); then its fate is decided again.
            return self.schedule(
                entry.tail,
                EventKind::Processed,
                u32::from(ingress.0),
                entry.tlp.to_event(),
            );
        }
        self.links.ports[id.index()].counters.discarded += 1;
        match entry.ingress {
            Some(ingress) => {
                let completer = self.answers_for(ingress);
                self.refuse(ingress, entry.tlp, completer, CompletionStatus::UnsupportedRequest);
            }
            None if self.links.ports[id.index()].node == self.host.node
                && entry.shape.class != FcClass::Completion =>
            {
                // Programs learn of it as late as they would have learnt that it has left.
                let bytes = u64::from(entry.shape.bytes) + 8;
                let at = self.kernel.now() + self.links.ports[id.index()].channel.rate().time_of(bytes);
                self.schedule(at, EventKind::Terminated, u32::from(id.0), entry.tlp.to_event());
            }
            None => self.lose_tlp(id, entry.tlp),
        }
    }

    /// The link goes through recovery, keeping all state: when both ends have sent their last unit to the end; all that have left arrive. REPLAY_NUM
    /// rolled over, or lanes failed.
    pub(crate) fn retrain(&mut self, id: PortId) {
        let now = self.kernel.now();
        let Port { recovering, recovery, .. } = self.links.ports[id.index()];
        if recovering {
            return;
        }
        let ends = self.ends(id);
        let begins = ends.map(|end| self.links.ports[end.index()].wire_free_at(now));
        let recovery_ends = begins[0].max(begins[1]) + recovery;
        for end in ends {
            let port = &mut self.links.ports[end.index()];
            (port.wire_up, port.recovering, port.recovery_ends) = (false, true, recovery_ends);
            port.engine.link_recovering(now);
            self.block_all(end, Some(Cause::LinkDown));
        }
        self.schedule(recovery_ends, EventKind::LinkState, u32::from(id.0), RECOVERED);
    }

    /// The units that a port has on the wire are lost there, but not in the replay buffer: the receive buffers that they leave are to be freed.
    fn lose_units_on_wire(&mut self, id: PortId) -> Vec<Leaving> {
        let now = self.kernel.now();
        self.cut(id);
        let port = &mut self.links.ports[id.index()];
        port.transmitting = false;
        port.partition.idle(now);
        std::mem::take(&mut port.leaving)
    }

    /// Lanes of a link have failed. It goes through recovery, if it is up, with those that are left; the units on the wire are lost.
    pub(crate) fn narrow(&mut self, id: PortId, width: Width) {
        for end in self.ends(id) {
            let port = &mut self.links.ports[end.index()];
            port.engine.set_width(width);
            port.narrow(port.engine.config().rate());
        }
        // One that initialises its flow control does so with the lanes that are left.
        if self.ends(id).into_iter().all(|end| self.links.is_active(end)) {
            let leaving = self.ends(id).map(|end| self.lose_units_on_wire(end));
            self.retrain(id);
            // Only now: a buffer that is free lets its port send, and this link sends nothing any more.
            leaving.into_iter().flatten().for_each(|entry| self.release_when_whole(entry));
        }
    }

    pub(crate) fn recovered(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        // Since then it may have gone down, come up, and begun another.
        if port.recovering && port.recovery_ends == now {
            (port.wire_up, port.recovering) = (true, false);
            port.engine.link_recovered(now);
            self.block_all(id, None);
        }
    }

    pub(crate) fn block_all(&mut self, id: PortId, cause: Option<Cause>) {
        let now = self.kernel.now();
        for class in FcClass::ALL {
            let slot = cause.map(Partition::slot);
            self.links.ports[id.index()].partition.block(now, class.index(), slot);
        }
    }

    /// Removes the TLPs that wait for a port whose link is down: they are gone with its node.
    pub(crate) fn empty_port(&mut self, port: PortId) {
        self.end_waits(port);
        let waiting = self.links.ports[port.index()].drain_waiting();
        self.links.ports[port.index()].counters.discarded += waiting.len() as u64;
        for entry in waiting {
            match entry.ingress {
                Some(ingress) => self.consume(ingress, entry.tlp),
                None => self.lose_tlp(port, entry.tlp),
            }
        }
    }

    /// The bridge of `port` holds what is below it in reset, or does not.
    pub(crate) fn reset_below(&mut self, port: PortId, reset: bool) {
        let port = &mut self.links.ports[port.index()];
        if std::mem::replace(&mut port.resets_below, reset) != reset {
            let (lower, what) = (u32::from(port.peer.0), if reset { RESET } else { UP });
            self.schedule(self.kernel.now(), EventKind::LinkState, lower, what);
        }
    }

    /// A run asks a link to go down or come up at a time.
    pub(crate) fn plan_link_state(&mut self, id: PortId, at: Time, what: u64) {
        self.schedule(at, EventKind::LinkState, u32::from(id.0), what);
    }
}
