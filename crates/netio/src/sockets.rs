//! UDP sockets as NetTLP wants them: bound to a port, and connected to a peer or shared out among several.

use super::error::Error;
use super::filter;
use nix::libc::{self, sock_fprog};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The bytes that a socket holds until they are read, as far as the system allows.
const RECEIVE_BUFFER: usize = 1 << 20;

/// The longest wait of a call at a socket.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// A socket for [`Udp::lent`], bound to `number` at `local` and connected to the same port of `peer`.
///
/// # Errors
/// As [`Udp::open`].
pub fn connected_socket(local: Ipv4Addr, number: u16, peer: Ipv4Addr) -> Result<OwnedFd, Error> {
    open_socket(local, number, Some(peer), false).map(OwnedFd::from)
}

/// Sockets with one port: the kernel gives each the datagrams of one of `peers`, and the last one those of all others.
pub(super) fn open_group(local: Ipv4Addr, number: u16, peers: &[Ipv4Addr]) -> Result<Vec<Socket>, Error> {
    let failed = |source| Error::io(format!("share UDP port {number} among peers"), source);
    // The first must find the port free; only from then on do the others join it.
    let first = open_socket(local, number, None, false)?;
    first.set_reuse_port(true).map_err(failed)?;
    let mut sockets = vec![first];
    for _ in peers {
        sockets.push(open_socket(local, number, None, true)?);
    }
    let mut program = filter::by_sender(peers);
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr().cast() };
    if !peers.is_empty() {
        setsockopt(&sockets[0], sockopt::AttachReusePortCbpf, &program)
            .map_err(|error| failed(error.into()))?;
    }
    Ok(sockets)
}

/// Lets this process have so many files more, as far as the system allows: many programs are begun with few, and an adapter of several
/// devices has a thousand sockets.
pub(super) fn allow_files(more: usize) {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it may not, the socket that is too many says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.saturating_add(more as u64).min(hard), hard);
    }
}

/// Bound to a port, and connected to the same port of `peer` if there is one. With `joins` the port is taken already, by sockets that share it.
pub(super) fn open_socket(
    local: Ipv4Addr,
    number: u16,
    peer: Option<Ipv4Addr>,
    joins: bool,
) -> Result<Socket, Error> {
    let made = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
    let socket = made.map_err(|source| match source.raw_os_error() {
        Some(libc::EMFILE) => Error::Setup(
            "this process may not open a file for each port and peer: raise the limit with `ulimit -n`, or use packet sockets, which need one"
                .into(),
        ),
        _ => Error::io("make a UDP socket", source),
    })?;
    if joins {
        let shared = socket.set_reuse_port(true);
        shared.map_err(|source| Error::io(format!("share UDP port {number} among peers"), source))?;
    }
    let address = SocketAddrV4::new(local, number);
    socket.bind(&address.into()).map_err(|source| Error::bind(local, number, source))?;
    // More than the system's limit needs a privilege; with less, bursts may be lost, which is counted where it matters.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    }
    let limited = socket.set_read_timeout(Some(SLICE));
    limited.map_err(|source| Error::io(format!("limit waits at UDP port {number}"), source))?;
    match peer {
        Some(peer) => {
            let to = SocketAddrV4::new(peer, number);
            let connected = socket.connect(&to.into());
            connected.map_err(|source| Error::io(format!("reach {peer} from {local}"), source))?;
        }
        None => setsockopt(&socket, sockopt::Ipv4RecvErr, &true)
            .map_err(|source| Error::io(format!("receive errors at UDP port {number}"), source))?,
    }
    Ok(socket)
}
