//! A software device's end of NetTLP: a requester and a completer behind one adapter.
//!
//! * **Requester**: [`read`](Endpoint::read) and [`write`](Endpoint::write) take transfers of any length; they leave as requests cut by
//!   MRRS, MPS and 4 KiB, each read under a tag of its own, and come back as one [`Event`]. What is matched is requester ID and tag, and
//!   byte count and lower address with what is still missing. The rules are those of [`Requester`].
//! * **Completer**: the host's reads and writes inside the [windows](EndpointConfig::windows) are events; reads are answered by
//!   [`answer`](Endpoint::answer), cut by MPS and RCB. Outside, a read gets UR at once.
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddrV4};
//! use tlplab_nettlp::endpoint::*;
//! use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
//! use tlplab_units::{Bdf, Time};
//!
//! let adapter = Ipv4Addr::new(127, 0, 0, 2);
//! let mut device = Endpoint::new(EndpointConfig::new(adapter, Bdf(0x1B00)));
//! device.read(Time::ZERO, "my read", 0xA000_0000, 4).unwrap();
//! let mut buffer = [0; MAX_DATAGRAM];
//! let request = device.poll_transmit(Time::ZERO, &mut buffer).unwrap();
//! assert_eq!(request.to, SocketAddrV4::new(adapter, 0x3000)); // tag 0
//!
//! // NetTLP header; CplD of one doubleword for 1b:00.0, tag 0, byte count 4, lower address 0; data.
//! let answer = b"\0\x01\0\0\0\x07\x4A\0\0\x01\0\0\0\x04\x1B\0\0\0abcd";
//! device.handle_datagram(Time::ZERO, Datagram { from: request.to, port: 0x3000, payload: answer });
//! let Some(Event::ReadDone { result: Ok(data), .. }) = device.poll_event() else { panic!() };
//! assert_eq!(data.bytes(), Some(&b"abcd"[..]));
//! ```

mod answers;
mod config;
mod counters;
mod event;
mod gate;
mod line;

use crate::datagram::{emit, with_digest};
use crate::early::{Early, Turn};
use crate::engine::{Datagram, Engine, Outgoing};
use crate::link::{Came, Link, emit_message, message_of};
use crate::sequence::Numbering;
pub use crate::sequence::Seen;
use answers::Answers;
use line::Line;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use tlplab_device::{DmaError, Refusal};
use tlplab_transaction::{
    Classes, Completer, CompletionError, CompletionPolicy, Outcome, Payload, Quarantine, RequestError,
    RequestPolicy, Requester, Undeliverable, Unexpected,
};
use tlplab_units::{Bdf, Duration, FcClass, Mps, Mrrs, Tag, Time};
use tlplab_wire::nettlp::link::{LinkMessage, Numbers, open};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS, Header};
use tlplab_wire::tlp::{Completion, CompletionStatus, Kind, Packet, Repr, Span, TransactionId};

pub use answers::{AnswerError, Runs};
pub use config::{EndpointConfig, Retry, Window};
pub use counters::Counters;
pub use event::{AnswerToken, Event, HostRead, HostWrite};
pub use gate::Gate;

/// Events of the host that wait for the owner; more are dropped and counted. A driver that polls after every batch never gets there.
const MOST_EVENTS: usize = 4096;

/// A software device's end; see the [module](self). `T` names an operation; it is the owner's.
#[derive(Clone, Debug)]
pub struct Endpoint<T> {
    config: EndpointConfig,
    requester: Requester<T>,
    gate: Gate,
    early: Early,
    answers: Answers,
    events: VecDeque<Event<T>>,
    /// The acknowledged link, if there is to be one.
    line: Option<Line<T>>,
}

impl<T: Copy> Endpoint<T> {
    /// An end with nothing to do.
    ///
    /// # Panics
    /// Without a single tag.
    pub fn new(config: EndpointConfig) -> Self {
        assert!(!config.tags.is_empty(), "an end point needs at least one tag, not {:?}", config.tags);
        Self {
            requester: Requester::new(config.requester()),
            gate: Gate::new(config.adapter),
            line: config.acknowledged.then(Line::new),
            config,
            early: Early::default(),
            answers: Answers::default(),
            events: VecDeque::new(),
        }
    }

    /// Becomes another lane of the device that `other` is one of: their datagrams have one count, and what is [lost](Counters::lost) is known of
    /// all together. Before anything was sent or came.
    pub fn count_with(&mut self, other: &mut Self) {
        *self.gate.numbering() = other.gate.numbering().share();
    }

    /// Its configuration.
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }
    /// Transfers that are submitted from now on are cut into requests like this.
    pub fn set_request_policy(&mut self, split: RequestPolicy) {
        self.config.split = split;
        self.requester.set_request_policy(split);
    }
    /// Software has given the function another ID or other limits: what is submitted from now on obeys them.
    pub fn reconfigure(&mut self, requester: Bdf, mps: Mps, mrrs: Mrrs) {
        (self.config.requester, self.config.mps, self.config.mrrs) = (requester, mps, mrrs);
        self.requester.reconfigure(requester, mps, mrrs);
    }
    /// The time that requests may take from now on, and the time that their tags rest after a failure. Tags that rest go on resting.
    pub fn set_time_limits(&mut self, completion_timeout: Duration, quarantine: Duration) {
        (self.config.completion_timeout, self.config.quarantine) = (completion_timeout, quarantine);
        self.requester.set_time_limits(completion_timeout, Quarantine::Unordered(quarantine));
    }
    /// The memory that the host may access here from now on.
    pub fn set_windows(&mut self, windows: Vec<Window>) {
        self.config.windows = windows;
    }
    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.gate.counters()
    }
    /// Requests that wait for completions.
    pub fn in_flight(&self) -> usize {
        self.requester.in_flight()
    }
    /// Tags that are free.
    pub fn free_tags(&self) -> u16 {
        self.config.tags.len() as u16 - self.requester.tags_in_use()
    }
    /// Tags of requests that were given up, whose completions may still come.
    pub fn resting_tags(&self) -> u16 {
        self.requester.tags_in_use() - self.requester.in_flight() as u16
    }
    /// Operations of which something is still to be sent.
    pub fn queued(&self) -> usize {
        self.requester.queued()
    }
    /// Reads of the host that are not answered to their end.
    pub fn host_reads_open(&self) -> usize {
        self.answers.kept()
    }
    /// True if it has nothing to send, to wait for, or to report.
    pub fn is_idle(&self) -> bool {
        let told = self.line.as_ref().is_none_or(|line| line.under_way() == 0);
        self.requester.is_idle() && self.answers.kept() == 0 && self.events.is_empty() && told
    }

    /// Reads `bytes` of the host's memory; 0 bytes are a flush: the writes before it are done when it is.
    ///
    /// # Errors
    /// A transfer that passes the end of the address space.
    pub fn read(&mut self, now: Time, token: T, address: u64, bytes: u64) -> Result<(), RequestError> {
        self.requester.read(now, 0, token, address, bytes)
    }

    /// Writes to the host's memory.
    ///
    /// # Errors
    /// A transfer that passes the end of the address space.
    pub fn write(&mut self, now: Time, token: T, address: u64, data: Payload) -> Result<(), RequestError> {
        self.requester.write(now, 0, token, address, data)
    }

    /// As [`read`](Self::read) and [`write`](Self::write) in one of several streams, each of which keeps its order.
    pub fn requester(&mut self) -> &mut Requester<T> {
        &mut self.requester
    }

    /// Answers a read of the host. The answer leaves after the writes that were submitted before it.
    ///
    /// # Errors
    /// Data of another length than was asked for, a read that is over.
    pub fn answer(
        &mut self,
        token: AnswerToken,
        result: Result<Payload, Refusal>,
    ) -> Result<(), AnswerError> {
        let (completer, mark) = (self.completer(), self.requester.posted_mark());
        self.answers.answer(&completer, mark, token, result)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        self.events.pop_front()
    }

    /// Forgets all operations and all reads of the host (a reset of the function); calls `cancelled` with every operation that was not
    /// over. What is in flight is late when it comes, and events that nobody has polled are gone.
    pub fn cancel_all(&mut self, now: Time, mut cancelled: impl FnMut(T)) {
        if let Some(link) = self.line.as_mut().and_then(Line::link) {
            link.forget().for_each(&mut cancelled);
        }
        self.requester.cancel_all(now, cancelled);
        self.answers.clear();
        self.early.clear();
        self.events.clear();
    }

    fn completer(&self) -> Completer {
        let EndpointConfig { requester: id, rcb, mps, .. } = self.config;
        Completer { id, rcb, mps, policy: CompletionPolicy::Max }
    }

    fn handle_completion(&mut self, now: Time, port: u16, completion: Completion, repr: &Repr, data: &[u8]) {
        let id = completion.id();
        if port != device_port(id.tag) {
            self.gate.counters.wrong_port += 1;
            return;
        }
        if self.config.attributes.digest && !repr.attributes().digest {
            self.gate.counters.undigested += 1;
            return;
        }
        match self.early.turn(&self.requester, completion, repr, data) {
            Turn::Now => {}
            Turn::Early => return self.gate.counters.early += 1,
            Turn::Twice => return self.gate.counters.duplicates += 1,
        }
        self.take_completion(now, repr, data);
        while let Some((repr, data)) = self.early.next(&self.requester, id) {
            self.take_completion(now, &repr, &data);
        }
    }

    /// A completion whose turn it is.
    fn take_completion(&mut self, now: Time, repr: &Repr, data: &[u8]) {
        let outcome = self.requester.handle_completion(now, repr, Some(data));
        match &outcome {
            Outcome::Unexpected(Unexpected::Late(_)) => self.gate.counters.late += 1,
            Outcome::Unexpected(_) => self.gate.counters.unexpected += 1,
            outcome => {
                let error = outcome.progress().and_then(|progress| progress.error);
                let mismatch = matches!(error, Some(CompletionError::Mismatch { .. }));
                *(if mismatch {
                    &mut self.gate.counters.mismatched
                } else {
                    &mut self.gate.counters.completions
                }) += 1;
            }
        }
        self.conclude(outcome);
    }

    /// A request may be over, and with it an operation, of which the owner is told.
    fn conclude(&mut self, outcome: Outcome<T>) {
        self.early.conclude(&outcome);
        if let Outcome::OperationDone(progress, result) = outcome {
            let result = result.map_err(DmaError::from);
            self.events.push_back(Event::ReadDone { token: progress.op, result });
        }
    }

    /// A request of the host, or anything else that is no completion.
    fn handle_request(&mut self, now: Time, port: u16, tag: u8, repr: &Repr, data: &[u8]) {
        if port != HOST_PORTS.start() + u16::from(tag & 15) || !self.config.answers(port) {
            self.gate.counters.wrong_port += 1;
            return;
        }
        if self.events.len() >= MOST_EVENTS {
            self.gate.counters.overload += 1;
            return;
        }
        match *repr.kind() {
            Kind::MemRead { id, span, locked: false } => match self.window(span) {
                Some(window) => self.host_read(now, (port, window), id, span, repr),
                None => self.refuse(port, repr),
            },
            Kind::MemWrite { id, span } => match self.window(span) {
                Some(window) => self.host_write(id, window, span, repr, data),
                None => self.gate.counters.refused += 1,
            },
            _ => {
                self.gate.counters.other += 1;
                self.refuse(port, repr);
                self.events.push_back(Event::Other { repr: *repr, data: data.into() });
            }
        }
    }

    fn window(&self, span: Span) -> Option<usize> {
        let (address, bytes) = (span.first_byte(), span.byte_count());
        self.config.windows.iter().position(|window| window.contains(address, bytes))
    }

    fn host_read(
        &mut self,
        now: Time,
        (port, window): (u16, usize),
        id: TransactionId,
        span: Span,
        repr: &Repr,
    ) {
        let runs = Runs::of(span);
        // The host has given up by then, whoever it is.
        let patience = Duration::from_fs(self.config.completion_timeout.as_fs().saturating_mul(4));
        self.gate.counters.unanswered += self.answers.give_up(now.earlier(patience));
        let Some(token) = self.answers.keep(now, port, *repr, runs) else {
            self.gate.counters.overload += 1;
            return;
        };
        self.gate.counters.host_reads += 1;
        for (part, (address, bytes)) in runs.enumerate() {
            let token = AnswerToken { part: part as u16, ..token };
            let read = HostRead { token, requester: id.requester, window, address, bytes };
            self.events.push_back(Event::HostRead(read));
        }
    }

    fn host_write(&mut self, id: TransactionId, window: usize, span: Span, repr: &Repr, data: &[u8]) {
        self.gate.counters.host_writes += 1;
        if span.is_zero_length() {
            return;
        }
        let data = Payload::from(data);
        for (address, bytes) in Runs::of(span) {
            let data = data.slice(address - span.address(), bytes.into());
            let poisoned = repr.attributes().poisoned;
            let write = HostWrite { requester: id.requester, window, address, data, poisoned };
            self.events.push_back(Event::HostWrite(write));
        }
    }

    /// Answers with UR what wants an answer.
    fn refuse(&mut self, port: u16, repr: &Repr) {
        self.gate.counters.refused += 1;
        let completion = self.completer().refuse(repr, CompletionStatus::UnsupportedRequest);
        if let Some(completion) = completion
            && !self.answers.refuse(port, with_digest(completion, repr.attributes().digest))
        {
            self.gate.counters.overload += 1;
        }
    }
}

/// The port of a request of the device, and of its completions.
fn device_port(tag: Tag) -> u16 {
    DEVICE_PORTS.start() + tag.value()
}

impl<T: Copy> Engine for Endpoint<T> {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        if self.line.is_some()
            && let Some((numbers, tlp)) = open(datagram.payload)
        {
            return self.handle_sealed(now, datagram, numbers, tlp);
        }
        let Some((packet, repr)) = self.gate.admit(datagram) else { return };
        match message_of(&packet, &repr).filter(|_| self.line.is_some()) {
            Some(message) => self.handle_message(now, message),
            None => self.handle_tlp(now, datagram.port, &packet, &repr),
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        let (port, len) = match self.poll_line(now, buffer) {
            Some(sent) => sent,
            None if self.line.as_ref().is_some_and(|line| !line.has_room()) => return None,
            None => self.poll_tlp(now, buffer)?,
        };
        self.gate.counters.datagrams_out += 1;
        Some(Outgoing::same_port(self.config.adapter, port, len))
    }

    fn deadline(&self) -> Option<Time> {
        let line = self.line.as_ref().and_then(Line::deadline);
        [self.requester.deadline(), line].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(outcome) = self.requester.handle_timeout(now) {
            self.gate.counters.timeouts += 1;
            self.gate.counters.retries += u64::from(matches!(outcome, Outcome::Again(_)));
            self.conclude(outcome);
        }
        if self.line.as_mut().is_some_and(|line| !line.handle_timeout(now)) {
            self.hang_up(now);
        }
    }

    fn handle_undeliverable(&mut self, now: Time, to: SocketAddrV4, why: Undeliverable) {
        let tag = to.port().checked_sub(*DEVICE_PORTS.start()).and_then(Tag::new);
        let Some(tag) = tag.filter(|_| *to.ip() == self.config.adapter) else { return };
        self.gate.counters.undelivered += 1;
        if self.line.is_some() && why == Undeliverable::PortRefused {
            return self.hang_up(now);
        }
        if let Some(outcome) = self.requester.handle_undelivered(now, tag, why) {
            self.conclude(outcome);
        }
    }

    fn rebase(&mut self, by: Duration) {
        self.requester.rebase(by);
        self.answers.rebase(by);
        self.line.iter_mut().for_each(|line| line.rebase(by));
    }
}

impl<T: Copy> Endpoint<T> {
    fn handle_tlp(&mut self, now: Time, port: u16, packet: &Packet<'_>, repr: &Repr) {
        match repr.kind() {
            Kind::Completion(completion) => {
                self.handle_completion(now, port, *completion, repr, packet.payload());
            }
            _ => {
                let tag = packet.tag_byte().unwrap_or_default();
                self.handle_request(now, port, tag, repr, packet.payload());
            }
        }
    }

    /// A TLP of the acknowledged link.
    fn handle_sealed(&mut self, now: Time, datagram: Datagram<'_>, numbers: Numbers, tlp: &[u8]) {
        if !self.gate.admit_sealed(datagram) {
            return;
        }
        let Some(link) = self.line.as_mut().and_then(Line::link) else { return };
        let done = |token| self.events.push_back(Event::WriteSent { token });
        match link.handle_tlp(now, numbers, datagram.port, tlp, done) {
            Came::InTurn => self.handle_unsealed(now, datagram.port, tlp),
            Came::Early => {}
            Came::Twice => self.gate.counters.duplicates += 1,
        }
        while let Some((port, tlp)) = self.line.as_mut().and_then(Line::link).and_then(Link::take) {
            self.handle_unsealed(now, port, &tlp);
        }
    }

    fn handle_unsealed(&mut self, now: Time, port: u16, tlp: &[u8]) {
        if let Some((packet, repr)) = self.gate.read(Packet::new(tlp)) {
            self.handle_tlp(now, port, &packet, &repr);
        }
    }

    fn handle_message(&mut self, now: Time, message: LinkMessage) {
        let done = |token| self.events.push_back(Event::WriteSent { token });
        let lost = self.line.as_mut().is_some_and(|line| !line.handle_message(now, message, done));
        if lost {
            self.hang_up(now);
        }
    }

    /// The link is lost, or nobody gives one: of nothing that is not over it is known what became of it.
    fn hang_up(&mut self, now: Time) {
        let Self { requester, line, events, .. } = self;
        let error = DmaError::Unacknowledged;
        let mut failed = |token| events.push_back(Event::Failed { token, error });
        line.iter_mut().for_each(|line| line.hang_up(&mut failed));
        requester.cancel_all(now, failed);
        self.early.clear();
        self.gate.counters.links_lost += 1;
    }

    /// The next transmission of the link besides new TLPs: port and length.
    fn poll_line(&mut self, now: Time, buffer: &mut [u8]) -> Option<(u16, usize)> {
        let wanted = self.requester.queued() > 0 || self.answers.kept() > 0;
        let line = self.line.as_mut()?;
        if let Some(message) = line.poll(now, wanted, &self.config) {
            let header = self.next_header(now);
            let len = emit_message(buffer, header, self.config.requester, message);
            return Some((device_port(Tag::from(*self.config.tags.start())), len));
        }
        let (config, numbering) = (&self.config, self.gate.numbering());
        let sent = line.link()?.poll_again(now, buffer, || next_header(config, numbering, now))?;
        self.gate.counters.repeated += 1;
        Some(sent)
    }

    /// The next TLP: port and length.
    fn poll_tlp(&mut self, now: Time, buffer: &mut [u8]) -> Option<(u16, usize)> {
        let (port, repr, data, over) = match self.answers.next(|mark| self.requester.has_sent(mark)) {
            Some(answer) => (answer.port, answer.repr, answer.data, None),
            None => self.next_request(now)?,
        };
        let header = self.next_header(now);
        let len = emit(buffer, header, &repr, &data).expect("a buffer of MAX_DATAGRAM bytes");
        if let Some(link) = self.line.as_mut().and_then(Line::link) {
            return Some((port, link.seal(now, buffer, len, port, over)));
        }
        self.events.extend(over.map(|token| Event::WriteSent { token }));
        Some((port, len))
    }

    fn next_header(&mut self, now: Time) -> Header {
        next_header(&self.config, self.gate.numbering(), now)
    }

    /// The next request, with the port that it leaves by, and the write that is over with it.
    fn next_request(&mut self, now: Time) -> Option<(u16, Repr, Payload, Option<T>)> {
        let request = self.requester.poll_request(now, Classes::ALL)?;
        let mut repr = request.repr;
        let mut tag = repr.transaction_id().tag;
        if repr.fc_class() == FcClass::Posted {
            // Posted requests need no tag; this one is a port of this lane, and that by which flushes leave.
            tag = Tag::from(*self.config.tags.start());
        }
        if let Kind::MemWrite { id, span } = *repr.kind() {
            let kind = Kind::MemWrite { id: TransactionId { tag, ..id }, span };
            repr = Repr::from(kind).with_attributes(*repr.attributes()).expect("the attributes that it had");
        }
        let over = request.last_of_op && repr.fc_class() == FcClass::Posted;
        let data = request.payload.unwrap_or(Payload::EMPTY);
        Some((device_port(tag), repr, data, over.then_some(request.op)))
    }
}

/// The bytes before the next TLP.
fn next_header(config: &EndpointConfig, numbering: &Numbering, now: Time) -> Header {
    if !config.numbered {
        return Header::default();
    }
    Header { sequence: numbering.next(), timestamp: (now.as_fs() / Header::TICK.as_fs()) as u32 }
}
