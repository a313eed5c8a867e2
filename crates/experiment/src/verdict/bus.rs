//! Parallel buses, of which all ways have the time together.

use super::words::{list, percent, rate};
use super::{Candidate, QUEUES};
use crate::result::{Attribution, Document, Flow, LimitKind, Link};
use tlplab_fabric::attribution::Cause;

/// Every bus that somebody waits for. One on which a master only comes again and again is busy, but limits nobody.
pub(super) fn buses(document: &Document) -> impl Iterator<Item = Candidate> + '_ {
    let nodes = document.topology.nodes.iter();
    nodes.filter_map(move |node| {
        let of_bus = |link: &Link| link.bus.is_some() && link.upper == node.name;
        let all = document.links.iter().enumerate().filter(|(_, link)| of_bus(link));
        let (links, ways): (Vec<usize>, Vec<&Link>) = all.unzip();
        let mode = ways.first()?.bus.as_deref()?;
        let waiting = |f: &&Flow| f.attribution.iter().filter(|a| waits(&ways, a)).map(|a| a.share).sum();
        let shares: Vec<(&str, f64)> =
            document.flows.iter().map(|f| (f.name.as_str(), waiting(&f))).collect();
        let names: Vec<&str> = shares.iter().filter(|(_, share)| *share >= QUEUES).map(|f| f.0).collect();
        if names.is_empty() {
            return None;
        }
        let busy = |link: &Link| link.directions.iter().map(|d| 1.0 - d.utilization.idle).sum::<f64>();
        let used = ways.iter().map(|link| busy(link)).sum::<f64>().min(1.0);
        let carried =
            ways.iter().flat_map(|link| link.directions.iter().map(|d| d.utilization.payload * link.raw_bps));
        let payload = rate(carried.sum());
        let parts = ways.iter().filter(|link| busy(link) >= 0.0005);
        let parts: Vec<String> = parts.map(|link| format!("{} {}", link.name, percent(busy(link)))).collect();
        let mut evidence =
            vec![format!("{} is busy {} of the time: {}", node.name, percent(used), parts.join(", "))];
        let long = shares.iter().filter(|(_, share)| *share >= QUEUES);
        evidence.extend(
            long.map(|(name, share)| {
                format!("{name} spends {} of its latency waiting for it", percent(*share))
            }),
        );
        let verb = if names.len() == 1 { "waits" } else { "wait" };
        Some(Candidate {
            resource: format!("bus {}", node.name),
            kind: LimitKind::Bus,
            used,
            links,
            place: None,
            replays: 0.0,
            because: format!(
                "{mode} is busy {} of the time with {payload} of payload, and {} {verb} for it",
                percent(used),
                list(&names)
            ),
            evidence,
        })
    })
}

/// Nanoseconds that transactions wait for a bus, of which these are the ways.
pub(super) fn waiting(document: &Document, links: &[usize]) -> f64 {
    let ways: Vec<&Link> = links.iter().map(|index| &document.links[*index]).collect();
    let all = document.flows.iter().flat_map(|f| &f.attribution);
    all.filter(|a| waits(&ways, a)).map(|a| a.total_ns).sum()
}

/// Behind others of its own way, or while another master has the bus.
fn waits(ways: &[&Link], a: &Attribution) -> bool {
    let waited = [Cause::Queueing, Cause::Arbitration].iter().any(|cause| *cause as usize == a.cause);
    let mut directions = ways.iter().flat_map(|link| &link.directions);
    waited && directions.any(|d| a.place == format!("{} → {}", d.from, d.to))
}
