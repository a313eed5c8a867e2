//! A program on the host that does one thing after the other and remembers what it reads, and a card for it to play with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tlplab_device::{
    BarSpec, Context, Device, DmaError, Event, HostContext, HostEvent, HostProgram, IO_SPACE, Identity, OpId,
    ecam_address,
};
use tlplab_units::{Bdf, Duration, Time};

/// An address, once enumeration has said where things are.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Of a device: a BAR, and the offset in it; I/O too.
    Bar(&'static str, u8, u64),
    /// Of a device: a register of its configuration space.
    Config(&'static str, u16),
    /// Of whoever has that number.
    Function(Bdf, u16),
}

/// What to do next, when what came before is over.
#[derive(Clone, Debug)]
pub enum Step {
    Read(Place, u64),
    Write(Place, Vec<u8>),
    Wait(Duration),
}

pub fn read(place: Place, bytes: u64) -> Step {
    Step::Read(place, bytes)
}

pub fn write(place: Place, data: &[u8]) -> Step {
    Step::Write(place, data.to_vec())
}

/// What the program saw.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The outcome of each read.
    pub reads: Vec<Result<Vec<u8>, DmaError>>,
    /// Device and vector.
    pub interrupts: Vec<(usize, u16)>,
    /// Root ports that interrupted.
    pub ports: Vec<Bdf>,
    /// When it could begin.
    pub started: Option<Time>,
}

impl Heard {
    /// The reads as little-endian numbers; all must have come.
    pub fn values(&self) -> Vec<u64> {
        let value = |data: &Vec<u8>| data.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        self.reads.iter().map(|read| value(read.as_ref().expect("the read was answered"))).collect()
    }
}

pub struct Script {
    steps: std::vec::IntoIter<Step>,
    heard: Arc<Mutex<Heard>>,
}

impl Script {
    pub fn new(steps: Vec<Step>) -> (Box<Self>, Arc<Mutex<Heard>>) {
        let heard = Arc::<Mutex<Heard>>::default();
        (Box::new(Self { steps: steps.into_iter(), heard: heard.clone() }), heard)
    }

    fn next(&mut self, cx: &mut HostContext<'_>) {
        match self.steps.next() {
            Some(Step::Read(place, bytes)) => {
                cx.mmio_read(0, address(cx, place), bytes);
            }
            Some(Step::Write(place, data)) => {
                cx.mmio_write(0, address(cx, place), data.into());
            }
            Some(Step::Wait(time)) => cx.timer(cx.now() + time, 0),
            None => cx.finished(),
        }
    }
}

fn address(cx: &HostContext<'_>, place: Place) -> u64 {
    let info = |name: &str| cx.device(name).expect("the device exists").1;
    match place {
        Place::Bar(name, bar, offset) => {
            let base = info(name).bars[usize::from(bar)].expect("it has the BAR").0;
            // I/O space is small; no memory of a device is so low.
            base + offset + if base < 0x1_0000 { IO_SPACE } else { 0 }
        }
        Place::Config(name, register) => ecam_address(info(name).id, register),
        Place::Function(bdf, register) => ecam_address(bdf, register),
    }
}

impl HostProgram for Script {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        let mut heard = self.heard.lock().unwrap();
        match event {
            HostEvent::Start => heard.started = Some(cx.now()),
            HostEvent::MmioReadDone { result, .. } => {
                heard.reads.push(result.map(|data| data.bytes().expect("payloads are carried").to_vec()));
            }
            HostEvent::Interrupt { device, vector } => {
                heard.interrupts.push((device, vector));
                return;
            }
            HostEvent::Message { .. } | HostEvent::Wire { .. } => return,
            HostEvent::PortInterrupt { port, .. } => {
                heard.ports.push(port);
                return;
            }
            HostEvent::MmioWriteAccepted { .. } | HostEvent::Timer { .. } => {}
        }
        drop(heard);
        self.next(cx);
    }
}

/// What the card saw.
#[derive(Clone, Debug, Default)]
pub struct Lived {
    pub starts: u32,
    pub resets: u32,
    /// Copies that are done: when.
    pub copied: Vec<Time>,
    /// Why others were not.
    pub failed: Vec<DmaError>,
    /// Timers that came.
    pub timers: Vec<u64>,
}

/// Where BAR 0 starts work: the address written there is read, what is there goes to the address plus `COPY`, then it interrupts.
pub const DOORBELL: u64 = 0x100;
pub const COPY: u64 = 0x1000;
pub const COPY_BYTES: u64 = 512;
/// Started on these addresses it only reads, on and on, and asks for a timer after `BUSY_TIMER`.
pub const BUSY: u32 = 0x4000_0000;
pub const BUSY_TIMER: Duration = Duration::from_us(30);

/// Registers in memory (BAR 0), in I/O space (BAR 1) and 1 MiB of prefetchable memory (BAR 2), which keep what is written; and a
/// machine that copies.
pub struct Card {
    identity: Identity,
    kept: BTreeMap<(u8, u64), u8>,
    reads: BTreeMap<OpId, u64>,
    lived: Arc<Mutex<Lived>>,
}

impl Card {
    /// With MSI-X, MSI and a pin.
    pub fn new() -> (Box<Self>, Arc<Mutex<Lived>>) {
        let bars = vec![BarSpec::registers(0, 4096), BarSpec::io(1, 32), BarSpec::memory(2, 1 << 20)];
        let identity = Identity {
            bars,
            msix_vectors: 2,
            msi_vectors: 1,
            intx: true,
            ..Identity::new(0x71AB, 0x00FD, 0x12_00_00)
        };
        Self::with(identity)
    }

    pub fn with(identity: Identity) -> (Box<Self>, Arc<Mutex<Lived>>) {
        let lived = Arc::<Mutex<Lived>>::default();
        let (kept, reads) = (BTreeMap::new(), BTreeMap::new());
        (Box::new(Self { identity, kept, reads, lived: lived.clone() }), lived)
    }

    fn begin(&mut self, cx: &mut Context<'_>, address: u32) {
        if address >= BUSY {
            cx.timer(cx.now() + BUSY_TIMER, 7);
        }
        let op = cx.dma_read(0, address.into(), COPY_BYTES);
        self.reads.insert(op, address.into());
    }
}

impl Device for Card {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        let lived = self.lived.clone();
        let mut lived = lived.lock().unwrap();
        match event {
            Event::Start => lived.starts += 1,
            Event::Reset => {
                lived.resets += 1;
                self.reads.clear();
                self.kept.clear();
            }
            Event::MmioRead { bar, offset, bytes, reply } => {
                let byte = |at| self.kept.get(&(bar, at)).copied().unwrap_or(0);
                let data: Vec<u8> = (offset..offset + u64::from(bytes)).map(byte).collect();
                cx.reply(reply, data.into());
            }
            Event::MmioWrite { bar, offset, data } => {
                let data = data.bytes().expect("payloads are carried");
                if (bar, offset) == (0, DOORBELL) {
                    return self.begin(cx, u32::from_le_bytes(data.try_into().expect("a dword")));
                }
                self.kept.extend((offset..).zip(data).map(|(at, byte)| ((bar, at), *byte)));
            }
            Event::DmaReadDone { op, result } => {
                let address = self.reads.remove(&op).expect("each read ends once, and none after a reset");
                match result {
                    Ok(_) if address >= u64::from(BUSY) => self.begin(cx, BUSY),
                    Ok(data) => {
                        cx.dma_write(0, address + COPY, data);
                        cx.msix(0, 1);
                        lived.copied.push(cx.now());
                    }
                    Err(error) => lived.failed.push(error),
                }
            }
            Event::DmaWriteAccepted { .. } => {}
            Event::Timer { id } => lived.timers.push(id),
        }
    }
}
