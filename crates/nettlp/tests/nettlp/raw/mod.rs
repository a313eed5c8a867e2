//! NetTLP by hand: bytes as the specification and the published sources have them, without the codec that is under test.

use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
use tlplab_units::{Duration, Time};

pub(crate) const ADAPTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// 1b:00.0, as in the published captures.
pub(crate) const DEVICE: u16 = 0x1B00;

pub(crate) fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

/// What memory holds at an address: neighbours differ, and so do pages.
pub(crate) fn byte(address: u64) -> u8 {
    (address ^ address >> 8 ^ (address >> 16).wrapping_mul(37)) as u8
}
pub(crate) fn bytes(address: u64, count: u64) -> Vec<u8> {
    (address..address + count).map(byte).collect()
}

/// A request that was sent, read field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) port: u16,
    pub(crate) fmt_type: u8,
    /// Doublewords; 1024 is 0 on the wire.
    pub(crate) dw: u32,
    pub(crate) requester: u16,
    pub(crate) tag: u8,
    pub(crate) last: u8,
    pub(crate) first: u8,
    pub(crate) address: u64,
    pub(crate) data: Vec<u8>,
}

impl Sent {
    fn of(port: u16, udp: &[u8]) -> Self {
        let tlp = &udp[6..];
        let word = |at: usize| u32::from_be_bytes(tlp[at..at + 4].try_into().unwrap());
        let (dw, wide) = (word(0) & 0x3FF, tlp[0] & 0x20 != 0);
        let address = if wide { u64::from(word(8)) << 32 | u64::from(word(12)) } else { word(8).into() };
        Self {
            port,
            fmt_type: tlp[0],
            dw: if dw == 0 { 1024 } else { dw },
            requester: word(4).to_be_bytes()[..2].try_into().map(u16::from_be_bytes).unwrap(),
            tag: tlp[6],
            last: tlp[7] >> 4,
            first: tlp[7] & 15,
            address,
            data: tlp[if wide { 16 } else { 12 }..].to_vec(),
        }
    }
}

/// Everything that an engine wants to send now: port and payload.
pub(crate) fn sent_bytes(engine: &mut impl Engine, now: Time) -> Vec<(u16, Vec<u8>)> {
    let mut buffer = [0xEE; MAX_DATAGRAM];
    let mut sent = Vec::new();
    while let Some(out) = engine.poll_transmit(now, &mut buffer) {
        assert_eq!(out.to, SocketAddrV4::new(ADAPTER, out.from_port), "both ports are the same");
        sent.push((out.from_port, buffer[..out.len].to_vec()));
    }
    sent
}

pub(crate) fn sent(engine: &mut impl Engine, now: Time) -> Vec<Sent> {
    sent_bytes(engine, now).iter().map(|(port, udp)| Sent::of(*port, udp)).collect()
}

pub(crate) fn deliver(engine: &mut impl Engine, now: Time, port: u16, payload: &[u8]) {
    let from = SocketAddrV4::new(ADAPTER, port);
    engine.handle_datagram(now, Datagram { from, port, payload });
}

/// The fields of a completion.
#[derive(Clone, Debug)]
pub(crate) struct Cpl {
    pub(crate) header: [u8; 6],
    pub(crate) requester: u16,
    pub(crate) tag: u8,
    pub(crate) status: u8,
    /// 4096 is 0 on the wire.
    pub(crate) byte_count: u32,
    pub(crate) lower: u8,
    pub(crate) poisoned: bool,
    /// Whole doublewords.
    pub(crate) data: Vec<u8>,
}

impl Cpl {
    pub(crate) fn new(tag: u8, byte_count: u32, lower: u8, data: Vec<u8>) -> Self {
        let (header, requester, status, poisoned) = ([0; 6], DEVICE, 0, false);
        Self { header, requester, tag, status, byte_count, lower, poisoned, data }
    }
    /// The bytes of memory from `address` on, so many of the `byte_count` that are missing, with the padding to whole doublewords.
    pub(crate) fn of_memory(tag: u8, address: u64, byte_count: u32, carried: u32) -> Self {
        let mut data = vec![0xBD; (address & 3) as usize];
        data.extend(bytes(address, carried.into()));
        data.resize(data.len().next_multiple_of(4), 0xBD);
        Self::new(tag, byte_count, (address & 0x7F) as u8, data)
    }
    pub(crate) fn failed(tag: u8, status: u8) -> Self {
        Self { status, ..Self::new(tag, 4, 0, Vec::new()) }
    }
    pub(crate) fn numbered(self, sequence: u16, timestamp: u32) -> Self {
        let ([a, b], [c, d, e, f]) = (sequence.to_be_bytes(), timestamp.to_be_bytes());
        Self { header: [a, b, c, d, e, f], ..self }
    }

    pub(crate) fn udp(&self) -> Vec<u8> {
        let dw = (self.data.len() as u32 / 4) & 0x3FF;
        let word0 = if self.data.is_empty() { 0x0A00_0000 } else { 0x4A00_0000 } | dw;
        let word1 = u32::from(self.status) << 13 | (self.byte_count & 0xFFF);
        let word2 = u32::from(self.requester) << 16 | u32::from(self.tag) << 8 | u32::from(self.lower);
        let mut udp = self.header.to_vec();
        for word in [word0 | u32::from(self.poisoned) << 14, word1, word2] {
            udp.extend(word.to_be_bytes());
        }
        udp.extend(&self.data);
        udp
    }
    pub(crate) fn deliver(&self, engine: &mut impl Engine, now: Time) {
        deliver(engine, now, 0x3000 + u16::from(self.tag), &self.udp());
    }
}

/// A memory request of the host, from function 00:00.0: `enables` is byte 7, last in the high nibble.
pub(crate) fn host_request(tag: u8, address: u64, dw: u32, enables: u8, data: Option<&[u8]>) -> Vec<u8> {
    let wide = address >> 32 != 0;
    let fmt = if wide { 0x20 } else { 0 } | if data.is_some() { 0x40 } else { 0 };
    let mut udp = vec![0; 6];
    udp.extend((u32::from(fmt as u8) << 24 | dw & 0x3FF).to_be_bytes());
    udp.extend([0, 0, tag, enables]);
    match wide {
        true => udp.extend(address.to_be_bytes()),
        false => udp.extend((address as u32).to_be_bytes()),
    }
    udp.extend(data.unwrap_or(&[]));
    udp
}
