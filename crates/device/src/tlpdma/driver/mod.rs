//! The driver of tlpdma, and the program above it that transfers and measures: to the card, from it, or both at once.
//!
//! In payload-carrying runs the card's memory is filled before the transfers from it are measured, and what was transferred to it is
//! read back after that; neither counts. The figures are those of [`Measured`].
//!
//! * `load`: what is to be transferred
//! * `buffer`: buffers of scattered pages
//! * `run`: transfers over one channel

mod buffer;
mod load;
mod run;

pub use buffer::PageSize;
pub use load::{Descriptors, TransferLoad, Verify, Wait};

use crate::contract::OpId;
use crate::host::{HostContext, HostEvent, HostProgram, Measured};
use crate::tlpdma::regs::{self, Descriptor, Record, ch};
use buffer::Buffer;
use run::{Alarm, Place, Run, Wiring, Work};
use std::collections::VecDeque;
use tlplab_cfgspace::InterruptMode;
use tlplab_units::Duration;

/// The timer after which a shared interrupt is looked into. Those of runs are channel and alarm.
const ACKNOWLEDGE: u64 = 1 << 16;
/// Buffers of one load, at most: transfers beyond take turns.
const PLACES: u64 = 64;

/// One step of the way to a channel that runs.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u64, u32),
    /// Reads until these bits are clear.
    Clear(u64, u32),
    /// Reads and keeps the value.
    Keep(u64, Kept),
}

#[derive(Clone, Copy, Debug)]
enum Kept {
    Id,
    Memory,
    Room(usize),
}

/// Drives one card.
#[derive(Clone, Debug)]
pub struct TlpdmaDriver {
    device: String,
    loads: Vec<TransferLoad>,
    index: usize,
    registers: u64,
    by_pin: bool,
    steps: VecDeque<Step>,
    /// The read that a step waits for, and the one of a handler.
    waits: Option<OpId>,
    acknowledges: Option<OpId>,
    handler: bool,
    memory_mib: u32,
    wiring: [Wiring; 2],
    phases: VecDeque<Vec<Work>>,
    runs: [Option<Run>; 2],
    measured: Vec<Measured>,
}

impl TlpdmaDriver {
    /// A driver for the card called `device`. At most one of `loads` is to the card and at most one from it; they run at once, and load n
    /// uses stream n.
    pub fn new(device: &str, loads: Vec<TransferLoad>) -> Self {
        Self {
            device: device.to_string(),
            loads,
            index: 0,
            registers: 0,
            by_pin: false,
            steps: VecDeque::new(),
            waits: None,
            acknowledges: None,
            handler: false,
            memory_mib: 0,
            wiring: Default::default(),
            phases: VecDeque::new(),
            runs: [None, None],
            measured: Vec::new(),
        }
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        if info.ids != (info.own_vendor, regs::IDS.1) {
            let (vendor, device) = info.ids;
            return Err(format!(
                "{} is {vendor:04x}:{device:04x}; this driver is for {:04x}:{:04x}",
                self.device,
                info.own_vendor,
                regs::IDS.1
            ));
        }
        self.by_pin = info.interrupting()? == InterruptMode::Intx;
        (self.index, self.registers) = (index, info.base(regs::BAR.0)?);
        self.steps = VecDeque::from([
            Step::Keep(regs::ID.offset(), Kept::Id),
            Step::Write(regs::CONTROL.offset(), 1),
            Step::Keep(regs::MEM_MIB.offset(), Kept::Memory),
            Step::Write(regs::IRQ_ENABLE.offset(), 7),
        ]);
        Ok(())
    }

    /// Goes on until something must be waited for.
    fn climb(&mut self, cx: &mut HostContext<'_>) {
        while let Some(step) = self.steps.front().copied() {
            match step {
                Step::Write(register, value) => {
                    cx.mmio_write(0, self.registers + register, value.to_le_bytes().into());
                    self.steps.pop_front();
                }
                Step::Clear(register, _) | Step::Keep(register, _) => {
                    self.waits = Some(cx.mmio_read_register(0, self.registers + register, 4));
                    return;
                }
            }
        }
        for run in self.runs.iter().flatten() {
            run.alarm(cx, cx.now() + run.work.load.start, Alarm::Begin);
        }
    }

    /// A register was read.
    fn answered(&mut self, cx: &mut HostContext<'_>, value: u32) {
        match self.steps.front().copied() {
            Some(Step::Clear(_, bits)) if value & bits != 0 => return self.climb(cx),
            Some(Step::Keep(_, Kept::Id)) if value != regs::ID_VALUE => {
                return cx.fault(format!(
                    "the register ID of {} is {value:#010x}; expected {:#010x}",
                    self.device,
                    regs::ID_VALUE
                ));
            }
            Some(Step::Keep(_, Kept::Room(channel))) => {
                self.wiring[channel].capacity = value.max(1);
                if let Some(run) = self.runs[channel].take() {
                    self.runs[channel] = Some(Run::new(run.work, self.wiring[channel]));
                }
            }
            Some(Step::Keep(_, Kept::Memory)) => {
                self.memory_mib = value;
                self.steps.pop_front();
                return match self.plan(cx).and_then(|()| self.next_phase(cx)) {
                    Ok(()) => self.climb(cx),
                    Err(why) => cx.fault(why),
                };
            }
            _ => {}
        }
        self.steps.pop_front();
        self.climb(cx);
    }

    /// The work before, during and after the measurement.
    fn plan(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (mut before, mut during, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for (stream, load) in self.loads.iter().enumerate() {
            let places = self.places(cx, load)?;
            let checks = !cx.length_only() && load.verify != Verify::None;
            let work = Work {
                load: *load,
                places: places.clone(),
                measures: Some(stream as u16),
                stream: stream as u16,
                renews: load.to_card,
                checks,
            };
            during.push(work);
            if checks {
                let beside = if load.to_card { &mut after } else { &mut before };
                beside.push(beside_the_measurement(cx, load, &places)?);
            }
        }
        self.phases = [before, during, after].into_iter().filter(|phase| !phase.is_empty()).collect();
        Ok(())
    }

    /// The addresses of the transfers of a load: to the card in the lower half of its memory, from it in the upper half.
    fn places(&self, cx: &mut HostContext<'_>, load: &TransferLoad) -> Result<Vec<Place>, String> {
        let half = u64::from(self.memory_mib) << 19;
        let stride = (load.bytes + load.card_offset).next_multiple_of(4096);
        if stride > half {
            let (device, bytes) = (&self.device, load.bytes);
            return Err(format!(
                "a transfer of {bytes} B does not fit half of the {} MiB of {device}; the other direction uses the other half",
                self.memory_mib
            ));
        }
        let count = load.outstanding.min(load.count).min(half / stride).min(PLACES);
        let base = if load.to_card { 0 } else { half } + load.card_offset;
        let place = |number| {
            let buffer =
                Buffer::new(cx.memory(), load.pages, load.offset, load.bytes).map_err(|e| e.to_string())?;
            Ok(Place { buffer, at: 0, local: base + number * stride, bytes: load.bytes, content: number })
        };
        (0..count).map(place).collect()
    }

    /// Sets up the channels of the next phase, or ends.
    fn next_phase(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let Some(works) = self.phases.pop_front() else {
            cx.finished();
            return Ok(());
        };
        for work in works {
            let channel = usize::from(!work.load.to_card);
            let at = regs::channel(work.load.to_card);
            let (pio, log2) = match work.load.descriptors {
                Descriptors::Ring { log2 } => (false, log2.clamp(4, 16)),
                Descriptors::Pio { .. } => (true, 0),
            };
            let mut alloc = |bytes: u64| {
                cx.memory()
                    .alloc(bytes, bytes.next_power_of_two().max(4096))
                    .map_err(|error| error.to_string())
            };
            let ring = alloc((Descriptor::BYTES as u64) << log2)?;
            let record = alloc(Record::BYTES as u64)?;
            let registers = self.registers + at;
            self.wiring[channel] = Wiring { registers, ring, record, capacity: 1 << log2 };
            let words = [
                (ch::BASE.offset(), ring as u32),
                (ch::BASE.offset() + 4, (ring >> 32) as u32),
                (ch::LOG2.offset(), log2),
                (ch::WRITE_BACK.offset(), record as u32),
                (ch::WRITE_BACK.offset() + 4, (record >> 32) as u32),
                (ch::CONTROL.offset(), if pio { ch::RUN | ch::PIO } else { ch::RUN }),
            ];
            self.steps.push_back(Step::Write(at + ch::CONTROL, ch::RESET));
            self.steps.push_back(Step::Clear(at + ch::CONTROL, ch::RESET));
            self.steps.extend(words.map(|(register, value)| Step::Write(at + register, value)));
            if pio {
                self.steps.push_back(Step::Keep(at + ch::PIO_ROOM, Kept::Room(channel)));
            }
            self.runs[channel] = Some(Run::new(work, self.wiring[channel]));
        }
        Ok(())
    }

    /// Goes on to the next phase if this one is over.
    fn end(&mut self, cx: &mut HostContext<'_>) {
        if self.runs.iter().flatten().any(|run| !run.is_over()) || self.runs.iter().all(Option::is_none) {
            return;
        }
        for run in self.runs.iter_mut().filter_map(Option::take) {
            self.measured.extend(figures(&run));
        }
        match self.next_phase(cx) {
            Ok(()) => self.climb(cx),
            Err(why) => cx.fault(why),
        }
    }

    fn interrupt(&mut self, cx: &mut HostContext<'_>, vector: u16) {
        if self.by_pin {
            if self.acknowledges.is_none() && !std::mem::replace(&mut self.handler, true) {
                let delay = |run: &Run| match run.work.load.wait {
                    Wait::Interrupt { delay } => delay,
                    Wait::Poll => Duration::ZERO,
                };
                let longest = self.runs.iter().flatten().map(delay).max().unwrap_or(Duration::ZERO);
                cx.timer(cx.now() + longest, ACKNOWLEDGE);
            }
            return;
        }
        match self.runs.get_mut(usize::from(vector)) {
            Some(Some(run)) => run.interrupted(cx),
            // An error halts a channel: its record says why.
            _ => self.look(cx),
        }
    }

    fn look(&mut self, cx: &mut HostContext<'_>) {
        self.runs.iter_mut().flatten().for_each(|run| run.look(cx));
        self.end(cx);
    }

    /// The causes of a shared interrupt are cleared until there are none: only then nothing is missed.
    fn acknowledged(&mut self, cx: &mut HostContext<'_>, causes: u32) {
        for (run, bit) in self.runs.iter_mut().zip([1, 2]) {
            if let Some(run) = run.as_mut().filter(|_| causes & bit != 0) {
                run.figures.interrupts += 1;
            }
        }
        if causes == 0 {
            return self.look(cx);
        }
        cx.mmio_write(0, self.registers + regs::IRQ_STATUS, causes.to_le_bytes().into());
        self.acknowledges = Some(cx.mmio_read_register(0, self.registers + regs::IRQ_STATUS, 4));
    }

    fn timer(&mut self, cx: &mut HostContext<'_>, id: u64) {
        if id == ACKNOWLEDGE {
            self.handler = false;
            self.acknowledges = Some(cx.mmio_read_register(0, self.registers + regs::IRQ_STATUS, 4));
            return;
        }
        let alarm = Alarm::ALL.into_iter().find(|alarm| *alarm as u64 == id & 0xFF);
        if let (Some(Some(run)), Some(alarm)) = (self.runs.get_mut((id >> 8) as usize), alarm) {
            run.handle(cx, alarm);
            self.end(cx);
        }
    }
}

/// Fills what will be read from the card, or reads what was written to it: whole pages, a part of a transfer at a time.
fn beside_the_measurement(
    cx: &mut HostContext<'_>,
    load: &TransferLoad,
    places: &[Place],
) -> Result<Work, String> {
    let mut own = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let last = load.count - 1;
        // Of the transfers to one place the last is still there.
        let newest = last - (last - number as u64) % places.len() as u64;
        let content = if load.to_card { newest } else { place.content };
        for (at, bytes) in load.verify.parts(place.bytes) {
            let buffer = Buffer::new(cx.memory(), PageSize::Large, 0, place.bytes)
                .map_err(|error| error.to_string())?;
            own.push(Place { buffer, at, local: place.local + at, bytes, content });
        }
    }
    let count = own.len() as u64;
    let load = TransferLoad {
        to_card: !load.to_card,
        count,
        pages: PageSize::Large,
        ..TransferLoad::new(load.bytes)
    };
    Ok(Work { load, places: own, measures: None, stream: 0, renews: false, checks: true })
}

fn figures(run: &Run) -> Option<Measured> {
    let stream = run.work.measures?;
    let bytes = run.done * run.work.load.bytes;
    let calls = Some(run.figures);
    (run.done > 0).then_some(Measured { stream, bytes, from: run.from, to: run.to, calls })
}

impl HostProgram for TlpdmaDriver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => match self.probe(cx) {
                Ok(()) => self.climb(cx),
                Err(why) => cx.fault(why),
            },
            HostEvent::Interrupt { device, vector } if device == self.index => self.interrupt(cx, vector),
            HostEvent::MmioReadDone { op, result }
                if self.waits == Some(op) || self.acknowledges == Some(op) =>
            {
                let word = result.map(|data| data.bytes().and_then(|bytes| bytes.first_chunk().copied()));
                let value = match word {
                    Ok(word) => u32::from_le_bytes(word.unwrap_or_default()),
                    Err(why) => return cx.fault(format!("{} does not answer: {why}", self.device)),
                };
                if self.waits.take_if(|waits| *waits == op).is_some() {
                    return self.answered(cx, value);
                }
                self.acknowledges = None;
                self.acknowledged(cx, value);
            }
            HostEvent::Timer { id } => self.timer(cx, id),
            _ => {}
        }
    }

    fn measured(&self) -> Vec<Measured> {
        let under_way = self.runs.iter().flatten().filter_map(figures);
        self.measured.iter().copied().chain(under_way).collect()
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
