//! Access control between peers (PCIe 5.0 §6.12): which TLPs go straight, which go up first, which go nowhere, and what the registers say of it.

use crate::bench::mover::{Base, Move, Moved, Mover};
use crate::bench::script::{Place, Script, Step, read, write};
use crate::bench::{Bench, Watch};
use std::sync::{Arc, Mutex};
use tlplab_cfgspace::ConfigSpace;
use tlplab_device::DmaError;
use tlplab_fabric::config::*;
use tlplab_fabric::errors::{ErrorKind, PeerRefusal};
use tlplab_fabric::{Builder, Ending, Fabric};
use tlplab_transaction::CompletionError;
use tlplab_units::{Bdf, Duration, Time};

const R: AcsControls = AcsControls::REQUEST_REDIRECT;
const C: AcsControls = AcsControls::COMPLETION_REDIRECT;
const U: AcsControls = AcsControls::UPSTREAM_FORWARDING;
const E: AcsControls = AcsControls::EGRESS_CONTROL;
const V: AcsControls = AcsControls::SOURCE_VALIDATION;

fn acs(enabled: AcsControls, forbidden: &[&str]) -> Option<AcsConfig> {
    Some(AcsConfig { enabled, forbidden: forbidden.iter().map(|name| (*name).to_string()).collect() })
}

/// `a`, `b` and `c` below one switch; the port above `a` has `of_a`, that above `b` `of_b`, and the root port has `root`.
fn three_below_a_switch(
    of_a: Option<AcsConfig>,
    of_b: Option<AcsConfig>,
    root: Option<AcsConfig>,
    moves: Vec<Move>,
    relaxed: bool,
) -> (Bench, Arc<Mutex<Moved>>) {
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 4).uplink.upper.acs = root;
    let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, moves);
    let a = bench.device("a", "sw0", 3, 4);
    a.config(|d| (d.link.upper.acs, d.relaxed_ordering) = (of_a, relaxed)).finishing(Box::new(mover));
    bench.device("b", "sw0", 3, 4).config(|d| d.link.upper.acs = of_b).memory(1 << 16);
    bench.device("c", "sw0", 3, 4).memory(1 << 16);
    (bench, moved)
}

fn moves() -> Vec<Move> {
    vec![Move::Write { at: 0, bytes: 64 }, Move::Read { at: 0, bytes: 64 }]
}

/// Names of the TLPs but messages that passed the switch's uplink, up and down.
fn on_uplink(fabric: &Fabric, watch: &Watch) -> [Vec<&'static str>; 2] {
    [0, 1].map(|direction| {
        let tlps = watch.tlps(fabric, "sw0", direction);
        tlps.iter().map(|(_, repr)| repr.name()).filter(|name| !name.starts_with("Msg")).collect()
    })
}

/// What was refused its way to a peer: the name of the port's node, the reason, requests, completions, and the name of the first sender.
fn refused(fabric: &Fabric) -> Vec<(String, PeerRefusal, u64, u64, String)> {
    let topology = fabric.topology();
    let told = fabric.refused_peers().map(|one| {
        let sender = topology.nodes.iter().find(|node| node.id == one.sender).unwrap().name.clone();
        let port = topology.ports[one.port.index()].name.clone();
        (port, one.reason, one.requests, one.completions, sender)
    });
    told.collect()
}

fn aborted(error: &DmaError) -> bool {
    matches!(error, DmaError::Completion(CompletionError::CompleterAbort { .. }))
}

#[test]
fn redirected_requests_and_completions_go_up_to_the_root_complex_and_come_down() {
    let requests = ["MWr", "MRd"];
    let all = ["MWr", "MRd", "CplD"];
    let isolated = AcsControls::ISOLATION;
    let root = acs(U, &[]);
    let cases: [(_, _, _, bool, &[&str]); 8] = [
        // Without the capability, or with all controls off: straight.
        (None, None, None, false, &[]),
        (acs(AcsControls::NONE, &[]), acs(AcsControls::NONE, &[]), root.clone(), false, &[]),
        // The port above the requester redirects requests, that above the completer completions.
        (acs(R, &[]), None, root.clone(), false, &requests),
        (None, acs(R, &[]), root.clone(), false, &[]),
        (None, acs(C, &[]), root.clone(), false, &["CplD"]),
        (acs(isolated, &[]), acs(isolated, &[]), root.clone(), false, &all),
        // Completions whose order is relaxed go straight.
        (acs(isolated, &[]), acs(isolated, &[]), root, true, &requests),
        // A root complex without the capability sends back what comes from below.
        (acs(R | C, &[]), acs(R | C, &[]), None, false, &all),
    ];
    for (of_a, of_b, root, relaxed, seen) in cases {
        let case = format!("{of_a:?} {of_b:?} {root:?} {relaxed}");
        let (bench, moved) = three_below_a_switch(of_a, of_b, root, moves(), relaxed);
        let (fabric, watch) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!(
            (moved.accepted, moved.read, moved.failed.len(), moved.wrong.len()),
            (1, 1, 0, 0),
            "{case}"
        );
        assert_eq!(on_uplink(&fabric, &watch), [seen.to_vec(), seen.to_vec()], "{case}");
        assert_eq!(fabric.errors().count(), 0, "{case}");
    }
}

/// Reflected requests need Upstream Forwarding at a root port that has access control.
#[test]
fn a_root_port_without_upstream_forwarding_refuses_reflected_requests() {
    let (bench, moved) = three_below_a_switch(acs(R, &[]), None, acs(R, &[]), moves(), false);
    let (fabric, _) = bench.finish();
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.failed.len()), (0, 1));
    let unsupported =
        matches!(moved.failed[0], DmaError::Completion(CompletionError::UnsupportedRequest { .. }));
    assert!(unsupported, "{:?}", moved.failed);
    let kinds: Vec<_> = fabric.errors().map(|error| error.kind).collect();
    assert!(kinds.contains(&ErrorKind::UnsupportedRequest { posted: true }), "{kinds:?}");
    let back = PeerRefusal::NoUpstreamForwarding;
    assert_eq!(refused(&fabric), [("host.rp0".into(), back, 2, 0, "a".into())]);
}

/// A completion that is redirected is dropped there as well, and its request times out.
#[test]
fn a_root_port_without_upstream_forwarding_drops_the_completions_that_come_back_to_it() {
    let reads = vec![Move::Read { at: 0, bytes: 64 }];
    let (bench, moved) = three_below_a_switch(None, acs(C, &[]), acs(C, &[]), reads, false);
    let (fabric, _) = bench.finish();
    assert_eq!(moved.lock().unwrap().read, 0);
    let back = PeerRefusal::NoUpstreamForwarding;
    assert_eq!(refused(&fabric), [("host.rp0".into(), back, 0, 1, "b".into())]);
}

#[test]
fn egress_control_forbids_the_peers_of_its_vector_and_lets_others_pass() {
    for (forbidden, passes) in
        [(&["b"][..], false), (&["c"][..], true), (&[][..], true), (&["b", "c"][..], false)]
    {
        let (bench, moved) = three_below_a_switch(acs(E, forbidden), None, None, moves(), false);
        let (fabric, watch) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!(on_uplink(&fabric, &watch), [vec![], Vec::<&str>::new()]);
        if passes {
            assert_eq!((moved.read, moved.failed.len(), fabric.errors().count()), (1, 0, 0));
            continue;
        }
        assert_eq!((moved.read, moved.failed.len()), (0, 1));
        assert!(aborted(&moved.failed[0]), "{:?}", moved.failed);
        let endings: Vec<_> = watch.transactions().iter().map(|t| t.ending).collect();
        assert!(endings.contains(&Ending::Lost), "a forbidden write is lost: {endings:?}");
        // Both at the switch's port above `a`.
        let errors: Vec<_> = fabric.errors().map(|error| (error.kind, error.count)).collect();
        assert_eq!(errors, [(ErrorKind::AcsViolation, 2)]);
        let port = fabric.errors().next().unwrap().port;
        assert_eq!(fabric.topology().ports[port.index()].name, "sw0");
        assert_eq!(refused(&fabric), [("sw0".into(), PeerRefusal::EgressControl, 2, 0, "a".into())]);
        // Nobody else has seen them.
        assert!(watch.tlps(&fabric, "b", 1).is_empty());
    }
}

#[test]
fn with_request_redirect_the_peers_of_the_vector_are_reached_by_way_of_the_root_complex() {
    for (forbidden, seen) in [(&["b"][..], &["MWr", "MRd"][..]), (&["c"][..], &[])] {
        let (bench, moved) = three_below_a_switch(acs(E | R, forbidden), None, acs(U, &[]), moves(), false);
        let (fabric, watch) = bench.finish();
        assert_eq!(moved.lock().unwrap().read, 1);
        assert_eq!(on_uplink(&fabric, &watch)[0], seen);
    }
}

/// `a` and `b` below `sw1`, which is below `sw0`: a request that `sw1` redirects comes to a port of `sw0` with the target behind it.
#[test]
fn upstream_forwarding_passes_requests_redirected_by_a_lower_switch() {
    for (of_upper, passes) in [(None, false), (acs(V, &[]), false), (acs(U, &[]), true)] {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 4);
        bench.switch("sw1", "sw0", 3, 4).uplink.upper.acs = of_upper;
        let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, moves());
        bench.device("a", "sw1", 3, 4).config(|d| d.link.upper.acs = acs(R, &[])).finishing(Box::new(mover));
        bench.device("b", "sw1", 3, 4).memory(1 << 16);
        let (fabric, watch) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!((moved.read, moved.failed.len()), if passes { (1, 0) } else { (0, 1) });
        let seen = if passes { vec!["MWr", "MRd"] } else { vec![] };
        assert_eq!(on_uplink(&fabric, &watch)[1], seen);
        let back = ("sw0".into(), PeerRefusal::NoUpstreamForwarding, 2, 0, "a".into());
        assert_eq!(refused(&fabric), if passes { vec![] } else { vec![back] });
    }
}

/// Root ports forbid each other, too.
#[test]
fn egress_control_of_root_ports_forbids_other_root_ports() {
    for (forbidden, passes) in [("b", false), ("c", true)] {
        let mut bench = Bench::new();
        let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, moves());
        let a = bench.device("a", "host.rp0", 3, 4);
        a.config(|d| d.link.upper.acs = acs(E, &[forbidden])).finishing(Box::new(mover));
        bench.device("b", "host.rp1", 3, 4).memory(1 << 16);
        bench.device("c", "host.rp2", 3, 4).memory(1 << 16);
        let (fabric, _) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!((moved.read, moved.failed.len()), if passes { (1, 0) } else { (0, 1) });
        let violations = fabric.errors().filter(|error| error.kind == ErrorKind::AcsViolation).count();
        assert_eq!(violations, usize::from(!passes));
    }
}

/// Each page takes a walk of the IOMMU, which holds up the requests behind it; no request passes it.
#[test]
fn requests_redirected_by_a_root_port_are_translated() {
    let one_write = |root: Option<AcsConfig>, iommu: bool| {
        let mut bench = Bench::new();
        if iommu {
            let (walk, interval) = (Duration::from_ns(700), Duration::ZERO);
            bench.config.host.iommu = Some(IommuConfig {
                page: 4096,
                entries: 8,
                walk,
                walkers: None,
                interval,
                tables: None,
                ats: false,
            });
        }
        let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, vec![Move::Write { at: 0, bytes: 64 }]);
        let a = bench.device("a", "host.rp0", 3, 4);
        a.config(|d| d.link.upper.acs = root).finishing(Box::new(mover));
        bench.device("b", "host.rp1", 3, 4).memory(1 << 16);
        let (_, watch) = bench.finish();
        assert_eq!(moved.lock().unwrap().accepted, 1);
        watch.transactions()[0].latency()
    };
    let direct = one_write(None, false);
    assert_eq!(one_write(acs(R, &[]), false), direct, "without an IOMMU");
    assert_eq!(one_write(None, true), direct, "without redirect");
    assert_eq!(one_write(acs(U, &[]), true), direct, "with another control");
    assert_eq!(one_write(acs(R, &[]), true), direct + Duration::from_ns(700));
    assert_eq!(one_write(acs(E | R, &["b"]), true), direct + Duration::from_ns(700), "a peer of the vector");
    assert_eq!(one_write(acs(E | R, &[]), true), direct, "a peer that egress control allows");
}

/// Writes, the reads behind them, and completions come in their order, even behind a walk; everything arrives.
#[test]
fn translated_requests_keep_order_and_lose_nothing() {
    let mut bench = Bench::new();
    bench.config.host.iommu = Some(IommuConfig {
        page: 4096,
        entries: 2,
        walk: Duration::from_ns(300),
        walkers: Some(1),
        interval: Duration::ZERO,
        tables: None,
        ats: false,
    });
    let mut moves = Vec::new();
    for i in 0..100 {
        moves.push(Move::Write { at: 4096 * (i % 7) + 64 * i, bytes: 64 });
        moves.push(Move::Read { at: 4096 * (i % 7) + 64 * i, bytes: 64 });
    }
    let mut all = Vec::new();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        bench.switch(&format!("s{from}"), &format!("host.rp{from}"), 3, 4).uplink.upper.acs =
            acs(AcsControls::ISOLATION, &[]);
        let (mover, moved) = Mover::new(Base::Bar(format!("m{to}"), 0), 1, moves.clone());
        bench.device(&format!("a{from}"), &format!("s{from}"), 3, 4).finishing(Box::new(mover));
        bench.device(&format!("m{from}"), &format!("s{from}"), 3, 4).memory(1 << 16);
        all.push(moved);
    }
    bench.finish();
    for moved in all {
        let moved = moved.lock().unwrap();
        assert_eq!((moved.accepted, moved.read, moved.failed.len(), moved.wrong.len()), (100, 100, 0, 0));
    }
}

/// The place of the capability, behind the 72 bytes of AER.
const ACS: u16 = 0x148;

/// Offset of the ACS capability of a space.
fn acs_offset(space: &ConfigSpace) -> u16 {
    let mut at = 0x100;
    while space.read(at) & 0xFFFF != 0x000D {
        at = (space.read(at) >> 20) as u16;
        assert_ne!(at, 0, "the capability is there");
    }
    at
}

#[test]
fn software_turns_the_controls_on_and_off_while_traffic_flows() {
    // The switch is bus 1, its downstream ports are on bus 2, in the order of the names below them.
    let port_above_a = Bdf::new(2, 0, 0).unwrap();
    let pause = || Step::Wait(Duration::from_us(5));
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 4).uplink.upper.acs = acs(U, &[]);
    let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, vec![Move::Read { at: 0, bytes: 64 }; 400]);
    let a = bench.device("a", "sw0", 3, 4);
    a.config(|d| d.link.upper.acs = acs(AcsControls::NONE, &[])).finishing(Box::new(mover));
    bench.device("b", "sw0", 3, 4).memory(1 << 16);
    let control = Place::Function(port_above_a, ACS + 6);
    let (script, heard) = Script::new(vec![
        pause(),
        write(control, &[R.bits(), 0]),
        read(control, 2),
        pause(),
        write(control, &[0, 0]),
    ]);
    bench.finishing_program(script);
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    let spaces = fabric.config_spaces();
    let space = &spaces.iter().find(|(id, _)| *id == port_above_a).unwrap().1;
    assert_eq!(acs_offset(space), ACS, "the test writes to the right place");
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
    assert!(fabric.is_done());
    assert_eq!((moved.lock().unwrap().read, heard.lock().unwrap().values()[0]), (400, R.bits().into()));
    let up: Vec<_> =
        watch.tlps(&fabric, "sw0", 0).into_iter().filter(|(_, repr)| repr.name() == "MRd").collect();
    // The first 5 µs and the time after the last write go straight.
    assert!((20..300).contains(&up.len()), "{}", up.len());
}

#[test]
fn a_vector_with_a_name_from_elsewhere_is_refused() {
    let (bench, _) = three_below_a_switch(acs(E, &["sw0"]), None, None, moves(), false);
    let mut builder = Builder::new(bench.config);
    for name in ["a", "b", "c"] {
        builder.device(name, Box::new(tlplab_device::Memory::new(1 << 12)));
    }
    let Err(error) = builder.build() else { panic!("sw0 is not below sw0") };
    assert_eq!(
        error.to_string(),
        "a: its port cannot forbid requests to \"sw0\", which is not under the same switch or root complex"
    );
    assert_eq!(error.component(), Some("a"));
}
