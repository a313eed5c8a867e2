//! Devices on a `[bus.NAME]`.

use crate::error::{Error, Problem};
use crate::tables::{BUS, ONLY_ON_BUS};
use crate::view::View;
use tlplab_fabric::config::{BusCompletion, BusConfig, BusDevice, BusMode, DeviceConfig, LinkConfig};

/// A bus, of its table.
pub(crate) fn config(name: &str, view: &View<'_>, uplink: LinkConfig) -> Result<BusConfig, Error> {
    BUS.read_into(view, BusConfig::new(name, uplink, BusMode::PciX133))
}

/// Says something of a device that is on a bus, and nothing of others.
pub(crate) fn of(device: &mut DeviceConfig, say: impl FnOnce(&mut BusDevice)) {
    if let Some(bus) = &mut device.bus {
        say(bus);
    }
}

/// Only PCI delays, only PCI-X splits.
pub(crate) fn check_device(said: &View<'_>, device: &DeviceConfig, mode: BusMode) -> Result<(), Error> {
    let wrong = match device.bus.map(|bus| bus.completion) {
        Some(BusCompletion::Delayed) if mode.is_pci_x() => Some("on PCI-X use \"split\" instead"),
        Some(BusCompletion::Split) if !mode.is_pci_x() => Some("on PCI use \"delayed\" instead"),
        Some(_) | None => None,
    };
    if let (Some(why), Some(said)) = (wrong, said.get("completion")) {
        let problem = Problem::new(format!("\"{}\" does not exist on a bus of {}", said.text(), mode.name()));
        return Err(said.problem(problem.hint(why)));
    }
    match said.get("ats") {
        Some(ats) => {
            Err(ats.key_error(Problem::new("a device on a parallel bus cannot request translations")))
        }
        None => Ok(()),
    }
}

/// Only a device on a bus can have some keys.
pub(crate) fn check_no_bus(said: &View<'_>) -> Result<(), Error> {
    match ONLY_ON_BUS.iter().find_map(|key| said.get(key)) {
        Some(key) => {
            let problem = Problem::new("only a device on a bus has this key");
            Err(key.key_error(problem.hint("name a [bus.NAME] in under, and leave link out")))
        }
        None => Ok(()),
    }
}
