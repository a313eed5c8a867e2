//! Stretches in which nothing happens but that idle links refresh their credits: a guest that waits half a minute for a lost completion
//! would be told a million times what it knows.

use crate::run::Fabric;
use tlplab_units::{Duration, Time};

/// A shorter stretch is not worth looking for.
const WORTH: Duration = Duration::from_us(60);

impl Fabric {
    /// If nothing is under way, moves the clock on to `until`, or to the first event that is more than a refresh, leaving out the refreshes
    /// before it: no probe sees them, but they are counted as sent, and as worked out. What comes after is as if each had been sent at its
    /// time and had disturbed nobody.
    pub fn skip_idle(&mut self, until: Time) {
        if !self.is_idle() {
            return;
        }
        let next = self.next_event_when_idle().unwrap_or(Time::NEVER);
        let until = until.min(next);
        if until == Time::NEVER || until < self.now() + WORTH {
            return;
        }
        self.hardware.cx.skip_refreshes(until);
        self.hardware.cx.kernel.advance_to(until);
    }

    /// True if nothing is under way, and nothing is due but refreshes and the events of timers.
    pub fn is_idle(&self) -> bool {
        let cx = &self.hardware.cx;
        cx.transactions.live() == 0
            && self.clocked.is_empty()
            && cx.agenda.is_empty()
            && cx.links.are_resting()
    }

    /// The time of the next event that is more than a refresh, if the fabric is idle.
    pub fn next_event_when_idle(&mut self) -> Option<Time> {
        self.hardware.cx.kernel.next_time_but_link_timers()
    }

    /// UpdateFCs that [`skip_idle`](Self::skip_idle) has left out.
    pub fn skipped_refreshes(&self) -> u64 {
        self.hardware.cx.links.counters().map(|counters| counters.worked_out).sum()
    }
}
