//! Received TLPs: in order and once, whatever the network does.

use super::sender::WINDOW;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::link::{NUMBERS, distance};

/// The time that an acknowledgement waits for a TLP to carry it, and the number of TLPs that it covers at most.
const PUT_OFF: Duration = Duration::from_us(100);
const MOST_UNTOLD: u32 = 32;

/// The meaning of a TLP's number.
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
    /// TLPs that came early: the first place is that of `next`, and always empty.
    early: VecDeque<Option<(u16, Box<[u8]>)>>,
    /// TLPs of which the peer has not been told that they came.
    untold: u32,
    /// The arrival of the first of these.
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

    /// The next TLP that came early and is now in order: port and TLP.
    pub(super) fn take(&mut self) -> Option<(u16, Box<[u8]>)> {
        let taken = self.early.front_mut()?.take()?;
        self.advance();
        Some(taken)
    }

    /// The first number that has not come.
    pub(super) fn missing(&self) -> u32 {
        self.next
    }
    /// The TLPs behind it that have.
    pub(super) fn beyond(&self) -> u64 {
        let places = self.early.iter().skip(1).take(64).enumerate();
        places.filter(|(_, place)| place.is_some()).fold(0, |bits, (at, _)| bits | 1 << at)
    }
    /// The number of TLPs kept.
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

    /// True if an acknowledgement is due.
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u32 = NUMBERS - 3;

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_us(n)
    }

    fn number(place: u32) -> u32 {
        (FIRST + place) % NUMBERS
    }

    /// Notes TLPs that are answered, at `at` µs.
    fn note(receiver: &mut Receiver, at: u64, place: u32) -> Turn {
        receiver.note(us(at), number(place), 0x3000 + place as u16, &[place as u8], false)
    }

    /// Numbers that wrap, from the first to behind all that is sent at a time, and before it.
    #[test]
    fn a_number_is_in_turn_early_twice_or_beyond() {
        let mut receiver = Receiver::new(FIRST);
        assert_eq!(note(&mut receiver, 0, 0), Turn::Now);
        assert_eq!((receiver.missing(), receiver.beyond(), receiver.kept()), (number(1), 0, 0));
        for (place, turn) in [
            (0, Turn::Twice),
            (3, Turn::Early),
            (3, Turn::Twice),
            (2, Turn::Early),
            (65, Turn::Early),
            (66, Turn::Early),
            (256, Turn::Early),
            (257, Turn::Beyond),
            (NUMBERS / 2, Turn::Beyond),
            (NUMBERS / 2 + 1, Turn::Twice),
        ] {
            assert_eq!(note(&mut receiver, 0, place), turn, "{place}");
        }
        // Of those behind the missing one: the first and second, and the last of 64 that are told.
        assert_eq!((receiver.missing(), receiver.beyond(), receiver.kept()), (number(1), 1 << 63 | 0b11, 5));
        assert_eq!(receiver.take(), None);
        assert_eq!(note(&mut receiver, 0, 1), Turn::Now);
        for place in [2u8, 3] {
            assert_eq!(receiver.take(), Some((0x3000 + u16::from(place), [place].into())));
        }
        assert_eq!(receiver.take(), None);
        assert_eq!((receiver.missing(), receiver.kept()), (number(4), 3));
    }

    #[test]
    fn an_acknowledgement_waits_for_a_tlp_that_takes_it_along() {
        let mut receiver = Receiver::new(FIRST);
        assert_eq!((receiver.deadline(), receiver.is_due(us(1000))), (None, false));
        note(&mut receiver, 10, 0);
        note(&mut receiver, 50, 1);
        assert_eq!(receiver.deadline(), Some(us(110)), "100 µs behind the first");
        assert!(!receiver.is_due(us(109)) && receiver.is_due(us(110)));
        receiver.told();
        assert_eq!(receiver.deadline(), None);
        // Another first one.
        note(&mut receiver, 200, 2);
        assert_eq!(receiver.deadline(), Some(us(300)));
        receiver.rebase(Duration::from_us(150));
        assert_eq!(receiver.deadline(), Some(us(150)));
        receiver.told_all();
        // No more than 32 are told at once.
        (3..34).for_each(|place| _ = note(&mut receiver, 300, place));
        assert_eq!(receiver.deadline(), Some(us(400)));
        note(&mut receiver, 301, 34);
        assert_eq!(receiver.deadline(), Some(us(300)));
        assert!(receiver.is_due(us(300)));
    }

    #[test]
    fn gaps_repetitions_and_posted_tlps_are_acknowledged_at_once() {
        let due = |prepare: &dyn Fn(&mut Receiver)| {
            let mut receiver = Receiver::new(FIRST);
            prepare(&mut receiver);
            receiver.is_due(us(1))
        };
        assert!(!due(&|receiver| _ = note(receiver, 1, 0)));
        assert!(due(&|receiver| _ = receiver.note(us(1), number(0), 0x3000, &[], true)));
        assert!(due(&|receiver| _ = note(receiver, 1, 1)));
        assert!(due(&|receiver| {
            note(receiver, 1, 0);
            note(receiver, 1, 0);
        }));
        // In turn, and a later one is there already.
        assert!(due(&|receiver| {
            note(receiver, 1, 1);
            receiver.told_all();
            note(receiver, 1, 0);
        }));
        // A TLP tells nothing of a gap, an acknowledgement does.
        let mut receiver = Receiver::new(FIRST);
        note(&mut receiver, 1, 1);
        receiver.told();
        assert!(receiver.is_due(us(1)));
        assert_eq!(receiver.deadline(), Some(us(1)));
        receiver.told_all();
        assert!(!receiver.is_due(us(1)));
    }
}
