//! A bad network on purpose: a proxy between a device and its adapter that loses, doubles, reorders, cuts off, damages and delays
//! datagrams.
//!
//! It has two addresses. The device takes the first for the adapter's, the adapter takes the second for the device's; ports stay as
//! they are, since they are part of NetTLP.
//!
//! ```text
//! device ◀──▶ front │ proxy │ back ◀──▶ adapter
//! ```

use super::batch::Batch;
use super::drive::Stop;
use super::error::Error;
use super::poller::{Poller, Ready};
use super::sockets::allow_files;
use super::transport::Transport;
use super::udp::Udp;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tlplab_device::random::Random;
use tlplab_nettlp::{MAX_DATAGRAM, Outgoing};

/// The impairments of datagrams, each with this many chances in a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// It does not arrive.
    pub loss: u32,
    /// It arrives twice.
    pub duplicate: u32,
    /// It arrives behind up to eight later ones.
    pub reorder: u32,
    /// It arrives without its end, or without anything.
    pub truncate: u32,
    /// It arrives with one of its bits turned, under a checksum that fits.
    pub corrupt: u32,
    /// The delay of everything that arrives, whatever else happens to it.
    pub delay: Duration,
}

/// The counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounters {
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that left.
    pub sent: u64,
    /// That were lost.
    pub lost: u64,
    /// That were doubled.
    pub duplicated: u64,
    /// That were held back.
    pub reordered: u64,
    /// That were cut off.
    pub truncated: u64,
    /// That were damaged.
    pub corrupted: u64,
}

impl ProxyCounters {
    /// Both directions together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (mine, theirs) = (self.rows(), other.rows());
        let [received, sent, lost, duplicated, reordered, truncated, corrupted] =
            std::array::from_fn(|at| mine[at].1 + theirs[at].1);
        Self { received, sent, lost, duplicated, reordered, truncated, corrupted }
    }

    /// Every counter with its name, for reports.
    pub fn rows(&self) -> [(&'static str, u64); 7] {
        let Self { received, sent, lost, duplicated, reordered, truncated, corrupted } = *self;
        [
            ("received", received),
            ("sent", sent),
            ("lost", lost),
            ("duplicated", duplicated),
            ("reordered", reordered),
            ("truncated", truncated),
            ("corrupted", corrupted),
        ]
    }
}

/// A datagram without addresses.
type Bare = (u16, Vec<u8>);

const MILLION: u64 = 1_000_000;
/// A datagram is held back until so many others have passed at most, or until this time.
const BEHIND: u64 = 8;
const HELD: Duration = Duration::from_millis(1);

/// One direction.
struct Channel {
    impairment: Impairment,
    random: Random,
    counters: ProxyCounters,
    /// The datagrams held back, with the number of the datagram behind which each leaves.
    held: VecDeque<(u64, Bare)>,
    /// The datagrams that leave when their time has come, in order.
    leaving: VecDeque<(Instant, Bare)>,
}

impl Channel {
    fn new(impairment: Impairment, random: Random) -> Self {
        let counters = ProxyCounters::default();
        Self { impairment, random, counters, held: VecDeque::new(), leaving: VecDeque::new() }
    }

    fn happens(&mut self, chances: u32) -> bool {
        self.random.below(MILLION) < u64::from(chances)
    }

    fn pass(&mut self, now: Instant, port: u16, payload: &[u8]) {
        let Impairment { loss, duplicate, reorder, truncate, corrupt, .. } = self.impairment;
        self.counters.received += 1;
        let mut copies = 1;
        if self.happens(loss) {
            self.counters.lost += 1;
            copies = 0;
        } else if self.happens(duplicate) {
            self.counters.duplicated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let mut payload = payload.to_vec();
            if self.happens(truncate) {
                self.counters.truncated += 1;
                payload.truncate(self.random.below(payload.len().max(1) as u64) as usize);
            }
            if self.happens(corrupt) && !payload.is_empty() {
                self.counters.corrupted += 1;
                let bit = self.random.below(8 * payload.len() as u64) as usize;
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            if self.happens(reorder) {
                self.counters.reordered += 1;
                let behind = self.counters.received + 1 + self.random.below(BEHIND);
                self.held.push_back((behind, (port, payload)));
            } else {
                self.leaving.push_back((now + self.impairment.delay, (port, payload)));
            }
        }
        let passed = self.counters.received;
        self.release(now, |behind| behind <= passed);
    }

    /// Lets go of what is held back and fulfils the condition.
    fn release(&mut self, now: Instant, condition: impl Fn(u64) -> bool) {
        let (free, held) = self.held.drain(..).partition::<VecDeque<_>, _>(|(behind, _)| condition(*behind));
        self.held = held;
        let due = now + self.impairment.delay;
        self.leaving.extend(free.into_iter().map(|(_, datagram)| (due, datagram)));
    }

    /// The next datagram whose time has come.
    fn next(&mut self, now: Instant) -> Option<Bare> {
        let due = self.leaving.front().is_some_and(|(due, _)| *due <= now);
        if due { self.leaving.pop_front().map(|(_, datagram)| datagram) } else { None }
    }

    /// The time at which work is due without a datagram.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let due = self.leaving.front().map(|(due, _)| *due);
        let held = (!self.held.is_empty()).then(|| now + HELD);
        [due, held].into_iter().flatten().min()
    }
}

/// One of its two addresses.
struct Side {
    udp: Udp,
    peer: Ipv4Addr,
    /// The channel to the peer.
    towards: Channel,
}

/// The proxy.
pub struct Proxy {
    /// At the device, at the adapter.
    sides: [Side; 2],
    poller: Arc<Poller>,
    ready: Ready,
    inner: Ready,
    batch: Batch,
}

/// The addresses of the proxy and of its two peers.
#[derive(Clone, Copy, Debug)]
pub struct ProxyAddresses {
    /// The proxy's address that the device knows.
    pub front: Ipv4Addr,
    /// The device's.
    pub device: Ipv4Addr,
    /// The proxy's address that the adapter knows.
    pub back: Ipv4Addr,
    /// The adapter's.
    pub adapter: Ipv4Addr,
}

impl Proxy {
    /// Binds `ports` at both addresses. The same seed makes the same things happen to the first, second, third datagram of a direction.
    ///
    /// # Errors
    /// An address is not here, a port is taken.
    pub fn open(
        addresses: ProxyAddresses,
        ports: &[u16],
        impairment: Impairment,
        seed: u64,
    ) -> Result<Self, Error> {
        let ProxyAddresses { front, device, back, adapter } = addresses;
        allow_files(2 * ports.len());
        let side = |local, peer, name| -> Result<Side, Error> {
            let towards = Channel::new(impairment, Random::keyed(seed, name, "impairment"));
            Ok(Side { udp: Udp::open(local, ports.iter().copied(), None)?, peer, towards })
        };
        let sides = [side(front, device, "to the device")?, side(back, adapter, "to the adapter")?];
        let poller = Arc::new(Poller::new()?);
        for (number, side) in (0..).zip(&sides) {
            poller.watch(&**side.udp.poller(), number)?;
        }
        let (ready, inner, batch) = (Ready::default(), Ready::default(), Batch::default());
        Ok(Self { sides, poller, ready, inner, batch })
    }

    /// Datagrams that the kernel dropped before the proxy saw them: see [`Transport::dropped`].
    pub fn dropped(&self) -> Option<u64> {
        self.sides.iter().map(|side| side.udp.dropped()).sum()
    }

    /// The counters so far of datagrams to the device, and to the adapter.
    pub fn counters(&self) -> [ProxyCounters; 2] {
        self.sides.each_ref().map(|side| side.towards.counters)
    }

    /// Passes datagrams on until `stop`; what happened to them in both directions together.
    ///
    /// # Errors
    /// A socket breaks.
    pub fn run(mut self, stop: &Stop) -> Result<ProxyCounters, Error> {
        stop.wakes(&self.poller);
        while !stop.is_stopped() {
            self.turn(None)?;
        }
        let [device, adapter] = self.counters();
        Ok(device.plus(adapter))
    }

    /// Passes datagrams on for as long as `wall`.
    ///
    /// # Errors
    /// A socket breaks.
    pub fn serve(&mut self, wall: Duration) -> Result<(), Error> {
        let end = Instant::now() + wall;
        while Instant::now() < end {
            self.turn(Some(end))?;
        }
        Ok(())
    }

    /// Waits for datagrams, or for what is held back, at most until then; what may leave does.
    fn turn(&mut self, until: Option<Instant>) -> Result<(), Error> {
        let now = Instant::now();
        let deadlines = self.sides.iter().filter_map(|side| side.towards.deadline(now));
        let deadline = deadlines.chain(until).min();
        self.poller.wait(&mut self.ready, deadline)?;
        let now = Instant::now();
        if self.ready.sources().is_empty() {
            self.sides.iter_mut().for_each(|side| side.towards.release(now, |_| true));
        }
        for (number, other) in [(0, 1), (1, 0)] {
            if self.ready.has(number as u64) {
                self.receive(now, number, other)?;
            }
        }
        self.sides.iter_mut().try_for_each(|side| side.send(now, &mut self.batch))
    }

    fn receive(&mut self, now: Instant, from: usize, to: usize) -> Result<(), Error> {
        let Self { sides, inner: ready, batch, .. } = self;
        sides[from].udp.poller().wait(ready, Some(now))?;
        batch.clear();
        sides[from].udp.receive(Some(ready), batch)?;
        let peer = sides[from].peer;
        let whole = |payload: &[u8]| payload.len() <= MAX_DATAGRAM;
        for datagram in batch.datagrams().filter(|d| *d.from.ip() == peer && whole(d.payload)) {
            sides[to].towards.pass(now, datagram.port, datagram.payload);
        }
        Ok(())
    }
}

impl Side {
    /// Sends what may leave by now.
    fn send(&mut self, now: Instant, batch: &mut Batch) -> Result<(), Error> {
        batch.clear();
        while let Some((port, payload)) = self.towards.next(now) {
            batch.push_with(|buffer| {
                buffer[..payload.len()].copy_from_slice(&payload);
                Some(Outgoing { to: SocketAddrV4::new(self.peer, port), from_port: port, len: payload.len() })
            });
            self.towards.counters.sent += 1;
            if batch.is_full() {
                self.udp.send(batch)?;
            }
        }
        self.udp.send(batch)
    }
}
