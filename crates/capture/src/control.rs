//! The datagrams beside the TLPs: configuration space, the driver's messages, the adapter's registers.
//!
//! None has the NetTLP header. A reply may be padded: what follows is ignored.

use std::fmt;
use tlplab_units::Bdf;
use tlplab_wire::Error;
use tlplab_wire::nettlp::config_api::{self, Command, ConfigAccess};
use tlplab_wire::nettlp::message_api::{self, Message, Request, Written};
use tlplab_wire::nettlp::registers::{self, Operation, Register, RegisterAccess};

/// The interface, identified by the UDP port at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The adapter's configuration space: port 0x5001, or 0x4001, which is also that of TLPs with tag 1.
    Config,
    /// The information of the driver about the adapter: port 12287.
    Message,
    /// The adapter's own registers: port 0x5002.
    Registers,
}

impl Channel {
    pub(super) fn of_ports(source: u16, destination: u16) -> Option<Self> {
        let of = |port| match port {
            config_api::PORT | config_api::LIBRARY_PORT => Some(Self::Config),
            message_api::PORT => Some(Self::Message),
            registers::PORT => Some(Self::Registers),
            _ => None,
        };
        of(destination).or_else(|| of(source))
    }

    /// On a port that TLPs use, too: is this payload one of the channel? It ends after its six bytes, or only zeros follow; no
    /// TLP is all zeros, since a read of 1024 DW has byte enables.
    pub(super) fn claims(self, kept: &[u8], length: usize) -> bool {
        self == Self::Config
            && length >= config_api::BYTES
            && kept.iter().skip(config_api::BYTES).all(|&byte| byte == 0)
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
    /// An access to configuration space; the reply looks the same.
    Config(ConfigAccess),
    /// A question to the driver.
    Ask(Request),
    /// The address of BAR 4.
    Bar4(u64),
    /// The function of the adapter.
    DeviceId(Bdf),
    /// The MSI-X table, of which this is the first message.
    MsixTable(Message),
    /// The writes.
    Written(Written),
    /// An access to one of the adapter's registers; the reply looks the same.
    Register(RegisterAccess),
}

impl Control {
    /// Reads a datagram of `length` bytes, of which `kept` were captured.
    pub(super) fn parse(channel: Channel, kept: &[u8], length: usize) -> Result<Self, Error> {
        match channel {
            Channel::Config => ConfigAccess::parse(kept).map(Self::Config),
            Channel::Registers => RegisterAccess::parse(kept).map(Self::Register),
            // Replies do not say what they answer, but their lengths differ.
            Channel::Message => match length {
                2 => message_api::parse_device_id(kept).map(Self::DeviceId),
                8 => message_api::parse_bar4_base(kept).map(Self::Bar4),
                message_api::WRITTEN_BYTES => Written::parse(kept).map(Self::Written),
                message_api::TABLE_BYTES => {
                    message_api::parse_msix_table(kept).map(|[first, ..]| Self::MsixTable(first))
                }
                _ => Request::parse(kept).map(Self::Ask),
            },
        }
    }

    /// The interface it belongs to.
    pub const fn channel(&self) -> Channel {
        match self {
            Self::Config(_) => Channel::Config,
            Self::Register(_) => Channel::Registers,
            _ => Channel::Message,
        }
    }

    /// The operation: `read`, `write`, `request` or `reply`.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Config(access) if matches!(access.command(), Command::Read) => "read",
            Self::Register(access) if matches!(access.operation, Operation::Read) => "read",
            Self::Config(_) | Self::Register(_) => "write",
            Self::Ask(_) => "request",
            _ => "reply",
        }
    }
}

/// `config read, mask 0xf, reg 0x010, data 0x00000000`.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, ", self.channel().name(), self.operation())?;
        match *self {
            Self::Config(access) => {
                let (mask, register) = (access.enables(), access.register());
                write!(f, "mask {mask:#x}, reg {register:#05x}, data {:#010x}", access.data)
            }
            Self::Register(RegisterAccess { register, data, .. }) => {
                write!(f, "reg {:#04x} {}, data {data:#010x}", register as u8, register_name(register))
            }
            Self::Ask(request) => f.write_str(request_name(request)),
            Self::Bar4(address) => write!(f, "BAR4 at {address:#x}"),
            Self::DeviceId(id) => write!(f, "device id {id}"),
            Self::Written(Written { requests, bytes }) => write!(f, "{requests} writes, {bytes} B"),
            Self::MsixTable(Message { address, data }) => {
                write!(f, "MSI-X table, first addr {address:#x}, data {data:#x}")
            }
        }
    }
}

const fn request_name(request: Request) -> &'static str {
    match request {
        Request::Bar4Base => "BAR4 address",
        Request::DeviceId => "device id",
        Request::MsixTable => "MSI-X table",
        Request::Written => "writes so far",
    }
}

/// The names of the adapter's registers.
const fn register_name(register: Register) -> &'static str {
    match register {
        Register::Magic => "magic",
        Register::DestinationMacLow => "dstmac low",
        Register::DestinationMacHigh => "dstmac high",
        Register::SourceMacLow => "srcmac low",
        Register::SourceMacHigh => "srcmac high",
        Register::DestinationIp => "dstip",
        Register::SourceIp => "srcip",
        Register::DestinationPort => "dstport",
        Register::SourcePort => "srcport",
        Register::RequesterId => "requester id",
    }
}

/// Names and numbers for the dissector.
pub(crate) mod control_names {
    use super::{
        Channel, Register, Request, config_api, message_api, register_name, registers, request_name,
    };

    /// Questions to the driver.
    pub(crate) fn requests() -> impl Iterator<Item = (i32, &'static str)> {
        let all = [Request::Bar4Base, Request::DeviceId, Request::MsixTable, Request::Written];
        all.into_iter().map(|request| (request as i32, request_name(request)))
    }

    /// Registers of the adapter.
    pub(crate) fn registers() -> impl Iterator<Item = (u8, &'static str)> {
        Register::ALL.into_iter().map(|register| (register as u8, register_name(register)))
    }

    /// Ports and what they are for.
    pub(crate) fn ports() -> impl Iterator<Item = (u16, &'static str)> {
        let all = [config_api::LIBRARY_PORT, config_api::PORT, message_api::PORT, registers::PORT];
        all.into_iter().filter_map(|port| Some((port, Channel::of_ports(port, port)?.name())))
    }
}
