//! Slots into which cards come and from which they go (PCIe 5.0 §6.7): watching them, and serving their events.

use super::access::Access;
use super::hierarchy::{Function, Hierarchy};
use super::{Settings, scan_again};
use crate::registers::{id, pcie};
use tlplab_units::Bdf;

const EVENTS: u16 = pcie::PRESENCE_CHANGED | pcie::DLL_CHANGED;
const INTERRUPTS: u16 = pcie::PRESENCE_CHANGED | pcie::DLL_CHANGED_ENABLE | pcie::HOT_PLUG_INTERRUPT;
/// A slot in which something happens that often while it is looked into is broken, and left alone.
const ROUNDS: usize = 100;

/// The offset of the PCI Express capability, with the registers of the slot below a bridge; `None` if no card can come there.
fn registers(function: &Function) -> Option<u16> {
    function.bridge.as_ref().filter(|windows| windows.hot_plug)?;
    function.capability(id::PCIE)
}

/// Clears the events of the slot, before the functions below it are looked at.
pub(super) async fn acknowledge(access: &Access, function: &Function) {
    if let Some(at) = registers(function) {
        access.write16(function.bdf, at + pcie::SLOT_STATUS, EVENTS).await;
    }
}

/// Lets the slot interrupt; at once, if something has happened since it was looked at.
pub(super) async fn watch(access: &Access, function: &Function) {
    if let Some(at) = registers(function) {
        let control = access.read16(function.bdf, at + pcie::SLOT_CONTROL).await;
        access.write16(function.bdf, at + pcie::SLOT_CONTROL, control | INTERRUPTS).await;
    }
}

/// Something has happened in the slot below `bridge`, or may have: functions that were there are gone, and those there now are configured.
pub(super) async fn serve(access: &Access, settings: &Settings, found: &mut Hierarchy, bridge: Bdf) {
    let Some(at) = found.function(bridge).and_then(registers) else { return };
    for _ in 0..ROUNDS {
        let status = access.read16(bridge, at + pcie::SLOT_STATUS).await;
        if status == u16::MAX || status & EVENTS == 0 {
            return; // the bridge is gone itself, or all has been seen
        }
        // Cleared before the link is looked at, so that nothing that happens from now on is missed.
        access.write16(bridge, at + pcie::SLOT_STATUS, EVENTS).await;
        if access.read16(bridge, at + pcie::LINK_STATUS).await & pcie::DLL_ACTIVE != 0 {
            scan_again(access, settings, found, bridge).await;
        } else {
            found.remove_below(bridge);
        }
    }
}
