//! Units that cannot be in a capture, with the reason.

use tlplab_units::Time;
use tlplab_wire::Error;

/// The first unit that a capture cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} on {place} at {time}: {reason}")]
pub struct Unwritable {
    /// The link and direction, `ssd → sw0`.
    pub place: String,
    /// The time at which its first symbol left.
    pub time: Time,
    /// The kind of unit.
    pub what: String,
    /// The reason.
    #[source]
    pub reason: Reason,
}

/// The reason that a unit cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Its tag has more than ten bits, as only headers of flit mode have, which NetTLP does not know.
    #[error(
        "the header that NetTLP carries has ten bits for the tag; a device with `tags` of 768 or fewer can be captured"
    )]
    Tag,
    /// Its data are not those that its header tells of.
    #[error(transparent)]
    Tlp(Error),
    /// The capture was begun without its link.
    #[error("the capture was started without this link")]
    UnknownLink,
}
