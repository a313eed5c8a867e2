//! `ring`: a device with a descriptor ring in host memory, as NICs and SSDs have.
//!
//! The driver writes descriptors and rings the doorbell with its tail index; the device fetches descriptors in batches, moves the data
//! they name, writes its head index back to host memory, and interrupts. [`RingDriver`](driver::RingDriver) is the other side.

pub mod driver;

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::identity::{BarSpec, Identity};
use crate::kit::{Batch, InOrder, RegisterFile, Ring as Descriptors};
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;

/// Registers in BAR 0, little-endian.
pub mod regs {
    crate::registers! {
        /// Address of the ring.
        pub BASE: u64 = 0x00, rw;
        /// Number of descriptors in it.
        pub ENTRIES: u32 = 0x08, rw;
        /// Doorbell: descriptors ever posted, modulo 2^32.
        pub TAIL: u32 = 0x0C, rw;
        /// The address where the device writes its head.
        pub WRITE_BACK: u64 = 0x10, rw;
        /// Descriptors done, modulo 2^32.
        pub HEAD: u32 = 0x18, ro;
        /// Descriptors that failed.
        pub FAILED: u32 = 0x1C, ro;
    }
}

crate::record! {
    /// A descriptor: 16 bytes, little-endian.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Descriptor [16] {
        /// The buffer.
        pub address: u64 = 0,
        /// Its length in bytes.
        pub bytes: u32 = 8,
        /// The device writes the buffer (receives); otherwise it reads it (transmits).
        pub receive: bool = 12 bit 0,
        /// Interrupt when this descriptor is done.
        pub interrupt: bool = 12 bit 1,
    }
}

/// The properties of a ring device.
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

crate::streams! {
    /// Descriptors.
    FETCH: "fetch" = "read";
    /// Data to transmit.
    TRANSMIT: "transmit" = "read";
    /// Received data and what must stay behind them: the head's write-back and the interrupt.
    RECEIVE: "receive" = "write";
}

/// The ring device.
#[derive(Clone, Debug)]
pub struct Ring {
    config: RingConfig,
    file: RegisterFile,
    ring: Descriptors,
    /// The descriptors that ask for an interrupt.
    under_way: InOrder<bool, ()>,
    /// The data of receives in payload-carrying runs; grows to the longest buffer.
    data: Vec<u8>,
}

impl Default for Ring {
    fn default() -> Self {
        Self::new(RingConfig::default())
    }
}

impl Ring {
    /// An idle ring device.
    pub fn new(config: RingConfig) -> Self {
        Self {
            config: RingConfig { batch: config.batch.max(1), depth: config.depth.max(1) },
            file: RegisterFile::new(regs::TABLE),
            ring: Descriptors::new(FETCH, Descriptor::BYTES as u32),
            under_way: InOrder::new(),
            data: Vec::new(),
        }
    }

    /// Fetches the next batch if none is on its way and there is room for it.
    fn fetch(&mut self, cx: &mut Context<'_>) {
        let room = self.config.depth.saturating_sub(self.under_way.len() as u32);
        let (base, entries) = (self.file.get(regs::BASE), self.file.get(regs::ENTRIES));
        self.ring.fetch(cx, base, entries, self.file.get(regs::TAIL), room.min(self.config.batch));
    }

    fn fetched(&mut self, cx: &mut Context<'_>, batch: Batch, result: &Result<Payload, DmaError>) {
        self.ring.advance(batch.count);
        match result {
            Ok(Payload::Bytes(bytes)) => {
                let (descriptors, _) = bytes.as_chunks();
                descriptors.iter().for_each(|bytes| self.begin(cx, Descriptor::from_bytes(bytes)));
            }
            Ok(Payload::Length(_)) => cx.fault(
                "ring: descriptors came without their bytes; control reads carry data in every run"
                    .to_string(),
            ),
            // The descriptors are lost. Each counts as failed, and the driver is told.
            Err(_) => {
                self.file.add(regs::FAILED, batch.count.into());
                (0..batch.count).for_each(|_| self.under_way.begin_over(true, ()));
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
        self.under_way.begin(op, interrupt);
    }

    fn over(&mut self, cx: &mut Context<'_>, op: OpId, failed: bool) {
        if self.under_way.end(op, ()).is_some() {
            self.file.add(regs::FAILED, failed.into());
            self.retire(cx);
            self.fetch(cx);
        }
    }

    /// Moves the head over all that is done in order, writes it back and interrupts where that was asked for.
    fn retire(&mut self, cx: &mut Context<'_>) {
        let (before, mut interrupts) = (self.ring.done(), false);
        while let Some((interrupt, ())) = self.under_way.next() {
            interrupts |= interrupt;
            self.ring.finish();
        }
        if self.ring.done() != before {
            self.file.set(regs::HEAD, self.ring.done());
            let record = self.ring.done().to_le_bytes();
            cx.dma_write(RECEIVE, self.file.get(regs::WRITE_BACK), record.into());
        }
        if interrupts {
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

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                self.file.write(offset, &data);
                self.fetch(cx);
            }
            Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
            Event::DmaReadDone { op, result } => match self.ring.over(op) {
                Some(batch) => self.fetched(cx, batch, &result),
                None => self.over(cx, op, result.is_err()),
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
