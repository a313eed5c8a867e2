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

/// Why a machine stands still for good.
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
    /// An access can never end.
    #[error("at {0} nothing more will happen, and an access of the guest is not over")]
    Stuck(Time),
}

/// A run whose host's software is a guest.
pub(super) struct FabricMachine<'a> {
    pub(super) run: &'a mut Run,
    pub(super) residents: &'a mut dyn Residents,
    pub(super) interrupts: &'a mut VecDeque<Interrupt>,
}

/// How an access has ended; a write brings nothing.
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
                    // All ones are what a processor gets where nobody answers.
                    ended = Some(result.ok().and_then(|data| data.bytes().map(<[u8]>::to_vec)));
                }
                HostEvent::MmioWriteAccepted { op } if Some(op) == awaited => ended = Some(None),
                HostEvent::Message { data, .. } => self.interrupts.push_back(Interrupt::Message { data }),
                // It is a level: more than one that waits says no more than one.
                HostEvent::Wire { .. } if !self.interrupts.contains(&Interrupt::Wire) => {
                    self.interrupts.push_back(Interrupt::Wire);
                }
                _ => {}
            }
        }
        // What the guest still does is not the run's.
        if ended.is_none() && self.run.progress().done { Err(Stop::Over) } else { Ok(ended) }
    }

    fn carry_out(&mut self, action: impl FnOnce(OpId) -> HostAction) -> Result<Ended, Stop> {
        let op = self.run.next_host_op(PROGRAM);
        self.run.host_acts(PROGRAM, action(op));
        loop {
            let now = self.run.now();
            // What was just asked for may be over already.
            if let Some(ended) = self.go_on(now, Some(op))? {
                return Ok(ended);
            }
            let next = self.run.next_event_until(Time::NEVER).ok_or(Stop::Stuck(now))?;
            if let Some(ended) = self.go_on(next, Some(op))? {
                return Ok(ended);
            }
        }
    }

    fn read(&mut self, stream: u16, address: u64, bytes: u32) -> Result<Vec<u8>, Stop> {
        let read = |op| HostAction::MmioRead { op, stream, address, bytes: bytes.into(), carry: true };
        let data = self.carry_out(read)?;
        Ok(data.unwrap_or_else(|| vec![0xFF; bytes as usize]))
    }

    fn write(&mut self, stream: u16, address: u64, data: &[u8]) -> Result<(), Stop> {
        let data = Payload::from(data.to_vec());
        self.carry_out(|op| HostAction::MmioWrite { op, stream, address, data }).map(drop)
    }
}

impl Machine for FabricMachine<'_> {
    type Error = Stop;

    fn now(&mut self) -> Time {
        self.run.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), Stop> {
        let before = self.interrupts.len();
        loop {
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
            if self.interrupts.len() > before || self.now() >= until {
                return Ok(());
            }
        }
    }

    /// An access is made of registers of at most four bytes in configuration space (PCIe 5.0 §7.2.2), and of any length in memory.
    fn access(&mut self, access: &Access) -> Result<Vec<u8>, Stop> {
        let registers = |offset: u32, bytes: u32| {
            let end = offset + bytes;
            let mut at = offset;
            std::iter::from_fn(move || {
                let begun = at;
                at = (begun / 4 * 4 + 4).min(end);
                (begun < end).then_some((begun, at - begun))
            })
        };
        match access {
            Access::ConfigRead { offset, bytes } => {
                let parts = registers(*offset, *bytes)
                    .map(|(at, bytes)| self.read(CONFIG, ECAM + u64::from(at), bytes));
                Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Access::ConfigWrite { offset, data } => {
                for (at, bytes) in registers(*offset, data.len() as u32) {
                    let first = (at - offset) as usize;
                    self.write(CONFIG, ECAM + u64::from(at), &data[first..first + bytes as usize])?;
                }
                Ok(Vec::new())
            }
            Access::MemoryRead { address, bytes } => self.read(READ, *address, *bytes),
            Access::MemoryWrite { address, data } => {
                self.write(WRITE, *address, data)?;
                Ok(Vec::new())
            }
        }
    }

    fn interrupts(&mut self) -> &mut VecDeque<Interrupt> {
        self.interrupts
    }
}
