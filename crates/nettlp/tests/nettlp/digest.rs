//! Bits that turn on the way: what a digest (ECRC) protects, and that without it nothing does.

use crate::network::{Impairment, Network, Node};
use crate::raw::{self, us};
use crate::scene::AdapterNode;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::{Counters, Event, Retry};
use tlplab_nettlp::{Adapter, Endpoint, EndpointConfig, Engine};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration};
use tlplab_wire::tlp::Attributes;

const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ID: Bdf = Bdf(0x1B00);
const READS: u32 = 4000;
const BYTES: u64 = 200;

struct Reader {
    endpoint: Endpoint<u32>,
    results: BTreeMap<u32, Result<Payload, DmaError>>,
}

impl Node for Reader {
    fn address(&self) -> Ipv4Addr {
        DEVICE
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.endpoint
    }
    fn turn(&mut self, _: tlplab_units::Time) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::ReadDone { token, result } = event {
                assert!(self.results.insert(token, result).is_none(), "each read ends once");
            }
        }
    }
}

fn config(digest: bool, retry: Retry) -> EndpointConfig {
    EndpointConfig {
        attributes: Attributes { digest, ..Attributes::default() },
        retry,
        completion_timeout: Duration::from_us(100),
        quarantine: Duration::from_us(100),
        ..EndpointConfig::new(HOST, ID)
    }
}

/// Reads all over memory while one datagram in a hundred is damaged: right reads, wrong ones, errors.
fn read_through_flips(digest: bool, retry: Retry) -> (u32, u32, u32, Counters) {
    let mut host = MemoryHost::new(1 << 20);
    host.poke(0, &raw::bytes(0, 1 << 20)).unwrap();
    let adapter = Adapter::new(AdapterConfig::new(HOST, vec![DeviceConfig::card(DEVICE, ID)]), host).unwrap();
    let mut adapter = AdapterNode { adapter, pace: Duration::ZERO };
    let mut reader = Reader { endpoint: Endpoint::new(config(digest, retry)), results: BTreeMap::new() };
    let mut network = Network::new(7, Impairment { damaged: 10, ..Impairment::default() });
    let address = |token: u32| u64::from(token) * 257;
    for token in 0..READS {
        reader.endpoint.read(network.now, token, address(token), BYTES).unwrap();
        let next = network.now + Duration::from_us(1);
        network.run_until(&mut [&mut adapter, &mut reader], next);
    }
    let end = network.now + Duration::from_ms(10);
    network.run_until(&mut [&mut adapter, &mut reader], end);
    let (mut right, mut wrong, mut failed) = (0, 0, 0);
    for (token, result) in &reader.results {
        match result {
            Ok(data) if data.bytes() == Some(&raw::bytes(address(*token), BYTES)[..]) => right += 1,
            Ok(_) => wrong += 1,
            Err(_) => failed += 1,
        }
    }
    assert_eq!(right + wrong + failed, READS, "each is over");
    (right, wrong, failed, reader.endpoint.counters())
}

#[test]
fn with_digests_no_read_is_wrong() {
    let (right, wrong, failed, counters) = read_through_flips(false, Retry::Never);
    assert!(wrong > READS / 200, "without digests: {right} right, {wrong} wrong, {failed} failed");
    assert_eq!(counters.malformed_digest, 0);
    let (right, wrong, failed, counters) = read_through_flips(true, Retry::Never);
    assert_eq!((wrong, counters.undigested), (0, 0), "{right} right, {failed} failed, {counters:?}");
    assert!(failed > READS / 200 && counters.malformed_digest > 10, "{failed}, {counters:?}");
    let (right, wrong, failed, counters) = read_through_flips(true, Retry::Reads(8));
    // What is not covered (EP, PCIe 5.0 section 2.7.1) makes an error, which is not asked for again.
    assert!(wrong == 0 && failed < 5 && right > READS - 5, "{right} {wrong} {failed}, {counters:?}");
    assert!(counters.retries > 10);
}

/// A read with a digest is answered with one, whether it succeeds or is refused; one without is answered without.
#[test]
fn a_request_with_a_digest_gets_a_completion_with_a_digest() {
    for digest in [false, true] {
        let config = AdapterConfig::new(raw::ADAPTER, vec![DeviceConfig::card(DEVICE, ID)]);
        let mut adapter = Adapter::new(config, MemoryHost::new(1 << 20)).unwrap();
        let config = self::config(digest, Retry::Never);
        let mut device = Endpoint::new(EndpointConfig { adapter: raw::ADAPTER, ..config });
        device.read(us(0), 1, 0x1000, 64).unwrap();
        device.read(us(0), 2, 0x4000_0000, 64).unwrap();
        for (port, bytes) in raw::sent_bytes(&mut device, us(0)) {
            assert_eq!(bytes[6 + 2] >> 7 == 1, digest, "TD of the request");
            let from = std::net::SocketAddrV4::new(DEVICE, port);
            adapter.handle_datagram(us(0), tlplab_nettlp::Datagram { from, port, payload: &bytes });
        }
        let mut buffer = [0; tlplab_nettlp::MAX_DATAGRAM];
        let mut answers = Vec::new();
        while let Some(out) = adapter.poll_transmit(us(0), &mut buffer) {
            answers.push((out.len, buffer[6 + 2] >> 7 == 1));
        }
        let more = 4 * usize::from(digest);
        assert_eq!(answers, [(6 + 12 + 64 + more, digest), (6 + 12 + more, digest)]);
    }
}

/// A device with digests discards completions without one.
#[test]
fn completions_without_a_digest_are_discarded() {
    let mut device = Endpoint::new(EndpointConfig { adapter: raw::ADAPTER, ..config(true, Retry::Never) });
    device.read(us(0), 1, 0x1000, 4).unwrap();
    raw::sent(&mut device, us(0));
    let answer = b"\0\x01\0\0\0\x07\x4A\0\0\x01\0\0\0\x04\x1B\0\0\0abcd";
    raw::deliver(&mut device, us(1), 0x3000, answer);
    assert_eq!((device.poll_event(), device.counters().undigested), (None, 1));
    device.handle_timeout(us(200));
    let Some(Event::ReadDone { result: Err(_), .. }) = device.poll_event() else { panic!("it must fail") };
}

/// Digests are chosen apart from the other attributes of requests.
#[test]
fn digests_are_switched_on_and_off_alone() {
    for digest in [false, true] {
        let attributes =
            Attributes { digest: !digest, no_snoop: true, relaxed_ordering: true, ..Attributes::default() };
        let config = EndpointConfig { attributes, adapter: raw::ADAPTER, ..config(false, Retry::Never) };
        let mut device = Endpoint::new(config.with_digests(digest));
        device.read(us(0), 1, 0x1000, 4).unwrap();
        let [(_, bytes)] = &raw::sent_bytes(&mut device, us(0))[..] else { panic!("one request") };
        // TD, and relaxed ordering and no snoop (PCIe 5.0 figure 2-5).
        assert_eq!((bytes[8] >> 7 == 1, bytes[8] >> 4 & 3), (digest, 3));
    }
}
