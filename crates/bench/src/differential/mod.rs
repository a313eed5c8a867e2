//! The differential method: how long each link takes, from reads of what is at its two ends (Miller et al., 2009).
//!
//! ```text
//! reads of every target, one at a time ──▶ Samples: minimum ──▶ attribute: far end − near end, with what it is worth ──▶ document
//! ```
//!
//! A single double word is read from a bridge, then from what is below it. The shortest of many reads is what nothing held up, and what the
//! two have in common (the program, the processor, the way to the bridge) goes out of their difference: the link and the two
//! ends' share of it remain, in both directions.
//!
//! * [`samples`]: what is kept of the reads of one target
//! * [`attribution`]: the differences, and which of them mean something
//! * [`document`]: all of it as JSON, `tlplab/differential/1`
//! * [`simulator`]: a simulated processor reads
//!
//! The reader of the machine at hand is elsewhere (`tlplab-hostprobe`).

pub mod attribution;
pub mod document;
pub mod samples;
pub mod simulator;

pub use attribution::{LinkLatency, Verdict, attribute};
pub use document::document;
pub use samples::Samples;

/// The clock that times reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// Its kind, such as `rdtsc`.
    pub source: String,
    /// Nanoseconds of a tick.
    pub ns_per_tick: f64,
    /// Ticks from one value that it shows to the next: 9 of 1/3 ns on the machine of the paper.
    pub step_ticks: u64,
    /// The time of an empty measurement, ns; it is not in the samples any more.
    pub overhead_ns: f64,
}

impl Clock {
    /// Nanoseconds from one value that it shows to the next.
    pub fn step_ns(&self) -> f64 {
        self.step_ticks as f64 * self.ns_per_tick
    }
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The root complex, or a function of it.
    Root,
    /// A bridge: a root port, a port of a switch, a bridge to a bus.
    Bridge,
    /// An end point.
    EndPoint,
}

impl Kind {
    /// As in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Bridge => "bridge",
            Self::EndPoint => "end point",
        }
    }
}

/// Something that is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The name of a component, or the address of a function.
    pub name: String,
    /// The target between it and the processor, as an index into the targets; it comes before. `None` if no readable target is there.
    pub parent: Option<usize>,
    /// Its kind.
    pub kind: Kind,
    /// The register that is read, such as `configuration 0x0` or `BAR 0 + 0x8`.
    pub register: String,
    /// The time of an Ack and an UpdateFC on the link above, ns: they may stand before the answer to the very read that they are for, at the same
    /// place in every sample. 0 where there is no link, or nothing is known of it.
    pub acknowledgements_ns: f64,
}
