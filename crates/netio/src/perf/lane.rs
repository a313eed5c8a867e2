//! One thread of a measurement.

use super::pace::Pace;
use super::pattern::{Addresses, Content};
use super::results::{LaneResult, kind, new_histogram};
use super::verify::{self, CHECK};
use super::{Direction, Error, MOST_KEPT, PerfConfig, Progress};
use crate::{Loop, Ready, Transport, Wait};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_nettlp::Endpoint;
use tlplab_nettlp::endpoint::Event;
use tlplab_transaction::{CompletionError, Payload, RequestError};

/// The end point of a lane on its transport; an operation's token is the number of its slot.
pub(super) type Driven = Loop<Endpoint<u32>, Box<dyn Transport>>;

/// The time without any answer that is tolerated, at the beginning or after a stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// A read that flushes is no slot's.
const FLUSH: u32 = u32::MAX;

/// The interval of progress reports to other threads.
const TELL: Duration = Duration::from_millis(1);

/// An operation under way, or over and waiting for its next turn.
#[derive(Clone, Copy)]
struct Slot {
    address: u64,
    begun: Instant,
    /// The number of the lane's operation.
    serial: u64,
    /// Bytes of a write that were given to the end point.
    given: u32,
}

pub(super) struct Lane<'a> {
    config: &'a PerfConfig,
    progress: &'a Progress,
    driven: Driven,
    addresses: Addresses,
    content: Option<Content>,
    /// The data that are written without verification.
    filler: Payload,
    slots: Vec<Slot>,
    /// Operations under way.
    active: usize,
    /// Slots that wait for the interval to pass, in order.
    resting: VecDeque<(Instant, u32)>,
    pace: Pace,
    lane: u8,
    /// Operations that succeeded and that nobody else knows of yet, and when the last were told.
    untold: u64,
    told: Instant,
    /// Operations that have begun.
    begun_operations: u64,
    /// Operations that may still begin.
    left: u64,
    /// Nothing more begins after this.
    end: Option<Instant>,
    /// The time at which a stop was seen.
    stopped: Option<Instant>,
    begun: Instant,
    last: Instant,
    first_error: Option<DmaError>,
    result: LaneResult,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        config: &'a PerfConfig,
        progress: &'a Progress,
        driven: Driven,
        addresses: Addresses,
        lane: u8,
    ) -> Self {
        let now = Instant::now();
        let counters = driven.engine.counters();
        Self {
            config,
            progress,
            driven,
            addresses,
            content: config.verify.then_some(Content(config.seed)),
            filler: vec![0xa5; config.length as usize].into(),
            slots: vec![Slot { address: 0, begun: now, serial: 0, given: 0 }; config.outstanding.into()],
            active: 0,
            resting: VecDeque::new(),
            pace: Pace::new(config),
            lane,
            untold: 0,
            told: now,
            begun_operations: 0,
            left: config.count.unwrap_or(u64::MAX),
            end: None,
            stopped: None,
            begun: now,
            last: now,
            first_error: None,
            result: LaneResult {
                begun: 0,
                operations: 0,
                bytes: 0,
                elapsed: Duration::ZERO,
                cpu: Duration::ZERO,
                errors: BTreeMap::new(),
                wrong: 0,
                latency: new_histogram(),
                each: Vec::new(),
                counters,
                kernel_drops: None,
            },
        }
    }

    /// Measures from now on.
    pub(super) fn run(mut self) -> Result<LaneResult, Error> {
        if self.config.wait == Wait::Sleep {
            keep_to_a_processor(self.lane, self.config.lanes);
        }
        let (begun, cpu) = (Instant::now(), thread_time());
        (self.begun, self.last) = (begun, begun);
        self.end = self.config.duration.map(|duration| begun + duration);
        for slot in 0..self.slots.len() as u32 {
            self.begin(slot, begun)?;
        }
        self.driven.transmit()?;
        let mut ready = Ready::default();
        self.progress.stop.wakes(self.driven.poller());
        loop {
            let over = self.collect()?;
            if over > 0 {
                self.driven.transmit()?;
            }
            let idle = self.active == 0 && self.resting.is_empty() && !self.pace.is_flushing();
            if idle || self.given_up() {
                break;
            }
            match self.config.wait {
                Wait::Spin => drop(self.driven.turn(None)?),
                Wait::Sleep => {
                    // A write is over once it was sent: there is nothing to wait for.
                    let at_once = over > 0 && self.config.direction == Direction::Write;
                    let until = if at_once { Some(self.last) } else { self.due() };
                    self.driven.wait_turn(&mut ready, until)?;
                }
            }
        }
        self.result.cpu = thread_time().saturating_sub(cpu);
        // What was sent may still be on its way, and the rate is that of what arrived.
        if self.config.direction == Direction::Write
            && !self.given_up()
            && verify::flush(&mut self.driven, self.config.region.address, &self.progress.stop)?
        {
            self.last = Instant::now();
        }
        self.result.elapsed = self.last - begun;
        self.result.begun = self.begun_operations;
        self.result.counters = self.driven.engine.counters();
        self.result.kernel_drops = self.driven.dropped();
        Ok(self.result)
    }

    /// The time at which work is due without a datagram.
    fn due(&self) -> Option<Instant> {
        let rested = self.resting.front().map(|(until, _)| *until);
        let given_up = self.stopped.map(|stopped| stopped + PATIENCE);
        [self.driven.deadline(), rested, given_up].into_iter().flatten().min()
    }

    /// Whoever has stopped it does not wait for answers that do not come, however long they may take.
    fn given_up(&mut self) -> bool {
        if self.stopped.is_none() && self.progress.stop.is_stopped() {
            self.stopped = Some(Instant::now());
        }
        self.stopped.is_some_and(|stopped| stopped.elapsed() >= PATIENCE)
    }

    fn begin(&mut self, slot: u32, now: Instant) -> Result<(), Error> {
        let ended = self.end.is_some_and(|end| now >= end) || self.progress.stop.is_stopped();
        if self.left == 0 || ended {
            return Ok(());
        }
        self.left -= 1;
        self.active += 1;
        let address = self.addresses.next();
        self.slots[slot as usize] = Slot { address, begun: now, serial: self.begun_operations, given: 0 };
        self.begun_operations += 1;
        match self.config.direction {
            Direction::Read => {
                let time = self.driven.now();
                let begun = self.driven.engine.read(time, slot, address, self.config.length.into());
                begun.map_err(refused)
            }
            Direction::Write => self.write(slot),
        }
    }

    /// Gives the end point what is left of a write, or as much of it as may be sent before what was sent has been taken.
    fn write(&mut self, slot: u32) -> Result<(), Error> {
        let Slot { address, serial, given, .. } = self.slots[slot as usize];
        let left = self.config.length - given;
        let Some(bytes) = self.pace.admit(slot, left) else { return self.flush() };
        self.slots[slot as usize].given += bytes;
        let at = address + u64::from(given);
        let data = match self.content {
            Some(content) => content.of(self.lane, serial).at(at, bytes as usize).into(),
            None if bytes == self.config.length => self.filler.clone(),
            None => self.filler.slice(0, bytes.into()),
        };
        let time = self.driven.now();
        self.driven.engine.write(time, slot, at, data).map_err(refused)
    }

    /// Asks whether what was sent has been taken, unless that is asked already.
    fn flush(&mut self) -> Result<(), Error> {
        let Some(bytes) = self.pace.begin_flush() else { return Ok(()) };
        let time = self.driven.now();
        self.driven.engine.read(time, FLUSH, self.config.region.address, bytes).map_err(refused)
    }

    /// A flush is over, and those who waited for it go on.
    fn flushed(&mut self, result: Result<(), DmaError>) -> Result<(), Error> {
        match result {
            Ok(()) => self.pace.take_answer(),
            // The reason is told, and what is sent from now on is paced by the time limits, or by the next link.
            Err(error) => {
                if error != DmaError::Unacknowledged && !self.pace.tolerate() {
                    return Err(Error::Setup(format!(
                        "no confirmation that writes arrive: {error}; use --no-pace to send them without confirmation"
                    )));
                }
                *self.result.errors.entry(kind(&error)).or_default() += 1;
            }
        }
        for slot in self.pace.end_flush() {
            self.write(slot)?;
        }
        Ok(())
    }

    /// Others see how far it is: not after each operation, since lanes on several processors would wait for each other.
    fn tell(&mut self, now: Instant) {
        if self.untold > 0 && now - self.told >= TELL {
            self.progress.add(self.untold, self.untold * u64::from(self.config.length));
            (self.untold, self.told) = (0, now);
        }
    }

    /// Takes what is over and begins what comes next; how many were over.
    fn collect(&mut self) -> Result<usize, Error> {
        let now = Instant::now();
        self.tell(now);
        let mut over = 0;
        while let Some(event) = self.driven.engine.poll_event() {
            let (slot, result) = match event {
                // A read before the measurement, which nobody waits for any more.
                Event::ReadDone { token: CHECK, .. } | Event::Failed { token: CHECK, .. } => continue,
                Event::ReadDone { token: FLUSH, result } => {
                    over += 1;
                    self.flushed(result.map(drop))?;
                    continue;
                }
                Event::Failed { token: FLUSH, error } => {
                    over += 1;
                    self.flushed(Err(error))?;
                    continue;
                }
                Event::WriteSent { token } if self.slots[token as usize].given < self.config.length => {
                    over += 1;
                    self.write(token)?;
                    continue;
                }
                Event::ReadDone { token, result } => (token, result),
                Event::WriteSent { token } => (token, Ok(Payload::EMPTY)),
                Event::Failed { token, error } => {
                    self.pace.forget(token);
                    (token, Err(error))
                }
                Event::HostRead(_) | Event::HostWrite(_) | Event::Other { .. } => continue,
            };
            over += 1;
            self.active -= 1;
            self.last = now;
            self.account(self.slots[slot as usize], now, result)?;
            if self.config.interval.is_zero() {
                self.begin(slot, now)?;
            } else {
                self.resting.push_back((now + self.config.interval, slot));
            }
        }
        let stopped = self.progress.stop.is_stopped();
        while let Some(&(until, slot)) = self.resting.front()
            && (until <= now || stopped)
        {
            self.resting.pop_front();
            self.begin(slot, now)?;
            over += 1;
        }
        Ok(over)
    }

    fn account(&mut self, slot: Slot, now: Instant, result: Result<Payload, DmaError>) -> Result<(), Error> {
        match result {
            Ok(data) => {
                let length = u64::from(self.config.length);
                self.result.operations += 1;
                self.result.bytes += length;
                let nanoseconds = (now - slot.begun).as_nanos() as u64;
                self.result.latency.saturating_record(nanoseconds);
                if self.config.each && self.result.each.len() < MOST_KEPT {
                    self.result.each.push(nanoseconds);
                }
                self.untold += 1;
                if let (Some(content), Some(bytes)) = (self.content, data.bytes())
                    && !content.is(slot.address, bytes)
                {
                    self.result.wrong += 1;
                }
            }
            Err(error) => {
                *self.result.errors.entry(kind(&error)).or_default() += 1;
                let first = *self.first_error.get_or_insert(error);
                let failed: u64 = self.result.errors.values().sum();
                // Nothing works at all: there is nothing to measure. Silence is waited for a while: somebody may be busy.
                let silent = matches!(first, DmaError::Completion(CompletionError::Timeout { .. }));
                let patient = silent && now - self.begun < PATIENCE;
                // By a machine that stood still all that was under way is late, once.
                let least = self.slots.len() as u64 * if silent { 2 } else { 1 };
                if self.result.operations == 0 && failed >= least && !patient {
                    return Err(Error::Setup(format!("no operation succeeds: {first}")));
                }
            }
        }
        Ok(())
    }
}

/// Keeps this thread to one of the processors that it may use, as the published tlpperf does: threads that sleep and wake each other by turns are
/// moved about otherwise, and to wake a processor that rests takes longer than a read. With more lanes than processors none rests, and each goes
/// where there is room: two that are kept to one processor wait for each other. Where that may not be, nothing is lost but speed.
fn keep_to_a_processor(lane: u8, lanes: u8) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else { return };
    let processors: Vec<usize> =
        (0..CpuSet::count()).filter(|processor| allowed.is_set(*processor) == Ok(true)).collect();
    if usize::from(lanes) > processors.len() {
        return;
    }
    let mut own = CpuSet::new();
    if let Some(processor) = processors.get(usize::from(lane))
        && own.set(*processor).is_ok()
    {
        let _ = sched_setaffinity(this, &own);
    }
}

fn refused(error: RequestError) -> Error {
    Error::Setup(error.to_string())
}

/// Time that this thread was on a processor. Of `getrusage` it would lack what has been since the last tick.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
