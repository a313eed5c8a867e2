//! Requests that were captured before and behind something that passes them on: a switch, or a root complex.
//!
//! The copies need not look alike: a root complex splits requests, and asks in its own name. What stays is the address. So a request is
//! taken for a part of an earlier one, in another direction, that did the same to memory it touches, unless that part was passed on
//! already. The earlier one has to be recent: a completion timeout ends after 50 ms at most where nothing else is configured.

use super::super::Direction;
use super::super::requests::{Operation, request};
use super::Percentiles;
use std::collections::{BTreeMap, VecDeque};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Repr;

const WINDOW: Duration = Duration::from_ns(50_000_000);
/// Requests to one page that may wait to be passed on; older ones are given up.
const PER_PAGE: usize = 256;

/// What was done to the requests of one direction on their way into another.
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

/// How a request passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// What it did.
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
    /// How many.
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

/// What was found of one crossing.
#[derive(Default)]
struct Found {
    passages: BTreeMap<Passage, u64>,
    delays: Vec<Duration>,
}

/// Finds them.
#[derive(Default)]
pub(super) struct Crossings {
    seen: Vec<Seen>,
    /// Those not wholly passed on, by the 4 KiB that they touch; no request crosses these.
    open: BTreeMap<u64, VecDeque<usize>>,
    directions: Vec<Direction>,
}

impl Crossings {
    pub(super) fn new(directions: &[Direction]) -> Self {
        Self { directions: directions.to_vec(), ..Self::default() }
    }

    /// A memory request was seen; gives it a number.
    pub(super) fn request(&mut self, direction: u16, time: Time, repr: &Repr) -> Option<usize> {
        let (_, _, first, length) = request(repr)?;
        let bytes = (first, first + u64::from(length.max(1)));
        let (number, page) = (self.seen.len(), first >> 12);
        let new = Seen {
            direction,
            time,
            repr: *repr,
            bytes,
            completions: Pieces::default(),
            passed: None,
            parts: Vec::new(),
        };
        let Self { seen, open, directions } = self;
        let open = open.entry(page).or_default();
        while open.front().is_some_and(|&old| time - seen[old].time > WINDOW || open.len() >= PER_PAGE) {
            open.pop_front();
        }
        let whole = open.iter().position(|&earlier| is_part(directions, seen, &new, &seen[earlier]));
        seen.push(new);
        if let Some(at) = whole {
            let whole = open[at];
            seen[whole].passed = Some(direction);
            seen[whole].parts.push(number);
            let covered: u64 =
                seen[whole].parts.iter().map(|&part| seen[part].bytes.1 - seen[part].bytes.0).sum();
            if covered == seen[whole].bytes.1 - seen[whole].bytes.0 {
                open.remove(at);
            }
        }
        open.push_back(number);
        Some(number)
    }

    /// A completion with so many bytes answers a request.
    pub(super) fn completion(&mut self, request: usize, bytes: u32) {
        self.seen[request].completions.add(1, bytes, false);
    }

    pub(super) fn finish(self, directions: &[Direction]) -> Vec<Crossing> {
        let mut found: BTreeMap<(u16, u16), Found> = BTreeMap::new();
        for whole in &self.seen {
            let (Some(to), Some(&first)) = (whole.passed, whole.parts.first()) else { continue };
            let found = found.entry((whole.direction, to)).or_default();
            found.delays.push(self.seen[first].time - whole.time);
            if let Some(passage) = self.passage(whole) {
                *found.passages.entry(passage).or_default() += 1;
            }
        }
        let name = |direction: u16| directions[usize::from(direction)].clone();
        let crossing = |((before, behind), Found { passages, delays })| Crossing {
            before: name(before),
            behind: name(behind),
            delay: Percentiles::of(delays),
            passages,
        };
        found.into_iter().map(crossing).collect()
    }

    fn passage(&self, whole: &Seen) -> Option<Passage> {
        let (operation, _, _, bytes) = request(&whole.repr)?;
        let (mut requests, mut completions_behind) = (Pieces::default(), Pieces::default());
        for part in whole.parts.iter().map(|&part| &self.seen[part]) {
            requests.add(1, request(&part.repr).map_or(0, |(_, _, _, bytes)| bytes), false);
            completions_behind.add(part.completions.count, part.completions.bytes, part.completions.mixed);
        }
        let unmodified = matches!(whole.parts[..], [only] if self.seen[only].repr == whole.repr);
        let completions_before = whole.completions;
        Some(Passage { operation, bytes, requests, unmodified, completions_behind, completions_before })
    }
}

/// Is the new request a part of this earlier one that has not been seen yet?
///
/// What has the same receiver, or the same sender, comes from two devices that share memory, or goes to them.
fn is_part(directions: &[Direction], seen: &[Seen], new: &Seen, earlier: &Seen) -> bool {
    let (before, behind) =
        (&directions[usize::from(earlier.direction)], &directions[usize::from(new.direction)]);
    let operation = |seen: &Seen| request(&seen.repr).map(|(operation, ..)| operation);
    let (first, end) = new.bytes;
    before.to != behind.to
        && before.from != behind.from
        && earlier.passed.is_none_or(|to| to == new.direction)
        && earlier.bytes.0 <= first
        && end <= earlier.bytes.1
        && operation(earlier) == operation(new)
        && !earlier.parts.iter().any(|&part| seen[part].bytes.0 < end && first < seen[part].bytes.1)
}
