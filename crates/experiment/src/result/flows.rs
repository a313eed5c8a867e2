//! Streams of transactions: how many, how fast, how late and why.

use super::words::{Access, Ending, Operation};
use schemars::JsonSchema;
use serde::Serialize;

/// A stream of transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// The load or program; of a device with activity of its own, the device, or one of its streams: `nic.transmit`.
    pub name: String,
    /// The component that issues the requests: a device or `host`.
    pub device: String,
    /// The operation of its requests.
    pub op: Operation,
    /// `host`, or the device whose BAR is meant.
    pub target: String,
    /// Transactions that ended well.
    pub transactions: u64,
    /// Payload that arrived, in bytes.
    pub bytes: u64,
    /// Payload per second of the measured time.
    pub payload_bps: f64,
    /// Transactions that did not end well.
    pub errors: Errors,
    /// Latency of the transactions that ended well; null if none did.
    pub latency_ns: Option<Latency>,
    /// Distribution of latency, in 32 equal steps of each octave of femtoseconds; empty ones are left out.
    pub histogram: Vec<Bar>,
    /// Attribution of the time of successful transactions.
    pub attribution: Vec<Attribution>,
    /// Transactions that did not end well, by their ending, with the causes of their time.
    pub failures: Vec<Failures>,
}

/// Transactions of a flow that ended in the same way, which was not well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Failures {
    /// Their ending; never `done`.
    pub ending: Ending,
    /// Their number.
    pub count: u64,
    /// Their mean latency, until the requester knew.
    pub mean_ns: f64,
    /// Attribution of their time, up to the last known place of each; shares are of the sum of their latencies.
    pub attribution: Vec<Attribution>,
}

/// Transactions that did not end well, by how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Errors {
    /// Unsupported request.
    pub ur: u64,
    /// Completer abort.
    pub ca: u64,
    /// Completion timeout.
    pub timeout: u64,
    /// Poisoned data.
    pub poisoned: u64,
    /// Transactions that a reset of their requester ended, and posted requests that went down with a link, or that no component claimed.
    pub lost: u64,
    /// Completions that contradict their request.
    pub malformed: u64,
}

/// Latency in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are below.
    pub p90: f64,
    /// 99 % are below.
    pub p99: f64,
    /// 99.9 % are below.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Transactions whose latency lies in a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    /// From this.
    pub from_ns: f64,
    /// Up to this.
    pub to_ns: f64,
    /// Their number.
    pub count: u64,
    /// Their mean time by cause.
    pub causes_ns: Vec<f64>,
}

/// Time that all transactions of a flow spent for one cause at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attribution {
    /// Cause: an index in `causes` of the document.
    pub cause: usize,
    /// Place: a link direction `from → to`, or a node.
    pub place: String,
    /// The flow one queued behind; null where one did not queue.
    pub behind: Option<String>,
    /// In a document that is shortened: of so many further flows that one queued behind, this is the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub others: Option<u32>,
    /// Sum over all transactions of the flow.
    pub total_ns: f64,
    /// Part of the sum of all latencies of the flow, a fraction of 1.
    pub share: f64,
}

/// Measurement by a program of the host, as a benchmark prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// The load or program.
    pub name: String,
    /// Bytes it moved.
    pub bytes: u64,
    /// Start of the measurement.
    pub from_fs: u64,
    /// Arrival of the last of them.
    pub to_fs: u64,
    /// Bits per second between these times.
    pub payload_bps: f64,
    /// Durations of its calls, if it makes calls.
    pub calls: Option<Calls>,
}

/// Calls of a program of the host, each from its beginning until software heard of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Calls {
    /// Calls that are over.
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: f64,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// The longest, in nanoseconds.
    pub max_ns: f64,
    /// Interrupts that software took meanwhile.
    pub interrupts: u64,
}

/// One transaction of the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sample {
    /// Its flow: an index in `flows`.
    pub flow: usize,
    /// Its number, as in the ladder.
    #[schemars(extend("x-revision" = 3))]
    pub transaction: u64,
    /// Its operation.
    #[schemars(extend("x-revision" = 3))]
    pub access: Access,
    /// Its first address, hexadecimal; of a configuration register, its address in the processor's map (ECAM).
    #[schemars(extend("x-revision" = 3))]
    pub address: String,
    /// Its length.
    #[schemars(extend("x-revision" = 3))]
    pub bytes: u64,
    /// The function that sent its requests: `03:00.0`.
    #[schemars(extend("x-revision" = 3))]
    pub requester: String,
    /// Tag of the request that brought its last byte; null if that was a posted one.
    #[schemars(extend("x-revision" = 3))]
    pub tag: Option<u16>,
    /// Start.
    pub start_fs: u64,
    /// Time until its last byte.
    pub latency_ns: f64,
    /// Links that it crossed: indices in `links`, in any order.
    pub links: Vec<usize>,
    /// Its latency by cause.
    pub causes_ns: Vec<f64>,
    /// The same time: each with cause, place (an index in `places`), flow in front (-1: none) and nanoseconds; left out if not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(usize, usize, i64, f64)>,
}
