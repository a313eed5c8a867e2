//! The datagrams beside the TLPs: configuration space, the driver's messages, the adapter's registers.
//!
//! None has the NetTLP header. A reply may be padded: what follows is ignored.

use std::fmt;
use tlplab_units::Bdf;

/// Which of the interfaces, told by the UDP port at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The adapter's configuration space: port 0x5001, or 0x4001, which is also that of TLPs with tag 1.
    Config,
    /// What the driver tells about the adapter: port 12287.
    Message,
    /// The adapter's own registers: port 0x5002.
    Registers,
}

impl Channel {
    pub(super) fn of_ports(source: u16, destination: u16) -> Option<Self> {
        let of = |port| match port {
            0x4001 | 0x5001 => Some(Self::Config),
            12287 => Some(Self::Message),
            0x5002 => Some(Self::Registers),
            _ => None,
        };
        of(destination).or_else(|| of(source))
    }

    /// On a port that TLPs use, too: is this payload one of the channel? It ends after its six bytes, or only zeros follow; no
    /// TLP is all zeros, since a read of 1024 DW has byte enables.
    pub(super) fn claims(self, kept: &[u8], length: usize) -> bool {
        self == Self::Config && length >= 6 && kept.iter().skip(6).all(|&byte| byte == 0)
    }

    /// `config`, `message` or `registers`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Message => "message",
            Self::Registers => "registers",
        }
    }
}

/// A datagram of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Reads or writes a register of configuration space; the reply looks the same.
    Config {
        /// 0 read, 1 write.
        command: u8,
        /// Bytes of the DW that are meant.
        mask: u8,
        /// Byte offset of the register, a multiple of 4.
        register: u16,
        /// What was read, or is written.
        data: u32,
    },
    /// Asks the driver: 1 where BAR4 is, 2 which function the adapter is, 3 for the MSI-X table.
    Ask(i32),
    /// Where BAR4 is.
    Bar4(u64),
    /// Which function the adapter is.
    DeviceId(Bdf),
    /// The MSI-X table: its first entry, and how many were captured.
    MsixTable {
        /// Entries.
        entries: u16,
        /// Address of the first.
        address: u64,
        /// Data of the first.
        data: u32,
    },
    /// Reads or writes one of the adapter's registers; the reply looks the same.
    Register {
        /// 0x10 read, 0x11 write.
        opcode: u8,
        /// Number of the register.
        register: u8,
        /// What was read, or is written.
        data: u32,
    },
}

const MSIX_ENTRY: usize = 12;

impl Control {
    /// Reads a datagram of `length` bytes, of which `kept` were captured. `None`: too short to be one.
    pub(super) fn parse(channel: Channel, kept: &[u8], length: usize) -> Option<Self> {
        match channel {
            Channel::Config => {
                let &[a, b, c, d, e, f] = kept.first_chunk()?;
                let data = u32::from_be_bytes([c, d, e, f]);
                let register = (u16::from(a & 3) << 8 | u16::from(b)) * 4;
                Some(Self::Config { command: a >> 6, mask: a >> 2 & 15, register, data })
            }
            Channel::Registers => {
                let &[opcode, register, a, b, c, d] = kept.first_chunk()?;
                Some(Self::Register { opcode, register, data: u32::from_le_bytes([a, b, c, d]) })
            }
            Channel::Message => match length {
                2 => Some(Self::DeviceId(Bdf(u16::from_le_bytes(*kept.first_chunk()?)))),
                4 => Some(Self::Ask(i32::from_le_bytes(*kept.first_chunk()?))),
                8 => Some(Self::Bar4(u64::from_le_bytes(*kept.first_chunk()?))),
                _ if length >= MSIX_ENTRY && length.is_multiple_of(MSIX_ENTRY) => Some(Self::MsixTable {
                    entries: u16::try_from(length / MSIX_ENTRY).ok()?,
                    address: u64::from_le_bytes(*kept.first_chunk()?),
                    data: u32::from_le_bytes(*kept.get(8..)?.first_chunk()?),
                }),
                _ => None,
            },
        }
    }

    /// The interface it belongs to.
    pub const fn channel(&self) -> Channel {
        match self {
            Self::Config { .. } => Channel::Config,
            Self::Register { .. } => Channel::Registers,
            _ => Channel::Message,
        }
    }

    /// What it does, as a word.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Config { command: 0, .. } | Self::Register { opcode: 0x10, .. } => "read",
            Self::Config { command: 1, .. } | Self::Register { opcode: 0x11, .. } => "write",
            Self::Config { .. } | Self::Register { .. } => "unknown",
            Self::Ask(_) => "request",
            _ => "reply",
        }
    }
}

/// `config read, mask 0xf, reg 0x010, data 0x00000000`.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.channel().name(), self.operation())?;
        match *self {
            Self::Config { command, mask, register, data } => {
                if command > 1 {
                    write!(f, " command {command}")?;
                }
                write!(f, ", mask {mask:#x}, reg {register:#05x}, data {data:#010x}")
            }
            Self::Register { opcode, register, data } => {
                if self.operation() == "unknown" {
                    write!(f, " opcode {opcode:#04x}")?;
                }
                write!(f, ", reg {register:#04x} {}, data {data:#010x}", register_name(register))
            }
            Self::Ask(1) => f.write_str(", BAR4 address"),
            Self::Ask(2) => f.write_str(", device id"),
            Self::Ask(3) => f.write_str(", MSI-X table"),
            Self::Ask(other) => write!(f, ", unknown {other}"),
            Self::Bar4(address) => write!(f, ", BAR4 at {address:#x}"),
            Self::DeviceId(id) => write!(f, ", device id {id}"),
            Self::MsixTable { entries, address, data } => {
                write!(f, ", MSI-X table of {entries}, first addr {address:#x}, data {data:#x}")
            }
        }
    }
}

/// The names of the adapter's registers.
const fn register_name(register: u8) -> &'static str {
    match register {
        0x00 => "magic",
        0x01 => "dstmac low",
        0x02 => "dstmac high",
        0x03 => "srcmac low",
        0x04 => "srcmac high",
        0x05 => "dstip",
        0x06 => "srcip",
        0x07 => "dstport",
        0x08 => "srcport",
        0x10 => "requester id",
        _ => "unknown",
    }
}
