//! The running numbers of adapters.
//!
//! An adapter numbers what it sends and stamps it with a clock of its own; software sends zeros. Behind one address there may be several
//! counters: two adapters, as in the captures of figure 13, or a program that counts in each of its threads by one clock. The clock of the
//! stamps and that of the capture drift apart, by a second on a busy machine, so numbers decide, and a loss is told only if it is proven:
//!
//! * A number that follows one that was seen is of that counter. Stamps of a counter rise with its numbers: what was passed over and is stamped
//!   in between is late; what was passed over and is stamped later shows that what is behind the leap is another counter's.
//! * A leap over up to 4095 numbers is a loss, unless the clocks disagree by more than a second, and as soon as a port that was used before it is
//!   used behind it: counters of one clock do not share ports.
//! * After a leap over more, only time decides whether it is the same counter: port and clock have to be the same, the latter to a
//!   millisecond and what it is off from number to number; it must not begin anew, below 4096; and the old counter has to stay silent. Otherwise
//!   the place is `unproven`.
//! * Numbers have 16 bits: of a leap, whole rounds of 65536 are not seen.
//! * A datagram that could not be read may have any number: as many as there are, are not missing.

mod counter;
mod mark;

pub use counter::Sequences;

use counter::{Counter, Fit, Place};
use mark::Mark;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tlplab_wire::nettlp::Header;

/// More counters than this behind one address are not followed at once.
const MOST: usize = 64;
/// A port is held for a counter's own when so many in a row came by it.
const ITS_OWN: u32 = 8;
/// Counters that turned out to be two: as many may be told apart in the end.
const PARTED: u32 = 8;
/// Datagrams that are remembered, to recognise copies.
const REMEMBERED: usize = 1 << 16;

/// The counters of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    counters: Vec<Counter>,
    ids: u32,
    /// By port, the counter that took the last datagram there, and how many in a row.
    owners: BTreeMap<u16, (u32, u32)>,
    parted: u32,
    copies: Copies,
    unread: u64,
    found: Sequences,
}

impl Counters {
    /// A datagram was captured at `fs`, from or to this port.
    pub(super) fn see(&mut self, header: Header, port: u16, fs: i128) {
        let mark = Mark::new(header, fs);
        let owner = self.owners.get(&port).filter(|(_, times)| *times >= ITS_OWN).map(|(id, _)| *id);
        let places = self.counters.iter().enumerate();
        let places = places.filter_map(|(n, counter)| Some((n, counter.place(mark, port)?)));
        // Two counters of one clock do not share a port.
        let others = |n: usize| owner.is_some_and(|owner| owner != self.counters[n].id);
        let best = places.min_by_key(|(n, (fit, ..))| (others(*n), *fit));
        // Who does not count sends zeros, and who does comes by them, too.
        let follows = |(_, (fit, ..)): &(usize, (Fit, Place, Mark))| fit.0 == 0;
        if header == Header::default() && !best.as_ref().is_some_and(follows) {
            return;
        }
        if !self.copies.add(header, port) {
            self.found.duplicates += 1;
            return;
        }
        match best {
            Some((n, (_, place, mark))) => self.take(n, place, mark, port),
            None => self.begin(mark, port),
        }
    }

    /// A datagram was captured whose number could not be read.
    pub(super) fn unread(&mut self) {
        self.unread += 1;
    }

    fn take(&mut self, n: usize, place: Place, mark: Mark, port: u16) {
        let counter = &mut self.counters[n];
        match place {
            Place::Ahead => counter.ahead(mark, port, &mut self.found),
            Place::Late(key) => counter.late(key, mark, port),
            Place::Overtaken => counter.overtaken(mark, port),
            Place::GoesOn(key) => {
                (self.ids, self.parted) = (self.ids + 1, self.parted + 1);
                let own = self.owners.iter().filter(|(_, (id, _))| *id == counter.id);
                let behind = counter.part(key, self.ids, own.map(|(port, _)| *port).collect());
                counter.ahead(mark, port, &mut self.found);
                self.counters.extend(behind);
            }
        }
        if matches!(place, Place::Late(_) | Place::Overtaken) {
            self.found.reordered += 1;
            return;
        }
        let sent = self.counters[n].id;
        let owner = self.owners.entry(port).or_default();
        *owner = if owner.0 == sent { (sent, owner.1.saturating_add(1)) } else { (sent, 1) };
        for other in &mut self.counters {
            if other.ancestor.as_ref().is_some_and(|ancestor| ancestor.id == sent) {
                other.ancestor_sent(mark);
            }
        }
    }

    /// A counter is seen for the first time, or after a great leap.
    fn begin(&mut self, mark: Mark, port: u16) {
        let taken =
            |id| self.counters.iter().any(|other| other.ancestor.as_ref().is_some_and(|a| a.id == id));
        let silent = self.counters.iter().filter(|counter| !taken(counter.id));
        let latest = silent.filter_map(|c| Some((c.newest.at, c.ancestor_of(mark, port)?)));
        let ancestor = latest.max_by_key(|(at, _)| *at).map(|(_, ancestor)| ancestor);
        if self.counters.len() == MOST
            && let Some((oldest, _)) = self.counters.iter().enumerate().min_by_key(|(_, c)| c.newest.at)
        {
            self.counters.swap_remove(oldest).judge(&mut self.found);
        }
        self.ids += 1;
        self.counters.push(Counter::new(self.ids, mark, port, ancestor));
    }

    pub(super) fn finish(mut self) -> Sequences {
        let (joined, twice) = self.mixed_up();
        self.counters.into_iter().for_each(|counter| counter.judge(&mut self.found));
        let found = &mut self.found;
        found.adapters -= joined;
        let proven = found.missing.saturating_sub(self.unread).saturating_sub(twice);
        if proven == 0 && found.missing > 0 {
            found.unproven += std::mem::take(&mut found.gaps);
        }
        found.missing = proven;
        self.found
    }
}

impl Counters {
    /// Counters of one clock that run in step may be mixed up before their ports are known, if some of their numbers are lost: then one ends where
    /// another begins. Gives how many of them are not counters of their own, and how many numbers are, or may be, counted twice.
    fn mixed_up(&self) -> (u32, u64) {
        let mut ended: Vec<&Counter> = self.counters.iter().collect();
        let mut begun = ended.clone();
        begun.sort_by_key(|counter| counter.begins());
        let (mut joined, mut twice) = (0, 0u64);
        for next in begun {
            let beside = |one: &Counter| {
                let mut others =
                    self.counters.iter().filter(|other| other.id != one.id && other.id != next.id);
                others.any(|other| other.runs_beside(next))
            };
            let found = ended.iter().enumerate().filter(|(_, one)| one.id != next.id && beside(one));
            let found = found.filter_map(|(n, one)| Some((one.goes_on_as(next)?, n)));
            if let Some((behind, n)) = found.min() {
                ended.swap_remove(n);
                (joined, twice) = (joined + 1, twice.saturating_add(behind));
            } else if self.counters.iter().any(|other| other.is_mixed_with(next, self.parted > PARTED)) {
                twice = u64::MAX; // nobody knows
            }
        }
        (joined, twice)
    }
}

/// The last datagrams, by port, number and stamp.
#[derive(Clone, Debug, Default)]
struct Copies {
    order: VecDeque<u64>,
    known: BTreeSet<u64>,
}

impl Copies {
    /// Adds one; false if it was there already.
    fn add(&mut self, header: Header, port: u16) -> bool {
        let Header { sequence, timestamp } = header;
        let new = u64::from(port) << 48 | u64::from(sequence) << 32 | u64::from(timestamp);
        if !self.known.insert(new) {
            return false;
        }
        self.order.push_back(new);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests;
