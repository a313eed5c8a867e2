//! The storage device and dd on an ideal driver.

use crate::ideal::Ideal;
use tlplab_device::storage::dd::written;
use tlplab_device::storage::{SECTOR, regs};
use tlplab_device::*;
use tlplab_units::{Duration, Time};

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

fn load(write: bool, sectors: u64, request: u64) -> DdLoad {
    let (cost, ahead, start) = (Duration::from_ns(500), Duration::ZERO, Duration::ZERO);
    let request = request * SECTOR;
    DdLoad { write, block: sectors * SECTOR, count: 2, request, cost, ahead, page_list: false, start }
}

#[test]
fn every_sector_is_moved_once_and_in_order() {
    use InterruptMode::{Intx, Msi, MsiX};
    for (mode, write, length_only, in_flight, sectors, request) in [
        (MsiX, false, false, 1, 10, 4),
        (Msi, true, false, 1, 10, 4),
        (Intx, false, false, 3, 7, 7),
        (Intx, true, false, 5, 7, 3),
        (Intx, false, true, 8, 64, 32),
        (MsiX, true, true, 1, 1, 1),
    ] {
        let config = StorageConfig { access: Duration::from_us(1), sectors_in_flight: in_flight };
        let mut world = Ideal::new(length_only)
            .device("disk", Storage::new(config))
            .host(Dd::new("disk", load(write, sectors, request)));
        (world.mode, world.strangers) = (mode, true);
        world.run(us(10_000));
        assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
        assert!(!world.pin, "what was acknowledged is lowered");
        let moved: Vec<_> = world.ops(if write { "read" } else { "write" });
        let places: Vec<u64> = moved.iter().filter(|op| op.1 == SECTOR).map(|op| op.0).collect();
        let first = places[0];
        let wanted: Vec<u64> = (0..2 * sectors).map(|n| first + n % sectors * SECTOR).collect();
        assert_eq!(places, wanted, "{in_flight} in flight");
        let requests = 2 * sectors.div_ceil(request);
        let commands = world.ops("read").iter().filter(|op| op.1 == Command::BYTES).count() as u64;
        assert_eq!((commands, world.interrupts), (requests, requests));
        assert!(world.most_in_flight <= in_flight as usize + 2);
        let measured = world.program.as_ref().map(|dd| dd.measured()).expect("a program")[0];
        assert_eq!(measured.bytes, 2 * sectors * SECTOR);
        // Nothing is faster than its parts: the host's cost and the medium's access, one after the other.
        let least = 2 * sectors * 500_000_000 + 2 * sectors.div_ceil(in_flight.into()) * 1_000_000_000;
        assert!((measured.to - measured.from).as_fs() > least);
    }
}

#[test]
fn one_sector_at_a_time_takes_its_access_and_its_dma() {
    // The ideal driver accepts a write after 10 ns.
    let mut world = Ideal::new(true)
        .device("disk", Storage::new(StorageConfig::default()))
        .host(Dd::new("disk", load(false, 8, 8)));
    world.run(us(1000));
    let writes: Vec<u64> = world
        .log
        .iter()
        .filter(|(_, what, _, bytes)| *what == "write" && *bytes == SECTOR)
        .map(|(at, ..)| at.as_fs() / 1_000_000)
        .collect();
    let gaps: Vec<u64> = writes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..7], [1010; 7]);
}

/// The pages of a buffer that is scattered: each sector goes where the list says, and the list is read entry by entry, one before each.
#[test]
fn a_list_names_the_page_of_each_sector() {
    for (write, length_only) in [(false, false), (true, false), (false, true)] {
        let listed = DdLoad { page_list: true, ..load(write, 6, 4) };
        let mut world = Ideal::new(length_only)
            .device("disk", Storage::new(StorageConfig::default()))
            .host(Dd::new("disk", listed));
        world.run(us(1000));
        assert_eq!((world.faults.clone(), world.finished), (vec![], 1));
        let places = |world: &Ideal, bytes| -> Vec<u64> {
            let ops = world.ops(if write || bytes == 8 { "read" } else { "write" });
            ops.iter().filter(|op| op.1 == bytes).map(|op| op.0).collect()
        };
        let (entries, moved) = (places(&world, 8), places(&world, SECTOR));
        let first = entries[0];
        let in_request = [0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0, 1];
        assert_eq!(entries, in_request.map(|n| first + 8 * n));
        let buffer = moved[0];
        assert_eq!(moved, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5].map(|n| buffer + SECTOR * n));
    }
}

/// What the host does ahead for a request takes as long as the device is busy with the one before, or longer: then the device waits.
#[test]
fn the_host_works_ahead_while_the_device_is_busy() {
    let took = |ahead| {
        let ahead = DdLoad { ahead: Duration::from_ns(ahead), ..load(false, 8, 4) };
        let mut world = Ideal::new(true)
            .device("disk", Storage::new(StorageConfig::default()))
            .host(Dd::new("disk", ahead));
        world.run(us(1000));
        let measured = world.program.as_ref().map(|dd| dd.measured()).expect("a program")[0];
        (measured.to - measured.from).as_fs() / 1_000_000
    };
    let alone = took(0);
    // Only the first request waits for what nothing hides: 4 sectors.
    assert_eq!(took(900), alone + 4 * 900);
    // 4 requests of 4 sectors, each of which waits for 4 times 5 us, and the last one's own time.
    let last = alone / 4;
    assert!((4 * 20_000 + 4 * 2_000..=4 * 22_000 + last).contains(&took(5_000)), "{}", took(5_000));
}

/// The disk's side alone, with legacy interrupts.
struct Bench {
    disk: Storage,
    next_op: u64,
    mode: tlplab_device::InterruptMode,
}

impl Bench {
    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut cx = Context::new(Time::ZERO, &[], &mut self.next_op, &mut actions);
        cx = cx.with_interrupts(self.mode);
        self.disk.handle(&mut cx, event);
        actions
    }
    fn write(&mut self, offset: u64, value: u32) -> Vec<Action> {
        self.tell(Event::MmioWrite { bar: 0, offset, data: value.to_le_bytes().into() })
    }
    fn read(&mut self, offset: u64) -> (Vec<Action>, Payload) {
        let mut actions = self.tell(Event::MmioRead { bar: 0, offset, bytes: 4, reply: ReplyToken(0) });
        match actions.pop() {
            Some(Action::Reply { data, .. }) => (actions, data),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn written_data_reads_back_and_the_pin_goes_up_and_down() {
    let mode = tlplab_device::InterruptMode::Intx;
    let mut bench = Bench { disk: Storage::new(StorageConfig::default()), next_op: 0, mode };
    bench.write(regs::BASE.offset(), 0x8000);
    bench.write(regs::ENTRIES.offset(), 4);
    let op = OpId(0);
    let fetch = Action::DmaRead { op, stream: 0, address: 0x8000, bytes: 32, carry: true };
    assert_eq!(bench.write(regs::TAIL.offset(), 1), [fetch]);
    let command =
        Command { address: 0x1_0000, lba: 5, sectors: 1, write: true, interrupt: true, listed: false };
    let actions = bench.tell(Event::DmaReadDone { op, result: Ok(command.to_bytes().to_vec().into()) });
    let op = OpId(1);
    assert_eq!(actions, [Action::DmaRead { op, stream: 1, address: 0x1_0000, bytes: SECTOR, carry: false }]);
    let accessed = bench.tell(Event::DmaReadDone { op, result: Ok(written(5).into()) });
    assert_eq!(accessed, [Action::Timer { at: us(1), id: 0 }]);
    let status = bench.tell(Event::Timer { id: 0 });
    let op = OpId(2);
    let done = Command::DONE.to_le_bytes().into();
    assert_eq!(status, [Action::DmaWrite { op, stream: 3, address: 0x8000 + Command::STATUS, data: done }]);
    // Not before the status word was accepted: non-posted, it could be overtaken.
    assert_eq!(bench.read(regs::INTERRUPT.offset()), (vec![], [0; 4].into()));
    let raised = bench.tell(Event::DmaWriteAccepted { op });
    assert_eq!(raised, [Action::Intx { stream: 3, asserted: true }]);
    let lowered = Action::Intx { stream: 3, asserted: false };
    assert_eq!(bench.read(regs::INTERRUPT.offset()), (vec![lowered], [1, 0, 0, 0].into()));
    assert_eq!(bench.read(regs::INTERRUPT.offset()), (vec![], [0; 4].into()));
    assert_eq!(bench.read(regs::HEAD.offset()), (vec![], [1, 0, 0, 0].into()));
    bench.tell(Event::Reset);
    assert_eq!((bench.disk.sector(5), bench.disk.sector(6)), (written(5), storage::unwritten(6)));
    assert_eq!(bench.read(regs::HEAD.offset()).1, [0; 4].into());
}

#[test]
fn a_request_that_fails_is_noticed() {
    let mut world = Ideal::new(false)
        .device("disk", Storage::new(StorageConfig::default()))
        .host(Dd::new("disk", load(true, 4, 2)));
    // The ring is the first page that the driver takes, the buffer the next: its third sector.
    world.poison = Some(0x10_1000 + 2 * SECTOR);
    world.run(us(1000));
    assert_eq!(world.faults, ["disk failed the request at byte 8192"]);
}
