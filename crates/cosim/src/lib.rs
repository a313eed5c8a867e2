//! What runs outside of a simulation, and in its time.
//!
//! * [`rtl`]: devices made of RTL, from libraries
//! * [`machine`]: a simulated machine for drivers that are straight lines, which call and wait

pub mod machine;
pub mod rtl;
