//! A device that measures its host, as the micro-benchmarks of pcie-bench do: it reads and writes a buffer in host memory through its
//! DMA engine or its command interface, and tells a [`Sink`] when.
//!
//! [`Job`] says what is measured and where, [`EngineProfile`] what the engine costs and how much it does at once. Latencies are measured
//! one operation at a time; bandwidth with as many as the engine has descriptors, each used again as soon as its operation is over.
//! `reads` and `writes` are the two halves of the DMA engine, `transmitter` is what they share, `step` are the timers that drive them.
//!
//! Transfers carry lengths only: it is meant for length-only runs.

mod job;
mod profile;
mod reads;
mod step;
mod transmitter;
mod writes;

pub use job::{Interface, Job, Measure, Sink};
pub use profile::{
    CommandInterface, DmaEngine, EngineProfile, Overhead, Passing, ReadBuffer, ReadUnit, Transmission,
    WriteUnit,
};

use crate::contract::{Context, Device, Event};
use crate::identity::Identity;
use job::Addresses;
use reads::Reads;
use step::Step;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};
use transmitter::Transmitter;
use writes::Writes;

/// The device; see the [module](self).
pub struct BenchEngine {
    between: Duration,
    command: CommandInterface,
    job: Job,
    addresses: Addresses,
    sink: Box<dyn Sink>,
    reads: Reads,
    writes: Writes,
    way: Transmitter,
    /// Descriptors that are free, of reads and of writes.
    free: [u32; 2],
    /// Operations that have begun and that are over; of write and read together, one.
    begun: u64,
    ended: u64,
    /// In a bandwidth job: the next is a write.
    write_next: bool,
    /// Of the measured operation that is under way: its address, when it began, and whether its read has begun.
    current: (u64, Time, bool),
    finished: bool,
}

impl BenchEngine {
    /// A device that does one job and tells `sink`.
    pub fn new(profile: &EngineProfile, job: Job, sink: Box<dyn Sink>) -> Self {
        Self {
            between: profile.between,
            command: profile.command,
            addresses: Addresses::new(&job),
            sink,
            reads: Reads::new(profile.dma, job.device_offset),
            writes: Writes::new(profile.dma, job.device_offset),
            way: Transmitter::new(profile.dma.transmission),
            free: [profile.dma.slots; 2],
            begun: 0,
            ended: 0,
            write_next: job.measure != Measure::ReadBandwidth,
            current: (0, Time::ZERO, false),
            finished: false,
            job,
        }
    }

    /// Operations of the whole job.
    fn total(&self) -> u64 {
        let each = if self.job.measure == Measure::ReadWriteBandwidth { 2 } else { 1 };
        each * (self.job.warmup + self.job.count)
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        if self.job.measure.is_latency() { self.measure_one(cx) } else { self.transfer(cx) }
    }

    /// Transfers of a bandwidth job begin, in order, while there are descriptors.
    fn transfer(&mut self, cx: &mut Context<'_>) {
        while self.begun < self.total() && self.free[usize::from(self.write_next)] > 0 {
            let write = self.write_next;
            self.begun += 1;
            self.free[usize::from(write)] -= 1;
            let address = self.addresses.next();
            self.begin(cx, write, address);
            if self.job.measure == Measure::ReadWriteBandwidth {
                self.write_next = !write;
            }
        }
    }

    /// An operation begins by the job's interface.
    fn begin(&mut self, cx: &mut Context<'_>, write: bool, address: u64) {
        match (self.job.interface, write) {
            (Interface::Dma, false) => self.reads.begin(cx, address, self.job.size),
            (Interface::Dma, true) => self.writes.begin(cx, address, self.job.size),
            (Interface::Command, _) => Step::Command.after(cx, self.overhead().issue),
        }
    }

    /// Of the command that is under way.
    fn overhead(&self) -> Overhead {
        if self.current.2 { self.command.read } else { self.command.write }
    }

    /// The request of a command leaves.
    fn command(&mut self, cx: &mut Context<'_>) {
        let (address, _, reading) = self.current;
        if reading {
            cx.dma_read(0, address, self.job.size);
        } else {
            cx.dma_write(0, address, Payload::Length(self.job.size));
        }
    }

    /// The next operation of a latency job begins.
    fn measure_one(&mut self, cx: &mut Context<'_>) {
        self.begun += 1;
        let write = self.job.measure == Measure::WriteReadLatency;
        let address = self.addresses.next();
        self.current = (address, cx.now(), !write);
        self.begin(cx, write, address);
    }

    /// An operation is over.
    fn over(&mut self, cx: &mut Context<'_>, write: bool) {
        if self.job.measure.is_latency() {
            return self.part_over(cx);
        }
        self.ended += 1;
        self.free[usize::from(write)] += 1;
        self.sink.transfer(cx.now());
        self.transfer(cx);
        self.check_end(cx);
    }

    fn part_over(&mut self, cx: &mut Context<'_>) {
        let (address, begun, reading) = self.current;
        if !reading {
            self.current.2 = true;
            return self.begin(cx, false, address);
        }
        self.ended += 1;
        if self.ended > self.job.warmup {
            self.sink.latency(begun, cx.now());
        }
        if self.begun < self.total() {
            Step::Next.after(cx, self.between);
        }
        self.check_end(cx);
    }

    fn check_end(&mut self, cx: &mut Context<'_>) {
        if self.ended == self.total() && !std::mem::replace(&mut self.finished, true) {
            cx.finished();
        }
    }

    fn step(&mut self, cx: &mut Context<'_>, step: Step) {
        match step {
            Step::ReadTaken => self.reads.taken(cx, &mut self.way),
            Step::ReadIssue => self.reads.issue_again(cx, &mut self.way),
            Step::ReadPassed => self.reads.has_passed(cx, &mut self.way),
            Step::ReadOver => self.over(cx, false),
            Step::WriteTaken => self.writes.taken(cx),
            Step::WritePassed => self.writes.has_passed(cx, &mut self.way),
            Step::Transmit => self.way.free(cx),
            Step::WriteOver => self.over(cx, true),
            Step::Command => self.command(cx),
            Step::CommandOver => self.part_over(cx),
            Step::Next => self.measure_one(cx),
        }
    }
}

impl Device for BenchEngine {
    fn identity(&self) -> Identity {
        Identity::new(0x1DE5, 0x00BE, 0x12_00_00) // processing accelerator
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match (event, self.job.interface) {
            (Event::Start, _) => self.start(cx),
            (Event::DmaReadDone { result: Err(error), .. }, _) => {
                cx.fault(format!("a read of the buffer failed: {error}"));
            }
            (Event::DmaReadDone { op, .. }, Interface::Dma) => self.reads.arrived(cx, &mut self.way, op),
            (Event::DmaWriteAccepted { .. }, Interface::Dma) => {
                if self.way.accepted(cx) {
                    self.writes.accepted(cx);
                }
            }
            (Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. }, Interface::Command) => {
                Step::CommandOver.after(cx, self.overhead().completion);
            }
            (Event::Timer { id }, _) => {
                if let Some(step) = Step::of(id) {
                    self.step(cx, step);
                }
            }
            (Event::Reset, _) => cx.fault("the device was reset while it measured".into()),
            // It has no BARs.
            (Event::MmioRead { .. } | Event::MmioWrite { .. }, _) => {}
        }
    }
}
