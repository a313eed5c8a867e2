//! A Python object that is told of events and answers with actions: `tlplab.tasks.Party`.
//!
//! Events and actions are tuples whose first item is their kind; `python/tlplab/device.py` and `driver.py` hold the other half.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::BTreeMap;
use tlplab_device::{DmaError, OpId, Payload};
use tlplab_units::Time;

/// A party and its operations under way.
pub(crate) struct Party {
    object: Py<PyAny>,
    /// Our operations, and the keys under which Python knows them.
    keys: BTreeMap<OpId, u64>,
}

/// An action: its kind and the rest of its tuple.
pub(crate) type Action<'py> = (String, Bound<'py, PyTuple>);

impl Party {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self { object, keys: BTreeMap::new() }
    }

    /// The Python object.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    /// An operation has begun whose end Python waits for under `key`.
    pub(crate) fn began(&mut self, op: OpId, key: u64) {
        self.keys.insert(op, key);
    }

    /// All operations are gone.
    pub(crate) fn forget(&mut self) {
        self.keys.clear();
    }

    /// The event that tells that an operation is over; `None` if nobody began it.
    pub(crate) fn over<'py>(
        &mut self,
        py: Python<'py>,
        op: OpId,
        result: Result<Option<Payload>, DmaError>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(key) = self.keys.remove(&op) else { return Ok(None) };
        let (data, error) = match result {
            Ok(data) => (data.map(|payload| to_bytes(py, &payload)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        ("over", key, data, error).into_pyobject(py).map(Some)
    }

    /// Tells of an event; what the party does about it.
    pub(crate) fn tell<'py>(&self, now: Time, event: Bound<'py, PyTuple>) -> PyResult<Vec<Action<'py>>> {
        let py = event.py();
        let actions = self.object.bind(py).call_method1("handle", (now.as_fs(), event))?;
        actions.try_iter()?.map(|action| split(&action?)).collect()
    }
}

fn split<'py>(action: &Bound<'py, PyAny>) -> PyResult<Action<'py>> {
    let action = action.cast::<PyTuple>()?;
    Ok((action.get_item(0)?.extract()?, action.get_slice(1, action.len())))
}

/// An action that the other half should not have sent.
pub(crate) fn unknown(kind: &str) -> PyErr {
    PyTypeError::new_err(format!("unknown action {kind:?}"))
}

/// The bytes of a payload; of a length-only one, as many zeros.
pub(crate) fn to_bytes<'py>(py: Python<'py>, payload: &Payload) -> Bound<'py, PyBytes> {
    match payload.bytes() {
        Some(bytes) => PyBytes::new(py, bytes),
        None => PyBytes::new(py, &vec![0; payload.len() as usize]),
    }
}

/// A payload with the bytes of a Python object.
pub(crate) fn to_payload(data: &Bound<'_, PyAny>) -> PyResult<Payload> {
    Ok(Payload::from(data.cast::<PyBytes>()?.as_bytes()))
}
