//! Latency that varies: draws from a distribution that is given by its quantiles, in integers.

use crate::config::WHOLE;
use tlplab_device::Random;
use tlplab_units::{Duration, Time};

/// The interval of memory refresh (tREFI of DDR3 and DDR4 up to 85 °C).
const REFRESH: Duration = Duration::from_ns(7800);
/// Ranks are counted in so many parts.
const UNIT: u64 = 1 << 32;

/// A distribution and the stream that it is drawn from.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    quantiles: Vec<(u32, Duration)>,
    random: Random,
}

impl Jitter {
    /// The quantiles have been checked; `None` if there are none.
    pub(super) fn new(quantiles: &[(u32, Duration)], random: Random) -> Option<Self> {
        (!quantiles.is_empty()).then(|| Self { quantiles: quantiles.to_vec(), random })
    }

    /// The next value.
    pub(super) fn draw(&mut self) -> Duration {
        let rank = self.random.next() >> 32;
        self.value(rank)
    }

    /// The value of a rank in units.
    fn value(&self, rank: u64) -> Duration {
        let rank = rank * u64::from(WHOLE);
        let above = self.quantiles.partition_point(|(at, _)| u64::from(*at) * UNIT <= rank);
        // The rank is below 1, which the last quantile has, and at least 0, which the first one has.
        let ((from, low), (to, high)) = (self.quantiles[above - 1], self.quantiles[above]);
        let part = u128::from(rank - u64::from(from) * UNIT) * u128::from((high - low).as_fs());
        low + Duration::from_fs((part / u128::from(u64::from(to - from) * UNIT)) as u64)
    }
}

/// A distribution whose values depend on when they are asked for: in each interval of a refresh they fall from the largest to the smallest,
/// as what has to wait for a refresh waits for its end, whenever in it it comes. At a random time the distribution is the given one.
#[derive(Clone, Debug)]
pub(super) struct Refreshed {
    jitter: Jitter,
    /// The interval that was asked for last, and where in it the values begin to fall.
    interval: u64,
    begins: u64,
}

impl Refreshed {
    /// The quantiles have been checked; `None` if there are none.
    pub(super) fn new(quantiles: &[(u32, Duration)], random: Random) -> Option<Self> {
        Jitter::new(quantiles, random).map(|mut jitter| {
            let begins = jitter.random.next() >> 32;
            Self { jitter, interval: 0, begins }
        })
    }

    /// The value now; times do not go back.
    pub(super) fn at(&mut self, now: Time) -> Duration {
        let (since, every) = ((now - Time::ZERO).as_fs(), REFRESH.as_fs());
        if since / every != self.interval {
            self.interval = since / every;
            self.begins = self.jitter.random.next() >> 32;
        }
        let position = (u128::from(since % every) * u128::from(UNIT) / u128::from(every)) as u64;
        self.jitter.value(UNIT - 1 - (position + UNIT - self.begins) % UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of what is drawn is the area under the quantiles, and as many draws lie below each quantile as it says.
    #[test]
    fn mean_and_quantiles_come_back() {
        let ns = Duration::from_ns;
        let quantiles =
            vec![(0, ns(10)), (250_000, ns(20)), (500_000, ns(20)), (990_000, ns(69)), (WHOLE, ns(1069))];
        let mut jitter = Jitter::new(&quantiles, Random::keyed(1, "host", "jitter")).unwrap();
        let count = 200_000;
        let mut drawn: Vec<_> = (0..count).map(|_| jitter.draw()).collect();
        drawn.sort_unstable();
        // 0.25 · 15 + 0.25 · 20 + 0.49 · 44.5 + 0.01 · 569
        let mean = drawn.iter().map(|d| d.as_fs() / 1000).sum::<u64>() / count;
        assert!(mean.abs_diff(36_245) < 300, "{mean} ps");
        for (rank, value) in &quantiles[1..4] {
            let below = drawn.partition_point(|d| d < value) as u64 * 1_000_000 / count;
            let to = drawn.partition_point(|d| d <= value) as u64 * 1_000_000 / count;
            assert!(
                below <= u64::from(rank + 4000) && to + 4000 >= u64::from(*rank),
                "{value:?}: {below} to {to}"
            );
        }
        assert!(drawn[0] >= ns(10) && drawn[drawn.len() - 1] <= ns(1069));
    }

    /// Within an interval what is asked for at once waits for the same end; over many intervals the distribution is the given one.
    #[test]
    fn a_refresh_is_waited_for_together() {
        // 2 % of the time is refresh, which lasts 156 ns.
        let quantiles = vec![(0, Duration::ZERO), (980_000, Duration::ZERO), (WHOLE, Duration::from_ns(156))];
        let mut jitter = Refreshed::new(&quantiles, Random::keyed(1, "host", "jitter")).unwrap();
        let (mut sum, mut waits, mut end) = (0, 0, None);
        let count: u64 = 78_000; // 100 intervals, every 10 ns
        for number in 0..count {
            let now = Time::ZERO + Duration::from_ns(10) * number;
            let wait = jitter.at(now);
            sum += wait.as_fs() / 1000;
            if wait.is_zero() {
                end = None;
                continue;
            }
            waits += u64::from(end.is_none());
            let ends = now + wait;
            assert!(end.is_none_or(|end: Time| ends.saturating_since(end) < Duration::from_ns(1)), "{now:?}");
            end = Some(end.map_or(ends, |end| end.max(ends)));
        }
        let mean = sum / count;
        assert!(mean.abs_diff(1560) < 100, "{mean} ps"); // 0.02 · 78 ns
        assert!((95..=125).contains(&waits), "{waits}");
    }
}
