//! The sentence that names what limits a run, from the figures of the result document alone.
//!
//! The order of the questions is the order of causes: a wire or a memory that is busy all the time limits whatever happens elsewhere,
//! because credits, tags and replay buffers run out *behind* it. Only when nothing is busy does the critical path say what a run waits
//! for: credits, tags, the replay buffer, or its own loads (a rate that is met, or one transaction after another).

use crate::load::{LoadSpec, Pace, Work};
use crate::result::{Attribution, Document, Flow, Limit, LimitKind, Next, Verdict};
use tlplab_fabric::attribution::Cause;

/// From this share of time on, a resource counts as always busy. A saturated wire is idle only for less than a symbol per TLP.
const SATURATED: f64 = 0.97;
/// From this share of a flow's latency on, a wait is what the flow waits for.
const MAJOR: f64 = 0.3;
/// An open-loop load that gets this share of what it offers is served.
const SERVED: f64 = 0.99;

/// Something that can limit, and how much of it is used.
#[derive(Clone, Debug)]
struct Candidate {
    resource: String,
    kind: LimitKind,
    /// 0 to 1.
    used: f64,
    /// The link, where it is one: both directions get wider together.
    link: Option<usize>,
    evidence: Vec<String>,
    /// `limits the run: …`
    because: String,
}

/// Judges a run. `loads` say what was asked for, by the names of the flows; `memory_busy` is the share of time in which host memory
/// was busy, if its bandwidth is limited.
pub fn verdict(document: &Document, loads: &[LoadSpec], memory_busy: Option<f64>) -> Verdict {
    let flows: Vec<&Flow> = document.flows.iter().filter(|f| f.bytes > 0).collect();
    if flows.is_empty() {
        let failed: u64 = document.flows.iter().map(|f| failures(f)).sum();
        let sentence = match failed {
            0 => "Nothing limits the run: no transaction ended.".to_owned(),
            n => format!("No transaction ended well: {n} failed."),
        };
        let limit = Limit { resource: "nothing".into(), ..Limit::default() };
        return Verdict { sentence, limit, next: None };
    }
    let mut candidates: Vec<Candidate> = wires(document).chain(memory_busy.map(memory)).collect();
    candidates.sort_by(|a, b| {
        let queued = |c: &Candidate| waiting_at(document, &c.resource, None);
        // Of several that are always busy, the one that flows wait at.
        let key = |c: &Candidate| if c.used >= SATURATED { (1, queued(c)) } else { (0, c.used) };
        key(b).partial_cmp(&key(a)).expect("fractions are numbers").then(a.resource.cmp(&b.resource))
    });
    let limit = match candidates.first() {
        Some(first) if first.used >= SATURATED => first.clone(),
        _ => waits(document, &flows).unwrap_or_else(|| own_loads(document, &flows, loads)),
    };
    let next = next(document, &flows, loads, &limit, &candidates);
    let sentence = format!("{} limits the run: {}.", capital(&limit.resource), limit.because);
    let mut evidence = limit.evidence.clone();
    let failed: u64 = document.flows.iter().map(failures).sum();
    if failed > 0 {
        evidence.push(format!("{failed} transactions failed"));
    }
    let limit = Limit {
        resource: limit.resource,
        kind: limit.kind,
        utilization: limit.used.clamp(0.0, 1.0),
        evidence,
    };
    Verdict { sentence, limit, next }
}

fn failures(flow: &Flow) -> u64 {
    flow.errors.ur
        + flow.errors.ca
        + flow.errors.timeout
        + flow.errors.poisoned
        + flow.errors.lost
        + flow.errors.malformed
}

/// Every direction of every link.
fn wires(document: &Document) -> impl Iterator<Item = Candidate> + '_ {
    document.links.iter().enumerate().flat_map(move |(index, link)| {
        link.directions.iter().map(move |direction| {
            let u = &direction.utilization;
            let place = format!("{} → {}", direction.from, direction.to);
            let used = 1.0 - u.idle;
            let parts = [
                ("payload", u.payload),
                ("TLP overhead", u.overhead),
                ("DLLPs", u.dllp),
                ("ordered sets", u.ordered_sets),
                ("replays", u.replay),
            ];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(_, share)| *share >= 0.0005)
                .map(|(name, share)| format!("{name} {}", percent(*share)))
                .collect();
            let mut evidence =
                vec![format!("{place} is busy {} of the time: {}", percent(used), parts.join(", "))];
            evidence.extend(waiters(document, &place));
            let replaying = u.replay > u.payload + u.overhead;
            Candidate {
                resource: format!("link {place}"),
                kind: if replaying { LimitKind::Replay } else { LimitKind::Link },
                used,
                link: Some(index),
                because: format!(
                    "gen{} x{} is busy {} of the time and carries {} of payload",
                    link.generation,
                    link.width,
                    percent(used),
                    rate(u.payload * link.raw_bps)
                ),
                evidence,
            }
        })
    })
}

/// Host memory of limited bandwidth.
fn memory(used: f64) -> Candidate {
    let busy = format!("it is busy {} of the time", percent(used));
    Candidate {
        resource: "memory of host".into(),
        kind: LimitKind::Memory,
        used,
        link: None,
        evidence: vec![format!("memory of host is busy {} of the time", percent(used))],
        because: busy,
    }
}

/// Mean use of a resource as a share of what there is of it.
fn used(resource: &crate::result::Resource) -> f64 {
    let mean = resource.mean.iter().sum::<f64>() / resource.mean.len().max(1) as f64;
    resource.capacity.map_or(0.0, |capacity| mean / capacity.max(1) as f64)
}

/// What the critical paths wait for, when no wire and no memory is busy.
fn waits(document: &Document, flows: &[&Flow]) -> Option<Candidate> {
    let waits = [
        (Cause::CreditWait, LimitKind::Credits),
        (Cause::ReplayBufferWait, LimitKind::Replay),
        (Cause::TagWait, LimitKind::Tags),
    ];
    let total: f64 = flows.iter().flat_map(|f| &f.attribution).map(|a| a.total_ns).sum();
    let mut best: Option<Candidate> = None;
    for (cause, kind) in waits {
        let Some((flow, wait)) = heaviest(flows, |a| a.cause == cause as usize) else { continue };
        let share = total_of(flows, |a| a.cause == cause as usize) / total.max(f64::MIN_POSITIVE);
        if share < MAJOR || best.as_ref().is_some_and(|b| b.used >= share) {
            continue;
        }
        let (resource, because) = match kind {
            LimitKind::Credits => (
                format!("credits of {}", wait.place),
                "the receiver's buffers are full while TLPs wait".to_owned(),
            ),
            LimitKind::Tags => (format!("tags of {}", flow.device), tags_because(document, &flow.device)),
            _ => (
                format!("replay buffer of {}", wait.place),
                "it is full of TLPs that are not yet acknowledged".to_owned(),
            ),
        };
        best = Some(Candidate {
            resource,
            kind,
            used: share,
            link: None,
            because,
            evidence: vec![format!(
                "{} of all latency is {}, most of it in {} at {}",
                percent(share),
                cause.name(),
                flow.name,
                wait.place
            )],
        });
    }
    best
}

fn tags_because(document: &Document, device: &str) -> String {
    let name = format!("tags of {device}");
    match document.series.resources.iter().find(|r| r.kind == "tags" && r.name == name) {
        Some(resource) => match resource.capacity {
            Some(capacity) => format!(
                "{} of {capacity} are in use on average",
                one_decimal(used(resource) * capacity as f64)
            ),
            None => "reads wait for them".into(),
        },
        None => "reads wait for them".into(),
    }
}

/// Nothing is short: the loads themselves ask for no more.
fn own_loads(document: &Document, flows: &[&Flow], loads: &[LoadSpec]) -> Candidate {
    let unserved = flows.iter().filter(|f| !is_served(f, loads));
    let slowest = unserved.max_by(|a, b| a.payload_bps.total_cmp(&b.payload_bps));
    let Some(flow) = slowest else {
        let names: Vec<&str> = flows.iter().map(|f| f.name.as_str()).collect();
        return Candidate {
            resource: format!("the rate of {}", list(&names)),
            kind: LimitKind::Rate,
            used: 1.0,
            link: None,
            because: format!(
                "all that is offered is carried, {} in all",
                rate(flows.iter().map(|f| f.payload_bps).sum())
            ),
            evidence: flows.iter().map(|f| format!("{} gets {}", f.name, rate(f.payload_bps))).collect(),
        };
    };
    let mean = flow.latency_ns.map_or(0.0, |l| l.mean);
    let mut evidence = Vec::new();
    if let Some((_, most)) = heaviest(&[flow], |_| true) {
        let cause = document.causes.get(most.cause).map_or("", String::as_str);
        evidence.push(format!(
            "{} of the latency of {} is {cause} at {}",
            percent(most.share),
            flow.name,
            most.place
        ));
    }
    let (kind, resource, because) = match outstanding(flow, loads) {
        Some(1) => (
            LimitKind::Latency,
            format!("the latency of {}", flow.name),
            format!("one transaction follows the other, and each takes {}", nanoseconds(mean)),
        ),
        Some(n) => (
            LimitKind::Outstanding,
            format!("the outstanding of {}", flow.name),
            format!("its {n} transactions are always under way, and each takes {}", nanoseconds(mean)),
        ),
        None => (
            LimitKind::Latency,
            format!("the latency of {}", flow.name),
            format!("a transaction takes {}, and nothing is busy all the time", nanoseconds(mean)),
        ),
    };
    Candidate { resource, kind, used: 1.0, link: None, because, evidence }
}

/// What would limit next: the resource with the least room to grow, if all flows grew alike.
fn next(
    document: &Document,
    flows: &[&Flow],
    loads: &[LoadSpec],
    limit: &Candidate,
    candidates: &[Candidate],
) -> Option<Next> {
    let mut best: Option<Next> = None;
    let mut offer = |resource: &str, kind: LimitKind, headroom: f64, what: String| {
        if headroom.is_finite() && best.as_ref().is_none_or(|b| headroom < b.headroom) {
            let headroom = headroom.max(0.0);
            let more =
                if headroom < 0.005 { "at once".into() } else { format!("after {} more", percent(headroom)) };
            let text = format!("Without it, {resource} would limit next, {more}: {what}.");
            best = Some(Next { resource: resource.into(), kind, headroom, text });
        }
    };
    for candidate in candidates {
        let same = candidate.resource == limit.resource
            || (candidate.link.is_some() && candidate.link == limit.link);
        if !same && candidate.used > 0.01 {
            let what = format!("it is busy {} of the time", percent(candidate.used));
            offer(&candidate.resource, candidate.kind, 1.0 / candidate.used - 1.0, what);
        }
    }
    for flow in flows {
        let offered = offered(flow, loads);
        if let Some(bps) = offered
            && limit.kind != LimitKind::Rate
            && flow.payload_bps > 0.0
        {
            let name = format!("the rate of {}", flow.name);
            let what = format!("it offers {}", rate(bps));
            offer(&name, LimitKind::Rate, bps / flow.payload_bps - 1.0, what);
        }
        if let (Some(n), Some(latency)) = (outstanding(flow, loads), flow.latency_ns)
            && !matches!(limit.kind, LimitKind::Outstanding | LimitKind::Latency)
            && latency.min > 0.0
        {
            // With nobody in the way each transaction takes the least time that was seen.
            let name = format!("the outstanding of {}", flow.name);
            let what = format!("{n} transactions of {} at least each", nanoseconds(latency.min));
            offer(&name, LimitKind::Outstanding, latency.mean / latency.min - 1.0, what);
        }
    }
    for resource in document.series.resources.iter().filter(|r| r.kind == "tags") {
        let used = used(resource);
        if limit.kind != LimitKind::Tags && used > 0.5 && waits_for_queue(flows, &resource.name) {
            continue;
        }
        if limit.resource != resource.name && used > 0.01 {
            let what = format!("{} of them are in use on average", percent(used));
            offer(&resource.name, LimitKind::Tags, 1.0 / used - 1.0, what);
        }
    }
    best
}

/// Are a device's tags in use only because its requests queue? Then they come free when the queue goes.
fn waits_for_queue(flows: &[&Flow], tags: &str) -> bool {
    let of_device: Vec<&Flow> =
        flows.iter().copied().filter(|f| tags.strip_prefix("tags of ") == Some(f.device.as_str())).collect();
    let queueing =
        |a: &Attribution| a.cause == Cause::Queueing as usize || a.cause == Cause::CreditWait as usize;
    let total = total_of(&of_device, |_| true);
    total > 0.0 && total_of(&of_device, queueing) / total >= MAJOR
}

/// Who waits at a place, and behind whom.
fn waiters(document: &Document, place: &str) -> Vec<String> {
    let mut out = Vec::new();
    for flow in &document.flows {
        let here = |a: &&Attribution| a.place == place && a.cause == Cause::Queueing as usize;
        let share: f64 = flow.attribution.iter().filter(here).map(|a| a.share).sum();
        if share < 0.05 {
            continue;
        }
        let behind: Vec<String> = flow
            .attribution
            .iter()
            .filter(here)
            .filter(|a| a.share >= 0.01)
            .filter_map(|a| a.behind.as_ref().map(|b| format!("{} behind {b}", percent(a.share))))
            .collect();
        let detail = if behind.is_empty() { String::new() } else { format!(" ({})", behind.join(", ")) };
        out.push(format!("{} spends {} of its latency queueing there{detail}", flow.name, percent(share)));
    }
    out
}

/// Nanoseconds that transactions wait at a place; `resource` is `link PLACE`.
fn waiting_at(document: &Document, resource: &str, cause: Option<Cause>) -> f64 {
    let place = resource.strip_prefix("link ").unwrap_or(resource);
    let here = |a: &&Attribution| a.place == place && cause.is_none_or(|c| a.cause == c as usize);
    document.flows.iter().flat_map(|f| &f.attribution).filter(here).map(|a| a.total_ns).sum()
}

fn total_of(flows: &[&Flow], which: impl Fn(&Attribution) -> bool) -> f64 {
    flows.iter().flat_map(|f| &f.attribution).filter(|a| which(a)).map(|a| a.total_ns).sum()
}

fn heaviest<'f>(
    flows: &[&'f Flow],
    which: impl Fn(&Attribution) -> bool,
) -> Option<(&'f Flow, &'f Attribution)> {
    flows
        .iter()
        .flat_map(|f| f.attribution.iter().map(move |a| (*f, a)))
        .filter(|(_, a)| which(a))
        .max_by(|(_, a), (_, b)| a.total_ns.total_cmp(&b.total_ns))
}

fn pace(flow: &Flow, loads: &[LoadSpec]) -> Option<Pace> {
    let of_flow = |l: &&LoadSpec| {
        flow.name.strip_prefix(&l.name).is_some_and(|rest| matches!(rest, "" | ".read" | ".write"))
    };
    match &loads.iter().find(of_flow)?.work {
        Work::Generate(generate) => Some(generate.pace),
        Work::Replay { .. } => None,
    }
}

fn offered(flow: &Flow, loads: &[LoadSpec]) -> Option<f64> {
    match pace(flow, loads)? {
        Pace::Rate(bps) => Some(bps as f64),
        Pace::Outstanding(_) => None,
    }
}

fn outstanding(flow: &Flow, loads: &[LoadSpec]) -> Option<u32> {
    match pace(flow, loads)? {
        Pace::Outstanding(n) => Some(n),
        Pace::Rate(_) => None,
    }
}

fn is_served(flow: &Flow, loads: &[LoadSpec]) -> bool {
    offered(flow, loads).is_some_and(|bps| flow.payload_bps >= SERVED * bps)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

fn nanoseconds(ns: f64) -> String {
    if ns < 1000.0 { format!("{ns:.1} ns") } else { format!("{:.2} us", ns / 1000.0) }
}

fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e9 => format!("{:.2} Gb/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mb/s", b / 1e6),
        b => format!("{:.2} kb/s", b / 1e3),
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// `link a → b` begins a sentence as `The link a → b`.
fn capital(resource: &str) -> String {
    let resource = resource.strip_prefix("the ").unwrap_or(resource);
    format!("The {resource}")
}
