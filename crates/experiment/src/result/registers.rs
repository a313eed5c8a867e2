//! Configuration spaces over time.

use super::words::RegisterCause;
use schemars::JsonSchema;
use serde::Serialize;

/// Configuration spaces over time, as software reads them: the registers at first, and their changes. The registers at first with the changes up
/// to a time give the registers at that time. MSI-X tables and pending bits are in the memory of a BAR, and are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigSpaces {
    /// Functions, in the order of the names of their components.
    pub functions: Vec<FunctionRegisters>,
    /// Changes in the order of time.
    pub changes: Vec<RegisterChange>,
}

/// The configuration space of a function at first: at time 0, and behind an enumeration that takes no simulated time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FunctionRegisters {
    /// The host bridge (the name of the host), a root port (`host.rp0`), a device, the upper port of a switch (its name) or one of the others (`sw0 → ssd`).
    pub name: String,
    /// ID at the end: `03:00.0`; null if software does not reach the function, and no configuration write has since its last reset.
    pub function: Option<String>,
    /// Bytes at first; those in no block are 0.
    pub start: Vec<RegisterBlock>,
    /// The changes that are not told one by one, as there are too many; null if all are.
    pub gap: Option<RegisterGap>,
}

/// Contiguous bytes of a configuration space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegisterBlock {
    /// Offset of the first, a multiple of 4.
    pub offset: u16,
    /// The bytes in the order of their offsets, two hexadecimal digits each.
    pub data: String,
}

/// Changes that are not told one by one. At the end of the gap there is one of each doubleword that has another value then, with the cause `several`:
/// within the gap the registers are not known, behind it they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegisterGap {
    /// Time of the first.
    pub from_fs: u64,
    /// Time of the last.
    pub to_fs: u64,
    /// Their number.
    pub count: u64,
}

/// A change of a doubleword of a configuration space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegisterChange {
    /// The function: an index in `functions`.
    pub function: usize,
    /// Time of the change.
    pub time_fs: u64,
    /// Offset of the doubleword, a multiple of 4.
    pub offset: u16,
    /// Value before; the byte at the offset is the lowest.
    pub old: u32,
    /// Value afterwards.
    pub new: u32,
    /// Its cause.
    pub by: RegisterCause,
}
