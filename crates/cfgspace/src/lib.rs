//! Configuration space: the registers of a function that software sees, and the software that looks.
//!
//! A function's registers are put together from typed pieces, behave bit by bit as specified, and are read by the hardware that must
//! obey them:
//!
//! ```
//! use tlplab_cfgspace::*;
//! use tlplab_units::{Generation, Width};
//! let mut header = Type0::new(Identity::new(0x8086, 0x10D3, 0x02_00_00));
//! header.bars[0] = Some(Bar::memory32(128 * 1024));
//! let link = LinkPart::new(Generation::Gen1, Width::ALL[0]);
//! let layout = Layout::new(header)
//!     .capability_at(0xC8, PowerManagement::default())
//!     .capability(Pcie::new(PortType::EndPoint, link))
//!     .extended(Aer::default());
//! let mut nic = ConfigSpace::new(&layout)?;
//!
//! nic.write(0x10, 0xF, u32::MAX); // all ones: the BAR tells its size
//! assert_eq!(nic.read(0x10), 0xFFFE_0000);
//! nic.write(0x10, 0xF, 0xFEB0_0000);
//! let written = nic.write(0x04, 0b01, 0x6); // decode memory, master the bus
//! assert!(written.command);
//! assert_eq!(nic.bars()[0].map(|bar| bar.base), Some(0xFEB0_0000));
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! The tour:
//! * [`layout`]: the pieces and their places: [`header`], [`capability`], [`extended`]
//! * [`space`]: reads, writes and resets; [`written`]: the effects of a write;
//!   [`shown`]: what a device changes of its own
//! * [`view`]: the present meaning of the registers; [`hardware`]: the changes that hardware makes in them
//! * [`interrupt`]: MSI-X, MSI or INTx
//! * [`error`]: advanced error reporting, messages, the root port's log
//! * [`enumerate`]: the software that finds functions and makes them usable
//! * [`lspci`]: dumps for the real tool; [`facts`]: the registers of a real machine's function
//!
//! Nothing here waits or knows the way in which a configuration request arrives.

pub mod capability;
pub mod enumerate;
pub mod error;
pub mod extended;
pub mod facts;
pub mod hardware;
pub mod header;
#[cfg(test)]
mod images;
pub mod interrupt;
pub mod layout;
pub mod lspci;
pub mod msix_memory;
mod platform;
mod pme;
mod registers;
pub mod shown;
pub mod space;
pub mod view;
pub mod written;

pub use capability::{Capability, LinkPart, Msi, MsiX, Pcie, PcieVersion, PortType, PowerManagement, Slot};
pub use error::{ErrorKind, ErrorMessage};
pub use extended::{
    AccessControl, Acs, AcsControls, Aer, ExtendedCapability, Resizable, ResizableBar, SrIov,
};
pub use hardware::LinkState;
pub use header::{Bar, BarKind, Header, Identity, IoWindow, Type0, Type1, VENDOR_ID};
pub use interrupt::{InterruptMode, MessageWrite, MsiView, MsixTable, Signal};
pub use layout::{Layout, LayoutError};
pub use msix_memory::MsixMemory;
pub use shown::ShowError;
pub use space::{ConfigSpace, Reset};
pub use view::{BarWindow, Bridge, Command, LinkView, PcieView, PowerState, TranslationView};
pub use written::Written;
