//! The differential method on a simulated topology.

use crate::watching::Watch;
use crate::{error, outline};
use pyo3::prelude::*;
use tlplab_bench::differential::simulator::{Sampling, sample};
use tlplab_bench::differential::{attribute, document};
use tlplab_experiment::Options;
use tlplab_units::Duration;

/// A step of the simulated processor's counter, as the paper's has.
const STEP: Duration = Duration::from_ns(3);

/// Samples an experiment's topology, `idle` without its loads; the document as JSON. `progress` is told the part that is done. After
/// Ctrl-C, what there is until then.
#[pyfunction]
#[pyo3(signature = (path, overrides, samples, seed, progress, *, idle = false))]
pub(crate) fn measure_on(
    py: Python<'_>,
    path: &str,
    overrides: Vec<String>,
    samples: u64,
    seed: Option<u64>,
    progress: Py<PyAny>,
    idle: bool,
) -> PyResult<String> {
    let options = Options { set: overrides, seed, reader: true, ..Options::default() };
    let mut experiment = outline::parse(py, path, None, &options)?;
    if idle {
        experiment.loads.clear();
    }
    let sampling = Sampling { samples, seed: experiment.fabric.seed, step: STEP };
    let mut watch = Watch::new(progress);
    let sampled = py
        .detach(|| sample(experiment, sampling, &mut |part| watch.goes_on(part)))
        .map_err(|failure| error::run_error(py, &failure.to_string()))?;
    if let Some(raised) = watch.into_error(py) {
        return Err(raised);
    }
    let links = attribute(&sampled.targets, &sampled.samples, &sampled.clock, None);
    Ok(document("simulator", &sampled.clock, &sampled.targets, &sampled.samples, &links).to_string())
}
