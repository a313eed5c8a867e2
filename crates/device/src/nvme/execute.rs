//! The execution of commands: their lists are read, their data moved, their completions written.

use super::command::{Command, Range, Work};
use super::dma::{LISTS, Purpose};
use super::interrupts::Coalesced;
use super::logs::Failure;
use super::pointer::Walk;
use super::queue::Completion;
use super::status::Status;
use super::{Due, Next, Nvme};
use crate::contract::{Context, DmaError, OpId};
use tlplab_transaction::Payload;

impl Nvme {
    /// A command begins.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.begun = true;
        let (queue, entry) = (command.queue, command.entry);
        let next = match queue {
            0 => self.admin(cx, id, &entry),
            _ => self.io(&entry).map(Next::Work),
        };
        match next {
            Ok(Next::Done(result)) => self.complete(cx, id, Status::SUCCESS, result),
            Ok(Next::Work(work)) => self.point(cx, id, work),
            Err(status) => self.complete(cx, id, status, 0),
        }
    }

    /// Work is known: finds the place of its data.
    fn point(&mut self, cx: &mut Context<'_>, id: u64, work: Work) {
        let page = self.page();
        let Some(command) = self.commands.get_mut(&id) else { return };
        let (bytes, waits) = (work.transfer(), work == Work::Wait);
        command.work = work;
        // For an event, or for the last command of a queue.
        if waits {
            return;
        }
        if bytes == 0 {
            return self.act(cx, id);
        }
        match Walk::new(&command.entry, bytes, page, command.queue != 0) {
            Ok(walk) => {
                command.walk = walk;
                self.walk(cx, id);
            }
            Err(status) => self.complete(cx, id, status, 0),
        }
    }

    /// Reads the next list, or goes on if there is none.
    fn walk(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        match command.walk.wants() {
            Some((address, bytes)) => self.dma.read_control(Purpose::List(id), LISTS, address, bytes),
            None => self.transfer(cx, id),
        }
    }

    fn list_came(&mut self, cx: &mut Context<'_>, id: u64, result: &Result<Payload, DmaError>) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        let read = match result.as_ref().ok().and_then(Payload::bytes) {
            Some(bytes) => command.walk.read(bytes),
            None => Err(Status::DATA_TRANSFER_ERROR),
        };
        match read {
            Ok(()) => self.walk(cx, id),
            Err(status) => self.complete(cx, id, status, 0),
        }
    }

    /// All places in host memory are known: data begin to move.
    fn transfer(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        match &mut command.work {
            Work::Read(range) => {
                let range = *range;
                self.read_medium(cx, id, &range);
            }
            Work::Tell(data) => {
                let data = Payload::from(std::mem::take(data));
                self.send(id, 0, &data);
            }
            work => {
                let (bytes, control) = (work.transfer(), work.is_control());
                if control || !cx.length_only() {
                    command.data = vec![0; bytes as usize];
                }
                for (offset, address, bytes) in command.walk.pieces(0, bytes) {
                    command.open += 1;
                    self.dma.read(Purpose::Data { command: id, offset }, address, bytes, control);
                }
            }
        }
    }

    /// Data go to the host; they stand at `offset` in the command's.
    pub(super) fn send(&mut self, id: u64, offset: u64, data: &Payload) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        for (at, address, bytes) in command.walk.pieces(offset, data.len()) {
            command.open += 1;
            self.dma.write(
                Purpose::Data { command: id, offset: at },
                address,
                data.slice(at - offset, bytes),
            );
        }
    }

    /// Every page of a range is read from the medium, if it is not in the cache.
    pub(super) fn read_medium(&mut self, cx: &mut Context<'_>, id: u64, range: &Range) {
        let block = self.namespaces[range.namespace].block;
        let mut pages = 0;
        for (at, bytes) in self.flash.pages(range.at, range.bytes) {
            let there = match self.cache.covers(range.namespace, at, bytes, block) {
                true => cx.now() + self.config.hit,
                false => self.flash.read(cx.now(), at),
            };
            let due = Due::PageRead { command: id, offset: at - range.at, bytes };
            self.timers.set(cx, there, due);
            pages += 1;
        }
        if let Some(command) = self.commands.get_mut(&id) {
            command.open += pages;
        }
    }

    /// Bytes of a namespace as they are now: from the cache, or from the medium.
    fn content(&self, namespace: usize, at: u64, bytes: u64) -> Vec<u8> {
        let of = &self.namespaces[namespace];
        let mut data = vec![0; bytes as usize];
        of.medium.read(at, &mut data);
        self.cache.overlay(namespace, at, of.block, &mut data);
        data
    }

    /// A page of a command's range is read.
    fn page_read(&mut self, cx: &mut Context<'_>, id: u64, offset: u64, bytes: u64) {
        let Some(command) = self.commands.get(&id) else { return };
        match command.work {
            Work::Read(range) => {
                let data = match cx.length_only() {
                    true => Payload::Length(bytes),
                    false => self.content(range.namespace, range.at + offset, bytes).into(),
                };
                self.send(id, offset, &data);
            }
            Work::Check(range) if !cx.length_only() => {
                let ours = self.content(range.namespace, range.at + offset, bytes);
                let theirs = &command.data[offset as usize..(offset + bytes) as usize];
                if ours != theirs
                    && let Some(command) = self.commands.get_mut(&id)
                {
                    command.fail(Status::COMPARE_FAILURE);
                }
            }
            _ => {}
        }
        self.part_over(cx, id);
    }

    /// Something that a command waited for is over.
    pub(super) fn part_over(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.open -= 1;
        if command.open == 0 {
            if command.status.is_success() { self.act(cx, id) } else { self.end(cx, id) }
        }
    }

    /// Takes the next step of a command whose waits are all over.
    fn act(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        match std::mem::replace(&mut command.work, Work::Wait) {
            Work::Wait | Work::Tell(_) => self.end(cx, id),
            Work::Read(range) | Work::Check(range) => {
                self.health.read(&range);
                self.end(cx, id);
            }
            Work::Compare(range) => {
                command.work = Work::Check(range);
                self.read_medium(cx, id, &range);
            }
            Work::Verify(range) => self.read_medium(cx, id, &range),
            Work::Feature { id: feature, .. } => {
                self.features.set_data(cx.now(), feature, &command.data);
                self.end(cx, id);
            }
            Work::Write { range, through } => self.store(cx, id, range, through),
            Work::Program(range) => {
                self.programmed(id, &range);
                self.end(cx, id);
            }
            Work::Cache(_) => {}
            Work::Zero(range) => self.zero(cx, id, &[range]),
            Work::Deallocate { namespace, .. } => {
                let (entry, list) = (command.entry, std::mem::take(&mut command.data));
                match self.listed(&entry, namespace, &list) {
                    Ok(ranges) => self.zero(cx, id, &ranges),
                    Err(status) => self.complete(cx, id, status, 0),
                }
            }
            Work::Flush => self.flush(id),
            Work::DisableCache => {
                self.features.cached = false;
                self.flush(id);
            }
            Work::Format { first, count, block } => self.format_now(cx, id, first..first + count, block),
        }
    }

    /// An access is over.
    pub(super) fn read_done(&mut self, cx: &mut Context<'_>, op: OpId, result: &Result<Payload, DmaError>) {
        match self.dma.take(op) {
            Some(Purpose::Fetch(queue)) => self.fetched(cx, queue, result),
            Some(Purpose::List(id)) => self.list_came(cx, id, result),
            Some(Purpose::Data { command: id, offset }) => {
                let Some(command) = self.commands.get_mut(&id) else { return };
                match result {
                    Ok(data) => {
                        if let Some(bytes) = data.bytes() {
                            command.data[offset as usize..offset as usize + bytes.len()]
                                .copy_from_slice(bytes);
                        }
                    }
                    Err(_) => command.fail(Status::DATA_TRANSFER_ERROR),
                }
                self.part_over(cx, id);
            }
            Some(Purpose::Completion { .. } | Purpose::Forgotten) | None => {}
        }
    }

    /// A write was accepted.
    pub(super) fn write_accepted(&mut self, cx: &mut Context<'_>, op: OpId) {
        match self.dma.take(op) {
            Some(Purpose::Data { command, .. }) => self.part_over(cx, command),
            Some(Purpose::Completion { queue, address }) => self.interrupt(cx, queue, address),
            _ => {}
        }
    }

    /// A time has come.
    pub(super) fn elapsed(&mut self, cx: &mut Context<'_>, due: Due) {
        match due {
            Due::Ready => self.become_ready(),
            Due::Begin(id) => self.begin(cx, id),
            Due::PageRead { command, offset, bytes } => self.page_read(cx, command, offset, bytes),
            Due::Written(id) => self.part_over(cx, id),
            Due::Destaged { namespace, at } => self.destaged(namespace, at),
            Due::Destage => self.destage_by_itself(cx),
            Due::Aggregated(vector) => self.interrupts.aggregated(cx, vector),
        }
    }

    /// A command ends as it stands.
    pub(super) fn end(&mut self, cx: &mut Context<'_>, id: u64) {
        let status = self.commands.get(&id).map_or(Status::SUCCESS, |command| command.status);
        self.complete(cx, id, status, 0);
    }

    /// A command is over; its completion goes to its queue.
    pub(super) fn complete(&mut self, cx: &mut Context<'_>, id: u64, status: Status, result: u32) {
        let Some(Command { queue, entry, .. }) = self.commands.remove(&id) else { return };
        if !status.is_success() {
            let lba = if queue == 0 { 0 } else { entry.long(10) };
            let namespace = entry.namespace();
            self.errors.add(Failure { queue, id: entry.id(), status, lba, namespace });
        }
        let Some(submission) = self.submissions.get_mut(&queue) else { return };
        submission.under_way -= 1;
        let completes_to = submission.completes_to;
        if let Some(completion) = self.completions.get_mut(&completes_to) {
            completion.expected = completion.expected.saturating_sub(1);
            completion.waiting.push_back(Completion { result, queue, id: entry.id(), status });
        }
        if queue != 0 && self.submissions.values().skip(1).all(|queue| queue.under_way == 0) {
            self.health.busy(cx.now(), false);
        }
    }

    /// Writes the completions for which there is room.
    pub(super) fn post(&mut self) {
        let (submissions, dma) = (&self.submissions, &mut self.dma);
        let head = |queue: u16| submissions.get(&queue).map_or(0, |queue| queue.head);
        for (&queue, completion) in &mut self.completions {
            while let Some((address, entry)) = completion.post(head) {
                dma.complete(Purpose::Completion { queue, address }, address, &entry);
            }
        }
    }

    /// A completion is as good as in memory.
    fn interrupt(&mut self, cx: &mut Context<'_>, queue: u16, address: u64) {
        let Some(completion) = self.completions.get_mut(&queue) else { return };
        completion.entry_arrived(address);
        let Some(vector) = completion.vector else { return };
        // Interrupts of the admin queue are not held back.
        let coalescing = if queue == 0 { None } else { self.features.coalescing(vector) };
        let Some((threshold, time)) = coalescing else { return self.interrupts.message(cx, vector) };
        match self.interrupts.coalesce(vector, threshold) {
            Coalesced::Now => self.interrupts.message(cx, vector),
            Coalesced::Held => {}
            Coalesced::HeldAndTimed => self.timers.set(cx, cx.now() + time, Due::Aggregated(vector)),
        }
    }

    /// Does all that can be done now.
    pub(super) fn work(&mut self, cx: &mut Context<'_>) {
        self.write_back(cx);
        while let Some((id, result)) = self.events.answer() {
            self.complete(cx, id, Status::SUCCESS, result);
        }
        self.fetch();
        self.post();
        // That a queue is gone is told after the last of its commands.
        self.delete_idle_queues(cx);
        self.post();
        self.dma.pump(cx);
        if self.stopping && self.dma.is_idle() {
            self.stopped(cx);
        }
        let completions = &self.completions;
        self.interrupts.level(cx, |mask| {
            let tells = |vector: u16| vector >= 32 || mask >> vector & 1 == 0;
            completions.values().any(|queue| queue.has_news() && queue.vector.is_some_and(tells))
        });
    }

    /// Submission queues that are being deleted and have nothing under way are gone.
    fn delete_idle_queues(&mut self, cx: &mut Context<'_>) {
        let idle = |(&number, queue): (&u16, &super::SubmissionQueue)| {
            queue.deleted_by.filter(|_| queue.is_idle()).map(|command| (number, command))
        };
        let gone: Vec<(u16, u64)> = self.submissions.iter().filter_map(idle).collect();
        for (number, command) in gone {
            self.submissions.remove(&number);
            self.complete(cx, command, Status::SUCCESS, 0);
        }
    }
}
