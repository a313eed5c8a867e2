//! The driver of a ring device: what a network or storage driver does, in its smallest form.

use crate::host::{HostContext, HostEvent, HostProgram};
use crate::ring::{Descriptor, regs};

/// The work of a ring driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingLoad {
    /// Descriptors in the ring.
    pub entries: u32,
    /// Bytes of each buffer.
    pub bytes: u32,
    /// The device writes the buffers; otherwise it reads them.
    pub receive: bool,
    /// Every so many descriptors ask for an interrupt; at least 1.
    pub interrupt_every: u32,
    /// Descriptors in all; `None` for no end.
    pub count: Option<u32>,
}

impl Default for RingLoad {
    /// 256 entries of 1500 B to be received, an interrupt every 16, without end.
    fn default() -> Self {
        Self { entries: 256, bytes: 1500, receive: true, interrupt_every: 16, count: None }
    }
}

/// Keeps the ring of one device full: posts descriptors, rings the doorbell, and on each interrupt looks at the head that the
/// device wrote back. Checks that nothing was done that was not posted.
#[derive(Clone, Debug)]
pub struct RingDriver {
    device: String,
    load: RingLoad,
    index: usize,
    registers: u64,
    ring: u64,
    buffers: u64,
    head_at: u64,
    posted: u32,
    head: u32,
}

impl RingDriver {
    /// A driver for the ring device called `device`.
    pub fn new(device: &str, load: RingLoad) -> Self {
        // An interrupt must come before the ring runs dry.
        let entries = load.entries.max(1);
        let load = RingLoad { entries, interrupt_every: load.interrupt_every.clamp(1, entries), ..load };
        let device = device.to_string();
        let (index, registers, ring, buffers, head_at, posted, head) = (0, 0, 0, 0, 0, 0, 0);
        Self { device, load, index, registers, ring, buffers, head_at, posted, head }
    }

    /// Descriptors the device has done, as far as the driver has seen.
    pub fn done(&self) -> u32 {
        self.head
    }

    fn stride(&self) -> u64 {
        u64::from(self.load.bytes).max(1).next_multiple_of(64)
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        let registers = info.base(0)?;
        info.interrupting()?;
        let entries = u64::from(self.load.entries);
        let mut alloc = |bytes| cx.memory().alloc(bytes, 4096).map_err(|error| error.to_string());
        let (ring, buffers) = (alloc(entries * Descriptor::BYTES)?, alloc(entries * self.stride())?);
        (self.head_at, self.ring, self.buffers) = (alloc(4)?, ring, buffers);
        (self.index, self.registers) = (index, registers);
        // BASE, ENTRIES and an empty ring, then WRITE_BACK.
        let mut setup = [0; 24];
        setup[..8].copy_from_slice(&self.ring.to_le_bytes());
        setup[8..12].copy_from_slice(&self.load.entries.to_le_bytes());
        setup[16..].copy_from_slice(&self.head_at.to_le_bytes());
        cx.mmio_write(0, registers + regs::BASE, setup.into());
        Ok(())
    }

    /// Posts as many descriptors as the ring has room for.
    fn post(&mut self, cx: &mut HostContext<'_>) {
        let left = self.load.count.map_or(u32::MAX, |count| count - self.posted);
        let new = left.min(self.load.entries - self.posted.wrapping_sub(self.head));
        if new == 0 {
            return;
        }
        for number in (0..new).map(|i| self.posted.wrapping_add(i)) {
            let slot = u64::from(number % self.load.entries);
            let every = self.load.interrupt_every;
            let last = self.load.count == Some(number.wrapping_add(1));
            let descriptor = Descriptor {
                address: self.buffers + slot * self.stride(),
                bytes: self.load.bytes,
                receive: self.load.receive,
                interrupt: last || number % every == every - 1,
            };
            cx.memory().write(self.ring + slot * Descriptor::BYTES, &descriptor.to_bytes());
        }
        self.posted = self.posted.wrapping_add(new);
        cx.mmio_write(0, self.registers + regs::TAIL, self.posted.to_le_bytes().into());
    }

    fn interrupt(&mut self, cx: &mut HostContext<'_>) {
        let mut head = [0; 4];
        cx.memory().read(self.head_at, &mut head);
        let head = u32::from_le_bytes(head);
        if head.wrapping_sub(self.head) > self.posted.wrapping_sub(self.head) {
            let (device, posted) = (&self.device, self.posted);
            return cx.fault(format!("{device} reports {head} descriptors done, but {posted} were posted"));
        }
        let progress = head != self.head;
        self.head = head;
        if self.load.count == Some(head) {
            if progress {
                cx.finished();
            }
            return;
        }
        self.post(cx);
    }
}

impl HostProgram for RingDriver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => match self.probe(cx) {
                Ok(()) => self.post(cx),
                Err(why) => cx.fault(why),
            },
            HostEvent::Interrupt { device, vector: 0 } if device == self.index => self.interrupt(cx),
            _ => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
