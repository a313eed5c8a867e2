//! Messages: a header of 16 bytes, a payload, and file descriptors beside it. All numbers are little-endian.

use crate::error::ProtocolError;

/// Bytes of a header.
pub const HEADER: usize = 16;
/// Most data that one access or DMA message carries here, in bytes.
pub const MAX_TRANSFER: u32 = 1 << 20;
/// Most bytes of a message: of data, and of what stands before them.
pub const MAX_MESSAGE: u32 = MAX_TRANSFER + 64;
/// Most file descriptors that come with a message.
pub const MAX_DESCRIPTORS: usize = 16;

/// Commands, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// The first message: versions and capabilities.
    Version = 1,
    /// A range of guest memory that the device may access.
    DmaMap = 2,
    /// Ranges that it may not access any more.
    DmaUnmap = 3,
    /// Numbers of regions and of kinds of interrupts.
    GetInfo = 4,
    /// Size and use of a region.
    GetRegionInfo = 5,
    /// Number and use of a kind of interrupts.
    GetIrqInfo = 7,
    /// Triggers and masks of interrupts.
    SetIrqs = 8,
    /// A read of a BAR or of configuration space.
    RegionRead = 9,
    /// A write of one.
    RegionWrite = 10,
    /// To the client: a read of memory that is not mapped here.
    DmaRead = 11,
    /// To the client: a write of such memory.
    DmaWrite = 12,
    /// A reset of the function.
    Reset = 13,
}

impl Command {
    /// By its number; none, if this server has no such command.
    pub fn new(number: u16) -> Option<Self> {
        use Command as C;
        [
            C::Version,
            C::DmaMap,
            C::DmaUnmap,
            C::GetInfo,
            C::GetRegionInfo,
            C::GetIrqInfo,
            C::SetIrqs,
            C::RegionRead,
            C::RegionWrite,
            C::DmaRead,
            C::DmaWrite,
            C::Reset,
        ]
        .into_iter()
        .find(|command| *command as u16 == number)
    }
}

const TYPE: u32 = 0xF;
const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// A reply has that of its command. Both sides count for themselves.
    pub id: u16,
    /// The command's number.
    pub command: u16,
    /// Bytes of the message, with the header.
    pub size: u32,
    /// It answers a command.
    pub is_reply: bool,
    /// The command is posted: no reply is wanted.
    pub no_reply: bool,
    /// Of a reply: an `errno`, if the command failed.
    pub error: Option<u32>,
}

impl Header {
    /// Reads one.
    ///
    /// # Errors
    /// A message cannot have this size: the stream is lost.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, ProtocolError> {
        let (size, flags, error) = (u32_at(bytes, 4), u32_at(bytes, 8), u32_at(bytes, 12));
        if !(HEADER as u32..=MAX_MESSAGE).contains(&size) {
            return Err(ProtocolError::Size(size));
        }
        Ok(Self {
            id: u16::from_le_bytes([bytes[0], bytes[1]]),
            command: u16::from_le_bytes([bytes[2], bytes[3]]),
            size,
            is_reply: flags & TYPE == REPLY,
            no_reply: flags & NO_REPLY != 0,
            error: (flags & ERROR != 0).then_some(error),
        })
    }

    /// Its bytes.
    pub fn emit(&self) -> [u8; HEADER] {
        let mut flags = if self.is_reply { REPLY } else { 0 };
        flags |= if self.no_reply { NO_REPLY } else { 0 };
        flags |= if self.error.is_some() { ERROR } else { 0 };
        let mut out = [0; HEADER];
        out[..2].copy_from_slice(&self.id.to_le_bytes());
        out[2..4].copy_from_slice(&self.command.to_le_bytes());
        out[4..8].copy_from_slice(&self.size.to_le_bytes());
        out[8..12].copy_from_slice(&flags.to_le_bytes());
        out[12..].copy_from_slice(&self.error.unwrap_or(0).to_le_bytes());
        out
    }
}

/// A whole message, for sending.
pub(crate) fn message(header: Header, parts: &[&[u8]]) -> Vec<u8> {
    let size = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut out = Header { size: size as u32, ..header }.emit().to_vec();
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// Consecutive fields of a payload.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64::from(u32_at(bytes, 0)) | u64::from(u32_at(bytes, 4)) << 32)
    }
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }
}

/// 32-bit fields in a row.
pub(crate) fn words(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
