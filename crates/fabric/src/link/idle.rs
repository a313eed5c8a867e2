//! Stretches in which nothing happens but that idle links refresh their credits: a guest that waits half a minute for a lost completion
//! would be told a million times what it knows.

use crate::kernel::queue::EventKind;
use crate::sim::Fabric;
use tlplab_datalink::LinkLayer;
use tlplab_units::{Duration, LinkMode, Time};
use tlplab_wire::dllp;

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
        let next = self.queue.next_time_but_link_timers().unwrap_or(Time::NEVER);
        let until = until.min(next);
        if until == Time::NEVER || until < self.now + WORTH {
            return;
        }
        self.queue.remove_link_timers();
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            let refreshes = port.engine.skip_refreshes(until);
            port.counters.update_fcs += refreshes;
            port.counters.worked_out += refreshes;
            if port.mode == LinkMode::NonFlit {
                port.counters.dllp += refreshes * u64::from(dllp::WIRE_BYTES);
            }
            (port.timer, port.later_timer) = (Time::NEVER, Time::NEVER);
            if let Some((due, _)) = port.engine.deadline() {
                port.timer = due;
                self.schedule(due, EventKind::LinkTimer, index as u32, due.as_fs());
            }
        }
        self.now = until;
    }

    /// Is nothing under way, and nothing due but refreshes and what timers bring?
    pub fn is_idle(&self) -> bool {
        let rests = |port: &crate::link::port::Port| {
            port.engine.is_resting()
                && !port.transmitting
                && port.egress.len() == 0
                && port.channel.is_empty()
        };
        self.transactions.live() == 0
            && self.clocked.is_empty()
            && self.agenda.is_empty()
            && self.pumps.is_empty()
            && self.ports.iter().all(rests)
    }

    /// When something happens next that is more than a refresh, if nothing is under way.
    pub fn next_event_when_idle(&mut self) -> Option<Time> {
        self.queue.next_time_but_link_timers()
    }

    /// UpdateFCs that [`skip_idle`](Self::skip_idle) has left out.
    pub fn skipped_refreshes(&self) -> u64 {
        self.ports.iter().map(|port| port.counters.worked_out).sum()
    }
}
