//! A device and a driver of one's own in Rust, run in a fabric: the device reads what its doorbell points at, adds up the bytes, writes
//! the sum back and interrupts. Run it with `cargo run -p tlplab-fabric --example own_device`.

use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, Payload,
};
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::{Duration, Generation, Time, Width};

const BYTES: u64 = 4096;

/// Register 0 of BAR 0: the address of 4 KiB to add up. The sum, 8 bytes, goes behind them.
#[derive(Default)]
struct Adder {
    address: u64,
}

impl Device for Adder {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 1, ..Identity::new(0x1DE5, 0x42, 0x12_00_00) }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset: 0, data, .. } => {
                self.address = data.bytes().and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
                cx.dma_read(0, self.address, BYTES);
            }
            Event::DmaReadDone { result: Ok(data), .. } => {
                let sum: u64 = data.bytes().unwrap_or_default().iter().map(|&b| u64::from(b)).sum();
                cx.dma_write(0, self.address + BYTES, Payload::from(sum.to_le_bytes()));
                cx.msix(0, 0); // ordered behind the write
            }
            Event::DmaReadDone { result: Err(error), .. } => cx.fault(error.to_string()),
            _ => {}
        }
    }
}

/// Fills a buffer, rings the doorbell, and checks the sum when the interrupt comes.
#[derive(Default)]
struct Driver {
    buffer: u64,
}

impl HostProgram for Driver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                self.buffer = cx.memory().alloc(BYTES + 8, 4096).expect("host memory is large");
                cx.memory().write(self.buffer, &[3; BYTES as usize]);
                let (_, adder) = cx.device("adder").expect("the experiment has one");
                let (registers, _) = adder.bars[0].expect("it has BAR 0");
                cx.mmio_write(0, registers, Payload::from(self.buffer.to_le_bytes()));
            }
            HostEvent::Interrupt { .. } => {
                let mut sum = [0; 8];
                cx.memory().read(self.buffer + BYTES, &mut sum);
                assert_eq!(u64::from_le_bytes(sum), 3 * BYTES);
                cx.finished();
            }
            _ => {}
        }
    }
}

fn run() -> Fabric {
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::ALL[3]);
    let config = FabricConfig { devices: vec![DeviceConfig::new("adder", link)], ..FabricConfig::new() };
    let mut builder = Builder::new(config);
    builder.device("adder", Box::new(Adder::default()), Vec::new(), false);
    builder.program(Box::new(Driver::default()), Vec::new(), true);
    let mut fabric = builder.build().expect("a valid fabric");
    fabric.run_events(u64::MAX, Time::ZERO + Duration::from_ms(1));
    fabric
}

pub(crate) fn main() {
    let fabric = run();
    assert!(fabric.is_done(), "the driver has not finished: {:?}", fabric.fault());
    println!("{} bytes were added up and the driver told after {}", BYTES, fabric.now());
}
