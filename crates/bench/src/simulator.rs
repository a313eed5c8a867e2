//! The simulator as a target: a host profile, a link and a benchmark device.

use crate::case::Case;
use crate::machine::{DEVICE, Machine};
use crate::preparation::{job, prepare};
use crate::recorder::Recorder;
use crate::target::{MeasureError, Measured, Target};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_device::BenchEngine;
use tlplab_device::bench_engine::Sink;
use tlplab_fabric::config::FabricConfig;
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::Time;

/// The simulator. Each case has a fabric of its own, so that cases know nothing of each other.
#[derive(Clone, Debug)]
pub struct Simulator {
    machine: Machine,
}

/// Events between two looks at the watch: some milliseconds.
const SLICE: u64 = 20_000;

impl Simulator {
    /// Simulates this machine.
    pub fn new(machine: Machine) -> Self {
        Self { machine }
    }

    fn build(&self, case: &Case, recorder: &Arc<Mutex<Recorder>>) -> Result<Fabric, MeasureError> {
        let job = job(case);
        let engine =
            BenchEngine::new(&self.machine.engine_for(case), job, Box::new(Shared(recorder.clone())));
        let mut builder = Builder::new(FabricConfig { seed: case.seed, ..self.machine.fabric.clone() });
        builder.device(DEVICE, Box::new(engine)).finishes();
        builder.build().map_err(|error| MeasureError::Build(error.to_string()))
    }
}

impl Target for Simulator {
    fn run(&self, case: &Case, watch: &mut dyn FnMut(f64) -> bool) -> Result<Measured, MeasureError> {
        self.machine.check(case)?;
        let recorder = Arc::new(Mutex::new(Recorder::new(case, self.machine.device.clock)));
        let mut fabric = self.build(case, &recorder)?;
        prepare(&mut fabric, &self.machine.fabric.host, case)?;
        let mut complete = true;
        while fabric.run_events(SLICE, Time::NEVER) {
            let fraction = look(&recorder).fraction();
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
        Ok(look(&recorder).measured(complete))
    }
}

/// A recorder that the device and the target share.
struct Shared(Arc<Mutex<Recorder>>);

fn look(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Shared {
    fn latency(&mut self, begun: Time, ended: Time) {
        look(&self.0).latency(begun, ended);
    }
    fn transfer(&mut self, at: Time) {
        look(&self.0).transfer(at);
    }
}
