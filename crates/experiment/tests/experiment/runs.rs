//! The experiments of the repository run, and give the figures that were computed by hand.
#![allow(clippy::disallowed_methods, reason = "tests read the experiments from their files")]

use std::collections::BTreeMap;
use tlplab_device::Record;
use tlplab_experiment::result::{Document, LimitKind, Outcome, PacketClass};
use tlplab_experiment::run::{Inputs, Run, run};
use tlplab_experiment::{Experiment, FileKind, Options, StopReason};
use tlplab_units::Duration;

fn path(name: &str) -> String {
    format!("{}/../../experiments/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn experiment(name: &str, sets: &[&str]) -> Experiment {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let set = sets.iter().map(|s| (*s).to_owned()).collect();
    let options = Options { set, ..Options::default() };
    Experiment::parse_with(&read, &path(name), &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Enough of the trace format for the traces here; the reader for users is another crate's.
fn trace(path: &str) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|l| !l.starts_with('#') && !l.starts_with("time_ns"));
    rows.map(|row| {
        let mut cells = row.split(',');
        let mut cell = || cells.next().unwrap();
        let at = Duration::from_fs((cell().parse::<f64>().unwrap() * 1e6).round() as u64);
        let write = cell() == "write";
        let address = u64::from_str_radix(cell().trim_start_matches("0x"), 16).unwrap();
        Record { at, write, address, bytes: cell().parse().unwrap() }
    })
    .collect()
}

fn inputs(experiment: &Experiment) -> Inputs {
    let traces = experiment.files.iter().filter(|f| f.kind == FileKind::Trace);
    let traces: BTreeMap<_, _> = traces.map(|f| (f.path.clone(), trace(&f.path))).collect();
    Inputs { traces, ..Inputs::default() }
}

fn go(name: &str, sets: &[&str]) -> Document {
    let experiment = experiment(name, sets);
    let inputs = inputs(&experiment);
    let document = run(experiment, inputs).unwrap();
    check(&document);
    document
}

/// A x16 link of 32 GT/s carries 63.015 GB/s; a write of 256 B takes 280 bytes of it: 4 of framing, 16 of header, 4 of LCRC; 1 symbol in 376 is
/// an ordered set's, and 0.3 % are DLLPs. Peers that pass straight have a link each, in both directions; redirected ones share the uplink.
#[test]
fn request_redirect_halves_the_rate_between_two_peers() {
    let carried = |sets: &[&str]| -> Vec<f64> {
        go("p2p/acs.toml", sets).flows.iter().map(|flow| flow.payload_bps / 8e9).collect()
    };
    let link = 128.0 / 130.0 * 64.0 * (256.0 / 280.0) * (375.0 / 376.0);
    let near = |carried: &[f64], expected: f64| {
        assert!(carried.iter().all(|rate| (rate / expected - 1.0).abs() < 0.005), "{carried:?} {expected}");
    };
    near(&carried(&["switch.sw0.acs=off"]), link * 0.997);
    near(&carried(&[]), link * 0.997 / 2.0);
    // Only the port above the one that asks redirects its requests.
    near(&carried(&["switch.sw0.acs=off", "link.gpu0.upper.acs=isolation"]), link * 0.997);
}

/// As the file calculates it: five flows and a drive share the uplink; straight, a ring and a NIC meet on the way to the last GPU.
#[test]
fn a_gpu_servers_flows_share_the_uplink_or_the_last_gpus_link() {
    let carried = |sets: &[&str], names: &[&str]| -> Vec<f64> {
        let flows = go("p2p/server.toml", sets).flows;
        names
            .iter()
            .map(|name| flows.iter().find(|flow| flow.name == *name).unwrap().payload_bps / 1e9)
            .collect()
    };
    let near = |rate: f64, expected: f64| assert!((rate / expected - 1.0).abs() < 0.005, "{rate} {expected}");
    let whole = 128.0 / 130.0 * 512.0 * (256.0 / 280.0) * (375.0 / 376.0) * 0.997;
    let redirected = carried(&[], &["disk0", "ring0", "ring3", "net0"]);
    near(redirected[0], whole / 8.0);
    redirected[1..].iter().for_each(|rate| near(*rate, (whole - whole / 8.0) / 5.0));
    let off = ["host.acs=off", "switch.sw0.acs=off", "switch.sw1.acs=off"];
    let straight = carried(&off, &["ring0", "ring2", "net0"]);
    near(straight[0], whole);
    near(straight[1] / straight[2], 1.0);
    assert!((straight[1] + straight[2]) / whole > 0.97, "{straight:?}");
}

/// The same two peers behind an IOMMU: with translated addresses they pass the switch straight, where that is allowed; without, they share the uplink.
#[test]
fn translated_requests_go_straight_past_redirection() {
    let link = 128.0 / 130.0 * 64.0 * (256.0 / 280.0) * (375.0 / 376.0) * 0.997;
    let near = |sets: &[&str], expected: f64| {
        let document = go("p2p/ats.toml", sets);
        let carried: Vec<f64> = document.flows.iter().map(|flow| flow.payload_bps / 8e9).collect();
        assert!(
            carried.iter().all(|rate| (rate / expected - 1.0).abs() < 0.005),
            "{sets:?}: {carried:?} {expected}"
        );
        document
    };
    let direct = near(&[], link);
    // In 60 us they get as far as the second 2 MiB. Before the first answer says how much it covers, each asks for as many pages as it may at once.
    for device in &direct.translations {
        assert_eq!((device.asked, device.denied, device.evicted), (2 * 8, 0, 0), "{device:?}");
    }
    let iommu = direct.host.unwrap().iommu.unwrap();
    assert_eq!(iommu.answered.unwrap().given, 32);
    assert!(iommu.faults.is_empty());
    near(&["host.iommu.ats=false"], link / 2.0);
    let isolated = r#"switch.sw0.acs=["request-redirect", "completion-redirect", "upstream-forwarding"]"#;
    near(&[isolated], link / 2.0);
}

/// What reads the buffer after that is refused, and the IOMMU says whose it was; the other buffer stays.
#[test]
fn a_device_translates_and_a_buffer_is_taken_away() {
    let document = go("translation.toml", &[]);
    let weights = document.flows.iter().find(|flow| flow.name == "weights").unwrap();
    assert_eq!(weights.errors, Default::default());
    let scratch = document.flows.iter().find(|flow| flow.name == "scratch").unwrap();
    assert!(scratch.transactions > 0 && scratch.errors.ur > 0, "{scratch:?}");
    let iommu = document.host.as_ref().unwrap().iommu.as_ref().unwrap();
    let [fault] = &iommu.faults[..] else { panic!("{:?}", iommu.faults) };
    assert_eq!(
        (fault.device.as_str(), fault.reason.token(), fault.operation.token()),
        ("gpu", "not-mapped", "read")
    );
    assert_eq!(fault.count, scratch.errors.ur);
    assert!(fault.first_fs > 40_000_000_000, "{fault:?}");
    let answered = iommu.answered.unwrap();
    assert_eq!((answered.invalidations, answered.invalidated), (1, 1));
    assert!(answered.invalidation_max_ns > 0.0);
    let gpu = &document.translations[0];
    assert_eq!(gpu.denied, answered.denied);
    assert!(document.verdict.sentence.contains("the IOMMU refused"), "{}", document.verdict.sentence);
}

/// The read starts at time 0, and so do its units on the wires.
#[test]
fn units_that_start_at_time_0_are_counted() {
    let document = go("latency.toml", &[]);
    let [up, down] = &document.links[0].directions;
    assert_eq!((up.tlps, up.payload_bytes), (1, 0), "the request");
    assert_eq!((down.tlps, down.payload_bytes), (1, 4), "the completion");
    // 20 of the 44 bytes that the run lasts.
    assert!((up.utilization.overhead - 20.0 / 44.0).abs() < 1e-9, "{:?}", up.utilization);
    // The series of the same wire says the same.
    let wire = &document.series.directions[0];
    let busy: f64 = wire.payload.iter().chain(&wire.overhead).sum();
    assert!(busy > 0.0, "{wire:?}");
    // Counting begins where the warm-up ends.
    let none = go("latency.toml", &["warmup=1ns"]);
    assert_eq!(none.links[0].directions[0].tlps, 0);
}

/// What holds for every document.
fn check(document: &Document) {
    for link in &document.links {
        for d in &link.directions {
            let u = d.utilization;
            let sum = u.payload + u.overhead + u.dllp + u.ordered_sets + u.replay + u.idle;
            assert!((sum - 1.0).abs() < 2e-3, "{} → {}: {u:?} sums to {sum}", d.from, d.to);
        }
    }
    for flow in document.flows.iter().filter(|f| f.transactions > 0) {
        let shares: f64 = flow.attribution.iter().map(|a| a.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{}: shares sum to {shares}", flow.name);
        let counted: u64 = flow.histogram.iter().map(|b| b.count).sum();
        assert_eq!(counted, flow.transactions);
        for bar in &flow.histogram {
            let latency: f64 = bar.causes_ns.iter().sum();
            assert!(latency >= bar.from_ns * 0.999_999 && latency <= bar.to_ns * 1.000_001, "{bar:?}");
        }
    }
    for series in &document.series.flows {
        assert_eq!(series.bytes.len(), document.series.bins);
    }
    for resource in &document.series.resources {
        assert_eq!((resource.mean.len(), resource.max.len()), (document.series.bins, document.series.bins));
    }
    if let Some(ladder) = &document.ladder {
        for t in &ladder.transactions {
            let sum: u64 = t.intervals.iter().map(|i| i.duration_fs).sum();
            assert!(t.intervals.is_empty() || sum == t.end_fs - t.start_fs, "{t:?}");
        }
        assert!(ladder.packets.windows(2).all(|p| p[0].id < p[1].id));
        for p in ladder.packets.iter().filter(|p| p.class == PacketClass::Bus) {
            let sum: u64 = p.phases.iter().map(|(_, fs)| fs).sum();
            assert_eq!(sum, p.end_fs - p.start_fs, "{p:?}");
        }
    }
    assert!(!document.verdict.sentence.is_empty());
    assert_eq!(document.trace_hash.len(), 16);
}

fn gbps(document: &Document, flow: &str) -> f64 {
    document.flows.iter().find(|f| f.name == flow).unwrap().payload_bps / 1e9
}

fn near(actual: f64, expected: f64, tolerance: f64) {
    assert!((actual / expected - 1.0).abs() < tolerance, "{actual} against {expected}");
}

const X8: f64 = 63.015_384_615 * 256.0 / 280.0 * 375.0 / 376.0;

#[test]
fn a_4_byte_read_on_gen1_x1_takes_176_ns() {
    let document = go("latency.toml", &[]);
    let latency = document.flows[0].latency_ns.unwrap();
    assert_eq!((latency.min, latency.p50, latency.max), (176.0, 176.0, 176.0));
    assert_eq!(document.flows[0].transactions, 1);
    assert_eq!(document.verdict.limit.kind, LimitKind::Latency, "{:?}", document.verdict);
    assert_eq!(document.stop_reason, StopReason::LoadsDone);
}

#[test]
fn saturated_writes_fill_gen3_x8() {
    let document = go("saturated-writes.toml", &[]);
    near(gbps(&document, "dev"), X8, 1e-3);
    let limit = &document.verdict.limit;
    assert_eq!((limit.resource.as_str(), limit.kind), ("link dev → host.rp0", LimitKind::Link));
}

#[test]
fn a_bus_that_is_always_busy_limits_with_all_its_ways_together() {
    let document = go("../studies/differential/bus-dma.toml", &[]);
    let limit = &document.verdict.limit;
    assert_eq!((limit.resource.as_str(), limit.kind), ("bus pci", LimitKind::Bus));
    assert!(limit.evidence[0].starts_with("pci is busy 99."), "{:?}", limit.evidence);
    let ways: Vec<_> = document.links.iter().filter(|l| l.bus.as_deref() == Some("PCI 66 32b")).collect();
    assert!(ways.len() == 3 && ways.iter().all(|l| l.upper == "pci"), "{ways:?}");
    let busiest =
        ways.iter().flat_map(|l| &l.directions).map(|d| 1.0 - d.utilization.idle).fold(0.0, f64::max);
    assert!(busiest < 0.7, "no way alone is: {busiest}");
    let resources = &document.series.resources;
    let of_bus = |place: &str| resources.iter().filter(|r| r.name.ends_with(place)).count();
    assert_eq!((of_bus("disk0 → pci"), of_bus("host.rp0 → pci")), (1, 8), "a bus has no credits");
}

#[test]
fn a_load_of_the_host_does_not_keep_the_idle_flow_of_a_device_of_its_name() {
    let document = go("../studies/differential/bus-read.toml", &[]);
    let names: Vec<&str> = document.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["pcie", "pcix-immediate", "pcix-split"]);
    assert!(document.ladder.is_some_and(|l| l.packets.iter().any(|p| p.outcome == Some(Outcome::Split))));
}

#[test]
fn two_writers_get_half_each_and_name_each_other() {
    let document = go("two-writers.toml", &[]);
    for (me, other) in [("a", "b"), ("b", "a")] {
        near(gbps(&document, me), X8 / 2.0, 1e-3);
        let flow = document.flows.iter().find(|f| f.name == me).unwrap();
        assert!(flow.attribution.iter().any(|a| a.behind.as_deref() == Some(other)), "{me}");
    }
    assert_eq!(document.verdict.limit.resource, "link sw0 → host.rp0");
    let wide = go("two-writers.toml", &["switch.sw0.link=gen3 x16"]);
    near(gbps(&wide, "a"), X8, 1e-3);
    near(gbps(&wide, "b"), X8, 1e-3);
    assert_ne!(wide.verdict.limit.resource, "link sw0 → host.rp0");
}

#[test]
fn a_read_of_200_bytes_is_answered_in_three() {
    let document = go("read-200.toml", &[]);
    let ladder = document.ladder.unwrap();
    let completions: Vec<u32> =
        ladder.packets.iter().filter(|p| p.kind == "CplD").map(|p| p.bytes - 20).collect();
    assert_eq!(completions, [68, 128, 4]);
    assert_eq!(ladder.columns, ["dev", "host.rp0"]);
    assert_eq!(ladder.transactions.len(), 1);
}

#[test]
fn the_quickstart_is_limited_by_its_uplink_until_it_is_wider() {
    let document = go("quickstart.toml", &[]);
    assert_eq!(document.verdict.limit.resource, "link sw0 → host.rp0", "{}", document.verdict.sentence);
    let wide = go("quickstart.toml", &["switch.sw0.link=gen4 x8"]);
    assert_ne!(wide.verdict.limit.resource, "link sw0 → host.rp0", "{}", wide.verdict.sentence);
    near(gbps(&wide, "nic"), 25.0, 5e-3);
    let ladder = document.ladder.unwrap();
    assert_eq!((ladder.packets.len(), ladder.columns.len()), (800, 4));
}

#[test]
fn few_tags_limit_reads() {
    let document = go("tags.toml", &[]);
    let limit = &document.verdict.limit;
    assert_eq!(
        (limit.kind, limit.resource.as_str()),
        (LimitKind::Tags, "tags of dev"),
        "{:?}",
        document.verdict
    );
}

/// Transactions that carry nothing have ended all the same; statistics that never began are not a run that did nothing.
#[test]
fn a_verdict_separates_empty_transactions_from_a_late_warmup() {
    let flushes = ["load.dev.size=0B", "load.dev.count=10"];
    let sentence = |sets: &[&str]| go("read-200.toml", sets).verdict.sentence;
    assert_eq!(sentence(&flushes), "Nothing limits the run: 10 transactions ended, none with data.");
    let late = sentence(&["load.dev.count=10", "warmup=1s"]);
    assert!(late.starts_with("Nothing was measured: the run was over at "), "{late}");
    assert!(late.ends_with(", and statistics begin at 1s."), "{late}");
}

#[test]
fn captured_requests_of_a_nic_are_all_served() {
    let e = experiment("x520-replay.toml", &[]);
    let requests = trace(&e.files[0].path).len() as u64;
    let document = go("x520-replay.toml", &[]);
    assert_eq!(document.flows[0].transactions, requests);
    assert_eq!(document.verdict.limit.kind, tlplab_experiment::result::LimitKind::Rate);
    assert_eq!(document.verdict.limit.resource, "the captured pace of x520");
    let fast = go("x520-replay.toml", &["load.x520.timing=fast"]);
    assert_eq!(fast.flows[0].transactions, requests);
    assert!(fast.end_fs < document.end_fs);
}

#[test]
fn every_experiment_runs() {
    for name in ["p4600-replay.toml", "peer-to-peer.toml", "errors.toml", "ring.toml"] {
        let document = go(name, &[]);
        assert!(document.flows.iter().any(|f| f.transactions > 0), "{name}");
    }
}

#[test]
fn peer_to_peer_stays_below_the_switch() {
    let document = go("peer-to-peer.toml", &[]);
    let uplink = document.links.iter().find(|l| l.name == "sw0").unwrap();
    let down = document.links.iter().find(|l| l.name == "gpu").unwrap();
    assert!(uplink.directions[0].utilization.payload < 0.01);
    assert!(down.directions[1].utilization.payload > 0.8);
}

#[test]
fn an_error_opens_the_ladder() {
    let document = go("errors.toml", &[]);
    let ladder = document.ladder.unwrap();
    let bad = ladder.packets.iter().position(|p| p.bad).unwrap();
    assert!(bad > 0 && bad <= 400, "{bad} of {}", ladder.packets.len());
    assert!(document.links[0].directions.iter().map(|d| d.replayed).sum::<u64>() > 0);
}

#[test]
fn errors_are_named_with_their_port_and_header() {
    let sets = [
        "stop=30us",
        "fault=[{ link = \"ssd\", direction = \"up\", tlp = 3, count = 2, of = \"MWr\", damage = \"poison\" }]",
    ];
    let errors = go("quickstart.toml", &sets).errors;
    let seen: Vec<_> = errors.iter().map(|e| (e.name.token(), e.port.as_str(), e.count)).collect();
    // The switch passes it on, the root complex drops it.
    let name = "Poisoned TLP Received";
    assert_eq!(seen, [(name, "sw0 → ssd", 2), (name, "host.rp0 → sw0", 2)]);
    // MWr, four doublewords of header, EP set.
    let header = errors[0].header.as_ref().unwrap();
    assert!(header.starts_with("60") && header.as_bytes()[4] & 4 != 0, "{header}");
    assert!(go("quickstart.toml", &["stop=30us"]).errors.is_empty());
}

#[test]
fn both_fidelities_give_the_same_run() {
    let a = go("quickstart.toml", &["stop=80us"]);
    let b = go("quickstart.toml", &["stop=80us", "fidelity=length-only"]);
    assert_eq!(a.trace_hash, b.trace_hash);
    let c = go("quickstart.toml", &["stop=80us", "seed=2"]);
    assert_eq!(a.trace_hash, c.trace_hash, "nothing in it is random");
}

#[test]
fn a_run_in_steps_is_the_same_run() {
    let whole = go("quickstart.toml", &["stop=80us"]);
    let mut run = Run::new(experiment("quickstart.toml", &["stop=80us"]), Inputs::default()).unwrap();
    let mut last = 0.0;
    loop {
        let progress = run.advance(1000).unwrap();
        let fraction = progress.fraction.unwrap();
        assert!(fraction >= last);
        last = fraction;
        if progress.done {
            break;
        }
    }
    assert_eq!(last, 1.0);
    assert_eq!(serde_json::to_value(run.document()).unwrap(), serde_json::to_value(whole).unwrap());
}

#[test]
fn a_stopped_run_states_its_stop_reason() {
    let mut run = Run::new(experiment("quickstart.toml", &[]), Inputs::default()).unwrap();
    run.advance(2_000).unwrap();
    run.stop(StopReason::Interrupted);
    let document = run.document();
    check(&document);
    assert_eq!(document.stop_reason, StopReason::Interrupted);
}

/// The limit, with one resource after the other made scarce.
#[test]
fn the_verdict_names_the_scarce_resource() {
    let far = "link.dev.flight=500ns";
    let cases: &[(&str, &[&str], LimitKind, &str)] = &[
        (
            "saturated-writes.toml",
            &[far, "link.dev.upper.buffers={ posted_headers = 8, posted_data = 128 }"],
            LimitKind::Credits,
            "credits of dev → host.rp0",
        ),
        (
            "saturated-writes.toml",
            &[far, "link.dev.lower.replay_tlps=8"],
            LimitKind::Replay,
            "replay buffer of dev → host.rp0",
        ),
        (
            "quickstart.toml",
            &["link.sw0.lower.replay_tlps=1"],
            LimitKind::Replay,
            "replay buffer of sw0 → host.rp0",
        ),
        (
            "quickstart.toml",
            &["link.sw0.flight=2us", "link.sw0.upper.buffers={ posted_headers = 8, posted_data = 128 }"],
            LimitKind::Credits,
            "credits of sw0 → host.rp0",
        ),
        (
            "saturated-writes.toml",
            &["host={ memory = { bandwidth = \"20Gb/s\" } }"],
            LimitKind::Memory,
            "memory of host",
        ),
        (
            "saturated-writes.toml",
            &["host={ iommu = { entries = 4, walk = \"2us\", walkers = 1 } }"],
            LimitKind::Memory,
            "page walks of host",
        ),
        (
            "tags.toml",
            &["device.dev.tags=64", "host={ memory = { latency = \"500ns\" }, reads = 4 }"],
            LimitKind::Memory,
            "reads of host",
        ),
        ("saturated-writes.toml", &["load.dev.rate=10Gb/s"], LimitKind::Rate, "the rate of dev"),
        (
            "tags.toml",
            &["device.dev.tags=32", "load.dev.size=512B", "load.dev.outstanding=3"],
            LimitKind::Outstanding,
            "the outstanding of dev",
        ),
        (
            "tags.toml",
            &["load.dev.outstanding=1", "device.dev.tags=32"],
            LimitKind::Latency,
            "the latency of dev",
        ),
        ("tags.toml", &["device.dev.tags=64"], LimitKind::Link, "link host.rp0 → dev"),
    ];
    for (name, sets, kind, resource) in cases {
        let verdict = go(name, sets).verdict;
        let limit = &verdict.limit;
        assert_eq!(
            (limit.kind, limit.resource.as_str()),
            (*kind, *resource),
            "{name} {sets:?}: {verdict:#?}"
        );
    }
}

/// What the cache and the IOMMU did is counted from the end of the warm-up on.
#[test]
fn the_hosts_counters_are_in_the_document() {
    let cache = "host.cache={ size = \"1MiB\", ways = 16, ddio_ways = 2, hit = \"1ns\" }";
    let sets = [cache, "host.iommu={ entries = 64, walk = \"100ns\", walkers = 2 }", "load.dev.size=64B"];
    let host = go("saturated-writes.toml", &sets).host.unwrap();
    let (cache, iommu) = (host.cache.unwrap(), host.iommu.unwrap());
    // Each line of a window that is larger than the cache is written once; a page has 64 of them.
    assert_eq!(cache.hit_rate, 0.0);
    near(iommu.walks as f64, cache.misses as f64 / 64.0, 0.01);
    near(iommu.hit_rate, 63.0 / 64.0, 0.001);
    assert!(iommu.busy > 0.05 && iommu.busy < 0.5, "{iommu:?}");
    assert_eq!(go("saturated-writes.toml", &[]).host, None);
}

/// Random reads of more pages than the IO-TLB keeps need a walk each, and those begin 46 ns apart; of 32 superpages none does.
#[test]
fn page_walks_limit_small_reads() {
    let pages = go("iommu.toml", &[]);
    assert_eq!(pages.verdict.limit.resource, "page walks of host", "{}", pages.verdict.sentence);
    let iommu = pages.host.as_ref().unwrap().iommu.clone().unwrap();
    near(gbps(&pages, "dev"), 64.0 * 8.0 / 46.0 / (1.0 - iommu.hit_rate), 0.01);
    assert!((118.0 / 16384.0..0.02).contains(&iommu.hit_rate), "kept, or being walked: {iommu:?}");
    let superpages = go("iommu.toml", &["host.iommu.mode=superpages"]);
    assert_eq!(superpages.verdict.limit.resource, "link host.rp0 → dev", "{}", superpages.verdict.sentence);
}

/// The keys `cache` and `node` decide the state of a load's window.
#[test]
fn a_load_sets_cache_state_and_memory_node() {
    let host = "host={ memory = { latency = \"100ns\" }, numa = { hop = \"50ns\" }, \
                cache = { size = \"1MiB\", ways = 16, ddio_ways = 2, hit = \"30ns\", snoop = \"5ns\" } }";
    let one = ["load.dev.outstanding=1", "load.dev.window=64KiB", "load.dev.size=64B", host];
    let latency = |more: &[&str]| {
        let sets = [&one[..], more].concat();
        go("tags.toml", &sets).flows[0].latency_ns.unwrap().p50
    };
    let cold = latency(&[]);
    near(latency(&["load.dev.cache=host-warm"]), cold - 65.0, 0.01);
    near(latency(&["load.dev.cache=device-warm"]), cold - 70.0, 0.01);
    near(latency(&["load.dev.node=remote"]), cold + 50.0, 0.01);
    near(latency(&["load.dev.node=remote", "load.dev.cache=host-warm"]), cold + 50.0, 0.01);
}

/// The next limit is the one that holds once the first is gone.
#[test]
fn the_next_limit_comes_true() {
    let narrow = go("quickstart.toml", &[]);
    let next = narrow.verdict.next.clone().unwrap();
    assert_eq!(next.resource, "link ssd → sw0");
    let wide = go("quickstart.toml", &["switch.sw0.link=gen4 x8"]);
    assert_eq!(wide.verdict.limit.resource, next.resource, "{}", wide.verdict.sentence);
    near(gbps(&wide, "ssd"), gbps(&narrow, "ssd") * (1.0 + next.headroom), 0.02);
}

/// What would come next, and the run in which it has come: name, first, gone, its resource, the flow that grows, by how much to be off.
#[test]
fn predictions_are_held_against_runs() {
    let long = ["stop=2ms", "warmup=400us"];
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a str, &'a str, f64);
    let cases: &[Case<'_>] = &[
        ("quickstart.toml", &["host.memory.bandwidth=20Gb/s"], &[], "link sw0 → host.rp0", "ssd", 0.05),
        ("quickstart.toml", &["link.sw0.lower.replay_tlps=1"], &[], "link sw0 → host.rp0", "ssd", 0.05),
        (
            "quickstart.toml",
            &["fault=[{ link = \"sw0\", ber = 2e-5 }]"],
            &[],
            "link sw0 → host.rp0",
            "ssd",
            0.1,
        ),
        ("errors.toml", &["fault.0.ber=1e-4"], &["fault.0.ber=1e-18"], "link dev → host.rp0", "dev", 0.05),
    ];
    for (name, first, gone, resource, flow, off) in cases {
        let before = go(name, &[first, &long[..]].concat());
        let after = go(name, &[gone, &long[..]].concat());
        let next = before.verdict.next.clone().unwrap();
        assert_eq!(next.resource, *resource, "{name} {first:?}: {:#?}", before.verdict);
        assert_eq!(after.verdict.limit.resource, *resource, "{name} {gone:?}: {:#?}", after.verdict);
        near(gbps(&before, flow) * (1.0 + next.headroom), gbps(&after, flow), *off);
    }
}

/// A read that follows another has its tag all the time: more outstanding with the same tag gives nothing.
#[test]
fn one_tag_serves_one_read_at_a_time() {
    let one = ["device.dev.tags=1", "load.dev.size=512B", "load.dev.outstanding=1"];
    let alone = go("tags.toml", &one);
    let next = alone.verdict.next.clone().unwrap();
    assert_eq!((next.kind, next.resource.as_str()), (LimitKind::Tags, "tags of dev"));
    let more = go("tags.toml", &["device.dev.tags=1", "load.dev.size=512B", "load.dev.outstanding=4"]);
    near(gbps(&more, "dev"), gbps(&alone, "dev") * (1.0 + next.headroom), 0.01);
}

#[test]
fn errors_are_named_as_the_limit() {
    let some = go("quickstart.toml", &["fault=[{ link = \"sw0\", ber = 1e-4 }]"]).verdict;
    assert_eq!(
        (some.limit.kind, some.limit.resource.as_str()),
        (LimitKind::Replay, "replays on sw0 → host.rp0")
    );
    assert!(some.sentence.contains("bad LCRCs"), "{}", some.sentence);
    let down = go("quickstart.toml", &["fault=[{ link = \"sw0\", down = \"50us\" }]"]).verdict;
    assert_eq!((down.limit.kind, down.limit.resource.as_str()), (LimitKind::Link, "link sw0 → host.rp0"));
    assert!(down.sentence.contains("went down at 50"), "{}", down.sentence);
    assert!(down.sentence.contains("transactions failed"), "{}", down.sentence);
}

/// Over a run with an outage nobody knows what more could have been carried; the outage is said even if it is not the limit.
#[test]
fn an_outage_is_evidence() {
    let verdict = go("hotplug.toml", &[]).verdict;
    assert_eq!(verdict.next, None);
    let said = |what: &str| verdict.limit.evidence.iter().any(|e| e.contains(what));
    assert!(said("sw1 → sw0 went down at 40") && said("were absent for 22"), "{verdict:#?}");
}

#[test]
fn a_stuck_run_is_reported_in_its_verdict() {
    let cable = ["device.nic.requests=4000", "fault=[{ link = \"nic\", down = \"3ms\", until = \"4ms\" }]"];
    let stuck = go("nic.toml", &cable);
    assert!(
        stuck.verdict.sentence.starts_with("The run is stuck: no transaction has ended since"),
        "{:#?}",
        stuck.verdict
    );
    assert_eq!(stuck.verdict.next, None);
    let early = go("quickstart.toml", &["host.enumeration=simulated", "device.ssd.ready=20ms"]);
    assert!(early.verdict.sentence.contains("enumeration was not over"), "{:#?}", early.verdict);
}

#[test]
fn failed_transactions_are_in_the_evidence() {
    let document = go(
        "saturated-writes.toml",
        &["load.dev.op=read", "host.memory.size=4GiB", "load.dev.address=0x1000", "load.dev.window=4KiB"],
    );
    assert!(document.verdict.sentence.contains("limits the run"));
    let refused = go("peer-to-peer.toml", &["device.gpu.under=host.rp1", "host.p2p=off", "load.nic.op=read"]);
    let nic = refused.flows.iter().find(|f| f.name == "nic").unwrap();
    assert!(nic.errors.ur > 0 && nic.transactions == 0, "{nic:?}");
    let said = refused.verdict.limit.evidence.iter().any(|e| e.ends_with("transactions failed"));
    assert!(said, "{:?}", refused.verdict);
}

#[test]
fn a_card_that_is_pulled_out_and_put_back_has_its_times() {
    let document = go("hotplug.toml", &[]);
    let [outage] = &document.outages[..] else { panic!("{:?}", document.outages) };
    let us = |n: u64| n * 1_000_000_000;
    assert_eq!((outage.link.as_str(), outage.down_fs), ("sw1", us(40)));
    // The interrupt takes its way up; when the link is there again, enumerating what is below takes its time.
    let times = [outage.heard_fs, outage.up_fs, outage.configured_fs].map(|at| at.expect("it has happened"));
    assert!(us(40) < times[0] && times[0] < us(42), "{outage:?}");
    assert!(us(70) <= times[1] && times[1] < us(71), "{outage:?}");
    assert!(times[1] < times[2] && times[2] < us(75), "{outage:?}");
    // The card beside it does not notice.
    let flow = |name: &str| document.flows.iter().find(|f| f.name == name).unwrap();
    let failed = |name: &str| flow(name).errors.lost + flow(name).errors.timeout + flow(name).errors.ur;
    assert_eq!(failed("nic"), 0);
    assert!(failed("ssd0") > 0 && failed("ssd1") > 0);
}

/// Bytes of each MWr and MRd that device `dev` sends, by an experiment whose only device it is.
fn requests(keys: &str, load: &str) -> (Document, Vec<u64>) {
    let text = format!(
        "title = \"t\"\nladder = {{ packets = 40, at = \"0s\" }}\n[device.dev]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\n{keys}\n[load]\ndev = {{ {load} }}\n"
    );
    let read = |_: &str| Ok(text.clone());
    let experiment = Experiment::parse(&read, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let document = run(experiment, Inputs::default()).unwrap();
    let up = document
        .ladder
        .iter()
        .flat_map(|ladder| &ladder.packets)
        .filter(|p| p.direction == 0 && p.class == PacketClass::Tlp);
    let bytes = up.map(|p| p.bytes.into()).collect();
    (document, bytes)
}

/// 1000 B from byte 64 on, MPS 256 and headers of 16 B: cut at multiples of MPS 192, 256, 256, 256, 40; packed 256, 256, 256, 232.
#[test]
fn a_requester_splits_by_the_cut_key() {
    let load = "op = \"write\", size = \"1000B\", offset = \"64B\", count = 1";
    let payloads = |keys| requests(keys, load).1.iter().map(|bytes| bytes - 16 - 8).collect::<Vec<_>>();
    assert_eq!(payloads("cut = \"aligned\""), [192, 256, 256, 256, 40]);
    assert_eq!(payloads("cut = \"packed\""), [256, 256, 256, 232]);
    assert_eq!(payloads(""), payloads("cut = \"aligned\""));
}

/// A read of no bytes is one MRd, and over when its completion of one doubleword is here.
#[test]
fn zero_length_reads_are_answered() {
    let (document, bytes) = requests("", "op = \"read\", size = \"0B\", outstanding = 1, count = 3");
    assert_eq!(bytes, [24, 24, 24]);
    let flow = &document.flows[0];
    assert_eq!((flow.transactions, flow.bytes, flow.errors), (3, 0, Default::default()));
    assert!(flow.latency_ns.as_ref().is_some_and(|latency| latency.min > 0.0));
    check(&document);
}

/// A run that was copied on the way, and its copy, have the document of a run that was not.
#[test]
fn every_experiment_continues_equally_from_a_snapshot() {
    let folder = std::fs::read_dir(path("")).unwrap();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".toml"));
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let start = || {
            let experiment = experiment(&name, &[]);
            let inputs = inputs(&experiment);
            Run::new(experiment, inputs).unwrap()
        };
        let finish = |mut run: Run| {
            run.finish().unwrap();
            (run.progress().events, serde_json::to_string(&run.document()).unwrap())
        };
        let (events, whole) = finish(start());
        for at in [events / 7, events / 2, events - 1] {
            let mut original = start();
            original.advance(at).unwrap();
            let copy = original.snapshot(None).unwrap();
            assert!(finish(copy).1 == whole, "{name}: the copy at event {at} of {events}");
            assert!(finish(original).1 == whole, "{name}: the original at event {at} of {events}");
        }
    }
}

/// A load without a count that has yet to begin, or that pauses, has more to do.
#[test]
fn a_run_of_so_many_transactions_waits_for_loads_without_a_count() {
    let file = |late: &str| {
        let text = format!(
            "title = \"t\"\nstop = {{ transactions = 60 }}\n[device.a]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"dma\"\n\
             [load]\na = {{ op = \"write\", size = \"64B\", count = 10 }}\nb = {{ device = \"a\", op = \"write\", size = \"64B\", {late} }}\n"
        );
        let read = |_: &str| Ok(text.clone());
        let experiment =
            Experiment::parse_with(&read, "t.toml", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        run(experiment, Inputs::default()).unwrap()
    };
    for late in ["start = \"1ms\"", "rate = \"1Mb/s\""] {
        let document = file(late);
        assert_eq!(document.stop_reason, StopReason::Transactions(60), "{late}");
    }
    // What has a count is done, and there are no more.
    assert_eq!(file("count = 20").stop_reason, StopReason::LoadsDone);
}
