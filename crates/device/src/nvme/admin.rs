//! Admin commands (NVMe 1.4 §5).

use super::command::{ALL_NAMESPACES, Submission, Work};
use super::features::{self, Features};
use super::identify::{Identify, Size, admin};
use super::logs::{self, Happened, Logs};
use super::queue::{CompletionQueue, SubmissionQueue};
use super::regs;
use super::status::Status;
use super::{Next, Nvme};
use crate::contract::Context;
use tlplab_cfgspace::InterruptMode;

impl Nvme {
    /// Does an admin command, or says what has to be done for it.
    pub(super) fn admin(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        entry: &Submission,
    ) -> Result<Next, Status> {
        // SGLs are not for admin commands over PCI Express.
        if entry.is_fused() || entry.pointer_kind() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        match entry.opcode() {
            admin::CREATE_COMPLETION => self.create_completion(cx, entry),
            admin::CREATE_SUBMISSION => self.create_submission(entry),
            admin::DELETE_COMPLETION => self.delete_completion(entry),
            admin::DELETE_SUBMISSION => self.delete_submission(id, entry),
            admin::IDENTIFY => {
                let size =
                    |namespace: &super::Namespace| Size { bytes: namespace.bytes, block: namespace.block };
                let sizes = self.namespaces.iter().map(size).collect();
                let (cns, csi) = (entry.word(10) as u8, (entry.word(11) >> 24) as u8);
                let data = Identify { config: &self.config, sizes }.data(cns, entry.namespace(), csi)?;
                Ok(Next::Work(Work::Tell(data)))
            }
            admin::GET_LOG_PAGE => self.log_page(cx, entry),
            admin::SET_FEATURES => self.set_features(entry),
            admin::GET_FEATURES => self.get_features(cx, entry),
            admin::ABORT => Ok(Next::Done(self.abort(cx, entry))),
            admin::EVENT_REQUEST => {
                self.events.request(id)?;
                Ok(Next::Work(Work::Wait))
            }
            admin::FORMAT => self.format(entry),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The common fields of the commands that create a queue: its number, its entries, its memory.
    fn new_queue(&self, entry: &Submission, exists: bool) -> Result<(u16, u32, u64), Status> {
        let (queue, entries) = (entry.word(10) as u16, (entry.word(10) >> 16) + 1);
        if queue == 0 || queue > self.config.queues || exists {
            return Err(Status::INVALID_QUEUE);
        }
        if entries < 2 || entries > self.config.entries {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        if entry.word(11) & 1 == 0 {
            return Err(Status::INVALID_FIELD); // not contiguous, which CAP.CQR rules out
        }
        if !entry.prp1().is_multiple_of(self.page()) {
            return Err(Status::PRP_INVALID_OFFSET);
        }
        Ok((queue, entries, entry.prp1()))
    }

    fn create_completion(&mut self, cx: &Context<'_>, entry: &Submission) -> Result<Next, Status> {
        let exists = self.completions.contains_key(&(entry.word(10) as u16));
        let (queue, entries, base) = self.new_queue(entry, exists)?;
        let vector = (entry.word(11) >> 16) as u16;
        let vectors = match cx.interrupt_mode() {
            InterruptMode::MsiX => self.config.vectors,
            InterruptMode::Msi => u16::from(self.msi_vectors()),
            InterruptMode::Intx | InterruptMode::Disabled => 1,
        };
        if vector >= vectors {
            return Err(Status::INVALID_VECTOR);
        }
        if self.file.field(regs::COMPLETION_ENTRY) != 4 {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        let interrupts = entry.word(11) >> 1 & 1 == 1;
        self.completions.insert(queue, CompletionQueue::new(base, entries, interrupts.then_some(vector)));
        Ok(Next::Done(0))
    }

    fn create_submission(&mut self, entry: &Submission) -> Result<Next, Status> {
        let exists = self.submissions.contains_key(&(entry.word(10) as u16));
        let (queue, entries, base) = self.new_queue(entry, exists)?;
        let completes_to = (entry.word(11) >> 16) as u16;
        if completes_to == 0 || completes_to > self.config.queues {
            return Err(Status::INVALID_QUEUE);
        }
        if !self.completions.contains_key(&completes_to) {
            return Err(Status::COMPLETION_QUEUE_INVALID);
        }
        if self.file.field(regs::SUBMISSION_ENTRY) != 6 {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        self.submissions.insert(queue, SubmissionQueue::new(base, entries, completes_to));
        Ok(Next::Done(0))
    }

    fn delete_completion(&mut self, entry: &Submission) -> Result<Next, Status> {
        let queue = entry.word(10) as u16;
        if queue == 0 || !self.completions.contains_key(&queue) {
            return Err(Status::INVALID_QUEUE);
        }
        if self.submissions.values().any(|submission| submission.completes_to == queue) {
            return Err(Status::INVALID_QUEUE_DELETION);
        }
        self.completions.remove(&queue);
        Ok(Next::Done(0))
    }

    /// A queue is gone when its last command is completed; those that were not fetched never are.
    fn delete_submission(&mut self, id: u64, entry: &Submission) -> Result<Next, Status> {
        let queue = entry.word(10) as u16;
        match self.submissions.get_mut(&queue) {
            Some(submission) if queue != 0 && submission.deleted_by.is_none() => {
                submission.deleted_by = Some(id);
            }
            _ => return Err(Status::INVALID_QUEUE),
        }
        Ok(Next::Work(Work::Wait))
    }

    fn log_page(&mut self, cx: &Context<'_>, entry: &Submission) -> Result<Next, Status> {
        let (log, keeps_event) = (entry.word(10) as u8, entry.word(10) >> 15 & 1 == 1);
        let words = u64::from(entry.word(10) >> 16) | u64::from(entry.word(11) & 0xFFFF) << 16;
        let (bytes, offset) = ((words + 1) * 4, entry.long(12));
        let logs = Logs {
            errors: &self.errors,
            health: &self.health,
            thresholds: self.features.thresholds,
            firmware: &self.config.firmware,
            now: cx.now(),
        };
        let page = logs.page(log)?;
        let of_all = matches!(entry.namespace(), 0 | ALL_NAMESPACES);
        if log == logs::HEALTH && !of_all || !offset.is_multiple_of(4) || offset >= page.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        if bytes > self.config.mdts {
            return Err(Status::INVALID_FIELD);
        }
        let mut data = page[offset as usize..].to_vec();
        data.resize(bytes as usize, 0);
        if !keeps_event {
            self.events.read(log);
        }
        Ok(Next::Work(Work::Tell(data)))
    }

    fn set_features(&mut self, entry: &Submission) -> Result<Next, Status> {
        let (id, word) = (entry.word(10) as u8, entry.word(11));
        let saves = entry.word(10) >> 31 == 1;
        if saves {
            return Err(Status::NOT_SAVEABLE);
        }
        if let Some(bytes) = Features::data_bytes(id, word) {
            return Ok(Next::Work(Work::Feature { id, bytes }));
        }
        match id {
            features::WRITE_CACHE if self.config.cache > 0 => {
                if word & 1 == 0 && self.features.cached {
                    return Ok(Next::Work(Work::DisableCache));
                }
                self.features.cached = word & 1 == 1;
                return Ok(Next::Done(0));
            }
            features::QUEUES if self.submissions.len() + self.completions.len() > 2 => {
                return Err(Status::SEQUENCE_ERROR);
            }
            _ => self.features.set(id, word)?,
        }
        self.check_temperature();
        let result = if id == features::QUEUES { self.features.get(id, word)? } else { 0 };
        Ok(Next::Done(result))
    }

    /// Tells of the temperature if it is beyond a threshold and software wants to know.
    pub(super) fn check_temperature(&mut self) {
        if logs::warning(self.features.thresholds) & self.features.events as u8 != 0 {
            self.events.happened(Happened::Temperature);
        }
    }

    fn get_features(&self, cx: &Context<'_>, entry: &Submission) -> Result<Next, Status> {
        let (id, word, select) = (entry.word(10) as u8, entry.word(11), entry.word(10) >> 8 & 7);
        let defaults = Features::new(&self.config);
        let features = match select {
            0 => &self.features,
            // Nothing is saved: the saved values are the default ones.
            1 | 2 => &defaults,
            3 => {
                self.features.get(id, word)?;
                let changeable = 1 << 2;
                return Ok(Next::Done(changeable));
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        match features.get_data(cx.now(), id, word) {
            Some(data) => Ok(Next::Work(Work::Tell(data))),
            None => features.get(id, word).map(Next::Done),
        }
    }

    /// Takes a command back that waits: for an event, or for its beginning. 1 if it could not.
    fn abort(&mut self, cx: &mut Context<'_>, entry: &Submission) -> u32 {
        let (queue, id) = (entry.word(10) as u16, (entry.word(10) >> 16) as u16);
        let meant = |command: &super::Command| command.queue == queue && command.entry.id() == id;
        let Some((&number, command)) = self.commands.iter().find(|(_, command)| meant(command)) else {
            return 1;
        };
        let begun = command.begun;
        if self.events.withdraw(number) || !begun {
            self.complete(cx, number, Status::ABORT_REQUESTED, 0);
            return 0;
        }
        1
    }

    fn format(&self, entry: &Submission) -> Result<Next, Status> {
        let word = entry.word(10);
        let (format, protection, erase) = (word & 0xF, word >> 5 & 7, word >> 9 & 7);
        let block = match format {
            0 => 512,
            1 => 4096,
            _ => return Err(Status::INVALID_FORMAT),
        };
        // No metadata, no protection information, no cryptographic erase.
        if word >> 4 & 1 != 0 || protection != 0 || erase > 1 {
            return Err(Status::INVALID_FIELD);
        }
        let (first, count) = match entry.namespace() {
            ALL_NAMESPACES => (0, self.namespaces.len()),
            namespace => (self.index_of(namespace)?, 1),
        };
        // Their ranges are in blocks of the old size.
        if self.commands.values().any(|command| command.queue != 0 && command.begun) {
            return Err(Status::SEQUENCE_ERROR);
        }
        Ok(Next::Work(Work::Format { first, count, block }))
    }
}
