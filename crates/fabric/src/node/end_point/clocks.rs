//! Devices that have clocks, and when they run.
//!
//! Such a device runs ahead of the events: before the event at an instant T is handled, every one of them has done its clock edges before T,
//! so that all that could have come to it until then has come. What it puts out becomes an event of its own, at its own time, and it waits
//! until that is handled. With several of them, the one that is furthest behind runs next, and not much further than the others.

use crate::kernel::ids::NodeId;
use crate::kernel::queue::EventKind;
use crate::sim::Fabric;
use tlplab_units::{Duration, Time};

/// What a device puts out reaches another no sooner than this: two links lie between, and the shortest TLP takes 0.3 ns on the fastest.
const LOOKAHEAD: Duration = Duration::from_ps(500);
/// A device runs no longer without an event, so that who drives the fabric can look at the world.
const SLICE: Duration = Duration::from_us(10);

impl Fabric {
    /// The time of the next event. Clocked devices have run up to it, none beyond `until`.
    #[inline]
    pub(crate) fn upcoming(&mut self, until: Time) -> Option<Time> {
        if !self.clocked.is_empty() {
            self.run_clocks(until);
        }
        self.queue.next_time()
    }

    /// Edges at `until` are done, too: an event there would come after them only if it were later.
    fn run_clocks(&mut self, until: Time) {
        let end = if until == Time::NEVER { until } else { until + Duration::from_fs(1) };
        while self.fault.is_none() {
            let bound = self.queue.next_time().map_or(end, |next| next.min(end));
            let (mut first, mut second) = (None, Time::NEVER);
            for i in 0..self.clocked.len() {
                let node = self.clocked[i];
                let Some(time) = self.core(node).runs_from() else { continue };
                match first {
                    Some((least, _)) if time >= least => second = second.min(time),
                    _ => {
                        second = first.map_or(second, |(least, _)| second.min(least));
                        first = Some((time, node));
                    }
                }
            }
            let Some((time, node)) = first.filter(|(time, _)| *time < bound) else { return };
            let others = if second == Time::NEVER { second } else { second + LOOKAHEAD };
            let slice = time + SLICE;
            self.run_clock(node, bound.min(others).min(slice), slice);
        }
    }

    /// One device goes on, at most to `limit`; at the end of its `slice` there is an event in any case.
    fn run_clock(&mut self, node: NodeId, limit: Time, slice: Time) {
        let room = self.room_for_core(node);
        let core = self.core(node);
        let (before, was_intx) = (core.output.time, core.intx);
        let result = core.device.run(limit, room, &mut core.output);
        let (time, idle) = (core.output.time, core.output.idle);
        let says = !core.output.tlp.is_empty() || core.output.taken != [0; 3] || core.output.intx != was_intx;
        core.idle = idle;
        core.pending = says || !idle && time >= slice;
        let pending = core.pending;
        if let Err(message) = result {
            return self.fail(node, message);
        }
        if time < before || time > limit || time == before && !says && !idle {
            let wrong =
                format!("its model was to run from {before} to {limit} and says that it is at {time}");
            return self.fail(node, wrong);
        }
        if pending {
            let at = self.node_event(node);
            self.schedule(time.max(self.now), EventKind::Clocked, at, time.as_fs());
        }
    }

    /// What a device has put out, or the end of a slice of its time.
    pub(crate) fn clocked(&mut self, node: NodeId, put_out: Time) {
        let core = self.core(node);
        // A reset may have taken back what this event is of.
        if !core.pending || core.output.time != put_out {
            return;
        }
        core.pending = false;
        let mut tlp = std::mem::take(&mut core.output.tlp);
        let taken = std::mem::take(&mut core.output.taken);
        let intx = core.output.intx;
        self.core_spoke(node, taken, &tlp, intx);
        tlp.clear();
        self.core(node).output.tlp = tlp;
    }

    /// Before a device is told of something: it is up to date.
    pub(crate) fn catch_up(&mut self, node: NodeId) {
        let now = self.now;
        let core = self.core(node);
        if core.idle && !core.pending && core.output.time < now {
            self.run_clock(node, now, Time::NEVER);
        }
        self.core(node).idle = false;
    }
}
