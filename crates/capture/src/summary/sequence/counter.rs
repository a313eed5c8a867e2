//! A count: datagrams that one counter has numbered, as far as numbers and stamps tell.

use super::mark::{DRIFT, Mark, SECOND};
use std::collections::{BTreeMap, BTreeSet};

/// A leap over fewer numbers is held for one of the same counter; over more, only if time decides so.
pub(super) const NEAR: u64 = 4096;
/// A number this far below the first that was seen may have been overtaken by it.
const OVERTAKEN: u64 = 1024;
/// Numbers that come again: sixteen bits.
const RANGE: u64 = 1 << 16;
/// A clock is the same after a great leap if it agrees with the capture's by so much, and by twice what it did from number to number (but not by more than
/// the second).
const STEADY: i64 = SECOND / 1000;
const UNSTEADY: i64 = SECOND / 10;

/// The sequence numbers of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// Adapters that number what they send; more exactly, counters: a program may have one in each thread.
    pub adapters: u32,
    /// Places where numbers are missing, for certain.
    pub gaps: u64,
    /// Numbers that are missing and never came later, for certain.
    pub missing: u64,
    /// Datagrams whose number was there already.
    pub duplicates: u64,
    /// Datagrams that came after one with a higher number.
    pub reordered: u64,
    /// Places where numbers leap and prove nothing: datagrams are missing, or another counter begins.
    pub unproven: u64,
}

/// A place where numbers were passed over.
#[derive(Clone, Debug)]
struct Leap {
    before: Mark,
    after: Mark,
    /// Ports seen before it, until one of them is seen behind it: no port belongs to two counters of one clock.
    unproven: Option<BTreeSet<u16>>,
}

/// A counter that may be the same before a great leap.
#[derive(Clone, Debug)]
pub(super) struct Ancestor {
    pub(super) id: u32,
    /// Its last datagram; it is silent since.
    last: Mark,
    steps: Steps,
}

/// The steadiness of two clocks, from one number to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// The largest shift.
    most: i64,
    /// Their sum, and the time that it is of.
    sum: i64,
    time: i64,
}

/// A count.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) id: u32,
    first: Mark,
    pub(super) newest: Mark,
    /// By the number before.
    leaps: BTreeMap<u64, Leap>,
    /// Some leap may be unproven.
    tentative: bool,
    ports: BTreeSet<u16>,
    steps: Steps,
    pub(super) ancestor: Option<Ancestor>,
}

/// The possible place of a datagram in a count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Above all before it.
    Ahead,
    /// In a leap, with a stamp between those around it.
    Late(u64),
    /// In a leap, but stamped later than what is behind it: so that is another counter's, and this one goes on with the number before.
    GoesOn(u64),
    /// Below the first.
    Overtaken,
}

/// The quality of the fit: the kind of place, whether its port is new there, by how many numbers and ticks it is off.
pub(super) type Fit = (u8, bool, u64, i64);

impl Counter {
    pub(super) fn new(id: u32, mut first: Mark, port: u16, ancestor: Option<Ancestor>) -> Self {
        // There is room for what comes late, below.
        first.number += RANGE << 1;
        let (leaps, ports, steps) = (BTreeMap::new(), BTreeSet::from([port]), Steps::default());
        Self { id, first, newest: first, leaps, tentative: false, ports, steps, ancestor }
    }

    /// The best place of a datagram, if it has one, and its whole number there.
    pub(super) fn place(&self, mark: Mark, port: u16) -> Option<(Fit, Place, Mark)> {
        let foreign = !self.ports.contains(&port);
        let ahead = u64::from(mark.sequence().wrapping_sub(self.newest.sequence()));
        let above = Mark { number: self.newest.number + ahead, ..mark };
        let (passed, shift, agrees) =
            (self.newest.until(mark), self.newest.shift(mark).abs(), self.newest.agrees(mark));
        match ahead {
            1 if agrees && passed >= 0 => return Some(((0, foreign, 1, shift), Place::Ahead, above)),
            2..=NEAR if agrees && passed >= 0 => {
                return Some(((2, foreign, ahead, shift), Place::Ahead, above));
            }
            _ => {}
        }
        let below = self.newest.number - u64::from(self.newest.sequence().wrapping_sub(mark.sequence()));
        let within = self.inside(Mark { number: below, ..mark }, foreign);
        // Numbers that follow each other count for more than clocks that do not.
        within.or((ahead == 1).then_some(((3, foreign, 1, shift), Place::Ahead, above)))
    }

    /// The same for what is not above all.
    fn inside(&self, mark: Mark, foreign: bool) -> Option<(Fit, Place, Mark)> {
        if mark.number < self.first.number {
            let under = self.first.number - mark.number;
            let overtaken = under <= OVERTAKEN && mark.until(self.first) >= 0 && mark.agrees(self.first);
            let fit = (2, foreign, under, mark.shift(self.first).abs());
            return overtaken.then_some((fit, Place::Overtaken, mark));
        }
        let (&key, leap) = self.leaps.range(..mark.number).next_back()?;
        if mark.number >= leap.after.number {
            return None;
        }
        let (ahead, shift) = (mark.number - key, leap.before.shift(mark).abs());
        let older = leap.before.until(mark) < 0;
        let (class, place) = match mark.until(leap.after) {
            0.. if !older => (1, Place::Late(key)),
            _ if !leap.before.agrees(mark) => return None,
            // Two counters of one clock were mixed up, perhaps: then it is no new one, and its number is not missing.
            _ if older => (4, Place::Late(key)),
            _ => (if ahead == 1 { 0 } else { 2 }, Place::GoesOn(key)),
        };
        Some(((class, foreign, ahead, shift), place, mark))
    }

    /// Takes a datagram above all others.
    pub(super) fn ahead(&mut self, mark: Mark, port: u16, found: &mut Sequences) {
        if mark.number == self.newest.number + 1 {
            self.steps.add(self.newest, mark);
        } else {
            let unproven = (!self.ports.contains(&port)).then(|| self.ports.clone());
            self.tentative |= unproven.is_some();
            self.leaps.insert(self.newest.number, Leap { before: self.newest, after: mark, unproven });
        }
        self.newest = mark;
        self.add_port(port);
        // What is further back has its number again.
        while let Some(oldest) = self.leaps.first_entry().filter(|leap| leap.key() + RANGE <= mark.number) {
            oldest.remove().judge(found);
        }
    }

    /// Takes what a leap passed over and came late.
    pub(super) fn late(&mut self, key: u64, mark: Mark, port: u16) {
        let Some(Leap { before, after, unproven }) = self.leaps.remove(&key) else { return };
        for (before, after) in [(before, mark), (mark, after)] {
            if after.number > before.number + 1 {
                self.leaps.insert(before.number, Leap { before, after, unproven: unproven.clone() });
            }
        }
        self.add_port(port);
    }

    /// Takes what the first has overtaken.
    pub(super) fn overtaken(&mut self, mark: Mark, port: u16) {
        if mark.number + 1 < self.first.number {
            self.leaps.insert(mark.number, Leap { before: mark, after: self.first, unproven: None });
        }
        self.first = mark;
        self.add_port(port);
    }

    /// Gives what is behind a leap to a counter of its own, with these ports, and goes on with what is before it, by another name.
    pub(super) fn part(&mut self, key: u64, id: u32, ports: BTreeSet<u16>) -> Option<Self> {
        let mut behind = self.leaps.split_off(&key);
        let Leap { before, after, unproven } = behind.remove(&key)?;
        let before_it = unproven.unwrap_or_default();
        let ports = &ports - &before_it;
        let part = Self { first: after, leaps: behind, ancestor: None, ports, ..*self };
        self.ports = &(&self.ports - &part.ports) | &before_it;
        (self.id, self.newest) = (id, before);
        Some(part)
    }

    fn add_port(&mut self, port: u16) {
        self.ports.insert(port);
        if !self.tentative {
            return;
        }
        self.tentative = false;
        for leap in self.leaps.values_mut() {
            leap.unproven.take_if(|before| before.contains(&port));
            self.tentative |= leap.unproven.is_some();
        }
    }

    /// True if the counter that is new with `mark` may be this one, after a great leap.
    pub(super) fn ancestor_of(&self, mark: Mark, port: u16) -> Option<Ancestor> {
        let leap = u64::from(mark.sequence().wrapping_sub(self.newest.sequence()));
        // No counter runs faster than its clock, and who begins anew begins with 0 or 1.
        let possible =
            self.newest.until(mark) >= leap as i64 && self.newest.agrees(mark) && mark.sequence() > 1;
        let ancestor = || Ancestor { id: self.id, last: self.newest, steps: self.steps };
        (possible && self.ports.contains(&port)).then(ancestor)
    }

    /// The counter that may be this one's ancestor has sent something. If it is older than all of this one, it is part of what was passed
    /// over; otherwise they are two.
    pub(super) fn ancestor_sent(&mut self, mark: Mark) {
        if mark.until(self.first) > 0 {
            self.ancestor.iter_mut().for_each(|ancestor| ancestor.last = mark);
        } else {
            self.ancestor = None;
        }
    }

    /// Did this counter go on as `next`, which was begun when two of one clock were mixed up? Then gives by how many numbers it ends
    /// behind the place where that begins: as many are counted twice, so that as many are not missing.
    pub(super) fn goes_on_as(&self, next: &Self) -> Option<u64> {
        let behind = (self.newest.sequence().wrapping_add(1)).wrapping_sub(next.first.sequence()) as i16;
        let mixed = next.first.sequence() > 1
            && next.ancestor.is_none()
            && u64::from(behind.unsigned_abs()) <= NEAR
            && self.newest.agrees(next.first)
            && self.newest.until(next.first).abs() <= SECOND / 10
            && self.newest.until(next.newest) > 0;
        mixed.then_some(behind.max(0) as u64)
    }

    /// True if `next` was begun in the midst of this one, by the same clock.
    pub(super) const fn runs_beside(&self, next: &Self) -> bool {
        let (begins, goes_on) = (self.first.at < next.first.at, next.first.at < self.newest.at);
        begins && goes_on && self.newest.agrees(next.newest)
    }

    /// Was it so, and on one of its ports, or where many were told apart late? Then both were mixed up, nobody knows how.
    pub(super) fn is_mixed_with(&self, next: &Self, many: bool) -> bool {
        let new = next.first.sequence() > 1 && next.ancestor.is_none();
        new && self.runs_beside(next) && (many || !self.ports.is_disjoint(&next.ports))
    }

    /// The time at which it was seen first.
    pub(super) const fn begins(&self) -> i64 {
        self.first.at
    }

    /// Adds what it says to what was found.
    pub(super) fn judge(self, found: &mut Sequences) {
        found.adapters += 1;
        self.leaps.into_values().for_each(|leap| leap.judge(found));
        let Some(Ancestor { last, steps, .. }) = self.ancestor else { return };
        if u64::from(self.first.sequence()) > NEAR && same_clock(last, self.first, [steps, self.steps]) {
            found.adapters -= 1;
            found.gaps += 1;
            found.missing += u64::from(self.first.sequence().wrapping_sub(last.sequence())) - 1;
        } else {
            found.unproven += 1;
        }
    }
}

/// True if the clock went on over a great leap as it did from number to number.
fn same_clock(before: Mark, after: Mark, steps: [Steps; 2]) -> bool {
    let passed = after.at - before.at;
    let unsteady = steps.map(|steps| steps.most).into_iter().max().unwrap_or(0);
    let near = |shift: i64| shift.abs() <= STEADY + (2 * unsteady).min(UNSTEADY) + passed.abs() / DRIFT;
    let shift = before.shift(after);
    near(shift) || steps.iter().any(|steps| steps.over(passed).is_some_and(|usual| near(shift - usual)))
}

impl Steps {
    fn add(&mut self, before: Mark, after: Mark) {
        let shift = before.shift(after);
        self.most = self.most.max(shift.abs());
        (self.sum, self.time) = (self.sum + shift, self.time + (after.at - before.at));
    }

    /// By how much the clocks move apart in so much time, if they were seen for as long.
    fn over(self, time: i64) -> Option<i64> {
        (self.time > 0 && self.time >= time)
            .then(|| (i128::from(self.sum) * i128::from(time) / i128::from(self.time)) as i64)
    }
}

impl Leap {
    fn judge(self, found: &mut Sequences) {
        match self.unproven {
            None => {
                found.gaps += 1;
                found.missing += self.after.number - self.before.number - 1;
            }
            Some(_) => found.unproven += 1,
        }
    }
}
