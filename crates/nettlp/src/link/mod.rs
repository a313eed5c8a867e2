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

/// What became of a TLP that came.
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
    /// May another TLP leave?
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
    /// Is the TLP of this number under way?
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

    /// What came early and whose turn it is now: port and TLP.
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

    /// When [`handle_timeout`](Self::handle_timeout) or an acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min()
    }

    /// What was not acknowledged in time is to be sent again.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.sender.handle_timeout(now);
    }

    /// Has nothing been acknowledged for so long that nobody is there any more?
    pub(crate) fn is_alone(&self, now: Time) -> bool {
        self.sender.is_alone(now)
    }

    /// What is not over; it is forgotten.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = T> {
        self.sender.forget()
    }

    pub(crate) fn rebase(&mut self, by: Duration) {
        self.sender.rebase(by);
        self.receiver.rebase(by);
    }
}

/// Why sealing cannot fail.
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

/// Is this TLP one that nobody answers?
fn is_posted(tlp: &[u8]) -> bool {
    let packet = Packet::new(tlp);
    matches!(packet.fmt_type(), Some(0x40 | 0x60 | 0x30..=0x37 | 0x70..=0x77))
}
