//! The trials that are made, and their order; [`told`] states their results.
//!
//! First each candidate is relaxed by itself, those first that the figures make suspicious. If none of them gains much, the most
//! suspicious are all at once, and then those left out that the gain does not need: what stands in a row has to grow together. If that gains no more, all
//! are that cost nothing by themselves: of two stages of the same rate nothing waits for the second. If that gains no more either, two at a time are. Where a beginning takes the run's place, the winner is tried on the whole run, and if that refutes it,
//! everything is. Then the winner is relaxed without limit, and what limits that run is what would limit next. No trial begins when as many events are spent as
//! [`Study::budget`] says; what is not tried is told.

mod told;

use super::{By, Candidate, Outcome, Study, Trial};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Less gain than this is none.
const NONE: f64 = 0.01;
/// A gain within this of the best limits as well.
const TIE: f64 = 0.01;
/// If nothing gains more than this by itself, candidates are relaxed together.
const LITTLE: f64 = 0.1;
/// Together they have to gain so many times as much, and half of that on top, to be told instead.
const MORE: f64 = 2.0;
/// Of so many of them, two at a time are relaxed.
const PAIRED: usize = 6;
/// So many of the most suspicious candidates are relaxed together.
const TOGETHER: usize = 32;
/// So many of all are.
const ALL_TOGETHER: usize = 128;
/// A gain on the whole run that differs by more from that on its beginning refutes it.
const UNLIKE: f64 = 0.05;
/// A suspicion below this counts as none.
const SUSPECT: f64 = 0.3;
/// A candidate that is left out may cost the rest of their gain.
const NEEDED: f64 = 0.9;

/// Something to be run, by whoever has a processor for it.
pub struct Task {
    /// To be told with what came of it.
    pub id: TaskId,
    study: Arc<Study>,
    candidates: Vec<usize>,
    by: By,
    /// For a table, which asks what limits then.
    for_table: bool,
}

/// A task of a [`Judge`]; of a table of all relaxations, none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId {
    round: usize,
    index: usize,
}

impl Task {
    /// The outcome that it is compared with.
    pub fn base(&self) -> Outcome {
        *self.study.base()
    }

    /// Runs it. `None`: there is no such run.
    pub fn run(&self) -> Option<Trial> {
        self.study.relaxed(&self.candidates, self.by, self.for_table || self.by == By::Gone)
    }
}

/// The purpose of the trials of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Singles,
    Pairs,
    Together,
    /// One after the other is left out.
    LeftOut,
    /// The winner of a beginning, on the whole run.
    Confirm,
    WithoutLimit,
    Next,
    Over,
}

/// The next candidates to leave out of those that gain something together: `count`, behind `from` that are known to be needed, from the least suspicious on.
#[derive(Clone, Copy)]
struct LeftOut {
    from: usize,
    count: usize,
}

/// Trials that do not depend on each other.
struct Round {
    purpose: Purpose,
    study: Arc<Study>,
    plan: Vec<Vec<usize>>,
    by: By,
    given: usize,
    told: Vec<Option<Option<Trial>>>,
    /// Those from the first on that were told and paid for.
    trials: Vec<Trial>,
    folded: usize,
}

impl Round {
    fn new(purpose: Purpose, study: Arc<Study>, plan: Vec<Vec<usize>>, by: By) -> Self {
        let told = plan.iter().map(|_| None).collect();
        Self { purpose, study, plan, by, given: 0, told, trials: Vec::new(), folded: 0 }
    }

    /// Every candidate by itself.
    fn singles(purpose: Purpose, study: Arc<Study>) -> Self {
        let plan = (0..study.candidates().len()).map(|candidate| vec![candidate]).collect();
        Self::new(purpose, study, plan, By::Twice)
    }
}

/// Judges a run by trials. It asks for them ([`Judge::next_task`]) and is told of them ([`Judge::tell`]), in whatever order; the verdict does
/// not depend on the order.
pub struct Judge {
    study: Arc<Study>,
    round: Round,
    number: usize,
    spent: u64,
    /// On a beginning that is no likeness of the run.
    spent_in_vain: u64,
    singles: Vec<Trial>,
    limits: Vec<Trial>,
    /// The gain of all that were relaxed together.
    together: f64,
    left_out: LeftOut,
    /// All that cost nothing were relaxed together.
    all_tried: bool,
    /// Nothing more can be left out.
    is_least: bool,
    /// The next limit is also searched for.
    asks_next: bool,
    without_limit: Option<Trial>,
    next: Vec<Trial>,
}

impl Judge {
    /// Of a run.
    pub fn new(study: Arc<Study>) -> Self {
        Self::asking(study, true)
    }

    /// Of a relaxed run that has its document: only what limits it.
    pub fn of_relaxed(trial: &Trial) -> Self {
        Self::asking(trial.after.clone(), false)
    }

    fn asking(study: Arc<Study>, asks_next: bool) -> Self {
        let mut judge = Self {
            round: Round::singles(Purpose::Singles, study.clone()),
            study,
            number: 0,
            spent: 0,
            spent_in_vain: 0,
            singles: Vec::new(),
            limits: Vec::new(),
            together: 0.0,
            left_out: LeftOut { from: 0, count: 1 },
            all_tried: false,
            is_least: false,
            asks_next,
            without_limit: None,
            next: Vec::new(),
        };
        if judge.round.plan.is_empty() {
            judge.next_round();
        }
        judge
    }

    /// Something to run now; `None` if there is nothing until more is told, or the judge has heard enough.
    pub fn next_task(&mut self) -> Option<Task> {
        let budget = self.budget();
        let round = &mut self.round;
        let candidates = round.plan.get(round.given).filter(|_| self.spent < budget)?.clone();
        let id = TaskId { round: self.number, index: round.given };
        round.given += 1;
        Some(Task { id, study: round.study.clone(), candidates, by: round.by, for_table: false })
    }

    /// Takes the result of a task.
    pub fn tell(&mut self, id: TaskId, trial: Option<Trial>) {
        if id.round != self.number {
            return; // the budget was used up before it
        }
        let budget = self.budget();
        let round = &mut self.round;
        round.told[id.index] = Some(trial);
        while let Some(Some(trial)) = round.told.get_mut(round.folded).filter(|_| self.spent < budget) {
            if let Some(trial) = trial.take() {
                self.spent += self.study.cost(&trial);
                round.trials.push(trial);
            }
            round.folded += 1;
        }
        if round.folded == round.plan.len() || self.spent >= budget {
            self.next_round();
        }
    }

    /// Events that trials of this round and those before may take.
    fn budget(&self) -> u64 {
        match self.round.purpose {
            Purpose::Singles => self.study.first_budget(),
            _ => self.study.budget(),
        }
    }

    /// A candidate relaxed in some way, for a table of all of them: what comes of it is not for the verdict.
    pub fn task_for_table(&self, candidate: usize, by: By) -> Task {
        let id = TaskId { round: usize::MAX, index: candidate };
        Task { id, study: self.study.clone(), candidates: vec![candidate], by, for_table: true }
    }

    /// The progress: trials made, and trials that are known to be to come.
    pub fn progress(&self) -> (usize, usize) {
        (self.round.folded, self.round.plan.len())
    }

    /// It has heard enough.
    pub fn is_over(&self) -> bool {
        self.round.purpose == Purpose::Over
    }

    fn next_round(&mut self) {
        let trials = std::mem::take(&mut self.round.trials);
        let study = self.study.clone();
        let round = match self.round.purpose {
            Purpose::Singles => {
                self.singles = trials;
                self.limits = best(&study, &self.singles);
                match self.most() < LITTLE {
                    true => {
                        let all = vec![suspects(&study, TOGETHER)];
                        Round::new(Purpose::Together, study.clone(), all, By::Twice)
                    }
                    false => self.confirm(),
                }
            }
            Purpose::Confirm => self.confirmed(trials, self.round.study.clone()),
            Purpose::Together => match trials.into_iter().find(|all| self.is_more(all)) {
                Some(all) => {
                    self.together = all.gain;
                    self.left_out = LeftOut { from: 0, count: all.candidates.len().div_ceil(2) };
                    self.limits = vec![all];
                    self.leave_out()
                }
                None if !self.all_tried => {
                    self.all_tried = true;
                    let all = vec![harmless(&study, &self.singles)];
                    Round::new(Purpose::Together, study.clone(), all, By::Twice)
                }
                None => Round::new(Purpose::Pairs, study.clone(), pairs(&study), By::Twice),
            },
            Purpose::Pairs => {
                let pairs = best(&study, &trials);
                if pairs.first().is_some_and(|pair| self.is_more(pair)) {
                    self.limits = pairs;
                }
                self.confirm()
            }
            Purpose::LeftOut => {
                let least = (NEEDED * self.together).max(NONE);
                match trials.into_iter().find(|trial| trial.gain >= least) {
                    Some(fewer) => self.limits = vec![fewer],
                    None => self.left_out.from += self.left_out.count,
                }
                self.leave_out()
            }
            Purpose::WithoutLimit => {
                self.without_limit = trials.into_iter().next();
                match &self.without_limit {
                    Some(trial) => Round::singles(Purpose::Next, trial.after.clone()),
                    None => self.over(),
                }
            }
            Purpose::Next => {
                self.next = trials;
                self.over()
            }
            Purpose::Over => return,
        };
        self.number += 1;
        self.round = round;
        let nothing = self.round.plan.is_empty() || self.spent >= self.budget();
        if nothing && self.round.purpose != Purpose::Over {
            self.next_round();
        }
    }

    /// The gain of the limits.
    fn most(&self) -> f64 {
        self.limits.first().map_or(0.0, |trial| trial.gain)
    }

    /// True if candidates together gain much more than what gains most so far.
    fn is_more(&self, together: &Trial) -> bool {
        let most = self.most();
        together.gain >= if most < NONE { NONE } else { MORE * most + LITTLE / 2.0 }
    }

    /// Of candidates that gain something together, all but some: half of them, a quarter, one, the least suspicious first.
    fn leave_out(&mut self) -> Round {
        let Some(whole) = self.limits.first() else { return self.over() };
        let all = whole.candidates.len();
        let LeftOut { from, count } = &mut self.left_out;
        if *from >= all {
            if *count == 1 {
                self.is_least = true;
                return self.confirm();
            }
            (*from, *count) = (0, count.div_ceil(2));
        }
        let (end, count) = (all - *from, (*count).min(all - *from).min(all - 1));
        let rest = [&whole.candidates[..end - count], &whole.candidates[end..]].concat();
        match rest.is_empty() {
            true => {
                self.is_least = true;
                self.confirm()
            }
            false => Round::new(Purpose::LeftOut, self.study.clone(), vec![rest], By::Twice),
        }
    }

    /// The winner again, on the whole run if a beginning took its place.
    fn confirm(&mut self) -> Round {
        let winner = self.limits.first().map(|trial| trial.candidates.clone());
        match (winner, self.study.of_whole().map(Arc::new)) {
            (Some(winner), Some(whole)) if self.asks_next => {
                Round::new(Purpose::Confirm, whole, vec![winner], By::Twice)
            }
            _ => self.without_limit(),
        }
    }

    /// True if the whole run gains as much. If not, everything is tried on it.
    fn confirmed(&mut self, trials: Vec<Trial>, whole: Arc<Study>) -> Round {
        let told = self.most();
        match trials.first() {
            Some(trial) if (trial.gain - told).abs() > UNLIKE * (1.0 + told) => {
                (self.study, self.singles, self.limits) = (whole.clone(), Vec::new(), Vec::new());
                self.all_tried = false;
                self.spent_in_vain += std::mem::take(&mut self.spent);
                Round::singles(Purpose::Singles, whole)
            }
            _ => self.without_limit(),
        }
    }

    /// The winner, so that it cannot limit any more.
    fn without_limit(&self) -> Round {
        let winner = self.limits.first().filter(|_| self.asks_next).map(|trial| trial.candidates.clone());
        Round::new(Purpose::WithoutLimit, self.study.clone(), winner.into_iter().collect(), By::Gone)
    }

    fn over(&self) -> Round {
        Round::new(Purpose::Over, self.study.clone(), Vec::new(), By::Gone)
    }
}

/// Those that gain most, each resource once; none if none gains anything. A whole is none of them where a part of it gains as much.
fn best(study: &Study, trials: &[Trial]) -> Vec<Trial> {
    let most = trials.iter().map(|trial| trial.gain).fold(f64::NEG_INFINITY, f64::max);
    if most < NONE {
        return Vec::new();
    }
    let least = (1.0 + most) * (1.0 - TIE);
    let mut best: Vec<&Trial> = trials.iter().filter(|trial| 1.0 + trial.gain >= least).collect();
    best.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    let of = |trial: &Trial| trial.candidates.iter().map(|at| &study.candidates()[*at]).collect::<Vec<_>>();
    let names = |trial: &Trial| of(trial).iter().map(|one| one.resource.clone()).collect::<Vec<_>>();
    let has_part = |trial: &Trial| {
        let whole = names(trial);
        best.iter().any(|other| of(other).iter().any(|one| one.part_of.iter().any(|of| whole.contains(of))))
    };
    let mut chosen: Vec<Trial> = Vec::new();
    for trial in best.iter().filter(|trial| !has_part(trial)) {
        if chosen.iter().all(|other| names(other) != names(trial)) {
            chosen.push((*trial).clone());
        }
    }
    chosen
}

/// The most suspicious resources, so many at most.
fn suspects(study: &Study, most: usize) -> Vec<usize> {
    let all = study.candidates().iter().enumerate().filter(|(_, one)| one.suspicion >= SUSPECT);
    resources(all.collect(), most)
}

/// The resources that cost nothing when they were relaxed by themselves.
fn harmless(study: &Study, singles: &[Trial]) -> Vec<usize> {
    let singles =
        singles.iter().filter(|trial| trial.gain > -NONE).filter_map(|trial| trial.candidates.first());
    resources(singles.map(|at| (*at, &study.candidates()[*at])).collect(), ALL_TOGETHER)
}

/// The most suspicious candidates, one of each resource, so many at most.
fn resources(mut all: Vec<(usize, &Candidate)>, most: usize) -> Vec<usize> {
    all.sort_by(|a, b| b.1.suspicion.total_cmp(&a.1.suspicion));
    let mut names = BTreeSet::new();
    all.retain(|(_, candidate)| names.insert(&candidate.resource));
    all.into_iter().take(most).map(|(index, _)| index).collect()
}

/// Pairs of the most suspicious resources.
fn pairs(study: &Study) -> Vec<Vec<usize>> {
    let first = suspects(study, PAIRED);
    let second = |a: usize| first.iter().copied().filter(move |b| *b > a);
    first.iter().flat_map(|a| second(*a).map(|b| vec![*a, b])).collect()
}
