//! The programs of the host, and what they ask for.

use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::initiator::{Initiate, Operation, OperationKind};
use crate::node::root::Root;
use tlplab_device::{HostAction, HostContext, HostEvent, HostMemory, HostProgram, OpId};

/// A host program and its part of the processor.
pub(crate) struct Program {
    /// Absent if it is driven from outside.
    pub(crate) program: Option<Box<dyn HostProgram>>,
    pub(crate) next_op: u64,
    /// Its stream 0 in the processor's requester, and how many it has.
    pub(crate) streams: (u16, u16),
}

impl Root {
    /// A host program handles an event, and what it asks for is carried out. The event, if the program is driven from outside.
    pub(crate) fn tell(&mut self, cx: &mut Context, program: usize, event: HostEvent) -> Option<HostEvent> {
        let slot = &mut self.programs[program];
        let Some(running) = &mut slot.program else { return Some(event) };
        let mut actions = std::mem::take(&mut cx.agenda.host_actions);
        let memory: &mut dyn HostMemory = &mut self.memory;
        let (now, length_only) = (cx.now(), cx.length_only);
        let mut host_cx = HostContext::new(now, &cx.devices, memory, &mut slot.next_op, &mut actions)
            .with_length_only(length_only);
        running.handle(&mut host_cx, event);
        for action in actions.drain(..) {
            self.carry_out(cx, program, action);
        }
        cx.agenda.host_actions = actions;
        None
    }

    /// A number for an operation of a program driven from outside.
    pub(crate) fn next_op(&mut self, program: usize) -> OpId {
        let slot = &mut self.programs[program];
        slot.next_op += 1;
        OpId(slot.next_op - 1)
    }

    /// Carries out the actions of a host program.
    pub(crate) fn carry_out(&mut self, cx: &mut Context, program: usize, action: HostAction) {
        let asked = cx.now();
        let node = self.node;
        let (first, count) = self.programs[program].streams;
        let operation = |stream: u16, kind| {
            // Streams beyond those its flows name share the last one.
            let stream = first + stream.min(count - 1);
            Operation { owner: program as u16, stream, asked, kind }
        };
        match action {
            HostAction::MmioRead { op, stream, address, bytes, carry } => {
                self.begin(cx, operation(stream, OperationKind::Read { op, address, bytes, carry }));
            }
            HostAction::MmioWrite { op, stream, address, data } => {
                self.begin(cx, operation(stream, OperationKind::Write { op, address, data }));
            }
            HostAction::Timer { at, id } => {
                // Programs number their timers themselves; the program's number goes on top.
                let event = cx.node_event(node);
                let data = (program as u64) << 48 | (id & 0xFFFF_FFFF_FFFF);
                cx.schedule(at.max(cx.now()), EventKind::ProgramTimer, event, data);
            }
            HostAction::Finished => cx.finished(node, program),
            HostAction::Fault(message) => cx.fail(node, message),
        }
    }
}
