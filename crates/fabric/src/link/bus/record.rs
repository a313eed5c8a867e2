//! Records of transactions: counters, series over time, the trace hash, and observers.

use super::phases::clocks;
use super::transaction::{Current, Response, Transaction};
use crate::kernel::ids::{NodeId, PortId};
use crate::link::context::Context;
use crate::link::transmit::where_to;
use crate::observe::probe::{BusOutcome, BusRecord, TlpRecord, UnitContent, UnitRecord};
use crate::packet::attribution::Cause;
use crate::packet::slab::TlpHandle;
use tlplab_units::Time;

impl Response {
    fn outcome(self) -> BusOutcome {
        match self {
            Self::Accept | Self::Immediate | Self::Data => BusOutcome::Data,
            Self::Split => BusOutcome::Split,
            Self::Delay | Self::NotYet | Self::Refuse => BusOutcome::Retry,
            Self::Abort => BusOutcome::Abort,
        }
    }
}

/// The ends of the phases of a transaction.
#[derive(Clone)]
struct Times {
    data: Time,
    data_ends: Time,
    over: Time,
}

impl Context {
    /// The ports between which a transaction goes: its master's on the way to its target, and back. Nobody's way is the way up.
    fn ways_on_bus(&self, node: NodeId, what: &Transaction) -> (PortId, PortId) {
        let bus = self.bus_below(node);
        let own = |member: usize| bus.members[member].port;
        match (what.master, what.target) {
            (0, target) => (bus.ports[target.unwrap_or(1)], own(target.unwrap_or(1))),
            (master, Some(0) | None) => (own(master), bus.ports[master]),
            (master, Some(target)) => (own(master), own(target)),
        }
    }

    fn bus_times(&mut self, node: NodeId, current: &Current) -> Times {
        let bus = self.bus(node);
        let at = |clocks: u32| current.what.started + bus.clocks(clocks);
        let all = &current.phases;
        let data = all.iter().rposition(|(cause, _)| *cause == Cause::DataPhase).unwrap_or(all.len());
        let ends = (data + 1).min(all.len());
        Times { data: at(clocks(&all[..data])), data_ends: at(clocks(&all[..ends])), over: at(clocks(all)) }
    }

    /// A transaction begins that moves a TLP to its target.
    pub(super) fn note_bus_begun(&mut self, node: NodeId, current: &Current) {
        let what = &current.what;
        let (way, _) = self.ways_on_bus(node, what);
        let times = self.bus_times(node, current);
        let (end, arrive) = match what.response {
            Response::Accept => (times.data_ends, times.over),
            Response::Split | Response::Delay => (current.claimed, times.over),
            Response::Immediate => (current.claimed, current.claimed),
            Response::Data | Response::NotYet | Response::Refuse | Response::Abort => return,
        };
        self.note_on_bus(way, what.sent.tlp, [what.started, end, arrive]);
    }

    /// All phases of a transaction are known, and what comes back.
    pub(super) fn note_bus_known(&mut self, node: NodeId, current: &Current) {
        let what = &current.what;
        let (way, back) = self.ways_on_bus(node, what);
        let times = self.bus_times(node, current);
        let carries_back = matches!(what.response, Response::Immediate | Response::Data);
        let width = u64::from(self.bus(node).rules.width);
        let total = u64::from(clocks(&current.phases)) * width;
        let moved: Vec<TlpHandle> = match what.response {
            Response::Accept => vec![what.sent.tlp],
            _ if carries_back => current.answer.handles().collect(),
            _ => Vec::new(),
        };
        let payload: u64 = moved.iter().map(|tlp| u64::from(self.tlps.get(*tlp).repr.payload_bytes())).sum();
        // The transaction is its master's, the data go their own way.
        self.links.ports[way.index()].counters.overhead += total.saturating_sub(payload);
        let carrier = &mut self.links.ports[if carries_back { back } else { way }.index()];
        carrier.counters.payload += payload;
        let series = carrier.series.payload;
        let overhead = self.links.ports[way.index()].series.overhead;
        self.observe.timeline.add_span(overhead, what.started, times.data, 1);
        self.observe.timeline.add_span(overhead, times.data_ends, times.over, 1);
        self.observe.timeline.add_span(
            if payload > 0 { series } else { overhead },
            times.data,
            times.data_ends,
            1,
        );
        if carries_back {
            for tlp in moved {
                self.note_on_bus(back, tlp, [times.data, times.data_ends, times.over]);
            }
        }
        self.observe.hash.mix(what.started.as_fs());
        self.observe.hash.mix(u64::from(way.0) << 8 | what.response as u64);
        self.observe.hash.mix(times.over.as_fs());
        self.observe.hash.mix(where_to(&what.repr));
        self.show_bus(node, current);
    }

    /// A TLP goes over the bus from a port to its peer, in the eyes of those who think in links.
    fn note_on_bus(&mut self, way: PortId, tlp: TlpHandle, [start, end, arrive]: [Time; 3]) {
        let port = &mut self.links.ports[way.index()];
        port.counters.tlps += 1;
        let (link, direction) = (port.link, port.direction);
        let Some(mut probe) = self.observe.probe.take() else { return };
        let tlp = self.tlps.get(tlp);
        let transaction = tlp.transaction.and_then(|t| self.transactions.number(t));
        let packet = TlpRecord { repr: &tlp.repr, payload: tlp.payload.bytes(), flow: tlp.flow, transaction };
        let content = UnitContent::Tlp { sequence: 0, replay: false, nullified: false, packet };
        let bytes = tlp.repr.payload_bytes();
        probe.unit(&UnitRecord { link, direction, start, end, arrive, bytes, bad: false, content });
        self.observe.probe = Some(probe);
    }

    fn show_bus(&mut self, node: NodeId, current: &Current) {
        let Some(mut probe) = self.observe.probe.take() else { return };
        let what = &current.what;
        let cycle = self.bus(node).rules.cycle;
        let member = |fabric: &mut Self, member: usize| match member {
            0 => node,
            _ => {
                let port = fabric.bus(node).members[member].port;
                fabric.links.node(port)
            }
        };
        let (way, _) = self.ways_on_bus(node, what);
        let (link, direction) = (self.links.ports[way.index()].link, self.links.ports[way.index()].direction);
        let (master, target) = (member(self, what.master), what.target.map(|target| member(self, target)));
        probe.bus_transaction(&BusRecord {
            bus: node,
            link,
            direction,
            transaction: what.transaction,
            master,
            target,
            start: what.started,
            cycle,
            phases: &current.phases,
            outcome: what.response.outcome(),
            sent: &what.repr,
            flow: what.flow,
        });
        self.observe.probe = Some(probe);
    }
}
