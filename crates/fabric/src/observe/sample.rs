//! A uniform sample of transactions, of bounded size.

use crate::kernel::ids::FlowId;
use crate::packet::attribution::{Cause, Interval, Ledger};
use tlplab_device::Random;
use tlplab_units::{Bdf, Duration, Tag, Time};

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

    pub(crate) fn offer(&mut self, sample: impl FnOnce() -> Sample) {
        self.seen += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(sample());
            return;
        }
        // The n-th stays with probability SAMPLES / n.
        let slot = self.random.below(self.seen) as usize;
        if slot < SAMPLES {
            self.samples[slot] = sample();
        }
    }

    pub(crate) fn all(&self) -> &[Sample] {
        &self.samples
    }
}
