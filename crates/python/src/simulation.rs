//! A run, as Python steps it.

use crate::device::PythonDevice;
use crate::driver::{Memory, PythonDriver};
use crate::{bench, error, files, identity, outline};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use tlplab_bench::{machine, preparation};
use tlplab_cosim::rtl;
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::outside::OutsideDevice;
use tlplab_experiment::run::{Inputs, Run, Told};
use tlplab_experiment::{Experiment, FileKind, Options, StopReason, lspci};
use tlplab_fabric::NodeId;
use tlplab_trace::{pcapng, perfetto, recorder, report};

/// How far a run is.
#[pyclass(frozen, get_all)]
pub(crate) struct Progress {
    now_fs: u64,
    events: u64,
    transactions: u64,
    fraction: Option<f64>,
    done: bool,
}

/// A fabric and its run.
#[pyclass(frozen)]
pub(crate) struct Simulation {
    state: Mutex<State>,
}

struct State {
    run: Run,
    recorder: Option<recorder::Recorder>,
    devices: Vec<(NodeId, PythonDevice)>,
    drivers: Vec<PythonDriver>,
}

/// The `DeviceParty` and `DriverParty` objects of a device, and what it says of itself.
#[derive(Default)]
pub(crate) struct Objects {
    device: Option<Py<PyAny>>,
    identity: Option<OutsideDevice>,
    driver: Option<Py<PyAny>>,
}

impl Objects {
    /// What the device says of itself, if it is in Python.
    pub(crate) fn identity(&self) -> Option<OutsideDevice> {
        self.identity.clone()
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (path, *, text = None, objects = None, overrides = Vec::new(), load = None, seed = None,
        trace = None, pcap = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        path: &str,
        text: Option<&str>,
        objects: Option<&Bound<'_, PyDict>>,
        overrides: Vec<String>,
        load: Option<String>,
        seed: Option<u64>,
        trace: Option<PathBuf>,
        pcap: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = Options { set: overrides, load, seed, ..Options::default() };
        let experiment = outline::parse(py, path, text, &options)?;
        let mut inputs = Inputs { traces: read_traces(py, &experiment)?, ..Inputs::default() };
        inputs.cores = rtl::load(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
        let parties = load_objects(py, &experiment, objects)?;
        let identities = parties.iter().filter_map(|(name, party)| Some((name.clone(), party.identity()?)));
        inputs.outside = identities.collect();
        let recorder = record(&experiment, trace, pcap)?;
        inputs.probe = recorder.as_ref().map(recorder::Recorder::probe);
        let mut run = py.detach(|| Run::new(experiment, inputs)).map_err(|e| error::build(py, path, &e))?;
        let (devices, drivers) = place(py, &mut run, parties);
        Ok(Self { state: Mutex::new(State { run, recorder, devices, drivers }) })
    }

    /// Goes on for at most `events` events.
    fn advance(&self, py: Python<'_>, events: u64) -> PyResult<Progress> {
        let mut guard = self.state()?;
        let state = &mut *guard;
        let begun = state.run.progress().events;
        loop {
            let left = events.saturating_sub(state.run.progress().events - begun);
            let progress = py.detach(|| state.run.advance(left)).map_err(|e| error::run(py, &e))?;
            if !progress.waits_for_outside {
                return Ok(Progress {
                    now_fs: progress.now.as_fs(),
                    events: progress.events,
                    transactions: progress.transactions,
                    fraction: progress.fraction,
                    done: progress.done,
                });
            }
            let told = state.run.told();
            state.tell(py, told)?;
        }
    }

    /// Brings the host into the state that a benchmark's case begins in.
    fn prepare(&self, py: Python<'_>, case: &str) -> PyResult<()> {
        let case = bench::read(case)?;
        let run = &mut self.state()?.run;
        let host = run.experiment().fabric.host.clone();
        machine::check_memory(&host, &case).map_err(|e| bench::refuse(py, e.into()))?;
        preparation::prepare(run.fabric(), &host, &case).map_err(|e| bench::refuse(py, e))
    }

    /// What software sees once it has enumerated: the document as JSON, and the dump for `lspci -F`.
    fn lspci(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let mut guard = self.state()?;
        let run = &mut guard.run;
        let (document, dump) = py.detach(|| lspci::lspci(run)).map_err(|e| error::run(py, &e))?;
        Ok((serde_json::to_string(&document).expect("a document has only names for keys"), dump))
    }

    /// Closes the files that were written meanwhile; the result document as JSON. `stopped_by` is `interrupted` or `time-limit`.
    #[pyo3(signature = (stopped_by = None))]
    fn finish(&self, py: Python<'_>, stopped_by: Option<&str>) -> PyResult<String> {
        let mut guard = self.state()?;
        let state = &mut *guard;
        if let Some(reason) = stopped_by {
            state.run.stop(reason_of(reason)?);
        }
        let waits = state.drivers.iter().map(|driver| driver.waits(py)).collect::<PyResult<Vec<_>>>()?;
        state.run.still_waiting(waits.concat());
        py.detach(|| state.finish()).map_err(|error| error::file(&error))
    }
}

/// Why somebody outside ends a run, by its token.
pub(crate) fn reason_of(token: &str) -> PyResult<StopReason> {
    StopReason::FROM_OUTSIDE.into_iter().find(|reason| reason.token() == token).ok_or_else(|| {
        let known = StopReason::FROM_OUTSIDE.map(StopReason::token).join(" or ");
        PyValueError::new_err(format!("a run cannot be ended by {token:?}; it may be {known}"))
    })
}

impl Simulation {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state
            .try_lock()
            .map_err(|_| PyRuntimeError::new_err("the simulation is running: its own devices cannot step it"))
    }
}

impl State {
    fn tell(&mut self, py: Python<'_>, told: Told) -> PyResult<()> {
        for (now, node, event) in told.devices {
            if let Some((_, device)) = self.devices.iter_mut().find(|(place, _)| *place == node) {
                device
                    .tell(py, &mut (self.run.fabric(), node), now, event)
                    .map_err(|e| error::party(py, e))?;
            }
        }
        for (now, program, event) in told.programs {
            if let Some(driver) = self.drivers.iter_mut().find(|driver| driver.program() == program) {
                driver.tell(py, self.run.fabric(), now, event).map_err(|e| error::party(py, e))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<String, tlplab_trace::Error> {
        let document = self.run.document();
        if let Some(recorder) = &self.recorder {
            let fabric = self.run.fabric();
            let levels = fabric.level_results();
            recorder.levels(&levels, fabric.bins().0);
            recorder.finish()?;
        }
        Ok(serde_json::to_string(&document).expect("a document has only names for keys"))
    }
}

pub(crate) fn read_traces(
    py: Python<'_>,
    experiment: &Experiment,
) -> PyResult<BTreeMap<String, Vec<tlplab_device::Record>>> {
    let mut traces = BTreeMap::new();
    for file in experiment.files.iter().filter(|file| file.kind == FileKind::Trace) {
        if !traces.contains_key(&file.path) {
            let records =
                files::read_trace(&file.path).map_err(|why| error::experiment(py, &[file.missing(&why)]))?;
            traces.insert(file.path.clone(), records);
        }
    }
    Ok(traces)
}

/// The Python objects of each device: those given, or those that its files hold.
pub(crate) fn load_objects(
    py: Python<'_>,
    experiment: &Experiment,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<BTreeMap<String, Objects>> {
    let loader = py.import("tlplab.loader")?;
    let refuse = |device: &str, key: &str, failure: PyErr| {
        let place = experiment.files.iter().find(|file| file.is_named_by(device, key));
        match place {
            Some(file) => error::experiment(py, &[file.missing(&failure.value(py).to_string())]),
            None => failure,
        }
    };
    let mut parties = BTreeMap::new();
    for spec in &experiment.devices {
        let mut objects = Objects::default();
        if let Some(pair) = given.map(|given| given.get_item(&spec.name)).transpose()?.flatten() {
            let pair = pair.cast::<PyTuple>()?;
            let device = loader.call_method1("carry", (pair.get_item(0)?,))?;
            objects.identity = Some(identity::of(&device)?);
            objects.device = Some(device.unbind());
            if spec.driver.is_some() {
                objects.driver = Some(loader.call_method1("drive", (pair.get_item(1)?, Memory))?.unbind());
            }
        } else {
            if let ModelSpec::Python { object, parameters } = &spec.model {
                let parameters = serde_json::json!(parameters).to_string();
                let loaded = loader.call_method1("load_device", (&object.file, &object.name, parameters));
                let device = loaded.map_err(|e| refuse(&spec.name, "model", e))?;
                objects.identity = Some(identity::of(&device).map_err(|e| refuse(&spec.name, "model", e))?);
                objects.device = Some(device.unbind());
            }
            if let Some(driver) = &spec.driver {
                let loaded = loader.call_method1("load_driver", (&driver.file, &driver.name, Memory));
                objects.driver = Some(loaded.map_err(|e| refuse(&spec.name, "driver", e))?.unbind());
            }
        }
        parties.insert(spec.name.clone(), objects);
    }
    Ok(parties)
}

fn record(
    experiment: &Experiment,
    trace: Option<PathBuf>,
    pcap: Option<PathBuf>,
) -> PyResult<Option<recorder::Recorder>> {
    if trace.is_none() && pcap.is_none() {
        return Ok(None);
    }
    let targets = recorder::Targets {
        pcapng: pcap,
        pcapng_settings: pcapng::Settings { horizon: experiment.stop.time, ..pcapng::Settings::default() },
        perfetto: trace,
        scale: perfetto::Scale::default(),
    };
    recorder::Recorder::create(targets).map(Some).map_err(|error| error::file(&error))
}

/// Gives each party its place in the fabric.
pub(crate) fn place(
    py: Python<'_>,
    run: &mut Run,
    parties: BTreeMap<String, Objects>,
) -> (Vec<(NodeId, PythonDevice)>, Vec<PythonDriver>) {
    let programs = run.drivers().to_vec();
    let (mut devices, mut drivers) = (Vec::new(), Vec::new());
    for (name, objects) in parties {
        if let Some(object) = objects.driver
            && let Some(program) = programs.iter().position(|device| *device == name)
        {
            let device = objects.device.as_ref().and_then(|party| party.getattr(py, "device").ok());
            drivers.push(PythonDriver::new(object, program, &name, device));
        }
        if let Some(object) = objects.device
            && let Some(node) = run.fabric().node(&name)
        {
            devices.push((node, PythonDevice::new(object)));
        }
    }
    (devices, drivers)
}

/// Writes the page that shows a result document.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, path: PathBuf, result: &str) -> PyResult<()> {
    py.detach(|| report::write(path, result)).map_err(|failure| error::file(&failure))
}
