//! The volatile write cache: blocks that the host wrote and that are not on the medium yet.
//!
//! A block is in it once. If it is written again before it got to the medium, the new data take the place of the old, but it stays as old as
//! it was: a flush that waits for it still does.

use std::collections::BTreeMap;

/// A block: index of its namespace, its first byte.
pub(super) type Place = (usize, u64);

#[derive(Clone, Debug)]
struct Line {
    /// The age of its oldest data that are not on the medium, counted in writes.
    since: u64,
    bytes: u64,
    /// Its page is being programmed.
    leaving: bool,
    /// Nothing in a length-only run.
    data: Option<Box<[u8]>>,
}

/// The cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    capacity: u64,
    lines: BTreeMap<Place, Line>,
    /// Lines by age.
    ages: BTreeMap<u64, Place>,
    /// Lines by age that are not leaving.
    resting: BTreeMap<u64, Place>,
    used: u64,
    /// Of the lines that are leaving.
    leaving: u64,
    next: u64,
}

impl Cache {
    pub(super) fn new(capacity: u64) -> Self {
        Self { capacity, ..Self::default() }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The present age: later writes are younger.
    pub(super) fn now(&self) -> u64 {
        self.next
    }
    /// Everything older than `when` is on the medium.
    pub(super) fn is_clean_before(&self, when: u64) -> bool {
        self.ages.first_key_value().is_none_or(|(&since, _)| since >= when)
    }

    /// Bytes that must leave before a write of these has room.
    pub(super) fn lacks(&self, namespace: usize, at: u64, bytes: u64) -> u64 {
        let there: u64 =
            self.lines.range((namespace, at)..(namespace, at + bytes)).map(|(_, line)| line.bytes).sum();
        (self.used + bytes - there).saturating_sub(self.capacity)
    }
    /// Bytes that are leaving.
    pub(super) fn leaving(&self) -> u64 {
        self.leaving
    }

    /// Blocks are written; `data` are empty in a length-only run.
    pub(super) fn write(&mut self, namespace: usize, at: u64, bytes: u64, block: u64, data: &[u8]) {
        for offset in (0..bytes).step_by(block as usize) {
            let place = (namespace, at + offset);
            let range = offset as usize..(offset + block) as usize;
            let data = data.get(range).map(Box::from);
            if let Some(line) = self.lines.get_mut(&place) {
                line.data = data;
                continue;
            }
            let since = self.next;
            self.next += 1;
            self.lines.insert(place, Line { since, bytes: block, leaving: false, data });
            self.ages.insert(since, place);
            self.resting.insert(since, place);
            self.used += block;
        }
    }

    /// True if all these bytes are in the cache.
    pub(super) fn covers(&self, namespace: usize, at: u64, bytes: u64, block: u64) -> bool {
        let first = at - at % block;
        let lines = self.lines.range((namespace, first)..(namespace, at + bytes)).count() as u64;
        lines == (at + bytes).next_multiple_of(block).saturating_sub(first) / block
    }

    /// Lays what is in the cache over what came from the medium.
    pub(super) fn overlay(&self, namespace: usize, at: u64, block: u64, out: &mut [u8]) {
        let end = at + out.len() as u64;
        for (&(_, start), line) in self.lines.range((namespace, at - at % block)..(namespace, end)) {
            let Some(data) = &line.data else { continue };
            let (from, to) = (start.max(at), (start + line.bytes).min(end));
            out[(from - at) as usize..(to - at) as usize]
                .copy_from_slice(&data[(from - start) as usize..(to - start) as usize]);
        }
    }

    /// The oldest line that is not leaving, if it is older than `when`.
    pub(super) fn oldest(&self, when: u64) -> Option<Place> {
        let (&since, &place) = self.resting.first_key_value()?;
        (since < when).then_some(place)
    }

    /// The lines in these bytes begin to leave.
    pub(super) fn begin_leaving(&mut self, namespace: usize, at: u64, bytes: u64) {
        for (_, line) in self.lines.range_mut((namespace, at)..(namespace, at + bytes)) {
            if !std::mem::replace(&mut line.leaving, true) {
                self.leaving += line.bytes;
                self.resting.remove(&line.since);
            }
        }
    }

    /// The lines in these bytes that were leaving are gone; what they held.
    pub(super) fn leave(&mut self, namespace: usize, at: u64, bytes: u64) -> Vec<(u64, Option<Box<[u8]>>)> {
        self.remove(namespace, at, bytes, |line| line.leaving)
            .into_iter()
            .map(|(place, line)| (place.1, line.data))
            .collect()
    }

    /// The lines in these bytes are no longer of interest.
    pub(super) fn forget(&mut self, namespace: usize, at: u64, bytes: u64) {
        self.remove(namespace, at, bytes, |_| true);
    }

    fn remove(
        &mut self,
        namespace: usize,
        at: u64,
        bytes: u64,
        which: impl Fn(&Line) -> bool,
    ) -> Vec<(Place, Line)> {
        let range = (namespace, at)..(namespace, at + bytes);
        let places: Vec<Place> =
            self.lines.range(range).filter(|(_, line)| which(line)).map(|(place, _)| *place).collect();
        let mut removed = Vec::with_capacity(places.len());
        for place in places {
            let Some(line) = self.lines.remove(&place) else { continue };
            self.ages.remove(&line.since);
            self.resting.remove(&line.since);
            self.used -= line.bytes;
            self.leaving -= if line.leaving { line.bytes } else { 0 };
            removed.push((place, line));
        }
        removed
    }

    /// Nothing leaves any more: who would tell of it was reset.
    pub(super) fn stay(&mut self) {
        for (place, line) in &mut self.lines {
            line.leaving = false;
            self.resting.insert(line.since, *place);
        }
        self.leaving = 0;
    }
}
