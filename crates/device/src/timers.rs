//! The timers of a device, as its driver keeps them.

use std::collections::BTreeMap;
use tlplab_units::{Duration, Time};

/// Timers, by the time at which they are due; those of one time ring in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    due: BTreeMap<(Time, u64), u64>,
    set: u64,
}

impl Timers {
    /// Sets the timer `id` for `at`, which is not past.
    pub fn set(&mut self, at: Time, id: u64) {
        self.due.insert((at, self.set), id);
        self.set += 1;
    }

    /// The time of the next.
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes out a timer that is due, if there is one.
    pub fn take_due(&mut self, now: Time) -> Option<u64> {
        self.due.first_entry().filter(|entry| entry.key().0 <= now).map(|entry| entry.remove())
    }

    /// Takes out all of them.
    pub fn clear(&mut self) {
        self.due.clear();
    }

    /// The origin of time moves on by `by`.
    pub fn rebase(&mut self, by: Duration) {
        let due = std::mem::take(&mut self.due);
        self.due = due.into_iter().map(|((at, number), id)| ((at.earlier(by), number), id)).collect();
    }
}
