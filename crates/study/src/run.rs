//! One run of a point: what it follows from, and what it comes to.

use crate::bench::{self, OnDevice};
use crate::files::Files;
use crate::key::Key;
use crate::metrics;
use crate::model;
use crate::record::Record;
use crate::subject::Ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_cosim::{library, rtl};
use tlplab_experiment::detail::Detail;
use tlplab_experiment::result::Document;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::whatif::{self, Extent, Judge};
use tlplab_experiment::{Experiment, FileKind, Options};

/// After so many events a run looks whether it is cancelled.
const SLICE: u64 = 50_000;

/// The code that runs points, by its hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The simulator.
    pub simulator: String,
    /// With it what carries devices in Python.
    pub python: String,
}

/// A run that is about to be made, or that was made before.
pub(crate) struct Prepared {
    pub(crate) key: Key,
    /// `None` where a seed makes no difference.
    pub(crate) seed: Option<u64>,
    /// Part of it is in Python: it is run elsewhere.
    pub(crate) in_python: Option<InPython>,
    /// The files that it names, by what is in them.
    pub(crate) files: Vec<(String, Key)>,
    /// The files among them that the runner opens.
    pub(crate) opened: Vec<String>,
    pub(crate) work: Work,
}

/// The work of a run.
pub(crate) enum Work {
    Experiment(Box<Experiment>),
    Model(model::Ready),
    Bench(Box<bench::Ready>),
}

/// A run that is made by Python, as it is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InPython {
    /// A run of an experiment.
    Experiment {
        /// The experiment.
        path: String,
        /// The settings: `key=value` each.
        set: Vec<String>,
        /// A file with its loads.
        load: Option<String>,
        /// Its seed.
        seed: u64,
    },
    /// A benchmark.
    Bench(OnDevice),
}

/// The outcome of a run.
pub(crate) enum Went {
    /// To its end, or it failed.
    Done(Record),
    /// It cannot be.
    Refused(String),
    /// Not to its end.
    Cancelled,
    /// A file is another than at its beginning.
    Changed(String),
}

/// A run that cannot be made ready.
pub(crate) struct Refused {
    /// The reason.
    pub(crate) why: String,
    /// As long as the files are as they are; otherwise it may be because of the machine.
    pub(crate) lasting: bool,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self { why, lasting: true }
    }
}

/// Makes a run of an experiment ready.
///
/// # Errors
/// The reason that it cannot be run.
pub(crate) fn experiment(
    path: &str,
    load: Option<&str>,
    ask: &Ask,
    files: &Files,
    build: &Build,
) -> Result<Prepared, Refused> {
    let named = Mutex::new(Vec::new());
    let read = |path: &str| {
        named.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        files.text(path)
    };
    let load = load.map(str::to_owned);
    let options = Options { set: ask.set.clone(), load: load.clone(), seed: ask.seed, ..Options::default() };
    let experiment = Experiment::parse_with(&read, path, &options).map_err(|mistake| mistake.to_string())?;
    if let Some(lacks) = experiment.lacks_guest() {
        return Err(Refused { why: lacks.to_string(), lasting: false });
    }
    if let Some(medium) = experiment.files.iter().find(|file| file.kind == FileKind::Medium) {
        let why = "runs write to it, so each would see the data of the run before; leave it out to keep the data in memory";
        return Err(medium.missing(why).to_string().into());
    }
    let in_python = experiment.files.iter().any(|file| file.kind == FileKind::Python);
    let mut keys = Vec::new();
    // The experiment counts as what it came to, the files that it includes as they are.
    for named in named.into_inner().unwrap_or_else(PoisonError::into_inner) {
        if named != path {
            keys.push((named.clone(), files.key_of_text(&named)?));
        }
    }
    for file in &experiment.files {
        let key = files.key(&file.path).map_err(|why| file.missing(&why).to_string())?;
        keys.push((file.path.clone(), key));
    }
    let seed = experiment.fabric.seed;
    let counted = seed.to_le_bytes();
    let parts: Vec<(&str, &[u8])> = vec![
        ("build", if in_python { build.python.as_bytes() } else { build.simulator.as_bytes() }),
        ("experiment", experiment.resolved.as_bytes()),
        ("seed", &counted),
        ("verdict", if ask.verdict { b"by runs" } else { b"" }),
    ];
    let in_python =
        in_python.then(|| InPython::Experiment { path: path.to_owned(), set: ask.set.clone(), load, seed });
    Ok(Prepared {
        key: Key::of_run(parts, &keys),
        seed: Some(seed),
        in_python,
        files: keys,
        opened: experiment.files.iter().map(|file| file.path.clone()).collect(),
        work: Work::Experiment(Box::new(experiment)),
    })
}

impl Prepared {
    /// Makes the run.
    pub(crate) fn run(self, files: &Files, cancel: &AtomicBool, verdict: bool) -> Went {
        let went = match self.work {
            Work::Experiment(experiment) => match inputs(&experiment, files) {
                Ok((inputs, traces)) => run(*experiment, inputs, traces, cancel, verdict),
                Err(why) => Went::Refused(why),
            },
            Work::Model(ready) => ready.run(),
            Work::Bench(ready) => ready.run(cancel),
        };
        match self.opened.into_iter().find(|path| !files.is_unchanged(path)) {
            Some(path) => Went::Changed(path),
            None => went,
        }
    }
}

type Traces = Arc<BTreeMap<String, Vec<tlplab_device::Record>>>;

fn inputs(experiment: &Experiment, files: &Files) -> Result<(Inputs, Traces), String> {
    let mut inputs = Inputs { no_ladder: true, detail: Detail::All, ..Inputs::default() };
    inputs.devices = library::load(experiment).map_err(|mistake| mistake.to_string())?;
    inputs.cores = rtl::load(experiment).map_err(|mistake| mistake.to_string())?;
    for file in experiment.files.iter().filter(|file| file.kind == FileKind::Trace) {
        let records = files.trace(&file.path).map_err(|why| file.missing(&why).to_string())?;
        inputs.traces.insert(file.path.clone(), (*records).clone());
    }
    let traces = Arc::new(inputs.traces.clone());
    Ok((inputs, traces))
}

fn run(experiment: Experiment, inputs: Inputs, traces: Traces, cancel: &AtomicBool, verdict: bool) -> Went {
    let mut run = match Run::new(experiment, inputs) {
        Ok(run) => run,
        Err(why) => return Went::Refused(why.to_string()),
    };
    loop {
        match run.advance(SLICE) {
            Err(failure) => {
                return Went::Done(Record { failure: Some(failure.to_string()), ..Record::default() });
            }
            Ok(progress) if progress.done => break,
            Ok(progress) if progress.waits_for_outside => {
                return Went::Refused("a part of it outside the simulation is not connected".into());
            }
            Ok(_) if cancel.load(Ordering::Relaxed) => return Went::Cancelled,
            Ok(_) => {}
        }
    }
    let mut record = record(&run.document());
    if verdict && record.failure.is_none() {
        match judge(&mut run, traces, cancel) {
            Some(verdict) => record.verdict = Some(verdict),
            None => return Went::Cancelled,
        }
    }
    Went::Done(record)
}

/// The record of a run that is over.
pub fn record(document: &Document) -> Record {
    let exhausted =
        document.problems.iter().filter(|problem| problem.exhausted).map(|problem| problem.message.clone());
    let waiting = document
        .waiting
        .iter()
        .map(|one| format!("driver of {} still waits for {} ({})", one.device, one.what, one.place));
    let mut failures: Vec<String> = exhausted.chain(waiting).collect();
    // Its figures are of the time in which it stood still.
    if failures.is_empty() && document.stop_reason.is_deadlock() {
        failures.push(format!("the run made no progress: {}", document.stop_text));
    }
    Record {
        failure: (!failures.is_empty()).then(|| failures.join("; ")),
        verdict: None,
        metrics: metrics::of_document(document),
    }
}

/// The limit of a run that is over, by further runs; by its figures, where it cannot be run again. `None` if it was cancelled.
fn judge(run: &mut Run, traces: Traces, cancel: &AtomicBool) -> Option<(String, String)> {
    let document = run.document();
    let figures = (document.verdict.limit.resource.clone(), document.verdict.sentence.clone());
    let Ok(study) = whatif::Study::new(run, document, traces, Extent::Bounded) else { return Some(figures) };
    let mut judge = Judge::new(Arc::new(study));
    while let Some(task) = judge.next_task() {
        if cancel.load(Ordering::Relaxed) {
            return None;
        }
        judge.tell(task.id, task.run());
    }
    let verdict = judge.verdict();
    Some((verdict.limit.resource, verdict.sentence))
}
