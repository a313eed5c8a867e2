//! Mistakes become Python exceptions: `ExperimentError` and `RunError` of `python/tlplab/errors.py`, or `OSError`.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::io::ErrorKind;
use tlplab_experiment::Error;
use tlplab_experiment::run::RunError;

/// The mistakes of an experiment; the first is the exception, the others are its `others`.
pub(crate) fn experiment(py: Python<'_>, mistakes: &[Error]) -> PyErr {
    raise(py, mistakes).unwrap_or_else(|failure| failure)
}

fn raise(py: Python<'_>, mistakes: &[Error]) -> PyResult<PyErr> {
    let class = py.import("tlplab.errors")?.getattr("ExperimentError")?;
    let exceptions = mistakes
        .iter()
        .map(|e| class.call1((&e.file, e.line, e.column, &e.key, &e.message, e.hint.as_deref())))
        .collect::<PyResult<Vec<_>>>()?;
    let (first, others) = exceptions.split_first().expect("an experiment is refused for a reason");
    first.setattr("others", PyTuple::new(py, others)?)?;
    Ok(PyErr::from_value(first.clone()))
}

/// An experiment whose fabric cannot be built.
pub(crate) fn build(py: Python<'_>, path: &str, failure: &RunError) -> PyErr {
    let mistake = Error {
        file: path.into(),
        line: 0,
        column: 0,
        key: String::new(),
        message: failure.to_string(),
        hint: None,
    };
    experiment(py, &[mistake])
}

/// A mistake in a NIC's file.
pub(crate) fn nic(py: Python<'_>, mistake: &tlplab_analytic::nic_file::Mistake) -> PyErr {
    let tlplab_analytic::nic_file::Mistake { file, line, column, key, message } = mistake.clone();
    experiment(py, &[Error { file, line, column, key, message, hint: None }])
}

/// A run that cannot go on.
pub(crate) fn run(py: Python<'_>, failure: &RunError) -> PyErr {
    run_error(py, &failure.to_string())
}

/// A device or driver in Python raised `cause`. Ctrl-C goes through as it is.
pub(crate) fn party(py: Python<'_>, cause: PyErr) -> PyErr {
    if cause.is_instance_of::<PyKeyboardInterrupt>(py) {
        return cause;
    }
    let value = cause.clone_ref(py).into_value(py); // which knows its traceback
    let said = py
        .import("tlplab.errors")
        .and_then(|module| module.call_method1("explain", (value,))?.extract::<String>())
        .unwrap_or_else(|_| cause.to_string());
    let error = run_error(py, &said);
    error.set_cause(py, Some(cause));
    error
}

pub(crate) fn run_error(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "RunError", message)
}

/// A request was not answered in time.
pub(crate) fn timed_out(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "RequestTimeoutError", message)
}

fn of_class(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py.import("tlplab.errors").and_then(|module| module.getattr(class)?.call1((message,)));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// A file that could not be read or written.
pub(crate) fn file(error: &tlplab_trace::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// A file that the user named: that it is not there, or is not what it should be, is the user's mistake, anything else the system's.
pub(crate) fn input(error: &tlplab_trace::Error) -> PyErr {
    use tlplab_trace::Error::{Content, Io};
    let mistaken = match error {
        Content { .. } => true,
        Io { source, .. } => {
            matches!(
                source.kind(),
                ErrorKind::IsADirectory | ErrorKind::NotFound | ErrorKind::PermissionDenied
            )
        }
    };
    if mistaken { PyValueError::new_err(error.to_string()) } else { file(error) }
}
