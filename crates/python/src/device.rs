//! A device written in Python: it is told of events, and its actions are carried out by whatever carries it.

use crate::party::{Party, to_bytes, to_payload, unknown};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tlplab_device::{Action, Event, InterruptMode, OpId, Refusal, ReplyToken};
use tlplab_fabric::{Driven, Fabric, NodeId};
use tlplab_nettlp::DevicePort;
use tlplab_units::Time;

/// The carrier of a device: a fabric, or a port of NetTLP.
pub(crate) trait Carrier {
    /// The kind of interrupt that software lets the device use.
    fn interrupt_mode(&mut self) -> InterruptMode;
    /// A number for an operation.
    fn next_op(&mut self) -> OpId;
    /// The device acts.
    fn act(&mut self, now: Time, action: Action);
}

/// A device in a fabric, where what it does happens now.
impl Carrier for (&mut Fabric, NodeId) {
    fn interrupt_mode(&mut self) -> InterruptMode {
        self.0.interrupt_mode(self.1)
    }
    fn next_op(&mut self) -> OpId {
        self.0.next_device_op(self.1)
    }
    fn act(&mut self, _: Time, action: Action) {
        self.0.device_acts(self.1, action);
    }
}

impl Carrier for DevicePort {
    fn interrupt_mode(&mut self) -> InterruptMode {
        DevicePort::interrupt_mode(self)
    }
    fn next_op(&mut self) -> OpId {
        DevicePort::next_op(self)
    }
    fn act(&mut self, now: Time, action: Action) {
        DevicePort::act(self, now, action);
    }
}

/// A `tlplab.device.DeviceParty`.
pub(crate) struct PythonDevice {
    party: Party,
    /// The kind of its interrupts, as last reported.
    interrupts: Option<InterruptMode>,
}

impl PythonDevice {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self { party: Party::new(object), interrupts: None }
    }

    /// Tells the device of an event and carries out what it does about it.
    pub(crate) fn tell(
        &mut self,
        py: Python<'_>,
        carrier: &mut impl Carrier,
        now: Time,
        event: Event,
    ) -> PyResult<()> {
        self.tell_interrupts(py, carrier, now)?;
        let event = match event {
            Event::Start => Some(("start",).into_pyobject(py)?),
            Event::MmioRead { bar, offset, bytes, reply } => {
                Some(("read", bar, offset, bytes, reply.0).into_pyobject(py)?)
            }
            Event::MmioWrite { bar, offset, data } => {
                Some(("write", bar, offset, to_bytes(py, &data)).into_pyobject(py)?)
            }
            Event::DmaReadDone { op, result } => self.party.over(py, op, result.map(Some))?,
            Event::DmaWriteAccepted { op } => self.party.over(py, op, Ok(None))?,
            Event::Timer { id } => Some(("over", id, py.None(), py.None()).into_pyobject(py)?),
            Event::Reset => {
                self.party.forget();
                Some(("reset",).into_pyobject(py)?)
            }
        };
        let Some(event) = event else { return Ok(()) };
        for (kind, details) in self.party.tell(now, event)? {
            let action = self.action(carrier, &kind, &details)?;
            carrier.act(now, action);
        }
        Ok(())
    }

    /// Tells the device how it may interrupt, if that has changed.
    fn tell_interrupts(&mut self, py: Python<'_>, carrier: &mut impl Carrier, now: Time) -> PyResult<()> {
        let mode = carrier.interrupt_mode();
        if self.interrupts.replace(mode) == Some(mode) {
            return Ok(());
        }
        let name = match mode {
            InterruptMode::MsiX => "msi-x",
            InterruptMode::Msi => "msi",
            InterruptMode::Intx => "intx",
            InterruptMode::Disabled => "disabled",
        };
        self.party.tell(now, ("interrupts", name).into_pyobject(py)?).map(drop)
    }

    fn action(
        &mut self,
        carrier: &mut impl Carrier,
        kind: &str,
        details: &Bound<'_, PyTuple>,
    ) -> PyResult<Action> {
        Ok(match kind {
            "dma_read" => {
                let (key, stream, address, bytes) = details.extract::<(u64, u16, u64, u64)>()?;
                let op = carrier.next_op();
                self.party.began(op, key);
                // A program may look at every byte, so its data travel even where loads move lengths only.
                Action::DmaRead { op, stream, address, bytes, carry: true }
            }
            "dma_write" => {
                let (key, stream, address, data) = details.extract::<(u64, u16, u64, Bound<'_, PyAny>)>()?;
                let op = carrier.next_op();
                self.party.began(op, key);
                Action::DmaWrite { op, stream, address, data: to_payload(&data)? }
            }
            "msix" => {
                let (stream, vector) = details.extract()?;
                Action::Msix { stream, vector }
            }
            "intx" => {
                let (stream, asserted) = details.extract()?;
                Action::Intx { stream, asserted }
            }
            "set_config" => {
                let (offset, data) = details.extract()?;
                Action::SetConfig { offset, data }
            }
            "refuse" => {
                let (token, status) = details.extract::<(u64, String)>()?;
                let refusal = match status.as_str() {
                    "ca" => Refusal::CompleterAbort,
                    "ur" => Refusal::UnsupportedRequest,
                    _ => return Err(PyValueError::new_err(format!("unknown refusal {status:?}"))),
                };
                Action::ReplyError { token: ReplyToken(token), refusal }
            }
            "reply" => {
                let (token, data) = details.extract::<(u64, Bound<'_, PyAny>)>()?;
                Action::Reply { token: ReplyToken(token), data: to_payload(&data)? }
            }
            "timer" => {
                let (id, at) = details.extract::<(u64, u64)>()?;
                Action::Timer { at: Time::from_fs(at), id }
            }
            _ => return Err(unknown(kind)),
        })
    }
}
