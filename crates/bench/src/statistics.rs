//! Statistics of a stream of samples, in memory that does not grow with it.

use std::collections::BTreeMap;

/// The count of each value: exact, since timestamps fall on a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    counts: BTreeMap<u64, u64>,
    samples: u64,
    sum: u128,
}

impl Distribution {
    /// One more sample.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// The same sample so many times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        *self.counts.entry(value).or_default() += times;
        self.samples += times;
        self.sum += u128::from(value) * u128::from(times);
    }

    /// Samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Each value that came with the number of times, smallest first.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(value, count)| (*value, *count))
    }

    /// The smallest value.
    pub fn min(&self) -> Option<u64> {
        self.counts.first_key_value().map(|(value, _)| *value)
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        self.counts.last_key_value().map(|(value, _)| *value)
    }

    /// The average.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }

    /// The smallest value that at least `per_mille` of 1000 samples do not exceed: 500 is the median.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let rank = (u128::from(self.samples) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        self.counts().find_map(|(value, count)| {
            seen += u128::from(count);
            (seen >= rank).then_some(value)
        })
    }

    /// Each value that came, with the part of the samples that do not exceed it.
    pub fn cdf(&self) -> impl Iterator<Item = (u64, f64)> {
        let mut seen = 0;
        self.counts().map(move |(value, count)| {
            seen += count;
            (value, seen as f64 / self.samples as f64)
        })
    }
}

/// Sums over time in at most [`Series::BINS`] bins, each of as many entries as any other but the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    bins: Vec<Bin>,
    /// Entries of a bin; doubled when the bins are used up.
    each: u64,
}

/// Consecutive entries of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The start of the first, femtoseconds.
    pub from: u64,
    /// The end of the last.
    pub to: u64,
    /// The number.
    pub entries: u64,
    /// Sum of their values.
    pub sum: u128,
}

impl Default for Series {
    fn default() -> Self {
        Self { bins: Vec::new(), each: 1 }
    }
}

impl Series {
    /// Bins at most.
    pub const BINS: usize = 512;

    /// One more entry, from and to in femtoseconds.
    pub fn record(&mut self, from: u64, to: u64, value: u64) {
        match self.bins.last_mut() {
            Some(bin) if bin.entries < self.each => {
                bin.to = to;
                bin.entries += 1;
                bin.sum += u128::from(value);
            }
            _ => {
                if self.bins.len() == Self::BINS {
                    self.halve();
                }
                self.bins.push(Bin { from, to, entries: 1, sum: value.into() });
            }
        }
    }

    /// The bins so far.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    fn halve(&mut self) {
        self.each *= 2;
        let pairs = self.bins.chunks(2).map(|pair| {
            let (first, last) = (pair[0], pair[pair.len() - 1]);
            Bin {
                from: first.from,
                to: last.to,
                entries: pair.iter().map(|b| b.entries).sum(),
                sum: pair.iter().map(|b| b.sum).sum(),
            }
        });
        self.bins = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let mut distribution = Distribution::default();
        assert_eq!((distribution.quantile(500), distribution.mean(), distribution.min()), (None, None, None));
        for value in [35, 33, 33, 34, 90, 33, 34, 35, 33, 36] {
            distribution.record(value);
        }
        let quantiles = [0, 400, 401, 500, 600, 900, 901, 950, 999, 1000].map(|p| distribution.quantile(p));
        assert_eq!(quantiles.map(Option::unwrap), [33, 33, 34, 34, 34, 36, 90, 90, 90, 90]);
        assert_eq!((distribution.min(), distribution.max()), (Some(33), Some(90)));
        assert_eq!(distribution.mean(), Some(39.6));
        let cdf: Vec<_> = distribution.cdf().collect();
        assert_eq!(cdf, [(33, 0.4), (34, 0.6), (35, 0.8), (36, 0.9), (90, 1.0)]);
    }

    #[test]
    fn a_series_of_any_length_keeps_its_sums() {
        let mut series = Series::default();
        for n in 0..100_003 {
            series.record(n * 10, n * 10 + 10, n % 7);
        }
        let bins = series.bins();
        assert!(bins.len() > Series::BINS / 4 && bins.len() <= Series::BINS, "{}", bins.len());
        assert_eq!(bins.iter().map(|b| b.entries).sum::<u64>(), 100_003);
        assert_eq!(
            bins.iter().map(|b| b.sum).sum::<u128>(),
            (0..100_003).map(|n| u128::from(n % 7u64)).sum()
        );
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from), "no gap");
    }
}
