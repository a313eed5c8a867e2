//! A Linux guest as the software of a run's host.

use crate::error;
use crate::residents::{self, PythonResidents};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tlplab_cosim::uml::{GuestConfig, GuestEnd, GuestError, Progress, Session, SharedMemory};
use tlplab_device::HostMemory;
use tlplab_experiment::Experiment;
use tlplab_experiment::result::GuestEnding;
use tlplab_experiment::run::Run;
use tlplab_units::{Duration, Time};

/// Milliseconds without a message after which Python looks for Ctrl-C.
pub(crate) const PATIENCE: u16 = 100;
/// The file system that Python has put into the guest's folder.
const INITRAMFS: &str = "initramfs";
const FS_PER_NS: u64 = 1_000_000;

/// The end of a guest, by its name in documents and for people, and the exit status of its script.
pub(crate) type End = (&'static str, String, Option<u8>);

/// The guest's output, the simulated time, and the end of the guest, if it has ended.
pub(crate) type Heard = (Vec<(u64, Vec<u8>)>, u64, Option<End>);

/// The end of a guest: SHA-256 of its kernel, of its initial file system and of its console; how it ended, by its name in documents and for people;
/// its script's status.
pub(crate) type Ended = (String, String, String, String, String, Option<u8>);

/// A guest that is about to start.
pub(crate) struct Start {
    config: GuestConfig,
    folder: PathBuf,
    memory: SharedMemory,
}

impl Start {
    /// The parameters from Python, and from the experiment.
    pub(crate) fn read(given: &Bound<'_, PyDict>, experiment: &Experiment) -> PyResult<Self> {
        let path = |key: &str| -> PyResult<Option<PathBuf>> {
            given.get_item(key)?.map(|value| value.extract()).transpose()
        };
        let needed = |key: &str| path(key)?.ok_or_else(|| error::run_error(given.py(), &format!("no {key}")));
        let spec = experiment.guest.clone().unwrap_or_default();
        let ns = |duration: Duration| duration.as_fs().div_ceil(FS_PER_NS);
        let arguments = given.get_item("arguments")?.map(|value| value.extract()).transpose()?;
        let interactive = given.get_item("interactive")?.map(|value| value.extract()).transpose()?;
        let config = GuestConfig {
            kernel: needed("kernel")?,
            initramfs: INITRAMFS.into(),
            seed: experiment.fabric.seed,
            memory: spec.memory,
            syscall_ns: ns(spec.syscall),
            interrupt_ns: ns(spec.interrupt),
            share: path("share")?,
            arguments: arguments.unwrap_or_default(),
            interactive: interactive.unwrap_or_default(),
        };
        Ok(Self { config, folder: needed("folder")?, memory: SharedMemory::new() })
    }

    /// Its memory, as the run needs it.
    pub(crate) fn memory(&self) -> Box<dyn HostMemory + Send> {
        Box::new(self.memory.clone())
    }

    /// Starts it.
    pub(crate) fn start(self) -> PyResult<Session> {
        Session::start(&self.config, self.folder, self.memory)
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// Lets a guest and its machine go on for a while.
pub(crate) fn advance(
    py: Python<'_>,
    guest: &mut Session,
    run: &mut Run,
    residents: &mut PythonResidents,
) -> PyResult<Heard> {
    let progress = py.detach(|| guest.go_on(run, residents, PATIENCE, Time::NEVER));
    let console = printed(guest);
    let progress = progress.map_err(|failure| into_python(py, failure))?;
    let end = if let Progress::Ended(end) = progress { Some(in_words(end)) } else { None };
    Ok((console, run.fabric().now().as_fs(), end))
}

/// The guest's output since the last call.
pub(crate) fn printed(guest: &mut Session) -> Vec<(u64, Vec<u8>)> {
    guest.take_console().into_iter().map(|(time, bytes)| (time.as_fs(), bytes)).collect()
}

/// The reason that a guest cannot go on, as an exception.
pub(crate) fn into_python(py: Python<'_>, failure: GuestError) -> PyErr {
    match failure {
        GuestError::Resident(failure) => residents::into_python(failure),
        GuestError::Run(failure) => error::run(py, &failure),
        other => error::run_error(py, &other.to_string()),
    }
}

/// The end of a guest.
pub(crate) fn in_words(end: GuestEnd) -> End {
    let (ending, text, status) = match end {
        GuestEnd::PoweredOff(status) => (GuestEnding::PoweredOff, "powered off".to_owned(), status),
        GuestEnd::Died(how) => (GuestEnding::Died, format!("died: {how}"), None),
        GuestEnd::RunOver => (GuestEnding::LostPower, "lost its power: the run has ended".to_owned(), None),
    };
    (ending.token(), text, status)
}
