//! Candidates that limit together: large sets are relaxed, and of one that gains something the part that it takes is searched for.
//!
//! The search ([`Smallest`]) leaves out what the gain does not need. Then each that is left is left out by itself: where that still gains enough, it was not
//! needed. Where what is lost without each adds up to more than the gain, and all but one still gain much, the search goes on in those: of three of which
//! two gain something without the third, these are the limit. A set is told as the smallest only if all this was done.

use super::smallest::Smallest;
use super::{Judge, LITTLE, MORE, NONE, Purpose, Round, Trial, best, gain, row};
use crate::whatif::By;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a set may gain so much less than all of it.
const NEEDED: f64 = 0.9;

/// From so much suspicion on, something is busy all the time.
const BUSY: f64 = 0.97;
/// If something gains as much by itself, nothing else is asked for.
const MUCH: f64 = 0.5;

/// The losses without each of several resources that are all needed for a gain add up to this many times the gain.
const SHARED: f64 = 1.5;

/// The sets of candidates that were relaxed together.
#[derive(Default)]
pub(super) struct Group {
    /// The number of large sets that had their turn.
    asked: usize,
    /// One candidate gains much, and only the other suspicious ones are asked for.
    pub(super) only_suspects: bool,
    /// The last large set.
    last: Vec<usize>,
    /// The suspicious candidates, which gained nothing.
    suspects: Vec<usize>,
    /// All the suspicious ones, which gained something together, but little.
    weak: Option<Trial>,
    /// The large sets that did not gain more than one candidate did: how many candidates, and the gain.
    pub(super) in_vain: Vec<(usize, f64)>,
    search: Option<Smallest>,
    /// A set needs so much gain to take the place of the one found.
    enough: f64,
    /// The sets that were tried.
    sets: Vec<Trial>,
    /// Each of the set is needed: all others that were asked for were tried.
    pub(super) is_least: bool,
}

impl Group {
    /// Many were relaxed together.
    pub(super) fn was_asked(&self) -> bool {
        !self.in_vain.is_empty() || self.search.is_some()
    }
}

impl Judge {
    /// True if candidates together gain much more than what gains most by itself.
    pub(super) fn is_more(&self, together: &Trial) -> bool {
        together.gain >= self.least_together()
    }

    /// The gain from which on several are told instead of one.
    fn least_together(&self) -> f64 {
        let most = gain(&self.singles);
        if most < NONE { NONE } else { MORE * most + LITTLE / 2.0 }
    }

    /// Looks for further limits behind a resource that gains much: several may be busy all the time although none gains anything alone.
    pub(super) fn confirm_alone(&mut self) -> Round {
        let candidates = self.study.candidates();
        let mut gains: BTreeMap<&str, f64> = BTreeMap::new();
        for trial in &self.singles {
            let candidate = &candidates[trial.candidates[0]];
            if candidate.suspicion >= BUSY {
                let most = gains.entry(&candidate.resource).or_insert(f64::NEG_INFINITY);
                *most = most.max(trial.gain);
            }
        }
        let in_vain = gains.values().filter(|gain| **gain < NONE).count();
        if self.most() >= MUCH || in_vain < 2 {
            return self.confirm();
        }
        self.group.only_suspects = true;
        self.together()
    }

    /// The suspicious candidates that gain little alone, without those that gain much.
    fn other_suspects(&self) -> Vec<usize> {
        let candidates = self.study.candidates();
        let name = |at: &usize| candidates[*at].resource.as_str();
        let much = self.singles.iter().filter(|trial| trial.gain >= LITTLE);
        let much: BTreeSet<&str> = much.map(|trial| name(&trial.candidates[0])).collect();
        let mut row = row::suspects(&self.study, &self.singles);
        row.retain(|at| !much.contains(name(at)));
        row
    }

    /// The next large set: first the suspicious candidates, then all that are not known to cost something.
    pub(super) fn together(&mut self) -> Round {
        loop {
            self.group.asked += 1;
            let set = match self.group.asked {
                1 if self.group.only_suspects => self.other_suspects(),
                1 => row::suspects(&self.study, &self.singles),
                2.. if self.group.only_suspects => return self.confirm(),
                // A short run may say by chance that more of something costs a little.
                2 => row::harmless(&self.study, &self.singles, LITTLE / 2.0),
                3 => row::harmless(&self.study, &self.singles, NONE),
                _ => return self.rest(),
            };
            if set.len() > 1 && set != self.group.last {
                self.group.last.clone_from(&set);
                return self.round_of(Purpose::Together, vec![set]);
            }
        }
    }

    pub(super) fn were_together(&mut self, trials: Vec<Trial>) -> Round {
        let Some(all) = trials.into_iter().next().or_else(|| self.weak()) else { return self.together() };
        if !self.is_more(&all) && self.group.weak.is_none() {
            self.group.in_vain.push((all.candidates.len(), all.gain));
            if self.group.asked == 1 {
                self.group.suspects.clone_from(&all.candidates);
            }
            return self.together();
        }
        // A large set may hold more than the suspicious ones show.
        if self.group.asked == 1 && all.gain < LITTLE {
            self.group.weak = Some(all);
            return self.together();
        }
        let all = match self.group.weak.take() {
            Some(weak) if all.gain < MORE * weak.gain => weak,
            _ => all,
        };
        let few = self.group.suspects.len();
        let few = if all.candidates.starts_with(&self.group.suspects) { few } else { 0 };
        self.search(all, few)
    }

    /// A search in a set of which the first `few` gain nothing.
    fn search(&mut self, all: Trial, few: usize) -> Round {
        self.group.enough = (NEEDED * all.gain).max(NONE);
        self.group.search = Some(Smallest::new(all.candidates.clone(), few));
        self.limits = vec![all];
        self.smaller()
    }

    /// The suspicious ones, if they gained something, and no larger set could be tried.
    fn weak(&mut self) -> Option<Trial> {
        let weak = self.group.weak.take();
        weak.filter(|_| self.group.asked > 1)
    }

    /// The next part of a set that gains more.
    fn smaller(&mut self) -> Round {
        while let Some(part) = self.group.search.as_ref().and_then(Smallest::next) {
            let Some(known) = self.set(&part) else { return self.round_of(Purpose::Smaller, vec![part]) };
            self.is_part(Some(known));
        }
        self.needed()
    }

    pub(super) fn was_smaller(&mut self, trials: Vec<Trial>) -> Round {
        if self.round.folded < self.round.plan.len() {
            return self.confirm(); // there was no budget for it
        }
        self.group.sets.extend(trials.iter().cloned());
        self.is_part(trials.into_iter().next());
        self.smaller()
    }

    /// Takes the gain of a part of the set; `None`: it cannot be run.
    fn is_part(&mut self, part: Option<Trial>) {
        let gained = part.filter(|part| part.gain >= self.group.enough);
        if let Some(search) = &mut self.group.search {
            search.tell(gained.is_some());
        }
        if let Some(part) = gained {
            self.limits = vec![part];
        }
    }

    /// Each that is left out by itself, as far as that was not tried.
    fn needed(&mut self) -> Round {
        let set = self.found().to_vec();
        if let [_] = set[..] {
            if self.gain_of(&set).is_none() {
                self.singles.append(&mut self.limits);
            }
            self.limits = best(&self.study, &self.singles);
            return self.confirm();
        }
        let plan: Vec<Vec<usize>> = (0..set.len())
            .map(|out| without(&set, out))
            .filter(|part| self.gain_of(part).is_none())
            .collect();
        if plan.is_empty() { self.smallest() } else { self.round_of(Purpose::Needed, plan) }
    }

    pub(super) fn were_needed(&mut self, trials: Vec<Trial>) -> Round {
        if self.round.folded < self.round.plan.len() {
            return self.confirm();
        }
        let (single, several): (Vec<_>, Vec<_>) =
            trials.into_iter().partition(|trial| trial.candidates.len() == 1);
        self.singles.extend(single);
        self.group.sets.extend(several);
        self.smallest()
    }

    /// Decides when each was left out.
    fn smallest(&mut self) -> Round {
        let set = self.found().to_vec();
        let parts: Vec<Trial> = (0..set.len()).filter_map(|out| self.set(&without(&set, out))).collect();
        let Some(part) = parts.iter().max_by(|a, b| a.gain.total_cmp(&b.gain)) else { return self.members() };
        // One of them costs something beside the others.
        if part.gain >= self.group.enough {
            self.limits = vec![part.clone()];
            return self.needed();
        }
        // Where each loss is more than its share, some limit together whatever the others do: of two pairs one is a limit by itself.
        let all = self.most();
        let losses: f64 = parts.iter().map(|part| all - part.gain.max(0.0)).sum();
        if losses > SHARED * all && part.gain >= self.least_together().max(LITTLE) {
            return self.search(part.clone(), 0);
        }
        self.members()
    }

    /// Each of a set by itself, as far as that was not tried.
    fn members(&mut self) -> Round {
        self.group.is_least = true;
        let study = self.study.clone();
        self.limits.iter_mut().for_each(|limit| row::put_in_order(&study, limit));
        let set = self.found().iter();
        let plan = set.filter(|at| self.gain_of(&[**at]).is_none()).map(|at| vec![*at]).collect();
        self.round_of(Purpose::Members, plan)
    }

    pub(super) fn were_members(&mut self, trials: Vec<Trial>) -> Round {
        self.singles.extend(trials);
        let alone = gain(&self.singles);
        if alone >= NONE && alone * MORE > self.most() {
            self.limits = best(&self.study, &self.singles);
        }
        self.confirm()
    }

    /// The candidates that had no turn yet.
    fn rest(&mut self) -> Round {
        let plan = (self.had_turn..self.study.candidates().len()).map(|at| vec![at]).collect();
        self.round_of(Purpose::Rest, plan)
    }

    pub(super) fn pairs(&self) -> Round {
        self.round_of(Purpose::Pairs, row::pairs(&self.study))
    }

    pub(super) fn were_pairs(&mut self, trials: Vec<Trial>) -> Round {
        let pairs = best(&self.study, &trials);
        if pairs.first().is_some_and(|pair| self.is_more(pair)) {
            self.limits = pairs;
            self.group.is_least = true;
        }
        self.confirm()
    }

    fn round_of(&self, purpose: Purpose, plan: Vec<Vec<usize>>) -> Round {
        Round::new(purpose, self.study.clone(), plan, By::Twice)
    }

    /// The set that limits, as far as it is known.
    fn found(&self) -> &[usize] {
        self.limits.first().map_or(&[], |trial| &trial.candidates)
    }

    /// The gain of a set of candidates, if it was tried.
    fn gain_of(&self, set: &[usize]) -> Option<f64> {
        self.set(set).map(|trial| trial.gain)
    }

    fn set(&self, set: &[usize]) -> Option<Trial> {
        let is_it = |trial: &&Trial| {
            trial.candidates.len() == set.len() && set.iter().all(|at| trial.candidates.contains(at))
        };
        self.singles.iter().chain(&self.group.sets).find(is_it).cloned()
    }

    /// True if each of a set was tried by itself.
    pub(super) fn are_known_alone(&self, set: &[usize]) -> bool {
        set.iter().all(|at| self.gain_of(&[*at]).is_some())
    }
}

/// A set without one of it.
fn without(set: &[usize], out: usize) -> Vec<usize> {
    [&set[..out], &set[out + 1..]].concat()
}
