//! Linux in virtual time: a user-mode kernel whose PCI hierarchy, memory and clock are a fabric's.
//!
//! ```text
//! guest's process ─PCI accesses, bells─▶ tlplab_uml::Guest ─Machine─▶ FabricMachine ─HostAction─▶ Run, Fabric
//!        ▲  ▲     ◀──interrupts──────────        │                        ◀────────HostEvent──────
//!        │  └───── leave to run ────────────── calendar: simulated time
//!        └──────── its memory ◀── SharedMemory ◀─── DMA of devices ───────────────────────────────
//! ```
//!
//! A [`Session`] starts the kernel (`process`), carries the messages of its two sockets (`sockets`) to the protocol engine, and lets the
//! [`Run`](tlplab_experiment::run::Run) go on as far as the guest's clock. While the guest runs, simulated time stands still; so the order of all that happens, and
//! what comes out, is the same in every run.

pub mod cabling;
mod machine;
#[cfg(test)]
mod machine_tests;
mod memory;
mod process;
mod processor;
mod sockets;

use machine::{FabricMachine, Processor, Stop};
pub use memory::SharedMemory;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use process::GuestProcess;
use sockets::{drain, is_end, read_device_message, read_exactly};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::{Run, RunError};
use tlplab_uml::vhost::Header;
use tlplab_uml::{Failure, Guest, Machine as _, Output, ProtocolError};
use tlplab_units::{Duration, Time};

/// Messages between two returns of [`Session::go_on`].
const MESSAGES: u32 = 4096;
/// Of an interactive guest: it sleeps for so long at once at most, and does not sleep for less.
const PACE: Duration = Duration::from_ms(20);
const SHORTEST_PAUSE: Duration = Duration::from_ms(1);
/// The message of a program in the guest to all with its exit status: these bits, and the status below them.
const STATUS: u64 = 0x746C_7000;

/// The parameters of a guest.
#[derive(Clone, Debug)]
pub struct GuestConfig {
    /// The user-mode kernel.
    pub kernel: PathBuf,
    /// The initramfs that it boots, in the folder that it is started in.
    pub initramfs: String,
    /// Seeds its random numbers.
    pub seed: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// The time of a system call, in nanoseconds.
    pub syscall_ns: u64,
    /// The time of an interrupt, in nanoseconds.
    pub interrupt_ns: u64,
    /// The folder that guest and host share.
    pub share: Option<PathBuf>,
    /// Further words of the kernel's command line.
    pub arguments: Vec<String>,
    /// The guest's console is our terminal.
    pub interactive: bool,
}

/// The reason that a guest cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// It could not be started.
    #[error("the guest cannot be started: {what}: {source}")]
    Start {
        /// The failed action.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// It ended before it connected.
    #[error(
        "the guest's kernel ended before it asked for its devices: {0}; expected a user-mode kernel with linux/patches"
    )]
    Stillborn(String),
    /// It does not keep to its protocols.
    #[error("unexpected message from the guest's kernel: {0}")]
    Protocol(#[from] ProtocolError),
    /// A socket or pipe failed.
    #[error("the connection to the guest failed: {0}")]
    Connection(#[from] io::Error),
    /// Its memory cannot be shared.
    #[error("the guest's memory cannot be mapped: {0}")]
    Memory(io::Error),
    /// A device was told an address that the guest does not share.
    #[error(
        "a device accessed {bytes} B at {address:#x}, which belong to the kernel's own code and data; a driver must use addresses from the DMA API"
    )]
    Unshared {
        /// The address.
        address: u64,
        /// Length of the access.
        bytes: usize,
    },
    /// It sleeps for longer than simulated time lasts.
    #[error("the guest sleeps beyond the end of simulated time, which is 5.1 hours")]
    EndOfTime,
    /// It sleeps for ever.
    #[error("at {0} the guest sleeps forever: no timer of its kernel is set, and no device has work left")]
    Asleep(Time),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A device of the run failed.
    #[error("{0}")]
    Resident(ResidentFailure),
    /// An access of the guest can never end.
    #[error("an access by the guest never completes: no event is left at {0}")]
    Stuck(Time),
}

/// The end of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestEnd {
    /// Its kernel has powered off; with the status that its script told, if it told one.
    PoweredOff(Option<u8>),
    /// Its kernel ended otherwise: a panic, a signal.
    Died(String),
    /// The run was over first, and took the guest's power.
    RunOver,
}

/// The progress of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on.
    UnderWay,
    /// It waits, and time may pass no further.
    AtLimit,
    /// It has ended.
    Ended(GuestEnd),
}

/// A guest under way.
pub struct Session {
    process: GuestProcess,
    guest: Guest,
    memory: SharedMemory,
    processor: Processor,
    calendar: Option<UnixStream>,
    device: Option<UnixStream>,
    back: Option<UnixStream>,
    /// The descriptors of the last message of the device.
    descriptors: Vec<OwnedFd>,
    console: Vec<(Time, Vec<u8>)>,
    status: Option<u8>,
    end: Option<GuestEnd>,
    /// The reason that it cannot go on, while the console has words from before.
    failure: Option<GuestError>,
    /// Its console is our terminal.
    interactive: bool,
    /// A key has just woken it.
    woken: bool,
}

/// The source to read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Calendar,
    Back,
    Device,
    Console,
    NewCalendar,
    NewDevice,
}

impl Session {
    /// Starts a guest in `folder`, which holds its initramfs and goes with it. `memory` is what the run has as
    /// [`Inputs::memory`](tlplab_experiment::run::Inputs::memory).
    ///
    /// # Errors
    /// [`GuestError::Start`]
    pub fn start(config: &GuestConfig, folder: PathBuf, memory: SharedMemory) -> Result<Self, GuestError> {
        Ok(Self {
            process: GuestProcess::start(config, folder)?,
            guest: Guest::new(),
            memory,
            processor: Processor::default(),
            calendar: None,
            device: None,
            back: None,
            descriptors: Vec::new(),
            console: Vec::new(),
            status: None,
            end: None,
            failure: None,
            interactive: config.interactive,
            woken: false,
        })
    }

    /// Goes on for a while: at most `patience` milliseconds without a message, or some thousand messages; simulated time passes no further than
    /// `limit`, which is a whole nanosecond.
    ///
    /// # Errors
    /// [`GuestError`]; where the guest printed something before it failed, the next call tells the error, so that its words can be taken first.
    pub fn go_on(
        &mut self,
        run: &mut Run,
        residents: &mut dyn Residents,
        patience: u16,
        limit: Time,
    ) -> Result<Progress, GuestError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let gone_on = self.exchange_many(run, residents, patience, limit);
        if let Err(failure) = gone_on {
            self.hear_console(run)?;
            if self.console.is_empty() {
                return Err(failure);
            }
            self.failure = Some(failure);
            return Ok(Progress::UnderWay);
        }
        gone_on
    }

    fn exchange_many(
        &mut self,
        run: &mut Run,
        residents: &mut dyn Residents,
        patience: u16,
        limit: Time,
    ) -> Result<Progress, GuestError> {
        for _ in 0..MESSAGES {
            if let Some(end) = &self.end {
                return Ok(Progress::Ended(end.clone()));
            }
            if let Err(stop) = self.exchange(run, residents, patience, limit) {
                match stop {
                    Pause::Limit => return Ok(Progress::AtLimit),
                    Pause::Quiet => break,
                    Pause::Gone => self.end = Some(self.last_words(run)?),
                    Pause::Over => {
                        self.hear_console(run)?;
                        self.process.end()?;
                        self.end = Some(GuestEnd::RunOver);
                    }
                    Pause::Failed(error) => return Err(error),
                }
            }
            if let Some((address, bytes)) = self.memory.missed() {
                return Err(GuestError::Unshared { address, bytes });
            }
        }
        Ok(self.end.clone().map_or(Progress::UnderWay, Progress::Ended))
    }

    /// The time of the next event in the guest or its machine; now, while it runs.
    fn next_event(&mut self, run: &mut Run, residents: &mut dyn Residents) -> Time {
        let mut machine = FabricMachine { run, residents, processor: &mut self.processor };
        let now = machine.now();
        if !self.guest.waits() || machine.processor.has_interrupts() {
            return now;
        }
        let wanted = if self.guest.is_accessing() { Time::NEVER } else { self.guest.wanted() };
        wanted.min(machine.next_event()).max(now)
    }

    /// The guest's output since the last call, with the simulated time of each piece.
    pub fn take_console(&mut self) -> Vec<(Time, Vec<u8>)> {
        std::mem::take(&mut self.console)
    }

    /// Lets time pass up to `limit`, while the guest waits, or hears one message.
    fn exchange(
        &mut self,
        run: &mut Run,
        residents: &mut dyn Residents,
        patience: u16,
        limit: Time,
    ) -> Result<(), Pause> {
        self.send()?;
        if self.guest.waits() {
            let paced = self.interactive && !self.guest.is_accessing();
            let limit = if paced { self.keep_pace(run)?.min(limit) } else { limit };
            if self.guest.waits() {
                let mut machine = FabricMachine { run, residents, processor: &mut self.processor };
                let advanced = self.guest.advance(&mut machine, &mut self.memory, limit);
                advanced.map_err(|failure| pause(failure, run))?;
                if self.guest.waits() && !paced && run.fabric().now() >= limit {
                    return Err(Pause::Limit);
                }
            }
            return Ok(());
        }
        let Some((source, printed)) = self.ready(patience)? else {
            return match self.process.ended()? {
                Some(status) if self.calendar.is_none() => {
                    Err(GuestError::Stillborn(process::in_words(status)).into())
                }
                Some(_) => Err(Pause::Gone),
                None => Err(Pause::Quiet),
            };
        };
        if printed {
            // Before it said this.
            self.hear_console(run)?;
        }
        self.hear(source, run, residents)
    }

    fn hear(&mut self, source: Source, run: &mut Run, residents: &mut dyn Residents) -> Result<(), Pause> {
        let accept = |listener: &UnixListener| listener.accept().map(|(stream, _)| Some(stream));
        match source {
            Source::NewCalendar => self.calendar = accept(&self.process.calendar)?,
            Source::NewDevice => self.device = accept(&self.process.device)?,
            Source::Console => {} // heard before all else
            Source::Calendar => {
                let message = self.calendar.as_mut().map(read_exactly).transpose()?.flatten();
                let message = message.ok_or(Pause::Gone)?;
                let mut machine = FabricMachine { run, residents, processor: &mut self.processor };
                self.guest.handle_calendar(&mut machine, &message)?;
            }
            Source::Back => {
                let answer = self.back.as_mut().map(read_exactly).transpose()?.flatten();
                self.guest.handle_call_answer(&answer.ok_or(Pause::Gone)?)?;
            }
            Source::Device => {
                let message = self.device.as_mut().map(read_device_message).transpose()?.flatten();
                let message = message.ok_or(Pause::Gone)?;
                let header = Header::parse(&message.header)?;
                self.descriptors = message.descriptors;
                let count = self.descriptors.len();
                self.guest.handle_device(header, &message.payload, count)?;
            }
        }
        Ok(())
    }

    /// A person at the console sleeps, too: simulated time goes no faster than theirs, and a key wakes the guest. How far it may go.
    fn keep_pace(&mut self, run: &mut Run) -> io::Result<Time> {
        let now = run.fabric().now();
        let pause = self.guest.wanted().saturating_since(now).min(PACE);
        if pause < SHORTEST_PAUSE {
            return Ok(now + pause);
        }
        let stdin = io::stdin();
        // One that was not read since it woke the guest will not be read by waking it again.
        let watched = if std::mem::take(&mut self.woken) { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut keys = [PollFd::new(stdin.as_fd(), watched)];
        let milliseconds = (pause.as_fs() / SHORTEST_PAUSE.as_fs()) as u16;
        let ready = poll(&mut keys, PollTimeout::from(milliseconds)).unwrap_or(0);
        if ready > 0 && keys[0].revents().is_some_and(|flags| flags.contains(PollFlags::POLLIN)) {
            self.woken = true;
            self.guest.wake();
            return Ok(now);
        }
        Ok(now + pause)
    }

    /// Sends what is to be sent.
    fn send(&mut self) -> Result<(), Pause> {
        while let Some(output) = self.guest.poll_output() {
            let (stream, bytes) = match output {
                Output::Calendar(bytes) => (&mut self.calendar, bytes.to_vec()),
                Output::Device(bytes) => (&mut self.device, bytes),
                Output::Call(bytes) => (&mut self.back, bytes),
                Output::BackChannel => {
                    self.back = self.descriptors.pop().map(UnixStream::from);
                    continue;
                }
                Output::Map(regions) => {
                    self.memory.map(&regions, &self.descriptors).map_err(GuestError::Memory)?;
                    continue;
                }
                Output::Broadcast(number) => {
                    if number & !0xFF == STATUS {
                        self.status = Some(number as u8);
                    }
                    continue;
                }
            };
            let Some(stream) = stream else { return Err(Pause::Gone) };
            match stream.write_all(&bytes) {
                Err(error) if is_end(&error) => return Err(Pause::Gone),
                sent => sent?,
            }
        }
        Ok(())
    }

    /// The first place where something is to be read, and whether the console is one of them; `None` if there is none for so long.
    fn ready(&self, patience: u16) -> io::Result<Option<(Source, bool)>> {
        let process = &self.process;
        let streams = [
            (Source::Calendar, self.calendar.as_ref()),
            (Source::Back, self.back.as_ref()),
            (Source::Device, self.device.as_ref()),
        ];
        let mut places: Vec<_> =
            streams.into_iter().filter_map(|(source, stream)| Some((source, stream?.as_fd()))).collect();
        if self.calendar.is_none() {
            places.push((Source::NewCalendar, process.calendar.as_fd()));
        }
        if self.device.is_none() {
            places.push((Source::NewDevice, process.device.as_fd()));
        }
        places.extend(process.console.as_ref().map(|console| (Source::Console, console.as_fd())));
        let mut polled: Vec<_> =
            places.iter().map(|(_, place)| PollFd::new(*place, PollFlags::POLLIN)).collect();
        match poll(&mut polled, PollTimeout::from(patience)) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let something = |polled: &PollFd<'_>| !polled.revents().unwrap_or(PollFlags::empty()).is_empty();
        let mut ready =
            places.iter().zip(&polled).filter(|(_, polled)| something(polled)).map(|(place, _)| place.0);
        let first = ready.next();
        Ok(first
            .map(|source| (source, source == Source::Console || ready.any(|other| other == Source::Console))))
    }

    fn hear_console(&mut self, run: &mut Run) -> io::Result<()> {
        let Some(pipe) = &mut self.process.console else { return Ok(()) };
        let mut bytes = Vec::new();
        if drain(pipe, &mut bytes)? {
            // Whoever polls it would be told of its end for ever.
            self.process.console = None;
        }
        if !bytes.is_empty() {
            self.console.push((run.fabric().now(), bytes));
        }
        Ok(())
    }

    /// The guest has closed its sockets.
    fn last_words(&mut self, run: &mut Run) -> Result<GuestEnd, GuestError> {
        let status = self.process.wait_a_while()?;
        self.hear_console(run)?;
        Ok(match status {
            Some(status) if status.success() => GuestEnd::PoweredOff(self.status),
            Some(status) => GuestEnd::Died(process::in_words(status)),
            None => GuestEnd::Died("it closed its sockets but did not exit".into()),
        })
    }
}

/// The reason that the exchange of messages pauses.
enum Pause {
    /// Time may pass no further.
    Limit,
    /// There was none for a while.
    Quiet,
    /// The guest has closed a socket.
    Gone,
    /// The run is over.
    Over,
    /// It cannot go on.
    Failed(GuestError),
}

impl<E: Into<GuestError>> From<E> for Pause {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn pause(failure: Failure<Stop>, run: &mut Run) -> Pause {
    match failure {
        Failure::Protocol(error) => error.into(),
        Failure::EndOfTime => GuestError::EndOfTime.into(),
        Failure::Asleep => GuestError::Asleep(run.fabric().now()).into(),
        Failure::Machine(Stop::Breath) => Pause::Quiet,
        Failure::Machine(Stop::Over) => Pause::Over,
        Failure::Machine(Stop::Run(error)) => error.into(),
        Failure::Machine(Stop::Resident(failure)) => GuestError::Resident(failure).into(),
        Failure::Machine(Stop::Stuck(at)) => GuestError::Stuck(at).into(),
    }
}
