//! A run that is over, and the same with candidates relaxed: what each gains.

use super::phases::Activity;
use super::{By, Candidate, candidates, refusal};
use crate::detail::Detail;
use crate::device_models::ModelSpec;
use crate::experiment::Experiment;
use crate::load::LoadSpec;
use crate::result::Document;
use crate::run::{Inputs, Run, RunError};
use crate::stop::StopReason;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tlplab_device::Record;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::FaultKind;
use tlplab_units::Time;

/// Trials together handle at most so many times the events of the run, as many as the run if its beginning takes its place, or so many
/// events if that is more.
const TIMES_THE_RUN: u64 = 5;
const LEAST_EVENTS: u64 = 4_000_000;
/// The cost of building a fabric and reading its results, in events for each of its links.
const EVENTS_PER_LINK: u64 = 4_000;
/// A trial is cut off after so many times the events of what it is compared with: what it has carried until then tells its rate.
const CUT_OFF: u64 = 4;
/// A run that is too long for all candidates to be tried on it is tried on its beginning, with no fewer events after the warm-up.
const LEAST_BEGINNING: u64 = 25_000;
/// And no fewer for each link.
const LEAST_PER_LINK: u64 = 500;
/// More does not make it truer.
const MOST_BEGINNING: u64 = 500_000;
/// A beginning whose rate differs by no more than this is a likeness of the run.
const LIKE: f64 = 0.03;
/// After so many events a trial looks whether it is cancelled.
const SLICE: u64 = 50_000;
/// And whether it has carried what it is to carry after so many.
const SMALL_SLICE: u64 = 1_000;
/// If so many trials can be made of all of a run whose work has an end, its beginning does not take its place.
const WHOLE_TRIALS: u64 = 8;

/// The limit on the cost of the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// No more than a few times what the run cost ([`Study::budget`]); of a long run, its beginning is tried.
    #[default]
    Bounded,
    /// Without limit: every candidate is tried on the whole run.
    Full,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Payload in bits per second, of all flows together; of a run without payload, its transactions per second.
    pub rate: f64,
    /// Latency in nanoseconds that half of a flow's transactions took at most: the largest of any flow.
    pub p50_ns: f64,
    /// The same for 99 % of them.
    pub p99_ns: f64,
    /// Events that it took.
    pub events: u64,
}

impl Outcome {
    /// Of a run as it stands.
    fn of(run: &mut Run) -> Self {
        let start = beginning_of(run.experiment()).max(run.fabric().warmup());
        let fabric = run.fabric();
        let flows = || fabric.flow_ids().map(|flow| fabric.flow_results(flow));
        // A run whose work is done ended with its last byte, whenever the clock stopped.
        let last = flows().filter(|flow| flow.bytes > 0).map(|flow| flow.last_arrival).max();
        let end = last.filter(|_| fabric.is_done()).unwrap_or_else(|| fabric.now());
        let seconds = end.saturating_since(start).as_fs().max(1) as f64 / 1e15;
        // What a card took and its network lost was not carried.
        let networks = fabric.networks();
        let lost: u64 = networks.iter().map(|(_, network)| network.to_software.dropped_data).sum();
        let bits = flows().map(|flow| flow.bytes).sum::<u64>().saturating_sub(lost) as f64 * 8.0 / seconds;
        let ended: u64 = flows().map(|flow| flow.transactions).sum();
        let largest = |q| flows().map(|flow| flow.latency_ps.value_at_quantile(q)).max();
        let quantile = |q| largest(q).map_or(0.0, |ps| ps as f64 / 1e3);
        Self {
            rate: if bits > 0.0 { bits } else { ended as f64 / seconds },
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            events: fabric.events(),
        }
    }
}

/// The same experiment with candidates relaxed.
#[derive(Clone)]
pub struct Trial {
    /// The candidates of the study: one, or several together.
    pub candidates: Vec<usize>,
    /// The extent by which they were relaxed.
    pub by: By,
    /// The same in words, for each: `16 → 32`.
    pub changes: Vec<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// Additional payload: 0.5 is half as much again.
    pub gain: f64,
    /// The relaxed run; of one without limit, its document and candidates, too.
    pub after: Arc<Study>,
}

/// A run that is over, and what could have limited it.
pub struct Study {
    experiment: Experiment,
    shared: Shared,
    document: Document,
    /// Events of the whole run.
    events: u64,
    /// The outcome that trials are compared with: the run, or its beginning.
    base: Outcome,
    activity: Arc<Activity>,
    /// A beginning of the usual length is no likeness of the run.
    is_longer: bool,
    candidates: Arc<Vec<Candidate>>,
    /// The outcome of the whole run, if its beginning takes its place.
    whole: Option<(Outcome, Arc<Activity>)>,
    /// The end of the beginning, if trials are compared with that.
    until: Option<Time>,
    /// The payload until then, if a trial ends when it has carried as much: the work of the run has an end, and is not the same all the time.
    work: Option<u64>,
}

/// The common state of the studies of relaxed runs.
#[derive(Clone)]
struct Shared {
    traces: Arc<BTreeMap<String, Vec<Record>>>,
    extent: Extent,
    cancelled: Arc<AtomicBool>,
}

impl Study {
    /// Of a run that is over and its document. `traces` are those that the run had.
    ///
    /// # Errors
    /// The experiment cannot be run again, or its beginning failed.
    pub fn new(
        run: &mut Run,
        document: Document,
        traces: Arc<BTreeMap<String, Vec<Record>>>,
        extent: Extent,
    ) -> Result<Self, String> {
        if let Some(why) = refusal(run.experiment()) {
            return Err(why);
        }
        use StopReason::{LoadsDone, StopTime, Transactions};
        if !matches!(document.stop_reason, StopTime | Transactions(_) | LoadsDone) {
            return Err(format!("the run has no end to compare with: {}", document.stop_text));
        }
        let shared = Shared { traces, extent, cancelled: Arc::default() };
        let mut study = Self::of(run, document, None, shared);
        study.forget_warmup().map_err(|error| error.to_string())?;
        study.candidates = Arc::new(candidates(&study.experiment, run.fabric(), &study.document));
        study.take_beginning().map_err(|error| error.to_string())?;
        Ok(study)
    }

    fn of(run: &mut Run, document: Document, until: Option<Time>, shared: Shared) -> Self {
        let experiment = run.experiment().clone();
        let (base, activity) = (Outcome::of(run), Arc::new(Activity::of(run.fabric())));
        Self {
            experiment,
            shared,
            document,
            events: base.events,
            base,
            activity,
            is_longer: false,
            candidates: Arc::default(),
            whole: None,
            until,
            work: None,
        }
    }

    /// Work that has an end may be done before the warm-up is over: it is compared from its beginning.
    fn forget_warmup(&mut self) -> Result<(), RunError> {
        let ends = !matches!(self.document.stop_reason, StopReason::StopTime);
        if !ends || is_steady(&self.experiment) || self.experiment.fabric.warmup == Time::ZERO {
            return Ok(());
        }
        self.experiment.fabric.warmup = Time::ZERO;
        let mut run = Run::new(self.experiment.clone(), self.inputs())?;
        run.finish()?;
        (self.base, self.activity) = (Outcome::of(&mut run), Arc::new(Activity::of(run.fabric())));
        Ok(())
    }

    /// If the run is too long for all candidates, its beginning takes its place: as much of it as lets them all be tried.
    fn take_beginning(&mut self) -> Result<(), RunError> {
        // Half of the budget is for more than the first round; a relaxed run may take twice the events.
        let each = self.budget() / (4 * self.candidates.len() as u64).max(1);
        let least = LEAST_BEGINNING.max(LEAST_PER_LINK * self.document.links.len() as u64);
        let each = each.saturating_sub(self.build_cost()).clamp(least, MOST_BEGINNING.max(least));
        let steady = is_steady(&self.experiment);
        let whole = self.first_budget() / self.events.max(1) >= WHOLE_TRIALS && !steady;
        let all = whole || has_incidents(&self.experiment) || self.shared.extent == Extent::Full;
        if self.events <= each || all || self.base.rate == 0.0 {
            return Ok(());
        }
        let mut run = Run::new(self.experiment.clone(), self.inputs())?;
        run.advance_past_warmup()?;
        run.advance(each)?;
        let mut beginning = Beginning::of(&mut run);
        // What is not yet as it will be (a cache that fills, a host that has not stalled) is no likeness of the whole.
        while !is_like(beginning.base.rate, self.base.rate) {
            self.is_longer = true;
            if beginning.base.events * 2 > self.events {
                return Ok(());
            }
            run.advance(beginning.base.events)?;
            beginning = Beginning::of(&mut run);
        }
        self.until = Some(beginning.until);
        self.work = (!steady).then_some(beginning.payload);
        let activity = std::mem::replace(&mut self.activity, Arc::new(beginning.activity));
        self.whole = Some((std::mem::replace(&mut self.base, beginning.base), activity));
        Ok(())
    }

    /// The same of the whole run, if its beginning takes its place.
    pub(super) fn of_whole(&self) -> Option<Self> {
        let (base, activity) = self.whole.clone()?;
        Some(Self {
            experiment: self.experiment.clone(),
            shared: self.shared.clone(),
            document: self.document.clone(),
            events: self.events,
            base,
            activity,
            candidates: self.candidates.clone(),
            whole: None,
            until: None,
            is_longer: true,
            work: None,
        })
    }

    /// Payload of each flow over time.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The run's document.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The outcome that trials are compared with.
    pub fn base(&self) -> &Outcome {
        &self.base
    }

    /// The end of that, if it was the beginning of the run.
    pub fn until(&self) -> Option<Time> {
        self.until
    }

    /// The candidates for its limit, the most suspicious by its figures first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The cost of a trial, in events: those that it handled, and the building of its fabric.
    pub(super) fn cost(&self, trial: &Trial) -> u64 {
        trial.outcome.events + self.build_cost()
    }

    fn build_cost(&self) -> u64 {
        EVENTS_PER_LINK * self.document.links.len() as u64
    }

    /// The events that the first round may take: the rest is for the next limit.
    pub(super) fn first_budget(&self) -> u64 {
        self.budget() / 4 * 3
    }

    /// The events that all trials together may take.
    pub fn budget(&self) -> u64 {
        if self.shared.extent == Extent::Full {
            return u64::MAX;
        }
        let times = if self.until.is_some() && !self.is_longer { 1 } else { TIMES_THE_RUN };
        (times * self.events).max(LEAST_EVENTS)
    }

    /// Runs with candidates relaxed. `None`: one of them cannot be relaxed so, or the experiment cannot be run then.
    pub fn trial(&self, candidates: &[usize], by: By) -> Option<Trial> {
        self.relaxed(candidates, by, by == By::Gone)
    }

    /// The same; the relaxed run has its document and its candidates, if it is to be `studied` itself.
    pub(super) fn relaxed(&self, candidates: &[usize], by: By, studied: bool) -> Option<Trial> {
        let (mut experiment, candidates, changes) = self.changed(candidates, by)?;
        if self.work.is_none() {
            let stop = &mut experiment.stop.time;
            *stop = self.until.into_iter().chain(*stop).min();
        }
        let (after, outcome) = self.measure(experiment, studied).ok()??;
        // Where nothing was carried, what is carried tells.
        let gain = if self.base.rate == 0.0 { outcome.rate } else { outcome.rate / self.base.rate - 1.0 };
        Some(Trial { candidates, by, changes, outcome, gain, after: Arc::new(after) })
    }

    /// The experiment with candidates relaxed, which those are, and how. Of several, one that cannot be relaxed beside the others is left out; `None`:
    /// none can be, or one has a limit whatever is done.
    fn changed(&self, candidates: &[usize], by: By) -> Option<(Experiment, Vec<usize>, Vec<String>)> {
        let (mut experiment, mut relaxed, mut changes) = (self.experiment.clone(), Vec::new(), Vec::new());
        for candidate in candidates {
            match self.candidates[*candidate].relax(&experiment, by) {
                Some((changed, words)) => {
                    experiment = changed;
                    relaxed.push(*candidate);
                    changes.push(words);
                }
                None if by == By::Twice => {}
                None => return None,
            }
        }
        (!relaxed.is_empty()).then_some((experiment, relaxed, changes))
    }

    /// The relaxed run as a study, and what came of it; `None` if it was cancelled meanwhile. Where a beginning takes the run's place, one of as
    /// many events takes that of a relaxed run that is `studied` itself: it may do several times as much in the same time.
    fn measure(&self, experiment: Experiment, studied: bool) -> Result<Option<(Self, Outcome)>, RunError> {
        let mut run = Run::new(experiment, self.inputs())?;
        let mut shorter = None;
        if studied && self.until.is_some() {
            run.advance_past_warmup()?;
            let events = run.fabric().events();
            // Its warm-up may take more events than all of that.
            run.advance(self.base.events.saturating_sub(events).max(LEAST_BEGINNING))?;
            shorter = Some(Beginning::of(&mut run));
        }
        let most = CUT_OFF * self.base.events + 10_000;
        let mut warm = 0;
        loop {
            if self.shared.cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let progress = run.advance(if self.work.is_some() { SMALL_SLICE } else { SLICE })?;
            let carried = self.work.is_some_and(|work| payload(run.fabric()) >= work);
            // What is cut off within its warm-up, or just behind it, tells nothing.
            if run.fabric().now() <= run.fabric().warmup() {
                warm = progress.events;
            }
            if progress.done || carried || progress.events >= most.max(warm + self.base.events) {
                break;
            }
        }
        let document = if studied { run.document() } else { Document::default() };
        let mut after = Self::of(&mut run, document, self.until, self.shared.clone());
        after.work = self.work.map(|_| payload(run.fabric()));
        if studied {
            after.candidates = Arc::new(candidates(&after.experiment, run.fabric(), &after.document));
        }
        let outcome = after.base;
        if let Some(Beginning { until, base, activity, payload }) = shorter {
            (after.base, after.activity) = (base, Arc::new(activity));
            after.until = Some(until);
            after.work = self.work.map(|_| payload);
        }
        Ok(Some((after, outcome)))
    }

    /// Trials under way end soon, and others at once, without a result.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            traces: (*self.shared.traces).clone(),
            no_ladder: true,
            detail: Detail::Limited,
            ..Inputs::default()
        }
    }
}

/// A run as far as it has come.
struct Beginning {
    until: Time,
    base: Outcome,
    activity: Activity,
    payload: u64,
}

impl Beginning {
    fn of(run: &mut Run) -> Self {
        let (base, activity) = (Outcome::of(run), Activity::of(run.fabric()));
        Self { until: run.fabric().now(), base, activity, payload: payload(run.fabric()) }
    }
}

/// Payload that has arrived since the warm-up, in bytes.
fn payload(fabric: &Fabric) -> u64 {
    fabric.flow_ids().map(|flow| fabric.flow_results(flow).bytes).sum()
}

/// True if a fault happens at some time of the run, as outages do, and bit errors do not.
fn has_incidents(experiment: &Experiment) -> bool {
    let links = experiment.fabric.devices.iter().map(|device| &device.link);
    let links = links.chain(experiment.fabric.switches.iter().map(|switch| &switch.uplink));
    let mut links = links.chain(experiment.fabric.buses.iter().map(|bus| &bus.uplink));
    links.any(|link| link.faults.iter().any(|fault| !matches!(fault.kind, FaultKind::BitErrors { .. })))
}

/// True if devices and their drivers work from the start, without a load.
fn works_by_itself(experiment: &Experiment) -> bool {
    experiment.devices.iter().any(|spec| {
        !matches!(
            spec.model,
            ModelSpec::Dma { .. }
                | ModelSpec::Memory { .. }
                | ModelSpec::Card(_)
                | ModelSpec::Storage(_)
                | ModelSpec::Tlpdma { .. }
        )
    })
}

/// The start of the work: a load that begins late is not slow.
fn beginning_of(experiment: &Experiment) -> Time {
    let starts = experiment.loads.iter().map(|load| load.start);
    starts.min().filter(|_| !works_by_itself(experiment)).unwrap_or(Time::ZERO)
}

/// True if what a run does has no end.
fn is_steady(experiment: &Experiment) -> bool {
    let ends = |load: &LoadSpec| load.count.is_some() || load.work.ends_by_itself();
    let counted = experiment.stop.transactions.is_some();
    !counted && !experiment.loads.iter().any(ends) && !works_by_itself(experiment)
}

/// True if two rates are the same, as far as a part of a run can tell that of the whole.
fn is_like(part: f64, whole: f64) -> bool {
    (part - whole).abs() <= LIKE * whole
}
