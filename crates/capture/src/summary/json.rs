//! The summary as a JSON document, `tlplab/capture/1`.

use super::crossing::{Crossing, Passage, Pieces};
use super::{Flow, Percentiles, Summary};
use serde_json::{Map, Value, json};
use tlplab_units::Duration;

impl Summary {
    /// The document. Times are nanoseconds.
    pub fn to_json(&self) -> String {
        let problems = self.problems.iter();
        json!({
            "schema": "tlplab/capture/1",
            "frames": self.frames,
            "tlps": self.tlps,
            "link_units": self.link_units,
            "controls": self.controls,
            "others": self.others,
            "repeated": self.repeated,
            "duration_ns": ns(self.duration),
            "directions": self.directions.iter().map(flow).collect::<Vec<_>>(),
            "crossings": self.crossings.iter().map(crossing).collect::<Vec<_>>(),
            "malformed": problems.map(|p| json!({"frame": p.frame, "reason": p.reason.to_string()})).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

fn ns(duration: Duration) -> f64 {
    duration.as_fs() as f64 / 1e6
}

fn flow(flow: &Flow) -> Value {
    let tags: Vec<u16> = flow.tags.keys().map(|tag| tag.value()).collect();
    let reused = flow.tags.values().filter(|&&uses| uses > 1).count();
    let completions =
        flow.completion_sizes.iter().map(|(bytes, count)| json!({"bytes": bytes, "count": count}));
    let sequences = flow.sequences;
    json!({
        "from": flow.direction.from,
        "to": flow.direction.to,
        "kinds": flow.kinds,
        "payload_bytes": flow.payload_bytes,
        "requests": flow.sizes.iter().map(|((operation, bytes), count)| {
            json!({"op": operation.name(), "bytes": bytes, "count": count})
        }).collect::<Vec<_>>(),
        "completions": completions.collect::<Vec<_>>(),
        "refused": flow.refused,
        "unexpected": flow.unexpected,
        "requesters": flow.requesters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "tags": {
            "count": tags.len(), "min": tags.first(), "max": tags.last(), "reused": reused, "used": tags,
        },
        "outstanding": {"max": flow.max_outstanding, "mean": flow.mean_outstanding},
        "completed": flow.completed,
        "unanswered": flow.unanswered,
        "latency_ns": flow.latency.map(percentiles),
        "ports": flow.ports.iter().map(|(port, latency)| {
            let mut row = Map::from_iter([("port".to_owned(), Value::from(*port))]);
            if let Value::Object(latency) = percentiles(*latency) {
                row.extend(latency);
            }
            Value::Object(row)
        }).collect::<Vec<_>>(),
        "sequence": {
            "adapters": sequences.adapters, "gaps": sequences.gaps, "missing": sequences.missing,
            "duplicates": sequences.duplicates, "reordered": sequences.reordered, "unproven": sequences.unproven,
        },
    })
}

fn percentiles(latency: Percentiles) -> Value {
    json!({
        "count": latency.count, "min": ns(latency.min), "p50": ns(latency.p50), "p90": ns(latency.p90),
        "p99": ns(latency.p99), "max": ns(latency.max),
    })
}

fn crossing(crossing: &Crossing) -> Value {
    json!({
        "before": crossing.before.to_string(),
        "behind": crossing.behind.to_string(),
        "delay_ns": crossing.delay.map(percentiles),
        "passages": crossing.passages.iter().map(|(passage, count)| self::passage(passage, *count)).collect::<Vec<_>>(),
    })
}

fn passage(passage: &Passage, count: u64) -> Value {
    let verdict = match passage.requests.count {
        1 if passage.unmodified => "unmodified",
        1 if passage.requests.bytes == passage.bytes => "renamed",
        _ => "split",
    };
    json!({
        "op": passage.operation.name(),
        "bytes": passage.bytes,
        "count": count,
        "verdict": verdict,
        "behind": pieces(passage.requests),
        "completions_behind": pieces(passage.completions_behind),
        "completions_before": pieces(passage.completions_before),
    })
}

fn pieces(pieces: Pieces) -> Value {
    json!({"count": pieces.count, "bytes": pieces.bytes, "mixed": pieces.mixed})
}
