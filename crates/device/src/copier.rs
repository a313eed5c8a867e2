//! `dma`: a copier. Write source, destination and length; it reads, writes, counts and interrupts.

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::host::{HostContext, HostEvent, HostProgram};
use crate::identity::{BarSpec, Identity};
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;

/// Its only stream.
pub const STREAMS: &[Stream] = &[("copy", "copy")];

/// Registers in BAR 0, little-endian.
pub mod regs {
    /// Source address, 64 bits.
    pub const SRC: u64 = 0x00;
    /// Destination address, 64 bits.
    pub const DST: u64 = 0x08;
    /// Writing a length in bytes (32 bits) starts a copy from `SRC` to `DST`.
    pub const GO: u64 = 0x10;
    /// Copies done, 32 bits, read-only.
    pub const DONE: u64 = 0x14;
    /// Copies that failed, 32 bits, read-only.
    pub const FAILED: u64 = 0x18;
}

/// The copier. Copies run at the same time and end in any order; each ends with MSI-X vector 0, behind its write.
#[derive(Clone, Debug, Default)]
pub struct Dma {
    src: u64,
    dst: u64,
    go: u32,
    done: u32,
    failed: u32,
    /// Reads under way and where their data go.
    reading: Vec<(OpId, u64)>,
    /// Writes that were not accepted yet.
    writing: Vec<OpId>,
}

impl Dma {
    /// An idle copier.
    pub fn new() -> Self {
        Self::default()
    }

    fn image(&self) -> [u8; 0x1C] {
        let mut image = [0; 0x1C];
        image[0x00..0x08].copy_from_slice(&self.src.to_le_bytes());
        image[0x08..0x10].copy_from_slice(&self.dst.to_le_bytes());
        image[0x10..0x14].copy_from_slice(&self.go.to_le_bytes());
        image[0x14..0x18].copy_from_slice(&self.done.to_le_bytes());
        image[0x18..0x1C].copy_from_slice(&self.failed.to_le_bytes());
        image
    }

    fn write_registers(&mut self, cx: &mut Context<'_>, offset: u64, data: &[u8]) {
        let mut image = self.image();
        for (byte, at) in data.iter().zip(offset as usize..).take_while(|(_, at)| *at < regs::DONE as usize) {
            image[at] = *byte;
        }
        let word = |at: u64, len: usize| &image[at as usize..at as usize + len];
        self.src = u64::from_le_bytes(word(regs::SRC, 8).try_into().expect("8 bytes"));
        self.dst = u64::from_le_bytes(word(regs::DST, 8).try_into().expect("8 bytes"));
        self.go = u32::from_le_bytes(word(regs::GO, 4).try_into().expect("4 bytes"));
        let touched = offset..offset + data.len() as u64;
        if touched.start < regs::GO + 4 && regs::GO < touched.end {
            let op = cx.dma_read(0, self.src, self.go.into());
            self.reading.push((op, self.dst));
        }
    }

    fn read_done(&mut self, cx: &mut Context<'_>, op: OpId, result: Result<Payload, DmaError>) {
        let Some(at) = self.reading.iter().position(|(reading, _)| *reading == op) else { return };
        let (_, dst) = self.reading.remove(at);
        match result {
            Ok(data) => self.writing.push(cx.dma_write(0, dst, data)),
            Err(_) => {
                self.failed += 1;
                cx.msix(0, 0);
            }
        }
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

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes() {
                    self.write_registers(cx, offset, bytes);
                }
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                cx.reply(reply, read_image(&self.image(), offset, bytes));
            }
            Event::DmaReadDone { op, result } => self.read_done(cx, op, result),
            Event::DmaWriteAccepted { op } => {
                if let Some(at) = self.writing.iter().position(|writing| *writing == op) {
                    self.writing.remove(at);
                    self.done += 1;
                    cx.msix(0, 0);
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

/// `bytes` of a register file from `offset` on; what lies behind it reads as zero.
pub(crate) fn read_image(image: &[u8], offset: u64, bytes: u32) -> Payload {
    let byte = |at: u64| usize::try_from(at).ok().and_then(|at| image.get(at)).copied().unwrap_or(0);
    (offset..offset + u64::from(bytes)).map(byte).collect::<Vec<_>>().into()
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
        let (index, info) = cx
            .device(&self.device)
            .ok_or_else(|| format!("there is no device {:?} to drive", self.device))?;
        let (registers, _) = info.bars[0].ok_or_else(|| format!("{} has no BAR 0", self.device))?;
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
                return cx
                    .fault(format!("copy {copy} of {device} is wrong from byte {at} of {} on", self.bytes));
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
