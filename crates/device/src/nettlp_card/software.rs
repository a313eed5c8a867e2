//! Operations of the software: each is cut into requests, of which one is under way at a time.

use super::ToCard;
use crate::contract::{DmaError, OpId};
use std::collections::{BTreeMap, BTreeSet};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Tag, Time};

/// A read that is over.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub(super) op: OpId,
    pub(super) begun: Time,
    pub(super) result: Result<Payload, DmaError>,
}

/// The kind of an operation.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A DMA read, and what of it has come.
    Read { op: OpId, address: u64, bytes: u64, carry: bool, data: Vec<Payload> },
    /// A DMA write.
    Write { op: OpId, address: u64, data: Payload },
    /// An interrupt.
    Msix { vector: u16 },
}

#[derive(Clone, Debug)]
struct Operation {
    stream: u16,
    core: usize,
    begun: Time,
    work: Work,
    /// Bytes of requests that were answered or have left.
    done: u64,
    /// Bytes of the request under way.
    bytes: u64,
    /// Its number, so that what comes late is not taken for the next one's.
    request: u64,
    since: Time,
}

/// The operations that are not over.
#[derive(Clone, Debug)]
pub(super) struct Operations {
    mps: u64,
    mrrs: u64,
    next: u64,
    all: BTreeMap<u64, Operation>,
    /// Operations that have a request to send.
    ready: BTreeSet<u64>,
    /// Interrupts and flushes that wait for the earlier writes of their stream.
    behind: BTreeSet<u64>,
}

impl Operations {
    pub(super) fn new(mps: u32, mrrs: u32) -> Self {
        Self {
            mps: mps.into(),
            mrrs: mrrs.into(),
            next: 0,
            all: BTreeMap::new(),
            ready: BTreeSet::new(),
            behind: BTreeSet::new(),
        }
    }

    /// A core begins an operation.
    pub(super) fn begin(&mut self, now: Time, stream: u16, core: usize, work: Work) {
        let ordered = matches!(work, Work::Msix { .. } | Work::Read { bytes: 0, .. });
        let operation =
            Operation { stream, core, begun: now, work, done: 0, bytes: 0, request: 0, since: now };
        self.all.insert(self.next, operation);
        if ordered {
            self.behind.insert(self.next);
            self.release();
        } else {
            self.ready.insert(self.next);
        }
        self.next += 1;
    }

    /// Interrupts and flushes go once the writes before them have left.
    fn release(&mut self) {
        let blocked = |id: &u64| {
            let stream = self.all[id].stream;
            let earlier = self.all.range(..id);
            earlier
                .into_iter()
                .any(|(_, o)| o.stream == stream && matches!(o.work, Work::Write { .. } | Work::Msix { .. }))
        };
        let free: Vec<u64> = self.behind.iter().copied().filter(|id| !blocked(id)).collect();
        for id in free {
            self.behind.remove(&id);
            self.ready.insert(id);
        }
    }

    /// The next request of an operation that has none under way: the operation, its core, the request.
    pub(super) fn next_datagram(&mut self) -> Option<(u64, usize, ToCard)> {
        let id = self.ready.pop_first()?;
        let (mps, mrrs) = (self.mps, self.mrrs);
        let operation = self.all.get_mut(&id)?;
        let done = operation.done;
        let cut = |address: u64, left: u64, limit: u64| left.min(limit).min(4096 - (address + done) % 4096);
        operation.request += 1;
        let (what, bytes) = match &operation.work {
            Work::Read { address, bytes, carry, .. } => {
                let piece = cut(*address, bytes - done, mrrs);
                (ToCard::Read { job: id, address: address + done, bytes: piece, carry: *carry }, piece)
            }
            Work::Write { address, data, .. } => {
                let piece = cut(*address, data.len() - done, mps);
                (ToCard::Write { address: address + done, data: data.slice(done, piece) }, piece)
            }
            Work::Msix { vector } => (ToCard::Msix { vector: *vector }, 0),
        };
        operation.bytes = bytes;
        Some((id, operation.core, what))
    }

    pub(super) fn stream(&self, id: u64) -> u16 {
        self.all.get(&id).map_or(0, |operation| operation.stream)
    }

    /// A request has left. Returns the write that is over with it.
    pub(super) fn left(&mut self, id: u64, now: Time) -> Option<OpId> {
        let operation = self.all.get_mut(&id)?;
        operation.since = now;
        let over = match &operation.work {
            Work::Read { .. } => return None,
            Work::Write { op, data, .. } => {
                operation.done += operation.bytes;
                if operation.done < data.len() {
                    self.ready.insert(id);
                    return None;
                }
                Some(*op)
            }
            Work::Msix { .. } => None,
        };
        self.all.remove(&id);
        self.release();
        over
    }

    pub(super) fn core_and_address(&self, id: u64) -> Option<(usize, u64)> {
        let operation = self.all.get(&id)?;
        match &operation.work {
            Work::Read { address, .. } => Some((operation.core, address + operation.done)),
            _ => None,
        }
    }

    /// The request under way, and when it left.
    pub(super) fn under_way(&self, id: u64) -> Option<(u64, Time)> {
        self.all.get(&id).map(|operation| (operation.request, operation.since))
    }

    /// A request of a read is answered. Returns the read if it is over.
    pub(super) fn answered(&mut self, id: u64, result: Result<Payload, DmaError>) -> Option<Over> {
        let operation = self.all.get_mut(&id)?;
        let Work::Read { op, bytes, data, .. } = &mut operation.work else { return None };
        let (op, begun) = (*op, operation.begun);
        let piece = match result {
            Ok(piece) => piece,
            Err(error) => return self.over(id, op, begun, Err(error)),
        };
        data.push(piece);
        operation.done += operation.bytes;
        if operation.done < *bytes {
            self.ready.insert(id);
            return None;
        }
        let whole = join(data);
        self.over(id, op, begun, Ok(whole))
    }

    /// A completion was lost, and the read is given up, unless another request is under way meanwhile.
    pub(super) fn give_up(&mut self, id: u64, request: u64, after: Duration) -> Option<Over> {
        let operation = self.all.get(&id).filter(|operation| operation.request == request)?;
        let Work::Read { op, address, .. } = operation.work else { return None };
        let (address, begun) = (address + operation.done, operation.begun);
        let tag = Tag::new((id % 256) as u16)?;
        let lost = CompletionError::Timeout { address, tag, after };
        self.over(id, op, begun, Err(lost.into()))
    }

    fn over(&mut self, id: u64, op: OpId, begun: Time, result: Result<Payload, DmaError>) -> Option<Over> {
        self.all.remove(&id);
        self.release();
        Some(Over { op, begun, result })
    }
}

/// The pieces of a read as one.
fn join(pieces: &mut Vec<Payload>) -> Payload {
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    let all: Option<Vec<&[u8]>> = pieces.iter().map(Payload::bytes).collect();
    match all {
        Some(all) => all.concat().into(),
        None => Payload::Length(pieces.iter().map(Payload::len).sum()),
    }
}
