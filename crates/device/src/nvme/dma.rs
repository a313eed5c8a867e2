//! Reads and writes of host memory, so many at once.

use crate::contract::{Context, OpId};
use crate::kit::Operations;
use std::collections::VecDeque;
use tlplab_transaction::Payload;

crate::streams! {
    /// Submission queue entries.
    pub(super) FETCH: "commands" = "read";
    /// PRP lists and SGLs.
    pub(super) LISTS: "lists" = "read";
    /// Data from the host.
    pub(super) FROM_HOST: "from_host" = "read";
    /// Writes, and the interrupts that must stay behind it.
    pub(super) WRITES: "to_host" = "write";
}

/// The purpose of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Entries of this submission queue.
    Fetch(u16),
    /// A list of this command's data.
    List(u64),
    /// Data of this command, at this place of them.
    Data { command: u64, offset: u64 },
    /// An entry of this completion queue, at this address.
    Completion { queue: u16, address: u64 },
    /// Of nobody any more.
    Forgotten,
}

#[derive(Clone, Debug)]
enum Access {
    Read { stream: u16, address: u64, bytes: u64, control: bool },
    Write { address: u64, data: Payload },
}

/// The accesses under way and those that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Dma {
    most: usize,
    under_way: Operations<Purpose>,
    /// Queue entries and lists go before data.
    urgent: VecDeque<(Purpose, Access)>,
    bulk: VecDeque<(Purpose, Access)>,
}

impl Dma {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Entries or a list are read, as bytes in every run.
    pub(super) fn read_control(&mut self, purpose: Purpose, stream: u16, address: u64, bytes: u64) {
        self.urgent.push_back((purpose, Access::Read { stream, address, bytes, control: true }));
    }
    /// Data are read.
    pub(super) fn read(&mut self, purpose: Purpose, address: u64, bytes: u64, control: bool) {
        self.bulk.push_back((purpose, Access::Read { stream: FROM_HOST, address, bytes, control }));
    }
    /// Data are written.
    pub(super) fn write(&mut self, purpose: Purpose, address: u64, data: Payload) {
        self.bulk.push_back((purpose, Access::Write { address, data }));
    }
    /// A completion is written. Its command's data were accepted already.
    pub(super) fn complete(&mut self, purpose: Purpose, address: u64, entry: &[u8]) {
        self.urgent.push_back((purpose, Access::Write { address, data: entry.into() }));
    }

    /// Begins what may begin.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) {
        while self.under_way.len() < self.most {
            let Some((purpose, access)) = self.urgent.pop_front().or_else(|| self.bulk.pop_front()) else {
                return;
            };
            let op = match access {
                Access::Read { stream, address, bytes, control: true } => {
                    cx.dma_read_control(stream, address, bytes)
                }
                Access::Read { stream, address, bytes, control: false } => {
                    cx.dma_read(stream, address, bytes)
                }
                Access::Write { address, data } => cx.dma_write(WRITES, address, data),
            };
            self.under_way.begin(op, purpose);
        }
    }

    /// An access is over.
    pub(super) fn take(&mut self, op: OpId) -> Option<Purpose> {
        self.under_way.end(op)
    }

    /// Nobody waits any more. What is under way will still end.
    pub(super) fn forget(&mut self) {
        self.urgent.clear();
        self.bulk.clear();
        self.under_way.iter_mut().for_each(|purpose| *purpose = Purpose::Forgotten);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }
}
