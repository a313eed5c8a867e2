//! The copier, grown: a configuration space of its own, three ways to interrupt, errors, slow answers, reset, two functions, and tests.
//! Run it with `cargo run --example engine`, or `cargo run --example engine -- engine.pcapng` to look at it in Wireshark.

use std::error::Error;
use std::process::ExitCode;
use tlplab_cfgspace::{
    Bar, Capability, ExtendedCapability, InterruptMode, Layout, Resizable, ResizableBar, SrIov,
};
use tlplab_device::kit::bytes::get;
use tlplab_device::kit::{Alarms, Operations, RegisterFile};
use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, Payload, Refusal,
    ReplyToken, registers,
};
use tlplab_fabric::Builder;
use tlplab_fabric::config::{
    DeviceConfig, FabricConfig, FunctionOf, HostConfig, InterruptPolicy, LinkConfig,
};
use tlplab_trace::recorder::{Recorder, Targets};
use tlplab_units::{Duration, Generation, Time, Width};

registers! {
    SRC: u64 = 0x00, rw;
    DST: u64 = 0x08, rw;
    GO: u32 = 0x10, wo;
    CAUSE: u32 = 0x18, rw1c;
}
/// Registers that are answered otherwise.
const TEMPERATURE: u64 = 0x1C;
const FUSE: u64 = 0x20;

/// Causes of an interrupt, in `CAUSE`: write one to clear.
const COPIED: u32 = 1;
const FAILED: u32 = 2;

const SENSOR: Duration = Duration::from_us(2);

struct Engine {
    file: RegisterFile,
    copies: Operations<u64>,
    /// Reads that wait for the sensor.
    waiting: Alarms<ReplyToken>,
}

impl Default for Engine {
    fn default() -> Self {
        Self { file: RegisterFile::new(TABLE), copies: Operations::new(), waiting: Alarms::new() }
    }
}

impl Device for Engine {
    fn identity(&self) -> Identity {
        Identity {
            revision: 2,
            subsystem: (0x71AB, 0x0042),
            bars: vec![
                BarSpec::registers(0, 4096), // 32-bit, reads may have side effects
                BarSpec::io(1, 16),
                BarSpec::memory(2, 1 << 20), // 64-bit and prefetchable: BARs 2 and 3
            ],
            msix_vectors: 1,
            msi_vectors: 1,
            intx: true,
            ..Identity::new(0x71AB, 0x10, 0x12_00_00)
        }
    }

    fn layout(&self) -> Layout {
        let virtual_memory = Some(Bar::memory64(1 << 16).prefetchable());
        let virtual_functions = SrIov {
            total: 4,
            first_offset: 8,
            stride: 1,
            device: 0x11,
            bars: [virtual_memory, None, None, None, None, None],
        };
        let sram = Resizable { bar: 2, sizes: 0b111, size: 0 }; // 1, 2 or 4 MiB
        self.identity()
            .layout() // power management, MSI, PCI Express, MSI-X and AER
            .capability_at(0xA0, Capability::Vendor(b"tlplab".to_vec()))
            .extended(ExtendedCapability::SerialNumber(0x71AB_0000_0000_0001))
            .extended(ExtendedCapability::Ltr)
            .extended(ExtendedCapability::Ats { queue_depth: 16 })
            .extended(ExtendedCapability::Pasid { width: 20 })
            .extended(ResizableBar { bars: vec![sram] })
            .extended_at(0x300, virtual_functions)
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { bar: 0, offset, data } => self.write(cx, offset, &data),
            Event::MmioRead { bar: 0, offset, bytes, reply } => self.read(cx, offset, bytes, reply),
            Event::MmioRead { reply, .. } => cx.reply_error(reply, Refusal::UnsupportedRequest),
            Event::DmaReadDone { op, result } => {
                let Some(dst) = self.copies.end(op) else { return };
                match result {
                    Ok(data) => {
                        cx.dma_write(0, dst, data);
                    }
                    // UR, CA, poisoned data, completion timeout.
                    Err(_) => self.interrupt(cx, FAILED),
                }
            }
            // Not before: what a read of `CAUSE` tells may pass data that were not yet accepted.
            Event::DmaWriteAccepted { .. } => self.interrupt(cx, COPIED),
            Event::Timer { id } => {
                if let Some(reply) = self.waiting.due(id) {
                    cx.reply(reply, 42u32.to_le_bytes().into());
                }
            }
            // Operations and timers are gone already.
            Event::Reset => *self = Self::default(),
            Event::Start | Event::MmioWrite { .. } => {}
        }
    }
}

impl Engine {
    fn write(&mut self, cx: &mut Context<'_>, offset: u64, data: &Payload) {
        let written = self.file.write(offset, data);
        if written.touches(GO) {
            let read = cx.dma_read(0, self.file.get(SRC), self.file.get(GO).into());
            self.copies.begin(read, self.file.get(DST));
        }
        if written.touches(CAUSE) {
            cx.set_intx(0, self.file.get(CAUSE) != 0); // the file has cleared what was written as one
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, offset: u64, bytes: u32, reply: ReplyToken) {
        match offset {
            // Slow: other requests are answered meanwhile.
            TEMPERATURE => self.waiting.set(cx, cx.now() + SENSOR, reply),
            FUSE => cx.reply_error(reply, Refusal::CompleterAbort),
            _ => cx.reply(reply, self.file.read(offset, bytes)),
        }
    }

    fn interrupt(&mut self, cx: &mut Context<'_>, cause: u32) {
        self.file.set(CAUSE, self.file.get(CAUSE) | cause);
        match cx.interrupt_mode() {
            InterruptMode::MsiX | InterruptMode::Msi => cx.msix(0, 0),
            // Until the driver has cleared all causes; waits while software keeps the pin off.
            InterruptMode::Intx | InterruptMode::Disabled => cx.assert_intx(0),
        }
    }
}

/// Copies from nowhere first, then 4 KiB, and checks what the interrupts tell.
struct Driver {
    device: &'static str,
    index: usize,
    regs: u64,
    buffer: u64,
    expected: u32,
}

impl Driver {
    fn new(device: &'static str) -> Self {
        Self { device, index: 0, regs: 0, buffer: 0, expected: FAILED }
    }

    fn copy(&self, cx: &mut HostContext<'_>, src: u64) {
        cx.mmio_write(0, self.regs + SRC, src.to_le_bytes().into());
        cx.mmio_write(0, self.regs + DST, (self.buffer + 4096).to_le_bytes().into());
        cx.mmio_write(0, self.regs + GO, 4096u32.to_le_bytes().into());
    }
}

impl HostProgram for Driver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                let (index, device) = cx.device(self.device).expect("the fabric has it");
                (self.index, self.regs) = (index, device.bars[0].expect("it has BAR 0").0);
                self.buffer = cx.memory().alloc(8192, 4096).expect("host memory is large");
                cx.memory().write(self.buffer, &[b'x'; 4096]);
                self.copy(cx, 1 << 60);
            }
            HostEvent::Interrupt { device, .. } if device == self.index => {
                cx.mmio_read_register(0, self.regs + CAUSE, 4);
            }
            HostEvent::MmioReadDone { result, .. } => {
                let data = result.expect("the register can be read");
                let causes: u32 = get(data.bytes().expect("registers have bytes"), 0);
                if causes == 0 {
                    return; // a pin is shared: the interrupt was another's, or is over
                }
                assert_eq!(causes, self.expected, "{}", self.device);
                cx.mmio_write(0, self.regs + CAUSE, causes.to_le_bytes().into());
                if causes == FAILED {
                    self.expected = COPIED;
                    self.copy(cx, self.buffer);
                } else {
                    let mut copied = [0; 4096];
                    cx.memory().read(self.buffer + 4096, &mut copied);
                    assert!(copied == [b'x'; 4096], "the data are there before the interrupt");
                    cx.finished();
                }
            }
            _ => {}
        }
    }
}

/// A device of two functions on a Gen3 x8 link, each with its driver; `capture` is where Wireshark will look.
fn run(interrupts: InterruptPolicy, capture: Option<String>) -> Result<Time, Box<dyn Error>> {
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::ALL[3]);
    let engine = DeviceConfig::new("engine", link.clone());
    let function_of = Some(FunctionOf { device: "engine".into(), number: 1 });
    let twin = DeviceConfig { function_of, ..DeviceConfig::new("twin", link) };
    let host = HostConfig { interrupts, ..HostConfig::default() };
    let mut builder = Builder::new(FabricConfig { host, devices: vec![engine, twin], ..FabricConfig::new() });
    for name in ["engine", "twin"] {
        builder.device(name, Box::new(Engine::default()));
        builder.program(Box::new(Driver::new(name))).finishes();
    }
    let recorder = Recorder::create(Targets { pcapng: capture.map(Into::into), ..Targets::default() })?;
    builder.probe(recorder.probe());

    let mut fabric = builder.build()?;
    fabric.run_events(u64::MAX, Time::ZERO + Duration::from_ms(1));
    recorder.finish()?;
    match fabric.fault() {
        Some(message) => Err(message.into()),
        None if !fabric.is_done() => Err("a driver waits for what never comes".into()),
        None => Ok(fabric.now()),
    }
}

fn main() -> ExitCode {
    match run(InterruptPolicy::MsiX, std::env::args().nth(1)) {
        Ok(time) => println!("both functions have copied after {time}"),
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_cfgspace::ConfigSpace;
    use tlplab_device::kit::{Register, bytes::Number};
    use tlplab_device::{Action, OpId};

    /// Tells the engine one thing; what it does about it.
    fn tell(engine: &mut Engine, mode: InterruptMode, event: Event) -> Vec<Action> {
        let (mut next_op, mut actions) = (0, Vec::new());
        let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions).with_interrupts(mode);
        engine.handle(&mut cx, event);
        actions
    }

    fn write<T: Number>(register: Register<T>, value: u64) -> Event {
        Event::MmioWrite { bar: 0, offset: register.offset(), data: value.to_le_bytes().into() }
    }

    #[test]
    fn it_can_be() -> Result<(), Box<dyn Error>> {
        Engine::default().identity().check()?;
        ConfigSpace::new(&Engine::default().layout())?;
        Ok(())
    }

    #[test]
    fn a_copy_reads_writes_and_interrupts() {
        let (mut engine, mode) = (Engine::default(), InterruptMode::MsiX);
        tell(&mut engine, mode, write(SRC, 0x1000));
        tell(&mut engine, mode, write(DST, 0x2000));
        let actions = tell(&mut engine, mode, write(GO, 64));
        let [Action::DmaRead { op, address: 0x1000, bytes: 64, .. }] = actions[..] else {
            panic!("{actions:?}")
        };
        let data = Payload::from([7; 64]);
        let actions = tell(&mut engine, mode, Event::DmaReadDone { op, result: Ok(data.clone()) });
        let written = Action::DmaWrite { op: OpId(0), stream: 0, address: 0x2000, data };
        assert_eq!(actions, [written]);
        let actions = tell(&mut engine, mode, Event::DmaWriteAccepted { op: OpId(0) });
        assert_eq!(actions, [Action::Msix { stream: 0, vector: 0 }]);
    }

    #[test]
    fn the_pin_is_asserted_until_all_causes_are_cleared() {
        let (mut engine, mode) = (Engine::default(), InterruptMode::Intx);
        let pin = |asserted| Action::Intx { stream: 0, asserted };
        let accepted = Event::DmaWriteAccepted { op: OpId(0) };
        assert_eq!(tell(&mut engine, mode, accepted), [pin(true)]);
        engine.file.set(CAUSE, COPIED | FAILED);
        assert_eq!(tell(&mut engine, mode, write(CAUSE, COPIED.into())), [pin(true)]);
        assert_eq!(tell(&mut engine, mode, write(CAUSE, FAILED.into())), [pin(false)]);
    }

    #[test]
    fn the_sensor_answers_later_and_the_fuse_never() {
        let (mut engine, mode) = (Engine::default(), InterruptMode::MsiX);
        let read = |offset, reply| Event::MmioRead { bar: 0, offset, bytes: 4, reply };
        let actions = tell(&mut engine, mode, read(TEMPERATURE, ReplyToken(5)));
        assert_eq!(actions, [Action::Timer { at: Time::ZERO + SENSOR, id: 0 }]);
        let answer = Action::Reply { token: ReplyToken(5), data: 42u32.to_le_bytes().into() };
        assert_eq!(tell(&mut engine, mode, Event::Timer { id: 0 }), [answer]);
        let refused = Action::ReplyError { token: ReplyToken(6), refusal: Refusal::CompleterAbort };
        assert_eq!(tell(&mut engine, mode, read(FUSE, ReplyToken(6))), [refused]);
    }

    #[test]
    fn it_runs_on_a_link() {
        for interrupts in [InterruptPolicy::MsiX, InterruptPolicy::Msi, InterruptPolicy::Intx] {
            run(interrupts, None).unwrap();
        }
    }
}
