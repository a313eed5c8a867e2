//! Work without the interpreter that tells how far it is, and ends at Ctrl-C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// From one look at Ctrl-C to the next.
const LOOK: Duration = Duration::from_millis(50);

/// Periodic reports of the part that is done.
pub(crate) struct Watch {
    progress: Py<PyAny>,
    looked: Instant,
    raised: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(progress: Py<PyAny>) -> Self {
        Self { progress, looked: Instant::now(), raised: None }
    }

    /// So much is done; true if the work is to go on.
    pub(crate) fn goes_on(&mut self, done: impl for<'py> IntoPyObject<'py>) -> bool {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            let tell =
                |py: Python<'_>| py.check_signals().and_then(|()| self.progress.call1(py, (done,)).map(drop));
            self.raised = Python::attach(tell).err();
        }
        self.raised.is_none()
    }

    /// The exception that `progress` raised; Ctrl-C has only ended the work.
    pub(crate) fn into_error(self, py: Python<'_>) -> Option<PyErr> {
        self.raised.filter(|raised| !raised.is_instance_of::<PyKeyboardInterrupt>(py))
    }
}
