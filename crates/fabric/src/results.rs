//! What a run leaves behind, for those who show it.

use crate::kernel::ids::{FlowId, LinkId, PortId};
use crate::link::port::WireCounters;
use crate::node::Node;
use crate::node::root::Program;
use crate::observe::sample::Sample;
use crate::observe::timeline::{BINS, Gauge};
use crate::packet::attribution::Cause;
use crate::packet::transactions::FlowStatistics;
use crate::sim::Fabric;
use crate::topology::Topology;
use tlplab_datalink::{Counters, LinkLayer};
use tlplab_device::{Measured, NetworkStatistics};
use tlplab_units::{Duration, FcClass, Time, Vc};

/// What one direction of a link did.
#[derive(Clone, Copy, Debug)]
pub struct DirectionResult {
    /// Bytes by use.
    pub wire: WireCounters,
    /// What the data link layer at its transmitter counted.
    pub transmitter: Counters,
    /// What the data link layer at its receiver counted.
    pub receiver: Counters,
    /// Time that ordered sets had the wire.
    pub ordered_sets: Duration,
    /// Time that the heads of the posted, non-posted and completion queues were blocked for want of credits.
    pub credit_stalls: [Duration; 3],
    /// Time that non-posted requests waited for tags.
    pub tag_stall: Duration,
    /// Time that the posted, non-posted or completion queue waited for the replay buffer.
    pub replay_buffer_stalls: [Duration; 3],
}

/// Something of which a run has more or less over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Tags in use.
    Tags,
    /// TLPs that wait at an egress.
    Queue,
    /// TLPs in the replay buffer.
    ReplayBuffer,
    /// Header credits taken.
    Headers(FcClass),
    /// Data credits taken, of 16 bytes.
    Data(FcClass),
}

impl Level {
    /// In words: "tags in use".
    pub fn name(self) -> &'static str {
        match self {
            Self::Tags => "tags in use",
            Self::Queue => "TLPs queued",
            Self::ReplayBuffer => "TLPs in the replay buffer",
            Self::Headers(FcClass::Posted) => "posted header credits taken",
            Self::Headers(FcClass::NonPosted) => "non-posted header credits taken",
            Self::Headers(FcClass::Completion) => "completion header credits taken",
            Self::Data(FcClass::Posted) => "posted data credits taken",
            Self::Data(FcClass::NonPosted) => "non-posted data credits taken",
            Self::Data(FcClass::Completion) => "completion data credits taken",
        }
    }
}

/// A level over time.
pub struct LevelResult {
    /// What it is a level of.
    pub of: Level,
    /// The component or direction.
    pub place: String,
    /// The link and direction, if it belongs to one.
    pub link: Option<(LinkId, u8)>,
    /// The most it can be, if that is known.
    pub capacity: Option<u64>,
    /// Mean per bin.
    pub mean: Vec<f64>,
    /// Maximum per bin.
    pub max: Vec<u64>,
}

impl Fabric {
    /// What the fabric consists of.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
    /// Statistics of a flow.
    pub fn flow_results(&self, flow: FlowId) -> &FlowStatistics {
        &self.flows[flow.index()]
    }
    /// All flows.
    pub fn flow_ids(&self) -> impl Iterator<Item = FlowId> + use<> {
        (0..self.flows.len() as u16).map(FlowId)
    }
    /// A uniform sample of transactions.
    pub fn samples(&self) -> &[Sample] {
        self.samples.all()
    }
    /// Statistics count from here on.
    pub fn warmup(&self) -> Time {
        self.warmup
    }
    /// A hash over every unit on every wire and its times.
    pub fn trace_hash(&self) -> u64 {
        self.hash.value()
    }
    /// Events handled.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Transactions that ended, in whatever way, since the start.
    pub fn transactions_ended(&self) -> u64 {
        self.ended
    }
    /// Transactions under way.
    pub fn transactions_live(&self) -> usize {
        self.transactions.live()
    }
    /// TLPs that exist now.
    pub fn tlps_live(&self) -> usize {
        self.tlps.live()
    }
    /// What each host program measured of itself, with the flow that it is about.
    pub fn measured(&mut self) -> Vec<(FlowId, Measured)> {
        let root = self.root();
        let of = |program: &Program| {
            let measured = program.program.as_ref().map(|program| program.measured()).unwrap_or_default();
            let first = usize::from(program.streams.0);
            measured.into_iter().map(move |one| (first + usize::from(one.stream), one))
        };
        let all = root.programs.iter().flat_map(of);
        all.map(|(stream, measured)| (root.initiator.flows[stream], measured)).collect()
    }
    /// What each device with a network behind it counted, by the device's name.
    pub fn networks(&self) -> Vec<(String, NetworkStatistics)> {
        let counted = |node: &Node| match node {
            Node::EndPoint(end_point) => end_point.device.as_ref()?.network(),
            _ => None,
        };
        let named = self.topology.nodes.iter().zip(&self.nodes);
        named.filter_map(|(info, node)| Some((info.name.clone(), counted(node)?))).collect()
    }
    /// Interrupts that reached the host.
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }
    /// Requests that nobody claimed, or whose completer refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }
    /// Completions that nobody had asked for, or too late.
    pub fn unexpected_completions(&self) -> u64 {
        self.unexpected
    }
    /// Rules of the data link protocol that were broken: when, where, which.
    pub fn protocol_errors(&self) -> impl Iterator<Item = (Time, PortId, String)> {
        self.protocol_errors.iter().map(|(t, p, e)| (*t, *p, e.to_string()))
    }
    /// Time until now that host memory was busy; `None` without a bandwidth.
    pub fn memory_busy(&mut self) -> Option<Duration> {
        let now = self.now;
        let server = &self.root().server;
        server.bandwidth().map(|_| server.busy(now))
    }
    /// TLPs that went over a wire for the first time, on all links.
    pub fn tlp_hops(&self) -> u64 {
        self.ports.iter().map(|p| p.counters.tlps).sum()
    }

    /// The direction of a link whose transmitter is `port`.
    pub fn direction_result(&mut self, port: PortId) -> DirectionResult {
        let now = self.now;
        let peer = self.ports[port.index()].peer;
        let receiver = *self.ports[peer.index()].engine.counters();
        let port = &mut self.ports[port.index()];
        port.partition.advance(now);
        let by_class = |cause| FcClass::ALL.map(|class| port.partition.total(class.index(), cause));
        DirectionResult {
            wire: port.counters,
            transmitter: *port.engine.counters(),
            receiver,
            ordered_sets: port.channel.ordered_set_time(now),
            credit_stalls: by_class(Cause::CreditWait),
            tag_stall: by_class(Cause::TagWait)[FcClass::NonPosted.index()],
            replay_buffer_stalls: by_class(Cause::ReplayBufferWait),
        }
    }

    /// Width of the bins of all series, and how many of them the run has filled.
    pub fn bins(&self) -> (Duration, usize) {
        let width = self.timeline.bin_width();
        let filled = self.now.as_fs().div_ceil(width.as_fs()).min(BINS as u64);
        (width, filled as usize)
    }

    /// Bytes of a flow that arrived in each bin.
    pub fn flow_series(&self, flow: FlowId) -> Vec<u64> {
        self.timeline.bins(self.flows[flow.index()].series)[..self.bins().1].to_vec()
    }

    /// Femtoseconds of wire time in each bin for payload, TLP overhead, DLLPs, and what was sent again.
    pub fn direction_series(&self, port: PortId) -> [Vec<u64>; 4] {
        let s = &self.ports[port.index()].series;
        [s.payload, s.overhead, s.dllp, s.replay].map(|id| self.timeline.bins(id)[..self.bins().1].to_vec())
    }

    /// Tags in use, credits left, queue lengths and replay buffers over time.
    pub fn level_results(&mut self) -> Vec<LevelResult> {
        self.flush_gauges();
        let mut levels = Vec::new();
        for i in 0..self.nodes.len() {
            let crate::node::Node::EndPoint(end_point) = &self.nodes[i] else { continue };
            let capacity = end_point.initiator.requester.config().tags.count();
            let (gauge, place) = (end_point.initiator.tags, self.topology.nodes[i].name.clone());
            levels.push(self.level(Level::Tags, place, None, Some(u64::from(capacity)), gauge));
        }
        for i in 0..self.ports.len() {
            let port = &self.ports[i];
            let (id, link) = (PortId(i as u16), Some((port.link, port.direction)));
            let place = self.topology.direction_name(id);
            let s = port.series;
            // A bus has neither credits nor acknowledgements.
            let on_bus = self.topology.links[port.link.index()].bus.is_some();
            for class in FcClass::ALL {
                for (credits, level) in [(s.headers, Level::Headers(class)), (s.data, Level::Data(class))] {
                    let capacity = credits.of[class.index()].map(u64::from);
                    if capacity.is_some() && !on_bus {
                        let gauge = credits.taken[class.index()];
                        levels.push(self.level(level, place.clone(), link, capacity, gauge));
                    }
                }
            }
            levels.push(self.level(Level::Queue, place.clone(), link, None, s.queue));
            if !on_bus {
                levels.push(self.level(Level::ReplayBuffer, place, link, None, s.replay_buffer));
            }
        }
        levels
    }

    fn flush_gauges(&mut self) {
        let now = self.now;
        for node in &mut self.nodes {
            if let crate::node::Node::EndPoint(end_point) = node {
                self.timeline.flush(&mut end_point.initiator.tags, now);
            }
        }
        for port in &mut self.ports {
            let s = &mut port.series;
            let levels = [&mut s.queue, &mut s.replay_buffer].into_iter();
            for gauge in levels.chain(&mut s.headers.taken).chain(&mut s.data.taken) {
                self.timeline.flush(gauge, now);
            }
        }
    }

    fn level(
        &self,
        of: Level,
        place: String,
        link: Option<(LinkId, u8)>,
        capacity: Option<u64>,
        gauge: Gauge,
    ) -> LevelResult {
        let (width, filled) = self.bins();
        let (integral, max) = self.timeline.gauge_bins(&gauge);
        let now = self.now.as_fs();
        let mean = integral[..filled]
            .iter()
            .enumerate()
            .map(|(i, &sum)| {
                let span = (now - i as u64 * width.as_fs()).min(width.as_fs());
                sum as f64 / span as f64
            })
            .collect();
        LevelResult { of, place, link, capacity, mean, max: max[..filled].to_vec() }
    }

    /// Header credits left for sending VC0 TLPs of a class at `port`; `None`: infinite.
    pub fn credits_left(&self, port: PortId, class: FcClass) -> Option<u32> {
        self.ports[port.index()].engine.credits(Vc::ZERO, class).header
    }

    /// Data credits (16 B each) left for sending VC0 TLPs of a class at `port`; `None`: infinite.
    pub fn data_credits_left(&self, port: PortId, class: FcClass) -> Option<u32> {
        self.ports[port.index()].engine.credits(Vc::ZERO, class).data
    }

    /// TLPs (flit mode: flits) that `port` has sent and nobody has acknowledged.
    pub fn replay_buffer(&self, port: PortId) -> u32 {
        self.ports[port.index()].engine.replay_occupancy().tlps
    }

    /// Is the link of this port up and initialised?
    pub fn is_active(&self, port: PortId) -> bool {
        self.ports[port.index()].engine.is_active()
    }
}
