//! The input of the writers of captures and traces: units on a wire, transactions, levels of resources.
//!
//! Plain data, so that neither side knows the other: the simulator's probe is turned into these, a test writes them by hand.

pub use crate::linkunit::Flags;
use tlplab_units::{Duration, Time};
use tlplab_wire::dllp;
use tlplab_wire::tlp::Repr;

/// The two ends of a link. Direction 0 goes up, from `lower` to `upper`; direction 1 goes down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end nearer to the devices.
    pub lower: String,
    /// The end nearer to the host.
    pub upper: String,
}

impl Link {
    /// Sender and receiver of direction 0 or 1.
    pub fn ends(&self, direction: u8) -> (&str, &str) {
        if direction == 0 { (&self.lower, &self.upper) } else { (&self.upper, &self.lower) }
    }
    /// `ssd → sw0`.
    pub fn name(&self, direction: u8) -> String {
        let (from, to) = self.ends(direction);
        format!("{from} → {to}")
    }
}

/// A unit put on a wire.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// Index of the link.
    pub link: u16,
    /// 0 up, 1 down.
    pub direction: u8,
    /// Its first symbol leaves.
    pub start: Time,
    /// The wire is free again.
    pub end: Time,
    /// Its last symbol has arrived.
    pub arrive: Time,
    /// The kind of unit.
    pub content: Content<'a>,
    /// Its damage, if any.
    pub flags: Flags,
}

/// The kind of a unit.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A TLP.
    Tlp(Tlp<'a>),
    /// A DLLP.
    Dllp(dllp::Repr),
    /// A flit.
    Flit(Flit),
}

/// A TLP on a wire.
#[derive(Clone, Copy, Debug)]
pub struct Tlp<'a> {
    /// The TLP.
    pub repr: &'a Repr,
    /// Its data link sequence number, 12 bits (in flit mode that of its flit).
    pub sequence: u16,
    /// Its data: exactly the bytes that travel beside it ([`data_bytes`](tlplab_transaction::data_bytes)), or whole DW; `None` in a
    /// length-only run.
    pub payload: Option<&'a [u8]>,
    /// The transaction it belongs to.
    pub transaction: Option<u64>,
    /// The flow it belongs to.
    pub flow: Option<u16>,
}

/// A flit on a wire.
#[derive(Clone, Copy, Debug)]
pub struct Flit {
    /// Its sequence number.
    pub sequence: u16,
    /// Bytes of TLPs in it, of 236.
    pub tlp_bytes: u16,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// Unique in the run.
    pub id: u64,
    /// Index of its flow.
    pub flow: u16,
    /// It was asked for.
    pub start: Time,
    /// Its last byte arrived.
    pub end: Time,
    /// `write 4096 B @ 0x1000`.
    pub text: &'a str,
    /// Its critical path without gaps, from `start` on.
    pub intervals: &'a [Interval<'a>],
}

/// A part of a transaction's critical path.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// The cause: `serialisation`.
    pub cause: &'a str,
    /// The place: `sw0 → host.rp0`.
    pub place: &'a str,
    /// The flow whose TLP had the place, if the cause is queueing.
    pub behind: Option<&'a str>,
    /// The duration.
    pub duration: Duration,
}
