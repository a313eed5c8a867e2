//! The ordering queue against an oracle written from the table (PCIe 5.0 §2.4.1, table 2-40).

use proptest::prelude::*;
use tlplab_transaction::{OrderedQueue, OrderingAttributes};
use tlplab_units::{Bdf, FcClass, Tag};
use tlplab_wire::tlp::{
    AtomicOp, Attributes, CfgTarget, CfgType, Code, CompletionStatus, Repr, TransactionId,
};

/// A TLP of the oracle: it remembers its own fields, not those that the queue makes of them.
#[derive(Clone, Copy, Debug)]
struct Item {
    serial: usize,
    repr: Repr,
}

/// The table, row by row: true if `later` must be able to pass `earlier`, false if it must not; `None` where it says Y/N.
fn table(later: &Repr, earlier: &Repr) -> Option<bool> {
    use FcClass::{Completion, NonPosted, Posted};
    let (ro, ido) = (later.attributes().relaxed_ordering, later.attributes().id_based_ordering);
    let other_id = source(later) != earlier.transaction_id().requester;
    match (later.fc_class(), earlier.fc_class()) {
        // A2a, A2b: the relaxations permit, nothing demands.
        (Posted, Posted) if ro || (ido && other_id) => None,
        (Posted, Posted) => Some(false),
        // A3, A4: must be able to.
        (Posted, NonPosted) => Some(true),
        // A5a.
        (Posted, Completion) => None,
        // B2: a request without data only by IDO; C2: one with data by RO, too.
        (NonPosted, Posted) if (ro && later.payload_dw() > 0) || (ido && other_id) => None,
        (NonPosted, Posted) => Some(false),
        // B3 to C5.
        (NonPosted, NonPosted | Completion) => None,
        // D2: RO or IDO with another completer.
        (Completion, Posted) if ro || (ido && other_id) => None,
        (Completion, Posted) => Some(false),
        // D3, D4: must be able to.
        (Completion, NonPosted) => Some(true),
        // D5b: completions of one request stay in order.
        (Completion, Completion) if later.transaction_id() == earlier.transaction_id() => Some(false),
        (Completion, Completion) => None,
    }
}

/// The ID that IDO compares: requester of a request, completer of a completion.
fn source(repr: &Repr) -> Bdf {
    match repr.kind() {
        tlplab_wire::tlp::Kind::Completion(completion) => completion.completer(),
        _ => repr.transaction_id().requester,
    }
}

fn tlp() -> impl Strategy<Value = Repr> {
    (0..4u8, any::<bool>(), any::<bool>(), 0..3u16, 0..2u8).prop_map(|(what, relaxed, ido, who, tag)| {
        let id = TransactionId::new(Bdf(0x100 + who), Tag::from(tag));
        let repr = match what {
            0 => Repr::mem_write(id, 0x1000, 64),
            1 => Repr::mem_read(id, 0x1000, 64),
            2 => Repr::atomic(id, AtomicOp::FetchAdd, 0x1000, 4),
            _ => Repr::completion(Bdf(0x100 + who), id, CompletionStatus::Success, 4, 0),
        };
        let attributes =
            Attributes { relaxed_ordering: relaxed, id_based_ordering: ido, ..Attributes::default() };
        repr.unwrap().with_attributes(attributes).unwrap()
    })
}

#[derive(Clone, Debug)]
enum Step {
    Push(Repr),
    /// Classes that cannot leave now (no credits).
    Leave([bool; 3]),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => tlp().prop_map(Step::Push),
        2 => any::<[bool; 3]>().prop_map(Step::Leave),
    ];
    prop::collection::vec(step, 1..80)
}

/// Everything the oracle demands of one moment.
fn check_moment(queue: &OrderedQueue<Item>, waiting: &[Item], blocked: [bool; 3]) {
    let may = |item: &Item| {
        waiting
            .iter()
            .take_while(|w| w.serial != item.serial)
            .all(|w| table(&item.repr, &w.repr) != Some(false))
    };
    // What the queue lets go, the table lets go.
    for class in FcClass::ALL {
        if let Some(item) = queue.eligible(class) {
            assert!(may(item), "{item:?} passes in {waiting:?}");
        }
    }
    // The oldest may always go; whatever only non-posted requests precede must be able to.
    for item in waiting {
        let must = waiting
            .iter()
            .take_while(|w| w.serial != item.serial)
            .all(|w| table(&item.repr, &w.repr) == Some(true));
        if must {
            assert_eq!(
                queue.eligible(item.repr.fc_class()).map(|i| i.serial),
                Some(item.serial),
                "{waiting:?}"
            );
        }
    }
    // No deadlock: posted requests can always go, and completions once no posted request waits.
    let candidates: Vec<_> = queue.candidates().filter(|(class, _)| !blocked[class.index()]).collect();
    let waits = |class| waiting.iter().any(|item| item.repr.fc_class() == class);
    let free = |class: FcClass| !blocked[class.index()] && waits(class);
    if free(FcClass::Posted) || (free(FcClass::Completion) && !waits(FcClass::Posted)) {
        assert!(!candidates.is_empty());
    }
    assert!(queue.candidates().map(|(_, item)| item.serial).is_sorted(), "candidates are oldest first");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_table(steps in steps()) {
        let mut queue = OrderedQueue::new();
        let mut waiting: Vec<Item> = Vec::new();
        for (serial, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(repr) => {
                    queue.push(repr.fc_class(), OrderingAttributes::of(&repr), Item { serial, repr });
                    waiting.push(Item { serial, repr });
                }
                Step::Leave(blocked) => {
                    check_moment(&queue, &waiting, blocked);
                    let next = queue.candidates().find(|(class, _)| !blocked[class.index()]).map(|(class, _)| class);
                    if let Some(class) = next {
                        let left = queue.pop(class).unwrap();
                        waiting.retain(|item| item.serial != left.serial);
                    }
                }
            }
            prop_assert_eq!(queue.len(), waiting.len());
        }
        // Unblocked, everything leaves.
        loop {
            let next = queue.candidates().next().map(|(class, _)| class);
            let Some(class) = next else { break };
            queue.pop(class);
            waiting.pop();
        }
        prop_assert!(waiting.is_empty() && queue.is_empty());
    }
}

fn push(
    queue: &mut OrderedQueue<&'static str>,
    class: FcClass,
    relaxed: bool,
    ido: Option<u16>,
    name: &'static str,
) {
    let attributes = OrderingAttributes { relaxed, id_based: ido.is_some(), id: Bdf(ido.unwrap_or(1)) };
    queue.push(class, attributes, name);
}

#[test]
fn by_hand() {
    use FcClass::{Completion, NonPosted, Posted};
    let mut queue = OrderedQueue::new();
    push(&mut queue, NonPosted, false, None, "read");
    push(&mut queue, Posted, false, None, "write");
    push(&mut queue, Completion, false, None, "completion");
    // The write passes the read (A3); the completion may not pass the write (D2a).
    let names =
        |queue: &OrderedQueue<&'static str>| queue.candidates().map(|(_, name)| *name).collect::<Vec<_>>();
    assert_eq!(names(&queue), ["read", "write"]);
    queue.pop(Posted);
    assert_eq!(names(&queue), ["read", "completion"]);
    push(&mut queue, Posted, false, None, "second write");
    push(&mut queue, NonPosted, false, Some(2), "read of another");
    queue.pop(NonPosted);
    // IDO: requester 2 is not the writer (1).
    assert_eq!(names(&queue), ["completion", "second write", "read of another"]);
    push(&mut queue, Posted, false, Some(2), "its own write");
    push(&mut queue, NonPosted, false, Some(2), "behind its own write");
    queue.pop(NonPosted);
    assert_eq!(names(&queue), ["completion", "second write"]);
    queue.pop(Completion);
    push(&mut queue, Completion, true, None, "relaxed");
    assert_eq!(names(&queue), ["second write", "relaxed"]);
    assert_eq!(queue.iter().count(), 4);
    assert_eq!(queue.drain().count(), 4);
    assert!(queue.is_empty());
}

/// The ordering attributes of each kind of TLP, by hand from the table: the RO bit where it concerns the TLP itself, and the ID compared.
#[test]
fn ordering_attributes_of_each_tlp_match_the_table() {
    let (requester, completer) = (Bdf(0x0100), Bdf(0x0208));
    let id = TransactionId::new(requester, Tag::from(3));
    let target = CfgTarget::new(Bdf(0x0300), 0, 15, CfgType::Type0).unwrap();
    // The TLP, may its RO bit let it pass posted requests, its ID.
    let rows = [
        (Repr::mem_read(id, 0x1000, 64).unwrap(), false, requester),
        (Repr::mem_write(id, 0x1000, 64).unwrap(), false, requester),
        (Repr::deferrable_mem_write(id, 0x1000, 64).unwrap(), true, requester),
        (Repr::atomic(id, AtomicOp::Swap, 0x1000, 4).unwrap(), true, requester),
        (Repr::completion(completer, id, CompletionStatus::Success, 4, 0).unwrap(), true, completer),
        (Repr::completion_with_data(completer, id, 4, 0, 4).unwrap(), true, completer),
    ];
    for (repr, by_relaxed, id) in rows {
        for (relaxed_ordering, id_based) in [(false, false), (true, false), (false, true), (true, true)] {
            let attributes =
                Attributes { relaxed_ordering, id_based_ordering: id_based, ..Attributes::default() };
            let asked = OrderingAttributes::of(&repr.with_attributes(attributes).unwrap());
            let relaxed = by_relaxed && relaxed_ordering;
            assert_eq!(asked, OrderingAttributes { relaxed, id_based, id }, "{repr:?} {attributes:?}");
        }
    }
    // These have no attributes that order them.
    let message = Repr::message(requester, Code::ErrCor).unwrap();
    for repr in [Repr::cfg_write(id, target), Repr::io_write(id, 0x3F8, 1).unwrap(), message] {
        let plain = OrderingAttributes { relaxed: false, id_based: false, id: requester };
        assert_eq!(OrderingAttributes::of(&repr), plain, "{repr:?}");
    }
}

/// The TLPs that wait, class by class.
#[test]
fn a_queue_is_counted_by_class() {
    use FcClass::{Completion, NonPosted, Posted};
    let mut queue = OrderedQueue::new();
    assert_eq!((queue.len(), queue.is_empty(), queue.only_class()), (0, true, None));
    let mut pushed = [0; 3];
    for class in FcClass::ALL {
        push(&mut queue, class, false, None, "first");
        push(&mut queue, class, false, None, "second");
        assert_eq!(queue.only_class(), (class == Posted).then_some(Posted));
        pushed[class.index()] = 2;
        assert_eq!(FcClass::ALL.map(|class| queue.len_of(class)), pushed);
        assert_eq!((queue.len(), queue.is_empty()), (pushed.iter().sum(), false));
        assert_eq!(queue.head(class), Some(&"first"));
    }
    // Behind posted requests nothing may go, though it is there.
    assert_eq!(FcClass::ALL.map(|class| queue.eligible(class)), [Some(&"first"), None, None]);
    for class in FcClass::ALL {
        assert_eq!(
            (queue.pop(class), queue.pop(class), queue.pop(class)),
            (Some("first"), Some("second"), None)
        );
        assert_eq!((queue.len_of(class), queue.head(class)), (0, None));
        assert_eq!(queue.only_class(), if class == NonPosted { Some(Completion) } else { None });
    }
    for class in FcClass::ALL {
        push(&mut queue, class, false, None, "alone");
        assert_eq!(queue.only_class(), Some(class));
        assert_eq!(queue.drain().collect::<Vec<_>>(), ["alone"]);
    }
    assert!(queue.is_empty());
}

/// ID-based Ordering: a TLP passes the posted requests of others, and waits for an older one of its own ID, not for a younger one.
#[test]
fn id_based_ordering_looks_at_every_older_write() {
    for class in [FcClass::NonPosted, FcClass::Completion] {
        // IDs of the posted requests before and after a TLP of ID 7; does it go?
        let rows: [(&[u16], &[u16], bool); 7] = [
            (&[], &[], true),
            (&[7], &[], false),
            (&[1], &[], true),
            (&[1, 2], &[7], true),
            (&[1, 7], &[], false),
            (&[7, 1], &[], false),
            (&[], &[7], true),
        ];
        for (before, after, goes) in rows {
            let mut queue = OrderedQueue::new();
            let posted = |queue: &mut OrderedQueue<_>, ids: &[u16]| {
                ids.iter().for_each(|&id| push(queue, FcClass::Posted, false, Some(id), "posted"));
            };
            posted(&mut queue, before);
            push(&mut queue, class, false, Some(7), "it");
            posted(&mut queue, after);
            assert_eq!(queue.eligible(class).is_some(), goes, "{class:?} {before:?} {after:?}");
            // Without the attribute it passes none.
            let mut plain = OrderedQueue::new();
            posted(&mut plain, before);
            push(&mut plain, class, false, None, "it");
            posted(&mut plain, after);
            assert_eq!(plain.eligible(class).is_some(), before.is_empty(), "{class:?} {before:?} {after:?}");
        }
    }
}

/// The TLPs that may go are named oldest first, whatever the classes are.
#[test]
fn candidates_come_by_age() {
    use FcClass::{Completion, NonPosted, Posted};
    let orders = [
        [Posted, NonPosted, Completion],
        [Posted, Completion, NonPosted],
        [NonPosted, Posted, Completion],
        [NonPosted, Completion, Posted],
        [Completion, Posted, NonPosted],
        [Completion, NonPosted, Posted],
    ];
    for order in orders {
        let mut queue = OrderedQueue::new();
        for class in order {
            // Another's ID each: everything may go.
            push(&mut queue, class, true, Some(class.index() as u16), "");
        }
        assert_eq!(queue.candidates().map(|(class, _)| class).collect::<Vec<_>>(), order);
        for (gone, class) in order.into_iter().enumerate() {
            queue.pop(class);
            let left: Vec<_> = queue.candidates().map(|(class, _)| class).collect();
            assert_eq!(left, order[gone + 1..]);
        }
        // Two of the three.
        for pair in [[order[0], order[1]], [order[1], order[2]], [order[0], order[2]]] {
            pair.iter().for_each(|&class| push(&mut queue, class, true, Some(class.index() as u16), ""));
            assert_eq!(queue.candidates().map(|(class, _)| class).collect::<Vec<_>>(), pair);
            queue.drain().for_each(drop);
        }
    }
}
