//! Devices from libraries with the interface of `crates/device-library/include/tlplab_device.h`.

use std::collections::BTreeMap;
use std::path::Path;
use tlplab_device::Device;
use tlplab_device_library::LibraryDevice;
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::{Error, Experiment};

/// The devices from libraries that an experiment names, by their names, for
/// [`Inputs::devices`](tlplab_experiment::run::Inputs::devices).
///
/// # Errors
/// The first library that cannot be used, where the experiment names it: it is not there, it is none, or it says what it does not like.
pub fn load(experiment: &Experiment) -> Result<BTreeMap<String, Box<dyn Device>>, Error> {
    let mut devices: BTreeMap<String, Box<dyn Device>> = BTreeMap::new();
    for device in &experiment.devices {
        let ModelSpec::Library(spec) = &device.model else { continue };
        let loaded = LibraryDevice::open(Path::new(&spec.file), &spec.parameters);
        let loaded = loaded.map_err(|why| unusable(experiment, &device.name, &spec.file, why))?;
        devices.insert(device.name.clone(), Box::new(loaded));
    }
    Ok(devices)
}

/// The reason that a device's library cannot be used, with the place where the experiment names it.
pub(crate) fn unusable(experiment: &Experiment, device: &str, file: &str, why: String) -> Error {
    let named = experiment.files.iter().find(|file| file.is_named_by(device, "model"));
    match named {
        Some(named) => named.missing(&why),
        None => {
            Error { file: file.to_owned(), line: 0, column: 0, key: String::new(), message: why, hint: None }
        }
    }
}
