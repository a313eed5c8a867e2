//! Payloads and read requests as ports can and software sets: registers, how transfers are cut, what they take, computed by hand first, and what a port
//! makes of more than it may take.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, ns};
use tlplab_cfgspace::PortType;
use tlplab_fabric::config::*;
use tlplab_fabric::errors::ErrorKind;
use tlplab_fabric::{Ending, Fabric};
use tlplab_units::{Duration, Mps, Mrrs, Time};
use tlplab_wire::tlp::Kind;

fn size(bytes: u32) -> Mps {
    Mps::new(bytes).unwrap()
}

/// A switch whose ports can 512 B, but for the one above `small`, which can `port`; `large` and `small` can 512 B, and would read 512 B at once.
fn tree(policy: MpsPolicy, port: u32) -> Bench {
    let mut bench = Bench::new();
    (bench.config.host.payloads, bench.config.host.completion_timeout) = (policy, Duration::from_us(50));
    let off = |link: &mut LinkConfig| (link.mps, link.skp) = (size(512), SkpPolicy::Off);
    off(&mut bench.switch("sw0", "host.rp0", 1, 1).uplink);
    for name in ["large", "small"] {
        bench.device(name, "sw0", 1, 1);
        let device = bench.config.devices.last_mut().unwrap();
        (device.mrrs, device.completion_timeout) = (Mrrs::new(512).unwrap(), Duration::from_us(50));
        off(&mut device.link);
        device.link.upper.max_payload = (name == "small").then_some(size(port));
    }
    bench
}

/// `mover` moves 512 B, `still` is memory.
fn run(mut bench: Bench, mover: &str, base: Base, way: fn(u64, u64) -> Move, still: &str) -> (Fabric, Watch) {
    let (model, _) = Mover::new(base, 1, vec![way(0, 512)]);
    bench.behaviour(mover, Box::new(model.unchecked()), true);
    bench.behaviour(still, Box::new(tlplab_device::Memory::new(1 << 16)), false);
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(2)) {}
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    watch.check_attribution(&fabric);
    (fabric, watch)
}

fn write(at: u64, bytes: u64) -> Move {
    Move::Write { at, bytes }
}
fn read(at: u64, bytes: u64) -> Move {
    Move::Read { at, bytes }
}

/// Bytes of data of the TLPs that went by a link, by direction.
fn carried(fabric: &Fabric, watch: &Watch, link: &str, direction: u8) -> Vec<u32> {
    let tlps = watch.tlps(fabric, link, direction);
    tlps.iter().map(|(_, repr)| repr.payload_bytes()).filter(|bytes| *bytes > 4).collect()
}

#[test]
fn registers_show_supported_and_set_payload_sizes() {
    // (Max_Payload_Size supported, set, Max_Read_Request_Size) by place: root port, uplink, downstream ports to large and small, large, small.
    let shown = |policy: MpsPolicy, simulated: bool| {
        let mut bench = tree(policy, 256);
        bench.config.host.enumeration =
            if simulated { EnumerationTime::Simulated } else { EnumerationTime::Before };
        for name in ["large", "small"] {
            bench.behaviour(name, Box::new(tlplab_device::Memory::new(1 << 16)), false);
        }
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_ms(120));
        let found = fabric.hierarchy().unwrap().clone();
        let of = |(id, space): &(tlplab_units::Bdf, tlplab_cfgspace::ConfigSpace)| {
            let (pcie, at) = (space.pcie()?, found.function(*id)?.capability(0x10)?);
            let able = 128 << (space.read(at + 4) & 7);
            // What software believes is what stands there, but that it does not look whether a switch's port keeps its read request size.
            let function = found.function(*id)?;
            assert_eq!((function.mps_supported.bytes(), function.mps), (able, pcie.mps));
            let switch = matches!(pcie.port, Some(PortType::Upstream | PortType::Downstream));
            assert!(switch || function.mrrs == pcie.mrrs);
            Some((able, pcie.mps.bytes(), pcie.mrrs.bytes()))
        };
        fabric.config_spaces().iter().filter_map(of).collect::<Vec<_>>()
    };
    for simulated in [false, true] {
        let all = |set| {
            vec![
                (512, set, 512),
                (512, set, 128),
                (512, set, 128),
                (256, set, 128),
                (512, set, 512),
                (512, set, 512),
            ]
        };
        assert_eq!(shown(MpsPolicy::default(), simulated), all(256));
        assert_eq!(shown(MpsPolicy::Common(size(128)), simulated), all(128));
        assert_eq!(shown(MpsPolicy::Smallest, simulated), all(128));
        // What is below the port that can less has less, and asks for no more.
        let upward = [
            (512, 512, 512),
            (512, 512, 128),
            (512, 512, 128),
            (256, 256, 128),
            (512, 512, 512),
            (512, 256, 256),
        ];
        assert_eq!(shown(MpsPolicy::Upward, simulated), upward);
    }
}

/// Gen1 x1 carries a byte in 4 ns. A TLP to memory below 4 GiB has 20 bytes besides its data: 532 bytes with 512, 148 with 128. The switch adds a
/// header, 16 bytes, to a TLP that follows without a gap.
#[test]
fn a_write_is_split_by_the_mps_of_its_path() {
    let latency = |policy| {
        let (fabric, watch) = run(tree(policy, 128), "large", Base::Address(0x1000), write, "small");
        let cut = carried(&fabric, &watch, "sw0", 0);
        (cut, watch.transactions()[0].latency())
    };
    let common = latency(MpsPolicy::default());
    assert_eq!(common, (vec![128; 4], ns(4 * (16 + 4 * 148))));
    assert_eq!(latency(MpsPolicy::Upward), (vec![512], ns(4 * (16 + 532))));
}

/// Below the port of 128 B four requests of 128 B take the place of one of 512 B, and so none of the completions is larger.
#[test]
fn reads_ask_for_no_more_than_their_payload() {
    let asked = |policy| {
        let (fabric, watch) = run(tree(policy, 128), "small", Base::Address(0x1000), read, "large");
        assert_eq!(fabric.errors().count(), 0);
        let requests = watch.tlps(&fabric, "small", 0);
        let requests =
            requests.iter().filter(|(_, repr)| matches!(repr.kind(), Kind::MemRead { .. })).count();
        (requests, carried(&fabric, &watch, "small", 1))
    };
    assert_eq!(asked(MpsPolicy::default()), (1, vec![128; 4]));
    assert_eq!(asked(MpsPolicy::Upward), (4, vec![128; 4]));
}

/// With `upward` a device that may send 512 B writes to one behind a port that takes 128 B: it is malformed at the device, which takes 128 B, and lost.
#[test]
fn a_payload_above_the_mps_of_a_port_is_malformed() {
    let to_small = |policy| {
        let (fabric, watch) = run(tree(policy, 128), "large", Base::Bar("small".into(), 0), write, "small");
        let errors: Vec<_> =
            fabric.errors().map(|e| (fabric.topology().direction_name(e.port), e.kind, e.count)).collect();
        let endings: Vec<_> = watch.transactions().iter().map(|t| t.ending).collect();
        // The port reports it to the root port as a fatal error (PCIe 5.0 §6.2.7).
        let reports = fabric.reported_errors().map(|error| error.count).sum::<u64>();
        (errors, endings, reports)
    };
    assert_eq!(to_small(MpsPolicy::default()), (Vec::new(), vec![Ending::Done], 0));
    let malformed = vec![("small → sw0".to_owned(), ErrorKind::Malformed, 1)];
    assert_eq!(to_small(MpsPolicy::Upward), (malformed, vec![Ending::Lost], 1));
}

/// Between root ports the root complex cuts to what both take.
#[test]
fn the_root_complex_cuts_between_root_ports_that_differ() {
    let mut bench = tree(MpsPolicy::Upward, 512);
    bench.device("far", "host.rp1", 1, 1).config(|d| {
        (d.link.mps, d.link.lower.max_payload, d.link.upper.max_payload) =
            (size(512), Some(size(256)), Some(size(256)));
    });
    bench.behaviour("small", Box::new(tlplab_device::Memory::new(1 << 16)), false);
    let (fabric, watch) = run(bench, "large", Base::Bar("far".into(), 0), write, "far");
    assert_eq!(carried(&fabric, &watch, "sw0", 0), [512]);
    assert_eq!(carried(&fabric, &watch, "far", 1), [256, 256]);
    assert_eq!(fabric.errors().count(), 0);
}

/// A card that comes back gets what it and the ports above it can again.
#[test]
fn a_card_that_comes_back_is_set_as_before() {
    let mut bench = tree(MpsPolicy::Upward, 256);
    let at = |us| Time::ZERO + Duration::from_us(us);
    let kind = FaultKind::Down { at: at(5), until: Some(at(12)) };
    let small = bench.config.devices.last_mut().unwrap();
    small.link.faults = vec![Fault { direction: Direction::Down, kind }];
    for name in ["large", "small"] {
        bench.behaviour(name, Box::new(tlplab_device::Memory::new(1 << 16)), false);
    }
    let mut fabric = bench.build();
    let sizes = |fabric: &mut Fabric| {
        let of = |space: &tlplab_cfgspace::ConfigSpace| {
            space.pcie().filter(|pcie| pcie.port == Some(PortType::EndPoint))
        };
        let spaces = fabric.config_spaces();
        let found = spaces.iter().filter_map(|(_, space)| of(space));
        found.map(|pcie| (pcie.mps.bytes(), pcie.mrrs.bytes())).collect::<Vec<_>>()
    };
    let both = [(512, 512), (256, 256)];
    fabric.run_until(at(4));
    assert_eq!(sizes(&mut fabric), both);
    fabric.run_until(at(10));
    assert_eq!(sizes(&mut fabric), both[..1]);
    fabric.run_until(at(300_000));
    assert_eq!(sizes(&mut fabric), both);
}
