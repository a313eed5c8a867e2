//! The paths of data to the medium: through the cache or at once, by flushes and in the background.

use super::command::{Range, Work};
use super::regs;
use super::status::Status;
use super::{Due, Nvme};
use crate::contract::Context;

/// Commands that wait until the cache is on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Command(u64),
    Shutdown,
}

/// A flush under way: of all that is older than `before`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    pub(super) before: u64,
    pub(super) waits: Waits,
}

impl Nvme {
    /// All data of a write are here. Until they are stored, nothing of them is: a block is never half of one write and half of another.
    pub(super) fn store(&mut self, cx: &mut Context<'_>, id: u64, range: Range, through: bool) {
        self.health.written(&range);
        if through || !self.features.cached || range.bytes > self.cache.capacity() {
            if let Some(command) = self.commands.get_mut(&id) {
                command.work = Work::Program(range);
            }
            let done = self.program(cx, &range);
            return self.await_all(cx, id, done);
        }
        if let Some(command) = self.commands.get_mut(&id) {
            command.work = Work::Cache(range);
        }
        self.waiting.push_back(id);
        self.let_in(cx);
    }

    /// The end of the programming of each page of a range that begins now. A page is programmed as a whole, however little of it is new.
    fn program(&mut self, cx: &Context<'_>, range: &Range) -> Vec<tlplab_units::Time> {
        let pages: Vec<_> = self.flash.pages(range.at, range.bytes).collect();
        pages.into_iter().map(|(at, _)| self.flash.program(cx.now(), at)).collect()
    }

    /// A command goes on after all these times.
    fn await_all(&mut self, cx: &mut Context<'_>, id: u64, times: Vec<tlplab_units::Time>) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.open += times.len() as u32;
        }
        for time in times {
            self.timers.set(cx, time, Due::Written(id));
        }
    }

    /// A range was programmed: now it is on the medium, and what the cache has of it is old.
    pub(super) fn programmed(&mut self, id: u64, range: &Range) {
        self.cache.forget(range.namespace, range.at, range.bytes);
        if let Some(command) = self.commands.get_mut(&id) {
            let medium = &mut self.namespaces[range.namespace].medium;
            if !command.data.is_empty() {
                medium.write(range.at, &command.data);
            }
            if medium.flush().is_err() {
                self.health.media_errors += 1;
                command.fail(Status::WRITE_FAULT);
            }
        }
    }

    /// Writes that wait for room in the cache get in, in order.
    fn let_in(&mut self, cx: &mut Context<'_>) {
        while let Some(&id) = self.waiting.front() {
            let Some(command) = self.commands.get_mut(&id) else {
                self.waiting.pop_front();
                continue;
            };
            let Work::Cache(Range { namespace, at, bytes }) = command.work else {
                self.waiting.pop_front();
                continue;
            };
            let block = self.namespaces[namespace].block;
            if self.cache.lacks(namespace, at, bytes) > 0 {
                return;
            }
            self.cache.write(namespace, at, bytes, block, &command.data);
            (command.data, command.work) = (Vec::new(), Work::Wait);
            self.waiting.pop_front();
            let there = cx.now() + self.config.hit;
            self.await_all(cx, id, vec![there]);
            self.destage_later(cx);
        }
    }

    /// Lines begin to leave the cache as flushes and writes that wait want it.
    pub(super) fn write_back(&mut self, cx: &mut Context<'_>) {
        let before = self.flushes.iter().map(|flush| flush.before).max().unwrap_or(0);
        while let Some((namespace, at)) = self.cache.oldest(before) {
            self.destage(cx, namespace, at);
        }
        let first = self.waiting.front().and_then(|id| self.commands.get(id)).map(|command| &command.work);
        if let Some(&Work::Cache(Range { namespace, at, bytes })) = first {
            let lacks = self.cache.lacks(namespace, at, bytes);
            while self.cache.leaving() < lacks
                && let Some((namespace, at)) = self.cache.oldest(u64::MAX)
            {
                self.destage(cx, namespace, at);
            }
        }
        self.let_in(cx);
        self.end_flushes(cx);
        self.destage_later(cx);
    }

    /// The page of a line is programmed.
    fn destage(&mut self, cx: &mut Context<'_>, namespace: usize, at: u64) {
        let page = self.flash.page_of(at);
        self.cache.begin_leaving(namespace, page, self.flash.page_bytes());
        let done = self.flash.program(cx.now(), page);
        self.timers.set(cx, done, Due::Destaged { namespace, at: page });
    }

    /// A page is programmed: the medium has what the cache has of it now.
    pub(super) fn destaged(&mut self, namespace: usize, at: u64) {
        let lines = self.cache.leave(namespace, at, self.flash.page_bytes());
        let medium = &mut self.namespaces[namespace].medium;
        for (at, data) in lines {
            if let Some(data) = data {
                medium.write(at, &data);
            }
        }
    }

    /// Sees to it that the cache writes a page back by itself after a while.
    fn destage_later(&mut self, cx: &mut Context<'_>) {
        let every = self.config.destage;
        if !every.is_zero() && !self.destaging && self.cache.oldest(u64::MAX).is_some() {
            self.destaging = true;
            self.timers.set(cx, cx.now() + every, Due::Destage);
        }
    }

    pub(super) fn destage_by_itself(&mut self, cx: &mut Context<'_>) {
        self.destaging = false;
        if let Some((namespace, at)) = self.cache.oldest(u64::MAX) {
            self.destage(cx, namespace, at);
        }
    }

    /// A command waits until everything that was acknowledged before it is on the medium, of whatever namespace.
    pub(super) fn flush(&mut self, id: u64) {
        self.flushes.push(Flush { before: self.cache.now(), waits: Waits::Command(id) });
    }

    fn end_flushes(&mut self, cx: &mut Context<'_>) {
        let cache = &self.cache;
        let (over, under_way): (Vec<_>, Vec<_>) =
            self.flushes.iter().partition(|flush| cache.is_clean_before(flush.before));
        self.flushes = under_way;
        for flush in over {
            let kept = self.namespaces.iter_mut().map(|namespace| namespace.medium.flush());
            let failures = kept.filter(Result::is_err).count() as u64;
            self.health.media_errors += failures;
            let status = if failures > 0 { Status::WRITE_FAULT } else { Status::SUCCESS };
            match flush.waits {
                Waits::Command(id) => self.complete(cx, id, status, 0),
                Waits::Shutdown => self.shut_down(failures == 0),
            }
        }
    }

    fn shut_down(&mut self, safe: bool) {
        self.health.shut_down = safe;
        self.file.set_field(regs::SHUTDOWN, regs::SHUT_DOWN);
    }

    /// Ranges become zero at once; the command takes as long as the medium takes for a page of each.
    pub(super) fn zero(&mut self, cx: &mut Context<'_>, id: u64, ranges: &[Range]) {
        let mut times = vec![cx.now()];
        for range in ranges {
            self.cache.forget(range.namespace, range.at, range.bytes);
            self.namespaces[range.namespace].medium.discard(range.at, range.bytes);
            times.push(self.flash.program(cx.now(), range.at));
        }
        self.await_all(cx, id, times);
    }

    /// Namespaces are empty and have another block size.
    pub(super) fn format_now(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        namespaces: std::ops::Range<usize>,
        block: u64,
    ) {
        let ranges: Vec<Range> = namespaces
            .map(|namespace| Range { namespace, at: 0, bytes: self.namespaces[namespace].bytes })
            .collect();
        for range in &ranges {
            self.namespaces[range.namespace].block = block;
        }
        self.zero(cx, id, &ranges);
    }
}
