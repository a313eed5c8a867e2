//! A TAP interface: an Ethernet port of this machine whose other end is a file here.
//!
//! Frames that the kernel sends through the interface go to a NIC (or to a driver's stack) by its [`Frames`], and the other way round.

use super::error::Error;
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use tlplab_device::Frames;

/// Longer than any frame.
const BUFFER: usize = 65_536;
/// Frames that one [`Tap::pump`] takes at most, so that what comes over the network has its turn.
const BURST: usize = 64;

/// An open TAP interface; it is gone when this is dropped, unless it was made to stay.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
    frames: Frames,
    buffer: Vec<u8>,
    refused: u64,
}

impl Tap {
    /// Makes the interface `name`, or takes the one that `ip tuntap add` has made, and brings it up.
    ///
    /// # Errors
    /// A name that no interface can have; the privilege is missing, or somebody else has it.
    pub fn open(name: &str) -> Result<Self, Error> {
        let usable = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'%';
        if name.is_empty() || name.len() >= nix::libc::IFNAMSIZ || !name.bytes().all(usable) {
            return Err(Error::Setup(format!(
                "{name:?} is not a valid interface name; use up to 15 letters, such as tap0"
            )));
        }
        let path = "/dev/net/tun";
        let opened = OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|source| Error::io(format!("open {path}"), source))?;
        ioctl::attach(&file, name)
            .and_then(|()| ioctl::bring_up(name))
            .map_err(|source| why(name, source))?;
        let (name, buffer) = (name.to_owned(), vec![0; BUFFER]);
        Ok(Self { file, name, frames: Frames::new(), buffer, refused: 0 })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The frames of whoever is plugged in.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// Frames lost between the kernel and the NIC or driver, in both directions: the kernel refused them (the interface was down), or
    /// [`CAPACITY`](tlplab_device::simple_nic::CAPACITY) of them waited already.
    pub fn lost_frames(&self) -> u64 {
        let dropped = self.frames.dropped();
        self.refused + dropped.inward + dropped.outward
    }

    /// Carries what is there in both directions, without waiting. True if a frame came in: whoever is plugged in must be woken, by
    /// a timer [`FRAMES`](tlplab_device::simple_nic::FRAMES).
    ///
    /// # Errors
    /// The interface is gone.
    pub fn pump(&mut self) -> Result<bool, Error> {
        self.push()?;
        let mut came = false;
        for _ in 0..BURST {
            match self.file.read(&mut self.buffer) {
                Ok(bytes) => {
                    self.frames.put(self.buffer[..bytes].into());
                    came = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing comes from an interface that is down.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => break,
                Err(source) => return Err(Error::io(format!("read from {}", self.name), source)),
            }
        }
        Ok(came)
    }

    /// Gives the kernel all frames that were sent to it.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn push(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.frames.take() {
            let Some(bytes) = frame.bytes() else { continue };
            match self.file.write(bytes) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(Errno::EBADFD as i32) => {
                    return Err(Error::io(format!("write to {}", self.name), error));
                }
                Err(_) => self.refused += 1,
            }
        }
        Ok(())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn why(name: &str, errno: Errno) -> Error {
    Error::Setup(match errno {
        Errno::EPERM => format!(
            "cannot make the TAP interface {name}: not permitted; run as root or with CAP_NET_ADMIN, or create it as root: ip tuntap add {name} mode tap user $USER && ip link set {name} up"
        ),
        Errno::EBUSY => {
            format!("the TAP interface {name} is in use: another program has it; name another one")
        }
        Errno::EINVAL => format!("{name} is not a TAP interface; name another one"),
        errno => format!("cannot make the TAP interface {name}: {}", errno.desc()),
    })
}

/// The three calls that no library in use here has.
mod ioctl {
    #![allow(unsafe_code, reason = "ioctl takes pointers")]

    use nix::errno::Errno;
    use nix::libc::{self, IFF_NO_PI, IFF_TAP, IFF_UP, ifreq};
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use std::fs::File;
    use std::os::fd::AsRawFd;

    fn request(name: &str) -> ifreq {
        // SAFETY: the structure is plain integers, for which zero is a value.
        let mut request: ifreq = unsafe { std::mem::zeroed() };
        for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = byte as libc::c_char;
        }
        request
    }

    fn call(file: &impl AsRawFd, number: libc::Ioctl, request: &mut ifreq) -> Result<(), Errno> {
        // SAFETY: the descriptor is open as long as it is borrowed; all three calls read and write one `ifreq`.
        Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), number, std::ptr::from_mut(request)) }).map(drop)
    }

    /// `/dev/net/tun` becomes this interface.
    pub(super) fn attach(file: &File, name: &str) -> Result<(), Errno> {
        let mut request = request(name);
        request.ifr_ifru.ifru_flags = (IFF_TAP | IFF_NO_PI) as libc::c_short;
        call(file, libc::TUNSETIFF as libc::Ioctl, &mut request)
    }

    /// Sets the flag that `ip link set … up` sets, unless it is set.
    pub(super) fn bring_up(name: &str) -> Result<(), Errno> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let mut request = request(name);
        call(&socket, libc::SIOCGIFFLAGS as libc::Ioctl, &mut request)?;
        // SAFETY: the call has just written this field of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let up = IFF_UP as libc::c_short;
        if flags & up == 0 {
            request.ifr_ifru.ifru_flags = flags | up;
            call(&socket, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)?;
        }
        Ok(())
    }
}
