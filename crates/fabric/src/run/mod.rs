//! The simulator: the hardware, the software on it, and the loop that goes from event to event. [`driven`] lets somebody else own the
//! clock, [`outside`] looks into it, [`clocks`] runs devices that have clocks, [`idle`] leaves out what idle links tell each other, [`results`] is read afterwards.

mod clocks;
pub(crate) mod driven;
mod idle;
mod outside;
pub mod results;
mod snapshot;

use crate::kernel::ids::NodeId;
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::node::Node;
use crate::node::hardware::Hardware;
use crate::run::driven::Told;
use crate::software::Software;
use tlplab_device::{DmaError, Event as DeviceEvent, HostEvent, OpId};
use tlplab_transaction::Payload;
use tlplab_units::Time;

/// A fabric that runs. Made by a [`Builder`](crate::Builder).
pub struct Fabric {
    pub(crate) hardware: Hardware,
    pub(crate) software: Software,
    /// Devices with clocks.
    pub(crate) clocked: Vec<NodeId>,
    /// Of devices and host programs that are driven from outside.
    pub(crate) told: Told,
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
        self.hardware.cx.now()
    }

    /// Handles events up to and including `until`, and moves the clock there.
    pub fn run_until(&mut self, until: Time) {
        while self.step_until(until) {}
        self.hardware.cx.kernel.advance_to(until);
    }

    /// Handles at most `events` events, none after `until`. Returns whether there is more to do before `until`.
    pub fn run_events(&mut self, events: u64, until: Time) -> bool {
        for _ in 0..events {
            if self.fault().is_some() || self.is_done() || !self.step_until(until) {
                return false;
            }
        }
        true
    }

    /// Handles the next event.
    pub fn step(&mut self) {
        self.step_until(Time::NEVER);
    }

    /// Handles the next event; false if none comes up to and including `until`.
    pub(super) fn step_until(&mut self, until: Time) -> bool {
        if !self.clocked.is_empty() {
            self.run_clocks(until);
        }
        let Some(event) = self.hardware.cx.kernel.pop_until(until) else { return false };
        if event.kind == EventKind::ProgramTimer {
            self.program_timer(self.hardware.cx.event_node(event.at), event.data);
        } else {
            self.hardware.dispatch(event);
        }
        if !self.hardware.cx.agenda.is_empty() {
            self.settle();
        }
        true
    }

    /// The reason that the run failed: the component and its message.
    pub fn fault(&self) -> Option<&str> {
        self.hardware.cx.fault.as_deref()
    }

    /// True if all devices and programs with a task have said that it is done.
    pub fn is_done(&self) -> bool {
        let cx = &self.hardware.cx;
        !cx.workers.is_empty() && cx.workers.iter().all(|w| w.finished) && cx.transactions.live() == 0
    }

    /// Works off the agenda that the present event has left.
    pub(crate) fn settle(&mut self) {
        loop {
            while let Some(task) = self.hardware.cx.agenda.next_task() {
                self.carry_out(task);
                self.hardware.take_arrivals();
            }
            let Hardware { cx, nodes } = &mut self.hardware;
            let Some(node) = cx.agenda.next_pump() else { return };
            if let Some(requester) = nodes[node].initiate() {
                requester.pump(cx);
            }
            self.hardware.take_arrivals();
        }
    }

    fn carry_out(&mut self, task: Task) {
        match task {
            Task::Tell { node, event } => self.tell(node, event),
            Task::TellHost { program, event } => self.tell_host(program, event),
            Task::Over { node, owner, op, result } => self.tell_over(node, owner, op, result),
            Task::Message { address, data } => {
                self.tell_programs(&self.software.interrupt_of_message(address, data));
            }
            Task::Wire { wire } => {
                let interrupts = self.software.interrupts_of_wire(wire);
                interrupts.iter().for_each(|interrupt| self.tell_programs(interrupt));
            }
            Task::Report(detection) => self.hardware.nodes.report(&mut self.hardware.cx, *detection),
            Task::LeftHold(hold) => {
                let Hardware { cx, nodes } = &mut self.hardware;
                match &mut nodes[hold.node] {
                    Node::Root(root) => root.free_entry(cx, hold),
                    Node::Switch(switch) => switch.free_entry(cx, hold),
                    Node::EndPoint(_) | Node::Bridge(_) | Node::Custom(_) => {}
                }
            }
            Task::Answered => {
                let now = self.now();
                self.hardware.nodes.root_mut().answered(now);
            }
        }
    }

    fn tell_over(&mut self, node: NodeId, owner: u16, op: OpId, result: Option<Result<Payload, DmaError>>) {
        match &self.hardware.nodes[node] {
            Node::EndPoint(end_point) if op.0 >= end_point.first_op => {
                let event = match result {
                    Some(result) => DeviceEvent::DmaReadDone { op, result },
                    None => DeviceEvent::DmaWriteAccepted { op },
                };
                self.tell(node, event);
            }
            Node::Root(_) => {
                let event = match result {
                    Some(result) => HostEvent::MmioReadDone { op, result },
                    None => HostEvent::MmioWriteAccepted { op },
                };
                self.tell_host(usize::from(owner), event);
            }
            _ => {}
        }
    }

    fn program_timer(&mut self, node: NodeId, data: u64) {
        if node == self.hardware.cx.host.node {
            let id = data & 0xFFFF_FFFF_FFFF;
            self.tell_host((data >> 48) as usize, HostEvent::Timer { id });
        } else {
            self.tell(node, DeviceEvent::Timer { id: data });
        }
        self.hardware.take_arrivals();
    }

    fn tell(&mut self, node: NodeId, event: DeviceEvent) {
        let Hardware { cx, nodes } = &mut self.hardware;
        if let Some(event) = nodes.end_point_mut(node).tell(cx, event) {
            self.told.devices.push((cx.now(), node, event));
        }
    }

    fn tell_host(&mut self, program: usize, event: HostEvent) {
        if self.software.program == Some(program) {
            return self.software.hears(&mut self.hardware, event);
        }
        let Hardware { cx, nodes } = &mut self.hardware;
        if let Some(event) = nodes.root_mut().tell(cx, program, event) {
            self.told.programs.push((cx.now(), program, event));
        }
    }

    /// Every program of the host hears of something.
    fn tell_programs(&mut self, event: &HostEvent) {
        for program in 0..self.hardware.nodes.root().programs.len() {
            self.tell_host(program, event.clone());
        }
    }
}
