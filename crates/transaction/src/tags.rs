//! The tags a requester owns: their allocation and their reuse.

use std::collections::VecDeque;
use tlplab_units::{Duration, Tag, Time};

/// The bits of tag that a requester may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagBits {
    /// Tags 0 to 31: Extended Tag is disabled (PCIe 5.0 §2.2.6.2).
    Five,
    /// Tags 0 to 255.
    #[default]
    Eight,
    /// Tags 256 to 1023: bits 9 and 8 may not both be zero, so that completers with 8 bits are noticed (PCIe 5.0 §2.2.6.2).
    Ten,
    /// Tags 1024 to 16383, flit mode only: bits 13 to 10 may not all be zero (PCIe 6.0 §2.2.6.2).
    Fourteen,
}

impl TagBits {
    /// The lowest tag.
    pub const fn first(self) -> u16 {
        match self {
            Self::Five | Self::Eight => 0,
            Self::Ten => 256,
            Self::Fourteen => 1024,
        }
    }
    /// The number of tags: 32, 256, 768 or 15360.
    pub const fn count(self) -> u16 {
        match self {
            Self::Five => 32,
            Self::Eight => 256,
            Self::Ten => 768,
            Self::Fourteen => 15360,
        }
    }
}

/// The order in which free tags are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagOrder {
    /// The first free tag after the one given last: a tag rests as long as possible before it is used again.
    #[default]
    RoundRobin,
    /// The lowest free tag.
    Lowest,
}

/// The rest of a tag whose request was abandoned (timed out, cancelled, answered wrongly) before it is used again. Its late
/// completions cannot be told from those of a new request with the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quarantine {
    /// Until its last completion has come, or for this time, whichever is shorter. Safe if no TLP lives longer in the fabric.
    For(Duration),
    /// Until its last completion has come.
    UntilAnswered,
    /// For this time, whatever comes: where completions overtake each other, the last one may come first.
    Unordered(Duration),
}

impl Default for Quarantine {
    /// 50 ms: the longest default completion timeout (PCIe 5.0 §7.5.3.15), longer than any TLP lives.
    fn default() -> Self {
        Self::For(Duration::from_ms(50))
    }
}

/// A requester's tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagConfig {
    /// Width of the tag.
    pub bits: TagBits,
    /// Leave this many of the lowest tags to others: requesters of one function that share nothing split its tags.
    pub skip: u16,
    /// Use at most this many tags, from the lowest up; `None` for all.
    pub limit: Option<u16>,
    /// The order in which free tags are used.
    pub order: TagOrder,
    /// Rest of an abandoned tag.
    pub quarantine: Quarantine,
}

impl TagConfig {
    /// The number of tags: at least 1.
    pub fn count(&self) -> u16 {
        let most = self.bits.count().saturating_sub(self.skip).max(1);
        self.limit.unwrap_or(u16::MAX).clamp(1, most)
    }
    /// The lowest tag.
    pub fn first(&self) -> u16 {
        self.bits.first() + self.skip.min(self.bits.count() - 1)
    }
}

/// A pool of tags. Each is free, taken, or resting.
#[derive(Clone, Debug)]
pub struct TagPool {
    config: TagConfig,
    /// One bit per tag, set if free.
    free: Vec<u64>,
    /// One bit per word of `free`, set if the word is not zero.
    summary: Vec<u64>,
    free_count: u16,
    cursor: u16,
    resting: Vec<bool>,
    /// Ends of rests and their tags, in the order in which the rests began.
    rests: VecDeque<(Time, u16)>,
}

impl TagPool {
    /// A pool with every tag free.
    pub fn new(config: TagConfig) -> Self {
        let count = config.count();
        let words = usize::from(count).div_ceil(64);
        let mut pool = Self {
            config,
            free: vec![0; words],
            summary: vec![0; words.div_ceil(64)],
            free_count: 0,
            cursor: 0,
            resting: vec![false; usize::from(count)],
            rests: VecDeque::new(),
        };
        (0..count).for_each(|index| pool.set_free(index));
        pool
    }

    /// The number of tags.
    pub fn capacity(&self) -> u16 {
        self.config.count()
    }
    /// The number of free tags.
    pub fn free(&self) -> u16 {
        self.free_count
    }
    /// The number of tags that are not free: taken or resting.
    pub fn in_use(&self) -> u16 {
        self.capacity() - self.free_count
    }
    /// The position of `tag` in the pool, from 0; `None` if it belongs to someone else.
    pub fn index(&self, tag: Tag) -> Option<usize> {
        let index = tag.value().checked_sub(self.config.first())?;
        (index < self.capacity()).then_some(usize::from(index))
    }
    /// The tag at a position.
    pub fn tag(&self, index: usize) -> Tag {
        Tag::new(self.config.first() + index as u16).expect("every pool fits 14 bits")
    }

    /// True if completions of a request may overtake each other.
    pub(crate) fn is_unordered(&self) -> bool {
        matches!(self.config.quarantine, Quarantine::Unordered(_))
    }

    /// Sets the rest of tags that are abandoned from now on. Tags that rest already keep the time limit set then, or rest longer.
    pub(crate) fn set_quarantine(&mut self, quarantine: Quarantine) {
        self.config.quarantine = quarantine;
    }

    /// Takes a free tag; `None` if there is none.
    pub fn alloc(&mut self) -> Option<Tag> {
        if self.free_count == 0 {
            return None;
        }
        let from = if self.config.order == TagOrder::Lowest { 0 } else { usize::from(self.cursor) };
        let index = self.next_free(from).or_else(|| self.next_free(0))?;
        self.cursor = (index as u16 + 1) % self.capacity();
        Some(self.take(index))
    }

    /// True if the first tag is free.
    pub(crate) fn first_is_free(&self) -> bool {
        self.free[0] & 1 == 1
    }

    /// Takes the first tag if it is free, out of turn.
    pub(crate) fn alloc_first(&mut self) -> Option<Tag> {
        self.first_is_free().then(|| self.take(0))
    }

    fn take(&mut self, index: usize) -> Tag {
        let word = &mut self.free[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.summary[index / 4096] &= !(1 << (index / 64 % 64));
        }
        self.free_count -= 1;
        self.tag(index)
    }

    /// Frees a taken tag.
    pub fn release(&mut self, tag: Tag) {
        let index = self.taken(tag);
        assert!(!self.resting[usize::from(index)], "tag {tag} rests");
        self.set_free(index);
    }

    /// Lets an abandoned tag rest from `now`.
    pub fn quarantine(&mut self, now: Time, tag: Tag) {
        let index = self.taken(tag);
        self.resting[usize::from(index)] = true;
        if let Quarantine::For(rest) | Quarantine::Unordered(rest) = self.config.quarantine {
            self.rests.push_back((now + rest, index));
        }
    }

    /// Frees a resting tag: its last completion has come.
    pub fn answered(&mut self, tag: Tag) {
        let index = self.taken(tag);
        assert!(self.resting[usize::from(index)], "tag {tag} does not rest");
        self.wake(index);
        self.rests.retain(|&(_, resting)| resting != index);
    }

    /// The end of the next rest.
    pub fn deadline(&self) -> Option<Time> {
        self.rests.front().map(|&(end, _)| end)
    }

    /// The ends of all rests.
    pub(crate) fn ends(&mut self) -> impl Iterator<Item = &mut Time> {
        self.rests.iter_mut().map(|(end, _)| end)
    }

    /// Frees one tag whose rest is over by `now`, and names it.
    pub fn expire(&mut self, now: Time) -> Option<Tag> {
        let &(end, index) = self.rests.front()?;
        if end > now {
            return None;
        }
        self.rests.pop_front();
        self.wake(index);
        Some(self.tag(usize::from(index)))
    }

    fn wake(&mut self, index: u16) {
        self.resting[usize::from(index)] = false;
        self.set_free(index);
    }

    fn taken(&self, tag: Tag) -> u16 {
        let index = self.index(tag).unwrap_or_else(|| panic!("tag {tag} is not of this pool"));
        assert!(self.free[index / 64] >> (index % 64) & 1 == 0, "tag {tag} is free already");
        index as u16
    }

    fn set_free(&mut self, index: u16) {
        let index = usize::from(index);
        self.free[index / 64] |= 1 << (index % 64);
        self.summary[index / 4096] |= 1 << (index / 64 % 64);
        self.free_count += 1;
    }

    /// The first free position at or after `from`.
    fn next_free(&self, from: usize) -> Option<usize> {
        let here = self.free[from / 64] >> (from % 64) << (from % 64);
        if here != 0 {
            return Some(from / 64 * 64 + here.trailing_zeros() as usize);
        }
        let next = from / 64 + 1;
        (next / 64..self.summary.len()).find_map(|block| {
            let words = self.summary[block] & if block == next / 64 { !0 << (next % 64) } else { !0 };
            let word = block * 64 + words.trailing_zeros() as usize;
            (words != 0).then(|| word * 64 + self.free[word].trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bits: TagBits, limit: Option<u16>, order: TagOrder) -> TagPool {
        TagPool::new(TagConfig { bits, limit, order, ..TagConfig::default() })
    }

    #[test]
    fn ranges_of_the_specification() {
        for (bits, first, last, count) in [
            (TagBits::Five, 0, 31, 32),
            (TagBits::Eight, 0, 255, 256),
            (TagBits::Ten, 256, 1023, 768),
            (TagBits::Fourteen, 1024, 16383, 15360),
        ] {
            for order in [TagOrder::Lowest, TagOrder::RoundRobin] {
                let mut pool = pool(bits, None, order);
                let tags: Vec<u16> = std::iter::from_fn(|| pool.alloc()).map(Tag::value).collect();
                assert_eq!(tags, (first..=last).collect::<Vec<_>>());
                assert_eq!((tags.len(), pool.in_use()), (count, count as u16));
            }
        }
    }

    #[test]
    fn order_of_reuse() {
        let mut lowest = pool(TagBits::Eight, Some(3), TagOrder::Lowest);
        let mut turning = pool(TagBits::Eight, Some(3), TagOrder::RoundRobin);
        for (pool, expected) in [(&mut lowest, [0, 1, 0, 2]), (&mut turning, [0, 1, 2, 0])] {
            let a = pool.alloc().unwrap();
            let b = pool.alloc().unwrap();
            pool.release(a);
            let c = pool.alloc().unwrap();
            let d = pool.alloc().unwrap();
            assert_eq!([a, b, c, d].map(Tag::value), expected);
            assert_eq!(pool.alloc(), None);
        }
    }

    #[test]
    fn an_abandoned_tag_rests() {
        let mut pool = pool(TagBits::Eight, Some(2), TagOrder::Lowest);
        let (a, b) = (pool.alloc().unwrap(), pool.alloc().unwrap());
        pool.quarantine(Time::ZERO, a);
        pool.quarantine(Time::from_fs(5), b);
        assert_eq!(pool.alloc(), None);
        let end = Time::ZERO + Duration::from_ms(50);
        assert_eq!(pool.deadline(), Some(end));
        assert_eq!(pool.expire(end - Duration::from_fs(1)), None);
        pool.answered(b);
        assert_eq!(pool.alloc(), Some(b));
        assert_eq!(pool.expire(end), Some(a));
        assert_eq!((pool.expire(Time::NEVER), pool.deadline()), (None, None));
        assert_eq!(pool.alloc(), Some(a));
    }

    #[test]
    #[should_panic(expected = "free already")]
    fn releasing_twice_is_loud() {
        let mut pool = pool(TagBits::Five, None, TagOrder::Lowest);
        let tag = pool.alloc().unwrap();
        pool.release(tag);
        pool.release(tag);
    }
}
