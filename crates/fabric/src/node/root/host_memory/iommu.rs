//! The IOMMU: how long a translation takes.
//!
//! A page whose translation is kept in the IO-TLB takes no time. Any other one needs a page walk, of which a few happen at a time, or which
//! begin so far apart; further ones wait in their order. Requests for a page that is being walked wait for that walk. No request passes
//! another here: a walk holds up all that follows, but not their own walks. (Ordering asks for no more than that nothing passes a posted
//! write, PCIe 5.0 §2.4.1; measured hosts keep the order of reads, too.)
//!
//! All of this is known when a request comes, which is then put off once, until it may go on.

use super::associative::Associative;
use super::walk::Walker;
use crate::config::IommuConfig;
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};

/// The IOMMU of a host.
#[derive(Clone, Debug)]
pub(super) struct Iommu {
    config: IommuConfig,
    tlb: Associative,
    /// The kept entries of the tables, if the time of a walk follows from them.
    tables: Option<Walker>,
    /// By slot of the IO-TLB: when the translation is there.
    ready: Vec<Time>,
    /// The duration of its walk.
    took: Vec<Duration>,
    /// The time at which each walker is free; none, if their number is no limit.
    walkers: Vec<Time>,
    /// Before that no walk begins.
    next_walk: Time,
    /// The time at which the last request so far goes on.
    last: Time,
    /// Page walks that are not over: when each begins, for how long it waits before, and how long it takes.
    under_way: VecDeque<(Time, Duration, Duration)>,
    count: TranslationCount,
}

/// A page that a request needs the translation of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Its key in the IO-TLB.
    key: u64,
    /// The function that owns the tables.
    function: u16,
    address: u64,
    /// 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    level: u8,
    /// There is a translation; that there is none is not kept.
    present: bool,
}

impl Page {
    /// The page of `bytes` that an address is in, of the function with this number whose addresses are translated.
    pub(crate) fn of(function: u16, address: u64, bytes: u64, present: bool) -> Self {
        let level = level_of(bytes);
        Self {
            key: own_keys(function) | u64::from(level) << 45 | (address / bytes),
            function,
            address,
            level,
            present,
        }
    }
}

/// The first bits of the keys of a function whose addresses are translated. Others share theirs: pages of one size.
fn own_keys(function: u16) -> u64 {
    (u64::from(function) + 1) << 48
}

fn level_of(bytes: u64) -> u8 {
    match bytes.ilog2() {
        30.. => 2,
        21..30 => 1,
        _ => 0,
    }
}

/// Translations of requests of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationCount {
    /// Requests whose page was kept in the IO-TLB, or being walked already.
    pub hits: u64,
    /// Requests for which a page walk was made.
    pub walks: u64,
    /// Time for which page walks had to wait for others, in all.
    pub waited: Duration,
    /// Time in which page walks happened, in all: at most as many at a time as there are walkers.
    pub walking: Duration,
}

/// The parts of the time of a request, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Translation {
    /// It waits until its page walk can begin.
    pub(super) queued: Duration,
    /// The walk.
    pub(super) walked: Duration,
    /// It waits for requests that came before it.
    pub(super) behind: Duration,
    /// Nothing is before it at this moment: it goes on at once.
    pub(super) at_once: bool,
}

impl Translation {
    /// All of it.
    pub(super) fn whole(&self) -> Duration {
        self.queued + self.walked + self.behind
    }
}

impl Iommu {
    pub(super) fn new(config: IommuConfig) -> Self {
        let tlb = Associative::new(1, config.entries);
        Self {
            config,
            tables: config.tables.map(Walker::new),
            ready: vec![Time::ZERO; tlb.slots()],
            took: vec![Duration::ZERO; tlb.slots()],
            tlb,
            walkers: vec![Time::ZERO; config.walkers.map_or(0, usize::from)],
            next_walk: Time::ZERO,
            last: Time::ZERO,
            under_way: VecDeque::new(),
            count: TranslationCount::default(),
        }
    }

    /// Until now: page walks that have not begun are not counted, nor is the rest of those that are not over.
    pub(super) fn count(&self, now: Time) -> TranslationCount {
        let mut count = self.count;
        for (starts, waited, walk) in &self.under_way {
            if *starts > now {
                count.walks -= 1;
                count.waited -= *waited;
                count.walking -= *walk;
            } else {
                count.walking -= (*starts + *walk).saturating_since(now);
            }
        }
        count
    }

    /// The page of an address that stays as it is.
    pub(super) fn page(&self, address: u64) -> Page {
        let key = address / self.config.page;
        Page { key, function: 0, address, level: level_of(self.config.page), present: true }
    }

    /// A request comes; `page` is `None` for an interrupt, which is not translated but passes nothing. Requests do not cross pages.
    pub(super) fn translate(&mut self, now: Time, page: Option<Page>) -> Translation {
        let (ready, walk) = page.map_or((now, Duration::ZERO), |page| self.ready_at(now, page));
        let ready = ready.max(now);
        let goes = ready.max(self.last);
        // One that goes at this moment may still have its turn before it.
        let at_once = goes == now && self.last < now;
        self.last = goes;
        let walked = (ready - now).min(walk);
        Translation { queued: (ready - now) - walked, walked, behind: goes - ready, at_once }
    }

    /// The arrival of the translation, and the longest duration of a walk for it.
    fn ready_at(&mut self, now: Time, page: Page) -> (Time, Duration) {
        if let Some(slot) = self.tlb.find(page.key) {
            self.count.hits += 1;
            return (self.ready[slot], self.took[slot]);
        }
        let walk = match &mut self.tables {
            Some(tables) => tables.walk(page.function, page.address, page.level),
            None => self.config.walk,
        };
        let walker = self.walkers.iter_mut().min();
        let starts = now.max(self.next_walk).max(walker.as_ref().map_or(now, |free| **free));
        let ends = starts + walk;
        if let Some(walker) = walker {
            *walker = ends;
        }
        self.next_walk = starts + self.config.interval;
        while self.under_way.front().is_some_and(|(starts, _, walk)| *starts + *walk <= now) {
            self.under_way.pop_front();
        }
        self.under_way.push_back((starts, starts - now, walk));
        self.count.walks += 1;
        self.count.waited += starts - now;
        self.count.walking += walk;
        if page.present {
            let slot = self.tlb.insert(page.key, self.config.entries);
            (self.ready[slot], self.took[slot]) = (ends, walk);
        }
        (ends, walk)
    }

    /// Drops the kept translations of a function's range, and the entries above it.
    pub(super) fn forget(&mut self, function: u16, from: u64, bytes: u64) {
        let own = own_keys(function);
        self.tlb.retain(|key| {
            let (level, page) = (key >> 45 & 7, key & ((1 << 45) - 1));
            let size = 4096u64 << (9 * level.min(2));
            let first = page * size;
            key >> 48 != own >> 48 || first >= from + bytes || first + size <= from
        });
        if let Some(tables) = &mut self.tables {
            tables.clear();
        }
    }

    /// As if the pages of an access had been translated, which is not counted.
    pub(super) fn touch(&mut self, address: u64, bytes: u64) {
        let last = (address + bytes.max(1) - 1) / self.config.page;
        // Of more pages than there are entries, only the last remain.
        let first = (address / self.config.page).max((last + 1).saturating_sub(self.config.entries.into()));
        for page in first..=last {
            if self.tlb.find(page).is_none() {
                let slot = self.tlb.insert(page, self.config.entries);
                (self.ready[slot], self.took[slot]) = (Time::ZERO, Duration::ZERO);
            }
        }
    }

    /// No translation is kept any more (those under way are still awaited).
    pub(super) fn clear(&mut self) {
        self.tlb.clear();
        if let Some(tables) = &mut self.tables {
            tables.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::ZERO + Duration::from_ns(ns)
    }

    const CONFIG: IommuConfig = IommuConfig {
        page: 4096,
        entries: 4,
        walk: Duration::from_ns(100),
        walkers: Some(2),
        interval: Duration::ZERO,
        tables: None,
        ats: true,
    };

    /// Each case: when and which page; then ns queued, walked, behind others.
    #[test]
    fn walks_happen_side_by_side_and_nothing_passes() {
        let mut iommu = Iommu::new(CONFIG);
        let cases = [
            (10, 1, [0, 100, 0]),
            (20, 2, [0, 100, 0]),  // until 120
            (30, 3, [80, 100, 0]), // the first walker is free at 110; until 210
            (40, 1, [0, 70, 100]), // the walk of the first: 110, but behind the third
            (215, 1, [0, 0, 0]),
            (220, 9, [0, 100, 0]), // the second walker was free
            (230, 8, [0, 100, 0]),
            (240, 1, [0, 0, 90]),
            (330, 1, [0, 0, 0]), // at the moment the others go on
        ];
        for (now, page, [queued, walked, behind]) in cases {
            let got = iommu.translate(at(now), Some(iommu.page(page * 4096)));
            let ns = [got.queued, got.walked, got.behind].map(Duration::as_ns);
            assert_eq!(ns, [queued, walked, behind], "at {now} ns");
            assert_eq!(got.at_once, now == 215, "at {now} ns");
        }
        // An interrupt needs no translation.
        let interrupt = iommu.translate(at(331), None);
        assert!(interrupt.at_once && interrupt.behind.is_zero());
        let count = iommu.count(at(331));
        assert_eq!((count.walks, count.hits), (5, 4));
    }

    /// Five requests of different pages come at once, and two walk at a time.
    #[test]
    fn walks_are_counted_when_they_begin() {
        let mut iommu = Iommu::new(CONFIG);
        for page in 0..5 {
            iommu.translate(at(0), Some(iommu.page(page * 4096)));
        }
        let counted = |ns| {
            let count = iommu.count(at(ns));
            (count.walks, count.waited.as_ns(), count.walking.as_ns())
        };
        assert_eq!(counted(0), (2, 0, 0));
        assert_eq!(counted(50), (2, 0, 100));
        assert_eq!(counted(100), (4, 200, 200));
        assert_eq!(counted(250), (5, 400, 450));
        assert_eq!(counted(300), (5, 400, 500));
    }

    /// The last pages of an access are kept, and its earlier pages make room first; pages before the last ones are not looked at.
    #[test]
    fn of_a_large_access_the_last_pages_are_kept() {
        let mut iommu = Iommu::new(CONFIG);
        iommu.touch(0, 4096);
        iommu.touch(0, 1 << 62);
        let last = (1 << 50) - 1;
        // The walk of page 0 makes room for itself where the oldest of the last four was.
        let pages = [last, last - 1, last - 2, 0, last - 3];
        let walked =
            pages.map(|page| !iommu.translate(at(500), Some(iommu.page(page * 4096))).walked.is_zero());
        assert_eq!(walked, [false, false, false, true, true]);
    }

    #[test]
    fn a_range_is_forgotten_of_its_function_only() {
        let mut iommu = Iommu::new(IommuConfig { entries: 16, walkers: None, ..CONFIG });
        let pages =
            [(0, 0x1000, 0x1000), (0, 0x2000, 0x1000), (1, 0x2000, 0x1000), (0, 0x20_0000, 0x20_0000)];
        let walked = |iommu: &mut Iommu, ns: u64| {
            let walked = |(function, address, bytes)| {
                !iommu.translate(at(ns), Some(Page::of(function, address, bytes, true))).walked.is_zero()
            };
            pages.map(walked)
        };
        assert_eq!(walked(&mut iommu, 0), [true; 4]);
        assert_eq!(walked(&mut iommu, 1000), [false; 4]);
        iommu.forget(0, 0x2000, 0x1000);
        assert_eq!(walked(&mut iommu, 2000), [false, true, false, false]);
        iommu.forget(0, 0x30_0000, 0x1000);
        assert_eq!(walked(&mut iommu, 3000), [false, false, false, true], "it covers that");
        // That nothing is mapped is walked for each time.
        for ns in [4000, 5000] {
            assert_eq!(iommu.translate(at(ns), Some(Page::of(0, 0, 4096, false))).walked.as_ns(), 100);
        }
    }

    #[test]
    fn walks_begin_an_interval_apart() {
        let interval = Duration::from_ns(46);
        let mut iommu = Iommu::new(IommuConfig { walkers: None, interval, ..CONFIG });
        let queued = [(10, 0), (20, 36), (30, 72), (200, 0)];
        for (page, (now, wait)) in queued.into_iter().enumerate() {
            let got = iommu.translate(at(now), Some(iommu.page(page as u64 * 4096)));
            assert_eq!((got.queued.as_ns(), got.walked.as_ns()), (wait, 100), "at {now} ns");
        }
    }
}
