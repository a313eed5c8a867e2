//! The files that an experiment names: its text and what it includes.

use crate::error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tlplab_device::Record;
use tlplab_trace::output;

/// The text of a file, or in words why it cannot be had.
pub(crate) fn read_text(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|failure| match failure.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::PermissionDenied => "you are not permitted to read it".into(),
        ErrorKind::InvalidData => "it is not text (UTF-8)".into(),
        _ => failure.to_string(),
    })
}

/// The requests of a captured trace, or in words why they cannot be had.
pub(crate) fn read_trace(path: &str) -> Result<Vec<Record>, String> {
    tlplab_capture::read_trace(path).map_err(|failure| failure.to_string())
}

/// A file that takes its name when it is committed.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Output {
    /// `None` when it was committed, or dropped.
    inner: Mutex<Option<output::Output>>,
}

#[pymethods]
impl Output {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let output = output::Output::create(path).map_err(|failure| error::file(&failure))?;
        Ok(Self { inner: Mutex::new(Some(output)) })
    }

    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let output = inner.as_mut().ok_or_else(|| PyRuntimeError::new_err("the file has ended"))?;
            output.append(data).map_err(|failure| error::file(&failure))
        })
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let output = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let committed = py.detach(|| output.map_or(Ok(()), output::Output::commit));
        committed.map_err(|failure| error::file(&failure))
    }

    fn drop(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Writes `text` to `path`, whole or not at all; `-` is the standard output.
#[pyfunction]
pub(crate) fn write_text(py: Python<'_>, path: &str, text: &str) -> PyResult<()> {
    py.detach(|| output::write(path, text.as_bytes())).map_err(|failure| error::file(&failure))
}
