//! The adapter's configuration space, over the socket of `struct nettlp_pcie_cfg`.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, SockaddrIn, getpeername, recv, send};
use tlplab_wire::nettlp::config_api::{ConfigAccess, LIBRARY_PORT, PORT};

use crate::context::{at, borrow};
use crate::dma::{bytes, bytes_mut};
use crate::errno::{self, Result};
use crate::guard::or_errno;

/// `struct nettlp_pcie_cfg`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NettlpPcieCfg {
    remote_addr: [u8; 4],
    local_addr: [u8; 4],
    sockfd: c_int,
}

/// Bytes of configuration space.
const SPACE: usize = 4096;
/// The time limit of an answer at each port.
const PATIENCE: Duration = Duration::from_millis(500);

/// An answer may be anybody's who waits at the same socket: accesses by one socket are made one at a time.
static ACCESSES: Mutex<BTreeMap<RawFd, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// With which accesses by this socket exclude each other.
fn access(socket: RawFd) -> Arc<Mutex<()>> {
    ACCESSES.lock().unwrap_or_else(PoisonError::into_inner).entry(socket).or_default().clone()
}

impl NettlpPcieCfg {
    fn open(&self, port: u16) -> Result<std::os::fd::OwnedFd> {
        let (local, remote) = (Ipv4Addr::from(self.local_addr), Ipv4Addr::from(self.remote_addr));
        tlplab_netio::connected_socket(local, port, remote).map_err(|error| errno::of_transport(&error))
    }

    fn socket(&self) -> Result<BorrowedFd<'_>> {
        borrow(self.sockfd)
    }

    /// The socket asks at the other port from now on: newer adapters answer at one, older ones at the other.
    fn switch(&self) -> Result<()> {
        let at = getpeername::<SockaddrIn>(self.socket()?.as_raw_fd())?.port();
        let other = self.open(if at == PORT { LIBRARY_PORT } else { PORT })?;
        // SAFETY: both are open. The number stays the program's; what it had is closed.
        match unsafe { libc::dup3(other.as_raw_fd(), self.sockfd, libc::O_CLOEXEC) } {
            -1 => Err(Errno::last()),
            _ => Ok(()),
        }
    }

    /// The doubleword at byte `register`.
    fn read(&self, register: u16) -> Result<u32> {
        let request = ConfigAccess::read(register).map_err(|_| Errno::EINVAL)?;
        let asked = self.ask(request);
        if !matches!(asked, Err(Errno::ETIME | Errno::ECONNREFUSED)) {
            return asked;
        }
        self.switch()?;
        let again = self.ask(request);
        if again.is_err() {
            // A lost datagram is no older adapter.
            self.switch()?;
        }
        again
    }

    fn ask(&self, request: ConfigAccess) -> Result<u32> {
        let socket = self.socket()?;
        send(socket.as_raw_fd(), &request.emit(), MsgFlags::empty())?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left.as_millis()).map_err(|_| Errno::EINVAL)?;
            match poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], left) {
                Ok(0) => return Err(Errno::ETIME),
                Err(Errno::EINTR) => continue,
                other => other?,
            };
            let mut buffer = [0; 512];
            let reply = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => ConfigAccess::parse(&buffer[..len]),
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(error) => return Err(error),
            };
            // Late answers to other questions, and what is no answer, are passed over.
            if let Some(reply) = reply.ok().filter(|reply| request.is_answered_by(*reply)) {
                return Ok(reply.data);
            }
        }
    }

    /// Writes the bytes that `enables` names.
    fn write(&self, register: u16, enables: u8, data: u32) -> Result<()> {
        // Nobody confirms a write: a read before it finds who listens.
        self.read(register)?;
        let request = ConfigAccess::write(register, enables, data).map_err(|_| Errno::EINVAL)?;
        send(self.socket()?.as_raw_fd(), &request.emit(), MsgFlags::empty())?;
        Ok(())
    }
}

/// The doublewords that hold `count` bytes from `address` on: register, its bytes, and their place in the buffer.
fn doublewords(
    address: usize,
    count: usize,
) -> impl Iterator<Item = (u16, std::ops::Range<usize>, std::ops::Range<usize>)> {
    (address / 4..(address + count).div_ceil(4)).map(move |dw| {
        let (start, end) = ((dw * 4).max(address), (dw * 4 + 4).min(address + count));
        ((dw * 4) as u16, start - dw * 4..end - dw * 4, start - address..end - address)
    })
}

/// A range that configuration space has.
fn check(address: u16, count: usize) -> Result<usize> {
    let address = usize::from(address);
    if count <= SPACE && address + count <= SPACE { Ok(address) } else { Err(Errno::EINVAL) }
}

/// `libtlp.h`.
///
/// # Safety
/// `config` points to a `struct nettlp_pcie_cfg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_pcie_cfg_init(config: *mut NettlpPcieCfg) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        let config = unsafe { config.as_mut() }.ok_or(Errno::EFAULT)?;
        let socket = match config.open(PORT) {
            Err(Errno::EADDRINUSE) => config.open(LIBRARY_PORT)?,
            other => other?,
        };
        config.sockfd = socket.into_raw_fd();
        Ok(0)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `config` points to an initialised `struct nettlp_pcie_cfg`, `buffer` to `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_pcie_cfg_read(
    config: *const NettlpPcieCfg,
    address: u16,
    buffer: *mut c_void,
    count: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (config, buffer) = unsafe { (at(config)?, bytes_mut(buffer, count)?) };
        let address = check(address, count)?;
        let access = access(config.sockfd);
        let _access = access.lock().unwrap_or_else(PoisonError::into_inner);
        for (register, of, to) in doublewords(address, count) {
            buffer[to].copy_from_slice(&config.read(register)?.to_le_bytes()[of]);
        }
        Ok(count as isize)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`nettlp_pcie_cfg_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_pcie_cfg_write(
    config: *const NettlpPcieCfg,
    address: u16,
    buffer: *const c_void,
    count: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (config, data) = unsafe { (at(config)?, bytes(buffer, count)?) };
        let address = check(address, count)?;
        let access = access(config.sockfd);
        let _access = access.lock().unwrap_or_else(PoisonError::into_inner);
        for (register, of, from) in doublewords(address, count) {
            let enables = of.clone().fold(0, |enables, byte| enables | 1 << byte);
            let mut value = [0; 4];
            value[of].copy_from_slice(&data[from]);
            config.write(register, enables, u32::from_le_bytes(value))?;
        }
        Ok(count as isize)
    })
}
