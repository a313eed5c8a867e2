//! `struct nettlp`, and what the library keeps beside it.
//!
//! The struct is public, has no room for pointers and no end: programs copy it, change its fields, close `sockfd` or forget it. So it
//! holds the truth, and the rest is found by the socket: its number, and the socket's own identity, which tells a socket from
//! a later one with the same number.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::sys::stat::fstat;
use tlplab_bridge::net::{self, Udp, Wait};
use tlplab_nettlp::EndpointConfig;
use tlplab_nettlp::endpoint::{Counters, Gate};
use tlplab_units::{Bdf, Duration, Mps, Mrrs};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS};

use crate::errno::{self, Result};
use crate::guard::or_errno;
use crate::traffic::{Shared, Traffic};

/// `struct nettlp`. Addresses are in network byte order, as bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Nettlp {
    remote_addr: [u8; 4],
    local_addr: [u8; 4],
    requester: u16,
    tag: u8,
    dir: c_uint,
    sockfd: c_int,
    port: u16,
}

/// `enum dma_direction`.
const ISSUED_BY_LIBTLP: c_uint = 0;
const ISSUED_BY_ADAPTER: c_uint = 1;

/// How long an answer may take: what the published library waits.
const ANSWER_MS: u64 = 500;

impl Nettlp {
    fn remote(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.remote_addr)
    }
}

/// What tells contexts apart that have the same socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    requester: Bdf,
    tag: u8,
    timeout_ms: u64,
}

/// What is kept for a context.
pub(crate) struct Context {
    /// Of the socket, as the file system of sockets counts them.
    inode: u64,
    identity: Identity,
    pub(crate) fd: RawFd,
    pub(crate) traffic: Arc<Traffic>,
    /// Before the callbacks.
    pub(crate) gate: Mutex<Gate>,
    /// What does DMA; made when there is some.
    dma: OnceLock<net::Context>,
    making: Mutex<()>,
}

/// All contexts by the number of their socket. A program that closes a socket without telling us leaves its entry behind, until the
/// number is used again: there are never more than there are file descriptors.
static CONTEXTS: Mutex<BTreeMap<RawFd, Arc<Context>>> = Mutex::new(BTreeMap::new());

fn contexts() -> MutexGuard<'static, BTreeMap<RawFd, Arc<Context>>> {
    // A map is whole between its operations, whoever panicked elsewhere.
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// The context that `nettlp` means now.
    pub(crate) fn of(nettlp: &Nettlp) -> Result<Arc<Self>> {
        let mut contexts = contexts();
        let known = contexts.get(&nettlp.sockfd);
        let timeout_ms = known.map_or(ANSWER_MS, |known| known.identity.timeout_ms);
        Self::find(&mut contexts, nettlp, timeout_ms)
    }

    /// The same from now on with this time limit.
    fn with_timeout(nettlp: &Nettlp, timeout_ms: u64) -> Result<Arc<Self>> {
        Self::find(&mut contexts(), nettlp, timeout_ms)
    }

    fn find(
        contexts: &mut BTreeMap<RawFd, Arc<Self>>,
        nettlp: &Nettlp,
        timeout_ms: u64,
    ) -> Result<Arc<Self>> {
        let inode = borrow(nettlp.sockfd).and_then(fstat)?.st_ino;
        let (local, remote) = (Ipv4Addr::from(nettlp.local_addr), nettlp.remote());
        let requester = Bdf(nettlp.requester);
        let mut identity = Identity { local, remote, requester, tag: nettlp.tag, timeout_ms };
        let known = contexts.get(&nettlp.sockfd).filter(|known| known.inode == inode);
        match known {
            Some(known) if known.identity == identity => return Ok(known.clone()),
            Some(_) => {}
            None => identity.timeout_ms = ANSWER_MS,
        }
        let traffic = known.map_or_else(Arc::default, |known| known.traffic.clone());
        let gate = Mutex::new(Gate::new(remote));
        let new = Arc::new(Self {
            inode,
            identity,
            fd: nettlp.sockfd,
            traffic,
            gate,
            dma: OnceLock::new(),
            making: Mutex::new(()),
        });
        contexts.insert(nettlp.sockfd, new.clone());
        Ok(new)
    }

    /// The socket, which the program has promised to keep open while it calls.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        borrow(self.fd).expect("it was a file descriptor before")
    }

    pub(crate) fn remote(&self) -> Ipv4Addr {
        self.identity.remote
    }
    pub(crate) fn requester(&self) -> Bdf {
        self.identity.requester
    }

    /// Does a completion with these belong to the context's own reads?
    pub(crate) fn issues(&self, requester: Option<Bdf>, tag: Option<u8>) -> bool {
        requester == Some(self.identity.requester) && tag == Some(self.identity.tag)
    }

    /// What does its DMA.
    pub(crate) fn dma(&self) -> Result<&net::Context> {
        if let Some(dma) = self.dma.get() {
            return Ok(dma);
        }
        // One at a time: who is made last is told of completions.
        let _making = self.making.lock().map_err(|_| Errno::ENOTRECOVERABLE)?;
        if self.dma.get().is_none() {
            let made = self.make_dma().map_err(|error| errno::of_transport(&error))?;
            drop(self.dma.set(made));
        }
        self.dma.get().ok_or(Errno::ENOTRECOVERABLE)
    }

    fn make_dma(&self) -> std::result::Result<net::Context, net::Error> {
        let Identity { remote, requester, tag, timeout_ms, .. } = self.identity;
        // One tag; requests as long as may be, for the program says how long they are. A tag whose read was given up rests as long as
        // its answer has already been late.
        let config = EndpointConfig {
            tags: tag..=tag,
            host_ports: 0,
            mps: *Mps::ALL.last().expect("there are some"),
            mrrs: *Mrrs::ALL.last().expect("there are some"),
            completion_timeout: Duration::from_ms(timeout_ms),
            quarantine: Duration::from_ms(timeout_ms),
            ..EndpointConfig::new(remote, requester)
        };
        // Whatever port the socket has, what comes are the answers: the engine knows them by the port of their tag.
        let port = DEVICE_PORTS.start() + u16::from(tag);
        let udp = Udp::lent([(port, self.socket())], remote)?;
        let transport = Shared::new(udp, self.traffic.clone(), port, remote);
        Ok(net::Context::new(config, Box::new(transport), Wait::Sleep))
    }

    /// What came, and what went wrong with it.
    pub(crate) fn counters(&self) -> Counters {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = gate.counters();
        if let Some(dma) = self.dma.get() {
            sum.add(&dma.counters());
        }
        sum
    }
}

/// The address from which some context reaches `remote`, for adapters that know their devices by it; any, if there is none.
pub(crate) fn local_towards(remote: Ipv4Addr) -> Ipv4Addr {
    let known = contexts().values().find(|known| known.identity.remote == remote).cloned();
    known.map_or(Ipv4Addr::UNSPECIFIED, |known| known.identity.local)
}

/// A file descriptor of the program's.
pub(crate) fn borrow<'a>(fd: RawFd) -> Result<BorrowedFd<'a>> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: not -1. That it stays open while a function of ours runs is what the header asks for; if it does not, system calls fail
    // or reach another socket, and no memory is touched.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// A struct that C points to.
///
/// # Safety
/// `pointer` is null or points to a `T` that nobody writes to meanwhile.
pub(crate) unsafe fn at<'a, T>(pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Errno::EFAULT)
}

/// `libtlp.h`.
///
/// # Safety
/// `nettlp` points to a `struct nettlp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_init(nettlp: *mut Nettlp) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        let nettlp = unsafe { nettlp.as_mut() }.ok_or(Errno::EFAULT)?;
        let port = match nettlp.dir {
            ISSUED_BY_LIBTLP => DEVICE_PORTS.start() + u16::from(nettlp.tag),
            ISSUED_BY_ADAPTER => HOST_PORTS.start() + u16::from(nettlp.tag & 15),
            _ => return Err(Errno::EINVAL),
        };
        let local = Ipv4Addr::from(nettlp.local_addr);
        let socket = net::connected_socket(local, port, nettlp.remote());
        let socket = socket.map_err(|error| errno::of_transport(&error))?;
        nettlp.sockfd = socket.into_raw_fd();
        nettlp.port = port;
        Context::of(nettlp)?;
        Ok(0)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `nettlp` points to an initialised `struct nettlp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_set_timeout(nettlp: *const Nettlp, milliseconds: c_uint) -> c_int {
    or_errno(-1, || {
        if milliseconds == 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the caller's promise.
        Context::with_timeout(unsafe { at(nettlp) }?, milliseconds.into())?;
        Ok(0)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `nettlp` points to an initialised `struct nettlp` that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_close(nettlp: *mut Nettlp) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        let nettlp = unsafe { nettlp.as_mut() }.ok_or(Errno::EFAULT)?;
        let fd = std::mem::replace(&mut nettlp.sockfd, -1);
        if fd < 0 {
            return Err(Errno::EBADF);
        }
        contexts().remove(&fd);
        nix::unistd::close(fd).map(|()| 0)
    })
}
