//! Transfers of the device and its interrupts, in the order of a bus: nothing passes an earlier write (PCIe 5.0 §2.4.1).
//!
//! A mapped range is read and written at once. For any other the client is asked, by messages; what comes after a write that the client has
//! not acknowledged waits, but for further such writes, which go over the same stream.

use crate::error::ProtocolError;
use crate::host::{Host, Irq};
use crate::maps::{Maps, Piece};
use crate::message::{Command, Header, MAX_TRANSFER, message};
use crate::port::PortEvent;
use crate::tlps::Tlps;
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::ConfigSpace;
use tlplab_device::{DmaError, Event, OpId, Payload};
use tlplab_transaction::CompletionError;
use tlplab_wire::tlp::CompletionStatus;

/// Messages that may wait for their answers; a transfer that takes more of them is refused.
const MOST_ASKED: usize = 1 << 15;

/// Accesses that the device has begun, and that have not been carried out.
#[derive(Clone, Debug)]
enum Task {
    Read { op: OpId, address: u64, bytes: u64 },
    Write { op: OpId, pieces: VecDeque<Piece>, data: Payload },
    Interrupt { irq: Irq, vector: u32 },
}

/// The command that a reply will answer.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Read { op: OpId, at: usize, bytes: usize, address: u64 },
    Write,
}

/// A read whose data come by messages.
#[derive(Clone, Debug)]
struct Reading {
    data: Vec<u8>,
    left: usize,
    address: u64,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that the device read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
    /// Of both, those that went by messages.
    pub bytes_by_messages: u64,
    /// Transfers to addresses that the device may not access.
    pub refused: u64,
    /// Interrupts that were signalled.
    pub interrupts: u64,
    /// Interrupts that nothing was there to signal by.
    pub dropped_interrupts: u64,
}

/// Transfers and interrupts of a device.
#[derive(Clone, Debug)]
pub(crate) struct Dma {
    pub(crate) maps: Maps,
    pub(crate) counters: Counters,
    /// Most bytes of a message, as the client says.
    pub(crate) max_transfer: u32,
    tasks: VecDeque<Task>,
    asked: BTreeMap<u16, Asked>,
    next_id: u16,
    unacknowledged: usize,
    readings: BTreeMap<OpId, Reading>,
    /// The TLPs that it all stands for, if somebody wants to see them.
    pub(crate) tlps: Option<Tlps>,
}

impl Dma {
    /// Nothing under way; counters go on.
    pub(crate) fn new(counters: Counters) -> Self {
        Self {
            maps: Maps::default(),
            counters,
            max_transfer: MAX_TRANSFER,
            tasks: VecDeque::new(),
            asked: BTreeMap::new(),
            next_id: 0,
            unacknowledged: 0,
            readings: BTreeMap::new(),
            tlps: None,
        }
    }

    pub(crate) fn read(&mut self, op: OpId, address: u64, bytes: u64) {
        self.tasks.push_back(Task::Read { op, address, bytes });
    }

    /// A write to where the device may not is posted all the same: the device does not hear of it.
    pub(crate) fn write(&mut self, op: OpId, address: u64, data: Payload) {
        let pieces = self.maps.pieces(address, data.len(), true).ok();
        let pieces = pieces.filter(|pieces| self.messages(pieces) <= MOST_ASKED);
        self.counters.refused += u64::from(pieces.is_none());
        self.tasks.push_back(Task::Write { op, pieces: pieces.unwrap_or_default().into(), data });
    }

    pub(crate) fn interrupt(&mut self, irq: Irq, vector: u32) {
        self.tasks.push_back(Task::Interrupt { irq, vector });
    }

    /// All operations are gone. Writes that were sent are not.
    pub(crate) fn cancel(&mut self) {
        self.tasks.clear();
        self.readings.clear();
    }

    /// Carries out what can be; what the device hears of it, and what is to be sent.
    pub(crate) fn go_on(
        &mut self,
        space: &ConfigSpace,
        host: &mut impl Host,
        events: &mut VecDeque<PortEvent>,
        out: &mut VecDeque<Vec<u8>>,
    ) {
        while let Some(task) = self.tasks.pop_front() {
            let waits = self.unacknowledged > 0;
            match task {
                Task::Write { op, pieces, data } => {
                    if let Some(rest) = self.send_pieces(host, out, pieces, &data) {
                        return self.tasks.push_front(Task::Write { op, pieces: rest, data });
                    }
                    events.push_back(PortEvent::Device(Event::DmaWriteAccepted { op }));
                }
                task if waits => return self.tasks.push_front(task),
                Task::Read { op, address, bytes } => {
                    if let Some(result) = self.begin_read(host, out, op, address, bytes) {
                        self.end_read(space, events, op, (address, bytes), result);
                    }
                }
                Task::Interrupt { irq, vector } => {
                    let signalled = host.trigger(irq, vector);
                    self.counters.interrupts += u64::from(signalled);
                    self.counters.dropped_interrupts += u64::from(!signalled);
                }
            }
        }
    }

    /// The device hears how a read of so many bytes at an address has ended.
    fn end_read(
        &mut self,
        space: &ConfigSpace,
        events: &mut VecDeque<PortEvent>,
        op: OpId,
        (address, bytes): (u64, u64),
        result: Result<Payload, DmaError>,
    ) {
        if let (Some(tlps), Some(answer)) = (&mut self.tlps, answer_of(&result)) {
            tlps.read_memory(space, address, bytes, answer);
        }
        events.push_back(PortEvent::Device(Event::DmaReadDone { op, result }));
    }

    /// Writes the pieces of a transfer; those that must wait come back.
    fn send_pieces(
        &mut self,
        host: &mut impl Host,
        out: &mut VecDeque<Vec<u8>>,
        mut pieces: VecDeque<Piece>,
        data: &Payload,
    ) -> Option<VecDeque<Piece>> {
        let mut at = (data.len() - pieces.iter().map(|piece| piece.bytes).sum::<u64>()) as usize;
        let zeros;
        let all = match data.bytes() {
            Some(bytes) => bytes,
            None => {
                zeros = vec![0; data.len() as usize];
                &zeros
            }
        };
        while let Some(piece) = pieces.front().copied() {
            let end = at + piece.bytes as usize;
            let part = &all[at..end];
            if piece.mapped {
                if self.unacknowledged > 0 {
                    return Some(pieces);
                }
                self.counters.refused += u64::from(!host.write(piece.address, part));
            } else {
                if self.asked.len() >= MOST_ASKED {
                    return Some(pieces);
                }
                let step = self.max_transfer as usize;
                for (address, chunk) in (piece.address..).step_by(step).zip(part.chunks(step)) {
                    out.push_back(self.ask(Command::DmaWrite, Asked::Write, address, chunk.len(), chunk));
                    self.unacknowledged += 1;
                }
                self.counters.bytes_by_messages += piece.bytes;
            }
            self.counters.bytes_written += piece.bytes;
            at = end;
            pieces.pop_front();
        }
        None
    }

    /// Reads what is mapped and asks for the rest; the result, if that is known.
    fn begin_read(
        &mut self,
        host: &mut impl Host,
        out: &mut VecDeque<Vec<u8>>,
        op: OpId,
        address: u64,
        bytes: u64,
    ) -> Option<Result<Payload, DmaError>> {
        let pieces = match self.maps.pieces(address, bytes, false) {
            Ok(pieces) if self.messages(&pieces) + self.asked.len() <= MOST_ASKED => pieces,
            Ok(_) => return Some(self.refuse(CompletionError::CompleterAbort { address })),
            Err(address) => return Some(self.refuse(CompletionError::UnsupportedRequest { address })),
        };
        let mut data = vec![0; bytes as usize];
        let (mut at, mut left) = (0, 0);
        for piece in pieces {
            let end = at + piece.bytes as usize;
            if piece.mapped {
                if !host.read(piece.address, &mut data[at..end]) {
                    return Some(self.refuse(CompletionError::CompleterAbort { address: piece.address }));
                }
            } else {
                let step = self.max_transfer as usize;
                for (address, first) in (piece.address..).step_by(step).zip((at..end).step_by(step)) {
                    let bytes = step.min(end - first);
                    let asked = Asked::Read { op, at: first, bytes, address };
                    out.push_back(self.ask(Command::DmaRead, asked, address, bytes, &[]));
                }
                left += piece.bytes as usize;
                self.counters.bytes_by_messages += piece.bytes;
            }
            at = end;
        }
        if left == 0 {
            self.counters.bytes_read += bytes;
            return Some(Ok(data.into()));
        }
        self.readings.insert(op, Reading { data, left, address });
        None
    }

    fn refuse(&mut self, error: CompletionError) -> Result<Payload, DmaError> {
        self.counters.refused += 1;
        Err(error.into())
    }

    /// Messages that a transfer takes.
    fn messages(&self, pieces: &[Piece]) -> usize {
        let asked = pieces.iter().filter(|piece| !piece.mapped);
        asked.map(|piece| piece.bytes.div_ceil(u64::from(self.max_transfer)) as usize).sum()
    }

    fn ask(&mut self, command: Command, asked: Asked, address: u64, bytes: usize, data: &[u8]) -> Vec<u8> {
        while self.asked.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.asked.insert(id, asked);
        let header =
            Header { id, command: command as u16, size: 0, is_reply: false, no_reply: false, error: None };
        message(header, &[&address.to_le_bytes(), &(bytes as u64).to_le_bytes(), data])
    }

    /// The client answers.
    pub(crate) fn handle_reply(
        &mut self,
        space: &ConfigSpace,
        header: &Header,
        payload: &[u8],
        events: &mut VecDeque<PortEvent>,
    ) -> Result<(), ProtocolError> {
        match self.asked.remove(&header.id).ok_or(ProtocolError::Reply(header.id))? {
            Asked::Write => {
                self.unacknowledged -= 1;
                self.counters.refused += u64::from(header.error.is_some());
            }
            Asked::Read { op, at, bytes, address } => {
                // A reset has cancelled it, or another part of it has failed.
                let Some(reading) = self.readings.get_mut(&op) else { return Ok(()) };
                let data = payload.get(16..).filter(|data| data.len() == bytes && header.error.is_none());
                let Some(data) = data else {
                    let of = (reading.address, reading.data.len() as u64);
                    self.readings.remove(&op);
                    let result = self.refuse(CompletionError::CompleterAbort { address });
                    self.end_read(space, events, op, of, result);
                    return Ok(());
                };
                reading.data[at..at + bytes].copy_from_slice(data);
                reading.left -= bytes;
                if reading.left == 0
                    && let Some(reading) = self.readings.remove(&op)
                {
                    let bytes = reading.data.len() as u64;
                    self.counters.bytes_read += bytes;
                    self.end_read(space, events, op, (reading.address, bytes), Ok(reading.data.into()));
                }
            }
        }
        Ok(())
    }
}

/// The data of a read, or where it failed and by which status; `None`, if nothing went over the link.
fn answer_of(result: &Result<Payload, DmaError>) -> Option<Result<&[u8], (u64, CompletionStatus)>> {
    match result {
        Ok(data) => data.bytes().map(Ok),
        Err(DmaError::Completion(CompletionError::UnsupportedRequest { address })) => {
            Some(Err((*address, CompletionStatus::UnsupportedRequest)))
        }
        Err(DmaError::Completion(CompletionError::CompleterAbort { address })) => {
            Some(Err((*address, CompletionStatus::CompleterAbort)))
        }
        Err(_) => None,
    }
}
