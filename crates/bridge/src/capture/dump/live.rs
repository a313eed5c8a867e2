//! Frames as they pass an interface.

use super::super::container::{Frame, Item};
use crate::Error;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, bind, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

const FS_PER_NS: i128 = 1_000_000;
/// What the kernel holds until it is read.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The largest frame, of segments that the kernel has put together.
const LARGEST: usize = 65_536 + 64;
const NANOSECONDS: u8 = 9;
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;

/// A socket that hears everything on one interface.
pub(super) struct Live {
    socket: Socket,
    link_type: i32,
    /// Each frame passes twice there: when it leaves and when it arrives.
    loopback: bool,
    buffer: Vec<u8>,
    control: Vec<u8>,
    frames: u64,
}

/// The interfaces of this machine.
pub(super) fn interfaces() -> BTreeMap<String, LinkAddr> {
    let all = getifaddrs().into_iter().flatten();
    all.filter_map(|entry| Some((entry.interface_name, *entry.address?.as_link_addr()?))).collect()
}

impl Live {
    /// Begins to hear.
    pub(super) fn open(name: &str, link: &LinkAddr) -> Result<Self, Error> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let wanted = "it takes root, or the capability CAP_NET_RAW";
                Error::content(String::new(), "you are not permitted to listen on this interface", wanted)
                    .in_file(Path::new(name))
            }
            _ => Error::io(Path::new(name), "listen on this interface", error),
        };
        let everything = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(everything)).map_err(failed)?;
        // Until here it heard all interfaces.
        bind(socket.as_raw_fd(), link).map_err(|error| failed(error.into()))?;
        drain(&socket);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|error| failed(error.into()))?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        }
        let hardware = link.hatype();
        Ok(Self {
            socket,
            link_type: if hardware == libc::ARPHRD_NONE { RAW_IP } else { ETHERNET },
            loopback: hardware == libc::ARPHRD_LOOPBACK,
            buffer: vec![0; LARGEST],
            control: nix::cmsg_space!(TimeSpec),
            frames: 0,
        })
    }

    /// Waits for a frame, at most so many milliseconds.
    pub(super) fn wait(&self, milliseconds: u16) -> io::Result<()> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next frame that is there.
    pub(super) fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        loop {
            let Self { socket, buffer, control, .. } = self;
            let mut parts = [IoSliceMut::new(buffer)];
            // With MSG_TRUNC the length is that of the frame, even of one that does not fit.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let received = recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut parts, Some(control), flags);
            let (length, leaves, stamp) = match received {
                Ok(message) => {
                    let stamps = message.cmsgs().into_iter().flatten();
                    let stamp = stamps.filter_map(|message| match message {
                        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                        _ => None,
                    });
                    let leaves = message.address.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
                    (message.bytes, leaves, stamp.last())
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if leaves && self.loopback {
                continue;
            }
            self.frames += 1;
            let since = stamp
                .map_or(0, |stamp| i128::from(stamp.tv_sec()) * 1_000_000_000 + i128::from(stamp.tv_nsec()));
            return Ok(Some(Item::Frame(Frame {
                number: self.frames,
                fs: since * FS_PER_NS,
                digits: NANOSECONDS,
                link_type: self.link_type,
                interface: None,
                data: &self.buffer[..length.min(LARGEST)],
                length,
                comment: None,
                check: 0,
            })));
        }
    }

    /// Frames that the kernel dropped since this was last asked, since they were not read soon enough.
    pub(super) fn dropped(&self) -> u64 {
        statistics::dropped(&self.socket)
    }
}

/// Forgets what was heard before the socket was bound to its interface.
fn drain(socket: &Socket) {
    let mut byte = [0];
    while nix::sys::socket::recv(socket.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT).is_ok() {}
}

/// The one socket option that no library reads: frames dropped.
mod statistics {
    #![allow(unsafe_code, reason = "getsockopt takes a pointer")]

    use nix::libc;
    use std::os::fd::{AsFd, AsRawFd};

    /// `PACKET_STATISTICS` (packet(7)); reading it sets it to zero.
    pub(super) fn dropped(socket: impl AsFd) -> u64 {
        let mut found = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut size = size_of_val(&found) as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: the descriptor is open as long as it is borrowed, and the kernel writes `size` bytes at most to `found`, which has as many.
        let status = unsafe {
            let to = (&raw mut found).cast();
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut size)
        };
        if status == 0 { u64::from(found.tp_drops) } else { 0 }
    }
}
