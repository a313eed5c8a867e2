//! The controller's data for Get Log Page (NVMe 1.4 §5.14), and its asynchronous events (§5.2).

use super::command::Range;
use super::identify::{Page, SUPPORTED_ADMIN, SUPPORTED_IO};
use super::status::Status;
use std::collections::{BTreeSet, VecDeque};
use tlplab_units::{Duration, Time};

pub(super) const ERRORS: u8 = 0x01;
pub(super) const HEALTH: u8 = 0x02;
pub(super) const FIRMWARE: u8 = 0x03;
pub(super) const CHANGED_NAMESPACES: u8 = 0x04;
pub(super) const EFFECTS: u8 = 0x05;

/// Entries of the error log.
pub(super) const ERROR_ENTRIES: usize = 64;
/// Requests for events that are held.
pub(super) const EVENT_REQUESTS: usize = 4;
/// The temperature of the drive, in kelvins. It does not change.
pub(super) const TEMPERATURE: u16 = 313;

/// Something went wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) queue: u16,
    /// The command's identifier; all ones if it is not a command's.
    pub(super) id: u16,
    pub(super) status: Status,
    pub(super) lba: u64,
    pub(super) namespace: u32,
}

/// The latest failures.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorLog {
    /// Their number since the start.
    pub(super) count: u64,
    entries: VecDeque<(u64, Failure)>,
}

impl ErrorLog {
    pub(super) fn add(&mut self, failure: Failure) {
        self.count += 1;
        self.entries.push_front((self.count, failure));
        self.entries.truncate(ERROR_ENTRIES);
    }

    fn page(&self) -> Vec<u8> {
        let mut page = Page::new(ERROR_ENTRIES * 64);
        for (place, (number, failure)) in self.entries.iter().enumerate() {
            let at = place * 64;
            page.put(at, &number.to_le_bytes());
            page.put(at + 8, &failure.queue.to_le_bytes());
            page.put(at + 10, &failure.id.to_le_bytes());
            page.put(at + 12, &(failure.status.bits() << 1).to_le_bytes());
            // No byte of the command is to blame more than others.
            page.put(at + 14, &[0xFF, 0xFF]);
            page.put(at + 16, &failure.lba.to_le_bytes());
            page.put(at + 24, &failure.namespace.to_le_bytes());
        }
        page.bytes
    }
}

/// The drive's counters over its life. Resets leave them as they are.
#[derive(Clone, Debug)]
pub(super) struct Health {
    bytes_read: u64,
    bytes_written: u64,
    reads: u64,
    writes: u64,
    power_cycles: u64,
    unsafe_shutdowns: u64,
    pub(super) media_errors: u64,
    /// Time with commands under way, until `busy_since`.
    busy: Duration,
    busy_since: Option<Time>,
    /// All written data are safe, as software asked for.
    pub(super) shut_down: bool,
}

impl Health {
    pub(super) fn new() -> Self {
        Self {
            bytes_read: 0,
            bytes_written: 0,
            reads: 0,
            writes: 0,
            power_cycles: 1,
            unsafe_shutdowns: 0,
            media_errors: 0,
            busy: Duration::ZERO,
            busy_since: None,
            shut_down: false,
        }
    }
    /// Blocks went to the host, or were compared.
    pub(super) fn read(&mut self, range: &Range) {
        self.reads += 1;
        self.bytes_read += range.bytes;
    }
    /// Blocks came from the host.
    pub(super) fn written(&mut self, range: &Range) {
        self.writes += 1;
        self.bytes_written += range.bytes;
    }
    /// Notes if I/O commands are under way.
    pub(super) fn busy(&mut self, now: Time, busy: bool) {
        match (self.busy_since, busy) {
            (None, true) => self.busy_since = Some(now),
            (Some(since), false) => {
                self.busy += now.saturating_since(since);
                self.busy_since = None;
            }
            _ => {}
        }
    }
    /// Power was lost and is back.
    pub(super) fn power_cycle(&mut self) {
        self.power_cycles += 1;
        self.unsafe_shutdowns += u64::from(!std::mem::take(&mut self.shut_down));
        self.busy_since = None;
    }
    pub(super) fn rebase(&mut self, by: Duration) {
        if let Some(since) = &mut self.busy_since {
            self.busy += by.saturating_sub(*since - Time::ZERO);
            *since = since.earlier(by);
        }
    }

    fn page(&self, now: Time, errors: u64, thresholds: [u16; 2]) -> Vec<u8> {
        let mut page = Page::new(512);
        let mut busy = self.busy;
        busy += self.busy_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        let minutes = |time: Duration| time.as_fs() / Duration::from_ms(60_000).as_fs();
        // Thousands of 512 bytes, rounded up.
        let units = |bytes: u64| bytes.div_ceil(512_000);
        page.put(0, &[warning(thresholds)]);
        page.put(1, &TEMPERATURE.to_le_bytes());
        page.put(3, &[100, 10]); // spare capacity and its threshold, in per cent
        let counters = [
            units(self.bytes_read),
            units(self.bytes_written),
            self.reads,
            self.writes,
            minutes(busy),
            self.power_cycles,
            minutes(now - Time::ZERO) / 60,
            self.unsafe_shutdowns,
            self.media_errors,
            errors,
        ];
        for (place, counter) in counters.into_iter().enumerate() {
            page.put(32 + 16 * place, &counter.to_le_bytes());
        }
        page.bytes
    }
}

/// Critical warnings: bit 1 if the temperature is beyond one of the thresholds.
pub(super) fn warning(thresholds: [u16; 2]) -> u8 {
    let [over, under] = thresholds;
    u8::from(TEMPERATURE >= over || TEMPERATURE <= under) << 1
}

/// A kind of event (dword 0 of its completion).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happened {
    /// A write to the doorbell of a queue that there is not.
    InvalidDoorbell,
    /// A doorbell was written with what cannot be.
    InvalidDoorbellValue,
    /// The temperature is beyond a threshold.
    Temperature,
}

impl Happened {
    /// Its type, its information, and the log page that explains it.
    fn words(self) -> (u8, u8, u8) {
        match self {
            Self::InvalidDoorbell => (0, 0, ERRORS),
            Self::InvalidDoorbellValue => (0, 1, ERRORS),
            Self::Temperature => (1, 1, HEALTH),
        }
    }
    fn result(self) -> u32 {
        let (kind, information, log) = self.words();
        u32::from(kind) | u32::from(information) << 8 | u32::from(log) << 16
    }
}

/// Events and the requests for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// Commands that wait for one.
    requests: VecDeque<u64>,
    pending: BTreeSet<Happened>,
    /// Log pages that software has not read since it was told to: no more events of their types.
    masked: BTreeSet<u8>,
}

impl Events {
    /// A command waits for an event.
    pub(super) fn request(&mut self, command: u64) -> Result<(), Status> {
        if self.requests.len() >= EVENT_REQUESTS {
            return Err(Status::EVENT_LIMIT);
        }
        self.requests.push_back(command);
        Ok(())
    }
    /// It waits no longer; true if it did.
    pub(super) fn withdraw(&mut self, command: u64) -> bool {
        let before = self.requests.len();
        self.requests.retain(|request| *request != command);
        self.requests.len() < before
    }
    /// Something happened. While software has yet to read of the last, it is not told of another.
    pub(super) fn happened(&mut self, what: Happened) {
        if !self.masked.contains(&what.words().2) {
            self.pending.insert(what);
        }
    }
    /// Software has read the log page.
    pub(super) fn read(&mut self, log: u8) {
        self.masked.remove(&log);
        self.pending.retain(|what| what.words().2 != log);
    }
    /// A request that can be answered: the command, and dword 0 of its completion.
    pub(super) fn answer(&mut self) -> Option<(u64, u32)> {
        let due = self.pending.iter().copied().find(|what| !self.masked.contains(&what.words().2))?;
        let command = self.requests.pop_front()?;
        self.pending.remove(&due);
        self.masked.insert(due.words().2);
        Some((command, due.result()))
    }
}

/// All of them, to be read.
pub(super) struct Logs<'a> {
    pub(super) errors: &'a ErrorLog,
    pub(super) health: &'a Health,
    pub(super) thresholds: [u16; 2],
    pub(super) firmware: &'a str,
    pub(super) now: Time,
}

impl Logs<'_> {
    /// A whole page.
    pub(super) fn page(&self, log: u8) -> Result<Vec<u8>, Status> {
        Ok(match log {
            ERRORS => self.errors.page(),
            HEALTH => self.health.page(self.now, self.errors.count, self.thresholds),
            FIRMWARE => {
                let mut page = Page::new(512);
                page.put(0, &[1]); // the first slot is active
                page.text(8, 8, self.firmware);
                page.bytes
            }
            CHANGED_NAMESPACES => vec![0; 4096],
            EFFECTS => {
                let mut page = Page::new(4096);
                for (base, supported) in [(0, SUPPORTED_ADMIN), (1024, SUPPORTED_IO)] {
                    for &(opcode, effects) in supported {
                        page.put(base + 4 * usize::from(opcode), &u32::to_le_bytes(effects));
                    }
                }
                page.bytes
            }
            _ => return Err(Status::INVALID_LOG_PAGE),
        })
    }
}
