//! The common part of packet and XDP sockets: UDP datagrams in Ethernet frames, to and from the ports of one end of NetTLP.
//!
//! The ports are bound all the same, by sockets that take nothing: no other program gets them, and where frames reach the kernel's UDP layer,
//! it neither answers that nobody listens nor queues.

use super::batch::{BATCH, Batch, Envelope};
use super::error::Error;
use super::filter;
use super::frame::{self, HEADERS, IP_HEADERS, Mac, Reject, Way};
use super::neighbour::{Interface, Patience};
use arrayvec::ArrayVec;
use nix::sys::socket::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};
use tlplab_nettlp::Undeliverable;

/// A peer that was not found is looked for again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const REMEMBERED: usize = 64;
/// The number of attempts with a frame for which the interface has no room, before it is lost.
pub(super) const TRIES: u32 = 1000;

/// The frames that a socket received or was to send and did not pass on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Fragments of IP datagrams: NetTLP has none.
    pub fragments: u64,
    /// Headers whose lengths or checksum are wrong.
    pub malformed: u64,
    /// To be sent, but larger than the link takes.
    pub oversize: u64,
    /// To be sent, but the interface had no room for too long.
    pub overrun: u64,
}

/// The place of a transport of frames.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The interface; the one that has the address `local` if none is named.
    pub interface: Option<String>,
    /// The address here.
    pub local: Ipv4Addr,
    /// The UDP ports.
    pub ports: Vec<u16>,
    /// The addresses at the other end of the link to which datagrams go.
    pub peers: Vec<Ipv4Addr>,
}

/// An interface with ports at one address of it, and the peers behind it.
pub(super) struct Link {
    pub(super) interface: Interface,
    pub(super) local: Ipv4Addr,
    /// Ascending.
    pub(super) ports: Vec<u16>,
    /// The largest UDP payload.
    pub(super) largest: usize,
    pub(super) counters: LinkCounters,
    pub(super) undeliverable: VecDeque<(SocketAddrV4, Undeliverable)>,
    peers: BTreeMap<Ipv4Addr, Peer>,
    /// They hold the ports and take nothing.
    _reserved: Vec<Socket>,
}

struct Peer {
    mac: Option<Mac>,
    /// The time of the request for it.
    asked: Instant,
}

impl Link {
    /// Binds the ports and looks for the peers' Ethernet addresses; one that is not found is looked for again later.
    ///
    /// # Errors
    /// There is no such interface or address, or a port is taken.
    pub(super) fn open(config: &LinkConfig) -> Result<Self, Error> {
        let mut ports = config.ports.clone();
        ports.sort_unstable();
        ports.dedup();
        let local = config.local;
        let interface = Interface::find(config.interface.as_deref(), local)?;
        if interface.loopback {
            return Err(Error::Setup(format!(
                "packet and XDP sockets do not work on {}: the kernel drops frames from loopback addresses that did not pass its own network stack; use `--transport udp`, or addresses of an Ethernet interface",
                interface.name
            )));
        }
        let _reserved = ports.iter().map(|&port| reserve(local, port)).collect::<Result<Vec<_>, _>>()?;
        let mut peers = BTreeMap::new();
        let mut mtu = usize::from(u16::MAX);
        for &peer in &config.peers {
            let mac = interface.resolve(local, peer, Patience::Some);
            mtu = mtu.min(path_mtu(local, peer)?);
            peers.insert(peer, Peer { mac, asked: Instant::now() });
        }
        let (counters, undeliverable) = (LinkCounters::default(), VecDeque::new());
        Ok(Self {
            interface,
            local,
            ports,
            largest: mtu - IP_HEADERS,
            counters,
            undeliverable,
            peers,
            _reserved,
        })
    }

    /// The content of a frame in a buffer of a batch.
    pub(super) fn look(&mut self, buffer: &[u8], frame: Envelope) -> Option<Envelope> {
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

    pub(super) fn remember(&mut self, to: SocketAddrV4) {
        if self.undeliverable.len() < REMEMBERED {
            self.undeliverable.push_back((to, Undeliverable::HostUnreachable));
        }
    }

    /// Writes the headers of what is to be sent and gives the frames; what cannot be sent is counted and left out.
    pub(super) fn frames<'a>(&mut self, batch: &'a mut Batch) -> ArrayVec<(Envelope, &'a [u8]), BATCH> {
        let mut frames = ArrayVec::new();
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
        frames
    }
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
