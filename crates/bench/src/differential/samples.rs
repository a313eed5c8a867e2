//! The kept durations of the reads of one target.

use crate::Distribution;

/// Parts of the samples whose minima are compared.
const PARTS: usize = 8;

/// The durations of the reads of one target, in ticks of a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    ticks: Distribution,
    /// Minima of every eighth sample, from the first, the second, … on.
    minima: [Option<u64>; PARTS],
}

impl Samples {
    /// One more read.
    pub fn record(&mut self, ticks: u64) {
        let part = &mut self.minima[(self.ticks.samples() % PARTS as u64) as usize];
        *part = Some(part.map_or(ticks, |least| least.min(ticks)));
        self.ticks.record(ticks);
    }

    /// The number of each duration.
    pub fn ticks(&self) -> &Distribution {
        &self.ticks
    }

    /// Reads.
    pub fn count(&self) -> u64 {
        self.ticks.samples()
    }

    /// The shortest read, in ticks.
    pub fn min(&self) -> Option<u64> {
        self.ticks.min()
    }

    /// By how much the minima of eight parts of the samples disagree: what an eighth of the samples could have missed. `None` below
    /// eight samples.
    pub fn disagreement(&self) -> Option<u64> {
        let most =
            self.minima.iter().copied().try_fold(0, |most: u64, part| part.map(|least| most.max(least)))?;
        Some(most - self.min()?)
    }

    /// Standard deviation, in ticks.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.ticks.mean()?;
        let squares: f64 =
            self.ticks.counts().map(|(value, count)| count as f64 * (value as f64 - mean).powi(2)).sum();
        Some((squares / self.count() as f64).sqrt())
    }

    /// Durations and how many reads took so long or less, but longer than the one before: some hundred of them, the minimum exact.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        const FINENESS: u64 = 1024;
        let mut bins: Vec<(u64, u64)> = Vec::new();
        let mut from = 0;
        for (value, count) in self.ticks.counts() {
            match bins.last_mut() {
                Some(bin) if bins_together(from, value, FINENESS) && bin.0 != self.min().unwrap_or(0) => {
                    *bin = (value, bin.1 + count);
                }
                _ => {
                    from = value;
                    bins.push((value, count));
                }
            }
        }
        bins
    }
}

fn bins_together(from: u64, value: u64, fineness: u64) -> bool {
    value - from <= from / fineness
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One lucky sample among a thousand is a minimum that seven eighths of the samples never saw.
    #[test]
    fn a_minimum_that_came_once_is_not_agreed_upon() {
        let mut samples = Samples::default();
        (0..1000).for_each(|number| samples.record(if number == 500 { 900 } else { 1000 + number % 3 }));
        assert_eq!((samples.min(), samples.disagreement()), (Some(900), Some(100)));
        let mut steady = Samples::default();
        (0..1000).for_each(|number| steady.record(1000 + number % 3));
        assert_eq!(steady.disagreement(), Some(0));
        let mut few = Samples::default();
        (0..7).for_each(|_| few.record(5));
        assert_eq!(few.disagreement(), None);
    }

    #[test]
    fn the_histogram_keeps_every_read_and_the_minimum() {
        let mut samples = Samples::default();
        (0..100_000_u64).for_each(|number| samples.record(50_000 + number * number % 30_011));
        let bins = samples.histogram();
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<u64>(), 100_000);
        assert_eq!(bins[0].0, samples.min().unwrap());
        assert!(bins.len() < 1000 && bins.is_sorted());
    }
}
