//! The verdict by runs, as Python's threads find it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_experiment::result::Document;
use tlplab_experiment::whatif::{self, By, Study, TaskId, Trial};

/// The search for the limit of a run that is over: it asks for runs in which something is relaxed, and takes their results.
#[pyclass(frozen)]
pub(crate) struct Judge {
    judge: Mutex<whatif::Judge>,
    study: Arc<Study>,
}

/// A run to be made.
#[pyclass(frozen)]
pub(crate) struct Task {
    task: whatif::Task,
    trial: Mutex<Option<Trial>>,
    id: TaskId,
}

impl Judge {
    pub(crate) fn new(study: Study) -> Self {
        let study = Arc::new(study);
        Self { judge: Mutex::new(whatif::Judge::new(study.clone())), study }
    }

    fn of_relaxed(trial: &Trial) -> Self {
        Self { judge: Mutex::new(whatif::Judge::of_relaxed(trial)), study: trial.after.clone() }
    }

    fn judge(&self) -> MutexGuard<'_, whatif::Judge> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Judge {
    /// A run to be made now; `None` if there is nothing until more is told, or enough is known.
    fn next_task(&self) -> Option<Task> {
        let task = self.judge().next_task()?;
        Some(Task { id: task.id, task, trial: Mutex::new(None) })
    }

    /// A task has run.
    fn tell(&self, task: &Task) {
        let trial = task.trial.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.judge().tell(task.id, trial);
    }

    /// Tasks under way end soon, and tell nothing.
    fn cancel(&self) {
        self.study.cancel();
    }

    /// Enough is known.
    fn is_over(&self) -> bool {
        self.judge().is_over()
    }

    /// Runs made and to be made, of those that are known.
    fn progress(&self) -> (usize, usize) {
        self.judge().progress()
    }

    /// The names of all that limit, as far as it is known; none if nothing gains anything.
    fn limits(&self) -> Vec<String> {
        self.judge().limits()
    }

    /// The candidates: name and kind of each.
    fn candidates(&self) -> Vec<(String, String)> {
        let kind = |kind| {
            serde_json::to_value(kind)
                .map_or_else(|_| String::new(), |value| value.as_str().unwrap_or_default().to_owned())
        };
        self.study.candidates().iter().map(|one| (one.resource.clone(), kind(one.kind))).collect()
    }

    /// The run with a candidate relaxed: by a `tenth`, to `twice` as much, or until it is `gone` as a limit.
    fn task_for_table(&self, candidate: usize, by: &str) -> PyResult<Task> {
        let by = By::ALL.into_iter().find(|one| one.token() == by);
        let by = by.ok_or_else(|| PyValueError::new_err("by must be tenth, twice or gone"))?;
        if candidate >= self.study.candidates().len() {
            return Err(PyValueError::new_err("there is no such candidate"));
        }
        let task = self.judge().task_for_table(candidate, by);
        Ok(Task { id: task.id, task, trial: Mutex::new(None) })
    }

    /// The run's document with the verdict, JSON.
    fn document(&self, py: Python<'_>) -> String {
        let verdict = self.judge().verdict();
        py.detach(|| {
            let document = Document { verdict, ..self.study.document().clone() };
            serde_json::to_string(&document).expect("a document has only names for keys")
        })
    }
}

#[pymethods]
impl Task {
    /// Makes the run. Other Python threads go on meanwhile.
    fn run(&self, py: Python<'_>) {
        let trial = py.detach(|| self.task.run());
        *self.trial.lock().unwrap_or_else(PoisonError::into_inner) = trial;
    }

    /// The search for the limit of the relaxed run, of a task for a table; `None`: there is no such run.
    fn judge(&self) -> Option<Judge> {
        let trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        trial.as_ref().map(Judge::of_relaxed)
    }

    /// Its result: how the candidate was changed, how much more was carried, by how much the median and the 99th percentile of latency
    /// changed (0.1: a tenth longer). `None`: there is no such run.
    fn result(&self) -> Option<(String, f64, f64, f64)> {
        let trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        let trial = trial.as_ref()?;
        let (before, after) = (self.task.base(), trial.outcome);
        let change = |before: f64, after: f64| if before > 0.0 { after / before - 1.0 } else { 0.0 };
        Some((
            trial.changes.join(" and "),
            trial.gain,
            change(before.p50_ns, after.p50_ns),
            change(before.p99_ns, after.p99_ns),
        ))
    }
}

/// The reason that a run cannot be judged by runs.
pub(crate) fn refuse(why: String) -> PyErr {
    PyValueError::new_err(why)
}
