//! Latency that varies: draws from a distribution that is given by its quantiles, in integers.

use crate::config::WHOLE;
use tlplab_device::Random;
use tlplab_units::Duration;

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
        const UNIT: u64 = 1 << 32;
        let rank = (self.random.next() >> 32) * u64::from(WHOLE);
        let above = self.quantiles.partition_point(|(at, _)| u64::from(*at) * UNIT <= rank);
        // The rank is below 1, which the last quantile has, and at least 0, which the first one has.
        let ((from, low), (to, high)) = (self.quantiles[above - 1], self.quantiles[above]);
        let part = u128::from(rank - u64::from(from) * UNIT) * u128::from((high - low).as_fs());
        low + Duration::from_fs((part / u128::from(u64::from(to - from) * UNIT)) as u64)
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
}
