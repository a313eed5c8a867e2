//! What the fuzz targets `config_writes`, `lspci_dump` and `enumerate`, and the tests of `tlplab-cfgspace`, feed bytes to: whatever they
//! are, nothing panics, and what must hold does.

#[path = "bits.rs"]
mod bits;
#[path = "layouts.rs"]
mod layouts;

use bits::Bits;
use layouts::{Bytes, any_layout};
use std::collections::BTreeMap;
use tlplab_cfgspace::enumerate::{Answer, Enumerator, Hierarchy, InterruptPolicy, Request, Settings, Step};
use tlplab_cfgspace::error::{ErrorKind, FailedCompletion, log_at_root, receive_completion, report};
use tlplab_cfgspace::interrupt::{raise, take_pending};
use tlplab_cfgspace::*;
use tlplab_units::Bdf;

/// Any function, and any accesses to it: a write changes what it may, and nothing else. Returns the number of writes that it saw.
pub(crate) fn config_writes(bytes: &[u8]) -> usize {
    let mut choices = Bytes(bytes);
    let layout = any_layout(&mut choices);
    let Ok(mut space) = ConfigSpace::new(&layout) else { return 0 };
    let fresh = space.clone();
    let mut writes = 0;
    while !choices.is_empty() {
        match choices.byte() {
            0 => reset(
                &mut space,
                &layout,
                &fresh,
                [Reset::Cold, Reset::Hot, Reset::FunctionLevel][usize::from(choices.byte() % 3)],
            ),
            1 => hardware(&mut space, &mut choices),
            2 => show(&mut space, &layout, choices.word() % 4099, choices.byte() % 9, choices.byte()),
            _ => {
                // Where something is, most of the time.
                let dword = if choices.byte() < 200 { choices.byte().into() } else { choices.word() % 1024 };
                write(&mut space, &layout, 4 * dword, choices.byte() & 0xF, choices.dword());
                writes += 1;
            }
        }
        look_at_everything(&space);
    }
    writes
}

fn write(space: &mut ConfigSpace, layout: &Layout, offset: u16, enables: u8, value: u32) {
    let before = space.clone();
    let bits = bits_now(layout, space)[usize::from(offset / 4)];
    let lanes =
        (0..4).filter(|lane| enables >> lane & 1 == 1).fold(0, |mask, lane| mask | 0xFF << (8 * lane));
    let (old, rw) = (before.read(offset), bits.rw & lanes);
    let written = space.write(offset, enables, value);
    let expected = (old & !rw | value & rw) & !(value & lanes & bits.rw1c);
    let new = space.read(offset);
    let resized = resizable(space, offset);
    let refused = resized && new & 0x3F00 == old & 0x3F00;
    assert!(
        new == expected || refused,
        "{old:#x} at {offset:#x}, where {value:#x} was written to lanes {enables:#x}: {new:#x}, not {expected:#x}"
    );
    assert!(
        new == old || written.any() || !owner_looks(layout, offset, old ^ new),
        "{offset:#x}: {old:#x} to {new:#x} and nobody is told"
    );
    let bars = if resized { 0x10..0x28 } else { 0..0 };
    for other in (0..4096).step_by(4).filter(|other| *other != offset && !bars.contains(other)) {
        assert_eq!(space.read(other), before.read(other), "{other:#x} changed with a write to {offset:#x}");
    }
}

/// The device behind the function changes what it shows.
fn show(space: &mut ConfigSpace, layout: &Layout, offset: u16, bytes: u8, value: u8) {
    let before = space.clone();
    let changed = usize::from(offset)..usize::from(offset) + usize::from(bytes);
    let done = space.show(offset, &vec![value; bytes.into()]).is_ok();
    assert_eq!(space.bytes(), before.bytes(), "the function itself is what it was");
    let bits = bits_now(layout, space);
    for (at, (now, old)) in space.shown_bytes().into_iter().zip(before.shown_bytes()).enumerate() {
        let others = ((bits[at / 4].rw | bits[at / 4].rw1c) >> (8 * (at % 4))) as u8;
        let inside = done && changed.contains(&at);
        assert!(now == old || inside && others != 0xFF, "{at:#x}: {old:#x} to {now:#x}");
        assert!(!inside || now & others == space.bytes()[at] & others, "{at:#x} is software's, too");
    }
}

/// The specification's bits, with those of resizable BARs as large as they are now.
fn bits_now(layout: &Layout, space: &ConfigSpace) -> Vec<Bits> {
    let mut all = bits::of(layout, space);
    for control in (0x100..4096).step_by(4).filter(|at| resizable(space, *at)) {
        let register = space.read(control);
        let (at, mask) = (4 + (register & 7) as usize, u64::MAX << (20 + (register >> 8 & 0x3F)));
        all[at].rw = mask as u32;
        if space.read(4 * at as u16) & 0b110 == 0b100 {
            all[at + 1].rw = (mask >> 32) as u32;
        }
    }
    all
}

/// Is a control register of a resizable BAR at `offset`?
fn resizable(space: &ConfigSpace, offset: u16) -> bool {
    let mut at = 0x100;
    while at >= 0x100 {
        let header = space.read(at);
        let count = space.read(at + 8) >> 5 & 7;
        if header as u16 == 0x15 {
            return (1..=count as u16).any(|nth| offset == at + 8 * nth);
        }
        at = (header >> 20) as u16;
    }
    false
}

/// Registers of which hardware must hear when they change. (What it does not use it need not hear of: cache line, interrupt line,
/// the header's status, capabilities that only software looks at.)
fn owner_looks(layout: &Layout, offset: u16, changed: u32) -> bool {
    match offset {
        0x04 => changed & 0xFFFF != 0,
        0x10..0x3C => !(offset == 0x1C && layout.header.is_bridge() && changed & 0xFFFF == 0),
        _ => false,
    }
}

fn reset(space: &mut ConfigSpace, layout: &Layout, fresh: &ConfigSpace, kind: Reset) {
    let before = space.clone();
    space.reset(kind);
    for (at, bits) in (0..).step_by(4).zip(bits::of(layout, fresh)) {
        let survives = match kind {
            Reset::Cold => 0,
            Reset::Hot => bits.sticky,
            Reset::FunctionLevel => bits.sticky | bits.link,
        } & (bits.rw | bits.rw1c);
        let starts = (bits.rw | bits.rw1c) & !survives;
        let expected = before.read(at) & survives | fresh.read(at) & starts;
        let now = space.read(at);
        assert_eq!(now & (survives | starts), expected, "{at:#x} after {kind:?}");
        let others = !(survives | starts);
        let read_only = [before.read(at), fresh.read(at)].map(|value| value & others);
        assert!(read_only.contains(&(now & others)), "{at:#x} after {kind:?}");
    }
    let stays = (0..4096).step_by(4).find(|at| kind == Reset::Cold && space.read(*at) != fresh.read(*at));
    assert_eq!(stays, None, "as new after a cold reset");
}

/// What hardware does to the registers.
fn hardware(space: &mut ConfigSpace, choices: &mut Bytes<'_>) {
    const ERRORS: [ErrorKind; 6] = [
        ErrorKind::UnsupportedRequest { posted: false },
        ErrorKind::Poisoned { handled: false },
        ErrorKind::Malformed,
        ErrorKind::BadTlp,
        ErrorKind::CompletionTimeout,
        ErrorKind::CompleterAbort { posted: true },
    ];
    match choices.byte() % 4 {
        0 => _ = report(space, ERRORS[usize::from(choices.byte() % 6)], Some([choices.byte(); 16])),
        1 => receive_completion(space, FailedCompletion::CompleterAbort),
        2 => {
            let mut table = space.msix().map(|msix| MsixTable::new(msix.vectors));
            let _ = raise(space, table.as_mut(), choices.byte().into());
            let _ = take_pending(space, table.as_mut());
        }
        _ => _ = log_at_root(space, ErrorMessage::Fatal, Bdf(choices.word())),
    }
}

fn look_at_everything(space: &ConfigSpace) {
    let _ = (space.command(), space.bars(), space.rom(), space.bridge(), space.pcie(), space.msix());
    let _ = (space.power_state(), space.interrupt_mode(), space.asserted_intx(), space.slot_interrupt());
    let _ = space.virtual_functions(Bdf(0x0100)).count();
}

/// A dump: any text is read or refused, and what was dumped is read back.
pub(crate) fn lspci_dump(bytes: &[u8]) {
    if let Ok(functions) = lspci::parse(&String::from_utf8_lossy(bytes)) {
        assert!(functions.iter().all(|function| function.bytes.len() <= 4096));
    }
    let mut function = [0; 4096];
    for (to, from) in function.iter_mut().zip(bytes.iter().cycle()) {
        *to = *from;
    }
    let bdf = Bdf(Bytes(bytes).word());
    let text = lspci::dump([(bdf, &function), (Bdf(bdf.0 ^ 1), &function)]);
    let back = lspci::parse(&text).expect("what was dumped can be read");
    assert_eq!(back.iter().map(|f| f.bdf).collect::<Vec<_>>(), [bdf, Bdf(bdf.0 ^ 1)]);
    assert!(back.iter().all(|f| f.domain == 0 && f.bytes == function));
}

/// Enumeration of whatever answers so. It comes to an end, and gives nobody the addresses of another. Returns the functions it found.
pub(crate) fn enumerate(bytes: &[u8]) -> usize {
    let mut choices = Bytes(bytes);
    let policies = [InterruptPolicy::MsiX, InterruptPolicy::Msi, InterruptPolicy::Intx];
    let interrupts = policies[usize::from(choices.byte() % 3)];
    let settings = || Settings { interrupts, ..Settings::default() };
    let limit = 50_000 + 10_000 * bytes.len();
    let mut registers = BTreeMap::new();
    let mut run = |enumerator| run(enumerator, &mut choices, &mut registers, limit);
    let mut found = run(Enumerator::new(settings()));
    check_addresses(&found);
    let bridge = found.functions.iter().rev().find(|function| function.bridge.is_some());
    if let Some(bridge) = bridge.map(|function| function.bdf) {
        found = run(Enumerator::rescan(settings(), found, bridge));
        check_addresses(&found);
    }
    found.functions.len()
}

/// Most registers keep what is written to them, but for what the bytes say: they are taken in turn, and when none are left nobody is
/// there.
fn run(
    mut software: Enumerator,
    choices: &mut Bytes<'_>,
    registers: &mut BTreeMap<(Bdf, u16), u32>,
    limit: usize,
) -> Hierarchy {
    let mut answer = None;
    for _ in 0..limit {
        let request = match software.step(answer) {
            Step::Ask(request) => request,
            Step::Done(found) => return found,
        };
        answer = Some(match request {
            Request::Read { .. } if choices.is_empty() => Answer::Value(u32::MAX),
            Request::Read { function, offset } => match choices.byte() {
                0 => Answer::Failed,
                1 => Answer::Value(0xFFFF_0001),
                2 => Answer::Value(u32::MAX),
                3..128 => Answer::Value(registers.get(&(function, offset)).copied().unwrap_or(0)),
                128..136 => Answer::Value(0x0081_0010 | u32::from(choices.byte()) << 8), // capabilities, bridges
                _ => Answer::Value(choices.dword()),
            },
            Request::Write { function, offset, value, .. } => {
                registers.insert((function, offset), value);
                Answer::Done
            }
            Request::WriteMemory { .. } | Request::MaxReadRequest { .. } | Request::Wait(_) => Answer::Done,
        });
    }
    panic!("no end after {limit} requests");
}

/// All that has an address has one of its own, aligned, in the windows of all that is above.
fn check_addresses(found: &Hierarchy) {
    let mut taken = Vec::new();
    for function in &found.functions {
        let virtual_bars =
            function.virtual_functions.iter().flat_map(|v| v.bars.iter().map(|bar| (bar, v.total)));
        for (bar, count) in function.bars.iter().map(|bar| (bar, 1)).chain(virtual_bars) {
            let Some(base) = bar.address else { continue };
            assert_eq!(base % bar.size, 0, "{}: {bar:?}", function.bdf);
            let (io, last) = (bar.kind.is_io(), base + (bar.size * u64::from(count) - 1));
            taken.push((io, base, last));
            let mut above = function.parent;
            while let Some(bridge) = above.and_then(|bdf| found.function(bdf)) {
                let windows = bridge.bridge.as_ref().expect("a bridge is above");
                let windows = if io { [&windows.io; 2] } else { [&windows.memory, &windows.prefetchable] };
                let holds = windows.into_iter().flatten().any(|w| w.contains(&base) && w.contains(&last));
                assert!(holds, "{}: {bar:?} is not in a window of {}", function.bdf, bridge.bdf);
                above = bridge.parent;
            }
        }
    }
    taken.sort_unstable();
    assert!(taken.is_sorted_by(|one, next| one.0 != next.0 || one.2 < next.1), "{taken:x?}");
}
