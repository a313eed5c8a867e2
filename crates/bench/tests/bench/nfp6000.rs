//! The NFP-6000 in an Xeon E5-2620 v3, against what pcie-bench measured there (data set hsw-Xeon-E5-2620v3_dell-t630, host-warm window of
//! 8 KiB): time per transfer in nanoseconds, which is size over published bandwidth.

use tlplab_bench::{Cache, Case, Machine, Pattern, Setup, Simulator, Target, Test};

/// Nanoseconds per transfer.
fn each(case: &Case) -> f64 {
    let setup = Setup { host: "xeon-e5-2620v3".into(), ..Setup::default() };
    let machine = Machine::new(&setup, &|path| Err(format!("there is no {path}"))).unwrap();
    let case = Case { count: Some(2048), ..case.clone() };
    let measured = Simulator::new(machine).run(&case, &mut |_| true).unwrap();
    measured.elapsed.as_fs() as f64 / measured.operations as f64 / 1e6
}

fn compare(measured: f64, case: &Case, within: f64) {
    let simulated = each(case);
    assert!((simulated / measured - 1.0).abs() < within, "{case:?}: {simulated:.1} ns, measured {measured}");
}

/// The saw-tooth of reads: what does not fill the read buffer loses a latency for each of its 128 blocks, what is no multiple of 8 B
/// passes slowly.
#[test]
fn reads_by_size() {
    for (size, measured) in [
        (63, 23.66),
        (65, 23.75),
        (128, 23.42),
        (129, 28.98),
        (192, 35.80),
        (256, 42.87),
        (257, 51.10),
        (320, 58.35),
        (384, 66.15),
        (512, 74.42),
        (513, 93.03),
        (576, 100.3),
        (768, 126.3),
        (1536, 222.0),
        (2048, 296.4),
    ] {
        let within = if size == 129 { 0.08 } else { 0.045 };
        compare(measured, &Case { pattern: Pattern::Random, ..Case::new(Test::BwRd, size) }, within);
    }
}

/// Where a read begins: in the device's memory at no multiple of 8 B, in the host's in the midst of a line, or so that it crosses no
/// multiple of 512 B.
#[test]
fn reads_by_offset() {
    for (size, host_offset, device_offset, measured) in [
        (64, 0, 1, 40.34),
        (128, 0, 4, 43.19),
        (256, 0, 1, 63.27),
        (407, 0, 1, 82.40),
        (416, 0, 2, 97.90),
        (1024, 0, 63, 157.0),
        (128, 16, 0, 27.98),
        (256, 48, 0, 47.03),
        (407, 48, 0, 72.00),
        (407, 12, 0, 82.50),
        (2048, 1, 0, 300.3),
    ] {
        compare(measured, &Case { host_offset, device_offset, ..Case::new(Test::BwRd, size) }, 0.055);
    }
}

/// The edges of the saw-tooth of writes are at multiples of the engine's chunk and of the payload.
#[test]
fn writes_by_size() {
    for (size, measured) in
        [(64, 21.10), (128, 24.18), (129, 38.00), (256, 40.56), (257, 55.00), (513, 89.00)]
    {
        compare(measured, &Case { pattern: Pattern::Random, ..Case::new(Test::BwWr, size) }, 0.012);
    }
}

/// Little's law: latency over time per read is 32 to 36 for 64 B.
#[test]
fn reads_in_flight() {
    let case = Case { pattern: Pattern::Random, ..Case::new(Test::BwRd, 64) };
    let in_flight = 547.0 / each(&case);
    assert!((32.0..36.5).contains(&in_flight), "{in_flight}");
}

/// 51 ns more of latency cost what is limited by the read buffer 2 to 3 %, and nothing of what fills it.
#[test]
fn cold_lines() {
    let ratio = |size| {
        let case = Case { pattern: Pattern::Random, ..Case::new(Test::BwRd, size) };
        each(&Case { cache: Cache::Cold, ..case.clone() }) / each(&case)
    };
    let (partial, full) = (ratio(256), ratio(512));
    assert!((1.012..1.035).contains(&partial), "256 B: {partial}");
    assert!((full - 1.0).abs() < 0.003, "512 B: {full}");
}
