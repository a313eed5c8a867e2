//! The socket options that no library has.
#![allow(unsafe_code, reason = "they take pointers")]

use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

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

/// Datagrams that the kernel dropped at a UDP or packet socket since it was made, most often because it was full (`SO_MEMINFO`, sock_diag(7)). It is
/// the counter that `SO_RXQ_OVFL` writes beside each datagram that comes after, and `PACKET_STATISTICS` takes back to 0 when it is read; here
/// nothing need come after. `None` before Linux 4.12. It wraps at 2^32.
pub(super) fn dropped(socket: RawFd) -> Option<u32> {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut numbers = [0u32; DROPS + 1];
    let mut size = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `numbers`, whatever the descriptor is.
    let status = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    (status == 0 && size as usize == size_of_val(&numbers)).then_some(numbers[DROPS])
}
