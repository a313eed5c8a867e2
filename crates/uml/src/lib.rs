//! Linux as a user-mode program (`ARCH=um`) whose PCI hierarchy, memory and clock belong to another program.
//!
//! Such a guest speaks over two sockets, and shares its memory:
//! - vhost-user: a virtio device carries its PCI accesses ([`pcidev`]) in virtqueues ([`virtqueue`]) in shared memory, and interrupts back;
//!   the messages that set this up and ring its bells are in [`vhost`].
//! - time travel: it asks a calendar for leave to let time pass ([`calendar`]). Its processor takes no time of its own.
//!
//! [`Guest`] is the other end of both. It asks a [`Machine`] (a simulated PCIe fabric) to carry accesses out and to let time pass, and
//! tells what to send. Nothing here reads a socket or maps memory: `tlplab_cosim` does.
//!
//! The kernel's sides are `arch/um/drivers/virtio_uml.c`, `virtio_pcidev.c`, `virt-pci.c` and `arch/um/kernel/time.c`, with the patches in
//! `linux/patches`; the formats are `include/uapi/linux/{um_timetravel,virtio_pcidev}.h` and `arch/um/drivers/vhost_user.h`.

pub mod calendar;
mod error;
mod guest;
mod machine;
pub mod pcidev;
pub mod vhost;
pub mod virtqueue;

pub use error::ProtocolError;
pub use guest::{Failure, Guest, Output, START_OF_TIME};
pub use machine::{GuestMemory, Interrupt, Machine};
