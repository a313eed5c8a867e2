//! The differential method on the machine that this runs on: how long reads of its functions take.
//!
//! ```text
//! sysfs: functions, who is below whom ──▶ Plan: what is read ──▶ open: files, mapped registers ──▶ sample: ticks ──▶ document
//!                            surroundings: a virtual machine?  ───────────────────────────────────────────────────────┘
//! ```
//!
//! * [`sysfs`]: the functions that the kernel knows; [`register`]: mapped registers that a user names
//! * [`plan`]: the targets; [`document`]: what was measured, as `tlplab/differential/1`
//! * [`access`]: a read, timed; [`sampling`]: many of them
//! * [`clock`]: what a tick is; [`core`]: staying on one core
//! * [`surroundings`]: whether reads are reads of buses at all
//!
//! Nothing is ever written: files are opened for reading, registers mapped for reading. What is unsafe is the counter's instructions
//! (`counter.rs`) and the mapped registers (`mapped.rs`), and nothing else.

pub mod access;
pub mod clock;
pub mod core;
mod counter;
pub mod document;
mod mapped;
pub mod plan;
pub mod register;
pub mod sampling;
pub mod surroundings;
pub mod sysfs;

/// The reason that nothing was measured. The message states the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The requested target does not exist, or is misspelt.
    #[error("{0}")]
    Input(String),
    /// The machine has not what is needed, or does not let this process.
    #[error("{0}")]
    Machine(String),
}
