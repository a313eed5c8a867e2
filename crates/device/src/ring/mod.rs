//! `ring`: a device with a descriptor ring in host memory, as NICs and SSDs have.
//!
//! The driver writes descriptors and rings the doorbell with its tail index; the device fetches descriptors in batches, moves the data
//! they name, writes its head index back to host memory, and interrupts. [`RingDriver`](driver::RingDriver) is the other side.

pub mod driver;

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::copier::read_image;
use crate::identity::{BarSpec, Identity};
use std::collections::VecDeque;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;

/// Registers in BAR 0, little-endian.
pub mod regs {
    /// Address of the ring, 64 bits.
    pub const BASE: u64 = 0x00;
    /// Number of descriptors in it, 32 bits.
    pub const ENTRIES: u64 = 0x08;
    /// Doorbell, 32 bits: descriptors ever posted, modulo 2^32.
    pub const TAIL: u64 = 0x0C;
    /// Where the device writes its head, 64 bits.
    pub const WRITE_BACK: u64 = 0x10;
    /// Descriptors done, 32 bits, modulo 2^32, read-only.
    pub const HEAD: u64 = 0x18;
    /// Descriptors that failed, 32 bits, read-only.
    pub const FAILED: u64 = 0x1C;
    /// Size of the register file.
    pub const END: u64 = 0x20;
}

/// A descriptor: 16 bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The buffer.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// The device writes the buffer (receives); otherwise it reads it (transmits).
    pub receive: bool,
    /// Interrupt when this descriptor is done.
    pub interrupt: bool,
}

impl Descriptor {
    /// Size in memory.
    pub const BYTES: u64 = 16;

    /// As in memory.
    pub fn to_bytes(self) -> [u8; Self::BYTES as usize] {
        let flags = u32::from(self.receive) | u32::from(self.interrupt) << 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..].copy_from_slice(&flags.to_le_bytes());
        bytes
    }
    /// From memory.
    pub fn from_bytes(bytes: &[u8; Self::BYTES as usize]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        Self { address, bytes: word(8), receive: word(12) & 1 != 0, interrupt: word(12) & 2 != 0 }
    }
}

/// How a ring device works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// Descriptors fetched by one read, at most; at least 1.
    pub batch: u32,
    /// Descriptors under way at most; at least 1.
    pub depth: u32,
}

impl Default for RingConfig {
    /// 8 per fetch, 64 under way.
    fn default() -> Self {
        Self { batch: 8, depth: 64 }
    }
}

const FETCH: u16 = 0;
const TRANSMIT: u16 = 1;
/// Received data and what must stay behind them: the head's write-back and the interrupt.
const RECEIVE: u16 = 2;
/// Its streams.
pub const STREAMS: &[Stream] = &[("fetch", "read"), ("transmit", "read"), ("receive", "write")];

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    op: OpId,
    interrupt: bool,
    over: bool,
}

/// The ring device.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    config: RingConfig,
    base: u64,
    entries: u32,
    tail: u32,
    write_back: u64,
    /// Descriptors ever fetched.
    fetched: u32,
    head: u32,
    failed: u32,
    fetch: Option<(OpId, u32)>,
    /// In ring order, so that the head moves in order.
    under_way: VecDeque<UnderWay>,
    /// What a receive writes in payload-carrying runs; grows to the longest buffer.
    data: Vec<u8>,
}

impl Ring {
    /// An idle ring device.
    pub fn new(config: RingConfig) -> Self {
        let config = RingConfig { batch: config.batch.max(1), depth: config.depth.max(1) };
        Self { config, ..Self::default() }
    }

    fn image(&self) -> [u8; regs::END as usize] {
        let mut image = [0; regs::END as usize];
        image[0x00..0x08].copy_from_slice(&self.base.to_le_bytes());
        image[0x08..0x0C].copy_from_slice(&self.entries.to_le_bytes());
        image[0x0C..0x10].copy_from_slice(&self.tail.to_le_bytes());
        image[0x10..0x18].copy_from_slice(&self.write_back.to_le_bytes());
        image[0x18..0x1C].copy_from_slice(&self.head.to_le_bytes());
        image[0x1C..0x20].copy_from_slice(&self.failed.to_le_bytes());
        image
    }

    fn write_registers(&mut self, offset: u64, data: &[u8]) {
        let mut image = self.image();
        for (byte, at) in data.iter().zip(offset as usize..).take_while(|(_, at)| *at < regs::HEAD as usize) {
            image[at] = *byte;
        }
        let long = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().expect("8 bytes"));
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().expect("4 bytes"));
        (self.base, self.entries) = (long(0x00), word(0x08));
        (self.tail, self.write_back) = (word(0x0C), long(0x10));
    }

    /// Fetches the next batch if none is on its way and there is room for it.
    fn fetch(&mut self, cx: &mut Context<'_>) {
        let posted = self.tail.wrapping_sub(self.fetched);
        if self.fetch.is_some() || posted == 0 || self.entries == 0 {
            return;
        }
        let place = self.fetched % self.entries;
        let room = self.config.depth.saturating_sub(self.under_way.len() as u32);
        let batch = posted.min(self.config.batch).min(room).min(self.entries - place);
        if batch > 0 {
            let address = self.base + u64::from(place) * Descriptor::BYTES;
            let op = cx.dma_read_control(FETCH, address, u64::from(batch) * Descriptor::BYTES);
            self.fetch = Some((op, batch));
        }
    }

    fn fetched(&mut self, cx: &mut Context<'_>, batch: u32, result: Result<Payload, DmaError>) {
        self.fetch = None;
        self.fetched = self.fetched.wrapping_add(batch);
        match &result {
            Ok(Payload::Bytes(bytes)) => {
                let (descriptors, _) = bytes.as_chunks::<{ Descriptor::BYTES as usize }>();
                descriptors.iter().for_each(|bytes| self.begin(cx, Descriptor::from_bytes(bytes)));
            }
            Ok(Payload::Length(_)) => cx.fault(
                "ring: descriptors came without their bytes; control reads carry data in every run"
                    .to_string(),
            ),
            // The descriptors are lost. Each counts as failed, and the driver is told.
            Err(_) => {
                self.failed += batch;
                let lost = UnderWay { op: OpId(u64::MAX), interrupt: true, over: true };
                (0..batch).for_each(|_| self.under_way.push_back(lost));
                self.retire(cx);
            }
        }
        self.fetch(cx);
    }

    fn begin(&mut self, cx: &mut Context<'_>, descriptor: Descriptor) {
        let Descriptor { address, bytes, receive, interrupt } = descriptor;
        let op = if !receive {
            cx.dma_read(TRANSMIT, address, bytes.into())
        } else if cx.length_only() {
            cx.dma_write(RECEIVE, address, Payload::Length(bytes.into()))
        } else {
            let have = self.data.len();
            self.data.extend((have..bytes as usize).map(|i| (i % 253) as u8));
            cx.dma_write(RECEIVE, address, self.data[..bytes as usize].into())
        };
        self.under_way.push_back(UnderWay { op, interrupt, over: false });
    }

    fn over(&mut self, cx: &mut Context<'_>, op: OpId, failed: bool) {
        let Some(found) = self.under_way.iter_mut().find(|way| way.op == op && !way.over) else { return };
        found.over = true;
        self.failed += u32::from(failed);
        self.retire(cx);
        self.fetch(cx);
    }

    /// Moves the head over all that is done in order, writes it back and interrupts where that was asked for.
    fn retire(&mut self, cx: &mut Context<'_>) {
        let (before, mut interrupt) = (self.head, false);
        while let Some(done) = self.under_way.front().filter(|way| way.over) {
            interrupt |= done.interrupt;
            self.head = self.head.wrapping_add(1);
            self.under_way.pop_front();
        }
        if self.head != before {
            cx.dma_write(RECEIVE, self.write_back, self.head.to_le_bytes().into());
        }
        if interrupt {
            cx.msix(RECEIVE, 0);
        }
    }
}

impl Device for Ring {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::registers(0, 4096)],
            msix_vectors: 1,
            ..Identity::new(VENDOR_ID, 0x0003, 0x02_80_00) // network controller, other
        }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes() {
                    self.write_registers(offset, bytes);
                    self.fetch(cx);
                }
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                cx.reply(reply, read_image(&self.image(), offset, bytes));
            }
            Event::DmaReadDone { op, result } => match self.fetch {
                Some((fetch, batch)) if fetch == op => self.fetched(cx, batch, result),
                _ => self.over(cx, op, result.is_err()),
            },
            Event::DmaWriteAccepted { op } => self.over(cx, op, false),
            Event::Reset => *self = Self::new(self.config),
            Event::Start | Event::Timer { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
