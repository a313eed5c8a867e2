//! A network in virtual time for tests: engines with addresses, and a wire between them that may lose, double, delay, cut and damage datagrams.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::Random;
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::HEADER_BYTES;

/// Somebody with an address.
pub(crate) trait Node {
    fn address(&self) -> Ipv4Addr;
    fn engine(&mut self) -> &mut dyn Engine;
    /// Something may have happened.
    fn turn(&mut self, now: Time);
    /// The time between two datagrams that it sends.
    fn pace(&self) -> Duration {
        Duration::ZERO
    }
}

/// What the wire does to datagrams, each in so many of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Impairment {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) cut: u64,
    /// One to three bits of the TLP are turned. (No digest covers what stands before it: a copy whose number is damaged looks new.)
    pub(crate) damaged: u64,
    /// Every datagram takes a time up to this more, so that they overtake each other.
    pub(crate) jitter: Duration,
}

struct Flying {
    from: SocketAddrV4,
    to: SocketAddrV4,
    bytes: Vec<u8>,
}

pub(crate) struct Network {
    pub(crate) now: Time,
    impairment: Impairment,
    random: Random,
    flying: BTreeMap<(Time, u64), Flying>,
    next: u64,
    may_send: BTreeMap<Ipv4Addr, Time>,
}

/// The way through the wire.
const FLIGHT: Duration = Duration::from_us(5);

impl Network {
    pub(crate) fn new(seed: u64, impairment: Impairment) -> Self {
        Self {
            now: Time::ZERO,
            impairment,
            random: Random::keyed(seed, "network", "impairment"),
            flying: BTreeMap::new(),
            next: 0,
            may_send: BTreeMap::new(),
        }
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        self.random.below(1000) < of_thousand
    }

    /// Puts a datagram on the wire.
    pub(crate) fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        if self.chance(self.impairment.lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance(self.impairment.doubled));
        for _ in 0..copies {
            let cut = self.chance(self.impairment.cut);
            let len = if cut { self.random.below(bytes.len() as u64) as usize } else { bytes.len() };
            let jitter = match self.impairment.jitter.as_fs() {
                0 => Duration::ZERO,
                most => Duration::from_fs(self.random.below(most)),
            };
            let at = self.now + FLIGHT + jitter;
            let mut bytes = bytes[..len].to_vec();
            if bytes.len() > HEADER_BYTES && self.chance(self.impairment.damaged) {
                let tlp = &mut bytes[HEADER_BYTES..];
                for _ in 0..=self.random.below(3) {
                    let bit = self.random.below(8 * tlp.len() as u64) as usize;
                    tlp[bit / 8] ^= 1 << (bit % 8);
                }
            }
            self.flying.insert((at, self.next), Flying { from, to, bytes });
            self.next += 1;
        }
    }

    /// Everything that happens until `end`.
    pub(crate) fn run_until(&mut self, nodes: &mut [&mut dyn Node], end: Time) {
        loop {
            let sending = self.transmit(nodes);
            let deadlines = nodes.iter_mut().filter_map(|node| node.engine().deadline());
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let Some(next) = deadlines.chain(arrival).chain(sending).min().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let Flying { from, to, bytes } = entry.remove();
                let datagram = Datagram { from, port: to.port(), payload: &bytes };
                if let Some(node) = nodes.iter_mut().find(|node| node.address() == *to.ip()) {
                    node.engine().handle_datagram(self.now, datagram);
                    node.turn(self.now);
                }
            }
            for node in nodes.iter_mut() {
                if node.engine().deadline().is_some_and(|at| at <= self.now) {
                    node.engine().handle_timeout(self.now);
                    node.turn(self.now);
                }
            }
        }
    }

    /// Lets everybody send what may leave now; says when the next may.
    fn transmit(&mut self, nodes: &mut [&mut dyn Node]) -> Option<Time> {
        let mut buffer = [0; MAX_DATAGRAM];
        let mut next = None;
        for node in nodes.iter_mut() {
            let (address, pace) = (node.address(), node.pace());
            loop {
                let at = self.may_send.get(&address).copied().unwrap_or_default();
                if at > self.now {
                    next = next.into_iter().chain([at]).min();
                    break;
                }
                let Some(out) = node.engine().poll_transmit(self.now, &mut buffer) else { break };
                node.turn(self.now);
                self.send(SocketAddrV4::new(address, out.from_port), out.to, &buffer[..out.len]);
                self.may_send.insert(address, self.now + pace);
            }
        }
        next
    }
}
