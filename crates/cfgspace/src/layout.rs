//! The pieces of a function's configuration space, and their places.

use crate::capability::Capability;
use crate::extended::ExtendedCapability;
use crate::header::Header;
use crate::registers::{header, id, status};
use crate::shown::Shown;
use crate::space::{ConfigSpace, Reset, Rules};
use core::ops::Range;

/// The pieces of a function's configuration space: a header, and its two chains of capabilities in the order in which they are linked.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The header.
    pub header: Header,
    /// The capabilities below 100h, each with its place if that matters.
    pub capabilities: Vec<(Option<u16>, Capability)>,
    /// The extended capabilities, from 100h.
    pub extended: Vec<(Option<u16>, ExtendedCapability)>,
}

impl Layout {
    /// A function with nothing but a header.
    pub fn new(header: impl Into<Header>) -> Self {
        Self { header: header.into(), capabilities: Vec::new(), extended: Vec::new() }
    }
    /// Adds a capability where there is room.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<Capability>) -> Self {
        self.capabilities.push((None, capability.into()));
        self
    }
    /// Adds a capability at `offset`, as in a device whose driver knows where to look.
    #[must_use]
    pub fn capability_at(mut self, offset: u16, capability: impl Into<Capability>) -> Self {
        self.capabilities.push((Some(offset), capability.into()));
        self
    }
    /// Adds an extended capability where there is room.
    #[must_use]
    pub fn extended(mut self, capability: impl Into<ExtendedCapability>) -> Self {
        self.extended.push((None, capability.into()));
        self
    }
    /// Adds an extended capability at `offset`; the first of the chain must be at 100h.
    #[must_use]
    pub fn extended_at(mut self, offset: u16, capability: impl Into<ExtendedCapability>) -> Self {
        self.extended.push((Some(offset), capability.into()));
        self
    }

    /// Puts the pieces together.
    pub(crate) fn build(&self) -> Result<ConfigSpace, LayoutError> {
        let mut space = ConfigSpace {
            bytes: Box::new([0; 4096]),
            rules: vec![Rules::default(); 1024].into_boxed_slice(),
            positions: Positions::default(),
            shown: Shown::default(),
        };
        self.header.place(&mut Block { space: &mut space, base: 0, name: "header" })?;
        self.place_capabilities(&mut space)?;
        self.place_extended(&mut space)?;
        self.check_bars()?;
        for word in 0..1024 {
            let initial = space.read(4 * word as u16);
            space.rules[word].initial = initial;
        }
        space.reset(Reset::Cold);
        Ok(space)
    }

    fn place_capabilities(&self, space: &mut ConfigSpace) -> Result<(), LayoutError> {
        let mut room =
            Room::new(0x40..0x100, self.capabilities.iter().map(|(at, c)| (*at, c.bytes(), c.name())))?;
        let mut link = header::CAPABILITIES;
        for (at, capability) in &self.capabilities {
            let (name, bytes) = (capability.name(), capability.bytes());
            let base = at.map_or_else(|| room.find(bytes, name), Ok)?;
            space.bytes[usize::from(link)] = base as u8;
            link = base + 1;
            space.positions.note(capability.id(), Span { start: base, bytes });
            let mut block = Block { space, base, name };
            block.set(0, capability.id());
            capability.place(&mut block)?;
        }
        if !self.capabilities.is_empty() {
            space.update16(header::STATUS, status::CAPABILITIES, status::CAPABILITIES);
        }
        Ok(())
    }

    /// Capabilities that name a BAR must find it.
    fn check_bars(&self) -> Result<(), LayoutError> {
        let bars: &[_] = match &self.header {
            Header::Type0(header) => &header.bars,
            Header::Type1(header) => &header.bars,
        };
        for (_, capability) in &self.capabilities {
            if let Capability::MsiX(msix) = capability {
                msix.check(bars)?;
            }
        }
        for (_, capability) in &self.extended {
            if let ExtendedCapability::ResizableBar(resizable) = capability {
                resizable.check(bars)?;
            }
        }
        Ok(())
    }

    fn place_extended(&self, space: &mut ConfigSpace) -> Result<(), LayoutError> {
        let mut room =
            Room::new(0x100..0x1000, self.extended.iter().map(|(at, c)| (*at, c.bytes(), c.name())))?;
        let mut previous = None;
        for (at, capability) in &self.extended {
            let (name, bytes) = (capability.name(), capability.bytes());
            let base = at.map_or_else(|| room.find(bytes, name), Ok)?;
            match previous {
                None if base != 0x100 => return Err(LayoutError::ChainStart { name, at: base }),
                None => {}
                Some(last) => space.update16(last + 2, 0xFFF0, base << 4),
            }
            previous = Some(base);
            space.positions.note_extended(capability.id(), Span { start: base, bytes });
            let mut block = Block { space, base, name };
            block.set_field(0, 0, capability.id());
            block.set_field(0, 16, capability.version());
            capability.place(&mut block)?;
        }
        Ok(())
    }
}

/// The reason that a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Two capabilities want the same bytes.
    #[error(
        "{name} at {at:#x} overlaps {other} from {start:#x} to {end:#x}; give each its own bytes, or leave the offset of one out",
        start = taken.start, end = taken.end
    )]
    Overlap {
        /// The one that came second.
        name: &'static str,
        /// The offset that the layout gives it.
        at: u16,
        /// The one that was there.
        other: &'static str,
        /// The bytes that it takes.
        taken: Range<u16>,
    },
    /// No room is left, or a place is outside the chain's part of the space or not aligned to a dword.
    #[error("{name} ({bytes} bytes) does not fit{}", Place(*at))]
    NoRoom {
        /// The capability.
        name: &'static str,
        /// Its size.
        bytes: u16,
        /// The offset that the layout gives it, if it does.
        at: Option<u16>,
    },
    /// The first extended capability must be where software begins to look (PCIe 5.0 §7.6).
    #[error("{name} is at {at:#x}, but the first extended capability must be at 0x100")]
    ChainStart {
        /// The capability.
        name: &'static str,
        /// The offset that it has.
        at: u16,
    },
    /// Table and pending bits of MSI-X are memory of the function (PCIe 5.0 §7.7.2).
    #[error("MSI-X: the bytes {start:#x} to {end:#x} of BAR {bar}, for the {part}, {why}", start = range.start, end = range.end)]
    MsixMemory {
        /// "table" or "pending bits".
        part: &'static str,
        /// The BAR.
        bar: u8,
        /// The bytes of it that they take.
        range: Range<u64>,
        /// The fault, and the remedy.
        why: &'static str,
    },
    /// A register cannot hold what it is asked to.
    #[error("{name}: {field} is {found:#x}; it must be {wanted}")]
    Field {
        /// The capability, or the header.
        name: &'static str,
        /// The register or field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The values that would be right.
        wanted: &'static str,
    },
}

struct Place(Option<u16>);

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(at) => write!(
                f,
                " at {at:#x}; expected a multiple of 4 from 0x40 to 0xfc, or from 0x100 for an extended capability"
            ),
            None => f.write_str(" behind the others"),
        }
    }
}

/// The place of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u16,
    pub(crate) bytes: u16,
}

impl Span {
    /// The offset within the capability of the register at `offset` in the space.
    pub(crate) fn register(self, offset: u16) -> Option<u16> {
        offset.checked_sub(self.start).filter(|register| *register < self.bytes)
    }
}

/// The places of the capabilities that the function's behaviour depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Positions {
    pub(crate) pcie: Option<Span>,
    pub(crate) power: Option<Span>,
    pub(crate) msi: Option<Span>,
    pub(crate) msix: Option<Span>,
    pub(crate) aer: Option<Span>,
    pub(crate) acs: Option<Span>,
    pub(crate) ats: Option<Span>,
    pub(crate) sriov: Option<Span>,
    pub(crate) resizable: Option<Span>,
}

impl Positions {
    fn note(&mut self, id: u8, span: Span) {
        match id {
            id::PCIE => self.pcie = Some(span),
            id::POWER => self.power = Some(span),
            id::MSI => self.msi = Some(span),
            id::MSIX => self.msix = Some(span),
            _ => {}
        }
    }
    fn note_extended(&mut self, id: u16, span: Span) {
        match id {
            id::AER => self.aer = Some(span),
            id::ACS => self.acs = Some(span),
            id::ATS => self.ats = Some(span),
            id::SRIOV => self.sriov = Some(span),
            id::RESIZABLE => self.resizable = Some(span),
            _ => {}
        }
    }
}

/// The bytes that are taken, so that the others can be given away.
struct Room {
    region: Range<u16>,
    taken: Vec<(Range<u16>, &'static str)>,
}

impl Room {
    /// A region from which the capabilities with fixed places have had theirs.
    fn new(
        region: Range<u16>,
        capabilities: impl Iterator<Item = (Option<u16>, u16, &'static str)>,
    ) -> Result<Self, LayoutError> {
        let mut room = Self { region, taken: Vec::new() };
        for (at, bytes, name) in capabilities {
            let Some(at) = at else { continue };
            let wanted = at..at.saturating_add(bytes);
            if !at.is_multiple_of(4) || at < room.region.start || wanted.end > room.region.end {
                return Err(LayoutError::NoRoom { name, bytes, at: Some(at) });
            }
            if let Some((taken, other)) = room.taken.iter().find(|(range, _)| overlap(range, &wanted)) {
                return Err(LayoutError::Overlap { name, at, other, taken: taken.clone() });
            }
            room.taken.push((wanted, name));
        }
        Ok(room)
    }

    /// The lowest free place for `bytes`.
    fn find(&mut self, bytes: u16, name: &'static str) -> Result<u16, LayoutError> {
        let fits = |at: &u16| !self.taken.iter().any(|(range, _)| overlap(range, &(*at..*at + bytes)));
        let last = self.region.end.saturating_sub(bytes);
        let at = (self.region.start..=last).step_by(4).find(fits);
        let at = at.ok_or(LayoutError::NoRoom { name, bytes, at: None })?;
        self.taken.push((at..at + bytes, name));
        Ok(at)
    }
}

fn overlap(a: &Range<u16>, b: &Range<u16>) -> bool {
    a.start < b.end && b.start < a.end
}

/// One piece while it is laid out. Offsets count from its start; a mask belongs to the register at its offset, so that it reads
/// as in the specification.
pub(crate) struct Block<'a> {
    space: &'a mut ConfigSpace,
    base: u16,
    name: &'static str,
}

impl Block<'_> {
    /// The value after a reset.
    pub(crate) fn set(&mut self, offset: u16, value: impl Into<u32>) {
        let (offset, shift) = self.place(offset);
        let bits = value.into() << shift;
        self.space.update32(offset, bits, bits);
    }
    /// The value of a field after a reset; `bit` is its lowest.
    pub(crate) fn set_field(&mut self, offset: u16, bit: u32, value: impl Into<u32>) {
        self.set(offset, value.into() << bit);
    }
    /// Bits that software writes.
    pub(crate) fn writable(&mut self, offset: u16, mask: impl Into<u32>) {
        let (rules, mask) = self.rules(offset, mask.into());
        rules.writable |= mask;
    }
    /// Bits that software clears by writing ones.
    pub(crate) fn clearable(&mut self, offset: u16, mask: impl Into<u32>) {
        let (rules, mask) = self.rules(offset, mask.into());
        rules.clearable |= mask;
    }
    /// Bits that hardware sets and a reset clears.
    pub(crate) fn logged(&mut self, offset: u16, mask: impl Into<u32>) {
        let (rules, mask) = self.rules(offset, mask.into());
        rules.logged |= mask;
    }
    /// Bits that survive all but a cold reset.
    pub(crate) fn sticky(&mut self, offset: u16, mask: impl Into<u32>) {
        let (rules, mask) = self.rules(offset, mask.into());
        rules.sticky |= mask;
    }
    /// Bits that survive a function-level reset.
    pub(crate) fn kept(&mut self, offset: u16, mask: impl Into<u32>) {
        let (rules, mask) = self.rules(offset, mask.into());
        rules.kept |= mask;
    }
    /// The complaint about a field of this piece.
    pub(crate) fn field(
        &self,
        field: &'static str,
        found: impl Into<u64>,
        wanted: &'static str,
    ) -> LayoutError {
        LayoutError::Field { name: self.name, field, found: found.into(), wanted }
    }
    /// That complaint, unless `right`.
    pub(crate) fn require(
        &self,
        right: bool,
        field: &'static str,
        found: impl Into<u64>,
        wanted: &'static str,
    ) -> Result<(), LayoutError> {
        if right { Ok(()) } else { Err(self.field(field, found, wanted)) }
    }

    fn place(&self, offset: u16) -> (u16, u32) {
        let at = self.base + offset;
        (at, 8 * u32::from(at % 4))
    }
    fn rules(&mut self, offset: u16, mask: u32) -> (&mut Rules, u32) {
        let (at, shift) = self.place(offset);
        (&mut self.space.rules[usize::from(at / 4)], mask << shift)
    }
}
