//! The samples: every target in turn, a few reads at a time, so that what drifts meanwhile meets all of them alike.

use super::Failure;
use super::access::Access;
use std::time::{Duration, Instant};
use tlplab_bench::differential::Samples;

/// The condition to stop.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Samples of each target.
    pub samples: u64,
    /// All of them together.
    pub time: Duration,
}

/// The samples.
#[derive(Debug, Default)]
pub struct Collected {
    /// Of each target, in ticks of the counter, without what the counter itself costs.
    pub samples: Vec<Samples>,
    /// The number of reads of each that returned all ones, as reads without a completion do.
    pub ones: Vec<u64>,
    /// True if somebody ended it before the budget did.
    pub interrupted: bool,
}

/// Reads of a target in a row. The first after the others warms the caches; the minimum does not mind.
const BURST: u64 = 200;

/// Reads `targets` targets until the budget is spent or `watch`, which is told the part that is done, returns false.
///
/// # Errors
/// A target that cannot be read any more.
pub fn sample(
    access: &mut dyn Access,
    targets: usize,
    overhead_ticks: u64,
    budget: Budget,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Collected, Failure> {
    let mut all = Collected {
        samples: (0..targets).map(|_| Samples::default()).collect(),
        ones: vec![0; targets],
        interrupted: false,
    };
    let begun = Instant::now();
    let mut done = 0;
    while done < budget.samples {
        let burst = BURST.min(budget.samples - done);
        for target in 0..targets {
            for _ in 0..burst {
                let reading = access.read(target)?;
                all.samples[target].record(reading.ticks.saturating_sub(overhead_ticks));
                all.ones[target] += u64::from(reading.value == u32::MAX);
            }
            let spent = begun.elapsed().as_secs_f64() / budget.time.as_secs_f64();
            let part = spent
                .max((done + burst * (target as u64 + 1) / targets as u64) as f64 / budget.samples as f64);
            if !watch(part.min(1.0)) {
                all.interrupted = true;
                return Ok(all);
            }
        }
        done += burst;
        if begun.elapsed() >= budget.time {
            break;
        }
    }
    Ok(all)
}
