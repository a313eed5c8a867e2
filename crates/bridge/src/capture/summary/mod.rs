//! What a capture says about the devices in it: sizes of requests, use of tags, how many wait at once, latency, what a root complex or
//! a switch on the way did to them, and what is wrong.
//!
//! Each direction of travel is counted for itself, since a capture may show one request before and behind a switch. [`crossing`] finds
//! such pairs, [`sequence`] follows the running numbers of adapters, [`points`] gives what happened over time, for plots.

mod crossing;
mod json;
pub mod points;
mod sequence;

pub use crossing::{Crossing, Passage, Pieces};
pub use sequence::Sequences;

use super::matching::{Matcher, is_non_posted};
use super::requests::{Operation, request};
use super::{Capture, Direction, Problem, Unit};
use crossing::Crossings;
use sequence::Clocks;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::{Completion, CompletionStatus, Kind, Repr};

/// Everything that is said about a capture.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Frames of the file.
    pub frames: u64,
    /// TLPs.
    pub tlps: u64,
    /// DLLPs and flits.
    pub link_units: u64,
    /// Accesses to configuration space, messages and registers of adapters.
    pub controls: u64,
    /// Frames of other traffic.
    pub others: u64,
    /// TLPs that were damaged on a simulated link or sent again; they are left out of what follows.
    pub repeated: u64,
    /// From the first record to the last.
    pub duration: Duration,
    /// What each sender told each receiver.
    pub directions: Vec<Flow>,
    /// Requests that were seen twice or more, before and behind something that passes them on.
    pub crossings: Vec<Crossing>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// What went in one direction.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Who sent it to whom.
    pub direction: Direction,
    /// TLPs by name.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Bytes of payload, as the headers state them.
    pub payload_bytes: u64,
    /// Memory requests by what they do and how many bytes they ask for or carry.
    pub sizes: BTreeMap<(Operation, u32), u64>,
    /// Completions with data by the bytes they carry.
    pub completion_sizes: BTreeMap<u32, u64>,
    /// Completions that were not successful, by status.
    pub refused: BTreeMap<&'static str, u64>,
    /// Completions that answer nothing in the capture.
    pub unexpected: u64,
    /// Who asked.
    pub requesters: BTreeSet<Bdf>,
    /// Tags of the requests that are answered, and how often each was used.
    pub tags: BTreeMap<Tag, u64>,
    /// The most requests that waited for completions at once.
    pub max_outstanding: u32,
    /// The same on average, over the time in which any did.
    pub mean_outstanding: f64,
    /// Requests whose last completion is in the capture.
    pub completed: u64,
    /// Requests without it: cut off, lost, or their tag was used again.
    pub unanswered: u64,
    /// From a request to its last completion.
    pub latency: Option<Percentiles>,
    /// The same for each UDP port.
    pub ports: BTreeMap<u16, Percentiles>,
    /// Running numbers of those adapters that number what they send.
    pub sequences: Sequences,
}

/// Percentiles of latencies, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// How many there were.
    pub count: u64,
    /// The shortest.
    pub min: Duration,
    /// The lower median.
    pub p50: Duration,
    /// Nine of ten are not longer.
    pub p90: Duration,
    /// 99 of 100 are not longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Percentiles {
    fn of(mut all: Vec<Duration>) -> Option<Self> {
        all.sort_unstable();
        // The smallest value that so many percent do not pass.
        let at = |percent: usize| all.get((all.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let count = all.len() as u64;
        Some(Self { count, min: *all.first()?, p50: at(50)?, p90: at(90)?, p99: at(99)?, max: *all.last()? })
    }
}

/// Reads all of a capture.
pub fn summary(capture: &Capture) -> Summary {
    let mut builder = Builder::new(capture);
    for record in in_order(capture) {
        builder.duration = builder.duration.max(record.time - Time::ZERO);
        match &record.unit {
            Unit::Tlp { .. } if record.flags.any() => builder.repeated += 1,
            Unit::Tlp { repr, header, port, .. } => {
                builder.tlps += 1;
                builder.flows[usize::from(record.direction)].clocks.see(*header, record.time);
                builder.tlp(record.direction, record.time, *port, repr);
            }
            Unit::Dllp(_) | Unit::Flit { .. } => builder.link_units += 1,
            Unit::Control(_) => builder.controls += 1,
        }
    }
    builder.finish(capture)
}

/// Records by time: files need not be in order.
fn in_order(capture: &Capture) -> impl Iterator<Item = &super::Record> {
    let mut order: Vec<u32> = (0..capture.records.len() as u32).collect();
    let key = |&index: &u32| {
        let record = &capture.records[index as usize];
        (record.time, record.frame)
    };
    if !order.is_sorted_by_key(key) {
        order.sort_by_key(key);
    }
    order.into_iter().map(|index| &capture.records[index as usize])
}

/// A request that waits.
#[derive(Clone, Copy)]
struct Asked {
    time: Time,
    port: u16,
    /// Its number among the requests that [`Crossings`] knows.
    crossing: Option<usize>,
}

struct Builder {
    tlps: u64,
    link_units: u64,
    controls: u64,
    repeated: u64,
    duration: Duration,
    flows: Vec<Counts>,
    back: Vec<Option<u16>>,
    waiting: Matcher<Asked>,
    crossings: Crossings,
}

/// A flow that is being counted.
#[derive(Default)]
struct Counts {
    kinds: BTreeMap<&'static str, u64>,
    payload_bytes: u64,
    sizes: BTreeMap<(Operation, u32), u64>,
    completion_sizes: BTreeMap<u32, u64>,
    refused: BTreeMap<&'static str, u64>,
    unexpected: u64,
    requesters: BTreeSet<Bdf>,
    tags: BTreeMap<Tag, u64>,
    asked: u64,
    outstanding: Outstanding,
    latencies: BTreeMap<u16, Vec<Duration>>,
    clocks: Clocks,
}

/// How many requests wait.
#[derive(Default)]
struct Outstanding {
    now: u32,
    most: u32,
    since: Time,
    busy: Duration,
    /// Sum of time times requests, in femtoseconds.
    area: u128,
}

impl Outstanding {
    fn change(&mut self, time: Time, more: bool) {
        if self.now > 0 {
            let passed = time - self.since;
            self.busy += passed;
            self.area += u128::from(passed.as_fs()) * u128::from(self.now);
        }
        self.since = time;
        self.now = if more { self.now + 1 } else { self.now.saturating_sub(1) };
        self.most = self.most.max(self.now);
    }

    fn mean(&self) -> f64 {
        match self.busy.as_fs() {
            0 => f64::from(self.most),
            busy => self.area as f64 / busy as f64,
        }
    }
}

impl Builder {
    fn new(capture: &Capture) -> Self {
        Self {
            tlps: 0,
            link_units: 0,
            controls: 0,
            repeated: 0,
            duration: Duration::ZERO,
            flows: capture.directions.iter().map(|_| Counts::default()).collect(),
            back: super::requests::reverse(capture),
            waiting: Matcher::default(),
            crossings: Crossings::new(&capture.directions),
        }
    }

    fn tlp(&mut self, direction: u16, time: Time, port: u16, repr: &Repr) {
        let flow = &mut self.flows[usize::from(direction)];
        *flow.kinds.entry(repr.name()).or_default() += 1;
        flow.payload_bytes += u64::from(repr.payload_bytes());
        let id = repr.transaction_id();
        if let Kind::Completion(completion) = repr.kind() {
            self.completion(direction, time, completion);
            return;
        }
        flow.requesters.insert(id.requester);
        let mut crossing = None;
        if let Some((operation, _, _, bytes)) = request(repr) {
            *flow.sizes.entry((operation, bytes)).or_default() += 1;
            crossing = self.crossings.request(direction, time, repr);
        }
        if is_non_posted(repr) {
            *flow.tags.entry(id.tag).or_default() += 1;
            flow.asked += 1;
            if self.waiting.ask(direction, id, Asked { time, port, crossing }).is_none() {
                flow.outstanding.change(time, true);
            }
        }
    }

    fn completion(&mut self, direction: u16, time: Time, completion: &Completion) {
        let flow = &mut self.flows[usize::from(direction)];
        if completion.payload_dw() > 0 {
            *flow.completion_sizes.entry(completion.data_bytes()).or_default() += 1;
        }
        if completion.status() != CompletionStatus::Success {
            *flow.refused.entry(completion.status().name()).or_default() += 1;
        }
        let last = completion.is_last();
        let asked = self.back[usize::from(direction)]
            .and_then(|back| Some((back, self.waiting.answer(back, completion.id(), last)?)));
        let Some((back, asked)) = asked else {
            flow.unexpected += 1;
            return;
        };
        if let Some(crossing) = asked.crossing {
            self.crossings.completion(crossing, completion.data_bytes());
        }
        if last {
            let flow = &mut self.flows[usize::from(back)];
            flow.outstanding.change(time, false);
            flow.latencies.entry(asked.port).or_default().push(time - asked.time);
        }
    }

    fn finish(self, capture: &Capture) -> Summary {
        let directions = capture.directions.iter().zip(self.flows);
        Summary {
            frames: capture.frames,
            tlps: self.tlps,
            link_units: self.link_units,
            controls: self.controls,
            others: capture.others,
            repeated: self.repeated,
            duration: self.duration,
            directions: directions.map(|(direction, counts)| counts.finish(direction.clone())).collect(),
            crossings: self.crossings.finish(&capture.directions),
            problems: capture.problems.clone(),
        }
    }
}

impl Counts {
    fn finish(self, direction: Direction) -> Flow {
        let completed: u64 = self.latencies.values().map(|all| all.len() as u64).sum();
        let everything = self.latencies.values().flatten().copied().collect();
        Flow {
            direction,
            kinds: self.kinds,
            payload_bytes: self.payload_bytes,
            sizes: self.sizes,
            completion_sizes: self.completion_sizes,
            refused: self.refused,
            unexpected: self.unexpected,
            requesters: self.requesters,
            tags: self.tags,
            max_outstanding: self.outstanding.most,
            mean_outstanding: self.outstanding.mean(),
            completed,
            unanswered: self.asked - completed,
            latency: Percentiles::of(everything),
            ports: self
                .latencies
                .into_iter()
                .filter_map(|(port, all)| Some((port, Percentiles::of(all)?)))
                .collect(),
            sequences: self.clocks.finish(),
        }
    }
}
