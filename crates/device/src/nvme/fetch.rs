//! The fetching of commands: round robin among the submission queues, a burst from each (NVMe 1.4 §4.13).

use super::command::{Command, ENTRY, Submission};
use super::dma::{FETCH, Purpose};
use super::regs;
use super::status::Status;
use super::{Due, Nvme};
use crate::contract::{Context, DmaError};
use tlplab_transaction::Payload;

/// Reads of queue entries under way at once.
const READS: usize = 4;
/// Entries that one read fetches at most.
const BATCH: u32 = 16;
/// I/O commands under way at once.
const COMMANDS: u32 = 1024;

impl Nvme {
    /// Fetches what can be fetched now.
    pub(super) fn fetch(&mut self) {
        let shutting_down = self.file.field(regs::SHUTDOWN) != 0;
        if !self.runs() || shutting_down {
            return;
        }
        let mut reads = self.submissions.values().filter(|queue| queue.fetching > 0).count();
        while reads < READS && self.fetch_one() {
            reads += 1;
        }
    }

    /// Fetches from the next queue that has something.
    fn fetch_one(&mut self) -> bool {
        let after = self.submissions.range(self.turn + 1..).chain(self.submissions.range(..=self.turn));
        let under_way: u32 =
            self.submissions.values().skip(1).map(|queue| queue.under_way + queue.fetching).sum();
        let free = COMMANDS.saturating_sub(under_way);
        let most = self.features.burst().min(BATCH);
        let found = after
            .map(|(&number, queue)| {
                let completion = self.completions.get(&queue.completes_to);
                // Requests for events may wait for ever: no room is kept for them.
                let admin = || completion.map_or(0, |queue| if queue.waiting.is_empty() { most } else { 0 });
                let room = if number == 0 { admin() } else { completion.map_or(0, |queue| queue.room()) };
                let free = if number == 0 { most } else { free };
                (number, queue.fetchable().min(most).min(room).min(free))
            })
            .find(|(_, entries)| *entries > 0);
        let Some((number, entries)) = found else { return false };
        self.turn = number;
        let Some(queue) = self.submissions.get_mut(&number) else { return false };
        queue.fetching = entries;
        if let Some(completion) = self.completions.get_mut(&queue.completes_to) {
            completion.expected += entries;
        }
        let (address, bytes) = (queue.head_address(), u64::from(entries) * ENTRY);
        self.dma.read_control(Purpose::Fetch(number), FETCH, address, bytes);
        true
    }

    /// Entries of a submission queue came.
    pub(super) fn fetched(&mut self, cx: &mut Context<'_>, number: u16, result: &Result<Payload, DmaError>) {
        let Some(queue) = self.submissions.get_mut(&number) else { return };
        let entries = queue.fetching;
        let completes_to = queue.completes_to;
        let Some(bytes) = result.as_ref().ok().and_then(Payload::bytes) else {
            queue.fetched(0);
            return self.fail();
        };
        if queue.deleted_by.is_some() {
            queue.fetched(0);
            if let Some(completion) = self.completions.get_mut(&completes_to) {
                completion.expected -= entries;
            }
            return;
        }
        queue.fetched(entries);
        for entry in bytes.chunks_exact(ENTRY as usize) {
            self.take(cx, number, Submission(entry.try_into().expect("64 bytes")));
        }
    }

    /// A command is here. It begins when those before it have begun.
    fn take(&mut self, cx: &mut Context<'_>, queue: u16, entry: Submission) {
        let same = |other: &Command| other.queue == queue && other.entry.id() == entry.id();
        let conflicts = self.commands.values().any(same);
        let id = self.next_command;
        self.next_command += 1;
        self.commands.insert(id, Command::new(queue, entry));
        if queue != 0 {
            self.health.busy(cx.now(), true);
        }
        if conflicts {
            return self.complete(cx, id, Status::ID_CONFLICT, 0);
        }
        self.beginning = self.beginning.max(cx.now()) + self.config.command;
        match self.config.command.is_zero() {
            true => self.begin(cx, id),
            false => self.timers.set(cx, self.beginning, Due::Begin(id)),
        }
    }
}
