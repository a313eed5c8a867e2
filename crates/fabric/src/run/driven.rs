//! Driving a simulation from outside.

use crate::kernel::ids::NodeId;
use crate::node::hardware::Hardware;
use crate::run::Fabric;
use tlplab_device::{Action, Event, HostAction, HostEvent, HostMemory, OpId};
use tlplab_units::Time;

/// A simulation whose clock somebody else owns: a guest, RTL, another simulator.
///
/// The owner goes round: [`next_event_until`](Self::next_event_until) says how far time may pass before anything happens, [`advance_until`](Self::advance_until)
/// lets it pass, [`take_told`](Self::take_told) gives the events of devices and host programs that are outside, and these act. No
/// simulated time passes while they do, and however short the strides of the owner are, the run is the same.
///
/// Implemented by a [`Fabric`] and by a run of an experiment, which counts, warms up and stops besides.
pub trait Driven {
    /// The reason that time cannot pass any more.
    type Failure;

    /// The present.
    fn now(&self) -> Time;

    /// The time of the next event; `None` if nothing will ever happen by itself. The owner may act at `until`: devices with clocks run
    /// no further, so their outputs after that are not known yet.
    fn next_event_until(&mut self, until: Time) -> Option<Time>;

    /// Lets time pass up to and including `until`, or until a party outside is told something. With [`Time::NEVER`] the clock stays at
    /// the last event. A run that is over stands still.
    ///
    /// # Errors
    /// [`Self::Failure`], once a device or a program has failed.
    fn advance_until(&mut self, until: Time) -> Result<(), Self::Failure>;

    /// The events of parties outside since the last call.
    fn take_told(&mut self) -> Told;

    /// A number for an operation of an outside device.
    fn next_device_op(&mut self, device: NodeId) -> OpId;

    /// An outside device acts, now.
    fn device_acts(&mut self, device: NodeId, action: Action);

    /// A number for an operation of an outside host program.
    fn next_host_op(&mut self, program: usize) -> OpId;

    /// An outside host program acts, now.
    fn host_acts(&mut self, program: usize, action: HostAction);

    /// Host memory, which its owner accesses without taking simulated time.
    fn host_memory(&mut self) -> &mut (dyn HostMemory + Send);
}

/// Events of parties outside, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Of devices: when, which, what.
    pub devices: Vec<(Time, NodeId, Event)>,
    /// Of host programs, numbered in the order in which they were added: when, which, what.
    pub programs: Vec<(Time, usize, HostEvent)>,
}

impl Told {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.programs.is_empty()
    }
}

impl Driven for Fabric {
    /// The component that did what it may not, and what that was.
    type Failure = String;

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn next_event_until(&mut self, until: Time) -> Option<Time> {
        self.upcoming(until)
    }

    fn advance_until(&mut self, until: Time) -> Result<(), String> {
        while self.told.is_empty() && self.fault().is_none() {
            if !self.step_until(until) {
                if until != Time::NEVER {
                    self.run_until(until);
                }
                break;
            }
        }
        self.fault().map_or(Ok(()), |fault| Err(fault.into()))
    }

    fn take_told(&mut self) -> Told {
        std::mem::take(&mut self.told)
    }

    fn next_device_op(&mut self, device: NodeId) -> OpId {
        self.hardware.nodes.end_point_mut(device).next_op()
    }

    fn device_acts(&mut self, device: NodeId, action: Action) {
        let Hardware { cx, nodes } = &mut self.hardware;
        nodes.end_point_mut(device).carry_out(cx, action);
        self.hardware.take_arrivals();
        self.settle();
    }

    fn next_host_op(&mut self, program: usize) -> OpId {
        self.hardware.nodes.root_mut().next_op(program)
    }

    fn host_acts(&mut self, program: usize, action: HostAction) {
        let Hardware { cx, nodes } = &mut self.hardware;
        nodes.root_mut().carry_out(cx, program, action);
        self.hardware.take_arrivals();
        self.settle();
    }

    fn host_memory(&mut self) -> &mut (dyn HostMemory + Send) {
        &mut self.hardware.nodes.root_mut().memory
    }
}
