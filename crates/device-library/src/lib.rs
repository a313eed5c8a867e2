//! The device contract in C (`include/tlplab_device.h`): devices from libraries, and libraries of devices in Rust.
//!
//! ```text
//! driver ─Event─▶ LibraryDevice ─tlplab_device_event─▶ library: in C, C++, …
//!        ◀Action─       │       ◀──── calls ─────────      or of export_device!: Event ─▶ a Device ─▶ Action
//! ```
//!
//! * [`LibraryDevice`]: a [`Device`](tlplab_device::Device) that a library has made
//! * [`export_device!`]: makes a library of a device in Rust
//!
//! [`dynamic`] is what libraries of RTL need, too. [`interface`] is the header in Rust; `load` and `export` call through it, and are all that is unsafe here.

pub mod dynamic;
pub mod export;
pub mod interface;
mod load;

pub use load::LibraryDevice;
