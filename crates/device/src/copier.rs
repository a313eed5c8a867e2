//! `dma`: a copier. Write source, destination and length; it reads, writes, counts and interrupts.

use crate::contract::{Context, Device, Event, Stream};
use crate::host::{HostContext, HostEvent, HostProgram};
use crate::identity::{BarSpec, Identity};
use crate::kit::{Operations, Register, RegisterFile};
use tlplab_cfgspace::VENDOR_ID;

crate::streams! {
    /// Its only stream.
    COPY: "copy" = "copy";
}

/// Registers in BAR 0, little-endian.
pub mod regs {
    crate::registers! {
        /// Source address.
        pub SRC: u64 = 0x00, rw;
        /// Destination address.
        pub DST: u64 = 0x08, rw;
        /// Writing a length in bytes starts a copy from `SRC` to `DST`.
        pub GO: u32 = 0x10, rw;
        /// Copies done.
        pub DONE: u32 = 0x14, ro;
        /// Copies that failed.
        pub FAILED: u32 = 0x18, ro;
    }
}

/// The role of an operation in a copy.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The read of its data, which go there.
    Read {
        to: u64,
    },
    Write,
}

/// The copier. Copies run at the same time and end in any order; each ends with MSI-X vector 0, behind its write.
#[derive(Clone, Debug)]
pub struct Dma {
    file: RegisterFile,
    copies: Operations<Part>,
}

impl Default for Dma {
    fn default() -> Self {
        Self { file: RegisterFile::new(regs::TABLE), copies: Operations::new() }
    }
}

impl Dma {
    /// An idle copier.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy is over, and counted.
    fn over(&mut self, cx: &mut Context<'_>, counter: Register<u32>) {
        self.file.add(counter, 1);
        cx.msix(COPY, 0);
    }
}

impl Device for Dma {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::registers(0, 4096)],
            msix_vectors: 1,
            ..Identity::new(VENDOR_ID, 0x0001, 0x08_01_80) // DMA controller
        }
    }

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                if self.file.write(offset, &data).touches(regs::GO) {
                    let op = cx.dma_read(COPY, self.file.get(regs::SRC), self.file.get(regs::GO).into());
                    self.copies.begin(op, Part::Read { to: self.file.get(regs::DST) });
                }
            }
            Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
            Event::DmaReadDone { op, result } => match (self.copies.end(op), result) {
                (Some(Part::Read { to }), Ok(data)) => {
                    self.copies.begin(cx.dma_write(COPY, to, data), Part::Write);
                }
                (Some(_), _) => self.over(cx, regs::FAILED),
                (None, _) => {}
            },
            Event::DmaWriteAccepted { op } => {
                if self.copies.end(op).is_some() {
                    self.over(cx, regs::DONE);
                }
            }
            Event::Reset => *self = Self::new(),
            Event::Start | Event::Timer { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}

/// The driver of one copier: copies a buffer `count` times, one copy after the other, and checks it in payload-carrying runs.
#[derive(Clone, Debug)]
pub struct DmaDriver {
    device: String,
    bytes: u32,
    count: u32,
    copied: u32,
    index: usize,
    registers: u64,
    src: u64,
    dst: u64,
}

impl DmaDriver {
    /// A driver for the copier called `device` that makes `count` copies of `bytes` bytes.
    pub fn new(device: &str, bytes: u32, count: u32) -> Self {
        let device = device.to_string();
        Self { device, bytes, count, copied: 0, index: 0, registers: 0, src: 0, dst: 0 }
    }

    /// Copies that are done and were found right.
    pub fn copied(&self) -> u32 {
        self.copied
    }

    fn pattern(&self) -> Vec<u8> {
        (0..self.bytes).map(|i| (i.wrapping_mul(31) ^ self.copied) as u8).collect()
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        let registers = info.base(0)?;
        info.interrupting()?;
        let mut alloc = || cx.memory().alloc(self.bytes.into(), 4096).map_err(|error| error.to_string());
        (self.index, self.registers, self.src, self.dst) = (index, registers, alloc()?, alloc()?);
        Ok(())
    }

    fn next(&mut self, cx: &mut HostContext<'_>) {
        if self.copied == self.count {
            return cx.finished();
        }
        if !cx.length_only() {
            let pattern = self.pattern();
            cx.memory().write(self.src, &pattern);
        }
        let mut addresses = [0; 16];
        addresses[..8].copy_from_slice(&self.src.to_le_bytes());
        addresses[8..].copy_from_slice(&self.dst.to_le_bytes());
        cx.mmio_write(0, self.registers + regs::SRC, addresses.into());
        cx.mmio_write(0, self.registers + regs::GO, self.bytes.to_le_bytes().into());
    }

    fn check(&mut self, cx: &mut HostContext<'_>) {
        if !cx.length_only() {
            let mut found = vec![0; self.bytes as usize];
            cx.memory().read(self.dst, &mut found);
            if let Some(at) = found.iter().zip(self.pattern()).position(|(found, right)| *found != right) {
                let (device, copy) = (&self.device, self.copied);
                return cx.fault(format!(
                    "copy {copy} of {device} is wrong from byte {at} of {} onwards",
                    self.bytes
                ));
            }
        }
        self.copied += 1;
        self.next(cx);
    }
}

impl HostProgram for DmaDriver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => match self.probe(cx) {
                Ok(()) => self.next(cx),
                Err(why) => cx.fault(why),
            },
            HostEvent::Interrupt { device, vector: 0 } if device == self.index => self.check(cx),
            _ => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
