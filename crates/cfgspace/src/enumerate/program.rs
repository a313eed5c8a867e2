//! Writing the decisions into registers, and switching functions on.

use super::access::Access;
use super::examine::second_capabilities;
use super::hierarchy::{Completer, Function, Hierarchy, ProblemKind, Windows};
use super::{InterruptPolicy, MpsPolicy, Settings, slot};
use crate::interrupt::InterruptMode;
use crate::registers::{aer, ats, bridge_control, command, exponent, header, id, msi, msix, pcie};
use core::ops::RangeInclusive;
use tlplab_units::{Bdf, Mps};

/// Programs those functions that `wanted` names.
pub(super) async fn program(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    wanted: impl Fn(Bdf) -> bool,
) {
    let lowered = choose_payloads(settings, found, &wanted);
    route_intx(found);
    for index in lowered {
        lower_payload(access, &found.functions[index]).await;
    }
    for index in 0..found.functions.len() {
        if !wanted(found.functions[index].bdf) {
            continue;
        }
        let mrrs = access.max_read_request(found.functions[index].bdf).await;
        found.functions[index].mrrs = settings.mps.limit_reads(found.functions[index].mps, mrrs);
        write_bars(access, found, index).await;
        let function = &found.functions[index];
        if let Some(windows) = &function.bridge {
            write_windows(access, function.bdf, windows).await;
        }
        write_device_control(access, settings, function).await;
        suit_completer(access, function, found.completer(function)).await;
        report_errors(access, settings, function).await;
        if let Some((_, wire)) = function.intx {
            access.write_low_byte(function.bdf, header::INTERRUPT, wire).await;
        }
        enable_translation(access, settings, function).await;
        enable(access, settings, function).await;
        let (mode, intx_disable) = interrupts(access, settings, found, index).await;
        let function = &mut found.functions[index];
        function.interrupts = mode;
        if intx_disable {
            let on = access.read16(function.bdf, header::COMMAND).await;
            access.write16(function.bdf, header::COMMAND, on | command::INTX_DISABLE).await;
        }
        slot::watch(access, function).await;
    }
}

/// One payload size for everything below a root port, as any of it may talk to any other. Functions that were there before `wanted` were
/// added keep their size, unless a newcomer can only less: then all are lowered, and returned. Nothing is raised when a function goes.
fn choose_payloads(settings: &Settings, found: &mut Hierarchy, wanted: &impl Fn(Bdf) -> bool) -> Vec<usize> {
    let most = match settings.mps {
        MpsPolicy::Smallest => Mps::ALL[0],
        MpsPolicy::Common(most) => most,
        MpsPolicy::Upward => {
            choose_upward(found, wanted);
            return Vec::new();
        }
    };
    let mut roots: Vec<usize> = Vec::new(); // by function, the one on bus 0 above it
    let mut common = vec![most; found.functions.len()]; // by those
    for (index, parent) in found.parents().into_iter().enumerate() {
        let function = &found.functions[index];
        let root = parent.map_or(index, |parent| roots[parent]);
        let can = if wanted(function.bdf) { function.mps_supported } else { function.mps };
        // Devices on a bus of PCI have no such limit: their bridge cuts.
        if function.capability(id::PCIE).is_some() {
            common[root] = common[root].min(can);
        }
        roots.push(root);
    }
    let mut lowered = Vec::new();
    for (index, (function, root)) in found.functions.iter_mut().zip(roots).enumerate() {
        if !wanted(function.bdf) && function.mps > common[root] {
            lowered.push(index);
        }
        function.mps = function.mps.min(common[root]);
        if wanted(function.bdf) {
            function.mps = common[root];
        }
    }
    lowered
}

/// To each function of `wanted` what it and the bridges above it can, which come before it.
fn choose_upward(found: &mut Hierarchy, wanted: &impl Fn(Bdf) -> bool) {
    for (index, parent) in found.parents().into_iter().enumerate() {
        let above = parent.map_or(Mps::ALL[5], |parent| found.functions[parent].mps);
        let function = &mut found.functions[index];
        if wanted(function.bdf) && function.capability(id::PCIE).is_some() {
            function.mps = function.mps_supported.min(above);
        }
    }
}

/// Each bridge on the way rotates the wires by the number of the device below (PCIe 5.0 §2.2.8.1).
fn route_intx(found: &mut Hierarchy) {
    let parents = found.parents();
    for index in 0..found.functions.len() {
        let Some((pin, _)) = found.functions[index].intx else { continue };
        let mut wire = pin - 1;
        let mut at = Some(index);
        while let Some(function) = at {
            let above = parents[function].and_then(|bridge| found.functions[bridge].bridge.as_ref());
            // With function numbers of 8 bits the device is number 0.
            let ari = above.is_some_and(|windows| windows.ari_forwarding);
            let device = if ari { 0 } else { found.functions[function].bdf.device() };
            wire = (wire + device) % 4;
            at = parents[function];
        }
        found.functions[index].intx = Some((pin, wire));
    }
}

/// Writes base addresses, and checks that they stay.
async fn write_bars(access: &Access, found: &mut Hierarchy, index: usize) {
    let bdf = found.functions[index].bdf;
    for nth in 0..found.functions[index].base_addresses() {
        let bar = *found.functions[index].base_address(nth);
        let at = found.functions[index].register_of(bar.index);
        let address = bar.address.unwrap_or(0);
        access.write(bdf, at, address as u32).await;
        if bar.kind.is_wide() {
            access.write(bdf, at + 4, (address >> 32) as u32).await;
        }
        if bar.address.is_none() {
            continue;
        }
        let mut reads = u64::from(access.read(bdf, at).await);
        if bar.kind.is_wide() {
            reads |= u64::from(access.read(bdf, at + 4).await) << 32;
        }
        let told = if bar.kind.is_io() { 0b11 } else { 0xF };
        if reads & !told != address {
            found.functions[index].base_address(nth).address = None;
            found.problem(bdf, ProblemKind::BarUnkept { index: bar.index, found: reads });
        }
    }
}

/// Closes the windows of a bridge behind which there is nothing to be found.
pub(super) async fn close_windows(access: &Access, windows: Option<Windows>, bdf: Bdf) {
    if let Some(Windows { has_io, has_prefetchable, .. }) = windows {
        write_windows(access, bdf, &Windows { has_io, has_prefetchable, ..Windows::default() }).await;
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

/// Payload and read request sizes, 8 bits of tag, and reporting of errors.
async fn write_device_control(access: &Access, settings: &Settings, function: &Function) {
    let Some(at) = function.capability(id::PCIE) else { return };
    let old = access.read16(function.bdf, at + pcie::DEVICE_CONTROL).await;
    let sizes = exponent(function.mps.bytes()) << 5 | exponent(function.mrrs.bytes()) << 12;
    let reporting = if settings.error_reporting { 0b1111 } else { 0 };
    let tags = if function.extended_tag { pcie::EXTENDED_TAG_ENABLE } else { 0 };
    access.write16(function.bdf, at + pcie::DEVICE_CONTROL, old & !0x70EF | sizes | reporting | tags).await;
}

/// Tells an end point the capabilities of the root port above it: 10 bits of tag (PCIe 5.0 §2.2.6.2), and completions split at 128 bytes.
async fn suit_completer(access: &Access, function: &Function, completer: Completer) {
    let bdf = function.bdf;
    let Some(at) = function.capability(id::PCIE).filter(|_| function.bridge.is_none()) else { return };
    if completer.boundary_128 {
        let old = access.read16(bdf, at + pcie::LINK_CONTROL).await;
        access.write16(bdf, at + pcie::LINK_CONTROL, old | pcie::READ_BOUNDARY_128).await;
    }
    if completer.ten_bit_tag
        && function.extended_tag
        && second_capabilities(access, bdf, at).await & pcie::TEN_BIT_REQUESTER != 0
    {
        let old = access.read16(bdf, at + pcie::DEVICE_CONTROL_2).await;
        access.write16(bdf, at + pcie::DEVICE_CONTROL_2, old | pcie::TEN_BIT_ENABLE).await;
    }
}

/// Makes the payload of a function that is at work smaller, and leaves all else as it is.
async fn lower_payload(access: &Access, function: &Function) {
    let Some(at) = function.capability(id::PCIE) else { return };
    let old = access.read16(function.bdf, at + pcie::DEVICE_CONTROL).await;
    let size = exponent(function.mps.bytes()) << 5;
    access.write16(function.bdf, at + pcie::DEVICE_CONTROL, old & !0x00E0 | size).await;
}

/// Forgets the errors that looking for functions has made, so that the first to come is logged; a root port interrupts for all kinds if
/// errors are reported. Functions that can add and check end-to-end CRCs do so if that is wanted.
async fn report_errors(access: &Access, settings: &Settings, function: &Function) {
    access.write16(function.bdf, header::STATUS, 0xFFFF).await;
    if function.bridge.is_some() {
        access.write16(function.bdf, header::SECONDARY_STATUS, 0xFFFF).await;
    }
    if let Some(at) = function.capability(id::PCIE) {
        access.write16(function.bdf, at + pcie::DEVICE_STATUS, 0b1111).await;
    }
    let Some(at) = function.extended_capability(id::AER) else { return };
    access.write(function.bdf, at + aer::UNCORRECTABLE_STATUS, u32::MAX).await;
    access.write(function.bdf, at + aer::CORRECTABLE_STATUS, u32::MAX).await;
    if settings.ecrc {
        let control = access.read(function.bdf, at + aer::CONTROL).await;
        let enable = (control & aer::ECRC_CAPABLE) << 1;
        access.write(function.bdf, at + aer::CONTROL, control | enable).await;
    }
    if function.parent.is_none() && function.bridge.is_some() {
        access.write(function.bdf, at + aer::ROOT_STATUS, u32::MAX).await;
        let interrupts = if settings.error_reporting { 0b111 } else { 0 };
        access.write(function.bdf, at + aer::ROOT_COMMAND, interrupts).await;
    }
}

/// Lets an end point ask for translations, before it may ask for anything else.
async fn enable_translation(access: &Access, settings: &Settings, function: &Function) {
    if let Some(at) = function.extended_capability(id::ATS).filter(|_| settings.translation) {
        access.write16(function.bdf, at + ats::CONTROL, ats::ENABLE).await;
    }
}

/// Decoding, but only of spaces in which everything has an address, and bus mastering.
async fn enable(access: &Access, settings: &Settings, function: &Function) {
    let complete = |io: bool| {
        let mut bars = function.bars.iter().filter(|bar| bar.kind.is_io() == io).peekable();
        let has_any = bars.peek().is_some() || function.bridge.is_some();
        has_any && bars.all(|bar| bar.address.is_some())
    };
    let mut on = command::BUS_MASTER;
    on |= if settings.error_reporting { command::SERR } else { 0 };
    on |= if complete(true) { command::IO } else { 0 };
    on |= if complete(false) { command::MEMORY } else { 0 };
    access.write16(function.bdf, header::COMMAND, on).await;
    if function.bridge.is_some() && settings.error_reporting {
        access.write16(function.bdf, header::BRIDGE_CONTROL, bridge_control::SERR).await;
    }
}

/// Switches interrupts on as the policy says; the way chosen, and true if INTx must be off.
async fn interrupts(
    access: &Access,
    settings: &Settings,
    found: &mut Hierarchy,
    index: usize,
) -> (InterruptMode, bool) {
    let function = &found.functions[index];
    if settings.interrupts == InterruptPolicy::MsiX
        && let Some(at) = function.capability(id::MSIX)
    {
        match msix_table(access, function, at).await {
            Some(Table { base: Some(base), vectors }) => {
                fill_table(access, settings, function.bdf, base, vectors).await;
                access.write16(function.bdf, at + 2, (msix::ENABLE >> 16) as u16).await;
                return (InterruptMode::MsiX, true);
            }
            Some(_) => {} // its BAR has no address, which was said
            None => {
                let bdf = function.bdf;
                found.problem(bdf, ProblemKind::MsixTable);
            }
        }
    }
    let function = &found.functions[index];
    if settings.interrupts != InterruptPolicy::Intx
        && let Some(at) = function.capability(id::MSI)
    {
        enable_msi(access, settings, function.bdf, at).await;
        return (InterruptMode::Msi, true);
    }
    let mode = if function.intx.is_some() { InterruptMode::Intx } else { InterruptMode::Disabled };
    (mode, false)
}

/// The table of MSI-X.
struct Table {
    /// Its address, if its BAR has one.
    base: Option<u64>,
    vectors: u16,
}

/// The table of MSI-X; `None` if it is not within a BAR.
async fn msix_table(access: &Access, function: &Function, at: u16) -> Option<Table> {
    let table = access.read(function.bdf, at + msix::TABLE).await;
    let control = access.read(function.bdf, at).await;
    let vectors = (control >> 16 & 0x7FF) as u16 + 1;
    let (index, offset) = (table & 7, u64::from(table & !7));
    let bar = function.bars.iter().find(|bar| u32::from(bar.index) == index && !bar.kind.is_io())?;
    let holds = offset + 16 * u64::from(vectors) <= bar.size;
    holds.then(|| Table { base: bar.address.map(|base| base + offset), vectors })
}

async fn fill_table(access: &Access, settings: &Settings, bdf: Bdf, base: u64, vectors: u16) {
    for vector in 0..vectors {
        let (address, data) = (settings.message)(bdf, vector);
        let entry = base + 16 * u64::from(vector);
        for (offset, value) in [(0, address as u32), (4, (address >> 32) as u32), (8, data), (12, 0)] {
            access.write_memory(entry + offset, value).await;
        }
    }
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
    let asked_for = (control >> 17 & 7).min(5); // 32 vectors; more is reserved
    access.write16(bdf, at + 2, (asked_for << 4) as u16 | (msi::ENABLE >> 16) as u16).await;
}
