//! The completer: from a request to its completions (PCIe 5.0 §2.2.9, §2.3.1).

use crate::split::{CompletionChunks, CompletionPolicy, split_completion};
use tlplab_units::{Bdf, Mps, Rcb};
use tlplab_wire::tlp::{AddressType, Completion};
use tlplab_wire::tlp::{Attributes, CompletionStatus, DwLength, Kind, Repr, TransactionId};

/// A completer: its ID, and the limits and policy of its completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completer {
    /// Completer ID.
    pub id: Bdf,
    /// Read Completion Boundary.
    pub rcb: Rcb,
    /// Max_Payload_Size.
    pub mps: Mps,
    /// The policy for cutting answers to reads.
    pub policy: CompletionPolicy,
}

/// The memory bytes a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First enabled byte.
    pub address: u64,
    /// Bytes from the first to the last enabled one; 0 for a zero-length request.
    pub bytes: u32,
}

/// The memory that a read, write or atomic names; `None` for any other TLP.
pub fn memory_access(request: &Repr) -> Option<Access> {
    match request.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            let bytes = if span.is_zero_length() { 0 } else { span.byte_count() };
            Some(Access { address: span.first_byte(), bytes })
        }
        Kind::AtomicOp { target, .. } => {
            Some(Access { address: target.address(), bytes: target.operand_bytes() })
        }
        _ => None,
    }
}

/// One completion, and the part of the answer it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionTlp {
    /// The TLP.
    pub repr: Repr,
    /// Bytes of the answer before it.
    pub offset: u32,
    /// Bytes of the answer in it; 0 for a zero-length read (which still carries one doubleword, of undefined data) and without data.
    pub bytes: u32,
    /// True for the last completion of its request.
    pub last: bool,
}

/// The completions of one request, in order.
#[derive(Clone, Debug)]
pub struct Completions {
    completer: Bdf,
    id: TransactionId,
    attributes: Attributes,
    locked: bool,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    Read(CompletionChunks),
    /// One completion with this many bytes of data, or none.
    Single(u32),
    Done,
}

impl Completer {
    /// The completions of a request that succeeds: data for reads (cut by RCB and MPS), atomics, IO and configuration reads; none
    /// for other non-posted requests. Nothing at all for posted requests and completions.
    pub fn succeed(&self, request: &Repr) -> Completions {
        let (answer, locked) = match request.kind() {
            Kind::MemRead { span, locked, .. } => {
                let bytes = if span.is_zero_length() { 0 } else { span.byte_count() };
                let chunks = split_completion(span.first_byte(), bytes, self.rcb, self.mps, self.policy);
                (Answer::Read(chunks), *locked)
            }
            Kind::AtomicOp { target, .. } => (Answer::Single(target.operand_bytes()), false),
            Kind::IoRead { .. } | Kind::CfgRead { .. } => (Answer::Single(4), false),
            Kind::IoWrite { .. } | Kind::CfgWrite { .. } | Kind::DeferrableMemWrite { .. } => {
                (Answer::Single(0), false)
            }
            Kind::MemWrite { .. } | Kind::Message(_) | Kind::Completion(_) => (Answer::Done, false),
        };
        let attributes = reply_attributes(request.attributes());
        Completions { completer: self.id, id: request.transaction_id(), attributes, locked, answer }
    }

    /// The completion of a request that fails with `status`; `None` for a posted request, whose failure is only reported. Byte count
    /// and lower address are those of a successful first completion (§2.2.9).
    pub fn refuse(&self, request: &Repr, status: CompletionStatus) -> Option<Repr> {
        let (byte_count, lower_address, locked) = match request.kind() {
            Kind::MemRead { span, locked, .. } => {
                (span.byte_count(), (span.first_byte() & 0x7F) as u8, *locked)
            }
            Kind::AtomicOp { target, .. } => (target.operand_bytes(), 0, false),
            Kind::MemWrite { .. } | Kind::Message(_) | Kind::Completion(_) => return None,
            _ => (4, 0, false),
        };
        let completion =
            Completion::new(self.id, request.transaction_id(), status, byte_count, lower_address).ok()?;
        let completion = if locked { completion.locked() } else { completion };
        let attributes = reply_attributes(request.attributes());
        Repr::from(Kind::Completion(completion)).with_attributes(attributes).ok()
    }
}

/// A completion has the traffic class and attributes of its request (§2.2.9); those of the address or the data do not come back.
fn reply_attributes(request: &Attributes) -> Attributes {
    Attributes { at: AddressType::Untranslated, hints: None, poisoned: false, digest: false, ..*request }
}

impl Completions {
    fn tlp(&self, byte_count: u32, lower_address: u8, dw: u32) -> Repr {
        let completion = match DwLength::new(dw) {
            Some(length) => Completion::with_data(self.completer, self.id, byte_count, lower_address, length),
            None => {
                Completion::new(self.completer, self.id, CompletionStatus::Success, byte_count, lower_address)
            }
        }
        .expect("split_completion keeps the fields in range");
        let completion = if self.locked { completion.locked() } else { completion };
        Repr::from(Kind::Completion(completion))
            .with_attributes(self.attributes)
            .expect("completions may have these attributes")
    }
}

impl Iterator for Completions {
    type Item = CompletionTlp;
    fn next(&mut self) -> Option<CompletionTlp> {
        self.next_within(u32::MAX)
    }
}

impl Completions {
    /// The next one, where only the first `available` bytes of the answer to a read are there: see [`CompletionChunks::next_within`].
    pub fn next_within(&mut self, available: u32) -> Option<CompletionTlp> {
        match &mut self.answer {
            Answer::Read(chunks) => {
                let chunk = chunks.next_within(available)?;
                let dw = (u32::from(chunk.lower_address & 3) + chunk.bytes).div_ceil(4).max(1);
                let repr = self.tlp(chunk.byte_count.into(), chunk.lower_address, dw);
                Some(CompletionTlp { repr, offset: chunk.offset, bytes: chunk.bytes, last: chunk.last })
            }
            Answer::Single(bytes) => {
                let bytes = *bytes;
                self.answer = Answer::Done;
                let byte_count = if bytes == 0 { 4 } else { bytes };
                let repr = self.tlp(byte_count, 0, bytes / 4);
                Some(CompletionTlp { repr, offset: 0, bytes, last: true })
            }
            Answer::Done => None,
        }
    }
}
