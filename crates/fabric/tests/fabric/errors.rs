//! Every error that a fault can provoke is detected where the specification says, once, and nothing is left in limbo.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, ns, only_flow};
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::config::*;
use tlplab_fabric::errors::ErrorKind;
use tlplab_fabric::{Ending, Fabric};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::CompletionStatus;

/// Where a fault is: on the link above this component, in this direction.
type Where = (&'static str, Direction);

const DEV_UP: Where = ("dev", Direction::Up);
const DEV_DOWN: Where = ("dev", Direction::Down);
const TOP_UP: Where = ("sw0", Direction::Up);
const TOP_DOWN: Where = ("sw0", Direction::Down);

/// A device below a switch writes and reads host memory, and the processor writes and reads the device's; MPS 256.
fn run(forwarding: Forwarding, faults: &[(Where, FaultKind)]) -> (Fabric, Watch) {
    run_with(forwarding, faults, false)
}

fn run_with(forwarding: Forwarding, faults: &[(Where, FaultKind)], ecrc: bool) -> (Fabric, Watch) {
    let mut bench = Bench::new();
    bench.config.host.ecrc = ecrc;
    bench.config.host.completion_timeout = Duration::from_us(40);
    let faults_at = |name: &str| {
        let of_link = faults.iter().filter(|((link, _), _)| *link == name);
        of_link.map(|&((_, direction), kind)| Fault { direction, kind }).collect::<Vec<_>>()
    };
    let switch = bench.switch("sw0", "host.rp0", 3, 4);
    switch.forwarding = forwarding;
    switch.uplink.recovery = ns(2000);
    switch.uplink.faults = faults_at("sw0");
    let moves = |at: u64| {
        let both = (0..6).map(move |i| at + i * 512);
        both.flat_map(|at| [Move::Write { at, bytes: 512 }, Move::Read { at, bytes: 512 }]).collect()
    };
    let (mover, _) = Mover::new(Base::Address(0x10_0000), 2, moves(0));
    bench
        .device("dev", "sw0", 3, 4)
        .config(|d| {
            d.completion_timeout = Duration::from_us(40);
            d.link.faults = faults_at("dev");
        })
        .finishing(Box::new(mover.unchecked()));
    bench.device("mem", "sw0", 3, 4).config(|d| d.link.faults = faults_at("mem")).memory(1 << 16);
    let (mover, _) = Mover::new(Base::Bar("mem".into(), 0), 2, moves(0));
    bench.finishing_program(Box::new(mover.unchecked()));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(2)) {}
    assert!(fabric.is_done(), "{} transactions under way", fabric.transactions_live());
    fabric.run_until(fabric.now() + Duration::from_us(200));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    watch.check_attribution(&fabric);
    (fabric, watch)
}

/// Where, what, how often; sorted. A port is named with its peer: `sw0 → dev` is the downstream port of sw0.
fn detected(fabric: &Fabric) -> Vec<(String, ErrorKind, u64)> {
    let mut all: Vec<_> =
        fabric.errors().map(|e| (fabric.topology().direction_name(e.port), e.kind, e.count)).collect();
    all.sort_unstable();
    all
}

fn failures(watch: &Watch) -> Vec<Ending> {
    let mut endings: Vec<_> =
        watch.transactions().iter().map(|t| t.ending).filter(|e| *e != Ending::Done).collect();
    endings.sort_by_key(|ending| *ending as u8);
    endings
}

/// What is done to one TLP: by whom it is detected, as what, and how its transaction ends.
type Case = (Where, &'static str, Tamper, &'static [(&'static str, ErrorKind)], &'static [Ending]);

#[test]
fn a_tlp_that_is_not_as_it_should_be() {
    use CompletionStatus as Status;
    use ErrorKind::{
        CompleterAbort, CompletionTimeout, Malformed, Poisoned, UnexpectedCompletion, UnsupportedRequest,
    };
    const POISON_ENDS: ErrorKind = Poisoned { handled: false };
    const POISON_PASSES: ErrorKind = Poisoned { handled: true };
    const POSTED: ErrorKind = UnsupportedRequest { posted: true };
    const NON_POSTED: ErrorKind = UnsupportedRequest { posted: false };
    use Malformation::{Boundary, Length, Payload, Type};
    let cases: &[Case] = &[
        // A poisoned write goes through the switch, and is not carried out; so do poisoned data that were asked for.
        (
            DEV_UP,
            "MWr",
            Tamper::Poison,
            &[("host.rp0 → sw0", POISON_ENDS), ("sw0 → dev", POISON_PASSES)],
            &[Ending::Poisoned],
        ),
        (
            TOP_DOWN,
            "CplD",
            Tamper::Poison,
            &[("dev → sw0", POISON_ENDS), ("sw0 → host.rp0", POISON_PASSES)],
            &[Ending::Poisoned],
        ),
        // The first receiver drops what is malformed; a write is lost, a read is never answered.
        (DEV_UP, "MWr", Tamper::Malform(Payload), &[("sw0 → dev", Malformed)], &[Ending::Lost]),
        (DEV_UP, "MWr", Tamper::Malform(Length), &[("sw0 → dev", Malformed)], &[Ending::Lost]),
        (TOP_UP, "MWr", Tamper::Malform(Boundary), &[("host.rp0 → sw0", Malformed)], &[Ending::Lost]),
        (
            DEV_UP,
            "MRd",
            Tamper::Malform(Type),
            &[("dev → sw0", CompletionTimeout), ("sw0 → dev", Malformed)],
            &[Ending::TimedOut],
        ),
        (
            TOP_DOWN,
            "MRd",
            Tamper::Malform(Boundary),
            &[("host.rp0 → sw0", CompletionTimeout), ("sw0 → host.rp0", Malformed)],
            &[Ending::TimedOut],
        ),
        (
            DEV_DOWN,
            "CplD",
            Tamper::Malform(Type),
            &[("dev → sw0", CompletionTimeout), ("dev → sw0", Malformed)],
            &[Ending::TimedOut],
        ),
        (DEV_DOWN, "CplD", Tamper::ByteCount, &[("dev → sw0", Malformed)], &[Ending::Malformed]),
        // Nobody waits for such a completion, and the one that is waited for never comes.
        (
            TOP_DOWN,
            "CplD",
            Tamper::Tag,
            &[("dev → sw0", CompletionTimeout), ("dev → sw0", UnexpectedCompletion)],
            &[Ending::TimedOut],
        ),
        (
            TOP_DOWN,
            "CplD",
            Tamper::Requester,
            &[("dev → sw0", CompletionTimeout), ("dev → sw0", UnexpectedCompletion)],
            &[Ending::TimedOut],
        ),
        // Addresses nobody claims: below the switch, at the switch, at the root complex.
        (DEV_UP, "MWr", Tamper::Address, &[("host.rp0 → sw0", POSTED)], &[Ending::Lost]),
        (DEV_UP, "MRd", Tamper::Address, &[("host.rp0 → sw0", NON_POSTED)], &[Ending::Unsupported]),
        (TOP_DOWN, "MRd", Tamper::Address, &[("sw0 → host.rp0", NON_POSTED)], &[Ending::Unsupported]),
        // A completer that gives up, and one that never answers.
        (
            DEV_UP,
            "MRd",
            Tamper::Refuse(Status::CompleterAbort),
            &[("host.rp0 → sw0", CompleterAbort { posted: false })],
            &[Ending::Aborted],
        ),
        (
            TOP_DOWN,
            "MRd",
            Tamper::Refuse(Status::UnsupportedRequest),
            &[("mem → sw0", NON_POSTED)],
            &[Ending::Unsupported],
        ),
        (TOP_UP, "MRd", Tamper::Lose, &[("dev → sw0", CompletionTimeout)], &[Ending::TimedOut]),
        (DEV_DOWN, "CplD", Tamper::Lose, &[("dev → sw0", CompletionTimeout)], &[Ending::TimedOut]),
        (TOP_UP, "CplD", Tamper::Lose, &[("host.rp0 → sw0", CompletionTimeout)], &[Ending::TimedOut]),
    ];
    for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
        for &(at, name, how, expected, ended) in cases {
            // The second completion is the last of the first read.
            let fault = FaultKind::Tamper { only: Some(name), n: 2, count: 1, how };
            let (fabric, watch) = run(forwarding, &[(at, fault)]);
            let mut expected: Vec<_> = expected.iter().map(|&(at, kind)| (at.to_owned(), kind, 1)).collect();
            expected.sort_unstable();
            assert_eq!(detected(&fabric), expected, "{forwarding:?} {at:?} {name} {how:?}");
            assert_eq!(failures(&watch), ended, "{forwarding:?} {at:?} {name} {how:?}");
        }
    }
}

/// What is late is only late, and what comes twice is nobody's; a read of 512 B has two completions of 256 B.
#[test]
fn a_tlp_that_is_late_or_comes_twice() {
    use ErrorKind::{CompletionTimeout, UnexpectedCompletion};
    type Detected<'a> = &'a [(&'static str, ErrorKind, u64)];
    let late = Tamper::Late(Duration::from_ns(300));
    let too_late = Tamper::Late(Duration::from_us(100));
    let nobodys = ("dev → sw0", UnexpectedCompletion, 2);
    let cases: &[(Where, &'static str, Tamper, Detected<'_>, &[Ending])] = &[
        (DEV_DOWN, "CplD", Tamper::Twice, &[("dev → sw0", UnexpectedCompletion, 1)], &[]),
        (DEV_UP, "MWr", Tamper::Twice, &[], &[]),
        (DEV_UP, "MRd", Tamper::Twice, &[nobodys], &[]),
        (DEV_UP, "MRd", late, &[], &[]),
        (DEV_DOWN, "CplD", late, &[], &[]),
        (TOP_UP, "MWr", late, &[], &[]),
        (DEV_DOWN, "CplD", Tamper::Ones, &[], &[]),
        (DEV_UP, "MRd", too_late, &[("dev → sw0", CompletionTimeout, 1), nobodys], &[Ending::TimedOut]),
    ];
    for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
        for &(at, name, how, expected, ended) in cases {
            let fault = FaultKind::Tamper { only: Some(name), n: 2, count: 1, how };
            let (fabric, watch) = run(forwarding, &[(at, fault)]);
            let mut expected: Vec<_> =
                expected.iter().map(|&(at, kind, n)| (at.to_owned(), kind, n)).collect();
            expected.sort_unstable();
            assert_eq!(detected(&fabric), expected, "{forwarding:?} {at:?} {name} {how:?}");
            assert_eq!(failures(&watch), ended, "{forwarding:?} {at:?} {name} {how:?}");
        }
    }
}

/// A deferrable write that comes twice is executed and completed twice; its data are counted once, at memory and at a device.
#[test]
fn the_copy_of_a_deferrable_write_is_not_counted() {
    let targets = [Target::Address(1 << 32), Target::Bar { device: "mem".into(), bar: 0 }];
    for target in targets {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 4);
        let how = Tamper::Twice;
        let kind = FaultKind::Tamper { only: Some("DMWr"), n: 2, count: 3, how };
        let load = LoadConfig {
            op: LoadOp::Write,
            size: 64,
            count: Some(10),
            target: target.clone(),
            ..LoadConfig::default()
        };
        bench.device("mem", "sw0", 3, 4).memory(1 << 20);
        let writer = bench.device("dev", "sw0", 3, 4).config(|device| {
            device.posted_writes = false;
            device.link.faults.push(Fault { direction: Direction::Up, kind });
        });
        writer.load(load);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
        let flow = only_flow(&fabric);
        assert_eq!((flow.transactions, flow.bytes), (10, 640), "{target:?}");
    }
}

/// Bits of data are inverted where the fault says, with good CRCs: nobody detects it. A TLP without that byte is not counted.
#[test]
fn data_that_change_arrive_changed() {
    use crate::bench::script::{Card, Place, Script, read, write};
    let register = |offset| Place::Bar("card", 0, offset);
    // (direction, TLP, n, byte, inverted bits, what the three reads give)
    let cases: [(_, _, _, _, _, [u64; 3]); 5] = [
        (Direction::Down, "MWr", 1, 2, 0x1_8001, [0xD567_7788, 0x1122_3344, 0xAA]),
        (Direction::Down, "MWr", 2, 0, 0xFFFF_FFFF, [0x5566_7788, 0x1122_3344, 0x55]),
        // The other writes have no byte 3: this is the second that has.
        (Direction::Down, "MWr", 2, 3, 0xFF, [0x5566_7788, 0xEE22_3344, 0xAA]),
        (Direction::Up, "CplD", 3, 0, 0xFF00_0001, [0x5566_7788, 0x1122_3344, 0xAB]),
        (Direction::Up, "CplD", 4, 0, 1, [0x5566_7788, 0x1122_3344, 0xAA]),
    ];
    for (direction, only, n, byte, flip, expected) in cases {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 4);
        let how = Tamper::Data { byte, flip };
        let kind = FaultKind::Tamper { only: Some(only), n, count: 1, how };
        let (card, _) = Card::new();
        bench
            .device("card", "sw0", 3, 4)
            .config(|d| d.link.faults.push(Fault { direction, kind }))
            .model(card);
        let (script, heard) = Script::new(vec![
            write(register(0x20), &0x5566_7788_u32.to_le_bytes()),
            write(register(0x30), &[0xAA]),
            write(register(0x28), &0x1122_3344_u32.to_le_bytes()),
            read(register(0x20), 4),
            read(register(0x28), 4),
            read(register(0x30), 1),
        ]);
        bench.finishing_program(script);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
        assert_eq!(
            heard.lock().unwrap().values(),
            expected,
            "{direction:?} {only} #{n}: {flip:#x} at {byte}"
        );
        assert_eq!(detected(&fabric), [], "{direction:?} {only} #{n}");
    }
}

/// With digests on every TLP a wrong one is found where the TLP ends, and not before; the TLP is dropped.
#[test]
fn digests_are_checked_end_to_end() {
    use ErrorKind::{CompletionTimeout, Ecrc};
    let cases: [Case; 3] = [
        (DEV_UP, "MWr", Tamper::Ecrc, &[("host.rp0 → sw0", Ecrc)], &[Ending::Lost]),
        (
            TOP_DOWN,
            "CplD",
            Tamper::Ecrc,
            &[("dev → sw0", CompletionTimeout), ("dev → sw0", Ecrc)],
            &[Ending::TimedOut],
        ),
        (
            TOP_DOWN,
            "MRd",
            Tamper::Ecrc,
            &[("host.rp0 → sw0", CompletionTimeout), ("mem → sw0", Ecrc)],
            &[Ending::TimedOut],
        ),
    ];
    for (at, name, how, expected, endings) in cases {
        let fault = FaultKind::Tamper { only: Some(name), n: 2, count: 1, how };
        let (fabric, watch) = run_with(Forwarding::CutThrough, &[(at, fault)], true);
        let mut expected: Vec<_> = expected.iter().map(|&(at, kind)| (at.to_owned(), kind, 1)).collect();
        expected.sort_unstable();
        assert_eq!(detected(&fabric), expected, "{at:?} {name}");
        assert_eq!(failures(&watch), endings, "{at:?} {name}");
        // Without digests the fault finds nothing to strike.
        let (fabric, _) = run(Forwarding::CutThrough, &[(at, fault)]);
        assert_eq!(detected(&fabric), [], "{at:?} {name}");
    }
}

/// What happens on the wire of the uplink, who notices, and how often at least.
type WireCase = (Direction, FaultKind, &'static [(&'static str, ErrorKind, u64)]);

#[test]
fn data_link_errors_are_counted_and_fail_no_transaction() {
    use ErrorKind::{BadDllp, BadTlp, DataLinkProtocol, FlowControlProtocol, ReplayNumRollover, ReplayTimer};
    let nth = |unit, n, count, damage| FaultKind::Nth { unit, n, count, damage };
    let cases: &[WireCase] = &[
        // Those after the bad one are out of sequence, which is no news.
        (Direction::Up, nth(FaultUnit::Tlp, 2, 1, Damage::Corrupt), &[("host.rp0 → sw0", BadTlp, 1)]),
        (Direction::Up, nth(FaultUnit::Called("MWr"), 1, 1, Damage::Drop), &[("host.rp0 → sw0", BadTlp, 1)]),
        (
            Direction::Down,
            nth(FaultUnit::Called("UpdateFC"), 1, 1, Damage::Corrupt),
            &[("sw0 → host.rp0", BadDllp, 1)],
        ),
        (
            Direction::Down,
            nth(FaultUnit::Called("Ack"), 1, 3, Damage::Drop),
            &[("sw0 → host.rp0", ReplayTimer, 1)],
        ),
        (
            Direction::Down,
            nth(FaultUnit::Called("Ack"), 1, 80, Damage::Drop),
            &[("sw0 → host.rp0", ReplayTimer, 4), ("sw0 → host.rp0", ReplayNumRollover, 1)],
        ),
        (
            Direction::Down,
            FaultKind::Forge { n: 2, count: 1, how: Forgery::AckUnsent },
            &[("sw0 → host.rp0", DataLinkProtocol, 1)],
        ),
        (
            Direction::Up,
            FaultKind::Forge { n: 2, count: 1, how: Forgery::TakeBack },
            &[("host.rp0 → sw0", FlowControlProtocol, 1)],
        ),
    ];
    for &(direction, fault, expected) in cases {
        let (fabric, watch) = run(Forwarding::StoreAndForward, &[(("sw0", direction), fault)]);
        let mut found = detected(&fabric);
        for &(at, kind, least) in expected {
            let place = found.iter().position(|(a, k, n)| a == at && *k == kind && *n >= least);
            found.remove(place.unwrap_or_else(|| panic!("{fault:?}: {kind:?} in {found:?}")));
        }
        assert_eq!(found, [], "{fault:?}");
        // What the data link layer corrects, or merely notices, costs nobody anything but time.
        assert_eq!(failures(&watch), [], "{fault:?}");
    }
}

/// A receiver with room for two posted TLPs and a memory that is slower than the link hears of more than it has granted.
#[test]
fn more_than_was_granted_overflows() {
    let mut bench = Bench::new();
    bench.config.host.memory.bandwidth = Some(1_000_000_000);
    let buffers = Buffers {
        posted_headers: 2,
        posted_data: 64,
        non_posted_headers: 2,
        non_posted_data: 2,
        completion_headers: 0,
        completion_data: 0,
    };
    let moves = (0..40).map(|i| Move::Write { at: i * 256, bytes: 256 }).collect();
    let (mover, _) = Mover::new(Base::Address(0x10_0000), 8, moves);
    bench
        .device("dev", "host.rp0", 3, 4)
        .config(|d| {
            d.link.upper.buffers = Some(buffers);
            let kind = FaultKind::Forge { n: 3, count: 1, how: Forgery::Overgrant(4) };
            d.link.faults.push(Fault { direction: Direction::Down, kind });
        })
        .finishing(Box::new(mover));
    let mut fabric = bench.build();
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(2)) {}
    assert!(fabric.is_done());
    let found = detected(&fabric);
    let overflows = found.iter().find(|e| e.1 == ErrorKind::ReceiverOverflow).expect("it overflows");
    assert_eq!(overflows.0, "host.rp0 → dev");
    assert!((1..=4).contains(&overflows.2), "{found:?}");
}

/// The port above a link that goes down says so; the requests that were under way are answered by it, or time out.
#[test]
fn a_link_that_goes_down_is_a_surprise() {
    let down = FaultKind::Down { at: Time::ZERO + ns(700), until: Some(Time::ZERO + ns(9000)) };
    let (fabric, watch) = run(Forwarding::CutThrough, &[(("mem", Direction::Up), down)]);
    let found = detected(&fabric);
    assert!(found.contains(&("sw0 → mem".to_owned(), ErrorKind::SurpriseDown, 1)), "{found:?}");
    let answered = |e: &&(String, ErrorKind, u64)| {
        e.0 == "sw0 → host.rp0" && matches!(e.1, ErrorKind::UnsupportedRequest { .. })
    };
    assert!(found.iter().any(|e| answered(&e)), "{found:?}");
    assert!(!failures(&watch).is_empty());
}
