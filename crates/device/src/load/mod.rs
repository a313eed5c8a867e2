//! The load generator: reads, writes or both, as a device (DMA, peer-to-peer) or on the host (MMIO).
//! [`replay`] issues a captured trace again instead.

pub(crate) mod issue;
pub mod replay;

use crate::contract::{Context, Device, DmaError, Event};
use crate::host::{HostContext, HostEvent, HostProgram};
use crate::identity::{BarSpec, Identity};
use crate::load::issue::{Issue, Target};
use crate::random::Random;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::{Bytes, Payload};
use tlplab_units::{Duration, Time};

/// The operation of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOp {
    /// Reads, in stream 0.
    Read,
    /// Writes, in stream 0.
    Write,
    /// Reads in stream 0 and writes in stream 1: two engines that know nothing of each other, each with the load's `outstanding`,
    /// `rate` and `count`.
    Both,
}

/// The order of addresses. The window is cut into slots, one per `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Slot after slot, again from the start after the last.
    Sequential,
    /// Any slot, uniformly.
    Random,
    /// Always the first slot.
    Fixed,
}

/// A load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadConfig {
    /// The operation.
    pub op: LoadOp,
    /// Bytes of an operation.
    pub size: u64,
    /// Start of the window.
    pub target: Target,
    /// Size of the window in bytes.
    pub window: u64,
    /// Bytes from slot to slot; by default the size, rounded up to 64.
    pub stride: Option<u64>,
    /// Added to every address: the misalignment.
    pub offset: u64,
    /// In which order.
    pub pattern: Pattern,
    /// Operations under way at most: a read is over when its data are there, a write when its last TLP was accepted for sending.
    /// At a `rate`, operations that find no room are issued as soon as there is some, so that memory stays bounded.
    pub outstanding: u32,
    /// Data rate of an engine in bits per second, exact on average; `None` for as fast as `outstanding` allows.
    pub rate: Option<u64>,
    /// Operations of an engine; `None` for no end.
    pub count: Option<u64>,
    /// Its start, after [`Event::Start`].
    pub start: Duration,
}

impl Default for LoadConfig {
    /// Endless sequential writes of 256 B, 32 outstanding, to 1 MiB at 4 GiB.
    fn default() -> Self {
        Self {
            op: LoadOp::Write,
            size: 256,
            target: Target::Address(1 << 32),
            window: 1 << 20,
            stride: None,
            offset: 0,
            pattern: Pattern::Sequential,
            outstanding: 32,
            rate: None,
            count: None,
            start: Duration::ZERO,
        }
    }
}

/// The reason that a load is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Nothing would ever be issued.
    #[error("outstanding is 0; at least one operation must be allowed")]
    NothingOutstanding,
    /// No operation takes any time at this rate.
    #[error("the rate is 0 b/s; leave it out for as fast as possible")]
    NoRate,
    /// A rate of empty operations.
    #[error("operations of 0 B have no rate; give a size")]
    EmptyAtRate,
    /// The window does not hold one operation.
    #[error("an operation of {size} B at offset {offset} does not fit the window of {window} B")]
    WindowTooSmall {
        /// Bytes of an operation.
        size: u64,
        /// Its misalignment.
        offset: u64,
        /// Bytes of the window.
        window: u64,
    },
    /// A stride of zero has no slots.
    #[error("the stride is 0 B; use the pattern \"fixed\" to stay at one address")]
    NoStride,
}

/// Reads or writes.
#[derive(Clone, Debug)]
struct Engine {
    write: bool,
    stream: u16,
    in_flight: u32,
    issued: u64,
    /// Next slot of a sequential load.
    slot: u64,
    /// The next operation is not issued before.
    due: Time,
    /// The part of a femtosecond by which `due` was rounded down, in 1 / rate.
    remainder: u64,
    timer: bool,
}

/// A load generator; see [`LoadConfig`]. Bytes it writes are a fixed sequence in payload-carrying runs.
#[derive(Clone, Debug)]
pub struct Load {
    config: LoadConfig,
    random: Random,
    base: u64,
    slots: u64,
    stride: u64,
    /// Time between operations at a rate: femtoseconds and what remains of their division by the rate.
    gap: (u64, u64),
    engines: Vec<Engine>,
    data: Payload,
    failed: u64,
    begun: bool,
    finished: bool,
    /// Software has taken Bus Master Enable away.
    paused: bool,
    /// The engine that has issued last.
    last: usize,
}

impl Load {
    /// A load of the component `name`; `seed` is the run's.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn new(config: LoadConfig, seed: u64, name: &str) -> Result<Self, LoadError> {
        let LoadConfig { size, offset, window, .. } = config;
        let stride = config.stride.unwrap_or(size.max(1).next_multiple_of(64));
        if config.outstanding == 0 {
            return Err(LoadError::NothingOutstanding);
        }
        if stride == 0 {
            return Err(LoadError::NoStride);
        }
        let Some(spare) = window.checked_sub(offset).and_then(|room| room.checked_sub(size)) else {
            return Err(LoadError::WindowTooSmall { size, offset, window });
        };
        let gap = match config.rate {
            None => (0, 0),
            Some(0) => return Err(LoadError::NoRate),
            Some(_) if size == 0 => return Err(LoadError::EmptyAtRate),
            Some(rate) => {
                let bit_femtoseconds = u128::from(size) * 8 * 1_000_000_000_000_000;
                let (gap, rest) = (bit_femtoseconds / u128::from(rate), bit_femtoseconds % u128::from(rate));
                (u64::try_from(gap).unwrap_or(u64::MAX), rest as u64)
            }
        };
        let slots = if config.pattern == Pattern::Fixed { 1 } else { spare / stride + 1 };
        let random = Random::keyed(seed, name, "load addresses");
        let mut load = Self {
            base: 0,
            slots,
            stride,
            gap,
            engines: Vec::new(),
            data: Payload::EMPTY,
            failed: 0,
            begun: false,
            finished: false,
            paused: false,
            last: 0,
            random,
            config,
        };
        load.engines = load.idle_engines();
        Ok(load)
    }

    /// Operations that ended with an error.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    fn idle_engines(&self) -> Vec<Engine> {
        let engine = |write, stream| Engine {
            write,
            stream,
            in_flight: 0,
            issued: 0,
            slot: 0,
            due: Time::ZERO,
            remainder: 0,
            timer: false,
        };
        match self.config.op {
            LoadOp::Read => vec![engine(false, 0)],
            LoadOp::Write => vec![engine(true, 0)],
            LoadOp::Both => vec![engine(false, 0), engine(true, 1)],
        }
    }

    fn begin(&mut self, cx: &mut impl Issue) {
        match cx.resolve(&self.config.target) {
            Ok((_, Some(size))) if size < self.config.window => {
                let window = self.config.window;
                return cx
                    .fault(format!("the load's window of {window} B is larger than its target of {size} B"));
            }
            Ok((base, _)) => self.base = base,
            Err(why) => return cx.fault(why),
        }
        self.data = if cx.length_only() {
            Payload::Length(self.config.size)
        } else {
            (0..self.config.size).map(|i| (i * 167 + 13) as u8).collect::<Vec<_>>().into()
        };
        let start = cx.now() + self.config.start;
        self.begun = true;
        self.engines = self.idle_engines();
        for number in 0..self.engines.len() {
            self.engines[number].due = start;
            self.advance(cx, number);
        }
    }

    /// After a reset, or when it may master the bus again, the load goes on where it was; what a reset has met under way is lost, and what was due
    /// meanwhile is not made up for.
    fn resume(&mut self, cx: &mut impl Issue) {
        self.paused = false;
        for number in 0..self.engines.len() {
            let engine = &mut self.engines[number];
            engine.due = engine.due.max(cx.now());
            self.advance(cx, number);
        }
    }

    fn reset(&mut self) {
        for engine in &mut self.engines {
            (engine.in_flight, engine.timer) = (0, false);
        }
    }

    /// An operation was refused, as Bus Master Enable is clear: it is issued again when that is set. Those refused are the last that were issued.
    fn take_back(&mut self) {
        let engine = &mut self.engines[self.last];
        engine.in_flight = engine.in_flight.saturating_sub(1);
        engine.issued = engine.issued.saturating_sub(1);
        engine.slot = if engine.slot == 0 { self.slots - 1 } else { engine.slot - 1 };
        self.paused = true;
    }

    /// Issues what may be issued by an engine.
    fn advance(&mut self, cx: &mut impl Issue, number: usize) {
        if self.paused {
            return;
        }
        self.last = number;
        let count = self.config.count.unwrap_or(u64::MAX);
        loop {
            let engine = &mut self.engines[number];
            if engine.issued >= count || engine.in_flight >= self.config.outstanding {
                break;
            }
            if engine.due > cx.now() {
                if !std::mem::replace(&mut engine.timer, true) {
                    cx.timer(engine.due, number as u64);
                }
                break;
            }
            let slot = match self.config.pattern {
                Pattern::Fixed => 0,
                Pattern::Sequential => engine.slot,
                Pattern::Random => self.random.below(self.slots),
            };
            engine.slot = if slot + 1 == self.slots { 0 } else { slot + 1 };
            engine.in_flight += 1;
            engine.issued += 1;
            if let Some(rate) = self.config.rate {
                let remainder = u128::from(engine.remainder) + u128::from(self.gap.1);
                let carry = u64::from(remainder >= u128::from(rate));
                engine.remainder = (remainder - u128::from(carry * rate)) as u64;
                engine.due += Duration::from_fs(self.gap.0 + carry);
            }
            let address = self.base + self.config.offset + slot * self.stride;
            if engine.write {
                cx.write(engine.stream, address, self.data.clone());
            } else {
                cx.read(engine.stream, address, self.config.size);
            }
        }
        let over = |engine: &Engine| engine.issued >= count && engine.in_flight == 0;
        if !self.finished && self.engines.iter().all(over) {
            self.finished = true;
            cx.finished();
        }
    }

    fn over(&mut self, cx: &mut impl Issue, write: bool, failed: bool) {
        self.failed += u64::from(failed);
        // After a reset nothing is in flight.
        let Some(number) = self.engines.iter().position(|e| e.write == write && e.in_flight > 0) else {
            return;
        };
        self.engines[number].in_flight -= 1;
        self.advance(cx, number);
    }

    fn tick(&mut self, cx: &mut impl Issue, number: u64) {
        let number = number as usize;
        if number < self.engines.len() {
            self.engines[number].timer = false;
            self.advance(cx, number);
        }
    }
}

/// The data of reads of a load's BAR, which stores nothing.
static ZEROS: [u8; 4096] = [0; 4096];

impl Device for Load {
    /// One BAR of 1 MiB that ignores writes and reads as zero, so that loads can be each other's peers.
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::memory(0, 1 << 20)],
            ..Identity::new(VENDOR_ID, 0x0010, 0x12_00_00) // processing accelerator
        }
    }

    fn rebase(&mut self, by: Duration) {
        self.engines.iter_mut().for_each(|engine| engine.due = engine.due.earlier(by));
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start if self.begun => self.resume(cx),
            Event::Start => self.begin(cx),
            Event::DmaReadDone { result: Err(DmaError::BusMasterDisabled), .. } => self.take_back(),
            Event::DmaReadDone { result, .. } => self.over(cx, false, result.is_err()),
            Event::DmaWriteAccepted { .. } => self.over(cx, true, false),
            Event::Timer { id } => self.tick(cx, id),
            Event::MmioRead { bytes, reply, .. } => {
                let length_only = cx.length_only() || bytes as usize > ZEROS.len();
                let zeros = || Payload::Bytes(Bytes::from_static(&ZEROS[..bytes as usize]));
                cx.reply(reply, if length_only { Payload::Length(bytes.into()) } else { zeros() });
            }
            Event::MmioWrite { .. } => {}
            Event::Reset => self.reset(),
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}

impl HostProgram for Load {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => self.begin(cx),
            HostEvent::MmioReadDone { result, .. } => self.over(cx, false, result.is_err()),
            HostEvent::MmioWriteAccepted { .. } => self.over(cx, true, false),
            HostEvent::Timer { id } => self.tick(cx, id),
            HostEvent::Interrupt { .. }
            | HostEvent::PortInterrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
