//! Devices that have clocks, and when they run.
//!
//! Such a device runs ahead of the events: before the event at an instant T is handled, every one of them has done its clock edges before T,
//! so that all that could have come to it until then has come. What it puts out becomes an event of its own, at its own time, and it waits
//! until that is handled. With several of them, the one that is furthest behind runs next, and not much further than the others.

use crate::node::hardware::Hardware;
use crate::run::Fabric;
use tlplab_units::{Duration, Time};

/// The least time from one device to another: two links lie between, and the shortest TLP takes 0.3 ns on the fastest.
const LOOKAHEAD: Duration = Duration::from_ps(500);
/// A device runs no longer without an event, so that who drives the fabric can look at the world.
const SLICE: Duration = Duration::from_us(10);

impl Fabric {
    /// The devices whose clocks have run all the time, as they never say that nothing happens any more, if nothing else is under way.
    pub fn restless(&mut self) -> Vec<String> {
        if (self.tlps_live(), self.transactions_live()) != (0, 0) {
            return Vec::new();
        }
        let mut names = Vec::new();
        for i in 0..self.clocked.len() {
            let node = self.clocked[i];
            if !self.hardware.nodes.end_point_mut(node).core().rests {
                names.push(self.topology().nodes[node.index()].name.clone());
            }
        }
        names
    }

    /// The time of the next event. Clocked devices have run up to it, none beyond `until`.
    #[inline]
    pub(crate) fn upcoming(&mut self, until: Time) -> Option<Time> {
        if !self.clocked.is_empty() {
            self.run_clocks(until);
        }
        self.hardware.cx.kernel.next_time()
    }

    /// Edges at `until` are done, too: an event there would come after them only if it were later.
    pub(super) fn run_clocks(&mut self, until: Time) {
        let end = if until == Time::NEVER { until } else { until + Duration::from_fs(1) };
        while self.hardware.cx.fault.is_none() {
            let bound = self.hardware.cx.kernel.next_time().map_or(end, |next| next.min(end));
            let (mut first, mut second) = (None, Time::NEVER);
            for i in 0..self.clocked.len() {
                let node = self.clocked[i];
                let Some(time) = self.hardware.nodes.end_point_mut(node).core().runs_from() else { continue };
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
            let limit = bound.min(others).min(slice);
            let Hardware { cx, nodes } = &mut self.hardware;
            nodes.end_point_mut(node).run_clock(cx, limit, slice);
        }
    }
}
