//! The measurement of `tlplab perf`, in a thread of Python's that it does not hold up.

use crate::dma::{End, failed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::time::Duration;
use tlplab_netio::perf::{self, Direction, LaneResult, Pattern, PerfConfig, Region};
use tlplab_nettlp::endpoint::Counters;

/// The parameters of a measurement: an object of Python with these attributes (`tlplab.nettlp.perf.Plan`).
#[derive(FromPyObject)]
struct Plan {
    direction: String,
    address: u64,
    region: u64,
    length: u32,
    lanes: u8,
    outstanding: u16,
    divided: bool,
    pattern: String,
    count: Option<u64>,
    duration_ns: Option<u64>,
    paced: bool,
    interval_ns: u64,
    verify: bool,
    each: bool,
    seed: u64,
}

/// A measurement; `run` may be called once.
#[pyclass(frozen)]
pub(crate) struct Perf {
    perf: perf::Perf,
}

#[pymethods]
impl Perf {
    #[new]
    fn new(py: Python<'_>, end: End, plan: Plan) -> PyResult<Self> {
        let unknown = |what: &str| PyValueError::new_err(format!("unknown option {what:?}"));
        let config = PerfConfig {
            network: end.network()?,
            endpoint: end.endpoint(py)?,
            lanes: plan.lanes,
            outstanding: plan.outstanding,
            tags: None,
            direction: match plan.direction.as_str() {
                "read" => Direction::Read,
                "write" => Direction::Write,
                other => return Err(unknown(other)),
            },
            region: Region { address: plan.address, bytes: plan.region },
            divided: plan.divided,
            pattern: match plan.pattern.as_str() {
                "fix" => Pattern::Fix,
                "seq" => Pattern::Seq,
                "seq512" => Pattern::Seq512,
                "random" => Pattern::Random,
                other => return Err(unknown(other)),
            },
            length: plan.length,
            count: plan.count,
            duration: plan.duration_ns.map(Duration::from_nanos),
            paced: plan.paced,
            interval: Duration::from_nanos(plan.interval_ns),
            wait: end.wait(),
            verify: plan.verify,
            each: plan.each,
            seed: plan.seed,
        };
        let perf = perf::Perf::new(config).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Self { perf })
    }

    /// Ends it; what was measured counts.
    fn stop(&self) {
        self.perf.stop();
    }

    /// Operations that succeeded so far, and their bytes.
    fn progress(&self) -> (u64, u64) {
        self.perf.progress()
    }

    /// Measures, and says what.
    fn run<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| self.perf.run()).map_err(|e| failed(py, &e))?;
        let latency = report.latency();
        let all = PyDict::new(py);
        all.set_item("operations", report.operations())?;
        all.set_item("bytes", report.bytes())?;
        all.set_item("seconds", report.elapsed.as_secs_f64())?;
        all.set_item("cpu_seconds", report.cpu().as_secs_f64())?;
        all.set_item("errors", report.errors())?;
        all.set_item("wrong", report.wrong())?;
        all.set_item("arrived_bytes", report.arrived)?;
        let missing = report.missing.as_ref();
        all.set_item("missing_bytes", missing.map(|missing| missing.bytes))?;
        all.set_item("missing_ranges", missing.map(|missing| missing.ranges.clone()))?;
        all.set_item("missing_range_count", missing.map(|missing| missing.range_count))?;
        all.set_item("interrupted", report.interrupted)?;
        let quantile = |q| latency.value_at_quantile(q);
        let summary = PyDict::new(py);
        for (name, value) in [
            ("min", latency.min()),
            ("p50", quantile(0.5)),
            ("p90", quantile(0.9)),
            ("p99", quantile(0.99)),
            ("p99.9", quantile(0.999)),
            ("max", latency.max()),
        ] {
            summary.set_item(name, value)?;
        }
        summary.set_item("mean", latency.mean())?;
        all.set_item("latency_ns", summary)?;
        let steps = latency.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        all.set_item("histogram_ns", steps.collect::<Vec<_>>())?;
        let lanes = report.lanes.iter().map(|lane| describe(py, lane)).collect::<PyResult<Vec<_>>>()?;
        all.set_item("lanes", PyList::new(py, lanes)?)?;
        let mut counters = Counters::default();
        report.lanes.iter().for_each(|lane| counters.add(&lane.counters));
        all.set_item("lost", counters.lost())?;
        all.set_item("kernel_drops", report.kernel_drops())?;
        Ok(all)
    }
}

fn describe<'py>(py: Python<'py>, lane: &LaneResult) -> PyResult<Bound<'py, PyDict>> {
    let item = PyDict::new(py);
    item.set_item("operations", lane.operations)?;
    item.set_item("bytes", lane.bytes)?;
    item.set_item("seconds", lane.elapsed.as_secs_f64())?;
    item.set_item("cpu_seconds", lane.cpu.as_secs_f64())?;
    item.set_item("p50_ns", lane.latency.value_at_quantile(0.5))?;
    item.set_item("p99_ns", lane.latency.value_at_quantile(0.99))?;
    if !lane.each.is_empty() {
        item.set_item("latencies_ns", &lane.each)?;
    }
    let counters = PyDict::new(py);
    // What one lane misses the others may have had.
    for (name, value) in lane.counters.rows().into_iter().filter(|(name, _)| *name != "lost") {
        counters.set_item(name, value)?;
    }
    counters.set_item("kernel_drops", lane.kernel_drops)?;
    item.set_item("counters", counters)?;
    Ok(item)
}
