//! From host memory to the line: transmit ring, data, checksums and segments, write-back.

use super::ethernet::{FCS, LEAST};
use super::interrupts::Delay;
use super::offload::{self, Insert, Offload, Span, Zero};
use super::registers::Registers;
use super::regs::{self, cause, ctrl, tctl};
use super::ring::Ring;
use super::statistics::{self, Statistics};
use super::{TRANSMIT, WRITES, timer};
use crate::contract::{Context, DmaError, OpId};
use crate::kit::{InOrder, Operations};
use tlplab_transaction::Payload;
use tlplab_units::Duration;

/// Bits of a descriptor's command byte.
mod command {
    pub(super) const END: u8 = 1;
    /// The NIC adds the check sequence; otherwise it is the end of the data.
    pub(super) const ADD_FCS: u8 = 1 << 1;
    /// Insert a checksum (legacy), segment (data, context).
    pub(super) const OFFLOAD: u8 = 1 << 2;
    pub(super) const REPORT: u8 = 1 << 3;
    pub(super) const EXTENDED: u8 = 1 << 5;
    pub(super) const TAG: u8 = 1 << 6;
    pub(super) const DELAY: u8 = 1 << 7;
}

/// A descriptor, as its bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptor {
    raw: [u8; 16],
}

impl Descriptor {
    fn word(&self, number: usize) -> u32 {
        u32::from_le_bytes(self.raw.as_chunks().0[number])
    }
    fn command(&self) -> u8 {
        self.raw[11]
    }
    fn says(&self, bits: u8) -> bool {
        self.command() & bits != 0
    }
    fn is_context(&self) -> bool {
        self.says(command::EXTENDED) && self.word(2) >> 20 & 0xF == 0
    }
    fn address(&self) -> u64 {
        u64::from(self.word(1)) << 32 | u64::from(self.word(0))
    }
    fn bytes(&self) -> u64 {
        let mask = if self.says(command::EXTENDED) { 0xF_FFFF } else { 0xFFFF };
        u64::from(self.word(2) & mask)
    }
    fn offload(&self) -> Offload {
        let span = |word: u32| Span { start: word as u8, at: (word >> 8) as u8, last: (word >> 16) as u16 };
        Offload {
            ip: span(self.word(0)),
            transport: span(self.word(1)),
            header: self.raw[13],
            mss: (self.word(3) >> 16) as u16,
            tcp: self.says(1),
            ipv4: self.says(2),
        }
    }
}

/// A descriptor under way, and where it is in the ring.
#[derive(Clone, Copy, Debug)]
struct Piece {
    place: u64,
    descriptor: Descriptor,
}

/// A frame on the line, and the bytes of the packet buffer that it frees.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) data: Payload,
    release: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    pub(super) ring: Ring,
    /// Descriptors whose data are on their way, or there.
    pieces: InOrder<Piece, Payload>,
    /// The data of the packet that is being put together, and its first descriptor.
    packet: Vec<Payload>,
    first: Option<Descriptor>,
    offload: Offload,
    /// A packet was begun whose last descriptor was not seen yet.
    inside: bool,
    /// Bytes asked for and not sent yet.
    held: u64,
    /// Status that was not accepted yet; the last of several has what the interrupt waits for, in units of `TIDV`. It is told only then, as
    /// the receiver does.
    writes: Operations<Option<u32>>,
    delay: Delay,
    halted: bool,
}

impl Transmitter {
    pub(super) fn new() -> Self {
        Self {
            ring: Ring::new(regs::TDBAL),
            pieces: InOrder::new(),
            packet: Vec::new(),
            first: None,
            offload: Offload::default(),
            inside: false,
            held: 0,
            writes: Operations::new(),
            delay: Delay::default(),
            halted: false,
        }
    }
    pub(super) fn is_busy(&self) -> bool {
        self.ring.is_busy() || !self.writes.is_empty() || self.pieces.waits()
    }

    /// Begins with descriptors as long as a packet may be begun: while the packet buffer is not full. A packet that was begun goes on.
    pub(super) fn work(&mut self, cx: &mut Context<'_>, file: &Registers) {
        let room = u64::from(file.get(regs::PBA) >> 16) << 10;
        while !self.halted
            && file.has(regs::TCTL, tctl::EN)
            && !file.has(regs::CTRL, ctrl::GIO_MASTER_DISABLE)
        {
            self.ring.fetch(cx, file, 1);
            if !self.inside && self.held >= room {
                break;
            }
            let Some((place, raw)) = self.ring.take(file) else { break };
            let descriptor = Descriptor { raw };
            let piece = Piece { place, descriptor };
            let mut bytes = 0;
            if !descriptor.is_context() {
                bytes = descriptor.bytes();
                self.inside = !descriptor.says(command::END);
                self.held += bytes;
            }
            if bytes > 0 {
                self.pieces.begin(cx.dma_read(TRANSMIT, descriptor.address(), bytes), piece);
            } else {
                self.pieces.begin_over(piece, Payload::EMPTY);
            }
        }
    }

    /// A read is over: of descriptors, or of data. `None` if it was none of the transmitter's.
    pub(super) fn read(
        &mut self,
        cx: &mut Context<'_>,
        file: &Registers,
        op: OpId,
        result: Result<Payload, DmaError>,
    ) -> Option<()> {
        if self.ring.fetched(file, op, &result) {
            self.work(cx, file);
            return Some(());
        }
        // As after any fatal error on the bus, nothing more is sent until software resets the function.
        let failed = result.is_err();
        self.pieces.end(op, result.unwrap_or(Payload::EMPTY))?;
        self.halted |= failed;
        Some(())
    }

    /// Retires descriptors whose data are there: what they cause, and in `out` the frames they make.
    pub(super) fn retire(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut Registers,
        counters: &mut Statistics,
        out: &mut Vec<Outgoing>,
    ) -> u32 {
        let (mut reported, mut at_once, mut retired) = (false, false, false);
        while !self.halted
            && let Some((Piece { place, descriptor }, data)) = self.pieces.next()
        {
            retired = true;
            if descriptor.is_context() {
                self.offload = descriptor.offload();
            } else {
                self.first.get_or_insert(descriptor);
                self.packet.push(data);
                if descriptor.says(command::END) {
                    self.pack(file, counters, out);
                }
            }
            self.ring.done(file, 1);
            if descriptor.says(command::REPORT) {
                let status = descriptor.word(3) | 1;
                let op = cx.dma_write(WRITES, place.wrapping_add(12), status.to_le_bytes().into());
                self.writes.begin(op, None);
                reported = true;
                at_once |= !descriptor.says(command::DELAY);
            }
        }
        if reported && let Some(tells) = self.writes.last_mut() {
            *tells = Some(if at_once { 0 } else { file.get(regs::TIDV) });
        }
        if retired && self.ring.given(file) == 0 { cause::TXQE } else { 0 }
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.delay.rebase(by);
    }

    pub(super) fn delayed(&mut self, cx: &Context<'_>, flush: bool) -> u32 {
        if self.delay.due(cx.now(), flush) { cause::TXDW | cause::TXQ0 } else { 0 }
    }

    /// A write was accepted. Returns causes.
    pub(super) fn accepted(&mut self, cx: &mut Context<'_>, file: &Registers, op: OpId) -> u32 {
        let Some(delay) = self.writes.end(op).flatten() else { return 0 };
        let now = self.delay.event(cx, delay, file.get(regs::TADV), timer::TRANSMIT_DELAY);
        if now { cause::TXDW | cause::TXQ0 } else { 0 }
    }

    /// A frame has left.
    pub(super) fn sent(&mut self, frame: &Outgoing) {
        self.held -= frame.release;
    }

    /// Makes frames of the packet whose last descriptor was retired.
    fn pack(&mut self, file: &Registers, counters: &mut Statistics, out: &mut Vec<Outgoing>) {
        let Some(first) = self.first.take() else { return };
        let packet = std::mem::take(&mut self.packet);
        let bytes: u64 = packet.iter().map(Payload::len).sum();
        let segments = first.says(command::EXTENDED) && first.says(command::OFFLOAD);
        if segments {
            counters.count(statistics::SEGMENTATIONS);
        }
        let frames: Vec<Payload> = match join(&packet) {
            Some(data) => self.frames(file, first, segments, data).into_iter().map(Payload::from).collect(),
            None => self.lengths(first, segments, bytes).into_iter().map(Payload::Length).collect(),
        };
        let last = frames.len().saturating_sub(1);
        let pads = file.has(regs::TCTL, tctl::PSP);
        out.extend(frames.into_iter().enumerate().map(|(number, data)| Outgoing {
            data: if pads { pad(data) } else { data },
            release: if number == last { bytes } else { 0 },
        }));
    }

    fn frames(&self, file: &Registers, first: Descriptor, segments: bool, mut data: Vec<u8>) -> Vec<Vec<u8>> {
        if !first.says(command::ADD_FCS) {
            data.truncate(data.len().saturating_sub(FCS as usize));
        }
        let mut frames = if first.says(command::EXTENDED) {
            let insert = Insert { ip: first.raw[13] & 1 != 0, transport: first.raw[13] & 2 != 0 };
            if segments {
                offload::segment(data, &self.offload, insert)
            } else {
                offload::finish(&mut data, &self.offload, insert);
                vec![data]
            }
        } else {
            if first.says(command::OFFLOAD) {
                let span = Span { start: first.raw[13], at: first.raw[10], last: 0 };
                offload::insert(&mut data, span, Zero::Sum);
            }
            vec![data]
        };
        if first.says(command::TAG) && file.has(regs::CTRL, ctrl::VME) {
            let tag =
                [&(file.get(regs::VET) as u16).to_be_bytes()[..], &[first.raw[15], first.raw[14]]].concat();
            for frame in frames.iter_mut().filter(|frame| frame.len() >= 12) {
                frame.splice(12..12, tag.iter().copied());
            }
        }
        frames
    }

    /// The same of a packet of which only the length is known.
    fn lengths(&self, first: Descriptor, segments: bool, bytes: u64) -> Vec<u64> {
        let bytes = if first.says(command::ADD_FCS) { bytes } else { bytes.saturating_sub(FCS) };
        let (header, mss) = (u64::from(self.offload.header), u64::from(self.offload.mss));
        if !segments || mss == 0 || bytes <= header {
            return vec![bytes];
        }
        let data = bytes - header;
        (0..data.div_ceil(mss)).map(|number| header + mss.min(data - number * mss)).collect()
    }
}

/// The bytes of pieces; `None` in a length-only run.
fn join(pieces: &[Payload]) -> Option<Vec<u8>> {
    let bytes: Option<Vec<&[u8]>> =
        pieces.iter().filter(|piece| !piece.is_empty()).map(Payload::bytes).collect();
    bytes.map(|bytes| bytes.concat())
}

fn pad(data: Payload) -> Payload {
    match data {
        Payload::Length(bytes) => Payload::Length(bytes.max(LEAST)),
        Payload::Bytes(bytes) if bytes.len() < LEAST as usize => {
            let mut padded = bytes.to_vec();
            padded.resize(LEAST as usize, 0);
            padded.into()
        }
        whole @ Payload::Bytes(_) => whole,
    }
}
