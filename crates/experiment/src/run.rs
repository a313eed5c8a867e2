//! From an experiment to a fabric that runs, and to the end of the run.

use crate::assemble::{add_builtin_drivers, add_devices, add_host_loads, flow, is_finite, prepare_memory};
use crate::detail::Detail;
use crate::document;
use crate::experiment::Experiment;
use crate::ladder::{self, Ladder, Tee};
use crate::lspci;
use crate::outside::OutsideDevice;
use crate::result::{self, Document, Operation, Waiting};
use crate::stop::StopReason;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use tlplab_device::nic::OpenEnd;
use tlplab_device::{
    Action, Device, Frames, HostAction, HostMemory, Identity, LoadError, Medium, OpId, Record, ReplayError,
    TlpDevice,
};
use tlplab_fabric::{BuildError, Builder, Driven, Fabric, NoSnapshot, NodeId, Probe, Told};
use tlplab_units::{Duration, Time};

/// The inputs of a run besides its experiment.
#[derive(Default)]
pub struct Inputs {
    /// The requests of each trace that the experiment names, by its path in [`Experiment::files`].
    pub traces: BTreeMap<String, Vec<Record>>,
    /// The identities of devices from files, by the device's name. They are driven from outside; see [`Run::fabric`].
    pub outside: BTreeMap<String, OutsideDevice>,
    /// The devices from libraries, by their names.
    pub devices: BTreeMap<String, Box<dyn Device>>,
    /// The devices made of RTL, by their names.
    pub cores: BTreeMap<String, Box<dyn TlpDevice>>,
    /// The owner of the frames of the driver of a `simple-nic`, by the device's name, instead of a load.
    pub frames: BTreeMap<String, Frames>,
    /// The ends of cables that lead to other simulations, by the name of the `nic` that each is plugged in.
    pub open_ends: BTreeMap<String, OpenEnd>,
    /// The medium with the data of an `nvme`, by the device's name; one whose experiment names a file needs it, others may be given one. It has
    /// to have room for [`NvmeSpec::config`](crate::nvme::NvmeSpec)'s namespace.
    pub media: BTreeMap<String, Box<dyn Medium>>,
    /// Devices that somebody outside drives in place of the model that the experiment names.
    pub served: BTreeSet<String>,
    /// The memory of the guest that is the host's software.
    pub memory: Option<Box<dyn HostMemory + Send>>,
    /// Another observer: a capture, a trace.
    pub probe: Option<Box<dyn Probe>>,
    /// Keep no window of packets, no configuration spaces over time and no number of transactions under way: faster.
    pub no_ladder: bool,
    /// The detail in which its document describes the run.
    pub detail: Detail,
}

/// The reason that a run cannot begin or go on.
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
        /// The mistake.
        error: ReplayError,
    },
    /// A load cannot be.
    #[error("load {load}: {error}")]
    Load {
        /// The load.
        load: String,
        /// The mistake.
        error: LoadError,
    },
    /// A device from a file was not brought.
    #[error("device {0}: it has no model; the file that model names was not loaded")]
    NoDevice(String),
    /// The data of a device were not brought.
    #[error(
        "device {device}: the medium \"{file}\" is not open; the program that runs the experiment must open it"
    )]
    NoMedium {
        /// The device.
        device: String,
        /// The file.
        file: String,
    },
    /// The fabric cannot be.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A device or program gave up.
    #[error("at {at}: {message}")]
    Fault {
        /// The time.
        at: Time,
        /// The message.
        message: String,
    },
}

/// A run under way.
pub struct Run {
    experiment: Experiment,
    fabric: Fabric,
    ladder: Option<ladder::Shared>,
    detail: Detail,
    /// Counters at the end of the warm-up, from which the document counts.
    baseline: Option<document::Baseline>,
    stop_reason: StopReason,
    /// Programs outside that still wait, as somebody outside has told.
    waiting: Vec<Waiting>,
    guest: Option<result::Guest>,
    /// Someone outside drives a device or a program.
    outside: bool,
    drivers: Vec<String>,
    told: Told,
    last_end: (u64, Time),
    /// The identities of the served devices.
    served: BTreeMap<String, Identity>,
}

/// The progress of a run.
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
    /// Someone outside has to act before it can go on; see [`Driven`].
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
        add_devices(&mut builder, &experiment, &mut inputs)?;
        let served = inputs.served.iter();
        let served: BTreeMap<_, _> =
            served.filter_map(|name| Some((name.clone(), builder.drive_from_outside(name)?))).collect();
        if let Some(memory) = inputs.memory.take() {
            builder.memory(memory);
        }
        let (drivers, programs) = add_programs(&mut builder, &experiment, &inputs)?;
        let ladder = (!inputs.no_ladder).then(|| ladder::Shared::new(Ladder::window(&experiment)));
        if let Some(probe) = observers(ladder.as_ref(), inputs.probe.take()) {
            builder.probe(probe);
        }
        if ladder.is_some() {
            builder.keep_history();
        }
        let mut fabric = builder.build()?;
        prepare_memory(&mut fabric, &experiment);
        let outside = !inputs.outside.is_empty() || !served.is_empty() || drivers.len() > programs;
        Ok(Self {
            experiment,
            fabric,
            ladder,
            detail: inputs.detail,
            baseline: None,
            stop_reason: StopReason::Running,
            waiting: Vec::new(),
            guest: None,
            outside,
            drivers,
            told: Told::default(),
            last_end: (0, Time::ZERO),
            served,
        })
    }

    /// A copy that goes on from here exactly as this run does. `probe` observes the copy from here on; the original's observes the
    /// original alone.
    ///
    /// # Errors
    /// [`NoSnapshot`]: whose state is not all in the run.
    pub fn snapshot(&self, probe: Option<Box<dyn Probe>>) -> Result<Self, NoSnapshot> {
        let ladder = self.ladder.as_ref().map(ladder::Shared::snapshot);
        Ok(Self {
            fabric: self.fabric.snapshot(observers(ladder.as_ref(), probe))?,
            ladder,
            experiment: self.experiment.clone(),
            detail: self.detail,
            baseline: self.baseline.clone(),
            stop_reason: self.stop_reason,
            waiting: self.waiting.clone(),
            guest: self.guest.clone(),
            outside: self.outside,
            drivers: self.drivers.clone(),
            told: self.told.clone(),
            last_end: self.last_end,
            served: self.served.clone(),
        })
    }

    /// Goes on for at most `events` events. Returns early when the run is over or someone outside has to act.
    ///
    /// # Errors
    /// [`RunError::Fault`]
    pub fn advance(&mut self, events: u64) -> Result<Progress, RunError> {
        for _ in 0..events {
            if self.outside {
                self.listen();
            }
            if self.is_over() || !self.told.is_empty() {
                break;
            }
            self.step()?;
        }
        Ok(self.progress())
    }

    /// Goes on to `until`, as somebody else's clock tells, but for at most `events` events. Returns early when someone outside has to
    /// act. That nothing happens any more, or nothing ends, does not end such a run: someone may yet come.
    ///
    /// # Errors
    /// [`RunError::Fault`]
    pub fn advance_to(&mut self, until: Time, events: u64) -> Result<Progress, RunError> {
        for _ in 0..events {
            self.listen();
            if self.is_over() || !self.told.is_empty() {
                break;
            }
            self.check_fault()?;
            let next = self.fabric.next_event_until(until);
            let due = next.is_some_and(|next| next <= until);
            if due || until >= self.fabric.warmup() {
                self.begin_counting(next);
            }
            self.stop_reason = self.reason_to_end(Some(next.map_or(until, |next| next.min(until))));
            if self.is_over() {
                break;
            }
            if !due {
                self.fabric.run_until(until);
                break;
            }
            self.fabric.step();
        }
        self.check_fault()?;
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
                    message: "a device or driver is driven from outside, but no program drives it".into(),
                });
            }
        }
        Ok(())
    }

    /// Goes on until statistics count, or to the end.
    pub(crate) fn advance_past_warmup(&mut self) -> Result<(), RunError> {
        while !self.is_over() && self.fabric.now() < self.fabric.warmup() {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), RunError> {
        self.check_fault()?; // of what was done from outside since the last step
        let next = self.fabric.next_event_until(self.experiment.stop.time.unwrap_or(Time::NEVER));
        self.begin_counting(next);
        self.stop_reason = self.reason_to_stop(next);
        if self.is_over() {
            return Ok(());
        }
        self.fabric.step();
        self.check_fault()
    }

    /// Takes the counters at the end of the warm-up, from which the document counts.
    fn begin_counting(&mut self, next: Option<Time>) {
        if self.baseline.is_none() && next.is_none_or(|next| next >= self.fabric.warmup()) {
            let warmup = self.fabric.warmup();
            if next.is_some() {
                // No event lies before the warm-up's end; only the clock moves.
                self.fabric.run_until(Time::from_fs(warmup.as_fs().saturating_sub(1)));
            }
            self.baseline = Some(document::Baseline::take(&mut self.fabric));
        }
    }

    fn check_fault(&mut self) -> Result<(), RunError> {
        let Some(message) = self.fabric.fault().map(str::to_owned) else { return Ok(()) };
        let at = self.fabric.now();
        // What was not found may be the reason.
        let problems = lspci::problems(&mut self.fabric).into_iter().map(|problem| problem.message);
        Err(RunError::Fault { at, message: once(message).chain(problems).collect::<Vec<_>>().join("; ") })
    }

    fn listen(&mut self) {
        let Told { mut devices, mut programs } = self.fabric.take_told();
        self.told.devices.append(&mut devices);
        self.told.programs.append(&mut programs);
    }

    /// The reason that the run has done its task before an event at `next`, or that it goes on.
    fn reason_to_end(&mut self, next: Option<Time>) -> StopReason {
        let stop = self.experiment.stop;
        let ended = self.fabric.transactions_ended();
        if let Some(time) = stop.time
            && next.is_none_or(|next| next > time)
        {
            self.fabric.run_until(time);
            return StopReason::StopTime;
        }
        if stop.transactions.is_some_and(|n| ended >= n) {
            return StopReason::Transactions(ended);
        }
        // Loads without a count have more to do, even where none of it is under way.
        let endless = || stop.transactions.is_some() && !self.experiment.loads.iter().all(is_finite);
        if stop.time.is_none() && self.fabric.is_done() && !endless() {
            return StopReason::LoadsDone;
        }
        StopReason::Running
    }

    fn reason_to_stop(&mut self, next: Option<Time>) -> StopReason {
        let reason = self.reason_to_end(next);
        if reason != StopReason::Running {
            return reason;
        }
        let (stop, ended) = (self.experiment.stop, self.fabric.transactions_ended());
        let Some(next) = next else { return StopReason::NothingMore };
        if ended != self.last_end.0 {
            self.last_end = (ended, self.fabric.now());
        }
        let stuck = stop.time.is_none() && next.saturating_since(self.last_end.1) > self.patience();
        if stuck { StopReason::Stuck(self.last_end.1) } else { StopReason::Running }
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

    /// The progress of the run.
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
            done: self.is_over(),
            waits_for_outside: !self.told.is_empty(),
        }
    }

    /// The device that each host program drives; empty for a load of the host, and for the reader, which comes last.
    pub fn drivers(&self) -> &[String] {
        &self.drivers
    }

    /// The identity of a served device; see [`Inputs::served`].
    pub fn served(&self, device: &str) -> Option<&Identity> {
        self.served.get(device)
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
    pub fn stop(&mut self, reason: StopReason) {
        if !self.is_over() {
            self.stop_reason = reason;
        }
    }

    /// The reason that it has ended, if it has.
    pub fn stop_reason(&self) -> StopReason {
        self.stop_reason
    }

    fn is_over(&self) -> bool {
        self.stop_reason != StopReason::Running
    }

    /// The operations that the programs outside wait for, as their driver knows them. The document has them if the run made no progress: otherwise
    /// they may have been about to go on.
    pub fn still_waiting(&mut self, waiting: Vec<Waiting>) {
        self.waiting = waiting;
    }

    /// The end of the guest, as its runner knows it; for the document.
    pub fn guest_ended(&mut self, guest: result::Guest) {
        self.guest = Some(guest);
    }

    /// The result of the run, at its end or so far.
    pub fn document(&mut self) -> Document {
        let baseline = self.baseline.clone().unwrap_or_else(|| document::Baseline::zero(&self.fabric));
        let mut document = document::document(
            &mut self.fabric,
            &self.experiment,
            &baseline,
            self.ladder.as_ref(),
            self.stop_reason,
            self.detail,
        );
        document.guest = self.guest.clone();
        if self.stop_reason.is_deadlock() {
            document.waiting = self.waiting.clone();
        }
        document
    }
}

/// The ladder and another observer, as one.
fn observers(ladder: Option<&ladder::Shared>, probe: Option<Box<dyn Probe>>) -> Option<Box<dyn Probe>> {
    match ladder {
        Some(ladder) => Some(Box::new(Tee { ladder: ladder.clone(), probe })),
        None => probe,
    }
}

/// Adds the programs of the host. The device that each drives, as [`Run::drivers`] tells, and how many are not outside.
fn add_programs(
    builder: &mut Builder,
    experiment: &Experiment,
    inputs: &Inputs,
) -> Result<(Vec<String>, usize), RunError> {
    if experiment.guest_runs {
        let parts = [
            ("guest.config", Operation::Config),
            ("guest.read", Operation::MmioRead),
            ("guest.write", Operation::MmioWrite),
        ];
        builder.outside_program().flows(parts.map(|(name, operation)| flow(name, "host", operation, "")));
        return Ok((vec![String::new()], 0));
    }
    let mut drivers = vec![String::new(); add_host_loads(builder, experiment)?];
    drivers.extend(add_builtin_drivers(builder, experiment, inputs));
    let programs = drivers.len();
    let driven = |name: &str| experiment.driven.as_deref() == Some(name);
    for device in experiment.devices.iter().filter(|d| d.driver.is_some() || driven(&d.name)) {
        let name = format!("{}.driver", device.name);
        builder.outside_program().flows([flow(&name, "host", Operation::Mmio, &device.name)]);
        drivers.push(device.name.clone());
    }
    if experiment.reader {
        builder.outside_program().flows([flow("reader", "host", Operation::MmioRead, "")]);
        drivers.push(String::new());
    }
    Ok((drivers, programs))
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

impl Driven for Run {
    type Failure = RunError;

    fn now(&self) -> Time {
        self.fabric.now()
    }

    fn next_event_until(&mut self, until: Time) -> Option<Time> {
        self.fabric.next_event_until(until)
    }

    fn advance_until(&mut self, until: Time) -> Result<(), RunError> {
        self.advance_to(until, u64::MAX).map(drop)
    }

    fn take_told(&mut self) -> Told {
        self.listen();
        std::mem::take(&mut self.told)
    }

    fn next_device_op(&mut self, device: NodeId) -> OpId {
        self.fabric.next_device_op(device)
    }

    fn device_acts(&mut self, device: NodeId, action: Action) {
        self.fabric.device_acts(device, action);
    }

    fn next_host_op(&mut self, program: usize) -> OpId {
        self.fabric.next_host_op(program)
    }

    fn host_acts(&mut self, program: usize, action: HostAction) {
        self.fabric.host_acts(program, action);
    }

    fn host_memory(&mut self) -> &mut (dyn HostMemory + Send) {
        self.fabric.host_memory()
    }
}
