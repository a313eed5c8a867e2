//! The adapter's own registers, behind a UDP port: its identity, and the destination of its datagrams. A request is an operation, a register
//! number and data, least significant byte first; a read is answered by the same six bytes with data, perhaps padded; a write is not
//! answered.

use super::API;
use crate::Error;

/// The adapter's port.
pub const PORT: u16 = 0x5002;
/// Length of a request, and of a reply without padding.
pub const BYTES: usize = 6;
/// The value of [`Register::Magic`].
pub const MAGIC: u32 = 0x0123_4567;

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// 0x10.
    Read = 0x10,
    /// 0x11.
    Write = 0x11,
}

/// A register, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Register {
    /// [`MAGIC`]; cannot be written.
    Magic = 0x00,
    /// Low 32 bits of the Ethernet address that the adapter sends to.
    DestinationMacLow = 0x01,
    /// High 16 bits of it.
    DestinationMacHigh = 0x02,
    /// Low 32 bits of the adapter's Ethernet address.
    SourceMacLow = 0x03,
    /// High 16 bits of it.
    SourceMacHigh = 0x04,
    /// The IPv4 address that the adapter sends to: its device.
    DestinationIp = 0x05,
    /// The adapter's IPv4 address.
    SourceIp = 0x06,
    /// A UDP port that the adapter keeps and does not use.
    DestinationPort = 0x07,
    /// Another.
    SourcePort = 0x08,
    /// The adapter's requester ID.
    RequesterId = 0x10,
}

impl Register {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Magic,
        Self::DestinationMacLow,
        Self::DestinationMacHigh,
        Self::SourceMacLow,
        Self::SourceMacHigh,
        Self::DestinationIp,
        Self::SourceIp,
        Self::DestinationPort,
        Self::SourcePort,
        Self::RequesterId,
    ];
}

/// An access to a register, or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterAccess {
    /// Read or write.
    pub operation: Operation,
    /// The register.
    pub register: Register,
    /// The data to write, or the data read; meaningless in a read request.
    pub data: u32,
}

impl RegisterAccess {
    /// Reads a request or a reply. Bytes behind its six are padding.
    ///
    /// # Errors
    /// Fewer than six bytes, another operation, a register that does not exist.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [operation, number, a, b, c, d, ..] = *bytes else {
            return Err(Error::truncated("Register request", API, BYTES, bytes.len()).at(bytes.len()));
        };
        let operation = match operation {
            0x10 => Operation::Read,
            0x11 => Operation::Write,
            other => {
                return Err(Error::value("Opcode", API, other.into(), "0x10 (read) or 0x11 (write)").at(0));
            }
        };
        let Some(register) = Register::ALL.into_iter().find(|register| *register as u8 == number) else {
            return Err(Error::value("Register", API, number.into(), "0 to 8, or 0x10").at(1));
        };
        Ok(Self { operation, register, data: u32::from_le_bytes([a, b, c, d]) })
    }

    /// The six bytes.
    pub const fn emit(self) -> [u8; BYTES] {
        let [a, b, c, d] = self.data.to_le_bytes();
        [self.operation as u8, self.register as u8, a, b, c, d]
    }
}
