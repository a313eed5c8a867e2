//! `[bus.NAME]`, and devices on a bus.

use crate::error::{Error, Problem};
use crate::tables::{self, ONLY_ON_BUS};
use crate::view::View;
use tlplab_fabric::config::{
    BridgeConfig, BusCompletion, BusConfig, BusDevice, BusMode, BusWidth, DeviceSelect, LinkConfig,
};
use tlplab_units::Duration;

/// The mode of a bus, also where its table does not say it. (A word that is none was refused with the table.)
pub(crate) fn mode(bus: &View<'_>) -> BusMode {
    bus.choice("mode").ok().flatten().unwrap_or(BusMode::PciX133)
}

/// A bus, of its table with all defaults.
pub(crate) fn config(name: &str, view: &View<'_>, uplink: LinkConfig) -> Result<BusConfig, Error> {
    let width = view.choice("width")?.unwrap_or(BusWidth::Bits32);
    let said = view.get("bridge").unwrap_or_else(|| view.clone());
    let node = view.get("bridge").map_or_else(|| crate::tree::Node::table(view.node.at), |b| b.node.clone());
    let filled = said.with(&node).filled(&tables::BRIDGE)?;
    let bridge = said.with(&filled);
    let number = |key| bridge.integer(key).unwrap_or_default();
    let bridge = BridgeConfig {
        latency: bridge.duration("latency").unwrap_or(Duration::ZERO),
        synchronisation: bridge.duration("synchronisation").unwrap_or(Duration::ZERO),
        overhead: number("overhead") as u16,
        device_select: device_select(&bridge)?,
        posted: number("posted") as u16,
        reads: number("reads") as u16,
    };
    Ok(BusConfig { width, bridge, ..BusConfig::new(name, uplink, mode(view)) })
}

fn device_select(view: &View<'_>) -> Result<DeviceSelect, Error> {
    Ok(view.choice("devsel")?.unwrap_or(DeviceSelect::Medium))
}

/// What a device is on its bus; `said` is its table as it stands in the file, `view` with all defaults.
pub(crate) fn device(said: &View<'_>, view: &View<'_>, mode: BusMode) -> Result<BusDevice, Error> {
    let completion = view.choice("completion")?.unwrap_or(BusCompletion::Immediate);
    let wrong = match completion {
        BusCompletion::Delayed if mode.is_pci_x() => {
            Some("on PCI-X a device splits, where one of PCI delays")
        }
        BusCompletion::Split if !mode.is_pci_x() => Some("on PCI a device delays, where one of PCI-X splits"),
        _ => None,
    };
    if let (Some(why), Some(said)) = (wrong, said.get("completion")) {
        let problem = Problem::new(format!("\"{}\" does not exist on a bus of {}", said.text(), mode.name()));
        return Err(said.problem(problem.hint(why)));
    }
    Ok(BusDevice {
        device_select: device_select(view)?,
        wait_states: view.integer("wait_states").unwrap_or_default() as u16,
        completion,
        overhead: view.integer("overhead").unwrap_or_default() as u16,
    })
}

/// Only a device on a bus can have some keys.
pub(crate) fn check_no_bus(said: &View<'_>) -> Result<(), Error> {
    match ONLY_ON_BUS.iter().find_map(|key| said.get(key)) {
        Some(key) => {
            let problem = Problem::new("only a device on a bus has this");
            Err(key.key_error(problem.hint("name a [bus.NAME] in under, and leave link out")))
        }
        None => Ok(()),
    }
}
