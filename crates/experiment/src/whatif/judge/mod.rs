//! The trials that are made, and their order; [`told`] states their results.
//!
//! First each candidate is relaxed by itself, those first that the figures make suspicious. If none of them gains much, the suspicious ones are all at
//! once: what stands in a row has to grow together. If that gains no more, all are that are not known to cost something: of two stages of the same rate
//! nothing waits for the second. Where there are more candidates than the budget can try, this is done when half of it is spent. Of a set that gains more,
//! [`group`] searches for the part that it takes. If no set gains more, two at a time are relaxed. Where a beginning takes the run's place, the winner is tried on the whole run, and if that refutes it,
//! everything is. Then the winner is relaxed without limit, and what limits that run is what would limit next. No trial begins when as many events are spent as
//! [`Study::budget`] says; what is not tried is told, and what was not shown is not.

mod group;
mod row;
mod smallest;
mod told;

use super::{By, Outcome, Study, Trial};
use group::Group;
use std::sync::Arc;

/// Less gain than this is none.
const NONE: f64 = 0.01;
/// A gain within this of the best limits as well.
const TIE: f64 = 0.01;
/// If nothing gains more than this by itself, candidates are relaxed together.
const LITTLE: f64 = 0.1;
/// Together they have to gain so many times as much, and half of that on top, to be told instead.
const MORE: f64 = 2.0;
/// A gain on the whole run that differs by more from that on its beginning refutes it.
const UNLIKE: f64 = 0.05;

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
    /// Many at once.
    Together,
    /// Part of those that gain something together.
    Smaller,
    /// All but one of them.
    Needed,
    /// Each of them that was not tried by itself.
    Members,
    /// The other candidates, each by itself.
    Rest,
    Pairs,
    /// The winner of a beginning, on the whole run.
    Confirm,
    WithoutLimit,
    Next,
    Over,
}

/// Trials that do not depend on each other.
struct Round {
    purpose: Purpose,
    study: Arc<Study>,
    plan: Vec<Vec<usize>>,
    by: By,
    given: usize,
    told: Vec<Option<Option<Trial>>>,
    /// Trials from the first on that were told and paid for.
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
    /// In the search of a set that gains something, for those of it that limit.
    spent_searching: u64,
    /// On a beginning that is no likeness of the run.
    spent_in_vain: u64,
    singles: Vec<Trial>,
    limits: Vec<Trial>,
    /// Candidates of the first round that had their turn.
    had_turn: usize,
    /// Trials made.
    made: usize,
    /// The candidates that were relaxed together.
    group: Group,
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
            spent_searching: 0,
            spent_in_vain: 0,
            singles: Vec::new(),
            limits: Vec::new(),
            had_turn: 0,
            made: 0,
            group: Group::default(),
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
        if self.is_spent() {
            return None;
        }
        let round = &mut self.round;
        let candidates = round.plan.get(round.given)?.clone();
        let id = TaskId { round: self.number, index: round.given };
        round.given += 1;
        Some(Task { id, study: round.study.clone(), candidates, by: round.by, for_table: false })
    }

    /// Takes the result of a task.
    pub fn tell(&mut self, id: TaskId, trial: Option<Trial>) {
        if id.round != self.number {
            return; // the budget was used up before it
        }
        self.round.told[id.index] = Some(trial);
        while !self.is_spent()
            && let Some(Some(trial)) = self.round.told.get_mut(self.round.folded)
        {
            if let Some(trial) = trial.take() {
                let cost = self.study.cost(&trial);
                *(if self.is_searching() { &mut self.spent_searching } else { &mut self.spent }) += cost;
                self.made += 1;
                self.round.trials.push(trial);
            }
            self.round.folded += 1;
        }
        if self.round.folded == self.round.plan.len() || self.is_spent() {
            self.next_round();
        }
    }

    /// Candidates are known to gain something together; to find those takes trials that few runs need, and so has a budget of its own.
    fn is_searching(&self) -> bool {
        matches!(self.round.purpose, Purpose::Smaller | Purpose::Needed | Purpose::Members)
    }

    /// Events that trials of this round and those before may take.
    fn budget(&self) -> u64 {
        match self.round.purpose {
            // Where nothing gains much, and not all can be tried, the rest is for many at once.
            Purpose::Singles if gain(&self.round.trials) < LITTLE && self.is_too_much() => {
                self.study.budget() / 2
            }
            Purpose::Singles | Purpose::Rest => self.study.first_budget(),
            _ => self.study.budget(),
        }
    }

    /// True if not all of the round can be tried, as its trials have cost so far.
    fn is_too_much(&self) -> bool {
        let each = self.spent / (self.round.folded as u64).max(1);
        each.saturating_mul(self.round.plan.len() as u64) > self.study.first_budget()
    }

    fn is_spent(&self) -> bool {
        let spent = if self.is_searching() { self.spent_searching } else { self.spent };
        spent >= self.budget()
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
                self.had_turn = self.round.folded;
                self.singles = trials;
                self.limits = best(&study, &self.singles);
                if self.most() < LITTLE { self.together() } else { self.confirm_alone() }
            }
            Purpose::Together => self.were_together(trials),
            Purpose::Smaller => self.was_smaller(trials),
            Purpose::Needed => self.were_needed(trials),
            Purpose::Members => self.were_members(trials),
            Purpose::Rest => {
                self.singles.extend(trials);
                self.limits = best(&study, &self.singles);
                if self.most() < LITTLE { self.pairs() } else { self.confirm() }
            }
            Purpose::Pairs => self.were_pairs(trials),
            Purpose::Confirm => self.confirmed(trials, self.round.study.clone()),
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
        let nothing = self.round.plan.is_empty() || self.is_spent();
        if nothing && self.round.purpose != Purpose::Over {
            self.next_round();
        }
    }

    /// The gain of the limits.
    fn most(&self) -> f64 {
        self.limits.first().map_or(0.0, |trial| trial.gain)
    }

    /// The winner again, on the whole run if a beginning took its place.
    fn confirm(&mut self) -> Round {
        if self.group.only_suspects && !self.group.is_least {
            self.limits = best(&self.study, &self.singles); // one is shown to limit, and several are not
        }
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
                (self.had_turn, self.group) = (0, Group::default());
                self.spent_in_vain +=
                    std::mem::take(&mut self.spent) + std::mem::take(&mut self.spent_searching);
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

/// The greatest gain.
fn gain(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| trial.gain).fold(f64::NEG_INFINITY, f64::max)
}

/// The trials that gain most, each resource once; none if none gains anything. A group is left out where a part of it gains as much.
fn best(study: &Study, trials: &[Trial]) -> Vec<Trial> {
    let most = gain(trials);
    if most < NONE {
        return Vec::new();
    }
    let least = ((1.0 + most) * (1.0 - TIE)).max(1.0 + NONE);
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
