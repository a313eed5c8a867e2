//! The job of a benchmark device.

use crate::random::Random;
use tlplab_units::Time;

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The latency of one read at a time.
    ReadLatency,
    /// One at a time, a write and then a read of the same address, timed together.
    WriteReadLatency,
    /// Reads, as many at once as there are slots.
    ReadBandwidth,
    /// Writes, as many at once as there are slots.
    WriteBandwidth,
    /// Reads and writes in turn, as many at once as there are slots.
    ReadWriteBandwidth,
}

impl Measure {
    /// True if it is about latency.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::ReadLatency | Self::WriteReadLatency)
    }
}

/// By which way operations reach the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The command interface.
    Command,
    /// The DMA engine.
    Dma,
}

/// One run of a benchmark device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The measured quantity.
    pub measure: Measure,
    /// By which interface.
    pub interface: Interface,
    /// First byte of the buffer in host memory.
    pub base: u64,
    /// Units that the buffer has; at least one.
    pub units: u64,
    /// Bytes from one unit to the next.
    pub stride: u64,
    /// First byte of a transfer in its unit.
    pub offset: u64,
    /// First byte of a transfer in the device's memory.
    pub device_offset: u64,
    /// Bytes of a transfer; at least one.
    pub size: u64,
    /// Any unit is next, uniformly; else one after the other, again from the start after the last.
    pub random: bool,
    /// Operations before those that are measured.
    pub warmup: u64,
    /// Operations that are measured; of reads and writes in turn, so many of each.
    pub count: u64,
    /// Seed of the order.
    pub seed: u64,
}

/// Hears of what is measured, as it happens.
pub trait Sink: Send {
    /// A measured operation of a latency job is over.
    fn latency(&mut self, begun: Time, ended: Time);
    /// A transfer of a bandwidth job is over; those before the measured ones are told, too.
    fn transfer(&mut self, at: Time);
}

/// An operation of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// A write; in a write-read job, with the read of the same address behind it.
    pub write: bool,
    /// First byte.
    pub address: u64,
}

/// The operations of a job in their order, those before the measured ones first.
#[derive(Clone, Debug)]
pub struct Operations {
    measure: Measure,
    left: u64,
    write: bool,
    first: u64,
    stride: u64,
    units: u64,
    unit: u64,
    random: Option<Random>,
}

impl Job {
    /// Its operations.
    pub fn operations(&self) -> Operations {
        let each = if self.measure == Measure::ReadWriteBandwidth { 2 } else { 1 };
        Operations {
            measure: self.measure,
            left: each * (self.warmup + self.count),
            write: !matches!(self.measure, Measure::ReadLatency | Measure::ReadBandwidth),
            first: self.base + self.offset,
            stride: self.stride,
            units: self.units,
            unit: 0,
            random: self.random.then(|| Random::keyed(self.seed, "bench", "addresses")),
        }
    }
}

impl Operations {
    /// The number left.
    pub fn left(&self) -> u64 {
        self.left
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        self.left = self.left.checked_sub(1)?;
        let unit = match &mut self.random {
            Some(random) => random.below(self.units),
            None => self.unit,
        };
        self.unit = if unit + 1 == self.units { 0 } else { unit + 1 };
        let write = self.write;
        if self.measure == Measure::ReadWriteBandwidth {
            self.write = !write;
        }
        Some(Operation { write, address: self.first + unit * self.stride })
    }
}
