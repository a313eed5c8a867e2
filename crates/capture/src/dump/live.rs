//! Frames as they pass an interface.

use super::super::container::{Frame, Item};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, UnknownCmsg, bind, getsockopt, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::{getsockopt_impl, setsockopt_impl};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use tlplab_trace::Error;

const FS_PER_NS: i128 = 1_000_000;
/// The bytes that the kernel holds until they are read.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The largest frame, of segments that the kernel has put together.
const LARGEST: usize = 65_536 + 64;
/// Bytes of an 802.1Q tag, and where it stands: behind the addresses.
const TAG_BYTES: usize = 4;
const TAG_AT: usize = 12;
/// The protocol of an 802.1Q tag that is not said to have another.
const C_TAG: u16 = 0x8100;
const NANOSECONDS: u8 = 9;
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;

/// A socket that hears everything on one interface.
pub(super) struct Live {
    socket: Socket,
    link_type: i32,
    /// Each frame passes twice there: when it leaves and when it arrives.
    loopback: bool,
    /// A frame, with room in front for the tag that the kernel took off it.
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
                let wanted = "run as root, or with the capability CAP_NET_RAW";
                Error::content(String::new(), "permission to listen on this interface is denied", wanted)
                    .in_file(Path::new(name))
            }
            _ => Error::io(Path::new(name), "listen on this interface", error),
        };
        let hardware = link.hatype();
        let (link_type, loopback) = match hardware {
            libc::ARPHRD_ETHER => (ETHERNET, false),
            libc::ARPHRD_LOOPBACK => (ETHERNET, true),
            libc::ARPHRD_NONE => (RAW_IP, false),
            _ => {
                let problem = format!("its frames are neither Ethernet nor IP (hardware type {hardware})");
                let wanted = "expected an Ethernet, loopback or TUN interface";
                return Err(Error::content(String::new(), problem, wanted).in_file(Path::new(name)));
            }
        };
        let everything = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(everything)).map_err(failed)?;
        // Until here it heard all interfaces.
        bind(socket.as_raw_fd(), link).map_err(|error| failed(error.into()))?;
        drain(&socket);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|error| failed(error.into()))?;
        setsockopt(&socket, AuxiliaryData, &true).map_err(|error| failed(error.into()))?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        }
        Ok(Self {
            socket,
            link_type,
            loopback,
            buffer: vec![0; TAG_BYTES + LARGEST],
            control: nix::cmsg_space!(TimeSpec, libc::tpacket_auxdata),
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
            let mut parts = [IoSliceMut::new(&mut buffer[TAG_BYTES..])];
            // With MSG_TRUNC the length is that of the frame, even of one that does not fit.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let received = recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut parts, Some(control), flags);
            let (length, leaves, stamp, tag) = match received {
                Ok(message) => {
                    let (mut stamp, mut tag) = (None, None);
                    for control in message.cmsgs().into_iter().flatten() {
                        match control {
                            ControlMessageOwned::ScmTimestampns(time) => stamp = Some(time),
                            ControlMessageOwned::Unknown(other) => tag = tag.or(tag_in(&other)),
                            _ => {}
                        }
                    }
                    let leaves = message.address.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
                    (message.bytes, leaves, stamp, tag)
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
            let tag = tag.filter(|_| self.link_type == ETHERNET && length >= TAG_AT);
            let (start, length) = match tag {
                None => (TAG_BYTES, length),
                Some(tag) => {
                    self.buffer.copy_within(TAG_BYTES..TAG_BYTES + TAG_AT, 0);
                    self.buffer[TAG_AT..TAG_AT + TAG_BYTES].copy_from_slice(&tag);
                    (0, length + TAG_BYTES)
                }
            };
            return Ok(Some(Item::Frame(Frame {
                number: self.frames,
                fs: since * FS_PER_NS,
                digits: NANOSECONDS,
                link_type: self.link_type,
                interface: None,
                data: &self.buffer[start..(start + length).min(TAG_BYTES + LARGEST)],
                length,
                comment: None,
                check: 0,
            })));
        }
    }

    /// Frames that the kernel dropped since this was last asked, since they were not read soon enough.
    pub(super) fn dropped(&self) -> u64 {
        getsockopt(&self.socket, Statistics).map_or(0, |found| found.tp_drops.into())
    }
}

/// Forgets what was heard before the socket was bound to its interface.
fn drain(socket: &Socket) {
    let mut byte = [0];
    while nix::sys::socket::recv(socket.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT).is_ok() {}
}

/// The 802.1Q tag that the kernel has taken off a frame: protocol and control information (`PACKET_AUXDATA`, packet(7)).
fn tag_in(message: &UnknownCmsg) -> Option<[u8; TAG_BYTES]> {
    let header = message.cmsg_header;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    let field = |at: usize| Some(u16::from_ne_bytes(*message.data_bytes.get(at..)?.first_chunk()?));
    let status = u32::from_ne_bytes(*message.data_bytes.first_chunk()?);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => C_TAG,
        _ => field(offset_of!(libc::tpacket_auxdata, tp_vlan_tpid))?,
    };
    let tci = field(offset_of!(libc::tpacket_auxdata, tp_vlan_tci))?;
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    Some([a, b, c, d])
}

/// `PACKET_AUXDATA`: frames come with the tags that were taken off them.
#[derive(Clone, Copy)]
struct AuxiliaryData;

setsockopt_impl!(AuxiliaryData, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool, sockopt::SetBool);

/// `PACKET_STATISTICS` (packet(7)); reading it sets it to zero.
#[derive(Clone, Copy)]
struct Statistics;

getsockopt_impl!(
    Statistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats,
    sockopt::GetStruct<libc::tpacket_stats>
);
