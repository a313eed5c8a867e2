//! The results of a measurement.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;
use tlplab_device::DmaError;
use tlplab_nettlp::endpoint::Counters;
use tlplab_transaction::{CompletionError, Undeliverable};

/// Kinds of failure, as they are counted.
pub(super) fn kind(error: &DmaError) -> &'static str {
    match error {
        DmaError::Completion(error) => match error {
            CompletionError::UnsupportedRequest { .. } => "unsupported request",
            CompletionError::CompleterAbort { .. } => "completer abort",
            CompletionError::RetryStatus => "configuration request retry",
            CompletionError::Poisoned { .. } => "poisoned",
            CompletionError::Timeout { .. } => "timeout",
            CompletionError::Undelivered { why: Undeliverable::PortRefused, .. } => "port refused",
            CompletionError::Undelivered { why: Undeliverable::HostUnreachable, .. } => "host unreachable",
            _ => "malformed completion",
        },
        DmaError::Request(_) | DmaError::BusMasterDisabled => "not sent",
        DmaError::Unacknowledged => "not acknowledged",
    }
}

/// The results of one lane.
#[derive(Clone, Debug)]
pub struct LaneResult {
    /// Operations that began.
    pub begun: u64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first that began to the last that ended.
    pub elapsed: Duration,
    /// Time on a processor in this thread, in the program and in the kernel.
    pub cpu: Duration,
    /// Operations that failed, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Reads whose data were not what was written.
    pub wrong: u64,
    /// From the moment an operation was given to the end point until it was over, in nanoseconds.
    pub latency: Histogram<u64>,
    /// The same of each operation that succeeded, as they ended, if it was asked for.
    pub each: Vec<u64>,
    /// The counters of the end point.
    pub counters: Counters,
    /// Datagrams that came and that the kernel dropped: see [`Transport::dropped`](crate::Transport::dropped).
    pub kernel_drops: Option<u64>,
}

/// The results of all lanes.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each.
    pub lanes: Vec<LaneResult>,
    /// From the common start to the end of the last.
    pub elapsed: Duration,
    /// It was stopped before it was over.
    pub interrupted: bool,
    /// Bytes of writes that arrived, as the adapter counts them; `None` if it does not tell, and of reads.
    pub arrived: Option<u64>,
    /// The last writes that are not in the host's memory: they were lost on the way. Only with verification of writes.
    pub missing: Option<Missing>,
}

/// The written data that are not in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Bytes.
    pub bytes: u64,
    /// The places: first byte and length of the first [`MOST_RANGES`].
    pub ranges: Vec<(u64, u64)>,
    /// The number of ranges.
    pub range_count: u64,
    /// Behind the last one.
    end: u64,
}

/// Ranges that are told one by one.
pub const MOST_RANGES: usize = 100;

impl Missing {
    /// Adds bytes behind all that were added before.
    pub(super) fn add(&mut self, address: u64, bytes: u64) {
        self.bytes += bytes;
        let adjoins = self.end == address && self.range_count > 0;
        self.end = address + bytes;
        if !adjoins {
            self.range_count += 1;
            if self.ranges.len() < MOST_RANGES {
                self.ranges.push((address, bytes));
            }
        } else if self.range_count as usize == self.ranges.len()
            && let Some((_, length)) = self.ranges.last_mut()
        {
            *length += bytes;
        }
    }
}

impl Report {
    /// Operations that succeeded.
    pub fn operations(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.operations).sum()
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.bytes).sum()
    }
    /// Reads whose data were not what was written.
    pub fn wrong(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.wrong).sum()
    }
    /// Processor time of all lanes.
    pub fn cpu(&self) -> Duration {
        self.lanes.iter().map(|lane| lane.cpu).sum()
    }
    /// Datagrams that the kernel dropped at any lane.
    pub fn kernel_drops(&self) -> Option<u64> {
        self.lanes.iter().map(|lane| lane.kernel_drops).sum()
    }
    /// Latencies of all lanes.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = new_histogram();
        for lane in &self.lanes {
            all.add(&lane.latency).expect("of the same bounds");
        }
        all
    }
    /// Failures of all lanes, by kind.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (kind, count) in self.lanes.iter().flat_map(|lane| &lane.errors) {
            *all.entry(*kind).or_default() += count;
        }
        all
    }
}

/// 1 ns to 100 s, to three digits.
pub(super) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("legal bounds")
}
