//! The latest TLPs of a run: for a debugger, which stops at them, and for the message of a run that failed.

use crate::{ladder, result};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_fabric::FlowId;
use tlplab_fabric::probe::{Probe, TlpRecord, UnitContent, UnitRecord};
use tlplab_fabric::topology::Topology;
use tlplab_wire::tlp::Repr;

/// An observer that keeps the latest TLPs on all links, without those on parallel buses.
#[derive(Clone)]
pub struct Latest(Arc<Mutex<Ring>>);

/// A TLP on a link, with names.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// As in a ladder; `flow` and `link` are the fabric's numbers.
    #[serde(flatten)]
    pub packet: result::Packet,
    /// The name of its flow.
    pub flow_name: String,
    /// The name of its link: the component below.
    pub link_name: String,
    /// The component that sent it.
    pub from: String,
    /// The component at the other end.
    pub to: String,
}

struct Ring {
    capacity: usize,
    /// The number of TLPs so far, with those that are no longer kept.
    count: u64,
    tlps: VecDeque<Sent>,
    topology: Option<Topology>,
}

/// A TLP on a wire. Its texts are made when it is asked for.
struct Sent {
    record: UnitRecord<'static>,
    framing: Framing,
    repr: Repr,
    flow: FlowId,
    transaction: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Framing {
    sequence: Option<u16>,
    replay: bool,
    nullified: bool,
}

impl Latest {
    /// Keeps so many.
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(Ring { capacity, count: 0, tlps: VecDeque::new(), topology: None })))
    }

    /// The observer, for [`Inputs::probe`](crate::run::Inputs::probe).
    pub fn probe(&self) -> Box<dyn Probe> {
        Box::new(Arc::clone(&self.0))
    }

    /// The number of TLPs that have been put on a wire so far.
    pub fn count(&self) -> u64 {
        self.ring().count
    }

    /// The TLPs after the first `count`; of more than are kept, the latest.
    pub fn after(&self, count: u64) -> Vec<Seen> {
        let ring = self.ring();
        let Some(topology) = &ring.topology else { return Vec::new() };
        let new = ring.count.saturating_sub(count).min(ring.tlps.len() as u64) as usize;
        ring.tlps.iter().skip(ring.tlps.len() - new).map(|sent| sent.seen(topology)).collect()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn keep(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>, framing: Framing) {
        let on_bus = |topology: &Topology| topology.links[record.link.index()].bus.is_some();
        if self.topology.as_ref().is_none_or(on_bus) {
            return;
        }
        if self.tlps.len() == self.capacity {
            self.tlps.pop_front();
        }
        self.count += 1;
        let &UnitRecord { link, direction, start, end, arrive, bytes, bad, .. } = record;
        // Of the content only the TLP is kept.
        let content = UnitContent::Flit { sequence: 0, replay: false, tlp_bytes: 0 };
        let record = UnitRecord { link, direction, start, end, arrive, bytes, bad, content };
        self.tlps.push_back(Sent {
            record,
            framing,
            repr: *tlp.repr,
            flow: tlp.flow,
            transaction: tlp.transaction,
        });
    }
}

impl Probe for Ring {
    fn begin(&mut self, topology: &Topology) {
        self.topology = Some(topology.clone());
    }
    fn unit(&mut self, record: &UnitRecord<'_>) {
        if let UnitContent::Tlp { sequence, replay, nullified, packet } = &record.content {
            let framing = Framing { sequence: Some(*sequence), replay: *replay, nullified: *nullified };
            self.keep(record, packet, framing);
        }
    }
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        self.keep(record, tlp, Framing::default());
    }
}

impl Sent {
    fn seen(&self, topology: &Topology) -> Seen {
        let tlp =
            TlpRecord { repr: &self.repr, payload: None, flow: self.flow, transaction: self.transaction };
        let Framing { sequence, replay, nullified } = self.framing;
        let framed = result::Packet { sequence, replay, nullified, ..result::Packet::default() };
        let link = &topology.links[self.record.link.index()];
        let name = |direction: u8| topology.ports[link.ports[usize::from(direction)].index()].name.clone();
        Seen {
            packet: ladder::on_wire(&self.record, ladder::of_tlp(&tlp, framed)),
            flow_name: topology.flows[self.flow.index()].name.clone(),
            link_name: link.name.clone(),
            from: name(self.record.direction),
            to: name(1 - self.record.direction),
        }
    }
}
