//! What an observer sees: every unit on every wire, every transaction that ends. Observers are attached to a fabric; the fabric does
//! not know what they do with what they see.

use crate::attribution::Interval;
use crate::ids::{FlowId, LinkId};
use crate::topology::Topology;
use crate::transactions::Ending;
use tlplab_units::Time;
use tlplab_wire::{dllp, tlp};

/// A unit on a wire.
#[derive(Clone, Copy, Debug)]
pub struct UnitRecord<'a> {
    /// The link.
    pub link: LinkId,
    /// 0: towards the root complex, 1: away from it.
    pub direction: u8,
    /// Its first symbol goes out.
    pub start: Time,
    /// Its last symbol has gone out.
    pub end: Time,
    /// Its last symbol arrives; with a fault that swallows it, when it would have.
    pub arrive: Time,
    /// Bytes on the wire.
    pub bytes: u32,
    /// A fault damaged or swallowed it.
    pub bad: bool,
    /// What it is.
    pub content: UnitContent<'a>,
}

/// What a unit is.
#[derive(Clone, Copy, Debug)]
pub enum UnitContent<'a> {
    /// A framed TLP.
    Tlp {
        /// Sequence number.
        sequence: u16,
        /// It has been sent before.
        replay: bool,
        /// It ends with EDB and an inverted LCRC.
        nullified: bool,
        /// The packet.
        packet: TlpRecord<'a>,
    },
    /// A DLLP.
    Dllp(&'a dllp::Repr),
    /// A flit.
    Flit {
        /// Sequence number.
        sequence: u16,
        /// It has been sent before.
        replay: bool,
        /// TLP bytes in it.
        tlp_bytes: u16,
    },
}

/// A TLP as an observer sees it.
#[derive(Clone, Copy, Debug)]
pub struct TlpRecord<'a> {
    /// Header.
    pub repr: &'a tlp::Repr,
    /// Data, in payload-carrying runs.
    pub payload: Option<&'a [u8]>,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The number of its transaction.
    pub transaction: Option<u64>,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub struct TransactionRecord<'a> {
    /// Unique in the run, in the order of starting.
    pub number: u64,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Read or write.
    pub read: bool,
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When its owner asked for it.
    pub start: Time,
    /// When its last byte arrived.
    pub end: Time,
    /// How it ended.
    pub ending: Ending,
    /// The critical path of its last byte, in order, without gaps; empty unless it ended well.
    pub intervals: &'a [Interval],
}

/// An observer.
pub trait Probe: Send {
    /// The fabric is built; nothing has happened yet. Devices start, and may send, before the builder returns.
    fn begin(&mut self, topology: &Topology) {
        let _ = topology;
    }
    /// A unit starts on a wire.
    fn unit(&mut self, record: &UnitRecord<'_>);
    /// In flit mode: a TLP whose last byte is in the flit that [`unit`](Self::unit) named before.
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        let _ = (record, tlp);
    }
    /// A transaction has ended.
    fn transaction(&mut self, record: &TransactionRecord<'_>);
}

/// A hash over every unit on every wire with its times: two runs are the same if their hashes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceHash(u64);

impl TraceHash {
    pub(crate) fn mix(&mut self, word: u64) {
        // The multiply-rotate step of FxHash, finalised on output.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    pub(crate) fn value(self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        z = (z ^ (z >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        z ^ (z >> 33)
    }
}
