//! The stages between the root complex, memory and the processor: times that arithmetic says, and nothing lost or out of order.

use crate::bench::{Bench, ns, only_flow};
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Mps, Time};

const BUS: HostStageConfig = HostStageConfig { latency: Duration::from_ns(10), rate: None, entries: None };

/// A device, or the processor, does `count` operations of 64 B, `outstanding` at a time, over a gen1 x1 link without ordered sets.
fn run(op: LoadOp, count: u64, outstanding: u32, change: impl Fn(&mut HostConfig)) -> Fabric {
    let mut bench = Bench::new();
    change(&mut bench.config.host);
    let load = LoadConfig { op, size: 64, count: Some(count), outstanding, ..LoadConfig::default() };
    let device = bench.device("dev", "host.rp0", 1, 1).config(|device| {
        (device.link.skp, device.link.mps) = (SkpPolicy::Off, Mps::ALL[0]);
        device.posted_writes = op != LoadOp::Both;
    });
    device.load(load);
    let mut fabric = bench.build();
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
    assert!(fabric.is_done() && fabric.protocol_errors().count() == 0);
    fabric
}

fn latency_of_read(change: impl Fn(&mut HostConfig)) -> Duration {
    only_flow(&run(LoadOp::Read, 1, 1, change)).latency_min
}

/// Each stage adds its latency twice; the data of a read, 64 B, pass back at the rate, 8 ns at 64 Gb/s.
#[test]
fn a_read_passes_each_stage_twice() {
    let without = latency_of_read(|_| {});
    let cache = |host: &mut HostConfig| host.io_cache = Some(HostStageConfig { latency: ns(50), ..BUS });
    assert_eq!(latency_of_read(cache), without + ns(100));
    let bus =
        |host: &mut HostConfig| host.memory_bus = Some(HostStageConfig { rate: Some(64_000_000_000), ..BUS });
    assert_eq!(latency_of_read(bus), without + ns(28));
    let both = |host: &mut HostConfig| (cache(host), bus(host), host.bridge = Some(BUS)).2;
    assert_eq!(latency_of_read(both), without + ns(128), "the bridge is the processor's");
}

/// Time in a stage is time at a place of its own.
#[test]
fn the_stages_are_places_of_the_critical_path() {
    let fabric = run(LoadOp::Read, 3, 1, |host| {
        host.io_cache = Some(HostStageConfig { latency: ns(50), ..BUS });
        host.memory_bus = Some(BUS);
    });
    let mut at = std::collections::BTreeMap::new();
    for (interval, fs) in only_flow(&fabric).attribution() {
        *at.entry(fabric.topology().place_name(interval.place)).or_insert(0) += fs / 1_000_000;
    }
    assert_eq!((at["host.io_cache"], at["host.memory_bus"]), (300, 60));
    assert!(!at.contains_key("host"));
}

/// The processor's reads pass bus and bridge, there and back, and the I/O cache not at all.
#[test]
fn the_processors_reads_pass_the_bridge() {
    let read = |change: fn(&mut HostConfig)| {
        let mut bench = Bench::new();
        change(&mut bench.config.host);
        bench.device("dev", "host.rp0", 1, 1).memory(4096);
        bench.mmio(LoadConfig {
            op: LoadOp::Read,
            size: 4,
            target: Target::Bar { device: "dev".into(), bar: 0 },
            window: 64,
            outstanding: 1,
            count: Some(5),
            ..LoadConfig::default()
        });
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(10));
        fabric
    };
    let without = only_flow(&read(|_| {})).latency_min;
    let fabric = read(|host| {
        host.io_cache = Some(HostStageConfig { latency: ns(500), ..BUS });
        host.memory_bus = Some(BUS);
        host.bridge = Some(HostStageConfig { latency: ns(45), ..BUS });
    });
    let flow = only_flow(&fabric);
    assert_eq!(flow.latency_min, without + ns(110));
    let at = |name: &str| -> u128 {
        let here = flow.attribution().filter(|(i, _)| fabric.topology().place_name(i.place) == name);
        here.map(|(_, fs)| fs / 1_000_000).sum()
    };
    assert_eq!((at("host.memory_bus"), at("host.bridge"), at("host.io_cache")), (100, 450, 0));
}

/// Posted writes of 92 B take 368 ns each on the wire. Where the cache holds one at a time they follow each other 5 us apart.
#[test]
fn a_full_stage_lets_the_next_in_when_an_answer_has_left() {
    let took = |entries| {
        let fabric = run(LoadOp::Write, 200, 32, |host| {
            host.io_cache = Some(HostStageConfig { latency: ns(5000), rate: None, entries });
        });
        assert_eq!(only_flow(&fabric).bytes, 12_800, "every byte once");
        fabric.now()
    };
    assert!(took(Some(1)) >= Time::ZERO + ns(200 * 5000));
    assert!(
        took(Some(2)) >= Time::ZERO + ns(100 * 5000) && took(Some(2)) < Time::ZERO + ns(102 * 5000 + 1000)
    );
    assert!(took(None) < Time::ZERO + ns(200 * 400 + 6000));
}

/// On a crossbar of 128 Gb/s, 3 ns away, a read takes twice the way and the 4 ns of its 64 B; nothing else has the wire. A write of 64 B
/// that is completed takes the same, and sixteen of them that begin together end 4 ns apart.
#[test]
fn a_crossbar_carries_data_and_nothing_else() {
    let ran = |op, outstanding| {
        let mut bench = Bench::new();
        let load = LoadConfig { op, size: 64, count: Some(16), outstanding, ..LoadConfig::default() };
        let device = bench.device("dev", "host.rp0", 1, 1).config(|device| {
            (device.link.crossbar, device.link.flight) = (Some(128_000_000_000), ns(3));
            device.posted_writes = false;
        });
        device.load(load);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
        assert!(fabric.is_done());
        let up = fabric.topology().links[0].ports[0];
        let wire = fabric.direction_result(up).wire;
        assert_eq!((wire.overhead, wire.dllp, wire.tlps), (0, 0, 16));
        fabric
    };
    for op in [LoadOp::Read, LoadOp::Write] {
        let fabric = ran(op, 1);
        let flow = only_flow(&fabric);
        assert_eq!((flow.latency_min, flow.latency_max), (ns(10), ns(10)), "{op:?}");
    }
    let flow = ran(LoadOp::Write, 16);
    assert_eq!(only_flow(&flow).latency_max, ns(6 + 16 * 4));
}

#[test]
fn a_crossbar_has_no_faults() {
    let mut bench = Bench::new();
    let device = bench.device("dev", "host.rp0", 1, 1).config(|device| {
        device.link.crossbar = Some(1_000_000_000);
        let kind = FaultKind::Down { at: Time::ZERO, until: None };
        device.link.faults.push(Fault { direction: Direction::Up, kind });
    });
    device.memory(4096);
    let error =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.build())).err().expect("refused");
    assert!(error.downcast_ref::<String>().is_some_and(|text| text.contains("a crossbar has none")));
}
