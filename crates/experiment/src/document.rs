//! The state of a fabric at the end of a run, as a [`Document`].

use crate::access;
use crate::config_spaces::config_spaces;
use crate::detail::{self, Detail};
use crate::device_models::ModelSpec;
use crate::experiment::Experiment;
use crate::fault;
use crate::host_use::host_use;
use crate::ladder;
use crate::lspci;
use crate::network;
use crate::result::{self, Document};
use crate::stop::StopReason;
use crate::translation;
use crate::verdict::{self, Facts};
use std::collections::BTreeMap;
use tlplab_device::FrameCounts;
use tlplab_fabric::attribution::{Cause, Interval};
use tlplab_fabric::config::{Arbitration, BusConfig, PeerToPeer};
use tlplab_fabric::results::{DirectionResult, Level, LevelResult};
use tlplab_fabric::{Ending, Fabric, Failures, FlowId, FlowStatistics, HostCounters, LinkId, PortId};
use tlplab_transaction::CompletionPolicy;
use tlplab_units::{Duration, LinkMode, Time};

/// Counters of wires and memory at the end of the warm-up.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    at: Time,
    directions: Vec<Option<DirectionResult>>,
    memory_busy: Duration,
    host: HostCounters,
    frames: BTreeMap<String, FrameCounts>,
}

impl Baseline {
    /// Now; without a warm-up the start of the run, before what devices began to send at time 0.
    pub(crate) fn take(fabric: &mut Fabric) -> Self {
        if fabric.warmup() == Time::ZERO {
            return Self { host: fabric.host_counters(), ..Self::zero(fabric) };
        }
        let ports: Vec<PortId> = ports(fabric);
        let directions = ports.iter().map(|port| Some(fabric.direction_result(*port))).collect();
        let memory_busy = fabric.memory_busy().unwrap_or(Duration::ZERO);
        let (host, frames) = (fabric.host_counters(), fabric.frame_counts());
        Self { at: fabric.warmup(), directions, memory_busy, host, frames }
    }
    /// The start of the run.
    pub(crate) fn zero(fabric: &Fabric) -> Self {
        Self {
            at: Time::ZERO,
            directions: vec![None; 2 * fabric.topology().links.len()],
            memory_busy: Duration::ZERO,
            host: HostCounters::default(),
            frames: BTreeMap::new(),
        }
    }
}

/// Transmitting ports, two for each link: up, down.
fn ports(fabric: &Fabric) -> Vec<PortId> {
    fabric.topology().links.iter().flat_map(|link| link.ports).collect()
}

pub(crate) const FS_PER_NS: f64 = 1e6;
pub(crate) const FS_PER_S: f64 = 1e15;

fn ns(duration: Duration) -> f64 {
    duration.as_fs() as f64 / FS_PER_NS
}

/// The whole document.
pub(crate) fn document(
    fabric: &mut Fabric,
    experiment: &Experiment,
    baseline: &Baseline,
    ladder: Option<&ladder::Shared>,
    stop_reason: StopReason,
    detail: Detail,
) -> Document {
    let span = fabric.now().saturating_since(baseline.at);
    let links = links(fabric, &experiment.fabric.buses, baseline, span);
    let mut document = Document {
        schema: result::SCHEMA.into(),
        revision: result::REVISION,
        title: experiment.title.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed: experiment.fabric.seed,
        experiment: experiment.source.clone(),
        settings: experiment.settings.clone(),
        trace_hash: format!("{:016x}", fabric.trace_hash()),
        start_fs: baseline.at.as_fs(),
        end_fs: fabric.now().as_fs(),
        stop_reason,
        stop_text: stop_reason.to_string(),
        waiting: Vec::new(),
        guest: None,
        verdict: result::Verdict::default(),
        flows: flows(fabric, span),
        measured: measured(fabric),
        networks: network::networks(fabric, span),
        frames: network::frames(fabric, &baseline.frames),
        causes: result::causes(),
        errors: detected(fabric),
        reported: reported(fabric),
        refused_peers: access::refused(fabric, &experiment.settings),
        outages: outages(fabric),
        faults: fault::struck(fabric, &experiment.fabric),
        problems: lspci::problems_so_far(fabric),
        host: {
            let counted = fabric.host_counters();
            host_use(fabric, &experiment.fabric.host, &baseline.host, &counted, span)
        },
        translations: translation::of_devices(fabric),
        topology: result::Topology { nodes: nodes(fabric, experiment) },
        series: series(fabric, &links),
        links,
        places: fabric.topology().place_names(),
        samples: samples(fabric),
        ladder: ladder.and_then(|l| l.result(fabric.topology())),
        config_spaces: config_spaces(fabric),
    };
    let busy = fabric
        .memory_busy()
        .map(|busy| busy.saturating_sub(baseline.memory_busy).as_fs() as f64 / span.as_fs().max(1) as f64);
    drop_idle(&mut document, experiment);
    let facts = Facts {
        loads: &experiment.loads,
        devices: &experiment.devices,
        fabric: &experiment.fabric,
        memory_busy: busy,
        enumerated: experiment.guest_runs || fabric.hierarchy().is_some(),
        guest: experiment.guest_runs,
    };
    document.verdict = verdict::verdict(&document, &facts);
    // Who was not found takes no part.
    let problems = document.problems.iter().map(|problem| problem.message.clone());
    let losses = document.frames.iter().flat_map(network::frame_losses);
    document.verdict.limit.evidence.extend(problems.chain(losses));
    if detail == Detail::Limited {
        detail::limit(&mut document);
    }
    document
}

fn outages(fabric: &Fabric) -> Vec<result::Outage> {
    let fs = |time: Option<Time>| time.map(Time::as_fs);
    let outage = |o: &tlplab_fabric::outages::Outage| result::Outage {
        link: fabric.topology().links[o.link.index()].name.clone(),
        down_fs: o.down.as_fs(),
        heard_fs: fs(o.heard),
        up_fs: fs(o.up),
        configured_fs: fs(o.configured),
    };
    fabric.outages().iter().map(outage).collect()
}

fn detected(fabric: &Fabric) -> Vec<result::Detected> {
    let mut all: Vec<_> = fabric
        .errors()
        .map(|error| result::Detected {
            name: error.kind.into(),
            port: fabric.topology().direction_name(error.port),
            count: error.count,
            first_fs: error.first.as_fs(),
            header: error.header.map(|bytes| format!("{:032x}", u128::from_be_bytes(bytes))),
            message: error.messages.map(|(message, _)| message.into()),
            messages: error.messages.map_or(0, |(_, count)| count),
        })
        .collect();
    all.sort_by_key(|error| error.first_fs);
    all
}

fn reported(fabric: &Fabric) -> Vec<result::Reported> {
    let mut all: Vec<_> = fabric
        .reported_errors()
        .map(|error| result::Reported {
            port: fabric.topology().ports[error.port.index()].name.clone(),
            source: error.source.to_string(),
            message: error.message.into(),
            count: error.count,
            first_fs: error.first.as_fs(),
            interrupts: error.interrupts,
        })
        .collect();
    all.sort_by_key(|error| error.first_fs);
    all
}

/// Leaves out flows that nobody asked for and that did nothing: every component can have one.
fn drop_idle(document: &mut Document, experiment: &Experiment) {
    let asked = |f: &result::Flow| {
        let stem = f.name.strip_suffix(".read").or(f.name.strip_suffix(".write")).unwrap_or(&f.name);
        experiment.loads.iter().any(|l| l.name == stem && l.device == f.device)
    };
    let busy = |f: &result::Flow| f.transactions > 0 || f.bytes > 0 || f.errors != result::Errors::default();
    let keep: Vec<bool> = document.flows.iter().map(|f| busy(f) || asked(f)).collect();
    let index = |old: usize| keep[old].then(|| keep[..old].iter().filter(|k| **k).count());
    let mut kept = keep.iter();
    document.flows.retain(|_| *kept.next().unwrap_or(&true));
    document.series.flows.retain_mut(|s| index(s.flow).map(|new| s.flow = new).is_some());
    document.samples.retain_mut(|s| index(s.flow).map(|new| s.flow = new).is_some());
    for (_, _, behind, _) in document.samples.iter_mut().flat_map(|s| &mut s.parts) {
        *behind = usize::try_from(*behind).ok().and_then(index).map_or(-1, |new| new as i64);
    }
    if let Some(ladder) = &mut document.ladder {
        ladder.packets.iter_mut().for_each(|p| p.flow = p.flow.and_then(index));
        ladder.transactions.retain_mut(|t| index(t.flow).map(|new| t.flow = new).is_some());
    }
}

fn measured(fabric: &mut Fabric) -> Vec<result::Measured> {
    let programs = fabric.measured();
    let one = |(flow, measured): (FlowId, tlplab_device::Measured)| {
        let span = measured.to.saturating_since(measured.from).as_fs().max(1) as f64;
        result::Measured {
            name: fabric.topology().flows[flow.index()].name.clone(),
            bytes: measured.bytes,
            from_fs: measured.from.as_fs(),
            to_fs: measured.to.as_fs(),
            payload_bps: measured.bytes as f64 * 8.0 / (span / FS_PER_S),
            calls: measured.calls.map(calls),
        }
    };
    programs.into_iter().map(one).collect()
}

fn calls(calls: tlplab_device::Calls) -> result::Calls {
    result::Calls {
        count: calls.count,
        min_ns: ns(calls.shortest),
        mean_ns: ns(calls.sum) / calls.count.max(1) as f64,
        max_ns: ns(calls.longest),
        interrupts: calls.interrupts,
    }
}

/// The operation of a flow. Experiments make no flow of another operation, as a test shows.
fn operation(word: &str) -> result::Operation {
    let known = result::Operation::named(word);
    debug_assert!(known.is_some(), "result::Operation lacks \"{word}\"");
    known.unwrap_or(result::Operation::Dma)
}

fn flows(fabric: &Fabric, span: Duration) -> Vec<result::Flow> {
    let topology = fabric.topology();
    let flow = |id: FlowId| {
        let info = &topology.flows[id.index()];
        let statistics = fabric.flow_results(id);
        let count = |ending| statistics.count_of(ending);
        result::Flow {
            name: info.name.clone(),
            device: info.owner.clone(),
            op: operation(&info.operation),
            target: info.target.clone(),
            transactions: statistics.transactions,
            bytes: statistics.bytes,
            payload_bps: statistics.bytes as f64 * 8.0 / (span.as_fs().max(1) as f64 / FS_PER_S),
            errors: result::Errors {
                ur: count(Ending::Unsupported),
                ca: count(Ending::Aborted),
                timeout: count(Ending::TimedOut),
                poisoned: count(Ending::Poisoned),
                lost: count(Ending::Lost),
                malformed: count(Ending::Malformed),
            },
            latency_ns: latency(statistics),
            histogram: histogram(statistics),
            attribution: attribution(fabric, statistics.attribution(), statistics.latency_sum_fs),
            failures: failures(fabric, statistics),
        }
    };
    fabric.flow_ids().map(flow).collect()
}

fn latency(statistics: &FlowStatistics) -> Option<result::Latency> {
    if statistics.transactions == 0 {
        return None;
    }
    let (min, max) = (ns(statistics.latency_min), ns(statistics.latency_max));
    // The histogram keeps three digits; the extremes are exact.
    let quantile = |q: f64| (statistics.latency_ps.value_at_quantile(q) as f64 / 1000.0).clamp(min, max);
    Some(result::Latency {
        min,
        mean: statistics.latency_sum_fs as f64 / statistics.transactions as f64 / FS_PER_NS,
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max,
    })
}

fn histogram(statistics: &FlowStatistics) -> Vec<result::Bar> {
    let bar = |(from, to, bucket): (Duration, Duration, &tlplab_fabric::Bucket)| result::Bar {
        from_ns: ns(from),
        to_ns: ns(to),
        count: bucket.count,
        causes_ns: bucket.causes_fs.iter().map(|fs| *fs as f64 / bucket.count as f64 / FS_PER_NS).collect(),
    };
    statistics.causes.steps().map(bar).collect()
}

fn failures(fabric: &Fabric, statistics: &FlowStatistics) -> Vec<result::Failures> {
    let failures = |failures: &Failures| result::Failures {
        ending: failures.ending.into(),
        count: failures.count,
        mean_ns: failures.latency_sum_fs as f64 / failures.count.max(1) as f64 / FS_PER_NS,
        attribution: attribution(fabric, failures.attribution(), failures.latency_sum_fs),
    };
    statistics.failed.iter().map(failures).collect()
}

/// The sums of intervals, the largest first, of latencies that sum to `whole_fs`.
fn attribution(
    fabric: &Fabric,
    intervals: impl Iterator<Item = (Interval, u128)>,
    whole_fs: u128,
) -> Vec<result::Attribution> {
    let topology = fabric.topology();
    let whole = whole_fs.max(1) as f64;
    let mut out: Vec<_> = intervals
        .map(|(interval, fs)| result::Attribution {
            cause: interval.cause() as usize,
            place: topology.place_name(interval.place),
            behind: interval.behind().map(|f| topology.flows[f.index()].name.clone()),
            others: None,
            total_ns: fs as f64 / FS_PER_NS,
            share: fs as f64 / whole,
        })
        .collect();
    out.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    out
}

fn links(fabric: &mut Fabric, buses: &[BusConfig], baseline: &Baseline, span: Duration) -> Vec<result::Link> {
    let infos = fabric.topology().links.clone();
    let mut out = Vec::new();
    for (index, info) in infos.iter().enumerate() {
        let directions = [0, 1].map(|direction| {
            let port = info.ports[direction];
            let mut result = fabric.direction_result(port);
            if let Some(before) = &baseline.directions[2 * index + direction] {
                subtract(&mut result, before);
            }
            let peer = info.ports[1 - direction];
            let topology = fabric.topology();
            let mut out = self::direction(&result, info.rate.bits_per_second() as f64, span);
            out.from = topology.ports[port.index()].name.clone();
            out.to = topology.ports[peer.index()].name.clone();
            out.interface = (2 * index + direction) as u32;
            out
        });
        out.push(result::Link {
            name: info.name.clone(),
            upper: directions[0].to.clone(),
            lower: directions[0].from.clone(),
            generation: info.generation.number(),
            width: info.width.lanes(),
            mode: match info.mode {
                LinkMode::Flit => result::Framing::Flit,
                LinkMode::NonFlit => result::Framing::NonFlit,
            },
            mps: info.mps.bytes(),
            raw_bps: info.rate.bits_per_second() as f64,
            bus: buses.iter().find(|bus| bus.name == directions[0].to).map(BusConfig::label),
            directions,
        });
    }
    out
}

/// The difference since the baseline.
fn subtract(now: &mut DirectionResult, before: &DirectionResult) {
    let (w, b) = (&mut now.wire, &before.wire);
    for (now, before) in [
        (&mut w.payload, b.payload),
        (&mut w.overhead, b.overhead),
        (&mut w.dllp, b.dllp),
        (&mut w.replay, b.replay),
        (&mut w.tlps, b.tlps),
        (&mut w.replayed, b.replayed),
        (&mut w.nullified, b.nullified),
        (&mut w.acks, b.acks),
        (&mut w.naks, b.naks),
        (&mut w.update_fcs, b.update_fcs),
        (&mut w.worked_out, b.worked_out),
        (&mut w.init_fcs, b.init_fcs),
        (&mut w.other_dllps, b.other_dllps),
        (&mut w.no_room, b.no_room),
        (&mut now.transmitter.replay_timeouts, before.transmitter.replay_timeouts),
        (&mut now.receiver.bad_lcrc, before.receiver.bad_lcrc),
    ] {
        *now -= before;
    }
    for (now, before) in now.longer.iter_mut().zip(before.longer) {
        *now -= before;
    }
    now.ordered_sets -= before.ordered_sets;
    now.tag_stall -= before.tag_stall;
    for class in 0..3 {
        now.credit_stalls[class] -= before.credit_stalls[class];
        now.replay_buffer_stalls[class] -= before.replay_buffer_stalls[class];
    }
}

fn direction(result: &DirectionResult, raw_bps: f64, span: Duration) -> result::Direction {
    let whole = span.as_fs().max(1) as f64;
    let wire = |bytes: u64, longer: Duration| {
        (bytes as f64 * 8.0 / raw_bps * FS_PER_S + longer.as_fs() as f64) / whole
    };
    let time = |duration: Duration| (duration.as_fs() as f64 / whole).min(1.0);
    let longest = |by_class: [Duration; 3]| time(by_class.into_iter().max().unwrap_or_default());
    let w = &result.wire;
    let [payload, overhead, dllp, replay] = result.longer;
    let shares = [
        wire(w.payload, payload),
        wire(w.overhead, overhead),
        wire(w.dllp, dllp),
        wire(w.replay, replay),
        time(result.ordered_sets),
    ];
    // A unit on the wire at the end is counted whole, so the sum may pass 1 by a packet.
    let total: f64 = shares.iter().sum();
    let [payload, overhead, dllp, replay, ordered_sets] = shares.map(|share| share / total.max(1.0));
    result::Direction {
        from: String::new(),
        to: String::new(),
        interface: 0,
        utilization: result::Utilization {
            payload,
            overhead,
            dllp,
            ordered_sets,
            replay,
            idle: (1.0 - total).max(0.0),
        },
        tlps: w.tlps,
        payload_bytes: w.payload,
        dllps: result::Dllps {
            ack: w.acks,
            nak: w.naks,
            update_fc: w.update_fcs,
            init_fc: w.init_fcs,
            other: w.other_dllps,
            worked_out: w.worked_out,
        },
        replayed: w.replayed,
        nullified: w.nullified,
        replay_timeouts: result.transmitter.replay_timeouts,
        bad_lcrc: result.receiver.bad_lcrc,
        no_room: w.no_room,
        stalls: result::Stalls {
            credits: longest(result.credit_stalls),
            tags: time(result.tag_stall),
            replay_buffer: longest(result.replay_buffer_stalls),
        },
    }
}

fn nodes(fabric: &Fabric, experiment: &Experiment) -> Vec<result::Node> {
    let config = &experiment.fabric;
    let host = &config.host.name;
    let node = |name: &str, kind, model: Option<String>, parent: Option<&str>, detail: String| result::Node {
        name: name.into(),
        kind,
        model,
        parent: parent.map(Into::into),
        detail,
        ..result::Node::default()
    };
    let mut out = vec![node(host, result::NodeKind::Host, None, None, host_detail(experiment))];
    let mut root_ports: Vec<&str> = fabric
        .topology()
        .ports
        .iter()
        .map(|port| port.name.as_str())
        .filter(|name| name.starts_with(&format!("{host}.")))
        .collect();
    root_ports.sort_unstable();
    for port in root_ports {
        out.push(node(port, result::NodeKind::RootPort, None, Some(host), String::new()));
    }
    for switch in &config.switches {
        let forwarding = result::Forwarding::from(switch.forwarding);
        let shares = match &switch.arbitration {
            Arbitration::RoundRobin => "round robin".to_owned(),
            Arbitration::Weighted(weights) => {
                let list: Vec<String> =
                    weights.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
                format!("weights {}", list.join(", "))
            }
        };
        let detail = format!("{forwarding}, {}, {shares}", switch.latency);
        out.push(result::Node {
            forwarding: Some(forwarding),
            arbitration: Some((&switch.arbitration).into()),
            ..node(&switch.name, result::NodeKind::Switch, None, Some(&switch.uplink.under), detail)
        });
    }
    for bus in &config.buses {
        let detail = format!(
            "bridge latency {}, {} posted requests and {} reads at a time",
            bus.bridge.latency, bus.bridge.posted, bus.bridge.reads
        );
        out.push(node(&bus.name, result::NodeKind::Bus, Some(bus.label()), Some(&bus.uplink.under), detail));
    }
    for (device, spec) in config.devices.iter().zip(&experiment.devices) {
        let detail = format!("{} tags, MRRS {}, latency {}", device.tags, device.mrrs, device.latency);
        let model = match &spec.model {
            ModelSpec::Python { object, .. } => format!("{}:{}", object.file, object.name),
            model => model.name().to_owned(),
        };
        out.push(node(&device.name, result::NodeKind::Device, Some(model), Some(&device.link.under), detail));
    }
    out
}

fn host_detail(experiment: &Experiment) -> String {
    let host = &experiment.fabric.host;
    let bandwidth =
        host.memory.bandwidth.map_or("unlimited".to_owned(), |b| format!("{} Gb/s", b as f64 / 1e9));
    let completions = match host.completions {
        CompletionPolicy::Max => "as long as MPS",
        CompletionPolicy::Rcb => "cut at RCB",
        CompletionPolicy::SplitHead => "as long as MPS after the first RCB",
        CompletionPolicy::SplitEnds => "as long as MPS between the first and the last RCB",
    };
    let peer = match host.peer_to_peer {
        PeerToPeer::Forward => "forwarded".to_owned(),
        PeerToPeer::Split(bytes) => format!("split into {bytes} B"),
        PeerToPeer::Refuse => "refused".to_owned(),
    };
    let mut detail = format!(
        "root complex {}, memory {} at {bandwidth}, RCB {}, completions {completions}, peer-to-peer {peer}",
        host.latency, host.memory.latency, host.rcb
    );
    if let Some(cache) = &host.cache {
        let (size, ways) = (cache.size >> 10, cache.ways);
        detail += &format!(", cache {size} KiB of which {} of {ways} ways for devices", cache.ddio_ways);
    }
    if let Some(iommu) = &host.iommu {
        detail += &format!(", IO-TLB of {} pages of {} KiB", iommu.entries, iommu.page >> 10);
    }
    detail
}

fn series(fabric: &mut Fabric, links: &[result::Link]) -> result::Series {
    // Levels bring all bins up to the present, even if nothing has happened for long.
    let levels = fabric.level_results();
    let (width, bins) = fabric.bins();
    let now = fabric.now().as_fs();
    let span = |bin: usize| (now - bin as u64 * width.as_fs()).min(width.as_fs()).max(1) as f64;
    let flows = fabric.flow_ids().map(|flow| flow_series(fabric, flow)).collect();
    let mut directions = Vec::new();
    for (link, info) in fabric.topology().links.iter().enumerate() {
        for (direction, port) in info.ports.into_iter().enumerate() {
            let [payload, overhead, dllp, replay] = fabric.direction_series(port).map(|bins| {
                bins.iter().enumerate().map(|(i, fs)| *fs as f64 / span(i)).collect::<Vec<f64>>()
            });
            // Ordered sets come at fixed intervals, so each bin has the share of the whole.
            let ordered_sets = vec![links[link].directions[direction].utilization.ordered_sets; bins];
            directions.push(result::DirectionSeries {
                link,
                direction,
                payload,
                overhead,
                dllp,
                ordered_sets,
                replay,
            });
        }
    }
    let device_link = |name: &str| links.iter().position(|l| l.name == name);
    let resources = levels.into_iter().map(|level| resource(level, &device_link)).collect();
    result::Series { start_fs: 0, bin_fs: width.as_fs(), bins, flows, directions, resources }
}

fn flow_series(fabric: &mut Fabric, flow: FlowId) -> result::FlowSeries {
    let outstanding = fabric.outstanding_series(flow);
    // More decimals would take more room than they tell.
    let short = |mean: Vec<f64>| mean.into_iter().map(|level| (level * 1e6).round() / 1e6).collect();
    let (mean, max) = outstanding.map_or((None, None), |(mean, max)| (Some(short(mean)), Some(max)));
    let bytes = fabric.flow_series(flow);
    result::FlowSeries { flow: flow.index(), bytes, outstanding_mean: mean, outstanding_max: max }
}

fn resource(level: LevelResult, device_link: &dyn Fn(&str) -> Option<usize>) -> result::Resource {
    let (kind, unit) = match level.of {
        Level::Tags => (result::ResourceKind::Tags, "tags"),
        Level::Queue => (result::ResourceKind::Buffer, "TLPs"),
        Level::ReplayBuffer => (result::ResourceKind::Replay, "TLPs"),
        Level::Headers(_) => (result::ResourceKind::Credits, "credits"),
        Level::Data(_) => (result::ResourceKind::Credits, "credits of 16 B"),
    };
    let name = match level.of {
        Level::Tags => format!("tags of {}", level.place),
        of => format!("{}, {}", of.name(), level.place),
    };
    let (link, direction) = match level.link {
        Some((link, direction)) => (Some(LinkId::index(link)), Some(usize::from(direction))),
        None => (device_link(&level.place), None),
    };
    result::Resource {
        name,
        kind,
        link,
        direction,
        capacity: level.capacity,
        unit: unit.into(),
        mean: level.mean,
        max: level.max,
    }
}

fn part(interval: &Interval) -> (usize, usize, i64, f64) {
    let behind = interval.behind().map_or(-1, |flow| flow.index() as i64);
    (interval.cause() as usize, interval.place.index(), behind, ns(interval.duration))
}

fn samples(fabric: &Fabric) -> Vec<result::Sample> {
    let topology = fabric.topology();
    let mut out: Vec<result::Sample> = fabric
        .samples()
        .iter()
        .map(|sample| {
            let mut links: Vec<usize> = sample
                .intervals
                .iter()
                .filter_map(|interval| topology.place_link(interval.place))
                .map(|(l, _)| l.index())
                .collect();
            links.sort_unstable();
            links.dedup();
            result::Sample {
                flow: sample.of.flow.index(),
                transaction: sample.of.number,
                access: if sample.of.read { result::Access::Read } else { result::Access::Write },
                address: format!("{:#x}", sample.of.address),
                bytes: sample.of.bytes,
                requester: sample.of.requester.to_string(),
                tag: sample.of.tag.map(|tag| tag.value()),
                start_fs: sample.start.as_fs(),
                latency_ns: ns(sample.latency),
                links,
                causes_ns: sample.causes.iter().map(|d| ns(*d)).collect(),
                parts: sample.intervals.iter().map(part).collect(),
            }
        })
        .collect();
    out.sort_by_key(|s| (s.start_fs, s.flow));
    debug_assert!(out.iter().all(|s| s.causes_ns.len() == Cause::COUNT));
    out
}
