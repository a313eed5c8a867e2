//! Parallel buses under load: everything arrives once, nobody starves, and the same run is the same again.

use crate::bench::mover::{Base, Move, Moved, Mover, bytes_at};
use crate::bench::{Bench, Watch, link, ns};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tlplab_device::{LoadConfig, LoadOp, Memory};
use tlplab_fabric::config::*;
use tlplab_fabric::{Driven, Fabric, NodeId};
use tlplab_units::{Duration, Time};

const REGION: u64 = 0x1_0000;
const HOST: u64 = 0x4000_0000;

/// A bus, the roles of its memory and of its movers, and what the movers and the host do.
#[derive(Clone, Debug)]
struct Any {
    mode: BusMode,
    width: BusWidth,
    bridge: BridgeConfig,
    roles: Vec<(BusDevice, u64)>,
    moves: Vec<Vec<Move>>,
    outstanding: usize,
}

fn any_role(pci_x: bool) -> impl Strategy<Value = (BusDevice, u64)> {
    let select = prop::sample::select(vec![DeviceSelect::Fast, DeviceSelect::Medium, DeviceSelect::Slow]);
    let later = if pci_x { BusCompletion::Split } else { BusCompletion::Delayed };
    let completion = prop::sample::select(vec![BusCompletion::Immediate, later]);
    (select, 0..3u16, completion, 0..5u16, prop::sample::select(vec![0, 40, 333])).prop_map(
        |(device_select, wait_states, completion, overhead, latency)| {
            (BusDevice { device_select, wait_states, completion, overhead }, latency)
        },
    )
}

fn any_moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (0..REGION / 1024, 1..700u64, any::<bool>()).prop_map(|(slot, bytes, write)| {
        let at = slot * 1024 + bytes % 5;
        if write { Move::Write { at, bytes } } else { Move::Read { at, bytes } }
    });
    prop::collection::vec(one, 1..24)
}

fn any_bus() -> impl Strategy<Value = Any> {
    (prop::sample::select(BusMode::ALL.to_vec()), 1..4usize).prop_flat_map(|(mode, movers)| {
        let width = prop::sample::select(vec![BusWidth::Bits32, BusWidth::Bits64]);
        let bridge = (1..4u16, 1..4u16, prop::sample::select(vec![0, 60]), 0..5u16).prop_map(
            |(posted, reads, latency, overhead)| BridgeConfig {
                posted,
                reads,
                latency: ns(latency),
                overhead,
                ..BridgeConfig::default()
            },
        );
        let roles = prop::collection::vec(any_role(mode.is_pci_x()), movers + 1);
        // Of the movers, of the host, and of the last mover in the memory beside it.
        let moves = prop::collection::vec(any_moves(), movers + 2);
        (Just(mode), width, bridge, roles, moves, 1..6usize).prop_map(
            |(mode, width, bridge, roles, moves, outstanding)| Any {
                mode,
                width,
                bridge,
                roles,
                moves,
                outstanding,
            },
        )
    })
}

impl Any {
    fn build(&self, change: fn(&mut FabricConfig)) -> (Fabric, Watch, Vec<Arc<Mutex<Moved>>>) {
        let mut bench = Bench::new();
        let uplink = link("host.rp0", 1, 1);
        bench.config.buses.push(BusConfig {
            width: self.width,
            bridge: self.bridge,
            ..BusConfig::new("bus", uplink, self.mode)
        });
        let mut moved = Vec::new();
        let (memory, movers) = self.roles.split_last().expect("a memory");
        let movers_in_memory = movers.len();
        for (i, (role, latency)) in movers.iter().enumerate() {
            let base = Base::Address(HOST + REGION * i as u64);
            let (mover, seen) = Mover::new(base, self.outstanding, self.moves[i].clone());
            let slot = bench.device(&format!("mover{i}"), "bus", 1, 1);
            let slot = slot.config(|device| (device.bus, device.latency) = (Some(*role), ns(*latency)));
            slot.finishing(Box::new(mover));
            moved.push(seen);
        }
        let peer = Base::Bar("memory".into(), 0);
        let filled = |moves: &[Move]| moves.iter().map(|one| as_write(*one)).chain(moves.to_vec()).collect();
        let (mover, seen) = Mover::new(peer.clone(), self.outstanding, filled(&self.moves[movers_in_memory]));
        let slot = bench.device("peer", "bus", 1, 1);
        slot.config(|device| device.bus = Some(movers[0].0)).finishing(Box::new(mover));
        moved.push(seen);
        let slot = bench.device("memory", "bus", 1, 1);
        let slot = slot.config(|device| (device.bus, device.latency) = (Some(memory.0), ns(memory.1)));
        slot.model(Box::new(Memory::new(1 << 20)));
        let (host, seen) = Mover::new(peer, self.outstanding, filled(&self.moves[movers_in_memory + 1]));
        bench.finishing_program(Box::new(host));
        moved.push(seen);
        change(&mut bench.config);
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        let all = REGION * movers_in_memory as u64;
        fabric.host_memory().write(HOST, &bytes_at(HOST, all));
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
        (fabric, watch, moved)
    }
}

fn as_write(one: Move) -> Move {
    match one {
        Move::Read { at, bytes } | Move::Write { at, bytes } => Move::Write { at, bytes },
    }
}

proptest! {
    #![proptest_config(crate::bench::any::cases(64))]

    #[test]
    fn everything_arrives_exactly_once(any in any_bus()) {
        let (mut fabric, watch, moved) = any.build(|_| {});
        prop_assert_eq!(fabric.fault(), None);
        prop_assert!(fabric.is_done(), "{} under way, {} TLPs", fabric.transactions_live(), fabric.tlps_live());
        fabric.run_until(fabric.now() + Duration::from_us(150));
        prop_assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
        prop_assert_eq!((fabric.refused(), fabric.unexpected_completions()), (0, 0));
        prop_assert_eq!(fabric.protocol_errors().count(), 0);
        for moved in moved {
            let moved = moved.lock().unwrap();
            prop_assert!(moved.wrong.is_empty() && moved.failed.is_empty(), "{:?}", *moved);
            prop_assert_eq!(moved.read + moved.accepted, moved.started);
        }
        watch.check_attribution(&fabric);
        let bus = &watch.seen().bus;
        prop_assert!(bus.windows(2).all(|pair| pair[0].end <= pair[1].start), "one at a time");
        let cycle = any.mode.cycle().as_fs();
        prop_assert!(bus.iter().all(|on_bus| on_bus.start.as_fs() % cycle == 0), "on the clock's edges");
    }

    #[test]
    fn a_run_is_a_function_of_experiment_and_seed(any in any_bus()) {
        let run = |change: fn(&mut FabricConfig)| {
            let (fabric, ..) = any.build(change);
            (fabric.trace_hash(), fabric.events(), fabric.now())
        };
        let first = run(|_| {});
        prop_assert_eq!(first, run(|_| {}), "the same again");
        prop_assert_eq!(first, run(|config| config.devices.reverse()), "declared in another order");
        prop_assert_eq!(first, run(|config| config.fidelity = Fidelity::LengthOnly), "lengths only");
    }
}

/// Devices that always want the bus have it in turn, whatever their names, and the bridge has its turn, too.
#[test]
fn masters_have_the_bus_in_turn() {
    for mode in BusMode::ALL {
        let mut bench = Bench::new();
        bench.config.buses.push(BusConfig::new("bus", link("host.rp0", 3, 8), mode));
        let names = ["a", "b", "c", "d"];
        for name in names {
            let load = LoadConfig { op: LoadOp::Write, size: 64, count: Some(100), ..LoadConfig::default() };
            bench
                .device(name, "bus", 1, 1)
                .config(|device| device.bus = Some(BusDevice::default()))
                .load(load);
        }
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
        assert!(fabric.is_done());
        let masters: Vec<NodeId> = watch.seen().bus.iter().map(|on_bus| on_bus.master).collect();
        assert_eq!(masters.len(), 400);
        // The first and the last few are not contended for by all.
        for round in masters[8..360].windows(names.len()) {
            let mut round = round.to_vec();
            round.sort();
            round.dedup();
            assert_eq!(round.len(), names.len(), "{}", mode.name());
        }
    }
}
