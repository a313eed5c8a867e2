//! Series over time in a fixed number of bins that double in width as the run goes on: memory does not grow with the run.

use std::borrow::Cow;
use tlplab_units::{Duration, Time};

/// Number of bins of every series.
pub(crate) const BINS: usize = 512;

/// Sums per bin, for any number of series that share their bins.
#[derive(Clone)]
pub(crate) struct Timeline {
    /// A bin is `2^shift` femtoseconds wide.
    shift: u32,
    series: Vec<Series>,
}

/// A series is brought to the width of the bins when something is added to it: most of a large fabric are seldom or never.
#[derive(Clone)]
struct Series {
    /// None until something is added.
    bins: Box<[u64]>,
    /// A bin of it is `2^shift` femtoseconds wide; [`EMPTY`] until something is added.
    shift: u32,
    merge: Merge,
}

const EMPTY: u32 = u32::MAX;

/// The rule by which two bins are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    Sum,
    Maximum,
}

/// One series of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesId(u32);

/// Time-weighted level of something with a capacity: tags in use, credits left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    integral: SeriesId,
    maximum: SeriesId,
    since: Time,
    level: u64,
    /// The sum in the bin of `since`, and the maximum there.
    sum: u64,
    peak: u64,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        // 2^20 fs: a nanosecond per bin at first, half a microsecond in all.
        Self { shift: 20, series: Vec::new() }
    }

    pub(crate) fn add_series(&mut self) -> SeriesId {
        self.add(Merge::Sum)
    }

    pub(crate) fn add_gauge(&mut self) -> Gauge {
        let (integral, maximum) = (self.add(Merge::Sum), self.add(Merge::Maximum));
        Gauge { integral, maximum, since: Time::ZERO, level: 0, sum: 0, peak: 0 }
    }

    fn add(&mut self, merge: Merge) -> SeriesId {
        self.series.push(Series { bins: Box::default(), shift: EMPTY, merge });
        SeriesId(self.series.len() as u32 - 1)
    }

    pub(crate) fn bin_width(&self) -> Duration {
        Duration::from_fs(1 << self.shift)
    }

    /// The values of a series in each bin.
    pub(crate) fn bins(&self, series: SeriesId) -> Cow<'_, [u64]> {
        let series = &self.series[series.0 as usize];
        if series.shift == self.shift {
            return Cow::Borrowed(&series.bins);
        }
        let mut bins = vec![0; BINS];
        bins[..series.bins.len()].copy_from_slice(&series.bins);
        if series.shift != EMPTY {
            widen(&mut bins, series.merge, self.shift - series.shift);
        }
        Cow::Owned(bins)
    }

    /// Sums of a series and peaks of a gauge's maximum.
    pub(crate) fn gauge_bins(&self, gauge: &Gauge) -> (Cow<'_, [u64]>, Cow<'_, [u64]>) {
        (self.bins(gauge.integral), self.bins(gauge.maximum))
    }

    fn bin(&mut self, time: Time) -> usize {
        while time.as_fs() >> self.shift >= BINS as u64 {
            self.shift += 1;
        }
        (time.as_fs() >> self.shift) as usize
    }

    /// The bins of a series, to be added to.
    #[inline]
    fn filled(&mut self, series: SeriesId) -> &mut [u64] {
        let (series, shift) = (&mut self.series[series.0 as usize], self.shift);
        if series.shift != shift {
            series.catch_up(shift);
        }
        &mut series.bins
    }

    /// Adds `amount`, which comes evenly from `from` to `to`, to the bins it lies in. All of it, whatever is rounded.
    pub(crate) fn spread(&mut self, series: SeriesId, from: Time, to: Time, amount: u64) {
        let last = self.bin(to);
        let first = (from.as_fs() >> self.shift) as usize;
        let shift = self.shift;
        let bins = self.filled(series);
        let mut rest = amount;
        let whole = (to - from).as_fs();
        for (bin, sum) in bins.iter_mut().enumerate().take(last).skip(first) {
            let before = ((bin as u64 + 1) << shift) - from.as_fs();
            let came = (u128::from(amount) * u128::from(before) / u128::from(whole)) as u64;
            let later = amount - came;
            *sum += rest - later;
            rest = later;
        }
        bins[last] += rest;
    }

    /// Adds the time from `from` to `to`, times `weight`, to the bins it lies in.
    pub(crate) fn add_span(&mut self, series: SeriesId, from: Time, to: Time, weight: u64) {
        if to <= from || weight == 0 {
            return;
        }
        let last = self.bin(Time::from_fs(to.as_fs() - 1));
        let first = (from.as_fs() >> self.shift) as usize;
        let shift = self.shift;
        let bins = self.filled(series);
        if first == last {
            bins[first] += (to - from).as_fs() * weight;
            return;
        }
        for (bin, sum) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let start = ((bin as u64) << shift).max(from.as_fs());
            let end = ((bin as u64 + 1) << shift).min(to.as_fs());
            *sum += (end - start) * weight;
        }
    }

    /// The level of a gauge is `level` from `now` on.
    #[inline]
    pub(crate) fn set(&mut self, gauge: &mut Gauge, now: Time, level: u64) {
        if level == gauge.level {
            return;
        }
        self.settle(gauge, now);
        gauge.level = level;
        if level > gauge.peak {
            gauge.peak = level;
        }
    }

    /// The level of a gauge is one higher from `now` on.
    pub(crate) fn raise_level(&mut self, gauge: &mut Gauge, now: Time) {
        self.set(gauge, now, gauge.level + 1);
    }

    /// The level of a gauge is one lower from `now` on.
    pub(crate) fn lower_level(&mut self, gauge: &mut Gauge, now: Time) {
        debug_assert!(gauge.level > 0, "what ends has begun");
        self.set(gauge, now, gauge.level.saturating_sub(1));
    }

    /// Brings a gauge up to `now`, for reading, or because its level changes.
    pub(crate) fn settle(&mut self, gauge: &mut Gauge, now: Time) {
        let bin = self.bin(now);
        let home = (gauge.since.as_fs() >> self.shift) as usize;
        if bin == home {
            // The common case: all of it lies in the bin that is being filled.
            gauge.sum += (now - gauge.since).as_fs() * gauge.level;
            gauge.since = now;
            return;
        }
        // The gauge's own bin is over: what it gathered goes to the series.
        self.filled(gauge.integral)[home] += std::mem::take(&mut gauge.sum);
        self.raise(gauge.maximum, home, gauge.peak);
        self.add_span(gauge.integral, gauge.since, now, gauge.level);
        for later in home..=bin {
            self.raise(gauge.maximum, later, gauge.level);
        }
        (gauge.since, gauge.peak) = (now, gauge.level);
    }

    /// Moves what a gauge has gathered to its series, for reading.
    pub(crate) fn flush(&mut self, gauge: &mut Gauge, now: Time) {
        self.settle(gauge, now);
        let bin = self.bin(now);
        self.filled(gauge.integral)[bin] += std::mem::take(&mut gauge.sum);
        self.raise(gauge.maximum, bin, gauge.peak);
    }

    fn raise(&mut self, series: SeriesId, bin: usize, level: u64) {
        let peak = &mut self.filled(series)[bin];
        *peak = level.max(*peak);
    }
}

impl Series {
    #[cold]
    fn catch_up(&mut self, shift: u32) {
        if self.shift == EMPTY {
            self.bins = vec![0; BINS].into();
        } else {
            widen(&mut self.bins, self.merge, shift - self.shift);
        }
        self.shift = shift;
    }
}

/// Makes bins `2^doublings` times as wide.
fn widen(bins: &mut [u64], merge: Merge, doublings: u32) {
    let joined = 1usize.checked_shl(doublings).unwrap_or(BINS).min(BINS);
    for bin in 0..BINS / joined {
        let parts = &bins[bin * joined..(bin + 1) * joined];
        bins[bin] = match merge {
            Merge::Sum => parts.iter().sum(),
            Merge::Maximum => parts.iter().copied().max().unwrap_or(0),
        };
    }
    bins[BINS / joined..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_bins_double() {
        let mut timeline = Timeline::new();
        let series = timeline.add_series();
        let mut gauge = timeline.add_gauge();
        let mut total = 0;
        for i in 0..10_000u64 {
            let from = Time::from_fs(i * 7_000_001);
            let to = from + Duration::from_fs(3_000_000);
            timeline.add_span(series, from, to, 1);
            total += 3_000_000;
            timeline.set(&mut gauge, from, i % 3);
        }
        assert_eq!(timeline.bins(series).iter().sum::<u64>(), total);
        timeline.flush(&mut gauge, Time::from_fs(10_000 * 7_000_001));
        let (integral, _) = timeline.gauge_bins(&gauge);
        assert_eq!(integral.iter().sum::<u64>(), 3333 * 3 * 7_000_001);
    }

    /// A constant rate is the same in every bin of any width, and its sum is complete.
    #[test]
    fn spread_bytes_never_exceed_the_wire_rate_in_a_bin() {
        let mut timeline = Timeline::new();
        let series = timeline.add_series();
        // 256 bytes in 32 ns, again and again, with pauses of 3 ns.
        let (period, on_wire, bytes) = (35_000_000u64, 32_000_000u64, 256u64);
        for n in 0..400 {
            let from = Time::from_fs(n * period);
            timeline.spread(series, from, from + Duration::from_fs(on_wire), bytes);
            let width = timeline.bin_width().as_fs();
            let most = (width.min(on_wire) + width / period * on_wire) * bytes / on_wire + 1;
            let bins = timeline.bins(series);
            assert!(bins.iter().all(|bin| *bin <= most), "{n}: {:?} of {most}", bins.iter().max());
            assert_eq!(bins.iter().sum::<u64>(), (n + 1) * bytes);
        }
    }

    /// Two series get the same; one is looked at each time, the other at the end, when its bins have doubled in width many times.
    #[test]
    fn a_series_read_late_equals_one_read_often() {
        let mut timeline = Timeline::new();
        let [often, late, never] = [(); 3].map(|()| timeline.add_series());
        let (mut one, mut other) = (timeline.add_gauge(), timeline.add_gauge());
        for i in 0..60u64 {
            let now = Time::from_fs((1 << 20) + i * i * i * 7_777_777);
            timeline.spread(often, now, now, 3);
            // Touched only here, it is a doubling or more behind.
            if i % 20 == 0 {
                timeline.spread(late, now, now, 3);
            }
            timeline.set(&mut one, now, i % 5);
            timeline.set(&mut other, now, i % 5);
            let _ = timeline.gauge_bins(&one);
        }
        let end = Time::from_fs(1 << 41);
        timeline.flush(&mut one, end);
        timeline.flush(&mut other, end);
        let width = timeline.bin_width().as_fs();
        let mut expected = vec![0; BINS];
        for i in (0..60u64).step_by(20) {
            expected[(((1 << 20) + i * i * i * 7_777_777) / width) as usize] += 3;
        }
        assert_eq!(*timeline.bins(late), expected[..]);
        assert_eq!(timeline.bins(often).iter().sum::<u64>(), 180);
        assert!(timeline.bins(never).iter().all(|sum| *sum == 0));
        assert_eq!(timeline.gauge_bins(&one), timeline.gauge_bins(&other));
        assert_eq!(timeline.gauge_bins(&one).1.iter().copied().max(), Some(4));
    }
}
