//! Closed forms as a target: what the specification and the profiles alone tell, without simulation.
//!
//! A latency is the sum of what the critical path passes, one operation alone on the link; a bandwidth is the least of what the link
//! carries, what the engine passes and transmits, and what Little's law and the read buffer leave of the requests at once. Nothing queues,
//! nothing varies, nothing comes in bursts: a host's cache is as the case says however large the window is, its IOMMU always knows the
//! translation, and its limit on reads at once is not looked at.

use crate::case::{Cache, Case, Interface, LINE, Node, Test};
use crate::machine::Machine;
use crate::statistics::{Distribution, Series};
use crate::target::{MeasureError, Measured, Target};
use tlplab_analytic::{Access, Connection, Cost, Link, OrderedSets, Party, Span, Way};
use tlplab_device::bench_engine::EngineProfile;
use tlplab_fabric::config::HostConfig;
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
            CompletionPolicy::Rcb => tlplab_analytic::Completions::Rcb,
            // An end that comes alone is counted with the rest.
            CompletionPolicy::Max | CompletionPolicy::SplitHead | CompletionPolicy::SplitEnds => {
                tlplab_analytic::Completions::Max
            }
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
        self.ways(case).map(|way| way.bytes)
    }

    /// The same with how many they are.
    fn ways(&self, case: &Case) -> [Way; 3] {
        self.aligned(case, self.machine.device.tlp_alignment)
    }

    /// The same with TLPs that take multiples of `alignment`. All TLPs of a transfer are taken as equal.
    fn aligned(&self, case: &Case, alignment: u64) -> [Way; 3] {
        let (span, alignment) = (span_of(case), alignment as f64);
        let cost = |access| self.connection.cost(Party::Device, access, span);
        let aligned =
            |way: Way| Way { bytes: (way.bytes / way.tlps / alignment).ceil() * alignment * way.tlps, ..way };
        [aligned(cost(Access::Write).up), aligned(cost(Access::Read).up), aligned(cost(Access::Read).down)]
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
            + self.wire(completions).max(interval + self.answer(case, completions / requests as f64))
    }

    /// Seconds from the first byte of the answer to a read request, alone, to its last; it has `bytes` on the wire.
    fn answer(&self, case: &Case, bytes: f64) -> f64 {
        let last = case.size.min(self.machine.device.mrrs.bytes().into());
        let lines = (case.host_offset % LINE + last).div_ceil(LINE);
        let one_by_one = self.host().line_interval.map_or(0.0, |interval| seconds(interval * (lines - 1)));
        self.wire(bytes).max(one_by_one + self.wire(bytes / lines as f64))
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
            (Some(_), Cache::Cold | Cache::HostWarm | Cache::DeviceThrash) | (None, _) => memory.latency,
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
        let gap = match case.interface {
            Interface::Command => Duration::ZERO,
            Interface::Dma => {
                self.engine().dma.writes.least.saturating_sub(self.engine().dma.writes.overhead.completion)
            }
        };
        let gap = (seconds(gap) - (self.wire(bytes) - last)).max(0.0);
        // The read's data do not leave the host before the write is in memory.
        let behind = gap + seconds(self.completion_of_writes(case)) + seconds(issue) + self.memory(case);
        let commit = (seconds(self.host().commit) - behind).max(0.0);
        self.write_accepted(case) + gap + (last - seconds(issue)).max(0.0) + commit + self.read_latency(case)
    }

    fn completion_of_writes(&self, case: &Case) -> Duration {
        match case.interface {
            Interface::Command => self.engine().command.write.completion,
            Interface::Dma => self.engine().dma.writes.overhead.completion,
        }
    }

    /// Transfers per second, of one direction.
    fn rate(&self, case: &Case) -> f64 {
        let reads = || self.each_read(case, self.each(case, 1.0, 0.0));
        1.0 / match case.test {
            Test::BwWr => self.each(case, 0.0, 1.0),
            // While reads wait for their buffer, writes go on.
            Test::BwRdwr => self.each(case, 1.0, 1.0).max(reads()),
            Test::BwRd | Test::LatRd | Test::LatWrrd => reads(),
        }
    }

    /// Seconds of each of many transfers of so many reads and writes, as link, engine and memory allow.
    fn each(&self, case: &Case, reads: f64, writes: f64) -> f64 {
        let [write, request, completions] = self.ways(case);
        let cost = Cost { up: request * reads + write * writes, down: completions * reads };
        let dma = &self.engine().dma;
        let transmission = &dma.transmission;
        let [write_beats, request_beats, _] = self.aligned(case, transmission.beat).map(|way| way.bytes);
        let beats = (writes * write_beats + reads * request_beats) / transmission.beat as f64
            + writes * dma.writes.idle(0, case.size, case.size) as f64
            + reads * transmission.acks(case.size) as f64;
        let bandwidth = self.host().memory.bandwidth;
        [
            1.0 / self.connection.rate(cost),
            beats * seconds(transmission.beat_time),
            bandwidth.map_or(0.0, |rate| (reads + writes) * (case.size * 8) as f64 / rate as f64),
            reads * seconds(dma.read_occupies(case.device_offset, case.size)),
            writes * seconds(dma.write_passes(case.device_offset, case.size)),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }

    /// Seconds of each of many reads, where everything but their number at once allows one in `each`: Little's law of requests, and what
    /// the buffer adds, whose ring begins again when all that is under way is over.
    fn each_read(&self, case: &Case, each: f64) -> f64 {
        let dma = &self.engine().dma;
        let overhead = seconds(dma.reads.overhead.issue + dma.reads.overhead.completion);
        let held = self.read_latency(case) - overhead;
        let requests = self.connection.reads(span_of(case)) as f64;
        let at_once = f64::from(dma.reads.requests) / requests;
        let slots = case.at_once.unwrap_or(dma.slots);
        let each = each.max(held / at_once.min(f64::from(slots)));
        let Some(buffer) = dma.reads.buffer else { return each };
        let blocks = |bytes: u64| (case.device_offset % dma.alignment + bytes).div_ceil(buffer.block);
        let largest = blocks(case.size.min(dma.reads.mrrs.into()));
        let under_way = at_once * blocks(case.size) as f64;
        if under_way + largest as f64 > f64::from(buffer.blocks - buffer.margin) {
            return each; // it is full, and never waits to be empty
        }
        let in_ring = (u64::from(buffer.blocks) / blocks(case.size)) as f64;
        ((in_ring / at_once).ceil() * held).max(in_ring * each + held - each) / in_ring
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
