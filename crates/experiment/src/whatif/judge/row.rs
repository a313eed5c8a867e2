//! The candidates that are relaxed together, in a row: the likeliest to limit first.

use super::Trial;
use crate::result::LimitKind;
use crate::whatif::{Candidate, Study};
use std::collections::{BTreeMap, BTreeSet};

/// A suspicion below this counts as none.
const SUSPECT: f64 = 0.3;
/// Of so many of them, two at a time are relaxed.
const PAIRED: usize = 6;

/// The suspicious candidates, one of each resource.
pub(super) fn suspects(study: &Study, singles: &[Trial]) -> Vec<usize> {
    let mut row = harmless(study, singles, super::LITTLE);
    row.retain(|at| study.candidates()[*at].suspicion >= SUSPECT);
    row
}

/// One candidate of each resource: those of which no trial says that relaxing them costs something, nor of any of their sort. Those that the figures
/// make suspicious come first. Behind them what carries so much in a time comes before what takes time, and a sort stands together: stages in a row
/// are of one sort.
pub(super) fn harmless(study: &Study, singles: &[Trial], least: f64) -> Vec<usize> {
    let gains: BTreeMap<usize, f64> = singles.iter().map(|trial| (trial.candidates[0], trial.gain)).collect();
    let candidates = study.candidates();
    let costs = |at: &usize| gains.get(at).is_some_and(|gain| *gain <= -least);
    let costly: BTreeSet<String> =
        gains.keys().filter(|at| costs(at)).map(|at| candidates[*at].sort()).collect();
    let is_harmless = |at: &usize| match gains.contains_key(at) {
        true => !costs(at),
        false => !costly.contains(&candidates[*at].sort()),
    };
    let mut row: Vec<usize> = (0..candidates.len()).filter(is_harmless).collect();
    // Of lanes and generation of a link, the one that gains more; all parts of something rather than the whole.
    let parts: BTreeSet<&String> = row.iter().filter_map(|at| candidates[*at].part_of.as_ref()).collect();
    row.retain(|at| !parts.contains(&candidates[*at].resource));
    let gain = |at: &usize| gains.get(at).copied().filter(|gain| *gain >= super::NONE).unwrap_or(0.0);
    row.sort_by(|a, b| gain(b).total_cmp(&gain(a))); // which keeps the order of equals
    let mut names = BTreeSet::new();
    row.retain(|at| names.insert(&candidates[*at].resource));
    row.sort_unstable();
    in_order(row, candidates)
}

fn in_order(row: Vec<usize>, candidates: &[Candidate]) -> Vec<usize> {
    let mut sorts: BTreeMap<String, f64> = BTreeMap::new();
    for at in &row {
        let most = sorts.entry(candidates[*at].sort()).or_default();
        *most = most.max(candidates[*at].suspicion);
    }
    let mut keyed: Vec<_> = row
        .into_iter()
        .map(|at| {
            let candidate = &candidates[at];
            let sort = candidate.sort();
            let key = match candidate.suspicion >= SUSPECT {
                true => (0, candidate.suspicion, String::new()),
                false => (1 + rank(candidate.kind), sorts[&sort], sort),
            };
            (key, candidate.suspicion, at)
        })
        .collect();
    keyed.sort_by(|((rank, most, sort), suspicion, _), (other, others, _)| {
        let by_sort = rank.cmp(&other.0).then(other.1.total_cmp(most)).then(sort.cmp(&other.2));
        by_sort.then(others.total_cmp(suspicion)) // which keeps the order of equals
    });
    keyed.into_iter().map(|(_, _, at)| at).collect()
}

/// The order of kinds: rates, then numbers of what is under way, then times.
const fn rank(kind: LimitKind) -> u8 {
    match kind {
        LimitKind::Link | LimitKind::Bus | LimitKind::Routing | LimitKind::Memory | LimitKind::Rate => 0,
        LimitKind::Outstanding | LimitKind::Tags => 1,
        _ => 2,
    }
}

/// Puts those of a trial in the order in which they are told, the most suspicious first.
pub(super) fn put_in_order(study: &Study, trial: &mut Trial) {
    let mut both: Vec<(usize, String)> =
        trial.candidates.drain(..).zip(std::mem::take(&mut trial.changes)).collect();
    let suspicion = |at: usize| study.candidates()[at].suspicion;
    both.sort_by(|(a, _), (b, _)| suspicion(*b).total_cmp(&suspicion(*a)).then(a.cmp(b)));
    (trial.candidates, trial.changes) = both.into_iter().unzip();
}

/// Pairs of the most suspicious resources, whatever each costs by itself.
pub(super) fn pairs(study: &Study) -> Vec<Vec<usize>> {
    let candidates = study.candidates();
    let mut first: Vec<usize> =
        (0..candidates.len()).filter(|at| candidates[*at].suspicion >= SUSPECT).collect();
    first.sort_by(|a, b| candidates[*b].suspicion.total_cmp(&candidates[*a].suspicion));
    let mut names = BTreeSet::new();
    first.retain(|at| names.insert(&candidates[*at].resource));
    first.truncate(PAIRED);
    let second = |a: usize| first.iter().copied().filter(move |b| *b > a);
    first.iter().flat_map(|a| second(*a).map(|b| vec![*a, b])).collect()
}
