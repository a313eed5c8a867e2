//! The records of a run: probes, statistics, series over time, samples, errors. The simulation is the same whatever is recorded.

pub mod errors;
pub(crate) mod level;
pub mod outages;
pub mod probe;
pub mod registers;
pub(crate) mod sample;
pub(crate) mod statistics;
pub(crate) mod timeline;
pub mod topology;

use crate::kernel::ids::{FlowId, PortId};
use errors::ErrorLog;
use outages::Outages;
use probe::{Probe, TraceHash};
use sample::Samples;
use statistics::FlowStatistics;
use timeline::{Gauge, Timeline};
use tlplab_datalink::ProtocolError;
use tlplab_units::{Duration, Time};

/// Of so many protocol errors every detail is kept; all are counted.
const PROTOCOL_ERRORS_KEPT: usize = 1000;

/// The records of a run.
pub(crate) struct Observe {
    pub(crate) probe: Option<Box<dyn Probe>>,
    pub(crate) hash: TraceHash,
    pub(crate) timeline: Timeline,
    pub(crate) samples: Samples,
    pub(crate) flows: Vec<FlowStatistics>,
    /// Statistics count from then on.
    pub(crate) warmup: Time,
    pub(crate) counts: Counts,
    pub(crate) errors: ErrorLog,
    pub(crate) outages: Outages,
    pub(crate) protocol_errors: Vec<(Time, PortId, ProtocolError)>,
    /// The transactions of each flow that are under way are counted.
    pub(crate) counts_outstanding: bool,
}

/// The counters of the whole fabric since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Transactions that ended, in whatever way.
    pub(crate) ended: u64,
    /// Requests that nobody claimed, or whose completer refused.
    pub(crate) refused: u64,
    /// Completions that nobody had asked for, or too late.
    pub(crate) unexpected: u64,
    /// Interrupts that reached the host.
    pub(crate) interrupts: u64,
}

impl Observe {
    pub(crate) fn new(probe: Option<Box<dyn Probe>>, samples: Samples, warmup: Time) -> Self {
        Self {
            probe,
            hash: TraceHash::default(),
            timeline: Timeline::new(),
            samples,
            flows: Vec::new(),
            warmup,
            counts: Counts::default(),
            errors: ErrorLog::default(),
            outages: Outages::default(),
            protocol_errors: Vec::new(),
            counts_outstanding: false,
        }
    }

    /// A copy of all that was noted, with another probe.
    pub(crate) fn snapshot(&self, probe: Option<Box<dyn Probe>>) -> Self {
        Self {
            probe,
            hash: self.hash,
            timeline: self.timeline.clone(),
            samples: self.samples.clone(),
            flows: self.flows.clone(),
            warmup: self.warmup,
            counts: self.counts,
            errors: self.errors.clone(),
            outages: self.outages.clone(),
            protocol_errors: self.protocol_errors.clone(),
            counts_outstanding: self.counts_outstanding,
        }
    }

    /// Payload of a flow has arrived, which took the wire for so long.
    #[inline]
    pub(crate) fn payload_arrived(&mut self, now: Time, flow: FlowId, bytes: u64, on_wire: Duration) {
        if now >= self.warmup && bytes > 0 {
            let from = Time::from_fs(now.as_fs().saturating_sub(on_wire.as_fs())).max(self.warmup);
            self.flows[flow.index()].arrived(from, now, bytes, &mut self.timeline);
        }
    }

    /// A flow has one more transaction under way.
    #[inline]
    pub(crate) fn one_more(&mut self, now: Time, flow: FlowId) {
        if self.counts_outstanding {
            self.change_outstanding(now, flow, Timeline::raise_level);
        }
    }

    /// A flow has one fewer.
    #[inline]
    pub(crate) fn one_less(&mut self, now: Time, flow: FlowId) {
        if self.counts_outstanding {
            self.change_outstanding(now, flow, Timeline::lower_level);
        }
    }

    /// Apart from the way of a run that does not count them.
    #[cold]
    #[inline(never)]
    fn change_outstanding(&mut self, now: Time, flow: FlowId, change: fn(&mut Timeline, &mut Gauge, Time)) {
        if let Some(gauge) = &mut self.flows[flow.index()].outstanding {
            change(&mut self.timeline, gauge, now);
        }
    }

    pub(crate) fn keep_protocol_error(&mut self, now: Time, port: PortId, error: ProtocolError) {
        if self.protocol_errors.len() < PROTOCOL_ERRORS_KEPT {
            self.protocol_errors.push((now, port, error));
        }
    }
}
