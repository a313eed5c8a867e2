//! Which trials are made, in which order, and what they say: the verdict.
//!
//! First each candidate is relaxed by itself, those first that the figures make suspicious. If none of them gains much, the most
//! suspicious are all at once, and then those left out that the gain does not need: what stands in a row has to grow together. If that gains no more (some
//! may cost something), two at a time are. Then the winner is relaxed without limit, and what limits
//! that run is what would limit next. No trial begins when as many events are spent as
//! [`Study::budget`] says; what is not tried is told.

use super::phases::Span;
use super::{By, Candidate, Outcome, Study, Trial, spelt};
use crate::result::{Gain, Limit, LimitKind, Next, Phase, Tried, Verdict};
use crate::verdict::{capital, list, percent, rate};
use std::sync::Arc;
use tlplab_units::Time;

/// Less gain than this is none.
const NONE: f64 = 0.01;
/// What gains as much as the best but for this limits as well.
const TIE: f64 = 0.01;
/// If nothing gains more than this by itself, candidates are relaxed together.
const LITTLE: f64 = 0.1;
/// Together they have to gain so many times as much, and half of that on top, to be told instead.
const MORE: f64 = 2.0;
/// Of so many of them, two at a time are relaxed.
const PAIRED: usize = 6;
/// So many candidates are told besides the limit.
const TOLD: usize = 3;
/// So many are listed, of those that gain or cost as much as this.
const GAINS: usize = 16;
const SEEN: f64 = 0.001;
/// A direction that carries this part of what the other one does is as busy.
const AS_BUSY: f64 = 0.9;
/// So many of the most suspicious candidates are relaxed together.
const TOGETHER: usize = 32;
/// A gain on the whole run that differs by more from that on its beginning refutes it.
const UNLIKE: f64 = 0.05;
/// Whose suspicion is less is none.
const SUSPECT: f64 = 0.3;
/// So many different changes are told one by one.
const CHANGES: usize = 3;
/// What is left out may cost the rest of their gain.
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
    /// What it is compared with.
    pub fn base(&self) -> Outcome {
        *self.study.base()
    }

    /// Runs it. `None`: there is no such run.
    pub fn run(&self) -> Option<Trial> {
        self.study.relaxed(&self.candidates, self.by, self.for_table || self.by == By::Gone)
    }
}

/// What the trials of a round are for.
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

/// What is left out next of candidates that gain something together: `count`, behind `from` that are known to be needed, from the least suspicious on.
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
    /// What all that were relaxed together gained.
    together: f64,
    left_out: LeftOut,
    /// Nothing more can be left out.
    is_least: bool,
    /// What limits next is asked, too.
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

    /// What came of a task.
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

    /// How far it is: trials made, and trials that are known to be to come.
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

    /// What the limits gain.
    fn most(&self) -> f64 {
        self.limits.first().map_or(0.0, |trial| trial.gain)
    }

    fn carries(&self, gain: f64) -> String {
        carries(self.study.base().rate, gain)
    }

    /// Whether candidates together gain much more than what gains most so far.
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

    /// Whether the whole run gains as much. If not, everything is tried on it.
    fn confirmed(&mut self, trials: Vec<Trial>, whole: Arc<Study>) -> Round {
        let told = self.most();
        match trials.first() {
            Some(trial) if (trial.gain - told).abs() > UNLIKE * (1.0 + told) => {
                (self.study, self.singles, self.limits) = (whole.clone(), Vec::new(), Vec::new());
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

    /// What limits the run.
    pub fn verdict(&self) -> Verdict {
        let figures = &self.study.document().verdict;
        let tried = Tried {
            candidates: self.study.candidates().len(),
            tried: self.singles.len(),
            events: self.spent + self.spent_in_vain,
            until_fs: self.study.until().map(Time::as_fs),
            gains: self.gains(),
        };
        let Some(winner) = self.limits.first() else {
            return self.nothing_gains(tried);
        };
        let limits: Vec<Limit> = self.limits.iter().map(|trial| self.limit_of(trial)).collect();
        let agrees = self.limits.iter().any(|trial| self.agrees(trial));
        let change = limits[0].change.as_deref().unwrap_or_default();
        let (carries, failed) = (self.carries(winner.gain), self.failed() + &self.coverage());
        let sentence = match (limits.as_slice(), winner.candidates.len()) {
            ([only], 1) if agrees => {
                let tried = self.coverage();
                format!("{}; {change} {carries}{tried}.", figures.sentence.trim_end_matches('.'))
            }
            ([only], 1) => {
                let limit = if is_plural(&only.resource) { "limit" } else { "limits" };
                format!("{} {limit} the run: {change} {carries}{failed}.", capital(&only.resource))
            }
            ([_], together) => {
                let names = winner.candidates.iter().map(|at| self.study.candidates()[*at].resource.as_str());
                let named = capital(&list(&names.collect::<Vec<_>>()));
                let alone = if together == 2 { "neither" } else { "none of them" };
                let some = if together == 2 || self.is_least { "" } else { ", or some of them" };
                format!(
                    "{named} limit the run together{some}: {change} {carries}, and {alone} does alone{failed}."
                )
            }
            (several, _) => {
                let told = several.iter().map(|limit| match &limit.change {
                    Some(change) => format!("{} ({change})", limit.resource),
                    None => limit.resource.clone(),
                });
                let told: Vec<String> = told.collect();
                let names: Vec<&str> = told.iter().map(String::as_str).collect();
                format!("Each of these limits the run: {}; any of them {carries}{failed}.", list(&names))
            }
        };
        let mut limit = limits[0].clone();
        limit.evidence = if agrees { figures.limit.evidence.clone() } else { Vec::new() };
        limit.utilization = match agrees {
            true => figures.limit.utilization,
            false => self.study.candidates()[winner.candidates[0]].suspicion,
        };
        limit.evidence.extend(self.others());
        let next = self.next_limit();
        let phases = self.phases();
        let (told, sentence) = (self.told_phases(&phases), self.sentence_of(&phases).unwrap_or(sentence));
        limit.evidence.splice(0..0, told);
        Verdict { sentence, limit, next, limits, phases, tried: Some(tried) }
    }

    /// Nothing that was tried gains anything. What the figures name stands if it could not be tried; if it was, it does not limit.
    fn nothing_gains(&self, tried: Tried) -> Verdict {
        let figures = &self.study.document().verdict;
        let phases = self.phases();
        let evidence = format!(
            "twice as much of any of {} resources carries less than {} more",
            tried.tried,
            percent(NONE)
        );
        if !self.singles.iter().any(|trial| self.agrees(trial)) {
            let head = figures.sentence.trim_end_matches('.');
            let sentence =
                format!("{head}; twice as much of what was tried carries no more{}.", self.coverage());
            let mut verdict = Verdict { sentence, tried: Some(tried), phases, ..figures.clone() };
            verdict.limit.evidence.push(evidence);
            return verdict;
        }
        let (failed, coverage) = (self.failed(), self.coverage());
        let sentence = match self.widest() {
            Some(link) => format!(
                "{} limits the run: it is busy all the time, and there is no wider or faster one; twice as much of \
                 what was tried carries no more{failed}{coverage}.",
                capital(&link)
            ),
            None => format!(
                "No resource that was tried limits the run: twice as much of any carries no more{failed}{coverage}."
            ),
        };
        let sentence = self.sentence_of(&phases).unwrap_or(sentence);
        let told = format!("by its figures alone: {}", figures.sentence.trim_end_matches('.'));
        let limit = Limit {
            resource: self.widest().unwrap_or_else(|| "nothing that was tried".to_owned()),
            kind: if self.widest().is_some() { LimitKind::Link } else { LimitKind::None },
            evidence: [self.told_phases(&phases), vec![evidence, told]].concat(),
            ..Limit::default()
        };
        Verdict { sentence, limit, next: None, limits: Vec::new(), phases, tried: Some(tried) }
    }

    /// A link that is busy all the time, and no candidate.
    fn widest(&self) -> Option<String> {
        let is_candidate =
            |name: &String| self.study.candidates().iter().any(|one| one.wires.as_ref() == Some(name));
        let links = self.study.document().links.iter().filter(|link| !is_candidate(&link.name));
        let directions = links.flat_map(|link| &link.directions);
        let mut busy = directions.filter(|way| way.utilization.idle < NONE);
        busy.next().map(|way| format!("link {} → {}", way.from, way.to))
    }

    /// The names of all that limit; none if nothing gains anything.
    pub fn limits(&self) -> Vec<String> {
        self.limits.iter().map(|trial| self.limit_of(trial).resource).collect()
    }

    /// How many transactions failed, as the end of a sentence.
    fn failed(&self) -> String {
        let failed: u64 = self.study.document().flows.iter().map(crate::verdict::failures).sum();
        match failed {
            0 => String::new(),
            1 => "; 1 transaction failed".to_owned(),
            many => format!("; {many} transactions failed"),
        }
    }

    /// How many of the resources were tried, as the end of a sentence, if not all were.
    fn coverage(&self) -> String {
        let (tried, all) = (self.singles.len(), self.study.candidates().len());
        if tried < all { format!("; {tried} of {all} resources were tried") } else { String::new() }
    }

    /// Whether the figures name the same.
    fn agrees(&self, trial: &Trial) -> bool {
        let figures = &self.study.document().verdict.limit;
        trial.candidates.iter().any(|candidate| {
            let candidate = &self.study.candidates()[*candidate];
            let same = candidate.resource == figures.resource;
            let credits = candidate.kind == LimitKind::Credits
                && candidate
                    .place
                    .as_ref()
                    .is_some_and(|place| figures.resource == format!("credits of {place}"));
            let walks =
                candidate.resource.contains("page walk") && figures.resource.starts_with("page walks");
            same || credits || walks
        })
    }

    fn limit_of(&self, trial: &Trial) -> Limit {
        let candidates = trial.candidates.iter().map(|candidate| &self.study.candidates()[*candidate]);
        let names: Vec<&str> = candidates.clone().map(|candidate| candidate.resource.as_str()).collect();
        let kind = candidates.map(|candidate| candidate.kind).next().unwrap_or_default();
        let changes: Vec<&str> = trial.changes.iter().map(String::as_str).collect();
        let change = match changes.as_slice() {
            [one, rest @ ..] if !rest.is_empty() && rest.iter().all(|other| other == one) => {
                format!("{one} each")
            }
            several if several.len() > CHANGES => "twice as much of each".to_owned(),
            several => every(several),
        };
        Limit {
            resource: every(&names),
            kind,
            utilization: 0.0,
            evidence: Vec::new(),
            gain: Some(trial.gain),
            change: Some(change),
        }
    }

    /// What limited each part of the run, if there are several: by the same trials, of which each phase has its own gain.
    fn phases(&self) -> Vec<Phase> {
        let document = self.study.document();
        let spans = self.study.activity().phases();
        let several = spans.len() > 1;
        let mut phases: Vec<Phase> = spans.iter().filter(|_| several).map(|span| self.phase(span)).collect();
        for outage in document.outages.iter().filter(|outage| outage.down_fs < document.end_fs) {
            let link = document.links.iter().find(|link| link.name == outage.link);
            let Some(down) = link.map(|link| &link.directions[0]) else { continue };
            let until = outage.configured_fs.or(outage.up_fs).unwrap_or(document.end_fs);
            let resource = format!("outages of link {} → {}", down.from, down.to);
            let limit = Limit { resource, kind: LimitKind::Link, utilization: 1.0, ..Limit::default() };
            let (from_fs, until_fs) = (outage.down_fs, until.min(document.end_fs));
            phases.push(Phase { from_fs, until_fs, flows: Vec::new(), limits: vec![limit] });
        }
        phases.sort_by_key(|phase| phase.from_fs);
        phases
    }

    fn phase(&self, span: &Span) -> Phase {
        let activity = self.study.activity();
        let base = activity.rate_of(&span.flows, activity).unwrap_or(0.0);
        let rate_of = |trial: &Trial| trial.after.activity().rate_of(&span.flows, activity);
        let of_phase = |trial: &Trial| {
            let gain = rate_of(trial)? / base.max(f64::MIN_POSITIVE) - 1.0;
            Some(Trial { gain, ..trial.clone() })
        };
        // What makes the phase vanish, and carries more, gains most in it: how much is said of all of the run.
        let vanished = self.singles.iter().filter(|trial| trial.gain >= NONE && rate_of(trial).is_none());
        let mut trials: Vec<Trial> = vanished.cloned().collect();
        if trials.is_empty() {
            trials = self.singles.iter().filter_map(of_phase).collect();
        }
        let (from, until) = (activity.from(span), activity.until(span));
        let limits = best(&self.study, &trials);
        Phase {
            from_fs: from.as_fs(),
            until_fs: until.as_fs().min(self.study.document().end_fs),
            flows: span.flows.iter().map(|flow| activity.name(*flow).to_owned()).collect(),
            limits: limits.iter().map(|trial| self.limit_in(trial, from, until)).collect(),
        }
    }

    /// As [`limit_of`](Self::limit_of): a link by the direction that is busier at this time, or by both.
    fn limit_in(&self, trial: &Trial, from: Time, until: Time) -> Limit {
        let limit = self.limit_of(trial);
        let document = self.study.document();
        let name = self.study.candidates()[trial.candidates[0]].wires.as_ref();
        let Some(index) = document.links.iter().position(|link| Some(&link.name) == name) else {
            return limit;
        };
        let series = &document.series;
        let bin = |time: Time| (time.as_fs().saturating_sub(series.start_fs) / series.bin_fs.max(1)) as usize;
        let carried = |direction: usize| -> f64 {
            let of = series.directions.iter().find(|of| of.link == index && of.direction == direction);
            let bins = of.map_or(&[][..], |of| &of.payload);
            bins.iter().take(bin(until) + 1).skip(bin(from)).sum()
        };
        let both = [carried(0), carried(1)];
        if both[0].min(both[1]) > AS_BUSY * both[0].max(both[1]) {
            let down = &document.links[index].directions[0];
            return Limit {
                resource: format!("both directions of link {} → {}", down.from, down.to),
                ..limit
            };
        }
        let busier = &document.links[index].directions[usize::from(both[1] > both[0])];
        Limit { resource: format!("link {} → {}", busier.from, busier.to), ..limit }
    }

    /// Phases in lines.
    fn told_phases(&self, phases: &[Phase]) -> Vec<String> {
        let told = phases.iter().map(|phase| {
            let (from, until) = (Time::from_fs(phase.from_fs), Time::from_fs(phase.until_fs));
            let names: Vec<&str> = phase.flows.iter().map(String::as_str).collect();
            let active = if names.is_empty() { String::new() } else { format!(", {}", list(&names)) };
            let limits = match phase.limits.as_slice() {
                [] => "nothing that was tried would have carried more".to_owned(),
                [limit, ..] => match (&limit.change, limit.gain) {
                    (Some(change), Some(gain)) => {
                        format!("{}: {change} {}", limit.resource, self.carries(gain))
                    }
                    _ => limit.resource.clone(),
                },
            };
            format!("from {} to {}{active}: {limits}", spelt(from - Time::ZERO), spelt(until - Time::ZERO))
        });
        told.collect()
    }

    /// A sentence for a run whose phases have limits of their own.
    fn sentence_of(&self, phases: &[Phase]) -> Option<String> {
        let of = |phase: &Phase| phase.limits.first().map(|limit| limit.resource.clone());
        let names: Vec<String> =
            phases.iter().filter(|phase| !phase.flows.is_empty()).filter_map(of).collect();
        let differ = names.iter().any(|name| *name != names[0]);
        differ.then(|| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let whole = self.limits.first().map_or_else(String::new, |trial| {
                let limit = self.limit_of(trial);
                let change = limit.change.as_deref().unwrap_or_default();
                format!("; of all of it, {} ({change}) {}", limit.resource, self.carries(trial.gain))
            });
            format!(
                "Each phase of the run has its own limit: {}, one after the other{whole}{}.",
                list(&names),
                self.failed() + &self.coverage()
            )
        })
    }

    /// What gained or cost something, the best first; of one resource the greater.
    fn gains(&self) -> Vec<Gain> {
        let mut trials: Vec<&Trial> = self.singles.iter().filter(|trial| trial.gain.abs() >= SEEN).collect();
        trials.sort_by(|a, b| b.gain.abs().total_cmp(&a.gain.abs()));
        let mut gains: Vec<Gain> = Vec::new();
        for trial in trials {
            let Limit { resource, kind, .. } = self.limit_of(trial);
            if gains.len() < GAINS && gains.iter().all(|gain| gain.resource != resource) {
                gains.push(Gain { resource, kind, change: trial.changes.join(" and "), gain: trial.gain });
            }
        }
        gains.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        gains
    }

    /// What gains something besides the limit, and how many were tried.
    fn others(&self) -> Vec<String> {
        let limits = self.limits();
        let others =
            self.gains().into_iter().filter(|gain| gain.gain >= NONE && !limits.contains(&gain.resource));
        let mut told: Vec<String> = others
            .take(TOLD)
            .map(|Gain { resource, change, gain, .. }| {
                format!("{resource} ({change}) would {}", self.carries(gain).replacen("carries", "carry", 1))
            })
            .collect();
        let all = self.study.candidates().len();
        let first = self.study.until().map_or_else(String::new, |until| {
            format!(", on the first {} of the run", spelt(until - Time::ZERO))
        });
        told.push(format!(
            "{} of {all} resources were tried with twice as much of them{first}",
            self.singles.len()
        ));
        told
    }

    /// What limits when the limit is gone.
    fn next_limit(&self) -> Option<Next> {
        let trial = self.without_limit.as_ref()?;
        let winner = best(&trial.after, &self.next).into_iter().next()?;
        let candidate = &trial.after.candidates()[winner.candidates[0]];
        if self.limits.iter().any(|limit| self.limit_of(limit).resource == candidate.resource) {
            return None; // there is not so much of it that it would not limit
        }
        let headroom = trial.gain.max(0.0);
        let grows = match headroom {
            h if h < 0.005 => "at once".to_owned(),
            h if h < 1.0 => format!("after {} more", percent(h)),
            h => format!("after {:.1} times as much", 1.0 + h),
        };
        let (tried, all) = (self.next.len(), trial.after.candidates().len());
        let few = match tried < all {
            true => format!("; {tried} of {all} resources were tried then"),
            false => String::new(),
        };
        let text = format!(
            "With {} {} would limit next, {grows}: {} then {}{few}.",
            trial.changes.join(", "),
            candidate.resource,
            winner.changes.join(", "),
            carries(trial.after.base().rate, winner.gain),
        );
        Some(Next { resource: candidate.resource.clone(), kind: candidate.kind, headroom, text })
    }
}

/// All names, however many.
fn every(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// What a gain is in words; of a run that carried nothing, the rate.
fn carries(base: f64, gain: f64) -> String {
    if base == 0.0 {
        format!("carries {} instead of nothing", rate(gain))
    } else if gain < 2.0 {
        format!("carries {} more", percent(gain))
    } else {
        format!("carries {:.1} times as much", 1.0 + gain)
    }
}

/// Whether a resource's name is in the plural.
fn is_plural(resource: &str) -> bool {
    let head = resource.strip_prefix("the ").unwrap_or(resource).split(" of ").next().unwrap_or_default();
    let singular = ["time", "access", "bus", "link", "software"];
    let plural = |word: &str| word.ends_with('s') && !singular.contains(&word);
    !singular.iter().any(|first| head.starts_with(first)) && head.split(' ').any(plural)
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
    let mut all: Vec<(usize, &Candidate)> = all.collect();
    all.sort_by(|a, b| b.1.suspicion.total_cmp(&a.1.suspicion));
    let mut suspects: Vec<usize> = Vec::new();
    for (index, candidate) in all {
        let new = suspects.iter().all(|other| study.candidates()[*other].resource != candidate.resource);
        if new && suspects.len() < most {
            suspects.push(index);
        }
    }
    suspects
}

/// Pairs of the most suspicious resources.
fn pairs(study: &Study) -> Vec<Vec<usize>> {
    let first = suspects(study, PAIRED);
    let second = |a: usize| first.iter().copied().filter(move |b| *b > a);
    first.iter().flat_map(|a| second(*a).map(|b| vec![*a, b])).collect()
}
