//! A guest's two sockets and its memory, without sockets and without a guest.
//!
//! * [`memory`], [`ring`]: what the kernel keeps in its memory, written from virtio 1.2 and the kernel's headers
//! * [`script`]: a machine whose accesses take what a script says, and whose interrupts come when it says
//! * [`dialogue`]: one message after the other; [`start_up`], [`accesses`], [`waiting`], [`interrupts`], [`mistakes`]
//! * [`kernel`], [`properties`]: the kernel's side as it behaves, with programs of all kinds, over two sockets that are read in any order
//! * [`parsers`], [`junk`]: whatever may come

mod accesses;
mod dialogue;
mod interrupts;
mod junk;
mod kernel;
mod memory;
mod mistakes;
mod parsers;
mod properties;
mod ring;
mod script;
mod start_up;
mod waiting;
