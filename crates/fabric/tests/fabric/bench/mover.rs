//! A device, or a program on the host, that moves data and checks what it reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tlplab_device::{
    BarSpec, Context, Device, DmaError, Event, HostContext, HostEvent, HostProgram, Identity, OpId, Payload,
};
use tlplab_units::Time;

/// What lies at an address: a function of it, so that nobody has to remember.
pub fn byte_at(address: u64) -> u8 {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

pub fn bytes_at(address: u64, bytes: u64) -> Vec<u8> {
    (address..address + bytes).map(byte_at).collect()
}

/// Something to do. Addresses are relative to the mover's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Read { at: u64, bytes: u64 },
    Write { at: u64, bytes: u64 },
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    pub started: u64,
    pub read: u64,
    pub accepted: u64,
    pub failed: Vec<DmaError>,
    /// Under way when the device was reset.
    pub cancelled: u64,
    /// Reads that returned something else than `bytes_at`.
    pub wrong: Vec<(u64, u64)>,
    pub interrupts: Vec<(usize, u16)>,
    /// What each read returned, in the order of completion.
    pub data: Vec<Payload>,
    pub over_at: Vec<Time>,
}

/// Where a mover's addresses start.
#[derive(Clone, Debug)]
pub enum Base {
    Address(u64),
    Bar(String, u8),
}

#[derive(Clone)]
pub struct Mover {
    base: Base,
    origin: Option<u64>,
    moves: Vec<Move>,
    outstanding: usize,
    next: usize,
    reading: BTreeMap<OpId, (u64, u64)>,
    in_flight: usize,
    verify: bool,
    moved: Arc<Mutex<Moved>>,
}

impl Mover {
    pub fn new(base: Base, outstanding: usize, moves: Vec<Move>) -> (Self, Arc<Mutex<Moved>>) {
        let moved = Arc::<Mutex<Moved>>::default();
        let (reading, verify) = (BTreeMap::new(), true);
        let mover = Self {
            base,
            origin: None,
            moves,
            outstanding,
            next: 0,
            reading,
            in_flight: 0,
            verify,
            moved: moved.clone(),
        };
        (mover, moved)
    }

    /// A copy that notes what becomes of its moves by itself.
    fn apart(&self) -> Self {
        let moved = Arc::new(Mutex::new(self.moved.lock().unwrap().clone()));
        Self { moved, ..self.clone() }
    }

    /// Does not compare what it reads.
    pub fn unchecked(self) -> Self {
        Self { verify: false, ..self }
    }
}

/// What both contexts can do.
trait Act {
    fn read(&mut self, address: u64, bytes: u64) -> OpId;
    fn write(&mut self, address: u64, data: Payload) -> OpId;
    fn bar(&self, device: &str, bar: u8) -> u64;
    fn only_lengths(&self) -> bool;
    fn over(&mut self);
    fn time(&self) -> Time;
}

impl Act for Context<'_> {
    fn read(&mut self, address: u64, bytes: u64) -> OpId {
        self.dma_read(0, address, bytes)
    }
    fn write(&mut self, address: u64, data: Payload) -> OpId {
        self.dma_write(0, address, data)
    }
    fn bar(&self, device: &str, bar: u8) -> u64 {
        self.peer(device).expect("the peer exists").bars[usize::from(bar)].expect("it has the BAR").0
    }
    fn only_lengths(&self) -> bool {
        self.length_only()
    }
    fn over(&mut self) {
        self.finished();
    }
    fn time(&self) -> Time {
        self.now()
    }
}

impl Act for HostContext<'_> {
    fn read(&mut self, address: u64, bytes: u64) -> OpId {
        self.mmio_read(0, address, bytes)
    }
    fn write(&mut self, address: u64, data: Payload) -> OpId {
        self.mmio_write(0, address, data)
    }
    fn bar(&self, device: &str, bar: u8) -> u64 {
        self.device(device).expect("the device exists").1.bars[usize::from(bar)].expect("it has the BAR").0
    }
    fn only_lengths(&self) -> bool {
        self.length_only()
    }
    fn over(&mut self) {
        self.finished();
    }
    fn time(&self) -> Time {
        self.now()
    }
}

impl Mover {
    fn begin(&mut self, cx: &mut impl Act) {
        // After a reset it goes on with what is left.
        self.origin.get_or_insert_with(|| match &self.base {
            Base::Address(address) => *address,
            Base::Bar(device, bar) => cx.bar(device, *bar),
        });
        self.advance(cx);
    }

    fn reset(&mut self) {
        self.moved.lock().unwrap().cancelled += std::mem::take(&mut self.in_flight) as u64;
        self.reading.clear();
    }

    fn advance(&mut self, cx: &mut impl Act) {
        let origin = self.origin.expect("it has begun");
        while self.in_flight < self.outstanding && self.next < self.moves.len() {
            match self.moves[self.next] {
                Move::Read { at, bytes } => {
                    let op = cx.read(origin + at, bytes);
                    self.reading.insert(op, (origin + at, bytes));
                }
                Move::Write { at, bytes } => {
                    let address = origin + at;
                    let data = if cx.only_lengths() {
                        Payload::Length(bytes)
                    } else {
                        bytes_at(address, bytes).into()
                    };
                    cx.write(address, data);
                }
            }
            self.next += 1;
            self.in_flight += 1;
            self.moved.lock().unwrap().started += 1;
        }
        if self.in_flight == 0 && self.next == self.moves.len() {
            self.next += 1;
            cx.over();
        }
    }

    fn read_done(&mut self, cx: &mut impl Act, op: OpId, result: Result<Payload, DmaError>) {
        let mut moved = self.moved.lock().unwrap();
        moved.over_at.push(cx.time());
        let (address, bytes) = self.reading.remove(&op).expect("each read ends once");
        match result {
            Ok(data) => {
                moved.read += 1;
                assert_eq!(data.len(), bytes);
                if self.verify
                    && bytes > 0
                    && !cx.only_lengths()
                    && data.bytes() != Some(&bytes_at(address, bytes))
                {
                    moved.wrong.push((address, bytes));
                }
                moved.data.push(data);
            }
            Err(error) => moved.failed.push(error),
        }
        drop(moved);
        self.in_flight -= 1;
        self.advance(cx);
    }

    fn accepted(&mut self, cx: &mut impl Act) {
        self.moved.lock().unwrap().accepted += 1;
        self.in_flight -= 1;
        self.advance(cx);
    }
}

impl Device for Mover {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::memory(0, 1 << 20)];
        Identity { bars, msix_vectors: 4, ..Identity::new(0x71AB, 0x00FE, 0x12_00_00) }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => self.begin(cx),
            Event::DmaReadDone { op, result } => self.read_done(cx, op, result),
            Event::DmaWriteAccepted { .. } => self.accepted(cx),
            Event::MmioRead { bytes, reply, .. } => cx.reply(reply, Payload::Length(bytes.into())),
            Event::Reset => self.reset(),
            Event::MmioWrite { .. } | Event::Timer { .. } => {}
        }
    }
    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.apart()))
    }
}

impl HostProgram for Mover {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => self.begin(cx),
            HostEvent::MmioReadDone { op, result } => self.read_done(cx, op, result),
            HostEvent::MmioWriteAccepted { .. } => self.accepted(cx),
            HostEvent::Interrupt { device, vector } => {
                self.moved.lock().unwrap().interrupts.push((device, vector));
            }
            HostEvent::Timer { .. }
            | HostEvent::PortInterrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. } => {}
        }
    }
    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.apart()))
    }
}
