//! Writing down what was decided, and switching functions on.

use super::access::Access;
use super::hierarchy::{Function, Hierarchy, Windows};
use super::{InterruptPolicy, MpsPolicy, Settings};
use crate::interrupt::InterruptMode;
use crate::registers::{bridge_control, command, header, id, msi, msix, pcie};
use core::ops::RangeInclusive;
use tlplab_units::{Bdf, Mps};

/// Programs those functions that `wanted` names.
pub(super) async fn program(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    wanted: impl Fn(Bdf) -> bool,
) {
    choose_payloads(settings, found, &wanted);
    route_intx(found);
    for index in 0..found.functions.len() {
        if !wanted(found.functions[index].bdf) {
            continue;
        }
        let function = &mut found.functions[index];
        function.mrrs = (settings.mrrs)(function);
        write_bars(access, function).await;
        if let Some(windows) = &function.bridge {
            write_windows(access, function.bdf, windows).await;
        }
        write_device_control(access, function).await;
        if let Some((_, wire)) = function.intx {
            access.write8(function.bdf, header::INTERRUPT, wire).await;
        }
        enable(access, function).await;
        let (mode, intx_disable) = interrupts(access, settings, function).await;
        function.interrupts = mode;
        if intx_disable {
            let on = access.read16(function.bdf, header::COMMAND).await;
            access.write16(function.bdf, header::COMMAND, on | command::INTX_DISABLE).await;
        }
    }
}

/// One payload size for everything below a root port, as any of it may talk to any other. What is there already keeps its size when
/// something is added: a newcomer that can less is left with what it can.
fn choose_payloads(settings: &Settings, found: &mut Hierarchy, wanted: &impl Fn(Bdf) -> bool) {
    let roots: Vec<Bdf> = (0..found.functions.len()).map(|index| root_of(found, index)).collect();
    for index in 0..found.functions.len() {
        if !wanted(found.functions[index].bdf) {
            continue;
        }
        let common = match settings.mps {
            MpsPolicy::Smallest => Mps::ALL[0],
            MpsPolicy::Common(most) => {
                let below = (0..roots.len()).filter(|other| roots[*other] == roots[index]);
                let settled = |at: usize| {
                    let function = &found.functions[at];
                    if wanted(function.bdf) { function.mps_supported } else { function.mps }
                };
                below.map(settled).min().unwrap_or(Mps::ALL[0]).min(most)
            }
        };
        found.functions[index].mps = common;
    }
}

/// The function on bus 0 below which this one is.
fn root_of(found: &Hierarchy, index: usize) -> Bdf {
    let mut function = &found.functions[index];
    while let Some(parent) = function.parent.and_then(|bdf| found.function(bdf)) {
        function = parent;
    }
    function.bdf
}

/// Each bridge on the way rotates the wires by the device number of what is below (PCIe 5.0 §2.2.8.1, table 2-19).
fn route_intx(found: &mut Hierarchy) {
    for index in 0..found.functions.len() {
        let Some((pin, _)) = found.functions[index].intx else { continue };
        let mut wire = pin - 1;
        let mut at = &found.functions[index];
        while let Some(parent) = at.parent.and_then(|bdf| found.function(bdf)) {
            wire = (wire + at.bdf.device()) % 4;
            at = parent;
        }
        wire = (wire + at.bdf.device()) % 4;
        found.functions[index].intx = Some((pin, wire));
    }
}

async fn write_bars(access: &Access, function: &Function) {
    for bar in &function.bars {
        let address = bar.address.unwrap_or(0);
        let at = header::BARS + 4 * u16::from(bar.index);
        access.write(function.bdf, at, address as u32).await;
        if bar.kind.is_wide() {
            access.write(function.bdf, at + 4, (address >> 32) as u32).await;
        }
    }
}

/// A window that holds nothing is closed by a base above its limit.
async fn write_windows(access: &Access, bdf: Bdf, windows: &Windows) {
    let ends = |window: &Option<RangeInclusive<u64>>, closed: (u64, u64)| {
        window.as_ref().map_or(closed, |window| (*window.start(), *window.end()))
    };
    if windows.has_io {
        let (base, limit) = ends(&windows.io, (0xF000, 0x0FFF));
        access.write16(bdf, header::IO_WINDOW, (base >> 8 & 0xF0) as u16 | (limit & 0xF000) as u16).await;
        access.write(bdf, header::IO_UPPER, (base >> 16) as u32 | (limit >> 16 << 16) as u32).await;
    }
    let registers = |base: u64, limit: u64| (base >> 16 & 0xFFF0) as u32 | (limit & 0xFFF0_0000) as u32;
    let closed = (0xFFF0_0000, 0x000F_FFFF);
    let (base, limit) = ends(&windows.memory, closed);
    access.write(bdf, header::MEMORY_WINDOW, registers(base, limit)).await;
    if windows.has_prefetchable {
        let (base, limit) = ends(&windows.prefetchable, closed);
        access.write(bdf, header::PREFETCHABLE_WINDOW, registers(base, limit)).await;
        access.write(bdf, header::PREFETCHABLE_BASE_UPPER, (base >> 32) as u32).await;
        access.write(bdf, header::PREFETCHABLE_LIMIT_UPPER, (limit >> 32) as u32).await;
    }
}

/// Payload and read request sizes, and reporting of errors.
async fn write_device_control(access: &Access, function: &Function) {
    let Some(at) = function.capability(id::PCIE) else { return };
    let exponent = |bytes: u32| bytes.trailing_zeros() as u16 - 7;
    let old = access.read16(function.bdf, at + pcie::DEVICE_CONTROL).await;
    let sizes = exponent(function.mps.bytes()) << 5 | exponent(function.mrrs.bytes()) << 12;
    let reporting = 0b1111;
    access.write16(function.bdf, at + pcie::DEVICE_CONTROL, old & !0x70EF | sizes | reporting).await;
}

/// Decoding, but only of spaces in which everything has an address, and bus mastering.
async fn enable(access: &Access, function: &Function) {
    let complete = |io: bool| {
        let mut bars = function.bars.iter().filter(|bar| bar.kind.is_io() == io).peekable();
        let has_any = bars.peek().is_some() || function.bridge.is_some();
        has_any && bars.all(|bar| bar.address.is_some())
    };
    let mut on = command::BUS_MASTER | command::SERR;
    on |= if complete(true) { command::IO } else { 0 };
    on |= if complete(false) { command::MEMORY } else { 0 };
    access.write16(function.bdf, header::COMMAND, on).await;
    if function.bridge.is_some() {
        access.write16(function.bdf, header::BRIDGE_CONTROL, bridge_control::SERR).await;
    }
}

/// Switches interrupts on as the policy says; how, and whether INTx must be off.
async fn interrupts(access: &Access, settings: &Settings, function: &Function) -> (InterruptMode, bool) {
    if settings.interrupts == InterruptPolicy::MsiX
        && let Some(at) = function.capability(id::MSIX)
        && enable_msix(access, settings, function, at).await
    {
        return (InterruptMode::MsiX, true);
    }
    if settings.interrupts != InterruptPolicy::Intx
        && let Some(at) = function.capability(id::MSI)
    {
        enable_msi(access, settings, function.bdf, at).await;
        return (InterruptMode::Msi, true);
    }
    let mode = if function.intx.is_some() { InterruptMode::Intx } else { InterruptMode::Disabled };
    (mode, false)
}

/// Fills the table and switches it on; `false` if the table's BAR has no address.
async fn enable_msix(access: &Access, settings: &Settings, function: &Function, at: u16) -> bool {
    let table = access.read(function.bdf, at + msix::TABLE).await;
    let bar = function.bars.iter().find(|bar| u32::from(bar.index) == table & 7);
    let Some(base) = bar.and_then(|bar| bar.address) else { return false };
    let control = access.read(function.bdf, at).await;
    let vectors = (control >> 16 & 0x7FF) as u16 + 1;
    for vector in 0..vectors {
        let (address, data) = (settings.message)(function.bdf, vector);
        let entry = base + u64::from(table & !7) + 16 * u64::from(vector);
        for (offset, value) in [(0, address as u32), (4, (address >> 32) as u32), (8, data), (12, 0)] {
            access.write_memory(entry + offset, value).await;
        }
    }
    access.write16(function.bdf, at + 2, (msix::ENABLE >> 16) as u16).await;
    true
}

async fn enable_msi(access: &Access, settings: &Settings, bdf: Bdf, at: u16) {
    let control = access.read(bdf, at).await;
    let (address, data) = (settings.message)(bdf, 0);
    access.write(bdf, at + msi::ADDRESS, address as u32).await;
    let mut data_at = at + msi::ADDRESS + 4;
    if control & msi::WIDE != 0 {
        access.write(bdf, data_at, (address >> 32) as u32).await;
        data_at += 4;
    }
    access.write16(bdf, data_at, data as u16).await;
    let asked_for = control >> 17 & 7;
    access.write16(bdf, at + 2, (asked_for << 4) as u16 | (msi::ENABLE >> 16) as u16).await;
}
