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

pub use job::{Interface, Job, Measure, Operation, Operations, Sink};
pub use profile::{
    CommandInterface, DmaEngine, EngineProfile, Overhead, Passing, ReadBuffer, ReadUnit, Transmission,
    WriteUnit,
};

use crate::contract::{Context, Device, Event};
use crate::identity::Identity;
use reads::Reads;
use std::iter::Peekable;
use step::Step;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};
use transmitter::Transmitter;
use writes::Writes;

/// The device; see the [module](self).
pub struct BenchEngine {
    between: Duration,
    command: CommandInterface,
    job: Job,
    operations: Peekable<Operations>,
    sink: Box<dyn Sink>,
    reads: Reads,
    writes: Writes,
    way: Transmitter,
    /// Descriptors that are free.
    free_reads: u32,
    free_writes: u32,
    current: Current,
    /// Operations that are over; of write and read together, one. Of how many.
    ended: u64,
    total: u64,
}

/// The measured operation of a latency job that is under way.
#[derive(Clone, Copy, Debug)]
struct Current {
    address: u64,
    begun: Time,
    /// Its read has begun.
    reading: bool,
}

impl BenchEngine {
    /// A device that does one job and tells `sink`.
    pub fn new(profile: &EngineProfile, job: Job, sink: Box<dyn Sink>) -> Self {
        let operations = job.operations();
        Self {
            between: profile.between,
            command: profile.command,
            total: operations.left(),
            operations: operations.peekable(),
            sink,
            reads: Reads::new(profile.dma, job.device_offset),
            writes: Writes::new(profile.dma, job.device_offset),
            way: Transmitter::new(profile.dma.transmission),
            free_reads: profile.dma.slots,
            free_writes: profile.dma.slots,
            current: Current { address: 0, begun: Time::ZERO, reading: false },
            ended: 0,
            job,
        }
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        if self.job.measure.is_latency() { self.measure_one(cx) } else { self.transfer(cx) }
    }

    fn free(&mut self, write: bool) -> &mut u32 {
        if write { &mut self.free_writes } else { &mut self.free_reads }
    }

    /// Transfers of a bandwidth job begin, in order, while there are descriptors.
    fn transfer(&mut self, cx: &mut Context<'_>) {
        while let Some(&Operation { write, address }) = self.operations.peek()
            && *self.free(write) > 0
        {
            self.operations.next();
            *self.free(write) -= 1;
            self.begin(cx, write, address);
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
        if self.current.reading { self.command.read } else { self.command.write }
    }

    /// The request of a command leaves.
    fn command(&mut self, cx: &mut Context<'_>) {
        let Current { address, reading, .. } = self.current;
        if reading {
            cx.dma_read(0, address, self.job.size);
        } else {
            cx.dma_write(0, address, Payload::Length(self.job.size));
        }
    }

    /// The next operation of a latency job begins.
    fn measure_one(&mut self, cx: &mut Context<'_>) {
        let Some(Operation { write, address }) = self.operations.next() else { return };
        self.current = Current { address, begun: cx.now(), reading: !write };
        self.begin(cx, write, address);
    }

    /// An operation is over.
    fn over(&mut self, cx: &mut Context<'_>, write: bool) {
        if self.job.measure.is_latency() {
            return self.part_over(cx);
        }
        *self.free(write) += 1;
        self.sink.transfer(cx.now());
        self.transfer(cx);
        self.one_ended(cx);
    }

    /// A read or a write of a latency job is over.
    fn part_over(&mut self, cx: &mut Context<'_>) {
        if !self.current.reading {
            self.current.reading = true;
            return self.begin(cx, false, self.current.address);
        }
        if self.ended >= self.job.warmup {
            self.sink.latency(self.current.begun, cx.now());
        }
        if self.operations.peek().is_some() {
            Step::Next.after(cx, self.between);
        }
        self.one_ended(cx);
    }

    fn one_ended(&mut self, cx: &mut Context<'_>) {
        self.ended += 1;
        if self.ended == self.total {
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
        Identity::new(VENDOR_ID, 0x00BE, 0x12_00_00) // processing accelerator
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
            (Event::Reset, _) => cx.fault("the device was reset during the measurement".into()),
            // It has no BARs.
            (Event::MmioRead { .. } | Event::MmioWrite { .. }, _) => {}
        }
    }
}
