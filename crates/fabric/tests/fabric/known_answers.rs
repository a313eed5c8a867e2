//! Figures computed by hand first.

use crate::bench::{Bench, ns};
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::attribution::Cause;
use tlplab_units::{Duration, Time};

/// Gen1 x1, idle path, no processing: MRd 3DW (12 + 8 bytes) there, CplD (12 + 4 + 8 bytes) back: 44 bytes of 4 ns.
#[test]
fn read_of_4_bytes_on_gen1_x1_takes_176_ns() {
    let mut bench = Bench::new();
    bench.device("probe", "host.rp0", 1, 1).load(LoadConfig {
        op: LoadOp::Read,
        size: 4,
        target: Target::Address(0x1000),
        outstanding: 1,
        count: Some(10),
        ..LoadConfig::default()
    });
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(3));
    let flow = crate::bench::only_flow(&fabric);
    assert_eq!(flow.transactions, 10);
    assert_eq!((flow.latency_min, flow.latency_max), (ns(176), ns(176)));
    let causes: Vec<_> = flow.attribution().map(|(i, fs)| (i.cause(), fs)).collect();
    assert_eq!(
        causes,
        [(Cause::Serialisation, 10 * 96_000_000), (Cause::Serialisation, 10 * 80_000_000)]
            .into_iter()
            .collect::<Vec<_>>()
    );
}

/// With words of 16 bytes both TLPs take two of them: 20 and 24 bytes become 32 each.
#[test]
fn tlps_take_whole_words_of_the_wire() {
    let mut bench = Bench::new();
    let device = bench.device("probe", "host.rp0", 1, 1).config(|device| device.link.tlp_alignment = 16);
    device.load(LoadConfig {
        op: LoadOp::Read,
        size: 4,
        target: Target::Address(0x1000),
        outstanding: 1,
        count: Some(10),
        ..LoadConfig::default()
    });
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(4));
    let flow = crate::bench::only_flow(&fabric);
    assert_eq!((flow.latency_min, flow.latency_max), (ns(64 * 4), ns(64 * 4)));
}

/// The same from the processor: MMIO read of a register.
#[test]
fn mmio_read_of_4_bytes_on_gen1_x1_takes_176_ns() {
    let mut bench = Bench::new();
    bench.device("regs", "host.rp0", 1, 1).memory(4096);
    bench.mmio(LoadConfig {
        op: LoadOp::Read,
        size: 4,
        target: Target::Bar { device: "regs".into(), bar: 0 },
        window: 64,
        outstanding: 1,
        count: Some(5),
        ..LoadConfig::default()
    });
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(3));
    let flow = crate::bench::flow(&fabric, "cpu");
    assert_eq!(flow.transactions, 5);
    // The BAR of a memory device may lie above 4 GiB: then the request has 4 DW.
    assert!([ns(176), ns(192)].contains(&flow.latency_min), "{}", flow.latency_min);
}

fn write_rate(lanes_up: u8, devices: &[&str]) -> (Vec<f64>, tlplab_fabric::Fabric) {
    let mut bench = Bench::new();
    bench.warmup(Duration::from_us(20));
    let under = if devices.len() == 1 { "host.rp0" } else { "sw0" };
    if devices.len() > 1 {
        bench.switch("sw0", "host.rp0", 3, lanes_up);
    }
    for name in devices {
        bench.device(name, under, 3, 8).load(LoadConfig { op: LoadOp::Write, ..LoadConfig::default() });
    }
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(420));
    let rates =
        devices.iter().map(|name| crate::bench::flow(&fabric, name).bytes as f64 * 8.0 / 400e3).collect();
    (rates, fabric)
}

/// Gen3 x8, MPS 256, 4DW writes: 63.0154 Gb/s · 256/280 · 375/376.
#[test]
fn saturated_writes_on_gen3_x8() {
    let (rates, _) = write_rate(8, &["dev"]);
    let expected = 63.015384615 * 256.0 / 280.0 * 375.0 / 376.0;
    assert!((rates[0] / expected - 1.0).abs() < 1e-3, "{} against {expected}", rates[0]);
}

#[test]
fn two_writers_share_an_x8_uplink_and_name_each_other() {
    let (rates, fabric) = write_rate(8, &["a", "b"]);
    let expected = 63.015384615 * 256.0 / 280.0 * 375.0 / 376.0 / 2.0;
    for rate in &rates {
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate} against {expected}");
    }
    for (me, other) in [("a", "b"), ("b", "a")] {
        let behind: u128 = crate::bench::flow(&fabric, me)
            .attribution()
            .filter(|(i, _)| i.behind().is_some_and(|f| fabric.topology().flows[f.index()].name == other))
            .map(|(_, fs)| fs)
            .sum();
        assert!(behind > 0, "{me} queues behind {other}");
    }
}

#[test]
fn an_x16_uplink_carries_both_writers() {
    let (rates, _) = write_rate(16, &["a", "b"]);
    let expected = 63.015384615 * 256.0 / 280.0 * 375.0 / 376.0;
    for rate in &rates {
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate} against {expected}");
    }
}

/// Each way through the root complex costs its latency, and each way through a device its own: a DMA read of 4 bytes on gen1 x1 takes
/// 176 ns on the wire, 2 · 150 ns in the root complex, 2 · 20 ns in the device (out and in), 90 ns in memory.
#[test]
fn latencies_count_each_way() {
    let mut bench = Bench::new();
    bench.config.host.latency = ns(150);
    bench.config.host.memory.latency = ns(90);
    bench.device("probe", "host.rp0", 1, 1).config(|device| device.latency = ns(20)).load(LoadConfig {
        op: LoadOp::Read,
        size: 4,
        target: Target::Address(0x1000),
        outstanding: 1,
        count: Some(3),
        ..LoadConfig::default()
    });
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(3));
    let flow = crate::bench::only_flow(&fabric);
    assert_eq!((flow.latency_min, flow.latency_max), (ns(606), ns(606)));
    let part = |cause| flow.attribution().filter(|(i, _)| i.cause() == cause).map(|(_, fs)| fs).sum::<u128>();
    assert_eq!(part(Cause::Processing), 3 * 340_000_000);
    assert_eq!(part(Cause::Completer), 3 * 90_000_000);
}

/// From the processor the same, the other way round: 2 · 150 ns in the root complex, 2 · 20 ns in the device. A port of its own
/// latency replaces the node's for what arrives there.
#[test]
fn a_port_may_have_a_latency_of_its_own() {
    for (port, expected) in [(None, 516 + 16), (Some(ns(5)), 501 + 16)] {
        let mut bench = Bench::new();
        bench.config.host.latency = ns(150);
        bench
            .device("regs", "host.rp0", 1, 1)
            .config(|device| {
                device.latency = ns(20);
                device.link.lower.latency = port;
            })
            .memory(4096);
        bench.mmio(LoadConfig {
            op: LoadOp::Read,
            size: 4,
            target: Target::Bar { device: "regs".into(), bar: 0 },
            window: 64,
            outstanding: 1,
            count: Some(3),
            ..LoadConfig::default()
        });
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(5));
        assert_eq!(crate::bench::flow(&fabric, "cpu").latency_min, ns(expected));
    }
}
