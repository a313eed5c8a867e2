//! Every transaction of a run with the causes of its latency, for whoever asks why some take longer than others.
//!
//! A document has a sample of them. Here they are all kept, up to a number that a machine's memory bears.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_fabric::Ending;
use tlplab_fabric::attribution::Interval;
use tlplab_fabric::probe::{Probe, TransactionRecord, UnitRecord};
use tlplab_fabric::topology::Topology;
use tlplab_units::{Duration, Time};

/// As many are kept: some 200 MB. Of a run with more none is.
pub const MOST: usize = 1_000_000;

/// A transaction that ended well after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The flow, as the topology counts them.
    pub flow: usize,
    /// Read or write.
    pub read: bool,
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The time of its owner's request.
    pub start: Time,
    /// From there to its last byte.
    pub latency: Duration,
    /// The index of its first cause among all.
    first: usize,
}

/// A part of a transaction's latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the cause.
    pub cause: &'static str,
    /// The place.
    pub place: String,
    /// Behind which flow, if the cause is queueing.
    pub behind: Option<String>,
    /// The duration.
    pub duration: Duration,
}

/// The state that [`Transactions`] shares with the run that it observes.
#[derive(Default)]
struct Store {
    warmup: Time,
    most: usize,
    topology: Topology,
    kept: Vec<Kept>,
    intervals: Vec<Interval>,
    seen: u64,
}

/// The transactions of a run. Clones share them.
#[derive(Clone)]
pub struct Transactions(Arc<Mutex<Store>>);

impl Transactions {
    /// Transactions after a warm-up: no figure counts earlier ones.
    pub fn after(warmup: Time) -> Self {
        Self::at_most(MOST, warmup)
    }

    fn at_most(most: usize, warmup: Time) -> Self {
        Self(Arc::new(Mutex::new(Store { warmup, most, ..Store::default() })))
    }

    /// The observer for a run.
    pub fn probe(&self) -> Box<dyn Probe> {
        Box::new(self.clone())
    }

    /// The names of the flows.
    pub fn flows(&self) -> Vec<String> {
        self.lock().topology.flows.iter().map(|flow| flow.name.clone()).collect()
    }

    /// All of them in the order of their ends; none, if there were more than [`MOST`].
    pub fn all(&self) -> Vec<Kept> {
        self.lock().kept.clone()
    }

    /// The number of transactions.
    pub fn seen(&self) -> u64 {
        self.lock().seen
    }

    /// The text of one of [`Transactions::all`], as in a ladder: `write of 4096 B at 0x100000000`.
    pub fn text(&self, index: usize) -> Option<String> {
        let one = *self.lock().kept.get(index)?;
        let what = if one.read { "read" } else { "write" };
        Some(format!("{what} of {} B at {:#x}", one.bytes, one.address))
    }

    /// The parts of the latency of one of [`Transactions::all`], in the order of time and without gaps; none where there is no such one.
    pub fn parts(&self, index: usize) -> Vec<Part> {
        let store = self.lock();
        let Some(one) = store.kept.get(index) else { return Vec::new() };
        let end = store.kept.get(index + 1).map_or(store.intervals.len(), |next| next.first);
        let part = |interval: &Interval| Part {
            cause: interval.cause().name(),
            place: store.topology.place_name(interval.place),
            behind: interval.behind().map(|flow| store.topology.flows[flow.index()].name.clone()),
            duration: interval.duration,
        };
        store.intervals[one.first..end].iter().map(part).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        // A panic while it was held has ended the run.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for Transactions {
    fn begin(&mut self, topology: &Topology) {
        self.lock().topology = topology.clone();
    }

    fn unit(&mut self, _record: &UnitRecord<'_>) {}

    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        let mut store = self.lock();
        if record.ending != Ending::Done || record.end < store.warmup {
            return;
        }
        store.seen += 1;
        if store.seen > store.most as u64 {
            (store.kept, store.intervals) = (Vec::new(), Vec::new());
            return;
        }
        let first = store.intervals.len();
        store.intervals.extend_from_slice(record.intervals);
        store.kept.push(Kept {
            flow: record.flow.index(),
            read: record.read,
            address: record.address,
            bytes: record.bytes,
            start: record.start,
            latency: record.end - record.start,
            first,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Inputs, Run};
    use crate::{Experiment, Options};

    const TEXT: &str = r#"
        title = "Two"
        stop = "40us"
        warmup = "10us"
        [device.ssd]
        under = "host.rp0"
        link = "gen3 x4"
        [device.nic]
        under = "host.rp1"
        link = "gen3 x4"
        [load]
        ssd = { op = "write", size = "4KiB" }
        nic = { op = "read", size = "1KiB", outstanding = 4 }
    "#;

    fn run(most: usize) -> (Run, Transactions) {
        let experiment =
            Experiment::parse_with(&|_| Ok(TEXT.to_owned()), "two.toml", &Options::default()).unwrap();
        let transactions = Transactions::at_most(most, experiment.fabric.warmup);
        let inputs = Inputs { probe: Some(transactions.probe()), ..Inputs::default() };
        let mut run = Run::new(experiment, inputs).unwrap();
        run.finish().unwrap();
        (run, transactions)
    }

    #[test]
    fn of_too_many_none_is_kept_and_all_are_counted() {
        let all = run(MOST).1.seen();
        for most in [all as usize - 1, all as usize] {
            let transactions = run(most).1;
            assert_eq!(transactions.seen(), all);
            assert_eq!(transactions.all().len() as u64, if most as u64 == all { all } else { 0 });
        }
    }

    #[test]
    fn transactions_match_the_figures_and_their_parts_add_up() {
        let (mut run, transactions) = run(MOST);
        let (all, names) = (transactions.all(), transactions.flows());
        assert_eq!(all.len() as u64, transactions.seen());
        for flow in &run.document().flows {
            let of_it: Vec<_> = all.iter().filter(|one| names[one.flow] == flow.name).collect();
            assert_eq!(of_it.len() as u64, flow.transactions, "{}", flow.name);
            let longest = of_it.iter().map(|one| one.latency.as_fs()).max().unwrap();
            assert_eq!(longest as f64 / 1e6, flow.latency_ns.unwrap().max);
        }
        for (index, one) in all.iter().enumerate() {
            let sum: u64 = transactions.parts(index).iter().map(|part| part.duration.as_fs()).sum();
            assert_eq!(sum, one.latency.as_fs());
        }
        assert!(transactions.parts(all.len()).is_empty());
    }
}
