//! The same point with several seeds, and when it has been run often enough.

use crate::figures::Metrics;
use crate::study::Named;

/// The number of runs of a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    /// The first seed and how many there are, one after the other; `None`: once, with the seed of the experiment.
    pub seeds: Option<(u64, u32)>,
    /// The condition for fewer runs.
    pub until: Option<Narrow>,
}

/// A metric whose mean is known well enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrow {
    /// The metric.
    pub metric: Named,
    /// Half of the 95 % confidence interval is at most this share of the mean.
    pub within: f64,
}

/// So many seeds are run at least: of fewer the spread says nothing.
const LEAST: usize = 3;

/// Quantiles 0.975 of Student's distribution, from one degree of freedom on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Mean, and half of the 95 % confidence interval of the mean; `None` of fewer than two.
pub fn confidence(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / freedom as f64;
    // Beyond the table, the first terms of the expansion around the normal distribution.
    let student = STUDENT.get(freedom - 1).copied().unwrap_or(1.960 + 2.373 / freedom as f64);
    Some((mean, student * (variance / count).sqrt()))
}

impl Repeats {
    /// The largest number of runs.
    pub fn most(&self) -> usize {
        self.seeds.map_or(1, |(_, count)| count as usize)
    }

    /// The seed of a repeat, counted from 0; `None`: the experiment's.
    pub fn seed(&self, repeat: usize) -> Option<u64> {
        self.seeds.map(|(first, _)| first.wrapping_add(repeat as u64))
    }

    /// True if a point has been run often enough, of whose repeats these are the metrics, in their order.
    pub fn is_enough(&self, repeats: &[&Metrics]) -> bool {
        if repeats.len() >= self.most() {
            return true;
        }
        let Some(Narrow { metric, within }) = &self.until else { return false };
        let values: Option<Vec<f64>> = repeats.iter().map(|one| metric.of(one)).collect();
        let Some(values) = values.filter(|values| values.len() >= LEAST) else { return false };
        confidence(&values).is_some_and(|(mean, half)| half <= within * mean.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 9, 10, 11 have mean 10 and standard deviation 1; 4.303 / √3 = 2.4843.
    #[test]
    fn the_interval_is_students() {
        let (mean, half) = confidence(&[9.0, 10.0, 11.0]).unwrap();
        assert!((mean - 10.0).abs() < 1e-12 && (half - 2.4843).abs() < 1e-4, "{mean} {half}");
        assert_eq!(confidence(&[1.0]), None);
        // The table and what follows it meet: the quantile of 31 degrees of freedom is 2.0395.
        let many: Vec<f64> = (0..32).map(|n| f64::from(n % 2)).collect();
        let (_, half) = confidence(&many).unwrap();
        let deviation = (32.0 * 0.25 / 31.0_f64).sqrt();
        assert!((half / (deviation / 32.0_f64.sqrt()) - 2.0395).abs() < 0.005);
    }

    #[test]
    fn a_point_is_run_until_its_mean_is_known() {
        let metric = Named::parse("throughput").unwrap();
        let repeats = Repeats { seeds: Some((5, 10)), until: Some(Narrow { metric, within: 0.25 }) };
        let of = |value: f64| Metrics::from([("throughput".to_owned(), value)]);
        let (nine, ten, eleven) = (of(9.0), of(10.0), of(11.0));
        assert!(!repeats.is_enough(&[&nine, &nine]), "two say nothing, even if they are the same");
        assert!(repeats.is_enough(&[&nine, &ten, &eleven]), "2.4843 is at most a quarter of 10");
        assert!(!repeats.is_enough(&[&of(8.0), &ten, &of(12.0)]));
        assert!(!repeats.is_enough(&[&nine, &Metrics::default(), &eleven]), "what is missing is not narrow");
        assert_eq!(repeats.seed(2), Some(7));
        assert!(Repeats::default().is_enough(&[&nine]) && Repeats::default().seed(0).is_none());
    }
}
