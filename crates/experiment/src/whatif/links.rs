//! Candidates for limits on links: lanes and speed, credits, the times of credits and acknowledgements, replay buffers, cables, faults.

use super::{
    By, Candidate, Figures, lengthen_time, relax_any, relax_count, relax_fewer, relax_rate, relax_time,
};
use crate::experiment::Experiment;
use crate::result::{Direction, LimitKind};
use std::collections::BTreeMap;
use tlplab_datalink::{AckLatency, Config, CreditKind, Credits};
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{Buffers, Fault, FaultKind, FlowControl, LinkConfig, PortConfig, UpdateFcPolicy};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Width};

/// The end of a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lower,
    Upper,
}

impl End {
    fn of(self, link: &mut LinkConfig) -> &mut PortConfig {
        match self {
            Self::Lower => &mut link.lower,
            Self::Upper => &mut link.upper,
        }
    }
}

type OfBuffers = fn(&mut Buffers) -> &mut u32;

/// The classes of credits: their name, and their part of the buffers.
const CREDITS: [(&str, Counts, OfBuffers); 6] = [
    ("posted header credits", Counts::Headers, |b| &mut b.posted_headers),
    ("posted data credits", Counts::Data, |b| &mut b.posted_data),
    ("non-posted header credits", Counts::Headers, |b| &mut b.non_posted_headers),
    ("non-posted data credits", Counts::Data, |b| &mut b.non_posted_data),
    ("completion header credits", Counts::Headers, |b| &mut b.completion_headers),
    ("completion data credits", Counts::Data, |b| &mut b.completion_data),
];

/// The unit of a credit.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// A header.
    Headers,
    /// 16 bytes of data.
    Data,
}

impl Counts {
    /// The most credits that a port can have: ports of 16 GT/s and more can scale them by 16.
    fn most(self, scaled: bool) -> u64 {
        let kind = match self {
            Self::Headers => CreditKind::Header,
            Self::Data => CreditKind::Data,
        };
        kind.most(scaled).into()
    }
}

/// The link above a component.
fn link<'e>(experiment: &'e mut Experiment, name: &str) -> Option<&'e mut LinkConfig> {
    let fabric = &mut experiment.fabric;
    let devices = fabric.devices.iter_mut().map(|device| (&device.name, &mut device.link));
    let switches = fabric.switches.iter_mut().map(|switch| (&switch.name, &mut switch.uplink));
    let buses = fabric.buses.iter_mut().map(|bus| (&bus.name, &mut bus.uplink));
    devices.chain(switches).chain(buses).find(|(its, _)| *its == name).map(|(_, link)| link)
}

/// The link above a component, and how it was built.
struct LinkAt<'a> {
    name: &'a str,
    built: &'a LinkConfig,
    /// Its directions as places, up and down.
    places: [String; 2],
    /// It is below a port of the root complex.
    on_host: bool,
}

/// A port of a link, and how it was built.
struct PortAt<'a> {
    link: &'a LinkAt<'a>,
    end: End,
    /// Its name.
    port: String,
    /// The direction that it receives.
    incoming: &'a str,
    layer: &'a Config,
}

pub(super) fn candidates(experiment: &Experiment, fabric: &Fabric, figures: &Figures<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    let mut ports: BTreeMap<&str, usize> = BTreeMap::new();
    for port in &fabric.topology().ports {
        *ports.entry(&port.name).or_default() += 1;
    }
    all.extend(payload_size(experiment));
    let mut scratch = experiment.clone();
    for (info, result) in fabric.topology().links.iter().zip(&figures.document.links) {
        let Some(built) = link(&mut scratch, &info.name).filter(|_| info.bus.is_none()) else { continue };
        let [up, down] = &result.directions;
        let places = [up, down].map(|way| format!("{} → {}", way.from, way.to));
        let on_host =
            built.under.strip_prefix(&experiment.fabric.host.name).is_some_and(|rest| rest.starts_with('.'));
        let at = LinkAt { name: &info.name, built, places, on_host };
        let (busier, busy) = match 1.0 - up.utilization.idle < 1.0 - down.utilization.idle {
            true => (1, 1.0 - down.utilization.idle),
            false => (0, 1.0 - up.utilization.idle),
        };
        if at.built.crossbar.is_some() {
            all.extend(of_link(
                &at,
                format!("crossbar of {}", at.name),
                LimitKind::Link,
                busy,
                |link, by| relax_rate(link.crossbar.as_mut()?, by),
            ));
        } else {
            wires(&mut all, &at, &format!("link {}", at.places[busier]), busy);
        }
        let flight = at.places.iter().map(|place| figures.share(place, &[Cause::Flight])).sum();
        all.extend(of_link(
            &at,
            format!("cable of link {}", at.name),
            LimitKind::Latency,
            flight,
            |link, by| relax_time(&mut link.flight, by),
        ));
        all.extend(of_link(
            &at,
            format!("TLP alignment of link {}", at.name),
            LimitKind::Link,
            busy * 0.9,
            |link, by| {
                let before = link.tlp_alignment;
                // TLPs are whole words of 4 bytes.
                link.tlp_alignment = if by == By::Twice { before / 2 } else { 4 }.max(4);
                (by != By::Tenth && link.tlp_alignment < before)
                    .then(|| format!("{before} B → {} B", link.tlp_alignment))
            },
        ));
        faults(&mut all, &at, figures);
        for (end, port, own, other) in [(End::Lower, info.ports[0], 0, 1), (End::Upper, info.ports[1], 1, 0)]
        {
            let layer = fabric.data_link_config(port);
            let Direction { from, to, .. } = &result.directions[own];
            let port = if ports[from.as_str()] == 1 { from.clone() } else { format!("{from} for {to}") };
            let here = PortAt { link: &at, end, port, incoming: &at.places[other], layer };
            // A receiver's credits and UpdateFCs hold up the other direction's transmitter, as its Acks do.
            let waits =
                |way: usize, cause: Cause, stalls: f64| figures.share(&at.places[way], &[cause]).max(stalls);
            let (sent, received) = (&result.directions[own].stalls, &result.directions[other].stalls);
            stages(&mut all, &here, figures);
            let busy = figures.share(from, &[Cause::Processing]);
            all.extend(of_port(
                &here,
                format!("latency of {} (port)", here.port),
                LimitKind::Latency,
                busy,
                |port, by| relax_time(port.latency.as_mut()?, by),
            ));
            if layer.flow_control == FlowControl::Crossbar {
                continue; // it has no data link layer
            }
            if layer.flow_control == FlowControl::Credits {
                credits(&mut all, &here, waits(other, Cause::CreditWait, received.credits));
            }
            acknowledgements(&mut all, &here, waits(other, Cause::ReplayBufferWait, received.replay_buffer));
            replay_buffer(&mut all, &here, waits(own, Cause::ReplayBufferWait, sent.replay_buffer));
            // Where it never ended, more or less of it would have done nothing.
            if result.directions[own].replay_timeouts > 0 {
                replay_timer(&mut all, &here, waits(own, Cause::Replay, 0.0));
            }
        }
    }
    all
}

/// The links that an experiment has, by the components below them.
fn all_links(experiment: &mut Experiment) -> impl Iterator<Item = &mut LinkConfig> {
    let fabric = &mut experiment.fabric;
    let devices = fabric.devices.iter_mut().map(|device| &mut device.link);
    let switches = fabric.switches.iter_mut().map(|switch| &mut switch.uplink);
    devices.chain(switches).chain(fabric.buses.iter_mut().map(|bus| &mut bus.uplink))
}

/// A larger Max_Payload_Size of all ports: each hierarchy uses its smallest one.
fn payload_size(experiment: &Experiment) -> Option<Candidate> {
    Candidate::of_part(
        "the maximum payload size".to_owned(),
        LimitKind::Link,
        0.1,
        experiment,
        |experiment: &mut Experiment| Some(experiment),
        |experiment, by| {
            let sizes = Mps::ALL;
            let at = |mps: Mps| sizes.iter().position(|size| *size == mps);
            let mut changes: Vec<String> = Vec::new();
            let payloads = all_links(experiment).flat_map(|link| {
                std::iter::once(&mut link.mps)
                    .chain(&mut link.upper.max_payload)
                    .chain(&mut link.lower.max_payload)
            });
            for payload in payloads {
                let before = *payload;
                *payload = match by {
                    By::Tenth => return None,
                    By::Twice => sizes[(at(before)? + 1).min(sizes.len() - 1)],
                    By::Gone => sizes[sizes.len() - 1],
                };
                let change = format!("{} B → {} B", before.bytes(), payload.bytes());
                if payload.bytes() > before.bytes() && !changes.contains(&change) {
                    changes.push(change);
                }
            }
            (!changes.is_empty()).then(|| changes.join(", "))
        },
    )
}

fn of_link(
    at: &LinkAt<'_>,
    resource: String,
    kind: LimitKind,
    suspicion: f64,
    change: impl Fn(&mut LinkConfig, By) -> Option<String> + Send + Sync + 'static,
) -> Option<Candidate> {
    let name = at.name.to_owned();
    let candidate = Candidate::of_part(
        resource,
        kind,
        suspicion,
        at.built,
        move |experiment| link(experiment, &name),
        change,
    )?;
    Some(Candidate { link: Some(at.name.to_owned()), ..candidate })
}

fn of_port(
    at: &PortAt<'_>,
    resource: String,
    kind: LimitKind,
    suspicion: f64,
    change: impl Fn(&mut PortConfig, By) -> Option<String> + Send + Sync + 'static,
) -> Option<Candidate> {
    let end = at.end;
    let candidate = of_link(at.link, resource, kind, suspicion, move |link, by| change(end.of(link), by))?;
    Some(Candidate { of_host: end == End::Upper && at.link.on_host, ..candidate })
}

/// Twice the lanes, or the next generation; without limit, all there is of both.
fn wires(all: &mut Vec<Candidate>, at: &LinkAt<'_>, resource: &str, busy: f64) {
    let widest = |link: &mut LinkConfig| {
        let before = format!("{} {}", link.generation, link.width);
        (link.generation, link.width) = (generations(link).max()?, Width::ALL.into_iter().next_back()?);
        Some(format!("{before} → {} {}", link.generation, link.width))
    };
    let lanes = move |link: &mut LinkConfig, by: By| match by {
        By::Tenth => None, // no link is a tenth wider
        By::Gone => widest(link),
        By::Twice => {
            // Where there is no link of twice the lanes, the next wider one.
            let before = link.width;
            let twice = before.lanes().checked_mul(2).and_then(Width::new);
            link.width =
                twice.or_else(|| Width::ALL.into_iter().find(|wider| wider.lanes() > before.lanes()))?;
            Some(format!("{before} → {}", link.width))
        }
    };
    let wires = || Some(at.name.to_owned());
    let candidate = of_link(at, resource.to_owned(), LimitKind::Link, busy, lanes);
    all.extend(candidate.map(|candidate| Candidate { wires: wires(), ..candidate }));
    let speed = move |link: &mut LinkConfig, by: By| match by {
        By::Tenth => None,
        By::Gone => widest(link),
        By::Twice => {
            let before = link.generation;
            link.generation = generations(link).filter(|generation| *generation > before).min()?;
            Some(format!("{before} → {}", link.generation))
        }
    };
    let candidate = of_link(at, resource.to_owned(), LimitKind::Link, busy, speed);
    all.extend(candidate.map(|candidate| Candidate { wires: wires(), ..candidate }));
}

/// The generations that a link could have in its mode.
fn generations(link: &LinkConfig) -> impl Iterator<Item = Generation> + use<> {
    let flit = link.mode == LinkMode::Flit;
    Generation::ALL.into_iter().filter(move |generation| flit || !generation.requires_flit_mode())
}

/// Outages and damage: half as long or as many, or none.
fn faults(all: &mut Vec<Candidate>, at: &LinkAt<'_>, figures: &Figures<'_>) {
    let is_outage = |fault: &Fault| fault.kind.takes_down();
    let [up, down] = &at.places;
    if at.built.faults.iter().any(is_outage) {
        let away =
            figures.share(up, &[Cause::LinkDown]).max(figures.share(down, &[Cause::LinkDown])).max(0.5);
        all.extend(of_link(at, format!("outages of link {up}"), LimitKind::Link, away, move |link, by| {
            fewer(link, by, is_outage)
        }));
    }
    if !at.built.faults.is_empty() {
        let away = figures.share_anywhere(&[Cause::LinkDown, Cause::Replay]);
        all.extend(of_link(at, format!("recovery of link {up}"), LimitKind::Link, away, |link, by| {
            relax_time(&mut link.recovery, by)
        }));
    }
    if at.built.faults.iter().any(|fault| !is_outage(fault)) {
        let copies = at.places.iter().map(|place| figures.share(place, &[Cause::Replay])).sum();
        all.extend(of_link(
            at,
            format!("faults of link {up}"),
            LimitKind::Replay,
            copies,
            move |link, by| fewer(link, by, |fault| !is_outage(fault)),
        ));
    }
}

/// Half of those faults that are meant: outages of half the length, half as many of what is counted or likely. A single one, or an outage
/// without end, goes.
fn fewer(link: &mut LinkConfig, by: By, meant: impl Fn(&Fault) -> bool) -> Option<String> {
    if by == By::Tenth {
        return None;
    }
    let (mut halved, mut gone) = (false, false);
    link.faults.retain_mut(|fault| {
        if !meant(fault) {
            return true;
        }
        let stays = by == By::Twice
            && match &mut fault.kind {
                FaultKind::Down { at, until: Some(until) } | FaultKind::Reset { at, until: Some(until) } => {
                    *until = *at + Duration::from_fs((*until - *at).as_fs() / 2);
                    true
                }
                FaultKind::BitErrors { numerator } => {
                    *numerator /= 2;
                    true
                }
                FaultKind::Nth { count, .. }
                | FaultKind::Tamper { count, .. }
                | FaultKind::Forge { count, .. } => {
                    *count /= 2;
                    *count > 0
                }
                FaultKind::Down { until: None, .. }
                | FaultKind::Reset { until: None, .. }
                | FaultKind::Narrow { .. } => false,
            };
        halved |= stays;
        gone |= !stays;
        stays
    });
    let words = match (halved, gone) {
        (true, false) => "half",
        (true, true) => "half, and single ones none",
        _ => "none",
    };
    Some(words.to_owned())
}

/// The buffers that a port was built with, as an experiment writes them: 0 is without limit.
fn buffers_of(layer: &Config) -> Option<Buffers> {
    let classes = layer.receive.vcs[0]?.0;
    let credits = |credits| match credits {
        Credits::Infinite => 0,
        Credits::Finite(n) => u32::from(n),
    };
    let [posted, non_posted, completion] = classes;
    Some(Buffers {
        posted_headers: credits(posted.header),
        posted_data: credits(posted.data),
        non_posted_headers: credits(non_posted.header),
        non_posted_data: credits(non_posted.data),
        completion_headers: credits(completion.header),
        completion_data: credits(completion.data),
    })
}

/// More of each kind, more of all, and UpdateFCs as soon as there is something to tell.
fn credits(all: &mut Vec<Candidate>, at: &PortAt<'_>, waits: f64) {
    let Some(built) = buffers_of(at.layer) else { return };
    let scaled = at.layer.scaled_flow_control;
    for (name, counts, of) in CREDITS {
        let most = counts.most(scaled);
        let change = move |port: &mut PortConfig, by: By| {
            let buffers = port.buffers.get_or_insert(built);
            more_credits(of(buffers), by, most)
        };
        if *of(&mut built.clone()) > 0 {
            let candidate = of_port(at, format!("{name} of {}", at.port), LimitKind::Credits, waits, change);
            let (place, part_of) = (Some(at.incoming.to_owned()), Some(format!("credits of {}", at.port)));
            all.extend(candidate.map(|candidate| Candidate { place, part_of, ..candidate }));
        }
    }
    let change = move |port: &mut PortConfig, by: By| {
        let buffers = port.buffers.get_or_insert(built);
        let before = *buffers;
        let changed = CREDITS.map(|(_, counts, of)| more_credits(of(buffers), by, counts.most(scaled)));
        let lifted = CREDITS.iter().any(|(_, _, of)| *of(&mut before.clone()) > 0 && *of(buffers) == 0);
        changed.iter().any(Option::is_some).then(|| {
            let more = match by {
                By::Tenth => "a tenth more of each",
                By::Twice => "twice as many of each",
                By::Gone => return "without limit".to_owned(),
            };
            let end = if lifted { ", without limit where there can be no more" } else { "" };
            format!("{more}{end}")
        })
    };
    let candidate = of_port(at, format!("credits of {}", at.port), LimitKind::Credits, waits * 0.99, change);
    let place = Some(at.incoming.to_owned());
    all.extend(candidate.map(|candidate| Candidate { place, ..candidate }));
    let at_once = |port: &mut PortConfig, by: By| {
        let policy = UpdateFcPolicy::EACH_TLP;
        (by != By::Tenth && port.update_fc != policy).then(|| {
            port.update_fc = policy;
            "one for each TLP".to_owned()
        })
    };
    all.extend(of_port(at, format!("UpdateFCs of {}", at.port), LimitKind::Credits, waits * 0.98, at_once));
    let fewer = |port: &mut PortConfig, by: By| {
        let policy = UpdateFcPolicy::default();
        (by != By::Tenth && port.update_fc == UpdateFcPolicy::EACH_TLP && port.update_fc != policy).then(
            || {
                port.update_fc = policy;
                "one for each TLP → fewer".to_owned()
            },
        )
    };
    all.extend(of_port(at, format!("UpdateFCs of {}", at.port), LimitKind::Credits, waits * 0.97, fewer));
}

/// More credits in place, at most as many as a port can have. 0 is without limit, which is what is left to one that has all of those.
fn more_credits(credits: &mut u32, by: By, most: u64) -> Option<String> {
    let before = *credits;
    if before == 0 {
        return None;
    }
    let more = by.count(u64::from(before), u64::MAX)?;
    let all = by == By::Gone || u64::from(before) >= most;
    *credits = if all { 0 } else { more.min(most) as u32 };
    Some(match *credits {
        0 => format!("{before} → no limit"),
        more => format!("{before} → {more}"),
    })
}

/// Quicker stages between the transaction layer and the wire, all of a port together.
fn stages(all: &mut Vec<Candidate>, at: &PortAt<'_>, figures: &Figures<'_>) {
    let ways = at.link.places.iter();
    let share = ways.map(|place| figures.share_of_stages(place)).sum::<f64>() / 2.0;
    all.extend(of_port(at, format!("stages of {}", at.port), LimitKind::Latency, share, |port, by| {
        let of = &mut port.stages;
        let times = [
            &mut of.tx_transaction,
            &mut of.tx_data_link,
            &mut of.tx_physical,
            &mut of.tx_transceiver,
            &mut of.rx_transceiver,
            &mut of.rx_physical,
            &mut of.rx_data_link,
            &mut of.rx_transaction,
            &mut of.register_response,
            &mut of.config_response,
        ];
        let changed = times.map(|time| relax_time(time, by));
        changed.iter().any(Option::is_some).then(|| by.quicker().to_owned())
    }));
}

/// Acks that come sooner.
fn acknowledgements(all: &mut Vec<Candidate>, at: &PortAt<'_>, waits: f64) {
    let latency = at.layer.ack_latency();
    if at.layer.ack.latency == AckLatency::AtOnce {
        // Fewer Acks leave more of the wire to TLPs.
        let later = |port: &mut PortConfig, by: By| {
            (by != By::Tenth && port.ack_latency.take().is_some())
                .then(|| "at once → the specification's".to_owned())
        };
        all.extend(of_port(at, format!("ack latency of {}", at.port), LimitKind::Replay, waits, later));
        return;
    }
    let change = move |port: &mut PortConfig, by: By| relax_time(port.ack_latency.get_or_insert(latency), by);
    all.extend(of_port(at, format!("ack latency of {}", at.port), LimitKind::Replay, waits * 0.99, change));
    all.extend(of_port(
        at,
        format!("TLPs to an Ack of {}", at.port),
        LimitKind::Replay,
        waits * 0.98,
        |port, by| relax_fewer(port.ack_every.as_mut()?, by, 1),
    ));
}

/// A larger replay buffer.
fn replay_buffer(all: &mut Vec<Candidate>, at: &PortAt<'_>, full: f64) {
    let change = |port: &mut PortConfig, by: By| {
        let (mut tlps, mut bytes) = (None, None);
        if let Some(count) = &mut port.replay_tlps {
            tlps = relax_count(count, by, 2048);
        }
        if let Some(count) = &mut port.replay_bytes {
            bytes = relax_any(count, by, u32::MAX.into());
        }
        match (tlps, bytes) {
            (Some(tlps), Some(bytes)) => Some(format!("{tlps} TLPs, {bytes} B")),
            (Some(tlps), None) => Some(format!("{tlps} TLPs")),
            (None, bytes) => bytes.map(|bytes| format!("{bytes} B")),
        }
    };
    all.extend(of_port(at, format!("replay buffer of {}", at.port), LimitKind::Replay, full, change));
}

/// A replay timer that waits longer for Acks that come late, and one that sooner finds those that never come.
fn replay_timer(all: &mut Vec<Candidate>, at: &PortAt<'_>, copies: f64) {
    let timer = at.layer.replay_timeout();
    let longer =
        move |port: &mut PortConfig, by: By| lengthen_time(port.replay_timer.get_or_insert(timer), by);
    let sooner = move |port: &mut PortConfig, by: By| match by {
        By::Gone => None, // without time there would be copies only
        by => relax_time(port.replay_timer.get_or_insert(timer), by),
    };
    let resource = format!("replay timer of {}", at.port);
    all.extend(of_port(at, resource.clone(), LimitKind::Replay, copies, longer));
    all.extend(of_port(at, resource, LimitKind::Replay, copies * 0.99, sooner));
}
