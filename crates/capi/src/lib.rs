//! The C library `libtlp`: `include/tlp.h` and `include/libtlp.h` over the engines and sockets of the other rooms.
//!
//! * [`context`]: `struct nettlp`, which has no room for what the library knows, and where that is kept instead
//! * [`dma`]: reads and writes that wait; [`callback`]: what the host sends to the device; [`reply`]: answers to its reads;
//!   `traffic`: how both share a socket
//! * [`asynchronous`]: many operations at once, for event loops
//! * [`message`] and [`config_space`]: what the adapter tells of itself
//! * [`header`]: reading TLP headers in memory; [`counters`]: what came
//! * [`machine`]: `include/tlplab_machine.h`, a simulated machine under a driver in C
//! * [`errno`]: an error number for each kind of failure; `guard`: where panics end
//!
//! Nothing here speaks the protocol. The files are the layers of a function call from C: pointers become slices, slices become
//! operations of the engines, results become `errno`.
#![expect(unsafe_code, reason = "C gives pointers; every block says what the header asks of the caller")]

pub mod asynchronous;
pub mod callback;
pub mod config_space;
pub mod context;
pub mod counters;
pub mod dma;
pub mod errno;
mod guard;
pub mod header;
pub mod machine;
pub mod message;
pub mod reply;
mod traffic;
