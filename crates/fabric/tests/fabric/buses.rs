//! Parallel buses below a bridge: how long reads take, by mode, device select, wait states and kind of completion.

use crate::bench::script::{Card, Heard, Place, Script, Step, read};
use crate::bench::{Bench, Watch, link, ns};
use std::sync::{Arc, Mutex};
use tlplab_cfgspace::PortType;
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_fabric::probe::BusOutcome;
use tlplab_units::{Duration, Time};

const READS: u64 = 61;

/// A card on a bus below a root port, and a program on the host.
fn bench(mode: BusMode, card: BusDevice, steps: Vec<Step>) -> (Bench, Arc<Mutex<Heard>>) {
    let mut bench = Bench::new();
    bench.config.buses.push(BusConfig::new("pcix", link("host.rp0", 1, 8), mode));
    let (model, _) = Card::new();
    bench.device("card", "pcix", 1, 1).config(|device| device.bus = Some(card)).model(model);
    let (script, heard) = Script::new(steps);
    bench.finishing_program(script);
    (bench, heard)
}

fn finish(bench: Bench) -> (Fabric, Watch) {
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
    assert_eq!(fabric.fault(), None);
    assert!(fabric.is_done(), "{} transactions under way", fabric.transactions_live());
    fabric.run_until(fabric.now() + Duration::from_us(150));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    watch.check_attribution(&fabric);
    (fabric, watch)
}

/// The least latency of reads at a place, of all phases to the clock of the bus in steps of 500 ps.
fn least(mode: BusMode, card: BusDevice, place: Place) -> Duration {
    let at = |k| [Step::Wait(Duration::from_ps(1_000_000 + 500 * k)), read(place, 4)];
    let (bench, heard) = bench(mode, card, (0..READS).flat_map(at).collect());
    let (_, watch) = finish(bench);
    assert_eq!(heard.lock().unwrap().values().len() as u64, READS);
    watch.transactions().iter().map(|transaction| transaction.latency()).min().unwrap()
}

fn bridge_itself(mode: BusMode) -> Duration {
    let bridge = tlplab_units::Bdf::new(1, 0, 0).unwrap();
    least(mode, BusDevice::default(), Place::Function(bridge, 0))
}

/// Clocks that a read takes longer than one of the bridge's own registers.
fn clocks(mode: BusMode, card: BusDevice, place: Place) -> u64 {
    let longer = least(mode, card, place) - bridge_itself(mode);
    assert_eq!(longer.as_fs() % mode.cycle().as_fs(), 0, "{longer} are whole clocks");
    longer.as_fs() / mode.cycle().as_fs()
}

fn card(device_select: DeviceSelect, completion: BusCompletion) -> BusDevice {
    BusDevice { device_select, completion, ..BusDevice::default() }
}

const REGISTER: Place = Place::Bar("card", 0, 0x10);
const IDS: Place = Place::Config("card", 0);

/// Miller et al. 2009, Table 4 and §3.1: 11 clocks for a slow target, one less for a medium one, 4 more for configuration on PCI-X.
#[test]
fn immediate_reads_take_the_published_clocks() {
    for mode in BusMode::ALL {
        let config = if mode.is_pci_x() { 4 } else { 0 };
        for (select, expected) in
            [(DeviceSelect::Fast, 9), (DeviceSelect::Medium, 10), (DeviceSelect::Slow, 11)]
        {
            let card = card(select, BusCompletion::Immediate);
            assert_eq!(clocks(mode, card, REGISTER), expected, "{}", mode.name());
            assert_eq!(clocks(mode, card, IDS), expected + config, "{}", mode.name());
        }
    }
}

/// A split read is two transactions, of which a fast bridge claims the second: T_split = 2 T_immediate - 2 T_cycle.
#[test]
fn the_identity_of_split_reads_is_exact() {
    for mode in [BusMode::PciX66, BusMode::PciX100, BusMode::PciX133] {
        let [immediate, split] = [BusCompletion::Immediate, BusCompletion::Split]
            .map(|completion| clocks(mode, card(DeviceSelect::Slow, completion), REGISTER));
        assert_eq!(split, 2 * immediate - 2);
    }
}

#[test]
fn wait_states_add_their_clocks() {
    for mode in BusMode::ALL {
        for wait_states in [0, 1, 7] {
            let card = BusDevice { wait_states, ..card(DeviceSelect::Slow, BusCompletion::Immediate) };
            assert_eq!(clocks(mode, card, REGISTER), 11 + u64::from(wait_states));
        }
    }
}

/// Address, attributes, decoding, data and turnaround of a split read's two transactions, and of an immediate one.
#[test]
fn causes_are_named_with_their_clocks() {
    let mode = BusMode::PciX133;
    let of = |completion| {
        let (bench, _) = bench(mode, card(DeviceSelect::Slow, completion), vec![read(REGISTER, 4)]);
        let (_, watch) = finish(bench);
        let transaction = watch.transactions().pop().unwrap();
        [Cause::Address, Cause::DeviceSelect, Cause::WaitState, Cause::DataPhase, Cause::Turnaround]
            .map(|cause| transaction.time_of(cause).as_fs() / mode.cycle().as_fs())
    };
    assert_eq!(of(BusCompletion::Immediate), [2, 3, 0, 1, 1]);
    assert_eq!(of(BusCompletion::Split), [2 + 2, 3 + 1, 0, 1 + 1, 1 + 1]);
}

/// 4 clocks of the bridge, 6 for the target to take the request, 2 in which the bridge lets others on the bus, 7 with the data; and
/// two more transactions for each time that the bridge comes too early.
#[test]
fn a_delayed_read_is_asked_for_again_until_the_data_are_there() {
    let mode = BusMode::Pci33;
    let delayed = card(DeviceSelect::Slow, BusCompletion::Delayed);
    assert_eq!(clocks(mode, delayed, REGISTER), 4 + 6 + 2 + 7);
    let retries = |latency| {
        let (mut bench, _) = bench(mode, delayed, vec![read(REGISTER, 4)]);
        bench.config.devices[0].latency = latency;
        let (_, watch) = finish(bench);
        let seen = watch.seen();
        let came_again = seen.bus.iter().filter(|on_bus| on_bus.outcome == BusOutcome::Retry).count();
        let retry = seen.transactions[0].time_of(Cause::Retry);
        (came_again, retry < mode.cycle() * 9)
    };
    assert_eq!(retries(ns(0)), (1, true));
    // The target needs 40 clocks; the bridge comes every 6 + 2.
    assert_eq!(retries(ns(600)), (6, true));
}

#[test]
fn a_bus_is_enumerated_like_any_other() {
    let mut bench = Bench::new();
    bench.config.buses.push(BusConfig::new("pcix", link("host.rp0", 1, 8), BusMode::PciX133));
    for name in ["c", "a", "b"] {
        let (model, _) = Card::new();
        bench
            .device(name, "pcix", 1, 1)
            .config(|device| device.bus = Some(BusDevice::default()))
            .model(model);
    }
    let mut fabric = bench.build();
    let id = |bus, device| tlplab_units::Bdf::new(bus, device, 0);
    assert_eq!(fabric.id_of("pcix"), id(1, 0));
    assert_eq!(["a", "b", "c"].map(|name| fabric.id_of(name)), [id(2, 0), id(2, 1), id(2, 2)]);
    for (function, space) in fabric.config_spaces() {
        let port = space.pcie().and_then(|pcie| pcie.port);
        let expected = match function.bus() {
            0 => (function.device() > 0).then_some(PortType::RootPort),
            1 => Some(PortType::BridgeToPci),
            _ => None,
        };
        assert_eq!(port, expected, "{function}");
    }
}

/// A card is told to copy: it reads memory, writes it, and interrupts by a message.
#[test]
fn a_card_on_a_bus_masters_it() {
    use crate::bench::script::{DOORBELL, write};
    for mode in BusMode::ALL {
        let source: u32 = 0x10_0000;
        let steps =
            vec![write(Place::Bar("card", 0, DOORBELL), &source.to_le_bytes()), Step::Wait(ns(100_000))];
        let (mut bench, heard) = bench(mode, BusDevice::default(), steps);
        bench.config.host.interrupts = InterruptPolicy::Msi;
        let (_, _) = finish(bench);
        assert_eq!(heard.lock().unwrap().interrupts.len(), 1, "{}", mode.name());
    }
}
