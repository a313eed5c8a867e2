//! Relaxations: the same experiment with one resource relaxed, run again.
//!
//! [`candidates`] lists all that could limit a run: what it is called, and how it is relaxed. Relaxing is one rule: a tenth more, twice as
//! much (half the time), or without limit ([`By`]). A [`Study`] holds a run that is over against runs in which one candidate is
//! relaxed ([`Study::trial`]); whoever holds it chooses how many run at once. The resource whose relaxation gains most is what limits.

mod access;
mod arbitration;
mod devices;
#[cfg(test)]
mod fields;
mod host;
mod judge;
mod links;
mod loads;
mod phases;
mod study;

pub use judge::{Judge, Task, TaskId};
pub use study::{Extent, Outcome, Study, Trial};

use crate::experiment::{Experiment, FileKind};
use crate::result::{Document, LimitKind};
use std::collections::BTreeMap;
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_units::Duration;

/// The extent by which a resource is relaxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// A tenth more of it; times by as much shorter.
    Tenth,
    /// Twice as much of it; half the time.
    Twice,
    /// So much of it that it cannot limit; no time.
    Gone,
}

impl By {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::Tenth, Self::Twice, Self::Gone];

    /// Its name in documents.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Tenth => "tenth",
            Self::Twice => "twice",
            Self::Gone => "gone",
        }
    }

    /// The phrase for several times that are relaxed together.
    const fn quicker(self) -> &'static str {
        match self {
            Self::Tenth => "each a tenth quicker",
            Self::Twice => "each twice as quick",
            Self::Gone => "none",
        }
    }

    /// More of what is counted, at least one more and at most `most`; `None` if there is no more.
    fn count(self, count: u64, most: u64) -> Option<u64> {
        let more = match self {
            Self::Tenth => count + count.div_ceil(10),
            Self::Twice => count.saturating_mul(2),
            Self::Gone => most,
        };
        (count < most).then_some(more.min(most))
    }

    /// A higher rate, in bits per second.
    fn rate(self, bps: u64) -> u64 {
        match self {
            Self::Tenth => bps + bps / 10,
            Self::Twice => bps.saturating_mul(2),
            Self::Gone => bps.saturating_mul(64),
        }
    }

    /// A shorter time; `None` if there is none to shorten.
    fn time(self, time: Duration) -> Option<Duration> {
        let fs = time.as_fs();
        (fs > 0).then(|| {
            Duration::from_fs(match self {
                Self::Tenth => (u128::from(fs) * 10 / 11) as u64,
                Self::Twice => fs / 2,
                Self::Gone => 0,
            })
        })
    }
}

/// The first of a sort is tried before the eleventh of what is always busy.
const LEAST_CLAIM: f64 = 0.1;

/// Changes an experiment, and says what was changed: `16 → 32`. `None`: there is nothing to relax so.
type Change = Box<dyn Fn(&mut Experiment, By) -> Option<String> + Send + Sync>;

/// Something that could limit a run.
pub struct Candidate {
    /// Its name: `posted header credits of host.rp0`.
    pub resource: String,
    /// Kind of the resource.
    pub kind: LimitKind,
    /// The suspicion from the figures of the run, 0 to 1: candidates with more are tried first.
    pub suspicion: f64,
    /// The place where TLPs wait for it according to the figures.
    place: Option<String>,
    /// The link that it is, by the component below it: a phase has its own busier direction.
    wires: Option<String>,
    /// The link that it belongs to, by the component below it.
    link: Option<String>,
    /// The resource that this one is a part of.
    part_of: Option<String>,
    /// It belongs to the host, which is there once.
    of_host: bool,
    /// Its name in the figures, if they have another one.
    in_figures: Option<&'static str>,
    change: Change,
}

impl Candidate {
    /// A part of an experiment, found by `part`, that is relaxed by `change`. `None`: as `built`, it cannot be: it is without limit, takes no
    /// time, or is not there.
    fn of_part<Part: Clone + 'static>(
        resource: String,
        kind: LimitKind,
        suspicion: f64,
        built: &Part,
        part: impl Fn(&mut Experiment) -> Option<&mut Part> + Send + Sync + 'static,
        change: impl Fn(&mut Part, By) -> Option<String> + Send + Sync + 'static,
    ) -> Option<Self> {
        change(&mut built.clone(), By::Twice)?;
        let change = Box::new(move |experiment: &mut Experiment, by| change(part(experiment)?, by));
        let suspicion = suspicion.clamp(0.0, 1.0);
        Some(Self {
            resource,
            kind,
            suspicion,
            place: None,
            wires: None,
            link: None,
            part_of: None,
            of_host: false,
            in_figures: None,
            change,
        })
    }

    /// Its name without its place: `tags` of all devices. A resource of the host exists once.
    fn sort(&self) -> String {
        if self.of_host {
            return self.resource.clone();
        }
        let sort = self.resource.split(" of ").next().unwrap_or_default();
        if self.wires.is_some() { "link".to_owned() } else { sort.to_owned() }
    }

    /// The experiment with this relaxed, and how: `16 → 32`. `None` if it cannot be relaxed so.
    pub fn relax(&self, experiment: &Experiment, by: By) -> Option<(Experiment, String)> {
        let mut relaxed = experiment.clone();
        let words = (self.change)(&mut relaxed, by)?;
        Some((relaxed, words))
    }
}

/// The reason that an experiment cannot be run again; `None` if it can: all its parts are in the experiment.
pub fn refusal(experiment: &Experiment) -> Option<String> {
    if experiment.guest_runs {
        return Some("a guest is the host's software, and cannot be run again from the start".into());
    }
    let outside = experiment.files.iter().find(|file| file.kind != FileKind::Trace)?;
    Some(format!("{} has state outside of the simulation, and cannot be run again", outside.path))
}

/// The resources that could limit a run, in the order of their trials.
pub fn candidates(experiment: &Experiment, fabric: &Fabric, document: &Document) -> Vec<Candidate> {
    let figures = Figures::new(document);
    let mut all = links::candidates(experiment, fabric, &figures);
    all.extend(devices::candidates(experiment, &figures));
    all.extend(host::candidates(experiment, &figures));
    all.extend(loads::candidates(experiment, &figures));
    all.extend(access::candidates(experiment, &figures));
    all.extend(arbitration::candidates(experiment, &figures));
    all.sort_by(|a, b| b.suspicion.total_cmp(&a.suspicion).then(a.resource.cmp(&b.resource)));
    take_turns(all, &document.verdict.limit.resource)
}

/// First what the figures name; then by suspicion, of which the second of each sort has half, the third a third: many equal devices must not keep what
/// they share from being tried.
fn take_turns(all: Vec<Candidate>, named: &str) -> Vec<Candidate> {
    let mut turns: BTreeMap<String, f64> = BTreeMap::new();
    let claim = |candidate: Candidate| {
        let turn = turns.entry(candidate.sort()).or_default();
        *turn += 1.0;
        let claim = candidate.suspicion.max(LEAST_CLAIM) / *turn;
        (if candidate.resource == named { f64::INFINITY } else { claim }, candidate)
    };
    let mut all: Vec<(f64, Candidate)> = all.into_iter().map(claim).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0)); // which keeps the order of equals
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The document of a run, for suspicions.
struct Figures<'a> {
    document: &'a Document,
    /// Latency of all flows.
    total: f64,
    /// Of that, by place and cause.
    by_place: BTreeMap<(&'a str, usize), f64>,
    /// By cause.
    by_cause: BTreeMap<usize, f64>,
    /// Of each device's flows: their latency, and what of it is waiting for tags, and for translations.
    waits: BTreeMap<&'a str, [f64; 3]>,
}

impl<'a> Figures<'a> {
    fn new(document: &'a Document) -> Self {
        let (total, by_place, by_cause, waits) = (0.0, BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut figures = Self { document, total, by_place, by_cause, waits };
        for flow in &document.flows {
            for part in &flow.attribution {
                figures.total += part.total_ns;
                *figures.by_place.entry((&part.place, part.cause)).or_default() += part.total_ns;
                *figures.by_cause.entry(part.cause).or_default() += part.total_ns;
                let of = figures.waits.entry(&flow.device).or_default();
                of[0] += part.total_ns;
                for (cause, wait) in [Cause::TagWait, Cause::TranslationWait].into_iter().zip(&mut of[1..]) {
                    *wait += if part.cause == cause as usize { part.total_ns } else { 0.0 };
                }
            }
        }
        figures
    }

    /// The part of all latency that went to these causes at a place.
    fn share(&self, place: &str, causes: &[Cause]) -> f64 {
        let at = |cause: &Cause| self.by_place.get(&(place, *cause as usize)).copied().unwrap_or(0.0);
        causes.iter().map(at).sum::<f64>().max(0.0) / self.total.max(f64::MIN_POSITIVE)
    }

    /// The part of all latency that went to the stages of a direction of a link.
    fn share_of_stages(&self, direction: &str) -> f64 {
        let of = |((place, _), time): (&(&str, usize), &f64)| {
            let stage = place.strip_prefix(direction)?.starts_with(": ");
            stage.then_some(*time)
        };
        self.by_place.iter().filter_map(of).sum::<f64>().max(0.0) / self.total.max(f64::MIN_POSITIVE)
    }

    /// The part of all latency that went to these causes anywhere.
    fn share_anywhere(&self, causes: &[Cause]) -> f64 {
        let of = |cause: &Cause| self.by_cause.get(&(*cause as usize)).copied().unwrap_or(0.0);
        causes.iter().map(of).sum::<f64>().max(0.0) / self.total.max(f64::MIN_POSITIVE)
    }

    /// The part of the latency of a device's flows that they wait for tags, wherever that is charged.
    fn tag_wait(&self, device: &str) -> f64 {
        self.waits.get(device).map_or(0.0, |[total, tags, _]| tags / total.max(f64::MIN_POSITIVE))
    }

    /// The same of translations.
    fn translation_wait(&self, device: &str) -> f64 {
        self.waits.get(device).map_or(0.0, |[total, _, waits]| waits / total.max(f64::MIN_POSITIVE))
    }
}

/// A count relaxed in place, to `most` at most.
fn relax_count<N: Copy + Into<u64> + TryFrom<u64>>(count: &mut N, by: By, most: u64) -> Option<String> {
    let before: u64 = (*count).into();
    let more = by.count(before, most)?;
    *count = N::try_from(more).ok()?;
    Some(format!("{before} → {more}"))
}

/// The same of a count of which there can be any number, up to `largest`: 64 times as many are without limit.
fn relax_any<N: Copy + Into<u64> + TryFrom<u64>>(count: &mut N, by: By, largest: u64) -> Option<String> {
    let before: u64 = (*count).into();
    let most = if by == By::Gone { before.saturating_mul(64) } else { u64::MAX };
    relax_count(count, by, most.min(largest))
}

/// A time relaxed in place.
fn relax_time(time: &mut Duration, by: By) -> Option<String> {
    let less = by.time(*time)?;
    let words = format!("{} → {}", spelt(*time), spelt(less));
    *time = less;
    Some(words)
}

/// A time that should be longer.
fn lengthen_time(time: &mut Duration, by: By) -> Option<String> {
    let (before, fs) = (*time, time.as_fs());
    *time = Duration::from_fs(match by {
        By::Tenth => fs + fs / 10,
        By::Twice => fs.saturating_mul(2),
        By::Gone => fs.saturating_mul(64),
    });
    (*time > before).then(|| format!("{} → {}", spelt(before), spelt(*time)))
}

/// Times relaxed in place, all together: `(rank, time)` of a distribution.
fn relax_quantiles(quantiles: &mut [(u32, Duration)], by: By) -> Option<String> {
    let changed: Vec<_> = quantiles.iter_mut().map(|(_, time)| relax_time(time, by)).collect();
    changed.iter().any(Option::is_some).then(|| by.quicker().to_owned())
}

/// Clocks, or a count of TLPs to wait for, of which there should be fewer, `least` at least.
fn relax_fewer(count: &mut u16, by: By, least: u16) -> Option<String> {
    let before = *count;
    let fewer = match by {
        By::Tenth => before - before.div_ceil(10),
        By::Twice => before / 2,
        By::Gone => least,
    };
    *count = fewer.max(least);
    (*count < before).then(|| format!("{before} → {count}"))
}

/// A time for people: `300 ns`.
fn spelt(time: Duration) -> String {
    crate::verdict::nanoseconds(time.as_fs() as f64 / 1e6).replace(".0 ns", " ns").replace(".00 us", " us")
}

/// A rate in bits per second relaxed in place.
fn relax_rate(bps: &mut u64, by: By) -> Option<String> {
    let more = by.rate(*bps);
    let told = |bps: u64| crate::verdict::rate(bps as f64).replace(".00 ", " ");
    let words = format!("{} → {}", told(*bps), told(more));
    *bps = more;
    Some(words)
}
