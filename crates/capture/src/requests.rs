//! From a capture to the requests a workload replays, and to what the requester got in reply.

use super::matching::Matcher;
use super::replays::Replays;
use super::{Capture, Unit};
use std::collections::{BTreeMap, BTreeSet};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::{Attributes, Kind, Repr, TransactionId};

/// The operation of a request on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Memory read.
    Read,
    /// Memory write.
    Write,
}

impl Operation {
    /// `read` or `write`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A memory request of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Time since the capture's first record.
    pub time: Time,
    /// Read or write.
    pub operation: Operation,
    /// Byte address: the first byte that is enabled.
    pub address: u64,
    /// Bytes from the first to the last that is enabled: 0 for a flush, at most 4096.
    pub bytes: u32,
    /// The requester.
    pub requester: Bdf,
    /// With which tag.
    pub tag: Tag,
    /// Ordering, snooping and the like.
    pub attributes: Attributes,
    /// Its direction: index into [`Capture::directions`].
    pub direction: u16,
    /// The frame it came in.
    pub frame: u64,
}

/// The operation of a memory request, its requester and tag, its first byte and its length.
pub(super) fn request(repr: &Repr) -> Option<(Operation, TransactionId, u64, u32)> {
    let (operation, id, span) = match repr.kind() {
        Kind::MemRead { id, span, .. } => (Operation::Read, id, span),
        Kind::MemWrite { id, span } | Kind::DeferrableMemWrite { id, span } => (Operation::Write, id, span),
        _ => return None,
    };
    let bytes = if span.is_zero_length() { 0 } else { span.byte_count() };
    Some((operation, *id, span.first_byte(), bytes))
}

/// The memory requests of a capture in the order of their times: all directions, or one.
///
/// A capture of several links shows a request once on each link it crosses; choose one direction to get each once
/// ([`busiest_direction`] is a good guess). Corrupted and nullified copies are left out, and replayed ones of what had arrived.
pub fn requests(capture: &Capture, direction: Option<u16>) -> Vec<TraceRequest> {
    let mut replays = Replays::default();
    let mut requests: Vec<TraceRequest> = capture
        .tlps()
        .filter(|(record, _)| direction.is_none_or(|d| d == record.direction))
        .filter(|(record, repr)| !replays.leaves_out(record.direction, repr, record.flags))
        .filter_map(|(record, repr)| {
            let (operation, id, address, bytes) = request(repr)?;
            let (requester, tag) = (id.requester, id.tag);
            let (time, direction, frame) = (record.time, record.direction, record.frame);
            let attributes = *repr.attributes();
            Some(TraceRequest {
                time,
                operation,
                address,
                bytes,
                requester,
                tag,
                attributes,
                direction,
                frame,
            })
        })
        .collect();
    requests.sort_by_key(|request| (request.time, request.frame));
    requests
}

/// The direction with the most memory requests; the first of them if several have as many. `None` without requests.
pub fn busiest_direction(capture: &Capture) -> Option<u16> {
    let mut counts = vec![0u64; capture.directions.len()];
    for request in requests(capture, None) {
        counts[usize::from(request.direction)] += 1;
    }
    let most = counts.iter().copied().max().filter(|&most| most > 0)?;
    counts.iter().position(|&count| count == most).and_then(|index| u16::try_from(index).ok())
}

/// Statistics of a capture about its requester.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// From the first record to the last, of all directions.
    pub duration: Duration,
    /// Memory reads.
    pub reads: u64,
    /// Memory writes.
    pub writes: u64,
    /// Bytes the reads ask for.
    pub read_bytes: u64,
    /// Bytes the writes carry.
    pub written_bytes: u64,
    /// Completions, with data or without.
    pub completions: u64,
    /// Tags of reads, in order.
    pub tags: Vec<Tag>,
    /// The most reads that waited for completions at once, of one direction.
    pub max_outstanding: u32,
    /// Reads whose last completion is in the capture.
    pub completed: u64,
    /// Reads without their last completion: cut off, or their tag was used again.
    pub unanswered: u64,
    /// Completions that answer no read of the capture.
    pub unexpected: u64,
    /// From the read's frame to that of its last completion; `None` if no read completed.
    pub latency: Option<Latencies>,
}

/// Order statistics of latencies, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// The shortest.
    pub min: Duration,
    /// The middle one; the lower of the two middle ones.
    pub median: Duration,
    /// The mean, rounded down to a femtosecond.
    pub mean: Duration,
    /// The longest.
    pub max: Duration,
}

impl Latencies {
    fn of(mut all: Vec<Duration>) -> Option<Self> {
        all.sort_unstable();
        let (&min, &max) = (all.first()?, all.last()?);
        let sum: u128 = all.iter().map(|d| u128::from(d.as_fs())).sum();
        let mean = u64::try_from(sum / all.len() as u128).unwrap_or(u64::MAX);
        Some(Self { min, median: all[(all.len() - 1) / 2], mean: Duration::from_fs(mean), max })
    }
}

/// Counts, and matches reads with their completions by requester, tag and opposite direction.
pub fn statistics(capture: &Capture) -> Statistics {
    let mut statistics = Statistics::default();
    let mut matcher = Waiting::default();
    let (mut tags, mut replays) = (BTreeSet::new(), Replays::default());
    let back = reverse(capture);
    let mut order: Vec<usize> = (0..capture.records.len()).collect();
    order.sort_by_key(|&index| (capture.records[index].time, capture.records[index].frame));
    for record in order.iter().map(|&index| &capture.records[index]) {
        statistics.duration = statistics.duration.max(record.time - Time::ZERO);
        let Unit::Tlp { repr, .. } = &record.unit else { continue };
        if replays.leaves_out(record.direction, repr, record.flags) {
            continue;
        }
        match (request(repr), repr.kind()) {
            (Some((Operation::Read, id, _, bytes)), _) => {
                statistics.reads += 1;
                statistics.read_bytes += u64::from(bytes);
                tags.insert(id.tag);
                statistics.unanswered += u64::from(matcher.ask(record.direction, id, record.time));
            }
            (Some((Operation::Write, _, _, bytes)), _) => {
                statistics.writes += 1;
                statistics.written_bytes += u64::from(bytes);
            }
            (None, Kind::Completion(completion)) => {
                statistics.completions += 1;
                let asked = back[usize::from(record.direction)];
                let known = asked.is_some_and(|direction| {
                    matcher.answer(direction, completion.id(), completion.is_last(), record.time)
                });
                statistics.unexpected += u64::from(!known);
            }
            _ => {}
        }
    }
    statistics.tags = tags.into_iter().collect();
    statistics.completed = matcher.latencies.len() as u64;
    statistics.unanswered += matcher.matcher.waiting() as u64;
    statistics.max_outstanding = matcher.most;
    statistics.latency = Latencies::of(matcher.latencies);
    statistics
}

/// For each direction, the one that leads back.
pub(super) fn reverse(capture: &Capture) -> Vec<Option<u16>> {
    let all = &capture.directions;
    all.iter()
        .map(|d| all.iter().position(|r| r.from == d.to && r.to == d.from))
        .map(|found| found.and_then(|index| u16::try_from(index).ok()))
        .collect()
}

/// Reads that wait for completions, counted.
#[derive(Default)]
struct Waiting {
    matcher: Matcher<Time>,
    outstanding: BTreeMap<u16, u32>,
    most: u32,
    latencies: Vec<Duration>,
}

impl Waiting {
    /// A read was seen. True if it takes the tag of one that was never answered.
    fn ask(&mut self, direction: u16, id: TransactionId, time: Time) -> bool {
        let replaced = self.matcher.ask(direction, id, time).is_some();
        let outstanding = self.outstanding.entry(direction).or_default();
        *outstanding += u32::from(!replaced);
        self.most = self.most.max(*outstanding);
        replaced
    }

    /// A completion was seen. False if nothing waits for it.
    fn answer(&mut self, direction: u16, id: TransactionId, last: bool, time: Time) -> bool {
        let Some(asked) = self.matcher.answer(direction, id, last) else { return false };
        if last {
            *self.outstanding.entry(direction).or_default() -= 1;
            self.latencies.push(time - asked);
        }
        true
    }
}
