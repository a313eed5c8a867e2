//! The TLPs that leave: the choice of the next operation, its tag and its TLP.

use super::inflight::{Answer, Slot};
use super::{Classes, Queued, Requester, Stream, Work};
use crate::payload::{Payload, data_bytes};
use std::collections::VecDeque;
use tlplab_units::{FcClass, Tag, Time};
use tlplab_wire::tlp::{Kind, Repr, TransactionId};

/// A TLP that leaves.
#[derive(Clone, Debug)]
pub struct Outgoing<T> {
    /// The TLP.
    pub repr: Repr,
    /// The operation.
    pub op: T,
    /// Its stream.
    pub stream: u16,
    /// First byte (0 for messages and configuration requests).
    pub address: u64,
    /// Bytes asked for or carried.
    pub bytes: u32,
    /// Bytes of the operation before this TLP.
    pub offset: u64,
    /// The data of a request that carries some.
    pub payload: Option<Payload>,
    /// No TLP of this operation follows. A posted operation is over now; the requester forgets it.
    pub last_of_op: bool,
    /// The time at which the operation was submitted.
    pub submitted: Time,
}

/// A memory request that could leave next: the first of an operation that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The class that it waits in.
    pub class: FcClass,
    /// It writes.
    pub write: bool,
    /// First byte.
    pub address: u64,
    /// Bytes that the operation has still to ask for or to carry, with those of this request.
    pub left: u64,
}

impl<T: Copy> Requester<T> {
    /// The next TLP that may leave, of the classes the driver has room for (an [`FcClass`] or [`Classes`]). Non-posted requests
    /// take a tag. See the [module](self) for the order.
    pub fn poll_request(&mut self, now: Time, room: impl Into<Classes>) -> Option<Outgoing<T>> {
        self.poll(now, room.into(), None)
    }

    /// As [`poll_request`](Self::poll_request), for a driver that lets only some requests of [`read`](Self::read), [`write`](Self::write) and
    /// [`write_deferrable`](Self::write_deferrable) go, such as those whose address it can translate: `may_go` is asked of those that could go
    /// next, one of each stream and class at most. What may not go holds up its stream, as one without a tag does. Templates go in any case.
    pub fn poll_request_if(
        &mut self,
        now: Time,
        room: impl Into<Classes>,
        may_go: &mut dyn FnMut(Next) -> bool,
    ) -> Option<Outgoing<T>> {
        self.poll(now, room.into(), Some(may_go))
    }

    fn poll(
        &mut self,
        now: Time,
        room: Classes,
        mut may_go: Option<&mut dyn FnMut(Next) -> bool>,
    ) -> Option<Outgoing<T>> {
        let posted = room.contains(FcClass::Posted) && self.queued[0] > 0;
        let waiting = self.queued[1] > 0 || !self.again.is_empty();
        let mut non_posted = room.contains(FcClass::NonPosted) && waiting;
        if non_posted && (self.tags.free() == 0 || self.config.flush_by_first_tag && self.blocked_on_tags()) {
            self.wake(now);
            non_posted = self.tags.free() > 0;
        }
        if !posted && !non_posted {
            return None;
        }
        if non_posted && let Some(slot) = self.again.pop_front() {
            return Some(self.send_again(now, slot));
        }
        let count = self.streams.len();
        for turn in (self.turn..count).chain(0..self.turn) {
            let stream = &self.streams[turn];
            let class = if non_posted
                && stream.non_posted_is_next()
                && self.has_tag_for(stream)
                && may_go.as_mut().is_none_or(|may_go| goes(&stream.non_posted, FcClass::NonPosted, may_go))
            {
                FcClass::NonPosted
            } else if posted
                && !stream.posted.is_empty()
                && may_go.as_mut().is_none_or(|may_go| goes(&stream.posted, FcClass::Posted, may_go))
            {
                FcClass::Posted
            } else {
                continue;
            };
            self.turn = (turn + 1) % count;
            return Some(self.send(now, turn as u16, class));
        }
        None
    }

    /// True if, provided that any tag is free, one is that the next non-posted operation of a stream may have.
    pub(super) fn has_tag_for(&self, stream: &Stream<T>) -> bool {
        !self.waits_for_first(stream) || self.tags.first_is_free()
    }

    /// True if the next non-posted operation of a stream is a flush that may have the first tag only.
    fn waits_for_first(&self, stream: &Stream<T>) -> bool {
        self.config.flush_by_first_tag
            && stream.non_posted.front().is_some_and(|front| {
                matches!(front.work, Work::Read(_)) && self.operations[front.operation as usize].bytes == 0
            })
    }

    /// Sends the next TLP of a class of a stream; there is one, and a tag if it needs one.
    fn send(&mut self, now: Time, number: u16, class: FcClass) -> Outgoing<T> {
        let by_first =
            class == FcClass::NonPosted && self.waits_for_first(&self.streams[usize::from(number)]);
        let stream = &mut self.streams[usize::from(number)];
        let queue = if class == FcClass::Posted { &mut stream.posted } else { &mut stream.non_posted };
        let queued = queue.front_mut().expect("a stream with something to send");
        let tag = match class {
            FcClass::NonPosted if by_first => self.tags.alloc_first().expect("the first tag is free"),
            FcClass::NonPosted => self.tags.alloc().expect("a free tag"),
            _ => Tag::default(),
        };
        let id = TransactionId::new(self.config.id, tag);
        let (repr, address, bytes, offset, last_of_op) = match &mut queued.work {
            Work::Read(chunks) | Work::Write(chunks) | Work::DeferrableWrite(chunks) => {
                let chunk = chunks.next().expect("an operation is forgotten after its last request");
                let finished = chunks.is_finished();
                let repr = match queued.work {
                    Work::Write(_) => Repr::mem_write(id, chunk.address, chunk.bytes),
                    Work::DeferrableWrite(_) => Repr::deferrable_mem_write(id, chunk.address, chunk.bytes),
                    _ => Repr::mem_read(id, chunk.address, chunk.bytes),
                };
                let repr = repr.and_then(|repr| repr.with_attributes(stream.attributes));
                let repr = repr.expect("split_request makes valid requests");
                (repr, chunk.address, chunk.bytes, chunk.offset, finished)
            }
            Work::Template(template) => {
                let repr = with_id(template, id);
                let (address, bytes) = reach(&repr);
                (repr, address, bytes, 0, true)
            }
        };
        let is_read = matches!(queued.work, Work::Read(_));
        let payload = match &queued.payload {
            Some(payload) if repr.payload_dw() > 0 => Some(payload.slice(offset, data_bytes(&repr).into())),
            _ => None,
        };
        let (op, submitted, operation) = (queued.token, queued.submitted, queued.operation);
        if last_of_op {
            queue.pop_front();
            self.queued[class.index()] -= 1;
        }
        if class == FcClass::NonPosted {
            let index = self.tags.index(tag).expect("a tag of the pool");
            let mut slot = Slot::new(&repr, operation, offset, now);
            slot.retries = if is_read { self.config.retries } else { 0 };
            self.flight.insert(index, slot);
            let record = &mut self.operations[operation as usize];
            record.outstanding += 1;
            record.all_sent = last_of_op;
        }
        Outgoing { repr, op, stream: number, address, bytes, offset, payload, last_of_op, submitted }
    }

    /// Issues a read again, for the bytes still missing, under a tag that is free.
    fn send_again(&mut self, now: Time, slot: Slot) -> Outgoing<T> {
        let tag = self.tags.alloc().expect("a free tag");
        let operation = &self.operations[slot.operation as usize];
        let (op, stream) =
            (operation.token.expect("an operation lives as long as its requests"), operation.stream);
        let bytes =
            if slot.answer == (Answer::Memory { locked: false, zero_length: true }) { 0 } else { slot.left };
        let repr = Repr::mem_read(TransactionId::new(self.config.id, tag), slot.address, bytes)
            .and_then(|repr| repr.with_attributes(self.streams[usize::from(stream)].attributes));
        let repr = repr.expect("what is left of a valid read is one");
        let index = self.tags.index(tag).expect("a tag of the pool");
        let outgoing = Outgoing {
            repr,
            op,
            stream,
            address: slot.address,
            bytes,
            offset: slot.offset,
            payload: None,
            last_of_op: false,
            submitted: operation.submitted,
        };
        self.flight.insert(index, slot.again(now));
        outgoing
    }

    /// Frees the tags that have rested long enough.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(tag) = self.tags.expire(now) {
            let index = self.tags.index(tag).expect("a tag of the pool");
            self.flight.wake(index);
        }
    }
}

/// True if the next request of a queue may go.
fn goes<T>(queue: &VecDeque<Queued<T>>, class: FcClass, may_go: &mut dyn FnMut(Next) -> bool) -> bool {
    let (chunks, write) = match queue.front().map(|front| &front.work) {
        Some(Work::Read(chunks)) => (chunks, false),
        Some(Work::Write(chunks) | Work::DeferrableWrite(chunks)) => (chunks, true),
        Some(Work::Template(_)) | None => return true,
    };
    may_go(Next { class, write, address: chunks.address(), left: chunks.left() })
}

/// The template with the requester's own ID and a tag.
fn with_id(template: &Repr, own: TransactionId) -> Repr {
    let mut kind = *template.kind();
    match &mut kind {
        Kind::MemRead { id, .. }
        | Kind::MemWrite { id, .. }
        | Kind::DeferrableMemWrite { id, .. }
        | Kind::IoRead { id, .. }
        | Kind::IoWrite { id, .. }
        | Kind::CfgRead { id, .. }
        | Kind::CfgWrite { id, .. }
        | Kind::AtomicOp { id, .. } => *id = own,
        Kind::Message(_) | Kind::Completion(_) => {}
    }
    let repr = Repr::from(kind).with_attributes(*template.attributes());
    repr.expect("a valid template has valid attributes").with_prefixes(*template.prefixes())
}

/// First byte and length of the target of a request.
fn reach(repr: &Repr) -> (u64, u32) {
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            (span.first_byte(), if span.is_zero_length() { 0 } else { span.byte_count() })
        }
        Kind::AtomicOp { target, .. } => (target.address(), target.operand_bytes()),
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => (port.address().into(), 4),
        Kind::CfgRead { .. } | Kind::CfgWrite { .. } => (0, 4),
        Kind::Message(_) | Kind::Completion(_) => (0, repr.payload_bytes()),
    }
}
