//! A device written in Python: the fabric's events are told to it, its actions are injected.

use crate::party::{Party, to_bytes, to_payload, unknown};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tlplab_device::{Action, BarSpec, Event, Identity, ReplyToken};
use tlplab_fabric::{Fabric, NodeId};
use tlplab_units::Time;

/// A `tlplab.device.DeviceParty` and its place in the fabric.
pub(crate) struct PythonDevice {
    party: Party,
    node: NodeId,
}

type Ids = (u16, u16, u8, u32);
type Bar = (u8, u64, bool, bool);

/// What a `DeviceParty` says of itself.
pub(crate) fn identity(object: &Bound<'_, PyAny>) -> PyResult<Identity> {
    let (ids, msix_vectors, bars): (Ids, u16, Vec<Bar>) = object.call_method0("identity")?.extract()?;
    let bar =
        |(index, size, prefetchable, is_64_bit)| BarSpec { index, size, prefetchable, is_64_bit, io: false };
    let (vendor, device, revision, class) = ids;
    let bars = bars.into_iter().map(bar).collect();
    Ok(Identity { revision, bars, msix_vectors, ..Identity::new(vendor, device, class) })
}

impl PythonDevice {
    pub(crate) fn new(object: Py<PyAny>, node: NodeId) -> Self {
        Self { party: Party::new(object), node }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// Tells the device of an event and carries out what it does about it.
    pub(crate) fn tell(
        &mut self,
        py: Python<'_>,
        fabric: &mut Fabric,
        now: Time,
        event: Event,
    ) -> PyResult<()> {
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
            let action = self.action(fabric, &kind, &details)?;
            fabric.inject(self.node, action);
        }
        Ok(())
    }

    fn action(&mut self, fabric: &mut Fabric, kind: &str, details: &Bound<'_, PyTuple>) -> PyResult<Action> {
        Ok(match kind {
            "dma_read" => {
                let (key, stream, address, bytes) = details.extract::<(u64, u16, u64, u64)>()?;
                let op = fabric.next_device_op(self.node);
                self.party.began(op, key);
                // A program may look at every byte, so its data travel even where loads move lengths only.
                Action::DmaRead { op, stream, address, bytes, carry: true }
            }
            "dma_write" => {
                let (key, stream, address, data) = details.extract::<(u64, u16, u64, Bound<'_, PyAny>)>()?;
                let op = fabric.next_device_op(self.node);
                self.party.began(op, key);
                Action::DmaWrite { op, stream, address, data: to_payload(&data)? }
            }
            "msix" => {
                let (stream, vector) = details.extract()?;
                Action::Msix { stream, vector }
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
