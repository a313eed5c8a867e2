//! One channel of the model: its ring, what is fetched, what is under way.

use super::regs::{Descriptor, Record, ch};
use super::{FETCH, code};
use crate::contract::{Context, DmaError};
use crate::kit::{Batch, InOrder, RegisterFile, Ring};
use std::collections::VecDeque;
use tlplab_transaction::Payload;

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
    /// Its descriptor, if this is its end.
    pub(super) last: Option<Descriptor>,
}

/// The results of a channel to report after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) record: bool,
    pub(super) interrupt: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) file: RegisterFile,
    pub(super) ring: Ring,
    held: VecDeque<Descriptor>,
    /// Bytes of the first of `held` that were asked for.
    cut: u32,
    /// Pieces that were asked for. They end with an error code; 0 is none.
    pub(super) under_way: InOrder<Piece, u32>,
    since_record: u32,
}

impl Channel {
    pub(super) fn new() -> Self {
        Self {
            file: RegisterFile::new(ch::TABLE),
            ring: Ring::new(FETCH, Descriptor::BYTES as u32),
            held: VecDeque::new(),
            cut: 0,
            under_way: InOrder::new(),
            since_record: 0,
        }
    }
    fn runs(&self) -> bool {
        self.file.get(ch::CONTROL) & ch::RUN != 0 && self.file.get(ch::STATUS) & Record::HALTED == 0
    }
    pub(super) fn is_idle(&self) -> bool {
        !self.ring.is_fetching() && self.under_way.is_empty()
    }
    fn room(&self) -> u32 {
        (BUFFER - self.held.len()) as u32
    }
    pub(super) fn record(&self) -> Record {
        Record { head: self.ring.done(), status: self.file.get(ch::STATUS) & 0xFF }
    }

    /// Brings the registers up to date that software may read.
    pub(super) fn show(&mut self) {
        self.file.set(ch::HEAD, self.ring.done());
        self.file.set(ch::FETCHED, self.ring.fetched());
        self.file.set(ch::PIO_ROOM, self.room());
    }

    /// Software writes a register.
    pub(super) fn write(&mut self, at: u64, value: u32) {
        if at == ch::CONTROL.offset() && value & ch::RESET != 0 {
            return self.reset();
        }
        self.file.write_bytes(at, &value.to_le_bytes());
        if at == ch::PIO_DESCRIPTOR.offset() + 12 {
            let mut bytes = [0; Descriptor::BYTES];
            self.file.read_into(ch::PIO_DESCRIPTOR.offset(), &mut bytes);
            self.push(Descriptor::from_bytes(&bytes));
        }
    }

    /// Fetches the next descriptors if there are any, and room for them.
    pub(super) fn fetch(&mut self, cx: &mut Context<'_>) {
        if self.runs() && self.file.get(ch::CONTROL) & ch::PIO == 0 {
            let entries = 1 << self.file.get(ch::LOG2).min(16);
            let most = BATCH.min(self.room());
            self.ring.fetch(cx, self.file.get(ch::BASE), entries, self.file.get(ch::TAIL), most);
        }
    }

    /// Descriptors came, or did not.
    pub(super) fn fetched(&mut self, batch: Batch, result: &Result<Payload, DmaError>) -> News {
        match result {
            Ok(Payload::Bytes(bytes)) => {
                self.ring.advance(batch.count);
                self.held.extend(bytes.as_chunks().0.iter().map(Descriptor::from_bytes));
                News::default()
            }
            Ok(Payload::Length(_)) => News::default(),
            Err(why) => self.halt(code(why)),
        }
    }

    /// A descriptor that came by PIO.
    fn push(&mut self, descriptor: Descriptor) {
        if self.room() == 0 {
            return self.file.set(ch::STATUS, self.file.get(ch::STATUS) | 1 << 8);
        }
        self.ring.advance(1);
        self.held.push_back(descriptor);
    }

    /// The next piece to request, with at most `depth` pieces under way.
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

    /// Stops at the head: `code` says why.
    fn halt(&mut self, code: u32) -> News {
        let status = self.file.get(ch::STATUS) & !Record::ERROR | Record::HALTED | code;
        self.file.set(ch::STATUS, status);
        self.under_way.clear();
        self.held.clear();
        News { record: true, interrupt: true }
    }

    /// Moves the head over all that is done, in order; halts at what failed.
    pub(super) fn retire(&mut self) -> News {
        let mut news = News::default();
        while let Some((piece, code)) = self.under_way.next() {
            if code != 0 {
                return self.halt(code);
            }
            if let Some(descriptor) = piece.last {
                self.ring.finish();
                self.since_record += 1;
                news.interrupt |= descriptor.interrupt;
                news.record |= descriptor.interrupt || descriptor.write_back;
            }
        }
        let empty = self.under_way.is_empty() && self.held.is_empty();
        news.record |= self.since_record >= RECORD_EVERY || empty && self.since_record > 0;
        if news.record {
            self.since_record = 0;
        }
        news
    }

    /// As after a reset, but for where ring and record are.
    fn reset(&mut self) {
        let Self { file, .. } = std::mem::replace(self, Self::new());
        self.file.set(ch::BASE, file.get(ch::BASE));
        self.file.set(ch::LOG2, file.get(ch::LOG2));
        self.file.set(ch::WRITE_BACK, file.get(ch::WRITE_BACK));
    }
}
