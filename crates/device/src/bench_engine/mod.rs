//! A device that measures its host, as the micro-benchmarks of pcie-bench do: it reads and writes a buffer in host memory through its
//! DMA engine or its command interface, and tells a [`Sink`] when.
//!
//! [`Job`] says what is measured and where, [`EngineProfile`] what the engine costs and how much it does at once. `pipeline` is
//! the way of an operation through the engine. Latencies are measured one operation at a time; bandwidth with as
//! many as there are slots, each taken again as soon as its operation is over.
//!
//! Transfers carry lengths only: it is meant for length-only runs.

mod job;
mod pipeline;
mod profile;

pub use job::{Interface, Job, Measure, Sink};
pub use profile::{CommandInterface, DmaEngine, EngineProfile};

use crate::contract::{Context, Device, Event};
use crate::identity::Identity;
use job::Addresses;
use pipeline::{Operation, Pipeline, Step};
use tlplab_units::Time;

/// The device; see the [module](self).
pub struct BenchEngine {
    between: tlplab_units::Duration,
    job: Job,
    pipeline: Pipeline,
    addresses: Addresses,
    sink: Box<dyn Sink>,
    /// Operations that have begun and that are over; of write and read together, one.
    begun: u64,
    ended: u64,
    /// In a bandwidth job that reads and writes: the next is a write.
    write_next: bool,
    /// Of the measured operation that is under way: its address, when it began, and whether its read has begun.
    current: (u64, Time, bool),
    finished: bool,
}

impl BenchEngine {
    /// A device that does one job and tells `sink`.
    pub fn new(profile: EngineProfile, job: Job, sink: Box<dyn Sink>) -> Self {
        Self {
            between: profile.between,
            pipeline: Pipeline::new(profile, job.interface, job.device_offset),
            addresses: Addresses::new(&job),
            sink,
            begun: 0,
            ended: 0,
            write_next: job.measure != Measure::ReadBandwidth,
            current: (0, Time::ZERO, false),
            finished: false,
            job,
        }
    }

    /// Transfers of the whole job.
    fn total(&self) -> u64 {
        let each = if self.job.measure == Measure::ReadWriteBandwidth { 2 } else { 1 };
        each * (self.job.warmup + self.job.count)
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        if self.job.measure.is_latency() {
            return self.measure_one(cx);
        }
        for slot in 0..self.pipeline.slots() {
            self.transfer(cx, slot);
        }
    }

    /// The next transfer of a bandwidth job takes a slot.
    fn transfer(&mut self, cx: &mut Context<'_>, slot: u32) {
        if self.begun == self.total() {
            return;
        }
        self.begun += 1;
        let write = self.write_next;
        if self.job.measure == Measure::ReadWriteBandwidth {
            self.write_next = !write;
        }
        let address = self.addresses.next();
        self.pipeline.begin(cx, slot, Operation { write, address, size: self.job.size });
    }

    /// The next operation of a latency job begins.
    fn measure_one(&mut self, cx: &mut Context<'_>) {
        self.begun += 1;
        let write = self.job.measure == Measure::WriteReadLatency;
        let address = self.addresses.next();
        self.current = (address, cx.now(), !write);
        self.pipeline.begin(cx, 0, Operation { write, address, size: self.job.size });
    }

    /// The operation in a slot is over.
    fn over(&mut self, cx: &mut Context<'_>, slot: u32) {
        if self.job.measure.is_latency() {
            return self.part_over(cx);
        }
        self.ended += 1;
        self.sink.transfer(cx.now());
        self.transfer(cx, slot);
        self.check_end(cx);
    }

    fn part_over(&mut self, cx: &mut Context<'_>) {
        let (address, begun, reading) = self.current;
        if !reading {
            self.current.2 = true;
            return self.pipeline.begin(cx, 0, Operation { write: false, address, size: self.job.size });
        }
        self.ended += 1;
        let now = cx.now();
        if self.ended > self.job.warmup {
            self.sink.latency(begun, now);
        }
        if self.begun < self.total() {
            cx.timer(now + self.between, Step::Next.id());
        }
        self.check_end(cx);
    }

    fn check_end(&mut self, cx: &mut Context<'_>) {
        if self.ended == self.total() && !std::mem::replace(&mut self.finished, true) {
            cx.finished();
        }
    }
}

impl Device for BenchEngine {
    fn identity(&self) -> Identity {
        Identity::new(0x1DE5, 0x00BE, 0x12_00_00) // processing accelerator
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => self.start(cx),
            Event::DmaReadDone { result: Err(error), .. } => {
                cx.fault(format!("a read of the buffer failed: {error}"));
            }
            Event::DmaReadDone { op, .. } | Event::DmaWriteAccepted { op } => {
                if let Some(slot) = self.pipeline.done(cx, op) {
                    self.over(cx, slot);
                }
            }
            Event::Timer { id } => match Step::of(id) {
                Step::Issued(slot) => self.pipeline.issued(cx, slot),
                Step::Transmit => self.pipeline.transmit(cx),
                Step::Over(slot) => self.over(cx, slot),
                Step::Next => self.measure_one(cx),
            },
            Event::Reset => cx.fault("the device was reset while it measured".into()),
            // It has no BARs.
            Event::MmioRead { .. } | Event::MmioWrite { .. } => {}
        }
    }
}
