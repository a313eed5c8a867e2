//! An observer that writes down what it sees, and checks what must hold of every transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tlplab_fabric::attribution::{Cause, Interval};
use tlplab_fabric::probe::{BusOutcome, BusRecord, TlpRecord, TransactionRecord, UnitContent, UnitRecord};
use tlplab_fabric::{Ending, Fabric, FlowId, LinkId, NodeId, Probe};
use tlplab_units::{Duration, Time};
use tlplab_wire::{dllp, tlp};

/// A unit that was seen on a wire.
#[derive(Clone, Debug)]
pub struct Unit {
    pub link: LinkId,
    pub direction: u8,
    pub start: Time,
    pub end: Time,
    pub arrive: Time,
    pub bytes: u32,
    pub bad: bool,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Tlp { repr: tlp::Repr, replay: bool, nullified: bool, flow: FlowId },
    Dllp(dllp::Repr),
    Flit { replay: bool, tlp_bytes: u16, tlps: Vec<tlp::Repr> },
}

/// A transaction of a parallel bus.
#[derive(Clone, Debug)]
pub struct OnBus {
    pub master: NodeId,
    pub start: Time,
    pub end: Time,
    pub phases: Vec<(Cause, u32)>,
    pub outcome: BusOutcome,
}

/// A transaction that has ended.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub number: u64,
    pub flow: FlowId,
    pub read: bool,
    pub address: u64,
    pub bytes: u64,
    pub start: Time,
    pub end: Time,
    pub ending: Ending,
    pub intervals: Vec<Interval>,
}

impl Transaction {
    pub fn latency(&self) -> Duration {
        self.end - self.start
    }
    /// Time on the critical path for this cause.
    pub fn time_of(&self, cause: Cause) -> Duration {
        self.intervals.iter().filter(|i| i.cause() == cause).fold(Duration::ZERO, |sum, i| sum + i.duration)
    }
}

#[derive(Default)]
pub struct Seen {
    pub units: Vec<Unit>,
    pub transactions: Vec<Transaction>,
    /// Flows whose TLPs used an egress: (link, direction).
    pub users: BTreeMap<(LinkId, u8), BTreeSet<FlowId>>,
    /// Transactions of parallel buses.
    pub bus: Vec<OnBus>,
    /// Damaged units that carry TLPs, nullified ones aside: each must be sent again.
    pub hit: u64,
    keep_units: bool,
}

/// A handle on what an observer has seen.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    /// Keeps units and transactions.
    pub fn everything() -> Self {
        Self(Arc::new(Mutex::new(Seen { keep_units: true, ..Seen::default() })))
    }
    /// Keeps transactions only.
    pub fn transactions_only() -> Self {
        Self(Arc::default())
    }
    pub fn probe(&self) -> Option<Box<dyn Probe>> {
        Some(Box::new(self.clone()))
    }
    pub fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }
    pub fn transactions(&self) -> Vec<Transaction> {
        self.seen().transactions.clone()
    }

    /// Units on the link below which `name` is, towards the root (0) or away from it (1).
    pub fn units(&self, fabric: &Fabric, name: &str, direction: u8) -> Vec<Unit> {
        let link = fabric.topology().links.iter().position(|l| l.name == name).expect("a link of this name");
        let on = |u: &&Unit| u.link.index() == link && u.direction == direction;
        self.seen().units.iter().filter(on).cloned().collect()
    }

    /// The framed TLPs among them, replays and nullified ones included.
    pub fn tlps(&self, fabric: &Fabric, name: &str, direction: u8) -> Vec<(Unit, tlp::Repr)> {
        let units = self.units(fabric, name, direction);
        let tlp = |u: Unit| match u.content {
            Content::Tlp { repr, .. } => Some((u, repr)),
            _ => None,
        };
        units.into_iter().filter_map(tlp).collect()
    }

    /// What must hold whatever happened: intervals tile each transaction, however it ended, totals are their sums, nobody queues behind
    /// a flow that was never there.
    pub fn check_attribution(&self, fabric: &Fabric) {
        let seen = self.seen();
        let mut sums: BTreeMap<(FlowId, Ending), (u64, u128)> = BTreeMap::new();
        for t in &seen.transactions {
            let sum = t.intervals.iter().fold(Duration::ZERO, |sum, i| sum + i.duration);
            assert_eq!(sum, t.latency(), "causes sum to the latency: {t:#?}");
            assert!(t.intervals.iter().all(|i| !i.duration.is_zero()));
            for interval in &t.intervals {
                let Some(behind) = interval.behind() else { continue };
                let egress = fabric.topology().place_link(interval.place).expect("queueing is at an egress");
                let users = seen.users.get(&egress);
                assert!(
                    users.is_some_and(|u| u.contains(&behind)),
                    "{} never used {}",
                    fabric.topology().flows[behind.index()].name,
                    fabric.topology().place_name(interval.place),
                );
            }
            let sum = sums.entry((t.flow, t.ending)).or_default();
            *sum = (sum.0 + 1, sum.1 + u128::from(t.latency().as_fs()));
        }
        for id in fabric.flow_ids() {
            let flow = fabric.flow_results(id);
            for failures in &flow.failed {
                let sum = sums.get(&(id, failures.ending)).copied().unwrap_or_default();
                assert_eq!((failures.count, failures.latency_sum_fs), sum);
                assert_eq!(failures.attribution().map(|(_, fs)| fs).sum::<u128>(), sum.1, "of failures, too");
            }
            let (count, latency) = sums.get(&(id, Ending::Done)).copied().unwrap_or_default();
            assert_eq!((flow.transactions, flow.latency_sum_fs), (count, latency));
            assert_eq!(flow.attribution().map(|(_, fs)| fs).sum::<u128>(), latency, "totals are the sums");
            let binned: u128 = flow.causes.steps().flat_map(|(_, _, bucket)| bucket.causes_fs).sum();
            assert_eq!(binned, latency, "the histogram's causes, too");
        }
    }
}

impl Probe for Watch {
    fn unit(&mut self, record: &UnitRecord<'_>) {
        let mut seen = self.seen();
        let content = match record.content {
            UnitContent::Tlp { replay, nullified, ref packet, .. } => {
                seen.users.entry((record.link, record.direction)).or_default().insert(packet.flow);
                Content::Tlp { repr: *packet.repr, replay, nullified, flow: packet.flow }
            }
            UnitContent::Dllp(dllp) => Content::Dllp(*dllp),
            UnitContent::Flit { replay, tlp_bytes, .. } => {
                Content::Flit { replay, tlp_bytes, tlps: Vec::new() }
            }
        };
        let carries = match &content {
            Content::Tlp { nullified, .. } => !nullified,
            Content::Flit { tlp_bytes, .. } => *tlp_bytes > 0,
            Content::Dllp(_) => false,
        };
        seen.hit += u64::from(record.bad && carries);
        if seen.keep_units {
            let UnitRecord { link, direction, start, end, arrive, bytes, bad, .. } = *record;
            seen.units.push(Unit { link, direction, start, end, arrive, bytes, bad, content });
        }
    }

    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        let clocks: u32 = record.phases.iter().map(|(_, clocks)| clocks).sum();
        let end = record.start + record.cycle * u64::from(clocks);
        let BusRecord { master, start, outcome, .. } = *record;
        self.seen().bus.push(OnBus { master, start, end, phases: record.phases.to_vec(), outcome });
    }

    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        let mut seen = self.seen();
        seen.users.entry((record.link, record.direction)).or_default().insert(tlp.flow);
        if let Some(Unit { content: Content::Flit { tlps, .. }, .. }) = seen.units.last_mut() {
            tlps.push(*tlp.repr);
        }
    }

    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        let TransactionRecord { number, flow, read, address, bytes, start, end, ending, intervals } = *record;
        let intervals = intervals.to_vec();
        let transaction = Transaction { number, flow, read, address, bytes, start, end, ending, intervals };
        self.seen().transactions.push(transaction);
    }
}
