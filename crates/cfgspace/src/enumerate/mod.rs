//! Enumeration software, sans-IO: the work of firmware and an operating system to find functions and to make them usable.
//!
//! An [`Enumerator`] asks for one access at a time and is given the answer; to carry them out is the owner's business. Inside it is
//! written as the straight line that such software is.

mod access;
mod assign;
mod examine;
mod hierarchy;
mod program;
mod scan;
mod slot;

pub use hierarchy::{
    BarFound, CapabilityFound, Function, Hierarchy, Problem, ProblemKind, VirtualFunctions, Windows,
};

use access::{Access, Slot};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tlplab_units::{Bdf, Duration, Mps, Mrrs};

/// A step that the software wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read a dword of configuration space.
    Read {
        /// The function's BDF.
        function: Bdf,
        /// A multiple of 4, below 4096.
        offset: u16,
    },
    /// Write a dword of configuration space.
    Write {
        /// The function's BDF.
        function: Bdf,
        /// A multiple of 4, below 4096.
        offset: u16,
        /// The bytes of the dword that count; bit 0 is the lowest.
        enables: u8,
        /// The value to write.
        value: u32,
    },
    /// Write a dword of memory: an entry of an MSI-X table.
    WriteMemory {
        /// The address.
        address: u64,
        /// The value to write.
        value: u32,
    },
    /// Tell the most that a function shall ask for in one read.
    MaxReadRequest {
        /// The function's BDF.
        function: Bdf,
    },
    /// Let time pass.
    Wait(Duration),
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value read: all ones where no function is; vendor ID 0001h of one that is not ready, if the root complex lets software see that.
    Value(u32),
    /// It was written, or time has passed.
    Done,
    /// To [`Request::MaxReadRequest`]. Any other answer leaves the function with 512 bytes, as it is after a reset (PCIe 5.0 §7.5.3.4).
    MaxReadRequest(Mrrs),
    /// There was no completion, or none that could be used.
    Failed,
}

/// The next step of an [`Enumerator`].
#[derive(Clone, Debug)]
pub enum Step {
    /// It wants this done.
    Ask(Request),
    /// It has finished.
    Done(Hierarchy),
}

/// The interrupts that software chooses where a function leaves the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptPolicy {
    /// MSI-X, or else MSI, or else INTx.
    MsiX,
    /// MSI, or else INTx.
    Msi,
    /// INTx only.
    Intx,
}

/// The payloads that software allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpsPolicy {
    /// The largest that everything below a root port can, but at most this (Linux: `pci=pcie_bus_safe`). A card that comes later and can only less lowers all of
    /// them; they stay so when it goes. (Linux lowers what is there only if that is the root port right above the card, since drivers
    /// may be at work elsewhere; below a switch it complains, and advises `pci=pcie_bus_safe`: 128 bytes from the start.)
    Common(Mps),
    /// 128 bytes, which need no agreement (Linux: `pci=pcie_bus_peer2peer`).
    Smallest,
    /// To each function the largest that it and all above it can, and read requests no larger than that, so that answers to them fit (Linux:
    /// `pci=pcie_bus_perf`). What a function with more writes to one with less is malformed there.
    Upward,
}

impl MpsPolicy {
    /// The most that a function with this payload may ask for in one read, if it would ask for `mrrs`.
    pub fn limit_reads(self, mps: Mps, mrrs: Mrrs) -> Mrrs {
        match self {
            Self::Upward => Mrrs::new(mps.bytes()).map_or(mrrs, |fits| fits.min(mrrs)),
            Self::Common(_) | Self::Smallest => mrrs,
        }
    }
}

impl Default for MpsPolicy {
    /// The largest payload that all functions support.
    fn default() -> Self {
        Self::Common(Mps::ALL[5])
    }
}

/// Address and data of the message for a vector of a function. MSI has 16 bits of data, the low five of which may be the function's.
pub type MessageRule = Arc<dyn Fn(Bdf, u16) -> (u64, u32) + Send + Sync>;

/// The resources that enumeration may use, and its policies.
#[derive(Clone)]
pub struct Settings {
    /// Memory below 4 GiB: the first address, and the one behind the last.
    pub memory: (u64, u64),
    /// Prefetchable memory with 64-bit addresses.
    pub high_memory: (u64, u64),
    /// I/O.
    pub io: (u64, u64),
    /// The interrupts to use.
    pub interrupts: InterruptPolicy,
    /// The rule for addresses and data of messages.
    pub message: MessageRule,
    /// The payloads to allow.
    pub mps: MpsPolicy,
    /// Functions report their errors, bridges let the messages pass, and root ports interrupt for them.
    pub error_reporting: bool,
    /// Functions that can add end-to-end CRCs to their TLPs, and check those of others, do so.
    pub ecrc: bool,
    /// End points that can ask for translations of addresses do so, in units of 4 KiB.
    pub translation: bool,
    /// The wait before the first access.
    pub settle: Duration,
    /// The wait before a function that is not ready is asked again, at least 1 µs.
    pub retry_interval: Duration,
    /// The time that a function may be not ready (PCIe 5.0 §6.6.1: 1 s).
    pub retry_limit: Duration,
    /// Bus numbers kept behind a slot into which a card may come.
    pub hot_plug_buses: u8,
    /// Bytes of memory, and of prefetchable memory, kept behind such a slot.
    pub hot_plug_memory: (u64, u64),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory: (0xC000_0000, 0xE000_0000),
            high_memory: (0x100_0000_0000, 0x200_0000_0000),
            io: (0x1000, 0x1_0000),
            interrupts: InterruptPolicy::MsiX,
            message: Arc::new(|function, vector| (0xFEE0_0000 + 16 * u64::from(function.0), vector.into())),
            mps: MpsPolicy::default(),
            error_reporting: true,
            ecrc: false,
            translation: false,
            settle: Duration::ZERO,
            retry_interval: Duration::from_ms(100),
            retry_limit: Duration::from_ms(1000),
            hot_plug_buses: 1,
            hot_plug_memory: (2 << 20, 2 << 20),
        }
    }
}

/// Enumeration under way. A copy goes on from where the original is.
pub struct Enumerator {
    software: Arc<dyn Fn(Access) -> Task + Send + Sync>,
    task: Task,
    slot: Arc<Mutex<Slot>>,
    /// The answers it was given, from which a copy repeats its way.
    answers: Vec<Option<Answer>>,
}

type Task = Pin<Box<dyn Future<Output = Hierarchy> + Send>>;

impl Clone for Enumerator {
    fn clone(&self) -> Self {
        let mut copy = Self::start(self.software.clone());
        self.answers.iter().for_each(|answer| drop(copy.step(*answer)));
        copy
    }
}

impl Enumerator {
    /// Enumerates everything below bus 0.
    pub fn new(settings: Settings) -> Self {
        Self::start(Arc::new(move |access| Box::pin(enumerate(access, settings.clone()))))
    }

    /// Enumerates again the functions below `bridge`, within the bus numbers and windows that it already has.
    ///
    /// If payloads are lowered (see [`MpsPolicy::Common`]), TLPs under way may be larger than their receiver then accepts: whoever
    /// calls this has stopped the traffic, or bears the errors.
    pub fn rescan(settings: Settings, hierarchy: Hierarchy, bridge: Bdf) -> Self {
        Self::start(Arc::new(move |access| {
            Box::pin(rescan(access, settings.clone(), hierarchy.clone(), bridge))
        }))
    }

    /// Hot-plug software: the slot below `bridge` has interrupted, or is due to be asked. Its events are acknowledged, functions that were
    /// there are forgotten, and those there now are enumerated, until nothing more happens.
    pub fn serve_slot(settings: Settings, hierarchy: Hierarchy, bridge: Bdf) -> Self {
        Self::start(Arc::new(move |access| {
            Box::pin(serve_slot(access, settings.clone(), hierarchy.clone(), bridge))
        }))
    }

    fn start(software: Arc<dyn Fn(Access) -> Task + Send + Sync>) -> Self {
        let slot = Arc::new(Mutex::new(Slot::default()));
        Self { task: software(Access::new(slot.clone())), software, slot, answers: Vec::new() }
    }

    /// Goes on: without an answer at first, then with the answer to the last request.
    pub fn step(&mut self, answer: Option<Answer>) -> Step {
        self.answers.push(answer);
        access::lock(&self.slot).answer = answer;
        match self.task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(hierarchy) => Step::Done(hierarchy),
            Poll::Pending => Step::Ask(access::lock(&self.slot).request),
        }
    }
}

async fn enumerate(access: Access, settings: Settings) -> Hierarchy {
    if !settings.settle.is_zero() {
        access.wait(settings.settle).await;
    }
    let mut hierarchy = Hierarchy::default();
    scan::scan_root(&access, &settings, &mut hierarchy).await;
    assign::assign(&settings, &mut hierarchy);
    program::program(&access, &settings, &mut hierarchy, |_| true).await;
    hierarchy
}

async fn rescan(access: Access, settings: Settings, mut hierarchy: Hierarchy, bridge: Bdf) -> Hierarchy {
    if !settings.settle.is_zero() {
        access.wait(settings.settle).await;
    }
    if let Some(function) = hierarchy.function(bridge) {
        slot::acknowledge(&access, function).await;
    }
    scan_again(&access, &settings, &mut hierarchy, bridge).await;
    hierarchy
}

async fn serve_slot(access: Access, settings: Settings, mut hierarchy: Hierarchy, bridge: Bdf) -> Hierarchy {
    slot::serve(&access, &settings, &mut hierarchy, bridge).await;
    hierarchy
}

/// Finds and configures the functions below `bridge`. Those that were there before and come back have their old numbers and addresses.
async fn scan_again(access: &Access, settings: &Settings, found: &mut Hierarchy, bridge: Bdf) {
    let Some(index) = found.index_of(bridge) else { return };
    found.remove_below(bridge);
    scan::scan_below(access, settings, found, index).await;
    assign::assign_below(settings, found, index);
    let below: Vec<Bdf> = found.below(bridge).collect();
    program::program(access, settings, found, |bdf| below.contains(&bdf)).await;
}
