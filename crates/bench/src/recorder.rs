//! The progress reports of a run, on any target.

use crate::case::{Case, Test};
use crate::clock::Clock;
use crate::statistics::{Distribution, Series};
use crate::target::Measured;
use tlplab_units::Time;

/// Turns the operations of a case, as they end, into what was [`Measured`]. Memory does not grow with their number.
#[derive(Debug)]
pub struct Recorder {
    case: Case,
    clock: Clock,
    /// Operations of reads and writes in turn for each that is counted.
    each: u64,
    /// Transfers before those that are measured, of which a latency case does not tell; and all that are told.
    warmup: u64,
    total: u64,
    ended: u64,
    /// Of measured operations: when the first began, and the last ended.
    first: Option<Time>,
    last: Time,
    latency: Distribution,
    series: Series,
}

impl Recorder {
    /// Of a case, with timestamps of `clock`.
    pub fn new(case: &Case, clock: Clock) -> Self {
        let (count, warmup) = case.counts();
        let warmup = if case.test.is_latency() { 0 } else { warmup };
        let each = if case.test == Test::BwRdwr { 2 } else { 1 };
        Self {
            case: case.clone(),
            clock,
            each,
            warmup: each * warmup,
            total: each * (warmup + count),
            ended: 0,
            first: None,
            last: Time::ZERO,
            latency: Distribution::default(),
            series: Series::default(),
        }
    }

    /// The measured part of the case, 0 to 1.
    pub fn fraction(&self) -> f64 {
        (self.ended as f64 / self.total.max(1) as f64).min(1.0)
    }

    /// A measured operation of a latency case is over.
    pub fn latency(&mut self, begun: Time, ended: Time) {
        let ticks = self.clock.ticks(ended) - self.clock.ticks(begun);
        self.ended += 1;
        self.first.get_or_insert(begun);
        self.last = ended;
        self.latency.record(ticks);
        self.series.record(begun.as_fs(), ended.as_fs(), ticks);
    }

    /// A transfer of a bandwidth case is over. The measurement begins when the last of those before it ends.
    pub fn transfer(&mut self, at: Time) {
        self.ended += 1;
        if self.ended > self.warmup {
            self.series.record(self.last.as_fs(), at.as_fs(), self.case.size);
        } else {
            self.first = Some(at);
        }
        self.last = at;
    }

    /// The measurement; not `complete` if it was stopped.
    pub fn measured(&mut self, complete: bool) -> Measured {
        let operations = match self.case.test.is_latency() {
            true => self.latency.samples(),
            false => self.ended.saturating_sub(self.warmup) / self.each,
        };
        Measured {
            case: self.case.clone(),
            complete,
            clock: self.clock,
            elapsed: self.last.saturating_since(self.first.unwrap_or(self.last)),
            operations,
            latency: std::mem::take(&mut self.latency),
            series: std::mem::take(&mut self.series),
        }
    }
}
