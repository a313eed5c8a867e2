//! Work that is due at once, but not in the middle of other work: it is done after the present event, in order.

use super::errors::Detection;
use crate::kernel::ids::NodeId;
use crate::packet::slab::Hold;
use std::collections::VecDeque;
use tlplab_device::{Action, DmaError, Event as DeviceEvent, HostAction, HostEvent, OpId};
use tlplab_transaction::Payload;

/// Something to do.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A device hears of something.
    Tell { node: NodeId, event: DeviceEvent },
    /// A host program hears of something.
    TellHost { program: usize, event: HostEvent },
    /// The owner of an operation hears how it ended.
    Over { node: NodeId, owner: u16, op: OpId, result: Option<Result<Payload, DmaError>> },
    /// A message signalled interrupt is at the interrupt controller.
    Message { address: u64, data: u32 },
    /// The handlers of a legacy interrupt are called.
    Wire { wire: u8 },
    /// Functions record and report an error.
    Report(Box<Detection>),
    /// A node has one place more for TLPs that wait further on.
    LeftHold(Hold),
    /// The root complex has sent the last completion of an answer.
    Answered,
}

/// Tasks, in order; requesters come last, since by then all that changes what they may do has changed.
#[derive(Clone, Default)]
pub(crate) struct Agenda {
    tasks: VecDeque<Task>,
    /// Requesters that may have TLPs to make.
    pumps: VecDeque<NodeId>,
    // Allocations that live from event to event.
    pub(crate) actions: Vec<Action>,
    pub(crate) host_actions: Vec<HostAction>,
}

impl Agenda {
    #[inline]
    pub(crate) fn push(&mut self, task: Task) {
        self.tasks.push_back(task);
    }

    /// The requester of `node` may have TLPs to make, soon.
    #[inline]
    pub(crate) fn pump(&mut self, node: NodeId) {
        if !self.pumps.contains(&node) {
            self.pumps.push_back(node);
        }
    }

    #[inline]
    pub(crate) fn next_task(&mut self) -> Option<Task> {
        self.tasks.pop_front()
    }

    /// The next requester, once there is no task.
    #[inline]
    pub(crate) fn next_pump(&mut self) -> Option<NodeId> {
        self.pumps.pop_front()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.pumps.is_empty()
    }

    /// The errors that are to be reported.
    pub(crate) fn detections(&mut self) -> impl Iterator<Item = &mut Detection> {
        self.tasks.iter_mut().filter_map(|task| match task {
            Task::Report(detection) => Some(&mut **detection),
            _ => None,
        })
    }

    /// A device hears nothing of what it was to be told.
    pub(crate) fn forget_device(&mut self, device: NodeId) {
        self.tasks.retain(|task| !matches!(task, Task::Tell { node, .. } if *node == device));
    }
}
