//! The data of a transfer: its bytes, or only their number.

use bytes::Bytes;
use tlplab_wire::tlp::{Kind, Repr};
use tlplab_wire::{Error, Problem};

/// Data, without padding: exactly the bytes of the transfer, not whole doublewords. A run is either payload-carrying or
/// length-only; both have the same timing. Cloning and slicing do not copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Only the number of bytes is known.
    Length(u64),
    /// The bytes.
    Bytes(Bytes),
}

impl Payload {
    /// No data.
    pub const EMPTY: Self = Self::Length(0);

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Length(bytes) => *bytes,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
    /// True if there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes, if the run carries them.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Length(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
    /// `len` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn slice(&self, offset: u64, len: u64) -> Self {
        assert!(offset + len <= self.len(), "{offset} + {len} of {} B", self.len());
        match self {
            Self::Length(_) => Self::Length(len),
            Self::Bytes(bytes) => Self::Bytes(bytes.slice(offset as usize..(offset + len) as usize)),
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}
impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(bytes))
    }
}
impl<const N: usize> From<[u8; N]> for Payload {
    fn from(bytes: [u8; N]) -> Self {
        Self::from(&bytes[..])
    }
}
impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// Bytes of data that travel beside a TLP as a [`Payload`]: from the first to the last enabled byte of a memory write, the valid
/// bytes of a completion, whole doublewords of everything else. Nothing for a zero-length write.
pub fn data_bytes(repr: &Repr) -> u32 {
    match repr.kind() {
        Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } if span.is_zero_length() => 0,
        Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => span.byte_count(),
        Kind::Completion(completion) => completion.data_bytes(),
        _ => repr.payload_bytes(),
    }
}

/// Bytes of padding on the wire before the first byte of data: the payload starts at a doubleword, the data need not.
pub fn padding_before(repr: &Repr) -> u32 {
    match repr.kind() {
        Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => (span.first_byte() & 3) as u32,
        Kind::Completion(completion) if completion.length().is_some() => {
            u32::from(completion.lower_address() & 3)
        }
        _ => 0,
    }
}

/// Lays data out in `field`, the payload of a TLP as the wire has it. `data` are the bytes that travel beside the TLP ([`data_bytes`]), or whole
/// doublewords; the rest of the field is zeros, as in the answer to a flush.
///
/// # Errors
/// More data than there is room for.
pub fn lay_out(repr: &Repr, data: &[u8], field: &mut [u8]) -> Result<(), Error> {
    let before = if data.len() == field.len() { 0 } else { padding_before(repr) as usize };
    let have = before + data.len();
    field.fill(0);
    let Some(room) = field.get_mut(before..have) else {
        let what = Problem::TooLong { expected: field.len(), have };
        return Err(Error { field: "Payload", section: "PCIe 5.0 §2.2.2", offset: None, what });
    };
    room.copy_from_slice(data);
    Ok(())
}
