//! The limit of a run, and its evidence.

use schemars::JsonSchema;
use serde::Serialize;

/// The limit of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// One sentence that names it.
    pub sentence: String,
    /// The resource and the evidence.
    pub limit: Limit,
    /// The next limit; null if no other is near.
    pub next: Option<Next>,
    /// The limits, if relaxing any of several gains as much; the first is `limit`. Empty where figures alone judge.
    pub limits: Vec<Limit>,
    /// Phases with different activity, one after the other: the limit of each. Empty where there is but one.
    pub phases: Vec<Phase>,
    /// The runs that the verdict was found by; null: by the figures of the run alone.
    pub tried: Option<Tried>,
}

/// A part of a run in which other flows were active than before, or a link was down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// Its beginning.
    pub from_fs: u64,
    /// Its end.
    pub until_fs: u64,
    /// The flows that were active; of an outage none.
    pub flows: Vec<String>,
    /// Limits of the phase: empty, if no relaxation would have carried more.
    pub limits: Vec<Limit>,
}

/// Runs in which one resource was relaxed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Tried {
    /// Number of candidates for the limit.
    pub candidates: usize,
    /// Number of relaxed candidates.
    pub tried: usize,
    /// Events of all these runs, including the cost of building their fabrics.
    pub events: u64,
    /// They were compared with the beginning of the run until here; null: with all of it.
    pub until_fs: Option<u64>,
    /// Relaxations that gained or cost something, the best first.
    pub gains: Vec<Gain>,
}

/// A resource, and the rate of the run with twice as much of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// Its name.
    pub resource: String,
    /// Kind of the resource.
    pub kind: LimitKind,
    /// The change: `16 → 32`.
    pub change: String,
    /// Additional payload of the run: 0.5 is half as much again.
    pub gain: f64,
}

/// The resource that limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Limit {
    /// Its name: a place, `tags of ssd`, `load nic`.
    pub resource: String,
    /// Kind of the resource.
    pub kind: LimitKind,
    /// The links that it belongs to: indices in `links` of the document; none if it belongs to no link.
    #[schemars(extend("x-revision" = 2))]
    pub links: Vec<usize>,
    /// Utilisation, a fraction of 1.
    pub utilization: f64,
    /// Figures that show it.
    pub evidence: Vec<String>,
    /// Additional payload of the run with twice as much of it: 0.5 is half as much again. Null: it was not tried.
    pub gain: Option<f64>,
    /// The change for that: `16 → 32`; null: it was not tried.
    pub change: Option<String>,
}

/// Kinds of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// A direction of a link is busy.
    Link,
    /// A parallel bus is busy.
    Bus,
    /// A requester has no free tag.
    Tags,
    /// A load allows itself no more transactions at once.
    Outstanding,
    /// A receiver's buffers are full.
    Credits,
    /// A transmitter's replay buffer is full, or copies take the wire.
    Replay,
    /// Host memory is busy, or the parts before it: page walks, the reads that the root complex serves.
    Memory,
    /// The load offers no more.
    Rate,
    /// TLPs go a longer way than they could.
    Routing,
    /// One thing happens after the other.
    Latency,
    /// Nothing happened.
    #[default]
    None,
}

/// The next limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Next {
    /// Its name.
    pub resource: String,
    /// Kind of the resource.
    pub kind: LimitKind,
    /// By how much throughput could grow before it limits: 0.4 is 40 %.
    pub headroom: f64,
    /// A sentence.
    pub text: String,
}
