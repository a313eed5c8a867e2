//! An end point behind a network that loses, doubles, reorders, cuts and damages: what it says is right, or an error, and it keeps nothing.

use crate::network::{Impairment, Network, Node};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::Random;
use tlplab_nettlp::datagram::emit;
use tlplab_nettlp::endpoint::*;
use tlplab_nettlp::{Datagram, Engine, Outgoing, Undeliverable};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb, Time};
use tlplab_wire::nettlp::Header;
use tlplab_wire::tlp::*;

const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ID: Bdf = Bdf(0x1B00);
const WINDOW: Window = Window { base: 0x38_0000_0000, size: 1 << 20 };

fn byte(address: u64) -> u8 {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
fn bytes(address: u64, count: u64) -> Payload {
    (address..address + count).map(byte).collect::<Vec<_>>().into()
}

/// A host that answers from memory, after a time, in pieces cut at multiples of 64 bytes, with a digest on each. It checks what is written
/// to it, reads the device's window, and checks what comes back.
struct Host {
    random: Random,
    sequence: u16,
    ready: BTreeMap<(Time, u64), (u16, Repr, Payload)>,
    next: u64,
    /// Its reads by tag: address and bytes.
    reads: BTreeMap<u8, (u64, u32)>,
    written: BTreeSet<u64>,
    answered: u64,
    /// As an adapter has one: what is damaged or came before is not looked at.
    gate: Gate,
    digests: bool,
}

impl Host {
    fn new(seed: u64, digests: bool) -> Self {
        let random = Random::keyed(seed, "host", "answers");
        let (sequence, next, answered) = (0, 0, 0);
        let (ready, reads, written) = Default::default();
        let gate = Gate::new(DEVICE);
        Self { random, sequence, ready, next, reads, written, answered, gate, digests }
    }

    fn send(&mut self, at: Time, port: u16, repr: Repr, data: Payload) {
        let attributes = Attributes { digest: self.digests, ..Attributes::default() };
        let repr = repr.with_attributes(attributes).unwrap();
        self.ready.insert((at, self.next), (port, repr, data));
        self.next += 1;
    }

    fn read(&mut self, now: Time, id: TransactionId, span: Span) {
        let at = now + Duration::from_ns(self.random.below(20_000));
        let port = 0x3000 + id.tag.value();
        if self.random.below(50) == 0 {
            let status = CompletionStatus::UnsupportedRequest;
            let refusal = Repr::completion(Bdf(0), id, status, span.byte_count(), 0).unwrap();
            return self.send(at, port, refusal, Payload::EMPTY);
        }
        let (mut address, mut left) = (span.first_byte(), span.byte_count());
        if span.is_zero_length() {
            let lower = (address & 0x7F) as u8;
            let done = Repr::completion_with_data(Bdf(0), id, 1, lower, 1).unwrap();
            return self.send(at, port, done, Payload::EMPTY);
        }
        while left > 0 {
            let lines = 1 + self.random.below(4);
            let end = (address / 64 + lines) * 64;
            let carried = left.min((end - address) as u32);
            let lower = (address & 0x7F) as u8;
            let repr = Repr::completion_with_data(Bdf(0), id, left, lower, carried).unwrap();
            self.send(at, port, repr, bytes(address, carried.into()));
            address += u64::from(carried);
            left -= carried;
        }
    }

    /// Asks for a piece of the window, if a tag is free.
    fn ask(&mut self, now: Time) {
        let tag = self.random.below(64) as u8;
        if self.reads.contains_key(&tag) {
            return;
        }
        let address = WINDOW.base + self.random.below(WINDOW.size - 4096);
        let room = 4096 - address % 4096;
        let count = self.random.below(room.min(1024) + 1) as u32;
        self.reads.insert(tag, (address, count));
        let id = TransactionId::new(Bdf(0), tag.into());
        self.send(
            now,
            0x4000 + u16::from(tag & 15),
            Repr::mem_read(id, address, count).unwrap(),
            Payload::EMPTY,
        );
    }

    fn check_answer(&mut self, completion: &Completion, data: &[u8]) {
        let tag = completion.id().tag.value() as u8;
        let Some(&(address, count)) = self.reads.get(&tag) else { return };
        // The bit that makes a read a locked one, which nobody here supports, is not covered by the digest.
        if completion.is_locked() {
            return;
        }
        assert_eq!(completion.status(), CompletionStatus::Success);
        assert!(completion.byte_count() <= count.max(1));
        let at = address + u64::from(count - completion.byte_count().min(count));
        assert_eq!(u64::from(completion.lower_address()), at & if count == 0 { 0x7C } else { 0x7F });
        let skip = usize::from(completion.lower_address() & 3);
        let carried = completion.data_bytes().min(count) as usize;
        assert_eq!(Some(&data[skip..skip + carried]), bytes(at, carried as u64).bytes().or(Some(&[])));
        self.answered += u64::from(completion.is_last());
    }
}

impl Engine for Host {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let Some((packet, repr)) = self.gate.admit(datagram) else { return };
        if packet.ecrc_matches() != self.digests.then_some(true) {
            return;
        }
        match repr.kind() {
            Kind::MemRead { id, span, .. } => self.read(now, *id, *span),
            Kind::MemWrite { span, .. } if span.is_zero_length() => {}
            Kind::MemWrite { span, .. } => {
                let skip = (span.first_byte() - span.address()) as usize;
                let data = &packet.payload()[skip..][..span.byte_count() as usize];
                assert_eq!(Some(data), bytes(span.first_byte(), data.len() as u64).bytes());
                self.written.insert(span.first_byte());
            }
            Kind::Completion(completion) => self.check_answer(completion, packet.payload()),
            other => panic!("{other:?}"),
        }
    }
    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        let entry = self.ready.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (port, repr, data) = entry.remove();
        self.sequence = self.sequence.wrapping_add(1);
        let header = Header { sequence: self.sequence, timestamp: (now.as_fs() / 6_400_000) as u32 };
        let len = emit(buffer, header, &repr, &data).unwrap();
        Some(Outgoing::same_port(DEVICE, port, len))
    }
    fn deadline(&self) -> Option<Time> {
        self.ready.keys().next().map(|(at, _)| *at)
    }
    fn handle_timeout(&mut self, _: Time) {}
    fn handle_undeliverable(&mut self, _: Time, _: SocketAddrV4, _: Undeliverable) {}
    fn rebase(&mut self, _: Duration) {}
}

struct HostNode(Host);
impl Node for HostNode {
    fn address(&self) -> Ipv4Addr {
        HOST
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.0
    }
    fn turn(&mut self, _: Time) {}
}

/// The device: a window that is memory, and a note of how its reads ended.
struct DeviceNode {
    endpoint: Endpoint<u32>,
    results: BTreeMap<u32, Result<Payload, tlplab_device::DmaError>>,
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
                Event::ReadDone { token, result } => {
                    assert!(self.results.insert(token, result).is_none(), "each read ends once");
                }
                Event::HostRead(read) => {
                    let data =
                        if read.bytes == 0 { Payload::EMPTY } else { bytes(read.address, read.bytes.into()) };
                    self.endpoint.answer(read.token, Ok(data)).unwrap();
                }
                Event::Failed { .. } => panic!("there is no link"),
                Event::WriteSent { .. } | Event::HostWrite(_) | Event::Other { .. } => {}
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    impairment: Impairment,
    retry: Retry,
    tags: u8,
    mps: u32,
    mrrs: u32,
    digests: bool,
}

/// How many reads were right, and the counters of the end point.
fn run(case: Case) -> (u64, Counters) {
    let config = EndpointConfig {
        tags: 16..=15 + case.tags,
        mps: Mps::new(case.mps).unwrap(),
        mrrs: Mrrs::new(case.mrrs).unwrap(),
        rcb: Rcb::ALL[(case.seed & 1) as usize],
        completion_timeout: Duration::from_us(150),
        // Longer than anything lives: both flights, the jitter on both, the host's time.
        quarantine: Duration::from_us(200),
        attributes: Attributes { digest: case.digests, ..Attributes::default() },
        retry: case.retry,
        windows: vec![WINDOW],
        ..EndpointConfig::new(HOST, ID)
    };
    let mut host = HostNode(Host::new(case.seed, case.digests));
    let mut device = DeviceNode { endpoint: Endpoint::new(config), results: BTreeMap::new() };
    let mut network = Network::new(case.seed, case.impairment);
    let mut random = Random::keyed(case.seed, "device", "operations");
    let mut reads = BTreeMap::new();
    for token in 0..120u32 {
        let address = random.below(1 << 33);
        let count = [random.below(64), random.below(5000), 0][random.below(9) as usize / 4];
        if random.below(4) == 0 {
            device.endpoint.write(network.now, token, address, bytes(address, count)).unwrap();
        } else {
            device.endpoint.read(network.now, token, address, count).unwrap();
            reads.insert(token, (address, count));
        }
        host.0.ask(network.now);
        let next = network.now + Duration::from_ns(random.below(20_000));
        network.run_until(&mut [&mut host, &mut device], next);
    }
    // Everything ends, however much was lost.
    let end = network.now + Duration::from_ms(200);
    network.run_until(&mut [&mut host, &mut device], end);
    device.endpoint.handle_timeout(end);
    let mut right = 0;
    for (token, (address, count)) in &reads {
        match &device.results[token] {
            Ok(data) => {
                let expected = if *count == 0 { Payload::EMPTY } else { bytes(*address, *count) };
                assert!(*data == expected, "{count} B at {address:#x} are wrong");
                right += 1;
            }
            Err(tlplab_device::DmaError::Completion(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(device.results.len(), reads.len());
    let endpoint = &device.endpoint;
    assert!(endpoint.is_idle(), "nothing is left");
    assert_eq!(endpoint.free_tags(), u16::from(case.tags), "every tag has come back");
    assert_eq!((endpoint.queued(), endpoint.in_flight(), endpoint.host_reads_open()), (0, 0, 0));
    (right, endpoint.counters())
}

prop_compose! {
    fn case()(
        seed in any::<u64>(),
        lost in 0u64..100,
        doubled in 0u64..100,
        cut in 0u64..50,
        damaged in 0u64..50,
        jitter in 0u64..40,
        retry in prop_oneof![Just(Retry::Never), Just(Retry::Reads(3))],
        tags in prop_oneof![1u8..5, 5u8..40],
        mps in prop::sample::select(vec![128u32, 256, 4096]),
        mrrs in prop::sample::select(vec![128u32, 512, 4096]),
    ) -> Case {
        let impairment = Impairment { lost, doubled, cut, damaged, jitter: Duration::from_us(jitter) };
        Case { seed, impairment, retry, tags, mps, mrrs, digests: true }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_read_is_right_or_an_error(case in case()) {
        run(case);
    }
}

/// The impairments really happen, and what the counters say of them is what happened.
#[test]
fn impairments_are_seen() {
    let impairment =
        Impairment { lost: 20, doubled: 20, cut: 20, damaged: 20, jitter: Duration::from_us(30) };
    let case =
        Case { seed: 3, impairment, retry: Retry::Never, tags: 32, mps: 256, mrrs: 512, digests: true };
    let (right, counters) = run(case);
    assert!((20..85).contains(&right), "{right}");
    for (name, count) in [
        ("reordered", counters.reordered),
        ("early", counters.early),
        ("duplicates", counters.duplicates),
        ("lost", counters.lost()),
        ("malformed", counters.malformed()),
        ("timeouts", counters.timeouts),
    ] {
        assert!(count > 0, "{name}: {counters:?}");
    }
    assert_eq!(counters.retries, 0);
    // The same with retries: the reads that are wrong are those that the host refused.
    let (again, counters) = run(Case { retry: Retry::Reads(20), ..case });
    assert!(again > right + 10 && counters.retries > 0, "{again}, {counters:?}");
}

/// Order alone costs nothing: with jitter and duplicates, but no loss, every read that the host does not refuse is right.
#[test]
fn reordering_and_duplicates_alone_do_no_harm() {
    for seed in 0..10 {
        let impairment = Impairment { doubled: 300, jitter: Duration::from_us(30), ..Impairment::default() };
        let case =
            Case { seed, impairment, retry: Retry::Never, tags: 32, mps: 128, mrrs: 4096, digests: false };
        let (_, counters) = run(case);
        assert_eq!((counters.mismatched, counters.malformed(), counters.lost()), (0, 0, 0));
        assert!(counters.early > 10 && counters.duplicates > 50);
    }
}

/// A time limit shorter than the rest of the world is errors, not wrong data: `Timeout`, and late completions counted.
#[test]
fn impatience_is_no_harm() {
    let mut endpoint = Endpoint::<u32>::new(EndpointConfig {
        tags: 0..=3,
        completion_timeout: Duration::from_us(22),
        quarantine: Duration::from_us(100),
        ..EndpointConfig::new(HOST, ID)
    });
    (0..64).for_each(|n| endpoint.read(Time::ZERO, n, u64::from(n) << 12, 256).unwrap());
    let mut device = DeviceNode { endpoint, results: BTreeMap::new() };
    let mut host = HostNode(Host::new(1, false));
    let mut network = Network::new(1, Impairment { jitter: Duration::from_us(5), ..Impairment::default() });
    let end = Time::ZERO + Duration::from_ms(50);
    network.run_until(&mut [&mut host, &mut device], end);
    assert_eq!(device.results.len(), 64);
    let mut ends = [0; 2];
    for (token, result) in &device.results {
        match result {
            Ok(data) => {
                assert_eq!(*data, bytes(u64::from(*token) << 12, 256));
                ends[0] += 1;
            }
            Err(tlplab_device::DmaError::Completion(CompletionError::Timeout { .. })) => ends[1] += 1,
            Err(tlplab_device::DmaError::Completion(CompletionError::UnsupportedRequest { .. })) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(ends[0] > 0 && ends[1] > 10, "{ends:?}");
    assert!(device.endpoint.counters().late > 10);
}
