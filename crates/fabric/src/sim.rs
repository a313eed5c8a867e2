//! The simulator: time, the event loop, and the state that everything shares.

use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::kernel::queue::{Event, EventKind, EventQueue};
use crate::link::port::Port;
use crate::link::port_buffer::PortBuffers;
use crate::node::Node;
use crate::node::error_messages::Report;
use crate::node::errors::{ErrorKind, ErrorLog};
use crate::node::root::Worker;
use crate::observe::probe::{Probe, TraceHash, TransactionRecord};
use crate::observe::sample::{Sample, Samples};
use crate::observe::timeline::Timeline;
use crate::packet::attribution::{Ledger, Place};
use crate::packet::slab::{TlpHandle, TlpSlab};
use crate::packet::transactions::{Ending, FlowStatistics, TransactionRef, Transactions};
use crate::software::enumeration::Enumeration;
use crate::software::hot_plug::Outage;
use crate::topology::Topology;
use std::collections::VecDeque;
use tlplab_datalink::{Event as LinkEvent, LinkLayer, ProtocolError};
use tlplab_device::{Action, DeviceInfo, DmaError, Event as DeviceEvent, HostAction, HostEvent, OpId};
use tlplab_transaction::Payload;
use tlplab_units::{Duration, FcClass, Time, Vc};

/// A fabric that runs. Made by a [`Builder`](crate::Builder).
pub struct Fabric {
    pub(crate) now: Time,
    pub(crate) queue: EventQueue,
    pub(crate) tlps: TlpSlab,
    pub(crate) transactions: Transactions,
    pub(crate) ports: Vec<Port>,
    pub(crate) port_buffers: PortBuffers,
    pub(crate) nodes: Vec<Node>,
    pub(crate) root_node: NodeId,
    pub(crate) topology: Topology,
    pub(crate) device_infos: Vec<DeviceInfo>,
    pub(crate) enumeration: Enumeration,
    pub(crate) length_only: bool,
    pub(crate) warmup: Time,
    pub(crate) flows: Vec<FlowStatistics>,
    pub(crate) timeline: Timeline,
    pub(crate) samples: Samples,
    pub(crate) hash: TraceHash,
    pub(crate) probe: Option<Box<dyn Probe>>,
    /// What is to be done before the next event, in order.
    pub(crate) agenda: VecDeque<Task>,
    /// Requesters that may have TLPs to make.
    pub(crate) pumps: VecDeque<NodeId>,
    /// Devices with clocks.
    pub(crate) clocked: Vec<NodeId>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) outside: Vec<(Time, NodeId, DeviceEvent)>,
    pub(crate) outside_host: Vec<(Time, usize, HostEvent)>,
    pub(crate) errors: ErrorLog,
    pub(crate) outages: Vec<Outage>,
    pub(crate) protocol_errors: Vec<(Time, PortId, ProtocolError)>,
    /// Why the run cannot go on, and who says so.
    pub(crate) fault: Option<String>,
    pub(crate) events: u64,
    pub(crate) ended: u64,
    pub(crate) refused: u64,
    pub(crate) unexpected: u64,
    pub(crate) interrupts: u64,
    pub(crate) messages: u64,
    // Allocations that live from event to event.
    pub(crate) link_events: Vec<LinkEvent<TlpHandle>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) host_actions: Vec<HostAction>,
}

/// Something to do at once, but not in the middle of something else.
#[derive(Debug)]
pub(crate) enum Task {
    /// The requester of a node may have TLPs to make.
    Pump(NodeId),
    /// A device hears of something.
    Tell { node: NodeId, event: DeviceEvent },
    /// A host program hears of something.
    TellHost { program: usize, event: HostEvent },
    /// The owner of an operation hears how it ended.
    Over { node: NodeId, owner: u16, op: OpId, result: Option<Result<Payload, DmaError>> },
    /// A function reports an error.
    Report(Report),
}

impl Fabric {
    /// The time of the next event; `None` if nothing will ever happen again.
    pub fn next_event(&mut self) -> Option<Time> {
        self.upcoming(Time::NEVER)
    }

    /// The same for one who may act at `until`: devices with clocks run no further, so what they put out later is not known yet.
    pub fn next_event_until(&mut self, until: Time) -> Option<Time> {
        self.upcoming(until)
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles events up to and including `until`, and moves the clock there.
    pub fn run_until(&mut self, until: Time) {
        while self.upcoming(until).is_some_and(|next| next <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Handles at most `events` events, none after `until`. Returns whether there is more to do before `until`.
    pub fn run_events(&mut self, events: u64, until: Time) -> bool {
        for _ in 0..events {
            if self.fault.is_some() || self.is_done() || self.upcoming(until).is_none_or(|next| next > until)
            {
                return false;
            }
            self.step();
        }
        true
    }

    /// Handles the next event.
    pub fn step(&mut self) {
        if !self.clocked.is_empty() {
            self.upcoming(Time::NEVER);
        }
        let Some((time, event)) = self.queue.pop() else { return };
        self.now = time;
        self.events += 1;
        self.dispatch(event);
        self.settle();
    }

    /// Why the run failed: the component and its message.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    pub(crate) fn fail(&mut self, node: NodeId, message: String) {
        let name = &self.topology.nodes[node.index()].name;
        self.fault.get_or_insert_with(|| format!("{name}: {message}"));
    }

    /// Have all devices and programs that said what they have to do said that it is done?
    pub fn is_done(&self) -> bool {
        !self.workers.is_empty() && self.workers.iter().all(|w| w.finished) && self.transactions.live() == 0
    }

    pub(crate) fn settle(&mut self) {
        while let Some(task) = self.next_task() {
            match task {
                Task::Pump(node) => self.pump(node),
                Task::Tell { node, event } => self.tell(node, event),
                Task::TellHost { program, event } => self.tell_host(program, event),
                Task::Over { node, owner, op, result } => self.tell_over(node, owner, op, result),
                Task::Report(report) => self.send_report(report),
            }
        }
    }

    /// Requesters come last: by then all that changes what they may do has changed.
    fn next_task(&mut self) -> Option<Task> {
        self.agenda.pop_front().or_else(|| self.pumps.pop_front().map(Task::Pump))
    }

    /// The requester of `node` may have TLPs to make, soon.
    pub(crate) fn pump_soon(&mut self, node: NodeId) {
        if !self.pumps.contains(&node) {
            self.pumps.push_back(node);
        }
    }

    fn tell_over(&mut self, node: NodeId, owner: u16, op: OpId, result: Option<Result<Payload, DmaError>>) {
        if node == self.root_node {
            let event = match result {
                Some(result) => HostEvent::MmioReadDone { op, result },
                None => HostEvent::MmioWriteAccepted { op },
            };
            self.tell_host(usize::from(owner), event);
        } else if op.0 >= self.end_point(node).first_op {
            let event = match result {
                Some(result) => DeviceEvent::DmaReadDone { op, result },
                None => DeviceEvent::DmaWriteAccepted { op },
            };
            self.tell(node, event);
        }
    }

    fn dispatch(&mut self, event: Event) {
        let port = PortId(event.at as u16);
        match event.kind {
            EventKind::TransmitDone => self.transmit_done(port, Time::from_fs(event.data)),
            EventKind::UnitArrived => self.unit_arrived(port),
            EventKind::HeaderArrived => self.header_arrived(port),
            EventKind::Processed => self.processed(port, TlpHandle::from_event(event.data)),
            EventKind::ForwardEarly => self.forward_early(port, event.data),
            EventKind::Entered => self.entered(port),
            EventKind::Released => self.released(port, event.data),
            EventKind::LinkTimer => self.link_timer(port, Time::from_fs(event.data)),
            EventKind::LinkState => self.link_state(port, event.data),
            EventKind::Answer => self.send_completions(port, TlpHandle::from_event(event.data)),
            EventKind::Submit => self.submit(self.event_node(event.at)),
            EventKind::MemoryDone => {
                self.memory_done(TlpHandle::from_event(event.data & 0xFFFF_FFFF), high_port(event.data));
            }
            EventKind::MemoryAccept => {
                self.memory_accepts(TlpHandle::from_event(event.data & 0xFFFF_FFFF), high_port(event.data));
            }
            EventKind::RequesterTimer => {
                self.requester_timer(self.event_node(event.at), Time::from_fs(event.data));
            }
            EventKind::LineReady => self.try_transmit(port),
            EventKind::Translated => {
                self.goes_to_memory(high_port(event.data), TlpHandle::from_event(event.data & 0xFFFF_FFFF));
            }
            EventKind::OwnAnswer => self.own_answer(),
            EventKind::HostStage => self.host_stage(event.data),
            EventKind::HandlerOver => self.handler_over(event.data),
            EventKind::Terminated => self.terminated(port, TlpHandle::from_event(event.data)),
            EventKind::Clocked => self.clocked(self.event_node(event.at), Time::from_fs(event.data)),
            EventKind::Bus => self.bus_event(port, event.data),
            EventKind::Cancelled => {}
            EventKind::ProgramTimer => self.program_timer(self.event_node(event.at), event.data),
        }
    }

    fn program_timer(&mut self, node: NodeId, data: u64) {
        if node == self.root_node {
            let id = data & 0xFFFF_FFFF_FFFF;
            self.tell_host((data >> 48) as usize, HostEvent::Timer { id });
        } else {
            self.tell(node, DeviceEvent::Timer { id: data });
        }
    }

    fn link_timer(&mut self, id: PortId, due: Time) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        if port.timer != due {
            return; // an earlier deadline came up meanwhile, and its event with it
        }
        port.timer = std::mem::replace(&mut port.later_timer, Time::NEVER);
        if port.engine.deadline().is_some_and(|(due, _)| due <= now) {
            let mut events = std::mem::take(&mut self.link_events);
            let timeouts = port.engine.counters().replay_timeouts;
            port.engine.handle_timeout(now, &mut |event| events.push(event));
            if port.engine.counters().replay_timeouts > timeouts {
                self.detect(id, ErrorKind::ReplayTimer, None);
            }
            for event in events.drain(..) {
                self.link_event(id, event, None);
            }
            self.link_events = events;
            self.try_transmit(id);
        }
        self.arm(id);
    }

    pub(crate) fn schedule(&mut self, time: Time, kind: EventKind, at: u32, data: u64) {
        debug_assert!(time >= self.now, "an event in the past");
        self.queue.push(time, Event { kind, at, data });
    }

    /// Nodes are numbered after the ports in events and places.
    pub(crate) fn node_event(&self, node: NodeId) -> u32 {
        self.ports.len() as u32 + u32::from(node.0)
    }
    fn event_node(&self, at: u32) -> NodeId {
        NodeId((at - self.ports.len() as u32) as u16)
    }
    pub(crate) fn place_of(&self, node: NodeId) -> Place {
        Place(self.ports.len() as u16 + node.0)
    }
    /// From the arrival of a TLP in the receive buffer of a port to the node's decision about it.
    pub(crate) fn latency_at(&self, port: PortId) -> Duration {
        let latency = self.ports[port.index()].latency.unwrap_or_else(|| self.node_of(port).latency());
        let stage = self.ports[port.index()].stages.as_ref().and_then(|stages| stages.rx_transaction);
        stage.map_or(latency, |stage| latency + stage.delay)
    }
    pub(crate) fn node_of(&self, port: PortId) -> &Node {
        &self.nodes[self.ports[port.index()].node.index()]
    }

    pub(crate) fn finished(&mut self, node: NodeId, owner: usize) {
        if let Some(worker) = self.workers.iter_mut().find(|w| w.node == node && w.owner == owner) {
            worker.finished = true;
        }
    }

    /// A place lets go of a TLP.
    pub(crate) fn drop_tlp(&mut self, tlp: TlpHandle) {
        if let Some((transaction, awaited)) = self.tlps.release(tlp) {
            self.tlp_gone(tlp, transaction, awaited, None);
        }
    }

    /// The same of the transmitter `port`, whose link is down.
    pub(crate) fn lose_tlp(&mut self, port: PortId, tlp: TlpHandle) {
        if let Some((transaction, awaited)) = self.tlps.release(tlp) {
            self.tlp_gone(tlp, transaction, awaited, Some(port));
        }
    }

    pub(crate) fn payload_arrived(&mut self, flow: FlowId, bytes: u64) {
        if self.now >= self.warmup && bytes > 0 {
            self.flows[flow.index()].arrived(self.now, bytes, &mut self.timeline);
        }
    }

    /// A transaction ends; `last` is the TLP that brought its last byte.
    pub(crate) fn end_transaction(
        &mut self,
        transaction: TransactionRef,
        last: Option<TlpHandle>,
        ending: Ending,
    ) {
        let now = self.now;
        let known = last
            .map(|tlp| (tlp, self.tlps.get(tlp)))
            .filter(|(_, tlp)| tlp.tracked && (ending == Ending::Done || tlp.ledger.charged() == now));
        let known = known.map(|(tlp, _)| tlp);
        let trail = if known.is_none() { self.trail(transaction) } else { Ledger::default() };
        let ledger = known.map_or(&trail, |tlp| &self.tlps.get(tlp).ledger);
        debug_assert_eq!(ledger.charged(), now, "the causes sum to the latency");
        let record = self.transactions.get(transaction);
        let flow = &mut self.flows[record.flow.index()];
        let latency = now - record.started;
        self.ended += 1;
        if now >= self.warmup {
            if ending == Ending::Done {
                let causes = flow.ended(latency, ledger);
                let (flow, started) = (record.flow, record.started);
                self.samples.offer(|| Sample::new(flow, started, latency, causes, ledger));
            } else {
                flow.failed(ending, latency, ledger);
            }
        }
        if let Some(probe) = &mut self.probe {
            probe.transaction(&TransactionRecord {
                number: record.number,
                flow: record.flow,
                read: record.read,
                address: record.address,
                bytes: record.bytes,
                start: record.started,
                end: now,
                ending,
                intervals: ledger.intervals(),
            });
        }
        self.transactions.close(transaction);
    }

    /// Queue and replay buffer of a port, over time.
    pub(crate) fn measure_levels(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        let series = &mut port.series;
        self.timeline.set(&mut series.queue, now, port.egress.len() as u64);
        self.timeline.set(&mut series.replay_buffer, now, u64::from(port.engine.replay_occupancy().tlps));
    }

    /// Credits that the peer of a port has given for a class and that are taken, over time.
    pub(crate) fn measure_credits(&mut self, id: PortId, class: FcClass) {
        let now = self.now;
        let port = &mut self.ports[id.index()];
        let left = port.engine.credits(Vc::ZERO, class);
        port.series.headers.left(&mut self.timeline, now, class.index(), left.header);
        port.series.data.left(&mut self.timeline, now, class.index(), left.data);
    }

    pub(crate) fn own_ports(&self, node: NodeId) -> &[PortId] {
        match &self.nodes[node.index()] {
            Node::EndPoint(end_point) => std::slice::from_ref(&end_point.port),
            Node::Root(root) => &root.ports,
            Node::Switch(switch) => &switch.ports,
            Node::Bridge(bridge) => &bridge.ports,
        }
    }
}

fn high_port(data: u64) -> PortId {
    PortId((data >> 32) as u16)
}
