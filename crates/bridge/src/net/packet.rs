//! Datagrams in frames that are read from and written to an interface: one socket sees all ports, so that one system call takes
//! datagrams of all tags, and the kernel's IP and UDP layers are not passed.
//!
//! The ports are bound all the same, by sockets that take nothing: the kernel then neither answers that nobody listens nor queues.

use super::batch::{BATCH, Batch, Envelope, HEADROOM};
use super::bypass::bypass_queue;
use super::error::Error;
use super::filter;
use super::frame::{self, HEADERS, IP_HEADERS, Mac, Reject, Way};
use super::mmsg;
use super::neighbour::{Interface, Patience};
use super::poller::{Poller, Ready};
use super::transport::Transport;
use arrayvec::ArrayVec;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{bind, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tlplab_nettlp::Undeliverable;

/// What the socket holds until it is read.
const RECEIVE_BUFFER: usize = 8 << 20;
/// A peer that was not found is looked for again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How often a frame for which the interface has no room is tried, before it is lost.
const TRIES: u32 = 1000;
const REMEMBERED: usize = 64;

/// What a packet socket saw or was to send and did not pass on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Fragments of IP datagrams: NetTLP has none.
    pub fragments: u64,
    /// Headers whose lengths or checksum are wrong.
    pub malformed: u64,
    /// To be sent, but larger than the link takes.
    pub oversize: u64,
    /// To be sent, but the interface had no room for too long.
    pub overrun: u64,
}

/// Where a packet transport stands.
#[derive(Clone, Debug)]
pub struct PacketConfig {
    /// The interface; the one that has the address `local` if none is named.
    pub interface: Option<String>,
    /// The address here.
    pub local: Ipv4Addr,
    /// The UDP ports.
    pub ports: Vec<u16>,
    /// The addresses at the other end of the link to which datagrams go.
    pub peers: Vec<Ipv4Addr>,
}

/// A packet socket with the ports of one end of NetTLP.
pub struct Packet {
    poller: Arc<Poller>,
    socket: Socket,
    interface: Interface,
    local: Ipv4Addr,
    /// Ascending.
    ports: Vec<u16>,
    /// They hold the ports and take nothing.
    _reserved: Vec<Socket>,
    /// The largest UDP payload.
    largest: usize,
    peers: BTreeMap<Ipv4Addr, Peer>,
    undeliverable: VecDeque<(SocketAddrV4, Undeliverable)>,
    counters: PacketCounters,
}

struct Peer {
    mac: Option<Mac>,
    /// When it was looked for.
    asked: Instant,
}

impl Packet {
    /// Opens the socket and looks for the peers' Ethernet addresses; one that is not found is looked for again later.
    ///
    /// # Errors
    /// The privilege is missing, there is no such interface or address, or a port is taken.
    pub fn open(config: &PacketConfig) -> Result<Self, Error> {
        let mut ports = config.ports.clone();
        ports.sort_unstable();
        ports.dedup();
        let local = config.local;
        let interface = Interface::find(config.interface.as_deref(), local)?;
        let socket = open_socket(&interface, local, &ports)?;
        let _reserved = ports.iter().map(|&port| reserve(local, port)).collect::<Result<Vec<_>, _>>()?;
        let mut peers = BTreeMap::new();
        let mut mtu = usize::from(u16::MAX);
        for &peer in &config.peers {
            let mac = interface.resolve(local, peer, Patience::Some);
            mtu = mtu.min(path_mtu(local, peer)?);
            peers.insert(peer, Peer { mac, asked: Instant::now() });
        }
        let poller = Arc::new(Poller::new()?);
        poller.watch(&socket, 0)?;
        Ok(Self {
            poller,
            socket,
            interface,
            local,
            ports,
            _reserved,
            largest: mtu - IP_HEADERS,
            peers,
            undeliverable: VecDeque::new(),
            counters: PacketCounters::default(),
        })
    }

    /// The largest UDP payload that the link takes; UDP sockets would cut a larger one into fragments.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// What was not passed on.
    pub fn counters(&self) -> PacketCounters {
        self.counters
    }

    /// What a frame in a buffer of a batch is.
    fn look(&mut self, buffer: &[u8], frame: Envelope) -> Option<Envelope> {
        let datagram = match frame::parse(&buffer[frame.start..frame.start + frame.len]) {
            Ok(datagram) => datagram,
            Err(reject) => {
                match reject {
                    Reject::Fragment => self.counters.fragments += 1,
                    Reject::Malformed => self.counters.malformed += 1,
                    Reject::Other => {}
                }
                return None;
            }
        };
        // The filter said so already; what came before it was in place is not for us.
        if datagram.to != self.local || self.ports.binary_search(&datagram.to_port).is_err() {
            return None;
        }
        self.learn(datagram.from, datagram.from_mac);
        let (start, len) = (frame.start + datagram.start, datagram.len);
        let peer = SocketAddrV4::new(datagram.from, datagram.from_port);
        Some(Envelope { peer, port: datagram.to_port, start, len })
    }

    /// A frame says where a peer is. Whoever forges one must not turn what goes to the peer his way: once known, an address changes only
    /// if the kernel says so.
    fn learn(&mut self, from: Ipv4Addr, mac: Mac) {
        let Self { interface, peers, local, .. } = self;
        let Some(peer) = peers.get_mut(&from) else { return };
        match peer.mac {
            None => peer.mac = Some(mac),
            Some(known) if known != mac && peer.asked.elapsed() > LOOK_AGAIN => {
                peer.asked = Instant::now();
                peer.mac = interface.resolve(*local, from, Patience::None).or(peer.mac);
            }
            Some(_) => {}
        }
    }

    /// The Ethernet address of a peer, if it is known.
    fn mac(&mut self, to: Ipv4Addr) -> Option<Mac> {
        let Self { interface, peers, local, .. } = self;
        let peer = peers.get_mut(&to)?;
        if peer.mac.is_none() && peer.asked.elapsed() > LOOK_AGAIN {
            peer.asked = Instant::now();
            peer.mac = interface.resolve(*local, to, Patience::None);
        }
        peer.mac
    }

    fn way(&mut self, e: &Envelope) -> Option<Way> {
        let to_mac = self.mac(*e.peer.ip())?;
        let (from_mac, from, to) = (self.interface.mac, self.local, *e.peer.ip());
        Some(Way { from_mac, to_mac, from, to, from_port: e.port, to_port: e.peer.port() })
    }

    fn remember(&mut self, to: SocketAddrV4) {
        if self.undeliverable.len() < REMEMBERED {
            self.undeliverable.push_back((to, Undeliverable::HostUnreachable));
        }
    }

    fn send_frames(&mut self, frames: &[(Envelope, &[u8])]) -> Result<(), Error> {
        let fd = self.socket.as_raw_fd();
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
                    self.counters.overrun += 1;
                    (rest, tries) = (&rest[1..], 0);
                }
                Err(Errno::EMSGSIZE) => {
                    self.counters.oversize += 1;
                    rest = &rest[1..];
                }
                Err(Errno::ENETDOWN) => {
                    self.remember(first.peer);
                    rest = &rest[1..];
                }
                Err(error) => return Err(Error::io(format!("send on {}", self.interface.name), error)),
            }
        }
        Ok(())
    }
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
            Err(error) => return Err(Error::io(format!("receive on {}", self.interface.name), error)),
        }
        for (envelope, buffer) in batch.buffers().skip(before) {
            *envelope = self.look(buffer, *envelope).unwrap_or(Envelope::NONE);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut frames: ArrayVec<(Envelope, &[u8]), BATCH> = ArrayVec::new();
        for (e, buffer) in batch.buffers() {
            if e.len > self.largest {
                self.counters.oversize += 1;
                continue;
            }
            let Some(way) = self.way(e) else {
                self.remember(e.peer);
                continue;
            };
            let begin = e.start - HEADERS;
            let headers = buffer[begin..].first_chunk_mut().expect("there is room before the payload");
            frame::write(headers, &way, e.len);
            frames.push((*e, &buffer[begin..e.start + e.len]));
        }
        self.send_frames(&frames)?;
        drop(frames);
        batch.clear();
        Ok(())
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.undeliverable.pop_front()
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

/// Binds a port by a socket that takes nothing.
fn reserve(local: Ipv4Addr, port: u16) -> Result<Socket, Error> {
    let failed = |source| Error::io(format!("reserve UDP port {port}"), source);
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    socket.attach_filter(&filter::NOTHING).map_err(failed)?;
    let address = SocketAddrV4::new(local, port);
    socket.bind(&address.into()).map_err(|source| Error::bind(local, port, source))?;
    Ok(socket)
}

/// The largest IP datagram on the way to `peer`.
fn path_mtu(local: Ipv4Addr, peer: Ipv4Addr) -> Result<usize, Error> {
    let failed = |source: io::Error| Error::io(format!("reach {peer} from {local}"), source);
    let socket = UdpSocket::bind((local, 0)).map_err(failed)?;
    socket.connect((peer, 1)).map_err(failed)?;
    let mtu = nix::sys::socket::getsockopt(&socket, sockopt::IpMtu);
    mtu.map(|mtu| mtu as usize).map_err(|source| failed(source.into()))
}
