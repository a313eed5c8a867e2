//! A driver written in Python: the host's events are told to it, its actions are injected.

use crate::party::{Party, to_payload, unknown};
use crate::simulation::named;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use scoped_tls_hkt::scoped_thread_local;
use std::collections::BTreeMap;
use tlplab_device::{HostAction, HostEvent, HostMemory, ecam_address, io_address};
use tlplab_experiment::result::{WaitedFor, Waiting};
use tlplab_fabric::{Driven, Fabric};
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
        return Err(PyRuntimeError::new_err(
            "host memory can be used only while the simulation runs the driver",
        ));
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
            return Err(PyValueError::new_err(format!(
                "memory cannot be aligned to {align} B; use a power of two"
            )));
        }
        with_memory(|memory| memory.alloc(length, align))?
            .map_err(|error| PyMemoryError::new_err(error.to_string()))
    }
}

/// A `tlplab.driver.DriverParty` and its place in the fabric.
pub(crate) struct PythonDriver {
    party: Party,
    /// Its number among the host's programs.
    program: usize,
    device: String,
    /// The device's object, if it is written in Python, too: its registers have names.
    device_object: Option<Py<PyAny>>,
    /// The index of the device that the host found.
    index: Option<usize>,
}

impl PythonDriver {
    pub(crate) fn new(
        object: Py<PyAny>,
        program: usize,
        device: &str,
        device_object: Option<Py<PyAny>>,
    ) -> Self {
        let party = Party::new(object);
        Self { party, program, device: device.into(), device_object, index: None }
    }

    pub(crate) fn program(&self) -> usize {
        self.program
    }

    /// The operation that it still waits for; none when it has returned.
    pub(crate) fn waits(&self, py: Python<'_>) -> PyResult<Vec<Waiting>> {
        let waits: Vec<(String, String, String)> = self.party.object(py).call_method0("waits")?.extract()?;
        let waiting = |(operation, what, place): (String, String, String)| {
            let operation = named(WaitedFor::ALL, WaitedFor::token, &operation)?;
            Ok(Waiting { device: self.device.clone(), operation, what, place })
        };
        waits.into_iter().map(waiting).collect()
    }

    fn attach(&mut self, py: Python<'_>, fabric: &Fabric) -> PyResult<()> {
        let (index, info) =
            fabric.devices().iter().enumerate().find(|(_, info)| info.name == self.device).ok_or_else(
                || PyRuntimeError::new_err(format!("the host found no device {:?}", self.device)),
            )?;
        self.index = Some(index);
        // No memory of a device is so low, but all of I/O space, which the processor sees elsewhere.
        let seen = |base: u64| u16::try_from(base).map_or(base, io_address);
        let bar = |(n, bar): (usize, &Option<(u64, u64)>)| bar.map(|(base, size)| (n, (seen(base), size)));
        let bars: BTreeMap<usize, (u64, u64)> = info.bars.iter().enumerate().filter_map(bar).collect();
        let config = ecam_address(info.id, 0);
        let arguments = (&info.name, info.ids, bars, config, self.device_object.as_ref());
        self.party.object(py).call_method1("attach", arguments).map(drop)
    }

    /// Tells the driver of an event and carries out what it does about it.
    pub(crate) fn tell(
        &mut self,
        py: Python<'_>,
        fabric: &mut Fabric,
        now: Time,
        event: HostEvent,
    ) -> PyResult<()> {
        let event = match event {
            HostEvent::Start => {
                self.attach(py, fabric)?;
                Some(("start",).into_pyobject(py)?)
            }
            HostEvent::MmioReadDone { op, result } => self.party.over(py, op, result.map(Some))?,
            HostEvent::MmioWriteAccepted { op } => self.party.over(py, op, Ok(None))?,
            HostEvent::Interrupt { device, vector } => {
                (Some(device) == self.index).then(|| ("interrupt", vector).into_pyobject(py)).transpose()?
            }
            HostEvent::PortInterrupt { .. } | HostEvent::Message { .. } | HostEvent::Wire { .. } => None,
            HostEvent::Timer { id } => Some(("over", id, py.None(), py.None()).into_pyobject(py)?),
        };
        let Some(event) = event else { return Ok(()) };
        let actions = MEMORY.set(fabric.host_memory(), || self.party.tell(now, event))?;
        for (kind, details) in actions {
            let action = self.action(fabric, &kind, &details)?;
            fabric.host_acts(self.program, action);
        }
        Ok(())
    }

    fn action(
        &mut self,
        fabric: &mut Fabric,
        kind: &str,
        details: &Bound<'_, PyTuple>,
    ) -> PyResult<HostAction> {
        Ok(match kind {
            "mmio_read" => {
                let (key, stream, address, bytes) = details.extract::<(u64, u16, u64, u64)>()?;
                let op = fabric.next_host_op(self.program);
                self.party.began(op, key);
                HostAction::MmioRead { op, stream, address, bytes, carry: true }
            }
            "mmio_write" => {
                let (key, stream, address, data) = details.extract::<(u64, u16, u64, Bound<'_, PyAny>)>()?;
                let op = fabric.next_host_op(self.program);
                self.party.began(op, key);
                HostAction::MmioWrite { op, stream, address, data: to_payload(&data)? }
            }
            "timer" => {
                let (id, at) = details.extract::<(u64, u64)>()?;
                HostAction::Timer { at: Time::from_fs(at), id }
            }
            "finished" => HostAction::Finished,
            _ => return Err(unknown(kind)),
        })
    }
}
