//! The ends of acknowledged links, message by message.

use crate::raw::{self, us};
use crate::scene::cards::*;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::datagram::emit;
use tlplab_nettlp::endpoint::{Event, Window};
use tlplab_nettlp::{Datagram, Endpoint, EndpointConfig, Engine, MAX_DATAGRAM};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::nettlp::Header;
use tlplab_wire::nettlp::link::{Lane, LinkMessage, NUMBERS, Numbers, open, seal};
use tlplab_wire::tlp::{Attributes, Kind, Packet, Repr, TransactionId};

const ID: Bdf = Bdf(0x1B00);

/// The datagram of a message.
pub(crate) fn message(header: Header, message: LinkMessage) -> Vec<u8> {
    let repr = Repr::from(Kind::Message(message.message(ID)));
    let repr = repr.with_attributes(Attributes { digest: true, ..Attributes::default() }).unwrap();
    let mut buffer = [0; MAX_DATAGRAM];
    let len = emit(&mut buffer, header, &repr, &Payload::from(&message.payload()[..])).unwrap();
    buffer[..len].to_vec()
}

/// The datagram of a TLP without data on a link.
pub(crate) fn sealed(header: Header, repr: &Repr, numbers: Numbers) -> Vec<u8> {
    let mut buffer = [0; MAX_DATAGRAM];
    let len = emit(&mut buffer, header, repr, &Payload::EMPTY).unwrap();
    let len = seal(&mut buffer, len, numbers).unwrap();
    buffer[..len].to_vec()
}

/// The message that a datagram is.
fn parse(bytes: &[u8]) -> LinkMessage {
    let packet = Packet::new(&bytes[6..]);
    let repr = Repr::parse(&packet).unwrap();
    let Kind::Message(message) = repr.kind() else { panic!("{repr:?}") };
    LinkMessage::parse(message, packet.payload()).unwrap()
}

/// Ports and messages; everything that was sent is one.
fn messages(sent: &[Sent]) -> Vec<(u16, LinkMessage)> {
    sent.iter().map(|(_, port, bytes)| (*port, parse(bytes))).collect()
}

/// The first device says something; messages and sealed TLPs that the adapter does not count.
fn say(scene: &mut Scene, port: u16, what: LinkMessage) -> Vec<Sent> {
    scene.send(FIRST, port, &message(Header::default(), what))
}

/// A TLP of the device comes on a link, under this number: a write of no data to memory, or a read of the other device, which does not answer.
/// What is sent to the device then.
fn come(scene: &mut Scene, port: u16, posted: bool, sequence: u32, acknowledged: u32) -> Vec<Sent> {
    let id = TransactionId::new(ID, Tag::from(port as u8));
    let repr = if posted { Repr::mem_write(id, 0x1000, 4) } else { Repr::mem_read(id, SECOND_BAR4, 4) };
    let numbers = Numbers { sequence, acknowledged };
    let sent = scene.send(FIRST, port, &sealed(Header::default(), &repr.unwrap(), numbers));
    sent.into_iter().filter(|sent| sent.0 == FIRST).collect()
}

/// It asks for a link of these tags, on which its first number is 100; the adapter's first number.
fn connect(scene: &mut Scene, epoch: u32, first_tag: u8, last_tag: u8) -> u32 {
    let lane = Lane { epoch, first_tag, last_tag, host_ports: 0xFFFF, sequence: 100 };
    let port = 0x3000 + u16::from(first_tag);
    let sent = say(scene, port, LinkMessage::Connect(lane));
    let [(to, LinkMessage::Accept(accepted))] = messages(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!((to, accepted), (port, Lane { sequence: accepted.sequence, ..lane }));
    accepted.sequence
}

/// All messages of a lane leave by the port of its first tag: the acceptance, however often it is asked for, and acknowledgements, at once of
/// a write, and within 100 µs of a read.
#[test]
fn messages_of_a_link_leave_by_its_first_port() {
    let mut scene = Scene::new();
    let ours = connect(&mut scene, 5, 64, 127);
    assert_eq!(connect(&mut scene, 5, 64, 127), ours);
    let ack = |acknowledged| (0x3040, LinkMessage::Ack { epoch: 5, acknowledged, beyond: 0 });
    assert_eq!(messages(&come(&mut scene, 0x3045, true, 100, ours)), [ack(101)]);
    assert_eq!(come(&mut scene, 0x3045, false, 101, ours), []);
    assert_eq!(scene.adapter.deadline(), Some(us(100)));
    scene.now = us(100);
    assert_eq!(messages(&scene.sent()), [ack(102)]);
    assert_eq!((scene.adapter.deadline(), scene.counters(0).writes, scene.counters(0).control), (None, 1, 2));
}

/// Numbers of one link are none of the next: it begins further on than a window.
#[test]
fn links_of_consecutive_epochs_begin_with_distant_numbers() {
    let mut scene = Scene::new();
    let [first, second, last] = [5, 6, u32::MAX].map(|epoch| connect(&mut scene, epoch, 0, 255));
    assert!([first, second, last].iter().all(|number| *number < NUMBERS));
    let apart = |from: u32, to: u32| (to.wrapping_sub(from) % NUMBERS).min(from.wrapping_sub(to) % NUMBERS);
    assert!(apart(first, second) >= 256 && apart(second, last) >= 256, "{first} {second} {last}");
}

/// A lane ends those with which it shares a tag, be it only one: their TLPs are answered with a reset. Others go on.
#[test]
fn lanes_that_share_a_tag_end_each_other() {
    for (old, new, port, ends) in [
        ((0, 8), (8, 15), 0x3000, true),
        ((8, 15), (0, 8), 0x300F, true),
        ((4, 5), (0, 15), 0x3004, false), // now a port of the new one
        ((0, 7), (8, 15), 0x3000, false),
        ((8, 15), (0, 7), 0x300F, false),
    ] {
        let mut scene = Scene::new();
        connect(&mut scene, 1, old.0, old.1);
        connect(&mut scene, 2, new.0, new.1);
        let reset = (port, LinkMessage::Reset { sequence: 100 });
        let sent = come(&mut scene, port, false, 100, 0);
        assert_eq!(messages(&sent), [reset][..usize::from(ends)], "{old:?} {new:?}");
        assert_eq!(scene.counters(0).peer_requests, u64::from(!ends));
    }
}

/// A device that acknowledges nothing gets 128 TLPs, and another one when it acknowledges the first.
#[test]
fn a_full_link_holds_tlps_back() {
    let mut scene = Scene::new();
    let ours = connect(&mut scene, 1, 0, 255);
    for number in 0..130 {
        scene.adapter.host_mut().access(0, 4, 8 * number, MmioAccess::Write(vec![1; 4].into()));
    }
    let sequence = |sent: &Sent| open(&sent.2).unwrap().0.sequence;
    assert!(scene.sent().iter().map(sequence).eq(ours..ours + 128));
    assert_eq!(scene.adapter.backlog(), 130);
    let ack = LinkMessage::Ack { epoch: 1, acknowledged: ours + 1, beyond: 0 };
    let more = say(&mut scene, 0x3000, ack);
    assert_eq!(more.iter().map(sequence).collect::<Vec<_>>(), [ours + 128]);
    let other = LinkMessage::Ack { epoch: 2, acknowledged: ours + 9, beyond: 0 };
    assert_eq!(say(&mut scene, 0x3000, other), [], "of another link");
}

/// Where the origin of time moves, acknowledgements and repetitions are due as long after as before.
#[test]
fn a_link_of_an_adapter_does_not_notice_that_time_begins_anew() {
    let mut scene = Scene::new();
    scene.now = us(5_000_000);
    let ours = connect(&mut scene, 1, 0, 255);
    assert_eq!(come(&mut scene, 0x3000, false, 100, ours), []);
    assert_eq!(scene.adapter.deadline(), Some(us(5_000_100)));
    scene.adapter.rebase(Duration::from_us(4_999_000));
    assert_eq!(scene.adapter.deadline(), Some(us(1_100)));
    scene.now = us(1_000);
    assert_eq!(scene.access(0, 4, 0, MmioAccess::Write(vec![1; 4].into())).len(), 1);
    assert_eq!(scene.adapter.deadline(), Some(us(21_000)));
    scene.adapter.rebase(Duration::from_us(900));
    assert_eq!(scene.adapter.deadline(), Some(us(20_100)));
}

/// A copy of a datagram, and a TLP that comes again under its number, are counted and not carried out.
#[test]
fn tlps_that_come_twice_on_a_link_are_counted() {
    let mut scene = Scene::new();
    let ours = connect(&mut scene, 1, 0, 255);
    let repr = Repr::mem_write(TransactionId::new(ID, 0.into()), 0x1000, 4).unwrap();
    let numbers = Numbers { sequence: 100, acknowledged: ours };
    for (stamp, duplicates) in [(1, 0), (1, 1), (1, 2), (2, 3), (3, 4), (3, 5)] {
        let header = Header { sequence: 7, timestamp: stamp };
        scene.send(FIRST, 0x3000, &sealed(header, &repr, numbers));
        assert_eq!((scene.counters(0).duplicates, scene.counters(0).writes), (duplicates, 1), "{stamp}");
    }
}

/// A device that wants a link, for one lane.
fn device() -> Endpoint<u32> {
    let config = EndpointConfig::new(raw::ADAPTER, ID);
    Endpoint::new(EndpointConfig { acknowledged: true, tags: 64..=127, host_ports: 0xFF00, ..config })
}

/// It writes four bytes; the lane for which it asks then.
fn call(device: &mut Endpoint<u32>, now: Time, token: u32) -> Lane {
    device.write(now, token, 0x1000, vec![1; 4].into()).unwrap();
    let sent = raw::sent_bytes(device, now);
    let [(0x3040, bytes)] = &sent[..] else { panic!("{sent:?}") };
    let LinkMessage::Connect(lane) = parse(bytes) else { panic!("{bytes:?}") };
    lane
}

/// The adapter says something to it; what it sends then, and its events.
fn hear(device: &mut Endpoint<u32>, now: Time, what: LinkMessage) -> (usize, Vec<Event<u32>>) {
    raw::deliver(device, now, 0x3040, &message(Header::default(), what));
    let sent = raw::sent_bytes(device, now).len();
    (sent, std::iter::from_fn(|| device.poll_event()).collect())
}

/// A link is asked for 13 times, further and further apart up to a tenth of a second, and given up a tenth after the last.
#[test]
fn requests_for_a_link_are_13_in_a_second() {
    let mut device = device();
    let lane = call(&mut device, us(0), 1);
    let mut asked = vec![0];
    let mut now;
    let over = loop {
        now = device.deadline().expect("it waits for the adapter");
        for (port, bytes) in raw::sent_bytes(&mut device, now) {
            assert_eq!((port, parse(&bytes)), (0x3040, LinkMessage::Connect(lane)));
            asked.push(now.as_fs() / 1_000_000_000_000);
        }
        device.handle_timeout(now);
        if let Some(event) = device.poll_event() {
            break event;
        }
    };
    assert_eq!(asked, [0, 5, 15, 35, 75, 155, 255, 355, 455, 555, 655, 755, 855]);
    assert_eq!((over, now), (Event::Failed { token: 1, error: DmaError::Unacknowledged }, us(955_000)));
    assert_eq!((device.deadline(), device.counters().links_lost), (None, 1));
}

/// Each link of a lane has an epoch of its own, at one moment and at different ones, and first numbers that follow from it.
#[test]
fn links_have_epochs_of_their_own() {
    let mut epochs = Vec::new();
    for at in [us(0), us(1), us(3_600_000_000), us(18_000_000_000)] {
        let mut device = device();
        for token in 0..3 {
            let lane = call(&mut device, at, token);
            let Lane { epoch, first_tag, last_tag, host_ports, sequence } = lane;
            assert_eq!((first_tag, last_tag, host_ports, sequence), (64, 127, 0xFF00, epoch % NUMBERS));
            epochs.push(epoch);
            let (sent, events) = hear(&mut device, at, LinkMessage::Accept(lane));
            assert_eq!((sent, events), (1, vec![]), "the write leaves");
            let (_, events) = hear(&mut device, at, LinkMessage::Reset { sequence });
            assert_eq!(events, [Event::Failed { token, error: DmaError::Unacknowledged }]);
        }
    }
    let distinct: BTreeSet<u32> = epochs.iter().copied().collect();
    assert_eq!(distinct.len(), epochs.len(), "{epochs:x?}");
    // A microsecond apart the numbers are in no relation that counts.
    assert!(epochs[3].abs_diff(epochs[0]) > 256, "{epochs:x?}");
}

/// Messages of other links, and resets that concern no TLP under way, change nothing.
#[test]
fn messages_of_other_links_are_ignored() {
    let mut device = device();
    let lane = call(&mut device, us(0), 1);
    let first = lane.sequence;
    let other = Lane { epoch: lane.epoch ^ 1, ..lane };
    let nothing = (0, vec![]);
    assert_eq!(hear(&mut device, us(1), LinkMessage::Accept(other)), nothing);
    assert_eq!(hear(&mut device, us(1), LinkMessage::Reset { sequence: first }), nothing);
    assert_eq!(hear(&mut device, us(1), LinkMessage::Accept(lane)), (1, vec![]), "the write leaves");
    assert!(!device.is_idle(), "it is not acknowledged");
    let ack =
        |epoch, acknowledged| LinkMessage::Ack { epoch, acknowledged: acknowledged % NUMBERS, beyond: 0 };
    assert_eq!(hear(&mut device, us(2), ack(lane.epoch ^ 1, first + 1)), nothing);
    assert_eq!(hear(&mut device, us(2), LinkMessage::Accept(lane)), nothing);
    for sequence in [first.wrapping_sub(1) % NUMBERS, (first + 1) % NUMBERS] {
        assert_eq!(hear(&mut device, us(2), LinkMessage::Reset { sequence }), nothing);
    }
    assert_eq!(
        hear(&mut device, us(2), ack(lane.epoch, first + 1)),
        (0, vec![Event::WriteSent { token: 1 }])
    );
    assert_eq!(hear(&mut device, us(2), LinkMessage::Reset { sequence: first }), nothing);
    assert!(device.is_idle() && device.counters().links_lost == 0);
}

/// Where the origin of time moves, requests for a link and repetitions are due as long after as before.
#[test]
fn a_link_of_a_device_does_not_notice_that_time_begins_anew() {
    let mut device = device();
    let lane = call(&mut device, us(1_000_000), 1);
    assert_eq!(device.deadline(), Some(us(1_005_000)));
    device.rebase(Duration::from_us(999_000));
    assert_eq!(device.deadline(), Some(us(6_000)));
    assert_eq!(hear(&mut device, us(2_000), LinkMessage::Accept(lane)).0, 1);
    assert_eq!(device.deadline(), Some(us(22_000)));
    device.rebase(Duration::from_us(1_500));
    assert_eq!(device.deadline(), Some(us(20_500)));
}

/// An acknowledgement that says nothing new does not shorten the wait, and one beyond all that was sent before a wait in vain ends the
/// suspicion: nothing is sent again.
#[test]
fn only_news_end_a_wait_in_vain() {
    let mut scene = Scene::new();
    let ours = connect(&mut scene, 1, 0, 255);
    let ack = |acknowledged| LinkMessage::Ack { epoch: 1, acknowledged, beyond: 0 };
    let write = |scene: &mut Scene| scene.access(0, 4, 0, MmioAccess::Write(vec![1; 4].into())).len();
    assert_eq!((write(&mut scene), write(&mut scene)), (1, 1));
    scene.now = us(20_000);
    scene.adapter.handle_timeout(scene.now);
    assert_eq!(scene.sent().len(), 1, "the first is sent again");
    assert_eq!(scene.adapter.deadline(), Some(us(60_000)));
    assert_eq!(say(&mut scene, 0x3000, ack(ours)), []);
    assert_eq!(scene.adapter.deadline(), Some(us(60_000)));
    assert_eq!((write(&mut scene), write(&mut scene)), (1, 1));
    assert_eq!(say(&mut scene, 0x3000, ack(ours + 3)), [], "the fourth was not suspect");
    assert_eq!((scene.adapter.backlog(), scene.counters(0).repeated), (1, 1));
}

/// Sealed TLPs from other addresses are counted and not carried out, and so is each datagram.
#[test]
fn sealed_tlps_from_other_addresses_are_counted() {
    let mut device = device();
    let lane = call(&mut device, us(0), 1);
    device.set_windows(vec![Window { base: 0x8000, size: 0x1000 }]);
    hear(&mut device, us(0), LinkMessage::Accept(Lane { sequence: 7, ..lane }));
    let repr = Repr::mem_write(TransactionId::new(Bdf(0), 8.into()), 0x8000, 4).unwrap();
    let payload = sealed(Header::default(), &repr, Numbers { sequence: 7, acknowledged: lane.sequence });
    let before = device.counters();
    for (n, address) in (1..).zip([SECOND, FIRST, raw::ADAPTER]) {
        let from = SocketAddrV4::new(address, 0x4008);
        device.handle_datagram(us(1), Datagram { from, port: 0x4008, payload: &payload });
        let counters = device.counters();
        assert_eq!(counters.datagrams_in - before.datagrams_in, n);
        assert_eq!(counters.foreign_address, n.min(2));
        assert_eq!(matches!(device.poll_event(), Some(Event::HostWrite(_))), address == raw::ADAPTER);
    }
}
