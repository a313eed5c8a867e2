//! Acknowledged links: whatever a network does, each TLP is carried out once and in order, and how fast that is.

use crate::links;
use crate::network::{Impairment, Network, Node};
use crate::raw;
use crate::scene::AdapterNode;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::{DmaError, Random};
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::endpoint::{Event, Retry, Window};
use tlplab_nettlp::{Adapter, Datagram, Endpoint, EndpointConfig, Engine, MAX_DATAGRAM, Undeliverable};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::nettlp::Header;
use tlplab_wire::nettlp::link::{Numbers, SEAL_BYTES, open, seal};

const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ID: Bdf = Bdf(0x1B00);
const MEMORY: u64 = 1 << 20;
/// What no datagram may take: one in five is lost or damaged at the worst, and again, and again.
const PATIENT: Duration = Duration::from_ms(500);
/// Where the counter is that is written again and again.
const COUNTER: u64 = 0x3000;

/// A device that notes how its operations ended, and what the host wrote to it.
struct DeviceNode {
    endpoint: Endpoint<u32>,
    results: BTreeMap<u32, Result<Payload, DmaError>>,
    written: Vec<u8>,
    pace: Duration,
}

impl DeviceNode {
    fn new(config: EndpointConfig) -> Self {
        let (results, written, pace) = Default::default();
        Self { endpoint: Endpoint::new(config), results, written, pace }
    }

    fn over(&mut self, token: u32, result: Result<Payload, DmaError>) {
        assert!(self.results.insert(token, result).is_none(), "each operation ends once: {token}");
    }
}

impl Node for DeviceNode {
    fn address(&self) -> Ipv4Addr {
        DEVICE
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.endpoint
    }
    fn turn(&mut self, _: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::ReadDone { token, result } => self.over(token, result),
                Event::WriteSent { token } => self.over(token, Ok(Payload::EMPTY)),
                Event::Failed { token, error } => self.over(token, Err(error)),
                Event::HostRead(read) => {
                    let data = raw::bytes(read.address, read.bytes.into());
                    self.endpoint.answer(read.token, Ok(data.into())).unwrap();
                }
                Event::HostWrite(write) => self.written.push(write.data.bytes().unwrap()[0]),
                Event::Other { repr, .. } => panic!("{repr:?}"),
            }
        }
    }
    fn pace(&self) -> Duration {
        self.pace
    }
}

fn adapter() -> AdapterNode {
    let mut host = MemoryHost::new(MEMORY);
    host.poke(0x1_0000, &raw::bytes(0x1_0000, 0x1_0000)).unwrap();
    let config = AdapterConfig::new(HOST, vec![DeviceConfig::card(DEVICE, ID)]);
    let config = AdapterConfig { completion_timeout: PATIENT, ..config };
    AdapterNode { adapter: Adapter::new(config, host).unwrap(), pace: Duration::ZERO }
}

fn config(acknowledged: bool) -> EndpointConfig {
    EndpointConfig { acknowledged, tags: 0..=63, ..EndpointConfig::new(HOST, ID) }
}

/// The number that was written last.
fn number(data: &Payload) -> u32 {
    u32::from_le_bytes(data.bytes().unwrap().try_into().unwrap())
}

/// What happens in [`play`], and what is then found out.
#[derive(Debug, Default)]
struct Outcome {
    /// Numbers whose write did not leave its own trace.
    missing: usize,
    failed: usize,
    repeated: u64,
}

/// A device counts upwards in one place of memory, leaves a trace of each number in another, reads both, while the host writes and
/// reads the device.
fn play(config: EndpointConfig, impairment: Impairment, seed: u64, operations: u32) -> Outcome {
    let acknowledged = config.acknowledged;
    let (mut adapter, mut random) = (adapter(), Random::keyed(seed, "device", "operations"));
    let base = adapter.adapter.devices().next().unwrap().bars[4].unwrap().base;
    let window = Window { base, size: 1 << 20 };
    let mut device = DeviceNode::new(EndpointConfig { windows: vec![window], ..config });
    let mut network = Network::new(seed, impairment);
    // What the host asks before the adapter knows of the link may get lost as ever.
    device.endpoint.write(network.now, u32::MAX, COUNTER, vec![0; 4].into()).unwrap();
    while acknowledged && !device.results.contains_key(&u32::MAX) {
        let next = network.now + Duration::from_ms(1);
        network.run_until(&mut [&mut adapter, &mut device], next);
    }
    let mut floors = BTreeMap::new();
    let mut counts = 0u32;
    for token in 0..operations {
        match random.below(3) {
            0 => {
                floors.insert(token, counts);
                device.endpoint.read(network.now, token, COUNTER, 4).unwrap();
            }
            1 => {
                let (address, count) = (0x1_0000 + random.below(0x8000), 1 + random.below(3000));
                device.endpoint.read(network.now, token, address, count).unwrap();
                floors.insert(token, u32::MAX);
            }
            _ => {
                counts += 1;
                let data = Payload::from(&counts.to_le_bytes()[..]);
                device.endpoint.write(network.now, token, COUNTER, data.clone()).unwrap();
                let trace = 0x4000 + 4 * u64::from(counts);
                device.endpoint.write(network.now, 1_000_000 + token, trace, data).unwrap();
            }
        }
        if token % 8 == 0 {
            let wrote = MmioAccess::Write(vec![(token / 8) as u8; 4].into());
            adapter.adapter.host_mut().access(0, 4, 64, wrote);
            adapter.adapter.host_mut().access(0, 4, 0x100, MmioAccess::Read(200));
        }
        let next = network.now + Duration::from_ns(random.below(20_000));
        network.run_until(&mut [&mut adapter, &mut device], next);
    }
    let end = network.now + Duration::from_ms(1500);
    network.run_until(&mut [&mut adapter, &mut device], end);
    let mut outcome = Outcome { repeated: device.endpoint.counters().repeated, ..Outcome::default() };
    let mut memory = [0; 4];
    for count in 1..=counts {
        adapter.adapter.host().peek(0x4000 + 4 * u64::from(count), &mut memory);
        outcome.missing += usize::from(u32::from_le_bytes(memory) != count);
    }
    outcome.failed = device.results.values().filter(|result| result.is_err()).count();
    if !acknowledged {
        return outcome;
    }
    adapter.adapter.host().peek(COUNTER, &mut memory);
    assert_eq!(u32::from_le_bytes(memory), counts, "no write overtakes a later one");
    let mut seen = 0;
    for (token, floor) in floors {
        let Some(Ok(data)) = device.results.get(&token) else {
            panic!("{token}: {:?}", device.results.get(&token))
        };
        if floor != u32::MAX {
            let found = number(data);
            assert!(found >= floor, "a read passes no write before it: {found} after {floor}");
            seen = seen.max(found);
        }
    }
    assert!(seen <= counts && device.endpoint.is_idle());
    let wanted: Vec<u8> = (0..operations).step_by(8).map(|token| (token / 8) as u8).collect();
    assert_eq!(device.written, wanted, "what the host writes comes once and in order");
    let mut answered = 0;
    while let Some((_, result)) = adapter.adapter.host_mut().take_result() {
        let data = result.expect("nothing is lost");
        answered += usize::from(data.bytes() == Some(&raw::bytes(base + 0x100, 200)[..]));
    }
    assert_eq!(answered, wanted.len(), "what the host reads is right");
    assert_eq!(adapter.adapter.backlog(), 0);
    outcome
}

prop_compose! {
    fn bad()(
        lost in 0u64..100,
        doubled in 0u64..100,
        cut in 0u64..50,
        damaged in 0u64..50,
        jitter in 0u64..200,
    ) -> Impairment {
        Impairment { lost, doubled, cut, damaged, jitter: Duration::from_us(jitter) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    /// The rest is asserted in `play`.
    #[test]
    fn everything_is_done_once_and_in_order(seed in any::<u64>(), impairment in bad()) {
        let outcome = play(EndpointConfig { completion_timeout: PATIENT, ..config(true) }, impairment, seed, 150);
        prop_assert_eq!((outcome.missing, outcome.failed), (0, 0));
    }
}

/// The same without acknowledgements loses writes and fails reads: it is the link that makes the difference.
#[test]
fn without_a_link_things_are_lost() {
    let impairment = Impairment { lost: 30, ..Impairment::default() };
    let plain = play(config(false), impairment, 5, 400);
    assert!(plain.missing > 3 && plain.failed > 3 && plain.repeated == 0, "{plain:?}");
    let linked = play(config(true), impairment, 5, 400);
    assert!(linked.missing == 0 && linked.failed == 0 && linked.repeated > 10, "{linked:?}");
}

/// Operations per millisecond of virtual time, so many of 256 B outstanding.
fn rate(config: EndpointConfig, lost: u64, outstanding: u32, write: bool) -> f64 {
    let (mut adapter, mut device) = (adapter(), DeviceNode::new(config));
    (adapter.pace, device.pace) = (Duration::from_us(2), Duration::from_us(2));
    let mut network = Network::new(11, Impairment { lost, ..Impairment::default() });
    let (mut begun, wanted, data) = (0, 3000, Payload::from(vec![7; 256]));
    while device.results.len() < wanted as usize {
        while begun < wanted && begun - device.results.len() as u32 != outstanding {
            let address = 0x1_0000 + u64::from(begun % 256) * 256;
            match write {
                true => device.endpoint.write(network.now, begun, address, data.clone()).unwrap(),
                false => device.endpoint.read(network.now, begun, address, 256).unwrap(),
            }
            begun += 1;
        }
        let next = network.now + Duration::from_us(1);
        network.run_until(&mut [&mut adapter, &mut device], next);
        assert!(network.now < Time::ZERO + Duration::from_ms(60_000), "it stands still");
    }
    assert!(device.results.values().all(Result::is_ok));
    f64::from(wanted) / network.now.as_fs() as f64 * 1e12
}

/// One datagram in a hundred is lost: what is left of the rate on a wire of 5 us.
#[test]
fn one_percent_of_loss_costs_less_than_two_thirds() {
    for (write, outstanding) in [(false, 1), (false, 16), (false, 64), (true, 1), (true, 16), (true, 64)] {
        let [whole, lossy] = [0, 10].map(|lost| rate(config(true), lost, outstanding, write));
        let what = if write { "writes" } else { "reads" };
        println!(
            "{what}, {outstanding} outstanding: {lossy:.1} of {whole:.1} per ms, ratio {:.2}",
            lossy / whole
        );
        assert!(lossy > 0.3 * whole, "{what}, {outstanding} outstanding: {lossy} of {whole} per ms");
    }
    let retrying = EndpointConfig { retry: Retry::Reads(20), ..config(false) };
    let [whole, lossy] = [0, 10].map(|lost| rate(retrying.clone(), lost, 16, false));
    println!("reads without a link, 16 outstanding: ratio {:.2}", lossy / whole);
    assert!(lossy < 0.3 * whole, "a time limit that follows nothing: {lossy} of {whole}");
}

/// The published card drops what it does not know: nothing is sent but the requests for a link, and all operations fail with an error for this.
#[test]
fn operations_fail_unacknowledged_without_a_link() {
    let mut device = DeviceNode::new(config(true));
    device.endpoint.read(Time::ZERO, 1, 0x1000, 64).unwrap();
    device.endpoint.write(Time::ZERO, 2, 0x1000, vec![1; 64].into()).unwrap();
    let mut network = Network::new(1, Impairment::default());
    network.run_until(&mut [&mut device], Time::ZERO + Duration::from_ms(954));
    assert!(device.results.is_empty());
    let sent = device.endpoint.counters().datagrams_out;
    assert_eq!(sent, 13, "requests for a link");
    network.run_until(&mut [&mut device], Time::ZERO + Duration::from_ms(956));
    assert_eq!(device.results.len(), 2);
    assert!(device.results.values().all(|result| *result == Err(DmaError::Unacknowledged)));
    assert!(device.endpoint.is_idle());
    // What the host of such a card asks without a link is answered when there is one, and not before.
    assert_eq!(device.endpoint.counters().links_lost, 1);
}

/// An adapter that knows links sends no byte of them to a device that has not asked for one.
#[test]
fn an_adapter_sends_no_link_bytes_to_a_plain_device() {
    let (mut adapter, mut device) = (adapter(), DeviceNode::new(config(false)));
    device.endpoint.read(Time::ZERO, 1, 0x1_0000, 64).unwrap();
    for (port, bytes) in datagrams(&mut device.endpoint, Time::ZERO) {
        assert!(open(&bytes).is_none() && bytes.len() == 6 + 12);
        deliver(&mut adapter.adapter, DEVICE, port, &bytes);
    }
    let answers = datagrams(&mut adapter.adapter, Time::ZERO);
    let [(port, answer)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((*port, answer.len()), (0x3000, 6 + 12 + 64));
    deliver(&mut device.endpoint, HOST, *port, answer);
    assert!(matches!(device.endpoint.poll_event(), Some(Event::ReadDone { result: Ok(_), .. })));
    assert_eq!(adapter.adapter.deadline(), None);
}

fn datagrams(engine: &mut dyn Engine, now: Time) -> Vec<(u16, Vec<u8>)> {
    let mut buffer = [0; MAX_DATAGRAM];
    let next =
        || engine.poll_transmit(now, &mut buffer).map(|out| (out.from_port, buffer[..out.len].to_vec()));
    std::iter::from_fn(next).collect()
}

fn deliver(engine: &mut dyn Engine, from: Ipv4Addr, port: u16, payload: &[u8]) {
    engine.handle_datagram(Time::ZERO, Datagram { from: SocketAddrV4::new(from, port), port, payload });
}

/// An end with its link up, and an adapter; nothing is under way.
fn linked() -> (AdapterNode, DeviceNode, Network) {
    let (mut adapter, mut device) = (adapter(), DeviceNode::new(config(true)));
    let mut network = Network::new(1, Impairment::default());
    device.endpoint.write(Time::ZERO, 1, COUNTER, vec![1; 4].into()).unwrap();
    network.run_until(&mut [&mut adapter, &mut device], Time::ZERO + Duration::from_ms(1));
    assert_eq!(device.results.get(&1), Some(&Ok(Payload::EMPTY)));
    (adapter, device, network)
}

/// A machine that stands still for ten seconds, at one end or in the midst of a request for a link, loses no link: time alone ends none.
#[test]
fn a_standstill_does_not_end_a_link() {
    let (mut adapter, mut device, mut network) = linked();
    device.endpoint.write(network.now, 2, COUNTER, vec![2; 4].into()).unwrap();
    assert_eq!(datagrams(&mut device.endpoint, network.now).len(), 1, "lost");
    let mut calling = DeviceNode::new(config(true));
    calling.endpoint.write(network.now, 3, COUNTER, vec![3; 4].into()).unwrap();
    assert_eq!(datagrams(&mut calling.endpoint, network.now).len(), 1, "lost");
    network.now += Duration::from_ms(10_000);
    for (number, device) in [(2, &mut device), (3, &mut calling)] {
        device.endpoint.handle_timeout(network.now);
        let end = network.now + Duration::from_ms(5);
        network.run_until(&mut [&mut adapter, device], end);
        assert_eq!(device.results.get(&number), Some(&Ok(Payload::EMPTY)));
        assert_eq!(device.endpoint.counters().links_lost, 0);
    }
}

/// An adapter that is started anew knows nothing of the link: the write that is under way fails, the next one has a new link.
#[test]
fn an_adapter_that_begins_anew() {
    let (_, mut device, mut network) = linked();
    let mut anew = adapter();
    device.endpoint.write(network.now, 2, COUNTER, vec![2; 4].into()).unwrap();
    let end = network.now + Duration::from_ms(1);
    network.run_until(&mut [&mut anew, &mut device], end);
    assert_eq!(device.results.get(&2), Some(&Err(DmaError::Unacknowledged)));
    device.endpoint.write(network.now, 3, COUNTER, vec![3; 4].into()).unwrap();
    let end = network.now + Duration::from_ms(1);
    network.run_until(&mut [&mut anew, &mut device], end);
    assert_eq!(device.results.get(&3), Some(&Ok(Payload::EMPTY)));
    let mut memory = [0; 4];
    anew.adapter.host().peek(COUNTER, &mut memory);
    assert_eq!(memory, [3; 4]);
}

/// An acknowledgement that does not come: the TLP is sent again, with a header of its own and the next number. It is carried out once, and
/// counted at both ends.
#[test]
fn a_tlp_sent_again_is_carried_out_once_and_counted() {
    let (mut adapter, mut device, mut network) = linked();
    let base = adapter.adapter.devices().next().unwrap().bars[4].unwrap().base;
    device.endpoint.set_windows(vec![Window { base, size: 4096 }]);
    adapter.adapter.host_mut().access(0, 4, 64, MmioAccess::Write(vec![5; 4].into()));
    let (port, first) = datagrams(&mut adapter.adapter, network.now).pop().unwrap();
    deliver(&mut device.endpoint, HOST, port, &first);
    let number = |bytes: &[u8]| Header::parse(bytes).unwrap().sequence;
    for again in 1..=2 {
        network.now = adapter.adapter.deadline().unwrap();
        adapter.adapter.handle_timeout(network.now);
        let repeated = datagrams(&mut adapter.adapter, network.now);
        let [(_, bytes)] = &repeated[..] else { panic!("{repeated:?}") };
        assert_eq!(open(bytes).unwrap().1, open(&first).unwrap().1);
        let ticks = (network.now.as_fs() / Header::TICK.as_fs()) as u32;
        let header = Header { sequence: number(&first) + again as u16, timestamp: ticks };
        assert_eq!(Header::parse(bytes), Ok(header));
        deliver(&mut device.endpoint, HOST, port, bytes);
        assert_eq!(adapter.adapter.device_counters(0).unwrap().repeated, again);
        assert_eq!(device.endpoint.counters().duplicates, again);
    }
    device.turn(network.now);
    assert_eq!(device.written, [5]);
}

/// An unreachable host ends the request that did not reach it, a refused port the link. Another link is asked for when something waits for
/// one: a request of the device, or one of the host that waits for its answer.
#[test]
fn a_refused_port_ends_the_link_and_an_unreachable_host_one_request() {
    let (adapter, mut device, network) = linked();
    let base = adapter.adapter.devices().next().unwrap().bars[4].unwrap().base;
    for token in [2, 3] {
        device.endpoint.read(network.now, token, 0x1_0000, 4).unwrap();
    }
    let ports: Vec<u16> =
        datagrams(&mut device.endpoint, network.now).iter().map(|(port, _)| *port).collect();
    let undeliverable = |device: &mut DeviceNode, port, why| {
        device.endpoint.handle_undeliverable(network.now, SocketAddrV4::new(HOST, port), why);
        device.turn(network.now);
    };
    undeliverable(&mut device, ports[0], Undeliverable::HostUnreachable);
    assert!(matches!(device.results[&2], Err(DmaError::Completion(CompletionError::Undelivered { .. }))));
    assert_eq!((device.results.get(&3), device.endpoint.counters().links_lost), (None, 0));
    undeliverable(&mut device, ports[1], Undeliverable::PortRefused);
    assert_eq!(device.results[&3], Err(DmaError::Unacknowledged));
    assert_eq!((device.endpoint.counters().links_lost, device.endpoint.counters().undelivered), (1, 2));
    assert_eq!(datagrams(&mut device.endpoint, network.now), [], "nothing waits for a link");
    device.endpoint.set_windows(vec![Window { base, size: 4096 }]);
    raw::deliver(&mut device.endpoint, network.now, 0x4001, &raw::host_request(1, base, 1, 0xF, None));
    let asked = datagrams(&mut device.endpoint, network.now);
    assert!(asked.len() == 1 && asked[0].0 == 0x3000 && asked[0].1[6] == 0x70 | 0x04, "{asked:?}");
}

/// A program without a link takes the place of one that had one, and nothing of the link is left.
#[test]
fn a_program_without_a_link_follows() {
    let (mut adapter, _, mut network) = linked();
    let mut plain = DeviceNode::new(config(false));
    plain.endpoint.read(network.now, 7, 0x1_0000, 300).unwrap();
    let end = network.now + Duration::from_ms(1);
    network.run_until(&mut [&mut adapter, &mut plain], end);
    assert!(matches!(plain.results.get(&7), Some(Ok(_))), "{:?}", plain.results);
    assert_eq!((adapter.adapter.backlog(), adapter.adapter.deadline()), (0, None));
}

/// A device that dies keeps nothing of the adapter's for long: at once where the network says so, after two seconds elsewhere.
#[test]
fn a_device_that_dies_is_forgotten() {
    for refused in [true, false] {
        let (mut adapter, mut device, mut network) = linked();
        device.endpoint.read(network.now, 2, 0x1_0000, 512).unwrap();
        for (port, bytes) in datagrams(&mut device.endpoint, network.now) {
            deliver(&mut adapter.adapter, DEVICE, port, &bytes);
        }
        datagrams(&mut adapter.adapter, network.now);
        assert!(adapter.adapter.backlog() > 0, "what is not acknowledged is kept");
        if refused {
            let to = SocketAddrV4::new(DEVICE, 0x3001);
            adapter.adapter.handle_undeliverable(network.now, to, Undeliverable::PortRefused);
        } else {
            let end = network.now + Duration::from_ms(2300);
            network.run_until(&mut [&mut adapter], end);
        }
        assert_eq!((adapter.adapter.backlog(), adapter.adapter.deadline()), (0, None), "refused: {refused}");
    }
}

/// Numbers from anywhere, sealed as they should be, end nothing and are not carried out.
#[test]
fn numbers_out_of_nowhere() {
    let (mut adapter, mut device, network) = linked();
    device.endpoint.write(network.now, 2, COUNTER, vec![9; 4].into()).unwrap();
    let (port, sealed) = datagrams(&mut device.endpoint, network.now).pop().unwrap();
    let (numbers, tlp) = open(&sealed).unwrap();
    let mut random = Random::keyed(1, "numbers", "anywhere");
    for stamp in 0..2000u32 {
        let near = random.below(2) == 0;
        let mut number = || {
            if near {
                (numbers.sequence + 1 + random.below(600) as u32) % (1 << 24)
            } else {
                random.below(1 << 24) as u32
            }
        };
        let sequence = number();
        let wrong = Numbers {
            sequence: if sequence == numbers.sequence { 0 } else { sequence },
            acknowledged: number(),
        };
        let mut bytes = vec![0; sealed.len()];
        bytes[6..][..tlp.len()].copy_from_slice(tlp);
        bytes[2..6].copy_from_slice(&(1000 + stamp).to_be_bytes());
        seal(&mut bytes, sealed.len() - SEAL_BYTES, wrong).unwrap();
        deliver(&mut adapter.adapter, DEVICE, port, &bytes);
        datagrams(&mut adapter.adapter, network.now);
    }
    let mut memory = [0; 4];
    adapter.adapter.host().peek(COUNTER, &mut memory);
    assert_eq!(memory, [1; 4], "it was nobody's turn");
    assert!(adapter.adapter.backlog() < 300);
}

/// Messages and sealed TLPs that are whole and say anything: nothing panics, little is kept, and nothing when time has passed.
#[test]
fn junk_on_a_link() {
    use tlplab_wire::nettlp::link::{Lane, LinkMessage};
    use tlplab_wire::tlp::{Repr, TransactionId};
    let (mut adapter, mut device, network) = linked();
    let (mut now, mut random) = (network.now, Random::keyed(3, "junk", "on a link"));
    let read = Repr::mem_read(TransactionId::new(ID, 3.into()), 0x1_0000, 64).unwrap();
    for stamp in 1..30_000u32 {
        let mut any = |most: u64| random.below(most) as u32;
        let header = tlplab_wire::nettlp::Header { sequence: any(1 << 16) as u16, timestamp: stamp };
        let (a, b) = (any(256) as u8, any(256) as u8);
        let lane = Lane {
            epoch: any(4),
            first_tag: a.min(b),
            last_tag: a.max(b),
            host_ports: any(1 << 16) as u16,
            sequence: any(1 << 24),
        };
        let message = match any(5) {
            0 => Some(LinkMessage::Connect(lane)),
            1 => Some(LinkMessage::Accept(lane)),
            2 => Some(LinkMessage::Ack {
                epoch: any(4),
                acknowledged: lane.sequence.wrapping_add(any(200)),
                beyond: u64::from(any(1 << 32)) << any(32),
            }),
            3 => Some(LinkMessage::Reset { sequence: lane.sequence }),
            _ => None,
        };
        let bytes = match message {
            Some(message) => links::message(header, message),
            None => links::sealed(header, &read, Numbers { sequence: any(600), acknowledged: any(600) }),
        };
        let port = if any(4) == 0 { 0x4000 + any(16) as u16 } else { 0x3000 + u16::from(a) };
        adapter
            .adapter
            .handle_datagram(now, Datagram { from: SocketAddrV4::new(DEVICE, port), port, payload: &bytes });
        device
            .endpoint
            .handle_datagram(now, Datagram { from: SocketAddrV4::new(HOST, port), port, payload: &bytes });
        if any(4) == 0 {
            now += Duration::from_us(u64::from(any(400)));
            for engine in [&mut adapter.adapter as &mut dyn Engine, &mut device.endpoint] {
                if engine.deadline().is_some_and(|deadline| deadline <= now) {
                    engine.handle_timeout(now);
                }
                datagrams(engine, now);
            }
        }
        assert!(
            adapter.adapter.backlog() < 16 * (128 + 256) + 1024,
            "{} are kept",
            adapter.adapter.backlog()
        );
    }
    for _ in 0..100 {
        now += Duration::from_ms(100);
        adapter.adapter.handle_timeout(now);
        device.endpoint.handle_timeout(now);
        datagrams(&mut adapter.adapter, now);
        datagrams(&mut device.endpoint, now);
        while device.endpoint.poll_event().is_some() {}
    }
    assert!(device.endpoint.is_idle());
}

/// Thousands of operations with everything that a network does: it never stands still for long.
#[test]
fn it_never_stands_still() {
    for seed in 0..20 {
        let (mut adapter, mut device) = (adapter(), DeviceNode::new(config(true)));
        let impairment = Impairment {
            lost: 10 * (seed % 3),
            doubled: 10 * (seed % 5),
            jitter: Duration::from_us(10 * (seed % 7)),
            ..Impairment::default()
        };
        let (mut network, mut begun, mut last) = (Network::new(seed, impairment), 0, (0, Time::ZERO));
        while device.results.len() < 4000 {
            while begun < 4000 && begun - (device.results.len() as u32) < 16 {
                let address = 0x1_0000 + u64::from(begun % 64) * 512;
                device.endpoint.read(network.now, begun, address, 512).unwrap();
                begun += 1;
            }
            let next = network.now + Duration::from_us(2);
            network.run_until(&mut [&mut adapter, &mut device], next);
            if device.results.len() != last.0 {
                last = (device.results.len(), network.now);
            }
            let still = network.now.saturating_since(last.1);
            assert!(still < Duration::from_ms(40), "seed {seed}: {last:?}, {:?}", device.endpoint.counters());
        }
        assert!(device.results.values().all(Result::is_ok), "seed {seed}");
    }
}
