//! Submission and completion queues as the controller sees them (NVMe 1.4 §4.1).

use super::command::{COMPLETION, ENTRY};
use super::status::Status;
use std::collections::VecDeque;

/// A doorbell was invalid and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidDoorbell;

/// A submission queue.
#[derive(Clone, Debug)]
pub(super) struct SubmissionQueue {
    base: u64,
    size: u32,
    /// The entry that is fetched next.
    pub(super) head: u32,
    tail: u32,
    /// Its completion queue.
    pub(super) completes_to: u16,
    /// Entries that a read under way fetches.
    pub(super) fetching: u32,
    /// Commands fetched and not completed.
    pub(super) under_way: u32,
    /// The command that deletes it.
    pub(super) deleted_by: Option<u64>,
}

impl SubmissionQueue {
    pub(super) fn new(base: u64, size: u32, completes_to: u16) -> Self {
        Self { base, size, head: 0, tail: 0, completes_to, fetching: 0, under_way: 0, deleted_by: None }
    }

    /// The tail doorbell was written. No more entries can be new than were free.
    pub(super) fn doorbell(&mut self, tail: u32) -> Result<(), InvalidDoorbell> {
        if tail >= self.size {
            return Err(InvalidDoorbell);
        }
        let distance = |from: u32, to: u32| (to + self.size - from) % self.size;
        if distance(self.head, self.tail) + distance(self.tail, tail) >= self.size {
            return Err(InvalidDoorbell);
        }
        self.tail = tail;
        Ok(())
    }

    /// Entries that can be fetched by one read: they are consecutive in memory.
    pub(super) fn fetchable(&self) -> u32 {
        if self.fetching > 0 || self.deleted_by.is_some() {
            0
        } else if self.tail >= self.head {
            self.tail - self.head
        } else {
            self.size - self.head
        }
    }

    /// Address of the entry at the head.
    pub(super) fn head_address(&self) -> u64 {
        self.base.wrapping_add(u64::from(self.head) * ENTRY)
    }

    /// The read under way is over, and so many entries were taken.
    pub(super) fn fetched(&mut self, entries: u32) {
        self.fetching = 0;
        self.under_way += entries;
        self.head = (self.head + entries) % self.size;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.fetching == 0 && self.under_way == 0
    }
}

/// The content of a completion, but for the phase tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    /// Command specific: dword 0.
    pub(super) result: u32,
    /// The submission queue.
    pub(super) queue: u16,
    /// The command's identifier.
    pub(super) id: u16,
    pub(super) status: Status,
}

/// A completion queue.
#[derive(Clone, Debug)]
pub(super) struct CompletionQueue {
    base: u64,
    size: u32,
    /// The entry that software looks at next, as far as it has told.
    head: u32,
    /// The entry that is written next.
    tail: u32,
    /// The phase tag of entries in this round.
    phase: bool,
    /// Entries that are in memory, or as good as: the next that is not.
    arrived: u32,
    /// The interrupt vector, if it interrupts.
    pub(super) vector: Option<u16>,
    /// Commands of its submission queues that are under way: there must be room for them.
    pub(super) expected: u32,
    /// Completions for which there is no room.
    pub(super) waiting: VecDeque<Completion>,
}

impl CompletionQueue {
    pub(super) fn new(base: u64, size: u32, vector: Option<u16>) -> Self {
        Self {
            base,
            size,
            head: 0,
            tail: 0,
            phase: true,
            arrived: 0,
            vector,
            expected: 0,
            waiting: VecDeque::new(),
        }
    }

    /// The head doorbell was written: software has taken entries, and only such as there are.
    pub(super) fn doorbell(&mut self, head: u32) -> Result<(), InvalidDoorbell> {
        let distance = |to: u32| (to + self.size - self.head) % self.size;
        if head >= self.size || distance(head) > distance(self.tail) {
            return Err(InvalidDoorbell);
        }
        // Whoever polls can be ahead of the news that an entry is in memory.
        if distance(head) > distance(self.arrived) {
            self.arrived = head;
        }
        self.head = head;
        Ok(())
    }

    /// Entries that can be written now.
    fn free(&self) -> u32 {
        self.size - 1 - (self.tail + self.size - self.head) % self.size
    }

    /// Commands that may be fetched so that there is room for the completions of all.
    pub(super) fn room(&self) -> u32 {
        self.free().saturating_sub(self.expected + self.waiting.len() as u32)
    }

    /// The next completion that waits, if there is room for it: address and bytes. `head` tells the head of a submission queue.
    pub(super) fn post(&mut self, head: impl Fn(u16) -> u32) -> Option<(u64, [u8; COMPLETION as usize])> {
        if self.free() == 0 {
            return None;
        }
        let completion = self.waiting.pop_front()?;
        let mut bytes = [0; COMPLETION as usize];
        bytes[..4].copy_from_slice(&completion.result.to_le_bytes());
        bytes[8..10].copy_from_slice(&(head(completion.queue) as u16).to_le_bytes());
        bytes[10..12].copy_from_slice(&completion.queue.to_le_bytes());
        bytes[12..14].copy_from_slice(&completion.id.to_le_bytes());
        let status = completion.status.bits() << 1 | u16::from(self.phase);
        bytes[14..].copy_from_slice(&status.to_le_bytes());
        let address = self.base.wrapping_add(u64::from(self.tail) * COMPLETION);
        self.tail = (self.tail + 1) % self.size;
        self.phase ^= self.tail == 0;
        Some((address, bytes))
    }

    /// An entry is in memory, or on its way before all that is written later. Entries arrive in order.
    pub(super) fn entry_arrived(&mut self, address: u64) {
        let place = (address.wrapping_sub(self.base) / COMPLETION) as u32;
        if self.arrived == place {
            self.arrived = (place + 1) % self.size;
        }
    }

    /// There are entries in memory that software has not taken.
    pub(super) fn has_news(&self) -> bool {
        self.arrived != self.head
    }
}
