//! The summary of a capture about the devices in it: sizes of requests, use of tags, how many wait at once, latency, what a root complex or
//! a switch on the way did to them, and what is wrong.
//!
//! [`Summing`] takes frames one by one and keeps no more of a long capture than of a short one, but for the frames that are malformed, and
//! the points of a plot where these are asked for.
//!
//! Each direction of travel is counted for itself, since a capture may show one request before and behind a switch. [`crossing`] finds
//! such pairs, [`sequence`] follows the running numbers of adapters, [`points`] gives what happened over time, for plots.

mod crossing;
mod json;
mod latencies;
mod order;
pub mod points;
mod sequence;

pub use crossing::{Crossing, Passage, Pieces};
pub use latencies::Percentiles;
pub use sequence::Sequences;

use super::decode::{Decoded, What};
use super::direction::Directions;
use super::matching::{Matcher, is_non_posted};
use super::replays::Replays;
use super::requests::{Operation, request};
use super::{Direction, Problem, Reason};
use crossing::Crossings;
use latencies::Latencies;
use order::InOrder;
use points::Points;
use sequence::Counters;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_trace::linkunit::Flags;
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::nettlp::{Header, is_tlp_port};
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
    /// Copies of TLPs that were damaged on a simulated link, or sent again after a good one; they are left out of the counts.
    pub repeated: u64,
    /// From the first record to the last.
    pub duration: Duration,
    /// The traffic of each sender to each receiver.
    pub directions: Vec<Flow>,
    /// Requests that were seen twice or more, before and behind something that passes them on.
    pub crossings: Vec<Crossing>,
    /// The frames that could not be read.
    pub problems: Vec<Problem>,
}

/// The traffic in one direction.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its sender and receiver.
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
    /// The requesters.
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

/// A request that waits.
#[derive(Clone, Copy)]
struct Asked {
    time: Time,
    port: u16,
    /// Its number among the requests that [`Crossings`] knows.
    crossing: Option<usize>,
}

/// A frame that was read, as far as it is summed up.
struct Seen {
    frame: u64,
    direction: u16,
    flags: Flags,
    unit: Unit,
}

enum Unit {
    Tlp {
        repr: Repr,
        header: Header,
        port: u16,
    },
    Link,
    Control,
    /// The frames that are not summed up, but have a number.
    Numbered {
        header: Header,
        port: u16,
    },
}

/// A capture that is being summed up.
#[derive(Default)]
pub struct Summing {
    frames: u64,
    others: u64,
    problems: Vec<Problem>,
    order: InOrder<Seen>,
    /// Femtoseconds from 1970 (or from the start of a simulation) to the first record.
    start_fs: Option<i128>,
    tlps: u64,
    link_units: u64,
    controls: u64,
    repeated: u64,
    duration: Duration,
    directions: Directions,
    flows: Vec<Counts>,
    /// By direction, the one that leads back.
    back: Vec<Option<u16>>,
    waiting: Matcher<Asked>,
    crossings: Crossings,
    points: Option<Points>,
    replays: Replays,
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
    latency: Latencies,
    ports: BTreeMap<u16, Latencies>,
    counters: Counters,
}

/// The number of requests that wait.
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

impl Summing {
    /// Begins, with points or without.
    pub fn new(with_points: bool) -> Self {
        Self { points: with_points.then(Points::default), ..Self::default() }
    }

    /// Takes the next frame.
    pub fn frame(&mut self, decoded: &Decoded<'_>) {
        self.frames += 1;
        let unit = match decoded.content {
            Ok(What::Tlp(tlp)) => {
                let port = decoded.endpoints.map_or(0, |ends| ends.port);
                Unit::Tlp { repr: tlp.repr, header: tlp.header, port }
            }
            Ok(What::Dllp(_) | What::Flit { .. }) => Unit::Link,
            Ok(What::Control(_)) => Unit::Control,
            Ok(What::Other) => {
                self.others += 1;
                return;
            }
            Err(reason) => {
                self.problems.push(Problem { frame: decoded.frame, reason });
                return self.left_out(decoded);
            }
        };
        let direction = self.directions.of(decoded);
        if self.directions.all.len() > self.flows.len() {
            self.flows.resize_with(self.directions.all.len(), Counts::default);
            self.back = (0..).zip(&self.directions.all).map(|(to, _)| self.directions.back(to)).collect();
        }
        self.push(decoded, direction, unit);
    }

    /// Takes a frame that is not to be summed up: of a direction that is, its number is not missing.
    pub fn left_out(&mut self, decoded: &Decoded<'_>) {
        let Some(direction) = self.directions.known(decoded) else { return };
        let port = decoded.endpoints.map_or(0, |ends| ends.port);
        match decoded.header {
            Some(header) => self.push(decoded, direction, Unit::Numbered { header, port }),
            None if decoded.content.is_err() && is_tlp_port(port) => {
                self.flows[usize::from(direction)].counters.unread();
            }
            None => {}
        }
    }

    fn push(&mut self, decoded: &Decoded<'_>, direction: u16, unit: Unit) {
        let is_summed_up = !matches!(unit, Unit::Numbered { .. });
        let seen = Seen { frame: decoded.frame, direction, flags: decoded.flags, unit };
        match self.order.push(decoded.fs, seen) {
            Ok(None) => {}
            Ok(Some((fs, first))) => self.take(fs, &first),
            Err(_) => {
                // It is there all the same.
                if let Some(header) = decoded.header {
                    let port = decoded.endpoints.map_or(0, |ends| ends.port);
                    self.flows[usize::from(direction)].counters.see(header, port, decoded.fs);
                }
                if is_summed_up {
                    self.problems.push(Problem { frame: decoded.frame, reason: Reason::OutOfOrder });
                }
            }
        }
    }

    /// Takes what is next by time.
    fn take(&mut self, fs: i128, seen: &Seen) {
        // What was damaged on a simulated link, or sent again, has its number, too.
        if let Unit::Tlp { header, port, .. } | Unit::Numbered { header, port } = seen.unit {
            self.flows[usize::from(seen.direction)].counters.see(header, port, fs);
        }
        if matches!(seen.unit, Unit::Numbered { .. }) {
            return;
        }
        let since = fs - *self.start_fs.get_or_insert(fs);
        let Some(since) = u64::try_from(since).ok().filter(|&fs| fs < u64::MAX) else {
            self.problems.push(Problem { frame: seen.frame, reason: Reason::TooLate });
            return;
        };
        let time = Time::from_fs(since);
        self.duration = time - Time::ZERO;
        match &seen.unit {
            Unit::Tlp { repr, .. } if self.replays.leaves_out(seen.direction, repr, seen.flags) => {
                self.repeated += 1;
            }
            Unit::Tlp { repr, port, .. } => {
                self.tlps += 1;
                let latency = self.tlp(seen.direction, time, *port, repr);
                self.point(seen.direction, time, repr, latency);
            }
            Unit::Link => self.link_units += 1,
            Unit::Control => self.controls += 1,
            Unit::Numbered { .. } => {}
        }
    }

    /// Adds a point for a TLP, whose request had this latency if it is a last completion.
    fn point(&mut self, direction: u16, time: Time, repr: &Repr, latency: Option<Duration>) {
        let Some(points) = &mut self.points else { return };
        let back = || self.back[usize::from(direction)];
        let answers = matches!(repr.kind(), Kind::Completion(_));
        let asked = if answers { back().unwrap_or(direction) } else { direction };
        let outstanding = self.flows[usize::from(asked)].outstanding.now;
        points.add(time, direction, repr, outstanding, latency);
    }

    /// Counts a TLP. Of a last completion, gives how long its request has waited.
    fn tlp(&mut self, direction: u16, time: Time, port: u16, repr: &Repr) -> Option<Duration> {
        let flow = &mut self.flows[usize::from(direction)];
        *flow.kinds.entry(repr.name()).or_default() += 1;
        flow.payload_bytes += u64::from(repr.payload_bytes());
        let id = repr.transaction_id();
        if let Kind::Completion(completion) = repr.kind() {
            return self.completion(direction, time, completion);
        }
        flow.requesters.insert(id.requester);
        let mut crossing = None;
        if let Some((operation, _, _, bytes)) = request(repr) {
            *flow.sizes.entry((operation, bytes)).or_default() += 1;
            crossing = self.crossings.request(&self.directions.all, direction, time, repr);
        }
        if is_non_posted(repr) {
            *flow.tags.entry(id.tag).or_default() += 1;
            flow.asked += 1;
            if self.waiting.ask(direction, id, Asked { time, port, crossing }).is_none() {
                flow.outstanding.change(time, true);
            }
        }
        None
    }

    fn completion(&mut self, direction: u16, time: Time, completion: &Completion) -> Option<Duration> {
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
            return None;
        };
        if let Some(crossing) = asked.crossing {
            self.crossings.completion(crossing, completion.data_bytes());
        }
        if !last {
            return None;
        }
        let (flow, latency) = (&mut self.flows[usize::from(back)], time - asked.time);
        flow.outstanding.change(time, false);
        flow.latency.add(latency);
        flow.ports.entry(asked.port).or_default().add(latency);
        Some(latency)
    }

    /// The summary and the points, without rows if they were not requested.
    pub fn finish(mut self) -> (Summary, Points) {
        while let Some((fs, first)) = self.order.pop() {
            self.take(fs, &first);
        }
        self.problems.sort_by_key(|problem| problem.frame);
        let directions = self.directions.all;
        let flows = directions.iter().zip(self.flows);
        let summary = Summary {
            frames: self.frames,
            tlps: self.tlps,
            link_units: self.link_units,
            controls: self.controls,
            others: self.others,
            repeated: self.repeated,
            duration: self.duration,
            directions: flows.map(|(direction, counts)| counts.finish(direction.clone())).collect(),
            crossings: self.crossings.finish(&directions),
            problems: self.problems,
        };
        (summary, self.points.unwrap_or_default())
    }
}

impl Counts {
    fn finish(self, direction: Direction) -> Flow {
        let completed = self.latency.count();
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
            latency: self.latency.percentiles(),
            ports: self
                .ports
                .into_iter()
                .filter_map(|(port, latency)| Some((port, latency.percentiles()?)))
                .collect(),
            sequences: self.counters.finish(),
        }
    }
}
