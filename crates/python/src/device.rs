//! A device written in Python behind the device contract.

use crate::party::{Failure, Party, to_bytes, to_payload, unknown};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tlplab_device::{BarSpec, Context, Device, Event, Identity, OpId, ReplyToken};
use tlplab_units::Time;

/// A `tlplab.device.DeviceParty`.
pub(crate) struct PythonDevice {
    party: Party,
    identity: Identity,
}

type Ids = (u16, u16, u8, u32);
type Bar = (u8, u64, bool, bool);

impl PythonDevice {
    /// A device whose object is a `DeviceParty`.
    ///
    /// # Errors
    /// The class's identity is no identity; the exception says why.
    pub(crate) fn new(py: Python<'_>, name: &str, object: Py<PyAny>, failure: Failure) -> PyResult<Self> {
        let (ids, msix_vectors, bars): (Ids, u16, Vec<Bar>) =
            object.bind(py).call_method0("identity")?.extract()?;
        let bar = |(index, size, prefetchable, is_64_bit)| BarSpec { index, size, prefetchable, is_64_bit };
        let (vendor, device, revision, class) = ids;
        let bars = bars.into_iter().map(bar).collect();
        let identity = Identity { vendor, device, class, revision, bars, msix_vectors };
        Ok(Self { party: Party::new(name, object, failure), identity })
    }

    fn tell(&mut self, py: Python<'_>, cx: &mut Context<'_>, event: Event) -> PyResult<()> {
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
        for (kind, details) in self.party.tell(cx.now(), event)? {
            self.act(cx, &kind, &details)?;
        }
        Ok(())
    }

    fn act(&mut self, cx: &mut Context<'_>, kind: &str, details: &Bound<'_, PyTuple>) -> PyResult<()> {
        match kind {
            "dma_read" => {
                let (key, stream, address, bytes) = details.extract::<(u64, u16, u64, u64)>()?;
                // A program may look at every byte, so its data travel even where loads move lengths only.
                let op: OpId = cx.dma_read_control(stream, address, bytes);
                self.party.began(op, key);
            }
            "dma_write" => {
                let (key, stream, address, data) = details.extract::<(u64, u16, u64, Bound<'_, PyAny>)>()?;
                let op = cx.dma_write(stream, address, to_payload(&data)?);
                self.party.began(op, key);
            }
            "msix" => {
                let (stream, vector) = details.extract()?;
                cx.msix(stream, vector);
            }
            "reply" => {
                let (token, data) = details.extract::<(u64, Bound<'_, PyAny>)>()?;
                cx.reply(ReplyToken(token), to_payload(&data)?);
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

impl Device for PythonDevice {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        Python::attach(|py| {
            if let Err(error) = self.tell(py, cx, event) {
                cx.fault(self.party.explain(py, error));
            }
        });
    }
}
