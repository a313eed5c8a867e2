//! Devices, an adapter and a wire that loses, doubles, delays and cuts: whatever happens, what is read is right or an error.

mod network;
mod scene;

use network::{Impairment, Network, Node};
use proptest::prelude::*;
use scene::{AdapterNode, FIXED, TestDevice, bytes_of};
use std::net::Ipv4Addr;
use tlplab_device::Random;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost, PeerToPeer};
use tlplab_units::{Bdf, Duration};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: u64 = 0;

fn peer(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 2 + number)
}

/// An adapter and its devices, each of which uses the memory of the host and of all others.
fn scene(devices: u8, mode: PeerToPeer, latency: Duration, seed: u64) -> (AdapterNode, Vec<TestDevice>) {
    let bdf = |number| Bdf(0x1B00 + 0x100 * u16::from(number));
    let cards = (0..devices).map(|number| DeviceConfig::card(peer(number), bdf(number))).collect();
    let config = AdapterConfig {
        peer_to_peer: mode,
        completion_timeout: Duration::from_us(1500),
        ..AdapterConfig::new(LOCAL, cards)
    };
    let mut host = MemoryHost::new(1 << 20).with_latency(latency);
    host.poke(0, &bytes_of(HOST, 0, FIXED)).expect("memory");
    let adapter = Adapter::new(config, host).expect("cards");
    let bases: Vec<u64> = adapter.devices().filter_map(|device| Some(device.bars[4]?.base)).collect();
    let devices = (0..devices).map(|number| {
        let base = bases[usize::from(number)];
        let mut device = TestDevice::new(peer(number), LOCAL, bdf(number), number.into(), base, seed);
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
    for round in 0..4000 {
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
        assert!(round < 3999, "not over after 400 ms");
    }
    unreachable!()
}

/// On a good wire nothing fails, whoever's tags collide: every device begins with tag 0.
#[test]
fn nothing_fails_on_a_good_wire() {
    for mode in [PeerToPeer::Switch, PeerToPeer::RootComplex] {
        for latency in [Duration::ZERO, Duration::from_us(3)] {
            let (right, failed) = play(scene(3, mode, latency, 1), Impairment::default(), 300, 1);
            assert!(right > 700, "{mode:?}: {right}");
            assert_eq!(failed, 0, "{mode:?}, {latency}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every read is right or an error; the assertions are in `TestDevice` and `play`.
    #[test]
    fn right_or_an_error(
        seed in any::<u64>(),
        lost in 0u64..60,
        doubled in 0u64..60,
        cut in 0u64..30,
        jitter_us in 0u64..3000,
        root_complex in any::<bool>(),
        latency_us in 0u64..20,
    ) {
        let mode = if root_complex { PeerToPeer::RootComplex } else { PeerToPeer::Switch };
        let impairment = Impairment { lost, doubled, cut, damaged: 0, jitter: Duration::from_us(jitter_us) };
        let (right, failed) = play(scene(3, mode, Duration::from_us(latency_us), seed), impairment, 120, seed);
        prop_assert!(right + failed > 200);
    }
}
