//! The host's view of a device: its configuration space, the addresses of its BARs, and the accesses that the card answers itself.

use super::config::{AdapterError, FunctionKind, MsixHome};
use super::registers::{BAR0_BYTES, Registers};
use tlplab_cfgspace::{
    Aer, Bar, BarKind, BarWindow, ConfigSpace, Identity, Layout, LinkPart, MsiX, MsixMemory, Pcie, PortType,
    PowerManagement, Type0,
};
use tlplab_units::{Bdf, Generation, Mps, Mrrs, Width};

/// The card's vendor and device ID.
pub const CARD: (u16, u16) = (0x3776, 0x8022);
/// Vectors of the card's MSI-X table.
pub const CARD_VECTORS: u16 = 16;
/// Bytes of the published card's BAR 2, of which the MSI-X table takes 4 KiB.
pub const BAR2_BYTES: u64 = 256 << 20;
/// The place of the MSI-X table in the last 4 KiB of BAR 4, and of the pending bits after it.
const TABLE_FROM_END: u64 = 4096;
const PENDING_AFTER: u32 = 2048;

/// Writes to these addresses are interrupts (PCIe 5.0 §6.1.4; the range is that of x86 processors).
pub const INTERRUPTS: std::ops::Range<u64> = 0xFEE0_0000..0xFEF0_0000;

const COMMAND: u16 = 0x04;
const BARS: u16 = 0x10;
/// Memory decoding, bus mastering, no INTx.
const COMMAND_ENABLED: u32 = 0x0406;
const CAPABILITY_PCIE: u8 = 0x10;
const CAPABILITY_MSIX: u8 = 0x11;
const MSIX_ENABLE: u32 = 1 << 31;

/// One device, as the host sees it.
#[derive(Debug)]
pub(super) struct Function {
    space: ConfigSpace,
    /// The addresses that the host has given the BARs. A device that moves them loses them: bridges forward only this.
    assigned: [Option<BarWindow>; 6],
    /// The BARs that decode now.
    decoding: [Option<BarWindow>; 6],
    msix: Option<Msix>,
    kind: FunctionKind,
    pub(super) registers: Registers,
}

/// The place of the table, and the table as the host has written it.
#[derive(Debug)]
struct Msix {
    place: MsiX,
    memory: MsixMemory,
}

impl Function {
    /// The function, in its state after power-on: BARs have no addresses.
    pub(super) fn new(kind: &FunctionKind, registers: Registers) -> Result<Self, AdapterError> {
        let layout = match kind {
            FunctionKind::Card { window, msix } => card_layout(*window, *msix, BAR2_BYTES)?,
            FunctionKind::Own(identity) => {
                identity.check()?;
                identity.layout()
            }
        };
        let space = ConfigSpace::new(&layout)?;
        let msix = space.msix().map(|place| Msix { place, memory: MsixMemory::new(place) });
        Ok(Self { space, assigned: [None; 6], decoding: [None; 6], msix, kind: kind.clone(), registers })
    }

    /// The sizes of its memory BARs, and what kind they are.
    pub(super) fn wanted(&mut self) -> [Option<BarWindow>; 6] {
        self.space.write(COMMAND, 0b11, 0x2);
        self.space.bars().map(|bar| bar.filter(|bar| !bar.kind.is_io()))
    }

    /// Does what firmware and an operating system do: gives addresses to BARs, sets sizes, switches the function on, and writes the
    /// MSI-X table if the card holds it. `device` is its number.
    pub(super) fn start(&mut self, device: usize, bases: &[u64; 6], mps: Mps, mrrs: Mrrs) {
        for (index, bar) in self.wanted().iter().enumerate() {
            let Some(bar) = bar else { continue };
            self.place_bar(index, bar.kind, bases[index]);
        }
        self.space.write(COMMAND, 0b11, COMMAND_ENABLED);
        self.assigned = self.space.bars().map(|bar| bar.filter(|bar| !bar.kind.is_io()));
        self.decoding = self.assigned;
        if let Some(at) = self.capability(CAPABILITY_PCIE) {
            // Sizes are in units of 128 bytes, as exponents of two; bit 8 allows tags of eight bits.
            let exponent = |bytes: u32| (bytes / 128).trailing_zeros();
            let control = exponent(mps.bytes()) << 5 | 1 << 8 | exponent(mrrs.bytes()) << 12;
            self.space.write(at + 8, 0b11, control);
        }
        if let Some(at) = self.capability(CAPABILITY_MSIX) {
            self.space.write(at, 0b1100, MSIX_ENABLE);
        }
        if let Some(Msix { place, memory }) = &mut self.msix {
            memory.write(place.table.0, place.table.1.into(), &table_of(device, place.vectors));
        }
    }

    /// The register of configuration space at that offset.
    pub(super) fn config_read(&self, offset: u16) -> u32 {
        self.space.read(offset)
    }

    /// The device writes its own configuration space. `enables` as in a configuration request.
    pub(super) fn config_write(&mut self, offset: u16, enables: u8, value: u32) {
        let written = self.space.write(offset, enables, value);
        if written.command || written.bars {
            let bars = self.space.bars();
            self.decoding =
                std::array::from_fn(|bar| self.assigned[bar].filter(|_| bars[bar] == self.assigned[bar]));
        }
    }

    fn place_bar(&mut self, index: usize, kind: BarKind, base: u64) {
        let at = BARS + 4 * index as u16;
        self.space.write(at, 0xF, base as u32);
        if kind.is_wide() {
            self.space.write(at + 4, 0xF, (base >> 32) as u32);
        }
    }

    /// The host's software has given the BARs these addresses, and written the command register.
    pub(super) fn obey(&mut self, bases: &[u64; 6], command: u16) {
        for (index, bar) in self.space.base_addresses().iter().enumerate() {
            let Some(bar) = bar else { continue };
            self.place_bar(index, bar.kind, bases[index]);
        }
        self.space.write(COMMAND, 0b11, command.into());
        self.assigned = self.space.base_addresses().map(|bar| bar.filter(|bar| !bar.kind.is_io()));
        self.decoding = self.space.bars().map(|bar| bar.filter(|bar| !bar.kind.is_io()));
    }

    /// True if it may send requests.
    pub(super) fn masters_bus(&self) -> bool {
        self.space.command().bus_master
    }

    /// The addresses of its BARs, decoding or not.
    pub(super) fn bars(&self) -> &[Option<BarWindow>; 6] {
        &self.assigned
    }

    /// Vendor and device ID.
    pub(super) fn ids(&self) -> (u16, u16) {
        let word = self.space.read(0);
        (word as u16, (word >> 16) as u16)
    }

    /// The address of a byte of a BAR, if all of the range is inside and the BAR decodes.
    pub(super) fn address(&self, bar: u8, offset: u64, bytes: u64) -> Option<u64> {
        let window = (*self.decoding.get(usize::from(bar))?)?;
        let end = offset.checked_add(bytes.max(1))?;
        (end <= window.size).then(|| window.base + offset)
    }

    /// True if all of this range is in BARs that the device itself serves.
    pub(super) fn claims(&self, address: u64, bytes: u32) -> bool {
        let inside = |window: BarWindow| {
            let offset = address.checked_sub(window.base);
            let end = offset.and_then(|offset| offset.checked_add(u64::from(bytes.max(1))));
            end.is_some_and(|end| end <= window.size)
        };
        (0..6).any(|bar| self.decoding[usize::from(bar)].is_some_and(inside) && !self.answers(bar))
    }

    /// True if the card answers accesses to this BAR itself.
    pub(super) fn answers(&self, bar: u8) -> bool {
        match self.kind {
            FunctionKind::Card { .. } => bar != 4,
            FunctionKind::Own(_) => self.msix.as_ref().is_some_and(|msix| msix.place.table.0 == bar),
        }
    }

    /// The card's answer to a read of a BAR of its own.
    pub(super) fn read(&self, bar: u8, offset: u64, bytes: u32) -> Vec<u8> {
        if let (FunctionKind::Card { .. }, 0) = (&self.kind, bar) {
            let words = (offset & !3..offset + u64::from(bytes)).step_by(4);
            let data = words.flat_map(|at| self.registers.read_dword(at / 4).to_le_bytes());
            return data.skip((offset & 3) as usize).take(bytes as usize).collect();
        }
        let memory = self.msix.as_ref().map(|msix| msix.memory.read(bar, offset, bytes));
        memory.unwrap_or_else(|| vec![0; bytes as usize])
    }

    /// Somebody writes a BAR that the card answers itself: of all that is there software may write the table.
    pub(super) fn write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        if let Some(msix) = &mut self.msix {
            msix.memory.write(bar, offset, data);
        }
    }

    /// An entry of the table that the card holds: address and data; zeros if it holds none.
    pub(super) fn vector(&self, vector: u16) -> (u64, u32) {
        let held = self.msix.as_ref().filter(|msix| self.answers(msix.place.table.0));
        held.map_or((0, 0), |msix| msix.entry(vector))
    }

    /// The vector that writes `data` to `address`. Of a table that the device holds the adapter knows what it has written there itself.
    pub(super) fn vector_of(&self, address: u64, data: u32) -> Option<u16> {
        let msix = self.msix.as_ref()?;
        (0..msix.place.vectors).find(|vector| msix.entry(*vector) == (address, data))
    }

    /// A write of the host to a table that the device holds: address and bytes.
    pub(super) fn table_for_device(&self, device: usize) -> Option<(u64, Vec<u8>)> {
        let place = self.msix.as_ref()?.place;
        if self.answers(place.table.0) {
            return None;
        }
        let table = table_of(device, place.vectors);
        Some((self.address(place.table.0, place.table.1.into(), table.len() as u64)?, table))
    }

    fn capability(&self, id: u8) -> Option<u16> {
        let mut at = self.space.read(0x34) as u16 & 0xFC;
        // A chain of 48 capabilities would fill the space.
        for _ in 0..48 {
            let head = self.space.read(at);
            match (at, head as u8 == id) {
                (0, _) => return None,
                (_, true) => return Some(at),
                (_, false) => at = (head >> 8) as u16 & 0xFC,
            }
        }
        None
    }
}

impl Msix {
    fn entry(&self, vector: u16) -> (u64, u32) {
        let word = |n: u32| self.memory.table.read_table(16 * u32::from(vector) + 4 * n);
        (u64::from(word(1)) << 32 | u64::from(word(0)), word(2))
    }
}

/// The MSI-X table that the host's software writes. Of each entry: low and high address, data, not masked.
fn table_of(device: usize, vectors: u16) -> Vec<u8> {
    let address = INTERRUPTS.start as u32 | (device as u32 & 0xFF) << 12;
    let entries = (0..u32::from(vectors)).flat_map(|vector| [address, 0, 0x20 + vector, 0]);
    entries.flat_map(u32::to_le_bytes).collect()
}

/// The published card, with what its PCIe core has, and a BAR 2 of so many bytes.
///
/// # Errors
/// A window that no BAR can have.
pub fn card_layout(window: u64, home: MsixHome, bar2: u64) -> Result<Layout, AdapterError> {
    for bytes in [window, bar2] {
        if !bytes.is_power_of_two() || !(TABLE_FROM_END..=1 << 62).contains(&bytes) {
            return Err(AdapterError::Window(bytes));
        }
    }
    let mut header = Type0::new(Identity::new(CARD.0, CARD.1, 0x02_00_00));
    header.subsystem = CARD;
    header.bars[0] = Some(Bar::memory32(BAR0_BYTES));
    let wide = |prefetchable| BarKind::Memory { wide: true, prefetchable };
    header.bars[2] = Some(Bar { kind: wide(false), size: bar2 });
    header.bars[4] = Some(Bar { kind: wide(true), size: window });
    let (bar, table) = match home {
        MsixHome::Bar2 => (2, 0),
        MsixHome::Bar4 => {
            (4, u32::try_from(window - TABLE_FROM_END).map_err(|_| AdapterError::Window(window))?)
        }
    };
    let msix = MsiX { vectors: CARD_VECTORS, table: (bar, table), pending: (bar, table + PENDING_AFTER) };
    let link = LinkPart::new(Generation::Gen2, Width::new(4).unwrap_or(Width::ALL[0]));
    Ok(Layout::new(header)
        .capability_at(0x40, PowerManagement::default())
        .capability_at(0x60, Pcie::new(PortType::EndPoint, link))
        .capability_at(0x9C, msix)
        .extended(Aer::default()))
}

/// Gives addresses to the BARs of all functions: prefetchable 64-bit ones from 0xA0000000 on while there is room below 4 GiB, so
/// that requests to them have short headers, other 64-bit ones and what is left far above memory.
pub(super) fn place(functions: &mut [(Bdf, Function)]) -> Result<Vec<[u64; 6]>, AdapterError> {
    let mut registers = Region { next: 0xE000_0000, end: 0xFEC0_0000 };
    let mut low = Region { next: 0xA000_0000, end: 0xE000_0000 };
    let mut high = Region { next: 1 << 40, end: 1 << 46 };
    let mut placed = Vec::new();
    for (device, function) in functions {
        let mut bases = [0; 6];
        for (index, bar) in function.wanted().into_iter().enumerate() {
            let Some(bar) = bar else { continue };
            let prefetchable = matches!(bar.kind, BarKind::Memory { prefetchable: true, .. });
            let base = match (bar.kind.is_wide(), prefetchable) {
                (false, _) => registers.take(bar.size),
                (true, true) => low.take(bar.size).or_else(|| high.take(bar.size)),
                (true, false) => high.take(bar.size),
            };
            bases[index] =
                base.ok_or(AdapterError::NoAddress { device: *device, bar: index as u8, bytes: bar.size })?;
        }
        placed.push(bases);
    }
    Ok(placed)
}

struct Region {
    next: u64,
    end: u64,
}

impl Region {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let base = self.next.checked_next_multiple_of(bytes)?;
        let end = base.checked_add(bytes).filter(|end| *end <= self.end)?;
        self.next = end;
        Some(base)
    }
}
