//! Links without credits, after the gem5 model of Alian et al. (2018): what a full port drops, the replay timer sends again.

use crate::bench::{Bench, ns, only_flow};
use tlplab_device::{LoadConfig, LoadOp};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Mps, Time};

struct Setup {
    flow_control: FlowControl,
    crossbar: Option<u64>,
    lanes: u8,
    port_buffer: u16,
    replay_tlps: u32,
}

const PAPER: Setup = Setup {
    flow_control: FlowControl::DropAndReplay,
    crossbar: None,
    lanes: 8,
    port_buffer: 16,
    replay_tlps: 4,
};

/// What the link above the disk did.
#[derive(Debug, PartialEq)]
struct Outcome {
    sent: u64,
    no_room: u64,
    timeouts: u64,
    replayed: u64,
}

/// A disk writes sectors of 4 KiB, one after the other, in non-posted writes of 128 B.
fn sectors(setup: &Setup, fidelity: Fidelity) -> Fabric {
    let mut bench = Bench::new();
    bench.config.fidelity = fidelity;
    bench.config.host.latency = ns(150);
    bench.config.host.port_buffer = Some(setup.port_buffer);
    bench.config.host.memory.latency = ns(132);
    let change = |link: &mut LinkConfig| {
        link.mps = Mps::ALL[0];
        (link.flow_control, link.crossbar) = (setup.flow_control, setup.crossbar);
        let port = PortConfig { replay_tlps: Some(setup.replay_tlps), ..PortConfig::default() };
        (link.upper, link.lower) = (port.clone(), port);
    };
    let switch = bench.switch("sw0", "host.rp0", 2, setup.lanes);
    (switch.latency, switch.forwarding) = (ns(150), Forwarding::StoreAndForward);
    switch.port_buffer = Some(setup.port_buffer);
    change(&mut switch.uplink);
    let load = LoadConfig {
        op: LoadOp::Write,
        size: 4096,
        count: Some(50),
        outstanding: 1,
        ..LoadConfig::default()
    };
    bench
        .device("disk", "sw0", 2, setup.lanes)
        .config(|device| {
            device.posted_writes = false;
            change(&mut device.link);
        })
        .load(load);
    let mut fabric = bench.build();
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
    assert!(fabric.is_done() && fabric.protocol_errors().count() == 0);
    assert_eq!(only_flow(&fabric).bytes, 50 * 4096, "every byte once");
    fabric
}

fn outcome(setup: &Setup) -> Outcome {
    let mut fabric = sectors(setup, Fidelity::LengthOnly);
    let link = fabric.topology().links.iter().find(|l| l.name == "disk").unwrap();
    let up = link.ports[0];
    let result = fabric.direction_result(up);
    Outcome {
        sent: result.wire.tlps,
        no_room: result.wire.no_room,
        timeouts: result.transmitter.replay_timeouts,
        replayed: result.wire.replayed,
    }
}

/// At x8 a write arrives every 37 ns. The switch accepts 16 until the first response is back, after 730 ns and more, and then one for
/// each further response, which takes longer than 37 ns in the long run: a sector of 32 writes meets a full port once, and all four
/// TLPs of the replay buffer are sent again after the timeout. With room for 24, or at x4, it never does.
#[test]
fn a_link_that_is_too_fast_for_the_ports_above_it_replays() {
    let none = Outcome { sent: 1600, no_room: 0, timeouts: 0, replayed: 0 };
    assert_eq!(outcome(&PAPER), Outcome { sent: 1600, no_room: 50, timeouts: 50, replayed: 200 });
    for lanes in [1, 2, 4] {
        assert_eq!(outcome(&Setup { lanes, ..PAPER }), none, "x{lanes}");
    }
    for port_buffer in [24, 28] {
        assert_eq!(outcome(&Setup { port_buffer, ..PAPER }), none, "room for {port_buffer}");
    }
}

#[test]
fn with_credits_nothing_is_dropped_and_nothing_replayed() {
    for (lanes, port_buffer, replay_tlps) in [(8, 16, 4), (8, 2, 4), (8, 16, 1), (1, 1, 2)] {
        let setup = Setup { flow_control: FlowControl::Credits, lanes, port_buffer, replay_tlps, ..PAPER };
        assert_eq!(outcome(&setup), Outcome { sent: 1600, no_room: 0, timeouts: 0, replayed: 0 });
    }
}

/// 32 writes of 152 B (their headers have four doublewords) at x1, whose serialisation takes 304 ns each, and the way of the last one and
/// its response: store and forward over two links, twice through switch and root complex, once to memory.
#[test]
fn sector_latency_matches_the_hand_calculation() {
    let fabric = sectors(&Setup { lanes: 1, ..PAPER }, Fidelity::Payload);
    let way = 304 + 150 + 304 + 150 + 132 + 150 + 40 + 150 + 40;
    let shortest = only_flow(&fabric).latency_min;
    // Besides, the Acks of the responses (16 ns each 414 ns, when there are responses) and SKP ordered sets (8 ns each 3 us) have the wire.
    let least = ns(31 * 304 + way + 23 * 16);
    let most = least + ns(4 * 16 + 5 * 8);
    assert!((least..=most).contains(&shortest), "{shortest}");
}

#[test]
fn lengths_only_and_again_give_the_same_trace() {
    let trace = |fidelity| sectors(&PAPER, fidelity).trace_hash();
    let first = trace(Fidelity::Payload);
    assert_eq!(first, trace(Fidelity::Payload));
    assert_eq!(first, trace(Fidelity::LengthOnly));
}

/// A crossbar sends nothing again, so a TLP that finds the node behind it full must wait, whatever the flow control of links.
#[test]
fn a_crossbar_drops_nothing() {
    for port_buffer in [1, 2, 16] {
        let [dropping, credits] = [FlowControl::DropAndReplay, FlowControl::Credits].map(|flow_control| {
            outcome(&Setup { crossbar: Some(128_000_000_000), flow_control, port_buffer, ..PAPER })
        });
        assert_eq!(dropping, credits);
        assert_eq!(dropping, Outcome { sent: 1600, no_room: 0, timeouts: 0, replayed: 0 });
    }
}
