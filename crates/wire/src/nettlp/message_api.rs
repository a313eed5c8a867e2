//! The message API: facts that the driver on the adapter's host knows and a device needs. A request is an `i32`, a reply the data that it asks
//! for, all in the little-endian order of the hosts that have such a driver.

use super::API;
use crate::Error;
use tlplab_units::Bdf;

/// The port, at the address of the adapter's host.
pub const PORT: u16 = 12287;
/// Messages in the MSI-X table.
pub const VECTORS: usize = 16;
/// Length of a request.
pub const REQUEST_BYTES: usize = 4;
/// Length of a message in the table: it is packed.
const MESSAGE_BYTES: usize = 12;
/// Length of the table, the longest reply.
pub const TABLE_BYTES: usize = MESSAGE_BYTES * VECTORS;

/// The data that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Request {
    /// The address of BAR4: a `u64`.
    Bar4Base = 1,
    /// Bus, device and function number of the adapter: a `u16`.
    DeviceId = 2,
    /// The MSI-X table: 16 times address, a `u64`, and data, a `u32`.
    MsixTable = 3,
    /// Writes to the host's memory since the adapter began: the number of write requests, a `u64`, and their bytes, a `u64`. Only
    /// tlplab's adapter answers.
    Written = 100,
}

/// A message signalled interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Message {
    /// The address of the memory write; 0 if no interrupt is set up.
    pub address: u64,
    /// The data of the memory write.
    pub data: u32,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// Other than four bytes, other than 1 to 3 or 100.
    pub const fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [a, b, c, d] = *bytes else {
            return Err(length("Request", REQUEST_BYTES, bytes.len()));
        };
        match i32::from_le_bytes([a, b, c, d]) {
            1 => Ok(Self::Bar4Base),
            2 => Ok(Self::DeviceId),
            3 => Ok(Self::MsixTable),
            100 => Ok(Self::Written),
            other => Err(Error::value("Request", API, other as u32 as u64, "1, 2, 3 or 100").at(0)),
        }
    }

    /// The four bytes.
    pub const fn emit(self) -> [u8; REQUEST_BYTES] {
        (self as i32).to_le_bytes()
    }
}

/// Reads the answer to [`Request::Bar4Base`]; it is written by `u64::to_le_bytes`.
///
/// # Errors
/// Other than 8 bytes.
pub fn parse_bar4_base(bytes: &[u8]) -> Result<u64, Error> {
    let base = bytes.try_into().map_err(|_| length("BAR4 base", 8, bytes.len()))?;
    Ok(u64::from_le_bytes(base))
}

/// Reads the answer to [`Request::DeviceId`]; it is written by `u16::to_le_bytes`.
///
/// # Errors
/// Other than 2 bytes.
pub fn parse_device_id(bytes: &[u8]) -> Result<Bdf, Error> {
    let id = bytes.try_into().map_err(|_| length("Device ID", 2, bytes.len()))?;
    Ok(Bdf(u16::from_le_bytes(id)))
}

/// Writes of a device that were carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Written {
    /// Write requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Length of the answer to [`Request::Written`].
pub const WRITTEN_BYTES: usize = 16;

impl Written {
    /// Reads the answer to [`Request::Written`].
    ///
    /// # Errors
    /// Other than 16 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = || length("Written", WRITTEN_BYTES, bytes.len());
        let ([requests, data], []) = bytes.as_chunks::<8>() else { return Err(wrong()) };
        Ok(Self { requests: u64::from_le_bytes(*requests), bytes: u64::from_le_bytes(*data) })
    }

    /// The answer to [`Request::Written`].
    pub fn emit(self) -> [u8; WRITTEN_BYTES] {
        let mut bytes = [0; WRITTEN_BYTES];
        bytes[..8].copy_from_slice(&self.requests.to_le_bytes());
        bytes[8..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }
}

/// Reads the answer to [`Request::MsixTable`].
///
/// # Errors
/// Other than 192 bytes.
pub fn parse_msix_table(bytes: &[u8]) -> Result<[Message; VECTORS], Error> {
    let (entries, rest) = bytes.as_chunks::<MESSAGE_BYTES>();
    if entries.len() != VECTORS || !rest.is_empty() {
        return Err(length("MSI-X table", TABLE_BYTES, bytes.len()));
    }
    let mut table = [Message::default(); VECTORS];
    for (message, entry) in table.iter_mut().zip(entries) {
        let [a, b, c, d, e, f, g, h, data @ ..] = *entry;
        *message =
            Message { address: u64::from_le_bytes([a, b, c, d, e, f, g, h]), data: u32::from_le_bytes(data) };
    }
    Ok(table)
}

/// The answer to [`Request::MsixTable`].
pub fn emit_msix_table(table: &[Message; VECTORS]) -> [u8; TABLE_BYTES] {
    let mut bytes = [0; TABLE_BYTES];
    let (entries, _) = bytes.as_chunks_mut::<MESSAGE_BYTES>();
    for (message, entry) in table.iter().zip(entries) {
        entry[..8].copy_from_slice(&message.address.to_le_bytes());
        entry[8..].copy_from_slice(&message.data.to_le_bytes());
    }
    bytes
}

const fn length(field: &'static str, expected: usize, have: usize) -> Error {
    if have < expected {
        return Error::truncated(field, API, expected, have).at(have);
    }
    let what = crate::Problem::TooLong { expected, have };
    Error { field, section: API, offset: None, what }.at(expected)
}
