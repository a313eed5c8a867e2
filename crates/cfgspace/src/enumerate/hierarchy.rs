//! The result of enumeration: functions, their numbers and addresses, and problems.

use crate::header::BarKind;
use crate::interrupt::InterruptMode;
use crate::registers::{header, id, sriov};
use core::fmt;
use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use tlplab_units::{Bdf, Mps, Mrrs};

/// All functions, and their problems.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    /// The functions in the order in which they were found: a bridge comes before those below it.
    pub functions: Vec<Function>,
    /// The steps that did not work; the rest was done all the same.
    pub problems: Vec<Problem>,
    /// The windows of bridges that have been removed since, for the case that they come back.
    pub(super) removed: BTreeMap<Bdf, Windows>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its bus, device and function number.
    pub bdf: Bdf,
    /// The bridge above it.
    pub parent: Option<Bdf>,
    /// Vendor ID and device ID.
    pub ids: (u16, u16),
    /// Base class, sub-class, programming interface.
    pub class: u32,
    /// Bus numbers and windows, if it is a bridge.
    pub bridge: Option<Windows>,
    /// Its base addresses.
    pub bars: Vec<BarFound>,
    /// The virtual functions it could have.
    pub virtual_functions: Option<VirtualFunctions>,
    /// Its capabilities, in the order of the chains.
    pub capabilities: Vec<CapabilityFound>,
    /// The largest payload it can.
    pub mps_supported: Mps,
    /// The payload it may send.
    pub mps: Mps,
    /// The most that it may ask for in one read.
    pub mrrs: Mrrs,
    /// The way in which it interrupts.
    pub interrupts: InterruptMode,
    /// Its legacy interrupt pin, 1 to 4, and the root's wire, 0 to 3, on which it ends; `None`: it has none.
    pub intx: Option<(u8, u8)>,
    /// It can use 8 bits of tag.
    pub(super) extended_tag: bool,
    /// The properties of a root port as a completer.
    pub(super) completer: Completer,
}

/// The properties of a root port that completes the requests of functions below it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Completer {
    /// Requests may have 10 bits of tag.
    pub(super) ten_bit_tag: bool,
    /// Its read completion boundary is 128 bytes.
    pub(super) boundary_128: bool,
}

/// The virtual functions of a function with SR-IOV. Bus numbers and addresses are kept for all of them, as Linux does, but none is
/// live: NumVFs stays 0, and nothing enumerates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualFunctions {
    /// The number that there can be.
    pub total: u16,
    /// The first one's ID.
    pub first: Bdf,
    /// The last one's ID, which may be on a bus of its own.
    pub last: Bdf,
    /// Their base addresses: the size is that of one virtual function, and the address that of the first. Each has as much right
    /// behind the one before it.
    pub bars: Vec<BarFound>,
}

/// Bus numbers and windows of a bridge. A window is `None` if nothing below needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// The bus right below.
    pub secondary: u8,
    /// The highest bus below.
    pub subordinate: u8,
    /// Cards may come and go below.
    pub hot_plug: bool,
    /// The functions right below have numbers of 8 bits, and no device number (ARI).
    pub ari_forwarding: bool,
    /// It forwards I/O.
    pub has_io: bool,
    /// It forwards prefetchable memory.
    pub has_prefetchable: bool,
    /// The I/O window.
    pub io: Option<RangeInclusive<u64>>,
    /// The memory window.
    pub memory: Option<RangeInclusive<u64>>,
    /// The window of prefetchable memory.
    pub prefetchable: Option<RangeInclusive<u64>>,
    /// Size and alignment that the windows were given, in the order of the fields above.
    pub(super) given: [(u64, u64); 3],
}

/// A base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarFound {
    /// Its number, 0 to 5; those of virtual functions are 7 to 12, as in Linux.
    pub index: u8,
    /// The space it is in.
    pub kind: BarKind,
    /// Bytes.
    pub size: u64,
    /// The address assigned; `None` if there was no room, or the BAR does not keep it.
    pub address: Option<u64>,
}

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilityFound {
    /// Its identifier.
    pub id: u16,
    /// It is in the chain from 100h.
    pub extended: bool,
    /// Its offset.
    pub offset: u16,
}

/// Something that did not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The function's BDF.
    pub function: Bdf,
    /// The kind of problem.
    pub kind: ProblemKind,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It was not ready within the time limit.
    NeverReady,
    /// It did not answer.
    NoAnswer,
    /// Its header is of no known type.
    HeaderType(u8),
    /// A chain of capabilities leads back, or to where none can be.
    CapabilityChain(u16),
    /// The writable bits of a BAR are not a size.
    BarSize {
        /// The number of the BAR.
        index: u8,
        /// The mask that should tell its size, after all ones were written.
        mask: u64,
    },
    /// There is no address left for a BAR.
    NoAddress {
        /// The number of the BAR.
        index: u8,
        /// Its bytes.
        size: u64,
        /// It is memory that must be below 4 GiB.
        low_memory: bool,
    },
    /// A BAR does not keep the address that is written to it.
    BarUnkept {
        /// The number of the BAR.
        index: u8,
        /// The value that it reads, with its lowest bits.
        found: u64,
    },
    /// The table of MSI-X is not within a BAR.
    MsixTable,
    /// There is no bus number left for the bus below.
    NoBusNumber,
    /// The distances between the IDs of virtual functions would give several the same one.
    VirtualIds {
        /// First VF Offset.
        offset: u16,
        /// VF Stride.
        stride: u16,
    },
    /// There is no bus number left for the virtual functions.
    NoVirtualBus,
}

impl ProblemKind {
    /// Its name in documents.
    pub const fn token(self) -> &'static str {
        match self {
            Self::NeverReady => "never-ready",
            Self::NoAnswer => "no-answer",
            Self::HeaderType(_) => "header-type",
            Self::CapabilityChain(_) => "capability-chain",
            Self::BarSize { .. } => "bar-size",
            Self::NoAddress { .. } => "no-address",
            Self::BarUnkept { .. } => "bar-unkept",
            Self::MsixTable => "msix-table",
            Self::NoBusNumber => "no-bus-number",
            Self::VirtualIds { .. } => "virtual-ids",
            Self::NoVirtualBus => "no-virtual-bus",
        }
    }

    /// True if software has run out of bus numbers or addresses.
    pub const fn is_exhaustion(self) -> bool {
        match self {
            Self::NoAddress { .. } | Self::NoBusNumber | Self::NoVirtualBus => true,
            Self::NeverReady
            | Self::NoAnswer
            | Self::HeaderType(_)
            | Self::CapabilityChain(_)
            | Self::BarSize { .. }
            | Self::BarUnkept { .. }
            | Self::MsixTable
            | Self::VirtualIds { .. } => false,
        }
    }
}

/// A BAR in a message.
struct BarName(u8);

impl fmt::Display for BarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(BarFound::VIRTUAL) {
            None => write!(f, "BAR {}", self.0),
            Some(index) => write!(f, "VF BAR {index}"),
        }
    }
}

/// Bytes in a message, in the largest unit that divides them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = (self.0.trailing_zeros() / 10).min(4) as usize;
        write!(f, "{} {}", self.0 >> (10 * unit), ["bytes", "KiB", "MiB", "GiB", "TiB"][unit])
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.function)?;
        match self.kind {
            ProblemKind::NeverReady => f.write_str("was not ready in time; left out"),
            ProblemKind::NoAnswer => f.write_str("did not answer; left out"),
            ProblemKind::HeaderType(kind) => {
                write!(f, "has header type {kind:#04x}, which should be 0 or 1; left out")
            }
            ProblemKind::CapabilityChain(at) => {
                write!(f, "has a broken chain of capabilities at {at:#x}; the rest of it is left out")
            }
            ProblemKind::BarSize { index, mask } => {
                let bar = BarName(index);
                write!(f, "{bar} keeps the address bits {mask:#018x} of ones, which is not a size; left out")
            }
            ProblemKind::NoAddress { index, size, low_memory } => {
                let (bar, size) = (BarName(index), Size(size));
                let place = if low_memory { " below 4 GiB" } else { "" };
                write!(f, "no address{place} is left for {bar} of {size}; that space stays off")
            }
            ProblemKind::BarUnkept { index, found } => {
                let bar = BarName(index);
                write!(f, "{bar} reads {found:#x}, not the address that was written; that space stays off")
            }
            ProblemKind::MsixTable => {
                f.write_str("the MSI-X table is not within a BAR; another kind of interrupt is used")
            }
            ProblemKind::NoBusNumber => f.write_str("no bus number is left for the bus below; left out"),
            ProblemKind::VirtualIds { offset, stride } => {
                write!(
                    f,
                    "virtual functions at offset {offset} with stride {stride} have no IDs of their own; left out"
                )
            }
            ProblemKind::NoVirtualBus => {
                f.write_str("no bus number is left for all its virtual functions; they are left out")
            }
        }
    }
}

impl BarFound {
    /// The index of the first BAR of virtual functions.
    pub const VIRTUAL: u8 = 7;
}

impl Function {
    /// The offset of an extended capability.
    pub fn extended_capability(&self, id: u16) -> Option<u16> {
        let found = self.capabilities.iter().find(|c| c.extended && c.id == id);
        found.map(|capability| capability.offset)
    }
    /// The number of base addresses it has, with those of its virtual functions.
    pub(super) fn base_addresses(&self) -> usize {
        self.bars.len() + self.virtual_functions.as_ref().map_or(0, |functions| functions.bars.len())
    }
    /// The register of the base address with this index.
    pub(super) fn register_of(&self, index: u8) -> u16 {
        let start = |at: u16| at + sriov::BARS;
        match index.checked_sub(BarFound::VIRTUAL) {
            None => header::BARS + 4 * u16::from(index),
            Some(index) => self.extended_capability(id::SRIOV).map_or(0, start) + 4 * u16::from(index),
        }
    }
    /// The base address with this place among the function's own and, behind them, those of its virtual functions.
    pub(super) fn base_address(&mut self, nth: usize) -> &mut BarFound {
        let own = self.bars.len();
        match &mut self.virtual_functions {
            Some(functions) if nth >= own => &mut functions.bars[nth - own],
            _ => &mut self.bars[nth],
        }
    }
    /// The offset of a capability below 100h.
    pub fn capability(&self, id: u8) -> Option<u16> {
        let found = self.capabilities.iter().find(|c| !c.extended && c.id == u16::from(id));
        found.map(|capability| capability.offset)
    }
}

impl Hierarchy {
    /// The function at `bdf`.
    pub fn function(&self, bdf: Bdf) -> Option<&Function> {
        self.functions.iter().find(|function| function.bdf == bdf)
    }
    /// The functions right below `parent`; below the root complex for `None`.
    pub fn children(&self, parent: Option<Bdf>) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(move |function| function.parent == parent)
    }
    /// By function, the index of the bridge above it, which is lower than its own.
    pub(super) fn parents(&self) -> Vec<Option<usize>> {
        let indices: BTreeMap<Bdf, usize> = self.functions.iter().map(|f| f.bdf).zip(0..).collect();
        let parent = |function: &Function| function.parent.and_then(|bdf| indices.get(&bdf).copied());
        self.functions.iter().map(parent).collect()
    }
    /// The completer of the requests of a function: the root port above it.
    pub(super) fn completer(&self, function: &Function) -> Completer {
        let mut at = function;
        while let Some(above) = at.parent.and_then(|bdf| self.function(bdf)) {
            at = above;
        }
        at.completer
    }
    pub(super) fn index_of(&self, bdf: Bdf) -> Option<usize> {
        self.functions.iter().position(|function| function.bdf == bdf)
    }
    /// Everything below a bridge.
    pub(super) fn below(&self, bridge: Bdf) -> impl Iterator<Item = Bdf> {
        let buses = self.buses_below(bridge);
        self.functions.iter().map(|function| function.bdf).filter(move |bdf| buses.contains(&bdf.bus()))
    }
    pub(super) fn remove_below(&mut self, bridge: Bdf) {
        let buses = self.buses_below(bridge);
        for function in self.functions.iter().filter(|function| buses.contains(&function.bdf.bus())) {
            if let Some(windows) = &function.bridge {
                self.removed.insert(function.bdf, windows.clone());
            }
        }
        self.functions.retain(|function| !buses.contains(&function.bdf.bus()));
        self.problems.retain(|problem| !buses.contains(&problem.function.bus()));
    }
    #[expect(clippy::reversed_empty_ranges, reason = "what is no bridge has nothing below")]
    fn buses_below(&self, bridge: Bdf) -> RangeInclusive<u8> {
        let windows = self.function(bridge).and_then(|function| function.bridge.as_ref());
        windows.map_or(1..=0, |windows| windows.secondary..=windows.subordinate)
    }
    pub(super) fn problem(&mut self, function: Bdf, kind: ProblemKind) {
        self.problems.push(Problem { function, kind });
    }
}
