//! NetTLP cards in a virtual machine, as Python starts, watches and ends them.

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

/// Cards on Unix sockets, whose devices are elsewhere.
#[pyclass(frozen)]
pub(crate) struct CardServer(Mutex<Cards>);

struct Cards {
    /// None once it has ended.
    server: Option<Server>,
    counters: Vec<Counters>,
}

/// Name and number of each counter.
type Counters = Vec<(&'static str, u64)>;

/// A card's socket, its device's address, what the guest calls it, and the bytes of its BARs 4 and 2.
type Place = (PathBuf, u32, u16, u64, u64);

#[pymethods]
impl CardServer {
    #[new]
    #[pyo3(signature = (local, cards, datagrams = None))]
    fn new(py: Python<'_>, local: u32, cards: Vec<Place>, datagrams: Option<PathBuf>) -> PyResult<Self> {
        let place = |(path, peer, id, window, table): Place| CardPlace {
            path,
            peer: peer.into(),
            id: Bdf(id),
            window,
            table,
        };
        let places: Vec<_> = cards.into_iter().map(place).collect();
        let opened = py.detach(|| Server::open(local.into(), &places, datagrams.as_deref()));
        let server = opened.map_err(|failure| match failure {
            tlplab_netio::Error::Setup(_) | tlplab_netio::Error::NotLocal { .. } => {
                PyValueError::new_err(failure.to_string())
            }
            other => error::run_error(py, &other.to_string()),
        })?;
        Ok(Self(Mutex::new(Cards { server: Some(server), counters: Vec::new() })))
    }

    /// Writes down in a capture what passes between the guest and a card from now on.
    fn capture(&self, py: Python<'_>, card: usize, path: PathBuf, id: u16, name: &str) -> PyResult<()> {
        let captured = self.with(py, |cards| {
            let function = cards.server.as_mut().and_then(|server| server.function(card));
            function.map_or(Ok(()), |function| function.capture_tlps(&path, Bdf(id), name))
        });
        captured.map_err(|e| failed(py, &e))
    }

    /// Goes on for so long.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Wall::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        py.check_signals()?;
        let served = self.with(py, |cards| cards.server.as_mut().map_or(Ok(()), |server| server.serve(wall)));
        served.map_err(|e| failed(py, &e))
    }

    /// Of each card, name and number of each counter.
    fn counters(&self, py: Python<'_>) -> Vec<Counters> {
        self.with(py, |cards| cards.server.as_mut().map_or_else(|| cards.counters.clone(), counters))
    }

    /// Ends it, and its captures; its counters stay.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let ended = self.with(py, |cards| {
            let Some(mut server) = cards.server.take() else { return Ok(()) };
            cards.counters = counters(&mut server);
            server.finish()
        });
        ended.map_err(|e| failed(py, &e))
    }
}

impl CardServer {
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Cards) -> R + Send) -> R {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The counters of each function, and the adapter's counters of datagrams.
fn counters(server: &mut Server) -> Vec<Counters> {
    let cards = 0..server.cards();
    let of_card = |card: usize| {
        let mut rows = server.function(card).map(|function| vfio::rows(function)).unwrap_or_default();
        let counters = server.adapter().device_counters(card).unwrap_or_default();
        rows.extend(counters.rows().into_iter().filter(|(name, _)| {
            matches!(
                *name,
                "received" | "sent" | "lost" | "malformed" | "refused" | "timeouts" | "undeliverable"
            )
        }));
        rows
    };
    cards.map(of_card).collect()
}
