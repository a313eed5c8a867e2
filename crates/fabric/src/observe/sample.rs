//! A uniform sample of transactions, of bounded size.

use crate::kernel::ids::FlowId;
use crate::packet::attribution::{Cause, Interval, Ledger};
use crate::packet::transactions::Transaction;
use tlplab_device::Random;
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::TransactionId;

/// The operation of a sampled transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Its number: unique in the run, as in [`TransactionRecord`](crate::probe::TransactionRecord).
    pub number: u64,
    /// Its flow.
    pub flow: FlowId,
    /// Read or write.
    pub read: bool,
    /// First byte; of a register its address in ECAM or I/O space.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The function that sent its requests.
    pub requester: Bdf,
    /// The tag of the request that brought its last byte; `None` where that was a posted one, whose tag means nothing (PCIe 5.0 §2.2.7).
    pub tag: Option<Tag>,
}

/// A transaction with the causes of its latency.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its operation.
    pub of: Sampled,
    /// Its start.
    pub start: Time,
    /// From start to last byte.
    pub latency: Duration,
    /// By cause, in the order of [`Cause::ALL`].
    pub causes: [Duration; Cause::COUNT],
    /// Its critical path.
    pub intervals: Vec<Interval>,
}

impl Sampled {
    /// `id`: of the TLP that brought its last byte. `own`: of its function.
    #[cold]
    pub(crate) fn new(record: &Transaction, id: Option<TransactionId>, own: Bdf) -> Self {
        Self {
            number: record.number,
            flow: record.flow,
            read: record.read,
            address: record.address,
            bytes: record.bytes,
            requester: id.map_or(own, |id| id.requester),
            tag: id.filter(|_| !record.posted).map(|id| id.tag),
        }
    }
}

impl Sample {
    pub(crate) fn new(of: Sampled, start: Time, latency: Duration, ledger: &Ledger) -> Self {
        let mut causes = [Duration::ZERO; Cause::COUNT];
        for interval in ledger.intervals() {
            causes[interval.cause() as usize] += interval.duration;
        }
        Self { of, start, latency, causes, intervals: ledger.intervals().to_vec() }
    }
}

/// Reservoir sampling (Vitter 1985, algorithm R), with integers only.
#[derive(Clone)]
pub(crate) struct Samples {
    samples: Vec<Sample>,
    seen: u64,
    random: Random,
}

/// Size of the reservoir.
pub(crate) const SAMPLES: usize = 2048;

impl Samples {
    pub(crate) fn new(random: Random) -> Self {
        Self { samples: Vec::new(), seen: 0, random }
    }

    /// The place that the next transaction takes; none for one that is left out.
    pub(crate) fn offer(&mut self) -> Option<usize> {
        self.seen += 1;
        if self.samples.len() < SAMPLES {
            return Some(self.samples.len());
        }
        // The n-th stays with probability SAMPLES / n.
        let slot = self.random.below(self.seen) as usize;
        Some(slot).filter(|slot| *slot < SAMPLES)
    }

    /// Keeps the transaction to which a place was offered.
    pub(crate) fn keep(&mut self, slot: usize, sample: Sample) {
        match self.samples.get_mut(slot) {
            Some(place) => *place = sample,
            None => self.samples.push(sample),
        }
    }

    pub(crate) fn all(&self) -> &[Sample] {
        &self.samples
    }
}
