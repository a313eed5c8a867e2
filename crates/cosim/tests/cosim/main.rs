//! The tests of tlplab-cosim, in one program.
//!
//! * [`guest`]: A guest's process, sockets and memory.
//! * [`medium`]: The data of a storage device in a file.
//! * [`rtl`]: Devices made of RTL, by a stand-in in C (`copier.c`): it has the registers of the built-in copier, so that its driver, which checks every
//! * [`rtl_package`]: `rtl/tlpdma_pkg.sv` is what `wire` says: each position in it is found by setting the bits of a header alone and looking which of them

#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod medium;
mod rtl;
mod rtl_package;
