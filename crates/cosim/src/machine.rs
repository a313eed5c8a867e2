//! A simulated machine for drivers that are straight lines: each call returns when, in simulated time, it is over.
//!
//! The machine is an experiment. One of its devices is driven by the caller, who reads and writes its BARs, uses host memory as a driver
//! would, and waits for interrupts; all else of the experiment goes on meanwhile. Simulated time passes only within calls.

use std::collections::VecDeque;
use std::path::Path;
use tlplab_device::{DeviceInfo, DmaError, HostAction, HostEvent, HostMemory, OpId, OutOfMemory, Payload};
use tlplab_experiment::run::{Inputs, Run, RunError};
use tlplab_experiment::{Experiment, Options};
use tlplab_fabric::Driven;
use tlplab_fabric::config::Fidelity;
use tlplab_units::{Duration, Time};

/// Bytes of a page of host memory.
pub const PAGE: u64 = 4096;
/// Simulated time between two looks whether anything is left to happen.
const LOOK: Duration = Duration::from_us(100);

/// The reason that a machine cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The experiment cannot be read.
    #[error(transparent)]
    Experiment(#[from] tlplab_experiment::Error),
    /// It cannot begin or go on.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It has no such device.
    #[error("{file}: unknown device \"{device}\"; the devices are {}", if .has.is_empty() { "none" } else { .has })]
    NoDevice {
        /// The experiment.
        file: String,
        /// The requested device.
        device: String,
        /// The devices that it has.
        has: String,
    },
    /// Without data nothing can be read back.
    #[error("{0}: fidelity = \"length-only\" carries no data; a driver needs fidelity = \"payload\"")]
    LengthOnly(String),
    /// A driver asked for what the device does not have.
    #[error(
        "the bytes {offset:#x} to {:#x} are outside BAR {bar}, which has {size:#x}",
        offset.saturating_add(*bytes).saturating_sub(1)
    )]
    OutsideBar {
        /// The BAR.
        bar: u8,
        /// First byte.
        offset: u64,
        /// Their number.
        bytes: u64,
        /// Bytes that it has; 0 if there is no such BAR.
        size: u64,
    },
    /// An access failed on its way.
    #[error(transparent)]
    Access(#[from] DmaError),
    /// An operation can never end.
    #[error("the driver waits forever: no event is left at {0}")]
    Stuck(Time),
}

/// A simulated machine; see the [module](self).
pub struct Machine {
    run: Run,
    program: usize,
    device: usize,
    info: DeviceInfo,
    /// Vectors that were raised and not waited for, each once, in the order in which they came.
    raised: VecDeque<u16>,
    interrupts: u64,
}

/// An access of the driver that is over.
type Over = Option<Result<Payload, DmaError>>;

impl Machine {
    /// The machine of the experiment at `path`, whose `device` the caller drives in place of its own driver; host loads on the device do not
    /// run, and the machine has no end. Enumeration is over when this returns.
    ///
    /// # Errors
    /// [`MachineError`]
    pub fn open(path: &Path, device: &str, options: &Options) -> Result<Self, MachineError> {
        let file = path.display().to_string();
        let read = |wanted: &str| std::fs::read_to_string(wanted).map_err(|error| error.to_string());
        let options = Options { driven: Some(device.into()), ..options.clone() };
        let mut experiment = Experiment::parse_with(&read, &file, &options)?;
        if !experiment.devices.iter().any(|spec| spec.name == device) {
            let has = experiment.devices.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>();
            return Err(MachineError::NoDevice { file, device: device.into(), has: has.join(", ") });
        }
        if experiment.fabric.fidelity == Fidelity::LengthOnly {
            return Err(MachineError::LengthOnly(file));
        }
        experiment.stop = tlplab_experiment::stop::Stop::default();
        let cores = crate::rtl::load(&experiment)?;
        let run = Run::new(experiment, Inputs { cores, no_ladder: true, ..Inputs::default() })?;
        let program = run.drivers().iter().position(|driven| driven == device);
        let program = program.expect("a driven device has a program");
        let mut machine =
            Self { run, program, device: 0, info: unknown(device), raised: VecDeque::new(), interrupts: 0 };
        machine.go_on(|event| matches!(event, HostEvent::Start).then_some(()))?;
        let mut devices = machine.run.fabric().devices().iter().enumerate();
        let found = devices.find(|(_, info)| info.name == device).map(|(index, info)| (index, info.clone()));
        (machine.device, machine.info) = found.unwrap_or_else(|| (usize::MAX, unknown(device)));
        Ok(machine)
    }

    /// The device as enumeration left it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Simulated time.
    pub fn now(&mut self) -> Time {
        self.run.now()
    }

    /// Interrupts of the device so far.
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Host memory. Accesses here take no simulated time.
    pub fn memory(&mut self) -> &mut (dyn HostMemory + Send) {
        self.run.host_memory()
    }

    /// `count` pages of memory of which no two that follow each other are neighbours, as a program's memory is after a while.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn alloc_pages(&mut self, count: u64) -> Result<impl Iterator<Item = u64> + use<>, OutOfMemory> {
        let bytes = count.checked_mul(PAGE).ok_or(OutOfMemory { bytes: u64::MAX })?;
        let first = self.memory().alloc(bytes, PAGE)?;
        Ok((0..count).rev().map(move |page| first + page * PAGE))
    }

    /// Reads registers or memory of the device.
    ///
    /// # Errors
    /// [`MachineError`]
    pub fn read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), MachineError> {
        let (bytes, stream) = (out.len() as u64, 0);
        let address = self.place(bar, offset, bytes)?;
        let over = self.access(|op| HostAction::MmioRead { op, stream, address, bytes, carry: true })?;
        let data = over.expect("a read gives data or an error")?;
        out.copy_from_slice(data.bytes().expect("it was to be carried"));
        Ok(())
    }

    /// Writes registers or memory of the device; over when the processor is rid of it.
    ///
    /// # Errors
    /// [`MachineError`]
    pub fn write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), MachineError> {
        let address = self.place(bar, offset, data.len() as u64)?;
        let data = Payload::from(data.to_vec());
        self.access(|op| HostAction::MmioWrite { op, stream: 0, address, data }).map(drop)
    }

    /// Waits until the device raises an interrupt, or has since the last wait, but no longer than `patience`. Its vector; `None`: there
    /// was none. A legacy interrupt is vector 0, and comes again every two microseconds until the device has lowered it.
    ///
    /// # Errors
    /// [`MachineError`]
    pub fn wait(&mut self, patience: Duration) -> Result<Option<u16>, MachineError> {
        let until = Time::from_fs(self.now().as_fs().saturating_add(patience.as_fs()));
        while self.raised.is_empty() {
            self.run.advance_until(until)?;
            let (told, now) = (self.hear(), self.now());
            if told.is_empty() && now >= until {
                break;
            }
        }
        Ok(self.raised.pop_front())
    }

    /// The address of a range of a BAR.
    fn place(&self, bar: u8, offset: u64, bytes: u64) -> Result<u64, MachineError> {
        let (base, size) = self.info.bars.get(usize::from(bar)).copied().flatten().unwrap_or((0, 0));
        match offset.checked_add(bytes) {
            Some(end) if end <= size && bytes > 0 => Ok(base + offset),
            _ => Err(MachineError::OutsideBar { bar, offset, bytes, size }),
        }
    }

    fn access(&mut self, action: impl FnOnce(OpId) -> HostAction) -> Result<Over, MachineError> {
        let wanted = self.run.next_host_op(self.program);
        self.run.host_acts(self.program, action(wanted));
        self.go_on(|event| match event {
            HostEvent::MmioReadDone { op, result } if *op == wanted => Some(Some(result.clone())),
            HostEvent::MmioWriteAccepted { op } if *op == wanted => Some(None),
            _ => None,
        })
    }

    /// Goes on until the driver hears what it waits for.
    fn go_on<T>(&mut self, wanted: impl Fn(&HostEvent) -> Option<T>) -> Result<T, MachineError> {
        loop {
            if let Some(found) = self.hear().iter().find_map(&wanted) {
                return Ok(found);
            }
            let now = self.now();
            if self.run.next_event_until(Time::NEVER).is_none() && !self.run.progress().waits_for_outside {
                return Err(MachineError::Stuck(now));
            }
            self.run.advance_until(now + LOOK)?;
        }
    }

    /// The events of the driver; interrupts of its device are noted.
    fn hear(&mut self) -> Vec<HostEvent> {
        let told = self.run.take_told().programs;
        let own = told.into_iter().filter(|(_, program, _)| *program == self.program);
        let events: Vec<HostEvent> = own.map(|(_, _, event)| event).collect();
        for event in &events {
            if let HostEvent::Interrupt { device, vector } = event
                && *device == self.device
            {
                self.interrupts += 1;
                if !self.raised.contains(vector) {
                    self.raised.push_back(*vector);
                }
            }
        }
        events
    }
}

/// A device of which enumeration knows nothing.
fn unknown(name: &str) -> DeviceInfo {
    DeviceInfo {
        name: name.into(),
        id: tlplab_units::Bdf(0),
        ids: (0xFFFF, 0xFFFF),
        own_vendor: tlplab_cfgspace::VENDOR_ID,
        bars: [None; 6],
        interrupts: tlplab_cfgspace::InterruptMode::Disabled,
    }
}
