//! DMA over NetTLP, and what an adapter tells beside it, for programs in Python that call and wait.

use crate::error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tlplab_netio::{Apis, Context, Error, Failure, Flush, Kind, Network, Wait};
use tlplab_nettlp::EndpointConfig;
use tlplab_nettlp::endpoint::Retry;
use tlplab_units::{Bdf, Duration, Mps, Mrrs};

/// The place of an end point, and its limits: an object of Python with these attributes (`tlplab.nettlp.End`).
#[derive(FromPyObject)]
pub(crate) struct End {
    local: String,
    adapter: String,
    /// Asked of the adapter if nobody names it.
    requester: Option<u16>,
    transport: String,
    interface: Option<String>,
    first_tag: u8,
    last_tag: u8,
    mps: u32,
    mrrs: u32,
    timeout_ns: u64,
    retries: u8,
    spin: bool,
    ecrc: bool,
    acknowledge: bool,
}

/// An hour: time counts to five.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl End {
    pub(crate) fn network(&self) -> PyResult<Network> {
        let kind = self.transport.parse::<Kind>().map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Network { kind, local: address(&self.local)?, interface: self.interface.clone() })
    }

    pub(crate) fn wait(&self) -> Wait {
        if self.spin { Wait::Spin } else { Wait::Sleep }
    }

    pub(crate) fn apis(&self) -> PyResult<Apis> {
        Ok(Apis { local: address(&self.local)?, adapter: address(&self.adapter)? })
    }

    /// The ID that the user has named.
    pub(crate) fn id(&self) -> Option<Bdf> {
        self.requester.map(Bdf)
    }

    /// The end point; its ID is asked for if nobody named it.
    pub(crate) fn endpoint(&self, py: Python<'_>) -> PyResult<EndpointConfig> {
        let apis = self.apis()?;
        let id = match self.id() {
            Some(id) => id,
            None => py.detach(|| apis.device_id()).map_err(|e| failed(py, &e))?,
        };
        self.endpoint_as(id)
    }

    /// The end point with this ID.
    pub(crate) fn endpoint_as(&self, id: Bdf) -> PyResult<EndpointConfig> {
        let (mps, mrrs) = limits(self.mps, self.mrrs)?;
        if self.timeout_ns > LONGEST_NS {
            return Err(PyValueError::new_err("the time limit of a request is at most an hour"));
        }
        Ok(EndpointConfig {
            tags: self.first_tag..=self.last_tag,
            host_ports: 0,
            mps,
            mrrs,
            completion_timeout: Duration::from_ns(self.timeout_ns),
            acknowledged: self.acknowledge,
            retry: if self.retries == 0 { Retry::Never } else { Retry::Reads(self.retries) },
            ..EndpointConfig::new(address(&self.adapter)?, id).with_digests(self.ecrc)
        })
    }
}

/// Maximum payload and read request size.
pub(crate) fn limits(mps: u32, mrrs: u32) -> PyResult<(Mps, Mrrs)> {
    let mps = Mps::ALL.iter().copied().find(|size| size.bytes() == mps);
    let mrrs = Mrrs::ALL.iter().copied().find(|size| size.bytes() == mrrs);
    let refused = || PyValueError::new_err("MPS and MRRS must be powers of two from 128 B to 4 KiB");
    mps.zip(mrrs).ok_or_else(refused)
}

pub(crate) fn address(text: &str) -> PyResult<Ipv4Addr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("{text:?} is not an IPv4 address")))
}

/// An end point that cannot be opened or does not answer, as `tlplab.errors.RunError`.
pub(crate) fn failed(py: Python<'_>, failure: &Error) -> PyErr {
    error::run_error(py, &failure.to_string())
}

/// An end point that reads and writes the memory of the adapter's host.
#[pyclass(frozen)]
pub(crate) struct Dma {
    context: Context,
    requester: Bdf,
}

impl Dma {
    fn failed(&self, py: Python<'_>, failure: &Failure) -> PyErr {
        let why = match self.context.counters().undigested {
            0 => "",
            _ => {
                "; answers came without a digest (ECRC), as from the published card and programs: leave --ecrc out"
            }
        };
        let said = format!("{failure}{why}");
        if failure.is_timeout() { error::timed_out(py, &said) } else { error::run_error(py, &said) }
    }
}

#[pymethods]
impl Dma {
    #[new]
    fn new(py: Python<'_>, end: End) -> PyResult<Self> {
        let config = end.endpoint(py)?;
        let network = end.network()?;
        let requester = config.requester;
        let transport = py.detach(|| network.open(&config)).map_err(|e| failed(py, &e))?;
        Ok(Self { context: Context::new(config, transport, end.wait()), requester })
    }

    /// Bus, device and function under which it issues requests.
    #[getter]
    fn requester(&self) -> u16 {
        self.requester.0
    }

    fn read<'py>(&self, py: Python<'py>, address: u64, bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        check_size(bytes as u64)?;
        let mut buffer = vec![0; bytes];
        py.detach(|| self.context.dma_read(address, &mut buffer)).map_err(|e| self.failed(py, &e))?;
        Ok(PyBytes::new(py, &buffer))
    }

    fn write(&self, py: Python<'_>, address: u64, data: Vec<u8>) -> PyResult<()> {
        py.detach(|| self.context.dma_write(address, &data)).map_err(|e| self.failed(py, &e))
    }

    fn flush(&self, py: Python<'_>, address: u64) -> PyResult<()> {
        py.detach(|| self.context.flush(address)).map_err(|e| self.failed(py, &e))
    }

    /// Sets the way to find out that writes have arrived: `zero` (a read of no bytes), `read` (of what was written last) or `never`.
    fn flush_by(&self, how: &str) -> PyResult<()> {
        self.context.set_flush(match how {
            "zero" => Flush::ZeroLength,
            "read" => Flush::Read,
            "never" => Flush::Never,
            other => {
                return Err(PyValueError::new_err(format!(
                    "unknown value {other:?}; expected zero, read or never"
                )));
            }
        });
        Ok(())
    }

    /// The counters of the end point.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.context.counters().rows().into_iter().collect()
    }

    /// Reads several places at once; where one cannot be read, a text says why.
    fn read_many<'py>(&self, py: Python<'py>, places: Vec<(u64, u64)>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        for &(_, bytes) in &places {
            check_size(bytes)?;
        }
        let results = py.detach(|| self.context.read_many(&places)).map_err(|e| failed(py, &e))?;
        let shown = results.into_iter().map(|result| match result {
            Ok(data) => PyBytes::new(py, data.bytes().unwrap_or_default()).into_any(),
            Err(why) => PyString::new(py, &why.to_string()).into_any(),
        });
        Ok(shown.collect())
    }
}

/// The limit of one read, whose data are in memory twice for a moment.
const LARGEST_READ: u64 = 1 << 30;

fn check_size(bytes: u64) -> PyResult<()> {
    match bytes <= LARGEST_READ {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!("{bytes} bytes at once; read at most 1 GiB"))),
    }
}

/// A doubleword of the configuration space of the function that the adapter is.
#[pyfunction]
pub(crate) fn config_read(py: Python<'_>, end: End, register: u16) -> PyResult<u32> {
    let apis = end.apis()?;
    py.detach(|| apis.config_read(register)).map_err(|e| failed(py, &e))
}

/// Writes those bytes of a doubleword there that `enables` names.
#[pyfunction]
pub(crate) fn config_write(py: Python<'_>, end: End, register: u16, enables: u8, data: u32) -> PyResult<()> {
    let apis = end.apis()?;
    py.detach(|| apis.config_write(register, enables, data)).map_err(|e| failed(py, &e))
}

/// The registers of an adapter, by their numbers.
#[pyfunction]
pub(crate) fn adapter_registers(py: Python<'_>, end: End) -> PyResult<Vec<(u8, u32)>> {
    let apis = end.apis()?;
    let registers = py.detach(|| apis.registers()).map_err(|e| failed(py, &e))?;
    Ok(registers.into_iter().map(|(register, value)| (register as u8, value)).collect())
}
