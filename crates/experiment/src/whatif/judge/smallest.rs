//! The search for a small set of candidates that gains about as much as a large one.
//!
//! The candidates stand in a row, the likeliest first. By halves, the search finds the shortest beginning of the row that still gains enough: its last
//! candidate is needed. With that one always relaxed, the same is done with those before it, until no other is needed. Of `n` candidates of which `k`
//! limit together, that takes about `k` (2 + log₂ `n`) trials, and about `k` where those that limit stand next to each other.

/// The state of a search.
pub(super) struct Smallest {
    /// Without the last one of these, the set of that time gained too little.
    needed: Vec<usize>,
    /// The candidates still in question, the likeliest first.
    open: Vec<usize>,
    /// So many of these, with those needed, gain enough.
    enough: usize,
    /// So many do not; unknown while `None`.
    few: Option<usize>,
}

impl Smallest {
    /// A search in a row of candidates that gain enough together, of which the first `few` do not.
    pub(super) fn new(row: Vec<usize>, few: usize) -> Self {
        let (enough, needed) = (row.len(), Vec::new());
        let mut search = Self { needed, open: row, enough, few: Some(few.min(enough.saturating_sub(1))) };
        search.settle();
        search
    }

    /// The number of those in question that are to be tried now.
    fn asked(&self) -> usize {
        match self.few {
            Some(few) => few + (self.enough - few) / 2,
            // Where many stand next to each other, each costs one trial.
            None if self.enough == self.open.len() => self.enough - 1,
            None => 0,
        }
    }

    /// The candidates to relax together; `None`: the set is found.
    pub(super) fn next(&self) -> Option<Vec<usize>> {
        let asks = !self.open.is_empty() && self.enough > 0;
        asks.then(|| [&self.needed, &self.open[..self.asked()]].concat())
    }

    /// Takes the result of that: it gained enough, or not.
    pub(super) fn tell(&mut self, gained: bool) {
        let asked = self.asked();
        if gained {
            self.enough = asked;
        } else {
            self.few = Some(asked);
        }
        self.settle();
    }

    /// The last candidate of the shortest beginning that gains enough is needed.
    fn settle(&mut self) {
        if self.few.is_some_and(|few| few + 1 == self.enough) {
            self.open.truncate(self.enough);
            self.needed.extend(self.open.pop());
            (self.enough, self.few) = (self.open.len(), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The set found in a row of `n` in which all of `limits` are needed, and the trials that it took.
    fn found(n: usize, limits: &[usize]) -> (BTreeSet<usize>, usize) {
        let mut search = Smallest::new((0..n).collect(), 0);
        let (mut trials, mut last) = (0, (0..n).collect());
        while let Some(set) = search.next() {
            let gained = limits.iter().all(|one| set.contains(one));
            trials += 1;
            if gained {
                last = set.into_iter().collect();
            }
            search.tell(gained);
        }
        (last, trials)
    }

    #[test]
    fn every_pair_and_every_row_is_found_in_few_trials() {
        for n in 2..40 {
            for one in 0..n {
                for other in one..n {
                    let limits = [one, other];
                    let (set, trials) = found(n, &limits);
                    assert_eq!(set, BTreeSet::from(limits), "{limits:?} of {n}");
                    assert!(trials <= 2 * (2 + n.ilog2() as usize + 1), "{trials} trials: {limits:?} of {n}");
                }
            }
        }
        let row: Vec<usize> = (20..29).collect();
        let (set, trials) = found(200, &row);
        assert_eq!(set, row.into_iter().collect());
        assert!(trials <= 20, "{trials}");
        assert_eq!(found(1000, &(0..1000).collect::<Vec<_>>()).0.len(), 1000);
    }
}
