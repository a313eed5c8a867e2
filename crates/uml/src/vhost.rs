//! vhost-user messages (`arch/um/drivers/vhost_user.h`): a header of 12 bytes and a payload, little-endian.

use crate::error::ProtocolError;

/// Bytes of a header.
pub const HEADER: usize = 12;
/// Payload of a message at most.
pub const LARGEST: u32 = 8 + 2 * 32;

const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
const INDEX: u64 = 0xFF;
/// A device that asks the guest: it has used buffers of a queue.
const VRING_CALL: u32 = 4;

/// Feature: there are protocol features. And that the device keeps to virtio 1.
pub const FEATURES: u64 = 1 << 30 | 1 << 32;
/// Messages are answered, the device may ask, and bells are messages.
pub const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 14;

/// The beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The request.
    pub request: u32,
    /// The guest waits for an answer.
    pub wants_reply: bool,
    /// Bytes of payload that follow.
    pub size: u32,
}

impl Header {
    /// Reads the header of a request of the guest.
    ///
    /// # Errors
    /// [`ProtocolError`]
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, ProtocolError> {
        let (request, flags, size) = words(bytes);
        if flags & !NEED_REPLY != VERSION {
            return Err(ProtocolError::Flags { request, flags });
        }
        if size > LARGEST {
            return Err(ProtocolError::Length { request, found: size, expected: LARGEST });
        }
        Ok(Self { request, wants_reply: flags & NEED_REPLY != 0, size })
    }
}

/// A range of the memory that the guest shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first physical address.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// Its start in its file.
    pub offset: u64,
}

/// A request of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The features of the device.
    GetFeatures,
    /// The features that driver and device use.
    SetFeatures(u64),
    /// The guest is the owner of the device.
    SetOwner,
    /// The protocol features.
    GetProtocolFeatures,
    /// The protocol features that driver and device use.
    SetProtocolFeatures(u64),
    /// The guest's memory; a file descriptor for each range comes along.
    SetMemory(Vec<Region>),
    /// The length of a queue.
    SetQueueSize(u32, u32),
    /// The addresses of its rings: descriptors, available, used.
    SetQueueAddresses(u32, [u64; 3]),
    /// At which entry it begins.
    SetQueueBase(u32, u32),
    /// A queue is in use, or no longer.
    EnableQueue(u32, bool),
    /// The socket for what the device asks; it comes along.
    SetBackChannel,
    /// There are new buffers in a queue.
    Kick(u32),
}

impl Request {
    /// Reads a request from its header and payload.
    ///
    /// # Errors
    /// [`ProtocolError`]
    pub fn parse(header: Header, payload: &[u8]) -> Result<Self, ProtocolError> {
        let request = header.request;
        let wrong = |expected: usize| ProtocolError::Length {
            request,
            found: payload.len() as u32,
            expected: expected as u32,
        };
        let number = || payload.try_into().map(u64::from_le_bytes).map_err(|_| wrong(8));
        let state = || number().map(|both| (both as u32, (both >> 32) as u32));
        Ok(match request {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(number()?),
            3 => Self::SetOwner,
            5 => Self::SetMemory(regions(payload).ok_or(wrong(40))?),
            8 => state().map(|(queue, size)| Self::SetQueueSize(queue, size))?,
            9 => {
                let address = |at: usize| long(payload, at).ok_or(wrong(40));
                let queue = address(0)? as u32;
                let [descriptors, used, available] = [address(8)?, address(16)?, address(24)?];
                Self::SetQueueAddresses(queue, [descriptors, available, used])
            }
            10 => state().map(|(queue, base)| Self::SetQueueBase(queue, base))?,
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures(number()?),
            18 => state().map(|(queue, on)| Self::EnableQueue(queue, on != 0))?,
            21 => Self::SetBackChannel,
            35 => Self::Kick((number()? & INDEX) as u32),
            _ => return Err(ProtocolError::Request(request)),
        })
    }

    /// Descriptors that come along.
    pub fn descriptors(&self) -> usize {
        match self {
            Self::SetMemory(regions) => regions.len(),
            Self::SetBackChannel => 1,
            _ => 0,
        }
    }
}

fn words(bytes: &[u8; HEADER]) -> (u32, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
    let word = u32::from_le_bytes;
    (word([a, b, c, d]), word([e, f, g, h]), word([i, j, k, l]))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn regions(payload: &[u8]) -> Option<Vec<Region>> {
    let count = long(payload, 0)? as u32 as usize;
    if count == 0 || payload.len() != 8 + 32 * count {
        return None;
    }
    let region = |at: usize| {
        // Between length and offset is the guest's own address.
        let (address, bytes, offset) = (long(payload, at)?, long(payload, at + 8)?, long(payload, at + 24)?);
        Some(Region { address, bytes, offset })
    };
    (0..count).map(|index| region(8 + 32 * index)).collect()
}

/// A number that answers a request of the guest: what it asked for, or 0 for success.
pub fn answer(request: u32, number: u64) -> Vec<u8> {
    message(request, VERSION | REPLY, &number.to_le_bytes())
}

/// Tells the guest that buffers of a queue are used, and asks for an answer.
pub fn call(queue: u32) -> Vec<u8> {
    message(VRING_CALL, VERSION | NEED_REPLY, &u64::from(queue).to_le_bytes())
}

/// Bytes of the answer to [`call`].
pub const CALL_ANSWER: usize = HEADER + 8;

/// True if the guest has taken a [`call`].
pub fn is_taken(answer: &[u8; CALL_ANSWER]) -> bool {
    let ([header, ..], [.., a, b, c, d, e, f, g, h]) = (answer.as_chunks::<HEADER>().0, *answer) else {
        return false;
    };
    words(header) == (VRING_CALL, VERSION | REPLY, 8) && u64::from_le_bytes([a, b, c, d, e, f, g, h]) == 0
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    for word in [request, flags, payload.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(payload);
    bytes
}
