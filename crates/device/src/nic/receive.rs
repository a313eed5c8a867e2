//! From the line to host memory: packet buffer, receive ring, write-back.

use super::ethernet::{self, FCS};
use super::filter::{self, Match};
use super::interrupts::Delay;
use super::offload::{self, Checked};
use super::registers::Registers;
use super::regs::{self, cause, ctrl, rctl};
use super::ring::{Ring, UNIT};
use super::statistics::{self, Statistics};
use super::{WRITES, timer};
use crate::contract::{Context, DmaError, OpId};
use crate::kit::Operations;
use std::collections::VecDeque;
use tlplab_transaction::Payload;
use tlplab_units::Duration;
use tlplab_wire::crc::Crc32;

/// Status and errors of a received frame, as in the upper half of an extended descriptor.
mod status {
    pub(super) const DONE: u32 = 1;
    pub(super) const END: u32 = 1 << 1;
    /// The checksum bits say nothing.
    pub(super) const IGNORE: u32 = 1 << 2;
    pub(super) const TAGGED: u32 = 1 << 3;
    pub(super) const UDP: u32 = 1 << 4;
    pub(super) const TCP: u32 = 1 << 5;
    pub(super) const IP: u32 = 1 << 6;
    /// Taken for a bit of the multicast table.
    pub(super) const INEXACT: u32 = 1 << 7;
    pub(super) const TRANSPORT_ERROR: u32 = 1 << 29;
    pub(super) const IP_ERROR: u32 = 1 << 30;
}

/// A frame in the packet buffer.
#[derive(Clone, Debug)]
struct Frame {
    data: Payload,
    status: u32,
    tag: u16,
}

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) ring: Ring,
    frames: VecDeque<Frame>,
    /// Bytes in the packet buffer; they leave it when their write was accepted.
    held: u64,
    writes: Operations<Write>,
    delay: Delay,
}

/// A write to the host that was not accepted yet.
#[derive(Clone, Debug)]
struct Write {
    /// Bytes of the packet buffer that it frees.
    release: u64,
    /// Of the last descriptor that is written back: what that causes beside "received". Told only now, so that who is told and reads
    /// a register finds the descriptor written: nothing passes what was accepted.
    tells: Option<u32>,
}

/// Layout of a receive descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Legacy,
    Extended,
    /// Four buffers in 32 bytes.
    Split,
}

impl Layout {
    fn of(file: &Registers) -> Self {
        match (file.has(regs::RFCTL, 1 << 15), file.has(regs::RCTL, rctl::DTYP_PS)) {
            (true, true) => Self::Split,
            (true, false) => Self::Extended,
            (false, _) => Self::Legacy,
        }
    }
    fn units(self) -> u32 {
        if self == Self::Split { 2 } else { 1 }
    }
    /// Bytes of the buffers of a descriptor.
    fn buffers(self, file: &Registers) -> [u64; 4] {
        if self == Self::Split {
            let sizes = file.get(regs::PSRCTL);
            let kib = |shift: u32| u64::from(sizes >> shift & 0x3F) << 10;
            return [u64::from(sizes & 0x7F) << 7, kib(8), kib(16), kib(24)];
        }
        let control = file.get(regs::RCTL);
        let one = match (control >> 27 & 0xF, control >> 16 & 3, control & rctl::BSEX != 0) {
            (0, size, false) => 2048 >> size,
            (0, size, true) => 32_768 >> size.max(1),
            (kib, ..) => u64::from(kib) << 10,
        };
        [one, 0, 0, 0]
    }
}

impl Receiver {
    pub(super) fn new() -> Self {
        let (frames, writes) = (VecDeque::new(), Operations::new());
        Self { ring: Ring::new(regs::RDBAL), frames, held: 0, writes, delay: Delay::default() }
    }
    pub(super) fn is_busy(&self) -> bool {
        self.ring.is_busy() || !self.writes.is_empty()
    }

    /// A frame came. Returns causes, as do the others.
    pub(super) fn arrive(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut Registers,
        counters: &mut Statistics,
        data: Payload,
    ) -> u32 {
        if !file.has(regs::RCTL, rctl::EN) {
            return 0;
        }
        let bytes = data.len() + FCS;
        let Some(frame) = classify(file, data) else { return 0 };
        if bytes > if file.has(regs::RCTL, rctl::LPE) { 16_384 } else { 1522 } {
            counters.count(statistics::OVERSIZE);
            return 0;
        }
        if self.held + bytes > u64::from(file.get(regs::PBA) & 0xFFFF) << 10 {
            counters.count(statistics::MISSED);
            return cause::RXO;
        }
        if self.ring.given(file) == 0 {
            counters.count(statistics::NO_DESCRIPTOR);
        }
        counters.received(bytes, destination(&frame.data));
        self.held += bytes;
        self.frames.push_back(frame);
        self.deliver(cx, file);
        0
    }

    /// Puts frames into the buffers of descriptors, as many as there are.
    pub(super) fn deliver(&mut self, cx: &mut Context<'_>, file: &mut Registers) {
        let mut causes = None;
        let layout = Layout::of(file);
        let buffers = layout.buffers(file);
        let capacity = buffers.iter().sum::<u64>().max(1);
        let crc = if file.has(regs::RCTL, rctl::SECRC) { 0 } else { FCS };
        while !file.has(regs::CTRL, ctrl::GIO_MASTER_DISABLE) {
            let bytes = self.frames.front().map_or(1, |frame| frame.data.len() + crc);
            let needed = bytes.div_ceil(capacity) as u32 * layout.units();
            self.ring.fetch(cx, file, needed);
            if self.frames.is_empty() || self.ring.cached() < needed {
                break;
            }
            let frame = self.frames.pop_front().expect("just seen");
            causes = Some(causes.unwrap_or(0) | self.store(cx, file, layout, buffers, frame));
        }
        if causes.is_some()
            && let Some(last) = self.writes.last_mut()
        {
            last.tells = causes;
        }
    }

    fn store(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut Registers,
        layout: Layout,
        buffers: [u64; 4],
        frame: Frame,
    ) -> u32 {
        let mut release = frame.data.len() + FCS;
        let data = if file.has(regs::RCTL, rctl::SECRC) { frame.data } else { with_fcs(&frame.data) };
        let (mut at, mut units) = (0, 0);
        while at < data.len() {
            let (place, first) = self.ring.take(file).expect("enough were at hand");
            let second = if layout == Layout::Split { self.ring.take(file) } else { None };
            units += layout.units();
            let mut stored = [0; 4];
            for (number, size) in buffers.into_iter().enumerate() {
                let piece = size.min(data.len() - at);
                if piece > 0 {
                    let address = buffer_address(&first, second.as_ref().map(|(_, unit)| unit), number);
                    let op = cx.dma_write(WRITES, address, data.slice(at, piece));
                    self.writes.begin(op, Write { release: std::mem::take(&mut release), tells: None });
                    stored[number] = piece as u16;
                    at += piece;
                }
            }
            let end = if at == data.len() { status::END } else { 0 };
            let status = frame.status | status::DONE | end;
            let back = write_back(layout, &first, stored, status, frame.tag);
            let op = cx.dma_write(WRITES, place, back.into());
            self.writes.begin(op, Write { release: 0, tells: None });
        }
        self.finish(file, units)
    }

    /// Moves the head; what it causes that few descriptors are left.
    fn finish(&mut self, file: &mut Registers, units: u32) -> u32 {
        let few = self.ring.units(file) >> (1 + (file.get(regs::RCTL) >> 8 & 3));
        let before = self.ring.given(file);
        self.ring.done(file, units);
        let short = before > few && self.ring.given(file) <= few;
        if short { cause::RXDMT0 | cause::RXQ0 } else { 0 }
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.delay.rebase(by);
    }

    /// The interrupt's delay is over, or software cuts it short.
    pub(super) fn delayed(&mut self, cx: &Context<'_>, flush: bool) -> u32 {
        if self.delay.due(cx.now(), flush) { cause::RXT0 | cause::RXQ0 } else { 0 }
    }

    /// A read is over. `None` if it was none of the receiver's.
    pub(super) fn fetched(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut Registers,
        op: OpId,
        result: &Result<Payload, DmaError>,
    ) -> Option<()> {
        self.ring.fetched(file, op, result).then(|| self.deliver(cx, file))
    }

    /// A write was accepted. Returns causes.
    pub(super) fn accepted(&mut self, cx: &mut Context<'_>, file: &Registers, op: OpId) -> u32 {
        let Some(Write { release, tells }) = self.writes.end(op) else { return 0 };
        self.held -= release;
        let Some(others) = tells else { return 0 };
        let (delay, limit) = (file.get(regs::RDTR), file.get(regs::RADV));
        let now = self.delay.event(cx, delay, limit, timer::RECEIVE_DELAY);
        others | if now { cause::RXT0 | cause::RXQ0 } else { 0 }
    }
}

pub(super) fn destination(data: &Payload) -> Option<[u8; 6]> {
    data.bytes()?.first_chunk().copied()
}

/// Filters a frame, looks at its checksums and takes out its tag. A frame of which only the length is known passes.
fn classify(file: &Registers, data: Payload) -> Option<Frame> {
    let Some(bytes) = data.bytes() else {
        return Some(Frame { data, status: status::IGNORE, tag: 0 });
    };
    let (ethertype, tag) = ethernet::kind(bytes, file.get(regs::VET) as u16)?;
    let matched = filter::accept(file, destination(&data)?, tag)?;
    let checked = offload::check(bytes, ethertype, if tag.is_some() { 18 } else { 14 });
    let mut found = checksum_status(file, checked);
    if matched == Match::Hashed {
        found |= status::INEXACT;
    }
    match tag.filter(|_| file.has(regs::CTRL, ctrl::VME)) {
        Some(tag) => {
            let data = [&bytes[..12], &bytes[16..]].concat().into();
            Some(Frame { data, status: found | status::TAGGED, tag })
        }
        None => Some(Frame { data, status: found, tag: 0 }),
    }
}

fn checksum_status(file: &Registers, checked: Checked) -> u32 {
    let (network, transport) = (file.has(regs::RXCSUM, 1 << 8), file.has(regs::RXCSUM, 1 << 9));
    let mut found = 0;
    for (result, enabled, seen, wrong) in [
        (checked.ip, network, status::IP, status::IP_ERROR),
        (checked.tcp, transport, status::TCP, status::TRANSPORT_ERROR),
        (checked.udp, transport, status::UDP, status::TRANSPORT_ERROR),
    ] {
        if let Some(right) = result.filter(|_| enabled) {
            found |= seen | if right { 0 } else { wrong };
        }
    }
    if found == 0 { status::IGNORE } else { found }
}

/// The frame with its check sequence (IEEE 802.3, clause 3.2.9), which is the CRC of PCI Express's ECRC.
fn with_fcs(data: &Payload) -> Payload {
    match data.bytes() {
        Some(bytes) => [bytes, &Crc32::new().update(bytes).finish().to_le_bytes()].concat().into(),
        None => Payload::Length(data.len() + FCS),
    }
}

fn buffer_address(first: &[u8; 16], second: Option<&[u8; 16]>, number: usize) -> u64 {
    let (halves, _) = match (number, second) {
        (2.., Some(second)) => second.as_chunks::<8>(),
        _ => first.as_chunks::<8>(),
    };
    u64::from_le_bytes(halves[number & 1])
}

/// A descriptor as software finds it.
fn write_back(layout: Layout, first: &[u8; 16], stored: [u16; 4], status: u32, tag: u16) -> Vec<u8> {
    let mut back = vec![0; UNIT as usize * layout.units() as usize];
    if layout == Layout::Legacy {
        back[..8].copy_from_slice(&first[..8]);
        back[8..10].copy_from_slice(&stored[0].to_le_bytes());
        (back[12], back[13]) = (status as u8, (status >> 24) as u8);
        back[14..].copy_from_slice(&tag.to_le_bytes());
        return back;
    }
    back[8..12].copy_from_slice(&status.to_le_bytes());
    back[12..14].copy_from_slice(&stored[0].to_le_bytes());
    back[14..16].copy_from_slice(&tag.to_le_bytes());
    for (number, length) in stored.into_iter().enumerate().skip(1).filter(|_| layout == Layout::Split) {
        back[16 + 2 * number..18 + 2 * number].copy_from_slice(&length.to_le_bytes());
    }
    back
}
