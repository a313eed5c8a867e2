//! Devices served over NetTLP, as Python starts, watches and ends them.

use crate::device::PythonDevice;
use crate::dma::{End, address, failed};
use crate::{error, identity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration as Wall, Instant};
use tlplab_device_library::LibraryDevice;
use tlplab_netio::{
    Apis, Builtin, Done, Drops, Error, Loop, Lost, Place, Ready, Serving, Station, Transport, Wait,
};
use tlplab_nettlp::{DevicePort, EndpointConfig};
use tlplab_units::{Bdf, Duration};

/// The interval at which waiting threads look up.
const GLANCE: Wall = Wall::from_millis(50);

/// The place where a device is served: an object of Python with these attributes (`tlplab.nettlp.serve.Site`).
#[derive(FromPyObject)]
pub(crate) struct Site {
    end: End,
    /// Of whom the message API is asked; the adapter if nobody else is named.
    host: Option<String>,
    /// The start of the window; asked of the adapter if absent.
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

/// A served device, until it is ended.
#[pyclass(frozen)]
pub(crate) struct Server {
    place: Place,
    state: Mutex<State>,
}

/// Nobody waits for anything while the state is locked, neither for Python nor for a thread.
enum State {
    Threads(Serving),
    /// A device in Python that nobody runs.
    Here(Box<Here>),
    /// A program that runs, and its finished calls.
    Runs(Box<Done>),
    Ended(Vec<Done>),
}

/// A device in Python, which runs in the thread that waits for it.
struct Here {
    station: Station,
    serve: Loop<DevicePort, Box<dyn Transport>>,
    device: PythonDevice,
    lost: Lost,
    drops: Drops,
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

    /// Serves a device from a library.
    #[staticmethod]
    fn library(
        py: Python<'_>,
        site: Site,
        path: PathBuf,
        parameters: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let station = site.station()?;
        let device = LibraryDevice::open(&path, &parameters)
            .map_err(|why| PyValueError::new_err(format!("{}: {why}", path.display())))?;
        let started = py.detach(|| Serving::start(&station, vec![device], None));
        let (place, serving) = started.map_err(|e| failed(py, &e))?;
        Ok(Self { place, state: Mutex::new(State::Threads(serving)) })
    }

    /// Serves a `tlplab.device.DeviceParty`.
    #[staticmethod]
    fn python(py: Python<'_>, site: Site, party: Py<PyAny>) -> PyResult<Self> {
        let station = site.station()?;
        let layout = tlplab_device::Device::layout(&identity::of(party.bind(py))?);
        let opened = py.detach(|| {
            let transport = station.open(0, 1)?;
            let place = Place::find(&station, &layout)?;
            let mut port = station.port(&place, 0, 1);
            port.start();
            Ok((place, Loop::new(port, transport)))
        });
        let (place, serve) = opened.map_err(|e: Error| failed(py, &e))?;
        let here = Here {
            station,
            serve,
            device: PythonDevice::new(party),
            lost: Lost::default(),
            drops: Drops::default(),
        };
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
        let wall = Wall::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let until = Instant::now() + wall;
        match self.take() {
            Some(mut here) => {
                let ran = here.run(py, until, |done| self.is_wanted(done));
                let mut state = self.state();
                if let State::Runs(_) = *state {
                    *state = State::Here(here);
                }
                ran
            }
            None => {
                if py.detach(|| self.watch(until)) {
                    self.end(py)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The counters so far: name and number of each.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Done::rows(&self.state().done())
    }

    /// Ends it; its counters stay.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state();
        let ended = State::Ended(state.done());
        let before = std::mem::replace(&mut *state, ended);
        drop(state);
        let State::Threads(mut serving) = before else { return Ok(()) };
        let end = py.detach(|| serving.end());
        // What was done while it ended counts, too.
        *self.state() = State::Ended(serving.done());
        end.map_err(|e| failed(py, &e))
    }
}

impl State {
    fn done(&self) -> Vec<Done> {
        match self {
            Self::Threads(serving) => serving.done(),
            Self::Here(here) => vec![Done::of(&here.serve.engine, here.serve.dropped())],
            Self::Runs(done) => vec![**done],
            Self::Ended(done) => done.clone(),
        }
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device in Python, if it is here, to be run.
    fn take(&self) -> Option<Box<Here>> {
        let mut state = self.state();
        let State::Here(here) = &*state else { return None };
        let runs = State::Runs(Box::new(Done::of(&here.serve.engine, here.serve.dropped())));
        match std::mem::replace(&mut *state, runs) {
            State::Here(here) => Some(here),
            _ => None,
        }
    }

    /// The device that runs has done this; true if it is to go on.
    fn is_wanted(&self, done: Done) -> bool {
        let mut state = self.state();
        let goes_on = matches!(*state, State::Runs(_));
        if goes_on {
            *state = State::Runs(Box::new(done));
        }
        goes_on
    }

    /// Waits until then; true if a thread has ended by itself before.
    fn watch(&self, until: Instant) -> bool {
        loop {
            match &*self.state() {
                State::Threads(serving) if serving.has_ended() => return true,
                State::Threads(_) | State::Runs(_) => {}
                State::Here(_) | State::Ended(_) => return false,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(GLANCE));
        }
    }
}

impl Here {
    /// Until then, or until what it has done is not `wanted` any more.
    fn run(&mut self, py: Python<'_>, until: Instant, wanted: impl Fn(Done) -> bool) -> PyResult<()> {
        let mut ready = Ready::default();
        loop {
            self.tell(py)?;
            let drops = self.drops.recent(&self.serve);
            if !wanted(Done::of(&self.serve.engine, drops)) {
                return Ok(());
            }
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
        let Self { station, serve, device, lost, .. } = self;
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
