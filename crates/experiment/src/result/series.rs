//! Everything over time, in bins.

use super::words::ResourceKind;
use schemars::JsonSchema;
use serde::Serialize;

/// Everything over time, in bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Start of the first bin.
    pub start_fs: u64,
    /// Width of a bin.
    pub bin_fs: u64,
    /// Number of bins; every array has as many entries.
    pub bins: usize,
    /// Payload of flows.
    pub flows: Vec<FlowSeries>,
    /// Use of the wires.
    pub directions: Vec<DirectionSeries>,
    /// Tags, credits, buffers.
    pub resources: Vec<Resource>,
}

/// Payload of a flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FlowSeries {
    /// The flow: an index in `flows`.
    pub flow: usize,
    /// Bytes that arrived in each bin.
    pub bytes: Vec<u64>,
    /// Transactions under way, from their owner's request to their end: the mean of each bin; null if not kept.
    #[schemars(extend("x-revision" = 3))]
    pub outstanding_mean: Option<Vec<f64>>,
    /// The same: the largest of each bin.
    #[schemars(extend("x-revision" = 3))]
    pub outstanding_max: Option<Vec<u64>>,
}

/// Fractions of each bin; the rest to 1 is idle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DirectionSeries {
    /// The link: an index in `links`.
    pub link: usize,
    /// 0: up, 1: down.
    pub direction: usize,
    /// Payload of TLPs.
    pub payload: Vec<f64>,
    /// Headers, framing, sequence numbers and CRCs.
    pub overhead: Vec<f64>,
    /// DLLPs.
    pub dllp: Vec<f64>,
    /// Ordered sets.
    pub ordered_sets: Vec<f64>,
    /// Copies.
    pub replay: Vec<f64>,
}

/// Use of a countable resource over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Resource {
    /// Its name: `tags of ssd`.
    pub name: String,
    /// Kind of the resource.
    pub kind: ResourceKind,
    /// The link it belongs to, an index in `links`; for the tags of a device, the device's link.
    pub link: Option<usize>,
    /// The direction it belongs to: 0 is up, 1 down; null where it belongs to no direction.
    pub direction: Option<usize>,
    /// Capacity; null: no limit.
    pub capacity: Option<u64>,
    /// The unit: `tags`, `TLPs`, `credits`, `credits of 16 B`.
    pub unit: String,
    /// Mean of each bin.
    pub mean: Vec<f64>,
    /// Largest of each bin.
    pub max: Vec<u64>,
}
