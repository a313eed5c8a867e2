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
use crate::identity::{BarSpec, Identity};
use crate::kit::RegisterFile;
use crate::network::FrameCounts;
use queue::Queue;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;
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

crate::streams! {
    /// Descriptor fetches.
    FETCH: "fetch" = "read";
    /// The frames that are sent.
    TRANSMIT: "transmit" = "read";
    /// Writes, and the interrupts that must stay behind it.
    WRITES: "receive" = "write";
}

/// Timers below this number are the port's.
const MODERATION: u64 = 1 << 32;

/// The properties of a simple NIC.
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

/// The moderation of interrupts.
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
    file: RegisterFile,
    transmitter: Transmitter,
    received: Queue,
    moderation: [Moderation; 2],
    /// Frames before the last reset, which clears the counters of the register file.
    before: FrameCounts,
}

impl<P: Port> SimpleNic<P> {
    /// A NIC at a port, after power-on.
    pub fn new(config: SimpleNicConfig, port: P) -> Self {
        let file = regs::registers(&config);
        let (transmitter, received) = (Transmitter::default(), Queue::default());
        let before = FrameCounts::default();
        Self { config, port, file, transmitter, received, moderation: Default::default(), before }
    }

    fn frames(&self) -> FrameCounts {
        FrameCounts {
            sent: self.before.sent + self.file.get(regs::TX_FRAMES),
            received: self.before.received + self.file.get(regs::RX_FRAMES),
            missed: self.port.dropped(),
            too_long: self.before.too_long + self.file.get(regs::RX_TOO_LONG),
        }
    }

    fn is_enabled(&self) -> bool {
        self.file.get(regs::ENABLED) & 1 != 0
    }

    fn write(&mut self, cx: &Context<'_>, offset: u64, data: &Payload) {
        let written = self.file.write(offset, data);
        let file = &mut self.file;
        let (base, size) = (file.get(regs::TX_DESC_BASE), file.get(regs::TX_SIZE));
        if written.touches(regs::TX_DESC_BASE) || written.touches(regs::TX_SIZE) {
            self.transmitter = Transmitter::new(base, size);
        } else if written.touches(regs::TX_IDX) && !self.transmitter.queue.doorbell(file.get(regs::TX_IDX)) {
            file.add(regs::REFUSED_DOORBELLS, 1);
        }
        let (base, size) = (file.get(regs::RX_DESC_BASE), file.get(regs::RX_SIZE));
        if written.touches(regs::RX_DESC_BASE) || written.touches(regs::RX_SIZE) {
            self.received = Queue::new(base, size);
        } else if written.touches(regs::RX_IDX) && !self.received.doorbell(file.get(regs::RX_IDX)) {
            file.add(regs::REFUSED_DOORBELLS, 1);
        }
        if written.touches(regs::ENABLED) {
            match self.is_enabled() {
                true => self.port.enable(self.config.mac, cx.length_only()),
                false => self.port.disable(),
            }
        }
    }

    /// Software reads the heads, which are the queues' to know.
    fn show(&mut self) {
        self.file.set(regs::TX_HEAD, self.transmitter.queue.head());
        self.file.set(regs::RX_HEAD, self.received.head());
    }

    /// Does all that can be done now.
    fn work(&mut self, cx: &mut Context<'_>) {
        if self.is_enabled() {
            let sent = self.transmitter.work(cx, &mut self.file, &mut self.port, self.config.longest());
            self.tell(cx, SENT, sent);
            let received = receive::work(&mut self.received, cx, &mut self.file, &mut self.port);
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
            _ => self.received.is_ring(),
        };
        // The published driver counts interrupts.
        let interrupts = if ring { done.min(1) } else { done };
        for _ in 0..interrupts {
            self.interrupt(cx, vector);
        }
    }

    fn interrupt(&mut self, cx: &mut Context<'_>, vector: u16) {
        let apart = u64::from(self.file.get(regs::MODERATION));
        let state = &mut self.moderation[usize::from(vector)];
        if state.quiet {
            state.pending = true;
            return;
        }
        if apart > 0 {
            state.quiet = true;
            cx.timer(cx.now() + Duration::from_ns(apart), MODERATION + u64::from(vector));
        }
        let heads = self.file.get(regs::HEADS);
        if heads != 0 {
            self.show();
            cx.dma_write(WRITES, heads, self.file.read(regs::TX_HEAD.offset(), 8));
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

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => {
                self.show();
                return cx.reply(reply, self.file.read(offset, bytes));
            }
            Event::MmioWrite { offset, data, .. } => self.write(cx, offset, &data),
            Event::DmaReadDone { op, result } => {
                if !self.transmitter.read(op, &result) {
                    self.received.fetched(op, &result);
                }
            }
            Event::Timer { id } => self.timer(cx, id),
            Event::Reset => {
                self.before = self.frames();
                self.port.reset();
                self.file = regs::registers(&self.config);
                (self.transmitter, self.received) = (Transmitter::default(), Queue::default());
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
            received: self.received.clone(),
            moderation: self.moderation,
            before: self.before,
        }))
    }
}
