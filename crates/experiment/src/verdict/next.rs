//! What would limit next.
//!
//! Without the limit, the flows that it holds back would grow, all by the same factor; open-loop loads that get what they offer stay.
//! The next limit is the resource that would be used up first.

use super::Candidate;
use super::facts::{Facts, bare_latency, links_of};
use super::words::{nanoseconds, percent, rate};
use crate::result::{Document, Flow, LimitKind, Next};

/// Less headroom than this is none.
const NONE: f64 = 0.005;

/// The resource with the least room to grow.
pub(super) fn next(
    document: &Document,
    flows: &[&Flow],
    facts: &Facts<'_>,
    limit: &Candidate,
    candidates: &[Candidate],
) -> Option<Next> {
    let growing: Vec<&Flow> = flows.iter().copied().filter(|f| !facts.is_served(f)).collect();
    let mut found = wires(document, flows, &growing, limit, candidates);
    for flow in &growing {
        found.extend(own_rate(flow, facts));
        if !matches!(limit.kind, LimitKind::Outstanding | LimitKind::Latency) {
            found.extend(own_outstanding(document, flow, facts));
        }
        if limit.kind != LimitKind::Tags {
            found.extend(own_tags(flow, facts));
        }
    }
    found.retain(|next| next.headroom.is_finite());
    found.into_iter().min_by(|a, b| a.headroom.total_cmp(&b.headroom).then(a.resource.cmp(&b.resource)))
}

fn named(resource: String, kind: LimitKind, headroom: f64, what: String) -> Next {
    let headroom = headroom.max(0.0);
    let when = match headroom {
        h if h < NONE => "at once".to_owned(),
        h if h < 1.0 => format!("after {} more", percent(h)),
        h => format!("at {:.1} times the throughput", 1.0 + h),
    };
    let text = format!("Without it, {resource} would limit next, {when}: {what}.");
    Next { resource, kind, headroom, text }
}

/// Other wires, and memory: how much room there is for the part that grows.
fn wires(
    document: &Document,
    flows: &[&Flow],
    growing: &[&Flow],
    limit: &Candidate,
    candidates: &[Candidate],
) -> Vec<Next> {
    let others = candidates.iter().filter(|c| {
        // A wider link is wider in both directions.
        c.resource != limit.resource && (c.link.is_none() || c.link != limit.link)
    });
    let mut found = Vec::new();
    for candidate in others {
        let link = candidate.link.map(|index| document.links[index].name.as_str());
        let crosses = |flow: &&&Flow| link.is_none_or(|name| links_of(document, flow).contains(name));
        let bytes = |flows: &[&Flow]| flows.iter().filter(crosses).map(|f| f.bytes as f64).sum::<f64>();
        let (all, growing) = (bytes(flows), bytes(growing));
        if growing > 0.0 {
            let grows = candidate.used * growing / all;
            let what = format!("it is busy {} of the time", percent(candidate.used));
            let headroom = (1.0 - candidate.used) / grows;
            found.push(named(candidate.resource.clone(), candidate.kind, headroom, what));
        }
    }
    found
}

fn own_rate(flow: &Flow, facts: &Facts<'_>) -> Option<Next> {
    let bps = facts.offered(flow)?;
    let name = format!("the rate of {}", flow.name);
    Some(named(name, LimitKind::Rate, bps / flow.payload_bps - 1.0, format!("it offers {}", rate(bps))))
}

/// With nobody in its way a transaction takes its bare latency, and the time that its own bytes need on its link.
fn own_outstanding(document: &Document, flow: &Flow, facts: &Facts<'_>) -> Option<Next> {
    let (n, size) = (facts.outstanding(flow)?, facts.size(flow)?);
    let component = if flow.device == "host" { &flow.target } else { &flow.device };
    let link = document.links.iter().find(|l| l.name == *component)?;
    let latency = bare_latency(flow) + size as f64 * 8e9 / link.raw_bps;
    let possible = f64::from(n) * size as f64 * 8e9 / latency;
    let what = format!("{n} transactions of {} each", nanoseconds(latency));
    let name = format!("the outstanding of {}", flow.name);
    Some(named(name, LimitKind::Outstanding, possible / flow.payload_bps - 1.0, what))
}

/// With nobody in its way a read request is answered in the bare latency of a transaction.
fn own_tags(flow: &Flow, facts: &Facts<'_>) -> Option<Next> {
    if flow.op != "read" {
        return None;
    }
    let ((tags, mrrs), size) = (facts.tags(&flow.device)?, facts.size(flow)?);
    let bytes = size.min(mrrs.into());
    let possible = f64::from(tags) * bytes as f64 * 8e9 / bare_latency(flow);
    let what = format!("{tags} requests of {bytes} B, each answered in {}", nanoseconds(bare_latency(flow)));
    Some(named(format!("tags of {}", flow.device), LimitKind::Tags, possible / flow.payload_bps - 1.0, what))
}
