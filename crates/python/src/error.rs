//! Mistakes become Python exceptions: `ExperimentError` and `RunError` of `python/tlplab/errors.py`, or `OSError`.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tlplab_experiment::Error;

/// The mistakes of an experiment; the first is the exception, the others are its `others`.
pub(crate) fn experiment(py: Python<'_>, mistakes: &[Error]) -> PyErr {
    build(py, mistakes).unwrap_or_else(|failure| failure)
}

fn build(py: Python<'_>, mistakes: &[Error]) -> PyResult<PyErr> {
    let class = py.import("tlplab.errors")?.getattr("ExperimentError")?;
    let exceptions = mistakes
        .iter()
        .map(|e| class.call1((&e.file, e.line, e.column, &e.key, &e.message, e.hint.as_deref())))
        .collect::<PyResult<Vec<_>>>()?;
    let (first, others) = exceptions.split_first().expect("an experiment is refused for a reason");
    first.setattr("others", PyTuple::new(py, others)?)?;
    Ok(PyErr::from_value(first.clone()))
}

/// A file that could not be read or written.
pub(crate) fn file(error: &tlplab_bridge::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}
