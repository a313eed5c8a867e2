//! The load generator and the trace replay on an ideal driver.

use crate::ideal::Ideal;
use tlplab_device::*;
use tlplab_units::{Duration, Time};

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}
fn load(config: LoadConfig) -> Load {
    Load::new(config, 1, "ssd").unwrap()
}

#[test]
fn sequential_slots_wrap() {
    let config = LoadConfig {
        op: LoadOp::Read,
        size: 100,
        window: 400,
        offset: 4,
        target: Target::Address(0x1000),
        count: Some(5),
        outstanding: 2,
        ..LoadConfig::default()
    };
    let mut world = Ideal::new(false).device("ssd", load(config));
    world.run(us(100));
    // 100 B take a stride of 128; offset 4 leaves room for three slots.
    assert_eq!(
        world.ops("read").iter().map(|op| op.0).collect::<Vec<_>>(),
        [0x1004, 0x1084, 0x1104, 0x1004, 0x1084]
    );
    assert!(world.ops("read").iter().all(|op| op.1 == 100));
    assert_eq!((world.finished, world.most_in_flight), (1, 2));
}

#[test]
fn both_is_two_engines() {
    let config = LoadConfig { op: LoadOp::Both, count: Some(10), outstanding: 3, ..LoadConfig::default() };
    let mut world = Ideal::new(true).device("ssd", load(config));
    world.run(us(100));
    assert_eq!((world.ops("read").len(), world.ops("write").len(), world.finished), (10, 10, 1));
    assert_eq!(world.most_in_flight, 6);
}

#[test]
fn a_rate_is_exact() {
    // 1500 B at 7 Gb/s: every 12000/7 µs·10⁻³ = 1 714 285.714… ps; rounded down to femtoseconds from the exact sum.
    let config = LoadConfig {
        size: 1500,
        rate: Some(7_000_000_000),
        count: Some(50),
        start: Duration::from_ns(5),
        ..LoadConfig::default()
    };
    let mut world = Ideal::new(true).device("nic", load(config));
    world.run(us(1000));
    let expected: Vec<u64> = (0..50u64).map(|n| 5_000_000 + n * 12_000 * 1_000_000 / 7).collect();
    assert_eq!(world.times("write"), expected);
    assert_eq!(world.finished, 1);
}

#[test]
fn a_rate_that_cannot_be_kept_is_bounded() {
    let config =
        LoadConfig { op: LoadOp::Read, rate: Some(1 << 60), outstanding: 4, ..LoadConfig::default() };
    let mut world = Ideal::new(true).device("nic", load(config));
    world.run(us(10));
    assert_eq!(world.most_in_flight, 4);
    assert!(world.ops("read").len() > 50);
}

#[test]
fn random_addresses_depend_on_seed_and_name_only() {
    let config = LoadConfig {
        pattern: Pattern::Random,
        size: 64,
        window: 1 << 16,
        count: Some(200),
        ..LoadConfig::default()
    };
    let run = |seed, name: &str| {
        let mut world = Ideal::new(true).device("x", Load::new(config.clone(), seed, name).unwrap());
        world.run(us(1000));
        world.ops("write")
    };
    let first = run(1, "ssd");
    assert_eq!(first, run(1, "ssd"));
    assert_ne!(first, run(2, "ssd"));
    assert_ne!(first, run(1, "nic"));
    assert!(
        first
            .iter()
            .all(|(address, _)| (1 << 32..(1 << 32) + (1 << 16)).contains(address) && address % 64 == 0)
    );
    let fixed = LoadConfig { pattern: Pattern::Fixed, count: Some(3), ..LoadConfig::default() };
    let mut world = Ideal::new(true).device("x", load(fixed));
    world.run(us(10));
    assert_eq!(world.ops("write"), [(1 << 32, 256); 3]);
}

#[test]
fn the_host_loads_a_bar_and_devices_load_each_other() {
    let config = LoadConfig {
        op: LoadOp::Both,
        size: 64,
        window: 4096,
        target: Target::Bar { device: "mem".into(), bar: 0 },
        count: Some(20),
        ..LoadConfig::default()
    };
    let mut world = Ideal::new(false).device("mem", Memory::new(4096)).host(load(config.clone()));
    world.run(us(100));
    assert_eq!((world.ops("mmio read").len(), world.ops("mmio write").len(), world.finished), (20, 20, 1));
    let peer = LoadConfig { op: LoadOp::Write, ..config.clone() };
    let mut world = Ideal::new(false).device("mem", Memory::new(4096)).device("ssd", load(peer));
    world.run(us(100));
    let (base, _) = world.infos[0].bars[0].unwrap();
    assert_eq!(world.ops("write")[1], (base + 64, 64));
    // Errors name what is wrong.
    let mut world = Ideal::new(false).host(load(config.clone()));
    world.run(us(1));
    assert_eq!(world.faults, ["the load's target \"mem\" does not exist"]);
    let mut world = Ideal::new(false).device("mem", Memory::new(1024)).host(load(config));
    world.run(us(1));
    assert_eq!(world.faults, ["the load's window of 4096 B is larger than its target of 1024 B"]);
}

#[test]
fn impossible_loads_are_refused_with_a_reason() {
    let wrong = |change: fn(&mut LoadConfig)| {
        let mut config = LoadConfig::default();
        change(&mut config);
        Load::new(config, 1, "x").unwrap_err()
    };
    assert_eq!(wrong(|c| c.outstanding = 0), LoadError::NothingOutstanding);
    assert_eq!(wrong(|c| c.rate = Some(0)), LoadError::NoRate);
    assert_eq!(wrong(|c| c.stride = Some(0)), LoadError::NoStride);
    assert_eq!(wrong(|c| (c.size, c.rate) = (0, Some(1))), LoadError::EmptyAtRate);
    let message = wrong(|c| (c.window, c.offset) = (256, 4)).to_string();
    assert_eq!(message, "an operation of 256 B at offset 4 does not fit the window of 256 B");
}

fn trace() -> Vec<Record> {
    let record = |ns, write, address, bytes| Record { at: Duration::from_ns(ns), write, address, bytes };
    vec![
        record(0, false, 0x7_0000_1000, 64),
        record(700, true, 0x7_0000_2FF0, 16),
        record(700, false, 0x7_0000_3000, 0),
        record(1900, true, 0x7_0000_0000, 256),
    ]
}

#[test]
fn a_trace_at_its_own_times() {
    let mut world =
        Ideal::new(true).device("x", Replay::new(trace(), ReplayPace::Captured, Relocation::Keep).unwrap());
    world.run(us(100));
    let log: Vec<_> =
        world.log.iter().map(|(t, what, a, n)| (t.as_fs() / 1_000_000, *what, *a, *n)).collect();
    assert_eq!(
        log,
        [
            (0, "read", 0x7_0000_1000, 64),
            (700, "write", 0x7_0000_2FF0, 16),
            (700, "read", 0x7_0000_3000, 0),
            (1900, "write", 0x7_0000_0000, 256),
        ]
    );
    assert_eq!(world.finished, 1);
}

#[test]
fn a_trace_as_fast_as_possible() {
    let window = Relocation::Window { base: 1 << 32, bytes: 0x2000 };
    let replay = Replay::new(trace(), ReplayPace::Fast { outstanding: 2 }, window).unwrap();
    assert_eq!(replay.request_policy(), tlplab_transaction::RequestPolicy::Packed);
    let mut world = Ideal::new(false).device("x", replay);
    world.run(us(100));
    let addresses: Vec<u64> = world.log.iter().map(|entry| entry.2 - (1 << 32)).collect();
    assert_eq!(addresses, [0x1000, 0xFF0, 0x1000, 0]);
    assert_eq!((world.finished, world.most_in_flight), (1, 2));
    assert_eq!(Replay::new(vec![], ReplayPace::Captured, Relocation::Keep).unwrap_err(), ReplayError::Empty);
    let backwards = trace().into_iter().rev().collect();
    let error = Replay::new(backwards, ReplayPace::Captured, Relocation::Keep).unwrap_err();
    assert_eq!(error, ReplayError::Unsorted(1));
}
