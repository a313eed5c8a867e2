//! Completions: the status of a request, and the data it asked for.

use super::field::{CompletionStatus, DwLength, TransactionId};
use crate::Error;
use tlplab_units::Bdf;

/// A completion (PCIe 5.0 §2.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    completer: Bdf,
    id: TransactionId,
    byte_count: u16,
    /// DW of payload; 0 without data.
    data: u16,
    lower_address: u8,
    status: CompletionStatus,
    byte_count_modified: bool,
    locked: bool,
}

const COMPLETION: &str = "PCIe 5.0 §2.2.9";

impl Completion {
    /// A completion without data. `byte_count` (1 to 4096) is what remains of the request, 4 for anything but memory reads and
    /// atomics; `lower_address` 0 to 127.
    ///
    /// # Errors
    /// A byte count or lower address out of range.
    pub const fn new(
        completer: Bdf,
        id: TransactionId,
        status: CompletionStatus,
        byte_count: u32,
        lower_address: u8,
    ) -> Result<Self, Error> {
        if byte_count == 0 || byte_count > 4096 {
            return Err(Error::value("Byte Count", COMPLETION, byte_count as u64, "between 1 and 4096"));
        }
        if lower_address > 127 {
            return Err(Error::value("Lower Address", COMPLETION, lower_address as u64, "seven bits"));
        }
        Ok(Self {
            completer,
            id,
            byte_count: byte_count as u16,
            data: 0,
            lower_address,
            status,
            byte_count_modified: false,
            locked: false,
        })
    }

    /// A successful completion with `length` DW of data, of the `byte_count` bytes that remain (these included).
    ///
    /// # Errors
    /// As [`Completion::new`], or more data than remain.
    pub const fn with_data(
        completer: Bdf,
        id: TransactionId,
        byte_count: u32,
        lower_address: u8,
        length: DwLength,
    ) -> Result<Self, Error> {
        match Self::new(completer, id, CompletionStatus::Success, byte_count, lower_address) {
            Ok(completion) if length.bytes() > (lower_address as u32 & 3) + byte_count + 3 => {
                let _ = completion;
                Err(Error::conflict("Length", COMPLETION, "more data than the byte count leaves"))
            }
            Ok(completion) => Ok(Self { data: length.dw() as u16, ..completion }),
            Err(error) => Err(error),
        }
    }

    /// The same as the answer to a locked read (`CplLk`, `CplDLk`).
    pub const fn locked(self) -> Self {
        Self { locked: true, ..self }
    }
    /// The same with BCM set, as PCI-X completers may (PCIe 5.0 §2.2.9, §2.3.2).
    pub const fn byte_count_modified(self) -> Self {
        Self { byte_count_modified: true, ..self }
    }
    /// The completer ID.
    pub const fn completer(self) -> Bdf {
        self.completer
    }
    /// The same for another request.
    pub(super) const fn with_id(self, id: TransactionId) -> Self {
        Self { id, ..self }
    }
    /// Requester ID and tag of the request that is completed.
    pub const fn id(self) -> TransactionId {
        self.id
    }
    /// The completion status.
    pub const fn status(self) -> CompletionStatus {
        self.status
    }
    /// Bytes that remain of the request, those of this completion included: 1 to 4096.
    pub const fn byte_count(self) -> u32 {
        self.byte_count as u32
    }
    /// Low seven bits of the address of the first byte returned.
    pub const fn lower_address(self) -> u8 {
        self.lower_address
    }
    /// Payload in DW; 0 without data.
    pub const fn payload_dw(&self) -> u32 {
        self.data as u32
    }
    /// `Cpl`, `CplD`, `CplLk` or `CplDLk`.
    pub const fn name(&self) -> &'static str {
        match (self.data, self.locked) {
            (0, false) => "Cpl",
            (0, true) => "CplLk",
            (_, false) => "CplD",
            (_, true) => "CplDLk",
        }
    }
    /// Payload in DW; `None` without data.
    pub const fn length(self) -> Option<DwLength> {
        DwLength::new(self.data as u32)
    }
    /// Valid bytes in this completion's payload: those that the length holds after the lower address, at most those that remain.
    pub const fn data_bytes(self) -> u32 {
        let room = (self.data as u32 * 4).saturating_sub(self.lower_address as u32 & 3);
        if room < self.byte_count as u32 { room } else { self.byte_count as u32 }
    }
    /// The last one of its request: no bytes remain after it, or it tells of an error.
    pub const fn is_last(self) -> bool {
        self.data == 0 || self.data_bytes() == self.byte_count as u32
    }
    /// BCM.
    pub const fn is_byte_count_modified(self) -> bool {
        self.byte_count_modified
    }
    /// The answer to a locked read.
    pub const fn is_locked(self) -> bool {
        self.locked
    }
}
