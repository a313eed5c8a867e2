//! Errors: bytes that are not a packet, and values that cannot be one.

use core::fmt;

/// The problem, its field, the field's offset in the bytes, and the section of the specification that states the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}: {what} ({section})", At(*offset))]
pub struct Error {
    /// The field, as the specification spells it: `Length`, `Last DW BE`, `Fmt/Type`.
    pub field: &'static str,
    /// The section that states the rule, `PCIe 5.0 §2.2.5`.
    pub section: &'static str,
    /// Offset of the field's first byte from the start of the packet; `None` when no bytes are involved.
    pub offset: Option<u16>,
    /// The problem.
    pub what: Problem,
}

/// The ways in which a field can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Fewer bytes than the field or packet needs.
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        have: usize,
    },
    /// More bytes than the packet has.
    TooLong {
        /// Bytes the header announces.
        expected: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A value outside the field's range.
    Value {
        /// The value found.
        found: u64,
        /// The values that would be right.
        wanted: &'static str,
    },
    /// A field that contradicts another one.
    Conflict(&'static str),
}

struct At(Option<u16>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(offset) => write!(f, " at byte {offset}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { needed, have } => write!(f, "{needed} bytes are needed, there are {have}"),
            Self::TooLong { expected, have } => {
                write!(f, "the packet ends after {expected} bytes, there are {have}")
            }
            Self::Value { found, wanted } => write!(f, "{found:#x} is not {wanted}"),
            Self::Conflict(why) => f.write_str(why),
        }
    }
}

impl Error {
    pub(crate) const fn value(
        field: &'static str,
        section: &'static str,
        found: u64,
        wanted: &'static str,
    ) -> Self {
        Self { field, section, offset: None, what: Problem::Value { found, wanted } }
    }
    pub(crate) const fn conflict(field: &'static str, section: &'static str, why: &'static str) -> Self {
        Self { field, section, offset: None, what: Problem::Conflict(why) }
    }
    pub(crate) const fn truncated(
        field: &'static str,
        section: &'static str,
        needed: usize,
        have: usize,
    ) -> Self {
        Self { field, section, offset: None, what: Problem::Truncated { needed, have } }
    }
    pub(crate) const fn at(self, offset: usize) -> Self {
        let offset = if offset > u16::MAX as usize { u16::MAX } else { offset as u16 };
        Self { offset: Some(offset), ..self }
    }
}
