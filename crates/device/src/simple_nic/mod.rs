//! `simple-nic`: the Ethernet controller that NetTLP's simple NIC is, with rings.
//!
//! The published device (NetTLP, 2020, section 5.4; after the model in pcie-bench, 2018) has five registers in BAR 4 and sends or receives
//! one frame at a time. A driver for it finds the same registers, descriptors and interrupts here. Behind them ([`regs`]) stand those of a
//! NIC that can be used: the sizes of its rings, a place where it writes how far it is, interrupt moderation, counters.
//!
//! ```text
//! transmit: doorbell ──▶ read descriptors, ahead ──▶ read frames, many at once ──▶ port, in order ──▶ heads ──▶ MSI-X vector 0
//! receive:  doorbell ──▶ read descriptors, ahead ──▶ a frame from the port: write it, write its descriptor ──▶ heads ──▶ vector 1
//! ```
//!
//! * [`regs`]: software's side; `queue`: a ring as the device sees it; `transmit` and `receive`: what is done with its descriptors
//! * [`port`]: the Ethernet side, and a simulated cable; [`frames`]: a port whose other end somebody outside holds, such as a TAP interface
//!
//! A ring of size 0 is the published one: every doorbell names one descriptor, and every frame interrupts. Otherwise a doorbell says how
//! many descriptors were ever posted, modulo 2^32, so that a doorbell that is lost is made good by the next one.

pub mod driver;
pub mod frames;
pub mod port;
mod queue;
mod receive;
pub mod regs;
mod transmit;

pub use frames::{FRAMES, Frames};
pub use port::{CablePort, Port};

use crate::contract::{Context, Device, Event, Stream};
use crate::copier::read_image;
use crate::identity::{BarSpec, Identity};
use crate::network::FrameCounts;
use receive::Receiver;
use regs::Registers;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_units::Duration;
use transmit::Transmitter;

/// Ours.
pub const VENDOR: u16 = VENDOR_ID;
/// The simple NIC.
pub const DEVICE: u16 = 0x0004;
/// The BAR with the registers.
pub const BAR: u8 = 4;
/// MSI-X vector of what was sent.
pub const SENT: u16 = 0;
/// MSI-X vector of what was received.
pub const RECEIVED: u16 = 1;

/// Stream of descriptor fetches.
const FETCH: u16 = 0;
/// Stream of the frames that are sent.
const TRANSMIT: u16 = 1;
/// Stream of all that is written, and of the interrupts that must stay behind it.
const WRITES: u16 = 2;
/// Its streams.
pub const STREAMS: &[Stream] = &[("fetch", "read"), ("transmit", "read"), ("receive", "write")];

/// Timers below this number are the port's.
const MODERATION: u64 = 1 << 32;

/// What a simple NIC is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleNicConfig {
    /// Its address.
    pub mac: [u8; 6],
    /// Most bytes that a frame carries behind its header of 14 B (and a VLAN tag of 4 B).
    pub mtu: u16,
}

impl Default for SimpleNicConfig {
    /// A locally administered address and the MTU of Ethernet, 1500 B.
    fn default() -> Self {
        Self { mac: [0x02, 0x1D, 0xE5, 0, 0, 4], mtu: 1500 }
    }
}

impl SimpleNicConfig {
    /// Bytes of the longest frame, without its check sequence.
    pub const fn longest(&self) -> u32 {
        self.mtu as u32 + 14 + 4
    }
}

/// What keeps interrupts apart.
#[derive(Clone, Copy, Debug, Default)]
struct Moderation {
    /// The last interrupt was not long ago.
    quiet: bool,
    /// There is something to tell when that is over.
    pending: bool,
}

/// The simple NIC.
#[derive(Clone, Debug)]
pub struct SimpleNic<P> {
    config: SimpleNicConfig,
    port: P,
    file: Registers,
    transmitter: Transmitter,
    receiver: Receiver,
    moderation: [Moderation; 2],
    /// Frames before the last reset, which clears the counters of the register file.
    before: FrameCounts,
}

impl<P: Port> SimpleNic<P> {
    /// A NIC at a port, after power-on.
    pub fn new(config: SimpleNicConfig, port: P) -> Self {
        let file = Registers::new(&config);
        let (transmitter, receiver) = (Transmitter::default(), Receiver::default());
        let before = FrameCounts::default();
        Self { config, port, file, transmitter, receiver, moderation: Default::default(), before }
    }

    fn frames(&self) -> FrameCounts {
        FrameCounts {
            sent: self.before.sent + self.file.long(regs::TX_FRAMES),
            received: self.before.received + self.file.long(regs::RX_FRAMES),
            missed: self.port.dropped(),
            too_long: self.before.too_long + self.file.long(regs::RX_TOO_LONG),
        }
    }

    fn write(&mut self, cx: &Context<'_>, offset: u64, data: &[u8]) {
        let written = self.file.write(offset, data);
        let (sent, received) = (&mut self.transmitter.queue, &mut self.receiver.queue);
        if written(regs::TX_DESC_BASE, 8) || written(regs::TX_SIZE, 4) {
            self.transmitter =
                Transmitter::new(self.file.long(regs::TX_DESC_BASE), self.file.word(regs::TX_SIZE));
        } else if written(regs::TX_IDX, 4) && !sent.doorbell(self.file.word(regs::TX_IDX)) {
            self.file.count(regs::REFUSED_DOORBELLS, 1);
        }
        if written(regs::RX_DESC_BASE, 8) || written(regs::RX_SIZE, 4) {
            self.receiver = Receiver::new(self.file.long(regs::RX_DESC_BASE), self.file.word(regs::RX_SIZE));
        } else if written(regs::RX_IDX, 4) && !received.doorbell(self.file.word(regs::RX_IDX)) {
            self.file.count(regs::REFUSED_DOORBELLS, 1);
        }
        if written(regs::ENABLED, 4) {
            match self.file.enabled() {
                true => self.port.enable(self.config.mac, cx.length_only()),
                false => self.port.disable(),
            }
        }
    }

    /// Does all that can be done now.
    fn work(&mut self, cx: &mut Context<'_>) {
        if self.file.enabled() {
            let sent = self.transmitter.work(cx, &mut self.file, &mut self.port, self.config.longest());
            self.tell(cx, SENT, sent);
            let received = self.receiver.work(cx, &mut self.file, &mut self.port);
            self.tell(cx, RECEIVED, received);
        }
        while let Some((after, id)) = self.port.wait() {
            cx.timer(cx.now() + after, id);
        }
    }

    /// So many descriptors are done.
    fn tell(&mut self, cx: &mut Context<'_>, vector: u16, done: u32) {
        let ring = match vector {
            SENT => self.transmitter.queue.is_ring(),
            _ => self.receiver.queue.is_ring(),
        };
        // The published driver counts interrupts.
        let interrupts = if ring { done.min(1) } else { done };
        for _ in 0..interrupts {
            self.interrupt(cx, vector);
        }
    }

    fn interrupt(&mut self, cx: &mut Context<'_>, vector: u16) {
        let apart = u64::from(self.file.word(regs::MODERATION));
        let state = &mut self.moderation[usize::from(vector)];
        if state.quiet {
            state.pending = true;
            return;
        }
        if apart > 0 {
            state.quiet = true;
            cx.timer(cx.now() + Duration::from_ns(apart), MODERATION + u64::from(vector));
        }
        let heads = self.file.long(regs::HEADS);
        if heads != 0 {
            let image = self.image();
            cx.dma_write(WRITES, heads, image[regs::TX_HEAD as usize..][..8].into());
        }
        cx.msix(WRITES, vector);
    }

    fn timer(&mut self, cx: &mut Context<'_>, id: u64) {
        if id < MODERATION {
            return self.port.elapsed(id);
        }
        let vector = id - MODERATION;
        let Some(state) = self.moderation.get_mut(vector as usize) else { return };
        state.quiet = false;
        if std::mem::take(&mut state.pending) {
            self.interrupt(cx, vector as u16);
        }
    }

    /// The registers as software reads them.
    fn image(&self) -> [u8; regs::END as usize] {
        self.file.image(self.transmitter.queue.head(), self.receiver.queue.head())
    }
}

impl<P: Port> Device for SimpleNic<P> {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::memory(BAR, 4096)],
            msix_vectors: 2,
            ..Identity::new(VENDOR, DEVICE, 0x02_00_00) // Ethernet controller
        }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => {
                return cx.reply(reply, read_image(&self.image(), offset, bytes));
            }
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes() {
                    self.write(cx, offset, bytes);
                }
            }
            Event::DmaReadDone { op, result } => {
                if !self.transmitter.read(op, &result) {
                    self.receiver.queue.fetched(op, &result);
                }
            }
            Event::Timer { id } => self.timer(cx, id),
            Event::Reset => {
                self.before = self.frames();
                self.port.reset();
                self.file = Registers::new(&self.config);
                (self.transmitter, self.receiver) = (Transmitter::default(), Receiver::default());
                self.moderation = Default::default();
            }
            Event::Start | Event::DmaWriteAccepted { .. } => {}
        }
        self.work(cx);
    }

    fn frame_counts(&self) -> Option<FrameCounts> {
        Some(self.frames())
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(Self {
            config: self.config,
            port: self.port.snapshot()?,
            file: self.file.clone(),
            transmitter: self.transmitter.clone(),
            receiver: self.receiver.clone(),
            moderation: self.moderation,
            before: self.before,
        }))
    }
}
