//! The event queue: a 4-ary heap ordered by (time, phase, port, sequence).
//!
//! The phases of an instant: what arrives is there before anything else happens (a cut-through egress may send its last byte at the
//! very time the last byte of its ingress arrives); deadlines of the data link layer are met by what is sent next; then all the rest.
//!
//! Ports are numbered by the sorted names of their components, so ties break the same way however an experiment was written down.
//! A 4-ary heap touches half the cache lines of a binary one when it sifts down, and pending events are few (some per port).

use tlplab_units::Time;

/// Something that will happen at a port or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// The port (or node, numbered after the ports) it happens at.
    pub(crate) at: u32,
    /// What it concerns: a TLP handle, a timer, a cookie.
    pub(crate) data: u64,
}

/// What happens.
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
    /// An answer of the root complex's own functions is at the processor.
    OwnAnswer,
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
    /// A parallel bus chooses a master, or a transaction there goes on.
    Bus,
    /// Nothing: a reset has taken away what was to happen.
    Cancelled,
}

/// Pending events. Keys and events lie apart, so that the four children of a key share a cache line.
pub(crate) struct EventQueue {
    /// Followed by four of `NEVER`; time << 64 | phase << 62 | port << 40 | sequence
    keys: Vec<u128>,
    events: Vec<Event>,
    sequence: u64,
    /// The first event has been handed out and is still in its place: handling an event mostly makes another one soon after, which
    /// then takes that place and sinks little, while the last of the heap would sink deep.
    popped: bool,
}

const SEQUENCE_BITS: u32 = 40;
const NEVER: u128 = u128::MAX;

impl Default for EventQueue {
    fn default() -> Self {
        Self { keys: vec![NEVER; 5], events: Vec::new(), sequence: 0, popped: false }
    }
}

impl EventQueue {
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
        if std::mem::take(&mut self.popped) {
            return self.sift_down(key, event);
        }
        let mut hole = self.events.len();
        self.keys.push(NEVER);
        self.events.push(event);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            self.events[hole] = self.events[parent];
            hole = parent;
        }
        self.keys[hole] = key;
        self.events[hole] = event;
    }

    /// The events that are still to come, for a reset to cancel those of them that must not.
    pub(crate) fn pending_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        self.events.iter_mut().skip(usize::from(self.popped))
    }

    /// Removes the deadlines of data link layers; all else keeps its place.
    pub(crate) fn remove_link_timers(&mut self) {
        self.close();
        let events = std::mem::take(&mut self.events);
        let keys = std::mem::replace(&mut self.keys, vec![NEVER; 4]);
        let mut kept: Vec<_> = keys.into_iter().zip(events).collect();
        kept.retain(|(_, event)| event.kind != EventKind::LinkTimer);
        // What is in order is a heap.
        kept.sort_unstable_by_key(|(key, _)| *key);
        let (keys, events): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        self.events = events;
        self.keys.splice(0..0, keys);
        self.keys.push(NEVER);
    }

    /// The time of the first event that is no deadline of a data link layer.
    pub(crate) fn next_time_but_link_timers(&mut self) -> Option<Time> {
        self.close();
        let others =
            self.keys.iter().zip(&self.events).filter(|(_, event)| event.kind != EventKind::LinkTimer);
        others.map(|(key, _)| *key).min().map(time_of)
    }

    pub(crate) fn next_time(&mut self) -> Option<Time> {
        self.close();
        self.events.first().map(|_| time_of(self.keys[0]))
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, Event)> {
        self.close();
        let event = *self.events.first()?;
        self.popped = true;
        Some((time_of(self.keys[0]), event))
    }

    /// Removes the first event, which has been handed out, unless a new one has taken its place.
    fn close(&mut self) {
        if !std::mem::take(&mut self.popped) {
            return;
        }
        let last = self.events.len() - 1;
        let key = std::mem::replace(&mut self.keys[last], NEVER);
        self.keys.pop();
        if let Some(event) = self.events.pop().filter(|_| last > 0) {
            self.sift_down(key, event);
        }
    }

    /// Puts an event in the place of the first one, or where it belongs below.
    fn sift_down(&mut self, key: u128, event: Event) {
        let len = self.events.len();
        let mut hole = 0;
        // Beyond the last key lie keys that never win, so a family is always whole.
        while let Some(family) = self.keys[4 * hole + 1..].first_chunk::<4>() {
            let left = usize::from(family[1] < family[0]);
            let right = 2 + usize::from(family[3] < family[2]);
            let least = if family[right] < family[left] { right } else { left };
            if key <= family[least] {
                break;
            }
            let child = 4 * hole + 1 + least;
            self.keys[hole] = family[least];
            self.events[hole] = self.events[child];
            hole = child;
            if 4 * hole + 1 >= len {
                break;
            }
        }
        self.keys[hole] = key;
        self.events[hole] = event;
    }
}

fn time_of(key: u128) -> Time {
    Time::from_fs((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pops_by_time_port_and_sequence(input in proptest::collection::vec((0u64..20, 0u32..4), 0..200)) {
            let mut queue = EventQueue::default();
            for (i, &(time, at)) in input.iter().enumerate() {
                queue.push(Time::from_fs(time), Event { kind: EventKind::LinkTimer, at, data: i as u64 });
            }
            let mut expected: Vec<_> =
                input.iter().enumerate().map(|(i, &(time, at))| (time, at, i as u64)).collect();
            expected.sort_unstable();
            let popped: Vec<_> =
                std::iter::from_fn(|| queue.pop()).map(|(t, e)| (t.as_fs(), e.at, e.data)).collect();
            prop_assert_eq!(popped, expected);
        }
    }
}
