//! How our captures name links and carry what is not a TLP: shared by the reader and the writer.
//!
//! DLLPs and flits have no encapsulation in the field, so they go into interfaces of LINKTYPE_USER0 (147), each unit behind one byte
//! that tells its kind:
//!
//! | kind | unit | bytes that follow |
//! |---|---|---|
//! | 1 | DLLP | 6: content and 16-bit CRC, in the order of PCIe 5.0 §3.5.1 |
//! | 2 | flit | sequence number (2, big-endian), then what was kept of the flit's 256 bytes |

use crate::capture::{Reason, What};
use tlplab_wire::dllp;

/// LINKTYPE_USER0.
pub(crate) const LINK_TYPE: i32 = 147;
/// Kind byte of a DLLP.
pub(crate) const DLLP: u8 = 1;
/// Kind byte of a flit.
pub(crate) const FLIT: u8 = 2;
/// What the names of interfaces with DLLPs and flits end in.
pub(crate) const SUFFIX: &str = " (link layer)";

/// What befell a unit on a simulated link. Kept in the frame's comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Corrupted: the receiver's CRC check fails.
    pub bad: bool,
    /// Sent again from the replay buffer.
    pub replay: bool,
    /// Nullified by a cut-through switch: to be discarded in silence.
    pub nullified: bool,
}

impl Flags {
    /// Did anything befall it?
    pub const fn any(self) -> bool {
        self.bad || self.replay || self.nullified
    }

    pub(crate) fn comment(self) -> Option<String> {
        let words = [(self.bad, "corrupted"), (self.replay, "replay"), (self.nullified, "nullified")];
        let words: Vec<&str> = words.into_iter().filter_map(|(set, word)| set.then_some(word)).collect();
        if words.is_empty() { None } else { Some(words.join(", ")) }
    }

    pub(crate) fn from_comment(comment: &str) -> Self {
        let has = |word| comment.split(", ").any(|part| part == word);
        Self { bad: has("corrupted"), replay: has("replay"), nullified: has("nullified") }
    }
}

/// `ssd → sw0`: the sender and the receiver in the name of an interface.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(SUFFIX).unwrap_or(name).split_once(" → ")
}

/// Reads a frame of LINKTYPE_USER0.
pub(crate) fn parse(frame: &[u8]) -> Result<What<'_>, Reason> {
    let cut = Reason::HeadersCut { header: "link unit", captured: frame.len() };
    let (&kind, rest) = frame.split_first().ok_or(cut)?;
    match kind {
        DLLP => dllp::Repr::parse(&dllp::Packet::new(rest)).map(What::Dllp).map_err(Reason::Dllp),
        FLIT => match rest {
            [high, low, ..] => Ok(What::Flit { sequence: u16::from_be_bytes([*high, *low]) }),
            _ => Err(cut),
        },
        other => Err(Reason::UnitKind(other)),
    }
}
