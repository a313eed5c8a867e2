//! Sets of ways in which the least recently used makes room: what the last-level cache and the IO-TLB have in common.

/// A set of kept keys.
#[derive(Clone, Debug)]
pub(super) struct Associative {
    sets: u64,
    ways: usize,
    /// The key in each way plus one, set by set; 0: none.
    keys: Vec<u64>,
    /// The time at which each way was used last; 0: never.
    used: Vec<u64>,
    clock: u64,
}

impl Associative {
    pub(super) fn new(sets: u64, ways: u16) -> Self {
        let (ways, slots) = (usize::from(ways), sets as usize * usize::from(ways));
        Self { sets, ways, keys: vec![0; slots], used: vec![0; slots], clock: 0 }
    }

    /// The number of keys that it can keep.
    pub(super) fn slots(&self) -> usize {
        self.keys.len()
    }

    /// True if nothing has been kept since the start, or since the last [`clear`](Self::clear).
    pub(super) fn is_empty(&self) -> bool {
        self.clock == 0
    }

    /// The slot of a key. It is then the one used last.
    pub(super) fn find(&mut self, key: u64) -> Option<usize> {
        let first = self.set(key);
        let way = self.keys[first..first + self.ways].iter().position(|&kept| kept == key + 1)?;
        self.touch(first + way);
        Some(first + way)
    }

    /// Keeps a key that is not kept yet, in the least recently used of the first `ways` ways of its set.
    pub(super) fn insert(&mut self, key: u64, ways: u16) -> usize {
        let first = self.set(key);
        let ways = &self.used[first..first + usize::from(ways)];
        let oldest = ways.iter().enumerate().min_by_key(|(_, used)| **used).map_or(0, |(way, _)| way);
        self.keys[first + oldest] = key + 1;
        self.touch(first + oldest);
        first + oldest
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: u64) {
        if let Some(slot) = self.find(key) {
            (self.keys[slot], self.used[slot]) = (0, 0);
        }
    }

    /// Keeps only these keys any more.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        for (key, used) in self.keys.iter_mut().zip(&mut self.used).filter(|(key, _)| **key != 0) {
            if !keep(*key - 1) {
                (*key, *used) = (0, 0);
            }
        }
    }

    /// Keeps nothing any more.
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            self.keys.fill(0);
            self.used.fill(0);
            self.clock = 0;
        }
    }

    fn set(&self, key: u64) -> usize {
        (key % self.sets) as usize * self.ways
    }

    fn touch(&mut self, slot: usize) {
        self.clock += 1;
        self.used[slot] = self.clock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_of_the_allowed_ways_makes_room() {
        let mut kept = Associative::new(2, 3);
        for key in [0, 2, 4, 1] {
            kept.insert(key, 3);
        }
        assert!(kept.find(0).is_some(), "2 is now the oldest of its set");
        kept.insert(6, 2);
        assert_eq!([0, 2, 4, 6, 1].map(|key| kept.find(key).is_some()), [true, false, true, true, true]);
        kept.remove(4);
        assert_eq!(kept.find(4), None);
        kept.insert(8, 3);
        assert_eq!([0, 6, 8].map(|key| kept.find(key).is_some()), [true; 3], "8 has the place of 4");
        kept.clear();
        assert_eq!([0, 4, 6, 1].map(|key| kept.find(key)), [None; 4]);
    }
}
