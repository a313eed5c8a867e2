//! Candidates that limit together: large sets are relaxed, and of one that gains something the part that it takes is searched for.
//!
//! The search ([`Smallest`]) leaves out what the gain does not need. Then each that is left is left out by itself: where that still gains enough, it was not
//! needed. Where some of the rest are such that nothing is gained without them, they alone are tried: the others came next. A set is told as the smallest
//! only if all this was done.

use super::smallest::Smallest;
use super::{Judge, LITTLE, MORE, NONE, Purpose, Round, Trial, best, gain, row};
use crate::whatif::By;

/// A part of a set may gain so much less than all of it.
const NEEDED: f64 = 0.9;

/// What was relaxed together.
#[derive(Default)]
pub(super) struct Group {
    /// How many of the large sets had their turn.
    asked: usize,
    /// The suspicious candidates, which gained nothing.
    suspects: Vec<usize>,
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

    /// The next large set: first the suspicious candidates, then all that are not known to cost something.
    pub(super) fn together(&mut self) -> Round {
        loop {
            self.group.asked += 1;
            let set = match self.group.asked {
                1 => row::suspects(&self.study, &self.singles),
                2 => row::harmless(&self.study, &self.singles),
                _ => return self.rest(),
            };
            if set.len() > 1 && set != self.group.suspects {
                return self.round_of(Purpose::Together, vec![set]);
            }
        }
    }

    pub(super) fn were_together(&mut self, trials: Vec<Trial>) -> Round {
        let Some(all) = trials.into_iter().next() else { return self.together() };
        if !self.is_more(&all) {
            self.group.in_vain.push((all.candidates.len(), all.gain));
            if self.group.asked == 1 {
                self.group.suspects.clone_from(&all.candidates);
            }
            return self.together();
        }
        let few = self.group.suspects.len();
        let few = if all.candidates.starts_with(&self.group.suspects) { few } else { 0 };
        self.group.enough = (NEEDED * all.gain).max(NONE);
        self.group.search = Some(Smallest::new(all.candidates.clone(), few));
        self.limits = vec![all];
        self.smaller()
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

    /// What a part of the set gained; `None`: it cannot be run.
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
            self.singles.append(&mut self.limits);
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
        let essential = self.round.purpose == Purpose::Essential;
        let (single, several): (Vec<_>, Vec<_>) =
            trials.into_iter().partition(|trial| trial.candidates.len() == 1);
        self.singles.extend(single);
        self.group.sets.extend(several.iter().cloned());
        match several.into_iter().next().filter(|trial| essential && self.is_enough(trial.gain)) {
            Some(part) => {
                self.group.enough = (NEEDED * part.gain).max(NONE);
                self.limits = vec![part];
                self.needed()
            }
            None if essential => self.members(),
            None => self.smallest(),
        }
    }

    /// True if a set says enough by itself, whatever another gains with it.
    fn is_enough(&self, gain: f64) -> bool {
        gain >= self.least_together().max(LITTLE)
    }

    /// What is known when each was left out.
    fn smallest(&mut self) -> Round {
        let set = self.found().to_vec();
        let gains: Vec<f64> = (0..set.len())
            .map(|out| self.gain_of(&without(&set, out)).unwrap_or(f64::NEG_INFINITY))
            .collect();
        // One of them costs something beside the others.
        let unneeded = (0..set.len()).find(|out| gains[*out] >= self.group.enough);
        if let Some(part) = unneeded.and_then(|out| self.set(&without(&set, out))) {
            self.limits = vec![part];
            return self.needed();
        }
        let least = self.least_together();
        let essential: Vec<usize> =
            (0..set.len()).filter(|out| gains[*out] < least).map(|out| set[out]).collect();
        if essential.len() > 1 && essential.len() < set.len() {
            match self.gain_of(&essential) {
                None => return self.round_of(Purpose::Essential, vec![essential]),
                Some(gain) if self.is_enough(gain) => {
                    self.limits.clear();
                    self.limits.extend(self.set(&essential));
                    self.group.enough = (NEEDED * gain).max(NONE);
                    return self.needed();
                }
                Some(_) => {}
            }
        }
        self.members()
    }

    /// Each of a set by itself, as far as that was not tried.
    fn members(&mut self) -> Round {
        self.group.is_least = true;
        let study = self.study.clone();
        self.limits.iter_mut().for_each(|limit| row::in_names_order(&study, limit));
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

    /// What a set of candidates gains, if it was tried.
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
