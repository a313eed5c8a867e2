//! Replay of a captured trace: the memory requests of a real device, again.

use crate::contract::{Context, Device, DmaError, Event, Refusal};
use crate::host::{HostContext, HostEvent, HostProgram};
use crate::identity::Identity;
use crate::load::issue::Issue;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::{Payload, RequestPolicy};
use tlplab_units::{Duration, Time};

/// A captured memory request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time since the first record. Records are in the order of time.
    pub at: Duration,
    /// A write, or a read.
    pub write: bool,
    /// First byte.
    pub address: u64,
    /// Bytes; 0 for a zero-length request.
    pub bytes: u32,
}

/// The pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPace {
    /// Each request at its captured time (or when tags allow).
    Captured,
    /// As fast as possible with at most this many requests under way, in the captured order.
    Fast {
        /// At least 1.
        outstanding: u32,
    },
}

/// The relocation of captured addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// The addresses as captured.
    Keep,
    /// In a window: the address modulo its size, which is a multiple of 4 KiB, so that offsets in a page stay.
    Window {
        /// First byte.
        base: u64,
        /// Size.
        bytes: u64,
    },
}

/// The reason that a trace cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The trace has no requests.
    #[error("the trace holds no memory request")]
    Empty,
    /// Time runs backwards.
    #[error("record {0} is earlier than the one before it; sort the trace by time")]
    Unsorted(usize),
    /// A window that would break pages apart.
    #[error("the window of {0} B is not a multiple of 4 KiB")]
    Window(u64),
    /// Nothing would ever be issued.
    #[error("outstanding is 0; at least one request must be allowed")]
    NothingOutstanding,
}

/// A trace that is replayed once, in one stream; as a device (DMA) or on the host (MMIO). Written bytes are zeros in
/// payload-carrying runs: captures of headers do not have them.
#[derive(Clone, Debug)]
pub struct Replay {
    records: Vec<Record>,
    pace: ReplayPace,
    relocation: Relocation,
    next: usize,
    in_flight: u32,
    begin: Time,
    failed: u64,
    zeros: Payload,
    running: bool,
    /// Software has taken Bus Master Enable away.
    paused: bool,
}

impl Replay {
    /// A replay of `records`.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn new(records: Vec<Record>, pace: ReplayPace, relocation: Relocation) -> Result<Self, ReplayError> {
        if records.is_empty() {
            return Err(ReplayError::Empty);
        }
        if let Some(at) = records.windows(2).position(|pair| pair[0].at > pair[1].at) {
            return Err(ReplayError::Unsorted(at + 1));
        }
        if pace == (ReplayPace::Fast { outstanding: 0 }) {
            return Err(ReplayError::NothingOutstanding);
        }
        match relocation {
            Relocation::Window { bytes, .. } if bytes == 0 || bytes % 4096 != 0 => {
                Err(ReplayError::Window(bytes))
            }
            _ => Ok(Self {
                records,
                pace,
                relocation,
                next: 0,
                in_flight: 0,
                begin: Time::ZERO,
                failed: 0,
                zeros: Payload::EMPTY,
                running: false,
                paused: false,
            }),
        }
    }

    /// Requests that ended with an error.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    fn start(&mut self, cx: &mut impl Issue) {
        let longest = self.records.iter().map(|record| record.bytes).max().unwrap_or(0);
        self.zeros = match cx.length_only() {
            true => Payload::Length(longest.into()),
            false => vec![0; longest as usize].into(),
        };
        self.begin = cx.now();
        (self.next, self.in_flight, self.running, self.paused) = (0, 0, true, false);
        self.advance(cx);
    }

    /// It may master the bus again.
    fn resume(&mut self, cx: &mut impl Issue) {
        self.paused = false;
        self.advance(cx);
    }

    /// The record issued last was refused, as Bus Master Enable is clear: it is issued again when that is set.
    fn take_back(&mut self) {
        self.next = self.next.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.paused = true;
    }

    fn advance(&mut self, cx: &mut impl Issue) {
        while let Some(&record) = self.records.get(self.next).filter(|_| self.running && !self.paused) {
            match self.pace {
                ReplayPace::Captured if self.begin + record.at > cx.now() => {
                    return cx.timer(self.begin + record.at, self.next as u64);
                }
                ReplayPace::Fast { outstanding } if self.in_flight >= outstanding => return,
                _ => {}
            }
            self.next += 1;
            self.in_flight += 1;
            let address = match self.relocation {
                Relocation::Keep => record.address,
                Relocation::Window { base, bytes } => base + record.address % bytes,
            };
            if record.write {
                cx.write(0, address, self.zeros.slice(0, record.bytes.into()));
            } else {
                cx.read(0, address, record.bytes.into());
            }
        }
    }

    fn over(&mut self, cx: &mut impl Issue, failed: bool) {
        self.failed += u64::from(failed);
        self.in_flight = self.in_flight.saturating_sub(1);
        // At captured times the timer goes on by itself.
        if self.pace != ReplayPace::Captured {
            self.advance(cx);
        }
        if self.running && self.in_flight == 0 && self.next == self.records.len() {
            self.running = false;
            cx.finished();
        }
    }
}

impl Device for Replay {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![],
            ..Identity::new(VENDOR_ID, 0x0011, 0x12_00_00) // processing accelerator
        }
    }

    /// A captured request is one TLP; it stays one if MPS and MRRS allow.
    fn request_policy(&self) -> RequestPolicy {
        RequestPolicy::Packed
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start if self.running => self.resume(cx),
            Event::Start => self.start(cx),
            Event::DmaReadDone { result: Err(DmaError::BusMasterDisabled), .. } => self.take_back(),
            Event::DmaReadDone { result, .. } => self.over(cx, result.is_err()),
            Event::DmaWriteAccepted { .. } => self.over(cx, false),
            Event::Timer { .. } => self.advance(cx),
            Event::MmioRead { reply, .. } => cx.reply_error(reply, Refusal::UnsupportedRequest),
            Event::MmioWrite { .. } => {}
            Event::Reset => self.running = false,
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}

impl HostProgram for Replay {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => self.start(cx),
            HostEvent::MmioReadDone { result, .. } => self.over(cx, result.is_err()),
            HostEvent::MmioWriteAccepted { .. } => self.over(cx, false),
            HostEvent::Timer { .. } => self.advance(cx),
            HostEvent::Interrupt { .. }
            | HostEvent::PortInterrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
