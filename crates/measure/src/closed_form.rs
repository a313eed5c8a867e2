//! Closed forms as a target: what the specification and the profiles alone tell, without simulation.
//!
//! A latency is the sum of what the critical path passes, one operation alone on the link; a bandwidth is the least of what the link
//! carries, what the engine issues and transmits, and what Little's law leaves of the operations at once. Nothing queues, nothing varies:
//! a host's cache is as the case says, its IOMMU always knows the translation.

use crate::case::{Cache, Case, Interface, Node, Test};
use crate::machine::Machine;
use crate::statistics::{Distribution, Series};
use crate::target::{MeasureError, Measured, Target};
use tlplab_device::bench_engine::EngineProfile;
use tlplab_fabric::config::HostConfig;
use tlplab_model::{Access, Bytes, Connection, Link, OrderedSets, Party, Span};
use tlplab_transaction::CompletionPolicy;
use tlplab_units::{Duration, Time};

/// The closed form of a machine.
#[derive(Clone, Debug)]
pub struct ClosedForm {
    machine: Machine,
    connection: Connection,
    /// Seconds from end to end of the link.
    flight: f64,
}

impl ClosedForm {
    /// The closed form of this machine.
    pub fn new(machine: Machine) -> Self {
        let fabric = &machine.fabric;
        let link = &fabric.devices[0].link;
        let mut form = Link::new(link.generation, link.width);
        form.mode = link.mode;
        form.ordered_sets = OrderedSets::standard(link.generation);
        let mut connection = Connection::new(form, machine.device.mps, machine.device.mrrs);
        connection.rcb = fabric.host.rcb.bytes().into();
        connection.completions = match fabric.host.completions {
            CompletionPolicy::Rcb => tlplab_model::Completions::Rcb,
            _ => tlplab_model::Completions::Max,
        };
        let flight = seconds(link.flight);
        Self { machine, connection, flight }
    }

    fn engine(&self) -> &EngineProfile {
        &self.machine.device.engine
    }

    fn host(&self) -> &HostConfig {
        &self.machine.fabric.host
    }

    /// Seconds of `bytes` on the wire.
    fn wire(&self, bytes: f64) -> f64 {
        bytes / self.connection.raw()
    }

    /// Bytes on the wire of a transfer's writes, of its read requests, and of their completions, each TLP as aligned as the device has it.
    fn bytes(&self, case: &Case) -> [f64; 3] {
        self.aligned(case, self.machine.device.tlp_alignment)
    }

    /// The same with TLPs that take multiples of `alignment`. All TLPs of a transfer are taken as equal.
    fn aligned(&self, case: &Case, alignment: u64) -> [f64; 3] {
        let (span, alignment) = (span_of(case), alignment as f64);
        let cost = |access| self.connection.cost(Party::Device, access, span);
        let aligned = |bytes: f64, tlps: u64| {
            let tlps = tlps as f64;
            (bytes / tlps / alignment).ceil() * alignment * tlps
        };
        [
            aligned(cost(Access::Write).up, self.connection.writes(span)),
            aligned(cost(Access::Read).up, self.connection.reads(span)),
            aligned(cost(Access::Read).down, self.connection.completions(span)),
        ]
    }

    /// Seconds of an operation in the device, alone, besides what is on the wire.
    fn inside(&self, case: &Case, write: bool) -> f64 {
        let (command, dma) = (&self.engine().command, &self.engine().dma);
        let (overhead, passes) = match (case.interface, write) {
            (Interface::Command, false) => (command.read, Duration::ZERO),
            (Interface::Command, true) => (command.write, Duration::ZERO),
            (Interface::Dma, false) => (dma.reads.overhead, dma.read_passes(case.device_offset, case.size)),
            (Interface::Dma, true) => (dma.writes.overhead, dma.write_passes(case.device_offset, case.size)),
        };
        seconds(overhead.issue + overhead.completion + passes)
    }

    /// Seconds from a read's beginning to its end, alone. Its requests leave one after the other while the first is under way.
    fn read_latency(&self, case: &Case) -> f64 {
        let [_, request, completions] = self.bytes(case);
        let requests = self.connection.reads(span_of(case));
        let interval = match case.interface {
            Interface::Dma => seconds(self.engine().dma.reads.interval_within * (requests - 1)),
            Interface::Command => 0.0,
        };
        self.inside(case, false)
            + seconds(self.machine.fabric.devices[0].latency) * 2.0
            + self.wire(request / requests as f64)
            + self.flight * 2.0
            + seconds(self.host().latency) * 2.0
            + self.memory(case)
            + self.wire(completions).max(interval + self.wire(completions / requests as f64))
    }

    /// Seconds from a request's arrival at memory to its data.
    fn memory(&self, case: &Case) -> f64 {
        let host = self.host();
        let memory = &host.memory;
        // What comes after the first request is served while the first is on its way.
        let first = case.size.min(self.machine.device.mrrs.bytes().into());
        let served = memory.bandwidth.map_or(0.0, |rate| (first * 8) as f64 / rate as f64);
        // What its processor wrote there is in the other node's caches, which are no nearer than its memory.
        let remote = case.node == Node::Remote;
        let written = matches!(case.test, Test::LatWrrd | Test::BwRdwr);
        let latency = match (&host.cache, case.cache) {
            (Some(cache), _) if written => cache.hit,
            (Some(cache), Cache::HostWarm) if !remote => cache.hit + cache.snoop,
            (Some(cache), Cache::DeviceWarm) => cache.hit,
            _ => memory.latency,
        };
        let hop = host.numa.filter(|_| remote && !written).map_or(Duration::ZERO, |numa| numa.hop);
        seconds(latency + hop) + served
    }

    /// Seconds from a write's beginning until its last TLP is accepted for sending, alone.
    fn write_accepted(&self, case: &Case) -> f64 {
        let [bytes, ..] = self.bytes(case);
        let writes = self.connection.writes(span_of(case)) as f64;
        self.inside(case, true) + self.wire(bytes * (1.0 - 1.0 / writes))
    }

    fn latency(&self, case: &Case) -> f64 {
        if case.test == Test::LatRd {
            return self.read_latency(case);
        }
        // The read request leaves behind the last TLP of the write.
        let [bytes, ..] = self.bytes(case);
        let last = self.wire(bytes / self.connection.writes(span_of(case)) as f64);
        let issue = match case.interface {
            Interface::Command => self.engine().command.read.issue,
            Interface::Dma => self.engine().dma.reads.overhead.issue,
        };
        self.write_accepted(case) + (last - seconds(issue)).max(0.0) + self.read_latency(case)
    }

    /// Transfers per second, of one direction.
    fn rate(&self, case: &Case) -> f64 {
        let (reads, writes) = match case.test {
            Test::BwWr => (0.0, 1.0),
            Test::BwRdwr => (1.0, 1.0),
            _ => (1.0, 0.0),
        };
        let [write, request, completions] = self.bytes(case);
        let (up, down) = (reads * request + writes * write, reads * completions);
        let dma = &self.engine().dma;
        let passes = [
            reads * seconds(dma.read_occupies(case.device_offset, case.size)),
            writes * seconds(dma.write_passes(case.device_offset, case.size)),
        ];
        let transmission = &dma.transmission;
        let [write_beats, request_beats, _] = self.aligned(case, transmission.beat);
        let beats = (writes * write_beats + reads * request_beats) / transmission.beat as f64
            * seconds(transmission.beat_time);
        let memory = self
            .host()
            .memory
            .bandwidth
            .map_or(0.0, |rate| (reads + writes) * (case.size * 8) as f64 / rate as f64);
        // Little's law: of operations, and of the requests of reads.
        let slots =
            f64::from(dma.slots.min(dma.reads.requests)) / self.connection.reads(span_of(case)) as f64;
        let in_flight = reads * (self.read_latency(case) - seconds(dma.reads.overhead.issue)) / slots;
        let each = [1.0 / self.connection.rate(Bytes { up, down }), beats, memory, in_flight];
        1.0 / each.into_iter().chain(passes).fold(0.0, f64::max)
    }
}

impl Target for ClosedForm {
    fn run(&self, case: &Case, _: &mut dyn FnMut(f64) -> bool) -> Result<Measured, MeasureError> {
        self.machine.check(case)?;
        let (count, _) = case.counts();
        let clock = self.machine.device.clock;
        let mut measured = Measured {
            case: case.clone(),
            complete: true,
            clock,
            elapsed: Duration::ZERO,
            operations: count,
            latency: Distribution::default(),
            series: Series::default(),
        };
        let each = if case.test.is_latency() {
            let latency = duration(self.latency(case));
            // Rounded to the nearest tick: timestamps begin anywhere between two.
            let ticks = clock.ticks(Time::ZERO + latency + clock.tick() / 2);
            measured.latency.record_many(ticks, count);
            seconds(latency + self.engine().between)
        } else {
            1.0 / self.rate(case)
        };
        measured.elapsed = duration(each * count as f64);
        Ok(measured)
    }
}

fn span_of(case: &Case) -> Span {
    Span::new(case.host_offset, case.size)
}

fn seconds(duration: Duration) -> f64 {
    duration.as_fs() as f64 * 1e-15
}

fn duration(seconds: f64) -> Duration {
    Duration::from_fs((seconds * 1e15).round() as u64)
}
