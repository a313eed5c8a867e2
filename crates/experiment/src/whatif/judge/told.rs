//! The results of the trials, in words and in the document.

use super::{Judge, LITTLE, MORE, NONE, TIE, Trial, best};
use crate::result::{Gain, Limit, LimitKind, Next, Phase, Tried, Verdict};
use crate::verdict::{NOTHING, capital, list, percent, rate};
use crate::whatif::phases::Span;
use crate::whatif::{By, spelt};
use tlplab_units::Time;

/// So many candidates are told besides the limit.
const TOLD: usize = 3;
/// So many are listed, of those that gain or cost as much as this.
const GAINS: usize = 16;
const SEEN: f64 = 0.001;
/// A direction that carries this part of what the other one does is as busy.
const AS_BUSY: f64 = 0.9;
/// The limit of a phase in which none gains a tenth.
const NO_SINGLE: &str = "no single resource";
/// So many equal limits are told one by one.
const PARTS: usize = 8;
/// So many different changes are told one by one.
const CHANGES: usize = 3;

impl Judge {
    fn carries(&self, gain: f64) -> String {
        carries(self.study.base().rate, gain)
    }

    /// The limit of the run.
    pub fn verdict(&self) -> Verdict {
        let figures = &self.study.document().verdict;
        let tried = Tried {
            candidates: self.study.candidates().len(),
            tried: self.singles.len(),
            events: self.spent + self.spent_searching + self.spent_in_vain,
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
            ([only], 1) => equals(std::slice::from_ref(only), &carries) + &failed + ".",
            ([_], _) => self.of_several(winner, change) + &failed + ".",
            (several, _) => equals(several, &carries) + &failed + ".",
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

    /// A sentence without its end for candidates that limit together.
    fn of_several(&self, winner: &Trial, change: &str) -> String {
        let names = winner.candidates.iter().map(|at| self.study.candidates()[*at].resource.as_str());
        let (named, carries) = (capital(&list(&names.collect::<Vec<_>>())), self.carries(winner.gain));
        if !self.group.is_least {
            return format!(
                "{named} limit the run together, or some of them: {change} {carries}; the smallest set was not found in \
                 {} trial runs, and --whatif full searches further",
                self.made
            );
        }
        let alone = match winner.candidates.len() {
            _ if !self.are_known_alone(&winner.candidates) => "less without any one of them",
            2 => "neither does alone",
            _ => "none of them does alone",
        };
        format!("{named} limit the run together: {change} {carries}, and {alone}")
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
        let carries = self.study.base().rate > 0.0;
        let names_nothing = carries && figures.limit.resource == NOTHING;
        if !names_nothing && !self.singles.iter().any(|trial| self.agrees(trial)) {
            let head = figures.sentence.trim_end_matches('.');
            let sentence =
                format!("{head}; twice as much of any tried resource carries no more{}.", self.coverage());
            let mut verdict = Verdict { sentence, tried: Some(tried), phases, ..figures.clone() };
            verdict.limit.evidence.push(evidence);
            return verdict;
        }
        let (failed, coverage) = (self.failed(), self.coverage());
        let sentence = match self.widest() {
            Some((_, link)) => format!(
                "{} limits the run: it is busy all the time, and there is no wider or faster one; twice as much of \
                 any tried resource carries no more{failed}{coverage}.",
                capital(&link)
            ),
            None => format!(
                "No resource that was tried limits the run: twice as much of any{} carries no more{failed}{coverage}.",
                self.nor_together()
            ),
        };
        let sentence = self.sentence_of(&phases).unwrap_or(sentence);
        let told = format!("by its figures alone: {}", figures.sentence.trim_end_matches('.'));
        let (resource, kind, links) = match self.widest() {
            Some((link, name)) => (name, LimitKind::Link, vec![link]),
            None => ("nothing that was tried".to_owned(), LimitKind::None, Vec::new()),
        };
        let limit = Limit {
            resource,
            kind,
            links,
            evidence: [self.told_phases(&phases), vec![evidence, told]].concat(),
            ..Limit::default()
        };
        Verdict { sentence, limit, next: None, limits: Vec::new(), phases, tried: Some(tried) }
    }

    /// A link that is busy all the time, and no candidate.
    fn widest(&self) -> Option<(usize, String)> {
        let is_candidate =
            |name: &String| self.study.candidates().iter().any(|one| one.wires.as_ref() == Some(name));
        let links =
            self.study.document().links.iter().enumerate().filter(|(_, link)| !is_candidate(&link.name));
        let directions = links.flat_map(|(at, link)| link.directions.iter().map(move |way| (at, way)));
        let mut busy = directions.filter(|(_, way)| way.utilization.idle < NONE);
        busy.next().map(|(at, way)| (at, format!("link {} → {}", way.from, way.to)))
    }

    /// The names of all that limit; none if nothing gains anything.
    pub fn limits(&self) -> Vec<String> {
        self.limits.iter().map(|trial| self.limit_of(trial).resource).collect()
    }

    /// The number of failed transactions, as the end of a sentence.
    fn failed(&self) -> String {
        let failed: u64 = self.study.document().flows.iter().map(crate::verdict::failures).sum();
        let refused = crate::verdict::refused(self.study.document()).next();
        let refused = refused.map_or(String::new(), |clause| format!(", and {clause}"));
        match failed {
            0 => String::new(),
            1 => format!("; 1 transaction failed{refused}"),
            many => format!("; {many} transactions failed{refused}"),
        }
    }

    /// The number of resources tried, as the end of a sentence, if not all were.
    fn coverage(&self) -> String {
        let (tried, all) = (self.singles.len(), self.study.candidates().len());
        let alone = if self.group.was_asked() { " alone" } else { "" };
        if tried < all { format!("; {tried} of {all} resources were tried{alone}") } else { String::new() }
    }

    /// The largest set that gained nothing together, as a part of a sentence.
    fn nor_together(&self) -> String {
        match self.group.in_vain.last() {
            Some((several, gain)) if *gain < NONE => format!(", or of {several} together,"),
            _ => String::new(),
        }
    }

    /// True if the figures name the same.
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
            let called = candidate.in_figures.is_some_and(|name| figures.resource == name);
            same || credits || called
        })
    }

    fn limit_of(&self, trial: &Trial) -> Limit {
        let candidates = trial.candidates.iter().map(|candidate| &self.study.candidates()[*candidate]);
        let names: Vec<&str> = candidates.clone().map(|candidate| candidate.resource.as_str()).collect();
        let mut links: Vec<usize> = candidates
            .clone()
            .filter_map(|candidate| candidate.link.as_ref())
            .filter_map(|name| self.study.document().links.iter().position(|link| link.name == *name))
            .collect();
        links.sort_unstable();
        links.dedup();
        let kind = candidates.map(|candidate| candidate.kind).next().unwrap_or_default();
        let change = changes(trial);
        Limit {
            resource: if self.group.is_least { every(&names) } else { list(&names) },
            kind,
            links,
            utilization: 0.0,
            evidence: Vec::new(),
            gain: Some(trial.gain),
            change: Some(change),
        }
    }

    /// The limit of each part of the run, if there are several: by the same trials, of which each phase has its own gain.
    fn phases(&self) -> Vec<Phase> {
        let document = self.study.document();
        let spans = self.study.activity().phases();
        let several = spans.len() > 1;
        let mut phases: Vec<Phase> = spans.iter().filter(|_| several).map(|span| self.phase(span)).collect();
        for outage in document.outages.iter().filter(|outage| outage.down_fs < document.end_fs) {
            let Some(link) = document.links.iter().position(|link| link.name == outage.link) else {
                continue;
            };
            let down = &document.links[link].directions[0];
            let until = outage.configured_fs.or(outage.up_fs).unwrap_or(document.end_fs);
            let resource = format!("outages of link {} → {}", down.from, down.to);
            let (kind, links) = (LimitKind::Link, vec![link]);
            let limit = Limit { resource, kind, links, utilization: 1.0, ..Limit::default() };
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
        let mut limits = best(&self.study, &trials);
        // Those that limit the run together, where one alone gains little.
        let together = self.limits.iter().filter(|trial| trial.candidates.len() > 1).filter_map(of_phase);
        let alone = limits.first().map_or(0.0, |trial| trial.gain);
        let together: Vec<Trial> = together.filter(|trial| trial.gain >= NONE.max(MORE * alone)).collect();
        if !together.is_empty() {
            limits = together;
        }
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
        let [only] = trial.candidates[..] else { return limit };
        let name = self.study.candidates()[only].wires.as_ref();
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
                [] => "no tried relaxation would have carried more".to_owned(),
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
        // What gains less than a tenth is not all that there is to say of a phase: several may limit it together.
        let of = |phase: &Phase| match phase.limits.first() {
            Some(limit) if limit.gain.is_none_or(|gain| gain >= LITTLE) => limit.resource.clone(),
            _ => NO_SINGLE.to_owned(),
        };
        let active = phases.iter().filter(|phase| !phase.flows.is_empty());
        let names: Vec<String> = active.map(of).collect();
        let differ = names.iter().any(|name| *name != names[0]);
        differ.then(|| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let whole = self.limits.first().map_or_else(String::new, |trial| {
                let limit = self.limit_of(trial);
                let change = limit.change.as_deref().unwrap_or_default();
                format!("; of all of it, {} ({change}) {}", limit.resource, self.carries(trial.gain))
            });
            let head = match names.contains(&NO_SINGLE) {
                true => "The phases of the run have different limits",
                false => "Each phase of the run has its own limit",
            };
            format!(
                "{head}: {}, one after the other{whole}{}.",
                list(&names),
                self.failed() + &self.coverage()
            )
        })
    }

    /// The relaxations that gained or cost something, the best first; of one resource the greater.
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

    /// The gains besides the limit, and the number of trials.
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
        if let Some((several, gain)) = self.group.in_vain.iter().max_by(|a, b| a.1.total_cmp(&b.1))
            && *gain >= NONE.max(self.most() * (1.0 + TIE))
        {
            let carries = self.carries(*gain).replacen("carries", "carry", 1);
            told.push(format!("twice as much of {several} resources together would {carries}"));
        }
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

    /// The beginning of a sentence about the run without this limit.
    fn without(&self, trial: &Trial) -> String {
        let changes = changes(trial);
        match (changes.contains('→'), changes.as_str()) {
            (true, _) => format!("With {changes}"),
            (false, "none") => format!("Without {},", self.limit_of(trial).resource),
            (false, _) => format!("With no limit of {},", self.limit_of(trial).resource),
        }
    }

    /// The next limit, once the limit is gone.
    fn next_limit(&self) -> Option<Next> {
        // Of a run that carries nothing there is no multiple.
        let trial = self.without_limit.as_ref().filter(|_| self.study.base().rate > 0.0)?;
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
            "{} {} would limit next, {grows}: {} then {}{few}.",
            self.without(trial),
            candidate.resource,
            winner.changes.join(", "),
            carries(trial.after.base().rate, winner.gain),
        );
        Some(Next { resource: candidate.resource.clone(), kind: candidate.kind, headroom, text })
    }
}

/// The changes of a trial in words; of many different ones, the rule.
fn changes(trial: &Trial) -> String {
    let changes: Vec<&str> = trial.changes.iter().map(String::as_str).collect();
    match changes.as_slice() {
        [one, rest @ ..] if !rest.is_empty() && rest.iter().all(|other| other == one) => {
            format!("{one} each")
        }
        several if several.len() > CHANGES && trial.by == By::Gone => "no limit of each".to_owned(),
        several if several.len() > CHANGES => "twice as much of each".to_owned(),
        several => every(several),
    }
}

/// A sentence, without its end, about resources of which twice as much gains as much: a single one, or several with a number each, since names
/// and changes may be lists themselves.
fn equals(limits: &[Limit], carries: &str) -> String {
    let change = |limit: &Limit| limit.change.clone().unwrap_or_default();
    if let [only] = limits {
        let verb = if is_plural(&only.resource) { "limit" } else { "limits" };
        return format!("{} {verb} the run: {} {carries}", capital(&only.resource), change(only));
    }
    let told = limits.iter().zip(1..).map(|(limit, number)| match &limit.change {
        Some(change) => format!("({number}) {}, {change}", limit.resource),
        None => format!("({number}) {}", limit.resource),
    });
    let (count, of) = (limits.len(), if limits.len() == 2 { "either" } else { "any one" });
    format!("{count} resources limit the run: {}; {of} of these changes {carries}", several(told.collect()))
}

/// Numbered parts of a sentence; of very many the first ones, and how many others there are.
fn several(mut parts: Vec<String>) -> String {
    let others = parts.len().saturating_sub(PARTS);
    parts.truncate(PARTS);
    if others > 0 {
        parts.push(format!("{others} others"));
    }
    let last = parts.pop().unwrap_or_default();
    format!("{}; and {last}", parts.join("; "))
}

/// All names, however many.
fn every(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// A gain in words; of a run that carried nothing, the rate.
fn carries(base: f64, gain: f64) -> String {
    if base == 0.0 {
        format!("carries {} instead of nothing", rate(gain))
    } else if gain < 2.0 {
        format!("carries {} more", percent(gain))
    } else {
        format!("carries {:.1} times as much", 1.0 + gain)
    }
}

/// True if a resource's name is in the plural.
fn is_plural(resource: &str) -> bool {
    let head = resource.strip_prefix("the ").unwrap_or(resource).split(" of ").next().unwrap_or_default();
    let singular = ["time", "access", "bus", "link", "software"];
    let plural = |word: &str| word.ends_with('s') && !singular.contains(&word);
    !singular.iter().any(|first| head.starts_with(first)) && head.split(' ').any(plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(resource: &str, change: Option<&str>) -> Limit {
        Limit { resource: resource.into(), change: change.map(str::to_owned), ..Limit::default() }
    }

    /// Names and changes with "and" and commas in them stay apart.
    #[test]
    fn equal_limits_are_listed_one_by_one() {
        let link = limit("link sw0 → ssd", Some("gen4 x4 → gen4 x8"));
        let tags = limit("tags of a and b", Some("8 → 16 and 4 → 8"));
        let memory = limit("host memory", None);
        let told = |limits: &[Limit]| equals(limits, "carries 12.0 % more");
        let one = std::slice::from_ref(&link);
        assert_eq!(told(one), "The link sw0 → ssd limits the run: gen4 x4 → gen4 x8 carries 12.0 % more");
        let two = [link.clone(), tags.clone()];
        assert_eq!(
            told(&two),
            "2 resources limit the run: (1) link sw0 → ssd, gen4 x4 → gen4 x8; and (2) tags of a and b, 8 → 16 and 4 → 8; \
             either of these changes carries 12.0 % more"
        );
        let three = [link, tags, memory];
        assert_eq!(
            told(&three),
            "3 resources limit the run: (1) link sw0 → ssd, gen4 x4 → gen4 x8; (2) tags of a and b, 8 → 16 and 4 → 8; \
             and (3) host memory; any one of these changes carries 12.0 % more"
        );
        let ten = vec![limit("x", None); 10];
        assert!(told(&ten).contains("(8) x; and 2 others; any one of"), "{}", told(&ten));
    }
}
