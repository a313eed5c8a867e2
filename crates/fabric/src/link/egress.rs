//! The one place where a TLP waits at each hop: the queues of the port it leaves by, per (ingress, VC, class), and the arbiter that
//! chooses among them.

use crate::kernel::ids::PortId;
use crate::packet::slab::TlpHandle;
use tlplab_datalink::{Blocked, TlpShape};
use tlplab_transaction::{OrderedQueue, OrderingAttributes};
use tlplab_units::{FcClass, Time};

/// A TLP that waits for the egress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) tlp: TlpHandle,
    pub(crate) shape: TlpShape,
    /// The port whose receive buffer holds it; `None` if it was made here.
    pub(crate) ingress: Option<PortId>,
    /// The arrival of its last byte (cut-through); the past, if it has arrived.
    pub(crate) tail: Time,
    /// Its LCRC turned out bad while it was being forwarded.
    pub(crate) nullified: bool,
}

#[derive(Clone)]
pub(crate) struct Egress {
    sources: Vec<Source>,
    waiting: usize,
    /// The source in turn, and the number of TLPs that it may still send in this turn.
    turn: usize,
    left: u16,
    /// Requests and completions of a source take turns: an end point's come from two engines. By age, its own requests, of which few
    /// wait at a time, would stand behind everything that others read of it.
    two_engines: bool,
}

#[derive(Clone)]
struct Source {
    queue: OrderedQueue<Waiting>,
    weight: u16,
    /// Its last TLP was a completion.
    answered: bool,
}

impl Waiting {
    /// A TLP that was made at this node.
    pub(crate) fn own(tlp: TlpHandle, shape: TlpShape) -> Self {
        Self { tlp, shape, ingress: None, tail: Time::ZERO, nullified: false }
    }
}

/// The answer of the arbiter.
#[derive(Clone)]
pub(crate) enum Choice {
    /// This TLP goes.
    Send(Waiting),
    /// Nothing may go; why the heads of the classes may not (`None`: nothing of that class waits).
    Blocked([Option<Blocked>; 3]),
}

impl Egress {
    /// One source for each weight; of an end point, or not.
    pub(crate) fn new(weights: impl Iterator<Item = u16>, end_point: bool) -> Self {
        let source =
            |weight: u16| Source { queue: OrderedQueue::new(), weight: weight.max(1), answered: false };
        let sources: Vec<_> = weights.map(source).collect();
        let left = sources.first().map_or(0, |s| s.weight);
        Self { sources, waiting: 0, turn: 0, left, two_engines: end_point }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn len_of(&self, source: usize, class: FcClass) -> usize {
        self.sources[source].queue.len_of(class)
    }

    pub(crate) fn push(&mut self, source: usize, attributes: OrderingAttributes, waiting: Waiting) {
        self.sources[source].queue.push(waiting.shape.class, attributes, waiting);
        self.waiting += 1;
    }

    /// Weighted round robin among sources, the oldest that may go within a source (of an end point: of the engine whose turn it is).
    pub(crate) fn pick(&mut self, admit: impl Fn(&TlpShape) -> Result<(), Blocked>) -> Choice {
        let mut blocked = [None; 3];
        if self.waiting == 0 {
            return Choice::Blocked(blocked);
        }
        let count = self.sources.len();
        let mut source = self.turn;
        for step in 0..=count {
            // The source whose turn it is comes first while it has something left, and last when it has not.
            if step > 0 {
                source = if source + 1 == count { 0 } else { source + 1 };
            }
            if (step == 0 && self.left == 0) || (step == count && self.left > 0) {
                continue;
            }
            let Source { queue, answered, .. } = &mut self.sources[source];
            if queue.is_empty() {
                continue;
            }
            let mut may_go = |(class, head): (FcClass, &Waiting)| match admit(&head.shape) {
                Ok(()) => Some(class),
                Err(reason) => {
                    blocked[class.index()] = Some(reason);
                    None
                }
            };
            let chosen = match queue.only_class() {
                Some(class) => queue.head(class).and_then(|head| may_go((class, head))),
                None if self.two_engines => in_turn(queue, *answered).into_iter().flatten().find_map(may_go),
                None => queue.candidates().find_map(may_go),
            };
            if let Some(class) = chosen
                && let Some(waiting) = queue.pop(class)
            {
                *answered = class == FcClass::Completion;
                self.left = if step == 0 { self.left - 1 } else { self.sources[source].weight - 1 };
                self.turn = source;
                self.waiting -= 1;
                return Choice::Send(waiting);
            }
        }
        Choice::Blocked(blocked)
    }

    /// The next TLP: of the sources in turn the oldest TLP that `may_go`. For a bus, whose masters choose among more than this queue.
    pub(crate) fn look(&self, may_go: impl Fn(FcClass, &Waiting) -> bool) -> Option<Waiting> {
        self.find(may_go).map(|(.., waiting)| waiting)
    }

    /// Takes it. A source whose turn it is has as many in a row as its weight says.
    pub(crate) fn take(&mut self, may_go: impl Fn(FcClass, &Waiting) -> bool) -> Option<Waiting> {
        let (source, class, _) = self.find(may_go)?;
        let left = if source == self.turn { self.left } else { self.sources[source].weight };
        (self.turn, self.left) = (source, left - 1);
        if self.left == 0 {
            self.turn = (source + 1) % self.sources.len();
            self.left = self.sources[self.turn].weight;
        }
        self.waiting -= 1;
        self.sources[source].queue.pop(class)
    }

    /// The earliest `tail` of those that may be next.
    pub(crate) fn earliest(&self, may_go: impl Fn(FcClass, &Waiting) -> bool) -> Option<Time> {
        let candidates = self.sources.iter().flat_map(|source| source.queue.candidates());
        candidates.filter(|(class, head)| may_go(*class, head)).map(|(_, head)| head.tail).min()
    }

    fn find(&self, may_go: impl Fn(FcClass, &Waiting) -> bool) -> Option<(usize, FcClass, Waiting)> {
        let count = self.sources.len();
        (0..count).map(|step| (self.turn + step) % count).find_map(|source| {
            let mut candidates = self.sources[source].queue.candidates();
            let (class, head) = candidates.find(|(class, head)| may_go(*class, head))?;
            Some((source, class, *head))
        })
    }

    /// Everything that waits.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.sources.iter().flat_map(|source| source.queue.iter())
    }

    /// Removes everything: the link went down.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Waiting> {
        self.waiting = 0;
        self.sources.iter_mut().flat_map(|s| s.queue.drain())
    }
}

/// The TLPs that may go, the ones of the engine whose turn it is first. `answered`: a completion was the last that went.
#[inline(never)] // few TLPs come here: what all pass stays short
fn in_turn(queue: &OrderedQueue<Waiting>, answered: bool) -> [Option<(FcClass, &Waiting)>; 3] {
    let mut found = [None; 3];
    for (place, candidate) in found.iter_mut().zip(queue.candidates()) {
        *place = Some(candidate);
    }
    found.sort_by_key(|one| one.is_some_and(|(class, _)| (class == FcClass::Completion) == answered));
    found
}
