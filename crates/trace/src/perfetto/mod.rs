//! Traces that open in Perfetto (<https://ui.perfetto.dev>).
//!
//! [`Writer`] streams the protobuf format (`perfetto/protos/perfetto/trace`): a track for each link and direction with a slice for
//! each TLP, DLLP and flit; for each flow its transactions, on as many rows as overlap, each over the intervals of its critical
//! path; a counter for each resource. Arrows lead from a transaction to its TLPs on every link they cross.
//!
//! Perfetto counts nanoseconds. With [`Scale::Nanosecond`] its axis is right and times are rounded down; with
//! [`Scale::Picosecond`] everything looks a thousand times as long and nothing vanishes. Exact femtoseconds are
//! in the arguments of every slice either way.

mod proto;

use crate::record::{Content, Link, Transaction, Unit};
use proto::Message;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use tlplab_units::Time;

/// The meaning of a nanosecond on Perfetto's axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// A nanosecond.
    #[default]
    Nanosecond,
    /// A picosecond: the axis shows microseconds where nanoseconds are meant.
    Picosecond,
}

impl Scale {
    const fn ticks(self, time: Time) -> u64 {
        match self {
            Self::Nanosecond => time.as_fs() / 1_000_000,
            Self::Picosecond => time.as_fs() / 1_000,
        }
    }
}

/// Field numbers of the messages used, by message (perfetto/protos/perfetto/trace).
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) mod packet {
        pub(in super::super) const TIMESTAMP: u32 = 8;
        pub(in super::super) const SEQUENCE_ID: u32 = 10;
        pub(in super::super) const TRACK_EVENT: u32 = 11;
        pub(in super::super) const INTERNED_DATA: u32 = 12;
        pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
        pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    }
    pub(super) mod track {
        pub(in super::super) const UUID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const PARENT: u32 = 5;
        pub(in super::super) const COUNTER: u32 = 8;
        pub(in super::super) const CHILD_ORDERING: u32 = 11;
        pub(in super::super) const RANK: u32 = 12;
        pub(in super::super) const COUNTER_UNIT_NAME: u32 = 6;
    }
    pub(super) mod event {
        pub(in super::super) const CATEGORIES: u32 = 22;
        pub(in super::super) const ANNOTATION: u32 = 4;
        pub(in super::super) const TYPE: u32 = 9;
        pub(in super::super) const NAME_IID: u32 = 10;
        pub(in super::super) const TRACK: u32 = 11;
        pub(in super::super) const COUNTER_VALUE: u32 = 30;
        pub(in super::super) const FLOW_IDS: u32 = 47;
    }
    pub(super) mod annotation {
        pub(in super::super) const UINT: u32 = 3;
        pub(in super::super) const STRING: u32 = 6;
        pub(in super::super) const NAME: u32 = 10;
    }
    pub(super) mod interned {
        pub(in super::super) const EVENT_NAMES: u32 = 2;
        pub(in super::super) const IID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
    }
}
use field::{annotation, event, interned, packet, track};

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
const EXPLICIT_ORDER: u64 = 3;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// A counter track of a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(u64);

/// A row of a flow's transactions.
struct Row {
    track: u64,
    free_from: Time,
}

/// Writes a trace while the run goes on; what it keeps in memory does not grow with the run's length.
///
/// The first error of the sink, or of what it is told, ends the writing and is given by [`Writer::finish`], so that the simulation need not
/// care.
pub struct Writer<W: Write> {
    sink: W,
    failed: Option<io::Error>,
    scale: Scale,
    /// Track of each link and direction, then of each flow.
    directions: Vec<u64>,
    flows: Vec<(u64, String, Vec<Row>)>,
    resources: u64,
    tracks: u64,
    names: BTreeMap<String, u64>,
    packet: Message,
    text: String,
}

impl<W: Write> Writer<W> {
    /// A trace of `links` and `flows`, by name and in the order of their indices.
    pub fn new(sink: W, links: &[Link], flows: &[String], scale: Scale) -> Self {
        let mut writer = Self {
            sink,
            failed: None,
            scale,
            directions: Vec::new(),
            flows: Vec::new(),
            resources: 0,
            tracks: 0,
            names: BTreeMap::new(),
            packet: Message::default(),
            text: String::new(),
        };
        writer.emit(STATE_CLEARED, |_| {});
        let group = writer.track("transactions", None, 0, None);
        for (rank, name) in (0..).zip(flows) {
            let track = writer.track(name, Some(group), rank, None);
            writer.flows.push((track, name.clone(), Vec::new()));
        }
        let group = writer.track("links", None, 1, None);
        for (rank, (link, direction)) in (0..).zip(links.iter().flat_map(|l| [(l, 0), (l, 1)])) {
            let track = writer.track(&link.name(direction), Some(group), rank, None);
            writer.directions.push(track);
        }
        writer.resources = writer.track("resources", None, 2, None);
        writer
    }

    /// Adds a counter, such as `tags of ssd` in `tags`.
    pub fn counter(&mut self, name: &str, unit: &str) -> Counter {
        let rank = self.tracks;
        Counter(self.track(name, Some(self.resources), rank, Some(unit)))
    }

    /// A counter has a new level.
    pub fn level(&mut self, counter: Counter, time: Time, level: u64) {
        let at = self.scale.ticks(time);
        self.emit(NEEDS_STATE, |p| {
            p.uint(packet::TIMESTAMP, at);
            p.nested(packet::TRACK_EVENT, |e| {
                e.uint(event::TYPE, COUNTER);
                e.uint(event::TRACK, counter.0);
                e.uint(event::COUNTER_VALUE, level);
            });
        });
    }

    /// A unit was on a wire. Units of one direction come in the order of their starts.
    pub fn unit(&mut self, unit: &Unit<'_>) {
        if let Some(track) = self.direction(unit) {
            self.begin(track, BEGIN, unit);
            self.end(track, self.scale.ticks(unit.end));
        }
    }

    /// A TLP's last byte was in the flit that [`Writer::unit`] was told of before: a mark on the flit.
    pub fn tlp_in_flit(&mut self, unit: &Unit<'_>) {
        if let Some(track) = self.direction(unit) {
            self.begin(track, INSTANT, unit);
        }
    }

    /// The track of a unit's direction. Nothing is left out: without one, the writing ends.
    fn direction(&mut self, unit: &Unit<'_>) -> Option<u64> {
        let track =
            self.directions.get(usize::from(unit.link) * 2 + usize::from(unit.direction & 1)).copied();
        if track.is_none() {
            self.fail(format_args!("a unit on link {}, which the trace was begun without", unit.link));
        }
        track
    }

    fn fail(&mut self, what: std::fmt::Arguments<'_>) {
        self.failed.get_or_insert_with(|| io::Error::other(what.to_string()));
    }

    fn begin(&mut self, track: u64, kind: u64, unit: &Unit<'_>) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let (name, category, sequence, transaction) = match &unit.content {
            Content::Tlp(tlp) => {
                let _ = write!(text, "{}", tlp.repr);
                (tlp.repr.name(), "tlp", Some(tlp.sequence), tlp.transaction)
            }
            Content::Dllp(dllp) => {
                let _ = write!(text, "{dllp}");
                (dllp.name(), "dllp", None, None)
            }
            Content::Flit(flit) => {
                let _ = write!(text, "flit {}, {} of 236 bytes used", flit.sequence, flit.tlp_bytes);
                ("flit", "flit", Some(flit.sequence), None)
            }
        };
        let name = self.name(name);
        let begin = self.scale.ticks(unit.start);
        self.emit(NEEDS_STATE, |p| {
            p.uint(packet::TIMESTAMP, begin);
            p.nested(packet::TRACK_EVENT, |e| {
                event(e, kind, track, name, category);
                argument(e, "text", &text);
                number(e, "start_fs", unit.start.as_fs());
                number(e, "end_fs", unit.end.as_fs());
                number(e, "arrive_fs", unit.arrive.as_fs());
                if let Some(sequence) = sequence {
                    number(e, "sequence", sequence.into());
                }
                if let Content::Tlp(tlp) = &unit.content {
                    number(e, "bytes", tlp.repr.wire_bytes().into());
                }
                if let Some(comment) = unit.flags.comment() {
                    argument(e, "flags", &comment);
                }
                if let Some(transaction) = transaction {
                    number(e, "transaction", transaction);
                    // Zero is no flow id.
                    e.fixed64(event::FLOW_IDS, transaction + 1);
                }
            });
        });
        self.text = text;
    }

    /// A transaction has ended. Transactions come in the order of their ends.
    pub fn transaction(&mut self, transaction: &Transaction<'_>) {
        let Some(track) = self.row(transaction) else {
            let flow = transaction.flow;
            return self
                .fail(format_args!("a transaction of flow {flow}, which the trace was begun without"));
        };
        let name = self.name(transaction.text.split(' ').next().unwrap_or("transaction"));
        let (begin, end) = (self.scale.ticks(transaction.start), self.scale.ticks(transaction.end));
        self.emit(NEEDS_STATE, |p| {
            p.uint(packet::TIMESTAMP, begin);
            p.nested(packet::TRACK_EVENT, |e| {
                event(e, BEGIN, track, name, "transaction");
                argument(e, "text", transaction.text);
                number(e, "transaction", transaction.id);
                number(e, "start_fs", transaction.start.as_fs());
                number(e, "end_fs", transaction.end.as_fs());
                e.fixed64(event::FLOW_IDS, transaction.id + 1);
            });
        });
        let mut at = transaction.start;
        for interval in transaction.intervals {
            let name = self.name(interval.cause);
            let (begin, fs) = (self.scale.ticks(at), interval.duration.as_fs());
            self.emit(NEEDS_STATE, |p| {
                p.uint(packet::TIMESTAMP, begin);
                p.nested(packet::TRACK_EVENT, |e| {
                    event(e, BEGIN, track, name, "cause");
                    argument(e, "place", interval.place);
                    if let Some(behind) = interval.behind {
                        argument(e, "behind", behind);
                    }
                    number(e, "duration_fs", fs);
                });
            });
            at += interval.duration;
            self.end(track, self.scale.ticks(at));
        }
        self.end(track, end);
    }

    /// Ends the trace and gives the sink back, flushed.
    ///
    /// # Errors
    /// The first error the sink gave.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.sink.flush().map(|()| self.sink),
        }
    }

    /// The row of its flow that has been free for the shortest time when the transaction starts; a new one if none is free.
    fn row(&mut self, transaction: &Transaction<'_>) -> Option<u64> {
        let (first, name, rows) = self.flows.get_mut(usize::from(transaction.flow))?;
        let free = rows.iter_mut().filter(|row| row.free_from <= transaction.start);
        if let Some(row) = free.max_by_key(|row| row.free_from) {
            row.free_from = transaction.end;
            return Some(row.track);
        }
        // Rows have the flow's name and are its children; Perfetto shows tracks of one name and parent as one.
        let (parent, name, rank) = (*first, name.clone(), rows.len() as u64);
        let track = self.track(&name, Some(parent), rank, None);
        self.flows[usize::from(transaction.flow)].2.push(Row { track, free_from: transaction.end });
        Some(track)
    }

    fn track(&mut self, name: &str, parent: Option<u64>, rank: u64, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        let uuid = self.tracks;
        self.emit(0, |p| {
            p.nested(packet::TRACK_DESCRIPTOR, |d| {
                d.uint(track::UUID, uuid);
                d.string(track::NAME, name);
                if let Some(parent) = parent {
                    d.uint(track::PARENT, parent);
                }
                d.uint(track::RANK, rank);
                match unit {
                    Some(unit) => d.nested(track::COUNTER, |c| c.string(track::COUNTER_UNIT_NAME, unit)),
                    None => d.uint(track::CHILD_ORDERING, EXPLICIT_ORDER),
                }
            });
        });
        uuid
    }

    /// The number that stands for a name, told to the reader once.
    fn name(&mut self, name: &str) -> u64 {
        if let Some(&iid) = self.names.get(name) {
            return iid;
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.into(), iid);
        self.emit(NEEDS_STATE, |p| {
            p.nested(packet::INTERNED_DATA, |data| {
                data.nested(interned::EVENT_NAMES, |entry| {
                    entry.uint(interned::IID, iid);
                    entry.string(interned::NAME, name);
                });
            });
        });
        iid
    }

    fn end(&mut self, track: u64, at: u64) {
        self.emit(NEEDS_STATE, |p| {
            p.uint(packet::TIMESTAMP, at);
            p.nested(packet::TRACK_EVENT, |e| {
                e.uint(event::TYPE, END);
                e.uint(event::TRACK, track);
            });
        });
    }

    fn emit(&mut self, flags: u64, fill: impl FnOnce(&mut Message)) {
        if self.failed.is_some() {
            return;
        }
        self.packet.clear();
        self.packet.nested(field::TRACE_PACKET, |p| {
            p.uint(packet::SEQUENCE_ID, 1);
            if flags != 0 {
                p.uint(packet::SEQUENCE_FLAGS, flags);
            }
            fill(p);
        });
        self.failed = self.sink.write_all(self.packet.as_bytes()).err();
    }
}

fn event(e: &mut Message, kind: u64, track: u64, name: u64, category: &str) {
    e.uint(event::TYPE, kind);
    e.uint(event::TRACK, track);
    e.uint(event::NAME_IID, name);
    e.string(event::CATEGORIES, category);
}

fn argument(e: &mut Message, name: &str, text: &str) {
    e.nested(event::ANNOTATION, |a| {
        a.string(annotation::NAME, name);
        a.string(annotation::STRING, text);
    });
}

fn number(e: &mut Message, name: &str, value: u64) {
    e.nested(event::ANNOTATION, |a| {
        a.string(annotation::NAME, name);
        a.uint(annotation::UINT, value);
    });
}
