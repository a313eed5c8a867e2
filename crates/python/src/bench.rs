//! Benchmarks: cases and targets come in as JSON, what was measured goes out as JSON.

use crate::{error, files};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tlplab_bench::{
    Case, Clock, ClosedForm, Machine, MeasureError, Recorder, Setup, Simulator, Target, csv, device, json,
    preparation,
};
use tlplab_device::bench_engine::Operations;
use tlplab_units::{Mps, Mrrs, Time};

/// A target that runs cases, from several threads if need be.
#[pyclass(frozen)]
pub(crate) struct Bench {
    target: Box<dyn Target + Send + Sync>,
    host_has_cache: bool,
    stopped: AtomicBool,
    /// Sum of the fractions of all cases so far, in millionths.
    done: AtomicU64,
}

#[pymethods]
impl Bench {
    /// `target` is "simulator" or "model".
    #[new]
    #[pyo3(signature = (target, host, device, link, host_keys = Vec::new(), mps = None, mrrs = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        target: &str,
        host: String,
        device: String,
        link: String,
        host_keys: Vec<(String, String)>,
        mps: Option<u32>,
        mrrs: Option<u32>,
    ) -> PyResult<Self> {
        let impossible =
            |key: &str| PyValueError::new_err(format!("{key} must be a power of two from 128 to 4096 bytes"));
        let mps = mps.map(|bytes| Mps::new(bytes).ok_or_else(|| impossible("mps"))).transpose()?;
        let mrrs = mrrs.map(|bytes| Mrrs::new(bytes).ok_or_else(|| impossible("mrrs"))).transpose()?;
        let setup = Setup { host, host_keys, device, link, mps, mrrs };
        let machine = Machine::new(&setup, &files::read_text).map_err(|e| refuse(py, e))?;
        let host_has_cache = machine.fabric.host.cache.is_some();
        let target: Box<dyn Target + Send + Sync> = match target {
            "simulator" => Box::new(Simulator::new(machine)),
            "model" => Box::new(ClosedForm::new(machine)),
            _ => return Err(PyValueError::new_err(format!("unknown target {target:?}"))),
        };
        Ok(Self { target, host_has_cache, stopped: AtomicBool::new(false), done: AtomicU64::new(0) })
    }

    /// Runs a case; what was measured until then if it was stopped.
    fn run(&self, py: Python<'_>, case: &str) -> PyResult<String> {
        let case = read(case)?;
        let mut last = 0;
        let mut watch = |fraction: f64| {
            let now = (fraction * 1e6) as u64;
            self.done.fetch_add(now.saturating_sub(last), Ordering::Relaxed);
            last = last.max(now);
            !self.stopped.load(Ordering::Relaxed)
        };
        let measured = py.detach(|| self.target.run(&case, &mut watch)).map_err(|e| refuse(py, e))?;
        if measured.complete {
            watch(1.0);
        }
        Ok(json::document(&measured).to_string())
    }

    /// True if what a cache holds makes a difference.
    fn host_has_cache(&self) -> bool {
        self.host_has_cache
    }

    /// Ends all runs soon.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The number of cases done, with the parts of those under way.
    fn done(&self) -> f64 {
        self.done.load(Ordering::Relaxed) as f64 / 1e6
    }
}

/// The measurement of a case by a device in Python.
#[pyclass(frozen)]
pub(crate) struct BenchRecorder {
    recorder: Mutex<Recorder>,
    operations: Mutex<Operations>,
    warmup: u64,
}

#[pymethods]
impl BenchRecorder {
    /// Timestamps count `cycles_per_tick` cycles, of which a second has `hz`.
    #[new]
    fn new(case: &str, hz: u64, cycles_per_tick: u32) -> PyResult<Self> {
        let case = read(case)?;
        let recorder = Recorder::new(&case, Clock { hz, cycles_per_tick });
        let job = preparation::job(&case);
        let operations = Mutex::new(job.operations());
        Ok(Self { recorder: Mutex::new(recorder), operations, warmup: job.warmup })
    }

    /// The next operation: whether it is a write, and its address; None after the last.
    fn next_operation(&self) -> Option<(bool, u64)> {
        let next = self.operations.lock().unwrap_or_else(PoisonError::into_inner).next();
        next.map(|operation| (operation.write, operation.address))
    }

    /// Operations before those that are measured.
    fn warmup(&self) -> u64 {
        self.warmup
    }

    fn latency(&self, begun_fs: u64, ended_fs: u64) {
        self.look().latency(Time::from_fs(begun_fs), Time::from_fs(ended_fs));
    }

    fn transfer(&self, at_fs: u64) {
        self.look().transfer(Time::from_fs(at_fs));
    }

    fn fraction(&self) -> f64 {
        self.look().fraction()
    }

    /// From the beginning of the first measured operation to the end of the last.
    fn elapsed_ns(&self) -> f64 {
        self.look().measured(true).elapsed.as_fs() as f64 * 1e-6
    }

    /// The measurement, as studies keep it, on a link of this many lanes.
    fn record(&self, lanes: u8) -> Vec<u8> {
        tlplab_study::bench::record(&self.look().measured(true), lanes).write()
    }

    /// The measurement, as JSON.
    fn document(&self, complete: bool) -> String {
        json::document(&self.look().measured(complete)).to_string()
    }
}

impl BenchRecorder {
    fn look(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a case that cannot be.
#[pyfunction]
pub(crate) fn check_case(py: Python<'_>, case: &str) -> PyResult<()> {
    read(case)?.check().map_err(|error| refuse(py, error.into()))
}

/// The device profiles: name and TOML text.
#[pyfunction]
pub(crate) fn bench_devices() -> Vec<(&'static str, &'static str)> {
    device::PROFILES.to_vec()
}

/// The header of latency, bandwidth and distribution files.
#[pyfunction]
pub(crate) fn bench_columns() -> (&'static str, &'static str, &'static str) {
    (csv::LATENCY, csv::BANDWIDTH, csv::CDF)
}

pub(crate) fn read(case: &str) -> PyResult<Case> {
    serde_json::from_str(case).map_err(|error| PyValueError::new_err(format!("a case: {error}")))
}

pub(crate) fn refuse(py: Python<'_>, failure: MeasureError) -> PyErr {
    match failure {
        MeasureError::Setup(mistake) => error::experiment(py, &[mistake]),
        MeasureError::Build(_) | MeasureError::Failed(_) => error::run_error(py, &failure.to_string()),
        _ => PyValueError::new_err(failure.to_string()),
    }
}
