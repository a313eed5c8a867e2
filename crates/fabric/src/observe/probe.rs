//! Observers of every unit on every wire and every transaction that ends. Observers are attached to a fabric; the fabric does
//! not know what they do with what they see.

use crate::kernel::ids::{FlowId, LinkId, NodeId};
use crate::observe::topology::Topology;
use crate::packet::attribution::{Cause, Interval};
use crate::packet::transactions::Ending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_units::{Duration, Time};
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
    /// Its content.
    pub content: UnitContent<'a>,
}

/// The content of a unit.
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
    /// The time of its owner's request.
    pub start: Time,
    /// The arrival of its last byte.
    pub end: Time,
    /// Its ending.
    pub ending: Ending,
    /// The critical path in order, without gaps: of its last byte, or of what was last known of one that did not end well.
    pub intervals: &'a [Interval],
}

/// A transaction of a parallel bus.
#[derive(Clone, Copy, Debug)]
pub struct BusRecord<'a> {
    /// The bridge above the bus.
    pub bus: NodeId,
    /// The device's way over the bus that it goes by, which is shown as a link.
    pub link: LinkId,
    /// 0: its master is the device.
    pub direction: u8,
    /// The number of the transaction that it is for.
    pub transaction: Option<u64>,
    /// Its master: the bridge or a device.
    pub master: NodeId,
    /// Its target.
    pub target: Option<NodeId>,
    /// Its first address phase begins.
    pub start: Time,
    /// A clock.
    pub cycle: Duration,
    /// Its phases in order, named by what they are charged to, with their clocks. The bus is idle after the last.
    pub phases: &'a [(Cause, u32)],
    /// Its outcome.
    pub outcome: BusOutcome,
    /// The TLP that its master sent, or had sent before a retry.
    pub sent: &'a tlp::Repr,
    /// The flow it belongs to.
    pub flow: FlowId,
}

/// The outcome of a transaction of a parallel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusOutcome {
    /// With data: written, or read in the same transaction.
    Data,
    /// The target will answer in a transaction of its own.
    Split,
    /// The master has to come again.
    Retry,
    /// Nobody claimed it.
    Abort,
}

impl BusOutcome {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Split => "split",
            Self::Retry => "retry",
            Self::Abort => "abort",
        }
    }
}

/// An observer. It implements the methods for what it wants to see; what it leaves out it is not told.
pub trait Probe: Send {
    /// The fabric is built; nothing has happened yet. Devices start, and may send, before the builder returns.
    fn begin(&mut self, topology: &Topology) {
        let _ = topology;
    }
    /// A unit starts on a wire.
    fn unit(&mut self, record: &UnitRecord<'_>) {
        let _ = record;
    }
    /// In flit mode: a TLP whose last byte is in the flit that [`unit`](Self::unit) named before.
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        let _ = (record, tlp);
    }
    /// A transaction of a parallel bus; of TLPs that it moves, [`unit`](Self::unit) tells, too.
    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        let _ = record;
    }
    /// A transaction has ended.
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        let _ = record;
    }
}

/// A shared probe: the builder of the fabric keeps the other handle, and reads it while the fabric runs or afterwards.
impl<P: Probe> Probe for Arc<Mutex<P>> {
    fn begin(&mut self, topology: &Topology) {
        shared(self).begin(topology);
    }
    fn unit(&mut self, record: &UnitRecord<'_>) {
        shared(self).unit(record);
    }
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        shared(self).tlp_in_flit(record, tlp);
    }
    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        shared(self).bus_transaction(record);
    }
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        shared(self).transaction(record);
    }
}

fn shared<P>(probe: &Mutex<P>) -> MutexGuard<'_, P> {
    probe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Several observers, each of which sees everything.
impl Probe for Vec<Box<dyn Probe>> {
    fn begin(&mut self, topology: &Topology) {
        self.iter_mut().for_each(|probe| probe.begin(topology));
    }
    fn unit(&mut self, record: &UnitRecord<'_>) {
        self.iter_mut().for_each(|probe| probe.unit(record));
    }
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        self.iter_mut().for_each(|probe| probe.tlp_in_flit(record, tlp));
    }
    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        self.iter_mut().for_each(|probe| probe.bus_transaction(record));
    }
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        self.iter_mut().for_each(|probe| probe.transaction(record));
    }
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
