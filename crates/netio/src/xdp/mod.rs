//! Frames past the kernel's network layers: an `AF_XDP` socket takes them from the interface and gives them to it, through memory that both
//! share. Nothing is copied by a system call, and one call sends a batch.
//!
//! * `rings`: that memory
//! * `program`: which frames are ours
//!
//! Needs Linux 5.9. The library that would do this without a C tool chain (xdpilone) has a licence that this project cannot take.

mod program;
mod rings;

use super::batch::{BATCH, Batch, Envelope, HEADROOM};
use super::error::Error;
use super::filter;
use super::frame::HEADERS;
use super::link::{Link, LinkConfig, LinkCounters, TRIES};
use super::poller::{Poller, Ready};
use super::transport::Transport;
use nix::errno::Errno;
use program::Program;
use rings::Rings;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tlplab_nettlp::Undeliverable;

/// The only queue of the interface.
const QUEUE: u32 = 0;
/// The time for which a queue may still be another's.
const PATIENCE: Duration = Duration::from_millis(500);

/// An `AF_XDP` socket with the ports of one end of NetTLP.
pub struct Xdp {
    poller: Arc<Poller>,
    // Before the rings: nothing is to be redirected to a socket that is no more.
    _program: Program,
    rings: Rings,
    link: Link,
}

impl Xdp {
    /// Opens the socket and puts a program on the interface, which goes with it.
    ///
    /// # Errors
    /// The privilege is missing, there is no such interface or address, a port is taken, the interface has several queues or a program already.
    pub fn open(config: &LinkConfig) -> Result<Self, Error> {
        let mut link = Link::open(config)?;
        let name = &link.interface.name;
        one_queue(name)?;
        let index = link.interface.link.ifindex();
        let rings = patiently(|| Rings::open(index, QUEUE)).map_err(|error| refused(name, error))?;
        let ranges = filter::ranges(&link.ports);
        let program = Program::attach(index, QUEUE, rings.as_fd(), link.local, &ranges);
        let _program = program.map_err(|error| refused(name, error))?;
        link.largest = link.largest.min(rings::LARGEST - HEADERS);
        let poller = Arc::new(Poller::new()?);
        poller.watch(&rings, 0)?;
        Ok(Self { poller, _program, rings, link })
    }

    /// The largest UDP payload that the link takes in one frame.
    pub fn largest(&self) -> usize {
        self.link.largest
    }

    /// The frames that were not passed on. Frames that the program does not redirect, fragments among them, are not seen here.
    pub fn counters(&self) -> LinkCounters {
        self.link.counters
    }

    /// Lets the kernel send what is in the ring. What it does not take in [`TRIES`] stays there for the next time.
    fn flush(&mut self) -> Result<(), Error> {
        for _ in 0..TRIES {
            match self.rings.flush() {
                Ok(true) => return Ok(()),
                Ok(false) | Err(Errno::EINTR) => {}
                // It has sent a part, or the other end of the link is busy.
                Err(Errno::EAGAIN | Errno::EBUSY | Errno::ENOBUFS) => {}
                Err(Errno::ENETDOWN) => return Ok(()),
                Err(error) => return Err(Error::io(format!("send on {}", self.link.interface.name), error)),
            }
        }
        Ok(())
    }
}

impl Transport for Xdp {
    fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    fn receive(&mut self, _ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        const START: usize = HEADROOM - HEADERS;
        let before = batch.len();
        {
            let (envelopes, mut buffers) = batch.free(START);
            self.rings.receive(BATCH - before, |frame| {
                let buffer = buffers.next().expect("there is room for so many");
                // What is cut off is found too long by its own headers.
                let len = frame.len().min(buffer.len());
                buffer[..len].copy_from_slice(&frame[..len]);
                envelopes.push(Envelope { start: START, len, ..Envelope::NONE });
            });
        }
        for (envelope, buffer) in batch.buffers().skip(before) {
            *envelope = self.link.look(buffer, *envelope).unwrap_or(Envelope::NONE);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut lost = 0;
        for (_, frame) in self.link.frames(batch) {
            lost += u64::from(!self.rings.put(frame));
        }
        self.link.counters.overrun += lost;
        batch.clear();
        self.flush()
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.link.undeliverable.pop_front()
    }

    fn dropped(&self) -> Option<u64> {
        self.rings.dropped()
    }
}

/// Frames that come by another queue than the first would not be heard.
fn one_queue(interface: &str) -> Result<(), Error> {
    let Ok(queues) = std::fs::read_dir(format!("/sys/class/net/{interface}/queues")) else { return Ok(()) };
    let receive =
        queues.flatten().filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count();
    if receive <= 1 {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "interface {interface} spreads frames over {receive} queues, but an XDP socket receives from one: set `ethtool -L {interface} combined 1`, or use `--transport packet`"
    )))
}

/// The kernel takes a socket from its queue some time after it was closed.
fn patiently<T>(mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let until = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(Errno::EBUSY) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
}

fn refused(interface: &str, error: Errno) -> Error {
    let action = format!("open an XDP socket on {interface}");
    match error {
        Errno::EPERM | Errno::EACCES => Error::Privilege { action },
        Errno::EBUSY | Errno::EEXIST => Error::Setup(format!(
            "{action}: another program already uses it; `ip link show {interface}` names it (`--transport packet` needs none)"
        )),
        Errno::EAFNOSUPPORT | Errno::EOPNOTSUPP | Errno::ENOSYS => Error::Setup(format!(
            "{action}: this kernel has none (they need Linux 5.9 with CONFIG_XDP_SOCKETS); use `--transport packet`"
        )),
        _ => Error::io(action, error),
    }
}
