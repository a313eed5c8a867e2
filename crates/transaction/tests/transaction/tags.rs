//! The tags of a requester: those it owns, their order and their reuse (PCIe 5.0 §2.2.6.2).

use std::collections::BTreeSet;
use tlplab_transaction::{Quarantine, TagBits, TagConfig, TagOrder, TagPool};
use tlplab_units::{Duration, Tag, Time};

/// Some of the lowest tags are left to others, and not all of the rest is used: first tag and count by hand.
#[test]
fn a_requester_owns_a_part_of_the_tags() {
    let rows = [
        (TagBits::Five, 0, None, 0, 32),
        (TagBits::Five, 8, None, 8, 24),
        (TagBits::Five, 31, None, 31, 1),
        // At least the highest one.
        (TagBits::Five, 32, None, 31, 1),
        (TagBits::Eight, 64, Some(64), 64, 64),
        (TagBits::Eight, 200, Some(64), 200, 56),
        (TagBits::Eight, 0, Some(0), 0, 1),
        (TagBits::Ten, 700, Some(600), 956, 68),
        (TagBits::Fourteen, 1, None, 1025, 15359),
    ];
    for (bits, skip, limit, first, count) in rows {
        let config = TagConfig { bits, skip, limit, ..TagConfig::default() };
        assert_eq!((config.first(), config.count()), (first, count), "{config:?}");
        let mut pool = TagPool::new(config);
        assert_eq!((pool.capacity(), pool.free(), pool.in_use()), (count, count, 0));
        let tags: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
        assert_eq!(
            tags.iter().map(|tag| tag.value()).collect::<Vec<_>>(),
            (first..first + count).collect::<Vec<_>>()
        );
        assert_eq!((pool.free(), pool.in_use()), (0, count));
        for (place, tag) in [(0, first), (usize::from(count) - 1, first + count - 1)] {
            let tag = Tag::new(tag).unwrap();
            assert_eq!((pool.index(tag), pool.tag(place)), (Some(place), tag));
        }
        let others = [first.checked_sub(1), Some(first + count)].into_iter().flatten().filter_map(Tag::new);
        others.for_each(|tag| assert_eq!(pool.index(tag), None, "{tag} of {config:?}"));
    }
}

/// The next tag is the one that a plain set of free tags names, whatever is taken and given back.
#[test]
fn the_next_tag_is_the_free_one_in_turn() {
    for (bits, limit, steps) in [
        (TagBits::Eight, Some(3), 60),
        (TagBits::Eight, None, 1500),
        (TagBits::Ten, None, 4000),
        (TagBits::Fourteen, Some(4200), 13_000),
    ] {
        for order in [TagOrder::Lowest, TagOrder::RoundRobin] {
            let mut pool = TagPool::new(TagConfig { bits, limit, order, ..TagConfig::default() });
            let (count, first) = (pool.capacity(), bits.first());
            let mut free: BTreeSet<u16> = (0..count).collect();
            let mut taken = Vec::new();
            let (mut cursor, mut random) = (0, 12345u32);
            for step in 0..steps {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Fill, then keep it nearly full, so that free tags are far apart.
                if step < i32::from(count) || random >> 16 & 1 == 0 {
                    let from = if order == TagOrder::Lowest { 0 } else { cursor };
                    let next = free.range(from..).chain(&free).next().copied();
                    assert_eq!(pool.alloc().map(Tag::value), next.map(|index| first + index), "step {step}");
                    if let Some(index) = next {
                        free.remove(&index);
                        taken.push(index);
                        cursor = (index + 1) % count;
                    }
                } else if !taken.is_empty() {
                    let index = taken.swap_remove(random as usize % taken.len());
                    pool.release(Tag::new(first + index).unwrap());
                    free.insert(index);
                }
                assert_eq!((usize::from(pool.free()), usize::from(pool.in_use())), (free.len(), taken.len()));
            }
        }
    }
}

/// Two abandoned tags: the later one is answered, the earlier one's time ends; or nothing but an answer frees them.
#[test]
fn a_rest_ends_by_time_or_by_answer() {
    let rest = Duration::from_us(7);
    let at = |us| Time::ZERO + Duration::from_us(us);
    for quarantine in [Quarantine::For(rest), Quarantine::Unordered(rest), Quarantine::UntilAnswered] {
        let mut pool = TagPool::new(TagConfig { limit: Some(130), quarantine, ..TagConfig::default() });
        let tags: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
        let [early, late, answered] = [tags[65], tags[0], tags[129]];
        pool.quarantine(at(1), early);
        pool.quarantine(at(2), answered);
        pool.quarantine(at(3), late);
        assert_eq!((pool.in_use(), pool.alloc()), (130, None));
        pool.answered(answered);
        assert_eq!((pool.alloc(), pool.alloc()), (Some(answered), None));
        if quarantine == Quarantine::UntilAnswered {
            assert_eq!((pool.deadline(), pool.expire(Time::NEVER)), (None, None));
            pool.answered(early);
            assert_eq!(pool.alloc(), Some(early));
            continue;
        }
        assert_eq!(pool.deadline(), Some(at(8)));
        assert_eq!((pool.expire(at(7)), pool.expire(at(8)), pool.expire(at(8))), (None, Some(early), None));
        assert_eq!(
            (pool.deadline(), pool.expire(at(100)), pool.deadline()),
            (Some(at(10)), Some(late), None)
        );
        assert_eq!(pool.in_use(), 128);
    }
}

fn one_taken() -> (TagPool, Tag) {
    let mut pool = TagPool::new(TagConfig { bits: TagBits::Ten, limit: Some(2), ..TagConfig::default() });
    let tag = pool.alloc().unwrap();
    (pool, tag)
}

#[test]
#[should_panic(expected = "tag 0x100 rests")]
fn a_resting_tag_is_not_released() {
    let (mut pool, tag) = one_taken();
    pool.quarantine(Time::ZERO, tag);
    pool.release(tag);
}

#[test]
#[should_panic(expected = "tag 0x100 does not rest")]
fn only_a_resting_tag_is_answered() {
    let (mut pool, tag) = one_taken();
    pool.answered(tag);
}

#[test]
#[should_panic(expected = "tag 0x102 is not of this pool")]
fn a_foreign_tag_is_not_released() {
    one_taken().0.release(Tag::new(0x102).unwrap());
}
