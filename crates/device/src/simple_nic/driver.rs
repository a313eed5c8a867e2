//! The driver of a simple NIC, between its rings and whoever has frames: a load that checks them, or a stack outside.

use crate::host::{DeviceInfo, HostContext, HostEvent, HostProgram};
use crate::nic::Traffic;
use crate::simple_nic::regs::{self, Descriptor};
use crate::simple_nic::{BAR, DEVICE, Frames, RECEIVED, SENT};
use tlplab_transaction::Payload;
use tlplab_units::Duration;

/// A source of frames to send, and receiver of those that come.
pub trait Stack: Send + 'static {
    /// The next frame to send. It is asked whenever the ring has room.
    fn next(&mut self, length_only: bool) -> Option<Payload>;
    /// A frame has come.
    ///
    /// # Errors
    /// The reason that it is wrong: the run fails.
    fn received(&mut self, frame: Payload) -> Result<(), String>;
    /// A copy; none, if others share the frames.
    fn snapshot(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// Everything is sent and received.
    fn is_over(&self) -> bool {
        false
    }
}

impl Stack for Frames {
    fn next(&mut self, _: bool) -> Option<Payload> {
        Frames::next(self)
    }
    fn received(&mut self, frame: Payload) -> Result<(), String> {
        self.give(frame);
        Ok(())
    }
}

/// Numbered frames to send, and to wait for. What comes must be what was sent, in order; what is missing is counted.
#[derive(Clone, Debug)]
pub struct FrameLoad {
    traffic: Traffic,
    send: u64,
    receive: u64,
    sent: u64,
    received: u64,
    /// The number of the next frame, if none is lost.
    expected: u64,
}

/// To all, so that whoever hears it takes it.
const BROADCAST: [u8; 6] = [0xFF; 6];

impl FrameLoad {
    /// Frames of `bytes`: so many to send, and so many to wait for.
    pub fn new(bytes: u32, send: u64, receive: u64) -> Self {
        let traffic = Traffic { bytes, rate: None, count: None };
        Self { traffic, send, receive, sent: 0, received: 0, expected: 0 }
    }
    /// Frames that have come, and those before them that have not.
    pub fn received(&self) -> (u64, u64) {
        (self.received, self.expected - self.received)
    }
}

impl Stack for FrameLoad {
    fn next(&mut self, length_only: bool) -> Option<Payload> {
        let number = self.sent;
        (number < self.send).then(|| {
            self.sent += 1;
            self.traffic.frame(number, BROADCAST, length_only)
        })
    }

    fn received(&mut self, frame: Payload) -> Result<(), String> {
        let mut number = self.expected;
        if let Some(bytes) = frame.bytes() {
            let (destination, its) = (bytes.first_chunk(), bytes.get(14..22).and_then(<[u8]>::first_chunk));
            number = its.map_or(0, |its| u64::from_be_bytes(*its));
            let sent = destination.map(|to| self.traffic.frame(number, *to, false));
            if sent.as_ref() != Some(&frame) || number < self.expected {
                return Err(format!("frame {} arrived changed, twice or out of order", self.expected));
            }
        }
        self.expected = number + 1;
        self.received += 1;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.sent == self.send && self.received >= self.receive
    }
    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// A driver's use of its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleNicRings {
    /// Descriptors in each ring; 1 for the published protocol, in which each frame is waited for.
    pub entries: u32,
    /// Least time between two interrupts of a direction.
    pub moderation: Duration,
}

impl Default for SimpleNicRings {
    /// 256 descriptors, an interrupt whenever there is something to tell.
    fn default() -> Self {
        Self { entries: 256, moderation: Duration::ZERO }
    }
}

/// Bytes of a buffer: those of the longest frame.
const BUFFER: u64 = 2048;
/// The timer that sees whether anything goes on. (Timer [`FRAMES`](crate::simple_nic::FRAMES) only wakes the driver.)
const WATCHDOG: u64 = 1;
/// A NIC that has sent nothing for so long is told again what there is to do: its doorbell may be lost on the way.
const PATIENCE: Duration = Duration::from_ms(100);

/// A ring as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    descriptors: u64,
    buffers: u64,
    entries: u64,
    posted: u64,
    head: u64,
}

impl Ring {
    fn new(cx: &mut HostContext<'_>, entries: u32) -> Result<Self, String> {
        let entries = u64::from(entries);
        let mut alloc = |bytes| cx.memory().alloc(bytes, 4096).map_err(|error| error.to_string());
        let (descriptors, buffers) = (alloc(entries * Descriptor::BYTES)?, alloc(entries * BUFFER)?);
        Ok(Self { descriptors, buffers, entries, posted: 0, head: 0 })
    }

    fn under_way(&self) -> u64 {
        self.posted - self.head
    }
    fn has_room(&self) -> bool {
        self.under_way() < self.entries
    }
    fn buffer(&self, number: u64) -> u64 {
        self.buffers + number % self.entries * BUFFER
    }
    fn descriptor(&self, number: u64) -> u64 {
        self.descriptors + number % self.entries * Descriptor::BYTES
    }

    fn post(&mut self, cx: &mut HostContext<'_>, length: u64) {
        let descriptor = Descriptor { address: self.buffer(self.posted), length };
        cx.memory().write(self.descriptor(self.posted), &descriptor.to_bytes());
        self.posted += 1;
    }

    /// The progress of the device by its own count modulo 2^32. A count from before the known one has no effect.
    fn advance(&self, head: u32) -> Result<u64, String> {
        let new = head.wrapping_sub(self.head as u32);
        match u64::from(new) {
            new if new <= self.under_way() => Ok(self.head + new),
            new if new > 1 << 31 => Ok(self.head),
            _ => Err(format!("reports {head} descriptors done, but {} were posted", self.posted as u32)),
        }
    }
}

/// Drives one simple NIC.
#[derive(Clone, Debug)]
pub struct SimpleNicDriver<S> {
    device: String,
    rings: SimpleNicRings,
    stack: S,
    index: usize,
    registers: u64,
    heads: u64,
    send: Ring,
    receive: Ring,
    /// The progress of sending at the watchdog's last look.
    watched: Option<u64>,
    over: bool,
}

impl<S: Stack> SimpleNicDriver<S> {
    /// A driver for the simple NIC called `device`.
    pub fn new(device: &str, rings: SimpleNicRings, stack: S) -> Self {
        let rings = SimpleNicRings { entries: rings.entries.clamp(1, regs::LARGEST_RING), ..rings };
        let (index, registers, heads, send, receive) = (0, 0, 0, Ring::default(), Ring::default());
        let device = device.to_string();
        Self { device, rings, stack, index, registers, heads, send, receive, watched: None, over: false }
    }

    /// Whoever has the frames.
    pub fn stack(&self) -> &S {
        &self.stack
    }

    fn is_published(&self) -> bool {
        self.rings.entries == 1
    }

    fn write(&self, cx: &mut HostContext<'_>, register: u64, bytes: &[u8]) {
        cx.mmio_write(0, self.registers + register, bytes.into());
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        check_ids(info)?;
        info.interrupting()?;
        (self.index, self.registers) = (index, info.base(BAR)?);
        self.send = Ring::new(cx, self.rings.entries)?;
        self.receive = Ring::new(cx, self.rings.entries)?;
        self.heads = cx.memory().alloc(8, 64).map_err(|error| error.to_string())?;
        self.write(cx, regs::ENABLED.offset(), &1u32.to_le_bytes());
        self.write(cx, regs::TX_DESC_BASE.offset(), &self.send.descriptors.to_le_bytes());
        self.write(cx, regs::RX_DESC_BASE.offset(), &self.receive.descriptors.to_le_bytes());
        if !self.is_published() {
            let size = self.rings.entries.to_le_bytes();
            let apart = u32::try_from(self.rings.moderation.as_ns()).unwrap_or(u32::MAX);
            let (heads, apart) = (self.heads.to_le_bytes(), apart.to_le_bytes());
            self.write(cx, regs::TX_SIZE.offset(), &[&size[..], &size, &heads, &apart].concat());
        }
        Ok(())
    }

    fn ring(&self, cx: &mut HostContext<'_>, doorbell: u64, ring: &Ring) {
        let value = if self.is_published() { 0 } else { ring.posted as u32 };
        self.write(cx, doorbell, &value.to_le_bytes());
    }

    /// Gives the NIC all buffers that it does not have.
    fn refill(&mut self, cx: &mut HostContext<'_>) {
        let before = self.receive.posted;
        while self.receive.has_room() {
            self.receive.post(cx, BUFFER);
        }
        if self.receive.posted > before {
            self.ring(cx, regs::RX_IDX.offset(), &self.receive);
        }
    }

    /// Sends what there is to send.
    fn transmit(&mut self, cx: &mut HostContext<'_>) {
        let before = self.send.posted;
        while self.send.has_room() {
            let Some(frame) = self.stack.next(cx.length_only()) else { break };
            if frame.len() > BUFFER {
                continue; // No Ethernet carries it.
            }
            if let Some(bytes) = frame.bytes() {
                cx.memory().write(self.send.buffer(self.send.posted), bytes);
            }
            self.send.post(cx, frame.len());
        }
        if self.send.posted > before {
            self.ring(cx, regs::TX_IDX.offset(), &self.send);
            self.watch(cx);
        }
    }

    fn watch(&mut self, cx: &mut HostContext<'_>) {
        if self.watched.is_none() && !self.is_published() {
            self.watched = Some(self.send.head);
            cx.timer(cx.now() + PATIENCE, WATCHDOG);
        }
    }

    /// Nothing is said twice in the published protocol, where it would be another frame.
    fn look(&mut self, cx: &mut HostContext<'_>) {
        if self.send.under_way() == 0 {
            self.watched = None;
            return;
        }
        if self.watched.take() == Some(self.send.head) {
            self.ring(cx, regs::TX_IDX.offset(), &self.send);
            self.ring(cx, regs::RX_IDX.offset(), &self.receive);
        }
        self.watch(cx);
    }

    fn interrupt(&mut self, cx: &mut HostContext<'_>, vector: u16) -> Result<(), String> {
        if self.is_published() {
            let done = |ring: &Ring, own: u16| ring.head + u64::from(vector == own && ring.under_way() > 0);
            self.send.head = done(&self.send, SENT);
            let received = done(&self.receive, RECEIVED);
            self.take(cx, received)?;
        } else {
            let mut heads = [0; 8];
            cx.memory().read(self.heads, &mut heads);
            let heads = u64::from_le_bytes(heads);
            self.send.head = self.send.advance(heads as u32)?;
            let received = self.receive.advance((heads >> 32) as u32)?;
            self.take(cx, received)?;
        }
        self.refill(cx);
        self.transmit(cx);
        if self.stack.is_over() && self.send.under_way() == 0 && !std::mem::replace(&mut self.over, true) {
            // A partner that goes on sending would keep the link busy for ever.
            self.write(cx, regs::ENABLED.offset(), &0u32.to_le_bytes());
            cx.finished();
        }
        Ok(())
    }

    /// Takes the frames of all buffers below number `head`.
    fn take(&mut self, cx: &mut HostContext<'_>, head: u64) -> Result<(), String> {
        for number in self.receive.head..head {
            let mut descriptor = [0; Descriptor::BYTES as usize];
            cx.memory().read(self.receive.descriptor(number), &mut descriptor);
            let length = Descriptor::from_bytes(&descriptor).length;
            let frame = match length {
                0 => continue, // lost by the device
                _ if length > BUFFER => return Err(format!("received {length} B in a buffer of {BUFFER} B")),
                _ if cx.length_only() => Payload::Length(length),
                _ => {
                    let mut frame = vec![0; length as usize];
                    cx.memory().read(self.receive.buffer(number), &mut frame);
                    frame.into()
                }
            };
            self.stack.received(frame)?;
        }
        self.receive.head = head;
        Ok(())
    }
}

fn check_ids(info: &DeviceInfo) -> Result<(), String> {
    let (vendor, device) = info.ids;
    // The FPGA card says nothing of the software behind it.
    if [(info.own_vendor, DEVICE), (0x3776, 0x8022)].contains(&info.ids) {
        return Ok(());
    }
    Err(format!(
        "{} is {vendor:04x}:{device:04x}; this driver is for {:04x}:{DEVICE:04x}",
        info.name, info.own_vendor
    ))
}

impl<S: Stack> HostProgram for SimpleNicDriver<S> {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        let result = match event {
            HostEvent::Start => self.probe(cx).map(|()| {
                self.refill(cx);
                self.transmit(cx);
            }),
            HostEvent::Interrupt { device, vector } if device == self.index => {
                self.interrupt(cx, vector).map_err(|why| format!("{} {why}", self.device))
            }
            HostEvent::Timer { id: WATCHDOG } => {
                self.look(cx);
                Ok(())
            }
            HostEvent::Timer { .. } => {
                self.transmit(cx);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = result {
            cx.fault(why);
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(Self {
            device: self.device.clone(),
            rings: self.rings,
            stack: self.stack.snapshot()?,
            index: self.index,
            registers: self.registers,
            heads: self.heads,
            send: self.send,
            receive: self.receive,
            watched: self.watched,
            over: self.over,
        }))
    }
}
