//! The names of links in our captures and the encapsulation of units other than TLPs, shared by their writer, [`pcapng`](crate::pcapng), and their reader.
//!
//! DLLPs and flits have no encapsulation in the field, so they go into interfaces of LINKTYPE_USER0 (147), each unit behind one byte
//! that tells its kind:
//!
//! | kind | unit | bytes that follow |
//! |---|---|---|
//! | 1 | DLLP | 6: content and 16-bit CRC, in the order of PCIe 5.0 §3.5.1 |
//! | 2 | flit | sequence number (2, big-endian), then what was kept of the flit's 256 bytes |

/// LINKTYPE_USER0.
pub const LINK_TYPE: i32 = 147;
/// Kind byte of a DLLP.
pub const DLLP: u8 = 1;
/// Kind byte of a flit.
pub const FLIT: u8 = 2;
/// The ending of the names of interfaces with DLLPs and flits.
pub const SUFFIX: &str = " (link layer)";

/// The fate of a unit on a simulated link. Kept in the frame's comment.
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
    /// True if the unit was damaged or lost.
    pub const fn any(self) -> bool {
        self.bad || self.replay || self.nullified
    }

    pub(crate) fn comment(self) -> Option<String> {
        let words = [(self.bad, "corrupted"), (self.replay, "replay"), (self.nullified, "nullified")];
        let words: Vec<&str> = words.into_iter().filter_map(|(set, word)| set.then_some(word)).collect();
        if words.is_empty() { None } else { Some(words.join(", ")) }
    }

    /// Reads what [`pcapng`](crate::pcapng) wrote of them into a frame's comment.
    pub fn from_comment(comment: &str) -> Self {
        let has = |word| comment.split(", ").any(|part| part == word);
        Self { bad: has("corrupted"), replay: has("replay"), nullified: has("nullified") }
    }
}
