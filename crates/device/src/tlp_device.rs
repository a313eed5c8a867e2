//! The lower contract: a function that speaks TLPs itself, such as a core in RTL.
//!
//! The work that a [`Device`](crate::Device) leaves to its driver, such a device does on its own: tags, splitting, completions, interrupts. The
//! driver keeps configuration space, the link and its credits. Whoever implements it stands where the user's side of a hard IP does.
//!
//! Such a device has clocks: it is [run](TlpDevice::run) up to an instant, and what it puts out has a time of its own.

use crate::contract::Stream;
use crate::identity::{BarSpec, Identity, IdentityError};
use tlplab_cfgspace::{Capability, Layout, MsiView, MsiX};
use tlplab_units::{Bdf, FcClass, Mps, Mrrs, Time};

/// The streams of such a device: what it reads, and what it writes.
pub const STREAMS: &[Stream] = &[("read", "read"), ("write", "write")];

/// A function at the level of TLPs.
pub trait TlpDevice: Send {
    /// Its identity in configuration space. Asked once, before anything else.
    fn identity(&self) -> TlpIdentity;

    /// Software has written configuration space: what the device has to obey from now on. With `reset` it also forgets all that it does
    /// and all that it has received.
    fn configure(&mut self, registers: &TlpRegisters, reset: bool);

    /// A TLP has arrived: its bytes as on the wire, without sequence number and LCRC, and the BAR that a request hit. It occupies the
    /// receive buffer until the device says that it has taken it ([`TlpOutput::taken`]). False if it drops a completion that its buffer, of
    /// which no credits tell, has no room for.
    fn receive(&mut self, tlp: &[u8], bar: Option<u8>) -> bool;

    /// Goes on from where it was up to, but not including, `until`, or to its next output, which replaces all that `output` held.
    ///
    /// # Errors
    /// The reason that it cannot go on.
    fn run(&mut self, until: Time, room: Room, output: &mut TlpOutput) -> Result<(), String>;
}

/// The configuration space of such a function. Its MSI-X table lies in its own memory; MSI messages, too, it sends itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlpIdentity {
    /// IDs, BARs, MSI vectors and the legacy interrupt; without vectors of MSI-X.
    pub function: Identity,
    /// Its pin: 1 to 4 for INTA to INTD; 0 without one.
    pub intx_pin: u8,
    /// The MSI-X capability.
    pub msix: Option<MsiX>,
    /// The largest payload that it can receive.
    pub max_payload: Mps,
    /// It can use tags of 8 bits.
    pub extended_tags: bool,
    /// It has a function-level reset.
    pub function_level_reset: bool,
}

impl TlpIdentity {
    /// Its configuration space.
    pub fn layout(&self) -> Layout {
        let mut layout = self.function.layout();
        if let tlplab_cfgspace::Header::Type0(header) = &mut layout.header {
            header.interrupt_pin = self.intx_pin;
        }
        for (_, capability) in &mut layout.capabilities {
            if let Capability::Pcie(pcie) = capability {
                pcie.function_level_reset = self.function_level_reset;
            }
        }
        if let Some(msix) = self.msix {
            layout.capabilities.push((None, Capability::MsiX(msix)));
        }
        layout
    }

    /// Checks it.
    ///
    /// # Errors
    /// The field that is not possible.
    pub fn check(&self) -> Result<(), IdentityError> {
        self.function.check()
    }

    /// The BAR with that number.
    pub fn bar(&self, index: u8) -> Option<&BarSpec> {
        self.function.bars.iter().find(|bar| bar.index == index)
    }
}

/// The registers in configuration space through which software controls such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlpRegisters {
    /// Its ID, as configuration writes have told it.
    pub id: Bdf,
    /// Max_Payload_Size.
    pub mps: Mps,
    /// Max_Read_Request_Size.
    pub mrrs: Mrrs,
    /// It may make memory requests.
    pub bus_master: bool,
    /// It may use tags of 8 bits.
    pub extended_tag: bool,
    /// MSI-X is enabled.
    pub msix_enable: bool,
    /// All vectors of MSI-X are masked.
    pub msix_mask: bool,
    /// The MSI registers that software has written, disabled while MSI-X is enabled.
    pub msi: MsiView,
    /// The legacy interrupt is disabled.
    pub intx_disable: bool,
    /// The root complex's read completion boundary is 128 bytes rather than 64.
    pub read_boundary_128: bool,
}

impl Default for TlpRegisters {
    /// As after a reset.
    fn default() -> Self {
        Self {
            id: Bdf(0),
            mps: Mps::ALL[0],
            mrrs: Mrrs::ALL[2],
            bus_master: false,
            extended_tag: false,
            msix_enable: false,
            msix_mask: false,
            msi: MsiView::default(),
            intx_disable: false,
            read_boundary_128: false,
        }
    }
}

/// For which classes there is room for one more TLP of the largest size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room(u8);

impl Room {
    /// With room for that class.
    #[must_use]
    pub const fn with(self, class: FcClass) -> Self {
        Self(self.0 | 1 << class.index())
    }
    /// True if there is room for that class.
    pub const fn has(self, class: FcClass) -> bool {
        self.0 >> class.index() & 1 == 1
    }
    /// Bits 0 to 2: posted, non-posted, completion.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The output of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlpOutput {
    /// The device has run up to here: to an output, or as far as it should.
    pub time: Time,
    /// TLPs that it took since the last run, by class; within a class in their order.
    pub taken: [u32; 3],
    /// The level of its legacy interrupt.
    pub intx: bool,
    /// Nothing happens any more until something comes in.
    pub idle: bool,
    /// The TLP that it sent; empty: none.
    pub tlp: Vec<u8>,
}
