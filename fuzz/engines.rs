//! What the fuzz targets `nettlp_adapter`, `nettlp_endpoint` and `nettlp_device`, and `crates/nettlp/tests`, feed bytes to: datagrams of all
//! kinds ([`letter`]), with time passing. Whatever they are, nothing panics, what leaves is well-formed and goes to a peer, what is kept is bounded, and
//! when time has passed nothing is kept.

#[path = "device.rs"]
mod device;
#[path = "letter.rs"]
mod letter;

pub(crate) use device::{DeviceUnderFire, device};
pub(crate) use letter::Choices;
use letter::Letter;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost, PeerToPeer, RateLimit};
use tlplab_nettlp::endpoint::{Endpoint, EndpointConfig, Event, Window};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM, Undeliverable};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::nettlp::parse_udp_payload;
use tlplab_wire::tlp::Repr;

const LOCAL: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const PEERS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 3)];
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 9, 9, 9);
/// Requests of a device that may wait.
const QUEUE: usize = 8;
/// Longer than any time limit and any rest of a tag.
const LONG: Duration = Duration::from_ms(150);
const HOUR: Duration = Duration::from_ms(3_600_000);

/// A datagram from somebody.
fn datagram(letter: &Letter, from: Ipv4Addr) -> Datagram<'_> {
    Datagram { from: SocketAddrV4::new(from, letter.port), port: letter.port, payload: letter.payload() }
}

/// Time passes for an engine, and every hour its origin moves on.
fn advance(engine: &mut impl Engine, now: &mut Time, time: Duration) {
    *now += time;
    if engine.deadline().is_some_and(|deadline| deadline <= *now) {
        engine.handle_timeout(*now);
    }
    if now.saturating_since(Time::ZERO) > HOUR {
        engine.rebase(HOUR);
        *now = now.earlier(HOUR);
    }
}

/// Takes what an engine sends, up to `most` datagrams, and looks at it; how many there were.
fn drain(engine: &mut impl Engine, now: Time, most: usize, peers: &[Ipv4Addr], buffer: &mut [u8]) -> usize {
    for count in 0..most {
        let Some(out) = engine.poll_transmit(now, buffer) else { return count };
        assert!(peers.contains(out.to.ip()), "a datagram to {}", out.to);
        if matches!(out.from_port, 0x3000..0x3100 | 0x4000..0x4010) && out.len >= 18 {
            let tlp = parse_udp_payload(&buffer[..out.len]).and_then(|(_, packet)| Repr::parse(&packet));
            assert!(tlp.is_ok(), "{tlp:?} leaves by {:#x}", out.from_port);
        }
    }
    most
}

/// An adapter with two devices, whatever they send.
pub(crate) struct AdapterUnderFire {
    pub(crate) adapter: Adapter<MemoryHost>,
    now: Time,
    letter: Letter,
    buffer: [u8; MAX_DATAGRAM],
    asked: u64,
    told: u64,
}

impl AdapterUnderFire {
    pub(crate) fn new(mode: u8) -> Self {
        let cards =
            [0x1B00, 0x1C00].into_iter().zip(PEERS).map(|(bdf, peer)| DeviceConfig::card(peer, Bdf(bdf)));
        let config = AdapterConfig {
            peer_to_peer: if mode & 1 == 0 { PeerToPeer::Switch } else { PeerToPeer::RootComplex },
            queue: QUEUE,
            rate: RateLimit { per_second: 1_000_000_000, burst: 1_000_000 },
            ..AdapterConfig::new(LOCAL, cards.collect())
        };
        let latency = if mode & 2 == 0 { Duration::ZERO } else { Duration::from_us(2) };
        let adapter = Adapter::new(config, MemoryHost::new(1 << 20).with_latency(latency));
        let adapter = adapter.expect("two cards");
        let (letter, buffer) = (Letter::new(), [0; MAX_DATAGRAM]);
        Self { adapter, now: Time::ZERO, letter, buffer, asked: 0, told: 0 }
    }

    /// Something happens; true if it was a datagram.
    pub(crate) fn step(&mut self, choices: &mut Choices<'_>) -> bool {
        let what = choices.byte();
        match what {
            0..=3 => self.pass(Duration::from_us(u64::from(choices.half()))),
            4..=5 => {
                let (device, bar) = (usize::from(choices.byte() % 3), choices.of(&[0u8, 2, 4, 4, 4, 5]));
                let (offset, bytes) = (u64::from(choices.half()), 1 + u32::from(choices.half() % 1024));
                let write = choices.byte() & 1 == 1;
                let write = write.then(|| MmioAccess::Write(vec![1; bytes as usize].into()));
                let access = write.unwrap_or(MmioAccess::Read(bytes));
                // A program waits for some of what it asked.
                if self.asked - self.told < 64 {
                    self.adapter.host_mut().access(device, bar, offset, access);
                    self.asked += 1;
                }
            }
            6 => {
                let to = SocketAddrV4::new(choices.of(&PEERS), 0x4000 + u16::from(choices.byte() & 15));
                self.adapter.handle_undeliverable(self.now, to, Undeliverable::PortRefused);
            }
            7 => {
                self.adapter.rebase(Duration::from_ms(1));
                self.now = self.now.earlier(Duration::from_ms(1));
            }
            8..=13 => self.drain(usize::from(choices.byte())),
            _ => {
                self.letter.write(choices);
                let from = if what == 255 { STRANGER } else { PEERS[usize::from(what & 1)] };
                self.adapter.handle_datagram(self.now, datagram(&self.letter, from));
                // Queues of a device: answers, services, the other's TLPs, the host's programs, pieces of the other's requests, tags.
                let most = 2 * (QUEUE + 64 + 2 * QUEUE + 64 * 9 + QUEUE * 65 + 256);
                assert!(self.adapter.backlog() <= most, "{} are kept", self.adapter.backlog());
                return true;
            }
        }
        false
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, time: Duration) {
        advance(&mut self.adapter, &mut self.now, time);
        self.results();
    }

    fn drain(&mut self, most: usize) {
        drain(&mut self.adapter, self.now, most, &PEERS, &mut self.buffer);
        self.results();
    }

    fn results(&mut self) {
        while self.adapter.host_mut().take_result().is_some() {
            self.told += 1;
        }
        while self.adapter.host_mut().take_interrupt().is_some() {}
    }

    /// Everything is sent and given up: nothing may be kept, and every access of a program has ended once.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            self.drain(usize::MAX);
            self.pass(LONG);
            if self.adapter.backlog() == 0 && self.asked == self.told {
                return;
            }
        }
        panic!("{} kept, {} of {} accesses ended", self.adapter.backlog(), self.told, self.asked);
    }
}

/// A device's end, whatever its adapter sends.
pub(crate) struct EndpointUnderFire {
    pub(crate) endpoint: Endpoint<u64>,
    now: Time,
    letter: Letter,
    buffer: [u8; MAX_DATAGRAM],
    asked: u64,
    told: u64,
}

impl EndpointUnderFire {
    pub(crate) fn new() -> Self {
        let windows = vec![Window { base: 0xB000_0000, size: 1 << 20 }];
        let endpoint = Endpoint::new(EndpointConfig { windows, ..EndpointConfig::new(LOCAL, Bdf(0x1B00)) });
        let (letter, buffer) = (Letter::new(), [0; MAX_DATAGRAM]);
        Self { endpoint, now: Time::ZERO, letter, buffer, asked: 0, told: 0 }
    }

    /// Something happens; true if it was a datagram.
    pub(crate) fn step(&mut self, choices: &mut Choices<'_>) -> bool {
        let what = choices.byte();
        match what {
            0..=3 => self.pass(Duration::from_us(u64::from(choices.half()))),
            4..=15 => {
                let (address, bytes) = (u64::from(choices.half()), u64::from(choices.half() % 2048));
                if self.asked - self.told < 64 {
                    self.endpoint.read(self.now, self.asked, address, bytes).expect("far from the end");
                    self.asked += 1;
                }
            }
            16 => {
                let to = SocketAddrV4::new(LOCAL, 0x3000 + u16::from(choices.byte()));
                self.endpoint.handle_undeliverable(self.now, to, Undeliverable::PortRefused);
            }
            17..=60 => self.drain(usize::from(choices.byte())),
            _ => {
                self.letter.write(choices);
                let from = if what == 255 { STRANGER } else { LOCAL };
                self.endpoint.handle_datagram(self.now, datagram(&self.letter, from));
                self.events();
                assert!(self.endpoint.in_flight() <= 256 && self.endpoint.host_reads_open() <= 1024);
                return true;
            }
        }
        false
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, time: Duration) {
        advance(&mut self.endpoint, &mut self.now, time);
        self.events();
    }

    fn drain(&mut self, most: usize) {
        drain(&mut self.endpoint, self.now, most, &[LOCAL], &mut self.buffer);
        self.events();
    }

    fn events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::ReadDone { .. } => self.told += 1,
                Event::HostRead(read) => {
                    let data = vec![7; read.bytes as usize];
                    self.endpoint.answer(read.token, Ok(data.into())).expect("it was just asked");
                }
                Event::HostWrite(write) => {
                    let end = write.address + write.data.len();
                    assert!(write.address >= 0xB000_0000 && end <= 0xB010_0000, "a write outside the window");
                }
                Event::WriteSent { .. } | Event::Failed { .. } | Event::Other { .. } => {}
            }
        }
    }

    /// Everything is sent and given up: nothing may be kept, and every read has ended once.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            self.drain(usize::MAX);
            self.pass(LONG);
            if self.endpoint.is_idle() && self.asked == self.told {
                return;
            }
        }
        panic!("{} of {} reads ended", self.told, self.asked);
    }
}

/// Datagrams to an adapter; how many.
pub(crate) fn adapter(bytes: &[u8]) -> usize {
    let mut choices = Choices(bytes);
    let mut fire = AdapterUnderFire::new(choices.byte());
    let mut count = 0;
    while !choices.is_used_up() {
        count += usize::from(fire.step(&mut choices));
    }
    fire.settle();
    count
}

/// Datagrams to a device's end; how many.
pub(crate) fn endpoint(bytes: &[u8]) -> usize {
    let mut choices = Choices(bytes);
    let mut fire = EndpointUnderFire::new();
    let mut count = 0;
    while !choices.is_used_up() {
        count += usize::from(fire.step(&mut choices));
    }
    fire.settle();
    count
}
