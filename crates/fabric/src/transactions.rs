//! Transactions and what is known of them when they end: counts, latency, where the time went.
//!
//! A transaction is one operation of a device or the processor: a DMA read or write of any size, an MMIO access, an interrupt. It ends
//! when its last byte has arrived.

use crate::attribution::{Cause, Interval, Ledger, Place, Snapshot};
use crate::ids::FlowId;
use crate::timeline::{SeriesId, Timeline};
use hdrhistogram::Histogram;
use tlplab_device::OpId;
use tlplab_units::{Duration, Time};

/// Index of a running transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransactionRef(pub(crate) u32);

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All data arrived.
    Done,
    /// Unsupported request.
    Unsupported,
    /// Completer abort.
    Aborted,
    /// The data came marked as bad.
    Poisoned,
    /// No completion in time.
    TimedOut,
    /// A posted request was lost with a link, or nobody claimed it.
    Lost,
    /// A completion contradicted its request.
    Malformed,
}

/// A transaction under way.
pub(crate) struct Transaction {
    /// Unique in the run.
    pub(crate) number: u64,
    pub(crate) flow: FlowId,
    pub(crate) started: Time,
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) read: bool,
    /// Of posted writes: nobody answers.
    pub(crate) posted: bool,
    /// Posted TLPs that have not arrived yet.
    pub(crate) pending: u32,
    /// The requester has more TLPs to make of it.
    pub(crate) issuing: bool,
    pub(crate) ending: Ending,
    /// What its egress had done when it started.
    pub(crate) snapshot: Snapshot,
    /// When it reached the requester: its owner's processing is over.
    pub(crate) submitted: Time,
    /// The owner's name for it.
    pub(crate) op: OpId,
    /// Which program of its node owns it.
    pub(crate) owner: u16,
    /// The answer needs its data even in a length-only run.
    pub(crate) carry: bool,
}

/// Transactions under way, in a slab.
#[derive(Default)]
pub(crate) struct Transactions {
    slots: Vec<Transaction>,
    free: Vec<u32>,
    started: u64,
}

impl Transactions {
    /// Opens a transaction; its slot keeps the allocation of its snapshot.
    pub(crate) fn open(
        &mut self,
        flow: FlowId,
        started: Time,
        read: bool,
        address: u64,
        bytes: u64,
    ) -> TransactionRef {
        let number = self.started;
        self.started += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Transaction {
                number,
                flow,
                started,
                bytes,
                address,
                read,
                posted: false,
                pending: 0,
                issuing: true,
                ending: Ending::Done,
                snapshot: Snapshot::default(),
                submitted: started,
                op: OpId(0),
                owner: 0,
                carry: false,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        (slot.number, slot.flow, slot.started, slot.bytes) = (number, flow, started, bytes);
        (slot.address, slot.read, slot.pending, slot.issuing) = (address, read, 0, true);
        slot.ending = Ending::Done;
        TransactionRef(index)
    }

    pub(crate) fn get(&mut self, transaction: TransactionRef) -> &mut Transaction {
        &mut self.slots[transaction.0 as usize]
    }

    /// Its number.
    pub(crate) fn number(&self, transaction: TransactionRef) -> u64 {
        self.slots[transaction.0 as usize].number
    }

    pub(crate) fn close(&mut self, transaction: TransactionRef) {
        self.free.push(transaction.0);
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Latencies in steps of a 32nd of an octave (about 2 %), each with the sum of its causes.
#[derive(Clone)]
pub struct CauseHistogram {
    buckets: Vec<Bucket>,
}

/// A step of a [`CauseHistogram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Transactions in it.
    pub count: u64,
    /// Total time in femtoseconds by cause, in the order of [`Cause::ALL`].
    pub causes_fs: [u128; Cause::COUNT],
}

impl CauseHistogram {
    fn new() -> Self {
        Self { buckets: Vec::new() }
    }

    /// 32 steps per octave above 32 fs: the step's number.
    fn index(latency: Duration) -> usize {
        let fs = latency.as_fs().max(32);
        let octave = 63 - fs.leading_zeros();
        ((octave - 5) * 32 + ((fs >> (octave - 5)) & 31) as u32) as usize
    }

    /// The latencies a step stands for: from, and up to but without.
    fn range(index: usize) -> (Duration, Duration) {
        let edge = |i: usize| Duration::from_fs((32 + (i % 32) as u64) << (i / 32));
        (edge(index), edge(index + 1))
    }

    fn record(&mut self, latency: Duration, causes: &[Duration; Cause::COUNT]) {
        let index = Self::index(latency);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        let bucket = &mut self.buckets[index];
        bucket.count += 1;
        for (sum, part) in bucket.causes_fs.iter_mut().zip(causes) {
            *sum += u128::from(part.as_fs());
        }
    }

    /// The steps that hold something: from, up to, contents.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, Duration, &Bucket)> {
        self.buckets.iter().enumerate().filter(|(_, b)| b.count > 0).map(|(i, b)| {
            let (from, to) = Self::range(i);
            (from, to, b)
        })
    }
}

/// What is known of a flow.
pub struct FlowStatistics {
    /// Transactions that ended well after the warm-up.
    pub transactions: u64,
    /// Bytes of payload that arrived after the warm-up.
    pub bytes: u64,
    /// Transactions that ended otherwise.
    pub failed: Vec<(Ending, u64)>,
    /// Latency in picoseconds.
    pub latency_ps: Histogram<u64>,
    /// Exact extremes and sum.
    pub latency_min: Duration,
    /// The longest.
    pub latency_max: Duration,
    /// The sum, for the mean, in femtoseconds.
    pub latency_sum_fs: u128,
    /// Latency by cause.
    pub causes: CauseHistogram,
    /// Total time by (place, kind); see [`FlowStatistics::attribution`].
    attribution: Vec<u128>,
    kinds: usize,
    /// Arrival of the last byte counted.
    pub last_arrival: Time,
    pub(crate) series: SeriesId,
}

impl FlowStatistics {
    pub(crate) fn new(places: usize, flows: usize, timeline: &mut Timeline) -> Self {
        let kinds = Cause::COUNT + flows;
        Self {
            transactions: 0,
            bytes: 0,
            failed: Vec::new(),
            latency_ps: Histogram::new_with_bounds(1, 1 << 50, 3).expect("valid bounds"),
            latency_min: Duration::MAX,
            latency_max: Duration::ZERO,
            latency_sum_fs: 0,
            causes: CauseHistogram::new(),
            attribution: vec![0; places * kinds],
            kinds,
            last_arrival: Time::ZERO,
            series: timeline.add_series(),
        }
    }

    /// Payload has arrived.
    pub(crate) fn arrived(&mut self, now: Time, bytes: u64, timeline: &mut Timeline) {
        self.bytes += bytes;
        self.last_arrival = now;
        timeline.count(self.series, now, bytes);
    }

    /// A transaction has ended well; `ledger` is that of its last byte.
    pub(crate) fn ended(&mut self, latency: Duration, ledger: &Ledger) -> [Duration; Cause::COUNT] {
        self.transactions += 1;
        self.latency_ps.saturating_record((latency.as_fs() / 1000).max(1));
        self.latency_min = self.latency_min.min(latency);
        self.latency_max = self.latency_max.max(latency);
        self.latency_sum_fs += u128::from(latency.as_fs());
        let mut causes = [Duration::ZERO; Cause::COUNT];
        for interval in ledger.intervals() {
            causes[interval.cause() as usize] += interval.duration;
            let index = usize::from(interval.place.0) * self.kinds + usize::from(interval.kind);
            self.attribution[index] += u128::from(interval.duration.as_fs());
        }
        self.causes.record(latency, &causes);
        causes
    }

    pub(crate) fn failed(&mut self, ending: Ending) {
        match self.failed.iter_mut().find(|(e, _)| *e == ending) {
            Some((_, count)) => *count += 1,
            None => self.failed.push((ending, 1)),
        }
    }

    /// Total time, in femtoseconds, of all transactions' critical paths by place, cause and behind whom. The interval's own
    /// duration is zero.
    pub fn attribution(&self) -> impl Iterator<Item = (Interval, u128)> {
        self.attribution.iter().enumerate().filter(|(_, fs)| **fs > 0).map(|(i, &fs)| {
            let (place, kind) = (Place((i / self.kinds) as u16), (i % self.kinds) as u16);
            (Interval { duration: Duration::ZERO, place, kind }, fs)
        })
    }

    /// Transactions that ended in some way.
    pub fn count_of(&self, ending: Ending) -> u64 {
        self.failed.iter().find(|(e, _)| *e == ending).map_or(0, |(_, n)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_steps_tile_the_axis() {
        let mut last = CauseHistogram::range(0).0;
        for index in 0..1500 {
            let (from, to) = CauseHistogram::range(index);
            assert_eq!(from, last);
            assert_eq!(CauseHistogram::index(from), index);
            assert_eq!(CauseHistogram::index(to - Duration::from_fs(1)), index);
            last = to;
        }
    }
}
