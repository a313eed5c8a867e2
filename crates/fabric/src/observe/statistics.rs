//! Statistics of transactions that have ended, by flow: counts, latency, causes of the time.

use crate::observe::timeline::{Gauge, SeriesId, Timeline};
use crate::packet::attribution::{Cause, Interval, Ledger, Place};
use crate::packet::transactions::Ending;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};

/// Latencies in steps of a 32nd of an octave (about 2 %), each with the sum of its causes.
#[derive(Clone)]
pub struct CauseHistogram {
    /// The number of the first bucket: what is below the shortest latency has none.
    first: usize,
    /// Most of them are empty, and have none.
    buckets: VecDeque<Option<Box<Bucket>>>,
}

/// A step of a [`CauseHistogram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Transactions in it.
    pub count: u64,
    /// Total time in femtoseconds by cause, in the order of [`Cause::ALL`].
    pub causes_fs: [u128; Cause::COUNT],
}

impl CauseHistogram {
    fn new() -> Self {
        Self { first: 0, buckets: VecDeque::new() }
    }

    /// 32 steps per octave above 32 fs: the step's number.
    fn index(latency: Duration) -> usize {
        let fs = latency.as_fs().max(32);
        let octave = 63 - fs.leading_zeros();
        ((octave - 5) * 32 + ((fs >> (octave - 5)) & 31) as u32) as usize
    }

    /// The latencies a step stands for: from, and up to but without.
    fn range(index: usize) -> (Duration, Duration) {
        let edge = |i: usize| Duration::from_fs((32 + (i % 32) as u64) << (i / 32));
        (edge(index), edge(index + 1))
    }

    fn record(&mut self, latency: Duration, intervals: &[Interval]) {
        let index = Self::index(latency);
        if self.buckets.is_empty() {
            self.first = index;
        }
        while index < self.first {
            self.buckets.push_front(None);
            self.first -= 1;
        }
        let index = index - self.first;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, None);
        }
        let bucket = self.buckets[index].get_or_insert_default();
        bucket.count += 1;
        for interval in intervals {
            bucket.causes_fs[interval.cause() as usize] += u128::from(interval.duration.as_fs());
        }
    }

    /// The steps that hold something: from, up to, contents.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, Duration, &Bucket)> {
        (self.first..).zip(&self.buckets).filter_map(|(i, bucket)| {
            let (from, to) = Self::range(i);
            Some((from, to, &**bucket.as_ref()?))
        })
    }
}

/// Transactions of a flow that did not end well.
#[derive(Clone)]
pub struct Failures {
    /// Their ending.
    pub ending: Ending,
    /// Their number.
    pub count: u64,
    /// The sum of their latencies in femtoseconds.
    pub latency_sum_fs: u128,
    attribution: Totals,
}

impl Failures {
    /// As [`FlowStatistics::attribution`].
    pub fn attribution(&self) -> impl Iterator<Item = (Interval, u128)> {
        self.attribution.intervals()
    }
}

/// Time by place, cause and behind whom. A flow comes to few of all places: only those have a row.
#[derive(Clone)]
struct Totals {
    rows: Vec<Option<Box<[u128]>>>,
    kinds: usize,
}

impl Totals {
    fn new(places: usize, kinds: usize) -> Self {
        Self { rows: vec![None; places], kinds }
    }
    fn add(&mut self, interval: &Interval) {
        let row = &mut self.rows[usize::from(interval.place.0)];
        let row = row.get_or_insert_with(|| vec![0; self.kinds].into());
        row[usize::from(interval.kind)] += u128::from(interval.duration.as_fs());
    }
    fn intervals(&self) -> impl Iterator<Item = (Interval, u128)> {
        let rows = (0..).map(Place).zip(&self.rows);
        rows.flat_map(|(place, row)| row.iter().map(move |row| (place, row))).flat_map(|(place, row)| {
            let kinds = (0..).zip(row).filter(|(_, fs)| **fs > 0);
            kinds.map(move |(kind, &fs)| (Interval { duration: Duration::ZERO, place, kind }, fs))
        })
    }
}

/// The statistics of a flow.
#[derive(Clone)]
pub struct FlowStatistics {
    /// Transactions that ended well after the warm-up.
    pub transactions: u64,
    /// Bytes of payload that arrived after the warm-up.
    pub bytes: u64,
    /// Transactions that ended otherwise after the warm-up, by how.
    pub failed: Vec<Failures>,
    /// Latency in picoseconds.
    pub latency_ps: Histogram<u64>,
    /// Exact extremes and sum.
    pub latency_min: Duration,
    /// The longest.
    pub latency_max: Duration,
    /// The sum, for the mean, in femtoseconds.
    pub latency_sum_fs: u128,
    /// Latency by cause.
    pub causes: CauseHistogram,
    /// Total time by (place, kind); see [`FlowStatistics::attribution`].
    attribution: Totals,
    places: usize,
    /// Arrival of the first bytes counted; before any [`Time::NEVER`].
    pub first_arrival: Time,
    /// Arrival of the last byte counted.
    pub last_arrival: Time,
    pub(crate) series: SeriesId,
    /// Transactions under way, where that is kept.
    pub(crate) outstanding: Option<Gauge>,
}

impl FlowStatistics {
    pub(crate) fn new(places: usize, flows: usize, timeline: &mut Timeline) -> Self {
        let kinds = Cause::COUNT + flows;
        Self {
            transactions: 0,
            bytes: 0,
            failed: Vec::new(),
            latency_ps: Histogram::new(3).expect("three digits are possible"),
            latency_min: Duration::MAX,
            latency_max: Duration::ZERO,
            latency_sum_fs: 0,
            causes: CauseHistogram::new(),
            attribution: Totals::new(places, kinds),
            places,
            first_arrival: Time::NEVER,
            last_arrival: Time::ZERO,
            series: timeline.add_series(),
            outstanding: None,
        }
    }

    /// Payload has arrived, which began to come at `from`.
    pub(crate) fn arrived(&mut self, from: Time, now: Time, bytes: u64, timeline: &mut Timeline) {
        self.bytes += bytes;
        self.first_arrival = self.first_arrival.min(now);
        self.last_arrival = now;
        timeline.spread(self.series, from, now, bytes);
    }

    /// A transaction has ended well; `ledger` is that of its last byte.
    pub(crate) fn ended(&mut self, latency: Duration, ledger: &Ledger) {
        self.transactions += 1;
        // No longer than time lasts, 2^64 fs; the histogram grows as far as it has to.
        self.latency_ps.record((latency.as_fs() / 1000).max(1)).expect("it grows");
        self.latency_min = self.latency_min.min(latency);
        self.latency_max = self.latency_max.max(latency);
        self.latency_sum_fs += u128::from(latency.as_fs());
        ledger.intervals().iter().for_each(|interval| self.attribution.add(interval));
        self.causes.record(latency, ledger.intervals());
    }

    /// A transaction has ended otherwise; `ledger` is that of the last that is known of it.
    pub(crate) fn failed(&mut self, ending: Ending, latency: Duration, ledger: &Ledger) {
        let found = self.failed.iter().position(|failures| failures.ending == ending);
        let index = found.unwrap_or_else(|| {
            let attribution = Totals::new(self.places, self.attribution.kinds);
            self.failed.push(Failures { ending, count: 0, latency_sum_fs: 0, attribution });
            self.failed.len() - 1
        });
        let failures = &mut self.failed[index];
        failures.count += 1;
        failures.latency_sum_fs += u128::from(latency.as_fs());
        ledger.intervals().iter().for_each(|interval| failures.attribution.add(interval));
    }

    /// Total time, in femtoseconds, of all transactions' critical paths by place, cause and behind whom. The interval's own
    /// duration is zero.
    pub fn attribution(&self) -> impl Iterator<Item = (Interval, u128)> {
        self.attribution.intervals()
    }

    /// Transactions that ended in some way.
    pub fn count_of(&self, ending: Ending) -> u64 {
        self.failed.iter().find(|failures| failures.ending == ending).map_or(0, |failures| failures.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_steps_tile_the_axis() {
        let mut last = CauseHistogram::range(0).0;
        for index in 0..1500 {
            let (from, to) = CauseHistogram::range(index);
            assert_eq!(from, last);
            assert_eq!(CauseHistogram::index(from), index);
            assert_eq!(CauseHistogram::index(to - Duration::from_fs(1)), index);
            last = to;
        }
    }
}
