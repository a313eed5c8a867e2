//! Devices served over NetTLP, as Python starts, watches and ends them.

use crate::device::PythonDevice;
use crate::dma::{End, address, failed};
use crate::{error, identity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration as Wall, Instant};
use tlplab_bridge::net::{
    Apis, Builtin, Done, Error, Loop, Lost, Place, Ready, Serving, Station, Transport, Wait,
};
use tlplab_nettlp::{DevicePort, EndpointConfig};
use tlplab_units::{Bdf, Duration};

/// How often a device in Python looks for Ctrl-C.
const GLANCE: Wall = Wall::from_millis(100);

/// Where a device is served: an object of Python with these attributes (`tlplab.nettlp.serve.Site`).
#[derive(FromPyObject)]
pub(crate) struct Site {
    end: End,
    /// Of whom the message API is asked; the adapter if nobody else is named.
    host: Option<String>,
    /// Where the window begins; asked if nobody says.
    window: Option<u64>,
}

impl Site {
    fn station(&self) -> PyResult<Station> {
        let apis = self.end.apis()?;
        let host = match &self.host {
            Some(host) => Apis { adapter: address(host)?, ..apis },
            None => apis,
        };
        let id = self.end.id();
        // The place says who it is.
        let endpoint = self.end.endpoint_as(id.unwrap_or(Bdf(0)))?;
        Ok(Station {
            network: self.end.network()?,
            endpoint: EndpointConfig { host_ports: u16::MAX, ..endpoint },
            apis,
            host,
            id,
            window: self.window,
            wait: self.end.wait(),
        })
    }
}

/// A built-in device: an object of Python with these attributes (`tlplab.nettlp.serve.Builtin`).
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    name: String,
    lanes: u8,
    bytes: u64,
    delay_ns: u64,
    frames: Option<(u64, u16)>,
    tap: Option<String>,
    mtu: u16,
}

impl Wanted {
    fn builtin(self) -> PyResult<Builtin> {
        let Self { name, lanes, bytes, delay_ns, frames, tap, mtu } = self;
        Ok(match name.as_str() {
            "psmem" => Builtin::Psmem { lanes, bytes, delay: Duration::from_ns(delay_ns), frames },
            "nic" => Builtin::Nic { tap, mtu },
            "memory" => Builtin::Memory(bytes),
            "copier" => Builtin::Copier,
            "ring" => Builtin::Ring,
            "storage" => Builtin::Storage,
            _ => return Err(PyValueError::new_err(format!("there is no device {name:?}"))),
        })
    }
}

/// What is served, until it is ended.
#[pyclass(frozen)]
pub(crate) struct Server {
    place: Place,
    state: Mutex<State>,
}

enum State {
    Threads(Serving),
    Here(Box<Here>),
    Ended(Vec<Done>),
}

/// A device in Python, which runs in the thread that waits for it.
struct Here {
    station: Station,
    serve: Loop<DevicePort, Box<dyn Transport>>,
    device: PythonDevice,
    lost: Lost,
}

#[pymethods]
impl Server {
    /// Serves a built-in device.
    #[staticmethod]
    fn builtin(py: Python<'_>, site: Site, device: Wanted) -> PyResult<Self> {
        let (station, device) = (site.station()?, device.builtin()?);
        let (place, serving) = py.detach(|| device.serve(&station)).map_err(|e| failed(py, &e))?;
        Ok(Self { place, state: Mutex::new(State::Threads(serving)) })
    }

    /// Serves a `tlplab.device.DeviceParty`.
    #[staticmethod]
    fn python(py: Python<'_>, site: Site, party: Py<PyAny>) -> PyResult<Self> {
        let station = site.station()?;
        let layout = tlplab_device::Device::layout(&identity::of(party.bind(py))?);
        let opened = py.detach(|| {
            let place = Place::find(&station, &layout)?;
            let (mut port, transport) = station.lane(&place, 0, 1)?;
            port.start();
            Ok((place, Loop::new(port, transport)))
        });
        let (place, serve) = opened.map_err(|e: Error| failed(py, &e))?;
        let here = Here { station, serve, device: PythonDevice::new(party), lost: Lost::default() };
        Ok(Self { place, state: Mutex::new(State::Here(Box::new(here))) })
    }

    /// Bus, device and function.
    #[getter]
    fn id(&self) -> u16 {
        self.place.id.0
    }

    /// Vendor and device ID of the function at the adapter, if it tells.
    #[getter]
    fn ids(&self) -> Option<(u16, u16)> {
        self.place.ids
    }

    /// Number, address and size of each BAR.
    #[getter]
    fn bars(&self) -> Vec<(u8, u64, u64)> {
        let bars = self.place.bars.bars().iter().filter(|(bar, _)| *bar < 6);
        bars.map(|(bar, window)| (*bar, window.base, window.size)).collect()
    }

    /// Goes on for so long, or until it cannot.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let until = Instant::now() + Wall::from_secs_f64(seconds);
        match &mut *self.state() {
            State::Here(here) => here.run(py, until),
            State::Threads(serving) => {
                let ended = py.detach(|| serving.watch(until));
                ended.map_err(|e| failed(py, &e))
            }
            State::Ended(_) => Ok(()),
        }
    }

    /// What was done so far: name and number of each counter.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Done::rows(&match &*self.state() {
            State::Threads(serving) => serving.done(),
            State::Here(here) => vec![Done::of(&here.serve.engine)],
            State::Ended(done) => done.clone(),
        })
    }

    /// Ends it; its counters stay.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state();
        let (done, ended) = match &mut *state {
            State::Threads(serving) => {
                let ended = py.detach(|| serving.end());
                (serving.done(), ended)
            }
            State::Here(here) => (vec![Done::of(&here.serve.engine)], Ok(())),
            State::Ended(_) => return Ok(()),
        };
        *state = State::Ended(done);
        ended.map_err(|e| failed(py, &e))
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Here {
    fn run(&mut self, py: Python<'_>, until: Instant) -> PyResult<()> {
        let mut ready = Ready::default();
        loop {
            self.tell(py)?;
            py.check_signals()?;
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            let Self { serve, station, .. } = self;
            let turned = py.detach(|| {
                let found = match station.wait {
                    Wait::Spin => None,
                    Wait::Sleep => {
                        let latest = until.min(now + GLANCE);
                        let wake = serve.deadline().map_or(latest, |deadline| deadline.min(latest));
                        serve.poller().wait(&mut ready, Some(wake))?;
                        Some(&ready)
                    }
                };
                serve.turn(found)
            });
            turned.map_err(|e| failed(py, &e))?;
        }
    }

    /// Tells the device what it has not heard of, and sends what it does.
    fn tell(&mut self, py: Python<'_>) -> PyResult<()> {
        let Self { station, serve, device, lost } = self;
        let now = serve.now();
        while let Some(event) = serve.engine.take_event() {
            device.tell(py, &mut serve.engine, now, event).map_err(|e| error::party(py, e))?;
        }
        if let Some(why) = serve.engine.fault() {
            return Err(error::run_error(py, why));
        }
        station.refresh(&mut serve.engine, lost);
        serve.transmit().map_err(|e| failed(py, &e))
    }
}
