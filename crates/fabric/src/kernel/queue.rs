//! The event queue: a calendar ordered by (time, phase, port, sequence).
//!
//! The phases of an instant: what arrives is there before anything else happens (a cut-through egress may send its last byte at the
//! very time the last byte of its ingress arrives); deadlines of the data link layer are met by what is sent next; then all the rest.
//!
//! Ports are numbered by the sorted names of their components, so ties break the same way however an experiment was written down.
//!
//! Near events lie in the days of a calendar, a list for each that is in order and has an entry or two: what an event costs does not grow
//! with the number of ports. What comes later than the calendar goes, or on a crowded day, lies in a heap; the first of both is the first.
//! The length of a day follows the distance between events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tlplab_units::Time;

/// Something that will happen at a port or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// The port (or node, numbered after the ports) it happens at.
    pub(crate) at: u32,
    /// Its subject: a TLP handle, a timer, a cookie.
    pub(crate) data: u64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The last symbol of the unit on the wire has left the port.
    TransmitDone,
    /// The header of the first unit in flight has arrived (cut-through only).
    HeaderArrived,
    /// The first unit in flight has arrived in full.
    UnitArrived,
    /// A TLP has passed the stage before the egress queues.
    Entered,
    /// The receive buffer of a TLP is free.
    Released,
    /// The data link layer's deadline.
    LinkTimer,
    /// A TLP has passed the node's processing.
    Processed,
    /// A TLP has passed a cut-through switch, its tail perhaps still coming.
    ForwardEarly,
    /// A node has processed the answer to a request.
    Answer,
    /// An end point's or the processor's operation has passed its processing.
    Submit,
    /// The physical link goes down or comes up (fault, recovery).
    LinkState,
    /// A read of host memory has its data.
    MemoryDone,
    /// Host memory accepts a posted write.
    MemoryAccept,
    /// The next line of an answer is at its root port.
    LineReady,
    /// The address of a request of a device is translated, and none before it waits for that.
    Translated,
    /// Software changes the tables of the IOMMU.
    MapChange,
    /// An answer of the root complex's own functions is at the processor.
    OwnAnswer,
    /// A passage of a domain of the host has taken a TLP, and may take the next, or writes to another root port may go.
    PassageFree,
    /// A TLP has come out of a passage of a domain of the host.
    PassedDomain,
    /// A TLP has passed the processing of a cut-through switch with a core, its tail perhaps still coming.
    CoreEarly,
    /// A TLP has passed the core of a switch, or its header has.
    PassedCore,
    /// The core of a switch may take the next TLP.
    CoreFree,
    /// A TLP leaves a stage between the root complex and memory or the processor.
    HostStage,
    /// A timer of a device or host program.
    ProgramTimer,
    /// The completion timeout of a requester.
    RequesterTimer,
    /// The host has handled a legacy interrupt.
    HandlerOver,
    /// The processor's own request could not leave by a root port whose link is down.
    Terminated,
    /// A device with clocks has put something out.
    Clocked,
    /// A timer of a custom node.
    NodeTimer,
    /// A TLP has waited in a custom node.
    NodeWaited,
    /// A parallel bus chooses a master, or a transaction there goes on.
    Bus,
    /// Nothing: a reset has taken away what was to happen.
    Cancelled,
}

/// A pending event.
#[derive(Clone, Copy)]
struct Entry {
    /// time << 64 | phase << 62 | port << 40 | sequence
    key: u128,
    event: Event,
    /// The one before it on its day, unless it is the first.
    before: u32,
    /// The next of its day, or of the free entries.
    next: u32,
}

/// Pending events.
#[derive(Clone)]
pub(crate) struct EventQueue {
    entries: Vec<Entry>,
    free: u32,
    /// The first and the last entry of each day, in a ring.
    days: Box<[(u32, u32); DAYS]>,
    /// Days that have entries, a bit each.
    used: [u64; DAYS / 64],
    /// A day is `2^shift` femtoseconds long.
    shift: u32,
    /// The number of the first day of the calendar: no entry of it is earlier.
    today: u64,
    /// Events without a place on the calendar, and the key of the first of them.
    others: BinaryHeap<Reverse<(u128, u32)>>,
    first_other: u128,
    sequence: u64,
    /// Of the latest events: how many came later than the calendar goes, and how many entries of the other half of
    /// their days they had to pass.
    pushed: u32,
    too_late: u32,
    passed: u32,
}

const SEQUENCE_BITS: u32 = 40;
const DAYS: usize = 4096;
const NONE: u32 = u32::MAX;
const NEVER: u128 = u128::MAX;
/// A day with so many entries before a new one is crowded.
const CROWDED: u32 = 12;
/// The length of days is looked at after so many events.
const REVIEW: u32 = 4096;
/// Of so many that come later than the calendar goes, days are too short.
const MANY_TOO_LATE: u32 = REVIEW / 4;
/// With so many entries before new ones, days are too long.
const MANY_PASSED: u32 = REVIEW;

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            days: Box::new([(NONE, NONE); DAYS]),
            used: [0; DAYS / 64],
            // A nanosecond.
            shift: 20,
            today: 0,
            others: BinaryHeap::new(),
            first_other: NEVER,
            sequence: 0,
            pushed: 0,
            too_late: 0,
            passed: 0,
        }
    }
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&mut self, time: Time, event: Event) {
        debug_assert!(event.at < 1 << (62 - SEQUENCE_BITS));
        let phase = match event.kind {
            EventKind::UnitArrived => 0,
            EventKind::LinkTimer => 1,
            _ => 2,
        };
        let place = phase << 62 | u64::from(event.at) << SEQUENCE_BITS | self.sequence;
        let key = u128::from(time.as_fs()) << 64 | u128::from(place);
        // 2^40 events are three days of simulation; ties that far apart cannot meet, so the number may wrap.
        self.sequence = (self.sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
        let entry = Entry { key, event, before: NONE, next: NONE };
        let index = self.free;
        let index = match self.entries.get_mut(index as usize) {
            Some(free) => {
                self.free = free.next;
                *free = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.enter(index);
        self.pushed += 1;
        if self.pushed == REVIEW {
            self.review();
        }
    }

    /// Puts an entry on its day, or where those without a place are.
    #[inline]
    fn enter(&mut self, index: u32) {
        let key = self.entries[index as usize].key;
        // What is earlier than today, which has been turned to for what comes next, is one of today's.
        let day = ((key >> 64) as u64 >> self.shift).max(self.today);
        if day - self.today >= DAYS as u64 {
            self.too_late += 1;
            return self.set_aside(key, index);
        }
        let slot = day as usize % DAYS;
        self.entries[index as usize].next = NONE;
        let (first, last) = self.days[slot];
        if first == NONE {
            self.used[slot / 64] |= 1 << (slot % 64);
            self.days[slot] = (index, index);
            return;
        }
        // Ports that do the same at the same time do it in their order, and what follows comes in that order.
        if key > self.entries[last as usize].key {
            self.entries[last as usize].next = index;
            self.entries[index as usize].before = last;
            self.days[slot].1 = index;
            return;
        }
        if key < self.entries[first as usize].key {
            self.entries[first as usize].before = index;
            self.entries[index as usize].next = first;
            self.days[slot].0 = index;
            return;
        }
        let half = 1u128 << (64 + self.shift) >> 1;
        let mut after = last;
        for _ in 0..CROWDED {
            let Entry { key: other, before, .. } = self.entries[after as usize];
            self.passed += u32::from((other ^ key) & half != 0);
            // The first is earlier.
            if key > self.entries[before as usize].key {
                let entry = &mut self.entries[index as usize];
                (entry.before, entry.next) = (before, after);
                self.entries[before as usize].next = index;
                self.entries[after as usize].before = index;
                return;
            }
            after = before;
        }
        self.set_aside(key, index);
    }

    fn set_aside(&mut self, key: u128, index: u32) {
        self.others.push(Reverse((key, index)));
        self.first_other = self.first_other.min(key);
    }

    /// The first entry of the calendar, and its key; its day becomes today.
    #[inline]
    fn first(&mut self) -> (u32, u128) {
        let slot = self.today as usize % DAYS;
        if self.used[slot / 64] >> (slot % 64) & 1 == 0 && !self.turn_page() {
            return (NONE, NEVER);
        }
        let (first, _) = self.days[self.today as usize % DAYS];
        (first, self.entries[first as usize].key)
    }

    /// The next day with an entry becomes today; false if there is none.
    fn turn_page(&mut self) -> bool {
        let start = self.today as usize % DAYS;
        let words = self.used.len();
        // The word that today is in comes first, without the days before, and last, when it has only those.
        let ahead = (0..=words).find_map(|step| {
            let word = (start / 64 + step) % words;
            let days = if step == 0 { self.used[word] & u64::MAX << (start % 64) } else { self.used[word] };
            (days != 0).then(|| (word * 64 + days.trailing_zeros() as usize + DAYS - start) % DAYS)
        });
        self.today += ahead.unwrap_or(0) as u64;
        ahead.is_some()
    }

    /// Makes days shorter or longer, as the latest events ask for.
    #[cold]
    fn review(&mut self) {
        let shift = match (self.too_late, self.passed) {
            (_, passed) if passed > MANY_PASSED && self.shift > 0 => self.shift - 1,
            (too_late, passed) if too_late > MANY_TOO_LATE && passed < MANY_PASSED / 4 => self.shift + 1,
            _ => self.shift,
        };
        (self.pushed, self.too_late, self.passed) = (0, 0, 0);
        if shift != self.shift && shift < 60 {
            let pending = self.drain();
            (self.today, self.shift) = (self.today << self.shift >> shift, shift);
            pending.into_iter().for_each(|index| self.enter(index));
        }
        (self.too_late, self.passed) = (0, 0);
    }

    /// Takes all entries off the calendar.
    fn drain(&mut self) -> Vec<u32> {
        let mut pending = self.pending();
        pending.sort_unstable_by_key(|index| self.entries[*index as usize].key);
        self.days.fill((NONE, NONE));
        self.used.fill(0);
        self.others.clear();
        self.first_other = NEVER;
        pending
    }

    /// The entries of all pending events.
    fn pending(&self) -> Vec<u32> {
        let mut pending: Vec<u32> = self.others.iter().map(|Reverse((_, index))| *index).collect();
        for (first, _) in self.days.iter() {
            let mut index = *first;
            while index != NONE {
                pending.push(index);
                index = self.entries[index as usize].next;
            }
        }
        pending
    }

    /// Cancels the pending events that are `wanted`, and returns them in their order.
    pub(crate) fn cancel(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut cancelled: Vec<u32> = self.pending();
        cancelled.retain(|index| wanted(&self.entries[*index as usize].event));
        cancelled.sort_unstable_by_key(|index| self.entries[*index as usize].key);
        let take = |index: u32| {
            let event = &mut self.entries[index as usize].event;
            std::mem::replace(event, Event { kind: EventKind::Cancelled, ..*event })
        };
        cancelled.into_iter().map(take).collect()
    }

    /// Removes the deadlines of data link layers; all else keeps its place.
    pub(crate) fn remove_link_timers(&mut self) {
        for index in self.drain() {
            if self.entries[index as usize].event.kind == EventKind::LinkTimer {
                self.release(index);
            } else {
                self.enter(index);
            }
        }
    }

    /// The time of the first event that is no deadline of a data link layer.
    pub(crate) fn next_time_but_link_timers(&self) -> Option<Time> {
        let pending = self.pending().into_iter().map(|index| self.entries[index as usize]);
        let others = pending.filter(|entry| entry.event.kind != EventKind::LinkTimer);
        others.map(|entry| entry.key).min().map(time_of)
    }

    #[inline]
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        let (_, key) = self.first();
        let key = key.min(self.first_other);
        (key != NEVER).then(|| time_of(key))
    }

    /// Takes the next event, unless it comes after `until`.
    #[inline]
    pub(crate) fn pop_until(&mut self, until: Time) -> Option<(Time, Event)> {
        let (index, key) = self.first();
        if time_of(key.min(self.first_other)) > until {
            return None;
        }
        if key >= self.first_other {
            let (time, event) = self.pop_other()?;
            if index == NONE {
                // The calendar is empty, and begins where something happens.
                self.today = self.today.max(time.as_fs() >> self.shift);
            }
            return Some((time, event));
        }
        let Entry { event, next, .. } = self.entries[index as usize];
        let slot = self.today as usize % DAYS;
        self.days[slot].0 = next;
        if next == NONE {
            self.used[slot / 64] &= !(1 << (slot % 64));
        }
        self.release(index);
        Some((time_of(key), event))
    }

    fn pop_other(&mut self) -> Option<(Time, Event)> {
        let Reverse((key, index)) = self.others.pop()?;
        self.first_other = self.others.peek().map_or(NEVER, |Reverse((key, _))| *key);
        self.release(index);
        Some((time_of(key), self.entries[index as usize].event))
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.entries[index as usize].next = self.free;
        self.free = index;
    }
}

#[inline]
fn time_of(key: u128) -> Time {
    Time::from_fs((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request to a queue: an event at a distance from the last one that was taken, or to take one.
    #[derive(Clone, Debug)]
    enum Ask {
        Push(u64, u32),
        Pop,
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let later = prop_oneof![Just(0u64), 0u64..20, 0u64..5_000_000, 0u64..50_000_000_000];
        prop_oneof![
            3 => (later, 0u32..4).prop_map(|(later, at)| Ask::Push(later, at)),
            2 => Just(Ask::Pop),
        ]
    }

    proptest! {
        #[test]
        fn pops_by_time_port_and_sequence(asks in proptest::collection::vec(ask(), 0..400), review in 1u32..60) {
            let mut queue = EventQueue::default();
            let (mut pending, mut now) = (Vec::new(), 0);
            for (i, ask) in asks.into_iter().chain(std::iter::repeat_n(Ask::Pop, 400)).enumerate() {
                if (i as u32).is_multiple_of(review) {
                    // Days of every length, whether they suit or not.
                    (queue.too_late, queue.passed) = if i % 2 == 0 { (REVIEW, 0) } else { (0, REVIEW * 4) };
                    queue.review();
                }
                match ask {
                    Ask::Push(later, at) => {
                        let event = Event { kind: EventKind::LinkTimer, at, data: i as u64 };
                        queue.push(Time::from_fs(now + later), event);
                        pending.push((now + later, at, i as u64));
                    }
                    Ask::Pop => {
                        let least = pending.iter().copied().min();
                        prop_assert_eq!(queue.next_time().map(Time::as_fs), least.map(|(time, ..)| time));
                        if let Some((before, ..)) = least.filter(|(time, ..)| *time > 0) {
                            prop_assert_eq!(queue.pop_until(Time::from_fs(before - 1)), None);
                        }
                        let popped = queue.pop_until(Time::NEVER).map(|(time, event)| (time.as_fs(), event.at, event.data));
                        prop_assert_eq!(popped, least);
                        pending.retain(|one| Some(*one) != least);
                        now = least.map_or(now, |(time, ..)| time);
                    }
                }
            }
            prop_assert!(pending.is_empty() && queue.pop_until(Time::NEVER).is_none());
        }
    }

    #[test]
    fn cancelled_events_keep_their_place_and_link_timers_go() {
        let mut queue = EventQueue::default();
        let kinds = [EventKind::Processed, EventKind::LinkTimer, EventKind::Submit];
        for (i, kind) in kinds.into_iter().cycle().take(30).enumerate() {
            queue.push(Time::from_fs(i as u64 * 400_000_000), Event { kind, at: i as u32, data: 0 });
        }
        let cancelled = queue.cancel(|event| event.kind == EventKind::Submit && event.at < 9);
        assert_eq!(cancelled.iter().map(|event| event.at).collect::<Vec<_>>(), [2, 5, 8]);
        assert_eq!(queue.next_time_but_link_timers(), Some(Time::ZERO));
        queue.remove_link_timers();
        let left: Vec<_> = std::iter::from_fn(|| queue.pop_until(Time::NEVER))
            .map(|(_, event)| (event.at, event.kind))
            .collect();
        assert_eq!(left.len(), 20);
        assert!(left.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(left[1], (2, EventKind::Cancelled));
        assert_eq!(left.last(), Some(&(29, EventKind::Submit)));
    }
}
