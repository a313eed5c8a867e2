//! What the adapter does between two devices, against what was captured between two cards: under a switch
//! (mrd-512byte-plx) and under a root complex (mrd-512byte-rc). The bytes are those of the captures, whose payloads are zeros.

use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost, PeerToPeer};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
use tlplab_units::{Bdf, Time};

const READER: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 3);
const MEMORY: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 4);

/// Two cards, the second of which has its BAR 4 at `window`.
fn adapter(reader: u16, memory: u16, window: u64, mode: PeerToPeer, requester: u16) -> Adapter<MemoryHost> {
    let devices = vec![
        DeviceConfig::card(READER, Bdf(reader)),
        DeviceConfig {
            bars: Some([0xFD00_0000, 0, 1 << 40, 0, window, 0]),
            ..DeviceConfig::card(MEMORY, Bdf(memory))
        },
    ];
    let config = AdapterConfig {
        peer_to_peer: mode,
        requester: Bdf(requester),
        ..AdapterConfig::new(Ipv4Addr::new(192, 168, 10, 1), devices)
    };
    Adapter::new(config, MemoryHost::new(1 << 20)).expect("two cards")
}

fn receive(adapter: &mut Adapter<MemoryHost>, from: Ipv4Addr, port: u16, tlp: &[u8]) {
    let payload = [&[0; 6], tlp].concat();
    let from = SocketAddrV4::new(from, port);
    adapter.handle_datagram(Time::ZERO, Datagram { from, port, payload: &payload });
}

/// All that it sends: to whom, to which port, sequence number and TLP.
fn sent(adapter: &mut Adapter<MemoryHost>) -> Vec<(Ipv4Addr, u16, u16, Vec<u8>)> {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut all = Vec::new();
    while let Some(out) = adapter.poll_transmit(Time::ZERO, &mut buffer) {
        assert_eq!(out.from_port, out.to.port());
        let sequence = u16::from_be_bytes([buffer[0], buffer[1]]);
        all.push((*out.to.ip(), out.to.port(), sequence, buffer[6..out.len].to_vec()));
    }
    all
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn with_zeros(header: &[u32], bytes: usize) -> Vec<u8> {
    [words(header), vec![0; bytes]].concat()
}

#[test]
fn a_switch_passes_tlps_as_they_are() {
    let mut adapter = adapter(0x1B00, 0x1900, 0xA000_0000, PeerToPeer::Switch, 0);
    let read = words(&[0x0000_0080, 0x1B00_00FF, 0xA000_0000]);
    let answers = [
        with_zeros(&[0x4A00_0040, 0x1900_0200, 0x1B00_0000], 256),
        with_zeros(&[0x4A00_0040, 0x1900_0100, 0x1B00_0000], 256),
    ];
    receive(&mut adapter, READER, 0x3000, &read);
    assert_eq!(sent(&mut adapter), [(MEMORY, 0x4000, 0, read)]);
    for answer in &answers {
        receive(&mut adapter, MEMORY, 0x4000, answer);
    }
    let expected = answers.iter().zip(0..).map(|(tlp, n)| (READER, 0x3000, n, tlp.clone()));
    assert_eq!(sent(&mut adapter), expected.collect::<Vec<_>>());
}

#[test]
fn a_root_complex_splits_reads_and_rebuilds_completions() {
    let mut adapter = adapter(0x1A00, 0x6800, 0xC000_0000, PeerToPeer::RootComplex, 0x6400);
    receive(&mut adapter, READER, 0x3000, &words(&[0x0000_0080, 0x1A00_00FF, 0xC000_0000]));
    let pieces = (0..8u16).map(|n| {
        let tag = u32::from(n);
        let tlp = words(&[0x0000_0010, 0x6400_00FF | tag << 8, 0xC000_0000 + 64 * tag]);
        (MEMORY, 0x4000 + n, n, tlp)
    });
    assert_eq!(sent(&mut adapter), pieces.collect::<Vec<_>>());
    // In the order in which they came; the low byte is the lower address.
    let order = [0x000, 0x400, 0x600, 0x340, 0x140, 0x540, 0x200, 0x740];
    for (n, tag) in order.into_iter().enumerate() {
        assert_eq!(sent(&mut adapter), [], "before completion {n}");
        let answer = with_zeros(&[0x4A00_0010, 0x6800_0040, 0x6400_0000 | tag], 64);
        receive(&mut adapter, MEMORY, 0x4000 + (tag >> 8) as u16, &answer);
    }
    let rebuilt = [0x200, 0x100]
        .into_iter()
        .zip(0..)
        .map(|(left, n)| (READER, 0x3000, n, with_zeros(&[0x4A00_0040, left, 0x1A00_0000], 256)));
    assert_eq!(sent(&mut adapter), rebuilt.collect::<Vec<_>>());
}
