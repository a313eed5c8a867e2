//! A device of the fabric as a function of a virtual machine: its accesses become the processor's, in their order.

use super::memory::Passed;
use crate::vfio_user::VfioUser;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use tlplab_cfgspace::enumerate::BarFound;
use tlplab_cfgspace::{ConfigSpace, MsixMemory};
use tlplab_device::{Action, Event, HostAction, IO_SPACE, OpId, Payload, Refusal, ReplyToken, ecam_address};
use tlplab_fabric::NodeId;
use tlplab_units::{Bdf, Time};
use tlplab_vfio::PortEvent;

/// Streams of the host program that stands for the guest's processors.
const CONFIG: u16 = 0;
const READ: u16 = 1;
const WRITE: u16 = 2;
/// Status, and the command register with its bit that lets memory be decoded.
const STATUS: u16 = 6;
const COMMAND: u16 = 4;
const MEMORY: u16 = 2;
/// Max_Payload_Size and Max_Read_Request_Size in the bytes of Device Control.
const PAYLOAD: u8 = 0xE0;
const READ_REQUEST: u8 = 0x70;

/// Something that the processor shall do: one after the other, as QEMU lets a guest access devices.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A read of a register in memory.
    Read { address: u64, bytes: u32, reply: ReplyToken },
    /// A write of it.
    Write { address: u64, data: Payload },
    /// A part of a read of configuration space from `begin` on, whose `last` makes the answer.
    ConfigRead { address: u64, bytes: u32, reply: ReplyToken, begin: u16, last: bool },
    /// A read of its status, behind all that was written before: then its legacy interrupt may come again.
    Status,
    /// A part of a write of it; the last has an answer, unless nobody waits for one.
    ConfigWrite { address: u64, data: Vec<u8>, reply: Option<ReplyToken> },
}

/// Counters of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounters {
    /// Virtual machines that have had it.
    pub clients: u64,
    /// Clients that came while another was there.
    pub refused_clients: u64,
    /// Reads of its registers by the guest.
    pub register_reads: u64,
    /// Writes of them.
    pub register_writes: u64,
    /// Bytes of guest memory that it read.
    pub bytes_read: u64,
    /// Bytes of guest memory that it wrote.
    pub bytes_written: u64,
    /// Its requests to addresses that the guest has not mapped for it.
    pub refused_transfers: u64,
    /// Interrupts that were signalled.
    pub interrupts: u64,
    /// Interrupts that nothing was there to signal by.
    pub dropped_interrupts: u64,
    /// Reads of its registers that were not answered in time.
    pub late_reads: u64,
    /// Fatal errors of it or its link of which the virtual machine was told.
    pub fatal_errors: u64,
}

/// The settings by firmware of a function, which it has again after a reset.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The register in which a reset of the function begins.
    pub(super) reset: Option<u16>,
    /// Registers that are the platform's.
    platform: Vec<Range<u16>>,
    /// Their contents, and that of Device Control.
    registers: Vec<(u16, Vec<u8>)>,
    /// The place of Device Control, and its value.
    control: Option<(u16, u16)>,
    /// Doublewords of the MSI-X table, each with its address.
    table: Vec<(u64, u32)>,
}

impl Given {
    /// Of a function as firmware has left it, with its base addresses, whose messages `message` names.
    pub(super) fn new(
        space: &ConfigSpace,
        bars: &[Option<u64>; 6],
        message: impl Fn(u16) -> (u64, u32),
    ) -> Self {
        let platform = space.platform_registers();
        let contents = |range: &Range<u16>| {
            (range.start, space.bytes()[usize::from(range.start)..usize::from(range.end)].to_vec())
        };
        let mut registers: Vec<_> = platform.iter().map(contents).collect();
        let control = space.device_control();
        registers.extend(control.map(|(at, value)| (at, value.to_le_bytes().to_vec())));
        let table = MsixMemory::of(space).zip(space.msix()).and_then(|(memory, place)| {
            let base = bars[usize::from(place.table.0)]? + u64::from(place.table.1);
            Some((0..memory.table.vectors()).flat_map(move |vector| entry(base, vector)).collect::<Vec<_>>())
        });
        let table = table.unwrap_or_default().into_iter().map(|(address, vector, dword)| {
            let (to, data) = message(vector);
            let words = [to as u32, (to >> 32) as u32, data, 0];
            (address, words[dword])
        });
        Self { reset: space.reset_register(), platform, registers, control, table: table.collect() }
    }

    /// A byte of configuration space as it is written. Max_Payload_Size is the platform's: the guest sees ports of QEMU, and not those that the
    /// function's TLPs reach. Max_Read_Request_Size is no less than that.
    fn written(&self, at: u16, byte: u8) -> u8 {
        let Some((control, value)) = self.control else { return byte };
        let payload = value as u8 >> 5 & 7;
        match at.checked_sub(control) {
            Some(0) => byte & !PAYLOAD | payload << 5,
            Some(1) => byte & !READ_REQUEST | (byte >> 4 & 7).max(payload) << 4,
            _ => byte,
        }
    }

    /// The data of a read of configuration space from `offset` on for the guest: as Max_Payload_Size the value that it has written itself, which the port has kept.
    fn shown(&self, offset: u16, mut data: Vec<u8>, kept: &ConfigSpace) -> Vec<u8> {
        let place = self.control.and_then(|(at, _)| at.checked_sub(offset));
        if let (Some(byte), Some((_, own))) =
            (place.and_then(|at| data.get_mut(usize::from(at))), kept.device_control())
        {
            *byte = *byte & !PAYLOAD | own as u8 & PAYLOAD;
        }
        data
    }
}

/// Address, vector and number of each doubleword of an entry of an MSI-X table.
fn entry(base: u64, vector: u16) -> impl Iterator<Item = (u64, u16, usize)> {
    (0..4).map(move |dword| (base + 16 * u64::from(vector) + 4 * dword as u64, vector, dword))
}

/// The steps of a function, in their order.
#[derive(Debug, Default)]
struct Steps {
    /// Each with the simulated time at which it came.
    waiting: VecDeque<(Time, Step)>,
    /// The simulated time of those that come now.
    arrival: Time,
    /// One is under way.
    busy: bool,
}

impl Steps {
    fn push(&mut self, step: Step) {
        self.waiting.push_back((self.arrival, step));
    }

    /// Begins the next at `now`, if it may. A fabric that lags has not reached the time at which the latest came: begun before it, they would be
    /// answered sooner than the fabric answers.
    fn begin_next(&mut self, now: Time) -> Option<Step> {
        if self.busy || self.waiting.front()?.0 > now {
            return None;
        }
        self.busy = true;
        self.waiting.pop_front().map(|(_, step)| step)
    }
}

/// A device of the fabric as a function; see the [module](self).
pub(super) struct Function {
    pub(super) name: String,
    pub(super) node: NodeId,
    pub(super) id: Bdf,
    pub(super) socket: VfioUser,
    /// The processor's address of each BAR.
    bars: [Option<u64>; 6],
    given: Given,
    steps: Steps,
    /// The data that reads of configuration space have brought so far.
    gathered: BTreeMap<ReplyToken, Vec<u8>>,
    reads: u64,
    writes: u64,
    /// The level of its legacy interrupt, as the port was told.
    wire: bool,
    /// Fatal errors that it and the port above have reported, and of how many the port was told.
    errors: u64,
    told_errors: u64,
}

/// The processor's address of each BAR.
pub(super) fn places(bars: &[BarFound]) -> [Option<u64>; 6] {
    let mut places = [None; 6];
    for bar in bars.iter().filter(|bar| bar.index < 6) {
        let base = if bar.kind.is_io() { IO_SPACE } else { 0 };
        places[usize::from(bar.index)] = bar.address.map(|address| base + address);
    }
    places
}

impl Function {
    pub(super) fn new(
        (name, node, id): (String, NodeId, Bdf),
        socket: VfioUser,
        bars: [Option<u64>; 6],
        given: Given,
    ) -> Self {
        let mut function = Self {
            name,
            node,
            id,
            socket,
            bars,
            given,
            steps: Steps::default(),
            gathered: BTreeMap::new(),
            reads: 0,
            writes: 0,
            wire: false,
            errors: 0,
            told_errors: 0,
        };
        function.reset();
        function
    }

    pub(super) fn counters(&self, passed: Passed) -> FunctionCounters {
        let port = &self.socket.port;
        let signalled = port.counters();
        FunctionCounters {
            clients: self.socket.clients(),
            refused_clients: self.socket.refused_clients(),
            register_reads: self.reads,
            register_writes: self.writes,
            bytes_read: passed.read,
            bytes_written: passed.written,
            refused_transfers: passed.refused,
            interrupts: signalled.interrupts,
            dropped_interrupts: signalled.dropped_interrupts,
            late_reads: port.late_reads(),
            fatal_errors: self.told_errors,
        }
    }

    /// Takes what the port has for it, at a simulated time.
    pub(super) fn take_events(&mut self, now: Time) {
        self.steps.arrival = now;
        while let Some(event) = self.socket.port.take_event() {
            match event {
                PortEvent::Device(Event::MmioRead { bar, offset, bytes, reply }) => {
                    self.reads += 1;
                    match self.bars[usize::from(bar)] {
                        Some(base) => self.steps.push(Step::Read { address: base + offset, bytes, reply }),
                        None => {
                            let refusal = Refusal::UnsupportedRequest;
                            self.act(Action::ReplyError { token: reply, refusal });
                        }
                    }
                }
                PortEvent::Device(Event::MmioWrite { bar, offset, data }) => {
                    self.writes += 1;
                    if let Some(base) = self.bars[usize::from(bar)] {
                        self.steps.push(Step::Write { address: base + offset, data });
                    }
                }
                PortEvent::ConfigRead { offset, bytes, reply } => self.read_config(offset, bytes, reply),
                PortEvent::ConfigWrite { offset, data, reply } => {
                    self.write_config(offset, &data, Some(reply))
                }
                PortEvent::UnmaskIntx => self.steps.push(Step::Status),
                PortEvent::Device(Event::Reset) => self.reset(),
                // What the device hears is the fabric's to tell.
                PortEvent::Device(_) => {}
            }
        }
    }

    fn read_config(&mut self, offset: u16, bytes: u16, reply: ReplyToken) {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let next = (at / 4 * 4 + 4).min(end);
            let (address, bytes) = (ecam_address(self.id, at), u32::from(next - at));
            self.steps.push(Step::ConfigRead { address, bytes, reply, begin: offset, last: next == end });
            at = next;
        }
    }

    /// Writes all of it but what is the platform's.
    fn write_config(&mut self, offset: u16, data: &[u8], reply: Option<ReplyToken>) {
        let mut parts: Vec<(u16, Vec<u8>)> = Vec::new();
        for (at, byte) in (offset..).zip(data) {
            if self.given.platform.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let byte = self.given.written(at, *byte);
            match parts.last_mut() {
                Some((first, part)) if at % 4 != 0 && *first + part.len() as u16 == at => part.push(byte),
                _ => parts.push((at, vec![byte])),
            }
        }
        self.push_config_writes(parts, reply);
    }

    fn push_config_writes(&mut self, parts: Vec<(u16, Vec<u8>)>, reply: Option<ReplyToken>) {
        let count = parts.len();
        for (number, (at, data)) in (1..).zip(parts) {
            let reply = reply.filter(|_| number == count);
            self.steps.push(Step::ConfigWrite { address: ecam_address(self.id, at), data, reply });
        }
        if let Some(reply) = reply.filter(|_| count == 0) {
            self.act(Action::Reply { token: reply, data: Payload::EMPTY });
        }
    }

    /// Resets the function, and gives it again what firmware gave it. Without a reset of its own it is no bus master any more, and that is all.
    fn reset(&mut self) {
        self.steps.waiting.clear();
        self.gathered.clear();
        let Some(at) = self.given.reset else {
            return self.push_config_writes(vec![(COMMAND, vec![0, 0])], None);
        };
        let mut parts = vec![(at, vec![0x80])];
        for (first, data) in &self.given.registers {
            let words = data.chunks(4).zip((*first..).step_by(4));
            parts.extend(words.map(|(word, at)| (at, word.to_vec())));
        }
        if !self.given.table.is_empty() {
            parts.push((COMMAND, MEMORY.to_le_bytes().to_vec()));
        }
        self.push_config_writes(parts, None);
        for (address, word) in &self.given.table {
            let data = Payload::from(word.to_le_bytes().to_vec());
            self.steps.push(Step::Write { address: *address, data });
        }
        if !self.given.table.is_empty() {
            self.push_config_writes(vec![(COMMAND, vec![0, 0])], None);
        }
    }

    /// The next step that the processor may do at a simulated time.
    pub(super) fn next_step(&mut self, now: Time) -> Option<Step> {
        self.steps.begin_next(now)
    }

    /// A step is over; what a read has brought, all ones where it failed.
    pub(super) fn step_over(&mut self, step: Step, data: Option<Payload>) {
        self.steps.busy = false;
        let ones = |bytes: u32| vec![0xFF; bytes as usize];
        let brought =
            |bytes| data.as_ref().and_then(Payload::bytes).map_or_else(|| ones(bytes), <[u8]>::to_vec);
        match step {
            Step::Read { bytes, reply, .. } => {
                self.act(Action::Reply { token: reply, data: Payload::from(brought(bytes)) });
            }
            Step::ConfigRead { bytes, reply, begin, last, .. } => {
                let gathered = self.gathered.entry(reply).or_default();
                gathered.extend(brought(bytes));
                if last && let Some(data) = self.gathered.remove(&reply) {
                    let data = self.given.shown(begin, data, self.socket.port.space());
                    self.act(Action::Reply { token: reply, data: Payload::from(data) });
                }
            }
            Step::ConfigWrite { reply: Some(token), .. } => {
                self.act(Action::Reply { token, data: Payload::EMPTY });
            }
            // The owner has told the level by now.
            Step::Status => self.socket.unmask_intx(),
            Step::ConfigWrite { reply: None, .. } | Step::Write { .. } => {}
        }
    }

    /// Its legacy interrupt has this level.
    pub(super) fn set_wire(&mut self, asserted: bool) {
        if std::mem::replace(&mut self.wire, asserted) != asserted {
            self.act(Action::Intx { stream: 0, asserted });
        }
    }

    /// So many fatal errors it and the port above have reported so far.
    pub(super) fn set_errors(&mut self, count: u64) {
        if count > std::mem::replace(&mut self.errors, count) {
            self.told_errors += u64::from(self.socket.report_error());
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        let now = self.socket.now();
        self.socket.act(now, action);
    }
}

/// The processor's part of a step of a function.
pub(super) fn action_of(step: &Step, function: Bdf, op: OpId) -> HostAction {
    match step {
        Step::Status => {
            let address = ecam_address(function, STATUS);
            HostAction::MmioRead { op, stream: CONFIG, address, bytes: 2, carry: true }
        }
        Step::Read { address, bytes, .. } => {
            HostAction::MmioRead { op, stream: READ, address: *address, bytes: (*bytes).into(), carry: true }
        }
        Step::Write { address, data } => {
            HostAction::MmioWrite { op, stream: WRITE, address: *address, data: data.clone() }
        }
        Step::ConfigRead { address, bytes, .. } => HostAction::MmioRead {
            op,
            stream: CONFIG,
            address: *address,
            bytes: (*bytes).into(),
            carry: true,
        },
        Step::ConfigWrite { address, data, .. } => {
            HostAction::MmioWrite { op, stream: CONFIG, address: *address, data: Payload::from(data.clone()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_units::Duration;

    #[test]
    fn a_step_begins_no_sooner_than_it_came() {
        let at = |us| Time::ZERO + Duration::from_us(us);
        let mut steps = Steps::default();
        for us in [10, 20] {
            steps.arrival = at(us);
            steps.push(Step::Status);
        }
        assert!(steps.begin_next(at(9)).is_none());
        assert!(steps.begin_next(at(15)).is_some());
        assert!(steps.begin_next(at(30)).is_none(), "one after the other");
        steps.busy = false;
        assert!(steps.begin_next(at(19)).is_none());
        assert!(steps.begin_next(at(20)).is_some());
    }
}
