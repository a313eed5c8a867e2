//! Data link layer packets: six bytes, of which two are a CRC (PCIe 5.0 §3.5).
//!
//! [`Packet`] shows the bytes, [`Repr`] is what they mean. On the link a DLLP costs eight bytes ([`WIRE_BYTES`]), framing included.

use crate::{Error, crc};
use core::fmt;
use tlplab_units::{FcClass, Vc};

/// Bytes of a DLLP, CRC included.
pub const BYTES: usize = 6;
/// Bytes a DLLP costs on a link without flits: SDP and END in Gen1 and 2, an SDP token of two bytes from Gen3 on.
pub const WIRE_BYTES: u32 = 8;

const SECTION: &str = "PCIe 5.0 §3.5.1";

/// Bytes seen as a DLLP. Accessors return `None` where the bytes end too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a>(&'a [u8]);

impl<'a> Packet<'a> {
    /// Views `bytes`, whatever they are.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
    /// All the bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.0
    }
    /// Byte 0: the type, of flow control with the virtual channel in its low three bits.
    pub const fn type_bits(&self) -> Option<u8> {
        match self.0 {
            [kind, ..] => Some(*kind),
            _ => None,
        }
    }
    /// The four bytes before the CRC.
    pub const fn content(&self) -> Option<[u8; 4]> {
        match self.0 {
            [a, b, c, d, ..] => Some([*a, *b, *c, *d]),
            _ => None,
        }
    }
    /// Bytes 2 and 3, low twelve bits: the sequence number of an Ack or Nak.
    pub const fn sequence(&self) -> Option<u16> {
        match self.0 {
            [_, _, c, d, ..] => Some(u16::from_be_bytes([*c, *d]) & 0xfff),
            _ => None,
        }
    }
    /// The CRC, little-endian as [`crc::dllp`] counts.
    pub const fn crc(&self) -> Option<u16> {
        match self.0 {
            [_, _, _, _, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
            _ => None,
        }
    }
    /// True if the CRC matches.
    pub fn crc_matches(&self) -> Option<bool> {
        Some(crc::dllp(self.content()?) == self.crc()?)
    }
}

/// A sequence number of twelve bits (PCIe 5.0 §3.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u16);

impl Sequence {
    /// `value` modulo 4096.
    pub const fn new(value: u16) -> Self {
        Self(value & 0xfff)
    }
    /// 0 to 4095.
    pub const fn value(self) -> u16 {
        self.0
    }
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }
    /// The distance of `self` ahead of `earlier`, modulo 4096; more than 2048 means behind.
    pub const fn since(self, earlier: Self) -> u16 {
        self.0.wrapping_sub(earlier.0) & 0xfff
    }
}

/// The power of two by which credits are counted (PCIe 5.0 §3.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Scaled flow control is not in use: 8 bits for headers, 12 for data.
    #[default]
    Off = 0,
    /// In use, factor 1.
    By1 = 1,
    /// Factor 4.
    By4 = 2,
    /// Factor 16.
    By16 = 3,
}

impl Scale {
    /// The scale that two bits stand for.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Off,
            1 => Self::By1,
            2 => Self::By4,
            _ => Self::By16,
        }
    }
    /// Bits by which a credit count is shifted right to become a field: 0, 2 or 4.
    pub const fn shift(self) -> u32 {
        match self {
            Self::Off | Self::By1 => 0,
            Self::By4 => 2,
            Self::By16 => 4,
        }
    }
}

/// The kind of flow control DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FcPhase {
    /// InitFC1: the first round of initialisation. A count of 0 advertises infinite credits.
    Init1,
    /// InitFC2: the second round.
    Init2,
    /// UpdateFC: the running total of credits ever granted.
    Update,
}

/// The contents of InitFC1, InitFC2 and UpdateFC: counts are fields as on the wire, scaled, modulo 256 and 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowControl {
    /// InitFC1, InitFC2 or UpdateFC.
    pub phase: FcPhase,
    /// Posted, non-posted, completion.
    pub class: FcClass,
    /// Virtual channel.
    pub vc: Vc,
    /// HdrScale.
    pub header_scale: Scale,
    /// HdrFC.
    pub header: u8,
    /// DataScale.
    pub data_scale: Scale,
    data: u16,
}

impl FlowControl {
    /// Credits without scaling. `data` counts modulo 4096.
    pub const fn new(phase: FcPhase, class: FcClass, vc: Vc, header: u8, data: u16) -> Self {
        Self {
            phase,
            class,
            vc,
            header_scale: Scale::Off,
            header,
            data_scale: Scale::Off,
            data: data & 0xfff,
        }
    }
    /// Credits with scaling. `header` and `data` are total counts, which are scaled down and wrap here.
    pub const fn scaled(
        phase: FcPhase,
        class: FcClass,
        vc: Vc,
        (header_scale, header): (Scale, u32),
        (data_scale, data): (Scale, u32),
    ) -> Self {
        Self {
            phase,
            class,
            vc,
            header_scale,
            header: (header >> header_scale.shift()) as u8,
            data_scale,
            data: (data >> data_scale.shift()) as u16 & 0xfff,
        }
    }
    /// DataFC, 0 to 4095.
    pub const fn data(&self) -> u16 {
        self.data
    }
}

/// Power management DLLPs (PCIe 5.0 §5.3.2, §5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PmCode {
    /// `PM_Enter_L1`.
    EnterL1 = 0x20,
    /// `PM_Enter_L23`.
    EnterL23 = 0x21,
    /// `PM_Active_State_Request_L1`.
    ActiveStateRequestL1 = 0x23,
    /// `PM_Request_Ack`.
    RequestAck = 0x24,
}

/// A DLLP that can only be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repr {
    /// All TLPs up to this sequence number have arrived.
    Ack(Sequence),
    /// All TLPs up to this sequence number have arrived, those that followed have not.
    Nak(Sequence),
    /// InitFC1, InitFC2, UpdateFC.
    FlowControl(FlowControl),
    /// Power management.
    Pm(PmCode),
    /// Data link feature exchange (PCIe 5.0 §3.3): the features supported, 23 bits, of which bit 0 is scaled flow control.
    Feature {
        /// The peer's features have been seen.
        ack: bool,
        /// Features supported.
        supported: FeatureBits,
    },
    /// Vendor-specific: three bytes.
    Vendor([u8; 3]),
    /// NOP: no effect (PCIe 5.0 §3.5.1, since 4.0).
    Nop,
}

/// The 23 bits of Feature Supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureBits(u32);

impl FeatureBits {
    /// Scaled flow control, the only feature of PCIe 4.0 and 5.0.
    pub const SCALED_FLOW_CONTROL: Self = Self(1);
    /// 23 bits.
    pub const fn new(bits: u32) -> Option<Self> {
        if bits >> 23 == 0 { Some(Self(bits)) } else { None }
    }
    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl Repr {
    /// Reads a DLLP of six bytes and checks its CRC. Reserved bits are ignored.
    ///
    /// # Errors
    /// A wrong length, a wrong CRC, a type that is reserved or belongs to multi-root IO virtualisation.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Error> {
        let have = packet.bytes().len();
        let (Some(content), Some(found)) = (packet.content(), packet.crc()) else {
            return Err(Error::truncated("DLLP", SECTION, BYTES, have).at(have));
        };
        if have > BYTES {
            let what = crate::Problem::TooLong { expected: BYTES, have };
            return Err(Error { field: "DLLP", section: SECTION, offset: Some(BYTES as u16), what });
        }
        if crc::dllp(content) != found {
            return Err(
                Error::value("CRC", SECTION, found.into(), "the CRC of the four bytes before it").at(4)
            );
        }
        Self::from_content(content)
    }

    /// Reads the four bytes before the CRC, as a flit carries them.
    ///
    /// # Errors
    /// A type that is reserved or belongs to multi-root IO virtualisation.
    pub const fn from_content(content: [u8; 4]) -> Result<Self, Error> {
        let [kind, a, b, c] = content;
        let word = u32::from_be_bytes(content);
        Ok(match kind {
            0x00 => Self::Ack(Sequence::new(word as u16)),
            0x10 => Self::Nak(Sequence::new(word as u16)),
            0x02 => Self::Feature { ack: a & 0x80 != 0, supported: FeatureBits(word & 0x7f_ffff) },
            0x20 => Self::Pm(PmCode::EnterL1),
            0x21 => Self::Pm(PmCode::EnterL23),
            0x23 => Self::Pm(PmCode::ActiveStateRequestL1),
            0x24 => Self::Pm(PmCode::RequestAck),
            0x30 => Self::Vendor([a, b, c]),
            0x31 => Self::Nop,
            _ => match flow_control(word) {
                Some(credits) => Self::FlowControl(credits),
                None => {
                    let wanted = "a DLLP type of table 3-1 (without multi-root ones)";
                    return Err(Error::value("DLLP Type", SECTION, kind as u64, wanted).at(0));
                }
            },
        })
    }

    /// The four bytes before the CRC.
    pub const fn content(&self) -> [u8; 4] {
        match *self {
            Self::Ack(Sequence(n)) => [0x00, 0, (n >> 8) as u8, n as u8],
            Self::Nak(Sequence(n)) => [0x10, 0, (n >> 8) as u8, n as u8],
            Self::FlowControl(fc) => {
                let phase: u32 = match fc.phase {
                    FcPhase::Init1 => 0x40,
                    FcPhase::Init2 => 0xc0,
                    FcPhase::Update => 0x80,
                };
                let kind = phase | (fc.class as u32) << 4 | fc.vc.value() as u32;
                let header = (fc.header_scale as u32) << 22 | (fc.header as u32) << 14;
                (kind << 24 | header | (fc.data_scale as u32) << 12 | fc.data as u32).to_be_bytes()
            }
            Self::Pm(code) => [code as u8, 0, 0, 0],
            Self::Feature { ack, supported } => {
                (0x0200_0000 | (ack as u32) << 23 | supported.0).to_be_bytes()
            }
            Self::Vendor([a, b, c]) => [0x30, a, b, c],
            Self::Nop => [0x31, 0, 0, 0],
        }
    }

    /// The six bytes, CRC included.
    pub fn emit(&self) -> [u8; BYTES] {
        let content = self.content();
        let [low, high] = crc::dllp(content).to_le_bytes();
        let [a, b, c, d] = content;
        [a, b, c, d, low, high]
    }

    /// The specification's name: `Ack`, `UpdateFC-P`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ack(_) => "Ack",
            Self::Nak(_) => "Nak",
            Self::FlowControl(fc) => match (fc.phase, fc.class) {
                (FcPhase::Init1, FcClass::Posted) => "InitFC1-P",
                (FcPhase::Init1, FcClass::NonPosted) => "InitFC1-NP",
                (FcPhase::Init1, FcClass::Completion) => "InitFC1-Cpl",
                (FcPhase::Init2, FcClass::Posted) => "InitFC2-P",
                (FcPhase::Init2, FcClass::NonPosted) => "InitFC2-NP",
                (FcPhase::Init2, FcClass::Completion) => "InitFC2-Cpl",
                (FcPhase::Update, FcClass::Posted) => "UpdateFC-P",
                (FcPhase::Update, FcClass::NonPosted) => "UpdateFC-NP",
                (FcPhase::Update, FcClass::Completion) => "UpdateFC-Cpl",
            },
            Self::Pm(PmCode::EnterL1) => "PM_Enter_L1",
            Self::Pm(PmCode::EnterL23) => "PM_Enter_L23",
            Self::Pm(PmCode::ActiveStateRequestL1) => "PM_Active_State_Request_L1",
            Self::Pm(PmCode::RequestAck) => "PM_Request_Ack",
            Self::Feature { .. } => "Feature",
            Self::Vendor(_) => "Vendor",
            Self::Nop => "NOP",
        }
    }
}

/// A line as a packet printer shows it: `UpdateFC-P, vc 0, hdr 32, data 256`.
impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Ack(sequence) | Self::Nak(sequence) => write!(f, ", seq {}", sequence.value()),
            Self::FlowControl(fc) => {
                write!(f, ", vc {}, hdr {}", fc.vc.value(), fc.header)?;
                if fc.header_scale != Scale::Off {
                    write!(f, "<<{}", fc.header_scale.shift())?;
                }
                write!(f, ", data {}", fc.data)?;
                match fc.data_scale {
                    Scale::Off => Ok(()),
                    scale => write!(f, "<<{}", scale.shift()),
                }
            }
            Self::Feature { ack, supported } => write!(f, ", ack {}, supported {:#x}", ack, supported.0),
            Self::Vendor([a, b, c]) => write!(f, ", {a:02x}{b:02x}{c:02x}"),
            Self::Pm(_) | Self::Nop => Ok(()),
        }
    }
}

/// Types x1xx_0vvv for the phases 01, 11 and 10 and the classes 00, 01 and 10.
const fn flow_control(word: u32) -> Option<FlowControl> {
    let kind = (word >> 24) as u8;
    let phase = match kind >> 6 {
        0b01 => FcPhase::Init1,
        0b11 => FcPhase::Init2,
        0b10 => FcPhase::Update,
        _ => return None,
    };
    let class = match kind >> 4 & 3 {
        0 => FcClass::Posted,
        1 => FcClass::NonPosted,
        2 => FcClass::Completion,
        _ => return None,
    };
    let vc = match Vc::new(kind & 15) {
        Some(vc) => vc,
        None => return None,
    };
    Some(FlowControl {
        phase,
        class,
        vc,
        header_scale: Scale::from_bits((word >> 22) as u8),
        header: (word >> 14) as u8,
        data_scale: Scale::from_bits((word >> 12) as u8),
        data: word as u16 & 0xfff,
    })
}
