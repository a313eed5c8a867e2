//! The units that go over the wire, the events that a port reports, and the reasons for a TLP to wait.

use alloc::boxed::Box;
use arrayvec::ArrayVec;
use tlplab_units::{FcClass, Vc};
use tlplab_wire::dllp;

/// Framing, sequence number and LCRC of every non-flit TLP, in bytes, at every rate.
pub const TLP_FRAMING: u32 = 8;
/// A flit: 236 bytes of TLPs, 6 of DLP, 8 of CRC, 6 of FEC.
pub const FLIT_BYTES: u32 = 256;
/// TLP bytes of a flit.
pub const FLIT_TLP_BYTES: u32 = 236;
/// The most TLPs that can end in one flit: 19 of the smallest (12 bytes) after the tail of another.
pub const FLIT_MAX_ENDS: usize = 20;

/// The properties of a TLP that the data link layer must know. A TLP always takes one header credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlpShape {
    /// Virtual channel its traffic class maps to.
    pub vc: Vc,
    /// Flow control class.
    pub class: FcClass,
    /// Prefixes, header, payload and ECRC in bytes, without the 8 of framing, sequence number and LCRC.
    pub bytes: u32,
    /// Payload in flow control units of 16 bytes, rounded up.
    pub data_credits: u16,
}

/// A unit that occupies the wire as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit<H> {
    /// A framed TLP (non-flit mode).
    Tlp(TlpUnit<H>),
    /// A framed DLLP (non-flit mode).
    Dllp(dllp::Repr),
    /// 256 bytes (flit mode). Boxed: it holds up to 20 TLPs, and carrying half a kilobyte around would slow the other modes more
    /// than an allocation slows this one.
    Flit(Box<FlitUnit<H>>),
}

impl<H> Unit<H> {
    /// Bytes on the wire, after line coding.
    pub const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tlp(tlp) => tlp.shape.bytes + TLP_FRAMING,
            Self::Dllp(_) => dllp::WIRE_BYTES,
            Self::Flit(_) => FLIT_BYTES,
        }
    }
}

/// A TLP in its data link layer frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlpUnit<H> {
    /// The owner's handle.
    pub handle: H,
    /// Size and credits.
    pub shape: TlpShape,
    /// 12-bit sequence number.
    pub sequence: u16,
    /// It was sent before.
    pub replay: bool,
    /// It ends in EDB with an inverted LCRC: the receiver drops it as if it had never been.
    pub nullified: bool,
}

impl<H: Copy> TlpUnit<H> {
    /// A TLP of a layer without sequence numbers.
    pub const fn new(handle: H, shape: TlpShape) -> Self {
        Self { handle, shape, sequence: 0, replay: false, nullified: false }
    }
    /// The end of its way for a receiver without sequence numbers: delivered, or discarded because it is damaged or nullified.
    #[inline]
    pub const fn arrived(&self, integrity: Integrity) -> Event<H> {
        let handle = self.handle;
        match integrity {
            _ if self.nullified => Event::Discarded { handle, reason: Discard::Nullified },
            Integrity::Good => Event::Deliver(handle),
            Integrity::Bad => Event::Discarded { handle, reason: Discard::BadLcrc },
        }
    }
}

/// One flit. TLP bytes run on from flit to flit; a TLP is delivered with the flit that holds its last byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlitUnit<H> {
    /// 1 to 1023, of this flit if it carries TLP bytes, of the last such flit otherwise. A real flit says it or the
    /// acknowledgement and lets the receiver count; carrying both is the same information.
    pub sequence: u16,
    /// TLP bytes in use, 0 to 236. A flit without any (NOP flit) takes no sequence number and is never replayed.
    pub used: u16,
    /// TLPs that begin in this flit.
    pub begins: u8,
    /// TLPs whose last byte is in this flit, in order.
    pub ends: ArrayVec<FlitTlp<H>, FLIT_MAX_ENDS>,
    /// The DLLP it carries besides.
    pub dllp: Option<dllp::Repr>,
    /// Acknowledgement of the other direction.
    pub ack: FlitAck,
    /// It was sent before.
    pub replay: bool,
}

/// A TLP in a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlitTlp<H> {
    /// The owner's handle.
    pub handle: H,
    /// Size and credits.
    pub shape: TlpShape,
    /// Marked as nullified: the receiver drops it.
    pub nullified: bool,
}

/// The acknowledgement that a flit carries, for the flits of the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlitAck {
    /// All flits up to this sequence number arrived.
    Ack(u16),
    /// All flits up to this one arrived; send the rest again.
    Nak(u16),
}

/// The result of a unit's CRC when its last byte arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// As sent.
    Good,
    /// The CRC fails, the content is unknown.
    Bad,
}

/// An event that a port reports to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<H> {
    /// A TLP arrived, in order, once. It occupies receive buffer until [`release`](crate::LinkLayer::release).
    Deliver(H),
    /// The peer has this TLP; it left the replay buffer. (A replayed copy may still be on the wire.)
    Acked(H),
    /// The link went down before the peer acknowledged this TLP; it left the replay buffer.
    Lost(H),
    /// A received TLP was dropped.
    Discarded {
        /// The handle in the unit; with `BadLcrc` a real receiver could not know it.
        handle: H,
        /// The reason.
        reason: Discard,
    },
    /// DL_Active: virtual channel 0 has its credits.
    Up,
    /// DL_Inactive.
    Down,
    /// The peer granted credits (an UpdateFC that raised a limit, or a virtual channel that came up): a TLP of this
    /// class that was blocked may go now.
    CreditsArrived {
        /// Virtual channel.
        vc: Vc,
        /// Class.
        class: FcClass,
    },
    /// The link must go through Recovery: the port sends nothing until
    /// [`link_recovered`](crate::LinkLayer::link_recovered).
    Retrain(Retrain),
    /// The peer broke a rule of the protocol.
    Error(ProtocolError),
}

/// The reason that a received TLP was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discard {
    /// LCRC (or flit CRC) wrong: answered by a Nak.
    BadLcrc,
    /// Nullified by its sender.
    Nullified,
    /// It had arrived before: answered by an Ack.
    Duplicate,
    /// One before it is missing: answered by a Nak, once.
    OutOfSequence,
    /// The link or the virtual channel is not up.
    NotActive,
}

/// The reason that the link must be retrained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retrain {
    /// A fourth replay in a row, without progress, is due: REPLAY_NUM rolls over (PCIe 5.0 §3.6.2.1).
    ReplayNumRollover,
}

/// The peer broke a rule (reported as Data Link Protocol Error, Flow Control Protocol Error or Receiver Overflow).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Data Link Protocol Error, §3.6.2.2.
    #[error(
        "Ack or Nak for sequence number {got}, which was not sent: the last one was {last} (PCIe 5.0 §3.6.2.2)"
    )]
    AckOfUnsent {
        /// Sequence number in the DLLP.
        got: u16,
        /// Last sequence number that was sent.
        last: u16,
    },
    /// Receiver Overflow, §2.6.1.2.
    #[error("VC{} {class:?} {kind}: a TLP arrived without credit (receiver overflow, PCIe 5.0 §2.6.1.2)", .vc.value())]
    ReceiverOverflow {
        /// Virtual channel.
        vc: Vc,
        /// Class.
        class: FcClass,
        /// Header or data.
        kind: CreditKind,
    },
    /// Flow Control Protocol Error, §2.6.1.
    #[error("VC{} {class:?} {kind}: UpdateFC grants more than half the counter's range at once, or takes credits back (PCIe 5.0 §2.6.1)", .vc.value())]
    CreditLimit {
        /// Virtual channel.
        vc: Vc,
        /// Class.
        class: FcClass,
        /// Header or data.
        kind: CreditKind,
    },
    /// Flow Control Protocol Error, §2.6.1.
    #[error("VC{} {class:?} {kind}: UpdateFC with a value other than 0 for credits that were advertised as infinite (PCIe 5.0 §2.6.1)", .vc.value())]
    UpdateOfInfinite {
        /// Virtual channel.
        vc: Vc,
        /// Class.
        class: FcClass,
        /// Header or data.
        kind: CreditKind,
    },
    /// Framing does not match the mode of the port.
    #[error(
        "a {got} arrived on a port in {mode} mode: both ends of a link must be in the same mode (PCIe 6.0 §4.2.3)"
    )]
    WrongMode {
        /// The unit that arrived.
        got: &'static str,
        /// This port's mode.
        mode: &'static str,
    },
}

/// The two kinds of credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CreditKind {
    /// One per TLP.
    Header,
    /// One per 16 bytes of payload.
    Data,
}

impl core::fmt::Display for CreditKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Header => "header credits",
            Self::Data => "data credits",
        })
    }
}

/// The reason that a TLP cannot be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocked {
    /// The link or the TLP's virtual channel is not up.
    LinkDown,
    /// Not enough credits; ask again after [`Event::CreditsArrived`].
    Credits,
    /// The replay buffer is full; ask again after [`Event::Acked`].
    ReplayBuffer,
    /// A flit's worth of TLPs already waits for the wire; ask again after the next flit was polled.
    Staging,
}

/// The purpose of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// An acknowledgement is due (AckNak_LATENCY_TIMER).
    Ack,
    /// REPLAY_TIMER.
    Replay,
    /// Freed credits have waited for the UpdateFC policy's latency.
    Update,
    /// The periodic UpdateFC. Pending forever on a link with finite credits, even when all else is quiet.
    Refresh,
    /// InitFC or feature DLLPs are repeated.
    Init,
}

/// The counts of a port since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// TLPs sent for the first time.
    pub tlps_sent: u64,
    /// TLPs delivered to the owner.
    pub tlps_received: u64,
    /// TLPs (flit mode: flits) sent again.
    pub tlps_replayed: u64,
    /// Replays begun, by a Nak or by the timer.
    pub replays: u64,
    /// Expiries of REPLAY_TIMER.
    pub replay_timeouts: u64,
    /// Rollovers of REPLAY_NUM.
    pub retrains: u64,
    /// Nullified TLPs sent.
    pub nullified_sent: u64,
    /// Ack DLLPs sent (flit mode: flits that were sent for their acknowledgement only).
    pub acks_sent: u64,
    /// Nak DLLPs sent (flit mode: flits that carry a Nak).
    pub naks_sent: u64,
    /// UpdateFC DLLPs sent.
    pub update_fcs_sent: u64,
    /// InitFC and feature DLLPs sent.
    pub init_dllps_sent: u64,
    /// Ack DLLPs received (flit mode: acknowledgements that made progress).
    pub acks_received: u64,
    /// Nak DLLPs received.
    pub naks_received: u64,
    /// UpdateFC DLLPs received.
    pub update_fcs_received: u64,
    /// TLPs that arrived with a bad LCRC, or flits with a bad CRC.
    pub bad_lcrc: u64,
    /// DLLPs that arrived with a bad CRC.
    pub bad_dllps: u64,
    /// TLPs (flits) received again.
    pub duplicates: u64,
    /// TLPs (flits) dropped because one before them was missing.
    pub out_of_sequence: u64,
    /// Nullified TLPs received.
    pub nullified_received: u64,
    /// Flits sent, replays and NOP flits included.
    pub flits_sent: u64,
    /// Flits sent without TLP bytes.
    pub nop_flits_sent: u64,
    /// Rules broken by the peer.
    pub protocol_errors: u64,
}

impl Counters {
    /// Counts a flow control or feature DLLP that is sent.
    pub(crate) fn count_dllp(&mut self, dllp: &dllp::Repr) {
        match dllp {
            dllp::Repr::FlowControl(fc) if fc.phase == dllp::FcPhase::Update => self.update_fcs_sent += 1,
            _ => self.init_dllps_sent += 1,
        }
    }
}
