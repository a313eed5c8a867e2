//! Configuration spaces over time: what software read in them at first, and every change since, in a bounded number of entries.

use std::collections::VecDeque;
use std::ops::Deref;
use tlplab_cfgspace::ConfigSpace;
use tlplab_units::{Bdf, Time};

const BYTES: usize = 4096;

/// The cause of a change of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// A configuration write (PCIe 5.0 §7.2).
    Write,
    /// A reset of the function (PCIe 5.0 §6.6).
    Reset,
    /// The function's hardware or its device: errors, links, slots, interrupts.
    Hardware,
    /// Several changes that were not kept one by one.
    Several,
}

/// A change of a doubleword of a configuration space, as software reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterChange {
    /// The time.
    pub at: Time,
    /// Its cause.
    pub by: ChangedBy,
    /// The offset of the doubleword: a multiple of 4 below 4096.
    pub offset: u16,
    /// Its value before.
    pub old: u32,
    /// Its value afterwards.
    pub new: u32,
}

/// Changes that were too many to be kept one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The time of the first of them.
    pub from: Time,
    /// The time of the last.
    pub to: Time,
    /// Their number.
    pub count: u64,
}

/// The configuration space of a function over time.
#[derive(Clone, Debug)]
pub struct RegisterHistory {
    /// The function: `host`, `host.rp0`, `ssd`; of a switch or bridge its upper port has its name, a lower one is `sw0 → ssd`.
    pub name: String,
    /// The ID by which software reaches it at the end, or that it learned last from a configuration write (PCIe 5.0 §2.2.6.2); `None` if it has neither.
    pub id: Option<Bdf>,
    /// The bytes that software read in it at first.
    pub start: Box<[u8; BYTES]>,
    /// The changes in their order. Those of the gap are one for each doubleword, at the gap's end: who replays them has the right
    /// registers at every other time.
    pub changes: Vec<RegisterChange>,
    /// The changes that were not kept one by one, which lie between those that were.
    pub gap: Option<Gap>,
}

/// A configuration space whose owner changes it only by saying when and why.
#[derive(Clone)]
pub(crate) struct Registers {
    space: ConfigSpace,
    history: Option<Box<History>>,
}

impl Deref for Registers {
    type Target = ConfigSpace;
    fn deref(&self) -> &ConfigSpace {
        &self.space
    }
}

impl Registers {
    pub(crate) fn new(space: ConfigSpace) -> Self {
        Self { space, history: None }
    }

    /// The space, to be changed now.
    #[inline]
    pub(crate) fn change(&mut self, now: Time, by: ChangedBy) -> &mut ConfigSpace {
        if let Some(history) = &mut self.history {
            history.changes_next(&self.space, now, by);
        }
        &mut self.space
    }

    /// From now on at most `most` changes are kept, the first and the last.
    pub(crate) fn keep_history(&mut self, most: usize) {
        self.history = Some(Box::new(History::new(&self.space, most)));
    }

    /// The history, if one is kept, of a function with this name and ID.
    pub(crate) fn history(&self, name: String, id: Option<Bdf>) -> Option<RegisterHistory> {
        let mut history = self.history.clone()?;
        history.settle(&self.space);
        let changes = history.changes();
        let gap = history.gap.map(|(gap, _)| gap);
        Some(RegisterHistory { name, id, start: history.start, changes, gap })
    }
}

/// Changes are found when the next one begins, by what differs from what was there before: so none can be missed, and whoever
/// changes registers needs to know nothing of it.
#[derive(Clone)]
struct History {
    start: Box<[u8; BYTES]>,
    /// The registers behind the last change that was found.
    known: Box<[u8; BYTES]>,
    /// Time and cause of the latest possible change of the registers.
    latest: Option<(Time, ChangedBy)>,
    first: Vec<RegisterChange>,
    gap: Option<(Gap, Box<[u8; BYTES]>)>,
    last: VecDeque<RegisterChange>,
    /// As many are kept in `first`, and as many in `last`.
    half: usize,
}

impl History {
    fn new(space: &ConfigSpace, most: usize) -> Self {
        let start = Box::new(space.shown_bytes());
        let (known, half) = (start.clone(), (most / 2).max(1));
        Self { start, known, latest: None, first: Vec::new(), gap: None, last: VecDeque::new(), half }
    }

    fn changes_next(&mut self, space: &ConfigSpace, now: Time, by: ChangedBy) {
        if self.latest != Some((now, by)) {
            self.settle(space);
            self.latest = Some((now, by));
        }
    }

    /// Finds what has changed.
    fn settle(&mut self, space: &ConfigSpace) {
        let Some((at, by)) = self.latest.take() else { return };
        let shown = space.shown_bytes();
        if shown != *self.known {
            differences(&self.known.clone(), &shown, at, by).for_each(|change| self.keep(change));
            *self.known = shown;
        }
    }

    fn keep(&mut self, change: RegisterChange) {
        if self.first.len() < self.half {
            return self.first.push(change);
        }
        self.last.push_back(change);
        if self.last.len() > self.half
            && let Some(lost) = self.last.pop_front()
        {
            let (gap, bytes) = self.gap.get_or_insert_with(|| {
                let mut bytes = self.start.clone();
                self.first.iter().for_each(|change| apply(&mut bytes, change));
                (Gap { from: lost.at, to: lost.at, count: 0 }, bytes)
            });
            (gap.to, gap.count) = (lost.at, gap.count + 1);
            apply(bytes, &lost);
        }
    }

    fn changes(&self) -> Vec<RegisterChange> {
        let mut changes = self.first.clone();
        if let Some((gap, after)) = &self.gap {
            let mut before = self.start.clone();
            self.first.iter().for_each(|change| apply(&mut before, change));
            changes.extend(differences(&before, after, gap.to, ChangedBy::Several));
        }
        changes.extend(&self.last);
        changes
    }
}

fn apply(bytes: &mut [u8; BYTES], change: &RegisterChange) {
    bytes[usize::from(change.offset)..][..4].copy_from_slice(&change.new.to_le_bytes());
}

fn differences<'a>(
    before: &'a [u8; BYTES],
    after: &'a [u8; BYTES],
    at: Time,
    by: ChangedBy,
) -> impl Iterator<Item = RegisterChange> + 'a {
    let words = |bytes: &'a [u8; BYTES]| {
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    let pairs = (0u16..).step_by(4).zip(words(before).zip(words(after)));
    let changed = pairs.filter(|(_, (old, new))| old != new);
    changed.map(move |(offset, (old, new))| RegisterChange { at, by, offset, old, new })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_cfgspace::{Identity, Layout, Type0};
    use tlplab_units::Duration;

    fn registers() -> Registers {
        let identity = Identity { vendor: 0x71AB, device: 1, class: 0x02_0000, revision: 0 };
        Registers::new(ConfigSpace::new(&Layout::new(Type0::new(identity))).unwrap())
    }

    fn replayed(history: &RegisterHistory) -> [u8; BYTES] {
        let mut bytes = *history.start;
        for change in &history.changes {
            let at = usize::from(change.offset);
            assert_eq!(bytes[at..at + 4], change.old.to_le_bytes(), "{change:?} follows what was there");
            apply(&mut bytes, change);
        }
        bytes
    }

    /// Interrupt Line and Command, again and again: with any number of kept changes the end is right, and lost changes are counted.
    #[test]
    fn replay_of_any_kept_changes_ends_at_the_present_registers() {
        for most in [0, 1, 2, 3, 7, 50, 1000] {
            let mut registers = registers();
            registers.keep_history(most);
            let mut last = Time::ZERO;
            for i in 1..100u32 {
                last = Time::ZERO + Duration::from_ns(u64::from(i));
                registers.change(last, ChangedBy::Write).write(0x3C, 0b1, i);
                registers.change(last, ChangedBy::Hardware).set_interrupt_status(i % 3 == 0);
            }
            let history = registers.history("f".into(), None).unwrap();
            assert_eq!(replayed(&history), registers.shown_bytes(), "{most}");
            let all = 99 + 33 + 32; // Interrupt Status is set at multiples of 3, and clear behind each but the last
            let kept = history.changes.iter().filter(|change| change.by != ChangedBy::Several).count();
            let lost = history.gap.map_or(0, |gap| gap.count as usize);
            assert_eq!(kept + lost, all, "{most}");
            assert_eq!(kept, if most >= all { all } else { 2 * (most / 2).max(1) });
            assert!(history.changes.is_sorted_by_key(|change| change.at), "{most}");
            assert_eq!(history.changes.last().unwrap().at, last);
        }
    }

    #[test]
    fn only_effective_writes_are_kept_each_with_its_cause() {
        let mut registers = registers();
        registers.keep_history(10);
        let now = Time::from_fs(5);
        registers.change(now, ChangedBy::Write).write(0x00, 0b1111, 0x1234_5678);
        registers.change(now, ChangedBy::Write).write(0x3C, 0b1, 7);
        registers.change(now, ChangedBy::Hardware).set_interrupt_status(true);
        let kept = registers.history("f".into(), None).unwrap().changes;
        let kept: Vec<_> =
            kept.iter().map(|change| (change.by, change.offset, change.new ^ change.old)).collect();
        assert_eq!(kept, [(ChangedBy::Write, 0x3C, 7), (ChangedBy::Hardware, 0x04, 0x0008_0000)]);
    }
}
