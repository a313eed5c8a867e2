//! A cable that leads to another simulation.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// A signal on a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A frame, when its last byte is there.
    Frame(Payload),
    /// True if the sending end is ready for frames: its transceiver is on and has negotiated.
    Ready(bool),
}

/// A NIC's end of a cable whose other end is elsewhere. Somebody outside holds a clone: it takes what was sent, and brings what the other end
/// has sent, each with its time.
#[derive(Clone, Debug, Default)]
pub struct OpenEnd(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    sent: VecDeque<(Time, Signal)>,
    coming: VecDeque<(Time, Signal)>,
}

impl OpenEnd {
    /// Nothing is under way.
    pub fn new() -> Self {
        Self::default()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // A holder that panicked has left whole signals.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the outside: what the NIC has sent since the last call, and when it left.
    pub fn take_sent(&self) -> VecDeque<(Time, Signal)> {
        std::mem::take(&mut self.lines().sent)
    }

    /// For the outside: a signal that arrives at `at`. The NIC has to be woken then, by the timer [`SIGNAL`](super::SIGNAL).
    pub fn bring(&self, at: Time, signal: Signal) {
        self.lines().coming.push_back((at, signal));
    }

    pub(super) fn send(&self, now: Time, signal: Signal) {
        self.lines().sent.push_back((now, signal));
    }

    /// The next signal that has arrived.
    pub(super) fn arrived(&self, now: Time) -> Option<(Time, Signal)> {
        let mut lines = self.lines();
        lines.coming.front().filter(|(at, _)| *at <= now)?;
        lines.coming.pop_front()
    }

    /// The arrivals of the signals that are under way.
    pub(super) fn expected(&self) -> Vec<Time> {
        self.lines().coming.iter().map(|(at, _)| *at).collect()
    }

    /// The origin of time has moved on.
    pub(super) fn rebase(&self, by: Duration) {
        let mut lines = self.lines();
        let Lines { sent, coming } = &mut *lines;
        for (at, _) in sent.iter_mut().chain(coming) {
            *at = at.earlier(by);
        }
    }
}
