//! A link between two ends of NetTLP that are both tlplab's: every TLP arrives once and in order, or both ends know that it did not.
//!
//! It is to UDP what the data link layer is to the wire (PCIe 5.0 §3.6): numbers, acknowledgements, a replay buffer, a checksum. What is
//! sent is kept until it is acknowledged, and sent again when later ones have come before it or when the time has passed that round trips
//! take here; so the time limit of a lost read, request or answer, follows the network. Of posted writes nobody else would know.
//!
//! * [`Sender`], [`Receiver`]: the two directions; `round_trip`: how long to wait
//! * the wire's format: [`tlplab_wire::nettlp::link`]
//! * who sets links up: `endpoint/line.rs`, `adapter/lanes.rs`

mod receiver;
mod round_trip;
mod sender;

use crate::datagram::{emit, with_digest};
use receiver::{Receiver, Turn};
use sender::Sender;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::nettlp::link::{LinkMessage, NUMBERS, Numbers, seal};
use tlplab_wire::nettlp::{HEADER_BYTES, Header};
use tlplab_wire::tlp::{Kind, Packet, Repr};

/// The fate of a received TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// It is its turn: to be carried out now, and then what [`Link::take`] gives.
    InTurn,
    /// It is kept until those before it have come.
    Early,
    /// It was there, or is none of this link's.
    Twice,
}

/// One end of a link that is up. `T` names what is over when a TLP is acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Link<T> {
    epoch: u32,
    sender: Sender<T>,
    receiver: Receiver,
}

impl<T: Copy> Link<T> {
    /// A link on which the first numbers are `ours` and `theirs`.
    pub(crate) fn new(now: Time, epoch: u32, ours: u32, theirs: u32) -> Self {
        let (sender, receiver) = (Sender::new(now, ours % NUMBERS), Receiver::new(theirs % NUMBERS));
        Self { epoch, sender, receiver }
    }

    /// Its epoch.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
    /// True if another TLP may leave.
    pub(crate) fn has_room(&self) -> bool {
        self.sender.has_room()
    }
    /// TLPs that are not acknowledged, and those that came early.
    pub(crate) fn kept(&self) -> usize {
        self.sender.under_way() + self.receiver.kept()
    }
    /// TLPs of its own that are not acknowledged.
    pub(crate) fn under_way(&self) -> usize {
        self.sender.under_way()
    }
    /// True if the TLP of this number is under way.
    pub(crate) fn holds(&self, sequence: u32) -> bool {
        self.sender.holds(sequence)
    }

    /// Makes the datagram in the first `len` bytes of `buffer`, which leaves by `port`, one of this link; its new length.
    pub(crate) fn seal(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        len: usize,
        port: u16,
        token: Option<T>,
    ) -> usize {
        let numbers = Numbers { sequence: self.sender.next(), acknowledged: self.receiver.missing() };
        self.sender.keep(now, port, &buffer[..len], token);
        self.receiver.told();
        seal(buffer, len, numbers).expect(ROOM)
    }

    /// A TLP has come. Calls `done` with what is acknowledged by it.
    pub(crate) fn handle_tlp(
        &mut self,
        now: Time,
        numbers: Numbers,
        port: u16,
        tlp: &[u8],
        done: impl FnMut(T),
    ) -> Came {
        self.sender.acknowledged(now, numbers.acknowledged, 0, done);
        match self.receiver.note(now, numbers.sequence, port, tlp, is_posted(tlp)) {
            Turn::Now => Came::InTurn,
            Turn::Early => Came::Early,
            Turn::Twice | Turn::Beyond => Came::Twice,
        }
    }

    /// The next TLP that came early and is now in order: port and TLP.
    pub(crate) fn take(&mut self) -> Option<(u16, Box<[u8]>)> {
        self.receiver.take()
    }

    /// An acknowledgement has come. Calls `done` with what is over.
    pub(crate) fn handle_ack(&mut self, now: Time, acknowledged: u32, beyond: u64, done: impl FnMut(T)) {
        self.sender.acknowledged(now, acknowledged, beyond, done);
    }

    /// The next TLP that is to be sent again, with a new NetTLP header: port and length.
    pub(crate) fn poll_again(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        header: impl FnOnce() -> Header,
    ) -> Option<(u16, usize)> {
        let acknowledged = self.receiver.missing();
        let (sequence, port, datagram) = self.sender.again(now)?;
        let len = datagram.len();
        buffer[..len].copy_from_slice(datagram);
        buffer[..HEADER_BYTES].copy_from_slice(&header().emit());
        self.receiver.told();
        Some((port, seal(buffer, len, Numbers { sequence, acknowledged }).expect(ROOM)))
    }

    /// An acknowledgement that waits no longer.
    pub(crate) fn poll_ack(&mut self, now: Time) -> Option<LinkMessage> {
        if !self.receiver.is_due(now) {
            return None;
        }
        self.receiver.told_all();
        let (acknowledged, beyond) = (self.receiver.missing(), self.receiver.beyond());
        Some(LinkMessage::Ack { epoch: self.epoch, acknowledged, beyond })
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) or an acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min()
    }

    /// Marks TLPs that were not acknowledged in time for retransmission.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.sender.handle_timeout(now);
    }

    /// True if the time without an acknowledgement shows that the peer is gone.
    pub(crate) fn is_alone(&self, now: Time) -> bool {
        self.sender.is_alone(now)
    }

    /// Takes the unfinished operations; they are forgotten.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = T> {
        self.sender.forget()
    }

    pub(crate) fn rebase(&mut self, by: Duration) {
        self.sender.rebase(by);
        self.receiver.rebase(by);
    }
}

/// The reason that sealing cannot fail.
const ROOM: &str = "a buffer of MAX_DATAGRAM bytes";

/// Writes a message of a link into `buffer`; its length.
pub(crate) fn emit_message(buffer: &mut [u8], header: Header, id: Bdf, message: LinkMessage) -> usize {
    let repr = with_digest(Repr::from(Kind::Message(message.message(id))), true);
    emit(buffer, header, &repr, &Payload::from(&message.payload()[..])).expect(ROOM)
}

/// The message of a link that a TLP is, if it is one and whole: that a digest says.
pub(crate) fn message_of(packet: &Packet<'_>, repr: &Repr) -> Option<LinkMessage> {
    let Kind::Message(message) = repr.kind() else { return None };
    let whole = LinkMessage::is(message) && packet.ecrc_matches() == Some(true);
    if whole { LinkMessage::parse(message, packet.payload()).ok() } else { None }
}

/// True if this TLP is never answered.
fn is_posted(tlp: &[u8]) -> bool {
    let packet = Packet::new(tlp);
    matches!(packet.fmt_type(), Some(0x40 | 0x60 | 0x30..=0x37 | 0x70..=0x77))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_wire::nettlp::link::open;
    use tlplab_wire::tlp::{AtomicOp, CfgTarget, CfgType, Code, TransactionId};

    const ID: Bdf = Bdf(0x1B00);

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_us(n)
    }

    fn id() -> TransactionId {
        TransactionId::new(ID, 7u8.into())
    }

    fn datagram(repr: &Repr) -> Vec<u8> {
        let mut buffer = vec![0; crate::MAX_DATAGRAM];
        let len = emit(&mut buffer, Header::default(), repr, &Payload::EMPTY).unwrap();
        buffer.truncate(len);
        buffer
    }

    /// Sends a TLP by port 0x3007; its datagram.
    fn send(link: &mut Link<u32>, now: Time, repr: &Repr, token: u32) -> Vec<u8> {
        let mut buffer = datagram(repr);
        let len = buffer.len();
        buffer.resize(crate::MAX_DATAGRAM, 0);
        let sealed = link.seal(now, &mut buffer, len, 0x3007, Some(token));
        buffer.truncate(sealed);
        buffer
    }

    /// A datagram comes; what became of it, and what is over with it.
    fn come(link: &mut Link<u32>, now: Time, datagram: &[u8]) -> (Came, Vec<u32>) {
        let (numbers, tlp) = open(datagram).unwrap();
        let mut over = Vec::new();
        (link.handle_tlp(now, numbers, 0x3007, tlp, |token| over.push(token)), over)
    }

    /// Two ends, with numbers that are about to wrap.
    fn ends() -> (Link<u32>, Link<u32>) {
        (Link::new(us(0), 9, NUMBERS - 1, NUMBERS + 5), Link::new(us(0), 9, 5, NUMBERS - 1))
    }

    #[test]
    fn posted_tlps_are_recognised() {
        let memory = [Repr::mem_read, Repr::mem_write, Repr::deferrable_mem_write];
        let [read, write, deferrable] = memory.map(|make| make(id(), 0x1000, 4).unwrap());
        let [_, far_write, _] = memory.map(|make| make(id(), 0x1_0000_0000, 4).unwrap());
        let register = CfgTarget::new(ID, 0, 0xF, CfgType::Type0).unwrap();
        for (repr, posted) in [
            (read, false),
            (write, true),
            (far_write, true),
            (deferrable, false),
            (Repr::msi(ID, 0xFEE0_0000).unwrap(), true),
            (Repr::message(ID, Code::PmPme).unwrap(), true),
            (Repr::io_write(id(), 0x10, 4).unwrap(), false),
            (Repr::cfg_write(id(), register), false),
            (Repr::atomic(id(), AtomicOp::Swap, 0x1000, 4).unwrap(), false),
        ] {
            assert_eq!(is_posted(&datagram(&repr)[HEADER_BYTES..]), posted, "{repr:?}");
        }
        assert!(!is_posted(&[]));
    }

    #[test]
    fn a_tlp_and_its_repetition_between_two_ends() {
        let (mut device, mut adapter) = ends();
        let read = Repr::mem_read(id(), 0x1000, 4).unwrap();
        let first = send(&mut device, us(0), &read, 0);
        let second = send(&mut device, us(1), &read, 1);
        assert_eq!((device.under_way(), device.kept()), (2, 2));
        assert!(device.holds(NUMBERS - 1) && device.holds(0) && !device.holds(1));
        assert_eq!(come(&mut adapter, us(10), &second), (Came::Early, vec![]));
        assert_eq!((adapter.under_way(), adapter.kept(), adapter.take()), (0, 1, None));
        let ack = LinkMessage::Ack { epoch: 9, acknowledged: NUMBERS - 1, beyond: 1 };
        assert_eq!(adapter.poll_ack(us(10)), Some(ack), "of a gap at once");
        assert_eq!(adapter.poll_ack(us(10)), None);
        // The round trip took 19 µs: the first one is old enough to be lost at 24.
        device.handle_ack(us(20), NUMBERS - 1, 1, |_| panic!("nothing is over"));
        assert_eq!(device.deadline(), Some(us(1000)));
        let mut buffer = vec![0; crate::MAX_DATAGRAM];
        assert_eq!(device.poll_again(us(30), &mut buffer, Header::default), None);
        device.handle_ack(us(30), NUMBERS - 1, 1, |_| panic!("nothing is over"));
        let header = Header { sequence: 77, timestamp: 88 };
        let (port, len) = device.poll_again(us(30), &mut buffer, || header).unwrap();
        assert_eq!((port, Header::parse(&buffer)), (0x3007, Ok(header)));
        assert_eq!(open(&buffer[..len]).unwrap().1, open(&first).unwrap().1, "the same TLP");
        assert_eq!(come(&mut adapter, us(40), &buffer[..len]), (Came::InTurn, vec![]));
        let kept = adapter.take().map(|(port, tlp)| (port, tlp.to_vec()));
        assert_eq!(kept, Some((0x3007, open(&second).unwrap().1.to_vec())));
        assert_eq!(come(&mut adapter, us(41), &first), (Came::Twice, vec![]));
        // A TLP takes the acknowledgement along.
        let write = Repr::mem_write(id(), 0x2000, 4).unwrap();
        let theirs = send(&mut adapter, us(50), &write, 2);
        assert_eq!(adapter.poll_ack(us(1000)), None);
        assert_eq!(come(&mut device, us(60), &theirs), (Came::InTurn, vec![0, 1]));
        assert_eq!(device.under_way(), 0);
        let ack = LinkMessage::Ack { epoch: 9, acknowledged: 6, beyond: 0 };
        assert_eq!(device.poll_ack(us(60)), Some(ack), "nothing else answers a write");
        assert_eq!(adapter.forget().collect::<Vec<_>>(), [2]);
        assert_eq!((adapter.forget().count(), adapter.under_way()), (0, 1));
    }

    #[test]
    fn a_link_has_room_and_time_of_its_own() {
        let (mut device, _) = ends();
        let read = Repr::mem_read(id(), 0x1000, 4).unwrap();
        (0..128).for_each(|token| {
            assert!(device.has_room());
            send(&mut device, us(5000), &read, token);
        });
        assert!(!device.has_room());
        assert_eq!(device.deadline(), Some(us(25_000)));
        device.rebase(Duration::from_us(1000));
        assert_eq!(device.deadline(), Some(us(24_000)));
        let mut buffer = vec![0; crate::MAX_DATAGRAM];
        for due in [24_000, 64_000, 144_000, 304_000, 554_000, 804_000, 1_054_000, 1_304_000] {
            assert_eq!(device.deadline(), Some(us(due)));
            device.handle_timeout(us(due));
            assert!(device.poll_again(us(due), &mut buffer, Header::default).is_some());
        }
        assert!(!device.is_alone(us(2_003_999)) && device.is_alone(us(2_004_000)));
    }

    /// A message whose digest is wrong, or that has none, is none.
    #[test]
    fn a_message_is_whole() {
        let message = LinkMessage::Reset { sequence: 5 };
        let mut buffer = vec![0; crate::MAX_DATAGRAM];
        let len = emit_message(&mut buffer, Header::default(), ID, message);
        let read = |tlp: &[u8]| {
            let packet = Packet::new(tlp);
            let repr = Repr::parse(&packet).unwrap();
            message_of(&packet, &repr)
        };
        let tlp = &mut buffer[HEADER_BYTES..len];
        assert_eq!(read(tlp), Some(message));
        let end = tlp.len() - 1;
        for (damaged, part) in [(end, "digest"), (end - 5, "payload")] {
            tlp[damaged] ^= 1;
            assert_eq!(read(tlp), None, "{part}");
            tlp[damaged] ^= 1;
        }
        let other = with_digest(Repr::message(ID, Code::PmPme).unwrap(), true);
        assert_eq!(read(&datagram(&other)[HEADER_BYTES..]), None, "another message");
        let bare = Repr::from(Kind::Message(message.message(ID)));
        let payload = Payload::from(&message.payload()[..]);
        let len = emit(&mut buffer, Header::default(), &bare, &payload).unwrap();
        assert_eq!(read(&buffer[HEADER_BYTES..len]), None, "no digest");
    }
}
