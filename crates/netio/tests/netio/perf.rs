//! Measurements on the loopback interface: what they count must be so.

use super::memory::{BASE, Ends, SIZE, Served};
use std::net::Ipv4Addr;
use std::time::Duration;
use tlplab_netio::perf::{Direction, Pattern, Perf, PerfConfig, Region};
use tlplab_netio::{Kind, Network, Wait};
use tlplab_nettlp::EndpointConfig;
use tlplab_units::Bdf;

/// An address of one test of this process.
fn address(test: u8, end: u8) -> Ipv4Addr {
    let id = std::process::id();
    Ipv4Addr::new(127, 128 + (id >> 8 & 31) as u8, id as u8, 4 * test + end)
}

fn config(test: u8) -> PerfConfig {
    let [device, adapter] = [1, 2].map(|end| address(test, end));
    PerfConfig {
        network: Network { kind: Kind::Udp, local: device, interface: None },
        // Longer than a busy machine lets a thread wait: what is lost here is not lost by time.
        endpoint: EndpointConfig {
            completion_timeout: tlplab_units::Duration::from_ms(10_000),
            ..EndpointConfig::new(adapter, Bdf(0x1b00))
        },
        lanes: 2,
        outstanding: 5,
        tags: None,
        direction: Direction::Read,
        region: Region { address: BASE + 3, bytes: SIZE as u64 / 4 },
        divided: true,
        pattern: Pattern::Seq,
        length: 700,
        count: Some(500),
        duration: None,
        paced: true,
        interval: Duration::ZERO,
        wait: Wait::Sleep,
        verify: true,
        each: true,
        seed: 11,
    }
}

/// Two lanes with five reads of two or three requests each have the tags 0 to 29.
fn served(config: &PerfConfig) -> Served {
    Served::new(config.endpoint.adapter, 0..=29)
}

#[test]
fn perf_reads_and_writes_verify_their_data() {
    // Writes are posted: more of them than a socket holds would overflow it if they were not paced.
    for (test, direction, count) in [(1, Direction::Read, 500), (2, Direction::Write, 3000)] {
        let config = PerfConfig { direction, count: Some(count), ..config(test) };
        let _memory = served(&config);
        let report = Perf::new(config).unwrap().run().unwrap();
        assert_eq!((report.operations(), report.bytes(), report.wrong()), (2 * count, 1400 * count, 0));
        // This memory does not count.
        let missing = report.missing.as_ref().map(|missing| missing.bytes);
        assert_eq!((missing, report.arrived), ((direction == Direction::Write).then_some(0), None));
        assert!(report.errors().is_empty() && !report.interrupted);
        let latency = report.latency();
        assert_eq!(latency.len(), 2 * count);
        for lane in &report.lanes {
            assert_eq!(lane.each.len() as u64, count);
            let mean = lane.each.iter().sum::<u64>() as f64 / count as f64;
            assert!((mean / lane.latency.mean() - 1.0).abs() < 1e-2, "{mean}");
        }
        assert!(latency.min() > 100 && u128::from(latency.max()) <= report.elapsed.as_nanos());
        // Two threads, which also begin and end: on a busy machine that takes its time.
        let (cpu, most) = (report.cpu(), 2 * report.elapsed + Duration::from_secs(1));
        assert!(cpu > Duration::ZERO && cpu < most, "{cpu:?} of {most:?}");
    }
}

/// With verification, memory that loses or changes data does not go unnoticed: the reads begin before somebody else writes.
#[test]
fn wrong_data_are_seen() {
    let config = PerfConfig { lanes: 1, count: None, pattern: Pattern::Fix, ..config(3) };
    let _memory = served(&config);
    let other = PerfConfig {
        network: Network { local: address(3, 3), ..config.network.clone() },
        direction: Direction::Write,
        count: Some(1),
        verify: false,
        ..config.clone()
    };
    let perf = Perf::new(config).unwrap();
    let report = std::thread::scope(|scope| {
        let _ends = Ends(|| perf.stop());
        let running = scope.spawn(|| perf.run().unwrap());
        while perf.progress().0 < 50 && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Perf::new(other).unwrap().run().unwrap();
        // Those that had begun before, and as many again; how far it is, is told once in a millisecond.
        std::thread::sleep(Duration::from_millis(5));
        let seen = perf.progress().0 + 2 * 5;
        while perf.progress().0 < seen && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        perf.stop();
        running.join().unwrap()
    });
    assert!(
        report.wrong() > 0 && report.wrong() <= report.operations() - 50,
        "{} of {}",
        report.wrong(),
        report.operations()
    );
    assert!(report.interrupted);
}

#[test]
fn time_interval_and_stop_are_kept() {
    let base = PerfConfig { lanes: 1, outstanding: 1, count: None, verify: false, length: 64, ..config(4) };
    let _memory = served(&base);
    let timed = PerfConfig {
        duration: Some(Duration::from_millis(200)),
        interval: Duration::from_millis(10),
        ..base.clone()
    };
    let report = Perf::new(timed).unwrap().run().unwrap();
    assert!((1..=20).contains(&report.operations()), "{} in 200 ms, one each 10 ms", report.operations());
    assert!(!report.interrupted, "it ended by itself");
    let endless = Perf::new(base).unwrap();
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| endless.run().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        endless.stop();
        running.join().unwrap()
    });
    assert!(report.interrupted && report.operations() > 0);
}

#[test]
fn impossible_perf_runs_are_refused() {
    let fails = |config: PerfConfig| match Perf::new(config) {
        Err(error) => error.to_string(),
        Ok(perf) => perf.run().map(drop).expect_err("must fail").to_string(),
    };
    let base = config(5);
    assert!(fails(base.clone()).contains("connection refused"), "nobody is there");
    let narrow = PerfConfig { region: Region { address: 0, bytes: 1000 }, ..base.clone() };
    assert!(fails(narrow).contains("700 B does not fit into the 500 B"));
    let end = PerfConfig { region: Region { address: u64::MAX - 10, bytes: 4096 }, ..base.clone() };
    assert!(fails(end).contains("end of the address space"));
    let tags = EndpointConfig { tags: 255..=255, ..base.endpoint.clone() };
    assert!(fails(PerfConfig { endpoint: tags, ..base.clone() }).contains("2 lanes need as many tags"));
    let _memory = served(&base);
    let outside = PerfConfig { region: Region { address: 0x1000, bytes: 4096 }, ..base.clone() };
    let said = fails(outside.clone());
    assert!(said.contains("does not keep the data written to it"), "{said}");
    let said = fails(PerfConfig { verify: false, ..outside });
    assert!(said.contains("no operation succeeds"), "{said}");
}
