//! Frames between a state machine and the outside: two bounded queues, which both sides hold.

use super::port::Port;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_transaction::Payload;

/// Frames that wait in a direction at most; one more is dropped and counted, as an Ethernet does.
pub const CAPACITY: usize = 1024;

/// The timer with which a NIC or its driver is woken after frames were put in from outside: it is to come now.
pub const FRAMES: u64 = 0;

/// Frames to and from a state machine: a [`Port`] of a NIC, or the stack above a driver. Somebody outside holds a clone.
#[derive(Clone, Debug, Default)]
pub struct Frames(Arc<Mutex<Queues>>);

#[derive(Clone, Debug, Default)]
struct Queues {
    inward: VecDeque<Payload>,
    outward: VecDeque<Payload>,
    dropped: Dropped,
}

/// Frames that found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// On their way to the state machine.
    pub inward: u64,
    /// On their way to the outside.
    pub outward: u64,
}

impl Frames {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // A holder that panicked has left whole frames.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the outside: a frame for the state machine. False if it found no room.
    pub fn put(&self, frame: Payload) -> bool {
        let mut queues = self.queues();
        let room = queues.inward.len() < CAPACITY;
        if room {
            queues.inward.push_back(frame);
        } else {
            queues.dropped.inward += 1;
        }
        room
    }

    /// For the outside: the next frame that the state machine has sent.
    pub fn take(&self) -> Option<Payload> {
        self.queues().outward.pop_front()
    }

    /// The frames dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.queues().dropped
    }

    /// For the state machine: a frame for the outside, dropped if it finds no room.
    pub(crate) fn give(&self, frame: Payload) {
        let mut queues = self.queues();
        if queues.outward.len() < CAPACITY {
            queues.outward.push_back(frame);
        } else {
            queues.dropped.outward += 1;
        }
    }

    /// For the state machine: the next frame from the outside.
    pub(crate) fn next(&self) -> Option<Payload> {
        self.queues().inward.pop_front()
    }
}

impl Port for Frames {
    fn send(&mut self, frame: Payload) -> Result<(), Payload> {
        self.give(frame);
        Ok(())
    }
    fn receive(&mut self) -> Option<Payload> {
        self.next()
    }
    fn dropped(&self) -> u64 {
        Self::dropped(self).inward
    }
}
