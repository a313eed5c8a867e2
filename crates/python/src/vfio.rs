//! Devices in a virtual machine, by vfio-user, as Python starts, watches and ends them.

use crate::device::{Carrier, PythonDevice};
use crate::dma::failed;
use crate::{error, identity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration as Wall, Instant};
use tlplab_device::nic::ethernet::Speed;
use tlplab_device::simple_nic::FRAMES;
use tlplab_device::{
    Action, Cable, CablePort, Device, Event, InterruptMode, NamespaceConfig, Nvme, NvmeConfig, OpId,
    SimpleNic, SimpleNicConfig, SparseMedium, Tlpdma,
};
use tlplab_device_library::LibraryDevice;
use tlplab_netio::{Tap, VfioUser};
use tlplab_units::{Bdf, Time};

/// The interval at which waiting threads look up.
const GLANCE: Wall = Wall::from_millis(50);
/// The number of a TAP interface where the socket waits; its own are small.
const TAP: u64 = 1 << 62;

impl Carrier for VfioUser {
    fn interrupt_mode(&mut self) -> InterruptMode {
        self.port.interrupt_mode()
    }
    fn next_op(&mut self) -> OpId {
        self.port.next_op()
    }
    fn act(&mut self, now: Time, action: Action) {
        VfioUser::act(self, now, action);
    }
}

/// A device on a socket, until it is ended.
#[pyclass(frozen)]
pub(crate) struct VfioServer(Mutex<Served>);

struct Served {
    /// None once it has ended.
    socket: Option<VfioUser>,
    device: Kind,
    /// The port of a NIC.
    tap: Option<Tap>,
    counters: Vec<(&'static str, u64)>,
}

enum Kind {
    Python(PythonDevice),
    Rust(Box<dyn Device>),
}

#[pymethods]
impl VfioServer {
    /// Serves a `tlplab.device.DeviceParty`.
    #[staticmethod]
    fn python(py: Python<'_>, path: PathBuf, party: Py<PyAny>) -> PyResult<Self> {
        let identity = identity::of(party.bind(py))?;
        let socket = VfioUser::listen(&path, &identity.layout()).map_err(|e| failed(py, &e))?;
        Ok(Self::new(socket, Kind::Python(PythonDevice::new(party))))
    }

    /// Serves a device from a library.
    #[staticmethod]
    fn library(
        py: Python<'_>,
        path: PathBuf,
        library: PathBuf,
        parameters: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let device = LibraryDevice::open(&library, &parameters)
            .map_err(|why| PyValueError::new_err(format!("{}: {why}", library.display())))?;
        let socket = VfioUser::listen(&path, &device.layout()).map_err(|e| failed(py, &e))?;
        Ok(Self::new(socket, Kind::Rust(Box::new(device))))
    }

    /// Serves an NVMe drive of so many bytes, whose data are in memory.
    #[staticmethod]
    fn nvme(py: Python<'_>, path: PathBuf, bytes: u64) -> PyResult<Self> {
        let config =
            NvmeConfig { namespaces: vec![NamespaceConfig { bytes, block: 512 }], ..NvmeConfig::default() };
        config.check().map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        let device = Nvme::new(config, vec![Box::new(SparseMedium::new())]);
        let socket = VfioUser::listen(&path, &device.layout()).map_err(|e| failed(py, &e))?;
        Ok(Self::new(socket, Kind::Rust(Box::new(device))))
    }

    /// Serves the DMA core with its rings, as transactions, with so many bytes of memory.
    #[staticmethod]
    fn tlpdma(py: Python<'_>, path: PathBuf, bytes: u64) -> PyResult<Self> {
        const MIB: u64 = 1 << 20;
        if bytes == 0 || !bytes.is_multiple_of(MIB) || bytes > 4096 * MIB {
            let message = format!("a memory of {bytes} B is not supported; expected whole MiB, up to 4 GiB");
            return Err(PyValueError::new_err(message));
        }
        let device = Tlpdma::new(bytes);
        let socket = VfioUser::listen(&path, &device.layout()).map_err(|e| failed(py, &e))?;
        Ok(Self::new(socket, Kind::Rust(Box::new(device))))
    }

    /// Serves a simple NIC for packets of up to `mtu` bytes, whose port is the TAP interface `tap`, or else a loop-back plug.
    #[staticmethod]
    fn simple_nic(py: Python<'_>, path: PathBuf, mtu: u16, tap: Option<&str>) -> PyResult<Self> {
        let config = SimpleNicConfig { mtu, ..SimpleNicConfig::default() };
        let Some(name) = tap else {
            let nic = SimpleNic::new(config, CablePort::new(Cable::LoopBack, Speed::TEN_GIGABIT));
            let socket = VfioUser::listen(&path, &nic.layout()).map_err(|e| failed(py, &e))?;
            return Ok(Self::new(socket, Kind::Rust(Box::new(nic))));
        };
        let tap = Tap::open(name).map_err(|e| failed(py, &e))?;
        let nic = SimpleNic::new(config, tap.frames().clone());
        let socket = VfioUser::listen(&path, &nic.layout()).map_err(|e| failed(py, &e))?;
        socket.poller().watch(&tap, TAP).map_err(|e| failed(py, &e))?;
        let served = Self::new(socket, Kind::Rust(Box::new(nic)));
        served.served()?.tap = Some(tap);
        Ok(served)
    }

    /// Writes down in a capture what passes from now on, of the function `id`.
    fn capture(&self, py: Python<'_>, path: PathBuf, id: u16, name: &str) -> PyResult<()> {
        let mut served = self.served()?;
        let Some(socket) = &mut served.socket else { return Ok(()) };
        socket.capture_tlps(&path, Bdf(id), name).map_err(|e| failed(py, &e))
    }

    /// Goes on for so long, or until it cannot.
    fn run(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wall = Wall::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let until = Instant::now() + wall;
        loop {
            py.check_signals()?;
            let mut served = self.served()?;
            let Served { socket: Some(socket), device, tap, .. } = &mut *served else { return Ok(()) };
            tell(py, socket, device, tap.as_mut())?;
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            py.detach(|| socket.wait_turn(until.min(now + GLANCE))).map_err(|e| failed(py, &e))?;
        }
    }

    /// True while a virtual machine has the device.
    #[getter]
    fn connected(&self) -> PyResult<bool> {
        Ok(self.served()?.socket.as_ref().is_some_and(VfioUser::is_connected))
    }

    /// The client's mistake for which the last connection was ended.
    #[getter]
    fn mistake(&self) -> PyResult<Option<String>> {
        Ok(self.served()?.socket.as_ref().and_then(|socket| socket.mistake().map(str::to_owned)))
    }

    /// Name and number of each counter.
    fn counters(&self) -> PyResult<Vec<(&'static str, u64)>> {
        let served = self.served()?;
        Ok(served.socket.as_ref().map_or_else(|| served.counters.clone(), |socket| served.rows(socket)))
    }

    /// Ends it, and its capture; its counters stay.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        // A thread that still runs it is about to stop.
        let mut served = loop {
            match self.0.try_lock() {
                Ok(served) => break served,
                Err(TryLockError::Poisoned(served)) => break served.into_inner(),
                Err(TryLockError::WouldBlock) => py.detach(|| std::thread::sleep(GLANCE)),
            }
        };
        let Some(mut socket) = served.socket.take() else { return Ok(()) };
        served.counters = served.rows(&socket);
        socket.finish_capture().map_err(|e| failed(py, &e))
    }
}

impl Served {
    /// Name and number of each counter.
    fn rows(&self, socket: &VfioUser) -> Vec<(&'static str, u64)> {
        let frames = self.tap.as_ref().map(|tap| ("lost_frames", tap.lost_frames()));
        rows(socket).into_iter().chain(frames).collect()
    }
}

impl VfioServer {
    fn new(socket: VfioUser, device: Kind) -> Self {
        Self(Mutex::new(Served { socket: Some(socket), device, tap: None, counters: Vec::new() }))
    }

    /// One thread runs it, and nobody waits for that.
    fn served(&self) -> PyResult<MutexGuard<'_, Served>> {
        self.0.try_lock().map_err(|_| PyValueError::new_err("the device runs in another thread"))
    }
}

/// The next event of a device: from its client, or from the interface behind it.
fn next_event(py: Python<'_>, socket: &mut VfioUser, tap: Option<&mut Tap>) -> PyResult<Option<Event>> {
    if let Some(event) = socket.take_event() {
        return Ok(Some(event));
    }
    let Some(tap) = tap else { return Ok(None) };
    let came = tap.pump().map_err(|e| failed(py, &e))?;
    Ok(came.then_some(Event::Timer { id: FRAMES }))
}

/// Tells the device what it has not heard of, and sends what it does.
fn tell(py: Python<'_>, socket: &mut VfioUser, device: &mut Kind, mut tap: Option<&mut Tap>) -> PyResult<()> {
    let now = socket.now();
    while let Some(event) = next_event(py, socket, tap.as_deref_mut())? {
        match device {
            Kind::Python(device) => device.tell(py, socket, now, event).map_err(|e| error::party(py, e))?,
            Kind::Rust(device) => socket.tell(now, &mut **device, event),
        }
        socket.transmit();
    }
    match socket.port.fault() {
        Some(why) => Err(error::run_error(py, why)),
        None => Ok(()),
    }
}

pub(crate) fn rows(socket: &VfioUser) -> Vec<(&'static str, u64)> {
    let counters = socket.port.counters();
    vec![
        ("clients", socket.clients()),
        ("refused_clients", socket.refused_clients()),
        ("bytes_read", counters.bytes_read),
        ("bytes_written", counters.bytes_written),
        ("bytes_by_messages", counters.bytes_by_messages),
        ("refused_transfers", counters.refused),
        ("interrupts", counters.interrupts),
        ("dropped_interrupts", counters.dropped_interrupts),
        ("late_reads", socket.port.late_reads()),
    ]
}
