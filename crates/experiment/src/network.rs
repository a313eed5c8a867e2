//! The networks behind devices, as the result document describes them.

use crate::document::{FS_PER_NS, FS_PER_S};
use crate::result::{Frames, Latency, Network, NetworkDirection};
use std::collections::BTreeMap;
use tlplab_device::network::Direction;
use tlplab_device::{FrameCounts, NetworkStatistics};
use tlplab_fabric::Fabric;
use tlplab_units::Duration;

pub(crate) fn networks(fabric: &Fabric, span: Duration) -> Vec<Network> {
    fabric.networks().into_iter().map(|(device, counted)| network(device, &counted, span)).collect()
}

/// The frames of each Ethernet controller since `before`.
pub(crate) fn frames(fabric: &Fabric, before: &BTreeMap<String, FrameCounts>) -> Vec<Frames> {
    let counted = fabric.frame_counts().into_iter().map(|(device, counts)| {
        let counts = before.get(&device).map_or(counts, |before| counts.since(*before));
        let FrameCounts { sent, received, missed, too_long } = counts;
        Frames { device, sent, received, missed, too_long }
    });
    counted.filter(|frames| frames.sent + frames.arrived() > 0).collect()
}

/// A sentence for each way in which an Ethernet controller has lost frames.
pub(crate) fn frame_losses(frames: &Frames) -> Vec<String> {
    let Frames { device, missed, too_long, .. } = frames;
    let arrived = frames.arrived();
    let mut losses = Vec::new();
    if *missed > 0 {
        losses.push(format!(
            "{device} lost {missed} of {arrived} frames that arrived: it had no room for them"
        ));
    }
    if *too_long > 0 {
        losses.push(format!(
            "{device} discarded {too_long} of {arrived} frames that arrived: they were too long"
        ));
    }
    losses
}

fn network(device: String, counted: &NetworkStatistics, span: Duration) -> Network {
    let share = |busy: Duration| busy.as_fs() as f64 / span.as_fs().max(1) as f64;
    let direction = |direction: &Direction| NetworkDirection {
        datagrams: direction.datagrams,
        payload_bps: direction.data as f64 * 8.0 * FS_PER_S / span.as_fs().max(1) as f64,
        busy: share(direction.busy).min(1.0),
        dropped: direction.dropped,
        dropped_bytes: direction.dropped_data,
    };
    Network {
        device,
        to_software: direction(&counted.to_software),
        to_card: direction(&counted.to_card),
        socket_drops: counted.socket_drops,
        cores_busy: (share(counted.cores_busy) / f64::from(counted.cores)).min(1.0),
        reads: counted.reads,
        failed_reads: counted.failed_reads,
        latency_ns: (counted.reads > 0).then(|| latency(counted)),
    }
}

fn latency(counted: &NetworkStatistics) -> Latency {
    let ns = |duration: Duration| duration.as_fs() as f64 / FS_PER_NS;
    let (min, max, sum) = counted.latency;
    let (min, max) = (ns(min), ns(max));
    // The histogram keeps three digits; the extremes are exact.
    let quantile = |q: f64| (counted.latency_ps.value_at_quantile(q) as f64 / 1000.0).clamp(min, max);
    Latency {
        min,
        mean: sum as f64 / counted.reads as f64 / FS_PER_NS,
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max,
    }
}
