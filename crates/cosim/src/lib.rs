//! What runs outside of a simulation, and in its time.
//!
//! * [`rtl`]: devices made of RTL, from libraries
//! * `uml`: a user-mode Linux that is the host's software, in virtual time
//! * [`machine`]: a simulated machine for drivers that are straight lines, which call and wait

pub mod machine;
pub mod rtl;
#[cfg(target_os = "linux")]
pub mod uml;
