//! The simple NIC with its driver on an ideal driver.

use crate::ideal::Ideal;
use proptest::prelude::*;
use tlplab_device::nic::ethernet::Speed;
use tlplab_device::simple_nic::driver::Stack;
use tlplab_device::simple_nic::regs::{self, Descriptor};
use tlplab_device::simple_nic::{BAR, FRAMES, Port};
use tlplab_device::*;
use tlplab_units::{Duration, Time};

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

fn world<P: Port + 'static, S: Stack + 'static>(port: P, entries: u32, stack: S, length_only: bool) -> Ideal {
    let rings = SimpleNicRings { entries, ..SimpleNicRings::default() };
    Ideal::new(length_only)
        .device("nic", SimpleNic::new(SimpleNicConfig::default(), port))
        .host(SimpleNicDriver::new("nic", rings, stack))
}

fn register(world: &mut Ideal, offset: u64) -> u32 {
    u32::from_le_bytes(world.read(BAR, offset, 4).bytes().unwrap().try_into().unwrap())
}

/// The load compares what comes back with what it sent; reads end in another order than they began, so a NIC that sends frames as their
/// data come would fail.
#[test]
fn every_frame_goes_round_once_and_in_order() {
    for (entries, bytes, length_only) in [(1, 60, false), (2, 1514, false), (3, 61, false), (256, 777, true)]
    {
        let load = FrameLoad::new(bytes, 500, 500);
        let mut world =
            world(CablePort::new(Cable::LoopBack, Speed::TEN_GIGABIT), entries, load, length_only);
        world.run(us(100_000));
        assert_eq!((world.faults.clone(), world.finished), (vec![], 1), "{entries} of {bytes} B");
        assert_eq!(register(&mut world, regs::TX_FRAMES.offset()), 500);
        assert_eq!(register(&mut world, regs::RX_FRAMES.offset()), 500);
        let heads = [regs::TX_HEAD, regs::RX_HEAD].map(|at| register(&mut world, at.offset()));
        assert_eq!((heads, register(&mut world, regs::REFUSED_DOORBELLS.offset())), ([500, 500], 0));
        // The published protocol interrupts for each frame.
        assert!(entries > 1 || world.interrupts == 1000, "{}", world.interrupts);
    }
}

/// What the paper's Figure 15 shows of a frame that is sent: doorbell, descriptor, frame, interrupt of vector 0; and of one that comes:
/// frame, descriptor, interrupt of vector 1, doorbell, the next descriptor.
#[test]
fn a_ring_of_one_speaks_the_published_protocol() {
    let frames = Frames::new();
    let mut world = world(frames.clone(), 1, Frames::new(), false);
    world.run(us(10));
    world.log.clear();
    frames.put(vec![7; 98].into());
    world.wake(0, FRAMES);
    world.run(us(20));
    let seen: Vec<_> = world.log.iter().map(|entry| (entry.1, entry.3)).collect();
    assert_eq!(seen, [("write", 98), ("write", 16), ("mmio write", 4), ("read", 16)]);
    assert_eq!(world.messages, [1]);
    assert_eq!(world.log[1].2, world.log[3].2, "there is one descriptor");
    let mut descriptor = [0; 16];
    let ring = world.log[1].2;
    HostMemory::read(&world.ram, ring, &mut descriptor);
    // Taken by the driver and given anew.
    assert_eq!(Descriptor::from_bytes(&descriptor).length, 2048);

    let driver = Frames::new();
    driver.put(vec![8; 98].into());
    let mut world = self::world(frames.clone(), 1, driver, false);
    world.run(us(20));
    let seen: Vec<_> = world.log.iter().map(|entry| (entry.1, entry.3)).skip(5).collect();
    assert_eq!(seen, [("read", 16), ("read", 16), ("read", 98)], "receive descriptor, ours, frame");
    assert_eq!(world.messages, [0]);
    assert_eq!(frames.take(), Some(vec![8; 98].into()));
}

/// Between two `Frames` the NIC is a wire; frames without room and frames that are too long are dropped and counted.
#[test]
fn dropped_and_too_long_frames_are_counted() {
    let (outside, stack) = (Frames::new(), Frames::new());
    let mut world = world(outside.clone(), 4, stack.clone(), false);
    world.run(us(10));
    let put = (0..1030u32).filter(|n| outside.put(n.to_le_bytes().repeat(20).into())).count();
    assert_eq!((put, outside.dropped().inward), (1024, 6));
    outside.take();
    world.wake(0, FRAMES);
    world.run(us(10_000));
    let came: Vec<_> = std::iter::from_fn(|| stack.take()).collect();
    let sent: Vec<Payload> = (0..1024u32).map(|n| n.to_le_bytes().repeat(20).into()).collect();
    assert_eq!(came, sent);
    outside.put(vec![0; 4096].into());
    outside.put(vec![1; 60].into());
    world.wake(0, FRAMES);
    world.run(us(20_000));
    assert_eq!((stack.take(), stack.take()), (Some(vec![1; 60].into()), None));
    assert_eq!(register(&mut world, regs::RX_TOO_LONG.offset()), 1);
    assert_eq!(world.faults, Vec::<String>::new());
}

/// A line of 10 Gb/s against a ring of one: what comes meanwhile is lost, the load counts how much, and nothing comes twice.
#[test]
fn loss_is_counted_where_the_line_is_faster_than_the_ring() {
    let traffic = Traffic { bytes: 60, rate: None, count: None };
    let mut world = world(
        CablePort::new(Cable::Source(traffic), Speed::TEN_GIGABIT),
        1,
        FrameLoad::new(60, 0, 300),
        false,
    );
    world.run(us(1000));
    assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
    let frames = register(&mut world, regs::RX_FRAMES.offset());
    assert!(frames >= 300, "{frames}");
}

/// Descriptors and frames that cannot be read are passed over, and the driver goes on.
#[test]
fn unreadable_memory_costs_one_frame() {
    let (outside, stack) = (Frames::new(), Frames::new());
    for n in 0..8u8 {
        stack.put(vec![n; 60 + usize::from(n)].into());
    }
    let mut world = world(outside.clone(), 8, stack.clone(), false);
    // The first buffer of the transmit ring: it follows its descriptors.
    world.poison = Some(0x10_1000);
    world.run(us(1000));
    let lengths: Vec<u64> = std::iter::from_fn(|| outside.take()).map(|frame| frame.len()).collect();
    assert_eq!(lengths, [61, 62, 63, 64, 65, 66, 67]);
    assert_eq!([regs::TX_FRAMES, regs::TX_ERRORS].map(|at| register(&mut world, at.offset())), [7, 1]);

    let outside = Frames::new();
    let mut world = self::world(outside.clone(), 8, stack.clone(), false);
    // The first batch of the receive ring's descriptors, behind the transmit ring and its 8 buffers.
    world.poison = Some(0x10_0000 + 4096 + 8 * 2048);
    world.run(us(10));
    // The driver gives them anew at once.
    let errors = register(&mut world, regs::RX_ERRORS.offset());
    assert!(errors >= 8 && errors.is_multiple_of(8), "{errors}");
    world.poison = None;
    outside.put(vec![9; 60].into());
    world.wake(0, FRAMES);
    world.run(us(1000));
    assert_eq!(stack.take(), Some(vec![9; 60].into()));
}

/// A doorbell that goes back, or posts more than there is room for, changes nothing; one that was lost is made good by the next.
#[test]
fn doorbells_are_absolute() {
    let mut world =
        Ideal::new(false).device("nic", SimpleNic::new(SimpleNicConfig::default(), Frames::new()));
    let mut write = |at: u64, value: u32| world.write(BAR, at, value.to_le_bytes().into());
    write(regs::ENABLED.offset(), 1);
    write(regs::TX_SIZE.offset(), 8);
    write(regs::TX_IDX.offset(), 2);
    write(regs::TX_IDX.offset(), 9); // 8 at most
    write(regs::TX_IDX.offset(), 1); // back
    write(regs::TX_IDX.offset(), 5); // 3 and 4 with it
    world.run(us(100));
    assert_eq!(register(&mut world, regs::REFUSED_DOORBELLS.offset()), 2);
    assert_eq!(register(&mut world, regs::TX_HEAD.offset()), 5);
}

/// A host or bridge may write a 64-bit base in two halves, in either order.
#[test]
fn a_base_may_come_in_halves() {
    let halves = [(regs::TX_DESC_BASE.offset(), 0x1000_u32), (regs::TX_DESC_BASE.offset() + 4, 2)];
    for halves in [halves, [halves[1], halves[0]]] {
        let mut world =
            Ideal::new(false).device("nic", SimpleNic::new(SimpleNicConfig::default(), Frames::new()));
        let mut write = |at: u64, value: u32| world.write(BAR, at, value.to_le_bytes().into());
        write(regs::ENABLED.offset(), 1);
        write(regs::TX_SIZE.offset(), 8);
        halves.into_iter().for_each(|(at, half)| write(at, half));
        write(regs::TX_IDX.offset(), 1);
        world.run(us(100));
        let read = world.log.iter().find(|entry| entry.1 == "read").expect("a descriptor is fetched");
        assert_eq!(read.2, 0x2_0000_1000);
    }
}

/// Interrupts of a vector keep their distance, and the last thing to tell is told.
#[test]
fn moderation_keeps_interrupts_apart() {
    let traffic = Traffic { bytes: 60, rate: Some(1_000_000_000), count: Some(200) };
    let rings = SimpleNicRings { entries: 64, moderation: Duration::from_us(10) };
    let mut world = Ideal::new(false)
        .device(
            "nic",
            SimpleNic::new(
                SimpleNicConfig::default(),
                CablePort::new(Cable::Source(traffic), Speed::TEN_GIGABIT),
            ),
        )
        .host(SimpleNicDriver::new("nic", rings, FrameLoad::new(60, 0, 200)));
    world.run(us(10_000));
    // 200 frames in 96 us.
    assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
    assert!((9..=12).contains(&world.interrupts), "{}", world.interrupts);
}

/// A driver that lost its doorbell on the way rings again.
#[test]
fn a_lost_doorbell_is_rung_again() {
    let (outside, stack) = (Frames::new(), Frames::new());
    let mut world = world(outside.clone(), 4, stack.clone(), false);
    world.run(us(10));
    world.lose = Some(regs::TX_IDX.offset());
    stack.put(vec![3; 60].into());
    world.wake_host(FRAMES);
    world.run(us(50_000));
    assert_eq!((outside.take(), world.lose), (None, None));
    world.run(us(200_000));
    assert_eq!(outside.take(), Some(vec![3; 60].into()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the ring, the frames and when they come: each passes once, in order, in both directions.
    #[test]
    fn nothing_is_lost_or_doubled(
        entries in 2u32..40,
        bursts in prop::collection::vec((1usize..50, 1u64..40, any::<bool>()), 1..12),
    ) {
        let (outside, stack) = (Frames::new(), Frames::new());
        let mut world = world(outside.clone(), entries, stack.clone(), false);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (number, wait, down) in bursts {
            for _ in 0..number {
                let (handle, list): (_, &mut Vec<Payload>) =
                    if down { (&outside, &mut received) } else { (&stack, &mut sent) };
                let frame = Payload::from(vec![list.len() as u8; 60 + list.len() % 1440]);
                prop_assert!(handle.put(frame.clone()));
                list.push(frame);
            }
            world.wait(Duration::from_us(wait));
            if down { world.wake(0, FRAMES) } else { world.wake_host(FRAMES) }
        }
        world.wait(Duration::from_ms(5));
        prop_assert_eq!(&world.faults, &Vec::<String>::new());
        prop_assert_eq!(std::iter::from_fn(|| outside.take()).collect::<Vec<_>>(), sent);
        prop_assert_eq!(std::iter::from_fn(|| stack.take()).collect::<Vec<_>>(), received);
        prop_assert!(world.most_in_flight <= 64 + 2 + 2 * entries as usize);
    }
}
