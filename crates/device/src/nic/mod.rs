//! `nic`: a gigabit Ethernet controller like Intel's 82574L, with the registers, rings and interrupts that its Linux driver uses.
//!
//! It is also the template for a device of one's own: [`Nic`] only takes events apart and hands them to parts that know one thing each.
//!
//! * the module [`regs`] names the registers, and `registers` is the file that keeps them
//! * `nvm`, `phy`: what software reads before it sets anything up
//! * `interrupts`: causes, masks, and the three ways to interrupt
//! * `ring`: a descriptor ring seen from the device; `receive` and `transmit` on top of one each
//! * [`ethernet`]: frames, the cable and its other end; `filter`: which frames are taken; [`offload`]: checksums and segments
//! * `statistics`: counters
//!
//! Simplified: one queue in each direction (the registers of the second keep what is written), status is written back at once
//! whatever `WTHRESH` says, PHY and NVM accesses take no time, no flow control, no wake-up, no manageability, no flash.

pub mod ethernet;
mod filter;
mod interrupts;
mod nvm;
pub mod offload;
mod phy;
mod receive;
mod registers;
pub mod regs;
mod ring;
pub mod statistics;
mod transmit;

pub use ethernet::{Cable, Traffic};
pub use interrupts::VECTORS;

use crate::contract::{Context, Device, Event};
use crate::identity::{BarSpec, Identity};
use interrupts::Interrupts;
use nvm::Nvm;
use phy::{Phy, Wish};
use receive::Receiver;
use registers::Registers;
use regs::{cause, ctrl, ctrl_ext, eecd, rctl, status};
use statistics::Statistics;
use std::collections::VecDeque;
use tlplab_config::{Aer, Layout, LinkPart, Msi, MsiX, Pcie, PcieVersion, PortType, PowerManagement};
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};
use tlplab_units::{Generation, Width};
use transmit::{Outgoing, Transmitter};

/// Intel.
pub const VENDOR: u16 = 0x8086;
/// 82574L.
pub const DEVICE: u16 = 0x10D3;
/// Bytes of the registers, BAR 0.
pub const REGISTERS: u64 = 128 << 10;

/// Stream of descriptor fetches.
const FETCH: u16 = 0;
/// Stream of the data that are sent.
const TRANSMIT: u16 = 1;
/// Stream of all that is written, and of the interrupts that must stay behind it.
const WRITES: u16 = 2;

/// What a timer is for.
mod timer {
    pub(super) const LINK: u64 = 0;
    pub(super) const SENT: u64 = 1;
    pub(super) const ARRIVED: u64 = 2;
    pub(super) const RECEIVE_DELAY: u64 = 3;
    pub(super) const TRANSMIT_DELAY: u64 = 4;
    /// And the five behind it: one for each vector, the last for pin and MSI.
    pub(super) const THROTTLE: u64 = 8;
}

/// Negotiation takes real transceivers seconds in which nothing happens; here it takes this long.
const NEGOTIATION: Duration = Duration::from_us(10);
/// A period of the clock behind `SYSTIM`.
const CLOCK: Duration = Duration::from_ns(40);

/// What a NIC is and what is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Its address, as the NVM has it.
    pub mac: [u8; 6],
    /// Where its cable leads.
    pub cable: Cable,
}

impl Default for NicConfig {
    /// A locally administered address, and a partner that only listens.
    fn default() -> Self {
        Self { mac: [0x02, 0x1D, 0xE5, 0, 0, 1], cable: Cable::Sink }
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
    /// When the generator at the other end began, and what it has sent.
    generator: Option<(Time, u64)>,
    /// The register that the I/O window shows.
    window: u32,
    /// When `SYSTIM` was last set, and to what.
    clock: (Time, u64),
    /// Since when the link is being negotiated: a later wish replaces it.
    negotiation: Time,
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
            line: ethernet::Line::default(),
            generator: None,
            window: 0,
            clock: (Time::ZERO, 0),
            negotiation: Time::ZERO,
        };
        nic.load_address();
        nic
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
        self.counters = Statistics::new();
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

    // --- the line ---

    fn negotiate(&mut self, cx: &mut Context<'_>) {
        self.set_link(cx, false);
        self.negotiation = cx.now() + NEGOTIATION;
        cx.timer(self.negotiation, timer::LINK);
    }

    fn set_link(&mut self, cx: &mut Context<'_>, up: bool) {
        self.phy.set_link(up);
        let before = self.file.get(regs::STATUS);
        let bits = status::LU | status::FD | status::SPEED_1000;
        let after = if up { before | bits } else { before & !(status::LU | status::FD) };
        self.file.set(regs::STATUS, after);
        if before != after {
            self.raise(cx, cause::LSC);
        }
    }

    /// Sends what has been put together.
    fn pump(&mut self, cx: &mut Context<'_>) {
        let mut out = Vec::new();
        self.transmitter.work(cx, &self.file);
        let mut causes = self.transmitter.retire(cx, &mut self.file, &mut self.counters, &mut out);
        // What was retired left descriptors to fetch.
        self.transmitter.work(cx, &self.file);
        for frame in out {
            let leaves = self.line.send(cx.now(), frame.data.len());
            cx.timer(leaves, timer::SENT);
            self.outgoing.push_back((leaves, frame));
        }
        causes |= self.receiver.deliver(cx, &mut self.file);
        self.raise(cx, causes);
    }

    /// The first frame of the queue has left.
    fn sent(&mut self, cx: &mut Context<'_>) {
        // A timer of before a reset finds no frame that leaves now.
        let Some((_, frame)) = self.leaving(cx.now()) else { return };
        self.transmitter.sent(&frame);
        let bytes = frame.data.len() + ethernet::FCS;
        self.counters.sent(bytes, receive::destination(&frame.data));
        let inside = self.phy.loops_back() || self.file.has(regs::RCTL, rctl::LBM_MAC);
        let comes_back = inside || self.config.cable == Cable::LoopBack && self.link();
        if comes_back {
            self.arrive(cx, frame.data);
        }
        self.pump(cx);
    }

    fn leaving(&mut self, now: Time) -> Option<(Time, Outgoing)> {
        self.outgoing.front().filter(|(leaves, _)| *leaves == now)?;
        self.outgoing.pop_front()
    }

    fn link(&self) -> bool {
        self.file.has(regs::STATUS, status::LU)
    }

    fn arrive(&mut self, cx: &mut Context<'_>, frame: Payload) {
        let causes = self.receiver.arrive(cx, &mut self.file, &mut self.counters, frame);
        self.raise(cx, causes);
    }

    /// Starts the generator when there is one and a receiver for its frames.
    fn listen(&mut self, cx: &mut Context<'_>) {
        if self.generator.is_none() && self.link() && self.file.has(regs::RCTL, rctl::EN) {
            self.generator = Some((cx.now(), 0));
            self.expect(cx);
        }
    }
    /// Asks for the time at which the generator's next frame arrives.
    fn expect(&mut self, cx: &mut Context<'_>) {
        let (Cable::Source(traffic), Some((start, number))) = (self.config.cable, self.generator) else {
            return;
        };
        if traffic.count.is_none_or(|count| number < count) {
            cx.timer(start + traffic.arrival(number), timer::ARRIVED);
        }
    }
    fn generated(&mut self, cx: &mut Context<'_>) {
        let (Cable::Source(traffic), Some((start, number))) = (self.config.cable, self.generator) else {
            return;
        };
        self.generator = Some((start, number + 1));
        self.expect(cx);
        if self.link() {
            let frame = traffic.frame(number, self.config.mac, cx.length_only());
            self.arrive(cx, frame);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, id: u64) {
        match id {
            timer::LINK if cx.now() == self.negotiation => {
                let up = self.config.cable != Cable::Unplugged
                    && self.phy.is_on()
                    && self.file.has(regs::CTRL, ctrl::SLU);
                self.set_link(cx, up);
                self.listen(cx);
            }
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

    // --- registers ---

    fn read(&mut self, cx: &mut Context<'_>, at: u32) -> u32 {
        match at {
            regs::STATUS => {
                let off = self.file.has(regs::CTRL, ctrl::GIO_MASTER_DISABLE)
                    && !self.receiver.is_busy()
                    && !self.transmitter.is_busy();
                let value = self.file.get(at);
                if off { value & !status::GIO_MASTER_ENABLE } else { value }
            }
            regs::EERD => self.nvm.read(),
            regs::EEWR => self.nvm.written(),
            regs::MDIC => self.phy.access(),
            regs::ICR => self.interrupts.read(cx, &self.file),
            regs::ICS | regs::IMS => self.interrupts.mask(),
            regs::SWSM => {
                // Whoever reads the semaphore free has taken it.
                let value = self.file.get(at);
                self.file.set(at, value | 1);
                value
            }
            regs::SYSTIML => self.system_time(cx.now()) as u32,
            at if at == regs::SYSTIML + 4 => (self.system_time(cx.now()) >> 32) as u32,
            statistics::INTERRUPTS => self.interrupts.take_count(),
            at if Statistics::has(at) => self.counters.read(at),
            _ => self.file.get(at),
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, at: u32, value: u32) {
        match at {
            regs::CTRL => self.write_control(cx, value),
            regs::STATUS => {
                let kept = self.file.get(at) & (value | !status::PHYRA);
                self.file.set(at, kept);
            }
            regs::EECD => {
                self.file.write(at, value);
                let granted = if value & eecd::REQ != 0 { eecd::GNT } else { 0 };
                self.file.set(at, self.file.get(at) & !eecd::GNT | granted);
            }
            regs::EERD => self.nvm.read_command(value),
            regs::EEWR => self.nvm.write_command(value),
            regs::CTRL_EXT => {
                self.file.write(at, value);
                if value & ctrl_ext::EE_RST != 0 {
                    self.load_address();
                }
            }
            regs::MDIC => {
                if self.phy.command(value) == Wish::Negotiate {
                    self.negotiate(cx);
                }
                self.raise(cx, cause::MDAC & value >> 20);
            }
            regs::ICR => self.interrupts.clear(cx, &self.file, value),
            regs::ICS => self.raise(cx, value & !cause::ASSERTED),
            regs::IMS => self.interrupts.unmask(cx, &self.file, value),
            regs::IMC => self.interrupts.mask_off(cx, &self.file, value),
            regs::PBA => {
                // 40 KiB in all: what reception does not take is for transmission.
                let receive = (value & 0xFFFF).min(40);
                self.file.set(at, (40 - receive) << 16 | receive);
            }
            regs::SYSTIML => self.clock = (cx.now(), self.clock.1 & !0xFFFF_FFFF | u64::from(value)),
            at if at == regs::SYSTIML + 4 => {
                self.clock = (cx.now(), self.clock.1 & 0xFFFF_FFFF | u64::from(value) << 32);
            }
            regs::TIMINCA => {
                self.clock = (cx.now(), self.system_time(cx.now()));
                self.file.write(at, value);
            }
            _ => self.write_rings(cx, at, value),
        }
    }

    fn write_control(&mut self, cx: &mut Context<'_>, value: u32) {
        if value & ctrl::RST != 0 {
            return self.reset(cx);
        }
        let before = self.file.get(regs::CTRL);
        self.file.write(regs::CTRL, value);
        if value & ctrl::PHY_RST != 0 {
            self.phy.reset();
            self.file.set(regs::STATUS, self.file.get(regs::STATUS) | status::PHYRA);
        }
        if value & ctrl::PHY_RST != 0 || (before ^ value) & ctrl::SLU != 0 {
            self.negotiate(cx);
        }
        self.pump(cx);
    }

    /// Registers that the engines look at.
    fn write_rings(&mut self, cx: &mut Context<'_>, at: u32, value: u32) {
        self.file.write(at, value);
        match at {
            regs::RDH => self.receiver.ring.restart(&self.file),
            regs::TDH => self.transmitter.ring.restart(&self.file),
            regs::RDT | regs::TDT | regs::TCTL => self.pump(cx),
            regs::RCTL => {
                self.listen(cx);
                self.pump(cx);
            }
            // Bit 31: what waits to be told is told now.
            regs::RDTR if value >> 31 != 0 => {
                let causes = self.receiver.delayed(cx, true);
                self.raise(cx, causes);
            }
            regs::TIDV if value >> 31 != 0 => {
                let causes = self.transmitter.delayed(cx, true);
                self.raise(cx, causes);
            }
            _ => {}
        }
    }

    fn system_time(&self, now: Time) -> u64 {
        let (since, value) = self.clock;
        let (period, step) = (self.file.get(regs::TIMINCA) >> 24, self.file.get(regs::TIMINCA) & 0xFF_FFFF);
        let periods = now.saturating_since(since).as_fs() / (CLOCK.as_fs() * u64::from(period.max(1)));
        value.wrapping_add(periods.wrapping_mul(step.into()))
    }

    // --- BARs ---

    /// A word of a BAR.
    fn read_bar(&mut self, cx: &mut Context<'_>, bar: u8, at: u32) -> u32 {
        match (bar, at) {
            (0, at) => self.read(cx, at),
            (1, _) => u32::MAX, // no flash behind it
            (2, 0) => self.window,
            (2, 4) => self.read(cx, self.window),
            _ => 0,
        }
    }
    fn write_bar(&mut self, cx: &mut Context<'_>, bar: u8, at: u32, value: u32) {
        match (bar, at) {
            (0, at) => self.write(cx, at, value),
            (2, 0) => self.window = value & 0x1_FFFC,
            (2, 4) => self.write(cx, self.window, value),
            _ => {}
        }
    }

    fn mmio_read(&mut self, cx: &mut Context<'_>, bar: u8, offset: u64, bytes: u32) -> Payload {
        let (first, end) = (offset & !3, offset + u64::from(bytes));
        let words = (first..end).step_by(4).flat_map(|at| self.read_bar(cx, bar, at as u32).to_le_bytes());
        let data: Vec<u8> = words.collect();
        let skip = (offset - first) as usize;
        data[skip..skip + bytes as usize].into()
    }

    /// Registers are written as whole words; the bytes that a narrower write leaves out keep what they had.
    fn mmio_write(&mut self, cx: &mut Context<'_>, bar: u8, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        for at in (offset & !3..end).step_by(4) {
            let old = if bar == 0 { self.file.get(at as u32) } else { 0 };
            let mut word = old.to_le_bytes();
            for (place, byte) in word.iter_mut().enumerate() {
                let from = (at + place as u64).checked_sub(offset);
                *byte = from.and_then(|from| data.get(from as usize)).copied().unwrap_or(*byte);
            }
            self.write_bar(cx, bar, at as u32, u32::from_le_bytes(word));
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
                match self.receiver.fetched(cx, &mut self.file, op, &result) {
                    Some(causes) => self.raise(cx, causes),
                    None if self.transmitter.read(cx, &self.file, op, result).is_some() => self.pump(cx),
                    None => {} // of before a reset
                }
            }
            Event::DmaWriteAccepted { op } => {
                self.receiver.accepted(op);
                self.transmitter.accepted(op);
            }
            Event::Timer { id } => self.timer(cx, id),
            Event::Reset => {
                *self = Self::new(self.config);
                self.negotiate(cx);
            }
        }
    }
}
