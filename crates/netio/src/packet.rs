//! Datagrams in frames that are read from and written to an interface: one socket sees all ports, so that one system call takes
//! datagrams of all tags. The kernel's IP and UDP layers see what comes, too, and throw it away.

use super::batch::{Batch, Envelope, HEADROOM};
use super::error::Error;
use super::filter;
use super::frame::HEADERS;
use super::link::{Link, LinkConfig, LinkCounters, TRIES};
use super::mmsg;
use super::neighbour::Interface;
use super::poller::{Poller, Ready};
use super::socket_options::{self, bypass_queue};
use super::transport::Transport;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{bind, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use tlplab_nettlp::Undeliverable;

/// The bytes that the socket holds until they are read.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A packet socket with the ports of one end of NetTLP.
pub struct Packet {
    poller: Arc<Poller>,
    socket: Socket,
    link: Link,
}

impl Packet {
    /// Opens the socket.
    ///
    /// # Errors
    /// The privilege is missing, there is no such interface or address, or a port is taken.
    pub fn open(config: &LinkConfig) -> Result<Self, Error> {
        let link = Link::open(config)?;
        let socket = open_socket(&link.interface, link.local, &link.ports)?;
        let poller = Arc::new(Poller::new()?);
        poller.watch(&socket, 0)?;
        Ok(Self { poller, socket, link })
    }

    /// The largest UDP payload that the link takes; UDP sockets would cut a larger one into fragments.
    pub fn largest(&self) -> usize {
        self.link.largest
    }

    /// The frames that were not passed on.
    pub fn counters(&self) -> LinkCounters {
        self.link.counters
    }
}

/// Sends frames; what the interface does not take in [`TRIES`] is counted.
fn send_frames(socket: &Socket, link: &mut Link, frames: &[(Envelope, &[u8])]) -> Result<(), Error> {
    let fd = socket.as_raw_fd();
    let (mut rest, mut tries) = (frames, 0);
    while let [(first, _), ..] = rest {
        match mmsg::send(fd, true, rest) {
            Ok(sent) => (rest, tries) = (&rest[sent..], 0),
            Err(Errno::EINTR) => {}
            // No room: the other end of the link is busy.
            Err(Errno::ENOBUFS | Errno::EAGAIN) if tries < TRIES => {
                tries += 1;
                std::thread::yield_now();
            }
            Err(Errno::ENOBUFS | Errno::EAGAIN) => {
                link.counters.overrun += 1;
                (rest, tries) = (&rest[1..], 0);
            }
            Err(Errno::EMSGSIZE) => {
                link.counters.oversize += 1;
                rest = &rest[1..];
            }
            Err(Errno::ENETDOWN) => {
                link.remember(first.peer);
                rest = &rest[1..];
            }
            Err(error) => return Err(Error::io(format!("send on {}", link.interface.name), error)),
        }
    }
    Ok(())
}

impl Transport for Packet {
    fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        if ready.is_some_and(|ready| !ready.has(0)) {
            return Ok(());
        }
        let before = batch.len();
        match mmsg::receive_frames(self.socket.as_raw_fd(), HEADROOM - HEADERS, batch) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return Ok(()),
            Err(error) => return Err(Error::io(format!("receive on {}", self.link.interface.name), error)),
        }
        for (envelope, buffer) in batch.buffers().skip(before) {
            *envelope = self.link.look(buffer, *envelope).unwrap_or(Envelope::NONE);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let frames = self.link.frames(batch);
        send_frames(&self.socket, &mut self.link, &frames)?;
        drop(frames);
        batch.clear();
        Ok(())
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.link.undeliverable.pop_front()
    }

    fn dropped(&self) -> Option<u64> {
        socket_options::dropped(self.socket.as_raw_fd()).map(u64::from)
    }
}

fn open_socket(interface: &Interface, local: Ipv4Addr, ports: &[u16]) -> Result<Socket, Error> {
    let action = || format!("open a packet socket on {}", interface.name);
    let failed = |source: io::Error| Error::io(action(), source);
    let protocol = Protocol::from(i32::from((libc::ETH_P_IP as u16).to_be()));
    let socket =
        Socket::new(Domain::PACKET, Type::RAW, Some(protocol)).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Privilege { action: action() },
            _ => failed(source),
        })?;
    // Before it is bound it hears all interfaces.
    socket.attach_filter(&filter::NOTHING).map_err(failed)?;
    bind(socket.as_raw_fd(), &interface.link).map_err(|source| Error::io(action(), source))?;
    let mut batch = Batch::default();
    while mmsg::receive_frames(socket.as_raw_fd(), 0, &mut batch).is_ok() {
        batch.clear();
    }
    socket.attach_filter(&filter::to_ports(local, ports)).map_err(failed)?;
    bypass_queue(&socket).map_err(failed)?;
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    }
    Ok(socket)
}
