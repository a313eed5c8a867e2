//! The registers of a function of a real machine, as far as somebody has dumped them: those that are not in the dump stay unknown.
//!
//! A dump has the 64 bytes of the header, the 256 of PCI, or all 4096 ([`crate::lspci`]); it may end anywhere.

use crate::extended::AcsControls;
use crate::registers::{acs, aer, ats, command, header, id, pcie, power, sriov};

/// A capability in one of the two chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its identifier.
    pub id: u16,
    /// Its version; of those below 100h, 0.
    pub version: u8,
    /// Its offset.
    pub offset: u16,
}

/// The registers of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    bytes: &'a [u8],
    /// The chain below 100h, as far as it was dumped.
    pub capabilities: Vec<Found>,
    /// True if the dump holds the whole of that chain.
    pub capabilities_known: bool,
    /// The chain from 100h on, as far as it was dumped.
    pub extended: Vec<Found>,
    /// True if the dump holds the whole of that chain.
    pub extended_known: bool,
}

/// The kind of port, as the PCI Express capability names it (PCIe 5.0 §7.5.3.2); the simulator has fewer kinds
/// ([`crate::PortType`]).
pub fn port_name(kind: u16) -> &'static str {
    match kind {
        0 => "end point",
        1 => "legacy end point",
        4 => "root port",
        5 => "upstream port",
        6 => "downstream port",
        7 => "PCIe-to-PCI bridge",
        8 => "PCI-to-PCIe bridge",
        9 => "integrated end point",
        10 => "event collector",
        _ => "reserved",
    }
}

/// The device and link registers of the PCI Express capability (PCIe 5.0 §7.5.3); sizes are bytes, speeds generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Express {
    /// The offset of the capability.
    pub offset: u16,
    /// Its version.
    pub version: u16,
    /// The kind of port, see [`port_name`].
    pub kind: u16,
    /// A slot is below this port; of ports from which a link leads down.
    pub slot: Option<bool>,
    /// The largest payload it can; `None`: reserved.
    pub mps_supported: Option<u16>,
    /// The largest payload it may send.
    pub mps: Option<u16>,
    /// The most it may ask for in one read.
    pub mrrs: Option<u16>,
    /// It can have 8 bits of tag.
    pub extended_tags_supported: bool,
    /// It may use 8 bits of tag.
    pub extended_tags: bool,
    /// It may set the relaxed ordering attribute.
    pub relaxed_ordering: bool,
    /// It may set the no-snoop attribute.
    pub no_snoop: bool,
    /// It may use 10 bits of tag; `None` where the registers end before.
    pub ten_bit_tags: Option<bool>,
    /// The errors it has detected: correctable, non-fatal, fatal, unsupported request in bits 0 to 3.
    pub detected: u16,
    /// Its link; `None` for functions that have none, or where the dump ends before.
    pub link: Option<Link>,
}

/// The link of a port; speeds are generations, 0 where the registers name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The fastest that the port can.
    pub speed_possible: u8,
    /// The most lanes that it has.
    pub width_possible: u8,
    /// The number of the port, which is its bit in the egress control vectors of the ports beside it.
    pub port_number: u8,
    /// The ASPM states that it supports: L0s in bit 0, L1 in bit 1.
    pub aspm_supported: u8,
    /// The ASPM states that are enabled, likewise.
    pub aspm: u8,
    /// The read completion boundary, bytes; of root ports and end points.
    pub rcb: Option<u16>,
    /// The link is switched off.
    pub disabled: bool,
    /// The speed it runs at.
    pub speed: u8,
    /// Lanes it runs at; 0 if nothing is there.
    pub width: u8,
    /// Training is under way.
    pub training: bool,
    /// The data link layer is up; `None` if the port does not report it.
    pub active: Option<bool>,
    /// Bandwidth has changed, by software or since the link was not reliable.
    pub bandwidth_changed: bool,
    /// Bandwidth was changed by the hardware on its own, and not since the link was not reliable.
    pub autonomous_changed: bool,
    /// The speed that the link shall have at most; `None` in registers of version 1, 0 where they do not say.
    pub target_speed: Option<u8>,
}

impl<'a> Facts<'a> {
    /// Reads the bytes of a dump, from register 0 on; `None` if they are less than the header of 64 bytes.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 64 {
            return None;
        }
        let mut facts = Self {
            bytes,
            capabilities: Vec::new(),
            capabilities_known: false,
            extended: Vec::new(),
            extended_known: false,
        };
        facts.capabilities_known = facts.walk();
        facts.extended_known = facts.walk_extended();
        Some(facts)
    }

    /// The 8 bits at `offset`, if they were dumped.
    pub fn read8(&self, offset: u16) -> Option<u8> {
        self.bytes.get(usize::from(offset)).copied()
    }
    /// The 16 bits at `offset`, if they were dumped.
    pub fn read16(&self, offset: u16) -> Option<u16> {
        Some(u16::from_le_bytes([self.read8(offset)?, self.read8(offset.checked_add(1)?)?]))
    }
    /// The 32 bits at `offset`, if they were dumped.
    pub fn read32(&self, offset: u16) -> Option<u32> {
        Some(u32::from(self.read16(offset)?) | u32::from(self.read16(offset.checked_add(2)?)?) << 16)
    }

    /// Follows the chain below 100h; true if it got to the end.
    fn walk(&mut self) -> bool {
        if self.read16(header::STATUS).unwrap_or(0) & crate::registers::status::CAPABILITIES == 0 {
            return true;
        }
        // In the header of a CardBus bridge the pointer is where others have none (PCI-to-PCMCIA bridges, 14h).
        let pointer = if self.header_type() == 2 { 0x14 } else { header::CAPABILITIES };
        let mut next = self.read8(pointer).unwrap_or(0) & 0xFC;
        while next != 0 {
            let offset = u16::from(next);
            // A chain that goes on below 40h or in circles is no chain.
            if next < 0x40 || self.capabilities.iter().any(|found| found.offset == offset) {
                return true;
            }
            let Some(both) = self.read16(offset) else { return false };
            if both == 0xFFFF {
                return true;
            }
            self.capabilities.push(Found { id: both & 0xFF, version: 0, offset });
            next = (both >> 8) as u8 & 0xFC;
        }
        true
    }

    /// Follows the chain from 100h on; true if it got to the end.
    fn walk_extended(&mut self) -> bool {
        if self.capabilities_known && self.find(id::PCIE).is_none() {
            return true;
        }
        let mut next = 0x100;
        loop {
            let Some(head) = self.read32(next) else { return false };
            let circle = self.extended.iter().any(|found| found.offset == next);
            if head == 0 || head == u32::MAX || circle {
                return true;
            }
            self.extended.push(Found { id: head as u16, version: (head >> 16) as u8 & 0xF, offset: next });
            next = (head >> 20) as u16 & 0xFFC;
            if next < 0x100 {
                return true;
            }
        }
    }

    fn find(&self, id: u8) -> Option<u16> {
        self.capabilities.iter().find(|found| found.id == u16::from(id)).map(|found| found.offset)
    }
    fn find_extended(&self, id: u16) -> Option<u16> {
        self.extended.iter().find(|found| found.id == id).map(|found| found.offset)
    }

    /// The layout of the header: 0, 1 for bridges, 2 for CardBus.
    pub fn header_type(&self) -> u8 {
        self.read8(header::HEADER_TYPE + 2).unwrap_or(0) & 0x7F
    }
    /// Vendor ID and device ID.
    pub fn ids(&self) -> (u16, u16) {
        (self.read16(header::VENDOR).unwrap_or(0), self.read16(header::VENDOR + 2).unwrap_or(0))
    }
    /// Base class, sub-class and programming interface in 24 bits.
    pub fn class(&self) -> u32 {
        self.read32(header::CLASS).unwrap_or(0) >> 8
    }
    /// The revision.
    pub fn revision(&self) -> u8 {
        self.read8(header::CLASS).unwrap_or(0)
    }
    /// True if it may send requests.
    pub fn bus_master(&self) -> bool {
        self.read16(header::COMMAND).unwrap_or(0) & command::BUS_MASTER != 0
    }
    /// Primary, secondary and subordinate bus of a bridge.
    pub fn buses(&self) -> Option<[u8; 3]> {
        let [primary, secondary, subordinate, _] = self.read32(header::BUS_NUMBERS)?.to_le_bytes();
        (1..=2).contains(&self.header_type()).then_some([primary, secondary, subordinate])
    }
    /// The power state, 0 to 3; `None` without the capability or where the dump ends before.
    pub fn power_state(&self) -> Option<u8> {
        Some(self.read16(self.find(id::POWER)? + power::CONTROL)? as u8 & 0b11)
    }
    /// The controls of access between peers that there are, and those that are on: bits 0 to 6.
    pub fn access_control(&self) -> Option<(u16, u16)> {
        let base = self.find_extended(id::ACS)?;
        Some((self.read16(base + acs::CAPABILITIES)?, self.read16(base + acs::CONTROL)?))
    }
    /// The port numbers in the egress control vector, in ascending order (PCIe 5.0 §7.7.11). `None` without egress control, or where the
    /// dump ends before the vector does.
    pub fn egress_forbidden(&self) -> Option<Vec<u16>> {
        let base = self.find_extended(id::ACS)?;
        let [controls, size] = self.read16(base + acs::CAPABILITIES)?.to_le_bytes();
        if !AcsControls::from_bits(controls).contains(AcsControls::EGRESS_CONTROL) {
            return None;
        }
        let mut forbidden = Vec::new();
        // A size of 0 stands for 256.
        for number in 0..if size == 0 { 256 } else { u16::from(size) } {
            if self.read32(base + acs::VECTOR + number / 32 * 4)? >> (number % 32) & 1 == 1 {
                forbidden.push(number);
            }
        }
        Some(forbidden)
    }
    /// Address translation services: on or off, and the smallest translation unit, pages of 4 KiB as a power of two (PCIe 5.0 §10.5.1).
    pub fn address_translation(&self) -> Option<(bool, u8)> {
        let control = self.read16(self.find_extended(id::ATS)? + ats::CONTROL)?;
        Some((control & ats::ENABLE != 0, (control & ats::UNIT) as u8))
    }
    /// The errors in the registers of advanced error reporting: uncorrectable, correctable.
    pub fn errors(&self) -> Option<(u32, u32)> {
        let base = self.find_extended(id::AER)?;
        Some((self.read32(base + aer::UNCORRECTABLE_STATUS)?, self.read32(base + aer::CORRECTABLE_STATUS)?))
    }

    /// The virtual functions that are switched on: their number, the first one's offset, and the stride, in functions.
    pub fn virtual_functions(&self) -> Option<[u16; 3]> {
        let base = self.find_extended(id::SRIOV)?;
        let on = self.read16(base + sriov::CONTROL)? & sriov::ENABLE != 0;
        let count = if on { self.read16(base + sriov::COUNT)? } else { 0 };
        Some([count, self.read16(base + sriov::OFFSET)?, self.read16(base + sriov::OFFSET + 2)?])
    }

    /// The PCI Express capability.
    pub fn express(&self) -> Option<Express> {
        let offset = self.find(id::PCIE)?;
        let capabilities = self.read16(offset + pcie::CAPABILITIES)?;
        let device = self.read32(offset + pcie::DEVICE_CAPABILITIES)?;
        let control = self.read16(offset + pcie::DEVICE_CONTROL)?;
        let status = self.read16(offset + pcie::DEVICE_STATUS)?;
        let version = capabilities & 0xF;
        let kind = capabilities >> 4 & 0xF;
        let second = (version >= 2).then(|| self.read16(offset + pcie::DEVICE_CONTROL_2)).flatten();
        let size = |bits: u16| (bits & 7 < 6).then(|| 128 << (bits & 7));
        Some(Express {
            offset,
            version,
            kind,
            slot: matches!(kind, 4 | 6 | 8).then_some(capabilities >> 8 & 1 == 1),
            mps_supported: size(device as u16),
            mps: size(control >> 5),
            mrrs: size(control >> 12),
            extended_tags_supported: device & pcie::EXTENDED_TAG != 0,
            extended_tags: control & pcie::EXTENDED_TAG_ENABLE != 0,
            relaxed_ordering: control >> 4 & 1 == 1,
            no_snoop: control >> 11 & 1 == 1,
            ten_bit_tags: second.map(|control| control & pcie::TEN_BIT_ENABLE != 0),
            detected: status & 0xF,
            // Integrated end points and event collectors have no link.
            link: if matches!(kind, 9 | 10) { None } else { self.link(offset, version, kind) },
        })
    }

    fn link(&self, offset: u16, version: u16, kind: u16) -> Option<Link> {
        let capabilities = self.read32(offset + pcie::LINK_CAPABILITIES)?;
        let control = self.read16(offset + pcie::LINK_CONTROL)?;
        let status = self.read16(offset + pcie::LINK_STATUS)?;
        let second = (version >= 2).then(|| self.read16(offset + pcie::LINK_CONTROL_2)).flatten();
        let is = |bit: u16| status & bit != 0;
        Some(Link {
            speed_possible: capabilities as u8 & 0xF,
            width_possible: (capabilities >> 4) as u8 & 0x3F,
            port_number: (capabilities >> 24) as u8,
            aspm_supported: (capabilities >> 10) as u8 & 0b11,
            aspm: control as u8 & 0b11,
            rcb: matches!(kind, 0 | 1 | 4).then_some(if control & pcie::READ_BOUNDARY_128 == 0 {
                64
            } else {
                128
            }),
            disabled: control & pcie::LINK_DISABLE != 0,
            speed: status as u8 & 0xF,
            width: (status >> 4) as u8 & 0x3F,
            training: is(pcie::LINK_TRAINING),
            active: (capabilities & pcie::DLL_ACTIVE_REPORTING != 0).then(|| is(pcie::DLL_ACTIVE)),
            bandwidth_changed: is(pcie::BANDWIDTH_CHANGED),
            autonomous_changed: is(pcie::AUTONOMOUS_CHANGED),
            target_speed: second.map(|control| control as u8 & 0xF),
        })
    }
}
