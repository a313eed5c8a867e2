//! What switches add to the latency of one TLP, computed by hand first. Gen1 carries a byte in 4 ns per lane. A write of 64 B below
//! 4 GiB has 12 + 64 bytes, 84 with framing: 336 ns on x1, 168 ns on x2. Its header has arrived after 4 + 12 bytes. Ordered sets are off.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::watch::Content;
use crate::bench::{Bench, Watch, ns};
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, FcClass, Time};

struct Way {
    forwarding: Forwarding,
    lanes_in: u8,
    lanes_out: u8,
    latency: u64,
    flight: u64,
    faults: Vec<Fault>,
}

fn way(forwarding: Forwarding, lanes_in: u8, lanes_out: u8) -> Way {
    Way { forwarding, lanes_in, lanes_out, latency: 100, flight: 0, faults: Vec::new() }
}

/// One write of 64 B from a device through a switch.
fn run(way: Way) -> (Fabric, Watch) {
    let mut bench = Bench::new();
    // A message about a TLP that was damaged would share the wire with it.
    bench.config.host.error_reporting = false;
    let switch = bench.switch("sw0", "host.rp0", 1, way.lanes_out);
    switch.latency = ns(way.latency);
    switch.forwarding = way.forwarding;
    (switch.uplink.skp, switch.uplink.flight) = (SkpPolicy::Off, ns(way.flight));
    let (mover, _) = Mover::new(Base::Address(0x1000), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    bench
        .device("dev", "sw0", 1, way.lanes_in)
        .config(|d| {
            (d.link.skp, d.link.flight, d.link.faults) = (SkpPolicy::Off, ns(way.flight), way.faults);
        })
        .finishing(Box::new(mover));
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(6));
    watch.check_attribution(&fabric);
    (fabric, watch)
}

fn latency(way: Way) -> Duration {
    let (_, watch) = run(way);
    watch.transactions()[0].latency()
}

/// Four bytes more on each wire, and 20 instead of 16 before forwarding begins.
#[test]
fn a_checked_header_goes_on_as_soon_as_it_is_there() {
    use Forwarding::HeaderChecked;
    assert_eq!(latency(way(HeaderChecked, 1, 1)), ns(80 + 100 + 352));
    assert_eq!(latency(way(HeaderChecked, 2, 1)), ns(40 + 100 + 352));
    // The last byte may not leave before it has come.
    assert_eq!(latency(way(HeaderChecked, 1, 2)), ns(352 + 100));
}

/// Bytes that the switch sent in vain or twice, and those that the card did, of 2000 writes one in three of which is damaged.
fn wasted(forwarding: Forwarding) -> (u64, u64) {
    let mut bench = Bench::new();
    bench.config.host.error_reporting = false;
    bench.switch("sw0", "host.rp0", 1, 4).forwarding = forwarding;
    let (mover, _) = Mover::new(Base::Address(0x1000), 4, vec![Move::Write { at: 0, bytes: 64 }; 2000]);
    let numerator = (u64::MAX / (84 * 8)) / 3;
    let fault = Fault { direction: Direction::Up, kind: FaultKind::BitErrors { numerator } };
    bench.device("dev", "sw0", 1, 4).config(|d| d.link.faults = vec![fault]).finishing(Box::new(mover));
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_ms(10));
    watch.check_attribution(&fabric);
    assert_eq!(watch.transactions().len(), 2000);
    let nullified = watch
        .units(&fabric, "sw0", 0)
        .iter()
        .filter(|unit| matches!(unit.content, Content::Tlp { nullified: true, .. }))
        .count();
    let damaged = watch.units(&fabric, "dev", 0).iter().filter(|unit| unit.bad).count();
    (nullified as u64, damaged as u64)
}

#[test]
fn a_bad_header_goes_nowhere() {
    let (cut, damaged) = wasted(Forwarding::CutThrough);
    let (checked, _) = wasted(Forwarding::HeaderChecked);
    let (stored, _) = wasted(Forwarding::StoreAndForward);
    assert!(damaged > 400, "{damaged}");
    assert_eq!(stored, 0);
    // 20 of 88 bytes are before forwarding begins.
    let share = checked as f64 / cut as f64;
    assert!((0.70..0.85).contains(&share), "{checked} of {cut}");
}

#[test]
fn store_and_forward_adds_its_latency_and_the_tlp_once_more() {
    use Forwarding::StoreAndForward;
    assert_eq!(latency(way(StoreAndForward, 1, 1)), ns(336 + 100 + 336));
    assert_eq!(latency(way(StoreAndForward, 1, 2)), ns(336 + 100 + 168));
    assert_eq!(latency(way(StoreAndForward, 2, 1)), ns(168 + 100 + 336));
}

#[test]
fn cut_through_adds_its_latency_and_the_header() {
    use Forwarding::CutThrough;
    // 16 bytes of header: 64 ns on x1, 32 ns on x2.
    assert_eq!(latency(way(CutThrough, 1, 1)), ns(64 + 100 + 336));
    assert_eq!(latency(way(CutThrough, 2, 1)), ns(32 + 100 + 336));
    // A faster egress waits, so that its last byte leaves when the last byte has come and been processed, never before.
    assert_eq!(latency(way(CutThrough, 1, 2)), ns(336 + 100));
    assert_eq!(latency(way(CutThrough, 1, 4)), ns(336 + 100));
}

#[test]
fn flight_counts_on_each_link() {
    use Forwarding::{CutThrough, StoreAndForward};
    let far = |forwarding| Way { flight: 10, ..way(forwarding, 1, 1) };
    assert_eq!(latency(far(StoreAndForward)), ns(336 + 10 + 100 + 336 + 10));
    assert_eq!(latency(far(CutThrough)), ns(64 + 10 + 100 + 336 + 10));
    let (_, watch) = run(far(CutThrough));
    let transaction = &watch.transactions()[0];
    assert_eq!(transaction.time_of(Cause::Flight), ns(20));
    assert_eq!(transaction.time_of(Cause::Processing), ns(100));
    assert_eq!(transaction.time_of(Cause::Serialisation), ns(64 + 336));
}

#[test]
fn a_switch_without_latency_is_a_wire_with_a_header_in_it() {
    let way = Way { latency: 0, ..way(Forwarding::CutThrough, 1, 1) };
    assert_eq!(latency(way), ns(64 + 336));
}

fn first_tlp(damage: Damage) -> Vec<Fault> {
    let kind = FaultKind::Nth { unit: FaultUnit::Tlp, n: 1, count: 1, damage };
    vec![Fault { direction: Direction::Up, kind }]
}

/// The TLP is bad at 336 ns, the Nak (8 bytes, 32 ns) is there at 368 ns, and the second copy starts.
#[test]
fn a_bad_tlp_is_nullified_by_cut_through_and_sent_again() {
    let bad = Way { latency: 0, faults: first_tlp(Damage::Corrupt), ..way(Forwarding::CutThrough, 1, 1) };
    let (fabric, watch) = run(bad);
    assert_eq!(watch.transactions()[0].latency(), ns(368 + 64 + 336));
    assert_eq!(watch.transactions()[0].time_of(Cause::Replay), ns(368));
    let up: Vec<_> = watch
        .units(&fabric, "sw0", 0)
        .iter()
        .filter_map(|u| match u.content {
            Content::Tlp { nullified, replay, .. } => Some((u.start, nullified, replay)),
            _ => None,
        })
        .collect();
    assert_eq!(up, [(Time::ZERO + ns(64), true, false), (Time::ZERO + ns(432), false, false)]);
    assert_eq!(fabric.tlps_live(), 0);
}

#[test]
fn a_bad_tlp_goes_no_further_than_a_store_and_forward_switch() {
    let bad =
        Way { latency: 0, faults: first_tlp(Damage::Corrupt), ..way(Forwarding::StoreAndForward, 1, 1) };
    let (fabric, watch) = run(bad);
    assert_eq!(watch.transactions()[0].latency(), ns(368 + 336 + 336));
    assert_eq!(watch.tlps(&fabric, "sw0", 0).len(), 1);
}

/// Nobody hears of a TLP that vanishes: its sender's REPLAY_TIMER does. Gen1 x1, MPS 256: 3 · 416 symbols of 4 ns from its last symbol.
#[test]
fn a_lost_tlp_waits_for_the_replay_timer() {
    let lost = Way { latency: 0, faults: first_tlp(Damage::Drop), ..way(Forwarding::CutThrough, 1, 1) };
    let (_, watch) = run(lost);
    assert_eq!(watch.transactions()[0].latency(), ns(336 + 3 * 416 * 4 + 64 + 336));
}

/// Whatever the rates, the last byte leaves a cut-through switch no sooner than it has come and been processed.
#[test]
fn cut_through_never_underruns() {
    for (gen_in, lanes_in, gen_out, lanes_out) in
        [(1, 1, 5, 16), (3, 4, 3, 8), (2, 8, 1, 4), (4, 2, 3, 4), (1, 2, 2, 1), (5, 1, 5, 12)]
    {
        let mut bench = Bench::new();
        let switch = bench.switch("sw0", "host.rp0", gen_out, lanes_out);
        switch.latency = ns(37);
        let moves = (0..30).map(|i| Move::Write { at: i * 4096, bytes: 4 + i * 60 }).collect();
        let (mover, _) = Mover::new(Base::Address(0x1_0000_0000), 8, moves);
        bench.device("dev", "sw0", gen_in, lanes_in).finishing(Box::new(mover));
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        fabric.run_until(Time::ZERO + Duration::from_us(200));
        let (came, left) = (watch.tlps(&fabric, "dev", 0), watch.tlps(&fabric, "sw0", 0));
        assert_eq!(came.len(), left.len());
        for ((came, request), (left, same)) in came.iter().zip(&left) {
            assert_eq!(request, same, "TLPs keep their order");
            assert!(left.end >= came.arrive + ns(37), "underrun: {} before {}", left.end, came.arrive);
        }
    }
}

/// A function reads and writes its neighbour's memory by the root complex, which sends what came from a port back by the same port. Each of
/// them that leaves frees a receive buffer of the port, whose credits let the next leave: all buffers are free in the end.
#[test]
fn functions_of_a_device_reach_each_other_by_the_root_complex() {
    for generation in [3, 6] {
        let mut bench = Bench::new();
        let moves = (0..60u64).flat_map(|i| {
            [
                Move::Write { at: i * 256, bytes: 256 },
                Move::Read { at: i * 256, bytes: 256 },
                Move::Read { at: 0, bytes: 4 },
            ]
        });
        let (mover, moved) = Mover::new(Base::Bar("memory".into(), 0), 8, moves.collect());
        bench
            .device("mover", "host.rp0", generation, 1)
            .config(|device| {
                let one = Buffers {
                    posted_headers: 1,
                    posted_data: 16,
                    non_posted_headers: 1,
                    non_posted_data: 8,
                    completion_headers: 1,
                    completion_data: 16,
                };
                device.link.upper.buffers = Some(one);
            })
            .finishing(Box::new(mover.unchecked()));
        bench
            .device("memory", "of mover", generation, 1)
            .config(|device| device.function_of = Some(FunctionOf { device: "mover".into(), number: 1 }))
            .memory(1 << 16);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
        fabric.run_until(fabric.now() + Duration::from_us(200));
        let moved = moved.lock().unwrap();
        assert_eq!((moved.read, moved.accepted, moved.failed.len()), (120, 60, 0), "gen{generation}");
        let lower = fabric.topology().links[0].ports[0];
        for class in [FcClass::Posted, FcClass::NonPosted, FcClass::Completion] {
            assert_eq!(fabric.credits_left(lower, class), Some(1), "gen{generation}, {class:?}");
        }
        assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    }
}
