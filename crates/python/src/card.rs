//! The NetTLP card in a virtual machine, as Python starts, watches and ends it.

use crate::dma::failed;
use crate::error;
use crate::vfio;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration as Wall;
use tlplab_netio::{CardPlace, CardServer as Server};
use tlplab_units::Bdf;

/// A card on a Unix socket, whose device is elsewhere.
#[pyclass(frozen)]
pub(crate) struct CardServer(Mutex<Card>);

struct Card {
    /// None once it has ended.
    server: Option<Server>,
    counters: Vec<(&'static str, u64)>,
}

#[pymethods]
impl CardServer {
    #[new]
    #[pyo3(signature = (path, local, peer, id, window, datagrams = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        local: u32,
        peer: u32,
        id: u16,
        window: u64,
        datagrams: Option<PathBuf>,
    ) -> PyResult<Self> {
        let place = CardPlace { local: local.into(), peer: peer.into(), id: Bdf(id), window };
        let opened = py.detach(|| Server::open(&path, place, datagrams.as_deref()));
        let server = opened.map_err(|failure| match failure {
            tlplab_netio::Error::Setup(_) | tlplab_netio::Error::NotLocal { .. } => {
                PyValueError::new_err(failure.to_string())
            }
            other => error::run_error(py, &other.to_string()),
        })?;
        Ok(Self(Mutex::new(Card { server: Some(server), counters: Vec::new() })))
    }

    /// Writes down in a capture what passes between guest and card from now on.
    fn capture(&self, py: Python<'_>, path: PathBuf, id: u16, name: &str) -> PyResult<()> {
        let captured = self.with(py, |card| match &mut card.server {
            Some(server) => server.function().capture_tlps(&path, Bdf(id), name),
            None => Ok(()),
        });
        captured.map_err(|e| failed(py, &e))
    }

    /// Goes on for so long.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Wall::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        py.check_signals()?;
        let served =
            self.with(py, |card| card.server.as_mut().map_or(Ok(()), |server| server.serve(wall)));
        served.map_err(|e| failed(py, &e))
    }

    /// Name and number of each counter.
    fn counters(&self, py: Python<'_>) -> Vec<(&'static str, u64)> {
        self.with(py, |card| card.server.as_mut().map_or_else(|| card.counters.clone(), rows))
    }

    /// Ends it, and its captures; its counters stay.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let ended = self.with(py, |card| {
            let Some(mut server) = card.server.take() else { return Ok(()) };
            card.counters = rows(&mut server);
            server.finish()
        });
        ended.map_err(|e| failed(py, &e))
    }
}

impl CardServer {
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Card) -> R + Send) -> R {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Those of the function, and of the adapter those that say what became of datagrams.
fn rows(server: &mut Server) -> Vec<(&'static str, u64)> {
    let mut rows = vfio::rows(server.function());
    let counters = server.adapter().device_counters(0).unwrap_or_default();
    rows.extend(counters.rows().into_iter().filter(|(name, _)| {
        matches!(*name, "received" | "sent" | "lost" | "malformed" | "refused" | "timeouts" | "undeliverable")
    }));
    rows
}
