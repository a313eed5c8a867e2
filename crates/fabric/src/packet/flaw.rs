//! Damage by faults to TLPs that their headers cannot express.

use crate::config::Malformation;
use tlplab_units::Duration;
use tlplab_wire::tlp::CompletionStatus;

/// A flaw of a TLP beyond its [`Repr`](tlplab_wire::tlp::Repr).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its digest is wrong.
    Ecrc,
    /// It breaks a rule of format.
    Malformed(Malformation),
    /// Its completer will refuse it.
    Refused(CompletionStatus),
    /// The next transaction layer will lose it.
    Lost,
    /// The next transaction layer will take so much longer for it.
    Late(Duration),
}
