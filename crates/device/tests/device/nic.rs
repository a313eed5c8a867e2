//! The NIC with its driver on an ideal driver.

use crate::ideal::Ideal;
use proptest::prelude::*;
use tlplab_device::nic::{regs, statistics};
use tlplab_device::*;
use tlplab_units::{Duration, Time};

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

fn world(cable: Cable, mode: InterruptMode, length_only: bool, load: NicLoad) -> Ideal {
    let nic = Nic::new(NicConfig { cable, ..NicConfig::default() });
    let mut world = Ideal::new(length_only).device("nic", nic).host(NicDriver::new("nic", load));
    (world.mode, world.strangers) = (mode, true);
    world
}

/// Reads a register behind the driver's back.
fn register(world: &mut Ideal, offset: u32) -> u32 {
    u32::from_le_bytes(world.read(0, offset.into(), 4).bytes().unwrap().try_into().unwrap())
}

/// The driver compares what comes back with what it sent.
#[test]
fn frames_go_round_in_each_interrupt_mode() {
    for mode in [InterruptMode::MsiX, InterruptMode::Msi, InterruptMode::Intx] {
        for (entries, bytes, length_only) in [(8, 60, false), (64, 1514, false), (256, 777, true)] {
            let load = NicLoad { entries, bytes, send: 500, receive: 500 };
            let mut world = world(Cable::LoopBack, mode, length_only, load);
            world.run(us(100_000));
            assert_eq!((world.faults.clone(), world.finished), (vec![], 1), "{mode:?} {entries}");
            for at in [statistics::SENT, statistics::RECEIVED] {
                assert_eq!(register(&mut world, at), 500);
            }
            assert_eq!(register(&mut world, statistics::SENT), 0, "a read clears");
            assert_eq!(register(&mut world, statistics::GOOD_BYTES_SENT), 500 * (bytes + 4));
            assert_eq!(register(&mut world, statistics::MISSED), 0);
            assert!((2..=1100).contains(&world.interrupts), "{}", world.interrupts);
            assert!(!world.pin, "what was acknowledged is deasserted");
        }
    }
}

/// The line carries 81 274 frames of 1518 B per second; nothing is lost when the bus keeps up.
#[test]
fn the_generator_fills_the_line() {
    let traffic = Traffic { bytes: 1514, rate: None, count: Some(1000) };
    let load = NicLoad { receive: 1000, ..NicLoad::default() };
    let mut world = world(Cable::Source(traffic), InterruptMode::MsiX, false, load);
    world.run(us(100_000));
    assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
    let data: Vec<u64> =
        world.log.iter().filter(|op| op.1 == "write" && op.3 == 1514).map(|op| op.0.as_fs()).collect();
    assert_eq!((data.len(), data[999] - data[0]), (1000, 999 * 12_304_000_000));
}

/// Without a driver that gives buffers, the packet buffer fills and the rest is counted as lost.
#[test]
fn without_descriptors_frames_are_lost() {
    let traffic = Traffic { bytes: 1514, rate: None, count: Some(100) };
    let mut world = Ideal::new(false)
        .device("nic", Nic::new(NicConfig { cable: Cable::Source(traffic), ..NicConfig::default() }));
    world.run(us(50));
    let (mut next_op, mut actions) = (0, Vec::new());
    let mut cx = Context::new(world.now, &[], &mut next_op, &mut actions);
    let rctl = 2u32.to_le_bytes().into();
    world.devices[0].handle(&mut cx, Event::MmioWrite { bar: 0, offset: regs::RCTL.into(), data: rctl });
    // What the generator asks for, one timer after the other.
    while let Some(Action::Timer { at, id }) = actions.pop() {
        let mut cx = Context::new(at, &[], &mut next_op, &mut actions);
        world.devices[0].handle(&mut cx, Event::Timer { id });
    }
    // 20 KiB hold 13 frames of 1518 B.
    let counters = [statistics::RECEIVED, statistics::NO_DESCRIPTOR, statistics::MISSED];
    assert_eq!(counters.map(|at| register(&mut world, at)), [13, 13, 87]);
}

/// A NIC whose packet buffer has 2 KiB, whatever its driver says: one frame of 1514 B.
struct Narrow(Nic);

impl Device for Narrow {
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        let event = match event {
            Event::MmioWrite { bar: 0, offset, .. } if offset == u64::from(regs::PBA) => {
                Event::MmioWrite { bar: 0, offset, data: 2u32.to_le_bytes().into() }
            }
            event => event,
        };
        self.0.handle(cx, event);
    }
}

/// Frames come before the one in front of them is in memory. The NIC counts those as missed, and what comes is what was sent.
#[test]
fn frames_that_the_nic_misses_are_no_frames_that_changed() {
    let load = NicLoad { entries: 8, bytes: 1514, send: 500, receive: 0 };
    let speed = nic::ethernet::Speed::from_bps(400_000_000_000);
    let nic = Narrow(Nic::new(NicConfig { cable: Cable::LoopBack, speed, ..NicConfig::default() }));
    let mut world = Ideal::new(false).device("nic", nic).host(NicDriver::new("nic", load));
    (world.mode, world.strangers) = (InterruptMode::MsiX, true);
    world.run(us(100_000));
    assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
    let [received, missed] = [statistics::RECEIVED, statistics::MISSED].map(|at| register(&mut world, at));
    assert!(received > 0 && missed > 0 && received + missed == 500, "{received} received, {missed} missed");
}

/// What a broken driver may write: registers that start things, and anything else.
fn writes() -> impl Strategy<Value = (u32, u32)> {
    let registers = prop_oneof![
        proptest::sample::select(vec![
            regs::CTRL,
            regs::RCTL,
            regs::TCTL,
            regs::RFCTL,
            regs::PSRCTL,
            regs::RXDCTL,
            regs::TXDCTL,
            regs::PBA,
            regs::IMS,
            regs::ICS,
            regs::IVAR,
            regs::CTRL_EXT,
            regs::EITR,
            regs::RDTR,
            regs::TIDV,
            regs::MDIC,
            regs::EERD,
        ]),
        proptest::sample::select(vec![0, 4, 8, 0x10, 0x18])
            .prop_flat_map(|offset| prop_oneof![Just(regs::RDBAL + offset), Just(regs::TDBAL + offset)]),
        (0u32..0x20000).prop_map(|at| at & !3),
    ];
    let values = prop_oneof![any::<u32>(), 0u32..0x400, Just(u32::MAX), (0u32..32).prop_map(|bit| 1 << bit)];
    (registers, values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever software writes, the NIC answers its reads, keeps to its interrupt mode, and comes up again after a reset.
    #[test]
    fn a_broken_driver_breaks_nothing(
        mode in 0..3usize,
        writes in proptest::collection::vec(writes(), 0..200),
        memory in proptest::collection::vec(any::<u8>(), 4096),
    ) {
        let nic = Nic::new(NicConfig { cable: Cable::LoopBack, ..NicConfig::default() });
        let mut world = Ideal::new(false).device("nic", nic);
        world.mode = [InterruptMode::MsiX, InterruptMode::Msi, InterruptMode::Intx][mode];
        world.ram.write(0, &memory);
        world.wait(Duration::from_us(20));
        for (at, value) in writes {
            world.write(0, at.into(), value.to_le_bytes().into());
            world.wait(Duration::from_us(3));
            register(&mut world, at);
        }
        prop_assert_eq!(&world.faults, &Vec::<String>::new());
        world.write(0, regs::CTRL.into(), (1u32 << 26).to_le_bytes().into());
        prop_assert_eq!(register(&mut world, regs::RCTL), 0);
        prop_assert!(!world.pin);
    }
}
