//! `tlplab/differential/1`: what was measured, with everything that it takes to judge it.

use super::{Clock, LinkLatency, Samples, Target};
use serde_json::{Value, json};

/// The name of the form.
pub const SCHEMA: &str = "tlplab/differential/1";
/// Part of the samples that a quantile does not exceed, in thousandths.
const QUANTILES: [(&str, u64); 5] = [("p10", 100), ("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

/// The document. `tool` says what read: `machine`, or `simulator`.
pub fn document(
    tool: &str,
    clock: &Clock,
    targets: &[Target],
    samples: &[Samples],
    links: &[LinkLatency],
) -> Value {
    let all: Vec<Value> =
        targets.iter().zip(samples).map(|(one, reads)| target(one, targets, reads, clock)).collect();
    let links: Vec<Value> = links.iter().map(|one| link(one, targets)).collect();
    json!({
        "schema": SCHEMA,
        "tool": tool,
        "clock": {
            "source": clock.source,
            "ns_per_tick": clock.ns_per_tick,
            "step_ns": clock.step_ns(),
            "overhead_ns": clock.overhead_ns,
        },
        "targets": all,
        "links": links,
    })
}

fn target(target: &Target, targets: &[Target], samples: &Samples, clock: &Clock) -> Value {
    let ns = |ticks: f64| ticks * clock.ns_per_tick;
    let quantile = |per_mille| samples.ticks().quantile(per_mille).map(|ticks| ns(ticks as f64));
    let quantiles: serde_json::Map<String, Value> =
        QUANTILES.iter().map(|(name, per_mille)| ((*name).into(), quantile(*per_mille).into())).collect();
    let histogram: Vec<(f64, u64)> =
        samples.histogram().into_iter().map(|(ticks, count)| (ns(ticks as f64), count)).collect();
    json!({
        "name": target.name,
        "parent": target.parent.map(|parent| &targets[parent].name),
        "kind": target.kind.name(),
        "register": target.register,
        "samples": samples.count(),
        "min_ns": samples.min().map(|ticks| ns(ticks as f64)),
        "mean_ns": samples.ticks().mean().map(ns),
        "std_ns": samples.deviation().map(ns),
        "quantiles_ns": quantiles,
        "histogram_ns": histogram,
    })
}

fn link(link: &LinkLatency, targets: &[Target]) -> Value {
    json!({
        "name": format!("{} – {}", targets[link.near].name, targets[link.far].name),
        "near": targets[link.near].name,
        "far": targets[link.far].name,
        "latency_ns": link.latency_ns,
        "resolution_ns": link.resolution_ns,
        "spread_ns": link.spread_ns,
        "verdict": link.verdict.name(),
        "note": link.note,
    })
}
