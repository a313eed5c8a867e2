//! How fast the fabric is: end point – switch – root over two gen3 x8 links, the full data link layer on both.
//!
//! ```text
//! hops write|read payload|length HOPS [DEVICES]
//! hops writes length HOPS
//! ```
//! runs saturated DMA writes of 256 B, or reads of 512 B, until HOPS TLPs have gone over a link for the first time, and prints what
//! happened as one line of JSON. CPU time is for the caller to measure (`getrusage`); `bench/run.py` does, and takes every other
//! figure of `make bench` from here, too. `writes` asks for so many writes as make HOPS hops, on links with bit errors that damage one TLP
//! in some ten thousand, goes on until all is over, and fails unless each has arrived once.

use std::process::ExitCode;
use tlplab_device::{Load, LoadConfig, LoadOp};
use tlplab_fabric::config::{
    DeviceConfig, Direction, FabricConfig, Fault, FaultKind, Fidelity, FlowControl, HostConfig, LinkConfig,
    PortConfig, SkpPolicy, SwitchConfig,
};
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Mrrs, Time, Width};

/// The allocator of the Python extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;
const USAGE: &str = "usage: hops write|read|writes payload|length HOPS [DEVICES]";
/// Devices below each switch, each of which has a root port.
const BELOW_A_SWITCH: usize = 14;
/// Bytes of a write.
const SIZE: u64 = 256;
/// One bit in 2 * 10^7.
const BIT_ERRORS: u64 = u64::MAX / 20_000_000;
/// The number of hops is looked at after so many events.
const STRIDE: u64 = 4096;
/// Something ends in every such time, replays and all.
const PATIENCE: Duration = Duration::from_ms(1);

struct Run {
    op: LoadOp,
    /// It ends, on links with bit errors.
    ends: bool,
    fidelity: Fidelity,
    hops: u64,
    devices: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments).and_then(|run| measure(&run)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Run, String> {
    let (op, fidelity, hops, devices) = match arguments {
        [op, fidelity, hops] => (op, fidelity, hops, "1"),
        [op, fidelity, hops, devices] => (op, fidelity, hops, devices.as_str()),
        _ => return Err(USAGE.into()),
    };
    Ok(Run {
        ends: op == "writes",
        op: match op.as_str() {
            "write" | "writes" => LoadOp::Write,
            "read" => LoadOp::Read,
            other => return Err(format!("{other:?} is neither write nor read; {USAGE}")),
        },
        fidelity: match fidelity.as_str() {
            "payload" => Fidelity::Payload,
            "length" => Fidelity::LengthOnly,
            other => return Err(format!("{other:?} is neither payload nor length; {USAGE}")),
        },
        hops: hops.parse().map_err(|_| format!("{hops:?} is no number of hops; {USAGE}"))?,
        devices: devices.parse().map_err(|_| format!("{devices:?} is no number of devices; {USAGE}"))?,
    })
}

fn measure(run: &Run) -> Result<String, String> {
    let mut fabric = build(run)?;
    let start = resident();
    if run.ends {
        run_to_the_end(&mut fabric)?;
        check_each_arrived_once(&mut fabric, run.hops / 2)?;
    }
    while fabric.tlp_hops() < run.hops {
        if !fabric.run_events(STRIDE, Time::NEVER) {
            return Err(format!(
                "the run ended after {} hops: {}",
                fabric.tlp_hops(),
                fabric.fault().unwrap_or("nothing left to do")
            ));
        }
    }
    if let Some((time, _, error)) = fabric.protocol_errors().next() {
        return Err(format!("a protocol error at {} fs: {error}", time.as_fs()));
    }
    let number = |value: Option<u64>| value.map_or_else(|| "null".into(), |n| n.to_string());
    Ok(format!(
        r#"{{"hops": {}, "events": {}, "transactions": {}, "simulated_fs": {}, "resident_at_start": {}, "resident_at_end": {}}}"#,
        fabric.tlp_hops(),
        fabric.events(),
        fabric.transactions_ended(),
        fabric.now().as_fs(),
        number(start),
        number(resident()),
    ))
}

/// Until all writes are over. Idle links refresh credits for ever, so a write that is lost shows by nothing coming to an end.
fn run_to_the_end(fabric: &mut Fabric) -> Result<(), String> {
    let mut last = (0, Time::ZERO);
    while fabric.run_events(STRIDE, Time::NEVER) {
        let (ended, now) = (fabric.transactions_ended(), fabric.now());
        if ended != last.0 {
            last = (ended, now);
        } else if now > last.1 + PATIENCE {
            return Err(format!("{ended} writes are over, and none has ended since {}", last.1));
        }
    }
    Ok(())
}

/// So many writes were asked for: each has gone over both links, and arrived once.
fn check_each_arrived_once(fabric: &mut Fabric, writes: u64) -> Result<(), String> {
    fabric.run_until(fabric.now() + Duration::from_us(100));
    let ids: Vec<_> = fabric.flow_ids().collect();
    let flow = ids.into_iter().map(|id| fabric.flow_results(id)).find(|flow| flow.transactions > 0);
    let arrived = flow.map_or((0, 0, 0), |flow| (flow.transactions, flow.bytes, flow.failed.len()));
    let ports: Vec<_> = fabric.topology().links.iter().flat_map(|link| link.ports).collect();
    let replayed: u64 = ports.into_iter().map(|port| fabric.direction_result(port).wire.replayed).sum();
    let seen = (arrived, fabric.tlp_hops(), fabric.tlps_live(), fabric.refused());
    let right = ((writes, writes * SIZE, 0), 2 * writes, 0, 0);
    if seen != right {
        return Err(format!(
            "transactions, bytes, failures; hops; TLPs left; refused: {seen:?}, not {right:?}"
        ));
    }
    eprintln!("{writes} writes of {SIZE} B arrived once each; {replayed} TLPs were sent again");
    Ok(())
}

/// Bytes of the process in memory now, where the system tells (Linux).
fn resident() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a measuring program, not a part of the simulator")]
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn build(run: &Run) -> Result<Fabric, String> {
    let switches = (0..run.devices.div_ceil(BELOW_A_SWITCH))
        .map(|at| SwitchConfig::new(&format!("sw{at}"), link(&format!("host.rp{at}"), run.ends)));
    let devices = (0..run.devices).map(|at| device(at, run.ends));
    let config = FabricConfig {
        vendor: 0x71AB,
        buses: Vec::new(),
        nodes: Vec::new(),
        seed: SEED,
        fidelity: run.fidelity,
        warmup: Time::ZERO,
        // Messages about damaged TLPs would be hops, too.
        host: HostConfig { error_reporting: !run.ends, ..HostConfig::default() },
        switches: switches.collect(),
        devices: devices.collect(),
    };
    let (size, operation) = if run.op == LoadOp::Write { (SIZE, "write") } else { (512, "read") };
    let count = run.ends.then_some(run.hops / 2);
    let mut builder = Builder::new(config);
    for at in 0..run.devices {
        let name = format!("dev{at}");
        let load = LoadConfig { op: run.op, size, count, ..LoadConfig::default() };
        let load = Load::new(load, SEED, &name).map_err(|e| e.to_string())?;
        let flow = FlowInfo {
            name: name.clone(),
            owner: name.clone(),
            operation: operation.into(),
            target: "host".into(),
        };
        builder.device(&name, Box::new(load)).flows([flow]).finishes_if(run.ends);
    }
    builder.build().map_err(|e| e.to_string())
}

fn device(at: usize, errors: bool) -> DeviceConfig {
    DeviceConfig {
        bus: None,
        name: format!("dev{at}"),
        link: link(&format!("sw{}", at / BELOW_A_SWITCH), errors),
        function_of: None,
        ready: Duration::ZERO,
        mrrs: Mrrs::new(512).expect("a read request size"),
        tags: 256,
        latency: Duration::ZERO,
        completion_timeout: Duration::from_ms(10),
        relaxed_ordering: false,
        id_based_ordering: false,
        cut: None,
        posted_writes: true,
        ats: None,
    }
}

/// Gen3 x8, MPS 256, nothing but what the specification says; with bit errors in both directions, if it has `errors`.
fn link(under: &str, errors: bool) -> LinkConfig {
    let kind = FaultKind::BitErrors { numerator: BIT_ERRORS };
    let faults = [Direction::Up, Direction::Down].map(|direction| Fault { direction, kind });
    LinkConfig {
        under: under.into(),
        generation: Generation::new(3).expect("a generation"),
        width: Width::new(8).expect("a width"),
        mode: LinkMode::NonFlit,
        flow_control: FlowControl::Credits,
        crossbar: None,
        tlp_alignment: 4,
        mps: Mps::new(256).expect("a payload size"),
        flight: Duration::ZERO,
        upper: PortConfig::default(),
        lower: PortConfig::default(),
        skp: SkpPolicy::Standard,
        trained: true,
        recovery: Duration::from_us(1),
        faults: if errors { faults.to_vec() } else { Vec::new() },
    }
}
