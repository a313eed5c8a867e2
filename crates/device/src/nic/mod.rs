//! `nic`: a gigabit Ethernet controller like Intel's 82574L, with the registers, rings and interrupts that its Linux driver uses.
//!
//! It is also the template for a larger device of one's own. This file is the device: what it is ([`Device::identity`],
//! [`Device::layout`]), what it consists of ([`Nic`]), and what it does with each event ([`Device::handle`]). The parts know one thing
//! each; they never see an event, but a [`Context`] to act on, and tell what they cause as bits of [`regs::cause`].
//!
//! * software's side: the module [`regs`] names the registers, `registers` is the file that keeps them, and `access` does what an access
//!   does beyond that
//! * `nvm`, `phy`: what software reads before it sets anything up
//! * `interrupts`: causes, masks, and the three ways to interrupt
//! * `ring`: a descriptor ring seen from the device: fetch, cache and head, with `receive` and `transmit` on top of one each: DMA, its streams and its errors
//! * the line's side: [`ethernet`] has frames, the cable and its other end, [`OpenEnd`] a cable to another simulation; `link` is negotiation, and frames that leave and come;
//!   `filter` knows which are taken; [`offload`] is checksums and segments
//! * `statistics`: counters that a read clears
//! * the host's side: [`driver`]
//!
//! The way of a frame that is sent: a write of the tail reaches `access`, which has `transmit` fetch descriptors and then data; when the
//! data are there it makes frames, `link` puts them on the line at their time, the descriptor is written back, and `interrupts` tells.
//! A frame that comes goes the other way: `link`, `filter`, `receive`, write-back, interrupt. What is written and the interrupt behind it share
//! a stream, so that software that is interrupted finds the data.
//!
//! # What is not modelled
//!
//! * The second queue of each direction: its registers, `RETA`, `RSSRK`, `MRQC` and `TARC` keep what is written, descriptors name no hash.
//! * `WTHRESH`: status is written back at once. Accesses to the NVM and the PHY take no time; negotiation takes 10 µs.
//! * The NVM has 64 words and is reached by `EERD` and `EEWR`, not by the wires in `EECD`; there is no flash, BAR 1 reads as all ones.
//! * 10 and 100 Mb/s, half duplex, flow control (pause frames are neither sent nor obeyed), errors of the line: their counters stay 0.
//! * Time stamps of frames (the clock in `SYSTIM` runs), wake-up, manageability, LEDs.
//! * The causes `SRPD`, `ACK` and `TXD_LOW`; a split descriptor's buffers are filled one after the other, without a look at headers.
//! * In a length-only run, all that depends on bytes: every frame is taken, and no checksum is looked at.

mod access;
pub mod driver;
pub mod ethernet;
mod filter;
mod interrupts;
mod link;
mod nvm;
pub mod offload;
mod open_end;
mod phy;
mod receive;
mod registers;
pub mod regs;
mod ring;
pub mod statistics;
mod transmit;

pub use ethernet::{Cable, Traffic};
pub use interrupts::VECTORS;
pub use open_end::{OpenEnd, Signal};

use crate::contract::{Context, Device, Event, Stream};
use crate::identity::{BarSpec, Identity};
use crate::network::FrameCounts;
use interrupts::Interrupts;
use nvm::Nvm;
use phy::Phy;
use receive::Receiver;
use registers::Registers;
use regs::ctrl;
use statistics::Statistics;
use std::collections::VecDeque;
use tlplab_cfgspace::{Aer, Layout, LinkPart, Msi, MsiX, Pcie, PcieVersion, PortType, PowerManagement};
use tlplab_units::{Duration, Generation, Time, Width};
use transmit::{Outgoing, Transmitter};

/// Intel.
pub const VENDOR: u16 = 0x8086;
/// 82574L.
pub const DEVICE: u16 = 0x10D3;
/// Bytes of the registers, BAR 0.
pub const REGISTERS: u64 = 128 << 10;

crate::streams! {
    /// Descriptor fetches.
    FETCH: "fetch" = "read";
    /// The data that are sent.
    TRANSMIT: "transmit" = "read";
    /// Writes, and the interrupts that must stay behind it.
    WRITES: "receive" = "write";
}

/// The purpose of a timer.
mod timer {
    pub(super) const LINK: u64 = 0;
    pub(super) const SENT: u64 = 1;
    pub(super) const ARRIVED: u64 = 2;
    pub(super) const RECEIVE_DELAY: u64 = 3;
    pub(super) const TRANSMIT_DELAY: u64 = 4;
    pub(super) const SIGNAL: u64 = 5;
    /// And the five behind it: one for each vector, the last for pin and MSI.
    pub(super) const THROTTLE: u64 = 8;
}

/// The timer that wakes a NIC when a signal arrives at its [`OpenEnd`].
pub const SIGNAL: u64 = timer::SIGNAL;

/// The properties of a NIC and of its cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Its address, as the NVM has it.
    pub mac: [u8; 6],
    /// The other end of its cable.
    pub cable: Cable,
    /// The speed of frames on it. Its registers show 1 Gb/s, whatever this is.
    pub speed: ethernet::Speed,
}

impl Default for NicConfig {
    /// A locally administered address, and a partner that only listens.
    fn default() -> Self {
        Self { mac: [0x02, 0x1D, 0xE5, 0, 0, 1], cable: Cable::Sink, speed: ethernet::Speed::GIGABIT }
    }
}

/// The NIC.
#[derive(Clone, Debug)]
pub struct Nic {
    config: NicConfig,
    file: Registers,
    nvm: Nvm,
    phy: Phy,
    interrupts: Interrupts,
    counters: Statistics,
    receiver: Receiver,
    transmitter: Transmitter,
    /// Frames on the line or waiting for it, and when each has left.
    outgoing: VecDeque<(Time, Outgoing)>,
    line: ethernet::Line,
    /// The start of the generator at the other end, and the number of frames that it has sent.
    generator: Option<(Time, u64)>,
    /// The register that the I/O window shows.
    window: u32,
    /// The time at which `SYSTIM` was last set, and its value.
    clock: (Time, u64),
    /// Since when the link is being negotiated: a later wish replaces it.
    negotiation: Time,
    /// Its own transceiver has negotiated.
    ready: bool,
    /// The other end of its cable, if that is another simulation, and whether it is ready.
    open_end: Option<OpenEnd>,
    partner: bool,
}

impl Nic {
    /// A NIC after power-on.
    pub fn new(config: NicConfig) -> Self {
        let mut nic = Self {
            config,
            file: Registers::new(),
            nvm: Nvm::new(config.mac),
            phy: Phy::new(),
            interrupts: Interrupts::default(),
            counters: Statistics::new(),
            receiver: Receiver::new(),
            transmitter: Transmitter::new(),
            outgoing: VecDeque::new(),
            line: ethernet::Line::new(config.speed),
            generator: None,
            window: 0,
            clock: (Time::ZERO, 0),
            negotiation: Time::ZERO,
            ready: false,
            open_end: None,
            partner: config.cable != Cable::Unplugged,
        };
        nic.load_address();
        nic
    }

    /// A NIC after power-on, whose cable, whatever `config` says of it, leads to another simulation.
    pub fn with_open_end(config: NicConfig, end: OpenEnd) -> Self {
        Self { open_end: Some(end), partner: false, ..Self::new(config) }
    }

    /// The NVM's address becomes the first receive address.
    fn load_address(&mut self) {
        let [a, b, c, d, e, f] = self.nvm.mac();
        self.file.set(regs::RAL, u32::from_le_bytes([a, b, c, d]));
        self.file.set(regs::RAL + 4, 1 << 31 | u32::from_le_bytes([e, f, 0, 0]));
    }

    /// `CTRL.RST`: all but the PHY and its link starts anew. What is still under way is forgotten.
    fn reset(&mut self, cx: &mut Context<'_>) {
        self.interrupts.reset(cx);
        self.file = Registers::new();
        self.counters = self.counters.cleared();
        self.receiver = Receiver::new();
        self.transmitter = Transmitter::new();
        self.outgoing.clear();
        self.load_address();
        self.negotiate(cx);
    }

    fn raise(&mut self, cx: &mut Context<'_>, causes: u32) {
        if causes != 0 {
            self.interrupts.raise(cx, &self.file, causes);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, id: u64) {
        match id {
            timer::LINK if cx.now() == self.negotiation => {
                let ready = self.phy.is_on() && self.file.has(regs::CTRL, ctrl::SLU);
                self.set_ready(cx, ready);
                self.listen(cx);
            }
            timer::SIGNAL => self.hear(cx),
            timer::SENT => self.sent(cx),
            timer::ARRIVED => self.generated(cx),
            timer::RECEIVE_DELAY => {
                let causes = self.receiver.delayed(cx, false);
                self.raise(cx, causes);
            }
            timer::TRANSMIT_DELAY => {
                let causes = self.transmitter.delayed(cx, false);
                self.raise(cx, causes);
            }
            timer::THROTTLE.. => self.interrupts.released(cx, &self.file, id - timer::THROTTLE),
            _ => {}
        }
    }
}

impl Device for Nic {
    fn identity(&self) -> Identity {
        let mut identity = Identity::new(VENDOR, DEVICE, 0x02_00_00); // Ethernet controller
        identity.subsystem = (VENDOR, 0);
        identity.bars = vec![
            BarSpec::registers(0, REGISTERS),
            BarSpec::registers(1, 64 << 10), // flash
            BarSpec::io(2, 32),
            BarSpec::registers(3, 16 << 10), // MSI-X
        ];
        (identity.msix_vectors, identity.msi_vectors, identity.intx) = (VECTORS, 1, true);
        identity
    }

    /// The chain of the real one, at its places: power management, MSI, PCI Express, MSI-X with its table in BAR 3.
    fn layout(&self) -> Layout {
        let identity = Identity { msix_vectors: 0, msi_vectors: 0, ..self.identity() };
        let link = LinkPart::new(Generation::Gen1, Width::ALL[0]);
        let pcie = Pcie { version: PcieVersion::V1, ..Pcie::new(PortType::EndPoint, link) };
        let msix = MsiX { vectors: VECTORS, table: (3, 0), pending: (3, 0x2000) };
        Layout::new(identity.layout().header)
            .capability_at(0xC8, PowerManagement { wakes_from: 0b1_1001, ..PowerManagement::default() })
            .capability_at(0xD0, Msi { vectors: 1, wide: true, masking: false })
            .capability_at(0xE0, pcie)
            .capability_at(0xA0, msix)
            .extended(Aer::default())
    }

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn rebase(&mut self, by: Duration) {
        // The generator is part of simulations, which end before time does.
        for at in self.outgoing.iter_mut().map(|(at, _)| at).chain([&mut self.negotiation]) {
            *at = at.earlier(by);
        }
        // A clock that was set long ago goes on from what it shows at the new origin.
        let origin = Time::ZERO + by;
        if self.clock.0 < origin {
            self.clock = (origin, self.system_time(origin));
        }
        self.clock.0 = self.clock.0.earlier(by);
        self.line.rebase(by);
        if let Some(end) = &self.open_end {
            end.rebase(by);
        }
        self.interrupts.rebase(by);
        self.receiver.rebase(by);
        self.transmitter.rebase(by);
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => self.negotiate(cx),
            Event::MmioRead { bar, offset, bytes, reply } => {
                let data = self.mmio_read(cx, bar, offset, bytes);
                cx.reply(reply, data);
            }
            Event::MmioWrite { bar, offset, data } => {
                if let Some(bytes) = data.bytes() {
                    self.mmio_write(cx, bar, offset, bytes);
                }
            }
            Event::DmaReadDone { op, result } => {
                // Neither's: of before a reset.
                if self.receiver.fetched(cx, &mut self.file, op, &result).is_none()
                    && self.transmitter.read(cx, &self.file, op, result).is_some()
                {
                    self.pump(cx);
                }
            }
            Event::DmaWriteAccepted { op } => {
                let causes = self.receiver.accepted(cx, &self.file, op)
                    | self.transmitter.accepted(cx, &self.file, op);
                self.raise(cx, causes);
            }
            Event::Timer { id } => self.timer(cx, id),
            Event::Reset => {
                // Its cable is not part of it.
                let (open_end, partner, ready) = (self.open_end.take(), self.partner, self.ready);
                let counters = self.counters.cleared();
                *self = Self { open_end, partner, ready, counters, ..Self::new(self.config) };
                self.negotiate(cx);
                self.expect_signals(cx);
            }
        }
    }

    fn merges_messages(&self) -> bool {
        true
    }

    fn frame_counts(&self) -> Option<FrameCounts> {
        Some(self.counters.frames())
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        self.open_end.is_none().then(|| Box::new(self.clone()) as Box<dyn Device>)
    }
}
