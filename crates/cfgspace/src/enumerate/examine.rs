//! One function: its capabilities, the sizes of its base addresses, the spaces it can forward, and its virtual functions.

use super::access::Access;
use super::hierarchy::{
    BarFound, CapabilityFound, Completer, Function, Hierarchy, ProblemKind, VirtualFunctions, Windows,
};
use crate::header::BarKind;
use crate::interrupt::InterruptMode;
use crate::registers::{header, id, pcie, sriov, status};
use tlplab_units::{Bdf, Mps, Mrrs};

/// Looks at a function, with decoding off; its index.
pub(super) async fn examine(
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
        virtual_functions: None,
        capabilities,
        mps_supported: Mps::ALL[0],
        mps: Mps::ALL[0],
        mrrs: Mrrs::ALL[2],
        interrupts: InterruptMode::Disabled,
        intx: None,
        extended_tag: false,
        completer: Completer::default(),
    };
    if let Some(at) = function.capability(id::PCIE) {
        let capable = access.read(bdf, at + pcie::DEVICE_CAPABILITIES).await;
        function.mps_supported = Mps::ALL[(capable as usize & 7).min(5)];
        function.extended_tag = capable & pcie::EXTENDED_TAG != 0;
        if is_bridge && parent.is_none() {
            function.completer = examine_completer(access, bdf, at).await;
        }
    }
    let count = if is_bridge { 2 } else { 6 };
    function.bars = size_bars(access, found, bdf, Bars { at: header::BARS, first: 0, count }).await;
    if is_bridge {
        function.bridge = Some(examine_bridge(access, &function).await);
    }
    let pin = (access.read(bdf, header::INTERRUPT).await >> 8) as u8;
    function.intx = (1..=4).contains(&pin).then_some((pin, 0));
    found.functions.push(function);
    found.functions.len() - 1
}

/// A root port's side of tags and read completions.
async fn examine_completer(access: &Access, bdf: Bdf, at: u16) -> Completer {
    let boundary_128 = access.read16(bdf, at + pcie::LINK_CONTROL).await & pcie::READ_BOUNDARY_128 != 0;
    let ten_bit_tag = second_capabilities(access, bdf, at).await & pcie::TEN_BIT_COMPLETER != 0;
    Completer { ten_bit_tag, boundary_128 }
}

/// Device Capabilities 2; 0 where the structure at `at` is of the version that ends before it.
pub(super) async fn second_capabilities(access: &Access, bdf: Bdf, at: u16) -> u32 {
    let second = access.read16(bdf, at + pcie::CAPABILITIES).await & 0xF >= 2;
    if second { access.read(bdf, at + pcie::DEVICE_CAPABILITIES_2).await } else { 0 }
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

/// The place of base addresses: in the header, or in the SR-IOV capability.
#[derive(Clone, Copy)]
struct Bars {
    at: u16,
    /// The number of the first, as in [`BarFound::index`].
    first: u8,
    count: u8,
}

/// Base addresses tell their size when ones are written to them (PCIe 5.0 §7.5.1.2.1).
async fn size_bars(access: &Access, found: &mut Hierarchy, bdf: Bdf, place: Bars) -> Vec<BarFound> {
    let mut bars = Vec::new();
    let mut next = 0;
    while next < place.count {
        let (index, at) = (place.first + next, place.at + 4 * u16::from(next));
        next += 1;
        let low = probe(access, bdf, at).await;
        if low == 0 {
            continue;
        }
        let kind = BarKind::from_bits(low).filter(|kind| !kind.is_wide() || next < place.count);
        let Some(kind) = kind.filter(|kind| !kind.is_io() || place.first == 0) else {
            found.problem(bdf, ProblemKind::BarSize { index, mask: low.into() });
            continue;
        };
        let mut mask = u64::from(low & if kind.is_io() { !0b11 } else { !0xF });
        if kind.is_wide() {
            mask |= u64::from(probe(access, bdf, at + 4).await) << 32;
            next += 1;
        } else {
            mask |= 0xFFFF_FFFF << 32;
        }
        if kind.is_io() && mask & 0xFFFF_0000 == 0 {
            mask |= 0xFFFF_0000; // a function may decode 16 bits of I/O address only
        }
        let size = mask.wrapping_neg();
        if mask as u32 == 0 && !kind.is_wide() || !size.is_power_of_two() {
            found.problem(bdf, ProblemKind::BarSize { index, mask });
            continue;
        }
        bars.push(BarFound { index, kind, size, address: None });
    }
    bars
}

async fn probe(access: &Access, bdf: Bdf, at: u16) -> u32 {
    access.write(bdf, at, u32::MAX).await;
    let mask = access.read(bdf, at).await;
    access.write(bdf, at, 0).await;
    mask
}

/// The spaces that a bridge can forward, and its slot for cards that come and go, if it has one.
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

/// Looks at the control of virtual functions, which stay off: their number, their IDs, and the sizes of their base addresses
/// (PCIe 5.0 §9.2.1). `ari`: function numbers below the port above have 8 bits.
pub(super) async fn examine_virtual(access: &Access, found: &mut Hierarchy, index: usize, ari: bool) {
    let function = &found.functions[index];
    let bdf = function.bdf;
    let Some(at) = function.extended_capability(id::SRIOV) else { return };
    let total = (access.read(bdf, at + sriov::INITIAL).await >> 16) as u16;
    if total == 0 {
        return;
    }
    access.write16(bdf, at + sriov::CONTROL, if ari { sriov::ARI_HIERARCHY } else { 0 }).await;
    // Offset and stride may depend on the number of virtual functions.
    access.write16(bdf, at + sriov::COUNT, total).await;
    let ids = access.read(bdf, at + sriov::OFFSET).await;
    access.write16(bdf, at + sriov::COUNT, 0).await;
    let (offset, stride) = (ids & 0xFFFF, ids >> 16);
    if offset == 0 || stride == 0 && total > 1 {
        return found.problem(bdf, ProblemKind::VirtualIds { offset: offset as u16, stride: stride as u16 });
    }
    let last = u32::from(bdf.0) + offset + stride * (u32::from(total) - 1);
    let Ok(last) = u16::try_from(last) else {
        return found.problem(bdf, ProblemKind::NoVirtualBus);
    };
    access.write(bdf, at + sriov::PAGE_SIZE, 1).await; // 4 KiB
    let bars =
        size_bars(access, found, bdf, Bars { at: at + sriov::BARS, first: BarFound::VIRTUAL, count: 6 });
    let bars = bars.await;
    found.functions[index].virtual_functions =
        Some(VirtualFunctions { total, first: Bdf(bdf.0 + offset as u16), last: Bdf(last), bars });
}
