//! The identity of a device in Python: `python/tlplab/identity.py` has checked that every number fits its register.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tlplab_cfgspace::{Acs, AcsControls, Capability, ExtendedCapability, Resizable, ResizableBar};
use tlplab_device::{BarSpec, Identity};
use tlplab_experiment::outside::OutsideDevice;

/// `tlplab.identity.Identity`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Said<'py> {
    ids: (u16, u16, u8, u32),
    subsystem: (u16, u16),
    msix: u16,
    msi: u8,
    intx: bool,
    bars: Vec<(u8, u64, bool, bool, bool)>,
    capabilities: Vec<(String, Option<u16>, Bound<'py, PyTuple>)>,
}

/// Raises `ValueError` for a device that cannot be.
#[pyfunction]
pub(crate) fn check_device(identity: Said<'_>) -> PyResult<()> {
    convert(&identity).map(drop)
}

/// The identity of a `DeviceParty`. Raises `ValueError` if it is impossible.
pub(crate) fn of(party: &Bound<'_, PyAny>) -> PyResult<OutsideDevice> {
    convert(&party.call_method0("identity")?.extract()?)
}

fn convert(said: &Said<'_>) -> PyResult<OutsideDevice> {
    let (vendor, device, revision, class) = said.ids;
    let bar =
        |&(index, size, prefetchable, is_64_bit, io)| BarSpec { index, size, prefetchable, is_64_bit, io };
    let mut outside = OutsideDevice::new(Identity {
        revision,
        subsystem: said.subsystem,
        bars: said.bars.iter().map(bar).collect(),
        msix_vectors: said.msix,
        msi_vectors: said.msi,
        intx: said.intx,
        ..Identity::new(vendor, device, class)
    });
    for (name, at, fields) in &said.capabilities {
        match extended(name, fields)? {
            Some(capability) => outside.extended.push((*at, capability)),
            None => outside.capabilities.push((*at, Capability::Vendor(fields.extract::<(Vec<u8>,)>()?.0))),
        }
    }
    outside.check().map_err(PyValueError::new_err)?;
    Ok(outside)
}

/// An extended capability; `None` for the one kind that is none.
fn extended(name: &str, fields: &Bound<'_, PyTuple>) -> PyResult<Option<ExtendedCapability>> {
    Ok(Some(match name {
        "Vendor" => return Ok(None),
        "VendorExtended" => {
            let (id, bytes, revision) = fields.extract()?;
            ExtendedCapability::VendorSpecific { id, revision, bytes }
        }
        "SerialNumber" => ExtendedCapability::SerialNumber(fields.extract::<(u64,)>()?.0),
        "Acs" => Acs::new(AcsControls::from_bits(fields.extract::<(u8,)>()?.0)).into(),
        "Ats" => ExtendedCapability::Ats { queue_depth: fields.extract::<(u8,)>()?.0 },
        "Pasid" => ExtendedCapability::Pasid { width: fields.extract::<(u8,)>()?.0 },
        "Ltr" => ExtendedCapability::Ltr,
        "ResizableBar" => {
            let (bars,) = fields.extract::<(Vec<(u8, u32, u8)>,)>()?;
            let bars = bars.into_iter().map(|(bar, sizes, size)| Resizable { bar, sizes, size }).collect();
            ExtendedCapability::ResizableBar(ResizableBar { bars })
        }
        _ => return Err(PyTypeError::new_err(format!("unknown capability {name:?}"))),
    }))
}
