//! Where a device is served, and what it asks meanwhile.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tlplab_cfgspace::MessageWrite;
use tlplab_device::Action;
use tlplab_netio::{Lost, Station};
use tlplab_nettlp::{BarMap, DevicePort, EndpointConfig, Vectors};
use tlplab_units::{Bdf, Time};
use tlplab_wire::nettlp::message_api::{self, Message};

/// The loop of the device must go on without an answer: with a wait in it, every read would time out.
#[test]
fn an_unanswered_vector_query_does_not_block_the_device() {
    let (local, host) = (Ipv4Addr::new(127, 64, 1, 1), Ipv4Addr::new(127, 64, 1, 2));
    let adapter = UdpSocket::bind((host, message_api::PORT)).expect("an address of this machine");
    let station = Station::between(local, host);
    let nowhere = Vectors::Given(vec![MessageWrite { address: 0, data: 0 }; message_api::VECTORS]);
    let mut port = DevicePort::new(EndpointConfig::new(host, Bdf(0x1B00)), BarMap::default(), nowhere);
    let interrupt = Action::Msix { stream: 0, vector: 1 };
    port.act(Time::ZERO, interrupt.clone());
    assert_eq!((port.interrupts(), port.dropped_interrupts()), (0, 1));

    let mut lost = Lost::default();
    let begun = Instant::now();
    for _ in 0..100 {
        station.refresh(&mut port, &mut lost);
    }
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());

    let mut question = [0; 16];
    adapter.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let (_, from) = adapter.recv_from(&mut question).expect("it asks");
    let table = [Message { address: 0xFEE0_0000, data: 0x20 }; message_api::VECTORS];
    adapter.send_to(&message_api::emit_msix_table(&table), from).expect("it is there");
    let until = Instant::now() + Duration::from_secs(10);
    while port.interrupts() == 0 && Instant::now() < until {
        station.refresh(&mut port, &mut lost);
        port.act(Time::ZERO, interrupt.clone());
        sleep(Duration::from_millis(10));
    }
    assert_eq!(port.interrupts(), 1);
}
