//! The time of a page walk through tables of several levels, with or without a second stage.
//!
//! A walk reads an entry of each level, from the highest whose entries are not kept down to the page's. With a second stage the address of
//! each table is one of the first stage: it is translated by as many reads as the second stage has levels, unless that translation is kept; and so is
//! what comes out. Four levels over four, with nothing kept, are 4 × (4 + 1) + 4 = 24 reads.

use super::associative::Associative;
use crate::config::TablesConfig;
use tlplab_units::Duration;

/// Bits of an address that one level of tables translates.
const LEVEL: u32 = 9;
const PAGE: u32 = 12;

/// The kept entries of the tables.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    config: TablesConfig,
    /// By level above the last: the entries that are kept.
    levels: Vec<Associative>,
    nested: Associative,
}

impl Walker {
    pub(super) fn new(config: TablesConfig) -> Self {
        let levels = (1..config.levels).map(|_| Associative::new(1, config.entries)).collect();
        Self { config, levels, nested: Associative::new(1, config.nested_entries) }
    }

    /// Time of a walk for an address of a function to a page of `level`: 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    pub(super) fn walk(&mut self, function: u16, address: u64, level: u8) -> Duration {
        let key = |level: u8| {
            let table = address >> (PAGE + LEVEL * u32::from(level));
            u64::from(function) << 48 | table & ((1 << 45) - 1)
        };
        let above = level + 1..self.config.levels;
        let found =
            above.clone().find(|level| self.levels[usize::from(*level) - 1].find(key(*level)).is_some());
        let first = found.unwrap_or(self.config.levels);
        let mut reads = 0;
        for at in (level..first).rev() {
            // The table is one page, which the entry above points to.
            reads += 1 + self.second_stage((u64::from(at) + 1) << 60 | key(at + 1));
        }
        reads += self.second_stage((8 + u64::from(level)) << 60 | key(level));
        for at in above {
            let (kept, key) = (&mut self.levels[usize::from(at) - 1], key(at));
            if kept.find(key).is_none() {
                kept.insert(key, self.config.entries);
            }
        }
        self.config.step * reads
    }

    /// Reads that the second stage takes for a page of the first.
    fn second_stage(&mut self, page: u64) -> u64 {
        if self.config.nested == 0 || self.nested.find(page).is_some() {
            return 0;
        }
        self.nested.insert(page, self.config.nested_entries);
        self.config.nested.into()
    }

    /// Nothing is kept any more.
    pub(super) fn clear(&mut self) {
        self.levels.iter_mut().for_each(Associative::clear);
        self.nested.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: TablesConfig =
        TablesConfig { levels: 4, nested: 0, step: Duration::from_ns(10), entries: 4, nested_entries: 64 };

    fn reads(walker: &mut Walker, address: u64, level: u8) -> u64 {
        walker.walk(0, address, level).as_ns() / 10
    }

    #[test]
    fn a_walk_begins_below_the_lowest_entry_that_is_kept() {
        let walker = &mut Walker::new(TABLES);
        assert_eq!(reads(walker, 0x1000, 0), 4, "nothing is kept");
        assert_eq!(reads(walker, 0x2000, 0), 1, "the same table");
        assert_eq!(reads(walker, 0x20_0000, 0), 2, "the next table of pages");
        assert_eq!(reads(walker, 0x4000_0000, 0), 3);
        assert_eq!(reads(walker, 0x80_0000_0000, 0), 4);
        assert_eq!(reads(walker, 0x8000_0000, 2), 1, "a page of 1 GiB");
        assert_eq!(walker.walk(1, 0x1000, 0).as_ns(), 40, "another function has other tables");
        walker.clear();
        assert_eq!(reads(walker, 0x1000, 1), 3, "a superpage has a level less");
    }

    /// 4 × (4 + 1) + 4; the next page needs an entry of a known table, and the second stage of what it says.
    #[test]
    fn a_second_stage_multiplies() {
        let walker = &mut Walker::new(TablesConfig { nested: 4, ..TABLES });
        assert_eq!(reads(walker, 0x1000, 0), 24);
        assert_eq!(reads(walker, 0x2000, 0), 1 + 4);
        assert_eq!(reads(walker, 0x20_0000, 0), 1 + (1 + 4) + 4);
        let walker = &mut Walker::new(TablesConfig { nested: 4, nested_entries: 1, entries: 1, ..TABLES });
        assert_eq!(reads(walker, 0x1000, 0), 24);
        assert_eq!(reads(walker, 0x8000_0000_0000, 0), 24, "nothing of that is kept");
    }

    #[test]
    fn the_least_recently_used_entry_makes_room() {
        let walker = &mut Walker::new(TablesConfig { entries: 1, ..TABLES });
        assert_eq!(reads(walker, 0, 0), 4);
        assert_eq!(reads(walker, 0x20_0000, 0), 2);
        assert_eq!(reads(walker, 0, 0), 2, "its table of pages has made room");
    }
}
