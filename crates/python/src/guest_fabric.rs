//! An experiment's devices in a virtual machine, as Python starts, watches and ends them.

use crate::residents::{PythonResidents, load_objects};
use crate::simulation::{read_traces, reason_of, record};
use crate::{error, outline};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration as Wall, Instant};
use tlplab_cosim::{library, medium, rtl};
use tlplab_device::nic::OpenEnd;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options};
use tlplab_netio::{End, FunctionCounters, GuestFabric, MachineMemory};
use tlplab_trace::recorder::Recorder;

/// The interval at which waiting threads look up.
const GLANCE: Wall = Wall::from_millis(50);

/// The devices of an experiment on sockets, until they are ended.
#[pyclass(frozen)]
pub(crate) struct FabricServer(Mutex<Served>);

struct Served {
    fabric: GuestFabric,
    recorder: Option<Recorder>,
}

#[pymethods]
impl FabricServer {
    #[new]
    #[pyo3(signature = (experiment, folder, *, overrides = Vec::new(), seed = None, cables = Vec::new(), trace = None, pcap = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        experiment: &str,
        folder: PathBuf,
        overrides: Vec<String>,
        seed: Option<u64>,
        cables: Vec<(String, String)>,
        trace: Option<PathBuf>,
        pcap: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = Options { set: overrides, seed, guest: Some(GuestKind::Machine), ..Options::default() };
        let parsed = outline::parse(py, experiment, None, &options)?;
        let nics = cables.iter().flat_map(|(one, other)| [one.clone(), other.clone()]);
        let open_ends: BTreeMap<_, _> = nics.map(|nic| (nic, OpenEnd::new())).collect();
        let recorder = record(&parsed, trace, pcap)?;
        let memory = MachineMemory::default();
        let (run, residents) = machine(py, experiment, parsed, &memory, &open_ends, recorder.as_ref())?;
        let cables: Vec<_> = cables.into_iter().map(|(one, other)| [one, other]).collect();
        let fabric = GuestFabric::new(run, Box::new(residents), &memory, &folder, &cables, &open_ends);
        let fabric = fabric.map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Self(Mutex::new(Served { fabric, recorder })))
    }

    /// Goes on for so long, or until it cannot.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Wall::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let until = Instant::now() + wall;
        loop {
            py.check_signals()?;
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            let gone_on = self.with(py, |served| {
                let until = until.min(now + GLANCE);
                while Instant::now() < until {
                    served.fabric.wait_turn(until).map_err(|failure| failure.to_string())?;
                    if let Some(end) = served.fabric.ended() {
                        return Err(reason(end));
                    }
                }
                Ok(())
            });
            gone_on.map_err(|failure| error::run_error(py, &failure))?;
        }
    }

    /// Name and counters of each device.
    fn counters(&self, py: Python<'_>) -> Vec<(String, Vec<(&'static str, u64)>)> {
        self.with(py, |served| {
            let counters = served.fabric.counters().into_iter();
            counters.map(|(name, counters)| (name.to_owned(), rows(&counters))).collect()
        })
    }

    /// Its lag behind the wall clock in nanoseconds, the greatest lag, and the number of times that it was more than a millisecond.
    fn lag(&self, py: Python<'_>) -> (f64, f64, u64) {
        let lag = self.with(py, |served| served.fabric.lag());
        let ns = |duration: tlplab_units::Duration| duration.as_fs() as f64 / 1e6;
        (ns(lag.now), ns(lag.most), lag.times)
    }

    /// Closes the files that were written meanwhile; the result document as JSON. `stopped_by` is why it ends.
    fn finish(&self, py: Python<'_>, stopped_by: &str) -> PyResult<String> {
        let reason = reason_of(stopped_by)?;
        let finished = self.with(py, |Served { fabric, recorder }| {
            let run = fabric.run();
            run.stop(reason);
            let document = run.document();
            if let Some(recorder) = recorder {
                let fabric = run.fabric();
                let levels = fabric.level_results();
                recorder.levels(&levels, fabric.bins().0);
                recorder.finish()?;
            }
            Ok(document)
        });
        let document = finished.map_err(|failure| error::file(&failure))?;
        Ok(serde_json::to_string(&document).expect("a document has only names for keys"))
    }
}

impl FabricServer {
    /// Calls `work` with the fabric. No thread waits for it with Python's lock, which its devices need.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Served) -> R + Send) -> R {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn reason(end: &End) -> String {
    match end {
        End::Done(why) => format!("the guest has lost its power: {why}"),
        other => other.to_string(),
    }
}

/// The run of an experiment whose host is a virtual machine.
fn machine(
    py: Python<'_>,
    path: &str,
    experiment: Experiment,
    memory: &MachineMemory,
    open_ends: &BTreeMap<String, OpenEnd>,
    recorder: Option<&Recorder>,
) -> PyResult<(Run, PythonResidents)> {
    let refused = |mistake| error::experiment(py, &[mistake]);
    let mut inputs = Inputs { traces: read_traces(py, &experiment)?, ..Inputs::default() };
    inputs.devices = library::load(&experiment).map_err(refused)?;
    inputs.cores = rtl::load(&experiment).map_err(refused)?;
    inputs.media = medium::open_all(&experiment).map_err(refused)?;
    inputs.open_ends = open_ends.clone();
    inputs.memory = Some(memory.for_run());
    inputs.probe = recorder.map(Recorder::probe);
    let parties = load_objects(py, &experiment, None)?;
    let identities = parties.iter().filter_map(|(name, party)| Some((name.clone(), party.identity()?)));
    inputs.outside = identities.collect();
    let mut run = py.detach(|| Run::new(experiment, inputs)).map_err(|e| error::build(py, path, &e))?;
    let residents = PythonResidents::place(py, &mut run, parties);
    Ok((run, residents))
}

fn rows(counters: &FunctionCounters) -> Vec<(&'static str, u64)> {
    vec![
        ("clients", counters.clients),
        ("refused_clients", counters.refused_clients),
        ("register_reads", counters.register_reads),
        ("register_writes", counters.register_writes),
        ("bytes_read", counters.bytes_read),
        ("bytes_written", counters.bytes_written),
        ("refused_transfers", counters.refused_transfers),
        ("interrupts", counters.interrupts),
        ("dropped_interrupts", counters.dropped_interrupts),
        ("late_reads", counters.late_reads),
        ("fatal_errors", counters.fatal_errors),
    ]
}
