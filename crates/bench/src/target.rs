//! The targets of measurements: a [`Target`] runs a [`Case`] and returns what it [`Measured`].

use crate::case::{Case, CaseError};
use crate::clock::Clock;
use crate::statistics::{Distribution, Series};
use tlplab_units::Duration;

/// Something that benchmarks can be run on: a closed form, the simulator, software, hardware.
pub trait Target {
    /// Runs a case. `watch` hears now and then how far it is, 0 to 1, and says whether to go on; what was measured until it said no
    /// comes back all the same.
    ///
    /// # Errors
    /// [`MeasureError`]: the case cannot be, or the run failed.
    fn run(&self, case: &Case, watch: &mut dyn FnMut(f64) -> bool) -> Result<Measured, MeasureError>;
}

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// True if all of it was measured, or it was stopped before its end.
    pub complete: bool,
    /// The clock of the timestamps.
    pub clock: Clock,
    /// From the beginning of the first measured operation to the end of the last.
    pub elapsed: Duration,
    /// Measured operations; of reads and writes in turn, those of one direction.
    pub operations: u64,
    /// Latencies in ticks of the clock; empty for bandwidth.
    pub latency: Distribution,
    /// The course of the run: latencies in nanoseconds, or bandwidth in Gb/s (of one direction), over time.
    pub series: Series,
}

/// The reason that a measurement failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeasureError {
    /// The case cannot be.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// Host, link or device cannot be.
    #[error(transparent)]
    Setup(#[from] tlplab_experiment::Error),
    /// A device profile cannot be.
    #[error("{0}")]
    Device(String),
    /// The target cannot do this.
    #[error("{0}")]
    Unsupported(String),
    /// The fabric cannot be built.
    #[error("the fabric cannot be built: {0}")]
    Build(String),
    /// The run failed.
    #[error("the run failed: {0}")]
    Failed(String),
}

impl Measured {
    /// Payload bandwidth in bits per second (of one direction); 0 if nothing was measured.
    pub fn bandwidth(&self) -> f64 {
        let bits = (self.operations * self.case.size * 8) as f64;
        if self.elapsed.is_zero() { 0.0 } else { bits / (self.elapsed.as_fs() as f64 * 1e-15) }
    }

    /// Nanoseconds of so many ticks.
    pub fn nanoseconds(&self, ticks: f64) -> f64 {
        ticks * f64::from(self.clock.cycles_per_tick) / self.clock.hz as f64 * 1e9
    }
}
