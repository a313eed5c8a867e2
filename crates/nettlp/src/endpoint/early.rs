//! Completions that came before earlier ones of the same request. PCI Express keeps them in order, a network need not.

use tlplab_units::Tag;
use tlplab_wire::tlp::{Completion, Repr};

/// How many are kept; one more is dropped, and its request is answered in part only.
const MOST: usize = 64;

/// The completions that wait for earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Early {
    held: Vec<(Completion, Repr, Box<[u8]>)>,
}

impl Early {
    /// Keeps one; `false` if it is kept already, or there is no room.
    pub(super) fn hold(&mut self, completion: Completion, repr: &Repr, data: &[u8]) -> bool {
        let (tag, byte_count) = (completion.id().tag, completion.byte_count());
        let twice =
            self.held.iter().any(|(other, ..)| (other.id().tag, other.byte_count()) == (tag, byte_count));
        if twice || self.held.len() >= MOST {
            return false;
        }
        self.held.push((completion, *repr, data.into()));
        true
    }

    /// The one of that tag whose turn it is.
    pub(super) fn take(&mut self, tag: Tag, byte_count: u32) -> Option<(Repr, Box<[u8]>)> {
        let place = self
            .held
            .iter()
            .position(|(held, ..)| (held.id().tag, held.byte_count()) == (tag, byte_count))?;
        let (_, repr, data) = self.held.swap_remove(place);
        Some((repr, data))
    }

    /// The request with that tag is over.
    pub(super) fn forget(&mut self, tag: Tag) {
        self.held.retain(|(held, ..)| held.id().tag != tag);
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
