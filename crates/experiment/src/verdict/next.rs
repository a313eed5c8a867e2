//! The next limit.
//!
//! Without the limit, the flows that it holds back would grow, all by the same factor; open-loop loads that get what they offer stay.
//! The next limit is the resource that would be used up first.

use super::Candidate;
use super::facts::{Facts, bare_latency, links_of};
use super::words::{list, nanoseconds, percent, rate};
use crate::result::{Document, Flow, LimitKind, Next, Operation};
use std::collections::{BTreeMap, BTreeSet};

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
    let growing: Vec<(&Flow, f64)> =
        flows.iter().filter(|f| !facts.is_served(f)).map(|f| (*f, cap(f, facts))).collect();
    let mut found = wires(document, flows, &growing, limit, candidates);
    found.extend(own_rates(&growing));
    for (flow, _) in &growing {
        if !matches!(limit.kind, LimitKind::Outstanding | LimitKind::Latency) {
            found.extend(own_outstanding(document, flow, facts, limit.kind));
        }
        if limit.kind != LimitKind::Tags {
            found.extend(own_tags(document, flow, facts, limit.kind));
        }
    }
    found.retain(|next| next.headroom.is_finite());
    let least = |a: &Next, b: &Next| a.headroom.total_cmp(&b.headroom).then(a.resource.cmp(&b.resource));
    let mut next = found.into_iter().min_by(least)?;
    next.text = sentence(&next, &growing);
    Some(next)
}

/// Up to which multiple of its throughput a flow can grow until it gets all that it offers.
fn cap(flow: &Flow, facts: &Facts<'_>) -> f64 {
    facts.offered(flow).map_or(f64::INFINITY, |bps| bps / flow.payload_bps)
}

/// `text` is why; [`sentence`] completes it.
fn named(resource: String, kind: LimitKind, headroom: f64, text: String) -> Next {
    Next { resource, kind, headroom: headroom.max(0.0), text }
}

fn sentence(next: &Next, growing: &[(&Flow, f64)]) -> String {
    let Next { resource, headroom, text, .. } = next;
    // Who reaches its own rate before does not grow so far.
    let names: Vec<&str> = growing
        .iter()
        .filter(|(_, cap)| *cap >= 1.0 + headroom - NONE)
        .map(|(f, _)| f.name.as_str())
        .collect();
    let names = list(&names);
    let when = match headroom {
        h if *h < NONE => format!("Without it, {resource} would limit next, at once"),
        h if *h < 1.0 => {
            format!("Without it, {names} could carry {} more, then {resource} would limit", percent(*h))
        }
        h => format!(
            "Without it, {names} could carry {:.1} times as much, then {resource} would limit",
            1.0 + h
        ),
    };
    format!("{when}: {text}.")
}

/// Other wires, and memory: how much room there is for the part that grows.
fn wires(
    document: &Document,
    flows: &[&Flow],
    growing: &[(&Flow, f64)],
    limit: &Candidate,
    candidates: &[Candidate],
) -> Vec<Next> {
    let replays = |c: &Candidate| {
        let gone = limit.kind == LimitKind::Replay && !limit.links.is_empty() && c.links == limit.links;
        gone.then_some(c.replays)
    };
    let others = candidates.iter().filter(|c| {
        // A wider link is wider in both directions; a link without errors is as wide as before.
        replays(c).is_some() || c.resource != limit.resource && (c.links.is_empty() || c.links != limit.links)
    });
    let crossed: BTreeMap<&str, BTreeSet<&str>> =
        flows.iter().map(|flow| (flow.name.as_str(), links_of(document, flow))).collect();
    let mut found = Vec::new();
    for candidate in others {
        let crosses = |flow: &Flow| {
            let mut names = candidate.links.iter().map(|index| document.links[*index].name.as_str());
            candidate.links.is_empty() || names.any(|name| crossed[flow.name.as_str()].contains(name))
        };
        let all: f64 = flows.iter().filter(|f| crosses(f)).map(|f| f.bytes as f64).sum();
        let parts = growing.iter().filter(|(f, _)| crosses(f));
        let used = candidate.used - replays(candidate).unwrap_or(0.0);
        let parts: Vec<(f64, f64)> = parts.map(|(f, cap)| (used * f.bytes as f64 / all, *cap)).collect();
        let what = match replays(candidate) {
            Some(_) => format!("without replays it is busy {} of the time", percent(used)),
            None => format!("it is busy {} of the time", percent(used)),
        };
        let resource = match (&candidate.place, candidate.kind) {
            (Some(place), LimitKind::Replay) => format!("link {place}"),
            _ => candidate.resource.clone(),
        };
        let kind = match candidate.kind {
            LimitKind::Replay if !candidate.links.is_empty() => LimitKind::Link,
            kind => kind,
        };
        found.push(named(resource, kind, room(1.0 - used, &parts), what));
    }
    found
}

/// By how much all parts can grow, each up to its cap, until `free` is used up; infinite if it never is.
fn room(free: f64, parts: &[(f64, f64)]) -> f64 {
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = free;
    for (index, (part, cap)) in parts.iter().enumerate() {
        let rest: f64 = parts[index..].iter().map(|(part, _)| part).sum();
        if rest > 0.0 && free / rest <= cap - 1.0 {
            return free / rest;
        }
        free -= part * (cap - 1.0);
    }
    f64::INFINITY
}

/// The case that all growing flows are open-loop, and all get their offered rate.
fn own_rates(growing: &[(&Flow, f64)]) -> Option<Next> {
    let (flow, cap) = growing.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let offered = rate(flow.payload_bps * cap);
    Some(named(
        format!("the rate of {}", flow.name),
        LimitKind::Rate,
        cap - 1.0,
        format!("it offers {offered}"),
    ))
}

/// Nanoseconds that bytes need on the requester's own link.
fn on_link(document: &Document, flow: &Flow, bytes: u64) -> Option<f64> {
    let component = if flow.device == "host" { &flow.target } else { &flow.device };
    let link = document.links.iter().find(|l| l.name == *component)?;
    Some(bytes as f64 * 8e9 / link.raw_bps)
}

/// With nobody in its way a transaction takes its bare latency, and the time that its own bytes need on its link.
fn own_outstanding(document: &Document, flow: &Flow, facts: &Facts<'_>, limit: LimitKind) -> Option<Next> {
    if flow.op == Operation::Write && facts.posts(flow) {
        return None; // one that has left is over for its load, however long it travels
    }
    let (n, size) = (facts.outstanding(flow)?, facts.size(flow)?);
    let latency = bare_latency(flow, facts, limit) + on_link(document, flow, size)?;
    let possible = f64::from(n) * size as f64 * 8e9 / latency;
    let what = format!("{n} transactions of {} each", nanoseconds(latency));
    let name = format!("the outstanding of {}", flow.name);
    Some(named(name, LimitKind::Outstanding, possible / flow.payload_bps - 1.0, what))
}

/// With nobody in its way a read request is answered in the bare latency of a transaction, and the time of its other completions.
fn own_tags(document: &Document, flow: &Flow, facts: &Facts<'_>, limit: LimitKind) -> Option<Next> {
    if flow.op != Operation::Read {
        return None;
    }
    let ((tags, mrrs), size) = (facts.tags(&flow.device)?, facts.size(flow)?);
    let bytes = size.min(mrrs.into());
    // Where a transaction is one request and nothing is short, what it took is what its tag is taken for.
    let own = matches!(limit, LimitKind::Outstanding | LimitKind::Latency) && size <= mrrs.into();
    let measured = flow.latency_ns.filter(|_| own).map(|latency| latency.mean);
    let latency = match measured {
        Some(mean) => mean,
        None => {
            let mps = document.links.iter().find(|l| l.name == flow.device).map_or(0, |l| l.mps);
            bare_latency(flow, facts, limit) + on_link(document, flow, bytes.saturating_sub(mps.into()))?
        }
    };
    let possible = f64::from(tags) * bytes as f64 * 8e9 / latency;
    let what = format!("{tags} requests of {bytes} B, each answered in {}", nanoseconds(latency));
    Some(named(format!("tags of {}", flow.device), LimitKind::Tags, possible / flow.payload_bps - 1.0, what))
}
