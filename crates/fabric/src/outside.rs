//! Devices and host programs that are driven from outside: by Python, a socket, a guest.

use crate::kernel::ids::NodeId;
use crate::sim::Fabric;
use tlplab_device::{Action, Event, HostAction, HostEvent, HostMemory, InterruptMode, OpId, ReplyToken};
use tlplab_units::Time;

impl Fabric {
    /// The node called `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.topology.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u16))
    }

    /// Runs until somebody outside has to act, or `until`. Returns false when the run is over: nothing more happens before `until`.
    pub fn run_to_outside(&mut self, until: Time) -> bool {
        while self.outside.is_empty() && self.outside_host.is_empty() {
            if self.next_event_until(until).is_none_or(|next| next > until) {
                return false;
            }
            self.step();
        }
        true
    }

    /// What outside devices have been told since the last call: when, which, what.
    pub fn take_device_events(&mut self) -> Vec<(Time, NodeId, Event)> {
        std::mem::take(&mut self.outside)
    }

    /// What outside host programs have been told since the last call: when, which, what.
    pub fn take_host_events(&mut self) -> Vec<(Time, usize, HostEvent)> {
        std::mem::take(&mut self.outside_host)
    }

    /// A number for an operation of an outside device.
    pub fn next_device_op(&mut self, node: NodeId) -> OpId {
        self.next_op(node)
    }

    /// A number for an operation of an outside host program.
    pub fn next_host_op(&mut self, program: usize) -> OpId {
        let slot = &mut self.root().programs[program];
        slot.next_op += 1;
        OpId(slot.next_op - 1)
    }

    /// How software lets a device interrupt now.
    pub fn interrupt_mode(&mut self, node: NodeId) -> InterruptMode {
        self.end_point(node).function.space.interrupt_mode()
    }

    /// Does a read still wait for the answer of an outside device? After a reset it does not.
    pub fn is_asked(&self, token: ReplyToken) -> bool {
        self.tlps.is_asked(token.0)
    }

    /// An outside device acts, now.
    pub fn inject(&mut self, node: NodeId, action: Action) {
        self.carry_out(node, action);
        self.settle();
    }

    /// An outside host program acts, now.
    pub fn inject_host(&mut self, program: usize, action: HostAction) {
        self.carry_out_host(program, action);
        self.settle();
    }

    /// Host memory, which its owner accesses without taking simulated time.
    pub fn host_memory(&mut self) -> &mut (dyn HostMemory + Send) {
        &mut self.root().memory
    }
}
