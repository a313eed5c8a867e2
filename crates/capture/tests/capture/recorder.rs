//! A run of the fabric, recorded and read back; a captured trace, replayed.

use std::path::Path;
use tlplab_capture::{self as capture, Capture, Unit};
use tlplab_device::{Device, Load, LoadConfig, LoadOp, Relocation, Replay, ReplayPace, Target};
use tlplab_fabric::config::{
    DeviceConfig, FabricConfig, Fidelity, FlowControl, HostConfig, LinkConfig, PortConfig, SkpPolicy,
    SwitchConfig,
};
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{Builder, Fabric};
use tlplab_trace::recorder::{Recorder, Targets};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Mrrs, Time, Width};

fn link(under: &str, mode: LinkMode) -> LinkConfig {
    let generation = if mode == LinkMode::Flit { Generation::Gen6 } else { Generation::Gen3 };
    LinkConfig {
        under: under.into(),
        generation,
        width: Width::new(4).unwrap(),
        mode,
        flow_control: FlowControl::Credits,
        crossbar: None,
        tlp_alignment: 4,
        mps: Mps::new(256).unwrap(),
        flight: Duration::from_ns(5),
        upper: PortConfig::default(),
        lower: PortConfig::default(),
        skp: SkpPolicy::Standard,
        trained: true,
        recovery: Duration::from_us(1),
        faults: Vec::new(),
    }
}

/// `dev` behind `sw0` behind the host.
fn builder(device: Box<dyn Device>, mode: LinkMode, fidelity: Fidelity) -> Builder {
    let uplink = link("host.rp0", mode);
    let switch = SwitchConfig { latency: Duration::from_ns(100), ..SwitchConfig::new("sw0", uplink) };
    let end_point = DeviceConfig {
        name: "dev".into(),
        link: link("sw0", mode),
        bus: None,
        function_of: None,
        ready: Duration::ZERO,
        mrrs: Mrrs::new(512).unwrap(),
        tags: 32,
        latency: Duration::ZERO,
        completion_timeout: Duration::from_ms(10),
        relaxed_ordering: false,
        id_based_ordering: false,
        cut: None,
        posted_writes: true,
        ats: None,
    };
    let mut builder = Builder::new(FabricConfig {
        vendor: 0x71AB,
        seed: 1,
        fidelity,
        warmup: Time::ZERO,
        host: HostConfig::default(),
        switches: vec![switch],
        buses: Vec::new(),
        nodes: Vec::new(),
        devices: vec![end_point],
    });
    let text = |s: &str| s.to_string();
    let flow =
        FlowInfo { name: text("dev"), owner: text("dev"), operation: text("read"), target: text("host") };
    builder.device("dev", device).flows([flow]).finishes();
    builder
}

fn reads(count: u64) -> Box<dyn Device> {
    let load = LoadConfig {
        op: LoadOp::Read,
        size: 1024,
        outstanding: 4,
        count: Some(count),
        target: Target::Address(0x10_0000),
        ..LoadConfig::default()
    };
    Box::new(Load::new(load, 1, "dev").unwrap())
}

fn record(mut builder: Builder, folder: &Path) -> (Capture, Vec<u8>, Fabric) {
    let (pcapng, perfetto) = (folder.join("run.pcapng"), folder.join("run.pftrace"));
    let targets =
        Targets { pcapng: Some(pcapng.clone()), perfetto: Some(perfetto.clone()), ..Targets::default() };
    let recorder = Recorder::create(targets).unwrap();
    builder.probe(recorder.probe());
    let mut fabric = builder.build().unwrap();
    fabric.run_until(Time::ZERO + Duration::from_us(2_000));
    let (bin, _) = fabric.bins();
    recorder.levels(&fabric.level_results(), bin);
    assert!(!pcapng.exists(), "nothing half-written is to be seen");
    recorder.finish().unwrap();
    (capture::read_file(pcapng).unwrap(), std::fs::read(perfetto).unwrap(), fabric)
}

fn count(capture: &Capture, direction: &str, name: &str) -> usize {
    let sent =
        |record: &capture::Record| capture.directions[usize::from(record.direction)].to_string() == direction;
    capture.tlps().filter(|(record, repr)| sent(record) && repr.name() == name).count()
}

/// Ten reads of 1024 bytes: 20 MRd of 512 (MRRS), 40 CplD of 256 (MPS) on each of two links.
#[test]
fn every_tlp_of_a_run_is_in_the_capture_on_every_link() {
    for (mode, fidelity) in [
        (LinkMode::NonFlit, Fidelity::Payload),
        (LinkMode::NonFlit, Fidelity::LengthOnly),
        (LinkMode::Flit, Fidelity::Payload),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (capture, trace, fabric) = record(builder(reads(10), mode, fidelity), folder.path());
        assert!(capture.problems.is_empty(), "{:?}", capture.problems);
        for direction in ["dev → sw0", "sw0 → host.rp0"] {
            assert_eq!(count(&capture, direction, "MRd"), 20, "{mode:?} {direction}");
        }
        for direction in ["sw0 → dev", "host.rp0 → sw0"] {
            assert_eq!(count(&capture, direction, "CplD"), 40, "{mode:?} {direction}");
        }
        let statistics = capture::statistics(&capture);
        assert_eq!((statistics.completed, statistics.unanswered, statistics.unexpected), (40, 0, 0));
        assert_eq!(statistics.read_bytes, 2 * 10 * 1024);
        let kept: usize = capture.records.iter().map(|record| capture.payload(record).len()).sum();
        assert_eq!(kept, if fidelity == Fidelity::Payload { 2 * 10 * 1024 } else { 0 });
        let others =
            capture.records.iter().filter(|r| matches!(r.unit, Unit::Dllp(_) | Unit::Flit { .. })).count();
        assert!(others > 0, "acknowledgements are there too");
        // The trace: strings that only it can have.
        for text in ["dev → sw0", "MRd", "read 1024 B @ 0x100000", "serialisation", "tags in use of dev"] {
            assert!(trace.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{mode:?}: {text}");
        }
        assert_eq!(fabric.flow_results(fabric.flow_ids().next().unwrap()).transactions, 10);
    }
}

#[test]
fn a_recorder_that_is_not_finished_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = builder(reads(1), LinkMode::NonFlit, Fidelity::LengthOnly);
    let targets = Targets { pcapng: Some(folder.path().join("x.pcapng")), ..Targets::default() };
    let recorder = Recorder::create(targets).unwrap();
    builder.probe(recorder.probe());
    let mut fabric = builder.build().unwrap();
    fabric.run_until(Time::ZERO + Duration::from_us(10));
    drop((fabric, recorder));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The X520's 64 reads of 512 bytes, at their captured times: the recorded run has the same requests at the same times.
#[test]
fn a_real_device_is_replayed() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/traces/x520-1024B-32pkt.csv");
    let records = capture::read_trace(trace).unwrap();
    assert_eq!((records.len(), records[0].at), (64, Duration::ZERO));
    let window = Relocation::Window { base: 1 << 20, bytes: 1 << 20 };
    let device = Box::new(Replay::new(records.clone(), ReplayPace::Captured, window).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (capture, _, _) = record(builder(device, LinkMode::NonFlit, Fidelity::LengthOnly), folder.path());
    let direction = capture.directions.iter().position(|d| d.from == "dev").unwrap() as u16;
    let requests = capture::requests(&capture, Some(direction));
    assert_eq!(requests.len(), 64);
    for (request, record) in requests.iter().zip(&records) {
        assert_eq!((request.bytes, request.address & 0xfff), (record.bytes, record.address & 0xfff));
        let (early, late) = (request.time.as_fs().saturating_sub(record.at.as_fs()), 50_000_000);
        assert!(
            request.time.as_fs() + late >= record.at.as_fs() && early < late,
            "within 50 ns of the capture"
        );
    }
}

#[test]
fn a_trace_without_requests_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.csv");
    std::fs::write(&path, "time_ns,op,address,bytes,requester,tag\n").unwrap();
    let error = capture::read_trace(&path).unwrap_err().to_string();
    assert!(error.contains("empty.csv: none of its 0 frames is a memory request"), "{error}");
}
