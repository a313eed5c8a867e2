//! A run, as Python steps it.

use crate::guest;
use crate::residents::{self, PythonResidents, load_objects};
use crate::table::{Columns, Table};
use crate::{bench, error, files, judge, outline};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tlplab_bench::{machine, preparation};
use tlplab_cosim::{library, medium, rtl, uml};
use tlplab_device::Record;
use tlplab_device::nic::OpenEnd;
use tlplab_experiment::detail::Detail;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::latest::Latest;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::transactions::{Kept, Transactions};
use tlplab_experiment::whatif::{Extent, Study};
use tlplab_experiment::{Experiment, FileKind, Options, StopReason, lspci, result};
use tlplab_fabric::Driven;
use tlplab_fabric::probe::Probe;
use tlplab_trace::{pcapng, perfetto, recorder, report};
use tlplab_units::Time;

/// The progress of a run.
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

pub(crate) struct State {
    pub(crate) run: Run,
    traces: Arc<BTreeMap<String, Vec<Record>>>,
    recorder: Option<recorder::Recorder>,
    pub(crate) residents: PythonResidents,
    pub(crate) guest: Option<uml::Session>,
    /// Cables that lead to other simulations, by the NIC that each is plugged in.
    pub(crate) open_ends: BTreeMap<String, OpenEnd>,
    transactions: Option<Transactions>,
    latest: Option<Latest>,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (path, *, text = None, objects = None, overrides = Vec::new(), load = None, seed = None,
        trace = None, pcap = None, guest = None, machine = None, open_ends = Vec::new(), all_details = false,
        keep_transactions = false, latest = 0))]
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
        guest: Option<&Bound<'_, PyDict>>,
        machine: Option<String>,
        open_ends: Vec<String>,
        all_details: bool,
        keep_transactions: bool,
        latest: usize,
    ) -> PyResult<Self> {
        let options = Options {
            set: overrides,
            load,
            seed,
            guest: guest.map(|_| GuestKind::UserMode),
            machine,
            ..Options::default()
        };
        let experiment = outline::parse(py, path, text, &options)?;
        let guest = guest.map(|given| guest::Start::read(given, &experiment)).transpose()?;
        let traces = Arc::new(read_traces(py, &experiment)?);
        let mut inputs = Inputs { traces: (*traces).clone(), ..Inputs::default() };
        inputs.detail = if all_details { Detail::All } else { Detail::Limited };
        inputs.devices = library::load(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
        inputs.cores = rtl::load(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
        inputs.media = medium::open_all(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
        let open_ends: BTreeMap<_, _> = open_ends.into_iter().map(|nic| (nic, OpenEnd::new())).collect();
        inputs.open_ends = open_ends.clone();
        let parties = load_objects(py, &experiment, objects)?;
        let identities = parties.iter().filter_map(|(name, party)| Some((name.clone(), party.identity()?)));
        inputs.outside = identities.collect();
        inputs.memory = guest.as_ref().map(guest::Start::memory);
        let recorder = record(&experiment, trace, pcap)?;
        let transactions = keep_transactions.then(|| Transactions::after(experiment.fabric.warmup));
        let latest = (latest > 0).then(|| Latest::new(latest));
        let observers = [
            transactions.as_ref().map(Transactions::probe),
            recorder.as_ref().map(recorder::Recorder::probe),
            latest.as_ref().map(Latest::probe),
        ];
        inputs.probe = observer(observers.into_iter().flatten().collect());
        let mut run = py.detach(|| Run::new(experiment, inputs)).map_err(|e| error::build(py, path, &e))?;
        let residents = PythonResidents::place(py, &mut run, parties);
        let guest = guest.map(guest::Start::start).transpose()?;
        Ok(Self {
            state: Mutex::new(State {
                run,
                traces,
                recorder,
                residents,
                guest,
                open_ends,
                transactions,
                latest,
            }),
        })
    }

    /// Goes on for at most `events` events.
    fn advance(&self, py: Python<'_>, events: u64) -> PyResult<Progress> {
        self.state()?.advance(py, events, None)
    }

    /// The same, but no further than to a time, to which the clock is set.
    fn advance_until(&self, py: Python<'_>, until_fs: u64, events: u64) -> PyResult<Progress> {
        self.state()?.advance(py, events, Some(Time::from_fs(until_fs)))
    }

    /// Goes on for at most `events` events, and no further than the first in which a TLP is put on a wire.
    fn advance_to_tlp(&self, py: Python<'_>, events: u64) -> PyResult<Progress> {
        let mut state = self.state()?;
        let before = state.latest()?.count();
        let mut left = events;
        loop {
            let progress = state.advance(py, left.min(1), None)?;
            left = left.saturating_sub(1);
            if progress.done || left == 0 || state.latest()?.count() > before {
                return Ok(progress);
            }
        }
    }

    /// The number of TLPs that were put on wires so far, and those after the first `count`, as JSON.
    fn tlps_after(&self, count: u64) -> PyResult<(u64, String)> {
        let state = self.state()?;
        let latest = state.latest()?;
        let seen = latest.after(count);
        Ok((latest.count(), serde_json::to_string(&seen).expect("a TLP has only names for keys")))
    }

    /// The names of flows, links and components.
    fn names(&self) -> PyResult<(Vec<String>, Vec<String>, Vec<String>)> {
        let mut state = self.state()?;
        let topology = state.run.fabric().topology();
        let flows = topology.flows.iter().map(|flow| flow.name.clone());
        let links = topology.links.iter().map(|link| link.name.clone());
        let ports = topology.links.iter().flat_map(|link| link.ports);
        let components = ports.map(|port| topology.ports[port.index()].name.clone());
        Ok((flows.collect(), links.collect(), components.collect()))
    }

    /// Base address and size of each BAR of a device, once software has set them.
    fn bars(&self, device: &str) -> PyResult<Vec<Option<(u64, u64)>>> {
        let mut state = self.state()?;
        let found = state.run.fabric().devices().iter().find(|info| info.name == device);
        Ok(found.map_or_else(Vec::new, |info| info.bars.to_vec()))
    }

    /// The devices made of RTL that have never said that they are idle, if nothing else is under way and no stop is set.
    fn restless(&self) -> PyResult<Vec<String>> {
        let run = &mut self.state()?.run;
        let stops = run.experiment().stop.time.is_some();
        Ok(if stops { Vec::new() } else { run.fabric().restless() })
    }

    /// Lets the guest and its machine go on for a while. What it printed, each piece with its simulated time in femtoseconds; how far
    /// simulated time is; and how the guest has ended, if it has: what happened, and the exit status of its script.
    fn advance_guest(&self, py: Python<'_>) -> PyResult<guest::Heard> {
        let mut guard = self.state()?;
        let State { run, residents, guest, .. } = &mut *guard;
        let guest = guest.as_mut().ok_or_else(|| PyValueError::new_err("this run has no guest"))?;
        guest::advance(py, guest, run, residents)
    }

    /// Brings the host into the state that a benchmark's case begins in.
    fn prepare(&self, py: Python<'_>, case: &str) -> PyResult<()> {
        let case = bench::read(case)?;
        let run = &mut self.state()?.run;
        let host = run.experiment().fabric.host.clone();
        machine::check_memory(&host, &case).map_err(|e| bench::refuse(py, e.into()))?;
        preparation::prepare(run.fabric(), &host, &case).map_err(|e| bench::refuse(py, e))
    }

    /// The view of software once it has enumerated: the document as JSON, and the dump for `lspci -F`.
    fn lspci(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let mut guard = self.state()?;
        let run = &mut guard.run;
        let (document, dump) = py.detach(|| lspci::lspci(run)).map_err(|e| error::run(py, &e))?;
        Ok((serde_json::to_string(&document).expect("a document has only names for keys"), dump))
    }

    /// Closes the files that were written meanwhile; the result document as JSON. `stopped_by` is `interrupted`, `time-limit` or `failed`.
    /// `guest` is what became of the guest: SHA-256 of kernel, of initial file system and of console; how it ended, by its name and for people; its
    /// script's status.
    /// With `brief`, what only a page shows is left out: series of links and resources, samples, the ladder.
    #[pyo3(signature = (stopped_by = None, guest = None, *, brief = false))]
    fn finish(
        &self,
        py: Python<'_>,
        stopped_by: Option<&str>,
        guest: Option<guest::Ended>,
        brief: bool,
    ) -> PyResult<String> {
        let mut guard = self.state()?;
        let state = &mut *guard;
        if let Some(reason) = stopped_by {
            state.run.stop(reason_of(reason)?);
        }
        if let Some((kernel, initramfs, console, ending, end, status)) = guest {
            let ending = named(result::GuestEnding::ALL, result::GuestEnding::token, &ending)?;
            state.run.guest_ended(result::Guest { kernel, initramfs, console, end, ending, status });
        }
        state.run.still_waiting(state.residents.waits(py)?);
        py.detach(|| state.finish(brief)).map_err(|error| error::file(&error))
    }

    /// The record of the run, which is over, as studies keep it.
    fn record(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let mut guard = self.state()?;
        let state = &mut *guard;
        state.run.still_waiting(state.residents.waits(py)?);
        Ok(py.detach(|| tlplab_study::run::record(&state.run.document()).write()))
    }

    /// The names of the flows, how many transactions ended well, and a row for each; no rows, if they are more than can be kept.
    fn transactions(&self) -> PyResult<(Vec<String>, u64, Table)> {
        let state = self.state()?;
        let kept = state.transactions.as_ref().ok_or_else(not_kept)?;
        let all = kept.all();
        let column = |of: fn(&Kept) -> u64| all.iter().map(|one| of(one) as i64).collect();
        let mut columns = Columns::default();
        columns.integers("flow", column(|one| one.flow as u64));
        columns.integers("start_fs", column(|one| one.start.as_fs()));
        columns.integers("latency_fs", column(|one| one.latency.as_fs()));
        Ok((kept.flows(), kept.seen(), columns.finish()?))
    }

    /// One of the transactions in words, and the parts of its latency: cause, place, behind which flow, and femtoseconds.
    fn transaction(&self, index: usize) -> PyResult<(String, Vec<Part>)> {
        let state = self.state()?;
        let kept = state.transactions.as_ref().ok_or_else(not_kept)?;
        let text = kept.text(index).ok_or_else(|| PyIndexError::new_err("there is no such transaction"))?;
        let parts = kept.parts(index).into_iter();
        Ok((text, parts.map(|part| (part.cause, part.place, part.behind, part.duration.as_fs())).collect()))
    }

    /// The number of expectations of the experiment.
    fn expected(&self, py: Python<'_>) -> PyResult<usize> {
        let read = tlplab_study::expect::read(self.state()?.run.experiment());
        read.map(|all| all.len()).map_err(|mistakes| error::experiment(py, &mistakes))
    }

    /// Of each expectation: its text, whether it holds, its figures (name, value, unit), and what may be meant by one that is not there.
    #[allow(clippy::type_complexity)] // tuples in Python
    fn judged(
        &self,
        py: Python<'_>,
    ) -> PyResult<Vec<(String, bool, Vec<(String, Option<f64>, String)>, Option<String>)>> {
        let run = &mut self.state()?.run;
        let read = tlplab_study::expect::read(run.experiment());
        let expectations = read.map_err(|mistakes| error::experiment(py, &mistakes))?;
        let metrics = py.detach(|| tlplab_study::metrics::of_document(&run.document()));
        let told = expectations.iter().map(|one| {
            let judged = one.judge(&metrics);
            let figures =
                judged.figures.into_iter().map(|(name, value, unit)| (name, value, unit.to_string()));
            (judged.text, judged.holds, figures.collect(), judged.meant)
        });
        Ok(told.collect())
    }

    /// The search for the limit of the run, which is over: by bounded cost, or in `full`. Raises ValueError if it cannot be run again.
    #[pyo3(signature = (*, full=false))]
    fn judge(&self, py: Python<'_>, full: bool) -> PyResult<judge::Judge> {
        let extent = if full { Extent::Full } else { Extent::Bounded };
        let mut guard = self.state()?;
        let State { run, traces, .. } = &mut *guard;
        let study = py.detach(|| {
            let document = run.document();
            Study::new(run, document, traces.clone(), extent)
        });
        Ok(judge::Judge::new(study.map_err(judge::refuse)?))
    }
}

/// Cause, place, behind which flow, femtoseconds.
type Part = (&'static str, String, Option<String>, u64);

fn not_kept() -> PyErr {
    PyRuntimeError::new_err("this run does not keep its transactions")
}

/// The reason that a run is ended from outside, by its token.
pub(crate) fn reason_of(token: &str) -> PyResult<StopReason> {
    named(&StopReason::FROM_OUTSIDE, StopReason::token, token)
}

/// The one of this name.
pub(crate) fn named<T: Copy>(all: &[T], token: impl Fn(T) -> &'static str, name: &str) -> PyResult<T> {
    all.iter().copied().find(|one| token(*one) == name).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|one| token(*one)).collect();
        PyValueError::new_err(format!("unknown value {name:?}; expected one of {}", known.join(", ")))
    })
}

impl Simulation {
    pub(crate) fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state
            .try_lock()
            .map_err(|_| PyRuntimeError::new_err("the simulation is running: its own devices cannot step it"))
    }
}

impl State {
    /// Goes on for at most `events` events, and with `until` no further than to that time.
    fn advance(&mut self, py: Python<'_>, events: u64, until: Option<Time>) -> PyResult<Progress> {
        if let Some(mistake) = self.run.experiment().lacks_guest() {
            return Err(error::experiment(py, &[mistake]));
        }
        let begun = self.run.progress().events;
        loop {
            let left = events.saturating_sub(self.run.progress().events - begun);
            let went_on = py.detach(|| match until {
                Some(until) => self.run.advance_to(until, left),
                None => self.run.advance(left),
            });
            let progress = went_on.map_err(|e| error::run(py, &e))?;
            if !progress.waits_for_outside {
                return Ok(Progress {
                    now_fs: progress.now.as_fs(),
                    events: progress.events,
                    transactions: progress.transactions,
                    fraction: progress.fraction,
                    done: progress.done,
                });
            }
            let told = self.run.take_told();
            self.residents.tell(&mut self.run, told).map_err(residents::into_python)?;
        }
    }

    fn latest(&self) -> PyResult<&Latest> {
        self.latest.as_ref().ok_or_else(|| PyRuntimeError::new_err("this run does not keep its latest TLPs"))
    }

    fn finish(&mut self, brief: bool) -> Result<String, tlplab_trace::Error> {
        let mut document = self.run.document();
        if brief {
            document.series.directions.clear();
            document.series.resources.clear();
            document.samples.clear();
            document.ladder = None;
            document.config_spaces = None;
            for flow in &mut document.series.flows {
                (flow.outstanding_mean, flow.outstanding_max) = (None, None);
            }
        }
        if let Some(recorder) = &self.recorder {
            let fabric = self.run.fabric();
            let levels = fabric.level_results();
            recorder.levels(&levels, fabric.bins().0);
            recorder.finish()?;
        }
        Ok(serde_json::to_string(&document).expect("a document has only names for keys"))
    }
}

/// Several observers as one.
fn observer(mut all: Vec<Box<dyn Probe>>) -> Option<Box<dyn Probe>> {
    if all.len() > 1 { Some(Box::new(all)) } else { all.pop() }
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

pub(crate) fn record(
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

/// The style sheet of that page, for others that are to look like it.
#[pyfunction]
pub(crate) fn report_style() -> &'static str {
    report::style()
}

/// Writes the page that shows a result document.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, path: PathBuf, result: &str) -> PyResult<()> {
    py.detach(|| report::write(path, result)).map_err(|failure| error::file(&failure))
}

/// The page that shows a result document, as text.
#[pyfunction]
pub(crate) fn report_page(py: Python<'_>, result: &str) -> String {
    py.detach(|| report::html(result))
}
