//! The present meaning of the registers, for the hardware that must obey them.

use crate::PortType;
use crate::header::BarKind;
use crate::registers::{ats, bridge_control, command, header, pcie, power, sriov};
use crate::space::ConfigSpace;
use core::ops::RangeInclusive;
use tlplab_units::{Bdf, Duration, Generation, Mps, Mrrs, Width};

/// The command register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Answers to I/O; a bridge forwards it down.
    pub io: bool,
    /// Answers to memory requests; a bridge forwards them down.
    pub memory: bool,
    /// Permission to send requests, interrupts too; a bridge forwards them up.
    pub bus_master: bool,
    /// Reacts to poisoned data.
    pub parity_response: bool,
    /// Reports uncorrectable errors, whatever Device Control says.
    pub serr: bool,
    /// Must not use INTx.
    pub intx_disable: bool,
}

/// Address translation services of an end point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationView {
    /// It may ask for translations, and use them.
    pub enabled: bool,
    /// The least range of a translation: 4096 bytes to the power of two that software chose.
    pub unit: u64,
    /// Invalidations that it can queue, 1 to 32.
    pub queue_depth: u8,
}

/// A base address that decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarWindow {
    /// The lowest address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// The space it is in.
    pub kind: BarKind,
}

/// The buses and windows of a bridge. A window is `None` if it is closed: its limit is below its base, or decoding is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The bus above.
    pub primary: u8,
    /// The bus right below; 0 before enumeration.
    pub secondary: u8,
    /// The highest bus below.
    pub subordinate: u8,
    /// The I/O window.
    pub io: Option<RangeInclusive<u64>>,
    /// The memory window, below 4 GiB.
    pub memory: Option<RangeInclusive<u64>>,
    /// The window of prefetchable memory.
    pub prefetchable: Option<RangeInclusive<u64>>,
    /// Requests may go up.
    pub bus_master: bool,
    /// The link below is held in reset.
    pub secondary_reset: bool,
}

impl Bridge {
    /// True if that bus is below this bridge.
    pub fn holds_bus(&self, bus: u8) -> bool {
        self.secondary != 0 && (self.secondary..=self.subordinate).contains(&bus)
    }
    /// True if a memory request to that address goes down.
    pub fn claims(&self, address: u64) -> bool {
        [&self.memory, &self.prefetchable].into_iter().flatten().any(|window| window.contains(&address))
    }
}

/// The registers of the PCI Express capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieView {
    /// The kind of port; `None` if the registers name none.
    pub port: Option<PortType>,
    /// The largest payload it may send and must accept.
    pub mps: Mps,
    /// The most it may ask for in one read.
    pub mrrs: Mrrs,
    /// Bits of the tags it may use as a requester: 5, 8 or 10.
    pub tag_bits: u8,
    /// It may set the relaxed ordering attribute.
    pub relaxed_ordering: bool,
    /// It may set the no-snoop attribute.
    pub no_snoop: bool,
    /// It may set the attribute of ID-based ordering in requests.
    pub id_ordering: bool,
    /// The time that it waits for a completion; `None`: for ever.
    pub completion_timeout: Option<Duration>,
    /// It may forward to any function number below.
    pub ari_forwarding: bool,
    /// A root port shows software that a device is not ready, instead of asking again itself.
    pub retry_visibility: bool,
    /// The read completion boundary is 128 bytes rather than 64: a root port's own, or what an end point is told of it.
    pub read_boundary_128: bool,
    /// The link is switched off.
    pub link_disabled: bool,
    /// The speed that the link shall have at most, as a generation's number; 0 if the registers do not say.
    pub target_speed: u8,
    /// The hot-plug interrupt of the slot is enabled.
    pub hot_plug_interrupt: bool,
}

/// The link registers of a port (PCIe 5.0 §7.5.3.6, §7.5.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// The fastest and widest that the port can.
    pub capable: (Generation, Width),
    /// The speed and width that the link runs at.
    pub current: (Generation, Width),
}

/// Power states (PCIe 5.0 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerState {
    /// On.
    D0,
    /// Light sleep.
    D1,
    /// Deeper sleep.
    D2,
    /// Answers to configuration requests only.
    D3Hot,
}

impl ConfigSpace {
    /// Address translation services, if it has them.
    pub fn translation(&self) -> Option<TranslationView> {
        let value = self.read(self.positions.ats?.start + ats::CONTROL - 2);
        let (capability, control) = (value as u16, (value >> 16) as u16);
        let queue_depth = match capability & ats::QUEUE_DEPTH {
            0 => 32,
            depth => depth as u8,
        };
        let unit = 4096 << (control & ats::UNIT);
        Some(TranslationView { enabled: control & ats::ENABLE != 0, unit, queue_depth })
    }

    /// True if the function is a bridge.
    pub fn is_bridge(&self) -> bool {
        self.bytes[usize::from(header::HEADER_TYPE) + 2] & 0x7F == 1
    }

    /// The command register.
    pub fn command(&self) -> Command {
        let register = self.read16(header::COMMAND);
        let is = |bit| register & bit != 0;
        Command {
            io: is(command::IO),
            memory: is(command::MEMORY),
            bus_master: is(command::BUS_MASTER),
            parity_response: is(command::PARITY_RESPONSE),
            serr: is(command::SERR),
            intx_disable: is(command::INTX_DISABLE),
        }
    }

    /// The base addresses that decode now, by their index.
    pub fn bars(&self) -> [Option<BarWindow>; 6] {
        let command = self.command();
        self.base_addresses()
            .map(|bar| bar.filter(|bar| if bar.kind.is_io() { command.io } else { command.memory }))
    }

    /// All base addresses, by their index, those that do not decode too.
    pub fn base_addresses(&self) -> [Option<BarWindow>; 6] {
        let mut found = [None; 6];
        let mut index = 0;
        while index < if self.is_bridge() { 2 } else { 6 } {
            found[index] = self.bar(index);
            index += if found[index].is_some_and(|bar| bar.kind.is_wide()) { 2 } else { 1 };
        }
        found
    }

    /// A base address, even if it does not decode; its size is told by the bits that can be written.
    fn bar(&self, index: usize) -> Option<BarWindow> {
        let at = header::BARS + 4 * index as u16;
        let word = usize::from(at / 4);
        let register = self.read(at);
        let kind = BarKind::from_bits(register)?;
        let writable = |word: usize| u64::from(self.rules[word].writable);
        let (upper, mask) = if kind.is_wide() {
            (self.read(at + 4), writable(word) | writable(word + 1) << 32)
        } else {
            (0, writable(word))
        };
        if mask == 0 {
            return None;
        }
        let base = (u64::from(upper) << 32 | u64::from(register)) & mask;
        Some(BarWindow { base, size: 1 << mask.trailing_zeros(), kind })
    }

    /// The expansion ROM, if it decodes.
    pub fn rom(&self) -> Option<BarWindow> {
        let at = if self.is_bridge() { header::ROM_TYPE1 } else { header::ROM_TYPE0 };
        let mask = self.rules[usize::from(at / 4)].writable & !1;
        let register = self.read(at);
        let decodes = register & 1 == 1 && self.command().memory && mask != 0;
        let kind = BarKind::Memory { wide: false, prefetchable: false };
        decodes.then(|| BarWindow {
            base: u64::from(register & mask),
            size: 1 << mask.trailing_zeros(),
            kind,
        })
    }

    /// The buses and windows of a bridge; `None` for an end point.
    pub fn bridge(&self) -> Option<Bridge> {
        if !self.is_bridge() {
            return None;
        }
        let command = self.command();
        let [primary, secondary, subordinate, _] = self.read(header::BUS_NUMBERS).to_le_bytes();
        let control = self.read16(header::BRIDGE_CONTROL);
        Some(Bridge {
            primary,
            secondary,
            subordinate,
            io: self.io_window().filter(|_| command.io),
            memory: self.memory_window().filter(|_| command.memory),
            prefetchable: self.prefetchable_window().filter(|_| command.memory),
            bus_master: command.bus_master,
            secondary_reset: control & bridge_control::SECONDARY_BUS_RESET != 0,
        })
    }

    fn io_window(&self) -> Option<RangeInclusive<u64>> {
        if self.rules[usize::from(header::IO_WINDOW / 4)].writable & 0xFFFF == 0 {
            return None;
        }
        let (low, high) = (self.read(header::IO_WINDOW), self.read(header::IO_UPPER));
        let base = u64::from(low & 0xF0) << 8 | u64::from(high & 0xFFFF) << 16;
        let limit = u64::from(low >> 8 & 0xF0) << 8 | u64::from(high >> 16) << 16 | 0xFFF;
        (base <= limit).then_some(base..=limit)
    }

    fn memory_window(&self) -> Option<RangeInclusive<u64>> {
        let (base, limit) = window_bits(self.read(header::MEMORY_WINDOW));
        (base <= limit).then_some(base..=limit)
    }

    fn prefetchable_window(&self) -> Option<RangeInclusive<u64>> {
        if self.rules[usize::from(header::PREFETCHABLE_WINDOW / 4)].writable == 0 {
            return None;
        }
        let (base, limit) = window_bits(self.read(header::PREFETCHABLE_WINDOW));
        let base = base | u64::from(self.read(header::PREFETCHABLE_BASE_UPPER)) << 32;
        let limit = limit | u64::from(self.read(header::PREFETCHABLE_LIMIT_UPPER)) << 32;
        (base <= limit).then_some(base..=limit)
    }

    /// The PCI Express capability, if there is one.
    pub fn pcie(&self) -> Option<PcieView> {
        self.positions.pcie?;
        let register = |at| self.pcie_register(at);
        let control = register(pcie::DEVICE_CONTROL) as u16;
        let control_2 = register(pcie::DEVICE_CONTROL_2) as u16;
        let ten_bits = control_2 >> 12 & 1 == 1;
        Some(PcieView {
            port: PortType::from_bits(register(pcie::CAPABILITIES) as u8 >> 4),
            mps: size_of(Mps::ALL, control >> 5),
            mrrs: size_of(Mrrs::ALL, control >> 12),
            tag_bits: if ten_bits {
                10
            } else if control >> 8 & 1 == 1 {
                8
            } else {
                5
            },
            relaxed_ordering: control >> 4 & 1 == 1,
            no_snoop: control >> 11 & 1 == 1,
            id_ordering: control_2 >> 8 & 1 == 1,
            completion_timeout: completion_timeout(control_2),
            ari_forwarding: control_2 >> 5 & 1 == 1,
            retry_visibility: register(pcie::ROOT_CONTROL) as u16 & pcie::RRS_VISIBILITY != 0,
            read_boundary_128: register(pcie::LINK_CONTROL) as u16 & pcie::READ_BOUNDARY_128 != 0,
            link_disabled: register(pcie::LINK_CONTROL) as u16 & pcie::LINK_DISABLE != 0,
            target_speed: register(pcie::LINK_CONTROL_2) as u8 & 0xF,
            hot_plug_interrupt: register(pcie::SLOT_CONTROL) as u16 & pcie::HOT_PLUG_INTERRUPT != 0,
        })
    }

    /// The link of this port; `None` for functions that have none, as those inside the root complex.
    pub fn link(&self) -> Option<LinkView> {
        // Speed is in bits 3:0 of both registers, width in bits 9:4.
        let of = |register: u32| {
            let generation = Generation::new(register as u8 & 0xF)?;
            Some((generation, Width::new((register >> 4) as u8 & 0x3F)?))
        };
        Some(LinkView {
            capable: of(self.pcie_register(pcie::LINK_CAPABILITIES))?,
            current: of(self.pcie_register(pcie::LINK_STATUS))?,
        })
    }

    /// The power state; D0 without the capability.
    pub fn power_state(&self) -> PowerState {
        let register = self.positions.power.map_or(0, |span| self.read16(span.start + power::CONTROL));
        match register & 0b11 {
            0 => PowerState::D0,
            1 => PowerState::D1,
            2 => PowerState::D2,
            _ => PowerState::D3Hot,
        }
    }

    /// The routing IDs of the virtual functions that are switched on.
    pub fn virtual_functions(&self, own: Bdf) -> impl Iterator<Item = Bdf> + use<> {
        let register = |at| self.positions.sriov.map_or(0, |span| self.read16(span.start + at));
        let on = register(sriov::CONTROL) & sriov::ENABLE != 0;
        let count = if on { register(sriov::COUNT) } else { 0 };
        let (first, stride) = (register(sriov::OFFSET), register(sriov::OFFSET + 2));
        (0..count).map(move |n| Bdf(own.0.wrapping_add(first).wrapping_add(n.wrapping_mul(stride))))
    }

    /// True if a link leads down from it.
    pub(crate) fn is_downstream_port(&self) -> bool {
        let port = PortType::from_bits(self.pcie_register(pcie::CAPABILITIES) as u8 >> 4);
        port.is_some_and(PortType::is_downstream)
    }

    /// The registers from `register` on of the PCI Express capability; zero where it has none.
    pub(crate) fn pcie_register(&self, register: u16) -> u32 {
        let Some(span) = self.positions.pcie.filter(|span| register < span.bytes) else { return 0 };
        let low = u32::from(self.read16(span.start + register));
        if register.is_multiple_of(4) {
            low | u32::from(self.read16(span.start + register + 2)) << 16
        } else {
            low
        }
    }
}

/// Base and limit of a memory window, in units of 1 MiB.
fn window_bits(register: u32) -> (u64, u64) {
    let base = u64::from(register & 0xFFF0) << 16;
    let limit = u64::from(register & 0xFFF0_0000) | 0xF_FFFF;
    (base, limit)
}

/// The size that three bits name; reserved values are the largest.
fn size_of<T: Copy>(all: &[T], bits: u16) -> T {
    all[usize::from(bits & 7).min(all.len() - 1)]
}

/// The upper end of the range that is chosen; the default range is that of 50 µs to 50 ms (PCIe 5.0 §7.5.3.16).
fn completion_timeout(control: u16) -> Option<Duration> {
    if control >> 4 & 1 == 1 {
        return None;
    }
    Some(match control & 0xF {
        0b0001 => Duration::from_us(100),
        0b0010 => Duration::from_ms(10),
        0b0101 => Duration::from_ms(55),
        0b0110 => Duration::from_ms(210),
        0b1001 => Duration::from_ms(900),
        0b1010 => Duration::from_ms(3_500),
        0b1101 => Duration::from_ms(13_000),
        0b1110 => Duration::from_ms(64_000),
        _ => Duration::from_ms(50),
    })
}
