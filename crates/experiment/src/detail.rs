//! The detail of a document: of a fabric with hundreds of flows it names the largest, and sums up the others.
//!
//! The verdict is made of all there is, before. What is summed up adds up to the same as before: no time and no bytes are left out, but
//! for a share of the sample and resources that nothing ever took.

use crate::result::{Attribution, Document, Interval, Ladder, Resource, Series};
use std::collections::BTreeMap;
use tlplab_fabric::attribution::Cause;

/// The detail in which a document describes its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// At most some megabytes, however large the fabric.
    #[default]
    Limited,
    /// Everything that is known.
    All,
}

/// So many flows are told apart in all that is said of each of them.
const FLOWS: usize = 32;
/// Of more, so many of those that a flow queued behind at a place.
const BEHIND: usize = 3;
/// Numbers in all series together.
const VALUES: usize = 200_000;
/// Parts of all samples together.
const PARTS: usize = 20_000;
/// Series have no fewer bins.
const FEWEST_BINS: usize = 32;

/// Shortens what is too long.
pub(crate) fn limit(document: &mut Document) {
    if document.flows.len() > FLOWS {
        for flow in &mut document.flows {
            sum_up_queueing(&mut flow.attribution);
            flow.failures.iter_mut().for_each(|failures| sum_up_queueing(&mut failures.attribution));
        }
        document.ladder.iter_mut().for_each(sum_up_intervals);
        for sample in &mut document.samples {
            sum_up_parts(&mut sample.parts);
        }
    }
    let parts: usize = document.samples.iter().map(|sample| sample.parts.len()).sum();
    keep_every(&mut document.samples, parts.div_ceil(PARTS));
    limit_series(&mut document.series, document.end_fs);
}

/// Every n-th remains: of a uniform sample in the order of time, what remains is one.
fn keep_every<T>(all: &mut Vec<T>, n: usize) {
    let mut number = 0;
    all.retain(|_| {
        number += 1;
        n <= 1 || number % n == 1
    });
}

/// Of those that a flow queued behind at a place, the first few are named. They come in the order of their shares.
fn sum_up_queueing(attribution: &mut Vec<Attribution>) {
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    let mut others: BTreeMap<String, Attribution> = BTreeMap::new();
    attribution.retain(|row| {
        if row.behind.is_none() {
            return true;
        }
        let count = named.entry(row.place.clone()).or_default();
        *count += 1;
        if *count <= BEHIND {
            return true;
        }
        let sum = others.entry(row.place.clone()).or_insert_with(|| Attribution {
            behind: None,
            others: Some(0),
            total_ns: 0.0,
            share: 0.0,
            ..row.clone()
        });
        sum.total_ns += row.total_ns;
        sum.share += row.share;
        sum.others = sum.others.map(|others| others + 1);
        false
    });
    attribution.extend(others.into_values());
    attribution.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
}

/// The order of the flows that a TLP queued behind at a place is not known, so those that are not named come together, last.
fn sum_up_intervals(ladder: &mut Ladder) {
    for transaction in &mut ladder.transactions {
        let mut kept: Vec<Interval> = Vec::new();
        for block in transaction.intervals.chunk_by(waits_on) {
            let mut largest: Vec<&Interval> = block.iter().collect();
            largest.sort_by_key(|interval| std::cmp::Reverse(interval.duration_fs));
            let (named, others) = largest.split_at(BEHIND.min(largest.len()));
            let mut start_fs = block[0].start_fs;
            let mut add = |interval: Interval| {
                let duration_fs = interval.duration_fs;
                kept.push(Interval { start_fs, ..interval });
                start_fs += duration_fs;
            };
            let is_named = |interval: &&Interval| named.iter().any(|other| std::ptr::eq(*other, *interval));
            block.iter().filter(is_named).for_each(|interval| add(interval.clone()));
            if let Some(first) = others.first() {
                let duration_fs = others.iter().map(|interval| interval.duration_fs).sum();
                add(Interval { behind: None, duration_fs, ..(*first).clone() });
            }
        }
        transaction.intervals = kept;
    }
}

/// True if both are parts of one wait behind flows.
fn waits_on(a: &Interval, b: &Interval) -> bool {
    let queues = |interval: &Interval| interval.behind.is_some();
    queues(a) && queues(b) && a.place == b.place
}

type Part = (usize, usize, i64, f64);

fn sum_up_parts(parts: &mut Vec<Part>) {
    let queueing = Cause::Queueing as usize;
    let mut by_place: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (_, place, _, ns) in parts.iter().filter(|part| part.2 >= 0) {
        by_place.entry(*place).or_default().push(*ns);
    }
    for (place, times) in &mut by_place {
        if times.len() <= BEHIND {
            continue;
        }
        times.sort_by(|a, b| b.total_cmp(a));
        let least = times[BEHIND - 1];
        let (mut named, mut rest) = (0, 0.0);
        parts.retain(|part| {
            let here = part.1 == *place && part.2 >= 0;
            let keeps = !here || part.3 >= least && named < BEHIND;
            named += usize::from(here && keeps);
            rest += if keeps { 0.0 } else { part.3 };
            keeps
        });
        parts.push((queueing, *place, -1, rest));
    }
}

/// Bins are joined, and resources that nothing ever took left out, until the series are short enough.
fn limit_series(series: &mut Series, end_fs: u64) {
    let count =
        |series: &Series| 3 * series.flows.len() + 5 * series.directions.len() + 2 * series.resources.len();
    if count(series) * series.bins <= VALUES {
        return;
    }
    series.resources.retain(|resource| resource.max.iter().any(|most| *most > 0));
    while count(series) * series.bins > VALUES && series.bins > FEWEST_BINS {
        join_bins(series, end_fs);
    }
}

/// Two bins become one. The last ends with the run, and counts for as long as it is.
fn join_bins(series: &mut Series, end_fs: u64) {
    let last = (end_fs - series.start_fs).saturating_sub(series.bin_fs * (series.bins as u64 - 1));
    let share_of_last = (last as f64 / series.bin_fs as f64).min(1.0);
    let bins = series.bins;
    let join_means = |means: &mut Vec<f64>| {
        let weight = |bin: usize| if bin + 1 == bins { share_of_last } else { 1.0 };
        let joined = (0..bins.div_ceil(2)).map(|pair| {
            let all = 2 * pair..bins.min(2 * pair + 2);
            let whole: f64 = all.clone().map(weight).sum();
            all.map(|bin| means[bin] * weight(bin)).sum::<f64>() / whole
        });
        *means = joined.collect();
    };
    for flow in &mut series.flows {
        flow.bytes = flow.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        flow.outstanding_mean.iter_mut().for_each(join_means);
        flow.outstanding_max.iter_mut().for_each(join_largest);
    }
    for direction in &mut series.directions {
        let uses = [
            &mut direction.payload,
            &mut direction.overhead,
            &mut direction.dllp,
            &mut direction.ordered_sets,
            &mut direction.replay,
        ];
        uses.into_iter().for_each(join_means);
    }
    for Resource { mean, max, .. } in &mut series.resources {
        join_means(mean);
        join_largest(max);
    }
    series.bin_fs *= 2;
    series.bins = bins.div_ceil(2);
}

fn join_largest(max: &mut Vec<u64>) {
    *max = max.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{FlowSeries, Sample};

    fn queued(place: &str, behind: Option<&str>, total_ns: f64) -> Attribution {
        Attribution {
            cause: Cause::Queueing as usize,
            place: place.into(),
            behind: behind.map(Into::into),
            total_ns,
            share: total_ns / 100.0,
            others: None,
        }
    }

    #[test]
    fn queueing_behind_many_flows_adds_up_to_the_same() {
        let mut rows: Vec<_> =
            (0..40).map(|i| queued("a", Some(&format!("f{i}")), f64::from(40 - i))).collect();
        rows.extend([queued("b", Some("f1"), 30.5), queued("b", None, 3.0)]);
        rows.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
        let whole: f64 = rows.iter().map(|row| row.total_ns).sum();
        sum_up_queueing(&mut rows);
        assert_eq!(rows.iter().map(|row| row.total_ns).sum::<f64>(), whole);
        let named: Vec<_> =
            rows.iter().filter_map(|row| Some((row.place.as_str(), row.behind.as_deref()?))).collect();
        assert_eq!(named, [("a", "f0"), ("a", "f1"), ("a", "f2"), ("b", "f1")]);
        assert_eq!(rows[0].others, Some(37), "the sum of the others is the largest row");
    }

    #[test]
    fn a_ladder_leaves_no_gap() {
        let interval = |place: &str, behind: Option<usize>, start_fs, duration_fs| Interval {
            cause: 0,
            place: place.into(),
            behind: behind.map(|flow| flow.to_string()),
            start_fs,
            duration_fs,
        };
        let mut all = vec![interval("a", None, 0, 7)];
        all.extend((0..9).map(|i| interval("a", Some(i), 7 + 10 * i as u64, 10)));
        all.push(interval("b", Some(1), 97, 3));
        let mut ladder = Ladder::default();
        ladder.transactions.push(crate::result::Transaction { intervals: all, ..Default::default() });
        sum_up_intervals(&mut ladder);
        let intervals = &ladder.transactions[0].intervals;
        assert_eq!(intervals.len(), 1 + 3 + 1 + 1);
        assert!(intervals.windows(2).all(|pair| pair[0].start_fs + pair[0].duration_fs == pair[1].start_fs));
        assert_eq!(intervals.last().map(|last| last.start_fs + last.duration_fs), Some(100));
    }

    #[test]
    fn parts_of_a_sample_add_up_to_the_same() {
        let mut parts: Vec<Part> =
            (0..10).map(|i| (3, 7, i, 2.0)).chain([(1, 7, -1, 5.0), (3, 8, 2, 4.0)]).collect();
        sum_up_parts(&mut parts);
        assert_eq!(parts.iter().map(|part| part.3).sum::<f64>(), 29.0);
        assert_eq!(parts.len(), 3 + 1 + 2);
    }

    /// 100 bins and a half: bytes are the same in all, means are over time.
    #[test]
    fn joined_bins_keep_their_sums_and_means() {
        let bins = 101;
        let mut series = Series { start_fs: 0, bin_fs: 10, bins, ..Series::default() };
        series.flows.push(FlowSeries {
            bytes: vec![3; bins],
            outstanding_mean: Some((0..bins).map(|bin| bin as f64).collect()),
            outstanding_max: Some((0..bins as u64).collect()),
            ..FlowSeries::default()
        });
        let mean: Vec<f64> = (0..bins).map(|bin| bin as f64).collect();
        let integral = |mean: &[f64], width: f64, last: f64| {
            mean[..mean.len() - 1].iter().sum::<f64>() * width + mean[mean.len() - 1] * last
        };
        let before = integral(&mean, 10.0, 5.0);
        series.resources.push(Resource { mean, max: vec![1; bins], ..Resource::default() });
        for (bins, last) in [(51, 5.0), (26, 5.0), (13, 45.0)] {
            join_bins(&mut series, 1005);
            assert_eq!((series.bins, series.resources[0].mean.len()), (bins, bins));
            let after = integral(&series.resources[0].mean, series.bin_fs as f64, last);
            assert!((after - before).abs() < 1e-6 * before, "{after} {before}");
            let flow = &series.flows[0];
            assert_eq!(flow.outstanding_mean.as_ref(), Some(&series.resources[0].mean));
            assert_eq!(
                flow.outstanding_max.as_ref().map(|max| (max.len(), max[bins - 1])),
                Some((bins, 100))
            );
        }
        assert_eq!(series.flows[0].bytes.iter().sum::<u64>(), 303);
    }

    #[test]
    fn a_sample_is_thinned_evenly() {
        let mut samples: Vec<_> = (0..10).map(|flow| Sample { flow, ..Sample::default() }).collect();
        keep_every(&mut samples, 3);
        assert_eq!(samples.iter().map(|sample| sample.flow).collect::<Vec<_>>(), [0, 3, 6, 9]);
        keep_every(&mut samples, 0);
        assert_eq!(samples.len(), 4);
    }
}
