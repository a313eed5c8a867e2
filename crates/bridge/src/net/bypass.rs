//! The one socket option that no library sets: past the queue of the interface.
#![allow(unsafe_code, reason = "setsockopt takes a pointer")]

use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Frames that are sent go to the interface at once (`PACKET_QDISC_BYPASS`, packet(7)).
pub(super) fn bypass_queue(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (fd, size) = (socket.as_fd().as_raw_fd(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: the descriptor is open as long as it is borrowed, and the kernel reads `size` bytes of `on`, which live here.
    let status = unsafe {
        libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, (&raw const on).cast(), size)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
