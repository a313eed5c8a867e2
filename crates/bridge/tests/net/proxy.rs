//! Reads through a bad network are right or errors, never wrong.

use crate::memory::Served;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration as Wall;
use tlplab_bridge::net::perf::{Direction, Pattern, Perf, PerfConfig, Region, Report};
use tlplab_bridge::net::{Impairment, Kind, Network, Proxy, ProxyAddresses, ProxyCounters, Stop, Udp, Wait};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::Retry;
use tlplab_nettlp::{Adapter, EndpointConfig};
use tlplab_units::{Bdf, Duration};

const TAGS: RangeInclusive<u8> = 0..=255;
const REQUESTER: Bdf = Bdf(0x1b00);
const SIZE: u64 = 128 << 10;
const BAD: Impairment = Impairment { loss: 10_000, duplicate: 10_000, reorder: 10_000, truncate: 10_000 };

fn measure(test: u8, reads: u64, retry: Retry) -> (Report, ProxyCounters) {
    let [device, front, back, adapter] = [1, 2, 3, 4].map(|end| Ipv4Addr::new(127, 3, test, end));
    let ports: Vec<u16> = TAGS.map(|tag| 0x3000 + u16::from(tag)).collect();
    let known = AdapterConfig::new(adapter, vec![DeviceConfig::card(back, REQUESTER)]);
    let serves = Adapter::new(known, MemoryHost::new(SIZE)).unwrap();
    let _adapter = Served::engine(serves, Udp::open(adapter, ports.iter().copied(), None).unwrap());
    let addresses = ProxyAddresses { front, device, back, adapter };
    let (proxy, stop) = (Proxy::open(addresses, &ports, BAD, 5).unwrap(), Stop::default());
    // Tags rest longer than a datagram lives, which on a busy machine lies in sockets for tens of milliseconds: nothing else tells a
    // late completion from one for the tag's next request.
    let (completion_timeout, quarantine) = (Duration::from_ms(20), Duration::from_ms(300));
    let endpoint = EndpointConfig::new(front, REQUESTER);
    let config = PerfConfig {
        network: Network { kind: Kind::Udp, local: device, interface: None },
        endpoint: EndpointConfig { retry, completion_timeout, quarantine, ..endpoint },
        lanes: 1,
        outstanding: 20,
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
    // Of the six datagrams of a read one in fifty does not do its duty; the proxy must have done its own.
    assert!(failed * 20 > wanted && failed * 2 < wanted, "{failed} of {wanted} failed");
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
