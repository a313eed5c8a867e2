//! The built-in devices with their drivers on an ideal driver.

use crate::ideal::Ideal;
use tlplab_device::*;
use tlplab_units::{Duration, Time};

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

/// Writes, reads back, reads outside.
#[derive(Default)]
struct Probe {
    base: u64,
    seen: Vec<Result<Payload, DmaError>>,
}
impl HostProgram for Probe {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                self.base = cx.device("mem").unwrap().1.bars[0].unwrap().0;
                cx.mmio_write(0, self.base + 0x7FE, [1, 2, 3, 4].into());
                cx.mmio_read(0, self.base + 0x7FD, 6);
                cx.mmio_read(0, self.base + 0x7FD, 0);
            }
            HostEvent::MmioReadDone { result, .. } => {
                self.seen.push(result);
                if self.seen.len() == 2 {
                    assert_eq!(self.seen, [Ok([0, 1, 2, 3, 4, 0].into()), Ok(vec![].into())]);
                    cx.finished();
                }
            }
            _ => {}
        }
    }
}

#[test]
fn memory_remembers() {
    for length_only in [false, true] {
        // In a length-only run bytes that were written are still there.
        let mut world = Ideal::new(length_only).device("mem", Memory::new(4096)).host(Probe::default());
        world.run(us(10));
        assert_eq!(world.finished, 1);
    }
}

#[test]
fn memory_ends() {
    let mut memory = Memory::new(4096);
    let (mut next_op, mut actions) = (0, Vec::new());
    let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions).with_length_only(true);
    let reply = ReplyToken(0);
    memory.handle(&mut cx, Event::MmioRead { bar: 0, offset: 4090, bytes: 8, reply });
    memory.handle(&mut cx, Event::MmioRead { bar: 0, offset: 4090, bytes: 6, reply });
    let refusal = Refusal::UnsupportedRequest;
    assert_eq!(
        actions,
        [
            Action::ReplyError { token: reply, refusal },
            Action::Reply { token: reply, data: Payload::Length(6) }
        ]
    );
}

#[test]
fn copies_are_right() {
    for length_only in [false, true] {
        let mut world =
            Ideal::new(length_only).device("dma", Dma::new()).host(DmaDriver::new("dma", 10_000, 7));
        world.run(us(1000));
        assert_eq!(world.faults, [""; 0]);
        assert_eq!((world.finished, world.interrupts, world.ops("write").len()), (1, 7, 7));
        assert!(world.ops("write").iter().all(|op| op.1 == 10_000));
    }
}

#[test]
fn a_failed_copy_is_noticed() {
    let mut world = Ideal::new(false).device("dma", Dma::new()).host(DmaDriver::new("dma", 64, 2));
    world.poison = Some(0x10_0000);
    world.run(us(1000));
    assert_eq!(world.faults, ["copy 0 of dma is wrong from byte 1 of 64 onwards"]);
    assert_eq!((world.finished, world.ops("write").len()), (0, 0));
}

#[test]
fn registers_read_back() {
    let mut dma = Dma::new();
    let (mut next_op, mut actions) = (0, Vec::new());
    let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
    let write = |offset, data: &[u8]| Event::MmioWrite { bar: 0, offset, data: data.into() };
    dma.handle(&mut cx, write(0x02, &[0xAA, 0xBB]));
    dma.handle(&mut cx, write(0x14, &[9, 9, 9, 9])); // read-only
    dma.handle(&mut cx, Event::MmioRead { bar: 0, offset: 0, bytes: 8, reply: ReplyToken(1) });
    dma.handle(&mut cx, Event::MmioRead { bar: 0, offset: 0x12, bytes: 4, reply: ReplyToken(2) });
    dma.handle(&mut cx, write(0x10, &[5, 0, 0, 0]));
    assert_eq!(
        actions,
        [
            Action::Reply { token: ReplyToken(1), data: [0, 0, 0xAA, 0xBB, 0, 0, 0, 0].into() },
            Action::Reply { token: ReplyToken(2), data: [0; 4].into() },
            Action::DmaRead { op: OpId(0), stream: 0, address: 0xBBAA_0000, bytes: 5, carry: false },
        ]
    );
    // A reset forgets the copy: what comes of it is not written.
    let mut actions = Vec::new();
    let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
    dma.handle(&mut cx, Event::Reset);
    dma.handle(&mut cx, Event::DmaReadDone { op: OpId(0), result: Ok(Payload::Length(5)) });
    assert_eq!(actions, []);
}

#[test]
fn the_ring_goes_round() {
    for (receive, length_only, entries, every, count) in [
        (true, false, 16, 4, 1000),
        (false, false, 16, 16, 1000),
        (true, true, 256, 16, 5000),
        (false, true, 1, 1, 10),
        (true, false, 24, 5, 77),
    ] {
        let load = RingLoad { entries, bytes: 300, receive, interrupt_every: every, count: Some(count) };
        let ring = Ring::new(RingConfig { batch: 8, depth: 12 });
        let mut world = Ideal::new(length_only).device("nic", ring).host(RingDriver::new("nic", load));
        world.run(us(100_000));
        assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
        let moved = world.ops(if receive { "write" } else { "read" });
        assert_eq!(moved.iter().filter(|op| op.1 == 300).count(), count as usize);
        // The interrupts that were asked for; several may share one.
        let asked = u64::from(count / every + u32::from(count % every != 0));
        assert!((asked / 4..=asked).contains(&world.interrupts), "{} of {asked}", world.interrupts);
        // Buffers follow each other around the ring.
        let buffers: Vec<u64> = moved.iter().filter(|op| op.1 == 300).map(|op| op.0).collect();
        let first = buffers[0];
        for (number, buffer) in buffers.iter().enumerate() {
            assert_eq!(*buffer, first + 320 * (number as u64 % u64::from(entries)));
        }
        // Descriptors are fetched in batches: 16 B each, every one once.
        let fetched: u64 = world.ops("read").iter().filter(|op| op.1 != 300).map(|op| op.1 / 16).sum();
        assert_eq!(fetched, u64::from(count));
        assert!(world.ops("read").iter().all(|op| op.1 == 300 || op.1 <= 8 * 16));
        assert!(world.most_in_flight <= 12 + 2 + entries as usize, "{}", world.most_in_flight);
    }
}

#[test]
fn descriptors_round_trip() {
    let descriptor =
        Descriptor { address: 0x1234_5678_9ABC_DEF0, bytes: 77, receive: true, interrupt: false };
    assert_eq!(
        descriptor.to_bytes(),
        [0xF0, 0xDE, 0xBC, 0x9A, 0x78, 0x56, 0x34, 0x12, 77, 0, 0, 0, 1, 0, 0, 0]
    );
    assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), descriptor);
}

#[test]
fn identities_are_checked() {
    let with = |bars: Vec<BarSpec>| Identity { bars, ..Dma::new().identity() }.check();
    assert_eq!(with(vec![BarSpec::memory(0, 64), BarSpec::memory(2, 1 << 40)]), Ok(()));
    assert_eq!(with(vec![BarSpec::memory(5, 64)]), Err(IdentityError::BarNumber(5)));
    assert_eq!(
        with(vec![BarSpec::memory(0, 64), BarSpec::registers(1, 64)]),
        Err(IdentityError::BarTwice(1))
    );
    assert_eq!(with(vec![BarSpec::memory(0, 100)]), Err(IdentityError::BarSize { index: 0, size: 100 }));
    assert_eq!(
        with(vec![BarSpec::registers(0, 1 << 40)]),
        Err(IdentityError::BarSize { index: 0, size: 1 << 40 })
    );
}

#[test]
fn drivers_without_an_allowed_interrupt_fail_with_a_message() {
    let programs: [Box<dyn HostProgram>; 4] = [
        Box::new(DmaDriver::new("it", 64, 1)),
        Box::new(RingDriver::new("it", RingLoad::default())),
        Box::new(Dd::new(
            "it",
            DdLoad {
                write: false,
                block: 4096,
                count: 1,
                request: 4096,
                cost: Duration::ZERO,
                ahead: Duration::ZERO,
                page_list: false,
                start: Duration::ZERO,
            },
        )),
        Box::new(NicDriver::new("it", NicLoad::default())),
    ];
    for program in programs {
        let mut world = Ideal::new(true).device("it", Nic::new(NicConfig::default()));
        world.program = Some(program);
        world.mode = InterruptMode::Disabled;
        world.run(Time::ZERO + Duration::from_us(1));
        assert_eq!(world.faults.len(), 1);
        assert!(world.faults[0].starts_with("it has no kind of interrupt that the host allows"));
    }
}

/// What a device does about an event; `next_op` goes on from one to the next, as its driver's does.
fn tell(device: &mut dyn Device, next_op: &mut u64, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    device.handle(&mut Context::new(Time::ZERO, &[], next_op, &mut actions), event);
    actions
}

#[test]
fn a_late_answer_after_a_reset_is_ignored() {
    let word = |offset: u64, value: u32| (offset, value.to_le_bytes().to_vec());
    // Address of a ring, its entries, and a descriptor that is posted.
    let ring = (0, [&0x1000u64.to_le_bytes()[..], &8u32.to_le_bytes(), &1u32.to_le_bytes()].concat());
    let copy = (0, [&[0; 16][..], &64u32.to_le_bytes()].concat());
    let card = [(0x008, 1), (0x100, 0x1000), (0x108, 4), (0x10C, 2), (0x120, 1)].map(|(at, to)| word(at, to));
    let frames = [(0x18, 1), (0x20, 8), (0x00, 0x1000), (0x10, 2)].map(|(at, to)| word(at, to));
    let sends = [(0x3800, 0x1000), (0x3808, 128), (0x0400, 2), (0x3818, 1)].map(|(at, to)| word(at, to));
    let port = CablePort::new(Cable::Unplugged, nic::ethernet::Speed::GIGABIT);
    type Writes = Vec<(u64, Vec<u8>)>;
    let devices: Vec<(Box<dyn Device>, u8, Writes)> = vec![
        (Box::new(Dma::new()), 0, vec![copy]),
        (Box::new(Ring::default()), 0, vec![ring.clone()]),
        (Box::new(Storage::default()), 0, vec![ring]),
        (Box::new(Tlpdma::new(1 << 21)), 0, card.into()),
        (Box::new(SimpleNic::new(SimpleNicConfig::default(), port)), 4, frames.into()),
        (Box::new(Nic::new(NicConfig::default())), 0, sends.into()),
    ];
    for (mut device, bar, writes) in devices {
        let (mut next_op, mut reads) = (0, Vec::new());
        for (offset, data) in writes {
            let write = Event::MmioWrite { bar, offset, data: data.into() };
            reads.extend(tell(&mut *device, &mut next_op, write).into_iter().filter_map(
                |action| match action {
                    Action::DmaRead { op, bytes, .. } => Some((op, bytes)),
                    _ => None,
                },
            ));
        }
        assert!(!reads.is_empty(), "it reads");
        tell(&mut *device, &mut next_op, Event::Reset);
        for (op, bytes) in reads {
            let result = Ok(vec![0x11; bytes as usize].into());
            assert_eq!(tell(&mut *device, &mut next_op, Event::DmaReadDone { op, result }), []);
            assert_eq!(tell(&mut *device, &mut next_op, Event::DmaWriteAccepted { op }), []);
        }
    }
}
