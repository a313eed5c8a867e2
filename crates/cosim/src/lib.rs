//! Programs outside of a simulation that run in its time.
//!
//! * [`library`]: devices from libraries
//! * [`rtl`]: devices made of RTL, from libraries
//! * `medium`: the data of a storage device, in a file
//! * `uml`: a user-mode Linux that is the host's software, in virtual time
//! * [`machine`]: a simulated machine for drivers that are straight lines, which call and wait

pub mod library;
pub mod machine;
#[cfg(target_os = "linux")]
pub mod medium;
pub mod rtl;
#[cfg(target_os = "linux")]
pub mod uml;
