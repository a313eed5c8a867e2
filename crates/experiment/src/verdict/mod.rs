//! The sentence that names what limits a run, from the figures of the result document alone.
//!
//! The order of the questions is the order of causes: a wire or a memory that is busy all the time limits whatever happens elsewhere,
//! because credits, tags and replay buffers run out *behind* it. Only when nothing is busy does the critical path say what a run waits
//! for: credits, tags, the replay buffer, the Ethernet of a NIC, software behind a card, or its own loads (a rate that is met, or one transaction after another).

mod bus;
mod cable;
mod downstream;
mod facts;
mod host;
mod network;
mod next;
mod peers;
mod room;
mod translation;
mod words;

use crate::result::{Attribution, Direction, Document, Flow, Limit, LimitKind, ResourceKind, Verdict};
use crate::stop::StopReason;
pub use facts::Facts;
pub(crate) use host::PAGE_WALKS;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_fabric::attribution::Cause;
use tlplab_units::Time;
use words::one_decimal;
pub(crate) use words::{capital, list, nanoseconds, percent, rate};

/// From this share of time on, a resource counts as always busy. A saturated wire is idle only for less than a symbol per TLP.
const SATURATED: f64 = 0.97;
/// From this share of a flow's latency on, a wait is what the flow waits for.
const MAJOR: f64 = 0.3;

/// Something that can limit, and how much of it is used.
#[derive(Clone, Debug)]
struct Candidate {
    resource: String,
    kind: LimitKind,
    /// 0 to 1.
    used: f64,
    /// The link, where it is one: both directions get wider together. All ways of a bus.
    links: Vec<usize>,
    /// The direction, where it is one, or the place where flows wait for it.
    place: Option<String>,
    /// Share of its time that copies take.
    replays: f64,
    evidence: Vec<String>,
    /// `limits the run: …`
    because: String,
}

impl Candidate {
    /// The links that it belongs to.
    fn links_in(&self, document: &Document) -> Vec<usize> {
        let at = |place: &String| {
            let is_place = |way: &Direction| format!("{} → {}", way.from, way.to) == *place;
            document.links.iter().position(|link| link.directions.iter().any(is_place))
        };
        match self.links.as_slice() {
            [] => self.place.as_ref().and_then(at).into_iter().collect(),
            links => links.to_vec(),
        }
    }
}

/// Judges a run: what it did, and what was asked for.
pub fn verdict(document: &Document, facts: &Facts<'_>) -> Verdict {
    let flows: Vec<&Flow> = document.flows.iter().filter(|f| f.bytes > 0).collect();
    if flows.is_empty() {
        return nothing(document, facts);
    }
    let host = facts.memory_busy.map(host::memory).into_iter().chain(host::walks(document));
    // Of several that are always busy, the one that flows wait at.
    let rank = |c: Candidate| {
        let queued = || match c.kind {
            LimitKind::Bus => bus::waiting(document, &c.links),
            _ => waiting_at(document, c.place.as_ref().unwrap_or(&c.resource)),
        };
        (if c.used >= SATURATED { (1, queued()) } else { (0, c.used) }, c)
    };
    let mut ranked: Vec<((u8, f64), Candidate)> =
        wires(document, facts).chain(bus::buses(document)).chain(host).map(rank).collect();
    ranked.sort_by(|(a, one), (b, other)| {
        b.partial_cmp(a).expect("fractions are numbers").then(one.resource.cmp(&other.resource))
    });
    let candidates: Vec<Candidate> = ranked.into_iter().map(|(_, candidate)| candidate).collect();
    let downs = downs(document, facts);
    let down = downs.iter().filter(|down| down.used >= MAJOR).max_by(|a, b| a.used.total_cmp(&b.used));
    // A network loses all that it cannot carry, so nothing before it waits; a link without credits sends it again, and is busy with that.
    let full = room::port_buffers(document);
    let lossy = down.cloned().or_else(|| network::wire(document)).or_else(|| full.clone());
    let limit = match (lossy, candidates.first()) {
        (Some(found), _) => found,
        (None, Some(first)) if first.used >= SATURATED => first.clone(),
        _ if facts.guest => guest(candidates.first()),
        _ => {
            let found = host::reads(document, &flows, facts)
                .or_else(|| waits(document, &flows, facts))
                .or_else(|| cable::limit(document, facts))
                .or_else(|| network::software(document));
            match found {
                Some(found) => found,
                None if flows.iter().all(|flow| flow.transactions == 0) => return nothing(document, facts),
                None => own_loads(&flows, facts),
            }
        }
    };
    // What would have been carried over a link that was down, without TLPs that wait for a timeout, when not one transaction ended, or when none
    // ends any more, nobody knows.
    let stuck = is_stuck(document);
    let idle = flows.iter().all(|f| f.transactions == 0);
    let unknown = stuck || facts.guest || !downs.is_empty() || full.is_some() || idle;
    let next = if unknown { None } else { next::next(document, &flows, facts, &limit, &candidates) };
    let several = ["port buffers", "tags", "credits", "replays", "page walks", "reads", "translations"];
    let verb = if several.iter().any(|many| limit.resource.starts_with(many)) { "limit" } else { "limits" };
    let failed: u64 = document.flows.iter().map(failures).sum();
    let also = match (failed, refused(document).next()) {
        (0, _) => String::new(),
        (failed, None) => format!("; {failed} transactions failed"),
        (failed, Some(first)) => format!("; {failed} transactions failed, and {first}"),
    };
    let sentence = if stuck {
        format!("The run is stuck: {}{also}.", document.stop_text)
    } else {
        let subject = if limit.resource == NOTHING { "Nothing".to_owned() } else { capital(&limit.resource) };
        format!("{subject} {verb} the run: {}{also}.", limit.because)
    };
    let mut evidence = limit.evidence.clone();
    let others = downs.iter().filter(|down| down.resource != limit.resource);
    evidence.extend(others.flat_map(|down| down.evidence.clone()));
    if failed > 0 {
        evidence.push(format!("{failed} transactions failed"));
    }
    evidence.extend(refused(document));
    let limit = Limit {
        links: limit.links_in(document),
        resource: limit.resource,
        kind: limit.kind,
        utilization: limit.used.clamp(0.0, 1.0),
        evidence,
        ..Limit::default()
    };
    Verdict { sentence, limit, next, ..Verdict::default() }
}

/// The accesses and TLPs that the IOMMU, access control or the root complex refused, a clause for each reason and place.
pub(crate) fn refused(document: &Document) -> impl Iterator<Item = String> {
    translation::refused(document).chain(peers::refused(document))
}

/// Nothing was carried.
fn nothing(document: &Document, facts: &Facts<'_>) -> Verdict {
    let failed: u64 = document.flows.iter().map(failures).sum();
    let well: u64 = document.flows.iter().map(|flow| flow.transactions).sum();
    let copies = wires(document, facts).filter(|c| c.kind == LimitKind::Replay);
    let copies = copies.max_by(|a, b| a.replays.total_cmp(&b.replays));
    let found = downs(document, facts).into_iter().max_by(|a, b| a.used.total_cmp(&b.used)).or(copies);
    let sentence = match (failed, &found) {
        (0, None) if !facts.enumerated => {
            "No transaction ended: enumeration was not over when the run stopped.".to_owned()
        }
        (0, None) if well > 0 => {
            format!("Nothing limits the run: {well} transactions ended, none with data.")
        }
        (0, None) if document.end_fs < facts.fabric.warmup.as_fs() => {
            let (end, warmup) = (Time::from_fs(document.end_fs), facts.fabric.warmup);
            format!("Nothing was measured: the run was over at {end}, and statistics begin at {warmup}.")
        }
        (0, None) if facts.fabric.warmup > Time::ZERO => {
            format!(
                "Nothing limits the run: no transaction ended after its warm-up of {}.",
                facts.fabric.warmup
            )
        }
        (0, None) => "Nothing limits the run: no transaction ended.".to_owned(),
        (0, Some(why)) => format!("No transaction ended: {}, {}.", why.resource, why.because),
        (n, None) => match refused(document).next() {
            None => format!("No transaction ended well: {n} failed."),
            Some(first) => format!("No transaction ended well: {n} failed, and {first}."),
        },
        (n, Some(why)) => {
            format!("No transaction ended well, {n} failed: {}, {}.", why.resource, why.because)
        }
    };
    let limit = match found {
        None => Limit { resource: NOTHING.into(), evidence: refused(document).collect(), ..Limit::default() },
        Some(why) => Limit {
            links: why.links_in(document),
            resource: why.resource,
            kind: why.kind,
            utilization: why.used.clamp(0.0, 1.0),
            evidence: why.evidence,
            ..Limit::default()
        },
    };
    Verdict { sentence, limit, ..Verdict::default() }
}

/// True if the run ended because nothing happened any more.
fn is_stuck(document: &Document) -> bool {
    matches!(document.stop_reason, StopReason::Stuck(_))
}

/// The links that went down, with the share of the run, or of its transactions or their latency, that this cost.
fn downs(document: &Document, facts: &Facts<'_>) -> Vec<Candidate> {
    let crossing = |link: &str| {
        let flows = document.flows.iter().filter(|f| facts::links_of(document, f).contains(link));
        flows.collect::<Vec<&Flow>>()
    };
    let judged = document.links.iter().enumerate().filter_map(|(index, link)| {
        let at = facts.down(&link.name).filter(|at| at.as_fs() <= document.end_fs)?;
        let flows = crossing(&link.name);
        let failed: u64 = flows.iter().map(|f| f.errors.lost + f.errors.timeout + f.errors.ur).sum();
        let well: u64 = flows.iter().map(|f| f.transactions).sum();
        let waited = total_of(&flows, |a| a.cause == Cause::LinkDown as usize);
        let all = total_of(&flows, |_| true);
        let lost = failed as f64 / (failed + well).max(1) as f64;
        let concerned = flows.iter().any(|f| !(facts.is_over(f) && ended_by(document, f, at)));
        let away = if concerned { away(document, &link.name) } else { 0.0 };
        let share = lost.max(waited / all.max(f64::MIN_POSITIVE)).max(away);
        let place = format!("{} → {}", link.directions[0].from, link.directions[0].to);
        let mut evidence = vec![format!("link {place} went down at {at}")];
        if away > 0.0 {
            evidence.push(format!("the components below it were absent for {} of the run", percent(away)));
        }
        if failed > 0 {
            evidence.push(format!("{failed} of {} transactions across it failed", failed + well));
        }
        if waited > 0.0 {
            evidence.push(format!("{} of all latency across it is link down", percent(waited / all)));
        }
        Some(Candidate {
            resource: format!("link {place}"),
            kind: LimitKind::Link,
            used: share,
            links: vec![index],
            place: Some(place),
            replays: 0.0,
            because: format!("it went down at {at}"),
            evidence,
        })
    });
    judged.collect()
}

/// True if no data of a flow came after a time.
fn ended_by(document: &Document, flow: &Flow, at: Time) -> bool {
    let series = &document.series;
    let index = document.flows.iter().position(|one| one.name == flow.name);
    let bytes = series.flows.iter().find(|one| Some(one.flow) == index).map_or(&[][..], |one| &one.bytes);
    let last = bytes.iter().rposition(|bytes| *bytes > 0);
    last.is_none_or(|bin| series.start_fs + bin as u64 * series.bin_fs <= at.as_fs())
}

/// The share of the run in which what is below a link could not be used, because the link was down or software had not configured it.
fn away(document: &Document, link: &str) -> f64 {
    let (start, end) = (document.start_fs, document.end_fs);
    let mut outages = document.outages.iter().filter(|outage| outage.link == link).peekable();
    let mut gone = 0;
    while let Some(outage) = outages.next() {
        let next = outages.peek().map_or(end, |next| next.down_fs);
        gone += outage.configured_fs.unwrap_or(next).min(next).saturating_sub(outage.down_fs.max(start));
    }
    gone as f64 / (end - start).max(1) as f64
}

/// Transactions of a flow that did not end well.
pub(crate) fn failures(flow: &Flow) -> u64 {
    flow.errors.ur
        + flow.errors.ca
        + flow.errors.timeout
        + flow.errors.poisoned
        + flow.errors.lost
        + flow.errors.malformed
}

/// Every direction of every link, but not the ways of a bus: they have it together.
fn wires<'d>(document: &'d Document, facts: &'d Facts<'_>) -> impl Iterator<Item = Candidate> + 'd {
    let queueing = queueing(document);
    let links = document.links.iter().enumerate().filter(|(_, link)| link.bus.is_none());
    links.flat_map(|(index, link)| link.directions.iter().map(move |direction| (index, link, direction))).map(
        move |(index, link, direction)| {
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
            let queued = queueing.get(place.as_str()).map_or(&[][..], Vec::as_slice);
            evidence.extend(waiters(queued, &place));
            let queue = match waiting_flows(queued, &place).as_slice() {
                [] => String::new(),
                [one] => format!(", and {one} queues for it"),
                names => format!(", and {} queue for it", list(names)),
            };
            let span = document.end_fs.saturating_sub(document.start_fs).max(1) as f64 / 1e15;
            let (at_full_width, carried) =
                (u.payload * link.raw_bps, direction.payload_bytes as f64 * 8.0 / span);
            let payload = rate(carried.min(at_full_width));
            // A unit on the wire at the end is counted whole.
            let narrowed = if carried < 0.95 * at_full_width { " on the lanes that are left" } else { "" };
            let is_crossbar = facts.is_crossbar(link);
            let subject = match is_crossbar {
                true => "it".to_owned(),
                false => format!("gen{} x{}", link.generation, link.width),
            };
            let replaying = u.replay >= MAJOR;
            let because = match replaying {
                true => replays_because(direction),
                false => format!(
                    "{subject} is busy {} of the time{narrowed} with {payload} of payload{queue}",
                    percent(used),
                ),
            };
            Candidate {
                resource: match (replaying, is_crossbar) {
                    (true, _) => format!("replays on {place}"),
                    (false, true) => format!("crossbar of {}", link.name),
                    (false, false) => format!("link {place}"),
                },
                kind: if replaying { LimitKind::Replay } else { LimitKind::Link },
                used,
                links: vec![index],
                place: Some(place.clone()),
                replays: u.replay,
                because,
                evidence,
            }
        },
    )
}

fn replays_because(direction: &Direction) -> String {
    format!(
        "copies take {} of the time, after {} bad LCRCs and {} replay timeouts",
        percent(direction.utilization.replay),
        direction.bad_lcrc,
        direction.replay_timeouts
    )
}

/// Mean use of a resource as a share of what there is of it.
fn used(resource: &crate::result::Resource) -> f64 {
    let mean = resource.mean.iter().sum::<f64>() / resource.mean.len().max(1) as f64;
    resource.capacity.map_or(0.0, |capacity| mean / capacity.max(1) as f64)
}

/// The waits of the critical paths, when no wire and no memory is busy.
fn waits(document: &Document, flows: &[&Flow], facts: &Facts<'_>) -> Option<Candidate> {
    let waits = [
        (Cause::CreditWait, LimitKind::Credits),
        (Cause::ReplayBufferWait, LimitKind::Replay),
        (Cause::Replay, LimitKind::Replay),
        (Cause::TagWait, LimitKind::Tags),
        (Cause::TranslationWait, LimitKind::Latency),
    ];
    let total: f64 = flows.iter().flat_map(|f| &f.attribution).map(|a| a.total_ns).sum();
    let (mut best, mut most): (Option<Candidate>, (bool, f64)) = (None, (false, 0.0));
    for (cause, kind) in waits {
        let Some((flow, wait)) = heaviest(flows, |a| a.cause == cause as usize) else { continue };
        let share = total_of(flows, |a| a.cause == cause as usize) / total.max(f64::MIN_POSITIVE);
        // A load with few transactions more than there are credits for waits a short time for each, but its port is never free.
        let egress = downstream::direction(document, &wait.place);
        let held = egress.and_then(|egress| downstream::waits_for(egress, cause));
        let used = held.map_or(share, |stalled| stalled.max(share));
        if used < MAJOR || most >= (held.is_some(), share) {
            continue;
        }
        most = (held.is_some(), share);
        let (resource, because) = match kind {
            LimitKind::Credits => (
                format!("credits of {}", wait.place),
                "the receiver's buffers are full while TLPs wait".to_owned(),
            ),
            LimitKind::Tags => (format!("tags of {}", flow.device), tags_because(document, &flow.device)),
            LimitKind::Latency => {
                (format!("translations of {}", flow.device), translation::because(document, &flow.device))
            }
            _ if cause == Cause::Replay => {
                let place = downstream::direction(document, &wait.place);
                (format!("replays on {}", wait.place), place.map_or_else(String::new, replays_because))
            }
            _ => (
                format!("replay buffer of {}", wait.place),
                "it is full of TLPs that are not yet acknowledged".to_owned(),
            ),
        };
        let evidence = vec![format!(
            "{} of all latency is {}, most of it in {} at {}",
            percent(share),
            cause.name(),
            flow.name,
            wait.place
        )];
        let mut found = Candidate {
            resource,
            kind,
            used,
            links: Vec::new(),
            place: Some(wait.place.clone()),
            replays: 0.0,
            because,
            evidence,
        };
        if cause == Cause::Replay {
            let here = |d: &Direction| format!("{} → {}", d.from, d.to) == wait.place;
            found.links.extend(document.links.iter().position(|l| l.directions.iter().any(here)));
        }
        let downstream = match kind {
            LimitKind::Credits => downstream::cause(document, flow, &wait.place),
            _ => None,
        };
        best = Some(match downstream {
            Some(egress) => held_up(document, facts, egress, found),
            None => found,
        });
    }
    best
}

/// Credits run out because an egress further on is held up: that is the limit.
fn held_up(document: &Document, facts: &Facts<'_>, egress: &Direction, behind: Candidate) -> Candidate {
    let place = format!("{} → {}", egress.from, egress.to);
    let stalls = &egress.stalls;
    if 1.0 - egress.utilization.idle >= stalls.replay_buffer.max(stalls.credits)
        && let Some(mut wire) = wires(document, facts).find(|c| c.place.as_ref() == Some(&place))
    {
        wire.evidence.extend(behind.evidence);
        return wire;
    }
    let (kind, what, because, share) = if stalls.replay_buffer >= stalls.credits {
        let because = "it is full of TLPs that are not yet acknowledged";
        (LimitKind::Replay, "replay buffer", because, stalls.replay_buffer)
    } else {
        (LimitKind::Credits, "credits", "the receiver's buffers are full while TLPs wait", stalls.credits)
    };
    let mut evidence = vec![format!("{place} waits for its {what} {} of the time", percent(share))];
    evidence.extend(behind.evidence);
    Candidate {
        resource: format!("{what} of {place}"),
        kind,
        used: share,
        links: Vec::new(),
        place: Some(place),
        replays: 0.0,
        because: because.to_owned(),
        evidence,
    }
}

fn tags_because(document: &Document, device: &str) -> String {
    let name = format!("tags of {device}");
    match document.series.resources.iter().find(|r| r.kind == ResourceKind::Tags && r.name == name) {
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

/// Nothing is busy all the time, and a guest's software issues one thing after the other.
fn guest(busiest: Option<&Candidate>) -> Candidate {
    let evidence =
        busiest.map(|one| format!("{} is busy for {} of the run", one.resource, percent(one.used)));
    Candidate {
        resource: "the pace of the guest's software".into(),
        kind: LimitKind::Latency,
        used: 1.0,
        links: Vec::new(),
        place: None,
        replays: 0.0,
        because: "nothing below it is busy all the time".into(),
        evidence: evidence.into_iter().collect(),
    }
}

/// Nothing is short: the loads themselves ask for no more.
fn own_loads(flows: &[&Flow], facts: &Facts<'_>) -> Candidate {
    let unserved = flows.iter().filter(|f| !facts.is_served(f));
    let slowest = unserved.max_by(|a, b| a.payload_bps.total_cmp(&b.payload_bps));
    let Some(flow) = slowest else {
        let names: Vec<&str> = flows.iter().map(|f| f.name.as_str()).collect();
        let pace = if flows.iter().all(|f| facts.is_captured(f)) { "captured pace" } else { "rate" };
        return Candidate {
            resource: format!("the {pace} of {}", list(&names)),
            kind: LimitKind::Rate,
            used: 1.0,
            links: Vec::new(),
            place: None,
            replays: 0.0,
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
        let cause = Cause::ALL.get(most.cause).map_or("", |cause| cause.name());
        evidence.push(format!(
            "{} of the latency of {} is {cause} at {}",
            percent(most.share),
            flow.name,
            most.place
        ));
    }
    let (kind, resource, because) = match facts.outstanding(flow) {
        Some(1) => (
            LimitKind::Latency,
            format!("the latency of {}", flow.name),
            format!("one transaction follows the other, and each takes {}", nanoseconds(mean)),
        ),
        Some(n) if always_under_way(flow, n) => (
            LimitKind::Outstanding,
            format!("the outstanding of {}", flow.name),
            format!("its {n} transactions are always under way, and each takes {}", nanoseconds(mean)),
        ),
        Some(n) if facts.is_over(flow) => (
            LimitKind::default(),
            NOTHING.to_owned(),
            format!(
                "fewer than {n} transactions of {} are under way most of the time, and each takes {}",
                flow.name,
                nanoseconds(mean)
            ),
        ),
        Some(n) => (
            LimitKind::Latency,
            format!("the latency of {}", flow.name),
            format!("{} transactions ended in the run, and {n} are under way at a time", flow.transactions),
        ),
        None => (
            LimitKind::Latency,
            format!("the latency of {}", flow.name),
            format!("a transaction takes {}, and nothing is busy all the time", nanoseconds(mean)),
        ),
    };
    Candidate { resource, kind, used: 1.0, links: Vec::new(), place: None, replays: 0.0, because, evidence }
}

/// The resource of a run that nothing limits.
pub(crate) const NOTHING: &str = "nothing";

/// From this part of its outstanding transactions on, a load is said to have them all under way.
const ALL_UNDER_WAY: f64 = 0.8;

/// True if so many transactions of a flow are under way at a time, by its rate and their latency.
fn always_under_way(flow: &Flow, outstanding: u32) -> bool {
    let (Some(latency), true) = (&flow.latency_ns, flow.transactions > u64::from(outstanding)) else {
        return false;
    };
    let per_second = flow.payload_bps / 8.0 * flow.transactions as f64 / flow.bytes as f64;
    per_second * latency.mean / 1e9 >= ALL_UNDER_WAY * f64::from(outstanding)
}

/// From this share of its latency on, a flow is said to queue at a place.
const QUEUES: f64 = 0.05;

fn waiting_flows<'d>(flows: &[&'d Flow], place: &str) -> Vec<&'d str> {
    let here = |a: &&Attribution| a.place == place && a.cause == Cause::Queueing as usize;
    let share = |f: &&&Flow| f.attribution.iter().filter(here).map(|a| a.share).sum::<f64>() >= QUEUES;
    flows.iter().filter(share).map(|f| f.name.as_str()).collect()
}

/// The flows that queue at each place.
fn queueing(document: &Document) -> BTreeMap<&str, Vec<&Flow>> {
    let mut places: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in &document.flows {
        let queued = flow.attribution.iter().filter(|a| a.cause == Cause::Queueing as usize);
        for place in queued.map(|a| a.place.as_str()).collect::<BTreeSet<_>>() {
            places.entry(place).or_default().push(flow);
        }
    }
    places
}

/// Flows of a place, and flows ahead of each, that the evidence names one by one, if there are more than one more.
const WAITERS: usize = 3;

/// The flows that wait at a place, and the flows ahead.
fn waiters(flows: &[&Flow], place: &str) -> Vec<String> {
    let mut out = Vec::new();
    for flow in flows {
        let here = |a: &&Attribution| a.place == place && a.cause == Cause::Queueing as usize;
        let share: f64 = flow.attribution.iter().filter(here).map(|a| a.share).sum();
        if share < QUEUES {
            continue;
        }
        let behind = flow.attribution.iter().filter(here).filter(|a| a.share >= 0.01);
        let behind: Vec<_> = behind.filter_map(|a| Some((a.share, a.behind.as_ref()?))).collect();
        let (told, rest) = behind.split_at(named_of(behind.len()));
        let mut details: Vec<String> =
            told.iter().map(|(share, name)| format!("{} behind {name}", percent(*share))).collect();
        if !rest.is_empty() {
            let share = rest.iter().map(|(share, _)| share).sum();
            details.push(format!("{} behind {} others", percent(share), rest.len()));
        }
        let detail = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        out.push(format!("{} spends {} of its latency queueing there{detail}", flow.name, percent(share)));
    }
    let others = out.split_off(named_of(out.len())).len();
    if others > 0 {
        out.push(format!("{others} more flows queue there"));
    }
    out
}

/// Of so many waiting flows, the number that the evidence names.
fn named_of(count: usize) -> usize {
    if count > WAITERS + 1 { WAITERS } else { count }
}

/// Nanoseconds that transactions queue at a place.
fn waiting_at(document: &Document, place: &str) -> f64 {
    let here = |a: &&Attribution| a.place == place && a.cause == Cause::Queueing as usize;
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
