//! Where everything goes: addresses for base addresses, and windows that hold them. Nothing is accessed here.

use super::Settings;
use super::hierarchy::{Hierarchy, ProblemKind};
use tlplab_units::Bdf;

/// The three spaces in which addresses are given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pool {
    Io,
    Memory,
    Prefetchable,
}

/// Something that needs a range of addresses.
#[derive(Clone, Copy)]
struct Need {
    size: u64,
    align: u64,
    function: usize,
    /// Its BAR, as an index of the list; `None`: the window of the bridge.
    bar: Option<usize>,
}

/// Gives everything its place.
pub(super) fn assign(settings: &Settings, found: &mut Hierarchy) {
    for (pool, range) in
        [(Pool::Io, settings.io), (Pool::Memory, settings.memory), (Pool::Prefetchable, settings.high_memory)]
    {
        place(settings, found, None, pool, range);
    }
}

/// Gives everything below `bridge` its place, within the windows that it has.
pub(super) fn assign_below(settings: &Settings, found: &mut Hierarchy, bridge: Bdf) {
    for pool in [Pool::Io, Pool::Memory, Pool::Prefetchable] {
        let window = found.function(bridge).and_then(|f| f.bridge.as_ref()).and_then(|windows| match pool {
            Pool::Io => windows.io.clone(),
            Pool::Memory => windows.memory.clone(),
            Pool::Prefetchable => windows.prefetchable.clone(),
        });
        let range = window.map_or((0, 0), |window| (*window.start(), *window.end() + 1));
        place(settings, found, Some(bridge), pool, range);
    }
}

/// Does what needs addresses of this pool have the way to it free? Prefetchable memory goes high only if every bridge above forwards it.
fn reaches(found: &Hierarchy, function: usize, capable: impl Fn(&super::Windows) -> bool) -> bool {
    let mut above = found.functions[function].parent;
    while let Some(bridge) = above.and_then(|bdf| found.function(bdf)) {
        if !bridge.bridge.as_ref().is_some_and(&capable) {
            return false;
        }
        above = bridge.parent;
    }
    true
}

/// What is needed right below `parent` in `pool`, the largest alignment first.
fn needs(settings: &Settings, found: &Hierarchy, parent: Option<Bdf>, pool: Pool) -> Vec<Need> {
    let mut needs = Vec::new();
    for (function, entry) in found.functions.iter().enumerate().filter(|(_, f)| f.parent == parent) {
        for (bar, found_bar) in entry.bars.iter().enumerate() {
            let high = matches!(found_bar.kind, crate::BarKind::Memory { wide: true, prefetchable: true })
                && reaches(found, function, |windows| windows.has_prefetchable);
            let belongs = match pool {
                Pool::Io => found_bar.kind.is_io(),
                Pool::Memory => !found_bar.kind.is_io() && !high,
                Pool::Prefetchable => high,
            };
            if belongs {
                needs.push(Need { size: found_bar.size, align: found_bar.size, function, bar: Some(bar) });
            }
        }
        if let Some((size, align)) = window_need(settings, found, function, pool) {
            needs.push(Need { size, align, function, bar: None });
        }
    }
    needs.sort_by_key(|need| core::cmp::Reverse((need.align, need.size)));
    needs
}

/// Size and alignment of a bridge's window; `None` if it needs none or has none.
fn window_need(settings: &Settings, found: &Hierarchy, function: usize, pool: Pool) -> Option<(u64, u64)> {
    let bridge = &found.functions[function];
    let windows = bridge.bridge.as_ref()?;
    let (granule, kept) = match pool {
        Pool::Io if !windows.has_io => return None,
        Pool::Io => (0x1000, 0),
        Pool::Memory => (1 << 20, settings.hot_plug_memory.0),
        Pool::Prefetchable if !windows.has_prefetchable => return None,
        Pool::Prefetchable => (1 << 20, settings.hot_plug_memory.1),
    };
    let inside = needs(settings, found, Some(bridge.bdf), pool);
    // Sorted by falling alignment, sizes add up with no gaps but before windows, whose size need not be a multiple of it.
    let used = inside.iter().fold(0u64, |at, need| at.next_multiple_of(need.align).saturating_add(need.size));
    let size = used.max(if windows.hot_plug { kept } else { 0 });
    let align = inside.iter().map(|need| need.align).max().unwrap_or(0).max(granule);
    (size > 0).then(|| (size.next_multiple_of(granule), align))
}

fn place(
    settings: &Settings,
    found: &mut Hierarchy,
    parent: Option<Bdf>,
    pool: Pool,
    (start, end): (u64, u64),
) {
    let mut at = start;
    let mut too_large = Vec::new();
    for need in needs(settings, found, parent, pool) {
        let base = at.checked_next_multiple_of(need.align);
        let room = base.and_then(|base| Some((base, base.checked_add(need.size)?)));
        let function = &mut found.functions[need.function];
        match (need.bar, room.filter(|(_, top)| *top <= end)) {
            (Some(bar), Some((base, top))) => {
                function.bars[bar].address = Some(base);
                at = top;
            }
            (Some(bar), None) => {
                let (bdf, bar) = (function.bdf, function.bars[bar]);
                found.problem(bdf, ProblemKind::NoAddress { index: bar.index, size: bar.size });
            }
            (None, Some(range)) => {
                place_window(settings, found, need.function, pool, range);
                at = range.1;
            }
            (None, None) => too_large.push(need),
        }
    }
    // What the others leave may be enough for some of what is behind a bridge that asks for too much.
    for need in too_large {
        let range = rest(at, end, pool);
        place_window(settings, found, need.function, pool, range);
        at = range.1;
    }
}

/// Opens a bridge's window, and places what is below in it.
fn place_window(
    settings: &Settings,
    found: &mut Hierarchy,
    bridge: usize,
    pool: Pool,
    (base, top): (u64, u64),
) {
    let function = &mut found.functions[bridge];
    let bdf = function.bdf;
    if let (Some(windows), true) = (&mut function.bridge, base < top) {
        let window = Some(base..=top - 1);
        match pool {
            Pool::Io => windows.io = window,
            Pool::Memory => windows.memory = window,
            Pool::Prefetchable => windows.prefetchable = window,
        }
    }
    place(settings, found, Some(bdf), pool, (base, top));
}

/// What is left, in whole granules of a window; empty if that is nothing.
fn rest(at: u64, end: u64, pool: Pool) -> (u64, u64) {
    let granule = if pool == Pool::Io { 0x1000 } else { 1 << 20 };
    let top = end / granule * granule;
    (at.checked_next_multiple_of(granule).unwrap_or(top).min(top), top)
}
