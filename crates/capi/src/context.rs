//! `struct nettlp`, and what the library keeps beside it.
//!
//! The struct is public, has no room for pointers and no end: programs copy it, change its fields, close `sockfd` or forget it. So it
//! holds the truth, and the rest is found by the socket: its number, and the socket's own identity, which tells a socket from
//! a later one with the same number.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use nix::errno::Errno;
use nix::sys::stat::fstat;
use tlplab_netio::{Udp, Wait};
use tlplab_nettlp::EndpointConfig;
use tlplab_nettlp::endpoint::{Counters, Gate};
use tlplab_units::{Bdf, Duration, Mps, Mrrs};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS};

use crate::errno::{self, Result};
use crate::guard::or_errno;
use crate::traffic::{Issuer, Shared, Traffic};

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

/// The time limit of an answer, as in the published library.
const ANSWER_MS: u32 = 500;
/// The longest time limit, one hour: what is longer is a mistake, and time is counted in femtoseconds.
const LONGEST_MS: u32 = 3_600_000;

/// A time limit of the program's, in milliseconds.
pub(crate) fn time_limit(milliseconds: u32) -> Result<u32> {
    if (1..=LONGEST_MS).contains(&milliseconds) { Ok(milliseconds) } else { Err(Errno::EINVAL) }
}

impl Nettlp {
    /// As whom it makes requests, at present.
    pub(crate) fn issuer(&self) -> Issuer {
        Issuer { requester: self.requester(), tag: self.tag }
    }
    pub(crate) fn requester(&self) -> Bdf {
        Bdf(self.requester)
    }
    fn remote(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.remote_addr)
    }
}

/// The state of a socket.
pub(crate) struct Context {
    /// Of the socket, as the file system of sockets counts them.
    inode: u64,
    pub(crate) fd: RawFd,
    local: Ipv4Addr,
    remote: Ipv4Addr,
    timeout_ms: AtomicU32,
    pub(crate) traffic: Arc<Traffic>,
    /// Before the callbacks.
    pub(crate) gate: Mutex<Gate>,
    dma: RwLock<Engines>,
}

/// The DMA of a socket: an engine for each tag that was ever used there, for its tag may still rest. One works at a time, since
/// it takes what comes; programs have one tag for a socket, if they do not change the struct.
#[derive(Default)]
struct Engines {
    at_work: Option<Issuer>,
    by_tag: BTreeMap<u8, tlplab_netio::Context>,
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
        let inode = borrow(nettlp.sockfd).and_then(fstat)?.st_ino;
        let mut contexts = contexts();
        if let Some(known) = contexts.get(&nettlp.sockfd).filter(|known| known.inode == inode) {
            return Ok(known.clone());
        }
        let new = Arc::new(Self {
            inode,
            fd: nettlp.sockfd,
            local: Ipv4Addr::from(nettlp.local_addr),
            remote: nettlp.remote(),
            timeout_ms: AtomicU32::new(ANSWER_MS),
            traffic: Arc::default(),
            gate: Mutex::new(Gate::new(nettlp.remote())),
            dma: RwLock::default(),
        });
        contexts.insert(nettlp.sockfd, new.clone());
        Ok(new)
    }

    /// The socket, which the program has promised to keep open while it calls.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        borrow(self.fd).expect("it was a file descriptor before")
    }

    pub(crate) fn remote(&self) -> Ipv4Addr {
        self.remote
    }

    /// Does DMA as `issuer`, when what another one does at this socket is over.
    pub(crate) fn with_dma<R>(
        &self,
        issuer: Issuer,
        operate: impl FnOnce(&tlplab_netio::Context) -> Result<R>,
    ) -> Result<R> {
        loop {
            let engines = self.dma.read().map_err(|_| Errno::ENOTRECOVERABLE)?;
            if engines.at_work == Some(issuer)
                && let Some(engine) = engines.by_tag.get(&issuer.tag)
            {
                return operate(engine);
            }
            drop(engines);
            self.put_to_work(issuer)?;
        }
    }

    fn put_to_work(&self, issuer: Issuer) -> Result<()> {
        let mut engines = self.dma.write().map_err(|_| Errno::ENOTRECOVERABLE)?;
        match engines.by_tag.get(&issuer.tag) {
            Some(engine) => engine.set_requester(issuer.requester),
            None => {
                let made = self.make_engine(issuer).map_err(|error| errno::of_transport(&error))?;
                engines.by_tag.insert(issuer.tag, made);
            }
        }
        self.traffic.set_issuer(issuer);
        engines.at_work = Some(issuer);
        Ok(())
    }

    fn make_engine(&self, issuer: Issuer) -> std::result::Result<tlplab_netio::Context, tlplab_netio::Error> {
        let Issuer { requester, tag } = issuer;
        // One tag; requests as long as may be, for the program says how long they are. A tag whose read was given up rests as long as
        // its answer has already been late.
        let timeout = Duration::from_ms(self.timeout_ms.load(Ordering::Relaxed).into());
        let config = EndpointConfig {
            tags: tag..=tag,
            host_ports: 0,
            mps: *Mps::ALL.last().expect("there are some"),
            mrrs: *Mrrs::ALL.last().expect("there are some"),
            completion_timeout: timeout,
            quarantine: timeout,
            ..EndpointConfig::new(self.remote, requester)
        };
        // Whatever port the socket has, what comes are the answers: the engine knows them by the port of their tag.
        let port = DEVICE_PORTS.start() + u16::from(tag);
        let udp = Udp::lent([(port, self.socket())], self.remote)?;
        let transport = Shared::new(udp, self.traffic.clone(), port, self.remote);
        Ok(tlplab_netio::Context::new(config, Box::new(transport), Wait::Sleep))
    }

    fn set_timeout(&self, timeout_ms: u32) -> Result<()> {
        self.timeout_ms.store(timeout_ms, Ordering::Relaxed);
        let timeout = Duration::from_ms(timeout_ms.into());
        let engines = self.dma.read().map_err(|_| Errno::ENOTRECOVERABLE)?;
        engines.by_tag.values().for_each(|engine| engine.set_time_limits(timeout, timeout));
        Ok(())
    }

    /// The received datagrams, and their errors.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = self.gate.lock().unwrap_or_else(PoisonError::into_inner).counters();
        let engines = self.dma.read().unwrap_or_else(PoisonError::into_inner);
        engines.by_tag.values().for_each(|engine| sum.add(&engine.counters()));
        sum
    }
}

/// The address from which some context reaches `remote`, for adapters that know their devices by it; any, if there is none.
pub(crate) fn local_towards(remote: Ipv4Addr) -> Ipv4Addr {
    let known = contexts().values().find(|known| known.remote == remote).cloned();
    known.map_or(Ipv4Addr::UNSPECIFIED, |known| known.local)
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
        let socket = tlplab_netio::connected_socket(local, port, nettlp.remote());
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
        let limit = time_limit(milliseconds)?;
        // SAFETY: the caller's promise.
        Context::of(unsafe { at(nettlp) }?)?.set_timeout(limit)?;
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
