//! The device contract over an end point, for a device that is elsewhere: events come out, actions go in.

use super::bars::{BarMap, TABLE};
use crate::adapter::CARD_VECTORS;
use crate::endpoint::{AnswerError, AnswerToken, Counters, Endpoint, EndpointConfig, Event as Arrived};
use crate::engine::{Datagram, Engine, Outgoing, Undeliverable};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use tlplab_cfgspace::{InterruptMode, MessageWrite, MsiX, MsixMemory, Signal};
use tlplab_device::nettlp_card::CONFIG_IS_THE_CARDS;
use tlplab_device::{Action, DmaError, Event, OpId, Refusal, ReplyToken, Timers};
use tlplab_transaction::{Payload, RequestPolicy};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Repr;

/// The addresses of the messages of interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// In a table that the adapter keeps (in BAR2 of its card, the published way, or for a function with IDs of its own) and tells of by the
    /// message API. Address 0 is no interrupt.
    Given(Vec<MessageWrite>),
    /// In a table in memory behind the adapter, which the host writes as any other and this port keeps for the device.
    Held(MsixMemory),
}

impl Vectors {
    /// The card's table in the last 4 KiB of the window: 16 vectors, pending bits at 2048. See [`BarMap::with_table`].
    pub fn in_window() -> Self {
        Self::Held(MsixMemory::new(MsiX { vectors: CARD_VECTORS, table: (TABLE, 0), pending: (TABLE, 2048) }))
    }

    /// True if this byte of a BAR does not belong to the device.
    fn claims(&self, bar: u8, offset: u64) -> bool {
        bar == TABLE || matches!(self, Self::Held(memory) if memory.claims(bar, offset))
    }
}

/// The owner of the operation that ends.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Device(OpId),
    Interrupt,
}

/// A device's port; see the [module](super).
#[derive(Clone, Debug)]
pub struct DevicePort {
    endpoint: Endpoint<Owner>,
    bars: BarMap,
    vectors: Vectors,
    timers: Timers,
    next_op: u64,
    events: VecDeque<Event>,
    interrupts: u64,
    dropped_interrupts: u64,
    ignored: u64,
    finished: bool,
    fault: Option<String>,
}

impl DevicePort {
    /// A port whose windows are the BARs.
    pub fn new(config: EndpointConfig, bars: BarMap, vectors: Vectors) -> Self {
        let config = EndpointConfig { windows: bars.windows(), ..config };
        Self {
            endpoint: Endpoint::new(config),
            bars,
            vectors,
            timers: Timers::default(),
            next_op: 0,
            events: VecDeque::new(),
            interrupts: 0,
            dropped_interrupts: 0,
            ignored: 0,
            finished: false,
            fault: None,
        }
    }

    /// See [`Endpoint::set_request_policy`].
    pub(super) fn set_request_policy(&mut self, split: RequestPolicy) {
        self.endpoint.set_request_policy(split);
    }

    /// See [`Endpoint::count_with`].
    pub fn count_with(&mut self, other: &mut Self) {
        self.endpoint.count_with(&mut other.endpoint);
    }

    /// The end point's counters.
    pub fn counters(&self) -> Counters {
        self.endpoint.counters()
    }
    /// Its end point.
    pub fn endpoint(&self) -> &Endpoint<impl Copy + use<>> {
        &self.endpoint
    }
    /// The addresses of the BARs.
    pub fn bars(&self) -> &BarMap {
        &self.bars
    }
    /// Interrupts that were sent.
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }
    /// Interrupts that were not, because nobody has said where to (an owner may ask the message API again), or they are wires, for which
    /// NetTLP has nothing.
    pub fn dropped_interrupts(&self) -> u64 {
        self.dropped_interrupts
    }
    /// TLPs that a device of this contract hears nothing of.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
    /// True once the device has stated that it is done.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
    /// The reason that the device cannot go on.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
    /// The kind of interrupt that the device may use.
    pub fn interrupt_mode(&self) -> InterruptMode {
        match &self.vectors {
            Vectors::Given(messages) if messages.is_empty() => InterruptMode::Disabled,
            _ => InterruptMode::MsiX,
        }
    }
    /// The host's driver has set up other messages.
    pub fn set_vectors(&mut self, vectors: Vectors) {
        self.vectors = vectors;
    }

    /// The device may act: its first event.
    pub fn start(&mut self) {
        self.events.push_back(Event::Start);
    }

    /// A reset of the function: all operations and timers are gone, the table is as at first, and the device is told.
    pub fn reset(&mut self, now: Time) {
        self.endpoint.cancel_all(now, |_| {});
        self.timers.clear();
        self.events.clear();
        if let Vectors::Held(memory) = &mut self.vectors {
            memory.table.reset();
        }
        self.events.push_back(Event::Reset);
    }

    /// The next event for the device.
    pub fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A number for an operation of the device.
    pub fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op - 1)
    }
    pub(super) fn op_counter(&mut self) -> &mut u64 {
        &mut self.next_op
    }

    /// The device acts.
    pub fn act(&mut self, now: Time, action: Action) {
        match action {
            Action::DmaRead { op, stream, address, bytes, carry: _ } => {
                let owner = Owner::Device(op);
                let begun = self.endpoint.requester().read(now, stream, owner, address, bytes);
                self.begun(op, begun.map_err(DmaError::from));
            }
            Action::DmaWrite { op, stream, address, data } => {
                let owner = Owner::Device(op);
                let begun = self.endpoint.requester().write(now, stream, owner, address, data);
                self.begun(op, begun.map_err(DmaError::from));
            }
            Action::Msix { stream, vector } => self.raise(now, stream, vector),
            Action::Intx { asserted, .. } => self.dropped_interrupts += u64::from(asserted),
            Action::Reply { token, data } => self.reply(token, Ok(data)),
            Action::ReplyError { token, refusal } => self.reply(token, Err(refusal)),
            Action::Timer { at, id } => self.timers.set(at.max(now), id),
            Action::SetConfig { .. } => self.fail(CONFIG_IS_THE_CARDS.into()),
            Action::Finished => self.finished = true,
            Action::Fault(message) => self.fail(message),
        }
    }

    /// An operation that cannot be sent at all is over.
    fn begun(&mut self, op: OpId, begun: Result<(), DmaError>) {
        if let Err(error) = begun {
            self.events.push_back(Event::DmaReadDone { op, result: Err(error) });
        }
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    fn reply(&mut self, token: ReplyToken, answer: Result<Payload, Refusal>) {
        match self.endpoint.answer(AnswerToken::from_bits(token.0), answer) {
            // The counter of unanswered reads has those that were given up.
            Ok(()) | Err(AnswerError::GivenUp) => {}
            Err(AnswerError::Over) => {
                self.fail(
                    "answered a read that has ended; each read must be answered once, and none after a reset"
                        .into(),
                );
            }
            Err(AnswerError::Length { expected, found }) => self.fail(format!(
                "answered a read of {expected} B with {found} B; the answer must have the requested size"
            )),
        }
    }

    fn raise(&mut self, now: Time, stream: u16, vector: u16) {
        let message = match &mut self.vectors {
            Vectors::Given(messages) => messages.get(usize::from(vector)).copied(),
            Vectors::Held(memory) => match memory.table.raise(vector) {
                Signal::Write(message) => Some(message),
                Signal::Pending => return,
                Signal::Nothing => None,
            },
        };
        match message.filter(|message| message.address != 0) {
            Some(message) => self.send_message(now, stream, message),
            None => self.dropped_interrupts += 1,
        }
    }

    fn send_message(&mut self, now: Time, stream: u16, message: MessageWrite) {
        let MessageWrite { address, data } = message;
        let requester = self.endpoint.requester();
        let sent = Repr::msi(requester.config().id, address).ok().map(|repr| {
            requester.request(now, stream, Owner::Interrupt, repr, Some(data.to_le_bytes().into()))
        });
        match sent {
            Some(Ok(())) => self.interrupts += 1,
            _ => self.dropped_interrupts += 1, // an address that is no multiple of 4
        }
    }

    /// Events of the end point become events of the device, except those that concern the MSI-X table.
    fn pump(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Arrived::ReadDone { token: Owner::Device(op), result } => {
                    self.events.push_back(Event::DmaReadDone { op, result });
                }
                Arrived::WriteSent { token: Owner::Device(op) } => {
                    self.events.push_back(Event::DmaWriteAccepted { op });
                }
                Arrived::Failed { token: Owner::Device(op), error } => {
                    self.events.push_back(Event::DmaReadDone { op, result: Err(error) });
                }
                Arrived::ReadDone { .. } | Arrived::WriteSent { .. } | Arrived::Failed { .. } => {}
                Arrived::HostRead(read) => {
                    let (bar, offset) = self.bars.locate(read.window, read.address);
                    let reply = ReplyToken(read.token.to_bits());
                    if !self.vectors.claims(bar, offset) {
                        self.events.push_back(Event::MmioRead { bar, offset, bytes: read.bytes, reply });
                        continue;
                    }
                    let data = match &self.vectors {
                        Vectors::Held(memory) => memory.read(bar, offset, read.bytes),
                        Vectors::Given(_) => vec![0; read.bytes as usize],
                    };
                    self.reply(reply, Ok(data.into()));
                }
                // Data that are marked as bad are not written (PCIe 5.0 §2.7.2.2).
                Arrived::HostWrite(write) if write.poisoned => self.ignored += 1,
                Arrived::HostWrite(write) => {
                    let (bar, offset) = self.bars.locate(write.window, write.address);
                    self.write_arrived(now, bar, offset, write.data);
                }
                Arrived::Other { .. } => self.ignored += 1,
            }
        }
    }

    fn write_arrived(&mut self, now: Time, bar: u8, offset: u64, data: Payload) {
        if !self.vectors.claims(bar, offset) {
            return self.events.push_back(Event::MmioWrite { bar, offset, data });
        }
        if let Vectors::Held(memory) = &mut self.vectors {
            memory.write(bar, offset, data.bytes().unwrap_or(&[]));
        }
        while let Vectors::Held(memory) = &mut self.vectors
            && let Some(message) = memory.table.take_pending()
        {
            self.send_message(now, 0, message);
        }
    }

    /// Timers that are due.
    fn ring(&mut self, now: Time) {
        while let Some(id) = self.timers.take_due(now) {
            self.events.push_back(Event::Timer { id });
        }
    }
}

impl Engine for DevicePort {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        let outgoing = self.endpoint.poll_transmit(now, buffer);
        self.pump(now);
        outgoing
    }

    /// At once if there are events that the device has not heard of.
    fn deadline(&self) -> Option<Time> {
        if !self.events.is_empty() {
            return Some(Time::ZERO);
        }
        self.endpoint.deadline().into_iter().chain(self.timers.next()).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.pump(now);
        self.ring(now);
    }

    fn handle_undeliverable(&mut self, now: Time, to: SocketAddrV4, why: Undeliverable) {
        self.endpoint.handle_undeliverable(now, to, why);
        self.pump(now);
    }

    fn rebase(&mut self, by: Duration) {
        self.endpoint.rebase(by);
        self.timers.rebase(by);
    }
}
