//! From an experiment to a fabric that runs, and to the end of the run.

use crate::document;
use crate::experiment::Experiment;
use crate::issuer::{Issuer, Part};
use crate::ladder::{self, Ladder, Tee};
use crate::load::{Generate, LoadSpec, Op, Pace, Pattern, Timing, Work};
use crate::models::{ModelSpec, RingSpec};
use crate::result::Document;
use std::collections::BTreeMap;
use tlplab_device::{
    Context, Device, Dma, DmaDriver, Event, Identity, Load, LoadConfig, LoadError, LoadOp, Memory, Record,
    Relocation, Replay, ReplayError, ReplayPace, Ring, RingConfig, RingDriver, RingLoad, Target,
};
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{BuildError, Builder, Fabric, Probe};
use tlplab_units::{Duration, Time};

/// What a run needs besides its experiment.
#[derive(Default)]
pub struct Inputs {
    /// The requests of each trace that the experiment names, by its path in [`Experiment::files`].
    pub traces: BTreeMap<String, Vec<Record>>,
    /// What devices from files say of themselves, by the device's name. They are driven from outside; see [`Run::fabric`].
    pub outside: BTreeMap<String, Identity>,
    /// Another observer: a capture, a trace.
    pub probe: Option<Box<dyn Probe>>,
    /// Keep no window of packets: faster.
    pub no_ladder: bool,
}

/// Why a run cannot begin or go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// A trace was not brought.
    #[error("load {load}: the trace \"{file}\" was not read")]
    NoTrace {
        /// The load.
        load: String,
        /// The file.
        file: String,
    },
    /// A trace cannot be replayed.
    #[error("load {load}: \"{file}\": {error}")]
    Trace {
        /// The load.
        load: String,
        /// The file.
        file: String,
        /// What is wrong.
        error: ReplayError,
    },
    /// A load cannot be.
    #[error("load {load}: {error}")]
    Load {
        /// The load.
        load: String,
        /// What is wrong.
        error: LoadError,
    },
    /// A device from a file was not brought.
    #[error("device {0}: nobody drives it; the file that the model names was not loaded")]
    NoDevice(String),
    /// The fabric cannot be.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A device or program gave up.
    #[error("the run failed at {at}: {message}")]
    Fault {
        /// When.
        at: Time,
        /// What it said.
        message: String,
    },
}

/// A run under way.
pub struct Run {
    experiment: Experiment,
    fabric: Fabric,
    ladder: Option<ladder::Shared>,
    /// Counters at the end of the warm-up, from which the document counts.
    baseline: Option<document::Baseline>,
    stop_reason: Option<String>,
    /// Someone outside drives a device or a program.
    outside: bool,
    drivers: Vec<String>,
    told: Told,
    last_end: (u64, Time),
}

/// What those outside have been told and have not taken yet.
#[derive(Debug, Default)]
pub struct Told {
    /// Devices: when, which, what.
    pub devices: Vec<(Time, tlplab_fabric::NodeId, Event)>,
    /// Host programs, in the order of [`Run::drivers`]: when, which, what.
    pub programs: Vec<(Time, usize, tlplab_device::HostEvent)>,
}

impl Told {
    fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.programs.is_empty()
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Events handled.
    pub events: u64,
    /// Transactions that have ended.
    pub transactions: u64,
    /// Part of the run that is over, 0 to 1, where its end is known.
    pub fraction: Option<f64>,
    /// The run is over.
    pub done: bool,
    /// Someone outside has to act before it can go on; see [`Run::told`].
    pub waits_for_outside: bool,
}

/// A run without a stop time in which nothing ends for so long is given up.
const PATIENCE: Duration = Duration::from_ms(200);

impl Run {
    /// Builds the fabric of an experiment, at time 0.
    ///
    /// # Errors
    /// [`RunError`]: what is missing or cannot be.
    pub fn new(experiment: Experiment, mut inputs: Inputs) -> Result<Self, RunError> {
        let mut builder = Builder::new(experiment.fabric.clone());
        add_devices(&mut builder, &experiment, &inputs)?;
        let mut programs = add_host_loads(&mut builder, &experiment)?;
        programs += add_builtin_drivers(&mut builder, &experiment);
        let mut drivers = vec![String::new(); programs];
        for device in experiment.devices.iter().filter(|d| d.driver.is_some()) {
            builder.outside_program(vec![flow(
                &format!("{}.driver", device.name),
                "host",
                "mmio",
                &device.name,
            )]);
            drivers.push(device.name.clone());
        }
        let ladder = (!inputs.no_ladder).then(|| ladder::Shared::new(Ladder::window(&experiment)));
        match (&ladder, inputs.probe.take()) {
            (Some(ladder), probe) => builder.probe(Box::new(Tee { ladder: ladder.clone(), probe })),
            (None, Some(probe)) => builder.probe(probe),
            (None, None) => &mut builder,
        };
        let fabric = builder.build()?;
        let outside = !inputs.outside.is_empty() || drivers.len() > programs;
        let mut run = Self {
            experiment,
            fabric,
            ladder,
            baseline: None,
            stop_reason: None,
            outside,
            drivers,
            told: Told::default(),
            last_end: (0, Time::ZERO),
        };
        if run.outside {
            run.listen();
        }
        Ok(run)
    }

    /// Goes on for at most `events` events. Returns early when the run is over or someone outside has to act.
    ///
    /// # Errors
    /// [`RunError::Fault`]
    pub fn advance(&mut self, events: u64) -> Result<Progress, RunError> {
        for _ in 0..events {
            if self.stop_reason.is_some() || !self.told.is_empty() {
                break;
            }
            self.step()?;
        }
        Ok(self.progress())
    }

    /// Goes on to the end.
    ///
    /// # Errors
    /// [`RunError::Fault`]
    pub fn finish(&mut self) -> Result<(), RunError> {
        while !self.advance(u64::MAX)?.done {
            if !self.told.is_empty() {
                return Err(RunError::Fault {
                    at: self.fabric.now(),
                    message: "a device or driver is driven from outside, and nobody does".into(),
                });
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), RunError> {
        let next = self.fabric.next_event();
        if self.baseline.is_none() && next.is_none_or(|next| next >= self.fabric.warmup()) {
            let warmup = self.fabric.warmup();
            if next.is_some() {
                // No event lies before the warm-up's end; only the clock moves.
                self.fabric.run_until(Time::from_fs(warmup.as_fs().saturating_sub(1)));
            }
            self.baseline = Some(document::Baseline::take(&mut self.fabric));
        }
        if let Some(reason) = self.reason_to_stop(next) {
            self.stop_reason = Some(reason);
            return Ok(());
        }
        self.fabric.step();
        if let Some(message) = self.fabric.fault() {
            let message = message.to_owned();
            return Err(RunError::Fault { at: self.fabric.now(), message });
        }
        if self.outside {
            self.listen();
        }
        Ok(())
    }

    fn listen(&mut self) {
        self.told.devices.append(&mut self.fabric.take_device_events());
        self.told.programs.append(&mut self.fabric.take_host_events());
    }

    fn reason_to_stop(&mut self, next: Option<Time>) -> Option<String> {
        let stop = self.experiment.stop;
        let ended = self.fabric.transactions_ended();
        if let Some(time) = stop.time
            && next.is_none_or(|next| next > time)
        {
            self.fabric.run_until(time);
            return Some("the stop time".into());
        }
        if stop.transactions.is_some_and(|n| ended >= n) {
            return Some(format!("{ended} transactions have ended"));
        }
        if stop.time.is_none() && self.fabric.is_done() {
            return Some("all loads are done".into());
        }
        let Some(next) = next else { return Some("nothing more will happen".into()) };
        if ended != self.last_end.0 {
            self.last_end = (ended, self.fabric.now());
        }
        let stuck = stop.time.is_none() && next.saturating_since(self.last_end.1) > self.patience();
        stuck.then(|| format!("nothing has ended since {}", self.last_end.1))
    }

    /// Longer than any request can wait for its completion.
    fn patience(&self) -> Duration {
        let fabric = &self.experiment.fabric;
        let timeouts = fabric.devices.iter().map(|d| d.completion_timeout);
        let longest = timeouts.chain([fabric.host.completion_timeout]).max().unwrap_or(PATIENCE);
        let starts = self.experiment.loads.iter().map(|l| l.start.saturating_since(Time::ZERO)).max();
        let start = starts.unwrap_or(Duration::ZERO);
        Duration::from_fs(longest.max(PATIENCE).max(start).as_fs().saturating_mul(2))
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        let (now, transactions) = (self.fabric.now(), self.fabric.transactions_ended());
        let stop = self.experiment.stop;
        let by_time = stop.time.map(|t| now.as_fs() as f64 / t.as_fs().max(1) as f64);
        let by_count = stop.transactions.map(|n| transactions as f64 / n.max(1) as f64);
        let counts: Option<u64> = self.experiment.loads.iter().map(|l| l.count).sum();
        let by_loads = counts.filter(|n| *n > 0).map(|n| transactions as f64 / n as f64);
        let fraction = match (by_time, by_count) {
            (None, None) => by_loads,
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        Progress {
            now,
            events: self.fabric.events(),
            transactions,
            fraction: fraction.map(|f| f.min(1.0)),
            done: self.stop_reason.is_some(),
            waits_for_outside: !self.told.is_empty(),
        }
    }

    /// What those outside have been told since the last call. They act with [`Fabric::inject`] and [`Fabric::inject_host`].
    pub fn told(&mut self) -> Told {
        std::mem::take(&mut self.told)
    }

    /// The device that each host program drives; empty for programs that are built in.
    pub fn drivers(&self) -> &[String] {
        &self.drivers
    }

    /// The fabric.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Ends the run here, for this reason.
    pub fn stop(&mut self, reason: &str) {
        self.stop_reason.get_or_insert_with(|| reason.into());
    }

    /// What the run says, at its end or so far.
    pub fn document(&mut self) -> Document {
        let reason = self.stop_reason.clone().unwrap_or_else(|| "still running".into());
        let baseline = self.baseline.clone().unwrap_or_else(|| document::Baseline::zero(&self.fabric));
        document::document(&mut self.fabric, &self.experiment, &baseline, self.ladder.as_ref(), reason)
    }
}

/// Runs an experiment to its end.
///
/// # Errors
/// [`RunError`]
pub fn run(experiment: Experiment, inputs: Inputs) -> Result<Document, RunError> {
    let mut run = Run::new(experiment, inputs)?;
    run.finish()?;
    Ok(run.document())
}

fn flow(name: &str, owner: &str, operation: &str, target: &str) -> FlowInfo {
    FlowInfo { name: name.into(), owner: owner.into(), operation: operation.into(), target: target.into() }
}

/// The flows of a load, one for each of its streams.
fn flows_of(load: &LoadSpec) -> Vec<FlowInfo> {
    let one = |operation: &str| vec![flow(&load.name, &load.device, operation, &load.target)];
    let part =
        |operation: &str| flow(&format!("{}.{operation}", load.name), &load.device, operation, &load.target);
    match &load.work {
        Work::Replay { .. } => one("replay"),
        Work::Generate(generate) => match generate.op {
            Op::Read => one("read"),
            Op::Write => one("write"),
            Op::Both => vec![part("read"), part("write")],
            Op::MmioRead => one("mmio-read"),
            Op::MmioWrite => one("mmio-write"),
        },
    }
}

fn is_finite(load: &LoadSpec) -> bool {
    load.count.is_some() || matches!(load.work, Work::Replay { .. })
}

fn add_devices(builder: &mut Builder, experiment: &Experiment, inputs: &Inputs) -> Result<(), RunError> {
    for spec in &experiment.devices {
        let name = &spec.name;
        match &spec.model {
            ModelSpec::Dma { bar } => add_issuer(builder, experiment, inputs, name, *bar)?,
            ModelSpec::Memory { bar } => {
                builder.device(name, Box::new(Memory::new(*bar)), Vec::new(), false);
            }
            ModelSpec::Copier { .. } => {
                let flows = vec![flow(name, name, "copy", "host")];
                builder.device(name, Box::new(Dma::new()), flows, false);
            }
            ModelSpec::Ring(ring) => {
                let config = RingConfig { batch: ring.batch, depth: ring.depth };
                let part = |what: &str, op: &str| flow(&format!("{name}.{what}"), name, op, "host");
                let flows = vec![part("fetch", "read"), part("transmit", "read"), part("receive", "write")];
                builder.device(name, Box::new(Ring::new(config)), flows, false);
            }
            ModelSpec::Python { .. } => {
                let identity =
                    inputs.outside.get(name).ok_or_else(|| RunError::NoDevice(name.clone()))?.clone();
                builder.outside_device(
                    name,
                    Box::new(Outside(identity)),
                    vec![flow(name, name, "dma", "host")],
                );
            }
        }
    }
    Ok(())
}

/// Stands for a device that is driven from outside: it only says what it is.
struct Outside(Identity);

impl Device for Outside {
    fn identity(&self) -> Identity {
        self.0.clone()
    }
    fn handle(&mut self, _: &mut Context<'_>, _: Event) {}
}

fn add_issuer(
    builder: &mut Builder,
    experiment: &Experiment,
    inputs: &Inputs,
    name: &str,
    bar: u64,
) -> Result<(), RunError> {
    let (mut parts, mut flows) = (Vec::new(), Vec::new());
    for load in experiment.loads.iter().filter(|l| l.device == *name) {
        let own_flows = flows_of(load);
        let device: Box<dyn Device> = match &load.work {
            Work::Generate(generate) => Box::new(generator(load, generate, experiment.fabric.seed)?),
            Work::Replay { file, timing, outstanding, fold } => {
                let tags = experiment.fabric.devices.iter().find(|d| d.name == *name).map_or(1, |d| d.tags);
                let outstanding = outstanding.unwrap_or(tags.into());
                Box::new(replay(load, inputs, file, *timing, outstanding, *fold)?)
            }
        };
        let peers = if load.target == "host" { Vec::new() } else { vec![load.target.clone()] };
        parts.push(Part { device, streams: own_flows.len() as u16, finishes: is_finite(load), peers });
        flows.extend(own_flows);
    }
    let finishes = parts.iter().any(|p| p.finishes);
    builder.device(name, Box::new(Issuer::new(bar, parts)), flows, finishes);
    Ok(())
}

fn generator(load: &LoadSpec, generate: &Generate, seed: u64) -> Result<Load, RunError> {
    let config = LoadConfig {
        op: match generate.op {
            Op::Read | Op::MmioRead => LoadOp::Read,
            Op::Write | Op::MmioWrite => LoadOp::Write,
            Op::Both => LoadOp::Both,
        },
        size: generate.size,
        target: match load.target.as_str() {
            "host" => Target::Address(generate.base),
            device => Target::Bar { device: device.into(), bar: 0 },
        },
        window: generate.window,
        stride: Some(generate.size.next_multiple_of(generate.align)),
        offset: generate.offset + if load.target == "host" { 0 } else { generate.base },
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
    Load::new(config, seed, &load.name).map_err(|error| RunError::Load { load: load.name.clone(), error })
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

/// Loads of the host: one program each. Returns how many.
fn add_host_loads(builder: &mut Builder, experiment: &Experiment) -> Result<usize, RunError> {
    let mut programs = 0;
    for load in experiment.loads.iter().filter(|l| l.device == "host") {
        let Work::Generate(generate) = &load.work else { continue };
        let program = generator(load, generate, experiment.fabric.seed)?;
        builder.program(Box::new(program), flows_of(load), is_finite(load));
        programs += 1;
    }
    Ok(programs)
}

/// Drivers of the devices that come with one. Returns how many.
fn add_builtin_drivers(builder: &mut Builder, experiment: &Experiment) -> usize {
    let mut programs = 0;
    for spec in &experiment.devices {
        let name = &spec.name;
        let flows = vec![flow(&format!("{name}.driver"), "host", "mmio", name)];
        match &spec.model {
            ModelSpec::Copier { transfer, requests } => {
                builder.program(Box::new(DmaDriver::new(name, *transfer, *requests)), flows, true);
            }
            ModelSpec::Ring(ring) => {
                builder.program(Box::new(RingDriver::new(name, ring_load(ring))), flows, true);
            }
            _ => continue,
        }
        programs += 1;
    }
    programs
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
