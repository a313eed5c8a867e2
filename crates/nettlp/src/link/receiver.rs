//! What has come: in order once, whatever the network does.

use super::sender::WINDOW;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::link::{NUMBERS, distance};

/// How long an acknowledgement waits for a TLP that takes it along, and how many TLPs one stands for at most.
const PUT_OFF: Duration = Duration::from_us(100);
const MOST_UNTOLD: u32 = 32;

/// What a TLP's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is its turn.
    Now,
    /// An earlier one has not come: it is kept.
    Early,
    /// It was there.
    Twice,
    /// Further ahead than anybody sends.
    Beyond,
}

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// The number whose turn it is.
    next: u32,
    /// What came early: the first place is that of `next`, and always empty.
    early: VecDeque<Option<(u16, Box<[u8]>)>>,
    /// TLPs of which the peer has not been told that they came.
    untold: u32,
    /// When the first of these came.
    since: Time,
    /// The peer is to be told at once.
    urgent: bool,
}

impl Receiver {
    pub(super) fn new(next: u32) -> Self {
        Self { next, early: VecDeque::new(), untold: 0, since: Time::ZERO, urgent: false }
    }

    /// Notes a TLP. The peer is told at once if `posted` (nothing else answers it), or if anything is not as it should be.
    pub(super) fn note(&mut self, now: Time, number: u32, port: u16, tlp: &[u8], posted: bool) -> Turn {
        let ahead = distance(self.next, number) as usize;
        if self.untold == 0 {
            self.since = now;
        }
        self.untold += 1;
        self.urgent |= posted || ahead != 0 || !self.early.is_empty();
        if ahead == 0 {
            self.advance();
            return Turn::Now;
        }
        if ahead >= NUMBERS as usize / 2 {
            return Turn::Twice;
        }
        if ahead >= 2 * WINDOW {
            return Turn::Beyond;
        }
        self.early.resize_with(self.early.len().max(ahead + 1), || None);
        let place = &mut self.early[ahead];
        if place.is_some() {
            return Turn::Twice;
        }
        *place = Some((port, tlp.into()));
        Turn::Early
    }

    fn advance(&mut self) {
        self.next = (self.next + 1) % NUMBERS;
        self.early.pop_front();
    }

    /// What came early and whose turn it is now: port and TLP.
    pub(super) fn take(&mut self) -> Option<(u16, Box<[u8]>)> {
        let taken = self.early.front_mut()?.take()?;
        self.advance();
        Some(taken)
    }

    /// The first number that has not come.
    pub(super) fn missing(&self) -> u32 {
        self.next
    }
    /// Which of those behind it have.
    pub(super) fn beyond(&self) -> u64 {
        let places = self.early.iter().skip(1).take(64).enumerate();
        places.filter(|(_, place)| place.is_some()).fold(0, |bits, (at, _)| bits | 1 << at)
    }
    /// What is kept.
    pub(super) fn kept(&self) -> usize {
        self.early.iter().flatten().count()
    }

    /// A TLP takes along what has come in order; of gaps it says nothing.
    pub(super) fn told(&mut self) {
        if self.early.is_empty() {
            (self.untold, self.urgent) = (0, false);
        }
    }
    /// All is told.
    pub(super) fn told_all(&mut self) {
        (self.untold, self.urgent) = (0, false);
    }

    /// Is it time to tell?
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.urgent || self.deadline().is_some_and(|deadline| deadline <= now)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match self.untold {
            0 => None,
            _ if self.urgent || self.untold >= MOST_UNTOLD => Some(self.since),
            _ => Some(self.since + PUT_OFF),
        }
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.since = self.since.earlier(by);
    }
}
