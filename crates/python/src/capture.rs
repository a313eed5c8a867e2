//! Captures: shown as lines.

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use tlplab_bridge::Error;
use tlplab_bridge::capture::dump::{self, Filter, Options, TimeStyle};

/// A capture on its way to lines.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Dump {
    /// `None` when it is finished.
    inner: Mutex<Option<dump::Dump>>,
}

#[pymethods]
impl Dump {
    #[new]
    #[pyo3(signature = (source, filter, *, json, time, verbose, limit, copy, quiet))]
    #[expect(clippy::too_many_arguments, reason = "the options of the command")]
    fn new(
        py: Python<'_>,
        source: &str,
        filter: Vec<String>,
        json: bool,
        time: usize,
        verbose: bool,
        limit: Option<u64>,
        copy: Option<&str>,
        quiet: bool,
    ) -> PyResult<Self> {
        let filter = Filter::parse(&filter).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let time = TimeStyle::of_count(time)
            .ok_or_else(|| PyValueError::new_err("-t can be given five times at most"))?;
        let copy = copy.map(Into::into);
        let options = Options { filter, json, time, verbose, limit, copy, quiet };
        let dump = py.detach(|| dump::Dump::file(source, options)).map_err(|error| failure(&error))?;
        Ok(Self { inner: Mutex::new(Some(dump)) })
    }

    /// Some more lines; `None` at the end.
    fn step(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let dump = inner.as_mut().ok_or_else(finished)?;
            let mut lines = String::new();
            let more = dump.step(&mut lines).map_err(|error| failure(&error))?;
            Ok((more || !lines.is_empty()).then_some(lines))
        })
    }

    /// Ends the copy; frames read, shown, malformed, and of other kinds.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let dump = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let dump = dump.ok_or_else(finished)?;
        let counts = py.detach(|| dump.finish()).map_err(|error| failure(&error))?;
        Ok((counts.frames, counts.shown, counts.malformed, counts.others))
    }
}

/// The keys of filters and the words that are tests alone, with their meanings.
#[pyfunction]
pub(crate) fn dump_filters() -> Vec<(&'static str, &'static str)> {
    dump::KEYS.iter().chain(dump::WORDS).copied().collect()
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("it is finished")
}

/// A file that is no capture is the user's mistake, anything else the system's.
fn failure(error: &Error) -> PyErr {
    match error {
        Error::Content { .. } => PyValueError::new_err(error.to_string()),
        Error::Io { .. } => PyOSError::new_err(error.to_string()),
    }
}
