//! Reads through a bad network are right or errors, never wrong.

use super::memory::{Ends, Served};
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Wall;
use tlplab_netio::perf::{Direction, Pattern, Perf, PerfConfig, Region, Report};
use tlplab_netio::{
    Impairment, Kind, Network, Proxy, ProxyAddresses, ProxyCounters, Stop, Udp, Wait, adapter_ports,
};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::Retry;
use tlplab_nettlp::{Adapter, EndpointConfig, MAX_DATAGRAM};
use tlplab_units::{Bdf, Duration};

const TAGS: RangeInclusive<u8> = 0..=255;
const REQUESTER: Bdf = Bdf(0x1b00);
const SIZE: u64 = 128 << 10;
const BAD: Impairment = Impairment {
    loss: 10_000,
    duplicate: 10_000,
    reorder: 10_000,
    truncate: 10_000,
    // What turns a bit of the data is right by all that NetTLP can see.
    corrupt: 0,
    delay: Wall::ZERO,
};

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
    let (completion_timeout, quarantine) = (Duration::from_ms(250), Duration::from_ms(800));
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
        paced: true,
        interval: Wall::ZERO,
        wait: Wait::Sleep,
        verify: true,
        each: false,
        seed: 3,
    };
    std::thread::scope(|scope| {
        let ends = Ends(|| stop.stop());
        let running = scope.spawn(|| proxy.run(&stop).unwrap());
        let report = Perf::new(config).unwrap().run();
        drop(ends);
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

/// Writes are posted, and lost ones are missed by nobody but who counts them and looks.
#[test]
fn writes_that_do_not_arrive_are_counted_and_found() {
    const WRITES: u64 = 900;
    let addresses = addresses(8);
    let ProxyAddresses { device, front, back, adapter } = addresses;
    let ports: Vec<u16> = adapter_ports().collect();
    let known = AdapterConfig::new(adapter, vec![DeviceConfig::card(back, REQUESTER)]);
    let serves = Adapter::new(known, MemoryHost::new(SIZE)).unwrap();
    let _adapter = Served::engine(serves, Udp::open(adapter, ports.iter().copied(), None).unwrap());
    let loses = Impairment { loss: 30_000, ..Impairment::default() };
    let (mut proxy, stop) = (Proxy::open(addresses, &ports, loses, 5).unwrap(), AtomicBool::new(false));
    let config = PerfConfig {
        network: Network { kind: Kind::Udp, local: device, interface: None },
        endpoint: EndpointConfig {
            completion_timeout: Duration::from_ms(250),
            ..EndpointConfig::new(front, REQUESTER)
        },
        lanes: 1,
        outstanding: 4,
        tags: None,
        direction: Direction::Write,
        // Three laps and a half.
        region: Region { address: 0x1000, bytes: 64 << 10 },
        divided: false,
        pattern: Pattern::Seq,
        length: 256,
        count: Some(WRITES),
        duration: None,
        paced: true,
        interval: Wall::ZERO,
        wait: Wait::Sleep,
        verify: true,
        each: false,
        seed: 3,
    };
    let (report, [_, happened]) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                proxy.serve(Wall::from_millis(10)).unwrap();
            }
            proxy.counters()
        });
        let ends = Ends(|| stop.store(true, Ordering::Relaxed));
        let report = Perf::new(config).unwrap().run();
        drop(ends);
        (report.unwrap(), running.join().unwrap())
    });
    assert_eq!(report.operations(), WRITES);
    let missed = WRITES - report.arrived.expect("the adapter counts") / 256;
    let missing = report.missing.expect("it was verified");
    // A flush, a question or a read back may be among those lost.
    assert!(missed > 5 && missed <= happened.lost && happened.lost <= missed + 30, "{missed}, {happened:?}");
    assert!(missing.bytes > 0 && missing.bytes <= 256 * missed, "{missing:?} of {missed}");
    assert_eq!(missing.bytes, missing.ranges.iter().map(|(_, bytes)| bytes).sum::<u64>());
    assert!(missing.ranges.iter().all(|(at, bytes)| at % 256 == 0 && bytes % 256 == 0), "{missing:?}");
}

/// A datagram that is too long for NetTLP does not pass, and ends nothing.
#[test]
fn datagrams_too_long_for_nettlp_do_not_pass_the_proxy() {
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

/// What one datagram after the other becomes on its way to the adapter, and what was counted.
fn fate(test: u8, impairment: Impairment, seed: u64) -> (Vec<Vec<u8>>, ProxyCounters) {
    const SENT: u8 = 200;
    let addresses = addresses(test);
    let mut proxy = Proxy::open(addresses, &[0x3000], impairment, seed).unwrap();
    let device = UdpSocket::bind((addresses.device, 0x3000)).unwrap();
    let adapter = UdpSocket::bind((addresses.adapter, 0x3000)).unwrap();
    adapter.set_nonblocking(true).unwrap();
    for number in 0..SENT {
        device.send_to(&[number; 40], (addresses.front, 0x3000)).unwrap();
    }
    let mut heard = Vec::new();
    let on_its_way = |proxy: &Proxy, heard: usize| {
        let ProxyCounters { received, lost, duplicated, .. } = proxy.counters()[1];
        received < u64::from(SENT) || (heard as u64) < received - lost + duplicated
    };
    let begun = std::time::Instant::now();
    while on_its_way(&proxy, heard.len()) && begun.elapsed() < Wall::from_secs(60) {
        proxy.serve(Wall::from_millis(5)).unwrap();
        let mut buffer = [0; 100];
        while let Ok(len) = adapter.recv(&mut buffer) {
            heard.push(buffer[..len].to_vec());
        }
    }
    (heard, proxy.counters()[1])
}

#[test]
fn the_seed_decides_loss_duplication_and_damage() {
    let impairment =
        Impairment { loss: 100_000, duplicate: 100_000, corrupt: 100_000, ..Impairment::default() };
    let (first, counted) = fate(4, impairment, 7);
    assert_eq!(fate(5, impairment, 7), (first.clone(), counted));
    assert_ne!(fate(6, impairment, 8).0, first);
    let turned = |data: &Vec<u8>| {
        let number = data[20];
        data.iter().map(|byte| (byte ^ number).count_ones()).sum::<u32>()
    };
    // A bit of the byte that tells the number may be the one that is turned: then all others differ by it.
    let damaged: Vec<u32> = first.iter().map(turned).filter(|bits| *bits > 0).collect();
    assert!(damaged.iter().all(|bits| *bits == 1 || *bits == 39), "{damaged:?}");
    assert_eq!(damaged.len() as u64, counted.corrupted);
    assert_eq!(first.len() as u64, counted.sent);
    assert_eq!(counted.sent, counted.received - counted.lost + counted.duplicated);
    for count in [counted.lost, counted.duplicated, counted.corrupted] {
        assert!((5..60).contains(&count), "{counted:?}");
    }
}

#[test]
fn delayed_datagrams_arrive_late_and_in_order() {
    let delay = Wall::from_millis(40);
    let begun = std::time::Instant::now();
    let (heard, counted) = fate(7, Impairment { delay, ..Impairment::default() }, 1);
    assert!(begun.elapsed() >= delay, "{:?}", begun.elapsed());
    assert_eq!(heard, (0..200).map(|number| vec![number; 40]).collect::<Vec<_>>());
    assert_eq!((counted.received, counted.sent, counted.corrupted), (200, 200, 0));
}
