//! What the fuzz targets `nettlp_adapter` and `nettlp_endpoint`, and a test of `tlplab-nettlp`, feed bytes to: datagrams of all kinds,
//! with time passing. Whatever they are, nothing panics, what leaves is well-formed and goes to a peer, what is kept is bounded, and
//! when time has passed nothing is kept.

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

/// The bytes that decide; zeros when they are used up.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
    fn word(&mut self) -> u32 {
        u32::from(self.half()) << 16 | u32::from(self.half())
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }
}

/// A datagram, in a buffer that is used again and again.
struct Letter {
    bytes: [u8; MAX_DATAGRAM],
    len: usize,
    port: u16,
}

impl Letter {
    const fn new() -> Self {
        Self { bytes: [0; MAX_DATAGRAM], len: 0, port: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Random bytes, or nearly a TLP: its fields are likely ones, and then a byte may be changed and its end cut off.
    fn write(&mut self, choices: &mut Choices<'_>) {
        self.len = 0;
        let kind = choices.byte();
        let tag = choices.of(&[0u8, 0, 1, 2, 3, 17, 255]);
        self.port = match choices.byte() {
            0..=99 => 0x3000 + u16::from(tag),
            100..=219 => 0x4000 + u16::from(tag & 15),
            220..=229 => 0x5001,
            230..=239 => 12287,
            240..=247 => 0x5002,
            _ => choices.half(),
        };
        match kind {
            0..=39 => {
                for _ in 0..choices.byte() % 48 {
                    let byte = choices.byte();
                    self.push(&[byte]);
                }
                return;
            }
            40..=59 => {
                // One of the services: six bytes, or four.
                let head = choices.of(&[0x3Cu8, 0x7C, 0x44, 0x10, 0x11, 1, 2, 3]);
                // Mostly such data as leave the function switched on, and BAR 4 where it is.
                let register = choices.of(&[0u8, 1, 1, 3, 5, 8, 8, 0x10]);
                let (high, low) =
                    (choices.of(&[0xA0u8, 0xB0, 0xB0, 0xC0]), choices.of(&[6u8, 6, 6, 6, 0x0C]));
                let rest = [head, register, high, 0, 0, low];
                return self.push(&rest[..if self.port == 12287 { 4 } else { 6 }]);
            }
            _ => {}
        }
        let sequence = choices.half() & 0x3F;
        self.push(&[(sequence >> 8) as u8, sequence as u8, 0, 0, 0, choices.byte()]);
        self.tlp(kind, tag, choices);
        if self.bytes[8] & 0x80 != 0 && self.len + 4 <= MAX_DATAGRAM {
            self.push(&[0; 4]);
        }
        if choices.byte() < 32 {
            let at = usize::from(choices.half()) % self.len;
            self.bytes[at] = choices.byte();
        }
        if choices.byte() < 16 {
            self.len = usize::from(choices.half()) % self.len;
        }
    }

    fn tlp(&mut self, kind: u8, tag: u8, choices: &mut Choices<'_>) {
        let dw = choices.of(&[1u16, 1, 1, 2, 16, 64, 128, 0]);
        let data = 4 * usize::from(if dw == 0 { 1024 } else { dw });
        let id = choices.of(&[0x1B00u16, 0x1B00, 0x1C00, 0x0000, 0x0000, 0x1D00]);
        let enables = choices.of(&[if dw == 1 { 0x0Fu8 } else { 0xFF }, 0x01, 0x81, 0xF0, 0x00, 0xA5]);
        let address = choices.of(&[
            0x0000_1000u32,
            0x0000_1004,
            0x000F_FFC0,
            0xA000_0000,
            0xB000_0000,
            0xB000_0040,
            0x9000_0000,
            0xFEE0_0000,
        ]);
        let [dw_high, dw_low] = dw.to_be_bytes();
        // EP, or a digest.
        let dw_high = dw_high | choices.of(&[0u8, 0, 0, 0, 0, 0, 0x40, 0x80]);
        let [id_high, id_low] = id.to_be_bytes();
        match kind {
            60..=119 => self.push(&[0x00, 0, dw_high, dw_low, id_high, id_low, tag, enables]),
            120..=169 => self.push(&[0x40, 0, dw_high, dw_low, id_high, id_low, tag, enables]),
            170..=229 => {
                // An answer; status mostly good, byte count mostly what is there.
                let status = choices.of(&[0u8, 0, 0, 0, 0x20, 0x80]);
                let count = choices.of(&[data as u16 & 0xFFF, 4, 64, 512, 1]);
                let with_data = status == 0;
                let length = if with_data { [dw_high, dw_low] } else { [0, 0] };
                self.push(&[if with_data { 0x4A } else { 0x0A }, 0, length[0], length[1], 0x1C, 0]);
                self.push(&[status | (count >> 8) as u8, count as u8, id_high, id_low, tag]);
                self.push(&[choices.of(&[0u8, 0x40, 0x04, 0x44])]);
                if with_data {
                    self.data(data, choices.byte());
                }
                return;
            }
            _ => {
                let format =
                    choices.of(&[0x20u8, 0x60, 0x02, 0x42, 0x04, 0x4C, 0x30, 0x74, 0x1B, 0x5B, 0x80]);
                let code = choices.of(&[enables, 0x30, 0x7F]);
                let traffic_class = choices.byte() & 0x70 & u8::from(format == 0x20).wrapping_neg();
                self.push(&[format, traffic_class, dw_high, dw_low, id_high, id_low, tag, code]);
                self.push(&[0; 4]);
            }
        }
        self.push(&address.to_be_bytes());
        if self.bytes[6] & 0x40 != 0 {
            self.data(data, choices.byte());
        }
    }

    fn data(&mut self, bytes: usize, value: u8) {
        let end = (self.len + bytes).min(MAX_DATAGRAM);
        self.bytes[self.len..end].fill(value);
        self.len = end;
    }

    fn datagram(&self, from: Ipv4Addr) -> Datagram<'_> {
        Datagram {
            from: SocketAddrV4::new(from, self.port),
            port: self.port,
            payload: &self.bytes[..self.len],
        }
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
                self.now = Time::ZERO + self.now.saturating_since(Time::ZERO + Duration::from_ms(1));
            }
            8..=13 => self.drain(usize::from(choices.byte())),
            _ => {
                self.letter.write(choices);
                let from = if what == 255 { STRANGER } else { PEERS[usize::from(what & 1)] };
                self.adapter.handle_datagram(self.now, self.letter.datagram(from));
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
        self.now += time;
        if self.adapter.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.adapter.handle_timeout(self.now);
        }
        self.results();
        if self.now.saturating_since(Time::ZERO) > Duration::from_ms(3_600_000) {
            self.adapter.rebase(Duration::from_ms(3_600_000));
            self.now = Time::ZERO + self.now.saturating_since(Time::ZERO + Duration::from_ms(3_600_000));
        }
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
                let (address, bytes) = (u64::from(choices.word() & 0xFFFF), u64::from(choices.half() % 2048));
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
                self.endpoint.handle_datagram(self.now, self.letter.datagram(from));
                self.events();
                assert!(self.endpoint.in_flight() <= 256 && self.endpoint.host_reads_open() <= 1024);
                return true;
            }
        }
        false
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.endpoint.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.endpoint.handle_timeout(self.now);
        }
        self.events();
        if self.now.saturating_since(Time::ZERO) > Duration::from_ms(3_600_000) {
            self.endpoint.rebase(Duration::from_ms(3_600_000));
            self.now = Time::ZERO + self.now.saturating_since(Time::ZERO + Duration::from_ms(3_600_000));
        }
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
                Event::WriteSent { .. } | Event::Other { .. } => {}
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
    while !choices.0.is_empty() {
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
    while !choices.0.is_empty() {
        count += usize::from(fire.step(&mut choices));
    }
    fire.settle();
    count
}
