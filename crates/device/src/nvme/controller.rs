//! Software's use of the registers: it enables, disables and shuts down the controller, and rings doorbells (NVMe 1.4 §3.1, §7.6).

use super::logs::{Events, Failure, Happened};
use super::queue::{CompletionQueue, InvalidDoorbell, SubmissionQueue};
use super::regs;
use super::status::Status;
use super::store::{Flush, Waits};
use super::{Due, Features, Nvme};
use crate::contract::Context;
use crate::kit::Register;
use crate::kit::bytes::doublewords;
use tlplab_transaction::Payload;

impl Nvme {
    pub(super) fn read_registers(&mut self, offset: u64, bytes: u32) -> Payload {
        self.file.set(regs::INTMS, self.interrupts.mask());
        self.file.set(regs::INTMC, self.interrupts.mask());
        self.file.read(offset, bytes)
    }

    /// Registers are written by whole doublewords; other accesses are ignored.
    pub(super) fn write_registers(&mut self, cx: &mut Context<'_>, offset: u64, data: &[u8]) {
        if offset.is_multiple_of(4) && data.len().is_multiple_of(4) {
            doublewords(offset, data).for_each(|(offset, value)| self.write_register(cx, offset, value));
        }
    }

    fn write_register(&mut self, cx: &mut Context<'_>, offset: u64, value: u32) {
        if let Some(doorbell) = offset.checked_sub(regs::DOORBELLS) {
            return self.doorbell(doorbell / 4, value);
        }
        match Register::at(offset as u32) {
            regs::INTMS => self.interrupts.set_mask(cx, self.interrupts.mask() | value),
            regs::INTMC => self.interrupts.set_mask(cx, self.interrupts.mask() & !value),
            regs::CC => self.configure(cx, value),
            _ => {
                self.file.write_bytes(offset, &value.to_le_bytes());
            }
        }
    }

    fn is_enabled(&self) -> bool {
        self.file.field(regs::ENABLED) == 1
    }
    fn asks_shutdown(&self) -> bool {
        matches!(self.file.field(regs::SHUTDOWN_WANTED), 1 | 2)
    }
    /// Bytes of a memory page.
    pub(super) fn page(&self) -> u64 {
        4096 << self.file.field(regs::PAGE).min(regs::MPS_MAX)
    }

    fn configure(&mut self, cx: &mut Context<'_>, value: u32) {
        let (was_enabled, asked_shutdown) = (self.is_enabled(), self.asks_shutdown());
        self.file.write_bytes(regs::CC.offset(), &value.to_le_bytes());
        if self.asks_shutdown() && !asked_shutdown {
            self.file.set_field(regs::SHUTDOWN, regs::SHUTTING_DOWN);
            self.flushes.push(Flush { before: self.cache.now(), waits: Waits::Shutdown });
        }
        match (was_enabled, self.is_enabled()) {
            (false, true) => self.enable(cx),
            (true, false) => self.disable(self.asks_shutdown()),
            _ => {}
        }
    }

    fn enable(&mut self, cx: &mut Context<'_>) {
        let possible = self.file.field(regs::COMMAND_SET) == 0
            && self.file.field(regs::ARBITRATION) == 0
            && self.file.field(regs::PAGE) <= regs::MPS_MAX;
        if !possible {
            return self.fail();
        }
        // What was before has to end first.
        if !self.stopping {
            self.timers.set(cx, cx.now() + self.config.ready, Due::Ready);
        }
    }

    /// The last access of a controller that was disabled is over.
    pub(super) fn stopped(&mut self, cx: &mut Context<'_>) {
        self.stopping = false;
        self.file.set_field(regs::READY, 0);
        if self.is_enabled() {
            self.enable(cx);
        }
    }

    /// It is ready, with its admin queues, unless it was disabled meanwhile.
    pub(super) fn become_ready(&mut self) {
        let sizes = self.file.get(regs::AQA);
        let (submissions, completions) = ((sizes & 0xFFF) + 1, (sizes >> 16) + 1);
        if submissions < 2 || completions < 2 {
            return self.fail();
        }
        let submission = SubmissionQueue::new(self.file.get(regs::ASQ), submissions, 0);
        let completion = CompletionQueue::new(self.file.get(regs::ACQ), completions, Some(0));
        self.submissions.insert(0, submission);
        self.completions.insert(0, completion);
        self.file.set_field(regs::READY, 1);
        self.health.shut_down = false;
    }

    /// A controller reset. It ends, and tells so, when the last access to host memory is over.
    fn disable(&mut self, shuts_down: bool) {
        self.forget();
        self.file.set_field(regs::FATAL, 0);
        if !shuts_down {
            self.file.set_field(regs::SHUTDOWN, 0);
        }
        self.features = Features::new(&self.config);
        self.interrupts.reset();
        self.stopping = true;
    }

    /// Queues and commands are gone.
    pub(super) fn forget(&mut self) {
        self.submissions.clear();
        self.completions.clear();
        self.commands.clear();
        self.waiting.clear();
        self.flushes.retain(|flush| flush.waits == Waits::Shutdown);
        self.dma.forget();
        // Only what the medium does by itself goes on.
        self.timers.retain(|due| matches!(due, Due::Destaged { .. } | Due::Destage));
        self.events = Events::default();
        self.turn = 0;
    }

    /// True if it is ready, and can go on.
    pub(super) fn runs(&self) -> bool {
        self.file.field(regs::READY) == 1 && self.file.field(regs::FATAL) == 0 && !self.stopping
    }

    /// A controller that cannot read its queues stops.
    pub(super) fn fail(&mut self) {
        self.file.set_field(regs::FATAL, 1);
    }

    /// Doorbell number `number`: even ones are tails of submission queues, odd ones heads of completion queues.
    fn doorbell(&mut self, number: u64, value: u32) {
        if !self.runs() {
            return;
        }
        let queue = (number / 2) as u16;
        let obeyed = if number.is_multiple_of(2) {
            self.submissions.get_mut(&queue).map(|submission| submission.doorbell(value))
        } else {
            self.completions.get_mut(&queue).map(|completion| completion.doorbell(value))
        };
        let happened = match obeyed {
            Some(Ok(())) => return,
            Some(Err(InvalidDoorbell)) => Happened::InvalidDoorbellValue,
            None => Happened::InvalidDoorbell,
        };
        let status = Status::INVALID_FIELD;
        self.errors.add(Failure { queue, id: u16::MAX, status, lba: 0, namespace: 0 });
        self.events.happened(happened);
    }
}
