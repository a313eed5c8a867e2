//! What one peer does is its own affair: junk, floods and silence change neither the results nor the timing of the others, and keep no
//! memory.

use crate::network::{Impairment, Network, Node};
use crate::scene::{AdapterNode, FIXED, TestDevice, bytes_of};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::{DmaError, Random};
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost, RateLimit};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM, Outgoing, Undeliverable};
use tlplab_transaction::CompletionError;
use tlplab_units::{Bdf, Duration, Time};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GOOD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BAD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);

/// What comes as fast as the wire allows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flood {
    /// Random bytes.
    Noise,
    /// Completions that nobody waits for, writes to nowhere, messages: nothing that is answered.
    Unanswered,
    /// Reads of nothing, which get UR.
    Refused,
    /// Reads of memory, far more than fit a queue.
    Reads,
    /// Writes into the other device.
    PeerWrites,
    /// Questions to all services.
    Services,
}

const FLOODS: [Flood; 6] =
    [Flood::Noise, Flood::Unanswered, Flood::Refused, Flood::Reads, Flood::PeerWrites, Flood::Services];

/// A device that only floods.
struct Flooder {
    address: Ipv4Addr,
    flood: Flood,
    random: Random,
    left: usize,
    peer_base: u64,
    /// Random bytes happen to be a question, once in a while.
    answers: u32,
}

impl Flooder {
    fn datagram(&mut self) -> (u16, Vec<u8>) {
        let tag = self.random.below(256);
        let word = |value: u64| (value as u32).to_be_bytes();
        let tlp = |words: [u64; 3], data: usize| {
            let bytes =
                [[0; 6].to_vec(), words.into_iter().flat_map(word).collect(), vec![0xEE; data]].concat();
            (0x3000 + tag as u16, bytes)
        };
        let id = 0x1C00_0000 | tag << 8;
        match self.flood {
            Flood::Noise => {
                let bytes = (0..self.random.below(200)).map(|_| self.random.next() as u8).collect();
                (0x3000 + self.random.below(0x2100) as u16, bytes)
            }
            Flood::Unanswered => match self.random.below(3) {
                0 => tlp([0x4A00_0001, 0x1C00_0004, self.random.below(1 << 16) << 16 | tag << 8], 4),
                1 => tlp([0x4000_0001, id | 0xF, 0x9000_0000], 4),
                _ => tlp([0x3000_0000, id | 0x30, 0], 4),
            },
            Flood::Refused => tlp([0x0000_0001, id | 0xF, 0x9000_0000], 0),
            Flood::Reads => tlp([0x0000_0000, id | 0xFF, 0x0000_0000], 0),
            Flood::PeerWrites => tlp([0x4000_0001, id | 0xF, self.peer_base + 0x0700_0000], 4),
            Flood::Services => match self.random.below(3) {
                0 => (0x5001, vec![0x3C, 0, 0, 0, 0, 0]),
                1 => (0x5002, vec![0x10, 0, 0, 0, 0, 0]),
                _ => (12287, vec![3, 0, 0, 0]),
            },
        }
    }
}

impl Engine for Flooder {
    fn handle_datagram(&mut self, _: Time, _: Datagram<'_>) {
        self.answers += 1;
    }
    fn poll_transmit(&mut self, _: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        self.left = self.left.checked_sub(1)?;
        let (port, bytes) = self.datagram();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Outgoing { to: SocketAddrV4::new(LOCAL, port), from_port: port, len: bytes.len() })
    }
    fn deadline(&self) -> Option<Time> {
        None
    }
    fn handle_timeout(&mut self, _: Time) {}
    fn handle_undeliverable(&mut self, _: Time, _: SocketAddrV4, _: Undeliverable) {}
    fn rebase(&mut self, _: Duration) {}
}

impl Node for Flooder {
    fn address(&self) -> Ipv4Addr {
        self.address
    }
    fn engine(&mut self) -> &mut dyn Engine {
        self
    }
    fn turn(&mut self, _: Time) {}
    fn pace(&self) -> Duration {
        Duration::from_ns(200)
    }
}

fn adapter(rate: RateLimit) -> Adapter<MemoryHost> {
    let devices = vec![DeviceConfig::card(GOOD, Bdf(0x1B00)), DeviceConfig::card(BAD, Bdf(0x1C00))];
    let config = AdapterConfig { rate, queue: 256, ..AdapterConfig::new(LOCAL, devices) };
    let mut host = MemoryHost::new(1 << 20);
    host.poke(0, &bytes_of(0, 0, FIXED)).expect("memory");
    Adapter::new(config, host).expect("two cards")
}

/// The good device does its work beside a flood; when it was done, and how often the flood was answered. The adapter sends a datagram
/// each `pace`.
fn beside(flood: Option<(Flood, Ipv4Addr)>, rate: RateLimit, pace: Duration, seed: u64) -> (Time, u32) {
    let mut adapter = AdapterNode { adapter: adapter(rate), pace };
    let base = adapter.adapter.devices().next().and_then(|device| device.bars[4]).expect("a card").base;
    let mut good = TestDevice::new(GOOD, LOCAL, Bdf(0x1B00), 0, base, seed);
    good.targets = vec![0];
    good.start(200);
    let mut flooder = flood.map(|(flood, address)| Flooder {
        address,
        flood,
        random: Random::keyed(seed, "flooder", "junk"),
        left: 40_000,
        peer_base: base,
        answers: 0,
    });
    let mut network = Network::new(seed, Impairment::default());
    let mut nodes: Vec<&mut dyn Node> = vec![&mut adapter, &mut good];
    nodes.extend(flooder.as_mut().map(|flooder| flooder as &mut dyn Node));
    network.run_until(&mut nodes, Time::ZERO + Duration::from_ms(60));
    assert_eq!((good.failed, good.operations, good.endpoint.in_flight()), (0, 0, 0), "{flood:?}");
    let counters = adapter.adapter.device_counters(0).expect("the good one");
    assert_eq!((counters.malformed, counters.throttled, counters.overflows), (0, 0, 0), "{flood:?}");
    (good.finished, flooder.map_or(0, |flooder| flooder.answers))
}

const UNLIMITED: RateLimit = RateLimit { per_second: 1_000_000_000, burst: 1_000_000 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// A flood without answers changes nothing, to the femtosecond; a flood with answers takes its turns on the way out and no more.
    #[test]
    fn a_flood_delays_other_devices_by_its_turns_at_most(seed in any::<u64>()) {
        let pace = Duration::from_ns(500);
        let (alone, _) = beside(None, UNLIMITED, pace, seed);
        for flood in FLOODS {
            prop_assert_eq!(beside(Some((flood, STRANGER)), UNLIMITED, pace, seed), (alone, 0), "{:?} of a stranger", flood);
            let (time, answers) = beside(Some((flood, BAD)), UNLIMITED, pace, seed);
            let time = time.saturating_since(Time::ZERO);
            let alone = alone.saturating_since(Time::ZERO);
            match flood {
                Flood::Noise if answers > 0 => {
                    prop_assert!(time <= alone + pace * u64::from(answers), "{}: {} instead of {}", answers, time, alone);
                }
                Flood::Noise | Flood::Unanswered => prop_assert_eq!((time, answers), (alone, 0), "{:?}", flood),
                // Every other turn is the flood's; of a device's own turns, the flood of writes to it has one more.
                _ => prop_assert!(time.as_fs() <= 3 * alone.as_fs(), "{:?}: {} instead of {}", flood, time, alone),
            }
        }
    }
}

/// A rate limit holds a flood to its rate, and nobody else.
#[test]
fn a_flood_beyond_its_rate_is_not_looked_at() {
    let mut adapter = adapter(RateLimit { per_second: 100_000, burst: 50 });
    let read = [&[0; 6][..], &0x0000_0001_1B00_000Fu64.to_be_bytes(), &[0; 4]].concat();
    let mut answers = [0, 0];
    // Ten milliseconds: a million a second from one, every 20 us one from the other.
    for us in 0..10_000 {
        let now = Time::ZERO + Duration::from_us(us);
        for peer in [BAD].into_iter().chain((us % 20 == 0).then_some(GOOD)) {
            let from = SocketAddrV4::new(peer, 0x3000);
            adapter.handle_datagram(now, Datagram { from, port: 0x3000, payload: &read });
        }
        let mut buffer = [0; MAX_DATAGRAM];
        while let Some(out) = adapter.poll_transmit(now, &mut buffer) {
            answers[usize::from(*out.to.ip() == BAD)] += 1;
        }
    }
    assert_eq!(answers[0], 500);
    assert!((1000..1060).contains(&answers[1]), "{} of 10000", answers[1]);
    let throttled = [0, 1].map(|device| adapter.device_counters(device).expect("a device").throttled);
    assert_eq!(throttled, [0, 10_000 - answers[1]]);
}

/// While nothing leaves, a flood fills its queues and no more.
#[test]
fn queues_are_bounded() {
    for flood in FLOODS {
        let mut adapter = adapter(UNLIMITED);
        let mut flooder = Flooder {
            address: BAD,
            flood,
            random: Random::keyed(1, "f", "j"),
            left: usize::MAX,
            peer_base: 0xA000_0000,
            answers: 0,
        };
        for _ in 0..20_000 {
            let (port, payload) = flooder.datagram();
            let from = SocketAddrV4::new(BAD, port);
            adapter.handle_datagram(Time::ZERO, Datagram { from, port, payload: &payload });
        }
        let mut buffer = [0; MAX_DATAGRAM];
        let left = std::iter::from_fn(|| adapter.poll_transmit(Time::ZERO, &mut buffer)).count();
        // Each read of 4 KiB is answered by 16 datagrams.
        let most = if flood == Flood::Reads { 256 * 16 } else { 256 };
        assert!(left <= most, "{flood:?}: {left} datagrams were kept");
        let counters = adapter.device_counters(1).expect("the bad one");
        assert_eq!(counters.received, 20_000);
        let answered = matches!(flood, Flood::Refused | Flood::Reads | Flood::PeerWrites | Flood::Services);
        assert_eq!(counters.overflows > 0, answered, "{flood:?}: {counters:?}");
    }
}

/// A device that says nothing: the host's reads of it end, with an error and a count, while others are served.
#[test]
fn a_dead_device_is_waited_for_and_given_up() {
    let pace = Duration::from_ns(500);
    let (alone, _) = beside(None, UNLIMITED, pace, 9);
    let mut adapter = AdapterNode { adapter: adapter(UNLIMITED), pace };
    let mut good = TestDevice::new(GOOD, LOCAL, Bdf(0x1B00), 0, 0xA000_0000, 9);
    good.targets = vec![0];
    good.start(200);
    // One before, and one whose tags collide with it.
    for _ in 0..2 {
        adapter.adapter.host_mut().access(1, 4, 0x1000, MmioAccess::Read(4));
    }
    let mut network = Network::new(9, Impairment::default());
    let mut nodes: Vec<&mut dyn Node> = vec![&mut adapter, &mut good];
    network.run_until(&mut nodes, Time::ZERO + Duration::from_ms(40));
    assert!(adapter.adapter.host_mut().take_result().is_none(), "before its time");
    let mut nodes: Vec<&mut dyn Node> = vec![&mut adapter, &mut good];
    network.run_until(&mut nodes, Time::ZERO + Duration::from_ms(60));
    for _ in 0..2 {
        let (_, result) = adapter.adapter.host_mut().take_result().expect("given up");
        let given_up = matches!(result, Err(DmaError::Completion(CompletionError::Timeout { .. })));
        assert!(given_up, "{result:?}");
    }
    assert_eq!(adapter.adapter.device_counters(1).map(|counters| counters.timeouts), Some(2));
    assert_eq!(good.failed, 0);
    // Two requests went out before: two turns.
    assert!(good.finished.saturating_since(alone) <= pace * 2, "{} instead of {alone}", good.finished);
}
