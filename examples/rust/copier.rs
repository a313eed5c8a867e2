//! A device that copies host memory, and its driver: four registers and an interrupt, as in `examples/python/copier.py`. Run it with
//! `cargo run --example copier`.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, OpId, Payload,
};
use tlplab_fabric::Builder;
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_units::{Duration, Generation, Time, Width};

/// Offsets of the registers in BAR 0. The length of a copy goes to `GO`.
const SRC: u64 = 0x00;
const DST: u64 = 0x08;
const GO: u64 = 0x10;
const DONE: u64 = 0x14;

#[derive(Default)]
pub struct Copier {
    src: u64,
    dst: u64,
    done: u64,
    /// Where the data of each read go.
    copies: BTreeMap<OpId, u64>,
}

impl Device for Copier {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 1, ..Identity::new(0x71AB, 0x01, 0xFF_00_00) }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset: SRC, data, .. } => self.src = number(&data),
            Event::MmioWrite { offset: DST, data, .. } => self.dst = number(&data),
            Event::MmioWrite { offset: GO, data, .. } => {
                let read = cx.dma_read(0, self.src, number(&data));
                self.copies.insert(read, self.dst);
            }
            Event::DmaReadDone { op, result: Ok(data) } => {
                let Some(dst) = self.copies.remove(&op) else { return };
                cx.dma_write(0, dst, data);
                cx.msix(0, 0); // ordered behind the write
            }
            Event::DmaWriteAccepted { .. } => self.done += 1,
            Event::DmaReadDone { result: Err(error), .. } => cx.fault(error.to_string()),
            Event::MmioRead { offset, bytes, reply, .. } => {
                let value = if offset == DONE { self.done } else { 0 };
                let mut data = value.to_le_bytes().to_vec();
                data.resize(bytes as usize, 0); // as many as were asked for
                cx.reply(reply, data.into());
            }
            Event::Reset => *self = Self::default(),
            _ => {}
        }
    }
}

/// The register value that was written.
fn number(data: &Payload) -> u64 {
    let mut value = [0; 8];
    for (to, from) in value.iter_mut().zip(data.bytes().unwrap_or_default()) {
        *to = *from;
    }
    u64::from_le_bytes(value)
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
