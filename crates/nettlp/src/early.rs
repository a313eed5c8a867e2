//! Completions that came before earlier ones of the same request. PCI Express keeps them in order, a network need not.

use std::cmp::Ordering;
use tlplab_transaction::{Outcome, Requester};
use tlplab_units::Tag;
use tlplab_wire::tlp::{Completion, Repr, TransactionId};

/// The number kept; one more is dropped, and its request is answered in part only.
const MOST: usize = 64;

/// The completions that wait for earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    held: Vec<(Completion, Repr, Box<[u8]>)>,
}

/// True if it is a completion's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is, or it is nothing that has a turn.
    Now,
    /// An earlier one is to come: it is kept.
    Early,
    /// Its data are there already.
    Twice,
}

impl Early {
    /// Keeps a completion if it is not its turn.
    pub(crate) fn turn<T: Copy>(
        &mut self,
        requester: &Requester<T>,
        completion: Completion,
        repr: &Repr,
        data: &[u8],
    ) -> Turn {
        let Some(missing) = requester.missing(completion.id()) else { return Turn::Now };
        if completion.length().is_none() || completion.is_byte_count_modified() {
            return Turn::Now;
        }
        match completion.byte_count().cmp(&missing) {
            Ordering::Equal => Turn::Now,
            Ordering::Less if self.hold(completion, repr, data) => Turn::Early,
            Ordering::Less | Ordering::Greater => Turn::Twice,
        }
    }

    /// The kept one whose turn it is now, of a request.
    pub(crate) fn next<T: Copy>(
        &mut self,
        requester: &Requester<T>,
        id: TransactionId,
    ) -> Option<(Repr, Box<[u8]>)> {
        self.take(id.tag, requester.missing(id)?)
    }

    /// Forgets what was kept for a request that is over.
    pub(crate) fn conclude<T>(&mut self, outcome: &Outcome<T>) {
        if let Outcome::RequestDone(progress)
        | Outcome::Again(progress)
        | Outcome::OperationDone(progress, _) = outcome
        {
            self.held.retain(|(held, ..)| held.id().tag != progress.tag);
        }
    }

    /// Keeps one; `false` if it is kept already, or there is no room.
    fn hold(&mut self, completion: Completion, repr: &Repr, data: &[u8]) -> bool {
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
    fn take(&mut self, tag: Tag, byte_count: u32) -> Option<(Repr, Box<[u8]>)> {
        let place = self
            .held
            .iter()
            .position(|(held, ..)| (held.id().tag, held.byte_count()) == (tag, byte_count))?;
        let (_, repr, data) = self.held.swap_remove(place);
        Some((repr, data))
    }

    pub(crate) fn clear(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_units::Bdf;
    use tlplab_wire::tlp::Kind;

    /// After a reset a tag belongs to another request, which a kept completion must not answer.
    #[test]
    fn cleared_early_completions_answer_no_request() {
        let id = TransactionId::new(Bdf(0x1B00), 7u8.into());
        let repr = Repr::completion_with_data(Bdf(0), id, 64, 0x40, 64).unwrap();
        let Kind::Completion(completion) = *repr.kind() else { panic!("{repr:?}") };
        let mut early = Early::default();
        assert!(early.hold(completion, &repr, &[1; 64]));
        assert!(!early.hold(completion, &repr, &[1; 64]), "it is kept");
        assert!(early.clone().take(id.tag, 64).is_some());
        early.clear();
        assert_eq!(early.take(id.tag, 64), None);
    }

    #[test]
    fn no_more_than_64_are_kept() {
        let mut early = Early::default();
        let held = (0..=64u8).filter(|tag| {
            let id = TransactionId::new(Bdf(0x1B00), (*tag).into());
            let repr = Repr::completion_with_data(Bdf(0), id, 64, 0x40, 64).unwrap();
            let Kind::Completion(completion) = *repr.kind() else { panic!("{repr:?}") };
            early.hold(completion, &repr, &[])
        });
        assert_eq!(held.count(), 64);
    }
}
