//! Time and order: the clock, the event queue, and the numbers by which ties in it are broken.

pub(crate) mod ids;
pub(crate) mod queue;

use queue::{Event, EventKind, EventQueue};
use tlplab_units::Time;

/// The clock, and what happens next.
#[derive(Clone, Default)]
pub(crate) struct Kernel {
    now: Time,
    queue: EventQueue,
    /// Events handled.
    events: u64,
}

impl Kernel {
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The time of the next event.
    #[inline]
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        self.queue.next_time()
    }

    /// Takes the next event, unless it comes after `until`; its time is the present.
    #[inline]
    pub(crate) fn pop_until(&mut self, until: Time) -> Option<Event> {
        let (time, event) = self.queue.pop_until(until)?;
        self.now = time;
        self.events += 1;
        Some(event)
    }

    /// Nothing happens before `time`, which is the present from now on.
    pub(crate) fn advance_to(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    #[inline]
    pub(crate) fn schedule(&mut self, time: Time, kind: EventKind, at: u32, data: u64) {
        debug_assert!(time >= self.now, "an event in the past");
        self.queue.push(time, Event { kind, at, data });
    }

    /// Takes back those of the events that are still to come which are `wanted`: nothing happens at their times. In their order.
    pub(crate) fn cancel(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.queue.cancel(wanted)
    }

    /// Removes the deadlines of data link layers; all else keeps its place.
    pub(crate) fn remove_link_timers(&mut self) {
        self.queue.remove_link_timers();
    }

    /// The time of the first event that is no deadline of a data link layer.
    pub(crate) fn next_time_but_link_timers(&mut self) -> Option<Time> {
        self.queue.next_time_but_link_timers()
    }
}
