//! Answers to reads whose lines reach the root port one after the other: completions are made of the lines that are there.
//!
//! The port answers reads in the order in which their first lines come. When its transmitter takes the next completion, that carries
//! all lines of the read which have come by then and which fit: on an idle link a line each, behind others as many as may be.

use crate::config::HostConfig;
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::completion::part_of;
use crate::link::context::Context;
use crate::link::port::Port;
use crate::observe::topology::NodeKind;
use crate::packet::attribution::Cause;
use crate::packet::slab::TlpHandle;
use std::collections::VecDeque;
use tlplab_transaction::{Completions, memory_access};
use tlplab_units::{Duration, FcClass, Time};

/// The answers that wait at a root port.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pace: Pace,
    answers: VecDeque<Answer>,
    /// There is an event for a line that comes then.
    wakes: Time,
    /// The source of the root complex's own TLPs in the egress queues.
    source: usize,
}

/// The pace of the lines of a read.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval: Duration,
    /// Bytes of a line: the Read Completion Boundary, at which completions may be cut.
    line: u32,
}

#[derive(Clone, Debug)]
struct Answer {
    request: TlpHandle,
    completions: Completions,
    /// The arrival of the first line, and its bytes of the read.
    from: Time,
    first: u32,
    /// Bytes of the read.
    bytes: u32,
    /// Bytes in completions so far.
    sent: u32,
}

impl Lines {
    pub(crate) fn of(host: &HostConfig, node: NodeKind, source: usize) -> Option<Box<Self>> {
        let interval = host.line_interval.filter(|_| node == NodeKind::Root)?;
        let pace = Pace { interval, line: host.rcb.bytes() };
        Some(Box::new(Self { pace, answers: VecDeque::new(), wakes: Time::ZERO, source }))
    }
}

impl Answer {
    /// Bytes that are there.
    fn available(&self, now: Time, pace: Pace) -> u32 {
        let further = (now - self.from).as_fs().checked_div(pace.interval.as_fs()).unwrap_or(u64::MAX);
        let available = further.saturating_mul(pace.line.into()).saturating_add(self.first.into());
        available.min(self.bytes.into()) as u32
    }

    /// The arrival of the line with this byte of the read.
    fn ready_at(&self, byte: u32, pace: Pace) -> Time {
        let number = (byte + pace.line).saturating_sub(self.first) / pace.line;
        self.from + pace.interval * u64::from(number)
    }
}

impl Context {
    /// The first line of an answer to a read of host memory is at the root port.
    pub(crate) fn answer_by_lines(&mut self, egress: PortId, request: TlpHandle, completions: Completions) {
        let (now, place) = (self.kernel.now(), self.place_of(self.host.node));
        let tlp = self.tlps.get_mut(request);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        let access = memory_access(&tlp.repr);
        let (address, bytes) = access.map_or((0, 0), |access| (access.address, access.bytes));
        let port = &mut self.links.ports[egress.index()];
        let Some(lines) = port.lines.as_mut().filter(|_| !port.discards) else {
            return self.drop_tlp(request);
        };
        let line = lines.pace.line;
        // A read of nothing is answered by the line it names.
        let first = (line - (address % u64::from(line)) as u32).min(bytes.max(1));
        lines.answers.push_back(Answer { request, completions, from: now, first, bytes, sent: 0 });
        self.try_transmit(egress);
    }

    /// The transmitter is about to choose what it sends: the next completion is made of the lines that are there.
    pub(crate) fn take_lines(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        let Some(lines) = &mut port.lines else { return };
        let source = lines.source;
        let Some(answer) = lines.answers.front_mut() else { return };
        if port.egress.len_of(source, FcClass::Completion) > 0 {
            return;
        }
        let pace = lines.pace;
        let Some(completion) = answer.completions.next_within(answer.available(now, pace)) else {
            let comes = answer.ready_at(answer.sent, pace);
            if std::mem::replace(&mut lines.wakes, comes) != comes {
                self.schedule(comes, EventKind::LineReady, u32::from(id.0), 0);
            }
            return;
        };
        answer.sent += completion.bytes;
        let (request, complete) = (answer.request, answer.ready_at(answer.bytes.max(1) - 1, pace));
        if completion.last {
            lines.answers.pop_front();
            self.agenda.push(Task::Answered);
            let place = self.place_of(self.host.node);
            let tlp = self.tlps.get_mut(request);
            if tlp.tracked {
                tlp.ledger.charge(complete, place, Cause::Completer);
                tlp.ledger.charge(now, Port::place(id), Cause::Queueing);
            }
        }
        let part = part_of(&self.tlps.get(request).payload, &completion);
        let waiting = self.make_completion(id, request, completion.repr, part, completion.last);
        self.start_wait(id, &waiting);
        self.push_to_egress(id, source, waiting);
        if completion.last {
            self.drop_tlp(request);
        }
    }

    /// The link went down: what waits for it is lost.
    pub(crate) fn discard_lines(&mut self, id: PortId) {
        let port = &mut self.links.ports[id.index()];
        let Some(lines) = &mut port.lines else { return };
        let lost = std::mem::take(&mut lines.answers);
        port.counters.discarded += lost.len() as u64;
        lost.into_iter().for_each(|answer| self.drop_tlp(answer.request));
    }
}
