//! A window of packets, kept while a run goes on: from a time on, or around the first error.

use crate::choices::choices;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::result;
use crate::view::View;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use tlplab_fabric::attribution::Interval;
use tlplab_fabric::probe::{BusRecord, Probe, TlpRecord, TransactionRecord, UnitContent, UnitRecord};
use tlplab_fabric::topology::Topology;
use tlplab_units::Time;
use tlplab_wire::tlp::{Kind, Repr, Span};

/// The packets that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub trigger: Trigger,
    /// The number of packets that are kept at most.
    pub packets: usize,
}

/// The trigger of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A time.
    At(Time),
    /// The first unit that a fault damages: half of the packets are from before.
    Error,
}

choices! {
    Trigger { "error" => Self::Error, }
}

/// `"error"`, or a time.
pub(crate) fn trigger(view: &View<'_>) -> Result<Trigger, Error> {
    view.choice().map_or_else(|| Ok(Trigger::At(Time::ZERO + view.time()?)), Ok)
}

/// Collects a window.
#[derive(Clone)]
pub(crate) struct Ladder {
    window: Window,
    packets: VecDeque<Kept>,
    triggered: bool,
    closed: bool,
    /// Transactions of the packets that have not ended.
    wanted: BTreeSet<u64>,
    transactions: Vec<result::Transaction>,
    intervals: Vec<Vec<Interval>>,
    /// Ended transactions are kept for so many that began before a trigger.
    counted: u64,
    /// By link: it is a way over a parallel bus, where transactions are shown in place of what they move.
    on_bus: Vec<bool>,
}

#[derive(Clone)]
struct Kept {
    packet: result::Packet,
}

/// The ladder, shared between the fabric's observer and whoever writes the document.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Ladder>>);

impl Shared {
    pub(crate) fn new(window: Window) -> Self {
        Self(Arc::new(Mutex::new(Ladder::new(window))))
    }
    /// A copy that holds the same so far.
    pub(crate) fn snapshot(&self) -> Self {
        Self(Arc::new(Mutex::new(self.with(|ladder| ladder.clone()))))
    }
    fn with<R>(&self, f: impl FnOnce(&mut Ladder) -> R) -> R {
        // A panic while it was held has ended the run; what was kept is still good.
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
    /// The window, with names.
    pub(crate) fn result(&self, topology: &Topology) -> Option<result::Ladder> {
        self.with(|ladder| ladder.result(topology))
    }
}

/// Passes everything on to the ladder and to another observer.
pub(crate) struct Tee {
    pub(crate) ladder: Shared,
    pub(crate) probe: Option<Box<dyn Probe>>,
}

impl Probe for Tee {
    fn begin(&mut self, topology: &Topology) {
        let on_bus = topology.links.iter().map(|link| link.bus.is_some()).collect();
        self.ladder.with(|ladder| ladder.on_bus = on_bus);
        if let Some(probe) = &mut self.probe {
            probe.begin(topology);
        }
    }
    fn unit(&mut self, record: &UnitRecord<'_>) {
        self.ladder.with(|ladder| ladder.unit(record));
        if let Some(probe) = &mut self.probe {
            probe.unit(record);
        }
    }
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        self.ladder.with(|ladder| ladder.tlp(record, tlp, result::Packet::default()));
        if let Some(probe) = &mut self.probe {
            probe.tlp_in_flit(record, tlp);
        }
    }
    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        self.ladder.with(|ladder| ladder.bus_transaction(record));
        if let Some(probe) = &mut self.probe {
            probe.bus_transaction(record);
        }
    }
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        self.ladder.with(|ladder| ladder.transaction(record));
        if let Some(probe) = &mut self.probe {
            probe.transaction(record);
        }
    }
}

impl Ladder {
    /// The window of an experiment: half-way to its end if that is known, so that the window shows the steady state.
    pub(crate) fn window(experiment: &Experiment) -> Window {
        let chosen = experiment.ladder;
        let start = experiment.fabric.warmup.as_fs();
        let middle = experiment.stop.time.map_or(start, |stop| start + (stop.as_fs() - start) / 2);
        Window {
            trigger: chosen.trigger.unwrap_or(Trigger::At(Time::from_fs(middle))),
            packets: chosen.packets,
        }
    }

    fn new(window: Window) -> Self {
        Self {
            window,
            packets: VecDeque::new(),
            triggered: matches!(window.trigger, Trigger::At(_)),
            closed: false,
            wanted: BTreeSet::new(),
            transactions: Vec::new(),
            intervals: Vec::new(),
            counted: 0,
            on_bus: Vec::new(),
        }
    }

    fn unit(&mut self, record: &UnitRecord<'_>) {
        if self.skips(record) || self.on_bus.get(record.link.index()) == Some(&true) {
            return;
        }
        match record.content {
            UnitContent::Tlp { sequence, replay, nullified, packet } => {
                let framed = result::Packet {
                    sequence: Some(sequence),
                    replay,
                    nullified,
                    ..result::Packet::default()
                };
                self.tlp(record, &packet, framed);
            }
            UnitContent::Dllp(dllp) => {
                let text = dllp.to_string();
                let kind = dllp.name().to_owned();
                let class = result::PacketClass::Dllp;
                self.keep(record, result::Packet { kind, text, class, ..result::Packet::default() });
            }
            UnitContent::Flit { sequence, replay, tlp_bytes } => {
                let text = format!("flit {sequence}, {tlp_bytes} B of TLPs");
                let (kind, class) = ("Flit".to_owned(), result::PacketClass::Flit);
                let sequence = Some(sequence);
                self.keep(
                    record,
                    result::Packet { kind, text, class, sequence, replay, ..result::Packet::default() },
                );
            }
        }
    }

    /// A transaction of a bus is one packet, unbroken from its address to the idle bus.
    fn bus_transaction(&mut self, record: &BusRecord<'_>) {
        let clocks: u32 = record.phases.iter().map(|(_, clocks)| clocks).sum();
        let end = record.start + record.cycle * u64::from(clocks);
        let sent = record.sent.to_string();
        let kind = record.sent.name().to_owned();
        let phases: Vec<String> =
            record.phases.iter().map(|(cause, clocks)| format!("{} {clocks}", cause.name())).collect();
        let text = format!(
            "{sent}: {} clocks of {}, {}; {}",
            clocks,
            record.cycle,
            phases.join(", "),
            record.outcome.name()
        );
        let id = record.sent.transaction_id();
        let packet = result::Packet {
            kind,
            role: Some(role_of(record.sent.kind())),
            header: Some(header_of(record.sent)),
            text,
            flow: Some(record.flow.index()),
            transaction: record.transaction,
            tag: Some(id.tag.value()),
            class: result::PacketClass::Bus,
            phases: record
                .phases
                .iter()
                .map(|(cause, clocks)| (*cause as usize, (record.cycle * u64::from(*clocks)).as_fs()))
                .collect(),
            outcome: Some(record.outcome.into()),
            ..result::Packet::default()
        };
        let unit = UnitRecord {
            link: record.link,
            direction: record.direction,
            start: record.start,
            end,
            arrive: end,
            bytes: record.sent.payload_bytes(),
            bad: false,
            content: UnitContent::Flit { sequence: 0, replay: false, tlp_bytes: 0 },
        };
        if !self.skips(&unit) {
            self.keep(&unit, packet);
        }
    }

    fn skips(&self, record: &UnitRecord<'_>) -> bool {
        self.closed || matches!(self.window.trigger, Trigger::At(from) if record.start < from)
    }

    /// A TLP; `framed` has what its frame says, which it has outside flits.
    fn tlp(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>, framed: result::Packet) {
        if self.skips(record) {
            return;
        }
        self.keep(record, of_tlp(tlp, framed));
    }

    fn keep(&mut self, record: &UnitRecord<'_>, packet: result::Packet) {
        if self.closed {
            return;
        }
        if !self.triggered && record.bad {
            self.triggered = true;
            let half = self.window.packets / 2;
            while self.packets.len() > half {
                self.packets.pop_front();
            }
        }
        self.wanted.extend(packet.transaction);
        self.packets.push_back(Kept {
            packet: result::Packet { id: self.counted as usize, ..on_wire(record, packet) },
        });
        self.counted += 1;
        if self.triggered {
            self.closed = self.packets.len() >= self.window.packets;
        } else if self.packets.len() > self.window.packets / 2 {
            self.packets.pop_front();
            if self.counted.is_multiple_of(self.window.packets as u64) {
                self.forget();
            }
        }
    }

    /// Drops transactions whose packets have left the window.
    fn forget(&mut self) {
        let live: BTreeSet<u64> = self.packets.iter().filter_map(|k| k.packet.transaction).collect();
        self.wanted.retain(|number| live.contains(number));
        let mut kept = self.transactions.iter().map(|t| live.contains(&t.id));
        self.intervals.retain(|_| kept.next().unwrap_or(false));
        self.transactions.retain(|t| live.contains(&t.id));
    }

    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        if self.wanted.is_empty() || !self.wanted.remove(&record.number) {
            return;
        }
        let what = if record.read { "read" } else { "write" };
        self.transactions.push(result::Transaction {
            id: record.number,
            flow: record.flow.index(),
            start_fs: record.start.as_fs(),
            end_fs: record.end.as_fs(),
            text: format!("{what} of {} B at {:#x}", record.bytes, record.address),
            ending: record.ending.into(),
            intervals: Vec::new(),
        });
        self.intervals.push(record.intervals.to_vec());
    }

    fn result(&mut self, topology: &Topology) -> Option<result::Ladder> {
        self.forget();
        let first = self.packets.front()?.packet.start_fs;
        let packets: Vec<result::Packet> = self.packets.iter().map(|k| k.packet.clone()).collect();
        let mut transactions = self.transactions.clone();
        for (transaction, intervals) in transactions.iter_mut().zip(&self.intervals) {
            let mut start_fs = transaction.start_fs;
            for interval in intervals {
                transaction.intervals.push(result::Interval {
                    cause: interval.cause() as usize,
                    place: topology.place_name(interval.place),
                    behind: interval.behind().map(|f| topology.flows[f.index()].name.clone()),
                    start_fs,
                    duration_fs: interval.duration.as_fs(),
                });
                start_fs += interval.duration.as_fs();
            }
        }
        transactions.sort_by_key(|t| t.id);
        Some(result::Ladder {
            columns: columns(topology),
            from_fs: first,
            to_fs: packets.iter().map(|p| p.arrive_fs).max().unwrap_or(first),
            packets,
            transactions,
        })
    }
}

/// A TLP as a packet; `framed` has the content of its frame.
pub(crate) fn of_tlp(tlp: &TlpRecord<'_>, framed: result::Packet) -> result::Packet {
    result::Packet {
        kind: tlp.repr.name().to_owned(),
        role: Some(role_of(tlp.repr.kind())),
        header: Some(header_of(tlp.repr)),
        text: tlp.repr.to_string(),
        flow: Some(tlp.flow.index()),
        transaction: tlp.transaction,
        tag: Some(tlp.repr.transaction_id().tag.value()),
        ..framed
    }
}

/// A packet with its place on a wire and its times.
pub(crate) fn on_wire(record: &UnitRecord<'_>, packet: result::Packet) -> result::Packet {
    result::Packet {
        link: record.link.index(),
        direction: record.direction.into(),
        start_fs: record.start.as_fs(),
        end_fs: record.end.as_fs(),
        arrive_fs: record.arrive.as_fs(),
        bytes: record.bytes,
        bad: record.bad,
        ..packet
    }
}

fn role_of(kind: &Kind) -> result::PacketRole {
    match kind {
        completion if completion.is_completion() => result::PacketRole::Completion,
        request if request.asks_for_data() => result::PacketRole::Read,
        _ => result::PacketRole::Write,
    }
}

fn header_of(repr: &Repr) -> result::TlpHeader {
    let kind = repr.kind();
    let length = Some(kind.payload_dw()).filter(|dw| *dw > 0);
    let base = result::TlpHeader {
        requester: repr.transaction_id().requester.to_string(),
        length,
        ..result::TlpHeader::default()
    };
    let hexadecimal = |address: u64| Some(format!("{address:#x}"));
    let of_span = |span: &Span| result::TlpHeader {
        address: hexadecimal(span.address()),
        first_be: Some(span.enables().first()),
        last_be: Some(span.enables().last()),
        ..base.clone()
    };
    match kind {
        Kind::MemRead { span, .. } => result::TlpHeader { length: Some(span.length().dw()), ..of_span(span) },
        Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => of_span(span),
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => result::TlpHeader {
            address: hexadecimal(port.address().into()),
            first_be: Some(port.enables()),
            ..base
        },
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => result::TlpHeader {
            function: Some(target.function().to_string()),
            register: Some(target.register()),
            first_be: Some(target.enables()),
            ..base
        },
        Kind::AtomicOp { target, .. } => result::TlpHeader { address: hexadecimal(target.address()), ..base },
        Kind::Message(_) => base,
        Kind::Completion(completion) => result::TlpHeader {
            completer: Some(completion.completer().to_string()),
            status: Some(completion.status().into()),
            byte_count: Some(completion.byte_count()),
            lower_address: Some(completion.lower_address()),
            ..base
        },
    }
}

/// Devices left, switches between, root ports right: children before their parent.
fn columns(topology: &Topology) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let tops: Vec<&str> = topology
        .links
        .iter()
        .map(|link| topology.ports[link.ports[1].index()].name.as_str())
        .filter(|upper| !topology.links.iter().any(|l| l.name == *upper))
        .collect();
    for top in tops {
        below(topology, top, &mut names);
        names.push(top.into());
    }
    names
}

fn below(topology: &Topology, upper: &str, names: &mut Vec<String>) {
    for link in &topology.links {
        if topology.ports[link.ports[1].index()].name == upper {
            below(topology, &link.name, names);
            names.push(link.name.clone());
        }
    }
}
