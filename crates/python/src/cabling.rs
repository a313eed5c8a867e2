//! Several guests, each with its machine, on Ethernet cables.

use crate::error;
use crate::guest::{self, Heard, PATIENCE};
use crate::simulation::{Simulation, State};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use tlplab_cosim::uml::cabling::{self, Cable, Carried, Party, Plug};
use tlplab_device::nic::Signal;
use tlplab_trace::output::Output;
use tlplab_trace::pcapng::{FrameWriter, RawFrame};
use tlplab_units::Duration;

/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
const NANOSECONDS: u8 = 9;

/// A cable as Python names it: its name, machine and NIC at each end, and the delay in femtoseconds.
type Named = (String, [(usize, String); 2], u64);
/// A machine as Python names it, and its run.
type Machine = (String, Py<Simulation>);

/// Guests on cables.
#[pyclass(frozen)]
pub(crate) struct Cabling {
    simulations: Vec<Py<Simulation>>,
    state: Mutex<CablingState>,
}

struct CablingState {
    cabling: cabling::Cabling,
    /// The interface that stands for each end of each cable in a capture.
    interfaces: Vec<[String; 2]>,
    capture: Option<FrameWriter<Output>>,
    frames: u64,
}

#[pymethods]
impl Cabling {
    #[new]
    #[pyo3(signature = (machines, cables, *, pcap = None))]
    fn new(
        py: Python<'_>,
        machines: Vec<Machine>,
        cables: Vec<Named>,
        pcap: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (names, simulations): (Vec<_>, Vec<_>) = machines.into_iter().unzip();
        let mut joined = Vec::new();
        let mut interfaces = Vec::new();
        for (name, ends, delay) in cables {
            let plugs = ends.each_ref().map(|(party, nic)| plug(py, &simulations, *party, nic));
            let [one, other] = plugs;
            joined.push(Cable { plugs: [one?, other?], delay: Duration::from_fs(delay) });
            interfaces.push(ends.map(|(party, nic)| format!("{name} from {}.{nic}", names[party])));
        }
        let capture = pcap.map(|path| Output::create(path).map(FrameWriter::new));
        let state = CablingState {
            cabling: cabling::Cabling::new(simulations.len(), joined),
            interfaces,
            capture: capture.transpose().map_err(|failure| error::file(&failure))?,
            frames: 0,
        };
        Ok(Self { simulations, state: Mutex::new(state) })
    }

    /// Lets all go on for a while. Of each guest, as `Simulation.advance_guest` tells it.
    fn advance(&self, py: Python<'_>) -> PyResult<Vec<Heard>> {
        let mut own = self.state.try_lock().map_err(|_| PyValueError::new_err("the guests are running"))?;
        let own = &mut *own;
        let mut states = self.states()?;
        let result = {
            let mut parties = Vec::new();
            for state in &mut states {
                let State { run, residents, guest, .. } = &mut **state;
                let session = guest.as_mut().ok_or_else(|| PyValueError::new_err("this run has no guest"))?;
                parties.push(Party { session, run, residents });
            }
            py.detach(|| own.cabling.go_on(&mut parties, PATIENCE))
        };
        own.record();
        if let Err((_, failure)) = result {
            return Err(guest::into_python(py, failure));
        }
        let ends = own.cabling.ends().iter().cloned();
        let heard = states.iter_mut().zip(ends).map(|(state, end)| {
            let console = state.guest.as_mut().map(guest::printed).unwrap_or_default();
            (console, state.run.fabric().now().as_fs(), end.map(guest::in_words))
        });
        Ok(heard.collect())
    }

    /// Closes the capture of the cables; the frames that went over them.
    fn finish(&self) -> PyResult<u64> {
        let mut own = self.state.try_lock().map_err(|_| PyValueError::new_err("the guests are running"))?;
        own.record();
        if let Some(writer) = own.capture.take() {
            writer.finish()?.commit().map_err(|failure| error::file(&failure))?;
        }
        Ok(own.frames)
    }
}

impl Cabling {
    fn states(&self) -> PyResult<Vec<MutexGuard<'_, State>>> {
        self.simulations.iter().map(|simulation| simulation.get().state()).collect()
    }
}

impl CablingState {
    /// Writes the frames that have left.
    fn record(&mut self) {
        for Carried { cable, from, at, signal } in self.cabling.take_carried() {
            let Signal::Frame(frame) = signal else { continue };
            self.frames += 1;
            let (Some(writer), Some(data)) = (&mut self.capture, frame.bytes()) else { continue };
            writer.frame(&RawFrame {
                link_type: ETHERNET,
                interface: Some(&self.interfaces[cable][from]),
                fs: i128::from(at.as_fs()),
                digits: NANOSECONDS,
                data,
                length: data.len(),
                comment: None,
            });
        }
    }
}

fn plug(py: Python<'_>, simulations: &[Py<Simulation>], party: usize, nic: &str) -> PyResult<Plug> {
    let absent = || PyValueError::new_err(format!("simulation {party} has no open end \"{nic}\""));
    let simulation = simulations.get(party).ok_or_else(absent)?;
    let mut state = simulation.bind(py).get().state()?;
    let end = state.open_ends.get(nic).cloned().ok_or_else(absent)?;
    let node = state.run.fabric().node(nic).ok_or_else(absent)?;
    Ok(Plug { party, node, end })
}
