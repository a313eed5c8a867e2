//! Many operations at once: submitted, and told of when they are over.
//!
//! No thread of its own: whoever submits, polls or waits drives the engine meanwhile. What foreign event loops wait for is one file
//! descriptor in front of all that may happen: a datagram, a deadline, an operation that is over.

pub mod functions;

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tlplab_netio::{Loop, Poller, Ready, Udp};
use tlplab_nettlp::endpoint::{Event, Retry};
use tlplab_nettlp::{Endpoint, EndpointConfig};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration as Span, Mps, Mrrs};

use crate::context::time_limit;
use crate::errno::{self, Result};

/// `struct tlp_async_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TlpAsyncConfig {
    remote_addr: [u8; 4],
    local_addr: [u8; 4],
    requester: u16,
    first_tag: u8,
    retries: u8,
    tags: u16,
    mps: u16,
    mrrs: u16,
    timeout_ms: u32,
}

/// `struct tlp_async_done`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TlpAsyncDone {
    user: *mut c_void,
    count: usize,
    error: c_int,
}

/// Operations that may be under way; those that were cancelled count until their answers have come, or can come no more.
const MOST: usize = 1 << 16;
/// Passes over the sockets before an operation is begun, each of a batch of datagrams.
const MOST_TURNS: usize = 1024;
/// The longest sleep of a waiting thread: another one may have taken the last operation, for which the file descriptor then no longer rings.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Zero means the default.
fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

impl TlpAsyncConfig {
    fn endpoint(&self) -> Result<EndpointConfig> {
        let first = u32::from(self.first_tag);
        let tags = or(self.tags.into(), 16.min(256 - first));
        let last = u8::try_from(first + tags - 1).map_err(|_| Errno::EINVAL)?;
        let timeout = Span::from_ms(time_limit(or(self.timeout_ms, 500))?.into());
        Ok(EndpointConfig {
            tags: self.first_tag..=last,
            host_ports: 0,
            mps: Mps::new(or(self.mps.into(), 256)).ok_or(Errno::EINVAL)?,
            mrrs: Mrrs::new(or(self.mrrs.into(), 512)).ok_or(Errno::EINVAL)?,
            completion_timeout: timeout,
            quarantine: timeout,
            retry: if self.retries == 0 { Retry::Never } else { Retry::Reads(self.retries) },
            ..EndpointConfig::new(Ipv4Addr::from(self.remote_addr), Bdf(self.requester))
        })
    }
}

/// The arguments of an operation from C, and the destination of its data.
struct Operation {
    user: *mut c_void,
    buffer: *mut c_void,
    count: usize,
    /// Its end was told already, and its buffer is no longer ours.
    cancelled: bool,
}

// SAFETY: the pointers are only looked at by calls of the program, which promises that they may be used by whichever of its threads
// makes one.
unsafe impl Send for Operation {}
// SAFETY: `user` is carried, never followed.
unsafe impl Send for TlpAsyncDone {}

struct State {
    driven: Loop<Endpoint<u32>, Udp>,
    /// By the engine's tokens.
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    done: VecDeque<TlpAsyncDone>,
    /// True if the bell is rung: a caller that polls finds something.
    rung: bool,
    /// For when the timer is set: never later than the engine's deadline.
    armed: Option<Instant>,
}

/// `struct tlp_async`.
pub struct TlpAsync {
    state: Mutex<State>,
    poller: Arc<Poller>,
    bell: EventFd,
    timer: TimerFd,
    /// Can be read when there is something to poll for.
    front: Epoll,
}

impl TlpAsync {
    fn open(config: &TlpAsyncConfig) -> Result<Self> {
        let endpoint = config.endpoint()?;
        let local = Ipv4Addr::from(config.local_addr);
        let udp = Udp::open(local, endpoint.ports(), Some(endpoint.adapter));
        let driven = Loop::new(Endpoint::new(endpoint), udp.map_err(|error| errno::of_transport(&error))?);
        let poller = driven.poller().clone();
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        let front = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for source in [poller.as_fd(), bell.as_fd(), timer.as_fd()] {
            front.add(source, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        let state = State {
            driven,
            operations: Vec::new(),
            free: Vec::new(),
            done: VecDeque::new(),
            rung: false,
            armed: None,
        };
        Ok(Self { state: Mutex::new(state), poller, bell, timer, front })
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| Errno::ENOTRECOVERABLE)
    }

    /// Submits what `begin` does to the engine.
    fn submit(
        &self,
        operation: Operation,
        begin: impl FnOnce(&mut Loop<Endpoint<u32>, Udp>, u32) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock()?;
        // Late answers are read before their tags are used again; more come than are worth reading only in a flood.
        if state.driven.engine.resting_tags() > 0 {
            for _ in 0..MOST_TURNS {
                if self.turn(&mut state)? == 0 {
                    break;
                }
            }
        }
        let token = state.take_slot(operation)?;
        if let Err(error) = begin(&mut state.driven, token) {
            state.free_slot(token);
            return Err(error);
        }
        state.driven.transmit().map_err(|error| errno::of_transport(&error))?;
        state.collect();
        self.announce(&mut state)
    }

    /// Feeds received datagrams to the engine and takes finished operations; the number of datagrams.
    fn turn(&self, state: &mut State) -> Result<usize> {
        let mut ready = Ready::default();
        let failed = |error| errno::of_transport(&error);
        self.poller.wait(&mut ready, Some(Instant::now())).map_err(failed)?;
        let came = state.driven.turn(Some(&ready)).map_err(failed)?;
        state.collect();
        Ok(came)
    }

    /// Up to `done.len()` operations that are over, without waiting.
    fn poll(&self, done: &mut [std::mem::MaybeUninit<TlpAsyncDone>]) -> Result<usize> {
        let mut state = self.lock()?;
        if state.done.len() < done.len() {
            self.turn(&mut state)?;
        }
        let count = done.len().min(state.done.len());
        for (place, found) in done.iter_mut().zip(state.done.drain(..count)) {
            place.write(found);
        }
        self.announce(&mut state)?;
        Ok(count)
    }

    /// Makes the file descriptor tell the truth: bell and timer.
    fn announce(&self, state: &mut State) -> Result<()> {
        let ring = !state.done.is_empty();
        if ring != state.rung {
            state.rung = ring;
            if ring {
                self.bell.write(1)?;
            } else {
                self.bell.read()?;
            }
        }
        let now = Instant::now();
        let is_over = state.armed.is_some_and(|armed| armed <= now);
        match state.driven.deadline() {
            Some(due) if is_over || state.armed.is_none_or(|armed| due < armed) => {
                let left = due.saturating_duration_since(now).max(Duration::from_nanos(1));
                let left = Expiration::OneShot(TimeSpec::from_duration(left));
                self.timer.set(left, TimerSetTimeFlags::empty())?;
                state.armed = Some(due);
            }
            None if is_over => {
                self.timer.unset()?;
                state.armed = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// As [`poll`](Self::poll), and waits until there is something, nothing is under way, or `until`.
    fn wait(
        &self,
        done: &mut [std::mem::MaybeUninit<TlpAsyncDone>],
        until: Option<Instant>,
    ) -> Result<usize> {
        loop {
            let count = self.poll(done)?;
            if count > 0 || self.lock()?.pending() == 0 {
                return Ok(count);
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => LOOK_AGAIN,
                Some(Duration::ZERO) => return Ok(0),
                Some(left) => left.min(LOOK_AGAIN),
            };
            // In whole milliseconds, rounded up.
            let left = PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            poll(&mut [PollFd::new(self.front.0.as_fd(), PollFlags::POLLIN)], left)?;
        }
    }

    /// Ends what was submitted with `user`; how many.
    fn cancel(&self, user: *mut c_void) -> Result<usize> {
        let mut state = self.lock()?;
        let State { operations, done, .. } = &mut *state;
        let before = done.len();
        for operation in operations.iter_mut().flatten().filter(|operation| operation.user == user) {
            if !std::mem::replace(&mut operation.cancelled, true) {
                done.push_back(TlpAsyncDone { user, count: 0, error: Errno::ECANCELED as c_int });
            }
        }
        let cancelled = done.len() - before;
        self.announce(&mut state)?;
        Ok(cancelled)
    }
}

impl State {
    fn take_slot(&mut self, operation: Operation) -> Result<u32> {
        if let Some(token) = self.free.pop() {
            self.operations[token as usize] = Some(operation);
            return Ok(token);
        }
        if self.operations.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        self.operations.push(Some(operation));
        Ok(self.operations.len() as u32 - 1)
    }

    fn free_slot(&mut self, token: u32) -> Option<Operation> {
        self.free.push(token);
        self.operations[token as usize].take()
    }

    /// Operations of which something is still to be told.
    fn pending(&self) -> usize {
        let under_way = self.operations.iter().flatten().filter(|operation| !operation.cancelled);
        self.done.len() + under_way.count()
    }

    /// Takes what the engine says of operations that are over.
    fn collect(&mut self) {
        while let Some(event) = self.driven.engine.poll_event() {
            let (token, result) = match event {
                Event::ReadDone { token, result } => (token, result),
                Event::WriteSent { token } => (token, Ok(Payload::EMPTY)),
                Event::Failed { token, error } => (token, Err(error)),
                // The host has no windows here: it was refused, and counted.
                Event::HostRead(_) | Event::HostWrite(_) | Event::Other { .. } => continue,
            };
            let Some(operation) = self.free_slot(token).filter(|operation| !operation.cancelled) else {
                continue;
            };
            let Operation { user, buffer, count, .. } = operation;
            let done = match result {
                Err(error) => TlpAsyncDone { user, count: 0, error: errno::of_dma(&error) as c_int },
                Ok(data) => {
                    let data = data.bytes().unwrap_or_default();
                    if !data.is_empty() {
                        // SAFETY: only reads have data; the program has left their buffer, of `count` bytes, to the operation until it
                        // is told of its end.
                        unsafe {
                            std::ptr::copy_nonoverlapping(data.as_ptr(), buffer.cast(), data.len().min(count))
                        };
                    }
                    TlpAsyncDone { user, count, error: 0 }
                }
            };
            self.done.push_back(done);
        }
    }
}
