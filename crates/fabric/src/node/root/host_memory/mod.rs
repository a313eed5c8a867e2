//! The parts of measured hosts between a request of a device and host memory.
//!
//! ```text
//! request ── reads at once? ── gate: awake? ── IOMMU: translation ── (stages) ── node? ── cache, or memory ── jitter ── data
//! ```
//!
//! A host may have a limit on the reads that it serves at once, be asleep or stall (`gate`), have an IOMMU (`iommu`), memory on another node, a last-level cache (`cache`) and
//! latency that varies (`jitter`). A host without any of them has no [`MemorySystem`], and nothing of this runs. How long each of them
//! takes is known when a request comes to it, so it is put off once and never looked at while it waits. `The lines of an answer may come back one by one
//! ([`crate::link::lines`]).
//!
//! Caches and nodes are set up without simulated time by the calls in `setup`.

mod associative;
mod cache;
mod gate;
mod iommu;
mod jitter;
mod setup;
mod walk;

use crate::config::{HostConfig, HostMemoryError, MapError, NumaConfig};
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::root::Root;
use crate::packet::attribution::{Cause, Place};
use crate::packet::slab::TlpHandle;
pub use cache::HitCount;
use cache::{Cache, Placed};
use gate::Gate;
pub(crate) use iommu::Page;
pub use iommu::TranslationCount;
use iommu::{Iommu, Translation};
use jitter::{Jitter, Refreshed};
pub use setup::{HostCounters, Writer};
use std::collections::VecDeque;
use std::ops::Range;
use tlplab_device::{HostMemory, OutOfMemory, Random};
use tlplab_transaction::Access;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Kind;

/// Names of its places after the host's.
const NAMES: [&str; 3] = ["iommu", "numa", "gate"];

/// The parts of a host between its root complex and its memory.
#[derive(Clone)]
pub(crate) struct MemorySystem {
    iommu: Option<(Place, Iommu)>,
    numa: Option<(Place, NumaConfig)>,
    gate: Option<Gate>,
    /// Memory on the other node.
    remote: Vec<Range<u64>>,
    /// Of every read, and of those that go to memory.
    jitter: (Option<Jitter>, Option<Refreshed>),
    /// From the arrival of a posted write until it is in memory.
    commit: Duration,
    reads: Option<Reads>,
}

/// Reads that are served at once, and those that wait for that.
#[derive(Clone, Debug)]
struct Reads {
    limit: u16,
    served: u16,
    waiting: VecDeque<(TlpHandle, PortId)>,
}

impl MemorySystem {
    /// The parts of a host, whose places are numbered from `first`; `None` if it has none of them.
    pub(crate) fn new(host: &HostConfig, seed: u64, first: u16) -> Option<Box<Self>> {
        let mut places = (first..).map(Place);
        let iommu = host.iommu.and_then(|config| Some((places.next()?, Iommu::new(config))));
        let numa = host.numa.and_then(|config| Some((places.next()?, config)));
        let gate = places.next().and_then(|place| Gate::new(host, seed, place));
        let jitter = host.jitter.as_ref().map_or((None, None), |config| {
            let stream = |purpose| Random::keyed(seed, &host.name, purpose);
            (
                Jitter::new(&config.quantiles, stream("jitter")),
                Refreshed::new(&config.memory, stream("jitter of memory")),
            )
        });
        let reads = host.reads.map(|limit| Reads { limit, served: 0, waiting: VecDeque::new() });
        let has_any =
            host.cache.is_some() || host.jitter.is_some() || !host.commit.is_zero() || gate.is_some();
        (has_any || iommu.is_some() || numa.is_some() || reads.is_some()).then(|| {
            Box::new(Self { iommu, numa, gate, remote: Vec::new(), jitter, commit: host.commit, reads })
        })
    }

    /// True if requests wait here, so that completions and interrupts, which must not pass writes, have to look for them.
    pub(crate) fn holds_writes(&self) -> bool {
        self.iommu.is_some() || self.gate.is_some()
    }

    /// The wait of a request that comes now before it may go on to memory; `None` if it has none.
    fn holds(&mut self, now: Time, posted: bool, page: Option<Page>) -> Option<Held> {
        if self.gate.is_none() && self.iommu.is_none() {
            return None;
        }
        let gate = self.gate.as_mut().map(|gate| (gate.place, gate.passes(now, posted)));
        let (opens, at_once) = gate.map_or((now, true), |(_, passes)| passes);
        let translation = self.iommu.as_mut().map(|(place, iommu)| (*place, iommu.translate(opens, page)));
        let translated = translation.map_or(Duration::ZERO, |(_, translation)| translation.whole());
        let at_once = at_once && translation.is_none_or(|(_, translation)| translation.at_once);
        if let Some(gate) = &mut self.gate {
            gate.goes_on(opens + translated, posted);
        }
        let gate = gate.map(|(place, _)| (place, opens - now));
        (!at_once).then(|| Held { until: opens + translated, gate, translation })
    }

    /// The wait of a TLP for another root port, or of one that asks for a translation, that has to pass the IOMMU; `page` is `None` if it is not
    /// to be translated.
    fn validates(&mut self, now: Time, page: Option<Page>) -> Option<Held> {
        let (place, iommu) = self.iommu.as_mut()?;
        let translation = iommu.translate(now, page);
        let (until, translation) = (now + translation.whole(), Some((*place, translation)));
        (!translation.is_some_and(|(_, translation)| translation.at_once)).then_some(Held {
            until,
            gate: None,
            translation,
        })
    }

    /// The answer to a request of a device leaves the root complex.
    pub(crate) fn answers(&mut self, now: Time) {
        if let Some(gate) = &mut self.gate {
            gate.answers(now);
        }
    }

    /// The page of an address that stays as it is; `None` without an IOMMU.
    pub(crate) fn page(&self, address: u64) -> Option<Page> {
        self.iommu.as_ref().map(|(_, iommu)| iommu.page(address))
    }

    /// Drops the kept translations of a function's range.
    pub(crate) fn forget(&mut self, function: u16, from: u64, bytes: u64) {
        if let Some((_, iommu)) = &mut self.iommu {
            iommu.forget(function, from, bytes);
        }
    }

    /// A read goes on to memory, however many are served.
    pub(crate) fn serve_read(&mut self) {
        if let Some(reads) = &mut self.reads {
            reads.served += 1;
        }
    }

    fn is_remote(&self, address: u64) -> bool {
        self.remote.iter().any(|range| range.contains(&address))
    }
}

/// The waits of a request before it may go on to memory.
#[derive(Clone)]
struct Held {
    until: Time,
    gate: Option<(Place, Duration)>,
    translation: Option<(Place, Translation)>,
}

impl Held {
    /// The parts of the time, one after the other.
    fn charges(&self) -> impl Iterator<Item = (Duration, Place, Cause)> {
        let gate = self.gate.map(|(place, closed)| (closed, place, Cause::Processing));
        let translation = self.translation.into_iter().flat_map(|(place, translation)| {
            [
                (translation.queued, place, Cause::Queueing),
                (translation.walked, place, Cause::Processing),
                (translation.behind, place, Cause::Queueing),
            ]
        });
        gate.into_iter().chain(translation)
    }
}

/// Names of its places, in the order of their numbers.
pub(crate) fn names_of(host: &HostConfig) -> impl Iterator<Item = String> {
    let gate = host.sleep.is_some() || host.stall.is_some() || !host.write_interval.is_zero();
    let present = [host.iommu.is_some(), host.numa.is_some(), gate];
    let named = NAMES.into_iter().zip(present).filter(|(_, present)| *present);
    named.map(|(name, _)| format!("{}.{name}", host.name))
}

/// Checks the host's parameters.
pub(crate) fn check(host: &HostConfig) -> Result<(), HostMemoryError> {
    host.cache.map_or(Ok(()), |cache| cache.check())?;
    host.iommu.map_or(Ok(()), |iommu| iommu.check())?;
    for (at, map) in host.maps.iter().enumerate() {
        map.check()?;
        if host.iommu.is_none() {
            return Err(MapError::NoIommu.into());
        }
        if let Some(twice) = host.maps[..at].iter().find_map(|other| map.clash(other)) {
            return Err(MapError::Twice(twice).into());
        }
    }
    host.jitter.as_ref().map_or(Ok(()), |jitter| jitter.check())?;
    host.sleep.as_ref().map_or(Ok(()), |sleep| sleep.check())?;
    host.stall.map_or(Ok(()), |stall| stall.check())?;
    if host.reads == Some(0) { Err(HostMemoryError::NoReads) } else { Ok(()) }
}

/// Host memory as the processor sees it: through the cache.
pub(crate) struct CachedMemory {
    pub(crate) ram: Box<dyn HostMemory + Send>,
    pub(crate) cache: Option<Cache>,
}

impl CachedMemory {
    pub(crate) fn new(host: &HostConfig, ram: Box<dyn HostMemory + Send>) -> Self {
        Self { ram, cache: host.cache.map(Cache::new) }
    }
}

impl HostMemory for CachedMemory {
    fn read(&self, address: u64, out: &mut [u8]) {
        self.ram.read(address, out);
    }
    fn write(&mut self, address: u64, data: &[u8]) {
        if let Some(cache) = &mut self.cache {
            cache.processor_writes(address, data.len() as u64);
        }
        self.ram.write(address, data);
    }
    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64, OutOfMemory> {
        self.ram.alloc(bytes, align)
    }
}

impl Root {
    /// A request of a device for memory, or an interrupt, is at the root complex. True if it waits there.
    pub(crate) fn hold_at_root(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let is_read = matches!(cx.tlps.get(handle).repr.kind(), Kind::MemRead { .. });
        let Some(system) = &mut self.memory_system else { return false };
        match &mut system.reads {
            Some(reads) if is_read && reads.served == reads.limit => {
                reads.waiting.push_back((handle, ingress));
                true
            }
            Some(reads) if is_read => {
                reads.served += 1;
                self.hold_for_translation(cx, ingress, handle)
            }
            _ => self.hold_for_translation(cx, ingress, handle),
        }
    }

    /// A read has its data: the next one may be served.
    pub(crate) fn release_read(&mut self, cx: &mut Context) {
        let Some(system) = &mut self.memory_system else { return };
        let Some(reads) = &mut system.reads else { return };
        let Some((handle, ingress)) = reads.waiting.pop_front() else {
            reads.served -= 1;
            return;
        };
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Queueing);
        }
        if !self.hold_for_translation(cx, ingress, handle) {
            self.translated(cx, ingress, handle, true);
        }
    }

    /// True if a request has to wait for the host or its translation, and then goes on by itself.
    fn hold_for_translation(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let now = cx.now();
        let repr = cx.tlps.get(handle).repr;
        let posted = matches!(repr.kind(), Kind::MemWrite { .. });
        let page = self.page_of(cx, &repr);
        let Some(system) = &mut self.memory_system else { return false };
        let Some(held) = system.holds(now, posted, page) else { return false };
        if let Some(agent) = self.agent.as_mut().filter(|_| posted) {
            agent.held_writes += 1;
        }
        self.put_off(cx, ingress, handle, &held, true);
        true
    }

    /// A TLP for another root port, from a port that redirects, has its address translated as what is for memory has (PCIe 5.0 §6.12.1.1, redirected
    /// request validation), and nothing passes another there. True if it has to wait, and then goes on by itself.
    pub(crate) fn hold_redirected(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let repr = cx.tlps.get(handle).repr;
        let page = self.page_of(cx, &repr);
        let Some(system) = &mut self.memory_system else { return false };
        let Some(held) = system.validates(cx.now(), page) else { return false };
        self.put_off(cx, ingress, handle, &held, false);
        true
    }

    /// A TLP goes on when what it waits for is over; `counted`: among those for memory.
    fn put_off(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, held: &Held, counted: bool) {
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            for (duration, place, cause) in held.charges() {
                tlp.ledger.charge_for(duration, place, cause);
            }
        }
        let data = handle.to_event() | u64::from(ingress.0) << 32 | u64::from(counted) << 48;
        cx.schedule(held.until, EventKind::Translated, cx.node_event(self.node), data);
    }

    /// From the service of an access of a device by memory to its data (a posted write: until it is in memory). The way to another node
    /// is charged here.
    pub(crate) fn delay_of(
        &mut self,
        cx: &mut Context,
        handle: TlpHandle,
        access: Access,
        posted: bool,
    ) -> Duration {
        let now = cx.now();
        let is_read = matches!(cx.tlps.get(handle).repr.kind(), Kind::MemRead { .. });
        let Self { memory_system, memory, server, .. } = self;
        let Some(system) = memory_system else { return Duration::ZERO };
        let answer = if posted { system.commit } else { server.latency() };
        let delay = if is_read {
            system.read_delay(now, memory.cache.as_mut(), access, answer)
        } else {
            system.write_delay(memory.cache.as_mut(), access, answer, server.latency())
        };
        if let Some((place, hop)) = delay.hop {
            let tlp = cx.tlps.get_mut(handle);
            if tlp.tracked {
                tlp.ledger.charge_for(hop, place, Cause::Flight);
            }
        }
        delay.latency + delay.hop.map_or(Duration::ZERO, |(_, hop)| hop)
    }
}

/// The time of an access: the way to another node and back, and its place; and the rest.
#[derive(Clone)]
struct Delay {
    hop: Option<(Place, Duration)>,
    latency: Duration,
}

impl MemorySystem {
    fn hop_to(&self, address: u64) -> Option<(Place, Duration)> {
        self.numa.filter(|_| self.is_remote(address)).map(|(place, numa)| (place, numa.hop))
    }

    fn read_delay(
        &mut self,
        now: Time,
        cache: Option<&mut Cache>,
        access: Access,
        memory: Duration,
    ) -> Delay {
        let (mut latency, hit) = match cache {
            Some(cache) => cache.device_reads(access.address, access.bytes, memory),
            None => (memory, false),
        };
        let (every, of_memory) = &mut self.jitter;
        if let Some(jitter) = every {
            latency += jitter.draw();
        }
        if let Some(jitter) = of_memory.as_mut().filter(|_| !hit) {
            latency += jitter.at(now);
        }
        Delay { hop: self.hop_to(access.address).filter(|_| !hit), latency }
    }

    fn write_delay(
        &mut self,
        cache: Option<&mut Cache>,
        access: Access,
        answer: Duration,
        memory: Duration,
    ) -> Delay {
        let hop = self.hop_to(access.address);
        let Some(cache) = cache else { return Delay { hop, latency: answer } };
        let config = cache.config();
        let (hop, later) = match (cache.device_writes(access.address, access.bytes), hop, self.numa) {
            (Placed::Nothing, _, _) => (None, Duration::ZERO),
            (Placed::Part, hop, _) => (hop, memory.saturating_sub(config.hit)),
            (Placed::Whole, Some(_), Some((_, NumaConfig { write_allocate: Some(later), .. }))) => {
                (None, later)
            }
            (Placed::Whole, hop, _) => (hop, config.write_allocate),
        };
        Delay { hop, latency: answer + later }
    }
}
