//! Datagrams over the kernel's UDP: a socket per port, since NetTLP's ports tell the tags. Who serves several peers has one for each of
//! them at each port, since what one of them sends must not fill what holds the others' datagrams.
//!
//! Sleeping, `epoll` says which sockets have something; each of those is emptied with `recvmmsg`. What goes is grouped by port and
//! sent with `sendmmsg`.
//!
//! The system's errors about a datagram never end the transport, since others can cause them: a sender with source port 0, whom
//! nothing can be answered, or a forged ICMP message. Such a datagram is lost, as the network loses them.

use super::batch::{BATCH, Batch, Envelope};
use super::error::Error;
use super::mmsg;
use super::poller::{Poller, Ready};
use super::socket_options;
use super::sockets::{SLICE, allow_files, open_group, open_socket};
use super::transport::Transport;
use arrayvec::ArrayVec;
use nix::errno::Errno;
use socket2::Socket;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;
use tlplab_nettlp::Undeliverable;

/// The number of failed deliveries that are remembered; more of them at once are not news.
const REMEMBERED: usize = 64;

struct Port {
    number: u16,
    fd: RawFd,
    /// The number of datagrams that may be expected at once: after the count of the last time.
    lately: usize,
    /// Closed with this, unless somebody else owns it.
    owned: Option<Socket>,
}

/// UDP sockets, at least one per port.
///
/// With a peer they are connected to it: what others send is not seen. Without one they hear everybody. What the network says about those
/// who were sent something comes back by [`Transport::undeliverable`].
pub struct Udp {
    poller: Arc<Poller>,
    /// Sorted by number; the poller knows each by its place here. Any of a number serves to send.
    ports: Vec<Port>,
    peer: Option<Ipv4Addr>,
    undeliverable: VecDeque<(SocketAddrV4, Undeliverable)>,
    unsent: u64,
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
        Self::own(ports, peer, |number| Ok([open_socket(local, number, peer, false)?]))
    }

    /// Binds `ports` at `local`, each by a socket for every one of `peers` and one for all others: a flood of one of them takes nobody
    /// else's room.
    ///
    /// # Errors
    /// As [`open`](Self::open); as many sockets may be more than the system allows.
    pub fn open_for(
        local: Ipv4Addr,
        ports: impl IntoIterator<Item = u16>,
        peers: &[Ipv4Addr],
    ) -> Result<Self, Error> {
        let ports: Vec<u16> = ports.into_iter().collect();
        allow_files(ports.len() * (1 + peers.len()));
        Self::own(ports, None, |number| open_group(local, number, peers))
    }

    /// The sockets that `open` makes of the ports.
    fn own<S: IntoIterator<Item = Socket>>(
        ports: impl IntoIterator<Item = u16>,
        peer: Option<Ipv4Addr>,
        open: impl Fn(u16) -> Result<S, Error>,
    ) -> Result<Self, Error> {
        let mut numbers: Vec<u16> = ports.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let poller = Arc::new(Poller::new()?);
        let mut ports = Vec::with_capacity(numbers.len());
        for number in numbers {
            for socket in open(number)? {
                poller.watch(&socket, ports.len() as u64)?;
                ports.push(Port { number, fd: socket.as_raw_fd(), lately: 1, owned: Some(socket) });
            }
        }
        Ok(Self { poller, ports, peer, undeliverable: VecDeque::new(), unsent: 0 })
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
            ports.push(Port { number, fd: socket.as_raw_fd(), lately: 1, owned: None });
        }
        debug_assert!(ports.is_sorted_by_key(|port| port.number), "they are searched by number");
        Ok(Self { poller, ports, peer: Some(peer), undeliverable: VecDeque::new(), unsent: 0 })
    }

    /// Datagrams that the system did not take.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Takes what the socket at `place` holds into `batch`: as many as have come at once lately, up to `most`. What is left keeps the poller ready.
    fn receive_at(&mut self, place: usize, most: usize, batch: &mut Batch) -> Result<(), Error> {
        let Port { number, fd, lately, .. } = self.ports[place];
        let most = most.min(lately);
        let came = match most {
            1 if !batch.is_full() => mmsg::receive_one(fd, number, None, false, batch).map(|()| 1),
            _ => mmsg::receive(fd, number, most, batch),
        };
        match came {
            Ok(came) => {
                // As many as were wanted: there may be more.
                self.ports[place].lately = (if came < most { came } else { 2 * lately }).clamp(1, BATCH);
                Ok(())
            }
            Err(error) => self.failed(place, error),
        }
    }

    /// A call at the socket at `place` said this.
    fn failed(&mut self, place: usize, error: Errno) -> Result<(), Error> {
        let Port { number, fd, .. } = self.ports[place];
        let fate = Fate::of(error, || format!("receive at UDP port {number}"))?;
        match self.peer {
            Some(peer) => self.remember(SocketAddrV4::new(peer, number), &fate),
            None if error != Errno::EAGAIN => self.take_errors(fd),
            None => {}
        }
        Ok(())
    }

    /// The errors of datagrams that a socket without a peer has sent.
    fn take_errors(&mut self, fd: RawFd) {
        mmsg::take_errors(fd, |to, error| {
            if let Ok(fate) = Fate::of(error, String::new) {
                self.remember(to, &fate);
            }
        });
    }

    fn remember(&mut self, to: SocketAddrV4, fate: &Fate) {
        if let Fate::Undeliverable(why) = *fate
            && self.undeliverable.len() < REMEMBERED
        {
            self.undeliverable.push_back((to, why));
        }
    }

    /// Sends datagrams that leave by one port.
    fn send_from(&mut self, port: u16, datagrams: &[(Envelope, &[u8])]) -> Result<(), Error> {
        let Ok(place) = self.ports.binary_search_by_key(&port, |port| port.number) else {
            return Err(Error::Setup(format!("UDP port {port} was not opened")));
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
                    let fate = Fate::of(error, || format!("send from UDP port {port} to {}", first.peer))?;
                    if self.peer.is_some() || tried {
                        self.remember(first.peer, &fate);
                    }
                    if self.peer.is_none() {
                        self.take_errors(fd);
                    }
                    if tried {
                        self.unsent += 1;
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
        let mut found = Ready::default();
        let ready = match (ready, self.ports.len()) {
            (Some(ready), _) => ready,
            (None, 0) => return Ok(()),
            (None, 1) => return self.receive_at(0, BATCH, batch),
            // To ask which of many sockets have something costs less than to ask each, and goes round among them.
            (None, _) => {
                self.poller.wait(&mut found, Some(Instant::now()))?;
                &found
            }
        };
        let (sources, ports) = (ready.sources(), 0..self.ports.len() as u64);
        for &source in sources.iter().filter(|&source| ports.contains(source)) {
            self.receive_at(source as usize, BATCH / sources.len(), batch)?;
        }
        Ok(())
    }

    fn receive_one(&mut self, until: Option<Instant>, batch: &mut Batch) -> Result<bool, Error> {
        let (Some(peer), [port]) = (self.peer, &self.ports[..]) else { return Ok(false) };
        // Whoever lends a socket has limits of his own.
        let limited = port.owned.is_some();
        if !limited || batch.is_full() || until.is_some_and(|until| until < Instant::now() + SLICE) {
            return Ok(false);
        }
        let from = SocketAddrV4::new(peer, port.number);
        if let Err(error) = mmsg::receive_one(port.fd, port.number, Some(from), true, batch) {
            self.failed(0, error)?;
        }
        Ok(true)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        if batch.len() == 1 {
            if let Some(alone) = batch.iter().next() {
                self.send_from(alone.0.port, &[alone])?;
            }
            batch.clear();
            return Ok(());
        }
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

    fn dropped(&self) -> Option<u64> {
        self.ports.iter().map(|port| socket_options::dropped(port.fd).map(u64::from)).sum()
    }
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

/// The meaning of a socket's error for the datagram at hand, or for one before it.
enum Fate {
    /// It is lost, or there was none.
    Lost,
    /// The peer cannot be reached.
    Undeliverable(Undeliverable),
}

impl Fate {
    /// # Errors
    /// The socket is none any more; `action` says what was tried.
    fn of(error: Errno, action: impl FnOnce() -> String) -> Result<Self, Error> {
        match error {
            Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT => Err(Error::io(action(), error)),
            Errno::ECONNREFUSED => Ok(Self::Undeliverable(Undeliverable::PortRefused)),
            // Said by this machine, of this datagram: no room, a receiver that cannot be, a size that does not pass.
            Errno::EAGAIN
            | Errno::EINTR
            | Errno::ENOBUFS
            | Errno::ENOMEM
            | Errno::EINVAL
            | Errno::EMSGSIZE => Ok(Self::Lost),
            // Said by the network, in one of the many ways in which ICMP has it, or by a firewall.
            _ => Ok(Self::Undeliverable(Undeliverable::HostUnreachable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use tlplab_nettlp::Outgoing;

    /// An address of this test alone: other tests, and other runs of this one, have theirs.
    fn address(last: u8) -> Ipv4Addr {
        let id = std::process::id();
        Ipv4Addr::new(127, 96 + (id >> 8 & 31) as u8, id as u8, last)
    }

    #[test]
    fn undeliverable_datagrams_are_lost_without_an_error() {
        let local = address(1);
        let mut udp = Udp::open(local, [0x3000], None).unwrap();
        let hears = UdpSocket::bind((local, 0)).unwrap();
        hears.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut batch = Batch::default();
        // Nobody can be at port 0, as a forged source says; this address has no way to one that is not on the loopback interface.
        let port = hears.local_addr().unwrap().port();
        for (ip, to) in [(local, 0), (Ipv4Addr::new(192, 0, 2, 1), 1), (local, port)] {
            batch.push_with(|buffer| {
                buffer[0] = 7;
                Some(Outgoing { to: SocketAddrV4::new(ip, to), from_port: 0x3000, len: 1 })
            });
        }
        udp.send(&mut batch).unwrap();
        assert_eq!((hears.recv(&mut [0; 8]).unwrap(), udp.unsent()), (1, 2));
    }

    #[test]
    fn a_port_that_is_never_empty_does_not_silence_the_others() {
        let local = address(2);
        let mut udp = Udp::open(local, 0x3000..0x3020, None).unwrap();
        let peer = UdpSocket::bind((local, 0)).unwrap();
        for _ in 0..3 * BATCH {
            for port in 0x3000..0x3010 {
                peer.send_to(b"flood", (local, port)).unwrap();
            }
        }
        peer.send_to(b"heard", (local, 0x301f)).unwrap();
        let mut batch = Batch::default();
        let heard = (0..4).any(|_| {
            batch.clear();
            udp.receive(None, &mut batch).unwrap();
            batch.datagrams().any(|datagram| datagram.payload == b"heard")
        });
        assert!(heard, "within four batches");
    }

    /// Nobody reads meanwhile: what one sends fills a socket, and what the others send is there nevertheless.
    #[test]
    fn a_flood_fills_its_own_socket_only() {
        let [local, floods, works, stranger] = [6, 7, 8, 9].map(address);
        let mut udp = Udp::open_for(local, [0x3000], &[works, floods]).unwrap();
        let from = |ip: Ipv4Addr| UdpSocket::bind((ip, 0)).unwrap();
        for sender in [from(floods), from(stranger)] {
            (0..10_000).for_each(|_| _ = sender.send_to(&[0; 1000], (local, 0x3000)).unwrap());
        }
        from(works).send_to(b"heard", (local, 0x3000)).unwrap();
        let (mut batch, mut came, mut heard) = (Batch::default(), 0, false);
        loop {
            batch.clear();
            udp.receive(None, &mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            came += batch.len();
            heard |= batch.datagrams().any(|d| *d.from.ip() == works && d.payload == b"heard");
        }
        assert!(heard && came < 20_000, "{came} of 20 001 found room, the last one: {heard}");
        assert_eq!(udp.dropped(), Some(20_001 - came as u64), "what the kernel dropped");
        // Nobody else may join a port that is shared like this.
        let again = Udp::open_for(local, [0x3000], &[works, floods]).map(drop);
        assert!(matches!(again, Err(Error::InUse { port: 0x3000, .. })), "{again:?}");
        assert!(Udp::open(local, [0x3000], None).is_err());
    }

    /// Without a connection the kernel reports it only if asked, and without the address of the datagram.
    #[test]
    fn an_address_without_a_listener_is_named() {
        let (local, absent, present) = (address(3), address(4), address(5));
        names_whoever_does_not_listen(Udp::open(local, [0x3000, 0x3001], None).unwrap(), absent, present);
        let mine = Udp::open_for(local, [0x3000, 0x3001], &[absent, present]).unwrap();
        names_whoever_does_not_listen(mine, absent, present);
    }

    fn names_whoever_does_not_listen(mut udp: Udp, absent: Ipv4Addr, present: Ipv4Addr) {
        let hears = UdpSocket::bind((present, 0x3001)).unwrap();
        let mut batch = Batch::default();
        for (to, port) in [(absent, 0x3000), (present, 0x3001), (absent, 0x3001)] {
            batch.push_with(|_| Some(Outgoing::same_port(to, port, 1)));
        }
        udp.send(&mut batch).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut told = Vec::new();
        while told.len() < 2 && std::time::Instant::now() < until {
            udp.receive(None, &mut batch).unwrap();
            told.extend(std::iter::from_fn(|| udp.undeliverable()));
        }
        told.sort_by_key(|(to, _)| to.port());
        let refused = |port| (SocketAddrV4::new(absent, port), Undeliverable::PortRefused);
        assert_eq!(told, [refused(0x3000), refused(0x3001)]);
        assert_eq!((hears.recv(&mut [0; 8]).unwrap(), udp.unsent()), (1, 0));
    }

    #[test]
    fn every_kind_of_icmp_error_is_news_of_the_peer() {
        for error in [Errno::ENOPROTOOPT, Errno::EPROTO, Errno::ENONET, Errno::EOPNOTSUPP, Errno::EPERM] {
            let fate = Fate::of(error, String::new);
            assert!(matches!(fate, Ok(Fate::Undeliverable(Undeliverable::HostUnreachable))), "{error}");
        }
        assert!(Fate::of(Errno::EBADF, String::new).is_err());
    }
}
