//! One channel of the model: its ring, what is fetched, what is under way.

use super::regs::{Descriptor, Record, ch};
use crate::contract::OpId;
use std::collections::VecDeque;

/// Descriptors that one read fetches at most.
const BATCH: u32 = 32;
/// Descriptors that are held at most.
const BUFFER: usize = 64;
/// Longest piece of data that is asked for at once: no more than that lies ahead of descriptors and of the other channel.
const PIECE: u32 = 4096;
/// After so many descriptors the record is written back in any case.
const RECORD_EVERY: u32 = 64;

/// A part of a descriptor's data, at most [`PIECE`] bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) host: u64,
    pub(super) local: u32,
    pub(super) bytes: u32,
    /// What its descriptor wants at its end, if this is that.
    pub(super) last: Option<Descriptor>,
}

/// A piece that was asked for.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    op: OpId,
    piece: Piece,
    /// The error code that it ended with; 0 is none.
    over: Option<u32>,
}

/// What a channel has to tell after something was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) record: bool,
    pub(super) interrupt: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    pub(super) base: u64,
    pub(super) log2: u32,
    pub(super) tail: u32,
    pub(super) head: u32,
    pub(super) fetched: u32,
    pub(super) write_back: u64,
    pub(super) control: u32,
    pub(super) status: u32,
    pub(super) pushed: [u32; 4],
    pub(super) fetch: Option<(OpId, u32)>,
    held: VecDeque<Descriptor>,
    /// Bytes of the first of `held` that were asked for.
    cut: u32,
    under_way: VecDeque<UnderWay>,
    since_record: u32,
}

impl Channel {
    pub(super) fn runs(&self) -> bool {
        self.control & ch::RUN != 0 && self.status & Record::HALTED == 0
    }
    pub(super) fn is_idle(&self) -> bool {
        self.fetch.is_none() && self.under_way.is_empty()
    }
    pub(super) fn room(&self) -> u32 {
        (BUFFER - self.held.len()) as u32
    }
    pub(super) fn record(&self) -> Record {
        Record { head: self.head, status: self.status & 0xFF }
    }

    /// Where the next descriptors are, and how many to fetch; `None` if there are none, no room, or a fetch is on its way.
    pub(super) fn next_fetch(&self) -> Option<(u64, u32)> {
        let posted = self.tail.wrapping_sub(self.fetched);
        if !self.runs() || self.control & ch::PIO != 0 || self.fetch.is_some() || posted == 0 {
            return None;
        }
        let entries = 1 << self.log2.min(16);
        let slot = self.fetched % entries;
        let batch = posted.min(BATCH).min(self.room()).min(entries - slot);
        (batch > 0).then(|| (self.base + u64::from(slot) * Descriptor::BYTES as u64, batch))
    }

    /// Fetched descriptors are there.
    pub(super) fn hold(&mut self, descriptors: impl IntoIterator<Item = Descriptor>) {
        self.held.extend(descriptors);
    }

    /// A descriptor that came by PIO.
    pub(super) fn push(&mut self, descriptor: Descriptor) {
        if self.room() == 0 {
            self.status |= 1 << 8;
            return;
        }
        self.fetched = self.fetched.wrapping_add(1);
        self.held.push_back(descriptor);
    }

    /// What to ask for next, with at most `depth` pieces under way.
    pub(super) fn next_piece(&mut self, depth: usize) -> Option<Piece> {
        if !self.runs() || self.under_way.len() >= depth {
            return None;
        }
        let descriptor = *self.held.front()?;
        let (host, left) = (descriptor.host + u64::from(self.cut), descriptor.bytes.saturating_sub(self.cut));
        let bytes = left.min(PIECE - (host % u64::from(PIECE)) as u32);
        let ends = bytes == left;
        let piece = Piece {
            host,
            local: descriptor.local.wrapping_add(self.cut),
            bytes,
            last: ends.then_some(descriptor),
        };
        if ends {
            self.held.pop_front();
            self.cut = 0;
        } else {
            self.cut += bytes;
        }
        Some(piece)
    }

    pub(super) fn started(&mut self, op: OpId, piece: Piece) {
        self.under_way.push_back(UnderWay { op, piece, over: None });
    }

    /// The piece of an operation that is over, with this error code.
    pub(super) fn over(&mut self, op: OpId, code: u32) -> Option<Piece> {
        let found = self.under_way.iter_mut().find(|one| one.op == op)?;
        found.over = Some(code);
        Some(found.piece)
    }

    /// Stops at the head: `code` says why.
    pub(super) fn halt(&mut self, code: u32) -> News {
        self.status = self.status & !Record::ERROR | Record::HALTED | code;
        self.under_way.clear();
        self.held.clear();
        News { record: true, interrupt: true }
    }

    /// Moves the head over all that is done, in order; halts at what failed.
    pub(super) fn retire(&mut self) -> News {
        let mut news = News::default();
        while let Some((done, code)) = self.under_way.front().and_then(|one| Some((*one, one.over?))) {
            if code != 0 {
                return self.halt(code);
            }
            if let Some(descriptor) = done.piece.last {
                self.head = self.head.wrapping_add(1);
                self.since_record += 1;
                news.interrupt |= descriptor.interrupt;
                news.record |= descriptor.interrupt || descriptor.write_back;
            }
            self.under_way.pop_front();
        }
        let empty = self.under_way.is_empty() && self.held.is_empty();
        news.record |= self.since_record >= RECORD_EVERY || empty && self.since_record > 0;
        if news.record {
            self.since_record = 0;
        }
        news
    }

    /// As after a reset, but for where ring and record are.
    pub(super) fn reset(&mut self) {
        *self = Self { base: self.base, log2: self.log2, write_back: self.write_back, ..Self::default() };
    }
}
