//! The requested traffic, for comparison with the results.

use crate::load::{LoadSpec, Pace, Timing, Work};
use crate::result::{Attribution, Document, Flow, LimitKind, Link};
use crate::topology::DeviceSpec;
use std::collections::BTreeSet;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{FabricConfig, FaultKind};
use tlplab_units::Time;

/// An open-loop load that gets this share of what it offers is served.
const SERVED: f64 = 0.99;

/// The inputs of a verdict besides the document.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The loads, by whose names flows are called.
    pub loads: &'a [LoadSpec],
    /// The model of each device.
    pub devices: &'a [DeviceSpec],
    /// The components.
    pub fabric: &'a FabricConfig,
    /// Share of time in which host memory was busy, if its bandwidth is limited.
    pub memory_busy: Option<f64>,
    /// Enumeration is over.
    pub enumerated: bool,
    /// A Linux guest was the host's software: what it waited for beside the fabric, such as its own timers, nobody else knows.
    pub guest: bool,
}

impl Facts<'_> {
    fn load(&self, flow: &Flow) -> Option<&LoadSpec> {
        self.loads.iter().find(|load| {
            let rest = flow.name.strip_prefix(load.name.as_str());
            rest.is_some_and(|rest| matches!(rest, "" | ".read" | ".write"))
        })
    }

    fn pace(&self, flow: &Flow) -> Option<Pace> {
        match &self.load(flow)?.work {
            Work::Generate(generate) => Some(generate.pace),
            Work::Replay { .. } | Work::Dd(_) | Work::Transfer(_) => None,
        }
    }

    /// Bytes of a transaction.
    pub(super) fn size(&self, flow: &Flow) -> Option<u64> {
        match &self.load(flow)?.work {
            Work::Generate(generate) => Some(generate.size),
            Work::Replay { .. } | Work::Dd(_) | Work::Transfer(_) => None,
        }
    }

    /// The offered rate of an open-loop load, in bits per second.
    pub(super) fn offered(&self, flow: &Flow) -> Option<f64> {
        match self.pace(flow)? {
            Pace::Rate(bps) => Some(bps as f64),
            Pace::Outstanding(_) => None,
        }
    }

    /// Transactions that a closed-loop load has under way.
    pub(super) fn outstanding(&self, flow: &Flow) -> Option<u32> {
        match self.pace(flow)? {
            Pace::Outstanding(n) => Some(n),
            Pace::Rate(_) => None,
        }
    }

    /// True if a load has asked for all the transactions that it was to ask for.
    pub(super) fn is_over(&self, flow: &Flow) -> bool {
        let count = self.load(flow).and_then(|load| load.count);
        count.is_some_and(|count| flow.transactions + super::failures(flow) >= count)
    }

    /// True if the flow follows the times of a capture.
    pub(super) fn is_captured(&self, flow: &Flow) -> bool {
        let work = self.load(flow).map(|load| &load.work);
        matches!(work, Some(Work::Replay { timing: Timing::Captured, .. }))
    }

    /// True if an open-loop load gets the rate it offers.
    pub(super) fn is_served(&self, flow: &Flow) -> bool {
        self.is_captured(flow) || self.offered(flow).is_some_and(|bps| flow.payload_bps >= SERVED * bps)
    }

    /// True if nobody answers the writes of a flow.
    pub(super) fn posts(&self, flow: &Flow) -> bool {
        self.fabric.devices.iter().find(|d| d.name == flow.device).is_none_or(|device| device.posted_writes)
    }

    /// True if there is a crossbar in place of a link.
    pub(super) fn is_crossbar(&self, link: &Link) -> bool {
        self.fabric.link_above(&link.name).is_some_and(|link| link.crossbar.is_some())
    }

    /// The time at which the link above a component goes down, if it does.
    pub(super) fn down(&self, link: &str) -> Option<Time> {
        let downs = self.fabric.link_above(link)?.faults.iter().filter_map(|fault| match fault.kind {
            FaultKind::Down { at, .. } | FaultKind::Reset { at, .. } => Some(at),
            _ => None,
        });
        downs.min()
    }

    /// Nanoseconds from a request to host memory to its data, when nobody else asks.
    pub(super) fn memory_latency(&self) -> f64 {
        self.fabric.host.memory.latency.as_fs() as f64 / 1e6
    }

    /// Reads of a device's requester: tags and bytes that one of them can fetch.
    pub(super) fn tags(&self, device: &str) -> Option<(u16, u32)> {
        self.fabric.devices.iter().find(|d| d.name == device).map(|d| (d.tags, d.mrrs.bytes()))
    }
}

/// The links that a flow crosses, by the component below each.
pub(super) fn links_of<'d>(document: &'d Document, flow: &'d Flow) -> BTreeSet<&'d str> {
    let mut crossed = BTreeSet::new();
    for end in [flow.device.as_str(), flow.target.as_str()] {
        let mut at = Some(end);
        while let Some(name) = at {
            // What is above both ends is not crossed: it is entered twice and so taken out again.
            if document.links.iter().any(|l| l.name == name) && !crossed.remove(name) {
                crossed.insert(name);
            }
            at = document.topology.nodes.iter().find(|n| n.name == name).and_then(|n| n.parent.as_deref());
        }
    }
    crossed
}

/// Mean latency in nanoseconds without waiting for others, nor for what limits: what a transaction would take on an empty fabric, at
/// least.
pub(super) fn bare_latency(flow: &Flow, facts: &Facts<'_>, limit: LimitKind) -> f64 {
    let waits = [
        Cause::Queueing,
        Cause::CreditWait,
        Cause::TagWait,
        Cause::ReplayBufferWait,
        Cause::LinkDown,
        Cause::Arbitration,
        Cause::Retry,
    ];
    let memory = |a: &&Attribution| {
        limit == LimitKind::Memory && a.cause == Cause::Completer as usize && a.place == "host"
    };
    let replays = |a: &&Attribution| limit == LimitKind::Replay && a.cause == Cause::Replay as usize;
    let bare = flow.attribution.iter().filter(|a| waits.iter().all(|w| *w as usize != a.cause));
    let bare = bare.filter(|a| !memory(a) && !replays(a));
    let mean = bare.map(|a| a.total_ns).sum::<f64>() / flow.transactions.max(1) as f64;
    // Time in a busy memory is queueing, but for the latency that it has anyway.
    mean + if flow.attribution.iter().any(|a| memory(&a)) { facts.memory_latency() } else { 0.0 }
}
