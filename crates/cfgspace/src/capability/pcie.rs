//! The PCI Express capability: device, link, slot and root registers (PCIe 5.0 §7.5.3).

use crate::layout::{Block, LayoutError};
use crate::registers::pcie;
use tlplab_units::{Generation, Mps, Width};

/// The kind of port, and its capabilities.
///
/// Start from [`Pcie::new`], with the capabilities that every function has today, and change the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcie {
    /// The kind of port.
    pub port: PortType,
    /// The structure's version.
    pub version: PcieVersion,
    /// The largest payload it can receive.
    pub mps: Mps,
    /// It can use 8 bits of tag.
    pub extended_tag: bool,
    /// It can complete requests with 10 bits of tag, as everything of 16 GT/s and more must (PCIe 5.0 §2.2.6.2).
    pub ten_bit_completer: bool,
    /// It can use 10 bits of tag for its own requests.
    pub ten_bit_requester: bool,
    /// It has a function-level reset.
    pub function_level_reset: bool,
    /// Its link; `None` for a part of the root complex.
    pub link: Option<LinkPart>,
    /// The slot below it, for a root port or downstream port.
    pub slot: Option<Slot>,
    /// The vector of MSI or MSI-X that hot-plug and power management events use.
    pub interrupt_vector: u8,
    /// It can report its tolerance of latency, with the registers of [`ExtendedCapability::Ltr`](crate::ExtendedCapability::Ltr).
    pub ltr: bool,
    /// A root port's read completion boundary is 128 bytes rather than 64.
    pub read_boundary_128: bool,
    /// A downstream port can forward to any function number below it, without a device number.
    pub ari_forwarding: bool,
}

/// The structure's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcieVersion {
    /// That of PCIe 1.0 and 1.1, which ends before the second set of registers.
    V1,
    /// All of it.
    V2,
}

/// The kind of port (Device/Port Type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortType {
    /// An end point.
    EndPoint = 0,
    /// An end point that needs I/O or locked transactions.
    LegacyEndPoint = 1,
    /// A root port.
    RootPort = 4,
    /// A switch's upstream port.
    Upstream = 5,
    /// A switch's downstream port.
    Downstream = 6,
    /// A bridge down to a parallel bus of PCI or PCI-X.
    BridgeToPci = 7,
    /// An end point that is part of the root complex.
    RcIntegrated = 9,
}

/// One side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPart {
    /// The fastest it can.
    pub speed: Generation,
    /// The widest it can.
    pub width: Width,
    /// A downstream port reports the loss of its link as an error.
    pub surprise_down_reporting: bool,
    /// The port's number.
    pub port: u8,
}

/// A slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Its number on the chassis, at most 13 bits.
    pub number: u16,
    /// Cards may come and go.
    pub hot_plug: bool,
    /// Cards may go without a word.
    pub surprise: bool,
    /// The power it can deliver, in watts.
    pub power_limit: u8,
}

impl PortType {
    /// The port types that this crate knows.
    pub const ALL: [Self; 7] = [
        Self::EndPoint,
        Self::LegacyEndPoint,
        Self::RootPort,
        Self::Upstream,
        Self::Downstream,
        Self::BridgeToPci,
        Self::RcIntegrated,
    ];

    /// The kind with this number.
    pub fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|port| *port as u8 == bits)
    }
    /// True for functions that are no bridge.
    pub(crate) fn ends_path(self) -> bool {
        matches!(self, Self::EndPoint | Self::LegacyEndPoint | Self::RcIntegrated)
    }
    /// True if a link leads down from it.
    pub fn is_downstream(self) -> bool {
        matches!(self, Self::RootPort | Self::Downstream)
    }
}

impl LinkPart {
    /// A link of that speed and width.
    pub const fn new(speed: Generation, width: Width) -> Self {
        Self { speed, width, surprise_down_reporting: true, port: 0 }
    }
}

impl Pcie {
    /// A function of today: 8-bit and 10-bit tags, function-level reset if it ends a path, payloads of up to 512 bytes.
    pub fn new(port: PortType, link: impl Into<Option<LinkPart>>) -> Self {
        Self {
            port,
            version: PcieVersion::V2,
            mps: Mps::ALL[2],
            extended_tag: true,
            ten_bit_completer: true,
            ten_bit_requester: true,
            function_level_reset: port.ends_path(),
            link: link.into(),
            slot: None,
            interrupt_vector: 0,
            ltr: false,
            read_boundary_128: false,
            ari_forwarding: port.is_downstream(),
        }
    }

    pub(crate) fn bytes(self) -> u16 {
        match (self.version, self.port) {
            (PcieVersion::V2, _) => pcie::BYTES,
            (_, PortType::RootPort) => pcie::DEVICE_CAPABILITIES_2,
            (_, PortType::Downstream) => pcie::ROOT_CONTROL,
            (..) => pcie::SLOT_CAPABILITIES,
        }
    }

    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let wants_link = self.port != PortType::RcIntegrated;
        block.require(
            self.link.is_some() == wants_link,
            "link",
            0u8,
            "there, unless the function is part of the root complex",
        )?;
        block.require(
            self.slot.is_none() || self.port.is_downstream(),
            "slot",
            self.port as u8,
            "below a root port (4) or a downstream port (6)",
        )?;
        block.set_field(pcie::CAPABILITIES, 0, if self.version == PcieVersion::V1 { 1 } else { 2u16 });
        block.set_field(pcie::CAPABILITIES, 4, self.port as u16);
        block.set_field(pcie::CAPABILITIES, 8, self.slot.is_some());
        block.set_field(pcie::CAPABILITIES, 9, self.interrupt_vector & 0x1F);
        self.place_device(block);
        if let Some(link) = self.link {
            self.place_link(block, link);
        }
        if let Some(slot) = self.slot {
            place_slot(block, slot)?;
        }
        if self.port == PortType::RootPort {
            place_root(block);
        }
        if self.version == PcieVersion::V2 {
            self.place_second(block);
        }
        Ok(())
    }

    fn place_device(self, block: &mut Block<'_>) {
        let role_based_errors = true;
        block.set_field(pcie::DEVICE_CAPABILITIES, 0, self.mps.bytes().trailing_zeros() - 7);
        block.set_field(pcie::DEVICE_CAPABILITIES, 5, self.extended_tag);
        block.set_field(pcie::DEVICE_CAPABILITIES, 15, role_based_errors);
        block.set_field(pcie::DEVICE_CAPABILITIES, 28, self.function_level_reset);
        // Relaxed ordering and no-snoop are permitted, read requests have 512 bytes. The ports of a switch read nothing: theirs is fixed at 128
        // bytes (§7.5.3.4).
        let reads = !matches!(self.port, PortType::Upstream | PortType::Downstream);
        block.set_field(pcie::DEVICE_CONTROL, 4, true);
        block.set_field(pcie::DEVICE_CONTROL, 11, true);
        block.set_field(pcie::DEVICE_CONTROL, 12, u16::from(reads) << 1);
        block.writable(pcie::DEVICE_CONTROL, if reads { 0x78FF } else { 0x08FFu16 });
        block.writable(pcie::DEVICE_CONTROL, u16::from(self.extended_tag) << 8);
        block.kept(pcie::DEVICE_CONTROL, 0x00E0u16);
        block.clearable(pcie::DEVICE_STATUS, 0b1111u16);
    }

    fn place_link(self, block: &mut Block<'_>, link: LinkPart) {
        let downstream = self.port.is_downstream();
        let (aspm_optional, common_clock) = (true, true);
        let (speed, width) = (link.speed.number(), link.width.lanes());
        block.set_field(pcie::LINK_CAPABILITIES, 0, speed);
        block.set_field(pcie::LINK_CAPABILITIES, 4, width);
        block.set_field(pcie::LINK_CAPABILITIES, 19, downstream && link.surprise_down_reporting);
        block.set(pcie::LINK_CAPABILITIES, if downstream { pcie::DLL_ACTIVE_REPORTING } else { 0 });
        block.set_field(pcie::LINK_CAPABILITIES, 22, aspm_optional);
        block.set_field(pcie::LINK_CAPABILITIES, 24, link.port);
        // End points and bridges to other buses are told the boundary of their root complex (§7.5.3.7).
        let told = self.port.ends_path() || self.port == PortType::BridgeToPci;
        block.writable(pcie::LINK_CONTROL, 0x00C3u16);
        block.writable(pcie::LINK_CONTROL, u16::from(downstream) << 4);
        block.writable(pcie::LINK_CONTROL, u16::from(told) << 3);
        if self.port == PortType::RootPort && self.read_boundary_128 {
            block.set(pcie::LINK_CONTROL, pcie::READ_BOUNDARY_128);
        }
        block.kept(pcie::LINK_CONTROL, 0x00CBu16);
        // Until the link trains the registers show what it would be at best; they are hardware's.
        block.set_field(pcie::LINK_STATUS, 0, speed);
        block.set_field(pcie::LINK_STATUS, 4, width);
        block.set_field(pcie::LINK_STATUS, 12, common_clock);
    }

    fn place_second(self, block: &mut Block<'_>) {
        let timeouts = 0x1Fu8; // all ranges, and it can be switched off
        block.set_field(pcie::DEVICE_CAPABILITIES_2, 0, timeouts);
        block.set_field(pcie::DEVICE_CAPABILITIES_2, 5, self.ari_forwarding);
        block.set_field(pcie::DEVICE_CAPABILITIES_2, 11, self.ltr);
        block.writable(pcie::DEVICE_CONTROL_2, 0x031Fu16);
        block.writable(pcie::DEVICE_CONTROL_2, u16::from(self.ari_forwarding) << 5);
        block.writable(pcie::DEVICE_CONTROL_2, u16::from(self.ltr) << 10);
        if self.ten_bit_completer {
            block.set(pcie::DEVICE_CAPABILITIES_2, pcie::TEN_BIT_COMPLETER);
        }
        if self.ten_bit_requester {
            block.set(pcie::DEVICE_CAPABILITIES_2, pcie::TEN_BIT_REQUESTER);
            block.writable(pcie::DEVICE_CONTROL_2, pcie::TEN_BIT_ENABLE);
        }
        if let Some(link) = self.link {
            let speeds = (1u32 << link.speed.number()) - 1;
            block.set_field(pcie::LINK_CAPABILITIES_2, 1, speeds);
            block.set(pcie::LINK_CONTROL_2, u16::from(link.speed.number()));
            block.writable(pcie::LINK_CONTROL_2, 0x002Fu16);
            block.sticky(pcie::LINK_CONTROL_2, 0x002Fu16);
        }
    }
}

fn place_slot(block: &mut Block<'_>, slot: Slot) -> Result<(), LayoutError> {
    block.require(slot.number < 1 << 13, "slot number", slot.number, "at most 8191")?;
    // No Command Completed Support: what is written to Slot Control takes effect at once.
    let at_once = true;
    block.set_field(pcie::SLOT_CAPABILITIES, 5, slot.surprise);
    block.set_field(pcie::SLOT_CAPABILITIES, 6, slot.hot_plug);
    block.set_field(pcie::SLOT_CAPABILITIES, 7, slot.power_limit);
    block.set_field(pcie::SLOT_CAPABILITIES, 18, at_once);
    block.set_field(pcie::SLOT_CAPABILITIES, 19, slot.number);
    let indicators_off = 0b1111u16 << 6;
    block.set(pcie::SLOT_CONTROL, indicators_off);
    if slot.hot_plug {
        for enable in [pcie::PRESENCE_CHANGED, pcie::HOT_PLUG_INTERRUPT, pcie::DLL_CHANGED_ENABLE] {
            block.writable(pcie::SLOT_CONTROL, enable);
        }
        for event in [pcie::PRESENCE_CHANGED, pcie::DLL_CHANGED] {
            block.clearable(pcie::SLOT_STATUS, event);
        }
    }
    Ok(())
}

fn place_root(block: &mut Block<'_>) {
    block.writable(pcie::ROOT_CONTROL, 0x001Fu16);
    block.set(pcie::ROOT_CAPABILITIES, 1u16);
    block.clearable(pcie::ROOT_STATUS, 1u32 << 16);
}
