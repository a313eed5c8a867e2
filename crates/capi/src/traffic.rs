//! One socket, two readers: DMA waits for completions, callbacks for requests. Whoever reads the socket hands over what is
//! the other's.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tlplab_netio::{Batch, Error, Poller, Ready, Transport, Udp};
use tlplab_nettlp::{Outgoing, Undeliverable};
use tlplab_units::Bdf;
use tlplab_wire::nettlp::{DEVICE_PORTS, parse_udp_payload};

/// Datagrams that wait for a reader who is busy; more are dropped, as the socket would drop them.
const MOST: usize = 1024;

/// As whom a context makes requests: what completions are matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Issuer {
    pub(crate) requester: Bdf,
    pub(crate) tag: u8,
}

/// Datagrams that one reader read and that belong to the other.
#[derive(Default)]
pub(crate) struct Traffic {
    queues: Mutex<Queues>,
    /// DMA reads that wait for completions.
    reading: AtomicUsize,
    /// The network's error for a datagram without a waiter: a write.
    undelivered: Mutex<Option<Undeliverable>>,
}

#[derive(Default)]
struct Queues {
    completions: VecDeque<Box<[u8]>>,
    requests: VecDeque<Box<[u8]>>,
    /// The present user of DMA.
    issuer: Option<Issuer>,
    /// With which each reader waits; DMA by its tag.
    dma: BTreeMap<u8, Weak<Poller>>,
    runs: Vec<Weak<Poller>>,
}

impl Traffic {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        // Queues are whole between their operations.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read begins, and ends when the value returned is dropped.
    pub(crate) fn reading(&self) -> Reading<'_> {
        self.reading.fetch_add(1, Ordering::SeqCst);
        Reading(self)
    }
    /// True if a read waits for completions.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.load(Ordering::SeqCst) > 0
    }
    /// True if a read waits for completions with these.
    pub(crate) fn awaits(&self, requester: Option<Bdf>, tag: Option<u8>) -> bool {
        let (Some(requester), Some(tag)) = (requester, tag) else { return false };
        self.is_reading() && self.queues().issuer == Some(Issuer { requester, tag })
    }
    /// Reads are this one's from now on.
    pub(crate) fn set_issuer(&self, issuer: Issuer) {
        self.queues().issuer = Some(issuer);
    }

    /// Callbacks wait with `poller`.
    pub(crate) fn add_run(&self, poller: &Arc<Poller>) {
        let mut queues = self.queues();
        queues.runs.retain(|run| run.strong_count() > 0);
        queues.runs.push(Arc::downgrade(poller));
    }

    /// A completion that came where callbacks are run.
    pub(crate) fn give_completion(&self, datagram: &[u8]) {
        let mut queues = self.queues();
        if queues.completions.len() < MOST {
            queues.completions.push_back(datagram.into());
        }
        let issuer = queues.issuer.and_then(|issuer| queues.dma.get(&issuer.tag)?.upgrade());
        if let Some(poller) = issuer {
            poller.wake();
        }
    }

    /// Something else that came where completions are waited for.
    fn give_request(&self, datagram: &[u8]) {
        let mut queues = self.queues();
        if queues.requests.len() < MOST {
            queues.requests.push_back(datagram.into());
        }
        queues.runs.iter().filter_map(Weak::upgrade).for_each(|poller| poller.wake());
    }

    /// The reason that a write was not delivered, if it is known since the last call.
    pub(crate) fn take_undelivered(&self) -> Option<Undeliverable> {
        self.undelivered().take()
    }

    fn undelivered(&self) -> MutexGuard<'_, Option<Undeliverable>> {
        self.undelivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next of those.
    pub(crate) fn take_request(&self) -> Option<Box<[u8]>> {
        self.queues().requests.pop_front()
    }
}

/// A read that is under way.
pub(crate) struct Reading<'a>(&'a Traffic);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reading.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The socket as DMA sees it.
pub(crate) struct Shared {
    udp: Udp,
    traffic: Arc<Traffic>,
    /// The sender of completions, and their destination, as the engine has it.
    from: SocketAddrV4,
}

impl Shared {
    pub(crate) fn new(udp: Udp, traffic: Arc<Traffic>, port: u16, remote: Ipv4Addr) -> Self {
        let tag = (port - DEVICE_PORTS.start()) as u8;
        traffic.queues().dma.insert(tag, Arc::downgrade(udp.poller()));
        Self { udp, traffic, from: SocketAddrV4::new(remote, port) }
    }
}

impl Shared {
    /// Keeps the completions of a batch, and gives the rest to the callbacks.
    fn sort(&self, batch: &mut Batch) {
        let all: Vec<Box<[u8]>> = batch.datagrams().map(|datagram| datagram.payload.into()).collect();
        batch.clear();
        for datagram in all {
            if is_completion(&datagram) {
                push(batch, self.from, &datagram);
            } else {
                self.traffic.give_request(&datagram);
            }
        }
    }
}

/// Adds a datagram as if it had come from there.
fn push(batch: &mut Batch, from: SocketAddrV4, datagram: &[u8]) {
    batch.push_with(|buffer| {
        // One that is too long is malformed, and is so too without its end.
        let len = datagram.len().min(buffer.len());
        buffer[..len].copy_from_slice(&datagram[..len]);
        Some(Outgoing { to: from, from_port: from.port(), len })
    });
}

/// True if it is a completion. Bytes that are not a TLP count as one: the engine counts them.
fn is_completion(datagram: &[u8]) -> bool {
    parse_udp_payload(datagram).map_or(true, |(_, tlp)| tlp.is_completion() != Some(false))
}

impl Transport for Shared {
    fn poller(&self) -> &Arc<Poller> {
        self.udp.poller()
    }

    fn receive(&mut self, ready: Option<&Ready>, batch: &mut Batch) -> Result<(), Error> {
        while !batch.is_full() {
            let Some(datagram) = self.traffic.queues().completions.pop_front() else { break };
            push(batch, self.from, &datagram);
        }
        self.udp.receive(ready, batch)?;
        if batch.datagrams().any(|datagram| !is_completion(datagram.payload)) {
            self.sort(batch);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), Error> {
        self.udp.send(batch)?;
        if !self.traffic.is_reading() {
            // Only writes were sent. The engine would take it for the fate of the next read.
            while let Some((_, why)) = self.udp.undeliverable() {
                *self.traffic.undelivered() = Some(why);
            }
        }
        Ok(())
    }

    fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
        self.udp.undeliverable()
    }

    fn dropped(&self) -> Option<u64> {
        self.udp.dropped()
    }
}
