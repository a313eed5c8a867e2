//! Addresses that are translated, by the root complex and by devices that asked for it: where data go, what it costs, what is refused.

use crate::bench::mover::{Base, Move, Moved, Mover, bytes_at};
use crate::bench::script::{Place, Script, Step, read, write};
use crate::bench::watch::Unit;
use crate::bench::{Bench, Watch, ns};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tlplab_device::DmaError;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_fabric::{DeviceTranslations, Driven, Ending, Fabric, FaultReason};
use tlplab_transaction::CompletionError;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{AddressType, Kind, Repr, TransactionId};

const PAGE: u64 = 4096;
/// What device `a` sees, and where that is.
const FROM: u64 = 0x4000_0000;
const TO: u64 = 0x1_2345_6000;

const IOMMU: IommuConfig = IommuConfig {
    page: PAGE,
    entries: 64,
    walk: ns_of(200),
    walkers: None,
    interval: ns_of(0),
    tables: None,
    ats: true,
};

const fn ns_of(n: u64) -> Duration {
    Duration::from_ns(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ns(n)
}

fn map(device: &str, from: u64, bytes: u64, to: u64) -> MapConfig {
    MapConfig {
        device: Some(device.into()),
        from,
        bytes,
        to: MapTarget::Address(to),
        page: PAGE,
        read: true,
        write: true,
        since: Time::ZERO,
        until: None,
    }
}

fn to_bar(device: &str, from: u64, bytes: u64, target: &str) -> MapConfig {
    MapConfig { to: MapTarget::Bar { device: target.into(), offset: 0 }, ..map(device, from, bytes, 0) }
}

const ATS: AtsConfig = AtsConfig { entries: 16, outstanding: 4 };

/// A host with these tables.
fn host(maps: Vec<MapConfig>) -> Bench {
    let mut bench = Bench::new();
    (bench.config.host.iommu, bench.config.host.maps) = (Some(IOMMU), maps);
    bench
}

fn mover(bench: &mut Bench, name: &str, base: u64, ats: bool, moves: Vec<Move>) -> Arc<Mutex<Moved>> {
    let (mover, moved) = Mover::new(Base::Address(base), 1, moves);
    let port = format!("host.rp{}", bench.config.devices.len());
    let slot = bench.device(name, &port, 3, 4);
    slot.config(|d| d.ats = ats.then_some(ATS)).finishing(Box::new(mover.unchecked()));
    moved
}

fn faults(fabric: &Fabric) -> Vec<(FaultReason, u64, u64, bool)> {
    fabric.translation_faults().map(|f| (f.reason, f.count, f.address, f.write)).collect()
}

fn counts(fabric: &Fabric, device: &str) -> DeviceTranslations {
    let node = fabric.node(device).unwrap();
    fabric.device_translations().find(|(other, _)| *other == node).unwrap().1
}

/// Memory requests that a link carried towards the root complex: kind of address, name and address.
fn requests(fabric: &Fabric, watch: &Watch, link: &str) -> Vec<(AddressType, &'static str, u64)> {
    let request = |repr: &Repr| match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } => {
            Some((repr.attributes().at, repr.name(), span.address()))
        }
        _ => None,
    };
    watch.tlps(fabric, link, 0).iter().filter_map(|(_, repr)| request(repr)).collect()
}

/// `a` writes to two pages that lie elsewhere, in the other order; `b`, whose addresses stay as they are, finds the data there.
#[test]
fn data_go_to_their_translated_addresses() {
    for ats in [false, true] {
        let maps = vec![map("a", FROM, PAGE, TO + PAGE), map("a", FROM + PAGE, PAGE, TO)];
        let mut bench = host(maps);
        let a = mover(
            &mut bench,
            "a",
            FROM,
            ats,
            vec![Move::Write { at: PAGE - 300, bytes: 600 }, Move::Read { at: PAGE - 300, bytes: 600 }],
        );
        let wait = (0..50).map(|_| Move::Read { at: 0, bytes: 64 });
        let reads = [Move::Read { at: 2 * PAGE - 300, bytes: 300 }, Move::Read { at: 0, bytes: 300 }];
        let b = mover(&mut bench, "b", TO, false, wait.chain(reads).collect());
        let (fabric, watch) = bench.finish();
        let expected = bytes_at(FROM + PAGE - 300, 600);
        let b = b.lock().unwrap();
        assert_eq!(b.data[50].bytes().unwrap(), &expected[..300]);
        assert_eq!(b.data[51].bytes().unwrap(), &expected[300..]);
        assert_eq!(a.lock().unwrap().data[0].bytes().unwrap(), expected, "what it wrote is what it reads");
        assert_eq!(faults(&fabric), []);
        let seen = requests(&fabric, &watch, "a");
        let translated = seen.iter().filter(|(at, ..)| *at == AddressType::Translated).count();
        let asked: Vec<_> = seen.iter().filter(|(at, ..)| *at == AddressType::TranslationRequest).collect();
        if ats {
            assert_eq!((translated, asked.len()), (seen.len() - 2, 2));
            assert!(seen.iter().filter(|(at, ..)| *at == AddressType::Translated).all(|(.., a)| *a >= TO));
        } else {
            assert_eq!((translated, asked.len()), (0, 0));
            assert!(seen.iter().all(|(.., address)| *address < FROM + 2 * PAGE));
        }
    }
}

/// Accesses without a mapping, or without the right: reads are answered as unsupported, writes are lost; the IOMMU records their requester.
#[test]
fn unmapped_accesses_are_refused_and_recorded() {
    let read_only = MapConfig { write: false, ..map("a", FROM, PAGE, TO) };
    let write_only = MapConfig { read: false, ..map("a", FROM + PAGE, PAGE, TO + PAGE) };
    let moves = vec![
        Move::Write { at: 0, bytes: 64 },
        Move::Read { at: 0, bytes: 64 },
        Move::Write { at: PAGE, bytes: 64 },
        Move::Read { at: PAGE + 64, bytes: 64 },
        Move::Read { at: 2 * PAGE, bytes: 64 },
        Move::Write { at: 2 * PAGE + 64, bytes: 64 },
        Move::Read { at: 3 * PAGE, bytes: 64 },
    ];
    for ats in [false, true] {
        let mut bench = host(vec![read_only.clone(), write_only.clone()]);
        let a = mover(&mut bench, "a", FROM, ats, moves.clone());
        let (fabric, watch) = bench.finish();
        let moved = a.lock().unwrap();
        let unsupported = |error: &DmaError| {
            matches!(error, DmaError::Completion(CompletionError::UnsupportedRequest { .. }))
        };
        assert_eq!((moved.read, moved.failed.len()), (1, 3));
        assert!(moved.failed.iter().all(unsupported), "{:?}", moved.failed);
        let lost = watch.transactions().iter().filter(|t| t.ending == Ending::Lost).count();
        assert_eq!(lost, 2);
        assert_eq!(
            faults(&fabric),
            [
                (FaultReason::NotMapped, 3, FROM + 2 * PAGE, false),
                (FaultReason::NoRead, 1, FROM + PAGE + 64, false),
                (FaultReason::NoWrite, 1, FROM, true),
            ]
        );
        let requester = fabric.id_of("a").unwrap();
        assert!(fabric.translation_faults().all(|fault| fault.requester == requester));
        if ats {
            let counts = counts(&fabric, "a");
            // Two pages have translations, two do not: the third page is asked for twice. One request waits for a translation, and one finds it.
            assert_eq!((counts.asked, counts.denied), (5, 3), "{counts:?}");
            assert_eq!((counts.hits, counts.waited), (1, 1), "{counts:?}");
        }
    }
}

/// On a crossbar only data take time: 16 B/ns. The device takes 50 ns each way, the root complex 150 ns, memory 100 ns, a walk 200 ns.
///
/// A read of 64 B: 50 + 150 + 100 + 150 + 4 + 50 = 504 ns. The translation before it: 150 + 200 + 150 + 8/16 + 50 = 550.5 ns.
#[test]
fn the_first_read_waits_for_its_translation_and_the_second_does_not() {
    let latencies = |ats: bool, moves: Vec<Move>| {
        let mut bench = host(vec![map("a", FROM, 2 * PAGE, TO)]);
        (bench.config.host.latency, bench.config.host.memory.latency) = (ns(150), ns(100));
        mover(&mut bench, "a", FROM, ats, moves);
        let device = &mut bench.config.devices[0];
        (device.latency, device.link.crossbar) = (ns(50), Some(128_000_000_000));
        let (_, watch) = bench.finish();
        watch
            .transactions()
            .iter()
            .map(|t| (t.latency(), t.time_of(Cause::TranslationWait)))
            .collect::<Vec<_>>()
    };
    let read = |at| Move::Read { at, bytes: 64 };
    let translation = Duration::from_ps(550_500);
    let with = latencies(true, vec![read(0), read(64), read(PAGE), read(0)]);
    let (first, other) = ((ns(504) + translation, translation), (ns(504), ns(0)));
    assert_eq!(with, [first, other, first, other]);
    // Without it the walk is the root complex's, once for each page.
    let without = latencies(false, vec![read(0), read(64), read(PAGE), read(0)]);
    assert_eq!(without, [ns(704), ns(504), ns(704), ns(504)].map(|latency| (latency, ns(0))));
    // Translations of a transfer are asked for at once.
    let long = latencies(true, vec![Move::Read { at: PAGE - 64, bytes: 128 }]);
    let both = ns(504) + ns(4) + translation;
    assert!(long[0].0 <= both + Duration::from_ps(500), "{long:?}");
}

/// `a` and `b` below one switch that redirects: what `a` writes to `b` by an address of its own goes up and comes down; with a translation, straight.
#[test]
fn translated_requests_go_straight_to_a_peer_where_that_is_allowed() {
    let redirect = AcsControls::REQUEST_REDIRECT;
    let cases = [
        (false, redirect | AcsControls::DIRECT_TRANSLATED, false),
        (true, redirect, false),
        (true, redirect | AcsControls::DIRECT_TRANSLATED, true),
        (true, AcsControls::NONE, true),
    ];
    for (ats, enabled, direct) in cases {
        let mut bench = host(vec![to_bar("a", FROM, 4 * PAGE, "b")]);
        bench.switch("sw0", "host.rp0", 3, 4).uplink.upper.acs =
            Some(AcsConfig { enabled: AcsControls::UPSTREAM_FORWARDING, forbidden: Vec::new() });
        let moves = vec![Move::Write { at: 8, bytes: 64 }, Move::Read { at: 8, bytes: 64 }];
        let (mover, moved) = Mover::new(Base::Address(FROM), 1, moves);
        let acs = Some(AcsConfig { enabled, forbidden: Vec::new() });
        bench
            .device("a", "sw0", 3, 4)
            .config(|d| (d.ats, d.link.upper.acs) = (ats.then_some(ATS), acs))
            .finishing(Box::new(mover));
        bench.device("b", "sw0", 3, 4).memory(1 << 16);
        let (fabric, watch) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!((moved.read, moved.wrong.len(), moved.failed.len()), (1, 0, 0), "{ats} {enabled:?}");
        let up: Vec<_> = requests(&fabric, &watch, "sw0").iter().map(|(at, name, _)| (*at, *name)).collect();
        let asks = (AddressType::TranslationRequest, "MRd");
        let passes = |at| vec![(at, "MWr"), (at, "MRd")];
        let expected = match (ats, direct) {
            (false, _) => passes(AddressType::Untranslated),
            (true, true) => vec![asks],
            (true, false) => [vec![asks], passes(AddressType::Translated)].concat(),
        };
        assert_eq!(up, expected, "{ats} {enabled:?}");
        // It comes down to `b` where its BAR is.
        let base = fabric.devices()[1].bars[0].unwrap().0;
        let down: Vec<_> = watch.tlps(&fabric, "b", 1).iter().map(|(_, repr)| *repr).collect();
        let at_b = |repr: &Repr| match repr.kind() {
            Kind::MemWrite { span, .. } | Kind::MemRead { span, .. } => Some(span.address()),
            _ => None,
        };
        let places: Vec<_> = down.iter().filter_map(at_b).filter(|address| *address >= base).collect();
        assert_eq!(places, [base + 8, base + 8]);
        assert_eq!((fabric.errors().count(), faults(&fabric).len()), (0, 0));
    }
}

/// A port that blocks translated addresses refuses requests for translations, too, and what was translated.
#[test]
fn translation_blocking_stops_a_device_that_translates() {
    let mut bench = host(vec![map("a", FROM, PAGE, TO)]);
    let a = mover(&mut bench, "a", FROM, true, vec![Move::Read { at: 0, bytes: 64 }]);
    bench.config.devices[0].link.upper.acs =
        Some(AcsConfig { enabled: AcsControls::TRANSLATION_BLOCKING, forbidden: Vec::new() });
    let (fabric, watch) = bench.finish();
    let kinds: Vec<_> = requests(&fabric, &watch, "a").iter().map(|(at, ..)| *at).collect();
    // Nobody translates for it: it asks in vain, and goes on without.
    assert_eq!(kinds, [AddressType::TranslationRequest, AddressType::Untranslated]);
    assert_eq!(a.lock().unwrap().read, 1);
    let violations = fabric.errors().filter(|e| e.kind == tlplab_fabric::errors::ErrorKind::AcsViolation);
    assert_eq!(violations.map(|e| e.count).sum::<u64>(), 1);
}

/// An IOMMU that gives no translations to devices: software does not let them ask.
#[test]
fn without_the_hosts_leave_a_device_does_not_ask() {
    let mut bench = host(vec![map("a", FROM, PAGE, TO)]);
    bench.config.host.iommu = Some(IommuConfig { ats: false, ..IOMMU });
    let a = mover(&mut bench, "a", FROM, true, vec![Move::Read { at: 0, bytes: 64 }]);
    let (fabric, watch) = bench.finish();
    assert_eq!(requests(&fabric, &watch, "a"), [(AddressType::Untranslated, "MRd", FROM)]);
    assert_eq!((a.lock().unwrap().read, counts(&fabric, "a")), (1, DeviceTranslations::default()));
}

/// The page moves from one place to another at 20 µs while `a` writes: until the completion of the invalidation both places take writes, after it only
/// the new one. Reads that were under way with the old translation are over by then.
#[test]
fn after_an_invalidation_nothing_uses_the_old_translation() {
    let moved_at = at(20_000);
    let old = MapConfig { until: Some(moved_at), ..map("a", FROM, 8 * PAGE, TO) };
    let new = MapConfig { since: moved_at, ..map("a", FROM, 8 * PAGE, TO + (1 << 30)) };
    let mut bench = host(vec![old, new]);
    let moves: Vec<_> = (0..400)
        .flat_map(|n| {
            let at = n * 320 % (8 * PAGE - 512);
            [Move::Write { at, bytes: 256 }, Move::Read { at, bytes: 512 }]
        })
        .collect();
    let (mover, moved) = Mover::new(Base::Address(FROM), 16, moves);
    let slot = bench.device("a", "host.rp0", 3, 4);
    slot.config(|d| d.ats = Some(ATS)).finishing(Box::new(mover.unchecked()));
    let (fabric, watch) = bench.finish();
    let moved = moved.lock().unwrap();
    assert_eq!((moved.accepted, moved.read, moved.failed.len()), (400, 400, 0));
    assert_eq!(faults(&fabric), []);
    let up = watch.tlps(&fabric, "a", 0);
    let completed = up.iter().find_map(|(unit, repr)| match repr.kind() {
        Kind::Message(message) => message.completed_itags().map(|(itags, _)| (unit.start, itags)),
        _ => None,
    });
    let (completed, itags) = completed.expect("an invalidation was completed");
    assert!(completed > moved_at && completed < moved_at + ns(5_000), "{completed:?}");
    assert_eq!(itags, 1);
    let translated = |repr: &Repr| match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. }
            if repr.attributes().at == AddressType::Translated =>
        {
            Some(span.address() >= TO + (1 << 30))
        }
        _ => None,
    };
    let uses: Vec<_> = up.iter().filter_map(|(unit, repr)| Some((unit.start, translated(repr)?))).collect();
    assert!(uses.iter().any(|(sent, new)| *sent > moved_at && !new), "the test is about something");
    assert!(uses.iter().all(|(sent, new)| *new == (*sent > completed)), "old before, new after");
    let results = fabric.answered_translations().unwrap();
    assert_eq!((results.invalidations.sent, results.invalidations.completed), (1, 1));
    assert!(results.invalidations.longest > ns(0));
    let counts = counts(&fabric, "a");
    assert_eq!((counts.invalidations, counts.invalidated > 0), (1, true));
}

/// Copied at any time, with translations asked for, kept and being forgotten, both go on alike.
#[test]
fn a_copy_goes_on_as_the_original() {
    let until = Some(at(5_000));
    let maps = vec![
        MapConfig { until, ..map("a", FROM, 4 * PAGE, TO) },
        MapConfig { since: at(5_000), ..map("a", FROM, 4 * PAGE, TO + (1 << 30)) },
    ];
    let mut bench = host(maps);
    bench.config.host.memory.latency = ns(150);
    let moves = (0..200).map(|n| Move::Read { at: n * 832 % (4 * PAGE - 512), bytes: 512 }).collect();
    let (mover, _) = Mover::new(Base::Address(FROM), 8, moves);
    let slot = bench.device("a", "host.rp0", 3, 4);
    slot.config(|d| d.ats = Some(AtsConfig { entries: 2, outstanding: 2 }))
        .finishing(Box::new(mover.unchecked()));
    let mut fabric = bench.build();
    let end = at(200_000);
    let mut copies = Vec::new();
    for step in 1..40 {
        fabric.run_until(at(170 * step));
        copies.push(fabric.snapshot(None).unwrap());
    }
    fabric.run_until(end);
    assert!(fabric.is_done());
    for mut copy in copies {
        copy.run_until(end);
        assert_eq!(copy.trace_hash(), fabric.trace_hash());
        assert_eq!(counts(&copy, "a"), counts(&fabric, "a"));
        assert_eq!(copy.answered_translations(), fabric.answered_translations());
    }
}

/// Software forbids a function to translate, by a configuration write: it goes on untranslated.
#[test]
fn software_turns_it_off() {
    let mut bench = host(vec![map("a", FROM, PAGE, TO)]);
    bench.config.host.memory.latency = ns(300);
    let reads = (0..40).map(|_| Move::Read { at: 0, bytes: 64 }).collect();
    let a = mover(&mut bench, "a", FROM, true, reads);
    // Behind the 72 bytes of AER.
    let control = Place::Config("a", 0x100 + 0x48 + 6);
    let (script, _) = Script::new(vec![Step::Wait(ns(3000)), write(control, &[0, 0])]);
    bench.finishing_program(script);
    let (fabric, watch) = bench.finish();
    assert_eq!(a.lock().unwrap().read, 40);
    let kinds: Vec<_> = requests(&fabric, &watch, "a").iter().map(|(at, ..)| *at).collect();
    let last = kinds.iter().rposition(|at| *at == AddressType::Translated).unwrap();
    assert!(last > 2 && last < 39, "{last}");
    assert!(kinds[last + 1..].iter().all(|at| *at == AddressType::Untranslated));
    assert_eq!(faults(&fabric), []);
}

/// What is on its way with a translated address when software forbids that comes too late: it is refused and recorded, and what follows goes untranslated.
#[test]
fn translated_addresses_of_a_function_that_may_not_translate_are_refused() {
    let mut bench = host(vec![map("a", FROM, 8 * PAGE, TO)]);
    let moves = (0..200).map(|n| match n % 2 {
        0 => Move::Read { at: 64 * n, bytes: 64 },
        _ => Move::Write { at: 64 * n, bytes: 64 },
    });
    let (mover, moved) = Mover::new(Base::Address(FROM), 16, moves.collect());
    let slot = bench.device("a", "host.rp0", 3, 4);
    slot.config(|d| (d.ats, d.link.flight) = (Some(ATS), ns(1000))).finishing(Box::new(mover.unchecked()));
    let control = Place::Config("a", 0x100 + 0x48 + 6);
    let (script, _) = Script::new(vec![Step::Wait(ns(8000)), write(control, &[0, 0])]);
    bench.finishing_program(script);
    let (fabric, watch) = bench.finish();
    let [(reason, refused, address, _)] = faults(&fabric)[..] else { panic!("{:?}", faults(&fabric)) };
    assert_eq!(reason, FaultReason::Translated);
    assert!(address >= TO && refused > 0);
    let failed = watch.transactions().iter().filter(|t| t.ending != Ending::Done).count();
    assert_eq!(failed as u64, refused);
    let kinds: Vec<_> = requests(&fabric, &watch, "a").iter().map(|(at, ..)| *at).collect();
    let last = kinds.iter().rposition(|at| *at == AddressType::Translated).unwrap();
    assert!(kinds[last + 1..].iter().all(|at| *at == AddressType::Untranslated) && kinds.len() > last + 20);
    assert!(moved.lock().unwrap().read > 50);
}

/// A function asks itself for a translation of its neighbour's memory, below a switch that does not redirect: the neighbour refuses.
#[test]
fn a_device_refuses_translation_requests() {
    let mut bench = host(vec![]);
    bench.switch("sw0", "host.rp0", 3, 4);
    let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    bench.device("a", "sw0", 3, 4).config(|d| d.ats = Some(ATS)).finishing(Box::new(mover));
    bench.device("b", "sw0", 3, 4).memory(1 << 16);
    let (fabric, watch) = bench.finish();
    assert_eq!(moved.lock().unwrap().accepted, 1);
    let kinds: Vec<_> = watch.tlps(&fabric, "b", 1).iter().map(|(_, repr)| repr.attributes().at).collect();
    assert!(kinds.contains(&AddressType::TranslationRequest), "{kinds:?}");
    assert_eq!((counts(&fabric, "a").denied, fabric.refused()), (1, 1));
    assert!(requests(&fabric, &watch, "sw0").is_empty());
}

/// What the IOMMU keeps of a page is forgotten when software moves it: one walk more.
#[test]
fn a_page_that_moves_is_walked_again() {
    let moved_at = at(3000);
    let old = MapConfig { until: Some(moved_at), ..map("a", FROM, PAGE, TO) };
    let new = MapConfig { since: moved_at, ..map("a", FROM, PAGE, TO + PAGE) };
    let mut bench = host(vec![old, new]);
    bench.config.host.memory.latency = ns(100);
    mover(&mut bench, "a", FROM, false, vec![Move::Read { at: 0, bytes: 64 }; 60]);
    bench.config.devices[0].link.crossbar = Some(128_000_000_000);
    let (_, watch) = bench.finish();
    let walked: Vec<_> =
        watch.transactions().iter().filter(|t| t.latency() == ns(304)).map(|t| t.start).collect();
    assert_eq!((walked.len(), walked[0]), (2, Time::ZERO));
    assert!(walked[1] > moved_at && walked[1] < moved_at + ns(104), "{walked:?}");
    assert!(watch.transactions().iter().all(|t| t.latency() == ns(304) || t.latency() == ns(104)));
}

/// Two functions of a device have translations of their own, and each is told to forget its own.
#[test]
fn functions_of_a_device_translate_for_themselves() {
    let until = Some(at(10_000));
    let maps = vec![
        MapConfig { until, ..map("a", FROM, PAGE, TO) },
        MapConfig { until, ..map("a1", FROM, 2 * PAGE, TO + (1 << 30)) },
    ];
    let mut bench = host(maps);
    let mut all = Vec::new();
    for name in ["a", "a1"] {
        let moves = vec![Move::Write { at: 0, bytes: 64 }, Move::Read { at: 0, bytes: 64 }];
        let (mover, moved) = Mover::new(Base::Address(FROM), 1, moves);
        let slot = bench.device(name, "host.rp0", 3, 4).config(|d| d.ats = Some(ATS));
        let second = (name == "a1").then(|| FunctionOf { device: "a".into(), number: 1 });
        slot.config(|d| d.function_of = second).finishing(Box::new(mover));
        all.push(moved);
    }
    let (fabric, watch) = bench.finish();
    for moved in all {
        let moved = moved.lock().unwrap();
        assert_eq!((moved.read, moved.wrong.len(), moved.failed.len()), (1, 0, 0));
    }
    let places: Vec<_> = requests(&fabric, &watch, "a")
        .into_iter()
        .filter(|(at, ..)| *at == AddressType::Translated)
        .map(|(.., address)| address)
        .collect();
    assert!(places.contains(&TO) && places.contains(&(TO + (1 << 30))), "{places:x?}");
    // The second range is one of 8 KiB where it is aligned, as it is here.
    let results = fabric.answered_translations().unwrap();
    assert_eq!((results.invalidations.sent, results.invalidations.completed), (2, 2));
    assert_eq!(
        [counts(&fabric, "a"), counts(&fabric, "a1")].map(|c| (c.invalidations, c.invalidated)),
        [(1, 1); 2]
    );
}

/// A function is sent no more invalidations at once than it can queue, and all of them in the end.
#[test]
fn invalidations_wait_for_room_in_the_function() {
    // 0x1000 to 0xFFFFF000 are 2 × 19 pieces of powers of two.
    let whole = MapConfig { until: Some(at(2000)), ..map("a", 0x1000, 0xFFFF_E000, 0x1000) };
    let mut bench = host(vec![whole]);
    mover(&mut bench, "a", FROM, true, vec![Move::Read { at: 0, bytes: 64 }]);
    let (fabric, watch) = bench.finish();
    let results = fabric.answered_translations().unwrap();
    assert_eq!((results.invalidations.sent, results.invalidations.completed), (38, 38));
    let message = |repr: &Repr| match repr.kind() {
        Kind::Message(message) => Some(*message),
        _ => None,
    };
    let sent: Vec<_> = watch
        .tlps(&fabric, "a", 1)
        .iter()
        .filter_map(|(unit, repr)| Some((unit.start, message(repr)?.itag()?)))
        .collect();
    let done: Vec<_> = watch
        .tlps(&fabric, "a", 0)
        .iter()
        .filter_map(|(unit, repr)| message(repr)?.completed_itags().map(|_| unit.arrive))
        .collect();
    assert_eq!((sent.len(), done.len()), (38, 38));
    for (n, (start, itag)) in sent.iter().enumerate() {
        assert!(*itag < 32);
        // Of those before, all but 31 are completed.
        assert!(n < 32 || done[n - 32] <= *start, "{n}");
    }
}

/// The link is down when a page is taken away: nothing comes of that invalidation, since the function keeps nothing after its reset, and later ones are
/// completed.
#[test]
fn a_function_that_is_reset_keeps_nothing() {
    let gone = MapConfig { until: Some(at(10_100)), ..map("a", FROM, PAGE, TO) };
    let later = MapConfig { until: Some(at(400_000)), ..map("a", FROM + PAGE, PAGE, TO + PAGE) };
    let mut bench = host(vec![gone, later]);
    let reads = (0..3000).map(|n| Move::Read { at: PAGE * (n % 2), bytes: 64 }).collect();
    let (mover, moved) = Mover::new(Base::Address(FROM), 2, reads);
    let slot = bench.device("a", "host.rp0", 3, 4).config(|d| d.ats = Some(ATS));
    let until = Some(at(12_000));
    let down = Fault { direction: Direction::Up, kind: FaultKind::Down { at: at(10_000), until } };
    slot.config(|d| d.link.faults.push(down)).finishing(Box::new(mover.unchecked()));
    let mut fabric = bench.build();
    fabric.run_until(at(1_000_000));
    let state =
        (counts(&fabric, "a"), fabric.answered_translations(), faults(&fabric), moved.lock().unwrap().read);
    assert!(fabric.is_done(), "{state:?} {}", fabric.now());
    let results = fabric.answered_translations().unwrap();
    assert!(results.invalidations.completed >= 1, "{results:?}");
    assert!(results.invalidations.sent <= 2 && moved.lock().unwrap().read > 100, "{results:?}");
    // The first page is gone, and the second one later.
    let after = counts(&fabric, "a");
    assert_eq!(after.invalidations, 1);
    assert!(faults(&fabric).iter().all(|(reason, ..)| *reason == FaultReason::NotMapped));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
}

/// Four levels over four are 24 reads of tables, the next page 5.
#[test]
fn nested_tables_take_24_reads_for_four_levels_over_four() {
    let mut bench = host(vec![map("a", FROM, 2 * PAGE, TO)]);
    let tables = TablesConfig { levels: 4, nested: 4, step: ns(10), entries: 8, nested_entries: 32 };
    bench.config.host.iommu = Some(IommuConfig { tables: Some(tables), ..IOMMU });
    let reads = [0, 64, PAGE, 0].map(|at| Move::Read { at, bytes: 64 });
    mover(&mut bench, "a", FROM, false, reads.to_vec());
    bench.config.devices[0].link.crossbar = Some(128_000_000_000);
    let (_, watch) = bench.finish();
    let latencies: Vec<_> = watch.transactions().iter().map(|t| t.latency()).collect();
    assert_eq!(latencies, [4 + 240, 4, 4 + 50, 4].map(ns));
}

/// When the last completion of a read that left at `sent` arrived.
fn answered(down: &[(Unit, Repr)], id: TransactionId, sent: Time) -> Time {
    let last = |(unit, repr): &(Unit, Repr)| match repr.kind() {
        Kind::Completion(c) if c.id() == id && unit.start > sent && c.is_last() => Some(unit.arrive),
        _ => None,
    };
    down.iter().find_map(last).expect("every read is answered")
}

/// Pages of the address space of `a`, and a place of its own in memory for each page and each of its times.
#[derive(Clone, Debug)]
struct AnyTables {
    /// By page: nothing, or when it moves from one place to the next, in ns; and whether it is there at last.
    pages: Vec<Option<(Vec<u64>, bool)>>,
    moves: Vec<(bool, u64, u64, u64)>,
    ats: Option<(u16, u16)>,
    entries: u16,
    walk: u64,
    tables: Option<(u8, u16)>,
    outstanding: usize,
    stages: bool,
    latency: u64,
    reads: Option<u16>,
}

fn any_tables() -> impl Strategy<Value = AnyTables> {
    let times = prop::collection::btree_set(200u64..12_000, 0..4);
    let page =
        prop::option::weighted(0.9, (times.prop_map(|times| times.into_iter().collect()), any::<bool>()));
    (
        prop::collection::vec(page, 6),
        prop::collection::vec((any::<bool>(), 0u64..6, 0..PAGE / 256, 1u64..=256), 20..120),
        prop::option::weighted(0.7, (1u16..4, 0u16..4)),
        1u16..6,
        0u64..600,
        prop::option::weighted(0.4, (0u8..5, 1u16..4)),
        1usize..24,
        any::<bool>(),
        0u64..400,
        prop::option::weighted(0.3, 1u16..4),
    )
        .prop_map(|(pages, moves, ats, entries, walk, tables, outstanding, stages, latency, reads)| {
            AnyTables { pages, moves, ats, entries, walk, tables, outstanding, stages, latency, reads }
        })
}

/// The place of a page at its n-th time.
fn place(page: usize, time: usize) -> u64 {
    0x8000_0000 + ((page * 8 + time) as u64) * PAGE
}

impl AnyTables {
    fn maps(&self) -> Vec<MapConfig> {
        // One that nobody uses: without any its addresses would stay as they are.
        let mut maps = vec![map("a", FROM + 7 * PAGE, PAGE, place(7, 0))];
        for (page, times) in self.pages.iter().enumerate() {
            let Some((times, stays)) = times else { continue };
            let mut since = Time::ZERO;
            for (n, until) in times.iter().map(|ns| Some(at(*ns))).chain([None]).enumerate() {
                if until.is_none() && !times.is_empty() && !stays {
                    continue;
                }
                let from = FROM + page as u64 * PAGE;
                maps.push(MapConfig { since, until, ..map("a", from, PAGE, place(page, n)) });
                since = until.unwrap_or(since);
            }
        }
        maps
    }

    /// The span of time in which a place is the page's.
    fn span(&self, page: usize, time: usize) -> (Time, Time) {
        let times = &self.pages[page].as_ref().unwrap().0;
        let since = if time == 0 { Time::ZERO } else { at(times[time - 1]) };
        (since, times.get(time).map_or(Time::NEVER, |ns| at(*ns)))
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(48))]

    /// With any mappings, moved at any time: data are where the tables pointed at the time, no TLP uses a translation after its invalidation was
    /// completed, every access ends once, and each refused access is recorded.
    #[test]
    fn every_byte_lands_at_its_translation_of_the_time(any in any_tables()) {
        let mut bench = host(any.maps());
        let tables = any.tables.map(|(nested, entries)| TablesConfig {
            levels: 3,
            nested,
            step: ns(any.walk / 16),
            entries,
            nested_entries: 4 * entries,
        });
        let host = &mut bench.config.host;
        host.iommu = Some(IommuConfig { entries: any.entries, walk: ns(any.walk), walkers: Some(2), tables, ..IOMMU });
        (host.latency, host.memory.latency, host.reads) = (ns(any.latency / 4), ns(any.latency), any.reads);
        host.commit = ns(any.latency / 2);
        if any.stages {
            host.io_cache = Some(HostStageConfig { latency: ns(30), rate: Some(20_000_000_000), entries: Some(3) });
        }
        let moves: Vec<_> = any
            .moves
            .iter()
            .map(|&(write, page, block, bytes)| match (write, page * PAGE + 256 * block) {
                (true, at) => Move::Write { at, bytes },
                (false, at) => Move::Read { at, bytes },
            })
            .collect();
        let (mover, moved) = Mover::new(Base::Address(FROM), any.outstanding, moves.clone());
        let ats = any.ats.map(|(outstanding, more)| AtsConfig { entries: outstanding + more, outstanding });
        // Each access is one request, so that what ends and what is refused can be counted.
        let mps = tlplab_units::Mps::new(512).unwrap();
        let a = bench.device("a", "host.rp0", 3, 4);
        a.config(|d| (d.ats, d.link.mps) = (ats, mps)).finishing(Box::new(mover.unchecked()));
        // The addresses of `b` stay as they are.
        let own = 0x7000_0000;
        let (other, of_other) = Mover::new(Base::Address(own), 4, moves);
        let b = bench.device("b", "host.rp1", 3, 4);
        b.config(|d| (d.ats, d.link.mps) = (ats, mps)).finishing(Box::new(other.unchecked()));
        // The answers to the processor come behind the writes before them, whatever became of those.
        bench.device("m", "host.rp2", 3, 4).memory(1 << 16);
        let steps = (0..20).flat_map(|_| [read(Place::Bar("m", 0, 0), 4), Step::Wait(ns(150))]);
        let (script, heard) = Script::new(steps.collect());
        bench.finishing_program(script);
        let (mut fabric, watch) = bench.finish();

        prop_assert_eq!(heard.lock().unwrap().values().len(), 20);
        let moved = moved.lock().unwrap();
        let transactions = watch.transactions();
        prop_assert_eq!(transactions.len(), 2 * any.moves.len() + 20, "each ends once");
        let failed = transactions.iter().filter(|t| t.ending != Ending::Done).count() as u64;
        let refused: u64 = fabric.translation_faults().map(|fault| fault.count).sum();
        prop_assert_eq!(failed, refused);
        let lost = transactions.iter().filter(|t| t.ending == Ending::Lost).count();
        prop_assert_eq!(lost + moved.failed.len(), failed as usize);
        prop_assert_eq!(of_other.lock().unwrap().failed.len(), 0);

        // In memory: at each place, what was written to its page.
        let mut found = vec![0; PAGE as usize];
        for (page, times) in any.pages.iter().enumerate() {
            let Some((times, _)) = times else { continue };
            let right = bytes_at(FROM + page as u64 * PAGE, PAGE);
            for n in 0..=times.len() {
                fabric.host_memory().read(place(page, n), &mut found);
                let wrong = found.iter().zip(&right).any(|(found, right)| *found != 0 && found != right);
                prop_assert!(!wrong, "page {} at {}", page, n);
            }
            if times.is_empty() {
                for &(_, _, block, bytes) in any.moves.iter().filter(|(write, at, ..)| *write && *at == page as u64) {
                    let range = (256 * block) as usize..(256 * block + bytes) as usize;
                    fabric.host_memory().read(place(page, 0), &mut found);
                    prop_assert!(found[range.clone()] == right[range], "a write is missing");
                }
            }
        }
        for &(write, page, block, bytes) in &any.moves {
            let at = own + page * PAGE + 256 * block;
            let mut found = vec![0; bytes as usize];
            fabric.host_memory().read(at, &mut found);
            prop_assert!(!write || found == bytes_at(at, bytes));
        }

        // On the wire: where a page is at the time, or was, while the invalidation of that was not completed.
        let up = watch.tlps(&fabric, "a", 0);
        let down = watch.tlps(&fabric, "a", 1);
        // Requests leave in the order in which mappings end; completions say which one they complete.
        let completed: Vec<_> = down
            .iter()
            .filter_map(|(unit, repr)| match repr.kind() {
                Kind::Message(message) => Some((unit.arrive, message.itag()?)),
                _ => None,
            })
            .map(|(asked, itag)| {
                let completes = |(unit, repr): &(Unit, Repr)| match repr.kind() {
                    Kind::Message(m) => {
                        m.completed_itags().is_some_and(|(itags, _)| itags >> itag & 1 == 1) && unit.start >= asked
                    }
                    _ => false,
                };
                up.iter().find(|one| completes(one)).expect("it is completed").0.start
            })
            .collect();
        let results = fabric.answered_translations().unwrap();
        prop_assert_eq!(results.invalidations.sent, results.invalidations.completed);
        prop_assert_eq!(completed.len() as u64, results.invalidations.completed);
        if ats.is_some() {
            let ends = any.pages.iter().flatten().map(|(times, _)| times.len()).sum::<usize>();
            let later = any.pages.iter().flatten().flat_map(|(times, _)| times).filter(|ns| at(**ns) > fabric.now());
            prop_assert_eq!(completed.len(), ends - later.count());
        }
        for (unit, repr) in &up {
            let (Kind::MemRead { span, .. } | Kind::MemWrite { span, .. }) = repr.kind() else { continue };
            if repr.attributes().at != AddressType::Translated {
                prop_assert!(span.address() < FROM + 6 * PAGE);
                continue;
            }
            let number = ((span.address() - place(0, 0)) / PAGE) as usize;
            let (since, until) = any.span(number / 8, number % 8);
            prop_assert!(unit.start >= since);
            let ended = |page: usize, n: usize| any.span(page, n).1;
            let before = (0..6)
                .filter(|page| any.pages[*page].is_some())
                .flat_map(|page| (0..any.pages[page].as_ref().unwrap().0.len()).map(move |n| (page, n)))
                .filter(|(page, n)| (ended(*page, *n), *page) < (until, number / 8))
                .count();
            let gone = (until < Time::NEVER).then(|| completed.get(before).copied()).flatten();
            prop_assert!(gone.is_none_or(|gone| unit.start < gone), "{:?} {:?}", unit.start, gone);
            if let (Some(gone), Kind::MemRead { id, .. }) = (gone, repr.kind()) {
                let answered = answered(&down, *id, unit.start);
                prop_assert!(answered <= gone, "a read is answered at {:?}, after {:?}", answered, gone);
            }
        }
    }
}
