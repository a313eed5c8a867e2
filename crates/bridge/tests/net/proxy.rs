//! Reads through a bad network are right or errors, never wrong.

use crate::memory::Served;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::time::Duration as Wall;
use tlplab_bridge::net::perf::{Direction, Pattern, Perf, PerfConfig, Region, Report};
use tlplab_bridge::net::{Impairment, Kind, Network, Proxy, ProxyAddresses, ProxyCounters, Stop, Udp, Wait};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::Retry;
use tlplab_nettlp::{Adapter, EndpointConfig, MAX_DATAGRAM};
use tlplab_units::{Bdf, Duration};

const TAGS: RangeInclusive<u8> = 0..=255;
const REQUESTER: Bdf = Bdf(0x1b00);
const SIZE: u64 = 128 << 10;
const BAD: Impairment = Impairment { loss: 10_000, duplicate: 10_000, reorder: 10_000, truncate: 10_000 };

fn addresses(test: u8) -> ProxyAddresses {
    let id = std::process::id();
    let [device, front, back, adapter] =
        [1, 2, 3, 4].map(|end| Ipv4Addr::new(127, 192 + (id >> 8 & 31) as u8, id as u8, 4 * test + end));
    ProxyAddresses { device, front, back, adapter }
}

fn measure(test: u8, reads: u64, retry: Retry) -> (Report, ProxyCounters) {
    let addresses = addresses(test);
    let ProxyAddresses { device, front, back, adapter } = addresses;
    let ports: Vec<u16> = TAGS.map(|tag| 0x3000 + u16::from(tag)).collect();
    let known = AdapterConfig::new(adapter, vec![DeviceConfig::card(back, REQUESTER)]);
    let serves = Adapter::new(known, MemoryHost::new(SIZE)).unwrap();
    let _adapter = Served::engine(serves, Udp::open(adapter, ports.iter().copied(), None).unwrap());
    let (proxy, stop) = (Proxy::open(addresses, &ports, BAD, 5).unwrap(), Stop::default());
    // Longer than a busy machine lets the proxy wait, so that what fails is what the proxy spoiled. Tags rest longer than a datagram lives,
    // which lies in sockets for as long: nothing else tells a late completion from one for the tag's next request.
    let (completion_timeout, quarantine) = (Duration::from_ms(250), Duration::from_ms(300));
    let endpoint = EndpointConfig::new(front, REQUESTER);
    let config = PerfConfig {
        network: Network { kind: Kind::Udp, local: device, interface: None },
        endpoint: EndpointConfig { retry, completion_timeout, quarantine, ..endpoint },
        lanes: 1,
        outstanding: 100,
        tags: Some(256),
        direction: Direction::Read,
        region: Region { address: 1, bytes: SIZE - 1 },
        divided: false,
        pattern: Pattern::Seq,
        length: 700,
        count: Some(reads),
        duration: None,
        interval: Wall::ZERO,
        wait: Wait::Sleep,
        verify: true,
        each: false,
        seed: 3,
    };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| proxy.run(&stop).unwrap());
        let report = Perf::new(config).unwrap().run();
        stop.stop();
        (report.unwrap(), running.join().unwrap())
    })
}

/// How many reads; a million of them take five minutes.
fn reads() -> u64 {
    std::env::var("TLPLAB_PROXY_READS").map_or(10_000, |reads| reads.parse().expect("a number"))
}

#[test]
fn reads_are_right_or_errors() {
    let wanted = reads();
    let (report, happened) = measure(1, wanted, Retry::Never);
    let errors = report.errors();
    println!("{} right, {errors:?}; {happened:?}", report.operations());
    assert_eq!(report.wrong(), 0);
    let failed: u64 = errors.values().sum();
    assert_eq!(report.operations() + failed, wanted, "each read is over once");
    // Of the six datagrams of a read one in fifty does not do its duty, and spoils one read.
    let spoiled = happened.lost + happened.truncated;
    assert!(failed * 20 > wanted && failed < 2 * spoiled, "{failed} of {wanted} failed, {spoiled} spoiled");
    let expected = happened.received / 100;
    for count in [happened.lost, happened.duplicated, happened.reordered, happened.truncated] {
        assert!(count > expected / 2 && count < expected * 2, "{happened:?}");
    }
}

#[test]
fn reads_without_side_effects_may_be_asked_for_again() {
    let wanted = reads() / 5;
    let (report, _) = measure(2, wanted, Retry::Reads(20));
    assert_eq!((report.wrong(), report.operations()), (0, wanted), "{:?}", report.errors());
    assert!(report.lanes[0].counters.retries > wanted / 100);
}

/// What is too long for NetTLP is none of its datagrams, and ends nothing.
#[test]
fn what_is_too_long_does_not_pass() {
    let addresses = addresses(3);
    let proxy = Proxy::open(addresses, &[0x3000], Impairment::default(), 5).unwrap();
    let stop = Stop::default();
    let device = UdpSocket::bind((addresses.device, 0x3000)).unwrap();
    let adapter = UdpSocket::bind((addresses.adapter, 0x3000)).unwrap();
    adapter.set_read_timeout(Some(Wall::from_secs(10))).unwrap();
    for bytes in [MAX_DATAGRAM + 1, 60_000, MAX_DATAGRAM] {
        device.send_to(&vec![1; bytes], (addresses.front, 0x3000)).unwrap();
    }
    let counted = std::thread::scope(|scope| {
        let running = scope.spawn(|| proxy.run(&stop).unwrap());
        let heard = adapter.recv(&mut vec![0; 65_536]);
        stop.stop();
        assert_eq!(heard.unwrap(), MAX_DATAGRAM);
        running.join().unwrap()
    });
    assert_eq!((counted.received, counted.sent), (1, 1));
}
