//! The ordering table (PCIe 5.0 §2.4.1, table 2-40) as a queue: the order in which TLPs may leave.

use std::collections::VecDeque;
use tlplab_units::{Bdf, FcClass};
use tlplab_wire::tlp::{Kind, Repr};

/// The properties of a TLP, besides its class, that the ordering table depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderingAttributes {
    /// True if it may pass posted requests because of Relaxed Ordering: completions and non-posted requests with data whose
    /// RO bit is set (C2b, D2b); a read's RO bit is about its completions (B2b does not name it).
    pub relaxed: bool,
    /// ID-based Ordering: it may pass posted requests of other requesters (B2b, C2b, D2b).
    pub id_based: bool,
    /// The requester of a request, the completer of a completion (D2b compares it with the posted request's requester).
    pub id: Bdf,
}

impl OrderingAttributes {
    /// The ordering attributes of `repr`. Completions of IO and configuration writes may pass posted requests too (D2b), but a
    /// switch cannot tell them from others without data, so here they do not.
    #[inline]
    pub fn of(repr: &Repr) -> Self {
        let attributes = repr.attributes();
        let (relaxed, id) = match repr.kind() {
            Kind::Completion(completion) => (attributes.relaxed_ordering, completion.completer()),
            Kind::DeferrableMemWrite { id, .. } | Kind::AtomicOp { id, .. } => {
                (attributes.relaxed_ordering, id.requester)
            }
            _ => (false, repr.transaction_id().requester),
        };
        Self { relaxed, id_based: attributes.id_based_ordering, id }
    }
}

#[derive(Clone, Debug)]
struct Entry<E> {
    stamp: u64,
    attributes: OrderingAttributes,
    item: E,
}

/// The TLPs of one (ingress, VC) that wait for the same egress: a FIFO per class and a common age.
///
/// * Nothing passes an older posted request, except by Relaxed or ID-based Ordering (A2, B2, C2, D2).
/// * Posted requests and completions pass non-posted requests (A3, A4, D3, D4 say they must be able to).
/// * Posted requests pass completions, and non-posted requests pass completions (A5, B5, C5 permit it).
/// * Within a class the order is kept (B3 to C4 and D5a permit more, D5b demands it for completions of one request).
///
/// Of the TLPs that may go, the driver tries the oldest first ([`Self::candidates`]); so order changes only where one is blocked.
#[derive(Clone, Debug)]
pub struct OrderedQueue<E> {
    fifos: [VecDeque<Entry<E>>; 3],
    next_stamp: u64,
}

impl<E> Default for OrderedQueue<E> {
    fn default() -> Self {
        Self { fifos: [VecDeque::new(), VecDeque::new(), VecDeque::new()], next_stamp: 0 }
    }
}

impl<E> OrderedQueue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of TLPs that wait.
    pub fn len(&self) -> usize {
        self.fifos.iter().map(VecDeque::len).sum()
    }
    /// True if no TLP waits.
    pub fn is_empty(&self) -> bool {
        self.fifos.iter().all(VecDeque::is_empty)
    }
    /// The class of all TLPs that wait, if it is one: then its oldest may go.
    #[inline]
    pub fn only_class(&self) -> Option<FcClass> {
        let waits = FcClass::ALL.map(|class| !self.fifos[class.index()].is_empty());
        match waits {
            [true, false, false] => Some(FcClass::Posted),
            [false, true, false] => Some(FcClass::NonPosted),
            [false, false, true] => Some(FcClass::Completion),
            _ => None,
        }
    }
    /// The number of TLPs of a class that wait.
    pub fn len_of(&self, class: FcClass) -> usize {
        self.fifos[class.index()].len()
    }

    /// The oldest TLP of a class, whether it may go or not.
    pub fn head(&self, class: FcClass) -> Option<&E> {
        self.fifos[class.index()].front().map(|entry| &entry.item)
    }

    /// Appends a TLP. Allocates only when the queue grows beyond its longest so far.
    pub fn push(&mut self, class: FcClass, attributes: OrderingAttributes, item: E) {
        self.fifos[class.index()].push_back(Entry { stamp: self.next_stamp, attributes, item });
        self.next_stamp += 1;
    }

    /// The oldest TLP of a class if it may go before all that is older; `None` if there is none or an older posted request forbids it.
    /// O(1), except for ID-based Ordering, which looks at every older posted request.
    pub fn eligible(&self, class: FcClass) -> Option<&E> {
        let head = self.fifos[class.index()].front()?;
        self.may_go(class, head).then_some(&head.item)
    }

    /// Removes the oldest TLP of a class: the one [`Self::eligible`] named.
    pub fn pop(&mut self, class: FcClass) -> Option<E> {
        debug_assert!(self.head(class).is_none() || self.eligible(class).is_some(), "{class:?} may not pass");
        self.fifos[class.index()].pop_front().map(|entry| entry.item)
    }

    /// The TLPs that may go, oldest first: at most one of each class.
    pub fn candidates(&self) -> impl Iterator<Item = (FcClass, &E)> {
        let mut found = [None; 3];
        for class in FcClass::ALL {
            if let Some(head) = self.fifos[class.index()].front()
                && self.may_go(class, head)
            {
                found[class.index()] = Some((head.stamp, class, &head.item));
            }
        }
        // Three elements: by hand, this is the hot path of a switch.
        let newer = |a: &Option<(u64, FcClass, &E)>, b: &Option<(u64, FcClass, &E)>| match (a, b) {
            (Some(a), Some(b)) => a.0 > b.0,
            (None, Some(_)) => true,
            _ => false,
        };
        for (a, b) in [(0, 1), (1, 2), (0, 1)] {
            if newer(&found[a], &found[b]) {
                found.swap(a, b);
            }
        }
        found.into_iter().flatten().map(|(_, class, item)| (class, item))
    }

    /// All TLPs that wait, class by class.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.fifos.iter().flatten().map(|entry| &entry.item)
    }

    /// Removes everything (the link went down, the function was reset), class by class.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        self.fifos.iter_mut().flat_map(|fifo| fifo.drain(..)).map(|entry| entry.item)
    }

    #[inline]
    fn may_go(&self, class: FcClass, head: &Entry<E>) -> bool {
        if class == FcClass::Posted || head.attributes.relaxed {
            return true;
        }
        let posted = &self.fifos[FcClass::Posted.index()];
        let Some(oldest) = posted.front() else { return true };
        if oldest.stamp > head.stamp {
            return true;
        }
        head.attributes.id_based
            && posted
                .iter()
                .take_while(|older| older.stamp < head.stamp)
                .all(|older| older.attributes.id != head.attributes.id)
    }
}
