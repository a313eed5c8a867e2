//! The simulator as a target.

use tlplab_bench::{Case, Machine, MeasureError, Measured, Setup, Simulator, Target, Test, csv, device};

fn simulator(host: &str, device: &str) -> Simulator {
    let setup = Setup { host: host.into(), device: device.into(), ..Setup::default() };
    Simulator::new(Machine::new(&setup, &|path| Err(format!("there is no {path}"))).unwrap())
}

fn run(target: &dyn Target, case: &Case) -> Measured {
    target.run(case, &mut |_| true).unwrap()
}

/// What the engine costs, by hand, on a host that costs nothing: a write is chunks of 128 B with 17 ns each and 4 ns, so that of 129 B
/// takes 38 ns; that of 128 B waits for its way to the link: 152 bytes are 10 beats of 16, and 2 are idle, of 2.03 ns.
#[test]
fn the_engines_interval_limits_small_writes() {
    let simulator = simulator("ideal", "nfp6000");
    for (size, picoseconds) in [(64, 21_000), (128, 24_375), (129, 38_000), (257, 55_000)] {
        let measured = run(&simulator, &Case::new(Test::BwWr, size));
        let each = measured.elapsed.as_fs() as f64 / measured.operations as f64 / 1e3;
        assert!((each / f64::from(picoseconds) - 1.0).abs() < 2e-3, "{size}: {each} ps");
    }
}

/// Little's law: with 32 operations at a time, bandwidth is 32 of them in a latency.
#[test]
fn reads_in_flight_limit_small_reads() {
    let simulator = simulator("server", "ideal");
    let latency = run(&simulator, &Case::new(Test::LatRd, 8)).latency.mean().unwrap();
    let measured = run(&simulator, &Case::new(Test::BwRd, 8));
    let each = measured.elapsed.as_fs() as f64 / measured.operations as f64 / 1e6;
    assert!((each * 32.0 / latency - 1.0).abs() < 0.03, "{each} ns each, {latency} ns latency");
}

#[test]
fn the_same_case_gives_the_same_measurement() {
    let case = Case { pattern: tlplab_bench::Pattern::Random, ..Case::new(Test::BwRdwr, 300) };
    let (first, again) = (simulator("server", "nfp6000"), simulator("server", "nfp6000"));
    run(&first, &Case::new(Test::BwWr, 64));
    assert_eq!(run(&first, &case), run(&again, &case));
}

#[test]
fn samples_before_a_stop_are_kept() {
    let simulator = simulator("server", "nfp6000");
    let case = Case { count: Some(1 << 40), ..Case::new(Test::LatRd, 64) };
    let mut looks = 0;
    let measured = simulator
        .run(&case, &mut |fraction| {
            looks += 1;
            assert!((0.0..0.01).contains(&fraction));
            looks < 3
        })
        .unwrap();
    assert!(!measured.complete && measured.latency.samples() > 100, "{}", measured.latency.samples());
    assert_eq!(csv::row(&measured).split(',').count(), csv::LATENCY.split(',').count());
}

#[test]
fn mistakes_in_the_setup_are_reported() {
    let refuse = |setup: Setup| {
        Machine::new(&setup, &|_| Err("there is no such file".into())).map(drop).unwrap_err().to_string()
    };
    let message = refuse(Setup { host: "sever".into(), ..Setup::default() });
    assert!(message.contains("unknown host profile \"sever\"; did you mean \"server\"?"), "{message}");
    let message = refuse(Setup { link: "gen3".into(), ..Setup::default() });
    assert!(message.contains("link \"gen3\": \"gen3\" is not a link such as"), "{message}");
    let message = refuse(Setup { device: "mine.toml".into(), ..Setup::default() });
    assert_eq!(message, "cannot read \"mine.toml\": there is no such file");
    let message = tlplab_bench::device::parse("mine.toml", "title = \"x\"\nsource = \"y\"\nbetween = \"5\"")
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("device profile mine.toml:3: \"5\" is not a time"), "{message}");
    let (_, ideal) = tlplab_bench::device::PROFILES[0];
    for key in ["mps", "mrrs"] {
        let spoilt = ideal.lines().map(|line| {
            let spoil = line.starts_with(&format!("{key} ="));
            if spoil { format!("{key} = \"300B\"\n") } else { format!("{line}\n") }
        });
        let message = tlplab_bench::device::parse("x.toml", &spoilt.collect::<String>()).unwrap_err();
        let right =
            format!("device profile x.toml: link.{key} is 300; expected a power of two from 128 B to 4096 B");
        assert_eq!(message.to_string(), right);
    }
    let message = refuse(Setup { host: "/bin/ls".into(), ..Setup::default() });
    assert!(message.contains("files end in .toml; host profiles are ideal"), "{message}");
    let case = Case { interface: tlplab_bench::Interface::Command, ..Case::new(Test::LatRd, 65) };
    let error = simulator("server", "nfp6000").run(&case, &mut |_| true).unwrap_err();
    assert!(matches!(error, MeasureError::Case(_)), "{error}");
}

/// A device that costs nothing but what `table` says of its reads.
fn reads_with(table: &str) -> Simulator {
    let (_, ideal) = device::PROFILES.iter().find(|(name, _)| *name == "ideal").unwrap();
    let text = ideal.replace("requests = 256\n", table).replace("slots = 32", "slots = 64");
    let setup = Setup { host: "server".into(), device: "mine.toml".into(), ..Setup::default() };
    Simulator::new(Machine::new(&setup, &|_| Ok(text.clone())).unwrap())
}

/// Nanoseconds of a read of `size` bytes alone, and of each of many.
fn latency_and_interval(simulator: &Simulator, size: u64) -> (f64, f64) {
    let alone = run(simulator, &Case::new(Test::LatRd, size)).latency.mean().unwrap();
    let many = run(simulator, &Case { count: Some(4096), ..Case::new(Test::BwRd, size) });
    (alone, many.elapsed.as_fs() as f64 / many.operations as f64 / 1e6)
}

/// With five requests at once, five of them end in a latency; transfers of two requests are half as many.
#[test]
fn requests_at_once_limit_reads() {
    let simulator = reads_with("requests = 5\n");
    for (size, requests) in [(64, 1.0), (1024, 2.0)] {
        let (alone, each) = latency_and_interval(&simulator, size);
        // A transfer of two requests takes the wire of the second longer than a request.
        assert!(
            (each * 5.0 / requests / alone - 1.0).abs() < 0.15,
            "{size} B: {each} ns each, {alone} ns alone"
        );
    }
    let (alone, each) = latency_and_interval(&simulator, 64);
    assert!((each * 5.0 / alone - 1.0).abs() < 0.02, "{each} ns each, {alone} ns alone");
}

/// Twelve requests at once, and a ring of 16 blocks of 128 B: twelve reads of 64 B leave, then four more, and before the next begins again
/// at the start of the ring all but the last have to be back. So 16 reads take two latencies, unless the ring counts as full.
#[test]
fn a_ring_drains_where_it_begins_again() {
    for (margin, reads_in_a_latency) in [(0, 8.0), (16, 12.0)] {
        let buffer = format!("{{ block = \"128B\", blocks = 16, margin = {margin} }}");
        let simulator = reads_with(&format!("requests = 12\nbuffer = {buffer}\n"));
        let (alone, each) = latency_and_interval(&simulator, 64);
        let found = alone / each;
        assert!(
            (found / reads_in_a_latency - 1.0).abs() < 0.03,
            "margin {margin}: {found} reads in a latency"
        );
    }
}
