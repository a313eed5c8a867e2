//! Who is there: bus numbers depth first, identities, capabilities, sizes of base addresses.

use super::Settings;
use super::access::Access;
use super::hierarchy::{BarFound, CapabilityFound, Function, Hierarchy, ProblemKind, Windows};
use crate::PortType;
use crate::header::BarKind;
use crate::interrupt::InterruptMode;
use crate::registers::{header, id, pcie, status};
use std::pin::Pin;
use tlplab_units::{Bdf, Duration, Mps, Mrrs};

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
    /// The highest number that it and what is below may use.
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
            let mut functions = 1;
            let mut function = 0;
            while function < functions {
                let bdf = Bdf(u16::from(bus.number) << 8 | u16::from(device) << 3 | function);
                function += 1;
                let Some(ids) = identify(access, settings, found, bdf).await else {
                    if functions == 1 {
                        break; // without function 0 there is no device
                    }
                    continue;
                };
                let kind = (access.read(bdf, header::HEADER_TYPE).await >> 16) as u8;
                if kind & 0x7F > 1 {
                    found.problem(bdf, ProblemKind::HeaderType(kind));
                    continue;
                }
                if kind & 0x80 != 0 {
                    functions = 8;
                }
                let index = examine(access, found, bdf, bus.parent, ids, kind & 0x7F == 1).await;
                if found.functions[index].bridge.is_some() {
                    highest = number_buses(access, settings, found, index, (highest, bus.last)).await;
                }
            }
        }
        highest
    })
}

/// Vendor and device ID of who is there, however long it takes until it is ready.
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
                access.wait(settings.retry_interval).await;
                waited += settings.retry_interval.max(Duration::from_fs(1));
            }
            vendor => return Some((vendor, (value >> 16) as u16)),
        }
    }
}

/// Looks at a function, with decoding off; its index.
async fn examine(
    access: &Access,
    found: &mut Hierarchy,
    bdf: Bdf,
    parent: Option<Bdf>,
    ids: (u16, u16),
    is_bridge: bool,
) -> usize {
    access.write16(bdf, header::COMMAND, 0).await;
    let class = access.read(bdf, header::CLASS).await >> 8;
    let capabilities = capabilities(access, found, bdf).await;
    let mut function = Function {
        bdf,
        parent,
        ids,
        class,
        bridge: None,
        bars: Vec::new(),
        capabilities,
        mps_supported: Mps::ALL[0],
        mps: Mps::ALL[0],
        mrrs: Mrrs::ALL[2],
        interrupts: InterruptMode::Disabled,
        intx: None,
    };
    if let Some(at) = function.capability(id::PCIE) {
        let capable = access.read(bdf, at + pcie::DEVICE_CAPABILITIES).await as usize & 7;
        function.mps_supported = Mps::ALL[capable.min(5)];
    }
    function.bars = size_bars(access, found, bdf, if is_bridge { 2 } else { 6 }).await;
    if is_bridge {
        function.bridge = Some(examine_bridge(access, &function).await);
    }
    let pin = (access.read(bdf, header::INTERRUPT).await >> 8) as u8;
    function.intx = (1..=4).contains(&pin).then_some((pin, 0));
    found.functions.push(function);
    found.functions.len() - 1
}

/// Both chains.
async fn capabilities(access: &Access, found: &mut Hierarchy, bdf: Bdf) -> Vec<CapabilityFound> {
    let mut chain: Vec<CapabilityFound> = Vec::new();
    let has_chain = access.read16(bdf, header::STATUS).await & status::CAPABILITIES != 0;
    let mut at = if has_chain { access.read(bdf, header::CAPABILITIES).await as u16 & 0xFC } else { 0 };
    while at != 0 {
        let value = access.read(bdf, at).await;
        if at < 0x40 || value == u32::MAX || chain.iter().any(|c| c.offset == at) {
            found.problem(bdf, ProblemKind::CapabilityChain(at));
            break;
        }
        chain.push(CapabilityFound { id: value as u16 & 0xFF, extended: false, offset: at });
        at = (value >> 8) as u16 & 0xFC;
    }
    let is_pcie = chain.iter().any(|c| c.id == u16::from(id::PCIE));
    at = if is_pcie { 0x100 } else { 0 };
    while at != 0 {
        let value = access.read(bdf, at).await;
        if at == 0x100 && (value == 0 || value == u32::MAX) {
            break; // there are none
        }
        if at < 0x100 || value == u32::MAX || chain.iter().any(|c| c.offset == at) {
            found.problem(bdf, ProblemKind::CapabilityChain(at));
            break;
        }
        chain.push(CapabilityFound { id: value as u16, extended: true, offset: at });
        at = (value >> 20) as u16 & 0xFFC;
    }
    chain
}

/// Base addresses tell their size when ones are written to them (PCIe 5.0 §7.5.1.2.1).
async fn size_bars(access: &Access, found: &mut Hierarchy, bdf: Bdf, count: u8) -> Vec<BarFound> {
    let mut bars = Vec::new();
    let mut index = 0;
    while index < count {
        let this = index;
        index += 1;
        let at = header::BARS + 4 * u16::from(this);
        let low = probe(access, bdf, at).await;
        if low == 0 {
            continue;
        }
        let Some(kind) = BarKind::from_bits(low).filter(|kind| !kind.is_wide() || this + 1 < count) else {
            found.problem(bdf, ProblemKind::BarSize { index: this, mask: low.into() });
            continue;
        };
        let mut mask = u64::from(low & if kind.is_io() { !0b11 } else { !0xF });
        if kind.is_wide() {
            mask |= u64::from(probe(access, bdf, at + 4).await) << 32;
            index += 1;
        } else {
            mask |= 0xFFFF_FFFF << 32;
        }
        if kind.is_io() && mask & 0xFFFF_0000 == 0 {
            mask |= 0xFFFF_0000; // a function may decode 16 bits of I/O address only
        }
        let size = mask.wrapping_neg();
        if mask as u32 == 0 && !kind.is_wide() || !size.is_power_of_two() {
            found.problem(bdf, ProblemKind::BarSize { index: this, mask });
            continue;
        }
        bars.push(BarFound { index: this, kind, size, address: None });
    }
    bars
}

async fn probe(access: &Access, bdf: Bdf, at: u16) -> u32 {
    access.write(bdf, at, u32::MAX).await;
    let mask = access.read(bdf, at).await;
    access.write(bdf, at, 0).await;
    mask
}

/// What a bridge can forward, and whether cards may come below it.
async fn examine_bridge(access: &Access, function: &Function) -> Windows {
    let bdf = function.bdf;
    access.write16(bdf, header::IO_WINDOW, 0x00F0).await;
    let has_io = access.read16(bdf, header::IO_WINDOW).await & 0xF0 != 0;
    access.write(bdf, header::PREFETCHABLE_WINDOW, 0x0000_FFF0).await;
    let has_prefetchable = access.read(bdf, header::PREFETCHABLE_WINDOW).await & 0xFFFF == 0xFFF1;
    let mut hot_plug = false;
    if let Some(at) = function.capability(id::PCIE)
        && access.read16(bdf, at + pcie::CAPABILITIES).await >> 8 & 1 == 1
    {
        hot_plug = access.read(bdf, at + pcie::SLOT_CAPABILITIES).await >> 6 & 1 == 1;
    }
    Windows { has_io, has_prefetchable, hot_plug, ..Windows::default() }
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
        found.functions[index].bridge = None;
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
    let bus = Bus { number: secondary, last, parent: Some(bdf), devices };
    let mut subordinate = scan_bus(access, settings, found, bus).await;
    if found.functions[index].bridge.as_ref().is_some_and(|w| w.hot_plug) {
        subordinate = subordinate.max(secondary.saturating_add(settings.hot_plug_buses)).min(last);
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
