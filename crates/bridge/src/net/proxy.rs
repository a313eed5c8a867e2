//! A bad network on purpose: a proxy between a device and its adapter that loses, doubles, reorders and cuts off datagrams.
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
use super::transport::Transport;
use super::udp::Udp;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tlplab_device::random::Random;
use tlplab_nettlp::{MAX_DATAGRAM, Outgoing};

/// What happens to datagrams, each with this many chances in a million.
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
}

/// What happened.
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
    passed: u64,
    /// What is held back, with the number of the datagram behind which it leaves.
    held: VecDeque<(u64, Bare)>,
    leaving: VecDeque<Bare>,
}

impl Channel {
    fn new(impairment: Impairment, random: Random) -> Self {
        Self { impairment, random, passed: 0, held: VecDeque::new(), leaving: VecDeque::new() }
    }

    fn happens(&mut self, chances: u32) -> bool {
        self.random.below(MILLION) < u64::from(chances)
    }

    fn pass(&mut self, port: u16, payload: &[u8], counters: &mut ProxyCounters) {
        let Impairment { loss, duplicate, reorder, truncate } = self.impairment;
        counters.received += 1;
        self.passed += 1;
        let mut copies = 1;
        if self.happens(loss) {
            counters.lost += 1;
            copies = 0;
        } else if self.happens(duplicate) {
            counters.duplicated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let mut payload = payload.to_vec();
            if self.happens(truncate) {
                counters.truncated += 1;
                payload.truncate(self.random.below(payload.len().max(1) as u64) as usize);
            }
            if self.happens(reorder) {
                counters.reordered += 1;
                let behind = self.passed + 1 + self.random.below(BEHIND);
                self.held.push_back((behind, (port, payload)));
            } else {
                self.leaving.push_back((port, payload));
            }
        }
        let passed = self.passed;
        self.release(|behind| behind <= passed);
    }

    /// Lets go of what is held back and fulfils the condition.
    fn release(&mut self, condition: impl Fn(u64) -> bool) {
        let (free, held) = self.held.drain(..).partition::<VecDeque<_>, _>(|(behind, _)| condition(*behind));
        self.held = held;
        self.leaving.extend(free.into_iter().map(|(_, datagram)| datagram));
    }
}

/// One of its two addresses.
struct Side {
    udp: Udp,
    peer: Ipv4Addr,
    /// What goes to the peer.
    towards: Channel,
}

/// The proxy.
pub struct Proxy {
    sides: [Side; 2],
    poller: Arc<Poller>,
    counters: ProxyCounters,
}

/// Who the proxy is for whom.
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
    /// Binds `ports` at both addresses. The same seed makes the same things happen to the same datagrams.
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
        let side = |local, peer, name| -> Result<Side, Error> {
            let towards = Channel::new(impairment, Random::keyed(seed, name, "impairment"));
            Ok(Side { udp: Udp::open(local, ports.iter().copied(), None)?, peer, towards })
        };
        let sides = [side(front, device, "to the device")?, side(back, adapter, "to the adapter")?];
        let poller = Arc::new(Poller::new()?);
        for (number, side) in (0..).zip(&sides) {
            poller.watch(&**side.udp.poller(), number)?;
        }
        Ok(Self { sides, poller, counters: ProxyCounters::default() })
    }

    /// Passes datagrams on until `stop`; what happened to them.
    ///
    /// # Errors
    /// A socket breaks.
    pub fn run(mut self, stop: &Stop) -> Result<ProxyCounters, Error> {
        stop.wakes(&self.poller);
        let (mut ready, mut inner, mut batch) = (Ready::default(), Ready::default(), Batch::default());
        while !stop.is_stopped() {
            let holds = self.sides.iter().any(|side| !side.towards.held.is_empty());
            self.poller.wait(&mut ready, holds.then(|| Instant::now() + HELD))?;
            if ready.sources().is_empty() {
                self.sides.iter_mut().for_each(|side| side.towards.release(|_| true));
            }
            for (number, other) in [(0, 1), (1, 0)] {
                if ready.has(number as u64) {
                    self.receive(number, other, &mut inner, &mut batch)?;
                }
            }
            for side in &mut self.sides {
                self.counters.sent += side.send(&mut batch)?;
            }
        }
        Ok(self.counters)
    }

    fn receive(&mut self, from: usize, to: usize, ready: &mut Ready, batch: &mut Batch) -> Result<(), Error> {
        let Self { sides, counters, .. } = self;
        sides[from].udp.poller().wait(ready, Some(Instant::now()))?;
        batch.clear();
        sides[from].udp.receive(Some(ready), batch)?;
        let peer = sides[from].peer;
        let whole = |payload: &[u8]| payload.len() <= MAX_DATAGRAM;
        for datagram in batch.datagrams().filter(|d| *d.from.ip() == peer && whole(d.payload)) {
            sides[to].towards.pass(datagram.port, datagram.payload, counters);
        }
        Ok(())
    }
}

impl Side {
    fn send(&mut self, batch: &mut Batch) -> Result<u64, Error> {
        let mut sent = 0;
        batch.clear();
        while let Some((port, payload)) = self.towards.leaving.pop_front() {
            batch.push_with(|buffer| {
                buffer[..payload.len()].copy_from_slice(&payload);
                Some(Outgoing { to: SocketAddrV4::new(self.peer, port), from_port: port, len: payload.len() })
            });
            sent += 1;
            if batch.is_full() {
                self.udp.send(batch)?;
            }
        }
        self.udp.send(batch)?;
        Ok(sent)
    }
}
