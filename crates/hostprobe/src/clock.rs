//! The tick of the processor's counter, and the cost of reading it twice.

use super::{Failure, counter};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time for which the counter is compared with the system's clock.
const COMPARED: Duration = Duration::from_millis(200);
const READS: usize = 20_000;

/// The counter, compared with `CLOCK_MONOTONIC_RAW`, which nothing slews.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// The name of the counter.
    pub name: &'static str,
    /// Nanoseconds of a tick.
    pub ns_per_tick: f64,
    /// The counter goes up by a multiple of this many ticks: 9 on the machine of Miller et al. (2009), 3 ns at 3 GHz.
    pub step_ticks: u64,
    /// The least that an empty measurement reads.
    pub overhead_ticks: u64,
}

impl Calibration {
    /// Measures the counter, for a fifth of a second.
    ///
    /// # Errors
    /// There is no usable counter.
    pub fn measure() -> Result<Self, Failure> {
        if let Some(why) = counter::objection() {
            return Err(Failure::Machine(format!("nothing can be timed: {why}")));
        }
        let (from, from_ns) = both();
        std::thread::sleep(COMPARED);
        let (to, to_ns) = both();
        if to <= from {
            return Err(Failure::Machine(format!(
                "nothing can be timed: the counter {} stands still",
                counter::NAME
            )));
        }
        let mut step_ticks = 0;
        let mut overhead_ticks = u64::MAX;
        let mut last = counter::begin();
        for _ in 0..READS {
            let (begin, end) = (counter::begin(), counter::end());
            overhead_ticks = overhead_ticks.min(end.wrapping_sub(begin));
            step_ticks = common_divisor(step_ticks, begin.wrapping_sub(last));
            last = begin;
        }
        Ok(Self {
            name: counter::NAME,
            ns_per_tick: (to_ns - from_ns) as f64 / (to - from) as f64,
            step_ticks: step_ticks.max(1),
            overhead_ticks,
        })
    }

    /// Ticks in nanoseconds.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }
}

/// The counter and the system's clock at the same moment: of many attempts, the one that took least.
fn both() -> (u64, i64) {
    let attempt = || {
        let begin = counter::begin();
        let system =
            clock_gettime(ClockId::CLOCK_MONOTONIC_RAW).expect("Linux has had this clock since 2.6.28");
        let end = counter::end();
        (
            end.wrapping_sub(begin),
            begin + end.wrapping_sub(begin) / 2,
            system.tv_sec() * 1_000_000_000 + system.tv_nsec(),
        )
    };
    let (_, ticks, ns) = (0..200).map(|_| attempt()).min_by_key(|(took, ..)| *took).expect("200 attempts");
    (ticks, ns)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.1 ticks per ns that only goes up in threes has a step of 3 at any cost of reads.
    #[test]
    fn clock_step_is_the_common_divisor_of_all_differences() {
        assert_eq!([45, 60, 51].into_iter().fold(0, common_divisor), 3);
        assert_eq!([0, 0, 40].into_iter().fold(0, common_divisor), 40);
        assert_eq!([40, 41].into_iter().fold(0, common_divisor), 1);
    }

    /// A sleep of the system's clock is as long by the counter; half a percent is more than it is ever wrong by.
    #[test]
    fn the_counter_agrees_with_the_clock() {
        if counter::objection().is_some() {
            eprintln!("skipped: no counter here");
            return;
        }
        let clock = Calibration::measure().unwrap();
        let (from, from_ns) = both();
        std::thread::sleep(Duration::from_millis(50));
        let (to, to_ns) = both();
        let ratio = clock.ns(to - from) / (to_ns - from_ns) as f64;
        assert!((0.995..1.005).contains(&ratio), "{ratio}");
    }
}
