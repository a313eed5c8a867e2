//! The fabric as a guest's machine.

use std::collections::VecDeque;
use tlplab_device::{ECAM, HostAction, HostEvent, OpId, Payload};
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::{Run, RunError};
use tlplab_fabric::Driven;
use tlplab_uml::pcidev::Access;
use tlplab_uml::{Interrupt, Machine};
use tlplab_units::{Duration, Time};

/// The host program that stands for the guest's processor.
const PROGRAM: usize = 0;
/// Streams of its accesses; the processor waits for each, so that they keep their order.
const CONFIG: u16 = 0;
const READ: u16 = 1;
const WRITE: u16 = 2;

/// Simulated time between two looks whether nothing but refreshes happens.
const LOOK: Duration = Duration::from_us(100);
/// Such looks, and steps from event to event where time has no end, between two pauses.
const LOOKS_A_BREATH: u32 = 100;
const STEPS_A_BREATH: u32 = 100_000;

/// The reason that a machine stands still.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// Its run is over.
    #[error("the run is over")]
    Over,
    /// Its run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// One of its residents failed.
    #[error("{0}")]
    Resident(ResidentFailure),
    /// It pauses, and goes on with the next call: signals of the user are looked at meanwhile.
    #[error("a pause")]
    Breath,
    /// An access can never end.
    #[error("an access by the guest never completes: no event is left at {0}")]
    Stuck(Time),
}

/// A run whose host's software is a guest.
pub(super) struct FabricMachine<'a> {
    pub(super) run: &'a mut Run,
    pub(super) residents: &'a mut dyn Residents,
    pub(super) processor: &'a mut Processor,
}

/// The accesses that a guest's processor has under way, and has not looked at.
#[derive(Debug, Default)]
pub(super) struct Processor {
    pub(super) interrupts: VecDeque<Interrupt>,
    access: Option<UnderWay>,
}

impl Processor {
    pub(super) fn has_interrupts(&self) -> bool {
        !self.interrupts.is_empty()
    }
}

/// An access that has begun.
#[derive(Debug)]
struct UnderWay {
    /// The one of its requests that is under way.
    op: OpId,
    /// Its requests behind that one.
    further: VecDeque<Request>,
    /// The data of reads so far.
    data: Vec<u8>,
    /// Bytes that the one under way reads.
    reads: u32,
}

/// One of the requests of an access.
#[derive(Clone, Debug)]
enum Request {
    Read { stream: u16, address: u64, bytes: u32 },
    Write { stream: u16, address: u64, data: Vec<u8> },
}

/// The end of a request; a write brings nothing.
type Ended = Option<Vec<u8>>;

impl FabricMachine<'_> {
    /// Goes on to `until`, or until a resident or the guest hears of something.
    fn go_on(&mut self, until: Time, awaited: Option<OpId>) -> Result<Option<Ended>, Stop> {
        self.run.advance_until(until)?;
        let mut ended = None;
        let told = self.run.take_told();
        for (now, node, event) in told.devices {
            let told = self.residents.tell_device(self.run.fabric(), now, node, event);
            told.map_err(Stop::Resident)?;
        }
        for (_, program, event) in told.programs {
            debug_assert_eq!(program, PROGRAM, "all software of the host is the guest's");
            match event {
                HostEvent::MmioReadDone { op, result } if Some(op) == awaited => {
                    ended = Some(result.ok().and_then(|data| data.bytes().map(<[u8]>::to_vec)));
                }
                HostEvent::MmioWriteAccepted { op } if Some(op) == awaited => ended = Some(None),
                HostEvent::Message { data, .. } => {
                    self.processor.interrupts.push_back(Interrupt::Message { data })
                }
                // It is a level: more than one that waits says no more than one.
                HostEvent::Wire { .. } if !self.processor.interrupts.contains(&Interrupt::Wire) => {
                    self.processor.interrupts.push_back(Interrupt::Wire);
                }
                _ => {}
            }
        }
        // What the guest still does is not the run's.
        if ended.is_none() && self.run.progress().done { Err(Stop::Over) } else { Ok(ended) }
    }

    /// Begins a request.
    fn begin(&mut self, request: Request) -> (OpId, u32) {
        let op = self.run.next_host_op(PROGRAM);
        let (action, reads) = match request {
            Request::Read { stream, address, bytes } => {
                (HostAction::MmioRead { op, stream, address, bytes: bytes.into(), carry: true }, bytes)
            }
            Request::Write { stream, address, data } => {
                (HostAction::MmioWrite { op, stream, address, data: Payload::from(data) }, 0)
            }
        };
        self.run.host_acts(PROGRAM, action);
        (op, reads)
    }

    /// Goes on until the request is over; `None` at `limit`.
    fn await_end(&mut self, op: OpId, limit: Time) -> Result<Option<Ended>, Stop> {
        loop {
            let now = self.now();
            // What was just asked for may be over already.
            if let Some(ended) = self.go_on(now, Some(op))? {
                return Ok(Some(ended));
            }
            let next = self.run.next_event_until(limit);
            if next.is_none_or(|next| next > limit) && limit != Time::NEVER {
                return Ok(if now < limit { self.go_on(limit, Some(op))? } else { None });
            }
            if let Some(ended) = self.go_on(next.ok_or(Stop::Stuck(now))?, Some(op))? {
                return Ok(Some(ended));
            }
        }
    }

    /// The time of the next event, be it only a refresh.
    pub(super) fn next_event(&mut self) -> Time {
        let fabric = self.run.fabric();
        if fabric.is_idle() {
            return fabric.next_event_when_idle().unwrap_or(Time::NEVER);
        }
        self.run.next_event_until(Time::NEVER).unwrap_or(Time::NEVER)
    }
}

/// The requests of an access: for registers of at most four bytes in configuration space (PCIe 5.0 §7.2.2), and of any length in memory.
fn requests(access: &Access) -> VecDeque<Request> {
    let registers = |offset: u32, bytes: u32| {
        let end = offset + bytes;
        let mut at = offset;
        std::iter::from_fn(move || {
            let begun = at;
            at = (begun / 4 * 4 + 4).min(end);
            (begun < end).then_some((begun, at - begun))
        })
    };
    let stream = CONFIG;
    let address = |at: u32| ECAM + u64::from(at);
    match access {
        Access::ConfigRead { offset, bytes } => registers(*offset, *bytes)
            .map(|(at, bytes)| Request::Read { stream, address: address(at), bytes })
            .collect(),
        Access::ConfigWrite { offset, data } => registers(*offset, data.len() as u32)
            .map(|(at, bytes)| {
                let first = (at - offset) as usize;
                let data = data[first..first + bytes as usize].to_vec();
                Request::Write { stream, address: address(at), data }
            })
            .collect(),
        Access::MemoryRead { address, bytes } => {
            [Request::Read { stream: READ, address: *address, bytes: *bytes }].into()
        }
        Access::MemoryWrite { address, data } => {
            [Request::Write { stream: WRITE, address: *address, data: data.clone() }].into()
        }
    }
}

impl Machine for FabricMachine<'_> {
    type Error = Stop;

    fn now(&mut self) -> Time {
        self.run.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), Stop> {
        let before = self.processor.interrupts.len();
        for _ in 0..if until == Time::NEVER { STEPS_A_BREATH } else { LOOKS_A_BREATH } {
            let fabric = self.run.fabric();
            fabric.skip_idle(until);
            if until == Time::NEVER && fabric.is_idle() && fabric.next_event_when_idle().is_none() {
                return Ok(());
            }
            let Some(next) = self.run.next_event_until(until) else {
                if until != Time::NEVER {
                    self.go_on(until, None)?;
                }
                return Ok(());
            };
            // Once what is under way is over, the rest may be idle.
            let soon = self.now() + LOOK;
            self.go_on(if until == Time::NEVER { next } else { soon.max(next).min(until) }, None)?;
            if self.processor.interrupts.len() > before || self.now() >= until {
                return Ok(());
            }
        }
        Err(Stop::Breath)
    }

    fn access(&mut self, access: &Access, limit: Time) -> Result<Option<Vec<u8>>, Stop> {
        let mut under_way = match self.processor.access.take() {
            Some(under_way) => under_way,
            None => {
                let mut further = requests(access);
                let Some(first) = further.pop_front() else { return Ok(Some(Vec::new())) };
                let (op, reads) = self.begin(first);
                UnderWay { op, further, data: Vec::new(), reads }
            }
        };
        while let Some(ended) = self.await_end(under_way.op, limit)? {
            // All ones are what a processor gets where nobody answers.
            under_way.data.extend(ended.unwrap_or_else(|| vec![0xFF; under_way.reads as usize]));
            let Some(next) = under_way.further.pop_front() else { return Ok(Some(under_way.data)) };
            (under_way.op, under_way.reads) = self.begin(next);
        }
        self.processor.access = Some(under_way);
        Ok(None)
    }

    fn interrupts(&mut self) -> &mut VecDeque<Interrupt> {
        &mut self.processor.interrupts
    }
}
