//! What faults do to TLPs that their headers cannot say.

use crate::config::Malformation;
use tlplab_units::Duration;
use tlplab_wire::tlp::CompletionStatus;

/// What is wrong with a TLP beyond what its [`Repr`](tlplab_wire::tlp::Repr) can say.
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
