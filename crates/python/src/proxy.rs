//! A bad network on purpose, as Python serves it: a while at a time, so that a person can watch and stop it.

use crate::dma::{address, failed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tlplab_netio::{Error, Impairment, ProxyAddresses, ProxyCounters, adapter_ports};

/// The place of the proxy and its impairments: an object of Python with these attributes (`tlplab.nettlp.proxy.Plan`).
#[derive(FromPyObject)]
struct Plan {
    device: String,
    front: String,
    back: String,
    adapter: String,
    loss: u32,
    duplicate: u32,
    reorder: u32,
    truncate: u32,
    corrupt: u32,
    delay_ns: u64,
    seed: u64,
}

/// A proxy on its ports.
#[pyclass(frozen)]
pub(crate) struct Proxy {
    proxy: Mutex<tlplab_netio::Proxy>,
}

#[pymethods]
impl Proxy {
    #[new]
    fn new(py: Python<'_>, plan: Plan) -> PyResult<Self> {
        let Plan { loss, duplicate, reorder, truncate, corrupt, .. } = plan;
        let delay = Duration::from_nanos(plan.delay_ns);
        let impairment = Impairment { loss, duplicate, reorder, truncate, corrupt, delay };
        let addresses = ProxyAddresses {
            front: address(&plan.front)?,
            device: address(&plan.device)?,
            back: address(&plan.back)?,
            adapter: address(&plan.adapter)?,
        };
        let ports: Vec<u16> = adapter_ports().collect();
        let opened = py.detach(|| tlplab_netio::Proxy::open(addresses, &ports, impairment, plan.seed));
        let proxy = opened.map_err(|failure| match failure {
            Error::NotLocal { .. } => PyValueError::new_err(failure.to_string()),
            _ => failed(py, &failure),
        })?;
        Ok(Self { proxy: Mutex::new(proxy) })
    }

    /// Passes datagrams on for so many seconds.
    fn serve(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let served = py.detach(|| self.proxy.lock().unwrap_or_else(PoisonError::into_inner).serve(wall));
        served.map_err(|failure| failed(py, &failure))
    }

    /// Datagrams that the kernel dropped before the proxy saw them, if it tells.
    fn kernel_drops(&self) -> Option<u64> {
        self.proxy.lock().unwrap_or_else(PoisonError::into_inner).dropped()
    }

    /// The counters so far of datagrams to the device, and to the adapter: name and number of each counter.
    fn counters(&self) -> [Vec<(&'static str, u64)>; 2] {
        let counters = self.proxy.lock().unwrap_or_else(PoisonError::into_inner).counters();
        counters.map(|direction: ProxyCounters| direction.rows().to_vec())
    }
}
