//! Devices and drivers in Python that live in a simulated machine.

use crate::device::PythonDevice;
use crate::driver::{Memory, PythonDriver};
use crate::{error, identity};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use tlplab_device::{Event, HostEvent};
use tlplab_experiment::Experiment;
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::outside::{OutsideDevice, ResidentFailure, Residents};
use tlplab_experiment::result::Waiting;
use tlplab_experiment::run::Run;
use tlplab_fabric::{Fabric, NodeId, Told};
use tlplab_units::Time;

/// Devices, each with its place, and drivers.
pub(crate) struct PythonResidents {
    pub(crate) devices: Vec<(NodeId, PythonDevice)>,
    pub(crate) drivers: Vec<PythonDriver>,
}

/// The `DeviceParty` and `DriverParty` objects of a device, and what it says of itself.
#[derive(Default)]
pub(crate) struct Objects {
    device: Option<Py<PyAny>>,
    identity: Option<OutsideDevice>,
    driver: Option<Py<PyAny>>,
}

impl Objects {
    /// The identity of the device, if it is in Python.
    pub(crate) fn identity(&self) -> Option<OutsideDevice> {
        self.identity.clone()
    }
}

impl PythonResidents {
    /// Gives each party its place in the fabric.
    pub(crate) fn place(py: Python<'_>, run: &mut Run, parties: BTreeMap<String, Objects>) -> Self {
        let programs = run.drivers().to_vec();
        let (mut devices, mut drivers) = (Vec::new(), Vec::new());
        for (name, objects) in parties {
            if let Some(object) = objects.driver
                && let Some(program) = programs.iter().position(|device| *device == name)
            {
                let device = objects.device.as_ref().and_then(|party| party.getattr(py, "device").ok());
                drivers.push(PythonDriver::new(object, program, &name, device));
            }
            if let Some(object) = objects.device
                && let Some(node) = run.fabric().node(&name)
            {
                devices.push((node, PythonDevice::new(object)));
            }
        }
        Self { devices, drivers }
    }

    /// Tells everyone what happened to them.
    pub(crate) fn tell(&mut self, run: &mut Run, told: Told) -> Result<(), ResidentFailure> {
        for (now, node, event) in told.devices {
            self.tell_device(run.fabric(), now, node, event)?;
        }
        for (now, program, event) in told.programs {
            self.tell_program(run.fabric(), now, program, event)?;
        }
        Ok(())
    }

    /// The operations that the drivers still wait for.
    pub(crate) fn waits(&self, py: Python<'_>) -> PyResult<Vec<Waiting>> {
        let waits = self.drivers.iter().map(|driver| driver.waits(py)).collect::<PyResult<Vec<_>>>()?;
        Ok(waits.concat())
    }
}

/// The failure of a resident, as an exception.
pub(crate) fn into_python(failure: ResidentFailure) -> PyErr {
    match failure.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

impl Residents for PythonResidents {
    fn tell_device(
        &mut self,
        fabric: &mut Fabric,
        now: Time,
        node: NodeId,
        event: Event,
    ) -> Result<(), ResidentFailure> {
        let Some((_, device)) = self.devices.iter_mut().find(|(place, _)| *place == node) else {
            return Ok(());
        };
        let mut carrier = (fabric, node);
        Python::attach(|py| {
            device.tell(py, &mut carrier, now, event).map_err(|cause| error::party(py, cause))
        })?;
        Ok(())
    }

    fn tell_program(
        &mut self,
        fabric: &mut Fabric,
        now: Time,
        program: usize,
        event: HostEvent,
    ) -> Result<(), ResidentFailure> {
        let Some(driver) = self.drivers.iter_mut().find(|driver| driver.program() == program) else {
            return Ok(());
        };
        Python::attach(|py| driver.tell(py, fabric, now, event).map_err(|cause| error::party(py, cause)))?;
        Ok(())
    }
}

/// The Python objects of each device: those given, or those that its files hold.
pub(crate) fn load_objects(
    py: Python<'_>,
    experiment: &Experiment,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<BTreeMap<String, Objects>> {
    let loader = py.import("tlplab.loader")?;
    let refuse = |device: &str, key: &str, failure: PyErr| {
        let place = experiment.files.iter().find(|file| file.is_named_by(device, key));
        match place {
            Some(file) => error::experiment(py, &[file.missing(&failure.value(py).to_string())]),
            None => failure,
        }
    };
    let mut parties = BTreeMap::new();
    for spec in &experiment.devices {
        let mut objects = Objects::default();
        let [device, driver] = match given.map(|given| given.get_item(&spec.name)).transpose()?.flatten() {
            Some(pair) => {
                let pair = pair.cast::<PyTuple>()?;
                [pair.get_item(0)?, pair.get_item(1)?]
                    .map(|object| Some(object).filter(|object| !object.is_none()))
            }
            None => [None, None],
        };
        if let Some(device) = device {
            let device = loader.call_method1("carry", (device,))?;
            objects.identity = Some(identity::of(&device)?);
            objects.device = Some(device.unbind());
        } else if let ModelSpec::Python { object, parameters } = &spec.model {
            let parameters = serde_json::json!(parameters).to_string();
            let loaded = loader.call_method1("load_device", (&object.file, &object.name, parameters));
            let device = loaded.map_err(|e| refuse(&spec.name, "model", e))?;
            objects.identity = Some(identity::of(&device).map_err(|e| refuse(&spec.name, "model", e))?);
            objects.device = Some(device.unbind());
        }
        if let Some(named) = &spec.driver {
            objects.driver = Some(match driver {
                Some(driver) => loader.call_method1("drive", (driver, Memory))?.unbind(),
                None => {
                    let loaded = loader.call_method1("load_driver", (&named.file, &named.name, Memory));
                    loaded.map_err(|e| refuse(&spec.name, "driver", e))?.unbind()
                }
            });
        }
        parties.insert(spec.name.clone(), objects);
    }
    Ok(parties)
}
