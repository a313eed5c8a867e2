//! The files that an experiment names: its text and what it includes.

use crate::error;
use pyo3::prelude::*;
use std::fs;
use std::io::ErrorKind;
use tlplab_bridge::{capture, output};
use tlplab_device::Record;

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
    capture::read_trace(path).map_err(|failure| failure.to_string())
}

/// Writes `text` to `path`, whole or not at all; `-` is the standard output.
#[pyfunction]
pub(crate) fn write_text(py: Python<'_>, path: &str, text: &str) -> PyResult<()> {
    py.detach(|| output::write(path, text.as_bytes())).map_err(|failure| error::file(&failure))
}
