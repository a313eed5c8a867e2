//! The results of a run, for those who show it.

use crate::kernel::ids::{FlowId, LinkId, PortId};
pub use crate::link::results::DirectionResult;
use crate::node::Node;
use crate::node::hardware::Hardware;
use crate::node::root::programs::Program;
use crate::observe::errors::{ErrorCount, RefusedPeers, ReportedError};
pub use crate::observe::level::{Level, LevelResult};
use crate::observe::outages::Outage;
use crate::observe::registers::RegisterHistory;
use crate::observe::sample::Sample;
use crate::observe::statistics::FlowStatistics;
use crate::observe::topology::Topology;
use crate::run::Fabric;
use std::collections::BTreeMap;
use tlplab_device::{FrameCounts, Measured, NetworkStatistics};
use tlplab_units::{Duration, FcClass, Time};

impl Fabric {
    /// The topology of the fabric.
    pub fn topology(&self) -> &Topology {
        &self.hardware.cx.topology
    }
    /// Statistics of a flow.
    pub fn flow_results(&self, flow: FlowId) -> &FlowStatistics {
        &self.hardware.cx.observe.flows[flow.index()]
    }
    /// All flows.
    pub fn flow_ids(&self) -> impl Iterator<Item = FlowId> + use<> {
        (0..self.hardware.cx.observe.flows.len() as u16).map(FlowId)
    }
    /// A uniform sample of transactions.
    pub fn samples(&self) -> &[Sample] {
        self.hardware.cx.observe.samples.all()
    }
    /// Statistics count from here on.
    pub fn warmup(&self) -> Time {
        self.hardware.cx.observe.warmup
    }
    /// A hash over every unit on every wire and its times.
    pub fn trace_hash(&self) -> u64 {
        self.hardware.cx.observe.hash.value()
    }
    /// Events handled.
    pub fn events(&self) -> u64 {
        self.hardware.cx.kernel.events()
    }
    /// Transactions that ended, in whatever way, since the start.
    pub fn transactions_ended(&self) -> u64 {
        self.hardware.cx.observe.counts.ended
    }
    /// Transactions under way.
    pub fn transactions_live(&self) -> usize {
        self.hardware.cx.transactions.live()
    }
    /// TLPs that exist now.
    pub fn tlps_live(&self) -> usize {
        self.hardware.cx.tlps.live()
    }
    /// The measurements of each host program, with the flow that they are about.
    pub fn measured(&mut self) -> Vec<(FlowId, Measured)> {
        let root = self.hardware.nodes.root();
        let of = |program: &Program| {
            let measured = program.program.as_ref().map(|program| program.measured()).unwrap_or_default();
            let first = usize::from(program.streams.0);
            measured.into_iter().map(move |one| (first + usize::from(one.stream), one))
        };
        let all = root.programs.iter().flat_map(of);
        all.map(|(stream, measured)| (root.initiator.flows[stream], measured)).collect()
    }
    /// The counters of each device with a network behind it, by the device's name.
    pub fn networks(&self) -> Vec<(String, NetworkStatistics)> {
        let counted = |node: &Node| match node {
            Node::EndPoint(end_point) => end_point.device.as_ref()?.network(),
            _ => None,
        };
        let named = self.hardware.cx.topology.nodes.iter().zip(&self.hardware.nodes.all);
        named.filter_map(|(info, node)| Some((info.name.clone(), counted(node)?))).collect()
    }
    /// The frames of each Ethernet controller, by its name.
    pub fn frame_counts(&self) -> BTreeMap<String, FrameCounts> {
        let counted = |node: &Node| match node {
            Node::EndPoint(end_point) => end_point.device.as_ref()?.frame_counts(),
            _ => None,
        };
        let named = self.hardware.cx.topology.nodes.iter().zip(&self.hardware.nodes.all);
        named.filter_map(|(info, node)| Some((info.name.clone(), counted(node)?))).collect()
    }
    /// The links that went down, in the order in which they did; of very many the first.
    pub fn outages(&self) -> &[Outage] {
        self.hardware.cx.observe.outages.all()
    }
    /// The number of times that each fault has struck until now: its link, its place in [`LinkConfig::faults`](crate::config::LinkConfig::faults), and
    /// the units that it has hit. Of a fault that has a time and not a unit nothing is told.
    pub fn fault_strikes(&self) -> impl Iterator<Item = (LinkId, usize, u64)> {
        let links = &self.hardware.cx.links;
        links.all().flat_map(move |port| {
            links.struck(port).map(move |(place, hits)| (links.link(port), place, hits))
        })
    }
    /// The errors that were detected, by port and kind.
    pub fn errors(&self) -> impl Iterator<Item = &ErrorCount> {
        self.hardware.cx.observe.errors.detected.values()
    }
    /// The error messages that root ports logged, by port, source and severity.
    pub fn reported_errors(&self) -> impl Iterator<Item = &ReportedError> {
        self.hardware.cx.observe.errors.reported.values()
    }
    /// The TLPs that ports refused their way to a peer, by port and reason.
    pub fn refused_peers(&self) -> impl Iterator<Item = &RefusedPeers> {
        self.hardware.cx.observe.errors.refused_peers.values()
    }
    /// Interrupts that reached the host.
    pub fn interrupts(&self) -> u64 {
        self.hardware.cx.observe.counts.interrupts
    }
    /// Requests that nobody claimed, or whose completer refused.
    pub fn refused(&self) -> u64 {
        self.hardware.cx.observe.counts.refused
    }
    /// Completions that nobody had asked for, or too late.
    pub fn unexpected_completions(&self) -> u64 {
        self.hardware.cx.observe.counts.unexpected
    }
    /// Rules of the data link protocol that were broken: when, where, which.
    pub fn protocol_errors(&self) -> impl Iterator<Item = (Time, PortId, String)> {
        self.hardware.cx.observe.protocol_errors.iter().map(|(t, p, e)| (*t, *p, e.to_string()))
    }
    /// Time until now that host memory was busy; `None` without a bandwidth.
    pub fn memory_busy(&mut self) -> Option<Duration> {
        let now = self.now();
        let server = &self.hardware.nodes.root().server;
        server.bandwidth().map(|_| server.busy(now))
    }
    /// TLPs that went over a wire for the first time, on all links.
    pub fn tlp_hops(&self) -> u64 {
        self.hardware.cx.links.counters().map(|counters| counters.tlps).sum()
    }

    /// The direction of a link whose transmitter is `port`.
    pub fn direction_result(&mut self, port: PortId) -> DirectionResult {
        let cx = &mut self.hardware.cx;
        cx.links.direction_result(port, cx.kernel.now())
    }

    /// Width of the bins of all series, and how many of them the run has filled.
    pub fn bins(&self) -> (Duration, usize) {
        self.hardware.cx.observe.timeline.filled_bins(self.now())
    }

    /// Bytes of a flow that arrived in each bin.
    pub fn flow_series(&self, flow: FlowId) -> Vec<u64> {
        let observe = &self.hardware.cx.observe;
        observe.timeline.bins(observe.flows[flow.index()].series)[..self.bins().1].to_vec()
    }

    /// Transactions of a flow that were under way, from their owner's request to their end: mean and maximum of each bin. `None` unless
    /// [`Builder::keep_history`](crate::Builder::keep_history) was called.
    pub fn outstanding_series(&mut self, flow: FlowId) -> Option<(Vec<f64>, Vec<u64>)> {
        let now = self.now();
        let observe = &mut self.hardware.cx.observe;
        let gauge = observe.flows[flow.index()].outstanding.as_mut()?;
        Some(observe.timeline.mean_and_max(gauge, now))
    }

    /// The configuration space of every function over time; none unless [`Builder::keep_history`](crate::Builder::keep_history) was called.
    pub fn register_histories(&mut self) -> Vec<RegisterHistory> {
        let found = self.software.found.iter().flat_map(|hierarchy| &hierarchy.functions);
        let found: Vec<_> = found.map(|function| function.bdf).collect();
        self.hardware.register_histories(&found)
    }

    /// Femtoseconds of wire time in each bin for payload, TLP overhead, DLLPs, and what was sent again.
    pub fn direction_series(&self, port: PortId) -> [Vec<u64>; 4] {
        let (timeline, filled) = (&self.hardware.cx.observe.timeline, self.bins().1);
        self.hardware.cx.links.series(port).map(|id| timeline.bins(id)[..filled].to_vec())
    }

    /// Tags in use, credits left, queue lengths and replay buffers over time.
    pub fn level_results(&mut self) -> Vec<LevelResult> {
        let Hardware { cx, nodes } = &mut self.hardware;
        let now = cx.now();
        let mut levels = Vec::new();
        for node in &mut nodes.all {
            let Node::EndPoint(end_point) = node else { continue };
            let capacity = Some(u64::from(end_point.initiator.requester.config().tags.count()));
            let place = cx.topology.nodes[end_point.node.index()].name.clone();
            let gauge = &mut end_point.initiator.tags;
            levels.push(cx.observe.timeline.level(Level::Tags, place, None, capacity, gauge, now));
        }
        cx.add_levels(&mut levels);
        levels
    }

    /// Header credits left for sending VC0 TLPs of a class at `port`; `None`: infinite.
    pub fn credits_left(&self, port: PortId, class: FcClass) -> Option<u32> {
        self.hardware.cx.links.credits(port, class).header
    }

    /// Data credits (16 B each) left for sending VC0 TLPs of a class at `port`; `None`: infinite.
    pub fn data_credits_left(&self, port: PortId, class: FcClass) -> Option<u32> {
        self.hardware.cx.links.credits(port, class).data
    }

    /// TLPs (flit mode: flits) that `port` has sent and nobody has acknowledged.
    pub fn replay_buffer(&self, port: PortId) -> u32 {
        self.hardware.cx.links.replay_buffer(port)
    }

    /// The data link layer of a port as built: its buffers and policies, as they are where the configuration leaves them open.
    pub fn data_link_config(&self, port: PortId) -> &tlplab_datalink::Config {
        self.hardware.cx.links.data_link_config(port)
    }

    /// True if the link of this port is up and initialised.
    pub fn is_active(&self, port: PortId) -> bool {
        self.hardware.cx.links.is_active(port)
    }
}
