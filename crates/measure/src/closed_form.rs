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
use tlplab_model::{Access, Connection, Link, Operation, OrderedSets, Party, Span, bandwidth};
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

/// Bytes of a read request on the wire, and of a completion without its data.
const REQUEST: f64 = 24.0;
const COMPLETION: f64 = 20.0;

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

    /// Seconds that the engine takes before and after an operation, and those that each operation keeps it busy.
    fn engine_times(&self, case: &Case, write: bool) -> (f64, f64) {
        let (command, dma) = (&self.engine().command, &self.engine().dma);
        match case.interface {
            Interface::Command => (seconds(command.issue + command.completion), 0.0),
            Interface::Dma => {
                let inside = dma.internal_rate.map_or(0.0, |rate| (case.size * 8) as f64 / rate as f64);
                let _ = write;
                (
                    seconds(dma.issue + dma.completion) + inside,
                    seconds(dma.occupies(case.device_offset, case.size)),
                )
            }
        }
    }

    /// Seconds from a read's beginning to its end, alone.
    fn read_latency(&self, case: &Case) -> f64 {
        let span = span_of(case);
        let back = self.connection.cost(Party::Device, Access::Read, span).down;
        let (engine, _) = self.engine_times(case, false);
        let device = seconds(self.machine.fabric.devices[0].latency) * 2.0;
        engine
            + device
            + self.wire(REQUEST)
            + self.flight * 2.0
            + seconds(self.host().latency) * 2.0
            + self.memory(case)
            + self.wire(back.max(COMPLETION))
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
        let span = span_of(case);
        let cost = self.connection.cost(Party::Device, Access::Write, span).up;
        let writes = self.connection.writes(span) as f64;
        self.engine_times(case, true).0 + self.wire(cost * (1.0 - 1.0 / writes))
    }

    fn latency(&self, case: &Case) -> f64 {
        match case.test {
            Test::LatWrrd => {
                // The read request leaves behind the last TLP of the write.
                let span = span_of(case);
                let cost = self.connection.cost(Party::Device, Access::Write, span).up;
                let last = self.wire(cost / self.connection.writes(span) as f64);
                let (engine, _) = self.engine_times(case, true);
                self.write_accepted(case) + last.max(engine) - engine + self.read_latency(case)
            }
            _ => self.read_latency(case),
        }
    }

    /// Transfers per second, of one direction.
    fn rate(&self, case: &Case) -> f64 {
        let span = span_of(case);
        let (operation, reads, writes) = match case.test {
            Test::BwWr => (Operation::Write, 0.0, 1.0),
            Test::BwRdwr => (Operation::ReadWrite, 1.0, 1.0),
            _ => (Operation::Read, 1.0, 0.0),
        };
        let link = bandwidth(&self.connection, operation, span).transfers;
        let (_, busy) = self.engine_times(case, false);
        let slots = f64::from(self.engine().dma.slots);
        let sent = reads * self.connection.cost(Party::Device, Access::Read, span).up
            + writes * self.connection.cost(Party::Device, Access::Write, span).up;
        let transmit = self.engine().transmit.map_or(f64::INFINITY, |rate| rate as f64 / 8.0 / sent);
        let memory = self
            .host()
            .memory
            .bandwidth
            .map_or(f64::INFINITY, |rate| rate as f64 / 8.0 / case.size as f64 / (reads + writes));
        let in_flight = slots
            / (reads * self.read_latency(case) + writes * self.write_accepted(case)).max(f64::MIN_POSITIVE);
        [link, 1.0 / (busy * (reads + writes)), transmit, memory, in_flight]
            .into_iter()
            .fold(f64::INFINITY, f64::min)
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
