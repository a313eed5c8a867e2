//! `nvme`: a controller of NVM Express 1.4 with its namespaces, as the drivers of operating systems know it.
//!
//! ```text
//! doorbell ──▶ fetch entries, queue by queue ──▶ command time ──▶ lists (PRP, SGL) ──▶ data to or from the host ──▶ completion ──▶ interrupt
//!                                                                                  ▲
//!                                                  cache ──▶ channels of the medium ┘
//! ```
//!
//! Its traffic is that of a drive: 64 B are read for each command (several at once if they are there), data move page by page, 16 B
//! are written for its completion when the last of its data were accepted, and an interrupt follows. All that is written goes by one
//! stream, so nothing overtakes.
//!
//! * [`config`]: what it is made of; [`medium`]: where data are kept; [`regs`]: BAR 0; [`status`]: how commands end
//! * `queue`, `command`, `pointer`: what software wrote in its memory; `fetch`: whose turn it is; `dma`: accesses under way
//! * `admin`, `identify`, `features`, `logs`: administration; `io`: what I/O commands ask for; `execute`, `store`: how it is done
//! * `flash`: how long the medium takes; `cache`: what is not on it yet; `interrupts`
//!
//! Not supported: fused operations, metadata and protection information, several controllers or paths, reservations, namespace
//! management, firmware updates, self tests, sanitising, memory buffers on either side. Such commands are refused as the specification says.

mod admin;
mod cache;
mod command;
pub mod config;
mod controller;
mod dma;
mod execute;
mod features;
mod fetch;
mod flash;
mod identify;
mod interrupts;
mod io;
mod logs;
pub mod medium;
mod pointer;
mod queue;
pub mod regs;
pub mod status;
mod store;

pub use config::{NamespaceConfig, NvmeConfig, Offered};
pub use dma::STREAMS;
pub use medium::{Medium, MediumError, SparseMedium};
pub use status::Status;

use crate::contract::{Context, Device, Event, Stream};
use crate::identity::{BarSpec, Identity};
use crate::kit::{Alarms, RegisterFile};
use cache::Cache;
use command::{Command, Work};
use dma::Dma;
use features::Features;
use flash::Flash;
use interrupts::Interrupts;
use logs::{ErrorLog, Events, Health};
use queue::{CompletionQueue, SubmissionQueue};
use std::collections::{BTreeMap, VecDeque};
use store::Flush;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_units::{Duration, Time};

/// Device ID.
pub const DEVICE: u16 = 0x0006;
/// Class code: mass storage, non-volatile memory, NVM Express.
pub const CLASS: u32 = 0x01_08_02;

/// A namespace and what holds its data.
struct Namespace {
    bytes: u64,
    /// Bytes of a block, as it is formatted now.
    block: u64,
    medium: Box<dyn Medium>,
}

/// The state of a command that was begun.
#[derive(Clone)]
enum Next {
    /// It is done; dword 0 of its completion.
    Done(u32),
    /// This takes time.
    Work(Work),
}

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The controller is ready.
    Ready,
    /// A command begins.
    Begin(u64),
    /// A page of a command was read from the medium: its place in the data.
    PageRead { command: u64, offset: u64, bytes: u64 },
    /// A page of a command was programmed, or all of it is in the cache.
    Written(u64),
    /// A page left the cache.
    Destaged { namespace: usize, at: u64 },
    /// The cache writes a page back by itself.
    Destage,
    /// Interrupts of a vector were held long enough.
    Aggregated(u16),
}

/// An NVMe controller.
pub struct Nvme {
    config: NvmeConfig,
    namespaces: Vec<Namespace>,
    file: RegisterFile,
    submissions: BTreeMap<u16, SubmissionQueue>,
    completions: BTreeMap<u16, CompletionQueue>,
    /// The submission queue that had its turn last.
    turn: u16,
    /// Commands by their numbers, in the order in which they were fetched.
    commands: BTreeMap<u64, Command>,
    next_command: u64,
    /// Until when the controller is busy beginning commands.
    beginning: Time,
    dma: Dma,
    timers: Alarms<Due>,
    flash: Flash,
    cache: Cache,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<u64>,
    flushes: Vec<Flush>,
    /// The cache will write a page back by itself.
    destaging: bool,
    features: Features,
    events: Events,
    errors: ErrorLog,
    health: Health,
    interrupts: Interrupts,
    /// The controller was disabled, and accesses are still under way.
    stopping: bool,
}

impl Nvme {
    /// A controller after power-on, with a medium for each of its namespaces; [`NvmeConfig::sparse_media`] makes some.
    ///
    /// # Panics
    /// If [`NvmeConfig::check`] finds something, or the numbers of media and namespaces differ.
    pub fn new(config: NvmeConfig, media: Vec<Box<dyn Medium>>) -> Self {
        if let Err(problem) = config.check() {
            panic!("{problem}");
        }
        assert_eq!(config.namespaces.len(), media.len(), "a medium for each namespace");
        let namespace =
            |(of, medium): (&NamespaceConfig, _)| Namespace { bytes: of.bytes, block: of.block, medium };
        Self {
            namespaces: config.namespaces.iter().zip(media).map(namespace).collect(),
            file: regs::registers(&config),
            submissions: BTreeMap::new(),
            completions: BTreeMap::new(),
            turn: 0,
            commands: BTreeMap::new(),
            next_command: 0,
            beginning: Time::ZERO,
            dma: Dma::new(config.outstanding),
            timers: Alarms::new(),
            flash: Flash::new(&config),
            cache: Cache::new(config.cache),
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            destaging: false,
            features: Features::new(&config),
            events: Events::default(),
            errors: ErrorLog::default(),
            health: Health::new(),
            interrupts: Interrupts::default(),
            stopping: false,
            config,
        }
    }

    /// Power fails and comes back: what is in the cache is lost, and so is all that is under way. The counters of the drive's life go on.
    /// As after [`Event::Reset`], nothing of earlier operations or timers may be told.
    pub fn lose_power(&mut self) {
        self.cache = Cache::new(self.config.cache);
        self.health.power_cycle();
        self.reset();
    }

    /// Takes the media out.
    pub fn into_media(self) -> Vec<Box<dyn Medium>> {
        self.namespaces.into_iter().map(|namespace| namespace.medium).collect()
    }

    fn msi_vectors(&self) -> u8 {
        let least = self.config.vectors.min(32).next_power_of_two() as u8;
        if self.config.interrupts == Offered::Intx { 0 } else { least }
    }

    /// A reset of the function, or of all that is below a link.
    fn reset(&mut self) {
        self.forget();
        self.flushes.clear();
        self.file = regs::registers(&self.config);
        self.dma = Dma::new(self.config.outstanding);
        self.timers.clear();
        (self.destaging, self.stopping) = (false, false);
        self.cache.stay();
        // Nobody hears of the pages that were being programmed.
        self.flash = Flash::new(&self.config);
        self.beginning = Time::ZERO;
        self.features = Features::new(&self.config);
        self.interrupts = Interrupts::default();
    }
}

impl Device for Nvme {
    fn identity(&self) -> Identity {
        let bar = BarSpec { prefetchable: false, ..BarSpec::memory(0, regs::BYTES) };
        Identity {
            revision: 1,
            bars: vec![bar],
            msix_vectors: if self.config.interrupts == Offered::MsiX { self.config.vectors } else { 0 },
            msi_vectors: self.msi_vectors(),
            intx: true,
            ..Identity::new(VENDOR_ID, DEVICE, CLASS)
        }
    }

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => {
                let data = self.read_registers(offset, bytes);
                return cx.reply(reply, data);
            }
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes() {
                    self.write_registers(cx, offset, bytes);
                }
            }
            Event::DmaReadDone { op, result } => self.read_done(cx, op, &result),
            Event::DmaWriteAccepted { op } => self.write_accepted(cx, op),
            Event::Timer { id } => {
                if let Some(due) = self.timers.due(id) {
                    self.elapsed(cx, due);
                }
            }
            Event::Reset => self.reset(),
            Event::Start => {}
        }
        self.work(cx);
    }

    fn rebase(&mut self, by: Duration) {
        self.beginning = self.beginning.earlier(by);
        self.flash.rebase(by);
        self.health.rebase(by);
        self.features.rebase(by);
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        let copy = |&Namespace { bytes, block, ref medium }| {
            Some(Namespace { bytes, block, medium: medium.snapshot()? })
        };
        Some(Box::new(Self {
            config: self.config.clone(),
            namespaces: self.namespaces.iter().map(copy).collect::<Option<_>>()?,
            file: self.file.clone(),
            submissions: self.submissions.clone(),
            completions: self.completions.clone(),
            turn: self.turn,
            commands: self.commands.clone(),
            next_command: self.next_command,
            beginning: self.beginning,
            dma: self.dma.clone(),
            timers: self.timers.clone(),
            flash: self.flash.clone(),
            cache: self.cache.clone(),
            waiting: self.waiting.clone(),
            flushes: self.flushes.clone(),
            destaging: self.destaging,
            features: self.features.clone(),
            events: self.events.clone(),
            errors: self.errors.clone(),
            health: self.health.clone(),
            interrupts: self.interrupts.clone(),
            stopping: self.stopping,
        }))
    }
}
