//! The IOMMU: how long a translation takes.
//!
//! A page whose translation is kept in the IO-TLB takes no time. Any other one needs a page walk, of which a few happen at a time, or which
//! begin so far apart; further ones wait in their order. Requests for a page that is being walked wait for that walk. No request passes
//! another here: a walk holds up all that follows, but not their own walks. (Ordering asks for no more than that nothing passes a posted
//! write, PCIe 5.0 §2.4.1; measured hosts keep the order of reads, too.)
//!
//! All of this is known when a request comes, which is then put off once, until it may go on.

use super::associative::Associative;
use crate::config::IommuConfig;
use tlplab_units::{Duration, Time};

/// The IOMMU of a host.
#[derive(Clone, Debug)]
pub(super) struct Iommu {
    config: IommuConfig,
    tlb: Associative,
    /// By slot of the IO-TLB: when the translation is there.
    ready: Vec<Time>,
    /// When each walker has nothing more to do; none, if their number is no limit.
    walkers: Vec<Time>,
    /// Before that no walk begins.
    next_walk: Time,
    /// When the last request so far goes on.
    last: Time,
    count: TranslationCount,
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

/// Where the time of a request goes, one after the other.
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
            ready: vec![Time::ZERO; tlb.slots()],
            tlb,
            walkers: vec![Time::ZERO; config.walkers.map_or(0, usize::from)],
            next_walk: Time::ZERO,
            last: Time::ZERO,
            count: TranslationCount::default(),
        }
    }

    pub(super) fn count(&self) -> TranslationCount {
        self.count
    }

    /// A request comes; `address` is `None` for an interrupt, which is not translated but passes nothing. Requests do not cross pages.
    pub(super) fn translate(&mut self, now: Time, address: Option<u64>) -> Translation {
        let ready = address.map_or(now, |address| self.ready_at(now, address)).max(now);
        let goes = ready.max(self.last);
        // One that goes at this moment may still have its turn before it.
        let at_once = goes == now && self.last < now;
        self.last = goes;
        let walked = (ready - now).min(self.config.walk);
        Translation { queued: (ready - now) - walked, walked, behind: goes - ready, at_once }
    }

    fn ready_at(&mut self, now: Time, address: u64) -> Time {
        let page = address / self.config.page;
        if let Some(slot) = self.tlb.find(page) {
            self.count.hits += 1;
            return self.ready[slot];
        }
        let walker = self.walkers.iter_mut().min();
        let starts = now.max(self.next_walk).max(walker.as_ref().map_or(now, |free| **free));
        let ends = starts + self.config.walk;
        if let Some(walker) = walker {
            *walker = ends;
        }
        self.next_walk = starts + self.config.interval;
        self.count.walks += 1;
        self.count.waited += starts - now;
        self.count.walking += self.config.walk;
        let slot = self.tlb.insert(page, self.config.entries);
        self.ready[slot] = ends;
        ends
    }

    /// As if the pages of an access had been translated, which is not counted.
    pub(super) fn touch(&mut self, address: u64, bytes: u64) {
        let last = (address + bytes.max(1) - 1) / self.config.page;
        // Of more pages than there are entries, only the last remain.
        let first = (address / self.config.page).max((last + 1).saturating_sub(self.config.entries.into()));
        for page in first..=last {
            if self.tlb.find(page).is_none() {
                let slot = self.tlb.insert(page, self.config.entries);
                self.ready[slot] = Time::ZERO;
            }
        }
    }

    /// No translation is kept any more (those under way are still awaited).
    pub(super) fn clear(&mut self) {
        self.tlb.clear();
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
            let got = iommu.translate(at(now), Some(page * 4096));
            let ns = [got.queued, got.walked, got.behind].map(Duration::as_ns);
            assert_eq!(ns, [queued, walked, behind], "at {now} ns");
            assert_eq!(got.at_once, now == 215, "at {now} ns");
        }
        // An interrupt needs no translation.
        let interrupt = iommu.translate(at(331), None);
        assert!(interrupt.at_once && interrupt.behind.is_zero());
        assert_eq!((iommu.count().walks, iommu.count().hits), (5, 4));
    }

    /// Whatever was kept before, the last pages are, and the earlier of them make room first; only those are looked at, of however many.
    #[test]
    fn of_a_large_access_the_last_pages_are_kept() {
        let mut iommu = Iommu::new(CONFIG);
        iommu.touch(0, 4096);
        iommu.touch(0, 1 << 62);
        let last = (1 << 50) - 1;
        // The walk of page 0 makes room for itself where the oldest of the last four was.
        let pages = [last, last - 1, last - 2, 0, last - 3];
        let walked = pages.map(|page| !iommu.translate(at(500), Some(page * 4096)).walked.is_zero());
        assert_eq!(walked, [false, false, false, true, true]);
    }

    #[test]
    fn walks_begin_an_interval_apart() {
        let interval = Duration::from_ns(46);
        let mut iommu = Iommu::new(IommuConfig { walkers: None, interval, ..CONFIG });
        let queued = [(10, 0), (20, 36), (30, 72), (200, 0)];
        for (page, (now, wait)) in queued.into_iter().enumerate() {
            let got = iommu.translate(at(now), Some(page as u64 * 4096));
            assert_eq!((got.queued.as_ns(), got.walked.as_ns()), (wait, 100), "at {now} ns");
        }
    }
}
