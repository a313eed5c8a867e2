//! A measurement as JSON: everything that tables, plots and files are made of.

use crate::csv;
use crate::target::Measured;
use serde_json::{Value, json};

/// A measurement as JSON. Latencies are in nanoseconds, bandwidths in bits per second of payload in one direction.
pub fn document(measured: &Measured) -> Value {
    let ns = |ticks: Option<u64>| ticks.map(|ticks| measured.nanoseconds(ticks as f64));
    let ticks = &measured.latency;
    let is_latency = measured.case.test.is_latency();
    let latency = is_latency.then(|| {
        json!({
            "average_ns": ticks.mean().map(|mean| measured.nanoseconds(mean)),
            "median_ns": ns(ticks.quantile(500)),
            "min_ns": ns(ticks.min()),
            "max_ns": ns(ticks.max()),
            "p95_ns": ns(ticks.quantile(950)),
            "p99_ns": ns(ticks.quantile(990)),
            "p999_ns": ns(ticks.quantile(999)),
            "histogram": ticks.counts().map(|(t, n)| (measured.nanoseconds(t as f64), n)).collect::<Vec<_>>(),
        })
    });
    let operations = measured.operations as f64;
    let rate = operations / (measured.elapsed.as_fs() as f64 * 1e-15);
    let bandwidth = (!is_latency && !measured.elapsed.is_zero())
        .then(|| json!({ "bits_per_second": measured.bandwidth(), "transfers_per_second": rate }));
    json!({
        "case": measured.case,
        "complete": measured.complete,
        "operations": measured.operations,
        "elapsed_ns": measured.elapsed.as_fs() as f64 * 1e-6,
        "tick_ns": measured.nanoseconds(1.0),
        "latency": latency,
        "bandwidth": bandwidth,
        "series": series(measured),
        "csv": csv::row(measured),
        "cdf_csv": if is_latency { csv::cdf(measured) } else { Vec::new() },
    })
}

/// Over time: pairs of the middle of a bin in nanoseconds, and the average latency (ns) or the payload bandwidth (b/s) in it.
fn series(measured: &Measured) -> Vec<(f64, f64)> {
    let bins = measured.series.bins();
    let begin = bins.first().map_or(0, |bin| bin.from);
    let middle = |from: u64, to: u64| ((from + to) / 2 - begin) as f64 * 1e-6;
    let latency = measured.case.test.is_latency();
    let each = if measured.case.test == crate::Test::BwRdwr { 2.0 } else { 1.0 };
    let value = |bin: &crate::statistics::Bin| {
        if latency {
            measured.nanoseconds(bin.sum as f64 / bin.entries as f64)
        } else {
            bin.sum as f64 * 8.0 / each / ((bin.to - bin.from).max(1) as f64 * 1e-15)
        }
    };
    bins.iter().map(|bin| (middle(bin.from, bin.to), value(bin))).collect()
}
