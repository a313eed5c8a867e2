//! The other end of a guest's sockets: a device that carries its PCI accesses, and the calendar that owns its clock.
//!
//! The guest's processor takes no time. It stands still while it waits for an access, and when it asks the calendar to wait; at all other
//! times the machine stands still. So there is one order of all that happens, and it is the same in every run.
//!
//! - A command begins when its bell rings: the machine goes on until the access is over, the calendar sets the guest's clock to that
//!   time (rounded up to its nanosecond), and only then is the bell answered. A timer of the guest that was due meanwhile comes late, as on
//!   a processor that waits for a device.
//! - While the guest waits for a time, the machine goes on to it. An interrupt ends that: it is put into the queue of interrupts, the guest
//!   is told, asks for leave to run at once, and gets it.

use crate::calendar::{self, Operation};
use crate::error::ProtocolError;
use crate::machine::{GuestMemory, Machine};
use crate::pcidev::{self, Access};
use crate::vhost::{self, Header, Region, Request};
use crate::virtqueue::{Buffer, Queue, Rings};
use std::collections::VecDeque;
use tlplab_units::Time;

/// The time of day when every guest begins: 1 January 2026, in nanoseconds since 1970. The same in every run.
pub const START_OF_TIME: u64 = 1_767_225_600_000_000_000;
/// The queue of commands, and that of interrupts.
const COMMANDS: usize = 0;
const INTERRUPTS: usize = 1;
const FS_PER_NS: u64 = 1_000_000;
/// Bytes that an interrupt needs in a buffer.
const LONGEST_INTERRUPT: u64 = pcidev::HEADER as u64 + 4;
/// The guest wants to wait for ever.
const FOR_EVER: u64 = i64::MAX as u64;

/// Output for the guest, or an action for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A message on the calendar's socket.
    Calendar([u8; calendar::BYTES]),
    /// A message on the socket of the device.
    Device(Vec<u8>),
    /// A message on the back channel, which the guest answers with [`CALL_ANSWER`](vhost::CALL_ANSWER) bytes.
    Call(Vec<u8>),
    /// The descriptor that came along is the back channel.
    BackChannel,
    /// The guest shares its memory: map the descriptors that came along.
    Map(Vec<Region>),
    /// A program in the guest has sent a number to all.
    Broadcast(u64),
}

/// The reason that a guest cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure<E> {
    /// It does not keep to its protocols.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// Its machine cannot go on.
    #[error("{0}")]
    Machine(E),
    /// It waits for longer than the clock of its machine can tell.
    #[error("the guest sleeps beyond the end of simulated time, which is 5.1 hours")]
    EndOfTime,
    /// It waits for ever, and nothing will wake it.
    #[error("the guest sleeps forever: no timer of its kernel is set, and no device has work left")]
    Asleep,
}

/// The state of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs: it will say something.
    Running,
    /// It waits for the time that it has requested.
    Waiting,
    /// It was told of interrupts while it waited, and will answer.
    Called,
    /// It has rung the bell of its commands, and waits for their end.
    Accessing,
}

/// Commands that are carried out, one after the other.
#[derive(Debug)]
struct Commands {
    /// The one that has begun.
    current: Option<(Buffer, Access)>,
    /// Their start.
    begun: Option<Time>,
    /// The state of the guest then.
    before: State,
    /// The answer to the bell.
    answer: Option<Vec<u8>>,
}

/// A guest, as its devices and its clock see it.
#[derive(Debug)]
pub struct Guest {
    state: State,
    /// The time at which it wants to run, in nanoseconds.
    requested: u64,
    rings: [Rings; 2],
    queues: [Option<Queue>; 2],
    outputs: VecDeque<Output>,
    commands: Option<Commands>,
    /// Our own messages on the calendar's socket.
    sequence: u32,
    /// The answer to a bell, until the guest has heard what time it is: it reads the sockets in any order.
    held: Option<Vec<u8>>,
}

impl Default for Guest {
    fn default() -> Self {
        Self::new()
    }
}

impl Guest {
    /// A guest that has not begun.
    pub fn new() -> Self {
        Self {
            state: State::Running,
            requested: 0,
            rings: [Rings::default(); 2],
            queues: [None; 2],
            outputs: VecDeque::new(),
            commands: None,
            sequence: 0,
            held: None,
        }
    }

    /// The next output, in this order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// True if the guest stands still until [`advance`](Self::advance).
    pub fn waits(&self) -> bool {
        matches!(self.state, State::Waiting | State::Accessing)
    }

    /// True if it [waits](Self::waits) for the end of its accesses, and not for a time.
    pub fn is_accessing(&self) -> bool {
        self.state == State::Accessing
    }

    /// A message of the guest on the calendar's socket.
    ///
    /// # Errors
    /// [`ProtocolError`]
    pub fn handle_calendar<M: Machine>(
        &mut self,
        machine: &mut M,
        bytes: &[u8; calendar::BYTES],
    ) -> Result<(), ProtocolError> {
        let message = calendar::Message::parse(bytes)?;
        let now = nanoseconds(machine.now());
        let mut answer = 0;
        match message.operation {
            Operation::Ack => {
                if message.sequence == self.sequence {
                    self.outputs.extend(self.held.take().map(Output::Device));
                }
                return Ok(());
            }
            Operation::Start | Operation::Update => {}
            Operation::Request => self.requested = message.time,
            Operation::Get => answer = now,
            // The kernel takes it for the present, not for its beginning.
            Operation::GetTimeOfDay => answer = START_OF_TIME + now,
            Operation::Broadcast => self.outputs.push_back(Output::Broadcast(message.time)),
            Operation::Wait if self.state == State::Running => self.state = State::Waiting,
            Operation::Wait => return Err(ProtocolError::OutOfTurn("it waits", "it waits already")),
            Operation::Run | Operation::FreeUntil => {
                return Err(ProtocolError::OutOfTurn("it gives leave to run", "it is the guest"));
            }
        }
        self.outputs.push_back(Output::Calendar(message.ack(answer).emit()));
        Ok(())
    }

    /// A message of the guest on the socket of the device. `descriptors` is how many came along.
    ///
    /// # Errors
    /// [`ProtocolError`]
    pub fn handle_device(
        &mut self,
        header: Header,
        payload: &[u8],
        descriptors: usize,
    ) -> Result<(), ProtocolError> {
        let request = Request::parse(header, payload)?;
        if descriptors < request.descriptors() {
            return Err(ProtocolError::NoDescriptor(header.request));
        }
        let mut answer = header.wants_reply.then_some(0);
        match request {
            Request::GetFeatures => answer = Some(vhost::FEATURES),
            Request::GetProtocolFeatures => answer = Some(vhost::PROTOCOL_FEATURES),
            Request::SetFeatures(_) | Request::SetProtocolFeatures(_) => {}
            Request::SetOwner => {}
            Request::SetBackChannel => self.outputs.push_back(Output::BackChannel),
            Request::SetMemory(regions) => self.outputs.push_back(Output::Map(regions)),
            Request::SetQueueSize(queue, size) => {
                let fits = u16::try_from(size).ok().filter(|size| size.is_power_of_two());
                self.rings(queue)?.size = fits.ok_or(ProtocolError::QueueSize { queue, size })?;
            }
            Request::SetQueueAddresses(queue, [descriptors, available, used]) => {
                let rings = self.rings(queue)?;
                *rings = Rings { descriptors, available, used, ..*rings };
            }
            Request::SetQueueBase(queue, _) => drop(self.rings(queue)?),
            Request::EnableQueue(queue, enabled) => {
                let rings = *self.rings(queue)?;
                let ready = enabled && rings.size > 0;
                self.queues[queue as usize] = ready.then(|| Queue::new(rings));
            }
            Request::Kick(queue) if queue as usize == COMMANDS => {
                let answer = answer.map(|number| vhost::answer(header.request, number));
                return self.begin_commands(answer);
            }
            // Buffers for interrupts are taken when there is one.
            Request::Kick(queue) => drop(self.rings(queue)?),
        }
        let answer = answer.map(|number| vhost::answer(header.request, number));
        self.outputs.extend(answer.map(Output::Device));
        Ok(())
    }

    fn rings(&mut self, queue: u32) -> Result<&mut Rings, ProtocolError> {
        self.rings.get_mut(queue as usize).ok_or(ProtocolError::Queue(queue))
    }

    /// The bell of the commands has rung.
    fn begin_commands(&mut self, answer: Option<Vec<u8>>) -> Result<(), ProtocolError> {
        if self.queues[COMMANDS].is_none() {
            return Err(ProtocolError::QueueNotReady(COMMANDS as u32));
        }
        if self.state == State::Accessing {
            return Err(ProtocolError::OutOfTurn("a bell", "the commands of the last are not over"));
        }
        self.commands = Some(Commands { current: None, begun: None, before: self.state, answer });
        self.state = State::Accessing;
        Ok(())
    }

    /// Carries out the queue of commands, one after the other, as far as `limit` lets it. Once all are over, the guest runs.
    fn carry_out<M: Machine>(
        &mut self,
        machine: &mut M,
        memory: &mut dyn GuestMemory,
        limit: Time,
    ) -> Result<(), Failure<M::Error>> {
        let mut queue = self.queues[COMMANDS].ok_or(ProtocolError::QueueNotReady(COMMANDS as u32))?;
        let Some(mut commands) = self.commands.take() else { return Ok(()) };
        let begun = *commands.begun.get_or_insert_with(|| machine.now());
        loop {
            if commands.current.is_none() {
                let Some(buffer) = queue.take(memory)? else { break };
                let access = Access::parse(&buffer.sent, buffer.room())?;
                commands.current = Some((buffer, access));
            }
            let Some((buffer, access)) = &commands.current else { break };
            let Some(data) = machine.access(access, limit).map_err(Failure::Machine)? else {
                self.queues[COMMANDS] = Some(queue);
                self.commands = Some(commands);
                return Ok(());
            };
            queue.give_back(memory, buffer, &data)?;
            commands.current = None;
        }
        self.queues[COMMANDS] = Some(queue);
        if machine.now() > begun {
            self.held = commands.answer;
            self.run(machine)
        } else {
            self.outputs.extend(commands.answer.map(Output::Device));
            self.state = commands.before;
            Ok(())
        }
    }

    /// The time at which the guest that [waits](Self::waits) wants to run.
    pub fn wanted(&self) -> Time {
        if self.requested >= FOR_EVER { Time::NEVER } else { time_of(self.requested) }
    }

    /// Has the guest that [waits](Self::waits) run at once, to look at what came by another way, as the keys of its console do.
    pub fn wake(&mut self) {
        if self.state == State::Waiting && self.queues[INTERRUPTS].is_some() {
            self.outputs.push_back(Output::Call(vhost::call(INTERRUPTS as u32)));
            self.state = State::Called;
        }
    }

    /// Goes on to the end of the guest's accesses, to the time that it waits for, or to the next interrupt, and lets the guest run; but no
    /// further than `limit`, which is a whole nanosecond.
    ///
    /// # Errors
    /// [`Failure`]
    pub fn advance<M: Machine>(
        &mut self,
        machine: &mut M,
        memory: &mut dyn GuestMemory,
        limit: Time,
    ) -> Result<(), Failure<M::Error>> {
        if self.state == State::Accessing {
            return self.carry_out(machine, memory, limit);
        }
        let wanted = self.wanted();
        let until = wanted.min(limit);
        let mut delivered = self.deliver(machine, memory)?;
        if !delivered && machine.now() < until {
            machine.advance(until).map_err(Failure::Machine)?;
            self.round_up(machine)?;
            delivered = self.deliver(machine, memory)?;
        }
        if delivered {
            self.state = State::Called;
        } else if machine.now() >= wanted {
            self.run(machine)?;
        } else if until == Time::NEVER {
            let beyond = self.requested < FOR_EVER;
            return Err(if beyond { Failure::EndOfTime } else { Failure::Asleep });
        }
        Ok(())
    }

    /// The guest has answered a call: it has asked for leave to run at once.
    ///
    /// # Errors
    /// [`ProtocolError`]
    pub fn handle_call_answer(&mut self, answer: &[u8; vhost::CALL_ANSWER]) -> Result<(), ProtocolError> {
        if self.state != State::Called || !vhost::is_taken(answer) {
            return Err(ProtocolError::OutOfTurn("an answer on the back channel", "nothing was asked there"));
        }
        self.state = State::Waiting;
        Ok(())
    }

    /// Puts interrupts that have come into buffers of the guest, and calls it. What finds no buffer comes when the guest next waits.
    fn deliver<M: Machine>(
        &mut self,
        machine: &mut M,
        memory: &mut dyn GuestMemory,
    ) -> Result<bool, ProtocolError> {
        let Some(mut queue) = self.queues[INTERRUPTS] else { return Ok(false) };
        let mut delivered = false;
        while let Some(interrupt) = machine.interrupts().front().copied() {
            let Some(buffer) = queue.take(memory)? else { break };
            machine.interrupts().pop_front();
            if buffer.room() < LONGEST_INTERRUPT {
                return Err(ProtocolError::InterruptBuffer(buffer.room() as u32));
            }
            queue.give_back(memory, &buffer, &pcidev::emit_interrupt(interrupt))?;
            delivered = true;
        }
        self.queues[INTERRUPTS] = Some(queue);
        if delivered {
            self.outputs.push_back(Output::Call(vhost::call(INTERRUPTS as u32)));
        }
        Ok(delivered)
    }

    /// The guest's clock has whole nanoseconds: the machine goes on to the next.
    fn round_up<M: Machine>(&mut self, machine: &mut M) -> Result<(), Failure<M::Error>> {
        // An interrupt may stop it on the way; there is no more than one nanosecond to go.
        while !machine.now().as_fs().is_multiple_of(FS_PER_NS) {
            let until = time_of(machine.now().as_fs().div_ceil(FS_PER_NS));
            machine.advance(until).map_err(Failure::Machine)?;
        }
        Ok(())
    }

    /// Lets the guest run: it is this time now.
    fn run<M: Machine>(&mut self, machine: &mut M) -> Result<(), Failure<M::Error>> {
        self.round_up(machine)?;
        self.sequence = self.sequence.wrapping_add(1);
        let time = nanoseconds(machine.now());
        let run = calendar::Message { operation: Operation::Run, sequence: self.sequence, time };
        self.outputs.push_back(Output::Calendar(run.emit()));
        self.state = State::Running;
        Ok(())
    }
}

fn nanoseconds(time: Time) -> u64 {
    time.as_fs().div_ceil(FS_PER_NS)
}

fn time_of(nanoseconds: u64) -> Time {
    Time::from_fs(nanoseconds.saturating_mul(FS_PER_NS))
}
