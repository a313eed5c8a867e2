//! An adapter between a peer that floods it and one that works.

use super::memory::Ends;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tlplab_netio::{AdapterServer, Context, Kind, Network, Wait, adapter_ports};
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::{Endpoint, EndpointConfig, Engine};
use tlplab_units::{Bdf, Time};

const MEMORY: u64 = 1 << 20;

fn address(last: u8) -> Ipv4Addr {
    let id = std::process::id();
    Ipv4Addr::new(127, 160 + (id >> 8 & 31) as u8, id as u8, last)
}

fn network(local: Ipv4Addr) -> Network {
    Network { kind: Kind::Udp, local, interface: None }
}

/// A read of tag 0, as often as the machine can send it, to the ports that the other peer uses and some more: it is looked at each time, since
/// its number differs, and answered where it is the right port.
fn flood(from: Ipv4Addr, adapter: Ipv4Addr, over: &AtomicBool) -> usize {
    let sockets: Vec<UdpSocket> =
        (0x3000..0x3010).map(|port| UdpSocket::bind((from, port)).unwrap()).collect();
    let mut endpoint = Endpoint::new(EndpointConfig::new(adapter, Bdf(0x1c00)));
    endpoint.read(Time::ZERO, (), 0, 64).unwrap();
    let mut buffer = [0; 128];
    let len = endpoint.poll_transmit(Time::ZERO, &mut buffer).unwrap().len;
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        sent += 1;
        buffer[..2].copy_from_slice(&(sent as u16).to_be_bytes());
        let turn = sent % sockets.len();
        // What it is not let do it cannot do either.
        let _ = sockets[turn].send_to(&buffer[..len], (adapter, 0x3000 + turn as u16));
    }
    sent
}

#[test]
fn a_flood_costs_another_peer_nothing() {
    for (at, wait) in [(0, Wait::Sleep), (10, Wait::Spin)] {
        let [here, works, floods] = [1, 2, 3].map(|end| address(at + end));
        let devices = vec![DeviceConfig::card(works, Bdf(0x1b00)), DeviceConfig::card(floods, Bdf(0x1c00))];
        let mut host = MemoryHost::new(MEMORY);
        let content: Vec<u8> = (0..MEMORY).map(|at| ((at * 31) >> 3) as u8).collect();
        host.poke(0, &content).unwrap();
        let adapter = Adapter::new(AdapterConfig::new(here, devices), host).unwrap();
        let transport = network(here).open_for(adapter_ports().collect(), vec![works, floods], 256).unwrap();
        let mut server = AdapterServer::new(adapter, transport, wait);
        let config = EndpointConfig {
            tags: 0..=7,
            host_ports: 0,
            completion_timeout: tlplab_units::Duration::from_ms(10_000),
            ..EndpointConfig::new(here, Bdf(0x1b00))
        };
        let context = Context::new(config.clone(), network(works).open(&config).unwrap(), Wait::Sleep);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flooding = scope.spawn(|| flood(floods, here, &over));
            let serving = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    server.serve(Duration::from_millis(20)).unwrap();
                }
            });
            let places: Vec<(u64, u64)> = (0..500).map(|at| (at * 997, 300)).collect();
            let ends = Ends(|| over.store(true, Ordering::Relaxed));
            let results = context.read_many(&places);
            drop(ends);
            serving.join().unwrap();
            let sent = flooding.join().unwrap();
            for (result, &(address, bytes)) in results.unwrap().iter().zip(&places) {
                let data =
                    result.as_ref().unwrap_or_else(|e| panic!("{wait:?}, {address:#x}, flood {sent}: {e}"));
                assert!(data.bytes().unwrap() == &content[address as usize..][..bytes as usize]);
            }
            assert!(sent > 0, "there was a flood");
        });
    }
}
