//! Datagrams over the kernel's UDP: a socket per port, since NetTLP's ports tell the tags.
//!
//! Sleeping, `epoll` says which sockets have something; each of those is emptied with `recvmmsg`. What goes is grouped by port and
//! sent with `sendmmsg`.

use super::batch::{BATCH, Batch, Envelope};
use super::error::Error;
use super::mmsg;
use super::poller::{Poller, Ready};
use super::transport::Transport;
use arrayvec::ArrayVec;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use tlplab_nettlp::Undeliverable;

/// What a socket holds until it is read, as far as the system allows.
const RECEIVE_BUFFER: usize = 1 << 20;
/// How many failures to deliver are remembered; more of them at once say nothing new.
const REMEMBERED: usize = 64;

struct Port {
    number: u16,
    fd: RawFd,
    /// Closed with this, unless somebody else owns it.
    _owned: Option<Socket>,
}

/// UDP sockets, one per port.
///
/// With a peer they are connected to it: what others send is not seen, and what the network says about the peer comes back by
/// [`Transport::undeliverable`]. Without one they hear everybody.
pub struct Udp {
    poller: Arc<Poller>,
    /// Sorted by number; the poller knows each by its place here.
    ports: Vec<Port>,
    peer: Option<Ipv4Addr>,
    undeliverable: VecDeque<(SocketAddrV4, Undeliverable)>,
}

impl Udp {
    /// Binds `ports` at `local`.
    ///
    /// # Errors
    /// The address is not here, a port is taken, or there is no way to the peer.
    pub fn open(
        local: Ipv4Addr,
        ports: impl IntoIterator<Item = u16>,
        peer: Option<Ipv4Addr>,
    ) -> Result<Self, Error> {
        let mut numbers: Vec<u16> = ports.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let poller = Arc::new(Poller::new()?);
        let mut ports = Vec::with_capacity(numbers.len());
        for number in numbers {
            let socket = open_socket(local, number, peer)?;
            poller.watch(&socket, ports.len() as u64)?;
            ports.push(Port { number, fd: socket.as_raw_fd(), _owned: Some(socket) });
        }
        Ok(Self { poller, ports, peer, undeliverable: VecDeque::new() })
    }

    /// Sockets that somebody else has bound, connected to `peer`, and keeps open for as long as this is used. Each stands for the port
    /// in front of it, whichever it is bound to; these are not 0, and come in ascending order.
    ///
    /// # Errors
    /// They cannot be waited for.
    pub fn lent<'a>(
        sockets: impl IntoIterator<Item = (u16, BorrowedFd<'a>)>,
        peer: Ipv4Addr,
    ) -> Result<Self, Error> {
        let poller = Arc::new(Poller::new()?);
        let mut ports = Vec::new();
        for (number, socket) in sockets {
            poller.watch(socket, ports.len() as u64)?;
            ports.push(Port { number, fd: socket.as_raw_fd(), _owned: None });
        }
        debug_assert!(ports.is_sorted_by_key(|port| port.number), "they are searched by number");
        Ok(Self { poller, ports, peer: Some(peer), undeliverable: VecDeque::new() })
    }

    /// Empties the socket at `place` into `batch`, up to `most` datagrams.
    fn receive_at(&mut self, place: usize, most: usize, batch: &mut Batch) -> Result<(), Error> {
        let Port { number, fd, .. } = self.ports[place];
        match (mmsg::receive(fd, number, most, batch), self.peer) {
            (Ok(_) | Err(Errno::EAGAIN | Errno::EINTR), _) => Ok(()),
            (Err(error), peer) => match (why(error), peer) {
                (Some(why), Some(peer)) => {
                    remember(&mut self.undeliverable, SocketAddrV4::new(peer, number), why);
                    Ok(())
                }
                (Some(_), None) => Ok(()),
                (None, _) => Err(Error::io(format!("receive at UDP port {number}"), error)),
            },
        }
    }

    /// Sends datagrams that leave by one port.
    fn send_from(&mut self, port: u16, datagrams: &[(Envelope, &[u8])]) -> Result<(), Error> {
        let Ok(place) = self.ports.binary_search_by_key(&port, |port| port.number) else {
            return Err(Error::Setup(format!("UDP port {port} is not one of those that were opened")));
        };
        let fd = self.ports[place].fd;
        let mut rest = datagrams;
        // An error that is reported may stem from an earlier datagram, and the one at hand was not sent: it is tried once more.
        let mut tried = false;
        while let [(first, _), ..] = rest {
            match mmsg::send(fd, self.peer.is_some(), rest) {
                Ok(sent) => (rest, tried) = (&rest[sent..], false),
                Err(Errno::EINTR) => {}
                Err(error) => {
                    let Some(why) = why(error) else {
                        return Err(Error::io(format!("send from UDP port {port} to {}", first.peer), error));
                    };
                    remember(&mut self.undeliverable, first.peer, why);
                    if tried {
                        rest = &rest[1..];
                    }
                    tried = !tried;
                }
            }
        }
        Ok(())
    }
}

impl Transport for Udp {
    fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        let all = 0..self.ports.len() as u64;
        match ready {
            Some(ready) => {
                let sources = ready.sources();
                for &source in sources.iter().filter(|&source| all.contains(source)) {
                    self.receive_at(source as usize, BATCH / sources.len().max(1), batch)?;
                }
            }
            None => {
                for source in all {
                    self.receive_at(source as usize, BATCH, batch)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let all: ArrayVec<(Envelope, &[u8]), BATCH> = batch.iter().collect();
        const { assert!(BATCH <= 64) }
        // One bit each, of those that have been sent.
        let mut sent = 0u64;
        for (first, datagram) in all.iter().enumerate() {
            if sent >> first & 1 == 1 {
                continue;
            }
            // Most batches have one port, or one datagram for each; in either case a port's datagrams stay in order.
            let mut group: ArrayVec<(Envelope, &[u8]), BATCH> = ArrayVec::new();
            for (at, other) in all.iter().enumerate().skip(first) {
                if other.0.port == datagram.0.port {
                    sent |= 1 << at;
                    group.push(*other);
                }
            }
            self.send_from(datagram.0.port, &group)?;
        }
        drop(all);
        batch.clear();
        Ok(())
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.undeliverable.pop_front()
    }
}

/// A socket for [`Udp::lent`], bound to `number` at `local` and connected to the same port of `peer`.
///
/// # Errors
/// As [`Udp::open`].
pub fn connected_socket(local: Ipv4Addr, number: u16, peer: Ipv4Addr) -> Result<OwnedFd, Error> {
    open_socket(local, number, Some(peer)).map(OwnedFd::from)
}

/// Sends all of `batch` by a socket that is connected, and empties it.
///
/// # Errors
/// The socket's. The datagram at hand was not sent, nor were those after it.
pub fn send_connected(socket: BorrowedFd<'_>, batch: &mut Batch) -> std::io::Result<()> {
    let waiting: ArrayVec<(Envelope, &[u8]), BATCH> = batch.iter().collect();
    let mut rest = &waiting[..];
    while !rest.is_empty() {
        match mmsg::send(socket.as_raw_fd(), true, rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(waiting);
    batch.clear();
    Ok(())
}

fn open_socket(local: Ipv4Addr, number: u16, peer: Option<Ipv4Addr>) -> Result<Socket, Error> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
        .map_err(|source| Error::io("make a UDP socket", source))?;
    let address = SocketAddrV4::new(local, number);
    socket.bind(&address.into()).map_err(|source| Error::bind(local, number, source))?;
    // More than the system's limit needs a privilege; with less, bursts may be lost, which is counted where it matters.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    }
    if let Some(peer) = peer {
        let to = SocketAddrV4::new(peer, number);
        let connected = socket.connect(&to.into());
        connected.map_err(|source| Error::io(format!("reach {peer} from {local}"), source))?;
    }
    Ok(socket)
}

/// What an error of a socket says about the peer; `None` if it is not about the peer.
fn why(error: Errno) -> Option<Undeliverable> {
    match error {
        Errno::ECONNREFUSED => Some(Undeliverable::PortRefused),
        Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN | Errno::ENETDOWN => {
            Some(Undeliverable::HostUnreachable)
        }
        _ => None,
    }
}

fn remember(list: &mut VecDeque<(SocketAddrV4, Undeliverable)>, to: SocketAddrV4, why: Undeliverable) {
    if list.len() < REMEMBERED {
        list.push_back((to, why));
    }
}
