//! The parts of the time of a transaction.
//!
//! Every instant from the start of a transaction to the arrival of its last byte belongs to one [`Cause`] at one [`Place`]. A
//! `Ledger` travels with each TLP on the critical path; whoever moves the TLP on charges the time since the last charge. Time spent
//! waiting at an egress is split by a `Partition` of what that egress did meanwhile. Sums are exact by construction.

pub use super::causes::{Cause, CauseGroup};
use crate::kernel::ids::FlowId;
use tlplab_units::{Duration, Time};

/// A place where time passes: an egress port (with the wire behind it), or inside a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub(crate) u16);

impl Place {
    /// Position in [`Topology::place_names`](crate::observe::topology::Topology::place_names).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An interval of a transaction's critical path. Intervals are in the order of time and leave no gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The duration.
    pub duration: Duration,
    /// The place.
    pub place: Place,
    /// The cause, and the flow ahead: a cause's discriminant, or `Cause::COUNT + flow` for queueing behind that flow.
    pub(crate) kind: u16,
}

impl Interval {
    /// The cause.
    pub fn cause(&self) -> Cause {
        Cause::ALL.get(usize::from(self.kind)).copied().unwrap_or(Cause::Queueing)
    }
    /// The flow whose TLP had the egress, if the cause is queueing.
    pub fn behind(&self) -> Option<FlowId> {
        usize::from(self.kind).checked_sub(Cause::COUNT).map(|f| FlowId(f as u16))
    }
}

pub(crate) const fn queueing_behind(flow: FlowId) -> u16 {
    Cause::COUNT as u16 + flow.0
}

/// The intervals charged so far to a TLP on a critical path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    intervals: Vec<Interval>,
    charged: Time,
    snapshot: Snapshot,
}

impl Ledger {
    /// Starts at `start`, with nothing charged.
    pub(crate) fn open(&mut self, start: Time) {
        self.intervals.clear();
        self.charged = start;
    }
    /// Up to when time has been charged.
    pub(crate) fn charged(&self) -> Time {
        self.charged
    }
    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
    /// Charges everything up to `until`.
    pub(crate) fn charge(&mut self, until: Time, place: Place, cause: Cause) {
        self.charge_kind(until - self.charged, place, cause as u16);
    }
    /// Charges `duration`.
    pub(crate) fn charge_for(&mut self, duration: Duration, place: Place, cause: Cause) {
        self.charge_kind(duration, place, cause as u16);
    }
    fn charge_kind(&mut self, duration: Duration, place: Place, kind: u16) {
        if !duration.is_zero() {
            self.charged += duration;
            self.intervals.push(Interval { duration, place, kind });
        }
    }
    /// Takes back what has been charged beyond `now`: nothing of that will be.
    pub(crate) fn cut(&mut self, now: Time) {
        let mut beyond = self.charged.saturating_since(now);
        self.charged = self.charged.min(now);
        while !beyond.is_zero()
            && let Some(last) = self.intervals.last_mut()
        {
            let part = beyond.min(last.duration);
            (last.duration, beyond) = (last.duration - part, beyond - part);
            if last.duration.is_zero() {
                self.intervals.pop();
            }
        }
    }
    /// Notes what the egress has done so far: the wait starts.
    pub(crate) fn wait(&mut self, partition: &mut Partition, class: usize, now: Time) {
        debug_assert!(now >= self.charged);
        partition.snapshot(class, now, &mut self.snapshot);
    }
    /// Charges the wait by what the egress has done since [`wait`](Self::wait).
    pub(crate) fn waited(&mut self, partition: &mut Partition, class: usize, now: Time, place: Place) {
        if now == self.charged {
            return;
        }
        partition.advance(now);
        let acc = &partition.accumulators[class];
        for (slot, total) in acc.iter().enumerate() {
            let before = self.snapshot.0.get(slot).copied().unwrap_or(0);
            if *total > before {
                let kind = partition.kinds[slot];
                self.charge_kind(Duration::from_fs(total - before), place, kind);
            }
        }
        // What passed before the snapshot (a requester's operation that was queued) has been charged by its owner.
        debug_assert_eq!(self.charged, now, "an egress partition leaves no gap");
    }
    /// Notes the start of a wait that began earlier, when `snapshot` was taken.
    pub(crate) fn waits_since(&mut self, snapshot: &Snapshot) {
        self.snapshot.0.clone_from(&snapshot.0);
    }
    /// Charges what its owner and the `stages` before the requester took until it reached the requester.
    pub(crate) fn submitted(&mut self, at: Time, stages: [Option<(Place, Duration)>; 2], place: Place) {
        for (stage, latency) in stages.into_iter().flatten() {
            self.charge_for(latency, stage, Cause::Processing);
        }
        self.charge(at, place, Cause::Processing);
    }
    /// Takes over another TLP's history (a completion its request's).
    pub(crate) fn inherit(&mut self, other: &mut Self) {
        core::mem::swap(&mut self.intervals, &mut other.intervals);
        self.charged = other.charged;
    }
    /// Copies another TLP's history (for each of several TLPs made of one).
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.intervals.clear();
        self.intervals.extend_from_slice(&other.intervals);
        self.charged = other.charged;
        self.snapshot.0.clone_from(&other.snapshot.0);
    }
}

/// The accumulators of a [`Partition`] at the start of a wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot(Vec<u64>);

/// For each class, the time an egress port has spent in each state: transmitting a flow's TLPs, DLLPs, blocked on credits… At every
/// instant each class is in exactly one state.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    since: Time,
    /// The slot of the wire's occupant.
    occupant: u16,
    /// The one before it, and until when.
    before: Option<(u16, Time)>,
    blocked: [Option<u16>; 3],
    /// Classes that are blocked for another reason than one of their requester's, a bit each.
    held: u8,
    accumulators: [Vec<u64>; 3],
    /// The kind (see [`Interval`]) that each slot stands for.
    kinds: Vec<u16>,
    /// Slot of each flow, or `NO_SLOT`.
    flow_slots: Vec<u16>,
}

const NO_SLOT: u16 = u16::MAX;
const FIXED: [Cause; 7] = [
    Cause::Queueing,
    Cause::DataLink,
    Cause::Replay,
    Cause::CreditWait,
    Cause::TagWait,
    Cause::ReplayBufferWait,
    Cause::LinkDown,
];

impl Partition {
    pub(crate) fn new() -> Self {
        Self {
            since: Time::ZERO,
            occupant: 0,
            before: None,
            blocked: [None; 3],
            held: 0,
            accumulators: std::array::from_fn(|_| vec![0; FIXED.len()]),
            kinds: FIXED.iter().map(|&c| c as u16).collect(),
            flow_slots: Vec::new(),
        }
    }

    /// The slot of a cause that is not "behind a flow".
    pub(crate) const fn slot(cause: Cause) -> u16 {
        let mut slot = 0;
        while FIXED[slot] as u8 != cause as u8 {
            slot += 1;
        }
        slot as u16
    }

    /// The slot of a cause that only some egresses have.
    pub(crate) fn cause_slot(&mut self, cause: Cause) -> u16 {
        let kind = cause as u16;
        let slot = self.kinds.iter().position(|other| *other == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.accumulators.iter_mut().for_each(|a| a.push(0));
            self.kinds.len() - 1
        });
        slot as u16
    }

    /// The slot of "a TLP of `flow` has the wire".
    pub(crate) fn flow_slot(&mut self, flow: FlowId) -> u16 {
        let index = usize::from(flow.0);
        if index >= self.flow_slots.len() {
            self.flow_slots.resize(index + 1, NO_SLOT);
        }
        if self.flow_slots[index] == NO_SLOT {
            self.flow_slots[index] = self.kinds.len() as u16;
            self.kinds.push(queueing_behind(flow));
            self.accumulators.iter_mut().for_each(|a| a.push(0));
        }
        self.flow_slots[index]
    }

    /// The occupant of the wire from `now` on.
    #[inline]
    pub(crate) fn occupy(&mut self, now: Time, slot: u16) {
        self.advance(now);
        (self.before, self.occupant) = (None, slot);
    }

    /// The occupants of the wire: one from `now` until `then`, another from then on.
    pub(crate) fn occupy_in_turn(&mut self, now: Time, first: u16, then: Time, second: u16) {
        self.advance(now);
        (self.before, self.occupant) = (Some((first, then)), second);
    }

    /// The wire is idle from `now` on.
    pub(crate) fn idle(&mut self, now: Time) {
        self.occupy(now, 0);
    }

    /// From `now` on the head of `class` may not go for this reason, or may.
    #[inline]
    pub(crate) fn block(&mut self, now: Time, class: usize, reason: Option<u16>) {
        if self.blocked[class] != reason {
            self.advance(now);
            self.blocked[class] = reason;
            self.held = self.held & !(1 << class) | u8::from(reason.is_some()) << class;
        }
    }

    /// From `now` on the requester of `class` has nothing for the egress for this reason of its own, or has. What else may block the class comes
    /// before that.
    pub(crate) fn block_requester(&mut self, now: Time, class: usize, reason: u16, blocks: bool) {
        if blocks {
            self.block(now, class, Some(reason));
            self.held &= !(1 << class);
        } else if self.blocked[class] == Some(reason) {
            self.block(now, class, None);
        }
    }

    /// True if any class is blocked for another reason than one of its requester's.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.held != 0
    }

    /// True if that class is.
    #[inline]
    pub(crate) fn is_blocked_at(&self, class: usize) -> bool {
        self.held >> class & 1 == 1
    }

    /// Total time `class` has been blocked for `cause`.
    pub(crate) fn total(&self, class: usize, cause: Cause) -> Duration {
        Duration::from_fs(self.accumulators[class][usize::from(Self::slot(cause))])
    }

    pub(crate) fn advance(&mut self, now: Time) {
        let mut since = std::mem::replace(&mut self.since, now);
        if since == now {
            return;
        }
        if let Some((slot, until)) = self.before {
            self.add(slot, until.min(now) - since);
            if now < until {
                return;
            }
            (self.before, since) = (None, until);
        }
        self.add(self.occupant, now - since);
    }

    /// Adds to the state of each class, which is that of the wire unless the class is blocked.
    fn add(&mut self, slot: u16, time: Duration) {
        for (accumulators, blocked) in self.accumulators.iter_mut().zip(self.blocked) {
            accumulators[usize::from(blocked.unwrap_or(slot))] += time.as_fs();
        }
    }

    pub(crate) fn snapshot(&mut self, class: usize, now: Time, into: &mut Snapshot) {
        self.advance(now);
        into.0.clone_from(&self.accumulators[class]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(fs: u64) -> Time {
        Time::from_fs(fs)
    }

    #[test]
    fn a_wait_is_split_by_the_activity_of_the_egress() {
        let mut egress = Partition::new();
        let mut ledger = Ledger::default();
        let (a, b) = (egress.flow_slot(FlowId(0)), egress.flow_slot(FlowId(1)));
        egress.occupy(at(0), a);
        ledger.open(at(4));
        ledger.wait(&mut egress, 0, at(4));
        let data_link = Partition::slot(Cause::DataLink);
        egress.occupy_in_turn(at(10), data_link, at(12), b);
        egress.idle(at(20));
        egress.block(at(20), 0, Some(Partition::slot(Cause::CreditWait)));
        egress.block(at(25), 0, None);
        ledger.waited(&mut egress, 0, at(25), Place(7));
        let mut got: Vec<_> =
            ledger.intervals().iter().map(|i| (i.cause(), i.behind(), i.duration.as_fs())).collect();
        got.sort();
        assert_eq!(
            got,
            [
                (Cause::Queueing, Some(FlowId(0)), 6),
                (Cause::Queueing, Some(FlowId(1)), 8),
                (Cause::CreditWait, None, 5),
                (Cause::DataLink, None, 2),
            ]
        );
    }
}
