//! Many datagrams by one system call.

use super::batch::{BATCH, Batch, Envelope, HEADROOM};
use arrayvec::ArrayVec;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockaddrIn, SockaddrLike, recv, recvmmsg, recvmsg,
    sendmmsg, sendto,
};
use nix::{cmsg_space, libc};
use std::array;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::RawFd;

/// As many as come at once to one of many sockets.
const FEW: usize = 4;

thread_local! {
    /// The kernel's arrays of message headers, allocated once. They hold pointers and so cannot move to another thread, as sockets
    /// do. Receiving and sending set them up differently.
    static INCOMING: RefCell<MultiHeaders<SockaddrIn>> = RefCell::new(MultiHeaders::preallocate(BATCH, None));
    static FRAMES: RefCell<MultiHeaders<LinkAddr>> = RefCell::new(MultiHeaders::preallocate(BATCH, None));
    static OUTGOING: RefCell<MultiHeaders<SockaddrIn>> = RefCell::new(MultiHeaders::preallocate(BATCH, None));
}

/// Appends the next datagram to `batch`, which has room, waiting for it as long as the socket's own limit says if `waits`; `peer` sent it, if the socket
/// hears nobody else.
pub(super) fn receive_one(
    fd: RawFd,
    port: u16,
    peer: Option<SocketAddrV4>,
    waits: bool,
    batch: &mut Batch,
) -> nix::Result<()> {
    let (envelopes, mut buffers) = batch.free(HEADROOM);
    let buffer = buffers.next().unwrap_or_default();
    let flags = if waits { MsgFlags::empty() } else { MsgFlags::MSG_DONTWAIT };
    let (len, peer) = match peer {
        Some(peer) => (recv(fd, buffer, flags)?, peer),
        None => {
            let mut slices = [IoSliceMut::new(buffer)];
            let message = recvmsg::<SockaddrIn>(fd, &mut slices, None, flags)?;
            let from = message.address.map_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), Into::into);
            (message.bytes, from)
        }
    };
    envelopes.push(Envelope { peer, port, start: HEADROOM, len });
    Ok(())
}

/// Appends to `batch` what the socket holds, up to `most` datagrams and without waiting. `port` is the socket's. How many came.
pub(super) fn receive(fd: RawFd, port: u16, most: usize, batch: &mut Batch) -> nix::Result<usize> {
    INCOMING.with_borrow_mut(|headers| {
        let envelope = |from: Option<SockaddrIn>, len| {
            let peer = from.map_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), Into::into);
            Envelope { peer, port, start: HEADROOM, len }
        };
        match most {
            ..=FEW => receive_into::<FEW, _>(headers, fd, HEADROOM, most, batch, envelope),
            _ => receive_into::<BATCH, _>(headers, fd, HEADROOM, most, batch, envelope),
        }
    })
}

/// The same for whole frames, which stand from `start` in the buffers; their envelopes say no more.
pub(super) fn receive_frames(fd: RawFd, start: usize, batch: &mut Batch) -> nix::Result<usize> {
    FRAMES.with_borrow_mut(|headers| {
        receive_into::<BATCH, _>(headers, fd, start, BATCH, batch, |_: Option<LinkAddr>, len| Envelope {
            start,
            len,
            ..Envelope::NONE
        })
    })
}

/// `N` is the size of the array that tells the kernel where, which takes time to fill.
fn receive_into<const N: usize, S: SockaddrLike + Copy>(
    headers: &mut MultiHeaders<S>,
    fd: RawFd,
    start: usize,
    most: usize,
    batch: &mut Batch,
    envelope: impl Fn(Option<S>, usize) -> Envelope,
) -> nix::Result<usize> {
    let most = most.min(BATCH - batch.len()).min(N);
    if most == 0 {
        return Ok(0);
    }
    let (envelopes, mut buffers) = batch.free(start);
    let before = envelopes.len();
    // Only the first `most` are used; the others stay empty.
    let mut slices: [_; N] = array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
    let slices = slices[..most].iter_mut();
    let came = recvmmsg(fd, headers, slices, MsgFlags::MSG_DONTWAIT, None)?;
    envelopes.extend(came.map(|message| envelope(message.address, message.bytes)));
    Ok(envelopes.len() - before)
}

/// Takes what the network said of datagrams that a socket has sent (`IP_RECVERR`): to whom each went, and why it did not arrive.
pub(super) fn take_errors(fd: RawFd, mut tell: impl FnMut(SocketAddrV4, Errno)) {
    let mut space = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in);
    // The datagram comes with it; nobody wants it.
    let mut payload = [0; 1];
    loop {
        let mut slices = [IoSliceMut::new(&mut payload)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let Ok(message) = recvmsg::<SockaddrIn>(fd, &mut slices, Some(&mut space), flags) else { return };
        let (Some(to), Ok(controls)) = (message.address, message.cmsgs()) else { continue };
        for control in controls {
            if let ControlMessageOwned::Ipv4RecvErr(error, _) = control {
                tell(to.into(), Errno::from_raw(error.ee_errno as i32));
            }
        }
    }
}

/// Sends as many as the kernel takes, at least one unless there are none; how many. `connected` sockets know where to.
pub(super) fn send(fd: RawFd, connected: bool, datagrams: &[(Envelope, &[u8])]) -> nix::Result<usize> {
    let address = |e: &Envelope| (!connected).then(|| SockaddrIn::from(e.peer));
    if let [(to, bytes)] = datagrams {
        return match address(to) {
            Some(to) => sendto(fd, bytes, &to, MsgFlags::empty()),
            None => nix::sys::socket::send(fd, bytes, MsgFlags::empty()),
        }
        .map(|_| 1);
    }
    OUTGOING.with_borrow_mut(|headers| {
        let slices: [_; BATCH] =
            array::from_fn(|at| [IoSlice::new(datagrams.get(at).map_or(&[], |datagram| datagram.1))]);
        let to: ArrayVec<Option<SockaddrIn>, BATCH> = datagrams.iter().map(|(e, _)| address(e)).collect();
        let slices = slices[..datagrams.len()].iter();
        Ok(sendmmsg(fd, headers, slices, to, [], MsgFlags::empty())?.count())
    })
}
