//! Waiting: for datagrams, for a deadline, for another thread.

use super::error::Error;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Most sources that one wait names; the others are named by the next one.
const MOST: usize = 64;
const WAKE: u64 = u64::MAX;

/// The result of a wait: the numbers under which sources were registered.
#[derive(Default)]
pub struct Ready {
    sources: Vec<u64>,
}

impl Ready {
    /// The sources that have something.
    pub fn sources(&self) -> &[u64] {
        &self.sources
    }
    /// True if the source with this number has something.
    pub fn has(&self, number: u64) -> bool {
        self.sources.contains(&number)
    }
}

/// A set of file descriptors to wait for, and a bell that any thread may ring.
pub struct Poller {
    epoll: Epoll,
    bell: EventFd,
}

/// Can be read when a wait would end: for other event loops.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> Result<Self, Error> {
        let failed = |source| Error::io("make an epoll set", source);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(failed)?;
        epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN, WAKE)).map_err(failed)?;
        Ok(Self { epoll, bell })
    }

    /// Adds a source that can be read; waits name it by `number`.
    ///
    /// # Errors
    /// The system refuses: it cannot be waited for, or is there already.
    ///
    /// # Panics
    /// At `u64::MAX`, which is the bell's.
    pub fn watch(&self, source: impl AsFd, number: u64) -> Result<(), Error> {
        assert_ne!(number, WAKE, "the bell's number");
        let event = EpollEvent::new(EpollFlags::EPOLLIN, number);
        self.epoll.add(source, event).map_err(|source| Error::io("wait for a file descriptor", source))
    }

    /// Ends the present wait of another thread, or the next.
    pub fn wake(&self) {
        // It fails only if 2^64 - 2 wakes were not answered.
        let _ = self.bell.write(1);
    }

    /// Waits until a source can be read, another thread rings, or `until`; `None` waits for as long as it takes. `ready` then names
    /// the sources.
    ///
    /// # Errors
    /// The system's; a signal ends the wait and is none.
    pub fn wait(&self, ready: &mut Ready, until: Option<Instant>) -> Result<(), Error> {
        ready.sources.clear();
        let timeout = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => EpollTimeout::NONE,
            Some(Duration::ZERO) => EpollTimeout::ZERO,
            Some(left) => match u16::try_from(left.as_millis()).unwrap_or(u16::MAX) {
                0 => return self.wait_short(ready, left),
                // Rounded down: what is left after it is waited for precisely.
                whole => EpollTimeout::from(whole),
            },
        };
        self.collect(ready, timeout)
    }

    /// Less than a millisecond, which `epoll_wait` cannot say.
    fn wait_short(&self, ready: &mut Ready, left: Duration) -> Result<(), Error> {
        let mut set = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
        let left = TimeSpec::nanoseconds(i64::from(left.subsec_nanos()));
        match ppoll(&mut set, Some(left), None) {
            Ok(0) | Err(nix::Error::EINTR) => Ok(()),
            Ok(_) => self.collect(ready, EpollTimeout::ZERO),
            Err(error) => Err(Error::io("wait for datagrams", error)),
        }
    }

    fn collect(&self, ready: &mut Ready, timeout: EpollTimeout) -> Result<(), Error> {
        let mut events = [EpollEvent::empty(); MOST];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(error) => return Err(Error::io("wait for datagrams", error)),
        };
        for event in &events[..count] {
            match event.data() {
                // Reading it takes the ring back; it fails only if nobody rang.
                WAKE => drop(self.bell.read()),
                number => ready.sources.push(number),
            }
        }
        Ok(())
    }
}
