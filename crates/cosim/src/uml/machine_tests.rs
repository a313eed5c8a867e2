//! The fabric as a guest's machine: what a processor sees of it, and when.

use super::machine::{FabricMachine, Processor, Stop};
use super::memory::SharedMemory;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options};
use tlplab_uml::pcidev::Access;
use tlplab_uml::{Interrupt, Machine};
use tlplab_units::{Duration, Time};

/// The addresses of BARs of a guest.
const BAR: u64 = 0xF000_0000;
/// The host bridge is 00.0.
const PORT: u32 = 1 << 15;
const DEVICE: u32 = 1 << 20;
/// The address of messages of the kernel.
const MESSAGES: u64 = 0xA_0000;

/// A byte takes 4 ns; nothing else on the wires.
const MEMORY: &str = r#"
title = "memory"
host = { profile = "ideal", latency = "150ns" }
[device.dev]
under = "host.rp0"
link = { generation = 1, width = 1, skp = "off" }
latency = "200ns"
model = "memory"
bar = "1MiB"
"#;

const NIC: &str = r#"
title = "NIC"
host = { profile = "ideal" }
[device.dev]
under = "host.rp0"
link = "gen2 x1"
model = "nic"
"#;

struct Bench {
    run: Run,
    processor: Processor,
}

impl Bench {
    fn new(text: &str) -> Self {
        let read = |_: &str| Ok(text.to_owned());
        let options = Options { guest: Some(GuestKind::UserMode), ..Options::default() };
        let experiment = Experiment::parse_with(&read, "t.toml", &options).expect("an experiment");
        let inputs = Inputs { memory: Some(Box::new(SharedMemory::new())), ..Inputs::default() };
        let run = Run::new(experiment, inputs).expect("a run");
        Self { run, processor: Processor::default() }
    }

    /// A function below the first root port, which has its number, its addresses and leave to use them.
    fn set_up(text: &str) -> Self {
        let mut bench = Self::new(text);
        // Links train, and functions become ready.
        bench.advance(Duration::from_ms(200));
        bench.config(PORT + 0x18, 4, 0x01_01_00);
        // The window of the root port: all that begins at 0xF000_0000 up to 0xF0FF_FFFF.
        bench.config(PORT + 0x20, 4, 0xF0F0_F000);
        // No prefetchable memory: zeros would be a window over the first megabyte, where messages go.
        bench.config(PORT + 0x24, 4, 0x0000_FFF0);
        bench.config(PORT + 0x04, 2, 0x6);
        bench.config(DEVICE + 0x10, 4, BAR as u32);
        bench.config(DEVICE + 0x04, 2, 0x6);
        bench
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut FabricMachine<'_>) -> T) -> T {
        let processor = &mut self.processor;
        act(&mut FabricMachine { run: &mut self.run, residents: &mut (), processor })
    }

    /// The data of an access, and its time.
    fn access(&mut self, access: Access) -> (Vec<u8>, Duration) {
        self.with(|machine| {
            let begun = machine.now();
            let data = machine.access(&access, Time::NEVER).expect("it ends").expect("without a limit");
            (data, machine.now().saturating_since(begun))
        })
    }

    fn config(&mut self, offset: u32, bytes: u32, value: u32) {
        let data = value.to_le_bytes()[..bytes as usize].to_vec();
        self.access(Access::ConfigWrite { offset, data });
    }

    fn look(&mut self, offset: u32, bytes: u32) -> Vec<u8> {
        self.access(Access::ConfigRead { offset, bytes }).0
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Duration {
        self.access(Access::MemoryWrite { address: BAR + offset, data: data.to_vec() }).1
    }

    fn read(&mut self, offset: u64, bytes: u32) -> (Vec<u8>, Duration) {
        self.access(Access::MemoryRead { address: BAR + offset, bytes })
    }

    fn advance(&mut self, by: Duration) -> Time {
        self.with(|machine| {
            let until = machine.now() + by;
            while let Err(stop) = machine.advance(until) {
                assert!(matches!(stop, Stop::Breath), "{stop:?}");
            }
            machine.now()
        })
    }

    /// The place of the capability of a function with this number.
    fn capability(&mut self, function: u32, number: u8) -> u32 {
        let mut at = self.look(function + 0x34, 1)[0];
        for _ in 0..48 {
            let found = self.look(function + u32::from(at), 2);
            if found[0] == number {
                return function + u32::from(at);
            }
            at = found[1];
        }
        panic!("the function has no capability {number:#x}")
    }

    fn register(&mut self, offset: u32) -> u32 {
        u32::from_le_bytes(self.look(offset, 4).try_into().expect("4 B"))
    }

    /// As Linux puts a port to sleep: events of its slot are enabled, their interrupt is not; it may send power management events.
    fn put_to_sleep(&mut self, port: u32) {
        let (pcie, power) = (self.capability(port, 0x10), self.capability(port, 1));
        self.config(pcie + 0x18, 2, 1 << 3);
        self.config(pcie + 0x1A, 2, 0xFFFF);
        self.config(power + 4, 2, 1 << 8 | 3);
    }
}

#[test]
fn absent_functions_are_all_ones() {
    let mut bench = Bench::set_up(MEMORY);
    let none = [31 << 15, 7 << 12, DEVICE + (1 << 12), DEVICE + (5 << 15), 7 << 20, 255 << 20];
    for function in none {
        for bytes in [1, 2, 4, 8] {
            assert_eq!(bench.look(function, bytes), vec![0xFF; bytes as usize], "{function:#x}");
        }
        bench.config(function + 4, 2, 6);
    }
}

/// Before software has given the root port bus numbers, nothing is below it.
#[test]
fn nothing_is_below_a_port_without_bus_numbers() {
    let mut bench = Bench::new(MEMORY);
    assert_eq!(bench.look(DEVICE, 4), [0xFF; 4]);
    assert_ne!(bench.look(PORT, 4), [0xFF; 4]);
}

/// Eight bytes are two registers, as the processor's are of four at most.
#[test]
fn configuration_is_read_in_registers() {
    let mut bench = Bench::set_up(MEMORY);
    let (first, second) = (bench.look(DEVICE, 4), bench.look(DEVICE + 4, 4));
    assert_ne!(first, [0xFF; 4]);
    assert_eq!(bench.look(DEVICE, 8), [&first[..], &second].concat());
    let bytes: Vec<u8> = (0..4).flat_map(|at| bench.look(DEVICE + at, 1)).collect();
    assert_eq!(bytes, first);
    assert_eq!(bench.look(DEVICE + 2, 2), first[2..]);
    // The size of its BAR: 1 MiB.
    bench.config(DEVICE + 0x10, 4, u32::MAX);
    let size = u32::from_le_bytes(bench.look(DEVICE + 0x10, 4).try_into().expect("4 B")) & !0xF;
    assert_eq!(!size + 1, 1 << 20);
}

#[test]
fn memory_reads_return_the_written_bytes() {
    let mut bench = Bench::set_up(MEMORY);
    let data: Vec<u8> = (0..300u32).map(|at| (at * 7) as u8).collect();
    bench.write(0x123, &data);
    assert_eq!(bench.read(0x123, 300).0, data);
    assert_eq!(bench.read(0x124, 1).0, data[1..2]);
    assert_eq!(bench.read(0x8000, 4).0, [0; 4], "nobody has written there");
}

#[test]
fn unclaimed_addresses_read_all_ones() {
    let mut bench = Bench::set_up(MEMORY);
    let read = |address| Access::MemoryRead { address, bytes: 4 };
    for address in [0xF080_0000, 0xD000_0000] {
        assert_eq!(bench.access(read(address)).0, [0xFF; 4]);
    }
    bench.access(Access::MemoryWrite { address: 0xD000_0000, data: vec![1; 4] });
    // Without leave to answer.
    bench.config(DEVICE + 4, 2, 0);
    assert_eq!(bench.read(0, 4).0, [0xFF; 4]);
}

/// Request: 12 B of header and 8 B of framing; answer: 12 B, the data, and 8 B. A byte takes 4 ns.
#[test]
fn read_latency_matches_the_hand_calculation() {
    let mut bench = Bench::set_up(MEMORY);
    // So far from what was written before that no acknowledgement is on the wires, and no refresh.
    bench.advance(Duration::from_us(5));
    let mut took = Vec::new();
    for bytes in [4u32, 8, 64] {
        let (_, time) = bench.read(0x40, bytes);
        took.push(time.as_ns() as i64 - 4 * i64::from(20 + 20 + bytes));
        bench.advance(Duration::from_us(3));
    }
    // The host's latency there and back, and the device's.
    assert_eq!(took, [150 + 200 + 200 + 150; 3]);
}

/// An access takes the same time in strides of any length, and goes no further than its limit.
#[test]
fn an_access_goes_on_where_its_limit_was() {
    let whole = Bench::set_up(MEMORY).access(Access::ConfigRead { offset: DEVICE, bytes: 8 });
    for stride in [1, 7, 100, 5000] {
        let mut bench = Bench::set_up(MEMORY);
        let begun = bench.with(|machine| machine.now());
        let mut limit = begun;
        let data = loop {
            limit += Duration::from_ns(stride);
            let read = Access::ConfigRead { offset: DEVICE, bytes: 8 };
            let data = bench.with(|machine| machine.access(&read, limit)).expect("it goes on");
            let now = bench.with(|machine| machine.now());
            assert!(now <= limit, "{now} beyond {limit}");
            if let Some(data) = data {
                break data;
            }
            assert_eq!(now, limit);
        };
        let took = bench.with(|machine| machine.now()).saturating_since(begun);
        assert_eq!((data, took), whole, "strides of {stride} ns");
    }
}

/// It is over when it has left the processor for the root port.
#[test]
fn a_posted_write_takes_the_hosts_latency() {
    let mut bench = Bench::set_up(MEMORY);
    for bytes in [1, 4, 64] {
        bench.advance(Duration::from_us(5));
        assert_eq!(bench.write(0x40, &vec![1; bytes]), Duration::from_ns(150));
    }
}

/// A configuration write is not posted: header, register and framing one way, header and framing back.
#[test]
fn a_configuration_write_waits_for_its_completion() {
    let mut bench = Bench::set_up(MEMORY);
    bench.advance(Duration::from_us(5));
    let (_, time) = bench.access(Access::ConfigWrite { offset: DEVICE + 0x3C, data: vec![5] });
    assert!(time >= Duration::from_ns(4 * (24 + 20)), "{time}");
    bench.advance(Duration::from_us(5));
    // The host's own functions are near.
    let (_, own) = bench.access(Access::ConfigWrite { offset: PORT + 0x3C, data: vec![5] });
    assert!(own < time, "{own}");
}

#[test]
fn time_passes_to_where_it_is_wanted() {
    let mut bench = Bench::set_up(MEMORY);
    let now = bench.advance(Duration::ZERO);
    let until = now + Duration::from_fs(1_234_567_891);
    assert_eq!(bench.advance(Duration::from_fs(1_234_567_891)), until);
    // A minute after an access: once what is under way is over, nothing happens.
    bench.read(0, 4);
    let (until, events) = (bench.run.fabric().now(), bench.run.fabric().events());
    let until = until + Duration::from_ms(60_000);
    assert_eq!(bench.advance(Duration::from_ms(60_000)), until);
    let events = bench.run.fabric().events() - events;
    assert!(events < 200, "{events} events");
    bench.with(|machine| machine.advance(Time::NEVER)).expect("it goes nowhere");
    let now = bench.with(|machine| machine.now());
    assert!(now.saturating_since(until) <= Duration::from_us(100), "{now} after {until}");
    assert!(bench.processor.interrupts.is_empty());
}

/// `ICS` raises a cause, `IMS` lets it interrupt; `ICR` is read to clear it.
const ICR: u64 = 0xC0;
const ICS: u64 = 0xC8;
const IMS: u64 = 0xD0;

#[test]
fn a_message_arrives_as_it_was_written() {
    let mut bench = Bench::set_up(NIC);
    let msi = bench.capability(DEVICE, 5);
    bench.config(msi + 4, 4, MESSAGES as u32);
    bench.config(msi + 8, 4, 0);
    bench.config(msi + 12, 2, 0x4321);
    bench.config(msi + 2, 2, 1);
    bench.write(IMS, &4u32.to_le_bytes());
    bench.write(ICS, &4u32.to_le_bytes());
    let begun = bench.with(|machine| machine.now());
    let stopped = bench.advance(Duration::from_ms(5));
    assert_eq!(bench.processor.interrupts, [Interrupt::Message { data: 0x4321 }]);
    assert!(stopped < begun + Duration::from_ms(1), "it stops at the interrupt: {stopped}");
}

#[test]
fn a_wire_that_is_asserted_arrives_once() {
    let mut bench = Bench::set_up(NIC);
    bench.write(IMS, &0xFFu32.to_le_bytes());
    for _ in 0..3 {
        bench.write(ICS, &4u32.to_le_bytes());
        bench.advance(Duration::from_us(100));
        assert_eq!(bench.processor.interrupts, [Interrupt::Wire], "a level is one interrupt");
        bench.read(ICR, 4);
        bench.advance(Duration::from_us(100));
    }
    bench.processor.interrupts.clear();
    bench.write(ICS, &4u32.to_le_bytes());
    bench.advance(Duration::from_us(100));
    assert_eq!(bench.processor.interrupts, [Interrupt::Wire]);
}

#[test]
fn a_run_past_its_stop_time_returns_over() {
    let mut bench = Bench::set_up(&MEMORY.replace("title", "stop = \"201ms\"\ntitle"));
    let over = bench.with(|machine| machine.advance(Time::ZERO + Duration::from_ms(202)));
    assert!(matches!(over, Err(Stop::Over)), "{over:?}");
    let over =
        bench.with(|machine| machine.access(&Access::MemoryRead { address: BAR, bytes: 4 }, Time::NEVER));
    assert!(matches!(over, Err(Stop::Over)), "{over:?}");
}

/// A card comes and goes below a port that sleeps. Root Status names the port, and its interrupt is the root port's; one event is shown at a time.
#[test]
fn a_sleeping_port_is_woken_by_its_slot() {
    let below_switch = r#"
title = "slot"
host = { profile = "ideal" }
fault = [{ link = "dev", down = "300ms", until = "310ms" }]
[switch.sw0]
under = "host.rp0"
link = "gen1 x1"
[device.dev]
under = "sw0"
link = "gen1 x1"
model = "memory"
"#;
    let mut bench = Bench::new(below_switch);
    bench.advance(Duration::from_ms(200));
    let (upstream, downstream) = (1 << 20, 2 << 20);
    bench.config(PORT + 0x18, 4, 0x03_01_00);
    bench.config(upstream + 0x18, 4, 0x03_02_01);
    bench.config(downstream + 0x18, 4, 0x03_03_02);
    let (root, msi) = (bench.capability(PORT, 0x10), bench.capability(PORT, 5));
    bench.config(msi + 4, 4, MESSAGES as u32);
    bench.config(msi + 12, 2, 0x77);
    bench.config(msi + 2, 2, 1);
    bench.config(PORT + 4, 2, 0x6);
    bench.config(root + 0x1C, 2, 1 << 3);
    bench.put_to_sleep(downstream);
    assert!(bench.processor.interrupts.is_empty());

    bench.advance(Duration::from_ms(150));
    assert_eq!(bench.processor.interrupts, [Interrupt::Message { data: 0x77 }], "the card has gone");
    assert_eq!(bench.register(root + 0x20), 1 << 16 | 0x0200, "of 02:00.0");
    let power = bench.capability(downstream, 1);
    assert_eq!(bench.register(power + 4) as u16 & (1 << 15 | 3), 1 << 15 | 3, "it has told, and sleeps");
    // Software clears the events, and the next tells again.
    let slot = bench.capability(downstream, 0x10);
    bench.config(slot + 0x1A, 2, 0xFFFF);
    bench.processor.interrupts.clear();
    bench.advance(Duration::from_ms(150));
    assert!(bench.processor.interrupts.is_empty(), "Root Status was not cleared");
    assert_eq!(bench.register(root + 0x20), 3 << 16 | 0x0200, "the card's return waits");
    bench.config(root + 0x22, 2, 1);
    bench.advance(Duration::from_ms(1));
    assert_eq!(bench.processor.interrupts, [Interrupt::Message { data: 0x77 }]);
    assert_eq!(bench.register(root + 0x20), 1 << 16 | 0x0200);
    bench.config(root + 0x22, 2, 1);
    assert_eq!(bench.register(root + 0x20) >> 16, 0);
}

/// Awake, or without leave, a port tells by its slot's interrupt or not at all.
#[test]
fn a_port_that_is_awake_sends_no_power_management_event() {
    for (sleeps, leave) in [(false, true), (true, false)] {
        let mut bench =
            Bench::new(&MEMORY.replace("title", "fault = [{ link = \"dev\", down = \"300ms\" }]\ntitle"));
        bench.advance(Duration::from_ms(200));
        bench.config(PORT + 0x18, 4, 0x01_01_00);
        bench.put_to_sleep(PORT);
        let (root, power) = (bench.capability(PORT, 0x10), bench.capability(PORT, 1));
        bench.config(power + 4, 2, u32::from(leave) << 8 | if sleeps { 3 } else { 0 });
        bench.advance(Duration::from_ms(150));
        assert_eq!(bench.register(root + 0x20) >> 16, 0);
        // With both, what has happened meanwhile is told.
        bench.config(power + 4, 2, 1 << 8 | 3);
        bench.advance(Duration::from_ms(1));
        assert_eq!(bench.register(root + 0x20), 1 << 16 | 0x0008, "of 00:01.0");
    }
}
