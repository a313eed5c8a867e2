//! The closed forms against arithmetic by hand, the specification's tables, and a small simulation of the Ack rule alone.

use tlplab_analytic::*;
use tlplab_units::{Generation, LinkMode, Mps, Width};

fn link(generation: u8, lanes: u8) -> Link {
    Link::new(Generation::new(generation).unwrap(), Width::new(lanes).unwrap())
}

/// No DLLPs at all: infinite buffers, Acks never due.
fn silent() -> Receiver {
    Receiver { ack_latency: f64::INFINITY, ack_every: None, buffers: [None; 3], batches: 2.0, refresh: None }
}

fn setup(link: Link, mps: f64, mrrs: f64, receiver: Receiver) -> Setup {
    Setup {
        link,
        write_header: 16.0,
        write: mps,
        read_header: 16.0,
        read: mrrs,
        completion: mps.min(mrrs),
        read_group: 1.0,
        turnaround: None,
        upper: receiver,
        lower: receiver,
    }
}

fn gigabits(bits: f64) -> String {
    format!("{:.3}", bits / 1e9)
}

/// By hand: rate · coding · ordered sets · payload / (payload + header + framing).
#[test]
fn without_dllps() {
    let writes = |generation, lanes, mps| {
        gigabits(setup(link(generation, lanes), mps, 512.0, silent()).saturated(Traffic::Writes).up.payload)
    };
    // 8 · 8 · 128/130 · 375/376 · 256/280
    assert_eq!(writes(3, 8, 256.0), "57.461");
    // 2.5 · 0.8 · 1534/1538 · 128/152
    assert_eq!(writes(1, 1, 128.0), "1.680");
    // 32 · 16 · 128/130 · 375/376 · 512/536
    assert_eq!(writes(5, 16, 512.0), "480.270");
    // 64 · 16 · 236/256 · 256/272: no framing and no ordered sets in flits
    assert_eq!(writes(6, 16, 256.0), "888.471");
    let reads = setup(link(3, 8), 256.0, 512.0, silent()).saturated(Traffic::Reads);
    // 62.8478 · 512/552; requests: 24 bytes for each 552 the other way
    assert_eq!(gigabits(reads.down.payload), "58.294");
    assert!((reads.up.utilization() - 24.0 / 552.0).abs() < 1e-12);
    // With the RCB policy a read of 512 B comes as eight completions of 84 bytes: 62.8478 · 512/672.
    let by_rcb = Setup { completion: 64.0, ..setup(link(3, 8), 256.0, 512.0, silent()) };
    assert_eq!(gigabits(by_rcb.saturated(Traffic::Reads).down.payload), "47.884");
}

#[test]
fn both_ways() {
    // Reads of 512 B fill the way down: 1 request for each 552 bytes. Writes have the rest of the way up: 528/552 · 256/280.
    let both = setup(link(3, 8), 256.0, 512.0, silent()).saturated(Traffic::Both);
    assert_eq!(gigabits(both.down.payload), "58.294");
    assert_eq!(gigabits(both.up.payload), "54.963");
    // Reads of 128 B take turns with writes of 256 B: 128 B down for each 304 bytes up.
    let turns = setup(link(3, 8), 256.0, 128.0, silent()).saturated(Traffic::Both);
    assert_eq!(gigabits(turns.up.payload), "52.924");
    assert_eq!(gigabits(turns.down.payload), "26.462");
    assert!((turns.up.utilization() - 1.0).abs() < 1e-12 && turns.down.utilization() < 0.5);
}

/// PCIe 3.0 table 3-7 (2.5 GT/s), as printed.
#[test]
fn ack_latency_table() {
    let table = [
        (128, [237, 128, 73, 67, 58, 48, 33]),
        (256, [416, 217, 118, 107, 90, 72, 45]),
        (512, [559, 289, 154, 86, 109, 86, 52]),
        (1024, [1071, 545, 282, 150, 194, 150, 84]),
        (2048, [2095, 1057, 538, 278, 365, 278, 148]),
        (4096, [4143, 2081, 1050, 534, 706, 534, 276]),
    ];
    for (mps, row) in table {
        for (width, symbols) in Width::ALL.into_iter().zip(row) {
            let ours = ack_latency_symbols(Generation::Gen1, width, Mps::new(mps).unwrap());
            assert_eq!(ours, f64::from(symbols), "{width} {mps}");
        }
    }
}

/// Every link and payload: the limiting direction is full, nothing is more than full, DLLPs take little but something.
#[test]
fn budgets_add_up() {
    for generation in Generation::ALL {
        for (width, mps) in Width::ALL.into_iter().flat_map(|w| Mps::ALL.iter().map(move |mps| (w, *mps))) {
            let link = Link::new(generation, width);
            let receiver = Receiver::new(&link, mps, 127.0, 2047.0, true);
            let bytes = f64::from(mps.bytes());
            let plain = setup(link, bytes, 512.0, silent());
            let real = setup(link, bytes, 512.0, receiver);
            for traffic in [Traffic::Writes, Traffic::Reads, Traffic::Both] {
                let (ideal, real) = (plain.saturated(traffic), real.saturated(traffic));
                let full = |t: &Throughput| t.up.utilization().max(t.down.utilization());
                assert!((full(&real) - 1.0).abs() < 1e-9, "{generation} {width} {mps} {traffic:?}");
                assert!(real.up.payload <= ideal.up.payload * 1.0001);
                assert!(real.down.payload <= ideal.down.payload * 1.0001);
                let dllps =
                    if traffic == Traffic::Writes { real.up.dllp_share } else { real.down.dllp_share };
                match link.mode {
                    LinkMode::Flit => assert_eq!(dllps, 0.0),
                    LinkMode::NonFlit => {
                        assert!(dllps > 0.0 && dllps < 0.06, "{generation} {width} {mps} {dllps}")
                    }
                }
            }
        }
    }
}

/// Writes at Gen1 x1: the device's own refresh of two finite classes is all that shares the way up. 16 bytes of 7 500 per 30 µs.
#[test]
fn refresh_by_hand() {
    let lane = Link { ordered_sets: OrderedSets::NONE, ..link(1, 1) };
    let receiver = Receiver::new(&lane, Mps::ALL[0], 127.0, 2047.0, true);
    let writes = setup(lane, 128.0, 512.0, receiver).saturated(Traffic::Writes);
    assert!((writes.up.dllp_share - 16.0 / 7500.0).abs() < 1e-12);
    assert_eq!(gigabits(writes.up.payload), "1.681"); // 2 · 128/152 · (1 - 16/7500)
}
