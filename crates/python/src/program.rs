//! A driver written in Python behind the host's side of the contract.

use crate::party::{Failure, Party, to_payload, unknown};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use scoped_tls_hkt::scoped_thread_local;
use std::collections::BTreeMap;
use tlplab_device::{HostContext, HostEvent, HostMemory, HostProgram};
use tlplab_units::Time;

scoped_thread_local! {
    /// Host memory, while a driver handles an event.
    static mut MEMORY: for<'a> &'a mut (dyn HostMemory + 'a)
}

/// Host memory as Python sees it; `tlplab.driver.Memory`.
#[pyclass(frozen)]
pub(crate) struct Memory;

fn with_memory<T>(work: impl FnOnce(&mut dyn HostMemory) -> T) -> PyResult<T> {
    if !MEMORY.is_set() {
        return Err(PyRuntimeError::new_err("host memory can be used only while the simulation runs the driver"));
    }
    Ok(MEMORY.with(|memory| work(memory)))
}

#[pymethods]
impl Memory {
    fn read<'py>(&self, py: Python<'py>, address: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut data = vec![0; length];
        with_memory(|memory| memory.read(address, &mut data))?;
        Ok(PyBytes::new(py, &data))
    }

    fn write(&self, address: u64, data: &[u8]) -> PyResult<()> {
        with_memory(|memory| memory.write(address, data))
    }

    fn alloc(&self, length: u64, align: u64) -> PyResult<u64> {
        if !align.is_power_of_two() {
            let message = format!("memory cannot be aligned to {align} B; use a power of two");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        with_memory(|memory| memory.alloc(length, align))?
            .map_err(|error| PyMemoryError::new_err(error.to_string()))
    }
}

/// A `tlplab.driver.DriverParty` and the device it drives.
pub(crate) struct PythonProgram {
    party: Party,
    device_name: String,
    /// The device's object, if it is written in Python, too: its registers have names.
    device: Option<Py<PyAny>>,
    device_index: Option<usize>,
}

impl PythonProgram {
    pub(crate) fn new(
        device_name: &str,
        object: Py<PyAny>,
        device: Option<Py<PyAny>>,
        failure: Failure,
    ) -> Self {
        let party = Party::new(&format!("driver of {device_name}"), object, failure);
        Self { party, device_name: device_name.into(), device, device_index: None }
    }

    fn attach(&mut self, py: Python<'_>, cx: &HostContext<'_>) -> PyResult<()> {
        let (index, info) = cx.device(&self.device_name).ok_or_else(|| {
            PyRuntimeError::new_err(format!("the host found no device {:?}", self.device_name))
        })?;
        self.device_index = Some(index);
        let bars: BTreeMap<usize, (u64, u64)> =
            info.bars.iter().enumerate().filter_map(|(n, bar)| bar.map(|bar| (n, bar))).collect();
        let arguments = (&info.name, info.ids, bars, self.device.as_ref());
        self.party.object(py).call_method1("attach", arguments).map(drop)
    }

    fn tell(&mut self, py: Python<'_>, cx: &mut HostContext<'_>, event: HostEvent) -> PyResult<()> {
        let event = match event {
            HostEvent::Start => {
                self.attach(py, cx)?;
                Some(("start",).into_pyobject(py)?)
            }
            HostEvent::MmioReadDone { op, result } => self.party.over(py, op, result.map(Some))?,
            HostEvent::MmioWriteAccepted { op } => self.party.over(py, op, Ok(None))?,
            HostEvent::Interrupt { device, vector } => (Some(device) == self.device_index)
                .then(|| ("interrupt", vector).into_pyobject(py))
                .transpose()?,
            HostEvent::Timer { id } => Some(("over", id, py.None(), py.None()).into_pyobject(py)?),
        };
        let Some(event) = event else { return Ok(()) };
        let now = cx.now();
        let actions = MEMORY.set(cx.memory(), || self.party.tell(now, event))?;
        for (kind, details) in actions {
            self.act(cx, &kind, &details)?;
        }
        Ok(())
    }

    fn act(&mut self, cx: &mut HostContext<'_>, kind: &str, details: &Bound<'_, PyTuple>) -> PyResult<()> {
        match kind {
            "mmio_read" => {
                let (key, stream, address, bytes) = details.extract::<(u64, u16, u64, u64)>()?;
                let op = cx.mmio_read_register(stream, address, bytes);
                self.party.began(op, key);
            }
            "mmio_write" => {
                let (key, stream, address, data) = details.extract::<(u64, u16, u64, Bound<'_, PyAny>)>()?;
                let op = cx.mmio_write(stream, address, to_payload(&data)?);
                self.party.began(op, key);
            }
            "timer" => {
                let (key, at) = details.extract::<(u64, u64)>()?;
                cx.timer(Time::from_fs(at), key);
            }
            "finished" => cx.finished(),
            _ => return Err(unknown(kind)),
        }
        Ok(())
    }
}

impl HostProgram for PythonProgram {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        Python::attach(|py| {
            if let Err(error) = self.tell(py, cx, event) {
                cx.fault(self.party.explain(py, error));
            }
        });
    }
}
