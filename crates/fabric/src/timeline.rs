//! Series over time in a fixed number of bins that double in width as the run goes on: memory does not grow with the run.

use tlplab_units::{Duration, Time};

/// Number of bins of every series.
pub(crate) const BINS: usize = 512;

/// Sums per bin, for any number of series that share their bins.
pub(crate) struct Timeline {
    /// A bin is `2^shift` femtoseconds wide.
    shift: u32,
    series: Vec<Series>,
}

struct Series {
    bins: Box<[u64; BINS]>,
    merge: Merge,
}

/// What two bins become when they are joined.
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
    /// What it gathered in the bin of `since`, and its maximum there.
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
        self.series.push(Series { bins: Box::new([0; BINS]), merge });
        SeriesId(self.series.len() as u32 - 1)
    }

    pub(crate) fn bin_width(&self) -> Duration {
        Duration::from_fs(1 << self.shift)
    }

    pub(crate) fn bins(&self, series: SeriesId) -> &[u64; BINS] {
        &self.series[series.0 as usize].bins
    }

    /// Sums of a series and peaks of a gauge's maximum.
    pub(crate) fn gauge_bins(&self, gauge: &Gauge) -> (&[u64; BINS], &[u64; BINS]) {
        (self.bins(gauge.integral), self.bins(gauge.maximum))
    }

    fn bin(&mut self, time: Time) -> usize {
        while time.as_fs() >> self.shift >= BINS as u64 {
            self.halve();
        }
        (time.as_fs() >> self.shift) as usize
    }

    #[cold]
    fn halve(&mut self) {
        self.shift += 1;
        for Series { bins, merge } in &mut self.series {
            for i in 0..BINS / 2 {
                let (a, b) = (bins[2 * i], bins[2 * i + 1]);
                bins[i] = if *merge == Merge::Sum { a + b } else { a.max(b) };
            }
            bins[BINS / 2..].fill(0);
        }
    }

    /// Adds `amount` to the bin of `time`.
    pub(crate) fn count(&mut self, series: SeriesId, time: Time, amount: u64) {
        let bin = self.bin(time);
        self.series[series.0 as usize].bins[bin] += amount;
    }

    /// Adds the time from `from` to `to`, times `weight`, to the bins it lies in.
    pub(crate) fn add_span(&mut self, series: SeriesId, from: Time, to: Time, weight: u64) {
        if to <= from || weight == 0 {
            return;
        }
        let last = self.bin(Time::from_fs(to.as_fs() - 1));
        let first = (from.as_fs() >> self.shift) as usize;
        let bins = &mut self.series[series.0 as usize].bins;
        if first == last {
            bins[first] += (to - from).as_fs() * weight;
            return;
        }
        for (bin, sum) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let start = ((bin as u64) << self.shift).max(from.as_fs());
            let end = ((bin as u64 + 1) << self.shift).min(to.as_fs());
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
        self.series[gauge.integral.0 as usize].bins[home] += std::mem::take(&mut gauge.sum);
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
        self.series[gauge.integral.0 as usize].bins[bin] += std::mem::take(&mut gauge.sum);
        self.raise(gauge.maximum, bin, gauge.peak);
    }

    fn raise(&mut self, series: SeriesId, bin: usize, level: u64) {
        let peak = &mut self.series[series.0 as usize].bins[bin];
        *peak = level.max(*peak);
    }
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
}
