//! What software does with the registers: it enables, disables and shuts down the controller, and rings doorbells (NVMe 1.4 §3.1, §7.6).

use super::logs::{Events, Failure, Happened};
use super::queue::{CompletionQueue, InvalidDoorbell, SubmissionQueue};
use super::regs::{self, Configuration};
use super::status::Status;
use super::store::{Flush, Waits};
use super::{Due, Features, Nvme};
use crate::contract::Context;
use crate::copier::read_image;
use tlplab_transaction::Payload;

impl Nvme {
    pub(super) fn read_registers(&self, offset: u64, bytes: u32) -> Payload {
        let image = self.registers.image(self.config.capabilities(), self.interrupts.mask());
        read_image(&image, offset, bytes)
    }

    /// Registers are written by whole doublewords; other accesses are ignored.
    pub(super) fn write_registers(&mut self, cx: &mut Context<'_>, offset: u64, data: &[u8]) {
        if !offset.is_multiple_of(4) || !data.len().is_multiple_of(4) {
            return;
        }
        for (place, word) in data.chunks_exact(4).enumerate() {
            let value = u32::from_le_bytes(word.try_into().expect("4 bytes"));
            self.write_register(cx, offset + 4 * place as u64, value);
        }
    }

    fn write_register(&mut self, cx: &mut Context<'_>, offset: u64, value: u32) {
        match offset {
            regs::INTMS => self.interrupts.set_mask(cx, self.interrupts.mask() | value),
            regs::INTMC => self.interrupts.set_mask(cx, self.interrupts.mask() & !value),
            regs::CC => self.configure(cx, Configuration::written(value)),
            regs::DOORBELLS.. => self.doorbell((offset - regs::DOORBELLS) / 4, value),
            _ => self.registers.write_admin(offset, value),
        }
    }

    fn configure(&mut self, cx: &mut Context<'_>, new: Configuration) {
        let old = std::mem::replace(&mut self.registers.configuration, new);
        if new.asks_shutdown() && !old.asks_shutdown() {
            self.registers.status = self.registers.status & !regs::SHUTDOWN | regs::SHUTTING_DOWN;
            self.flushes.push(Flush { before: self.cache.now(), waits: Waits::Shutdown });
        }
        match (old.enabled(), new.enabled()) {
            (false, true) => self.enable(cx),
            (true, false) => self.disable(new.asks_shutdown()),
            _ => {}
        }
    }

    fn enable(&mut self, cx: &mut Context<'_>) {
        if !self.registers.configuration.is_possible() {
            self.registers.status |= regs::FATAL;
            return;
        }
        // What was before has to end first.
        if !self.stopping {
            self.timers.set(cx, cx.now() + self.config.ready, Due::Ready);
        }
    }

    /// The last access of a controller that was disabled is over.
    pub(super) fn stopped(&mut self, cx: &mut Context<'_>) {
        self.stopping = false;
        self.registers.status &= !regs::READY;
        if self.registers.configuration.enabled() {
            self.enable(cx);
        }
    }

    /// It is ready, with its admin queues, unless it was disabled meanwhile.
    pub(super) fn become_ready(&mut self) {
        let sizes = self.registers.admin_sizes;
        let (submissions, completions) = ((sizes & 0xFFF) + 1, (sizes >> 16) + 1);
        if submissions < 2 || completions < 2 {
            self.registers.status |= regs::FATAL;
            return;
        }
        let submission = SubmissionQueue::new(self.registers.admin_submission, submissions, 0);
        let completion = CompletionQueue::new(self.registers.admin_completion, completions, Some(0));
        self.submissions.insert(0, submission);
        self.completions.insert(0, completion);
        self.registers.status |= regs::READY;
        self.health.shut_down = false;
    }

    /// A controller reset. It ends, and tells so, when the last access to host memory is over.
    fn disable(&mut self, shuts_down: bool) {
        self.forget();
        let shutdown = if shuts_down { regs::SHUTDOWN } else { 0 };
        self.registers.status &= regs::READY | shutdown;
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
        self.timers.forget_commands();
        self.events = Events::default();
        self.turn = 0;
    }

    /// Whether it is ready, and can go on.
    pub(super) fn runs(&self) -> bool {
        self.registers.status & (regs::READY | regs::FATAL) == regs::READY && !self.stopping
    }

    /// A controller that cannot read its queues stops.
    pub(super) fn fail(&mut self) {
        self.registers.status |= regs::FATAL;
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
