//! A device that sends packets: a ring of descriptors with a doorbell, many reads at once, a head that is written back. Run it with
//! `cargo run --example sender`.

use std::error::Error;
use std::process::ExitCode;
use tlplab_device::contract::Stream;
use tlplab_device::kit::{InOrder, RegisterFile, Ring};
use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, record, registers,
    streams,
};
use tlplab_fabric::Builder;
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_units::{Duration, Generation, Time, Width};

streams! {
    /// Reads of descriptors.
    FETCH: "fetch" = "read";
    /// Reads of packets: they need not wait behind each other's descriptors.
    DATA: "data" = "read";
    /// Writes of the head, and the interrupt behind them.
    HEAD: "head" = "write";
}

registers! {
    BASE: u64 = 0x00, rw;
    ENTRIES: u32 = 0x08, rw;
    /// The doorbell: descriptors ever posted.
    TAIL: u32 = 0x0C, rw;
    /// Where the device writes how many it has ever done.
    HEAD_AT: u64 = 0x10, rw;
    FAILED: u32 = 0x18, ro;
}

record! {
    struct Descriptor [16] {
        address: u64 = 0,
        bytes: u32 = 8,
    }
}

/// Packets under way at most.
const DEPTH: u32 = 32;

struct Sender {
    file: RegisterFile,
    ring: Ring,
    /// Packets that are read; each ends in whether it could be.
    packets: InOrder<(), bool>,
}

impl Default for Sender {
    fn default() -> Self {
        let ring = Ring::new(FETCH, Descriptor::BYTES as u32);
        Self { file: RegisterFile::new(TABLE), ring, packets: InOrder::new() }
    }
}

impl Device for Sender {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 1, ..Identity::new(0x71AB, 0x12, 0x02_80_00) }
    }

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
            Event::MmioWrite { offset, data, .. } => {
                self.file.write(offset, &data);
                self.fetch(cx);
            }
            Event::DmaReadDone { op, result } => {
                if let Some(batch) = self.ring.over(op) {
                    self.ring.advance(batch.count);
                    match &result {
                        Ok(data) => self.begin(cx, data.bytes().unwrap_or_default()),
                        Err(error) => cx.fault(error.to_string()),
                    }
                } else if self.packets.end(op, result.is_ok()).is_some() {
                    self.retire(cx);
                }
                self.fetch(cx);
            }
            Event::Reset => *self = Self::default(),
            _ => {}
        }
    }
}

impl Sender {
    /// Fetches descriptors, if there are any and room for their packets.
    fn fetch(&mut self, cx: &mut Context<'_>) {
        let room = DEPTH - self.packets.len() as u32;
        let (base, entries) = (self.file.get(BASE), self.file.get(ENTRIES));
        self.ring.fetch(cx, base, entries, self.file.get(TAIL), room.min(8));
    }

    /// Reads the packets of descriptors.
    fn begin(&mut self, cx: &mut Context<'_>, descriptors: &[u8]) {
        for bytes in descriptors.as_chunks().0 {
            let Descriptor { address, bytes } = Descriptor::from_bytes(bytes);
            self.packets.begin(cx.dma_read(DATA, address, bytes.into()), ());
        }
    }

    /// Reads end in any order; the head moves in that of the ring.
    fn retire(&mut self, cx: &mut Context<'_>) {
        let before = self.ring.done();
        while let Some(((), sent)) = self.packets.next() {
            self.ring.finish();
            self.file.add(FAILED, (!sent).into());
        }
        if self.ring.done() != before {
            cx.dma_write(HEAD, self.file.get(HEAD_AT), self.ring.done().to_le_bytes().into());
            cx.msix(HEAD, 0);
        }
    }
}

const PACKETS: u32 = 1000;
const PACKET: u32 = 1500;
const RING: u32 = 64;

/// Keeps the ring full until all packets are sent.
#[derive(Default)]
struct Driver {
    registers: u64,
    /// The ring, a packet that is sent again and again, and the head that the device writes.
    memory: u64,
    posted: u32,
    head: u32,
}

impl Driver {
    const PACKET_AT: u64 = RING as u64 * Descriptor::BYTES;
    const HEAD_AT: u64 = Self::PACKET_AT + PACKET as u64;

    fn post(&mut self, cx: &mut HostContext<'_>) {
        while self.posted < PACKETS && self.posted - self.head < RING {
            let descriptor = Descriptor { address: self.memory + Self::PACKET_AT, bytes: PACKET };
            let place = u64::from(self.posted % RING) * Descriptor::BYTES;
            cx.memory().write(self.memory + place, &descriptor.to_bytes());
            self.posted += 1;
        }
        cx.mmio_write(0, self.registers + TAIL, self.posted.to_le_bytes().into());
    }
}

impl HostProgram for Driver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                let (_, sender) = cx.driven("sender").expect("the fabric has one");
                self.registers = sender.base(0).expect("it has BAR 0");
                self.memory = cx.memory().alloc(Self::HEAD_AT + 4, 4096).expect("host memory is large");
                cx.mmio_write(0, self.registers + BASE, self.memory.to_le_bytes().into());
                cx.mmio_write(0, self.registers + ENTRIES, RING.to_le_bytes().into());
                let head = self.memory + Self::HEAD_AT;
                cx.mmio_write(0, self.registers + HEAD_AT, head.to_le_bytes().into());
                self.post(cx);
            }
            HostEvent::Interrupt { .. } => {
                let mut head = [0; 4];
                cx.memory().read(self.memory + Self::HEAD_AT, &mut head);
                self.head = u32::from_le_bytes(head);
                if self.head == PACKETS {
                    return cx.finished();
                }
                self.post(cx);
            }
            _ => {}
        }
    }
}

/// The sender on a Gen3 x4 link, until all packets are sent; when that was.
fn run() -> Result<Time, Box<dyn Error>> {
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::ALL[2]);
    let config = FabricConfig { devices: vec![DeviceConfig::new("sender", link)], ..FabricConfig::new() };
    let mut builder = Builder::new(config);
    builder.device("sender", Box::new(Sender::default()));
    builder.program(Box::new(Driver::default())).finishes();
    let mut fabric = builder.build()?;
    fabric.run_events(u64::MAX, Time::ZERO + Duration::from_ms(10));
    match fabric.fault() {
        Some(message) => Err(message.into()),
        None if !fabric.is_done() => Err("the driver waits for what never comes".into()),
        None => Ok(fabric.now()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(time) => println!("{PACKETS} packets of {PACKET} B were sent after {time}"),
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[test]
fn it_sends() {
    // 1.5 MB at some 3.4 GB/s.
    let time = run().unwrap() - Time::ZERO;
    assert!((400..800).contains(&(time.as_ns() / 1000)), "{time}");
}

/// A reset forgets what is under way: its answers, if any came, are nobody's.
#[test]
fn a_late_answer_is_ignored() {
    use tlplab_device::{Action, OpId};

    let (mut sender, mut next_op, mut actions) = (Sender::default(), 0, Vec::new());
    let mut tell = |event| {
        let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
        sender.handle(&mut cx, event);
        std::mem::take(&mut actions)
    };
    let setup = [&0x1000u64.to_le_bytes()[..], &4u32.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let write = Event::MmioWrite { bar: 0, offset: 0, data: setup.into() };
    let fetch = |op| Action::DmaRead { op, stream: FETCH, address: 0x1000, bytes: 16, carry: true };
    assert_eq!(tell(write.clone()), [fetch(OpId(0))]);
    assert_eq!(tell(Event::Reset), []);
    assert_eq!(tell(Event::DmaReadDone { op: OpId(0), result: Ok(vec![0; 16].into()) }), []);
    assert_eq!(tell(write), [fetch(OpId(1))], "as at first");
}
