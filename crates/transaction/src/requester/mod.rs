//! The requester: operations in, requests out, completions in, results out.
//!
//! An operation is a transfer of any length; it leaves as requests cut by [`split`](crate::split), each non-posted one with a tag
//! of its own. The owner names an operation by a token `T` of its choice and gets it back with everything that concerns it.
//!
//! * [`Requester::read`], [`write`](Requester::write), [`write_deferrable`](Requester::write_deferrable),
//!   [`request`](Requester::request) queue an operation in a *stream*.
//! * [`Requester::poll_request`] gives the next TLP that may leave.
//! * [`Requester::handle_completion`] takes completions; [`Requester::handle_timeout`] gives up requests that lack theirs.
//!
//! **Order.** Within a stream, operations leave in the order of their submission, with one exception: a posted operation may
//! overtake non-posted ones that cannot leave, for want of a tag or because the driver has no room for their class. A
//! non-posted operation never overtakes a posted one. Streams take turns, TLP by TLP.

mod inflight;
mod receive;
mod send;

use crate::error::{CompletionError, RequestError};
use crate::payload::{Payload, data_bytes};
use crate::split::{RequestChunks, RequestPolicy, split_request};
use crate::tags::{TagConfig, TagPool};
use inflight::{InFlight, Slot, State};
pub use receive::{Outcome, Progress};
pub use send::{Next, Outgoing};
use std::collections::VecDeque;
use tlplab_units::{Bdf, Duration, FcClass, Mps, Mrrs, Time};
use tlplab_wire::tlp::{Attributes, Kind, Repr};

/// The settings of a requester: the limits of its configuration space, and policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterConfig {
    /// Requester ID.
    pub id: Bdf,
    /// Its tags.
    pub tags: TagConfig,
    /// Max_Payload_Size: limit of a write.
    pub mps: Mps,
    /// Max_Read_Request_Size: limit of a read.
    pub mrrs: Mrrs,
    /// The policy for cutting transfers.
    pub split: RequestPolicy,
    /// Time limit of a request from the moment it leaves; `None` to wait forever.
    pub completion_timeout: Option<Duration>,
    /// The number of times that a request of [`Requester::read`] without a timely answer is issued again, under another tag, for the bytes
    /// still missing. PCI Express does not lose requests, so 0 there; over a network that does, only where reads have no side effects.
    pub retries: u8,
    /// Zero-length reads take the first tag only, and wait for it. Where each tag has a way of its own, as over NetTLP, and writes go the
    /// first one's, a flush pushes them only if it follows them there.
    pub flush_by_first_tag: bool,
    /// Attributes of the memory requests of every stream that has none of its own.
    pub attributes: Attributes,
}

/// The most that a deferrable write carries: 64 or 128 bytes, as Device Capabilities 3 says (PCIe 6.0 §7.7.9.2).
pub const DEFERRABLE_WRITE_LIMIT: u32 = 128;

impl RequesterConfig {
    /// 8-bit tags, MPS 128, MRRS 512 (the values after reset, PCIe 5.0 §7.5.3.4), a completion timeout of 50 ms.
    pub fn new(id: Bdf) -> Self {
        Self {
            id,
            tags: TagConfig::default(),
            mps: Mps::ALL[0],
            mrrs: Mrrs::ALL[2],
            split: RequestPolicy::Aligned,
            completion_timeout: Some(Duration::from_ms(50)),
            retries: 0,
            flush_by_first_tag: false,
            attributes: Attributes::default(),
        }
    }
}

/// A set of classes: those the driver has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// All of them.
    pub const ALL: Self = Self(7);
    /// None of them.
    pub const NONE: Self = Self(0);
    /// This set and `class`.
    pub const fn with(self, class: FcClass) -> Self {
        Self(self.0 | 1 << class.index())
    }
    /// True if `class` is in the set.
    pub const fn contains(self, class: FcClass) -> bool {
        self.0 >> class.index() & 1 == 1
    }
}

impl From<FcClass> for Classes {
    fn from(class: FcClass) -> Self {
        Self::NONE.with(class)
    }
}

/// A place among the posted operations of a requester, given by [`Requester::posted_mark`] and taken by [`Requester::has_sent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedMark(u64);

#[derive(Clone, Debug)]
enum Work {
    Read(RequestChunks),
    Write(RequestChunks),
    DeferrableWrite(RequestChunks),
    Template(Repr),
}

/// An operation with TLPs still to be sent.
#[derive(Clone, Debug)]
struct Queued<T> {
    token: T,
    /// Age within the requester.
    age: u64,
    submitted: Time,
    work: Work,
    payload: Option<Payload>,
    /// Index in `operations`; meaningless for posted ones.
    operation: u32,
}

/// A non-posted operation, until its last completion.
#[derive(Clone, Debug)]
struct Operation<T> {
    token: Option<T>,
    stream: u16,
    submitted: Time,
    bytes: u64,
    /// Bytes that came with data, and their buffer; allocated when the first come.
    filled: u64,
    buffer: Vec<u8>,
    outstanding: u32,
    all_sent: bool,
    error: Option<CompletionError>,
}

#[derive(Clone, Debug)]
struct Stream<T> {
    posted: VecDeque<Queued<T>>,
    non_posted: VecDeque<Queued<T>>,
    attributes: Attributes,
}

/// A requester; see the [module](self).
#[derive(Clone, Debug)]
pub struct Requester<T> {
    config: RequesterConfig,
    tags: TagPool,
    streams: Vec<Stream<T>>,
    turn: usize,
    next_age: u64,
    queued: [usize; 2],
    operations: Vec<Operation<T>>,
    free_operations: Vec<u32>,
    flight: InFlight,
    /// Reads to be issued again, before anything else.
    again: VecDeque<Slot>,
}

impl<T: Copy> Requester<T> {
    /// A requester with nothing to do.
    pub fn new(config: RequesterConfig) -> Self {
        let tags = TagPool::new(config.tags);
        Self {
            config,
            flight: InFlight::new(tags.capacity()),
            tags,
            streams: Vec::new(),
            turn: 0,
            next_age: 0,
            queued: [0; 2],
            operations: Vec::new(),
            free_operations: Vec::new(),
            again: VecDeque::new(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &RequesterConfig {
        &self.config
    }
    /// Software has changed its requester ID or its limits: requests that leave from now on have the ID, and operations that are submitted
    /// from now on obey the limits. Tags and requests in flight stay; completions under an earlier ID are somebody else's.
    pub fn reconfigure(&mut self, id: Bdf, mps: Mps, mrrs: Mrrs) {
        (self.config.id, self.config.mps, self.config.mrrs) = (id, mps, mrrs);
    }
    /// Operations that are submitted from now on are cut like this.
    pub fn set_request_policy(&mut self, split: RequestPolicy) {
        self.config.split = split;
    }
    /// Requests, those in flight too, wait as long as `completion_timeout`, and tags that are given up from now on rest for `quarantine`. A tag
    /// that rests does so for as long as it was to, unless a late completion frees it.
    pub fn set_time_limits(&mut self, completion_timeout: Duration, quarantine: crate::Quarantine) {
        self.config.completion_timeout = Some(completion_timeout);
        self.config.tags.quarantine = quarantine;
        self.tags.set_quarantine(quarantine);
    }
    /// Requests that wait for completions.
    pub fn in_flight(&self) -> usize {
        self.flight.live()
    }
    /// Tags that are not free: in flight or resting.
    pub fn tags_in_use(&self) -> u16 {
        self.tags.in_use()
    }
    /// Operations that still have something to send.
    pub fn queued(&self) -> usize {
        self.queued[0] + self.queued[1]
    }
    /// Operations of a class that still have something to send.
    pub fn queued_of(&self, class: FcClass) -> usize {
        self.queued.get(class.index()).copied().unwrap_or(0)
    }
    /// True if there is nothing to send and no completion to wait for.
    pub fn is_idle(&self) -> bool {
        self.queued() == 0 && self.in_flight() == 0 && self.again.is_empty()
    }
    /// True if a non-posted request could go, but for the lack of a tag that it may have.
    pub fn blocked_on_tags(&self) -> bool {
        let mut next = self.streams.iter().filter(|stream| stream.non_posted_is_next());
        match self.tags.free() {
            0 => !self.again.is_empty() || self.queued[1] > 0 && next.next().is_some(),
            _ => self.config.flush_by_first_tag && next.any(|stream| !self.has_tag_for(stream)),
        }
    }

    /// Memory requests of `stream` have these attributes from now on: traffic class, relaxed ordering, no snoop and so on.
    /// Streams are numbered from 0, densely.
    pub fn set_attributes(&mut self, stream: u16, attributes: Attributes) {
        self.stream(stream).attributes = attributes;
    }

    /// Queues a memory read. 0 bytes are a zero-length read, which flushes the writes before it (PCIe 5.0 §2.2.5).
    ///
    /// # Errors
    /// [`RequestError::AddressWraps`].
    pub fn read(
        &mut self,
        now: Time,
        stream: u16,
        op: T,
        address: u64,
        bytes: u64,
    ) -> Result<(), RequestError> {
        check_range(address, bytes)?;
        let chunks = split_request(address, bytes, self.config.mrrs.bytes(), self.config.split);
        self.queue_non_posted(now, stream, op, bytes, Work::Read(chunks), None);
        Ok(())
    }

    /// Queues a memory write. It is over when its last TLP has left ([`Outgoing::last_of_op`]).
    ///
    /// # Errors
    /// [`RequestError::AddressWraps`].
    pub fn write(
        &mut self,
        now: Time,
        stream: u16,
        op: T,
        address: u64,
        payload: Payload,
    ) -> Result<(), RequestError> {
        check_range(address, payload.len())?;
        let chunks = split_request(address, payload.len(), self.config.mps.bytes(), self.config.split);
        self.queue_posted(now, stream, op, Work::Write(chunks), Some(payload));
        Ok(())
    }

    /// Queues a memory write of deferrable writes, which are non-posted: each takes a tag and is completed, and the operation is
    /// over with the last completion. They carry at most [`DEFERRABLE_WRITE_LIMIT`] bytes.
    ///
    /// # Errors
    /// [`RequestError::AddressWraps`].
    pub fn write_deferrable(
        &mut self,
        now: Time,
        stream: u16,
        op: T,
        address: u64,
        payload: Payload,
    ) -> Result<(), RequestError> {
        check_range(address, payload.len())?;
        let limit = self.config.mps.bytes().min(DEFERRABLE_WRITE_LIMIT);
        let chunks = split_request(address, payload.len(), limit, self.config.split);
        self.queue_non_posted(now, stream, op, 0, Work::DeferrableWrite(chunks), Some(payload));
        Ok(())
    }

    /// Queues any other request: atomic, IO, configuration, message, deferrable or locked, or a memory request with byte enables
    /// or attributes of its own. It leaves as one TLP; requester ID and tag of the template are replaced.
    ///
    /// # Errors
    /// [`RequestError::NotARequest`], [`RequestError::PayloadLength`].
    pub fn request(
        &mut self,
        now: Time,
        stream: u16,
        op: T,
        template: Repr,
        payload: Option<Payload>,
    ) -> Result<(), RequestError> {
        let (expected, found) = (data_bytes(&template), payload.as_ref().map_or(0, Payload::len));
        if u64::from(expected) != found {
            return Err(RequestError::PayloadLength { name: template.name(), expected, found });
        }
        let work = Work::Template(template);
        match (template.fc_class(), template.kind()) {
            (FcClass::Completion, _) => return Err(RequestError::NotARequest(template.name())),
            (FcClass::Posted, _) => self.queue_posted(now, stream, op, work, payload),
            (FcClass::NonPosted, kind) => {
                let bytes = match kind {
                    Kind::MemRead { span, .. } if !span.is_zero_length() => span.byte_count(),
                    Kind::AtomicOp { target, .. } => target.operand_bytes(),
                    Kind::IoRead { .. } | Kind::CfgRead { .. } => 4,
                    _ => 0,
                };
                self.queue_non_posted(now, stream, op, bytes.into(), work, payload);
            }
        }
        Ok(())
    }

    /// A mark behind the posted operations that are queued now.
    pub fn posted_mark(&self) -> PostedMark {
        PostedMark(self.next_age)
    }

    /// True if every posted operation before `mark` has left, in every stream. Before that no completion of this function may leave that was
    /// made after them: it would pass posted requests (PCIe 5.0 table 2-39).
    pub fn has_sent(&self, mark: PostedMark) -> bool {
        self.queued[0] == 0
            || self
                .streams
                .iter()
                .filter_map(|stream| stream.posted.front())
                .all(|posted| posted.age >= mark.0)
    }

    /// The requests of [`request`](Self::request) of a stream that are posted and have not left, with their data, the newest first.
    pub fn waiting_posted(&self, stream: u16) -> impl Iterator<Item = (&Repr, Option<&Payload>)> {
        let queued = self.streams.get(usize::from(stream)).map(|stream| stream.posted.iter().rev());
        queued.into_iter().flatten().filter_map(|queued| match &queued.work {
            Work::Template(template) => Some((template, queued.payload.as_ref())),
            Work::Read(_) | Work::Write(_) | Work::DeferrableWrite(_) => None,
        })
    }

    /// The next instant at which [`handle_timeout`](Self::handle_timeout) or [`poll_request`](Self::poll_request) has something
    /// to do without other input: a request runs out of time, or a tag that somebody waits for has rested.
    pub fn deadline(&self) -> Option<Time> {
        let timeout = self.config.completion_timeout.and_then(|limit| self.flight.deadline(limit));
        let rest = if self.blocked_on_tags() { self.tags.deadline() } else { None };
        timeout.into_iter().chain(rest).min()
    }

    /// Forgets everything (a function-level reset, PCIe 5.0 §6.6.2): nothing more is sent, and completions of requests in flight are
    /// late when they come. Calls `cancelled` with every operation that was not over.
    pub fn cancel_all(&mut self, now: Time, mut cancelled: impl FnMut(T)) {
        for stream in &mut self.streams {
            stream.posted.drain(..).for_each(|queued| cancelled(queued.token));
            stream.non_posted.clear();
        }
        self.queued = [0; 2];
        self.again.clear();
        while let Some(index) = self.flight.oldest() {
            self.flight.remove(index, State::Resting);
            self.tags.quarantine(now, self.tags.tag(index));
        }
        for index in 0..self.operations.len() {
            if let Some(token) = self.operations[index].token.take() {
                cancelled(token);
                self.free_operations.push(index as u32);
            }
        }
    }

    /// As [`cancel_all`](Self::cancel_all), but the tags do not rest (a conventional reset, PCIe 5.0 §6.6.1): the requester knows
    /// nothing of earlier requests, and it is the driver's business that no completion of theirs reaches it.
    pub fn reset(&mut self, now: Time, cancelled: impl FnMut(T)) {
        self.cancel_all(now, cancelled);
        self.tags = TagPool::new(self.config.tags);
        self.flight = InFlight::new(self.tags.capacity());
    }

    /// The origin of time moves: every instant that is stored is now `by` earlier, or at zero if it was less.
    pub fn rebase(&mut self, by: Duration) {
        let earlier = |time: &mut Time| *time = time.earlier(by);
        for queued in self.streams.iter_mut().flat_map(|s| s.posted.iter_mut().chain(&mut s.non_posted)) {
            earlier(&mut queued.submitted);
        }
        self.operations.iter_mut().for_each(|operation| earlier(&mut operation.submitted));
        self.flight.times().chain(self.again.iter_mut().map(|slot| &mut slot.sent)).for_each(earlier);
        self.tags.ends().for_each(earlier);
    }

    fn stream(&mut self, stream: u16) -> &mut Stream<T> {
        let attributes = self.config.attributes;
        while self.streams.len() <= usize::from(stream) {
            self.streams.push(Stream { posted: VecDeque::new(), non_posted: VecDeque::new(), attributes });
        }
        &mut self.streams[usize::from(stream)]
    }

    fn queue_posted(&mut self, now: Time, stream: u16, token: T, work: Work, payload: Option<Payload>) {
        let age = self.next_age;
        self.next_age += 1;
        self.queued[0] += 1;
        let queued = Queued { token, age, submitted: now, work, payload, operation: u32::MAX };
        self.stream(stream).posted.push_back(queued);
    }

    fn queue_non_posted(
        &mut self,
        now: Time,
        stream: u16,
        token: T,
        bytes: u64,
        work: Work,
        payload: Option<Payload>,
    ) {
        let record = Operation {
            token: Some(token),
            stream,
            submitted: now,
            bytes,
            filled: 0,
            buffer: Vec::new(),
            outstanding: 0,
            all_sent: false,
            error: None,
        };
        let operation = match self.free_operations.pop() {
            Some(index) => {
                self.operations[index as usize] = record;
                index
            }
            None => {
                self.operations.push(record);
                self.operations.len() as u32 - 1
            }
        };
        let age = self.next_age;
        self.next_age += 1;
        self.queued[1] += 1;
        let queued = Queued { token, age, submitted: now, work, payload, operation };
        self.stream(stream).non_posted.push_back(queued);
    }
}

impl<T> Stream<T> {
    /// There is a non-posted operation, and no older posted one.
    fn non_posted_is_next(&self) -> bool {
        let Some(front) = self.non_posted.front() else { return false };
        self.posted.front().is_none_or(|posted| posted.age > front.age)
    }
}

fn check_range(address: u64, bytes: u64) -> Result<(), RequestError> {
    match address.checked_add(bytes.saturating_sub(1)) {
        Some(_) => Ok(()),
        None => Err(RequestError::AddressWraps { address, bytes }),
    }
}
