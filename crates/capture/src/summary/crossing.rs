//! Requests that were captured before and behind something that passes them on: a switch, or a root complex.
//!
//! The copies need not look alike: a root complex splits requests, and asks in its own name. What stays is the address. So a request is
//! taken for a part of an earlier one, in another direction, that did the same to memory it touches, unless that part was passed on
//! already. The earlier one has to be recent: a completion timeout ends after 50 ms at most where nothing else is configured.

use super::super::Direction;
use super::super::requests::{Operation, request};
use super::latencies::{Latencies, Percentiles};
use std::collections::{BTreeMap, VecDeque};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Repr;

const WINDOW: Duration = Duration::from_ns(50_000_000);
/// Requests to one page that may wait to be passed on; older ones are given up.
const PER_PAGE: usize = 256;

/// The changes to the requests of one direction on their way into another.
#[derive(Clone, Debug)]
pub struct Crossing {
    /// Before.
    pub before: Direction,
    /// Behind.
    pub behind: Direction,
    /// From a request to the first one behind.
    pub delay: Option<Percentiles>,
    /// The ways in which requests passed, and how many of each.
    pub passages: BTreeMap<Passage, u64>,
}

/// The passage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// Its operation.
    pub operation: Operation,
    /// Its bytes.
    pub bytes: u32,
    /// The requests behind.
    pub requests: Pieces,
    /// Nothing was changed: address, length, requester, tag and attributes are the same.
    pub unmodified: bool,
    /// The completions of the requests behind, of reads.
    pub completions_behind: Pieces,
    /// The completions that were made of them.
    pub completions_before: Pieces,
}

/// So many of this size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pieces {
    /// Their number.
    pub count: u32,
    /// Bytes of each, of the first if they differ.
    pub bytes: u32,
    /// They differ.
    pub mixed: bool,
}

impl Pieces {
    fn add(&mut self, count: u32, bytes: u32, mixed: bool) {
        if count == 0 {
            return;
        }
        self.mixed |= mixed || self.count > 0 && self.bytes != bytes;
        if self.count == 0 {
            self.bytes = bytes;
        }
        self.count += count;
    }
}

/// A request, and what became of it.
struct Seen {
    direction: u16,
    time: Time,
    repr: Repr,
    /// First byte, and the one behind the last; a flush reads none and touches one.
    bytes: (u64, u64),
    completions: Pieces,
    /// The direction it was passed on to.
    passed: Option<u16>,
    /// The requests that it was passed on as.
    parts: Vec<usize>,
}

/// The findings about one crossing.
#[derive(Default)]
struct Found {
    passages: BTreeMap<Passage, u64>,
    delays: Latencies,
}

/// Finds them.
#[derive(Default)]
pub(super) struct Crossings {
    /// TLPs that may still be passed on or answered.
    seen: VecDeque<Seen>,
    /// The number of the first of them.
    first: usize,
    /// TLPs not wholly passed on, by the 4 KiB page that they touch; no request crosses a page.
    open: BTreeMap<u64, VecDeque<usize>>,
    /// The findings about those before them, by the directions before and behind.
    found: BTreeMap<(u16, u16), Found>,
}

impl Crossings {
    /// A memory request was seen; gives it a number.
    pub(super) fn request(
        &mut self,
        directions: &[Direction],
        direction: u16,
        time: Time,
        repr: &Repr,
    ) -> Option<usize> {
        let (_, _, first, length) = request(repr)?;
        let bytes = (first, first + u64::from(length.max(1)));
        // A part comes within the window, and its completions within another.
        while self.seen.front().is_some_and(|old| time - old.time > WINDOW + WINDOW) {
            self.retire();
        }
        let (number, page) = (self.first + self.seen.len(), first >> 12);
        let new = Seen {
            direction,
            time,
            repr: *repr,
            bytes,
            completions: Pieces::default(),
            passed: None,
            parts: Vec::new(),
        };
        let Self { seen, open, first, .. } = self;
        let open = open.entry(page).or_default();
        while open
            .front()
            .is_some_and(|&old| time - seen[old - *first].time > WINDOW || open.len() >= PER_PAGE)
        {
            open.pop_front();
        }
        let part_of = |earlier: &Seen| {
            is_part(directions, &new, earlier)
                && !earlier.parts.iter().any(|&part| overlap(seen[part - *first].bytes, bytes))
        };
        let whole = open.iter().position(|&earlier| part_of(&seen[earlier - *first]));
        seen.push_back(new);
        if let Some(at) = whole {
            let whole = open[at] - *first;
            seen[whole].passed = Some(direction);
            seen[whole].parts.push(number);
            let length = |seen: &Seen| seen.bytes.1 - seen.bytes.0;
            let covered: u64 = seen[whole].parts.iter().map(|&part| length(&seen[part - *first])).sum();
            if covered == length(&seen[whole]) {
                open.remove(at);
            }
        }
        open.push_back(number);
        Some(number)
    }

    /// A completion with so many bytes answers a request.
    pub(super) fn completion(&mut self, request: usize, bytes: u32) {
        if let Some(seen) = request.checked_sub(self.first).and_then(|at| self.seen.get_mut(at)) {
            seen.completions.add(1, bytes, false);
        }
    }

    /// Nothing more happens to the first request.
    fn retire(&mut self) {
        let Some(whole) = self.seen.front() else { return };
        let page = whole.bytes.0 >> 12;
        if let (Some(to), Some(&part)) = (whole.passed, whole.parts.first()) {
            let delay = self.seen[part - self.first].time - whole.time;
            let passage = self.passage(whole);
            let found = self.found.entry((whole.direction, to)).or_default();
            found.delays.add(delay);
            if let Some(passage) = passage {
                *found.passages.entry(passage).or_default() += 1;
            }
        }
        if let Some(open) = self.open.get_mut(&page) {
            // Numbers ascend.
            if open.front() == Some(&self.first) {
                open.pop_front();
            }
            if open.is_empty() {
                self.open.remove(&page);
            }
        }
        self.seen.pop_front();
        self.first += 1;
    }

    pub(super) fn finish(mut self, directions: &[Direction]) -> Vec<Crossing> {
        while !self.seen.is_empty() {
            self.retire();
        }
        let name = |direction: u16| directions[usize::from(direction)].clone();
        let crossing = |((before, behind), Found { passages, delays }): (_, Found)| Crossing {
            before: name(before),
            behind: name(behind),
            delay: delays.percentiles(),
            passages,
        };
        self.found.into_iter().map(crossing).collect()
    }

    fn passage(&self, whole: &Seen) -> Option<Passage> {
        let (operation, _, _, bytes) = request(&whole.repr)?;
        let (mut requests, mut completions_behind) = (Pieces::default(), Pieces::default());
        for part in whole.parts.iter().map(|&part| &self.seen[part - self.first]) {
            requests.add(1, request(&part.repr).map_or(0, |(_, _, _, bytes)| bytes), false);
            completions_behind.add(part.completions.count, part.completions.bytes, part.completions.mixed);
        }
        let unmodified = matches!(whole.parts[..], [only] if self.seen[only - self.first].repr == whole.repr);
        let completions_before = whole.completions;
        Some(Passage { operation, bytes, requests, unmodified, completions_behind, completions_before })
    }
}

/// True if the new request is a part of this earlier one.
///
/// True if it has the same receiver, or the same sender, comes from two devices that share memory, or goes to them.
fn is_part(directions: &[Direction], new: &Seen, earlier: &Seen) -> bool {
    let (before, behind) =
        (&directions[usize::from(earlier.direction)], &directions[usize::from(new.direction)]);
    let operation = |seen: &Seen| request(&seen.repr).map(|(operation, ..)| operation);
    before.to != behind.to
        && before.from != behind.from
        && earlier.passed.is_none_or(|to| to == new.direction)
        && earlier.bytes.0 <= new.bytes.0
        && new.bytes.1 <= earlier.bytes.1
        && operation(earlier) == operation(new)
}

/// True if two ranges of addresses, first and end, have any in common.
const fn overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0 < other.1 && other.0 < one.1
}
