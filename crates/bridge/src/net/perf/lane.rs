//! One thread of a measurement.

use super::pattern::{Addresses, Content};
use super::results::{LaneResult, kind, new_histogram};
use super::verify;
use super::{Direction, Error, MOST_KEPT, PerfConfig, Progress};
use crate::net::{Loop, Ready, Transport, Wait};
use nix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_nettlp::Endpoint;
use tlplab_nettlp::endpoint::Event;
use tlplab_transaction::{CompletionError, Payload};

/// The end point of a lane on its transport; an operation's token is the number of its slot.
pub(super) type Driven = Loop<Endpoint<u32>, Box<dyn Transport>>;

/// How long nothing at all may be answered, at the beginning or after a stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// An operation under way, or over and waiting for its next turn.
#[derive(Clone, Copy)]
struct Slot {
    address: u64,
    begun: Instant,
}

pub(super) struct Lane<'a> {
    config: &'a PerfConfig,
    progress: &'a Progress,
    driven: Driven,
    addresses: Addresses,
    content: Option<Content>,
    /// What is written when nobody verifies it.
    filler: Payload,
    slots: Vec<Slot>,
    /// Operations under way.
    active: usize,
    /// Slots that wait for the interval to pass, in order.
    resting: VecDeque<(Instant, u32)>,
    /// Operations that may still begin.
    left: u64,
    /// Nothing more begins after this.
    end: Option<Instant>,
    /// When it was seen that somebody has stopped it.
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
            slots: vec![Slot { address: 0, begun: now }; config.outstanding.into()],
            active: 0,
            resting: VecDeque::new(),
            left: config.count.unwrap_or(u64::MAX),
            end: None,
            stopped: None,
            begun: now,
            last: now,
            first_error: None,
            result: LaneResult {
                operations: 0,
                bytes: 0,
                elapsed: Duration::ZERO,
                cpu: Duration::ZERO,
                errors: BTreeMap::new(),
                wrong: 0,
                latency: new_histogram(),
                each: Vec::new(),
                counters,
            },
        }
    }

    /// Measures from now on.
    pub(super) fn run(mut self) -> Result<LaneResult, Error> {
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
            if self.active == 0 && self.resting.is_empty() || self.given_up() {
                break;
            }
            match self.config.wait {
                Wait::Spin => drop(self.driven.turn(None)?),
                Wait::Sleep => {
                    // A write is over once it was sent: there is nothing to wait for.
                    let at_once = over > 0 && self.config.direction == Direction::Write;
                    let until = if at_once { Some(self.last) } else { self.due() };
                    self.driven.poller().wait(&mut ready, until)?;
                    self.driven.turn(Some(&ready))?;
                }
            }
        }
        self.result.elapsed = self.last - begun;
        self.result.cpu = thread_time().saturating_sub(cpu);
        if self.config.direction == Direction::Write && self.config.verify {
            verify::flush(&mut self.driven, self.config.region.address)?;
        }
        self.result.counters = self.driven.engine.counters();
        Ok(self.result)
    }

    /// When something is to be done though no datagram comes.
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
        self.slots[slot as usize] = Slot { address, begun: now };
        let time = self.driven.now();
        let length = self.config.length;
        let begun = match (self.config.direction, self.content) {
            (Direction::Read, _) => self.driven.engine.read(time, slot, address, length.into()),
            (Direction::Write, None) => self.driven.engine.write(time, slot, address, self.filler.clone()),
            (Direction::Write, Some(content)) => {
                let data = content.at(address, length as usize);
                self.driven.engine.write(time, slot, address, data.into())
            }
        };
        begun.map_err(|error| Error::Setup(error.to_string()))
    }

    /// Takes what is over and begins what comes next; how many were over.
    fn collect(&mut self) -> Result<usize, Error> {
        let now = Instant::now();
        let mut over = 0;
        while let Some(event) = self.driven.engine.poll_event() {
            let (slot, result) = match event {
                Event::ReadDone { token, result } => (token, result),
                Event::WriteSent { token } => (token, Ok(Payload::EMPTY)),
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
                self.progress.add(length);
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
                if self.result.operations == 0 && failed >= self.slots.len() as u64 && !patient {
                    return Err(Error::Setup(format!("no operation succeeds: {first}")));
                }
            }
        }
        Ok(())
    }
}

/// Time that this thread was on a processor. Of `getrusage` it would lack what has been since the last tick.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
