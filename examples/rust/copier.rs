//! A device that copies host memory, and its driver: four registers and an interrupt, as in `examples/python/copier.py`. Run it with
//! `cargo run --example copier`.

use std::error::Error;
use std::process::ExitCode;
use tlplab_device::kit::{Operations, RegisterFile};
use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, registers,
};
use tlplab_fabric::Builder;
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_units::{Duration, Generation, Time, Width};

registers! {
    SRC: u64 = 0x00, rw;
    DST: u64 = 0x08, rw;
    /// Writing the length of a copy starts it.
    GO: u32 = 0x10, rw;
    DONE: u32 = 0x14, ro;
}

pub struct Copier {
    file: RegisterFile,
    /// Where the data of each read go.
    copies: Operations<u64>,
}

impl Default for Copier {
    fn default() -> Self {
        Self { file: RegisterFile::new(TABLE), copies: Operations::new() }
    }
}

impl Device for Copier {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 1, ..Identity::new(0x71AB, 0x01, 0xFF_00_00) }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                let written = self.file.write(offset, &data);
                if written.touches(GO) {
                    let read = cx.dma_read(0, self.file.get(SRC), self.file.get(GO).into());
                    self.copies.begin(read, self.file.get(DST));
                }
            }
            Event::DmaReadDone { op, result: Ok(data) } => {
                let Some(dst) = self.copies.end(op) else { return };
                cx.dma_write(0, dst, data);
                cx.msix(0, 0); // ordered behind the write
            }
            Event::DmaWriteAccepted { .. } => self.file.add(DONE, 1),
            Event::DmaReadDone { result: Err(error), .. } => cx.fault(error.to_string()),
            Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
            Event::Reset => *self = Self::default(),
            _ => {}
        }
    }
}

/// Copies 4 KiB and checks them when the interrupt comes.
#[derive(Default)]
struct Driver {
    dst: u64,
}

impl HostProgram for Driver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                let src = cx.memory().alloc(4096, 4096).expect("host memory is large");
                self.dst = cx.memory().alloc(4096, 4096).expect("host memory is large");
                cx.memory().write(src, &[b'x'; 4096]);
                let (_, copier) = cx.device("copier").expect("the fabric has one");
                let (regs, _) = copier.bars[0].expect("it has BAR 0");
                cx.mmio_write(0, regs + SRC, src.to_le_bytes().into());
                cx.mmio_write(0, regs + DST, self.dst.to_le_bytes().into());
                cx.mmio_write(0, regs + GO, 4096u32.to_le_bytes().into());
            }
            HostEvent::Interrupt { .. } => {
                let mut copied = [0; 4096];
                cx.memory().read(self.dst, &mut copied);
                assert!(copied == [b'x'; 4096], "the data are there before the interrupt");
                cx.finished();
            }
            _ => {}
        }
    }
}

/// The copier on a Gen3 x8 link under a root port, until the driver has finished; when that was.
fn run() -> Result<Time, Box<dyn Error>> {
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::ALL[3]);
    let config = FabricConfig { devices: vec![DeviceConfig::new("copier", link)], ..FabricConfig::new() };
    let mut builder = Builder::new(config);
    builder.device("copier", Box::new(Copier::default()));
    builder.program(Box::new(Driver::default())).finishes();
    let mut fabric = builder.build()?;
    fabric.run_events(u64::MAX, Time::ZERO + Duration::from_ms(1));
    match fabric.fault() {
        Some(message) => Err(message.into()),
        None if !fabric.is_done() => Err("the driver waits for what never comes".into()),
        None => Ok(fabric.now()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(time) => println!("4096 bytes were copied and the driver told after {time}"),
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[test]
fn it_copies() {
    run().unwrap();
}
