//! The matching of completions and requests.

use std::collections::BTreeMap;
use tlplab_wire::tlp::{Kind, Repr, TransactionId};

/// Requests that wait for completions, each with what is to be known of it: by the direction they travel in, requester and tag.
/// The same requester and tag may be under way in both directions, as where a switch passes a request on.
#[derive(Clone, Debug)]
pub(super) struct Matcher<T> {
    open: BTreeMap<(u16, TransactionId), T>,
}

impl<T> Default for Matcher<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new() }
    }
}

impl<T: Clone> Matcher<T> {
    /// A request was seen. Gives the one whose tag it takes, which was never answered.
    pub(super) fn ask(&mut self, direction: u16, id: TransactionId, request: T) -> Option<T> {
        self.open.insert((direction, id), request)
    }

    /// A completion was seen, the last one or not, of a request in `direction`. `None` if nothing waits for it.
    pub(super) fn answer(&mut self, direction: u16, id: TransactionId, last: bool) -> Option<T> {
        match last {
            true => self.open.remove(&(direction, id)),
            false => self.open.get(&(direction, id)).cloned(),
        }
    }

    /// The requests that still wait.
    pub(super) fn waiting(&self) -> usize {
        self.open.len()
    }
}

/// True if a completion answers this.
pub(super) fn is_non_posted(repr: &Repr) -> bool {
    !matches!(repr.kind(), Kind::MemWrite { .. } | Kind::Message(_) | Kind::Completion(_))
}
