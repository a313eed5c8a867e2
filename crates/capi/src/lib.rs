//! The C library `libtlp`: `include/tlp.h` and `include/libtlp.h` over the engines and sockets of the other rooms.
//!
//! * [`header`]: reading TLP headers in memory
//! * `guard`: panics and errors at the border
//!
//! Nothing here speaks the protocol. The files are the layers of a function call from C: pointers become slices, slices become
//! operations of the engines, results become `errno`.
#![expect(unsafe_code, reason = "C gives pointers; every block says what the header asks of the caller")]

mod guard;
pub mod header;
