//! Percentiles of times that need not all be remembered.

use std::collections::BTreeMap;
use tlplab_units::Duration;

/// As many different times are kept as they are.
const EXACT: usize = 4096;
/// Of more than that, as many leading bits count: one part in 1024, and 1024 of them for each power of two.
const BITS: u32 = 11;

/// Percentiles of latencies: exact where there are no more than 4096 different ones, else up to 0.1 % too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Their number.
    pub count: u64,
    /// The shortest, exact.
    pub min: Duration,
    /// The lower median.
    pub p50: Duration,
    /// Nine of ten are not longer.
    pub p90: Duration,
    /// 99 of 100 are not longer.
    pub p99: Duration,
    /// The longest, exact.
    pub max: Duration,
}

/// Times that are counted.
#[derive(Default)]
pub(super) struct Latencies {
    /// The number of each, in femtoseconds.
    counts: BTreeMap<u64, u64>,
    rounds: bool,
    count: u64,
    /// The shortest and the longest.
    ends: Option<(Duration, Duration)>,
}

fn rounded(fs: u64) -> u64 {
    let dropped = (u64::BITS - fs.leading_zeros()).saturating_sub(BITS);
    fs >> dropped << dropped
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration) {
        let (min, max) = self.ends.unwrap_or((latency, latency));
        self.ends = Some((min.min(latency), max.max(latency)));
        self.count += 1;
        let fs = latency.as_fs();
        *self.counts.entry(if self.rounds { rounded(fs) } else { fs }).or_default() += 1;
        if !self.rounds && self.counts.len() > EXACT {
            self.rounds = true;
            for (fs, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(rounded(fs)).or_default() += count;
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let (min, max) = self.ends?;
        // The smallest value that so many percent do not pass.
        let at = |percent: u64| {
            let mut left = (self.count * percent).div_ceil(100);
            let found = self.counts.iter().find(|&(_, &count)| {
                left = left.saturating_sub(count);
                left == 0
            });
            found.map_or(max, |(&fs, _)| Duration::from_fs(fs)).max(min)
        };
        Some(Percentiles { count: self.count, min, p50: at(50), p90: at(90), p99: at(99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: impl IntoIterator<Item = u64>) -> Percentiles {
        let mut latencies = Latencies::default();
        all.into_iter().for_each(|ns| latencies.add(Duration::from_ns(ns)));
        // Over less than seven powers of two.
        assert!(latencies.counts.len() <= 7 << (BITS - 1));
        latencies.percentiles().unwrap()
    }

    #[test]
    fn few_are_exact() {
        let found = of([400, 1100, 5000, 1100]);
        let [min, middle, max] = [400, 1100, 5000].map(Duration::from_ns);
        assert_eq!(found, Percentiles { count: 4, min, p50: middle, p90: max, p99: max, max });
        assert_eq!(Latencies::default().percentiles(), None);
    }

    #[test]
    fn many_take_no_more_room_and_are_nearly_exact() {
        let found = of((0..100_000).map(|n| 1000 + n * 7919 % 100_000));
        assert_eq!(
            (found.count, found.min, found.max),
            (100_000, Duration::from_ns(1000), Duration::from_ns(100_999))
        );
        for (percentile, exact) in [(found.p50, 50_999), (found.p90, 90_999), (found.p99, 99_999)] {
            let below = 1.0 - percentile.as_fs() as f64 / Duration::from_ns(exact).as_fs() as f64;
            assert!((0.0..0.001).contains(&below), "{percentile:?} for {exact} ns");
        }
    }
}
