//! Devices with more than eight functions: what would be the device number is part of the function's (ARI).

use crate::bench::script::{Card, Place, Script, read, write};
use crate::bench::{Bench, ns};
use tlplab_device::{LoadConfig, LoadOp};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::*;
use tlplab_units::{Bdf, Duration, Time};

const FUNCTIONS: [(&str, u8); 4] = [("three", 3), ("eight", 8), ("many", 200), ("last", 255)];

/// A card behind a switch whose functions all read memory, and a program that reads their registers.
fn many_functions(simulated: bool) -> (Bench, std::sync::Arc<std::sync::Mutex<crate::bench::script::Heard>>) {
    let mut bench = Bench::new();
    if simulated {
        bench.config.host.enumeration = EnumerationTime::Simulated;
    }
    bench.switch("sw0", "host.rp0", 3, 4).latency = ns(50);
    bench.device("card", "sw0", 3, 4).model(Card::new().0);
    for (name, number) in FUNCTIONS {
        let of = FunctionOf { device: "card".into(), number };
        let load = LoadConfig { op: LoadOp::Read, size: 512, count: Some(20), ..LoadConfig::default() };
        bench.device(name, "unused", 1, 1).config(|config| config.function_of = Some(of)).load(load);
    }
    let places = ["card"].into_iter().chain(FUNCTIONS.map(|(name, _)| name));
    let (program, heard) = Script::new(places.map(|name| read(Place::Config(name, 0), 4)).collect());
    bench.finishing_program(program);
    (bench, heard)
}

fn ids(fabric: &Fabric) -> Vec<String> {
    FUNCTIONS.map(|(name, _)| fabric.id_of(name).unwrap().to_string()).to_vec()
}

#[test]
fn every_function_is_found_and_gets_its_own_answers() {
    for simulated in [false, true] {
        let (bench, heard) = many_functions(simulated);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
        assert!(fabric.is_done(), "all reads have come back to who asked");
        assert_eq!(fabric.hierarchy().unwrap().problems, []);
        assert_eq!(fabric.id_of("card").unwrap().to_string(), "03:00.0");
        assert_eq!(ids(&fabric), ["03:00.3", "03:01.0", "03:19.0", "03:1f.7"]);
        let heard = heard.lock().unwrap();
        assert_eq!(heard.reads.len(), 5);
        assert!(
            heard.reads.iter().all(|read| read.as_ref().is_ok_and(|id| id[..2] == [0xAB, 0x71])),
            "{:x?}",
            heard.reads
        );
        for (name, _) in FUNCTIONS {
            let flow =
                fabric.flow_ids().find(|id| fabric.topology().flows[id.index()].name.starts_with(name));
            assert_eq!(fabric.flow_results(flow.unwrap()).transactions, 20, "{name}");
        }
    }
}

/// A switch has function 0 only, also if its root port is told that eight bits are a function's number (PCIe 5.0 §6.13).
#[test]
fn no_other_function_is_taken_for_a_switch() {
    let (root_port, upstream) = (Bdf(0x0008), Bdf(0x0100));
    let run = |steps| {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 4);
        let (program, heard) = Script::new(steps);
        bench.finishing_program(program);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
        assert!(fabric.is_done());
        let values = heard.lock().unwrap().values();
        let spaces = fabric.config_spaces();
        (spaces.into_iter().find(|(id, _)| *id == root_port).unwrap().1, values)
    };
    let (space, _) = run(Vec::new());
    let mut at = space.read(0x34) as u16 & 0xFC;
    while space.read(at) as u8 != 0x10 {
        at = (space.read(at) >> 8) as u16 & 0xFC;
    }
    // Device Control 2: ARI Forwarding Enable.
    let forwards = write(Place::Function(root_port, at + 0x28), &0x20u32.to_le_bytes());
    let ids = [0, 1, 8, 0x80].map(|number| read(Place::Function(Bdf(upstream.0 | number), 0), 4));
    let (_, values) = run([forwards].into_iter().chain(ids).collect());
    assert_ne!(values[0], 0xFFFF_FFFF);
    assert_eq!(values[1..], [0xFFFF_FFFF; 3]);
}
