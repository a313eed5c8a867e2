//! The assignment of addresses: for base addresses, and for the windows that hold them. Nothing is accessed here.

use super::Settings;
use super::hierarchy::{Function, Hierarchy, ProblemKind, Windows};
use crate::header::BarKind;
use core::cmp::Reverse;

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
    /// Its base address, as [`Function::base_address`] counts; `None`: the window of the bridge.
    bar: Option<usize>,
}

impl Need {
    /// The largest alignment first, then in the order in which they were found, a bridge's window behind its base addresses.
    fn order(&self) -> (Reverse<(u64, u64)>, usize, usize) {
        (Reverse((self.align, self.size)), self.function, self.bar.unwrap_or(usize::MAX))
    }
}

/// Gives everything its place.
pub(super) fn assign(settings: &Settings, found: &mut Hierarchy) {
    for (pool, range) in
        [(Pool::Io, settings.io), (Pool::Memory, settings.memory), (Pool::Prefetchable, settings.high_memory)]
    {
        let needs = Needs::of(settings, found, pool);
        place(found, &needs, &needs.top, pool, range);
    }
}

/// Gives everything below `bridge` its place, within the windows that it has.
pub(super) fn assign_below(settings: &Settings, found: &mut Hierarchy, bridge: usize) {
    for pool in [Pool::Io, Pool::Memory, Pool::Prefetchable] {
        let window = found.functions[bridge].bridge.as_ref().and_then(|windows| match pool {
            Pool::Io => windows.io.clone(),
            Pool::Memory => windows.memory.clone(),
            Pool::Prefetchable => windows.prefetchable.clone(),
        });
        let range = window.map_or((0, 0), |window| (*window.start(), *window.end() + 1));
        let needs = Needs::of(settings, found, pool);
        place(found, &needs, &needs.below[bridge], pool, range);
    }
}

/// The needs for addresses of one pool, each list with the largest alignment first.
struct Needs {
    /// Right below the root complex.
    top: Vec<Need>,
    /// Right below each function.
    below: Vec<Vec<Need>>,
}

impl Needs {
    fn of(settings: &Settings, found: &Hierarchy, pool: Pool) -> Self {
        let parents = found.parents();
        let high = high_memory_reaches(found, &parents);
        let mut needs = Self { top: Vec::new(), below: vec![Vec::new(); parents.len()] };
        // What is below a bridge comes after it: from the end on, each window's content is complete when it is asked for.
        for (index, function) in found.functions.iter().enumerate().rev() {
            let mut own = bars_of(function, index, high[index], pool);
            let inside = &mut needs.below[index];
            inside.sort_by_key(Need::order);
            let had = found.removed.get(&function.bdf);
            if let Some((size, align)) = window_need(settings, function, had, inside, pool) {
                own.push(Need { size, align, function: index, bar: None });
            }
            parents[index].map_or(&mut needs.top, |parent| &mut needs.below[parent]).extend(own);
        }
        needs.top.sort_by_key(Need::order);
        needs
    }
}

/// By function, true if all bridges above forward prefetchable memory. If not, that goes where other memory does.
fn high_memory_reaches(found: &Hierarchy, parents: &[Option<usize>]) -> Vec<bool> {
    let mut reaches: Vec<bool> = Vec::new();
    for parent in parents {
        let through = |bridge: usize| {
            let windows = found.functions[bridge].bridge.as_ref();
            reaches[bridge] && windows.is_some_and(|windows| windows.has_prefetchable)
        };
        reaches.push(parent.is_none_or(through));
    }
    reaches
}

/// The base addresses of a function that are in `pool`. Those of virtual functions take the room of all of them.
fn bars_of(function: &Function, index: usize, high_reaches: bool, pool: Pool) -> Vec<Need> {
    let mut needs = Vec::new();
    let own = function.bars.iter().map(|bar| (bar, 1));
    let virtual_functions =
        function.virtual_functions.iter().flat_map(|v| v.bars.iter().map(|bar| (bar, v.total)));
    for (nth, (bar, count)) in own.chain(virtual_functions).enumerate() {
        let high = high_reaches && bar.kind == BarKind::Memory { wide: true, prefetchable: true };
        let belongs = match pool {
            Pool::Io => bar.kind.is_io(),
            Pool::Memory => !bar.kind.is_io() && !high,
            Pool::Prefetchable => high,
        };
        if belongs {
            let size = bar.size.saturating_mul(count.into());
            needs.push(Need { size, align: bar.size, function: index, bar: Some(nth) });
        }
    }
    needs
}

/// Size and alignment of a bridge's window around the needs `inside`; with a slot, at least those that a bridge at its place `had` before.
/// `None` if it needs none or has none.
fn window_need(
    settings: &Settings,
    bridge: &Function,
    had: Option<&Windows>,
    inside: &[Need],
    pool: Pool,
) -> Option<(u64, u64)> {
    let windows = bridge.bridge.as_ref()?;
    let had = had.map_or((0, 0), |windows| windows.given[pool as usize]);
    let (granule, kept) = match pool {
        Pool::Io if !windows.has_io => return None,
        Pool::Io => (0x1000, 0),
        Pool::Memory => (1 << 20, settings.hot_plug_memory.0),
        Pool::Prefetchable if !windows.has_prefetchable => return None,
        Pool::Prefetchable => (1 << 20, settings.hot_plug_memory.1),
    };
    // Sorted by falling alignment, sizes add up with no gaps but behind those that are not a multiple of it.
    let used = inside.iter().fold(0, |at, need| round_up(at, need.align).saturating_add(need.size));
    // A slot keeps what the card had that was there, so that it fits again.
    let (kept, kept_align) = if windows.hot_plug { (kept.max(had.0), had.1) } else { (0, 0) };
    let size = used.max(kept);
    let align = inside.iter().map(|need| need.align).max().unwrap_or(0).max(granule).max(kept_align);
    (size > 0).then(|| (round_up(size, granule), align))
}

/// The next multiple; the largest number there is, which fits nowhere, if there is none.
fn round_up(value: u64, multiple: u64) -> u64 {
    value.checked_next_multiple_of(multiple).unwrap_or(u64::MAX)
}

fn place(found: &mut Hierarchy, needs: &Needs, wanted: &[Need], pool: Pool, (start, end): (u64, u64)) {
    let mut at = start;
    let mut too_large = Vec::new();
    for need in wanted {
        let base = round_up(at, need.align);
        let room = base.checked_add(need.size).filter(|top| *top <= end).map(|top| (base, top));
        let function = &mut found.functions[need.function];
        match (need.bar, room) {
            (Some(bar), Some((base, top))) => {
                function.base_address(bar).address = Some(base);
                at = top;
            }
            (Some(bar), None) => {
                let (bdf, index) = (function.bdf, function.base_address(bar).index);
                let low_memory = pool == Pool::Memory;
                found.problem(bdf, ProblemKind::NoAddress { index, size: need.size, low_memory });
            }
            (None, Some(range)) => {
                if let Some(windows) = &mut function.bridge {
                    windows.given[pool as usize] = (need.size, need.align);
                }
                place_window(found, needs, need.function, pool, range);
                at = range.1;
            }
            (None, None) => too_large.push(need.function),
        }
    }
    // What the others leave may be enough for some of what is behind a bridge that asks for too much.
    for bridge in too_large {
        let range = rest(at, end, pool);
        place_window(found, needs, bridge, pool, range);
        at = range.1;
    }
}

/// Opens a bridge's window, and places the needs below in it.
fn place_window(found: &mut Hierarchy, needs: &Needs, bridge: usize, pool: Pool, (base, top): (u64, u64)) {
    if let (Some(windows), true) = (&mut found.functions[bridge].bridge, base < top) {
        let window = Some(base..=top - 1);
        match pool {
            Pool::Io => windows.io = window,
            Pool::Memory => windows.memory = window,
            Pool::Prefetchable => windows.prefetchable = window,
        }
    }
    place(found, needs, &needs.below[bridge], pool, (base, top));
}

/// The range that is left, in whole granules of a window; empty if there is none.
fn rest(at: u64, end: u64, pool: Pool) -> (u64, u64) {
    let granule = if pool == Pool::Io { 0x1000 } else { 1 << 20 };
    let top = end / granule * granule;
    (at.checked_next_multiple_of(granule).unwrap_or(top).min(top), top)
}
