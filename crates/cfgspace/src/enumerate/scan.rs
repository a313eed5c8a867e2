//! The search for functions: bus numbers depth first, functions, and those that are left out.

use super::access::Access;
use super::examine::{examine, examine_virtual, second_capabilities};
use super::hierarchy::{Function, Hierarchy, ProblemKind};
use super::program::close_windows;
use super::{Settings, slot};
use crate::PortType;
use crate::registers::{header, id, pcie};
use std::pin::Pin;
use tlplab_units::{Bdf, Duration};

/// Asking again takes at least this long, so that asking comes to an end.
const SHORTEST_RETRY: Duration = Duration::from_us(1);

/// Everything below bus 0.
pub(super) async fn scan_root(access: &Access, settings: &Settings, found: &mut Hierarchy) {
    scan_bus(access, settings, found, Bus { number: 0, last: 255, parent: None, devices: 32 }).await;
}

/// Everything below one bridge, within the bus numbers it has.
pub(super) async fn scan_below(access: &Access, settings: &Settings, found: &mut Hierarchy, bridge: usize) {
    let function = &found.functions[bridge];
    let Some(windows) = &function.bridge else { return };
    let (number, last, parent) = (windows.secondary, windows.subordinate, function.bdf);
    let devices = devices_below(access, function).await;
    scan_bus(access, settings, found, Bus { number, last, parent: Some(parent), devices }).await;
}

/// A bus to look at.
struct Bus {
    number: u8,
    /// The highest number that it and the buses below may use.
    last: u8,
    parent: Option<Bdf>,
    devices: u8,
}

/// Looks at a bus and below; the highest bus number in use.
fn scan_bus<'a>(
    access: &'a Access,
    settings: &'a Settings,
    found: &'a mut Hierarchy,
    bus: Bus,
) -> Pin<Box<dyn Future<Output = u8> + Send + 'a>> {
    Box::pin(async move {
        let mut highest = bus.number;
        for device in 0..bus.devices {
            highest = scan_device(access, settings, found, &bus, device, highest).await;
        }
        highest
    })
}

/// The functions that a device may have besides function 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    /// Functions 1 to 7.
    UpTo7,
    /// The functions that the list in the ARI capabilities names, up to 255.
    Listed,
}

/// Looks at the functions of a device and below; the highest bus number in use.
async fn scan_device(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    bus: &Bus,
    device: u8,
    mut highest: u8,
) -> u8 {
    let mut others = Others::None;
    let mut number = 0;
    loop {
        let bdf = Bdf(u16::from(bus.number) << 8 | u16::from(device << 3 | number));
        let seen = scan_function(access, settings, found, bdf, bus.parent).await;
        if number == 0 {
            // Without function 0 there is no device.
            let Some((index, multi_function)) = seen else { return highest };
            others = match ari_forwarding(access, found, index, bus).await {
                true => Others::Listed,
                false if multi_function => Others::UpTo7,
                false => Others::None,
            };
        }
        if let Some((index, _)) = seen {
            examine_virtual(access, found, index, others == Others::Listed).await;
            highest = virtual_buses(found, index, bus, highest);
            if found.functions[index].bridge.is_some() {
                highest = number_buses(access, settings, found, index, (highest, bus.last)).await;
            }
        }
        number = match (others, seen) {
            (Others::UpTo7, _) if number < 7 => number + 1,
            (Others::Listed, Some((index, _))) => {
                match next_function(access, &found.functions[index]).await {
                    next if next > number => next,
                    _ => return highest, // 0 ends the list; one that leads back is broken
                }
            }
            _ => return highest,
        };
    }
}

/// Looks at one function; its index, and true if it says that there are others.
async fn scan_function(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    bdf: Bdf,
    parent: Option<Bdf>,
) -> Option<(usize, bool)> {
    let ids = identify(access, settings, found, bdf).await?;
    let kind = (access.read(bdf, header::HEADER_TYPE).await >> 16) as u8;
    if kind & 0x7F > 1 {
        found.problem(bdf, ProblemKind::HeaderType(kind));
        return None;
    }
    let index = examine(access, found, bdf, parent, ids, kind & 0x7F == 1).await;
    Some((index, kind & 0x80 != 0))
}

/// Lets the port above forward to functions 8 to 255, if both it and function 0 below can (PCIe 5.0 §6.13).
async fn ari_forwarding(access: &Access, found: &mut Hierarchy, function_0: usize, bus: &Bus) -> bool {
    let listed = found.functions[function_0].extended_capability(id::ARI).is_some();
    let port = bus.parent.filter(|_| bus.devices == 1).and_then(|bdf| found.index_of(bdf));
    let Some(port) = port.map(|index| &mut found.functions[index]) else { return false };
    let (bdf, at) = (port.bdf, port.capability(id::PCIE));
    let (Some(at), Some(windows)) = (at, &mut port.bridge) else { return false };
    if !listed && !windows.ari_forwarding {
        return false;
    }
    let capable = second_capabilities(access, bdf, at).await & u32::from(pcie::ARI_FORWARDING) != 0;
    windows.ari_forwarding = listed && capable;
    if capable {
        let bit = if listed { pcie::ARI_FORWARDING } else { 0 };
        let old = access.read16(bdf, at + pcie::DEVICE_CONTROL_2).await;
        access.write16(bdf, at + pcie::DEVICE_CONTROL_2, old & !pcie::ARI_FORWARDING | bit).await;
    }
    windows.ari_forwarding
}

/// The next function of the list in the ARI capabilities; 0 if there is none.
async fn next_function(access: &Access, function: &Function) -> u8 {
    let Some(at) = function.extended_capability(id::ARI) else { return 0 };
    (access.read(function.bdf, at + 4).await >> 8) as u8
}

/// Keeps bus numbers for virtual functions whose IDs reach beyond their bus; the highest bus number in use.
fn virtual_buses(found: &mut Hierarchy, index: usize, bus: &Bus, highest: u8) -> u8 {
    let function = &found.functions[index];
    let Some(last) = function.virtual_functions.as_ref().map(|functions| functions.last.bus()) else {
        return highest;
    };
    let taken = |bridge: &Function| bridge.bridge.as_ref().is_some_and(|w| (1..=last).contains(&w.secondary));
    let free = last == bus.number || last <= bus.last && !found.children(bus.parent).any(taken);
    if !free {
        let bdf = function.bdf;
        found.functions[index].virtual_functions = None;
        found.problem(bdf, ProblemKind::NoVirtualBus);
        return highest;
    }
    highest.max(last)
}

/// Vendor and device ID of a function, as soon as it is ready; `None` if there is none, or it is not ready within the time limit.
async fn identify(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    bdf: Bdf,
) -> Option<(u16, u16)> {
    let mut waited = Duration::ZERO;
    loop {
        let Some(value) = access.try_read(bdf, header::VENDOR).await else {
            found.problem(bdf, ProblemKind::NoAnswer);
            return None;
        };
        match value as u16 {
            0xFFFF | 0x0000 => return None,
            0x0001 if waited >= settings.retry_limit => {
                found.problem(bdf, ProblemKind::NeverReady);
                return None;
            }
            0x0001 => {
                let interval = settings.retry_interval.max(SHORTEST_RETRY);
                access.wait(interval).await;
                waited += interval;
            }
            vendor => return Some((vendor, (value >> 16) as u16)),
        }
    }
}

/// Gives a bridge the next bus number, looks below, and closes the range; the highest bus number in use.
async fn number_buses(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    index: usize,
    (highest, last): (u8, u8),
) -> u8 {
    let bdf = found.functions[index].bdf;
    if highest == last {
        found.problem(bdf, ProblemKind::NoBusNumber);
        close_windows(access, found.functions[index].bridge.take(), bdf).await;
        access.write(bdf, header::BUS_NUMBERS, 0).await;
        return highest;
    }
    let secondary = highest + 1;
    let numbers = |subordinate: u8| u32::from_le_bytes([bdf.bus(), secondary, subordinate, 0]);
    access.write(bdf, header::BUS_NUMBERS, numbers(last)).await;
    let devices = devices_below(access, &found.functions[index]).await;
    if let Some(at) = found.functions[index].capability(id::PCIE) {
        let kind = access.read(bdf, at).await >> 20 & 0xF;
        if kind == PortType::RootPort as u32 {
            access.write16(bdf, at + pcie::ROOT_CONTROL, pcie::RRS_VISIBILITY).await;
        }
    }
    slot::acknowledge(access, &found.functions[index]).await;
    let bus = Bus { number: secondary, last, parent: Some(bdf), devices };
    let mut subordinate = scan_bus(access, settings, found, bus).await;
    if found.functions[index].bridge.as_ref().is_some_and(|w| w.hot_plug) {
        let had = found.removed.get(&bdf).map_or(0, |windows| windows.subordinate - windows.secondary);
        let kept = had.max(settings.hot_plug_buses);
        subordinate = subordinate.max(secondary.saturating_add(kept)).min(last);
    }
    access.write(bdf, header::BUS_NUMBERS, numbers(subordinate)).await;
    if let Some(windows) = &mut found.functions[index].bridge {
        (windows.secondary, windows.subordinate) = (secondary, subordinate);
    }
    subordinate
}

/// A link has one device at its end; the bus inside a switch, or of plain PCI, can have 32 (PCIe 5.0 §7.3.1).
async fn devices_below(access: &Access, function: &Function) -> u8 {
    let Some(at) = function.capability(id::PCIE) else { return 32 };
    let kind = (access.read(function.bdf, at).await >> 20) as u8 & 0xF;
    if PortType::from_bits(kind).is_some_and(PortType::is_downstream) { 1 } else { 32 }
}
