//! The config API: configuration space of the function that the adapter is, asked for over UDP. There are no configuration TLPs between
//! adapter and device; a datagram of six bytes, without NetTLP header, names the doubleword.
//!
//! ```text
//! byte 0: command (2 bits), byte enables (4), register number bits 9:8    byte 1: register number bits 7:0    bytes 2-5: data, big-endian
//! ```
//! A read is answered by the same six bytes with data, perhaps padded; a write is not answered.

use super::API;
use crate::Error;

/// The adapter's port.
pub const PORT: u16 = 0x5001;
/// The port of the published library. A host request of tag 1 has the same; that is never as short.
pub const LIBRARY_PORT: u16 = 0x4001;
/// Length of a request, and of a reply without padding.
pub const BYTES: usize = 6;

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// 0.
    Read,
    /// 1.
    Write,
}

/// An access to a doubleword of configuration space, or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConfigAccess {
    command: Command,
    enables: u8,
    register: u16,
    /// The data to write, or the data read; meaningless in a read request.
    pub data: u32,
}

impl ConfigAccess {
    /// A read of the doubleword at byte offset `register`.
    ///
    /// # Errors
    /// An offset that is no multiple of 4 below 4096.
    pub const fn read(register: u16) -> Result<Self, Error> {
        Self::new(Command::Read, register, 15, 0)
    }
    /// A write of those bytes of it for which `enables` has a bit, bit 0 for the byte at the lowest offset.
    ///
    /// # Errors
    /// An offset that is no multiple of 4 below 4096, enables of more than four bits.
    pub const fn write(register: u16, enables: u8, data: u32) -> Result<Self, Error> {
        Self::new(Command::Write, register, enables, data)
    }
    const fn new(command: Command, register: u16, enables: u8, data: u32) -> Result<Self, Error> {
        if register > 4092 || register & 3 != 0 {
            return Err(Error::value("Register", API, register as u64, "a multiple of 4 below 4096"));
        }
        if enables > 15 {
            return Err(Error::value("Byte Mask", API, enables as u64, "four bits"));
        }
        Ok(Self { command, enables, register, data })
    }

    /// The reply to this read.
    pub const fn answer(self, data: u32) -> Self {
        Self { data, ..self }
    }

    /// Read or write.
    pub const fn command(self) -> Command {
        self.command
    }
    /// Byte offset of the doubleword.
    pub const fn register(self) -> u16 {
        self.register
    }
    /// Byte enables of the doubleword; a read may have any, and gives all bytes.
    pub const fn enables(self) -> u8 {
        self.enables
    }

    /// Reads a request or a reply. Bytes behind its six are padding.
    ///
    /// # Errors
    /// Fewer than six bytes, a command other than 0 and 1.
    pub const fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [first, second, a, b, c, d, ..] = bytes else {
            return Err(Error::truncated("Config request", API, BYTES, bytes.len()).at(bytes.len()));
        };
        let command = match *first >> 6 {
            0 => Command::Read,
            1 => Command::Write,
            other => return Err(Error::value("Command", API, other as u64, "0 (read) or 1 (write)").at(0)),
        };
        let register = ((*first as u16 & 3) << 8 | *second as u16) * 4;
        Ok(Self { command, enables: *first >> 2 & 15, register, data: u32::from_be_bytes([*a, *b, *c, *d]) })
    }

    /// The six bytes.
    pub const fn emit(self) -> [u8; BYTES] {
        let number = self.register / 4;
        let command = match self.command {
            Command::Read => 0,
            Command::Write => 1,
        };
        let [a, b, c, d] = self.data.to_be_bytes();
        [command << 6 | self.enables << 2 | (number >> 8) as u8, number as u8, a, b, c, d]
    }

    /// True if `reply` is the answer to this read.
    pub const fn is_answered_by(self, reply: Self) -> bool {
        matches!((self.command, reply.command), (Command::Read, Command::Read))
            && self.register == reply.register
    }
}
