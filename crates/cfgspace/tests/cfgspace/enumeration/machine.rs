//! A machine in memory, whose bridges route by their registers only, and the rules that hold for it after enumeration.

use std::collections::BTreeMap;
use tlplab_cfgspace::enumerate::{Answer, BarFound, Enumerator, Function, Hierarchy, Request, Step};
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Generation, Mps, Mrrs, Width};

/// A function, the functions below it, and its oddities.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) space: ConfigSpace,
    pub(crate) below: Bus,
    /// Reads of the IDs that are answered "not ready" before the first proper one.
    pub(crate) not_ready: u32,
    /// Reads after which it answers no more.
    pub(crate) lives: u32,
    /// Dwords that read as something else.
    pub(crate) broken: BTreeMap<u16, u32>,
}

/// By device and function number.
pub(crate) type Bus = BTreeMap<(u8, u8), Node>;

impl Node {
    pub(crate) fn new(layout: &Layout) -> Self {
        let space = ConfigSpace::new(layout).expect("a layout that fits");
        Self { space, below: BTreeMap::new(), not_ready: 0, lives: u32::MAX, broken: BTreeMap::new() }
    }
    pub(crate) fn with(mut self, device: u8, node: Self) -> Self {
        self.below.insert((device, 0), node);
        self
    }
    fn read(&mut self, offset: u16) -> u32 {
        if self.lives == 0 {
            return u32::MAX;
        }
        self.lives -= 1;
        if offset == 0 && self.not_ready > 0 {
            self.not_ready -= 1;
            return 0xFFFF_0001;
        }
        self.broken.get(&offset).copied().unwrap_or_else(|| self.space.read(offset))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) bus_0: Bus,
    /// The dwords written to memory: tables of MSI-X.
    pub(crate) memory: BTreeMap<u64, u32>,
    /// Requests so far.
    pub(crate) steps: u64,
}

/// Finds the function that is meant, as configuration requests of type 0 and 1 do.
fn route(bus: &mut Bus, number: u8, target: Bdf) -> Option<&mut Node> {
    if target.bus() == number {
        return bus.get_mut(&(target.device(), target.function()));
    }
    let holds = |node: &&mut Node| node.space.bridge().is_some_and(|bridge| bridge.holds_bus(target.bus()));
    let bridge = bus.values_mut().find(holds)?;
    let secondary = bridge.space.bridge()?.secondary;
    let link = bridge.space.pcie().is_some_and(|pcie| pcie.port.is_some_and(PortType::is_downstream));
    let ari = bridge.space.pcie().is_some_and(|pcie| pcie.ari_forwarding);
    if link && !ari && target.bus() == secondary && target.device() != 0 {
        return None; // a link has one device at its end
    }
    route(&mut bridge.below, secondary, target)
}

impl Machine {
    pub(crate) fn new(bus_0: impl Into<Bus>) -> Self {
        Self { bus_0: bus_0.into(), memory: BTreeMap::new(), steps: 0 }
    }

    /// The function with that number, if requests get there.
    pub(crate) fn node(&mut self, bdf: Bdf) -> Option<&mut Node> {
        route(&mut self.bus_0, 0, bdf)
    }

    /// The answer to one request.
    pub(crate) fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Read { function, offset } => {
                Answer::Value(self.node(function).map_or(u32::MAX, |node| node.read(offset)))
            }
            Request::Write { function, offset, enables, value } => {
                if let Some(node) = self.node(function).filter(|node| node.lives > 0) {
                    node.space.write(offset, enables, value);
                }
                Answer::Done
            }
            Request::WriteMemory { address, value } => {
                self.memory.insert(address, value);
                Answer::Done
            }
            Request::MaxReadRequest { .. } => Answer::MaxReadRequest(Mrrs::ALL[4]),
            Request::Wait(_) => Answer::Done,
        }
    }

    /// Lets software work until it has finished.
    pub(crate) fn run(&mut self, mut software: Enumerator) -> Hierarchy {
        let mut next = None;
        for _ in 0..1_000_000 {
            match software.step(next) {
                Step::Ask(request) => next = Some(self.answer(request)),
                Step::Done(hierarchy) => return hierarchy,
            }
            self.steps += 1;
        }
        panic!("enumeration does not end");
    }

    /// Base addresses: registers say what the software says, no two overlap, all are aligned, and each is inside every window above it.
    pub(crate) fn check_addresses(&mut self, found: &Hierarchy) {
        let mut taken: Vec<(bool, u64, u64)> = Vec::new();
        for function in &found.functions {
            let Some(node) = self.node(function.bdf).filter(|node| node.lives > 0) else { continue };
            let decoded = node.space.bars();
            let honest = node.broken.is_empty(); // of the others, software knows what they told
            let seen = function.bars.iter().filter(|bar| honest && bar.address.is_some());
            for bar in seen.filter(|bar| decodes(function, bar.kind.is_io())) {
                let seen = decoded[usize::from(bar.index)].expect("it decodes");
                assert_eq!(Some(seen.base), bar.address, "{}", function.bdf);
                assert_eq!((seen.size, seen.kind), (bar.size, bar.kind), "{}", function.bdf);
            }
            for (bar, count) in all_bars(function) {
                let Some(base) = bar.address else { continue };
                assert_eq!(base % bar.size, 0, "{}: {bar:?}", function.bdf);
                let (io, last) = (bar.kind.is_io(), base + bar.size * count - 1);
                let clash = taken.iter().find(|(o, b, l)| *o == io && base <= *l && *b <= last);
                assert_eq!(clash, None, "{}: {bar:?}", function.bdf);
                taken.push((io, base, last));
                self.check_windows(found, function, io, (base, last));
            }
        }
    }

    fn check_windows(&mut self, found: &Hierarchy, function: &Function, io: bool, (base, last): (u64, u64)) {
        let mut above = function.parent;
        while let Some(bdf) = above {
            // What lies may say that it is a bridge.
            let Some(bridge) = self.node(bdf).and_then(|node| node.space.bridge()) else { return };
            let windows = if io { vec![&bridge.io] } else { vec![&bridge.memory, &bridge.prefetchable] };
            let holds = windows.into_iter().flatten().any(|w| w.contains(&base) && w.contains(&last));
            assert!(holds, "{}: {base:#x}..={last:#x} is not in a window of {bridge:x?} {bdf}", function.bdf);
            above = found.function(bdf).unwrap().parent;
        }
    }

    /// Bus numbers of an enumeration from the start are given depth first.
    pub(crate) fn check_order(&self, found: &Hierarchy) {
        let given = found.functions.iter().filter_map(|function| function.bridge.as_ref());
        assert!(given.is_sorted_by(|one, next| one.secondary < next.secondary));
    }

    /// Bus numbers: nested, apart from each other, and as the registers say.
    pub(crate) fn check_buses(&mut self, found: &Hierarchy) {
        for function in &found.functions {
            if let Some(parent) = function.parent {
                let windows = found.function(parent).unwrap().bridge.clone().expect("a bridge is above");
                assert_eq!(windows.secondary, function.bdf.bus(), "{}", function.bdf);
            }
            if let Some(virtual_functions) = &function.virtual_functions {
                self.check_virtual_buses(found, function.parent, virtual_functions.last.bus());
            }
            let Some(windows) = &function.bridge else { continue };
            let Some(bridge) = self.node(function.bdf).and_then(|node| node.space.bridge()) else { continue };
            assert_eq!(bridge.primary, function.bdf.bus());
            assert_eq!((bridge.secondary, bridge.subordinate), (windows.secondary, windows.subordinate));
            assert!(windows.secondary <= windows.subordinate);
            if let Some(above) = function.parent.map(|bdf| found.function(bdf).unwrap()) {
                assert!(windows.subordinate <= above.bridge.as_ref().unwrap().subordinate);
            }
            for sibling in found.children(function.parent).filter(|other| other.bdf < function.bdf) {
                let before = sibling.bridge.as_ref().is_none_or(|s| s.subordinate < windows.secondary);
                assert!(before, "{} and {}", sibling.bdf, function.bdf);
            }
        }
    }

    /// Virtual functions are on buses that lead to their bridge, and to no other.
    fn check_virtual_buses(&mut self, found: &Hierarchy, parent: Option<Bdf>, last: u8) {
        let above = parent.and_then(|bdf| self.node(bdf)).and_then(|node| node.space.bridge());
        let Some(above) = above else { return };
        assert!(above.holds_bus(last));
        let others = found.children(parent).filter_map(|function| function.bridge.as_ref());
        assert!(others.into_iter().all(|other| last < other.secondary || other.subordinate < last));
    }

    /// Payloads: nobody below a root port may send more than any other there can receive.
    pub(crate) fn check_payloads(&mut self, found: &Hierarchy) {
        for function in &found.functions {
            let Some(pcie) = self.node(function.bdf).and_then(|node| node.space.pcie()) else { continue };
            assert_eq!(pcie.mps, function.mps, "{}", function.bdf);
            assert!(function.mps <= function.mps_supported);
            if let Some(parent) = function.parent {
                assert_eq!(found.function(parent).unwrap().mps, function.mps, "{}", function.bdf);
            }
        }
    }

    /// The messages of all functions that interrupt by messages: no two are the same.
    pub(crate) fn messages(&mut self, found: &Hierarchy) -> BTreeMap<(u64, u32), Bdf> {
        let mut messages = BTreeMap::new();
        for function in &found.functions {
            let bdf = function.bdf;
            // What lies about its registers may have been told anything.
            let sound = |node: &&mut Node| node.lives > 0 && node.broken.is_empty();
            let Some(node) = self.node(bdf).filter(sound) else { continue };
            assert_eq!(node.space.interrupt_mode(), function.interrupts, "{bdf}");
            let mut of_function = Vec::new();
            if let (InterruptMode::MsiX, Some(msix)) = (function.interrupts, node.space.msix()) {
                let bar = function.bars.iter().find(|bar| bar.index == msix.table.0).unwrap();
                let table = bar.address.unwrap() + u64::from(msix.table.1);
                for entry in (table..).step_by(16).take(msix.vectors.into()) {
                    let [low, high, data, control] = [0, 4, 8, 12].map(|at| self.memory[&(entry + at)]);
                    assert_eq!(control, 0, "{bdf} masks a vector");
                    of_function.push((u64::from(high) << 32 | u64::from(low), data));
                }
            } else if function.interrupts == InterruptMode::Msi {
                let at = function.capability(5).unwrap();
                let wide = node.space.read(at) >> 23 & 1 == 1;
                let high = if wide { u64::from(node.space.read(at + 8)) << 32 } else { 0 };
                let data = node.space.read(at + if wide { 12 } else { 8 }) & 0xFFFF;
                for vector in 0..1 << (node.space.read(at) >> 20 & 7) {
                    of_function.push((high | u64::from(node.space.read(at + 4)), data | vector));
                }
            }
            for message in of_function {
                assert_eq!(messages.insert(message, bdf), None, "{bdf}: {message:x?} is another's");
            }
        }
        messages
    }
}

/// True if decoding of that space is on, as it is if everything in it has an address.
fn decodes(function: &Function, io: bool) -> bool {
    function.bars.iter().filter(|bar| bar.kind.is_io() == io).all(|bar| bar.address.is_some())
}

/// The base addresses of a function, and those of its virtual functions with their number.
pub(crate) fn all_bars(function: &Function) -> impl Iterator<Item = (&BarFound, u64)> {
    let virtual_functions = function.virtual_functions.iter();
    let virtual_bars = virtual_functions.flat_map(|v| v.bars.iter().map(|bar| (bar, v.total.into())));
    function.bars.iter().map(|bar| (bar, 1)).chain(virtual_bars)
}

pub(crate) fn link() -> LinkPart {
    LinkPart::new(Generation::Gen3, Width::new(4).unwrap())
}

pub(crate) fn port(port: PortType, slot: Option<Slot>) -> Layout {
    let header = Type1::new(Identity::new(0x71AB, 0x0010 + port as u16, 0x06_04_00));
    Layout::new(header).capability(Pcie { slot, mps: Mps::ALL[3], ..Pcie::new(port, link()) })
}

pub(crate) fn end_point(bars: &[(usize, Bar)], mps: Mps) -> Layout {
    let mut header = Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)) };
    for (index, bar) in bars {
        header.bars[*index] = Some(*bar);
    }
    let table = MsiX { vectors: 4, table: (0, 0), pending: (0, 0x800) };
    Layout::new(header).capability(Pcie { mps, ..Pcie::new(PortType::EndPoint, link()) }).capability(table)
}
