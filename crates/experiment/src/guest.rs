//! `[guest]`: an unmodified Linux is the host's software.

use crate::error::{Error, Problem};
use crate::tables::GUEST;
use crate::view::View;
use tlplab_fabric::config::{AddressMap, EnumerationTime, HostConfig};
use tlplab_units::Duration;

/// The address that the kernel for user mode gives devices for message signalled interrupts (`arch/um/drivers/virt-pci.c`).
const MESSAGES: u64 = 0xA_0000;
const PAGE: u64 = 4096;
/// Memory of a guest at most: its BARs lie at 3.75 GiB, and the hole for them begins here.
const LARGEST_MEMORY: u64 = 2 << 30;
/// The kernel and its initramfs need about so much.
const LEAST_MEMORY: u64 = 64 << 20;

/// A Linux guest, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// Bytes of its memory.
    pub memory: u64,
    /// The script that it runs, relative to the one that names it; `None`: a shell.
    pub run: Option<String>,
    /// Files that it finds in /tlplab.
    pub files: Vec<String>,
    /// The time of every system call.
    pub syscall: Duration,
    /// The time of every interrupt until its handler begins.
    pub interrupt: Duration,
}

impl Default for GuestSpec {
    fn default() -> Self {
        let none = Duration::ZERO;
        Self { memory: 128 << 20, run: None, files: Vec::new(), syscall: none, interrupt: none }
    }
}

/// The guest that an experiment describes.
pub(crate) fn read(root: &View<'_>) -> Result<Option<GuestSpec>, Error> {
    let Some(view) = root.get("guest") else { return Ok(None) };
    let guest = GUEST.read_into(&view, GuestSpec::default())?;
    let memory = guest.memory;
    if !(LEAST_MEMORY..=LARGEST_MEMORY).contains(&memory) || !memory.is_multiple_of(PAGE) {
        let at = view.at("memory");
        let problem = Problem::new(format!("a guest memory of {memory} B is not supported"));
        return Err(at.problem(problem.hint("use 64MiB to 2GiB, in whole pages of 4 KiB")));
    }
    Ok(Some(guest))
}

/// The kind of guest that is the host's software in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestKind {
    /// A user-mode Linux, whose hierarchy is the experiment's.
    UserMode,
    /// A virtual machine, whose hierarchy is its own; each device of the experiment is a function in it.
    Machine,
}

/// The host of a guest: its memory is the guest's, and all software is its.
pub(crate) fn take_over(host: &mut HostConfig, guest: &GuestSpec, kind: GuestKind) {
    host.enumeration = EnumerationTime::Outside;
    if kind == GuestKind::UserMode {
        host.addresses = AddressMap { io: None, interrupts: MESSAGES..MESSAGES + 4 };
        host.memory.size = guest.memory;
    }
}
