//! Acknowledged links on real sockets, through a proxy that loses one datagram in a hundred.

use super::memory::{Ends, Served};
use std::net::Ipv4Addr;
use std::time::Duration as Wall;
use tlplab_device::DmaError;
use tlplab_netio::perf::{Direction, Pattern, Perf, PerfConfig, Region, Report};
use tlplab_netio::{Context, Failure, Impairment, Kind, Network, Proxy, ProxyAddresses, Stop, Udp, Wait};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::Retry;
use tlplab_nettlp::{Adapter, EndpointConfig};
use tlplab_units::{Bdf, Duration};

const REQUESTER: Bdf = Bdf(0x1b00);
const SIZE: u64 = 128 << 10;
const PORTS: std::ops::RangeInclusive<u16> = 0x3000..=0x303f;

fn addresses(test: u8) -> ProxyAddresses {
    let id = std::process::id();
    let [device, front, back, adapter] =
        [1, 2, 3, 4].map(|end| Ipv4Addr::new(127, 160 + (id >> 8 & 31) as u8, id as u8, 4 * test + end));
    ProxyAddresses { device, front, back, adapter }
}

fn endpoint(adapter: Ipv4Addr, acknowledged: bool) -> EndpointConfig {
    EndpointConfig {
        acknowledged,
        tags: 0..=63,
        host_ports: 0,
        // Longer than a busy machine lets a thread wait.
        completion_timeout: Duration::from_ms(10_000),
        ..EndpointConfig::new(adapter, REQUESTER)
    }
}

/// Serves memory at the far side of a proxy while `work` runs.
fn through_a_proxy<R: Send>(test: u8, loss: u32, work: impl FnOnce(&ProxyAddresses) -> R + Send) -> R {
    let addresses = addresses(test);
    let known = AdapterConfig::new(addresses.adapter, vec![DeviceConfig::card(addresses.back, REQUESTER)]);
    let adapter = Adapter::new(known, MemoryHost::new(SIZE)).unwrap();
    let _adapter = Served::engine(adapter, Udp::open(addresses.adapter, PORTS, None).unwrap());
    let ports: Vec<u16> = PORTS.collect();
    let impairment = Impairment { loss, ..Impairment::default() };
    let (proxy, stop) = (Proxy::open(addresses, &ports, impairment, 5).unwrap(), Stop::default());
    std::thread::scope(|scope| {
        let _ends = Ends(|| stop.stop());
        scope.spawn(|| proxy.run(&stop).unwrap());
        work(&addresses)
    })
}

/// 1500 transfers of 256 B each, verified.
fn transfers(
    local: Ipv4Addr,
    direction: Direction,
    outstanding: u16,
    endpoint: EndpointConfig,
) -> PerfConfig {
    PerfConfig {
        network: Network { kind: Kind::Udp, local, interface: None },
        endpoint,
        lanes: 1,
        outstanding,
        tags: Some(64),
        direction,
        region: Region { address: 0, bytes: SIZE },
        divided: false,
        pattern: Pattern::Seq,
        length: 256,
        count: Some(1500),
        duration: None,
        paced: true,
        interval: Wall::ZERO,
        wait: Wait::Sleep,
        verify: true,
        each: false,
        seed: 3,
    }
}

fn measure(test: u8, loss: u32, direction: Direction, outstanding: u16, endpoint: EndpointConfig) -> Report {
    through_a_proxy(test, loss, |addresses| {
        let endpoint = EndpointConfig { adapter: addresses.front, ..endpoint };
        Perf::new(transfers(addresses.device, direction, outstanding, endpoint)).unwrap().run().unwrap()
    })
}

/// The message of a measurement that fails within half a minute.
fn failure_of(config: PerfConfig) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(Perf::new(config).unwrap().run().map(drop)));
    let result = told.recv_timeout(Wall::from_secs(30)).expect("an end of the measurement");
    result.expect_err("nothing arrives").to_string()
}

/// An adapter that knows no links, and one that ends at any moment: a measurement fails and says why, whatever it was waiting for.
#[test]
fn a_measurement_without_a_link_fails() {
    let addresses = addresses(16);
    let mute = std::net::UdpSocket::bind((addresses.adapter, 0x3000)).unwrap();
    let known = |direction, length| PerfConfig {
        length,
        ..transfers(addresses.device, direction, 4, endpoint(addresses.adapter, true))
    };
    for (direction, length, verify, message) in [
        (Direction::Read, 256, true, "cannot fill the memory at 0x0: the adapter acknowledges no TLPs"),
        (Direction::Read, 256, false, "no operation succeeds: the adapter acknowledges no TLPs"),
        (Direction::Write, 256, true, "no operation succeeds: the adapter acknowledges no TLPs"),
        // A flush, too, waits for the link.
        (Direction::Write, 64 << 10, true, "no operation succeeds: the adapter acknowledges no TLPs"),
    ] {
        let message_found = failure_of(PerfConfig { verify, ..known(direction, length) });
        assert!(message_found.contains(message), "{direction:?}, {length} B: {message_found}");
    }
    drop(mute);
    for (direction, length) in [(Direction::Read, 256), (Direction::Write, 256), (Direction::Write, 64 << 10)]
    {
        let device = DeviceConfig::card(addresses.device, REQUESTER);
        let adapter =
            Adapter::new(AdapterConfig::new(addresses.adapter, vec![device]), MemoryHost::new(SIZE)).unwrap();
        let served = Served::engine(adapter, Udp::open(addresses.adapter, PORTS, None).unwrap());
        let perf = Perf::new(PerfConfig { count: Some(1_000_000), ..known(direction, length) }).unwrap();
        let ended = std::thread::scope(|scope| {
            let _ends = Ends(|| perf.stop());
            let running = scope.spawn(|| perf.run());
            while perf.progress().0 < 100 && !running.is_finished() {
                std::thread::sleep(Wall::from_millis(1));
            }
            drop(served);
            std::thread::sleep(Wall::from_millis(100));
            perf.stop();
            running.join().expect("no panic")
        });
        match ended {
            Ok(report) => assert!(
                direction == Direction::Read && report.errors().contains_key("not acknowledged"),
                "{direction:?}: {:?}",
                report.errors()
            ),
            Err(error) => assert!(direction == Direction::Write, "{error}"),
        }
    }
}

/// Nothing is missing, nothing fails, and of the rate at least a third remains, in one turn of six: other programs run here as well.
#[test]
fn one_percent_of_loss() {
    let rate = |report: &Report| report.operations() as f64 / report.elapsed.as_secs_f64();
    for (number, (direction, outstanding)) in
        [(Direction::Read, 1), (Direction::Read, 16), (Direction::Write, 16)].into_iter().enumerate()
    {
        let test = 10 + number as u8;
        let mut rates = [0f64; 2];
        for _ in 0..6 {
            for (loss, measured) in [0, 10_000].into_iter().zip(&mut rates) {
                let report = measure(test, loss, direction, outstanding, endpoint(Ipv4Addr::LOCALHOST, true));
                assert_eq!(
                    (
                        report.operations(),
                        report.wrong(),
                        report.missing.as_ref().map_or(0, |missing| missing.bytes)
                    ),
                    (1500, 0, 0)
                );
                assert!(report.errors().is_empty(), "{:?}", report.errors());
                *measured = rate(&report);
            }
            if rates[1] >= 0.3 * rates[0] {
                break;
            }
        }
        let [whole, lossy] = rates;
        let ratio = lossy / whole;
        println!(
            "{direction:?}, {outstanding} outstanding: {lossy:.0} of {whole:.0} per second, ratio {ratio:.2}"
        );
        assert!(
            ratio >= 0.3,
            "{direction:?}, {outstanding} outstanding: {lossy:.0} of {whole:.0} per second"
        );
    }
    let retrying = EndpointConfig {
        retry: Retry::Reads(20),
        completion_timeout: Duration::from_ms(50),
        ..endpoint(Ipv4Addr::LOCALHOST, false)
    };
    let [whole, lossy] =
        [0, 10_000].map(|loss| rate(&measure(13, loss, Direction::Read, 16, retrying.clone())));
    println!("reads without a link, 16 outstanding: ratio {:.2}", lossy / whole);
}

fn context(local: Ipv4Addr, config: EndpointConfig) -> Context {
    let network = Network { kind: Kind::Udp, local, interface: None };
    let transport = network.open(&config).unwrap();
    Context::new(config, transport, Wait::Sleep)
}

/// A write is over when it has arrived: another requester that reads at once gets the written data.
#[test]
fn acknowledged_writes_are_in_memory_for_another_reader() {
    through_a_proxy(14, 30_000, |addresses| {
        let writer =
            context(addresses.device, EndpointConfig { tags: 0..=31, ..endpoint(addresses.front, true) });
        let reader =
            context(addresses.device, EndpointConfig { tags: 32..=63, ..endpoint(addresses.front, true) });
        let mut data = vec![0; 100_000];
        for round in 1..=5u8 {
            data.iter_mut().zip(1u8..=250).for_each(|(byte, at)| *byte = at.wrapping_mul(round));
            data.rotate_left(1);
            writer.dma_write(3, &data).unwrap();
            let mut back = vec![0; data.len()];
            reader.dma_read(3, &mut back).unwrap();
            assert!(back == data, "round {round}");
        }
        let counters = writer.counters();
        assert!(counters.repeated > 5 && counters.links_lost == 0, "{counters:?}");
    });
}

/// A peer without links, such as the published programs: the write fails within seconds with an error for this, and few requests for a link were sent.
#[test]
fn a_write_to_a_peer_without_links_fails_unacknowledged() {
    let addresses = addresses(15);
    let _memory = Served::new(addresses.adapter, 0..=63);
    let asks = context(addresses.device, endpoint(addresses.adapter, true));
    let failed = asks.dma_write(0x1000, &[1; 64]);
    assert!(matches!(failed, Err(Failure::Dma(DmaError::Unacknowledged))), "{failed:?}");
    let counters = asks.counters();
    assert!(counters.links_lost == 1 && counters.datagrams_out < 20, "{counters:?}");
}
