//! Devices of the contract in a virtual machine of QEMU, by vfio-user over a Unix socket.
//!
//! * [`VfioUser`]: the socket, its client, and the device's port; its owner takes the events and acts
//! * `Machine`: memory and interrupts of the client
//!
//! One client at a time: while it is there, others are refused. When it goes the function is as after power-on, and the next may come.

mod capture;
mod machine;
mod stream;

use super::clock::Clock;
use super::error::Error;
use super::poller::{Poller, Ready};
use capture::Capture;
use machine::Machine;
pub(crate) use machine::SharedRanges;
use nix::sys::stat::{Mode, fchmod};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use stream::Stream;
use tlplab_cfgspace::Layout;
use tlplab_device::{Action, Context, Device, Event};
use tlplab_units::{Bdf, Time};
use tlplab_vfio::{Port, PortEvent};

/// The sources that are waited for: the listener's number is the first, the client's comes after it.
const SOURCES: u64 = 2;
/// The first number beside ports of a network.
const BESIDE_PORTS: u64 = 1 << 33;

/// A function that is served on a socket.
pub struct VfioUser {
    /// Its port. What its owner does to it is carried out by [`VfioUser::act`].
    pub port: Port,
    path: PathBuf,
    listener: UnixListener,
    client: Option<Stream>,
    machine: Machine,
    poller: Arc<Poller>,
    /// The number of the listener at the poller; that of the client comes after it.
    source: u64,
    clock: Clock,
    /// The capture of passing TLPs, and its file.
    capture: Option<(Capture, PathBuf)>,
    clients: u64,
    refused: u64,
    /// The reason that the connection to the last client ended, if the client made a mistake.
    mistake: Option<String>,
}

impl VfioUser {
    /// Listens at `path`, for this user only. A socket that a program has left there, which nobody listens at, is replaced.
    ///
    /// # Errors
    /// Somebody listens there, or there is something else, or the system refuses.
    pub fn listen(path: &Path, layout: &Layout) -> Result<Self, Error> {
        let port = Port::new(layout).map_err(|error| Error::Setup(error.to_string()))?;
        Self::with_others(path, port, &Arc::new(Poller::new()?), 0)
    }

    /// The function `number` of several that wait together.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub(crate) fn with_others(
        path: &Path,
        port: Port,
        poller: &Arc<Poller>,
        number: usize,
    ) -> Result<Self, Error> {
        Self::at(path, port, poller, number as u64 * SOURCES)
    }

    /// The function `number` of several that wait together with the ports of a network.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub(crate) fn beside(
        path: &Path,
        port: Port,
        poller: &Arc<Poller>,
        number: usize,
    ) -> Result<Self, Error> {
        Self::at(path, port, poller, BESIDE_PORTS + number as u64 * SOURCES)
    }

    fn at(path: &Path, port: Port, poller: &Arc<Poller>, source: u64) -> Result<Self, Error> {
        let action = || format!("listen at {}", path.display());
        let listener = bind(path).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => {
                let message =
                    "{} exists: another program listens at it, or it is not a socket; choose another path";
                Error::Setup(message.replace("{}", &path.display().to_string()))
            }
            _ => Error::io(action(), source),
        })?;
        listener.set_nonblocking(true).map_err(|source| Error::io(action(), source))?;
        poller.watch(&listener, source)?;
        Ok(Self {
            port,
            path: path.to_owned(),
            listener,
            client: None,
            machine: Machine::default(),
            poller: poller.clone(),
            source,
            clock: Clock::start(),
            capture: None,
            clients: 0,
            refused: 0,
            mistake: None,
        })
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// True while a virtual machine has the function.
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }
    /// Clients so far.
    pub fn clients(&self) -> u64 {
        self.clients
    }
    /// Clients that came while another was there.
    pub fn refused_clients(&self) -> u64 {
        self.refused
    }
    /// The reason for which the last connection was ended here.
    pub fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }
    /// With which it waits.
    pub fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    /// The present time for the device.
    pub fn now(&mut self) -> Time {
        let Self { port, clock, .. } = self;
        clock.now(|by| port.rebase(by))
    }

    /// Writes down all TLPs from now on: those that the accesses, transfers and interrupts of the function `id`, called `name`, stand for
    /// ([`tlplab_vfio::SeenTlp`]). Times are since now.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn capture_tlps(&mut self, path: &Path, id: Bdf, name: &str) -> Result<(), Error> {
        self.capture = Some((Capture::create(path, name)?, path.to_owned()));
        self.port.watch_tlps(id);
        Ok(())
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_capture(&mut self) -> Result<(), Error> {
        self.capture.take().map_or(Ok(()), |(capture, path)| capture.finish(&path))
    }

    fn write_down(&mut self) {
        let Some((capture, _)) = &mut self.capture else { return };
        while let Some(tlp) = self.port.take_tlp() {
            capture.write(&tlp);
        }
    }

    /// The device acts.
    pub fn act(&mut self, now: Time, action: Action) {
        self.port.act(now, action, &mut self.machine);
    }

    /// The next event of a device whose registers the port has itself. By then it has acted on those before.
    pub fn take_event(&mut self) -> Option<Event> {
        loop {
            match self.port.take_event()? {
                PortEvent::Device(event) => return Some(event),
                PortEvent::UnmaskIntx => self.unmask_intx(),
                PortEvent::ConfigRead { .. } | PortEvent::ConfigWrite { .. } => {}
            }
        }
    }

    /// A fatal error of the function. True if the client was told.
    pub(crate) fn report_error(&mut self) -> bool {
        self.port.report_error(&mut self.machine)
    }

    /// The legacy interrupt may come again.
    pub(crate) fn unmask_intx(&mut self) {
        self.port.unmask_intx(&mut self.machine);
    }

    /// Tells a device of an event, and carries out its actions.
    pub fn tell(&mut self, now: Time, device: &mut dyn Device, event: Event) {
        let mut actions = Vec::new();
        let mode = self.port.interrupt_mode();
        let mut cx = Context::new(now, &[], self.port.op_counter(), &mut actions).with_interrupts(mode);
        device.handle(&mut cx, event);
        actions.into_iter().for_each(|action| self.act(now, action));
    }

    /// Waits for messages, timers or clients, until `until` at most, and hands them to the port. Events of the device may be there afterwards.
    ///
    /// # Errors
    /// The system's; a client that is gone or has made a mistake is none.
    pub fn wait_turn(&mut self, until: Instant) -> Result<(), Error> {
        let wake = self.deadline().map_or(until, |deadline| deadline.min(until));
        let mut ready = Ready::default();
        self.poller.wait(&mut ready, Some(wake))?;
        self.turn(&ready)
    }

    /// The time at which it has work without messages.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.port.deadline().map(|deadline| self.clock.instant(deadline))
    }

    /// Hands what has come to the port.
    ///
    /// # Errors
    /// As [`wait_turn`](Self::wait_turn).
    pub(crate) fn turn(&mut self, ready: &Ready) -> Result<(), Error> {
        let now = self.now();
        if self.port.deadline().is_some_and(|deadline| deadline <= now) {
            self.port.handle_timeout(now);
        }
        if ready.has(self.source + 1) {
            self.hear(now);
        }
        if ready.has(self.source) {
            self.accept()?;
        }
        self.transmit();
        Ok(())
    }

    /// The memory of its client, whoever that is.
    pub(crate) fn memory(&self) -> SharedRanges {
        self.machine.ranges.clone()
    }

    /// No client can have memory at these addresses.
    pub(crate) fn take_addresses(&mut self, taken: Range<u64>) {
        self.machine.taken = taken;
    }

    /// Sends what the port has to say.
    pub fn transmit(&mut self) {
        self.write_down();
        while let Some(message) = self.port.take_message() {
            let sent = self.client.as_mut().map(|client| client.send(&message));
            if let Some(Err(_)) = sent {
                self.disconnect();
            }
        }
    }

    fn hear(&mut self, now: Time) {
        let Some(client) = &mut self.client else { return };
        let heard = client.receive(|header, payload, descriptors| {
            let count = descriptors.len();
            self.machine.hand_over(descriptors);
            let handled = self.port.handle_message(now, header, payload, count, &mut self.machine);
            self.machine.hand_over(Vec::new());
            handled
        });
        match heard {
            Ok(true) => {}
            Ok(false) => self.disconnect(),
            Err(mistake) => {
                // What it should still hear is why its last command failed, if that is known.
                self.mistake = Some(mistake);
                self.disconnect();
            }
        }
    }

    fn accept(&mut self) -> Result<(), Error> {
        let failed = |source| Error::io("accept a client of vfio-user", source);
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        if self.client.is_some() {
            self.refused += 1;
            return Ok(());
        }
        let client = Stream::new(stream).map_err(failed)?;
        self.poller.watch(client.as_fd(), self.source + 1)?;
        self.client = Some(client);
        (self.clients, self.mistake) = (self.clients + 1, None);
        Ok(())
    }

    fn disconnect(&mut self) {
        // To close it takes it out of what is waited for.
        self.client = None;
        self.port.disconnect(&mut self.machine);
        self.machine.forget();
    }
}

impl Drop for VfioUser {
    fn drop(&mut self) {
        // If it is gone already, somebody else has removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A listening socket that only this user may connect to.
fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // The file has the mode that the socket has when it is bound.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    // Whoever waits for the path to appear may connect at once: until somebody listens the socket has another name.
    let hidden =
        path.with_file_name(format!(".{:x}-{:x}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &UnixAddr::new(&hidden)?)?;
    let shown = listen(&socket, Backlog::new(8)?)
        .map_err(io::Error::from)
        .and_then(|()| std::fs::hard_link(&hidden, path));
    std::fs::remove_file(&hidden)?;
    match shown {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(ErrorKind::AddrInUse.into()),
        shown => shown.map(|()| socket.into()),
    }
}

/// Sockets that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);
