//! An experiment behind an adapter: its devices are elsewhere, its programs, in Python too, are here.

use crate::adapter::{self, Sockets};
use crate::residents::{PythonResidents, load_objects};
use crate::simulation::{read_traces, reason_of};
use crate::{error, outline};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tlplab_cosim::{library, medium, rtl};
use tlplab_device::Frames;
use tlplab_experiment::Options;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_netio::{AdapterServer, Capture, End, Error, LiveFabric, Loop, Tap, Transport};
use tlplab_nettlp::Adapter;

/// A simulated machine behind an adapter.
#[pyclass(frozen)]
pub(crate) struct LiveService {
    machine: Mutex<Machine>,
    capture: Option<Capture>,
}

struct Machine {
    server: AdapterServer<LiveFabric>,
    /// TAP interfaces of the drivers of these devices.
    taps: Vec<(String, Tap)>,
}

#[pymethods]
impl LiveService {
    #[new]
    #[pyo3(signature = (experiment, served, local, *, taps = Vec::new(), overrides = Vec::new(), load = None, seed = None,
        transport = "udp", interface = None, spin = false, pcap = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        experiment: &str,
        served: Vec<(String, u32)>,
        local: u32,
        taps: Vec<(String, String)>,
        overrides: Vec<String>,
        load: Option<String>,
        seed: Option<u64>,
        transport: &str,
        interface: Option<String>,
        spin: bool,
        pcap: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (names, peers): (Vec<String>, Vec<u32>) = served.into_iter().unzip();
        let peers: Vec<Ipv4Addr> = peers.into_iter().map(Ipv4Addr::from).collect();
        let options = Options { set: overrides, load, seed, ..Options::default() };
        let open = |(device, interface): (String, String)| Ok((device, Tap::open(&interface)?));
        let taps: Vec<(String, Tap)> = taps
            .into_iter()
            .map(open)
            .collect::<Result<_, Error>>()
            .map_err(|failure| error::run_error(py, &failure.to_string()))?;
        let frames = taps.iter().map(|(device, tap)| (device.clone(), tap.frames().clone()));
        let live = machine(py, experiment, &options, &names, frames.collect())?;
        let config = live.adapter_config(local.into(), &peers);
        let sockets = Sockets { transport, interface, spin, pcap };
        let (server, capture) = adapter::open(py, config, live, sockets)?;
        for (number, (_, tap)) in (0..).zip(&taps) {
            let watched = server.watch(tap, number);
            watched.map_err(|failure| error::run_error(py, &failure.to_string()))?;
        }
        Ok(Self { machine: Mutex::new(Machine { server, taps }), capture })
    }

    /// Serves for so many seconds, or until the machine has ended; says why it has.
    fn serve(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<String>> {
        let wall = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let ended = self.with(py, |Machine { server, taps }| {
            server.serve_until(wall, |driven| carry(driven, taps)).map_err(|failure| failure.to_string())?;
            match server.adapter().host().ended() {
                None => Ok(None),
                Some(end @ End::Done(_)) => Ok(Some(end.to_string())),
                Some(end) => Err(end.to_string()),
            }
        });
        ended.map_err(|failure: String| error::run_error(py, &failure))
    }

    /// The devices that nobody has heard of yet.
    fn absent(&self, py: Python<'_>) -> Vec<String> {
        self.with(py, |machine| machine.server.adapter().host().absent().map(str::to_owned).collect())
    }

    /// The lag of the machine behind the wall clock in nanoseconds, the greatest lag, and the number of times that it was more than a millisecond.
    fn lag(&self, py: Python<'_>) -> (f64, f64, u64) {
        let lag = self.with(py, |machine| machine.server.adapter().host().lag());
        let ns = |duration: tlplab_units::Duration| duration.as_fs() as f64 / 1e6;
        (ns(lag.now), ns(lag.most), lag.times)
    }

    /// The served devices and the counters, as JSON.
    fn report(&self, py: Python<'_>) -> String {
        self.with(py, |machine| adapter::report(&machine.server))
    }

    /// Frames lost at each TAP interface: the device, the interface, and their number.
    fn lost_frames(&self, py: Python<'_>) -> Vec<(String, String, u64)> {
        let lost = |(device, tap): &(String, Tap)| (device.clone(), tap.name().to_owned(), tap.lost_frames());
        self.with(py, |machine| machine.taps.iter().map(lost).collect())
    }

    /// Ends the capture, if there is one; the result document as JSON. `stopped_by` is `interrupted` or `time-limit`.
    fn finish(&self, py: Python<'_>, stopped_by: Option<&str>) -> PyResult<String> {
        let stopped_by = stopped_by.map(reason_of).transpose()?;
        let finished = py.detach(|| self.capture.as_ref().map_or(Ok(()), Capture::finish));
        finished.map_err(|failure| error::file(&failure))?;
        let document = self.with(py, |machine| {
            let run = machine.server.adapter_mut().host_mut().run();
            if let Some(reason) = stopped_by {
                run.stop(reason);
            }
            run.document()
        });
        Ok(serde_json::to_string(&document).expect("a document has only names for keys"))
    }
}

impl LiveService {
    /// Calls `work` with the machine. No thread waits for it with Python's lock, which its drivers need.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Machine) -> R + Send) -> R {
        py.detach(|| work(&mut self.machine.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Carries frames between TAP interfaces and drivers; true once the machine has ended.
fn carry<T: Transport>(
    driven: &mut Loop<Adapter<LiveFabric>, T>,
    taps: &mut [(String, Tap)],
) -> Result<bool, Error> {
    for (device, tap) in taps {
        if tap.pump()? {
            let now = driven.now();
            driven.engine.host_mut().frames_came(now, device);
        }
    }
    Ok(driven.engine.host().ended().is_some())
}

/// The machine of an experiment without the devices that are served.
fn machine(
    py: Python<'_>,
    path: &str,
    options: &Options,
    served: &[String],
    frames: BTreeMap<String, Frames>,
) -> PyResult<LiveFabric> {
    let experiment = outline::parse(py, path, None, options)?;
    let mut inputs = Inputs { traces: read_traces(py, &experiment)?, frames, ..Inputs::default() };
    inputs.devices = library::load(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
    inputs.cores = rtl::load(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
    inputs.media = medium::open_all(&experiment).map_err(|mistake| error::experiment(py, &[mistake]))?;
    let parties = load_objects(py, &experiment, None)?;
    let identities = parties.iter().filter_map(|(name, party)| Some((name.clone(), party.identity()?)));
    inputs.outside = identities.collect::<BTreeMap<_, _>>();
    inputs.served = served.iter().cloned().collect();
    let mut run = py.detach(|| Run::new(experiment, inputs)).map_err(|e| error::build(py, path, &e))?;
    let mut residents = PythonResidents::place(py, &mut run, parties);
    let elsewhere: Vec<_> = served.iter().filter_map(|name| run.fabric().node(name)).collect();
    residents.devices.retain(|(node, _)| !elsewhere.contains(node));
    LiveFabric::new(run, served, Box::new(residents)).map_err(|why| PyValueError::new_err(why.to_string()))
}
