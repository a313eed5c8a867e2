//! Packet and XDP sockets on a cable between two network namespaces.

use super::memory::{BASE, Served, content};
use super::namespaces::{Cable, ENDS, INTERFACES};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_netio::{Batch, Context, Error, Failure, Kind, Network, Transport, Udp, Wait};
use tlplab_nettlp::{EndpointConfig, Outgoing};
use tlplab_transaction::{CompletionError, Undeliverable};
use tlplab_units::{Bdf, Mps, Mrrs};

const TAGS: std::ops::RangeInclusive<u8> = 3..=20;

/// The transports that write their own frames.
const FRAMES: [Kind; 2] = [Kind::Packet, Kind::Xdp];

fn network(kind: Kind, end: usize) -> Network {
    Network { kind, local: ENDS[end], interface: None }
}

fn ports() -> Vec<u16> {
    TAGS.map(|tag| 0x3000 + u16::from(tag)).collect()
}

fn served(cable: &Cable, kind: Kind) -> Served {
    let open = || network(kind, 1).open_for(ports(), vec![ENDS[0]], 256);
    Served::on(cable.at(1, || patiently(open)).unwrap())
}

fn config(adapter: Ipv4Addr) -> EndpointConfig {
    let completion_timeout = tlplab_units::Duration::from_ms(5000);
    EndpointConfig {
        tags: TAGS,
        host_ports: 0,
        completion_timeout,
        ..EndpointConfig::new(adapter, Bdf(0x1b00))
    }
}

fn context(cable: &Cable, kind: Kind, wait: Wait) -> Context {
    let open = || network(kind, 0).open(&config(ENDS[1]));
    Context::new(config(ENDS[1]), cable.at(0, || patiently(open)).unwrap(), wait)
}

/// Opens ports that were closed just now: another test's thread may be beginning a program, whose copy of the sockets lives until it is begun.
fn patiently<R>(open: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match open() {
            Err(Error::InUse { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10))
            }
            result => return result,
        }
    }
}

#[test]
fn all_kinds_understand_each_other() {
    let Some(cable) = Cable::lay() else { return };
    const ALL: [Kind; 3] = [Kind::Udp, Kind::Packet, Kind::Xdp];
    for (here, there) in ALL.into_iter().flat_map(|here| ALL.map(|there| (here, there))) {
        let memory = served(&cable, there);
        for wait in [Wait::Sleep, Wait::Spin] {
            let context = context(&cable, here, wait);
            for (offset, bytes) in [(0, 1), (5, 256), (63, 130), (4095, 2), (0x7_fff1, 9000), (1, 0x4_0000)] {
                let mut buffer = vec![0; bytes];
                context.dma_read(BASE + offset, &mut buffer).unwrap();
                let right =
                    buffer.iter().zip(BASE + offset..).all(|(byte, address)| *byte == content(address));
                assert!(right, "{bytes} bytes at {offset:#x}, {here:?} to {there:?}, {wait:?}");
            }
            let counters = context.counters();
            // The kernel beside a packet socket says nothing: neither "refused" nor a second answer.
            assert_eq!(
                (counters.undelivered, counters.duplicates, counters.timeouts),
                (0, 0, 0),
                "{counters:?}"
            );
        }
        drop(memory);
    }
}

#[test]
fn an_absent_host_is_reported_as_unreachable() {
    let Some(cable) = Cable::lay() else { return };
    let absent = Ipv4Addr::new(10, 77, 0, 9);
    for kind in FRAMES {
        let transport = cable.at(0, || patiently(|| network(kind, 0).open(&config(absent)))).unwrap();
        let context = Context::new(config(absent), transport, Wait::Sleep);
        let begin = Instant::now();
        match context.dma_read(BASE, &mut [0; 4]) {
            Err(Failure::Dma(DmaError::Completion(CompletionError::Undelivered { why, .. }))) => {
                assert_eq!(why, Undeliverable::HostUnreachable);
            }
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(4), "told at once, not after the time limit");
    }
}

#[test]
fn a_failed_open_of_a_frame_socket_states_its_reason() {
    let Some(cable) = Cable::lay() else { return };
    let fails = |network: Network, config: EndpointConfig| {
        cable.at(0, || patiently(|| network.open(&config).map(drop))).expect_err("must not open").to_string()
    };
    let elsewhere = Network { local: Ipv4Addr::new(10, 77, 0, 8), ..network(Kind::Packet, 0) };
    assert!(fails(elsewhere, config(ENDS[1])).contains("10.77.0.8 is not an address of this machine"));
    let other = Network { interface: Some("lo".into()), ..network(Kind::Packet, 0) };
    assert!(fails(other, config(ENDS[1])).contains("interface lo does not have the address 10.77.0.1"));
    for kind in FRAMES {
        let loopback = Network { local: Ipv4Addr::LOCALHOST, ..network(kind, 0) };
        assert!(fails(loopback, config(ENDS[1])).contains("do not work on lo"), "{kind:?}");
    }
    let first = cable.at(0, || network(Kind::Xdp, 0).open(&config(ENDS[1]))).unwrap();
    let others = EndpointConfig { tags: 30..=40, ..config(ENDS[1]) };
    let said = fails(network(Kind::Xdp, 0), others);
    assert!(said.contains("another program already uses it"), "{said}");
    drop(first);
    for kind in FRAMES {
        let large = EndpointConfig { mps: Mps::ALL[4], mrrs: Mrrs::ALL[4], ..config(ENDS[1]) };
        let said = fails(network(kind, 0), large);
        assert!(said.contains("2048 B") && said.contains("1472 B"), "{said}");
        let _taken = cable.at(0, || patiently(|| Udp::open(ENDS[0], [0x3003], None))).unwrap();
        let said = cable.at(0, || network(kind, 0).open(&config(ENDS[1])).map(drop));
        assert!(matches!(said, Err(Error::InUse { port: 0x3003, .. })), "{said:?}");
    }
}

#[test]
fn only_whole_datagrams_to_its_ports_come() {
    let Some(cable) = Cable::lay() else { return };
    FRAMES.into_iter().for_each(|kind| only_whole_datagrams(&cable, kind));
}

/// Sends from a plain socket at the other end, and counts what is taken for datagrams.
fn only_whole_datagrams(cable: &Cable, kind: Kind) {
    let [here, there] = ENDS;
    let open = || network(kind, 0).open_for(ports(), vec![there], 256);
    let mut frames = cable.at(0, || patiently(open)).unwrap();
    let bind = || UdpSocket::bind((there, 0x3003)).map_err(|error| Error::bind(there, 0x3003, error));
    let sender = cable.at(1, || patiently(bind)).unwrap();
    sender.send_to(b"another port", (here, 0x3002)).unwrap();
    sender.send_to(&[0; 4000], (here, 0x3003)).unwrap(); // three fragments
    sender.send_to(b"", (here, 0x3003)).unwrap();
    sender.send_to(b"first", (here, 0x3003)).unwrap();
    sender.send_to(b"last", (here, 0x3014)).unwrap();
    let mut batch = Batch::default();
    let until = Instant::now() + Duration::from_secs(10);
    while !batch.datagrams().any(|datagram| datagram.payload == b"last") && Instant::now() < until {
        frames.receive(None, &mut batch).unwrap();
    }
    let came: Vec<_> = batch.datagrams().map(|d| (*d.from.ip(), d.from.port(), d.port, d.payload)).collect();
    let from = |port, payload| (there, 0x3003, port, payload);
    assert_eq!(came, [from(0x3003, &b""[..]), from(0x3003, b"first"), from(0x3014, b"last")]);

    // What it sends arrives at a plain socket: the headers are right, or the kernel would drop it.
    batch.clear();
    for (payload, port) in [(&b"odd"[..], 0x3003), (&[7; 1400], 0x3003)] {
        batch.push_with(|buffer| {
            buffer[..payload.len()].copy_from_slice(payload);
            Some(Outgoing::same_port(there, port, payload.len()))
        });
    }
    frames.send(&mut batch).unwrap();
    let mut buffer = [0; 2000];
    sender.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    for payload in [&b"odd"[..], &[7; 1400]] {
        let (len, from) = sender.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from), (payload, (here, 0x3003).into()));
    }
    assert!(
        cable.at(0, || UdpSocket::bind((here, 0x3003))).is_err(),
        "the port is held on {}",
        INTERFACES[0]
    );
}

/// A frame that says to be a peer's and has another Ethernet address is heard, as every datagram with that sender would be; what goes to the
/// peer goes where it went before.
#[test]
fn a_forged_frame_does_not_redirect_a_peer() {
    let Some(cable) = Cable::lay() else { return };
    let [here, there] = ENDS;
    let becomes =
        |last: u8| cable.ip(1, &format!("link set {} address 02:00:00:00:00:{last:02x}", INTERFACES[1]));
    becomes(0x99);
    // It goes on sending with the address that the interface had.
    let mut forger =
        cable.at(1, || network(Kind::Packet, 1).open_for(vec![0x3003], vec![here], 256)).unwrap();
    becomes(0x01);
    cable.ip(0, "neigh flush all");
    let mut packet = cable.at(0, || network(Kind::Packet, 0).open_for(ports(), vec![there], 256)).unwrap();
    let peer = cable.at(1, || UdpSocket::bind((there, 0x3014))).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let send = |from: &mut dyn Transport, to: Ipv4Addr, port: u16| {
        let mut batch = Batch::default();
        batch.push_with(|buffer| {
            buffer[0] = 7;
            Some(Outgoing::same_port(to, port, 1))
        });
        from.send(&mut batch).unwrap();
    };
    // A first frame may be lost while the kernel still looks for its receiver.
    let mut hear = |port: u16, send_again: &mut dyn FnMut()| {
        let mut batch = Batch::default();
        let until = Instant::now() + Duration::from_secs(10);
        let mut sent: Option<Instant> = None;
        while !batch.datagrams().any(|datagram| datagram.port == port) {
            assert!(Instant::now() < until, "nothing at {port:#x}");
            if sent.is_none_or(|sent| sent.elapsed() > Duration::from_millis(500)) {
                send_again();
                sent = Some(Instant::now());
            }
            batch.clear();
            packet.receive(None, &mut batch).unwrap();
        }
        send(&mut packet, there, 0x3014);
        peer.recv(&mut [0; 8]).expect("it reaches the peer")
    };
    hear(0x3014, &mut || assert_eq!(peer.send_to(b"here", (here, 0x3014)).unwrap(), 4));
    hear(0x3003, &mut || send(&mut forger, here, 0x3003));
}

/// The receiver does not read meanwhile: datagrams received and datagrams dropped by the kernel add up to those sent.
#[test]
fn datagrams_dropped_by_the_kernel_are_counted() {
    let Some(cable) = Cable::lay() else { return };
    for (kind, sent) in [(Kind::Udp, 12_000), (Kind::Packet, 40_000), (Kind::Xdp, 4_000)] {
        let open = || network(kind, 1).open_for(vec![0x3003], vec![ENDS[0]], 256);
        let mut transport = cable.at(1, || patiently(open)).unwrap();
        assert_eq!(transport.dropped(), Some(0), "{kind:?}");
        let sender = cable.at(0, || UdpSocket::bind((ENDS[0], 0)).unwrap());
        for number in 0..sent {
            sender.send_to(&[7; 300], (ENDS[1], 0x3003)).unwrap();
            if number % 64 == 0 {
                // The cable has a short queue of its own, which must not be what drops.
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        let (mut batch, mut came) = (Batch::default(), 0);
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until && came + transport.dropped().unwrap() < sent {
            batch.clear();
            transport.receive(None, &mut batch).unwrap();
            came += batch.datagrams().count() as u64;
        }
        let dropped = transport.dropped().unwrap();
        assert_eq!(came + dropped, sent, "{kind:?}: {dropped} dropped");
        assert!(dropped > sent / 10 && came > 1000, "{kind:?}: {dropped} dropped");
    }
}
