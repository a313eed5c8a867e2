//! The adapter in software: what the FPGA card does, for as many devices as one likes, with a [`Host`] behind it.
//!
//! ```text
//!                       ┌─ ports, each a card with its device ────────────────────────────┐
//!  datagrams ──▶ sender ──▶ rate limit ──▶ services: configuration, messages, registers   │
//!                       │              └─▶ TLP ──▶ by address: host memory ───────────────┼──▶ Host
//!                       │                                      interrupt ─────────────────┼──▶ Host
//!                       │                                      another device's BAR ──▶ switch or root complex
//!  datagrams ◀── turns ◀── queues, bounded, by cause ◀── answers                          │
//!                       │                        └◀── requests, with tags of their own ◀──┼─── programs of the host
//!                       └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! * [`config`]: what it is told; [`counters`]: what it counts
//! * [`host`]: what is behind it; [`memory_host`]: one that is only memory
//! * `function`: what the host sees of a device; `registers`: the card's own
//! * `requests`: TLPs of devices; `peer`: those for other devices; `services`: what is asked without TLPs
//! * `port`, `egress`, `lanes`, `limit`: one device, what leaves for it, its acknowledged links, how much of it is looked at
//!
//! Everything that a device sends is untrusted. It can ask for what its own card may do and no more, it cannot make the adapter keep
//! more than its share, and what it sends wrong is counted at its own expense.

pub mod config;
pub mod counters;
mod egress;
mod function;
pub mod host;
mod lanes;
mod limit;
pub mod memory_host;
mod peer;
mod port;
mod registers;
mod requests;
mod services;

use crate::engine::{Datagram, Engine, Outgoing, Undeliverable};
use egress::Clock;
use function::{Function, place};
use host::{HostOutput, HostReadId, MmioAccess, MmioToken};
use port::{Errand, Port};
use registers::Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_cfgspace::BarWindow;
use tlplab_device::DmaError;
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::nettlp::HOST_PORTS;
use tlplab_wire::tlp::Repr;

pub use config::{AdapterConfig, AdapterError, DeviceConfig, FunctionKind, MsixHome, PeerToPeer};
pub use counters::{AdapterCounters, DeviceCounters};
pub use function::{BAR2_BYTES, CARD, CARD_VECTORS, INTERRUPTS, card_layout};
pub use host::Host;
pub use limit::RateLimit;
pub use memory_host::MemoryHost;

/// The adapter; see the [module](self).
#[derive(Debug)]
pub struct Adapter<H> {
    config: AdapterConfig,
    host: H,
    ports: Vec<Port>,
    by_peer: BTreeMap<Ipv4Addr, usize>,
    clock: Clock,
    next_read: u64,
    next_split: u32,
    /// Reads that the host answers later: whose they are, and what was asked.
    waiting: BTreeMap<HostReadId, (usize, Repr)>,
    /// The device whose turn it is to send.
    turn: usize,
    counters: AdapterCounters,
}

/// A device as the adapter serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its address.
    pub peer: Ipv4Addr,
    /// Its requester ID.
    pub bdf: Bdf,
    /// Vendor and device ID that its configuration space shows.
    pub ids: (u16, u16),
    /// Its BARs.
    pub bars: [Option<BarWindow>; 6],
}

impl<H: Host> Adapter<H> {
    /// An adapter with `host` behind it.
    ///
    /// # Errors
    /// The first mistake in `config`.
    pub fn new(config: AdapterConfig, host: H) -> Result<Self, AdapterError> {
        check(&config)?;
        let mut functions = Vec::new();
        for device in &config.devices {
            let registers = Registers::new(config.local, device.peer, device.bdf);
            functions.push((device.bdf, Function::new(&device.function, registers)?));
        }
        let placed = place(&mut functions)?;
        let mut ports = Vec::new();
        for (number, (device, (_, mut function))) in config.devices.iter().zip(functions).enumerate() {
            let bases = device.bars.as_ref().unwrap_or(&placed[number]);
            function.start(number, bases, config.mps, config.mrrs);
            ports.push(Port::new(&config, device, function));
        }
        Ok(Self {
            by_peer: config.devices.iter().enumerate().map(|(n, device)| (device.peer, n)).collect(),
            config,
            host,
            ports,
            clock: Clock::default(),
            next_read: 0,
            next_split: 0,
            waiting: BTreeMap::new(),
            turn: 0,
            counters: AdapterCounters::default(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &AdapterConfig {
        &self.config
    }
    /// The host behind it.
    pub fn host(&self) -> &H {
        &self.host
    }
    /// The host behind it. [`poll_transmit`](Engine::poll_transmit) collects the host's requests.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }
    /// Its devices.
    pub fn devices(&self) -> impl Iterator<Item = Served> {
        self.ports.iter().map(|port| Served {
            peer: port.peer,
            bdf: port.bdf,
            ids: port.function.ids(),
            bars: *port.function.bars(),
        })
    }
    /// The host's software has given a device's BARs these addresses (one of 64 bits in the first of its two places), and written its command
    /// register.
    pub fn configure(&mut self, device: usize, bases: &[u64; 6], command: u16) {
        if let Some(port) = self.ports.get_mut(device) {
            port.function.obey(bases, command);
        }
    }
    /// The counters of a device.
    pub fn device_counters(&self, device: usize) -> Option<DeviceCounters> {
        let port = self.ports.get(device)?;
        let (lost, repeated) = (port.arrivals.lost(), port.lanes.repeated);
        Some(DeviceCounters { lost, repeated, ..port.counters })
    }
    /// The counters that concern no device.
    pub fn counters(&self) -> AdapterCounters {
        self.counters
    }

    /// The number of items kept until they are sent or answered: datagrams, requests of devices, requests to them. Whatever devices send, this is
    /// bounded, and when everything is sent and every time limit is over it is zero.
    pub fn backlog(&self) -> usize {
        self.ports.iter().map(Port::backlog).sum()
    }

    /// Collects the host's requests.
    fn pump_host(&mut self, now: Time) {
        while let Some(output) = self.host.poll(now) {
            match output {
                HostOutput::ReadDone { id, result } => {
                    let Some((device, request)) = self.waiting.remove(&id) else { continue };
                    let port = &mut self.ports[device];
                    port.waiting -= 1;
                    port.reply(&request, result);
                }
                HostOutput::Mmio { token, device, bar, offset, access } => {
                    self.mmio(now, token, device, bar, offset, access);
                }
            }
        }
    }

    /// A program of the host reads or writes a BAR.
    fn mmio(&mut self, now: Time, token: MmioToken, device: usize, bar: u8, offset: u64, access: MmioAccess) {
        let bytes = match &access {
            MmioAccess::Read(bytes) => u64::from(*bytes),
            MmioAccess::Write(data) => data.len(),
        };
        let unsupported = DmaError::Completion(CompletionError::UnsupportedRequest { address: offset });
        let port = self.ports.get_mut(device);
        let found = port.and_then(|port| Some((port.function.address(bar, offset, bytes)?, port)));
        let Some((address, port)) = found else {
            return self.host.mmio_done(now, token, Err(unsupported));
        };
        port.counters.mmio += 1;
        let errand = Errand::Mmio(token);
        let sent = match access {
            MmioAccess::Read(bytes) if port.function.answers(bar) => {
                let data = port.function.read(bar, offset, bytes);
                return self.host.mmio_done(now, token, Ok(data.into()));
            }
            MmioAccess::Write(data) if port.function.answers(bar) => {
                port.function.write(bar, offset, data.bytes().unwrap_or_default());
                return self.host.mmio_done(now, token, Ok(Payload::EMPTY));
            }
            MmioAccess::Read(bytes) => port.requester.read(now, 0, errand, address, bytes.into()),
            MmioAccess::Write(data) => port.requester.write(now, 0, errand, address, data),
        };
        if let Err(error) = sent {
            self.host.mmio_done(now, token, Err(error.into()));
        }
    }

    /// A device is heard of for the first time, or begins anew: the host's software sets up what the device itself holds.
    fn greet(&mut self, now: Time, device: usize) {
        let port = &mut self.ports[device];
        // Once is enough, however often it asks.
        if port.requester.queued() == 0
            && let Some((address, table)) = port.function.table_for_device(device)
        {
            // Inside a BAR, so it does not wrap.
            let _ = port.requester.write(now, 0, Errand::Table, address, table.into());
        }
        if !port.seen {
            port.seen = true;
            self.host.device_appears(now, device);
        }
    }
}

impl<H: Host> Engine for Adapter<H> {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let Some(&device) = self.by_peer.get(datagram.from.ip()) else {
            self.counters.foreign += 1;
            return;
        };
        let port = &mut self.ports[device];
        port.counters.received += 1;
        if !port.bucket.take(now) {
            port.counters.throttled += 1;
            return;
        }
        if !port.seen || services::asks_ids(&datagram) {
            self.greet(now, device);
        }
        if !self.service(device, datagram) {
            match datagram.port >> 12 {
                // The card looks at these four bits only.
                3 | 4 => self.tlp(now, device, datagram),
                _ => self.counters.other_ports += 1,
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        self.pump_host(now);
        let count = self.ports.len();
        for device in (self.turn..count).chain(0..self.turn) {
            let port = &mut self.ports[device];
            let Some((outgoing, done)) = port.poll_transmit(now, self.clock, buffer) else { continue };
            port.counters.sent += 1;
            match done {
                Some(Errand::Mmio(token)) => self.host.mmio_done(now, token, Ok(Payload::EMPTY)),
                Some(Errand::PeerWrite { from }) => port.load[from] -= 1,
                Some(Errand::Table | Errand::Piece { .. }) | None => {}
            }
            self.turn = (device + 1) % count;
            return Some(outgoing);
        }
        None
    }

    fn deadline(&self) -> Option<Time> {
        self.ports.iter().filter_map(Port::deadline).chain(self.host.deadline()).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
        for device in 0..self.ports.len() {
            while let Some(outcome) = self.ports[device].requester.handle_timeout(now) {
                self.outcome(now, device, outcome);
            }
            self.ports[device].lanes.handle_timeout(now);
        }
    }

    fn handle_undeliverable(&mut self, now: Time, to: SocketAddrV4, why: Undeliverable) {
        let Some(&device) = self.by_peer.get(to.ip()) else { return };
        self.ports[device].counters.undeliverable += 1;
        if why == Undeliverable::PortRefused {
            self.ports[device].lanes.end(to.port());
        }
        if !HOST_PORTS.contains(&to.port()) {
            return;
        }
        // Every tag that goes to this port.
        for tag in (to.port() - HOST_PORTS.start()..256).step_by(16).filter_map(Tag::new) {
            if let Some(outcome) = self.ports[device].requester.handle_undelivered(now, tag, why) {
                self.outcome(now, device, outcome);
            }
        }
    }

    fn rebase(&mut self, by: Duration) {
        self.clock.rebase(by);
        self.host.rebase(by);
        self.ports.iter_mut().for_each(|port| port.rebase(by));
    }
}

/// Checks that every device can be told from the others.
fn check(config: &AdapterConfig) -> Result<(), AdapterError> {
    if config.devices.is_empty() {
        return Err(AdapterError::NoDevice);
    }
    let mut peers = BTreeSet::from([config.local]);
    let mut ids = BTreeSet::from([config.completer, config.requester]);
    for device in &config.devices {
        if !peers.insert(device.peer) {
            return Err(match device.peer == config.local {
                true => AdapterError::OwnAddress(device.peer),
                false => AdapterError::PeerTwice(device.peer),
            });
        }
        if !ids.insert(device.bdf) {
            return Err(AdapterError::IdTwice(device.bdf));
        }
    }
    Ok(())
}
