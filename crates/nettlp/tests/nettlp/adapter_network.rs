//! Devices, an adapter and a wire that loses, doubles, delays and cuts: whatever happens, what is read is right or an error.

use crate::network::{Impairment, Network, Node};
use crate::scene::{AdapterNode, FIXED, TestDevice, bytes_of};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use tlplab_device::Random;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost, PeerToPeer};
use tlplab_nettlp::{Endpoint, EndpointConfig};
use tlplab_units::{Bdf, Duration};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: u64 = 0;
/// Steps of 100 µs.
const ROUNDS: u32 = 40_000;

fn peer(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 2 + number)
}

/// How many tags a device has, and the host: with few of them each is soon used again.
#[derive(Clone, Copy, Debug)]
struct Tags {
    device: u8,
    host: u16,
}

const MANY: Tags = Tags { device: 255, host: 256 };

/// An adapter and its devices, each of which uses the memory of the host and of all others.
fn scene(
    devices: u8,
    mode: PeerToPeer,
    latency: Duration,
    tags: Tags,
    seed: u64,
) -> (AdapterNode, Vec<TestDevice>) {
    let bdf = |number| Bdf(0x1B00 + 0x100 * u16::from(number));
    let cards = (0..devices).map(|number| DeviceConfig::card(peer(number), bdf(number))).collect();
    let config = AdapterConfig {
        peer_to_peer: mode,
        completion_timeout: Duration::from_us(1500),
        tags: tags.host,
        ..AdapterConfig::new(LOCAL, cards)
    };
    let mut host = MemoryHost::new(1 << 20).with_latency(latency);
    host.poke(0, &bytes_of(HOST, 0, FIXED)).expect("memory");
    let adapter = Adapter::new(config, host).expect("cards");
    let bases: Vec<u64> = adapter.devices().filter_map(|device| Some(device.bars[4]?.base)).collect();
    let devices = (0..devices).map(|number| {
        let base = bases[usize::from(number)];
        let mut device = TestDevice::new(peer(number), LOCAL, bdf(number), number.into(), base, seed);
        let config = EndpointConfig { tags: 0..=tags.device - 1, ..device.endpoint.config().clone() };
        device.endpoint = Endpoint::new(config);
        device.targets = bases.iter().copied().filter(|other| *other != base).chain([HOST]).collect();
        device
    });
    (AdapterNode { adapter, pace: Duration::ZERO }, devices.collect())
}

/// Lets every device do so many operations, and the host read the devices meanwhile; how many reads were right, and how many failed.
fn play(
    (mut adapter, mut devices): (AdapterNode, Vec<TestDevice>),
    impairment: Impairment,
    operations: usize,
    seed: u64,
) -> (usize, usize) {
    let mut network = Network::new(seed, impairment);
    devices.iter_mut().for_each(|device| device.start(operations));
    let mut random = Random::keyed(seed, "host", "program");
    let mut asked = Vec::new();
    let (mut right, mut failed) = (0, 0);
    for round in 0..ROUNDS {
        if asked.len() < operations {
            let (device, offset) = (random.below(devices.len() as u64) as usize, random.below(FIXED - 4096));
            let bytes = 1 + random.below(1500) as u32;
            let token = adapter.adapter.host_mut().access(device, 4, offset, MmioAccess::Read(bytes));
            asked.push((token, device, offset, bytes));
        }
        let end = network.now + Duration::from_us(100);
        let mut nodes: Vec<&mut dyn Node> = vec![&mut adapter];
        nodes.extend(devices.iter_mut().map(|device| device as &mut dyn Node));
        network.run_until(&mut nodes, end);
        while let Some((token, result)) = adapter.adapter.host_mut().take_result() {
            let (_, device, offset, bytes) = asked[token.0 as usize];
            let base = adapter.adapter.devices().nth(device).and_then(|d| d.bars[4]).expect("a card").base;
            match result {
                Ok(data) => {
                    assert_eq!(data.bytes(), Some(&bytes_of(base, offset, bytes.into())[..]), "MMIO read");
                    right += 1;
                }
                Err(_) => failed += 1,
            }
        }
        let idle = devices.iter().all(|device| device.operations == 0 && device.endpoint.is_idle());
        if idle && asked.len() == operations && right + failed == operations {
            for device in &devices {
                (right, failed) = (right + device.right, failed + device.failed);
            }
            return (right, failed);
        }
        assert!(round < ROUNDS - 1, "not over after four seconds");
    }
    unreachable!()
}

/// On a good wire nothing fails, whoever's tags collide: every device begins with tag 0.
#[test]
fn nothing_fails_on_a_good_wire() {
    for mode in [PeerToPeer::Switch, PeerToPeer::RootComplex] {
        for latency in [Duration::ZERO, Duration::from_us(3)] {
            let (right, failed) = play(scene(3, mode, latency, MANY, 1), Impairment::default(), 300, 1);
            assert!(right > 700, "{mode:?}: {right}");
            assert_eq!(failed, 0, "{mode:?}, {latency}");
        }
    }
}

/// What happens to datagrams; each takes up to so much longer than another, in microseconds.
fn impairment(jitter: std::ops::Range<u64>) -> impl Strategy<Value = Impairment> {
    (0u64..60, 0u64..60, 0u64..30, jitter).prop_map(|(lost, doubled, cut, jitter)| Impairment {
        lost,
        doubled,
        cut,
        damaged: 0,
        jitter: Duration::from_us(jitter),
    })
}

fn mode() -> impl Strategy<Value = PeerToPeer> {
    prop_oneof![Just(PeerToPeer::Switch), Just(PeerToPeer::RootComplex)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every read is right or an error; the assertions are in `TestDevice` and `play`.
    #[test]
    fn right_or_an_error(seed in any::<u64>(), impairment in impairment(0..3000), mode in mode(), latency in 0u64..20) {
        let scene = scene(3, mode, Duration::from_us(latency), MANY, seed);
        let (right, failed) = play(scene, impairment, 120, seed);
        prop_assert!(right + failed > 200);
    }

    /// With few tags each is used again as soon as it may be: all that tells an answer from one to an earlier read is that copies are
    /// recognised and that tags rest. Four flights and an answer take less than a device's patience and the rest of its tag. (A root
    /// complex without tags would let a device's reads wait for longer than that.)
    #[test]
    fn right_or_an_error_with_few_tags(
        seed in any::<u64>(),
        impairment in impairment(0..1000),
        mode in mode(),
        device in 1u8..=4,
        host in 1u16..=4,
    ) {
        let host = if mode == PeerToPeer::Switch { host } else { MANY.host };
        let scene = scene(3, mode, Duration::from_us(3), Tags { device, host }, seed);
        let (right, failed) = play(scene, impairment, 60, seed);
        prop_assert!(right + failed > 100);
    }
}
