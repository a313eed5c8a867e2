//! The two headers: of functions that end a path, and of bridges (PCIe 5.0 §7.5.1).

use crate::layout::{Block, LayoutError};
use crate::registers::{bridge_control, command, header, status};

/// The first 40h bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// An end point.
    Type0(Type0),
    /// A bridge: root port, or port of a switch.
    Type1(Type1),
}

/// Vendor ID of functions that are of no real hardware: bridges and built-in devices here, and examples. Nobody has it: neither the PCI ID
/// repository (pci.ids of 2026) nor a driver of Linux.
pub const VENDOR_ID: u16 = 0x71AB;

/// Vendor, device, class and revision of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID; FFFFh is nobody's.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Base class, sub-class and programming interface: 02_00_00h is an Ethernet controller.
    pub class: u32,
    /// Revision ID.
    pub revision: u8,
}

/// The header of an end point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type0 {
    /// Vendor, device, class and revision of a function.
    pub identity: Identity,
    /// Subsystem vendor ID and subsystem ID.
    pub subsystem: (u16, u16),
    /// Base addresses; a 64-bit one also takes the next place, which must be `None`.
    pub bars: [Option<Bar>; 6],
    /// Bytes of the expansion ROM: a power of two from 2 KiB to 16 MiB.
    pub rom: Option<u64>,
    /// The legacy interrupt: 1 to 4 for INTA to INTD, 0 for none.
    pub interrupt_pin: u8,
    /// True if the device has functions besides this one.
    pub multi_function: bool,
}

/// The header of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type1 {
    /// Vendor, device, class and revision of a function.
    pub identity: Identity,
    /// Base addresses of the bridge's own registers.
    pub bars: [Option<Bar>; 2],
    /// Bytes of the expansion ROM.
    pub rom: Option<u64>,
    /// The I/O window, if it can forward I/O at all.
    pub io: Option<IoWindow>,
    /// True if it can forward prefetchable memory; then with 64-bit addresses.
    pub prefetchable: bool,
    /// The legacy interrupt: 1 to 4 for INTA to INTD, 0 for none.
    pub interrupt_pin: u8,
    /// True if the device has functions besides this one.
    pub multi_function: bool,
}

/// The reach of a bridge's I/O window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoWindow {
    /// The first 64 KiB.
    Bits16,
    /// All 4 GiB.
    Bits32,
}

/// The range that a base address decodes: its space and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The space it is in.
    pub kind: BarKind,
    /// Bytes: a power of two.
    pub size: u64,
}

/// The space of a base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarKind {
    /// I/O.
    Io,
    /// Memory.
    Memory {
        /// 64 bits of address rather than 32.
        wide: bool,
        /// Reading has no side effect, and writes may be merged.
        prefetchable: bool,
    },
}

impl Identity {
    /// A function of that vendor, device and class, revision 0.
    pub const fn new(vendor: u16, device: u16, class: u32) -> Self {
        Self { vendor, device, class, revision: 0 }
    }
}

impl Type0 {
    /// A header with no base address and no interrupt.
    pub const fn new(identity: Identity) -> Self {
        Self {
            identity,
            subsystem: (0, 0),
            bars: [None; 6],
            rom: None,
            interrupt_pin: 0,
            multi_function: false,
        }
    }
}

impl Type1 {
    /// A bridge that forwards I/O, memory and prefetchable memory.
    pub const fn new(identity: Identity) -> Self {
        Self {
            identity,
            bars: [None; 2],
            rom: None,
            io: Some(IoWindow::Bits16),
            prefetchable: true,
            interrupt_pin: 0,
            multi_function: false,
        }
    }
}

impl From<Type0> for Header {
    fn from(header: Type0) -> Self {
        Self::Type0(header)
    }
}

impl From<Type1> for Header {
    fn from(header: Type1) -> Self {
        Self::Type1(header)
    }
}

impl Bar {
    /// `size` bytes of I/O.
    pub const fn io(size: u64) -> Self {
        Self { kind: BarKind::Io, size }
    }
    /// `size` bytes of memory below 4 GiB.
    pub const fn memory32(size: u64) -> Self {
        Self { kind: BarKind::Memory { wide: false, prefetchable: false }, size }
    }
    /// `size` bytes of memory anywhere.
    pub const fn memory64(size: u64) -> Self {
        Self { kind: BarKind::Memory { wide: true, prefetchable: false }, size }
    }
    /// The same, prefetchable.
    #[must_use]
    pub const fn prefetchable(self) -> Self {
        match self.kind {
            BarKind::Io => self,
            BarKind::Memory { wide, .. } => {
                Self { kind: BarKind::Memory { wide, prefetchable: true }, ..self }
            }
        }
    }
}

impl BarKind {
    /// True if it takes two places.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Memory { wide: true, .. })
    }
    /// True if it decodes I/O.
    pub const fn is_io(self) -> bool {
        matches!(self, Self::Io)
    }
    /// The read-only bits that tell it (PCIe 5.0 §7.5.1.2.1).
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Io => 1,
            Self::Memory { wide, prefetchable } => (wide as u32) << 2 | (prefetchable as u32) << 3,
        }
    }
    /// The kind that these bits tell; `None` if they are reserved.
    pub const fn from_bits(register: u32) -> Option<Self> {
        match register & 0b111 {
            0b001 | 0b101 => Some(Self::Io),
            kind @ (0b000 | 0b100) => {
                Some(Self::Memory { wide: kind == 0b100, prefetchable: register >> 3 & 1 == 1 })
            }
            _ => None,
        }
    }
}

impl Header {
    /// True for the header of a bridge.
    pub fn is_bridge(&self) -> bool {
        matches!(self, Self::Type1(_))
    }

    pub(crate) fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let (identity, pin, multi, kind) = match self {
            Self::Type0(h) => (h.identity, h.interrupt_pin, h.multi_function, 0u8),
            Self::Type1(h) => (h.identity, h.interrupt_pin, h.multi_function, 1),
        };
        block.require(
            identity.vendor != 0xFFFF,
            "vendor",
            identity.vendor,
            "below 0xffff, which means that no function is present",
        )?;
        block.require(
            identity.class < 1 << 24,
            "class",
            identity.class,
            "three bytes: base class, sub-class, interface",
        )?;
        block.require(pin <= 4, "interrupt pin", pin, "0 (none) or 1 to 4 (INTA to INTD)")?;
        block.set(header::VENDOR, identity.vendor);
        block.set(header::VENDOR + 2, identity.device);
        block.writable(header::COMMAND, command::WRITABLE);
        block.clearable(header::STATUS, status::CLEARABLE);
        block.logged(header::STATUS, status::INTERRUPT);
        block.set_field(header::CLASS, 0, identity.revision);
        block.set_field(header::CLASS, 8, identity.class);
        block.writable(header::HEADER_TYPE, 0xFFu32); // cache line size: a legacy of PCI
        block.set_field(header::HEADER_TYPE + 2, 0, kind);
        block.set_field(header::HEADER_TYPE + 2, 7, multi);
        block.writable(header::INTERRUPT, 0xFFu32);
        block.set(header::INTERRUPT + 1, pin);
        match self {
            Self::Type0(h) => h.place(block),
            Self::Type1(h) => h.place(block),
        }
    }
}

impl Type0 {
    fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        place_bars(block, &self.bars)?;
        block.set(header::SUBSYSTEM, self.subsystem.0);
        block.set(header::SUBSYSTEM + 2, self.subsystem.1);
        place_rom(block, header::ROM_TYPE0, self.rom)
    }
}

impl Type1 {
    fn place(&self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        place_bars(block, &self.bars)?;
        block.writable(header::BUS_NUMBERS, 0x00FF_FFFFu32);
        if let Some(io) = self.io {
            block.writable(header::IO_WINDOW, 0xF0F0u16);
            if io == IoWindow::Bits32 {
                block.set(header::IO_WINDOW, 0x0101u16);
                block.writable(header::IO_UPPER, u32::MAX);
            }
        }
        block.clearable(header::SECONDARY_STATUS, status::CLEARABLE);
        block.writable(header::MEMORY_WINDOW, 0xFFF0_FFF0u32);
        if self.prefetchable {
            block.set(header::PREFETCHABLE_WINDOW, 0x0001_0001u32);
            block.writable(header::PREFETCHABLE_WINDOW, 0xFFF0_FFF0u32);
            block.writable(header::PREFETCHABLE_BASE_UPPER, u32::MAX);
            block.writable(header::PREFETCHABLE_LIMIT_UPPER, u32::MAX);
        }
        block.writable(header::BRIDGE_CONTROL, bridge_control::WRITABLE);
        place_rom(block, header::ROM_TYPE1, self.rom)
    }
}

fn place_bars(block: &mut Block<'_>, bars: &[Option<Bar>]) -> Result<(), LayoutError> {
    let mut taken = false;
    for (index, bar) in bars.iter().enumerate() {
        let Some(bar) = bar else {
            taken = false;
            continue;
        };
        block.require(!taken, "BAR", index as u64, "unused: the 64-bit BAR before it takes two numbers")?;
        taken = bar.kind.is_wide();
        block.require(
            !taken || index + 1 < bars.len(),
            "BAR",
            index as u64,
            "followed by another, to be 64 bits wide",
        )?;
        let (least, most, wanted) = match bar.kind {
            BarKind::Io => (4, 256, "a power of two from 4 to 256 bytes of I/O"),
            BarKind::Memory { wide: false, .. } => (16, 1 << 31, "a power of two from 16 B to 2 GiB"),
            BarKind::Memory { wide: true, .. } => (16, 1 << 63, "a power of two from 16 B to 8 EiB"),
        };
        let right = bar.size.is_power_of_two() && (least..=most).contains(&bar.size);
        block.require(right, "BAR size", bar.size, wanted)?;
        place_bar(block, header::BARS + 4 * index as u16, *bar);
    }
    Ok(())
}

/// One base address; the bits that can be written tell its size.
pub(crate) fn place_bar(block: &mut Block<'_>, at: u16, bar: Bar) {
    let writable = !(bar.size - 1);
    block.set(at, bar.kind.bits());
    block.writable(at, writable as u32);
    if bar.kind.is_wide() {
        block.writable(at + 4, (writable >> 32) as u32);
    }
}

fn place_rom(block: &mut Block<'_>, at: u16, size: Option<u64>) -> Result<(), LayoutError> {
    let Some(size) = size else { return Ok(()) };
    let right = size.is_power_of_two() && (1 << 11..=1 << 24).contains(&size);
    block.require(right, "expansion ROM size", size, "a power of two from 2 KiB to 16 MiB")?;
    block.writable(at, !(size as u32 - 1));
    block.writable(at, 1u32); // Enable
    Ok(())
}
