//! The differential method on this machine: what is asked for comes in, the document goes out as JSON.

use crate::error::run_error;
use crate::watching::Watch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;
use std::time::Duration;
use tlplab_hostprobe::clock::Calibration;
use tlplab_hostprobe::core::Pinned;
use tlplab_hostprobe::document::document;
use tlplab_hostprobe::plan::Plan;
use tlplab_hostprobe::sampling::{Budget, sample};
use tlplab_hostprobe::{Failure, sysfs};

/// The reads of `tlplab measure`, and their number.
#[derive(FromPyObject)]
pub(crate) struct Request {
    sysfs: String,
    own: bool,
    devices: Vec<String>,
    registers: Vec<String>,
    core: Option<usize>,
    samples: u64,
    seconds: f64,
}

/// Measures this machine; `progress` is told the part that is done. After Ctrl-C, what there is until then.
#[pyfunction]
pub(crate) fn probe(py: Python<'_>, request: Request, progress: Py<PyAny>) -> PyResult<String> {
    let refuse = |failure: Failure| match failure {
        Failure::Input(why) => PyValueError::new_err(why),
        Failure::Machine(why) => run_error(py, &why),
    };
    let plan = Plan::make(Path::new(&request.sysfs), request.own, &request.devices, &request.registers)
        .map_err(refuse)?;
    let budget = Budget { samples: request.samples, time: Duration::from_secs_f64(request.seconds) };
    let mut watch = Watch::new(progress);
    let measured = py.detach(|| {
        let pinned = Pinned::to(request.core)?;
        let clock = Calibration::measure()?;
        let mut readers = plan.open()?;
        let collected = sample(&mut readers, plan.readers(), clock.overhead_ticks, budget, &mut |part| {
            watch.goes_on(part)
        })?;
        Ok(document(&plan, &clock, &collected, pinned.core, &sysfs::kernel()).to_string())
    });
    match watch.into_error(py) {
        Some(raised) => Err(raised),
        None => measured.map_err(refuse),
    }
}
