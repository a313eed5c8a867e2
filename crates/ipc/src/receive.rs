//! Bytes of a stream, and the descriptors that come beside them.

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Most descriptors that are taken at once.
const DESCRIPTORS: usize = 32;

/// Reads what there is, `buffer` at most, as `recvmsg(2)` does: the number of bytes, 0 at the end of the stream, and the descriptors that came
/// along with any of them. Descriptors of a message are those of its first byte; a buffer that ends with a message keeps those of the next
/// apart. A peer that is gone is an end, too.
///
/// # Errors
/// The system's; without `wait`, that there is nothing.
pub fn receive(stream: &UnixStream, buffer: &mut [u8], wait: bool) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut descriptors = Vec::new();
    let mut parts = [IoSliceMut::new(buffer)];
    let mut space = nix::cmsg_space!([i32; DESCRIPTORS]);
    let waits = if wait { MsgFlags::empty() } else { MsgFlags::MSG_DONTWAIT };
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | waits;
    let received = loop {
        match recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok((0, descriptors)),
            received => break received?,
        }
    };
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = message {
            descriptors.extend(numbers.into_iter().map(own));
        }
    }
    Ok((received.bytes, descriptors))
}

#[allow(unsafe_code)]
fn own(number: i32) -> OwnedFd {
    // SAFETY: the system has just made this descriptor for us, and nobody else knows of it.
    unsafe { OwnedFd::from_raw_fd(number) }
}
