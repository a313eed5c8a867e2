//! vfio-user: a PCIe function in this process, in a virtual machine that is another.
//!
//! The client (QEMU from 10.1 on: `vfio-user-pci`) has a stream socket to the server. It reads and writes regions (BARs, configuration space), shares its
//! memory or is asked for it, and names descriptors by which interrupts are signalled. [`Port`] is the server of one function: messages
//! and actions of the device contract go in, messages and events come out. Nothing here reads a socket, maps memory or rings: the owner does, as a [`Host`].
//!
//! An access is of a region, not a TLP: tags and completions are nothing that a client tells. [`Port::watch_tlps`] makes them ([`SeenTlp`]), for a capture.
//!
//! The protocol is docs/interop/vfio-user.rst in QEMU's source, with the structures of Linux' `include/uapi/linux/vfio.h`.

mod commands;
mod dma;
mod error;
mod host;
mod maps;
pub mod message;
mod port;
mod tlps;

pub use dma::Counters;
pub use error::ProtocolError;
pub use host::{Host, Irq};
pub use maps::DmaRange;
pub use port::{Port, PortEvent};
pub use tlps::SeenTlp;
