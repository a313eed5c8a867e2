//! A uniform sample of transactions, of bounded size.

use crate::kernel::ids::FlowId;
use crate::packet::attribution::{Cause, Interval, Ledger};
use tlplab_device::Random;
use tlplab_units::{Duration, Time};

/// A transaction with the causes of its latency.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its flow.
    pub flow: FlowId,
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
    pub(crate) fn new(flow: FlowId, start: Time, latency: Duration, ledger: &Ledger) -> Self {
        let mut causes = [Duration::ZERO; Cause::COUNT];
        for interval in ledger.intervals() {
            causes[interval.cause() as usize] += interval.duration;
        }
        Self { flow, start, latency, causes, intervals: ledger.intervals().to_vec() }
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
