//! The adapter in software, as Python serves it: a while at a time, so that a person can watch and stop it.

use crate::dma::limits;
use crate::error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tlplab_netio::memory_image;
use tlplab_netio::{AdapterServer, Capture, Network, Recorded, Wait, adapter_ports};
use tlplab_nettlp::adapter::{
    Adapter, AdapterConfig, AdapterError, DeviceConfig, FunctionKind, Host, MemoryHost, MsixHome, PeerToPeer,
    RateLimit,
};
use tlplab_units::Bdf;

/// An adapter that serves devices.
#[pyclass(frozen)]
pub(crate) struct AdapterService {
    server: Mutex<AdapterServer<MemoryHost>>,
    capture: Option<Capture>,
}

#[pymethods]
impl AdapterService {
    #[new]
    #[pyo3(signature = (local, peers, *, memory, images = Vec::new(), latency_fs = 0, window = 256 << 20,
        mps = 256, mrrs = 512, root_complex = false, timeout_ns = None, msix_in_window = false, rate = None, transport = "udp", interface = None,
        spin = false, pcap = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        local: u32,
        peers: Vec<(u32, u16)>,
        memory: u64,
        images: Vec<(PathBuf, u64)>,
        latency_fs: u64,
        window: u64,
        mps: u32,
        mrrs: u32,
        root_complex: bool,
        timeout_ns: Option<u64>,
        msix_in_window: bool,
        rate: Option<u64>,
        transport: &str,
        interface: Option<String>,
        spin: bool,
        pcap: Option<PathBuf>,
    ) -> PyResult<Self> {
        let msix = if msix_in_window { MsixHome::Bar4 } else { MsixHome::Bar2 };
        let device = |(peer, bdf): (u32, u16)| DeviceConfig {
            function: FunctionKind::Card { window, msix },
            ..DeviceConfig::card(peer.into(), Bdf(bdf))
        };
        let mut config = AdapterConfig::new(local.into(), peers.into_iter().map(device).collect());
        (config.mps, config.mrrs) = limits(mps, mrrs)?;
        if root_complex {
            config.peer_to_peer = PeerToPeer::RootComplex;
        }
        if let Some(timeout) = timeout_ns {
            config.completion_timeout = tlplab_units::Duration::from_ns(timeout);
        }
        if let Some(per_second) = rate {
            config.rate = RateLimit { per_second, ..config.rate };
        }
        let latency = tlplab_units::Duration::from_fs(latency_fs);
        let loaded = py.detach(|| {
            let mut host = MemoryHost::new(memory).with_latency(latency);
            for (path, address) in &images {
                memory_image::load(&mut host, path, *address)?;
            }
            Ok(host)
        });
        let host = loaded.map_err(|failure: Failure| failure.raise(py))?;
        let (server, capture) = open(py, config, host, Sockets { transport, interface, spin, pcap })?;
        Ok(Self { server: Mutex::new(server), capture })
    }

    /// Serves for so many seconds.
    fn serve(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        py.detach(|| self.lock().serve(wall)).map_err(|failure| error::run_error(py, &failure.to_string()))
    }

    /// The devices that it serves and its counters, as JSON.
    fn report(&self) -> String {
        report(&self.lock())
    }

    /// Ends the capture, if there is one.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let finished = py.detach(|| self.capture.as_ref().map_or(Ok(()), Capture::finish));
        finished.map_err(|failure| error::file(&failure))
    }
}

/// The reason that there is no adapter.
enum Failure {
    Adapter(AdapterError),
    Network(tlplab_netio::Error),
    File(tlplab_trace::Error),
}

impl From<tlplab_trace::Error> for Failure {
    fn from(error: tlplab_trace::Error) -> Self {
        Self::File(error)
    }
}

impl Failure {
    /// A wrong request of the user is a `ValueError`.
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Adapter(failure) => PyValueError::new_err(failure.to_string()),
            Self::Network(
                failure @ (tlplab_netio::Error::NotLocal { .. } | tlplab_netio::Error::Setup(_)),
            ) => PyValueError::new_err(failure.to_string()),
            Self::Network(failure) => error::run_error(py, &failure.to_string()),
            Self::File(failure) => error::input(&failure),
        }
    }
}

/// The devices that an adapter serves and its counters, as JSON.
pub(crate) fn report<H: Host>(server: &AdapterServer<H>) -> String {
    let adapter = server.adapter();
    let devices = adapter.devices().enumerate().map(|(number, device)| {
        let bars = device.bars.iter().enumerate().filter_map(|(bar, window)| {
            let window = (*window)?;
            Some(json!({ "bar": bar, "base": window.base, "size": window.size }))
        });
        let counters = adapter.device_counters(number).unwrap_or_default();
        let counters: Map<String, Value> =
            counters.rows().into_iter().map(|(name, count)| (name.into(), count.into())).collect();
        json!({
            "peer": device.peer.to_string(),
            "bdf": device.bdf.to_string(),
            "ids": [device.ids.0, device.ids.1],
            "bars": bars.collect::<Vec<_>>(),
            "counters": counters,
        })
    });
    let totals = adapter.counters();
    let report = json!({
        "local": adapter.config().local.to_string(),
        "devices": devices.collect::<Vec<_>>(),
        "foreign": totals.foreign,
        "other_ports": totals.other_ports,
        "kernel_drops": server.dropped(),
    });
    report.to_string()
}

/// The place of an adapter in its network.
pub(crate) struct Sockets<'a> {
    pub(crate) transport: &'a str,
    pub(crate) interface: Option<String>,
    pub(crate) spin: bool,
    pub(crate) pcap: Option<PathBuf>,
}

/// Puts an adapter on its ports.
pub(crate) fn open<H: Host + Send>(
    py: Python<'_>,
    config: AdapterConfig,
    host: H,
    sockets: Sockets<'_>,
) -> PyResult<(AdapterServer<H>, Option<Capture>)> {
    let Sockets { transport, interface, spin, pcap } = sockets;
    let kind = transport.parse().map_err(|failure| Failure::Network(failure).raise(py))?;
    let network = Network { kind, local: config.local, interface };
    py.detach(|| {
        let (peers, mps) = (config.devices.iter().map(|device| device.peer).collect(), config.mps);
        let adapter = Adapter::new(config, host).map_err(Failure::Adapter)?;
        let opened = network.open_for(adapter_ports().collect(), peers, mps.bytes() as usize);
        let mut transport = opened.map_err(Failure::Network)?;
        let capture = pcap.map(|path| Capture::create(&path)).transpose()?;
        if let Some(capture) = &capture {
            transport = Box::new(Recorded::new(transport, network.local, capture.clone()));
        }
        let wait = if spin { Wait::Spin } else { Wait::Sleep };
        Ok((AdapterServer::new(adapter, transport, wait), capture))
    })
    .map_err(|failure: Failure| failure.raise(py))
}

impl AdapterService {
    fn lock(&self) -> MutexGuard<'_, AdapterServer<MemoryHost>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
