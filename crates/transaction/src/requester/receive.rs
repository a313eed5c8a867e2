//! Completions, and the lack of them: completions checked against their requests (PCIe 5.0 §2.3.2), timeouts (§2.8).

use super::inflight::{Answer, Slot, State};
use super::{Operation, Requester};
use crate::error::{CompletionError, Field, Undeliverable, Unexpected};
use crate::payload::Payload;
use tlplab_units::{FcClass, Tag, Time};
use tlplab_wire::tlp::{Completion, CompletionStatus, Kind, Repr, TransactionId};

/// The effect of a completion, of a timeout, or of news that a request was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// More completions of this request are to come.
    Partial(Progress<T>),
    /// The request is over; others of its operation are not.
    RequestDone(Progress<T>),
    /// The request was not answered in time and will be issued again ([`RequesterConfig::retries`](super::RequesterConfig::retries)).
    Again(Progress<T>),
    /// The operation is over: all its data, or its first error once nothing of it is in flight. A length-only completion
    /// among its completions makes the result a [`Payload::Length`].
    OperationDone(Progress<T>, Result<Payload, CompletionError>),
    /// Not ours: to be dropped and counted. No operation has changed; a tag that rested may be free.
    Unexpected(Unexpected),
}

impl<T> Outcome<T> {
    /// The progress of an operation, if one was touched.
    pub fn progress(&self) -> Option<&Progress<T>> {
        match self {
            Self::Partial(progress)
            | Self::RequestDone(progress)
            | Self::Again(progress)
            | Self::OperationDone(progress, _) => Some(progress),
            Self::Unexpected(_) => None,
        }
    }
}

/// The progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<T> {
    /// The operation.
    pub op: T,
    /// Its stream.
    pub stream: u16,
    /// The request's tag.
    pub tag: Tag,
    /// First byte that this completion brought, or that did not come.
    pub address: u64,
    /// Good bytes that it brought.
    pub bytes: u32,
    /// The time at which the request left.
    pub sent: Time,
    /// The time at which the operation was submitted.
    pub submitted: Time,
    /// The failure of the request, if it failed.
    pub error: Option<CompletionError>,
}

impl<T: Copy> Requester<T> {
    /// Byte Count of the next completion of a request that is in flight: the bytes that it lacks. A carrier that does not keep completions in
    /// order looks here first.
    pub fn missing(&self, id: TransactionId) -> Option<u32> {
        let index = self.tags.index(id.tag).filter(|_| id.requester == self.config.id)?;
        let slot = self.flight.get(index);
        (slot.state == State::Live).then_some(slot.left)
    }

    /// Takes a TLP that arrived for this requester. `data` is its payload, either exactly the valid bytes or padded to whole
    /// doublewords as on the wire; `None` in a length-only run. One call per completion; call
    /// [`poll_request`](Self::poll_request) afterwards, a tag may be free.
    ///
    /// A completion that contradicts its request (byte count, lower address, length, traffic class, attributes) fails the request at
    /// once, and its tag rests. Poisoned data fails it too, when the rest has come. Nothing of a failed operation is delivered.
    pub fn handle_completion(&mut self, now: Time, repr: &Repr, data: Option<&[u8]>) -> Outcome<T> {
        let Kind::Completion(completion) = repr.kind() else {
            return Outcome::Unexpected(Unexpected::NotACompletion(repr.name()));
        };
        let id = completion.id();
        if id.requester != self.config.id {
            let (found, own) = (id.requester, self.config.id);
            return Outcome::Unexpected(Unexpected::OtherRequester { found, own });
        }
        let Some(index) = self.tags.index(id.tag) else {
            return Outcome::Unexpected(Unexpected::ForeignTag(id.tag));
        };
        self.wake(now);
        match self.flight.get(index).state {
            State::Free => Outcome::Unexpected(Unexpected::NotOutstanding(id.tag)),
            State::Resting => {
                if completion.is_last() && !self.tags.is_unordered() {
                    self.tags.answered(id.tag);
                    self.flight.wake(index);
                }
                Outcome::Unexpected(Unexpected::Late(id.tag))
            }
            State::Live => match check(self.flight.get(index), repr, completion, data) {
                Ok(()) => self.accept(now, index, repr, completion, data),
                Err((field, expected, found)) => {
                    let error = CompletionError::Mismatch { tag: id.tag, field, expected, found };
                    self.abandon(now, index, error)
                }
            },
        }
    }

    /// Gives up one request whose time is over by `now`; call until `None`.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Outcome<T>> {
        self.wake(now);
        let after = self.config.completion_timeout?;
        if self.flight.deadline(after)? > now {
            return None;
        }
        let index = self.flight.oldest()?;
        let (&slot, tag) = (self.flight.get(index), self.tags.tag(index));
        let address = slot.address;
        let error = CompletionError::Timeout { address, tag, after };
        let failed = slot.error.is_some() || self.operations[slot.operation as usize].error.is_some();
        if failed || slot.retries == 0 {
            return Some(self.abandon(now, index, error));
        }
        let progress = self.progress(index, address, 0, Some(error));
        self.flight.remove(index, State::Resting);
        self.tags.quarantine(now, tag);
        self.again.push_back(slot);
        Some(Outcome::Again(progress))
    }

    /// The carrier of the TLPs says that the request with this tag did not arrive: gives it up, if it is in flight. Its tag rests, for the
    /// news may be about an earlier one.
    pub fn handle_undelivered(&mut self, now: Time, tag: Tag, why: Undeliverable) -> Option<Outcome<T>> {
        let index = self.tags.index(tag).filter(|&index| self.flight.get(index).state == State::Live)?;
        let address = self.flight.get(index).address;
        Some(self.abandon(now, index, CompletionError::Undelivered { address, tag, why }))
    }

    /// A completion that fits its request.
    fn accept(
        &mut self,
        now: Time,
        index: usize,
        repr: &Repr,
        completion: &Completion,
        data: Option<&[u8]>,
    ) -> Outcome<T> {
        let slot = self.flight.get_mut(index);
        let address = slot.address;
        let failed = match completion.status() {
            CompletionStatus::Success => None,
            CompletionStatus::UnsupportedRequest => Some(CompletionError::UnsupportedRequest { address }),
            CompletionStatus::CompleterAbort => Some(CompletionError::CompleterAbort { address }),
            CompletionStatus::RetryStatus => Some(CompletionError::RetryStatus),
        };
        if let Some(error) = failed {
            // An error status ends the request, whatever was still to come (§2.3.2). It may have overtaken what was to come before it.
            if self.tags.is_unordered() && completion.byte_count() != slot.left {
                return self.abandon(now, index, error);
            }
            return self.finish(index, address, 0, failed);
        }
        // What it answers of the byte count, and how much of that is data.
        let answered = match slot.answer {
            Answer::Memory { .. } => completion.data_bytes(),
            Answer::Operand | Answer::Register | Answer::Nothing => slot.left,
        };
        let bytes = match slot.answer {
            Answer::Nothing | Answer::Memory { zero_length: true, .. } => 0,
            _ => answered,
        };
        let operation = &mut self.operations[slot.operation as usize];
        if let Some(data) = data {
            let skip =
                if data.len() == bytes as usize { 0 } else { usize::from(completion.lower_address() & 3) };
            operation.fill(slot.offset, &data[skip..], bytes as usize);
        }
        if repr.attributes().poisoned {
            slot.error = slot.error.or(Some(CompletionError::Poisoned { address }));
        }
        slot.address = address.wrapping_add(u64::from(bytes));
        slot.offset += u64::from(bytes);
        slot.left -= answered;
        let good = if repr.attributes().poisoned { 0 } else { bytes };
        let (left, error) = (slot.left, slot.error);
        if left == 0 {
            return self.finish(index, address, good, error);
        }
        Outcome::Partial(self.progress(index, address, good, error))
    }

    /// A request is over and its tag free.
    fn finish(
        &mut self,
        index: usize,
        address: u64,
        bytes: u32,
        error: Option<CompletionError>,
    ) -> Outcome<T> {
        let progress = self.progress(index, address, bytes, error);
        self.flight.remove(index, State::Free);
        self.tags.release(progress.tag);
        self.conclude(index, progress)
    }

    /// A request is over, but completions may still come: its tag rests.
    fn abandon(&mut self, now: Time, index: usize, error: CompletionError) -> Outcome<T> {
        let progress = self.progress(index, self.flight.get(index).address, 0, Some(error));
        self.flight.remove(index, State::Resting);
        self.tags.quarantine(now, progress.tag);
        self.conclude(index, progress)
    }

    fn progress(
        &self,
        index: usize,
        address: u64,
        bytes: u32,
        error: Option<CompletionError>,
    ) -> Progress<T> {
        let slot = self.flight.get(index);
        let operation = &self.operations[slot.operation as usize];
        Progress {
            op: operation.token.expect("an operation lives as long as its requests"),
            stream: operation.stream,
            tag: self.tags.tag(index),
            address,
            bytes,
            sent: slot.sent,
            submitted: operation.submitted,
            error,
        }
    }

    fn conclude(&mut self, index: usize, progress: Progress<T>) -> Outcome<T> {
        let number = self.flight.get(index).operation;
        let operation = &mut self.operations[number as usize];
        operation.outstanding -= 1;
        if let Some(error) = progress.error {
            operation.error.get_or_insert(error);
            if !operation.all_sent {
                // The rest is not asked for. Operations of a stream leave in order, so this one is at the front.
                operation.all_sent = true;
                let stream = &mut self.streams[usize::from(progress.stream)];
                let cut = stream.non_posted.pop_front();
                debug_assert!(cut.is_some_and(|queued| queued.operation == number));
                self.queued[FcClass::NonPosted.index()] -= 1;
            }
        }
        if operation.outstanding > 0 || !operation.all_sent {
            return Outcome::RequestDone(progress);
        }
        operation.token = None;
        let result = operation.take_result();
        self.free_operations.push(number);
        Outcome::OperationDone(progress, result)
    }
}

impl<T> Operation<T> {
    fn fill(&mut self, offset: u64, data: &[u8], bytes: usize) {
        if bytes == 0 {
            return;
        }
        if self.buffer.is_empty() {
            self.buffer = vec![0; self.bytes as usize];
        }
        let offset = offset as usize;
        self.buffer[offset..offset + bytes].copy_from_slice(&data[..bytes]);
        self.filled += bytes as u64;
    }

    fn take_result(&mut self) -> Result<Payload, CompletionError> {
        let buffer = std::mem::take(&mut self.buffer);
        match self.error {
            Some(error) => Err(error),
            None if self.filled == self.bytes && self.bytes > 0 => Ok(buffer.into()),
            None => Ok(Payload::Length(self.bytes)),
        }
    }
}

/// Checks that a completion fits its request (§2.2.9, §2.3.2). The error is the field that does not, the value expected and the value found.
fn check(
    slot: &Slot,
    repr: &Repr,
    completion: &Completion,
    data: Option<&[u8]>,
) -> Result<(), (Field, u32, u32)> {
    let expect = |field, expected: u32, found: u32| {
        if expected == found { Ok(()) } else { Err((field, expected, found)) }
    };
    let attributes = repr.attributes();
    expect(Field::TrafficClass, slot.class.value().into(), attributes.tc.value().into())?;
    let bits = |relaxed: bool, no_snoop: bool| u32::from(relaxed) << 1 | u32::from(no_snoop);
    expect(
        Field::Attributes,
        bits(slot.relaxed_ordering, slot.no_snoop),
        bits(attributes.relaxed_ordering, attributes.no_snoop),
    )?;
    let locked = matches!(slot.answer, Answer::Memory { locked: true, .. });
    expect(Field::Locked, locked.into(), completion.is_locked().into())?;
    let length = repr.payload_bytes();
    match completion.status() {
        CompletionStatus::Success => {}
        CompletionStatus::RetryStatus if !slot.config => return Err((Field::Status, 0, 2)),
        _ => return expect(Field::Length, 0, length),
    }
    // BCM marks a byte count that counts this completion only (§2.3.2, PCI-X bridges): then it says nothing about the rest.
    if !completion.is_byte_count_modified() {
        expect(Field::ByteCount, slot.left, completion.byte_count())?;
    }
    match slot.answer {
        Answer::Memory { .. } => {
            expect(Field::LowerAddress, lower_address(slot), completion.lower_address().into())?;
            if length == 0 || completion.data_bytes() > slot.left {
                return Err((Field::Length, slot.left, length));
            }
        }
        Answer::Operand => expect(Field::Length, slot.left, length)?,
        Answer::Register => expect(Field::Length, 4, length)?,
        Answer::Nothing => expect(Field::Length, 0, length)?,
    }
    let Some(found) = data.map(|data| data.len() as u32) else { return Ok(()) };
    let valid = match slot.answer {
        Answer::Memory { zero_length: true, .. } => 0,
        _ => completion.data_bytes(),
    };
    if found == length || found == valid { Ok(()) } else { Err((Field::Length, length, found)) }
}

/// The lower address of the next completion: of a zero-length read, that of its doubleword (table 2-39).
fn lower_address(slot: &Slot) -> u32 {
    (slot.address & 0x7F) as u32
}
