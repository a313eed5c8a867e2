//! Captures: shown as lines, and summed up.

use crate::error;
use crate::table::{Columns, Table};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, OnceLock, PoisonError};
use tlplab_capture::dump::{self, Filter, Loading, Options, TimeStyle};
use tlplab_capture::summary::Summary;
use tlplab_capture::summary::points::Points;

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
        let dump =
            py.detach(|| dump::Dump::open(source, options)).map_err(|failure| error::input(&failure))?;
        Ok(Self { inner: Mutex::new(Some(dump)) })
    }

    /// Some more lines, perhaps none; `None` at the end.
    fn step(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let dump = inner.as_mut().ok_or_else(finished)?;
            let mut lines = String::new();
            let more = dump.step(&mut lines).map_err(|failure| error::input(&failure))?;
            Ok((more || !lines.is_empty()).then_some(lines))
        })
    }

    /// True if it goes on until it is told to end.
    #[getter]
    fn live(&self) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().is_some_and(dump::Dump::is_live)
    }

    /// Ends the copy; frames read, shown, malformed, of other kinds, and dropped.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
        let dump = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let dump = dump.ok_or_else(finished)?;
        let counts = py.detach(|| dump.finish()).map_err(|failure| error::input(&failure))?;
        Ok((counts.frames, counts.shown, counts.malformed, counts.others, counts.dropped))
    }
}

/// A capture that is read, to be summed up.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct CaptureReader {
    /// `None` when all is read.
    inner: Mutex<Option<Loading>>,
    /// The summary, and the points if they were requested.
    read: OnceLock<(Summary, Points)>,
}

#[pymethods]
impl CaptureReader {
    #[new]
    #[pyo3(signature = (path, filter, *, points))]
    fn new(py: Python<'_>, path: &str, filter: Vec<String>, points: bool) -> PyResult<Self> {
        let filter = Filter::parse(&filter).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let loading =
            py.detach(|| Loading::new(path, filter, points)).map_err(|failure| error::input(&failure))?;
        Ok(Self { inner: Mutex::new(Some(loading)), read: OnceLock::new() })
    }

    /// Reads on; true while there is more. `fraction` tells how much was read.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(loading) = inner.as_mut() else { return Ok(false) };
            if loading.step().map_err(|failure| error::input(&failure))? {
                return Ok(true);
            }
            if let Some(loading) = inner.take() {
                let read = loading.finish().map_err(|failure| error::input(&failure))?;
                self.read.get_or_init(|| read);
            }
            Ok(false)
        })
    }

    #[getter]
    fn fraction(&self) -> Option<f64> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map_or(Some(1.0), Loading::fraction)
    }

    /// The summary as a JSON document.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let (summary, _) = self.read.get().ok_or_else(unread)?;
        Ok(py.detach(|| summary.to_json()))
    }

    /// The events over time, a row for each TLP; none if they were not requested.
    fn points(&self) -> PyResult<Table> {
        let (_, points) = self.read.get().ok_or_else(unread)?;
        let points = points.clone();
        let mut columns = Columns::default();
        columns.floats("time_ns", points.time_ns);
        columns.integers("direction", points.direction);
        columns.integers("kind", points.kind);
        columns.integers("tag", points.tag);
        columns.integers("bytes", points.bytes);
        columns.integers("outstanding", points.outstanding);
        columns.floats("latency_ns", points.latency_ns);
        columns.finish()
    }
}

fn unread() -> PyErr {
    PyRuntimeError::new_err("it is not read yet")
}

/// The keys of filters and the words that are tests alone, with their meanings.
#[pyfunction]
pub(crate) fn dump_filters() -> Vec<(&'static str, &'static str)> {
    dump::KEYS.iter().chain(dump::WORDS).copied().collect()
}

/// The files of the Wireshark dissector: names and texts.
#[pyfunction]
pub(crate) fn dissector() -> Vec<(&'static str, String)> {
    tlplab_capture::dissector::files()
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("it is finished")
}
