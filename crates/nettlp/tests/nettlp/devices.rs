//! The built-in devices with their drivers, over NetTLP and an adapter: what they do is what they do in the simulated fabric.

#[path = "../../../fabric/tests/fabric/bench/mod.rs"]
mod bench;

use crate::machine::{Looks, World};
use bench::Bench;
use tlplab_device::*;
use tlplab_fabric::Driven;
use tlplab_nettlp::adapter::MsixHome;
use tlplab_units::{Duration, Time};

const LOOKS: [Looks; 3] = [Looks::Card(MsixHome::Bar2), Looks::Card(MsixHome::Bar4), Looks::Own];

/// The host's memory below the end of what was allocated.
fn allocated(memory: &mut dyn HostMemory, bytes: usize) -> Vec<u8> {
    let end = memory.alloc(4096, 4096).unwrap();
    let mut found = vec![0; bytes];
    memory.read(end - bytes as u64, &mut found);
    found
}

/// The same program and device in the fabric: interrupts, and what is in memory.
fn in_fabric(
    name: &str,
    device: Box<dyn Device>,
    program: Box<dyn HostProgram>,
    bytes: usize,
) -> (u64, Vec<u8>) {
    let mut bench = Bench::new();
    bench.device(name, "host.rp0", 2, 4).model(device);
    bench.finishing_program(program);
    let mut fabric = bench.build();
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
    assert_eq!(fabric.fault(), None);
    assert!(fabric.is_done());
    (fabric.interrupts(), allocated(fabric.host_memory(), bytes))
}

#[test]
fn a_copier_copies_the_same() {
    let driver = || DmaDriver::new("dma", 5003, 20);
    // Source and destination, two pages each, and a page that the driver may have more.
    let fabric = in_fabric("dma", Box::new(Dma::new()), Box::new(driver()), 0x5000);
    assert_eq!(fabric.0, 20);
    for looks in LOOKS {
        let mut world = World::new("dma", Dma::new(), driver(), looks);
        world.run(Duration::from_ms(100));
        assert_eq!(world.machine().fault, None, "{looks:?}");
        assert!(world.machine().finished, "{looks:?}");
        let memory = allocated(&mut world.machine_mut().ram, 0x5000);
        assert!((world.machine().interrupts, memory) == fabric, "{looks:?}");
        let port = world.server().port();
        assert_eq!((port.interrupts(), port.dropped_interrupts(), port.fault()), (20, 0, None));
        assert!(port.endpoint().is_idle() && port.counters().malformed() == 0);
        assert_eq!((port.counters().refused, port.counters().lost()), (0, 0));
    }
}

#[test]
fn a_ring_turns_the_same() {
    let load = RingLoad { entries: 32, bytes: 1501, receive: true, interrupt_every: 4, count: Some(150) };
    let driver = || RingDriver::new("nic", load.clone());
    let bytes = 32 * 1536 + 2 * 4096;
    let ring = || Ring::new(RingConfig::default());
    let (_, memory) = in_fabric("nic", Box::new(ring()), Box::new(driver()), bytes);
    for looks in LOOKS {
        let mut world = World::new("nic", ring(), driver(), looks);
        world.run(Duration::from_ms(100));
        assert_eq!((world.machine().fault.as_deref(), world.machine().finished), (None, true), "{looks:?}");
        assert!(allocated(&mut world.machine_mut().ram, bytes) == memory, "{looks:?}");
        // As many interrupts as the head moved over: fewer where it passes several at once.
        assert!((1..=38).contains(&world.machine().interrupts));
    }
}

/// It changes its configuration space, which is the card's.
struct Changing;

impl Device for Changing {
    fn identity(&self) -> Identity {
        Dma::new().identity()
    }
    fn handle(&mut self, cx: &mut Context<'_>, _event: Event) {
        cx.set_config(0, &[0xFF, 0xFF]);
    }
}

#[test]
fn a_device_cannot_change_the_cards_configuration_space() {
    for looks in LOOKS {
        let mut world = World::new("dma", Changing, DmaDriver::new("dma", 64, 1), looks);
        world.run(Duration::from_ms(100));
        let fault = world.server().port().fault().unwrap_or_default();
        assert!(fault.contains("which is the card's behind NetTLP"), "{looks:?}: {fault}");
    }
}

/// Writes a pattern, reads it back in pieces, and reads outside.
#[derive(Default)]
struct Prober {
    base: u64,
    seen: Vec<Result<Payload, DmaError>>,
}
impl HostProgram for Prober {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                self.base = cx.device("mem").unwrap().1.bars[0].unwrap().0;
                cx.mmio_write(0, self.base + 0x7FE, (0..=255).collect::<Vec<u8>>().into());
                for (offset, bytes) in [(0x7FD, 6), (0x7FE, 256), (0x7FD, 0), (0xFFC, 4)] {
                    cx.mmio_read(0, self.base + offset, bytes);
                }
            }
            HostEvent::MmioReadDone { result, .. } => {
                self.seen.push(result);
                if self.seen.len() == 4 {
                    let whole: Vec<u8> = (0..=255).collect();
                    let expected: [Payload; 4] =
                        [[0, 0, 1, 2, 3, 4].into(), whole.into(), Payload::EMPTY, [0; 4].into()];
                    if self.seen.iter().eq(expected.map(Ok).iter()) {
                        return cx.finished();
                    }
                    cx.fault(format!("{:?}", self.seen));
                }
            }
            _ => {}
        }
    }
}

#[test]
fn memory_remembers() {
    for looks in LOOKS {
        let mut world = World::new("mem", Memory::new(4096), Prober::default(), looks);
        world.run(Duration::from_ms(1));
        assert_eq!((world.machine().fault.as_deref(), world.machine().finished), (None, true), "{looks:?}");
    }
}
