//! A run in wall time.
//!
//! Simulated time follows the wall clock, and is never ahead of it. Where the simulation takes longer than what it simulates, it [lags](Lag)
//! and catches up as it can. What comes from outside happens at the simulated time at which it came, or after it: a fabric that lags is not told
//! before it has reached that time, so that nothing is answered sooner than it answers. The clock of a fabric cannot be set back, so such a run
//! lives for [`LIFETIME`] and then ends, and says so.

use std::collections::VecDeque;
use tlplab_device::{Action, HostAction};
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::{Run, RunError};
use tlplab_fabric::{Driven, NodeId, Told};
use tlplab_units::{Duration, Time};

/// The lifetime of such a run: the range of a fabric's clock, less a little.
pub const LIFETIME: Duration = Duration::from_ms(5 * 3600 * 1000);
/// Events of the fabric between two looks at everything else.
const EVENTS: u64 = 20_000;
/// A fabric in which nothing is under way looks at its timers no more often.
const IDLE: Duration = Duration::from_us(200);
/// Even with none to look at, it is asked so often whether the run is over.
const GLANCE: Duration = Duration::from_ms(5);

/// The reason that the run has ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// It has done what it was to do.
    #[error("{0}")]
    Done(String),
    /// It failed.
    #[error(transparent)]
    Failed(#[from] RunError),
    /// One of its residents failed.
    #[error("{0}")]
    Resident(ResidentFailure),
    /// [`LIFETIME`] is over.
    #[error("the simulated machine has run for 5 hours, the limit of its clock; restart it")]
    TooOld,
}

/// The lag of simulated time behind the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Now.
    pub now: Duration,
    /// At most.
    pub most: Duration,
    /// The number of times that more than a millisecond of it had gathered.
    pub times: u64,
}

/// The listener to the events of a run for those outside.
pub(crate) type Listener<'a> =
    &'a mut dyn FnMut(&mut Run, &mut dyn Residents, Told) -> Result<(), ResidentFailure>;

/// Comes from outside.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// A device acts.
    Device(NodeId, Action),
    /// A host program acts.
    Program(usize, HostAction),
}

/// A run in wall time; see the [module](self).
pub(crate) struct PacedRun {
    pub(crate) run: Run,
    residents: Box<dyn Residents>,
    /// The wall clock when simulated time begins, in femtoseconds; it may lie before the wall clock's origin.
    origin: Option<i128>,
    /// The next event, in simulated time.
    next: Option<Time>,
    /// The arrivals, with their simulated time, in the order of these.
    arrivals: VecDeque<(Time, Arrival)>,
    lag: Lag,
    end: Option<End>,
}

impl PacedRun {
    /// A run whose time has not begun to pass.
    pub(crate) fn new(run: Run, residents: Box<dyn Residents>) -> Self {
        let arrivals = VecDeque::new();
        Self { run, residents, origin: None, next: None, arrivals, lag: Lag::default(), end: None }
    }

    /// The run's present is the wall clock's `now`.
    pub(crate) fn begin(&mut self, now: Time) {
        self.look_ahead();
        self.origin = Some(i128::from(now.as_fs()) - i128::from(self.run.now().as_fs()));
    }

    /// True if its time passes.
    pub(crate) fn has_begun(&self) -> bool {
        self.origin.is_some()
    }
    /// True if it has begun, and not ended.
    pub(crate) fn is_going_on(&self) -> bool {
        self.has_begun() && self.end.is_none()
    }
    /// The reason that it has ended, if it has.
    pub(crate) fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }
    /// Its lag behind the wall clock.
    pub(crate) fn lag(&self) -> Lag {
        self.lag
    }

    /// Simulated time at `now`; `None` before it begins.
    pub(crate) fn simulated(&self, now: Time) -> Option<Time> {
        let fs = i128::from(now.as_fs()) - self.origin?;
        u64::try_from(fs).ok().map(|fs| Time::from_fs(fs.min(LIFETIME.as_fs())))
    }

    /// Goes on to `now`, as far as the events of one look allow.
    pub(crate) fn advance(&mut self, now: Time, hear: Listener<'_>) {
        let Some(until) = self.simulated(now) else { return };
        if self.end.is_none() {
            self.run.fabric().skip_idle(until);
        }
        let begun = self.run.progress().events;
        while self.end.is_none() {
            let left = (begun + EVENTS).saturating_sub(self.run.progress().events);
            match self.run.advance_to(until, left) {
                Err(error) => self.end = Some(error.into()),
                Ok(progress) if progress.waits_for_outside => self.listen(hear),
                Ok(progress) if progress.done => {
                    self.end = Some(End::Done("the experiment has ended".into()));
                }
                Ok(progress) => {
                    self.note_lag(until.saturating_since(progress.now));
                    break;
                }
            }
        }
        self.admit();
        if until == Time::ZERO + LIFETIME {
            self.end.get_or_insert(End::TooOld);
        }
        self.look_ahead();
    }

    /// Something comes from outside at `now`, to which the run [has gone on](Self::advance).
    pub(crate) fn bring(&mut self, now: Time, arrival: Arrival) {
        let at = self.simulated(now).unwrap_or(Time::ZERO);
        self.arrivals.push_back((at, arrival));
        self.admit();
        self.look_ahead();
    }

    /// Tells the run what came no later than its present.
    fn admit(&mut self) {
        while self.arrivals.front().is_some_and(|(at, _)| *at <= self.run.now())
            && let Some((_, arrival)) = self.arrivals.pop_front()
        {
            match arrival {
                _ if self.end.is_some() => {}
                // Its request has ended meanwhile.
                Arrival::Device(_, Action::Reply { token, .. } | Action::ReplyError { token, .. })
                    if !self.run.fabric().is_asked(token) => {}
                Arrival::Device(node, action) => self.run.device_acts(node, action),
                Arrival::Program(program, action) => self.run.host_acts(program, action),
            }
        }
    }

    /// Lets those outside hear what the run has for them.
    pub(crate) fn listen(&mut self, hear: Listener<'_>) {
        let told = self.run.take_told();
        if let Err(failure) = hear(&mut self.run, &mut *self.residents, told) {
            self.end.get_or_insert(End::Resident(failure));
        }
    }

    /// The time of the next event; later if nothing is under way, so that an idle machine sleeps.
    pub(crate) fn look_ahead(&mut self) {
        let fabric = self.run.fabric();
        self.next = match fabric.is_idle() {
            true => {
                let next = fabric.next_event_when_idle().unwrap_or(Time::NEVER);
                Some(next.clamp(fabric.now() + IDLE, fabric.now() + GLANCE))
            }
            false => fabric.next_event(),
        };
    }

    fn note_lag(&mut self, lag: Duration) {
        const MUCH: Duration = Duration::from_ms(1);
        self.lag.times += u64::from(lag > MUCH && self.lag.now <= MUCH);
        self.lag.now = lag;
        self.lag.most = self.lag.most.max(lag);
    }

    /// The wall clock when something happens next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        let next = i128::from(self.next?.as_fs()) + self.origin?;
        Some(Time::from_fs(u64::try_from(next).unwrap_or(0)))
    }

    /// The wall clock's origin moves on.
    pub(crate) fn rebase(&mut self, by: Duration) {
        self.origin = self.origin.map(|origin| origin - i128::from(by.as_fs()));
    }
}
