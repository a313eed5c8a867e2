//! The IOMMU: how long a translation takes.
//!
//! A page whose translation is kept in the IO-TLB takes no time. Any other one needs a page walk, of which a few happen at a time; further
//! ones wait in their order. Requests for a page that is being walked wait for that walk. No request passes a posted write that came
//! before it (PCIe 5.0 §2.4.1), so that a walk for a write holds up all that follows, but not their own walks.
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
    /// When each walker has nothing more to do.
    walkers: Vec<Time>,
    /// When the last posted write so far goes on.
    written: Time,
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
    /// It waits for writes that came before it.
    pub(super) behind: Duration,
    /// Nothing is before it at this moment: it goes on at once.
    pub(super) at_once: bool,
}

impl Iommu {
    pub(super) fn new(config: IommuConfig) -> Self {
        let tlb = Associative::new(1, config.entries);
        Self {
            config,
            ready: vec![Time::ZERO; tlb.slots()],
            tlb,
            walkers: vec![Time::ZERO; usize::from(config.walkers)],
            written: Time::ZERO,
            count: TranslationCount::default(),
        }
    }

    pub(super) fn count(&self) -> TranslationCount {
        self.count
    }

    /// A request comes; `address` is `None` for an interrupt, which is not translated but passes no write. Requests do not cross pages.
    pub(super) fn translate(&mut self, now: Time, address: Option<u64>, posted: bool) -> Translation {
        let ready = address.map_or(now, |address| self.ready_at(now, address)).max(now);
        let goes = ready.max(self.written);
        // One that goes at this moment may still have its turn before it.
        let at_once = goes == now && self.written < now;
        if posted {
            self.written = goes;
        }
        let walked = (ready - now).min(self.config.walk);
        Translation { queued: (ready - now) - walked, walked, behind: goes - ready, at_once }
    }

    fn ready_at(&mut self, now: Time, address: u64) -> Time {
        let page = address / self.config.page;
        if let Some(slot) = self.tlb.find(page) {
            self.count.hits += 1;
            return self.ready[slot];
        }
        let Some(walker) = self.walkers.iter_mut().min() else { return now };
        let starts = now.max(*walker);
        *walker = starts + self.config.walk;
        self.count.walks += 1;
        self.count.waited += starts - now;
        self.count.walking += self.config.walk;
        let slot = self.tlb.insert(page, self.config.entries);
        self.ready[slot] = *walker;
        *walker
    }

    /// As if the pages of an access had been translated, which is not counted.
    pub(super) fn touch(&mut self, address: u64, bytes: u64) {
        let last = (address + bytes.max(1) - 1) / self.config.page;
        for page in address / self.config.page..=last {
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

    /// Two walkers of 100 ns. Each case: when, page, posted; then ns queued, walked, behind writes.
    #[test]
    fn walks_happen_side_by_side_and_nothing_passes_a_write() {
        let config = IommuConfig { page: 4096, entries: 4, walk: Duration::from_ns(100), walkers: 2 };
        let mut iommu = Iommu::new(config);
        let cases = [
            (10, 1, true, [0, 100, 0]),
            (20, 2, false, [0, 100, 0]),  // until 120, after the write at 110
            (30, 3, true, [80, 100, 0]),  // the first walker is free at 110; until 210
            (40, 1, false, [0, 70, 100]), // the walk of the first: 110, but behind the second write
            (215, 1, true, [0, 0, 0]),
            (220, 9, false, [0, 100, 0]), // the second walker was free
            (230, 8, true, [0, 100, 0]),
            (240, 1, true, [0, 0, 90]),
            (330, 1, false, [0, 0, 0]), // at the moment the writes go on
        ];
        for (now, page, posted, [queued, walked, behind]) in cases {
            let got = iommu.translate(at(now), Some(page * 4096), posted);
            let ns = [got.queued, got.walked, got.behind].map(Duration::as_ns);
            assert_eq!(ns, [queued, walked, behind], "at {now} ns");
            assert_eq!(got.at_once, now == 215, "at {now} ns");
        }
        // An interrupt needs no translation.
        let interrupt = iommu.translate(at(331), None, true);
        assert!(interrupt.at_once && interrupt.behind.is_zero());
        assert_eq!((iommu.count().walks, iommu.count().hits), (5, 4));
    }
}
