//! The simulator as a target: a host profile, a link and a benchmark device.

use crate::case::{Cache, Case, LINE, Node, Pattern};
use crate::device::DeviceProfile;
use crate::machine::{DEVICE, Machine};
use crate::statistics::{Distribution, Series};
use crate::target::{MeasureError, Measured, Target};
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_device::BenchEngine;
use tlplab_device::bench_engine::{Job, Sink};
use tlplab_fabric::config::FabricConfig;
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::Time;

/// The simulator. Each case has a fabric of its own, so that cases know nothing of each other.
#[derive(Clone, Debug)]
pub struct Simulator {
    machine: Machine,
}

/// Where the buffer begins: above 4 GiB, so that headers have 64-bit addresses.
const BASE: u64 = 1 << 33;
/// Events between two looks at the watch: some milliseconds.
const SLICE: u64 = 20_000;

impl Simulator {
    /// Simulates this machine.
    pub fn new(machine: Machine) -> Self {
        Self { machine }
    }

    fn build(&self, case: &Case, log: &Arc<Mutex<Log>>) -> Result<Fabric, MeasureError> {
        let (count, warmup) = case.counts();
        let job = Job {
            measure: case.test.into(),
            interface: case.interface.into(),
            base: BASE,
            units: case.units(),
            stride: case.unit(),
            offset: case.host_offset,
            device_offset: case.device_offset,
            size: case.size,
            random: case.pattern == Pattern::Random,
            warmup,
            count,
            seed: case.seed,
        };
        let engine = BenchEngine::new(self.machine.device.engine.clone(), job, Box::new(Shared(log.clone())));
        let mut builder = Builder::new(FabricConfig { seed: case.seed, ..self.machine.fabric.clone() });
        builder.device(DEVICE, Box::new(engine), Vec::new(), true);
        builder.build().map_err(|error| MeasureError::Build(error.to_string()))
    }
}

impl Target for Simulator {
    fn run(&self, case: &Case, watch: &mut dyn FnMut(f64) -> bool) -> Result<Measured, MeasureError> {
        self.machine.check(case)?;
        let log = Arc::new(Mutex::new(Log::new(case)));
        let mut fabric = self.build(case, &log)?;
        prepare(&mut fabric, case)?;
        let mut complete = true;
        while fabric.run_events(SLICE, Time::NEVER) {
            let fraction = look(&log).fraction();
            if !watch(fraction) {
                complete = false;
                break;
            }
        }
        if let Some(message) = fabric.fault() {
            return Err(MeasureError::Failed(message.into()));
        }
        if complete && !fabric.is_done() {
            return Err(MeasureError::Failed("an operation was never answered".into()));
        }
        let log = std::mem::take(&mut *look(&log));
        Ok(log.measured(case, complete, &self.machine.device))
    }
}

/// The host's caches and memory before the measurement; takes no simulated time.
fn prepare(_fabric: &mut Fabric, case: &Case) -> Result<(), MeasureError> {
    let _ = (LINE, Cache::Cold);
    if case.node == Node::Remote {
        return Err(MeasureError::Unsupported("this host has one node".into()));
    }
    Ok(())
}

/// What the device tells while it runs.
#[derive(Debug, Default)]
struct Log {
    size: u64,
    warmup: u64,
    /// Operations in all, and those that have ended.
    total: u64,
    ended: u64,
    /// Measured operations: when the first began and the last ended.
    first: Option<Time>,
    last: Time,
    latency: Distribution,
    series: Series,
}

/// A log that the device and the target share.
struct Shared(Arc<Mutex<Log>>);

fn look(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Shared {
    fn latency(&mut self, begun: Time, ended: Time, ticks: u64) {
        look(&self.0).latency(begun, ended, ticks);
    }
    fn transfer(&mut self, at: Time, _write: bool) {
        look(&self.0).transfer(at);
    }
}

impl Log {
    fn new(case: &Case) -> Self {
        let (count, warmup) = case.counts();
        let each = if case.test == crate::Test::BwRdwr { 2 } else { 1 };
        Self { size: case.size, warmup: each * warmup, total: each * (warmup + count), ..Self::default() }
    }

    fn fraction(&self) -> f64 {
        self.ended as f64 / self.total.max(1) as f64
    }

    fn latency(&mut self, begun: Time, ended: Time, ticks: u64) {
        self.ended += 1;
        self.first.get_or_insert(begun);
        self.last = ended;
        self.latency.record(ticks);
        self.series.record(begun.as_fs(), ended.as_fs(), ticks);
    }

    /// The measurement begins when the last transfer of the warm-up ends.
    fn transfer(&mut self, at: Time) {
        self.ended += 1;
        if self.ended > self.warmup {
            self.series.record(self.last.as_fs(), at.as_fs(), self.size);
        } else {
            self.first = Some(at);
        }
        self.last = at;
    }

    fn measured(self, case: &Case, complete: bool, device: &DeviceProfile) -> Measured {
        let each = if case.test == crate::Test::BwRdwr { 2 } else { 1 };
        let operations = match case.test.is_latency() {
            true => self.latency.samples(),
            false => self.ended.saturating_sub(self.warmup) / each,
        };
        Measured {
            case: case.clone(),
            complete,
            clock: device.engine.clock,
            elapsed: self.last.saturating_since(self.first.unwrap_or(self.last)),
            operations,
            latency: self.latency,
            series: self.series,
        }
    }
}
