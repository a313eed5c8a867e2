//! The devices and programs of an experiment, as objects for the builder of a fabric.

use crate::device_models::{ModelSpec, NicSpec, RingSpec, SimpleNicSpec};
use crate::experiment::Experiment;
use crate::issuer::{Issuer, Part};
use crate::load::{Generate, LoadSpec, Op, Pace, Pattern, Timing, Work};
use crate::nvme::{NvmeSpec, serial};
use crate::result::Operation;
use crate::run::{Inputs, RunError};
use crate::translation;
use tlplab_device::contract::Stream;
use tlplab_device::nic::ethernet::Speed;
use tlplab_device::{
    Cable, CablePort, CardConfig, Dd, Device, Dma, DmaDriver, FrameLoad, HostProgram, Load, LoadConfig,
    LoadOp, Memory, NettlpCard, Nic, NicConfig, NicDriver, NicLoad, Nvme, NvmeConfig, Record, Relocation,
    Replay, ReplayPace, Ring, RingConfig, RingDriver, RingLoad, SimpleNic, SimpleNicConfig, SimpleNicDriver,
    Storage, Target, Tlpdma, TlpdmaDriver, Traffic, tlp_device,
};
use tlplab_fabric::config::{MapConfig, MapTarget};
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::Time;

pub(crate) fn flow(name: &str, owner: &str, operation: Operation, target: &str) -> FlowInfo {
    let operation = operation.token().into();
    FlowInfo { name: name.into(), owner: owner.into(), operation, target: target.into() }
}

/// A device whose flows to the host are its streams.
fn add_device(builder: &mut Builder, name: &str, device: impl Device + 'static) {
    let flows = flows_of_device(name, device.streams());
    builder.device(name, Box::new(device)).flows(flows);
}

/// The flows of a device to the host, one for each of its streams; that of a device with one has the device's name.
fn flows_of_device(name: &str, streams: &[Stream]) -> Vec<FlowInfo> {
    let to_host = |flow: String, operation: &str| FlowInfo {
        name: flow,
        owner: name.into(),
        operation: operation.into(),
        target: "host".into(),
    };
    match streams {
        [(_, operation)] => vec![to_host(name.into(), operation)],
        _ => {
            streams.iter().map(|(stream, operation)| to_host(format!("{name}.{stream}"), operation)).collect()
        }
    }
}

/// The flows of a load, one for each of its streams.
fn flows_of(load: &LoadSpec) -> Vec<FlowInfo> {
    let one = |operation| vec![flow(&load.name, &load.device, operation, &load.target)];
    let part = |operation| flow(&format!("{}.{operation}", load.name), &load.device, operation, &load.target);
    match &load.work {
        Work::Replay { .. } => one(Operation::Replay),
        Work::Dd(dd) => one(if dd.write { Operation::DdWrite } else { Operation::DdRead }),
        Work::Transfer(transfer) => {
            one(if transfer.to_card { Operation::ToCard } else { Operation::FromCard })
        }
        Work::Generate(generate) => match generate.op {
            Op::Read => one(Operation::Read),
            Op::Write => one(Operation::Write),
            Op::Both => vec![part(Operation::Read), part(Operation::Write)],
            Op::MmioRead => one(Operation::MmioRead),
            Op::MmioWrite => one(Operation::MmioWrite),
        },
    }
}

/// It ends before the run is stopped.
pub(crate) fn is_finite(load: &LoadSpec) -> bool {
    load.count.is_some() || load.work.ends_by_itself()
}

pub(crate) fn add_devices(
    builder: &mut Builder,
    experiment: &Experiment,
    inputs: &mut Inputs,
) -> Result<(), RunError> {
    for spec in &experiment.devices {
        let name = &spec.name;
        match &spec.model {
            ModelSpec::Dma { bar } => {
                let (issuer, flows, finishes) = issuer(experiment, inputs, name, *bar)?;
                builder.device(name, Box::new(issuer)).flows(flows).finishes_if(finishes);
            }
            ModelSpec::Card(config) => add_card(builder, experiment, inputs, name, config)?,
            ModelSpec::Memory { bar } => add_device(builder, name, Memory::new(*bar)),
            ModelSpec::Copier { .. } => add_device(builder, name, Dma::new()),
            ModelSpec::Ring(ring) => {
                let config = RingConfig { batch: ring.batch, depth: ring.depth };
                add_device(builder, name, Ring::new(config));
            }
            ModelSpec::Storage(config) => add_device(builder, name, Storage::new(*config)),
            ModelSpec::Nvme(spec) => {
                let device = nvme_device(inputs, name, spec)?;
                add_device(builder, name, device);
            }
            ModelSpec::Tlpdma { memory } => add_device(builder, name, Tlpdma::new(*memory)),
            ModelSpec::Nic(nic) => {
                let count = Some(nic.requests.into());
                let cable = cable(nic.sends, nic.receives, nic.transfer, count);
                let speed = Speed::from_bps(nic.ethernet);
                let config = NicConfig { mac: nic.mac, cable, speed };
                let device = match inputs.open_ends.remove(name) {
                    Some(end) => Nic::with_open_end(config, end),
                    None => Nic::new(config),
                };
                add_device(builder, name, device);
            }
            ModelSpec::SimpleNic(nic) => {
                // The partner sends until as many have arrived as are wanted.
                let cable = cable(nic.sends, nic.receives, nic.transfer, None);
                let port = CablePort::new(cable, Speed::from_bps(nic.ethernet));
                add_device(builder, name, SimpleNic::new(SimpleNicConfig::default(), port));
            }
            ModelSpec::Library(_) => {
                let device = inputs.devices.remove(name).ok_or_else(|| RunError::NoDevice(name.clone()))?;
                builder.device(name, device).flows([flow(name, name, Operation::Dma, "host")]);
            }
            ModelSpec::Rtl(_) => {
                let core = inputs.cores.remove(name).ok_or_else(|| RunError::NoDevice(name.clone()))?;
                builder.tlp_device(name, core).flows(flows_of_device(name, tlp_device::STREAMS));
            }
            ModelSpec::Python { .. } => {
                let device = inputs.outside.get(name).ok_or_else(|| RunError::NoDevice(name.clone()))?;
                let flows = vec![flow(name, name, Operation::Dma, "host")];
                builder.outside_device(name, Box::new(device.clone())).flows(flows);
            }
        }
    }
    Ok(())
}

/// A controller with the medium that was brought, or, if it names no file, with one in memory.
fn nvme_device(inputs: &mut Inputs, name: &str, spec: &NvmeSpec) -> Result<Nvme, RunError> {
    let config = NvmeConfig { serial: serial(name), ..spec.config.clone() };
    let media = match (inputs.media.remove(name), &spec.file) {
        (Some(medium), _) => vec![medium],
        (None, Some(file)) => {
            return Err(RunError::NoMedium { device: name.into(), file: file.clone() });
        }
        (None, None) => config.sparse_media(),
    };
    Ok(Nvme::new(config, media))
}

/// The issuers of the loads of a device, their flows, and whether they end.
fn issuer(
    experiment: &Experiment,
    inputs: &Inputs,
    name: &str,
    bar: u64,
) -> Result<(Issuer, Vec<FlowInfo>, bool), RunError> {
    let (mut parts, mut flows) = (Vec::new(), Vec::new());
    for load in experiment.loads.iter().filter(|l| l.device == *name) {
        let own_flows = flows_of(load);
        let device: Box<dyn Device> = match &load.work {
            Work::Generate(generate) => Box::new(generator(load, generate, experiment)?),
            // The host's.
            Work::Dd(_) | Work::Transfer(_) => continue,
            Work::Replay { file, timing, outstanding, fold } => {
                let tags = experiment.fabric.devices.iter().find(|d| d.name == *name).map_or(1, |d| d.tags);
                let outstanding = outstanding.unwrap_or(tags.into());
                Box::new(replay(load, inputs, file, *timing, outstanding, *fold)?)
            }
        };
        parts.push(Part {
            device,
            streams: own_flows.len() as u16,
            finishes: is_finite(load),
            peers: peers_of(load),
        });
        flows.extend(own_flows);
    }
    let finishes = parts.iter().any(|p| p.finishes);
    Ok((Issuer::new(bar, parts), flows, finishes))
}

fn peers_of(load: &LoadSpec) -> Vec<String> {
    if load.target == "host" { Vec::new() } else { vec![load.target.clone()] }
}

/// A card whose software issues its loads, or is a memory.
fn add_card(
    builder: &mut Builder,
    experiment: &Experiment,
    inputs: &Inputs,
    name: &str,
    config: &CardConfig,
) -> Result<(), RunError> {
    let (mps, mrrs) = experiment
        .fabric
        .devices
        .iter()
        .find(|device| device.name == name)
        .map_or((256, 512), |device| (device.link.mps.bytes(), device.mrrs.bytes()));
    let own = experiment.loads.iter().filter(|load| load.device == name);
    let peers = own.flat_map(peers_of).collect();
    let from = experiment.fabric.warmup;
    let config = CardConfig { mps, mrrs, from, peers, ..config.clone() };
    let (issuer, flows, finishes) = issuer(experiment, inputs, name, config.bar)?;
    let software: Box<dyn Device> =
        if flows.is_empty() { Box::new(Memory::new(config.bar)) } else { Box::new(issuer) };
    builder.device(name, Box::new(NettlpCard::new(config, software))).flows(flows).finishes_if(finishes);
    Ok(())
}

fn generator(load: &LoadSpec, generate: &Generate, experiment: &Experiment) -> Result<Load, RunError> {
    // In a BAR the generator's window begins with the BAR, and its first address where the load's window does.
    let skipped = if load.target == "host" { 0 } else { generate.base };
    let config = LoadConfig {
        op: match generate.op {
            Op::Read | Op::MmioRead => LoadOp::Read,
            Op::Write | Op::MmioWrite => LoadOp::Write,
            Op::Both => LoadOp::Both,
        },
        size: generate.size,
        target: match load.target.as_str() {
            "host" => Target::Address(generate.base),
            device => Target::Bar { device: device.into(), bar: window_of(experiment, device) },
        },
        window: skipped + generate.window,
        stride: Some(generate.size.max(1).next_multiple_of(generate.align)),
        offset: skipped + generate.offset,
        pattern: match generate.pattern {
            Pattern::Sequential => tlplab_device::Pattern::Sequential,
            Pattern::Random => tlplab_device::Pattern::Random,
            Pattern::Fixed => tlplab_device::Pattern::Fixed,
        },
        outstanding: generate.outstanding,
        rate: match generate.pace {
            Pace::Rate(bits) => Some(bits),
            Pace::Outstanding(_) => None,
        },
        count: load.count,
        start: load.start - Time::ZERO,
    };
    Load::new(config, experiment.fabric.seed, &load.name)
        .map_err(|error| RunError::Load { load: load.name.clone(), error })
}

fn window_of(experiment: &Experiment, device: &str) -> u8 {
    experiment.devices.iter().find(|spec| spec.name == device).map_or(0, |spec| spec.model.window())
}

fn replay(
    load: &LoadSpec,
    inputs: &Inputs,
    file: &str,
    timing: Timing,
    outstanding: u32,
    fold: Option<(u64, u64)>,
) -> Result<Replay, RunError> {
    let missing = || RunError::NoTrace { load: load.name.clone(), file: file.into() };
    let records = inputs.traces.get(file).ok_or_else(missing)?;
    let count = load.count.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let shift = load.start - Time::ZERO;
    let records = records.iter().take(count).map(|r| Record { at: r.at + shift, ..*r }).collect();
    let pace = match timing {
        Timing::Captured => ReplayPace::Captured,
        Timing::Fast => ReplayPace::Fast { outstanding },
    };
    let relocation = match fold {
        Some((base, bytes)) => Relocation::Window { base, bytes },
        None => Relocation::Keep,
    };
    Replay::new(records, pace, relocation).map_err(|error| RunError::Trace {
        load: load.name.clone(),
        file: file.into(),
        error,
    })
}

/// Caches and nodes as the loads want to find them.
pub(crate) fn prepare_memory(fabric: &mut Fabric, experiment: &Experiment) {
    let maps = &experiment.fabric.host.maps;
    let generators = experiment.loads.iter().filter_map(|load| match &load.work {
        Work::Generate(generate) => Some((load, generate)),
        _ => None,
    });
    for (load, generate) in generators.clone().filter(|(_, generate)| generate.remote) {
        for (address, bytes) in in_host_memory(maps, &load.device, generate.base, generate.window) {
            fabric.place_remote(address, bytes);
        }
    }
    for (load, generate) in generators {
        let Some(writer) = generate.warm else { continue };
        for (address, bytes) in in_host_memory(maps, &load.device, generate.base, generate.window) {
            fabric.warm_cache(address, bytes, writer);
        }
    }
}

/// The parts of host memory, each an address and a length, that a device reaches by these addresses of its own.
fn in_host_memory(maps: &[MapConfig], device: &str, from: u64, bytes: u64) -> Vec<(u64, u64)> {
    let mut own = translation::of_device(maps, device).peekable();
    if own.peek().is_none() {
        return vec![(from, bytes)];
    }
    let part = |map: &MapConfig| {
        let MapTarget::Address(to) = map.to else { return None };
        let first = from.max(map.from);
        let end = from.saturating_add(bytes).min(map.from.saturating_add(map.bytes));
        (first < end).then(|| (to + (first - map.from), end - first))
    };
    own.filter_map(part).collect()
}

/// Loads of the host: one program each, but one for both directions of a card. Returns how many.
pub(crate) fn add_host_loads(builder: &mut Builder, experiment: &Experiment) -> Result<usize, RunError> {
    let mut programs = 0;
    for load in experiment.loads.iter().filter(|l| l.device == "host") {
        let program: Box<dyn HostProgram> = match &load.work {
            Work::Generate(generate) => Box::new(generator(load, generate, experiment)?),
            Work::Dd(dd) => Box::new(Dd::new(&load.target, *dd)),
            Work::Replay { .. } | Work::Transfer(_) => continue,
        };
        builder.program(program).flows(flows_of(load)).finishes_if(is_finite(load));
        programs += 1;
    }
    Ok(programs + add_card_drivers(builder, experiment))
}

/// Drivers of the cards that loads transfer to and from: one program each. Returns how many.
fn add_card_drivers(builder: &mut Builder, experiment: &Experiment) -> usize {
    let mut programs = 0;
    let cards = experiment.devices.iter().map(|device| device.name.as_str());
    for card in cards {
        let own = experiment
            .loads
            .iter()
            .filter(|load| load.transfer().is_some_and(|(_, target, _)| target == card));
        let loads: Vec<_> = own.clone().filter_map(|load| Some(*load.transfer()?.2)).collect();
        if !loads.is_empty() {
            let flows = own.flat_map(flows_of);
            builder.program(Box::new(TlpdmaDriver::new(card, loads))).flows(flows).finishes();
            programs += 1;
        }
    }
    programs
}

/// Drivers of the devices that come with one and are given no other. Returns the devices that they drive.
pub(crate) fn add_builtin_drivers(
    builder: &mut Builder,
    experiment: &Experiment,
    inputs: &Inputs,
) -> Vec<String> {
    let mut driven = Vec::new();
    let own = |name| experiment.driven.as_ref() != Some(name);
    for spec in experiment.devices.iter().filter(|spec| spec.driver.is_none() && own(&spec.name)) {
        let name = &spec.name;
        let flows = vec![flow(&format!("{name}.driver"), "host", Operation::Mmio, name)];
        match &spec.model {
            ModelSpec::Copier { transfer, requests } => {
                builder.program(Box::new(DmaDriver::new(name, *transfer, *requests))).flows(flows).finishes();
            }
            ModelSpec::Ring(ring) => {
                builder.program(Box::new(RingDriver::new(name, ring_load(ring)))).flows(flows).finishes();
            }
            ModelSpec::Nic(nic) => {
                builder.program(Box::new(NicDriver::new(name, nic_load(nic)))).flows(flows).finishes();
            }
            ModelSpec::SimpleNic(nic) => match inputs.frames.get(name) {
                // Its frames are somebody's outside, and never over.
                Some(frames) => {
                    let driver = SimpleNicDriver::new(name, nic.rings, frames.clone());
                    builder.program(Box::new(driver)).flows(flows);
                }
                None => {
                    let driver = SimpleNicDriver::new(name, nic.rings, frame_load(nic));
                    builder.program(Box::new(driver)).flows(flows).finishes();
                }
            },
            _ => continue,
        }
        driven.push(name.clone());
    }
    driven
}

fn ring_load(ring: &RingSpec) -> RingLoad {
    RingLoad {
        entries: ring.entries,
        bytes: ring.transfer,
        receive: ring.receive,
        interrupt_every: ring.interrupt_every,
        count: Some(ring.requests),
    }
}

/// The partner's `count` frames of `bytes`, if it is it who sends.
fn cable(sends: bool, receives: bool, bytes: u32, count: Option<u64>) -> Cable {
    match (sends, receives) {
        (true, true) => Cable::LoopBack,
        (true, false) => Cable::Sink,
        _ => Cable::Source(Traffic { bytes, rate: None, count }),
    }
}

fn frame_load(nic: &SimpleNicSpec) -> FrameLoad {
    let frames = |wanted: bool| if wanted { nic.requests.into() } else { 0 };
    FrameLoad::new(nic.transfer, frames(nic.sends), frames(nic.receives))
}

fn nic_load(nic: &NicSpec) -> NicLoad {
    let frames = |wanted: bool| if wanted { nic.requests } else { 0 };
    NicLoad {
        entries: nic.entries,
        bytes: nic.transfer,
        send: frames(nic.sends),
        receive: frames(nic.receives),
    }
}
