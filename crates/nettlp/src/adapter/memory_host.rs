//! A host that is nothing but memory: what `tlplab adapter` serves when no simulated machine stands behind it.

use super::host::{Answer, Host, HostInterrupt, HostOutput, HostRead, HostReadId, HostWrite};
use super::host::{MmioAccess, MmioToken};
use std::collections::VecDeque;
use tlplab_device::{DmaError, Pages};
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// Memory below 4 GiB ends here, as on a PC: base addresses of devices and interrupts are above. The rest goes on at 4 GiB.
const LOW_END: u64 = 0x8000_0000;
const HIGH_START: u64 = 1 << 32;
/// The choice between keeping data and discarding them.
const PAGE: u64 = 4096;

/// Accesses to devices whose results nobody fetched.
const RESULTS: usize = 4096;

/// Sparse memory of a given size, every read of which takes the same time, and a processor that does as it is told
/// ([`access`](Self::access)).
///
/// Up to 2 GiB it begins at 0; what is more goes on at 4 GiB.
#[derive(Debug, Default)]
pub struct MemoryHost {
    size: u64,
    pages: Pages,
    latency: Duration,
    /// Reads that are under way, in the order of their ends.
    reads: VecDeque<(Time, HostReadId, Payload)>,
    accesses: VecDeque<HostOutput>,
    next_token: u64,
    results: VecDeque<(MmioToken, Result<Payload, DmaError>)>,
    interrupts: VecDeque<HostInterrupt>,
}

impl MemoryHost {
    /// `size` bytes of zeros.
    pub fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// Reads take so long; writes are there at once.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Copies memory at `address` into `out`.
    pub fn peek(&self, address: u64, out: &mut [u8]) {
        self.pages.read(address, out);
    }

    /// Writes memory, as software on the host would. Pages of zeros over memory that nobody has written take no space.
    ///
    /// # Errors
    /// The range is not all memory.
    pub fn poke(&mut self, address: u64, data: &[u8]) -> Result<(), NotMemory> {
        let fits = match data.len() {
            0 => self.holds(address, 1),
            len => self.holds(address, len as u64),
        };
        if !fits {
            return Err(NotMemory { address, bytes: data.len() as u64, size: self.size });
        }
        let mut at = address;
        let mut rest = data;
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.len().min((PAGE - at % PAGE) as usize));
            if self.pages.holds(at, 1) || piece.iter().any(|byte| *byte != 0) {
                self.pages.write(at, piece);
            }
            (at, rest) = (at + piece.len() as u64, left);
        }
        Ok(())
    }

    /// A program on the host accesses a device; see [`take_result`](Self::take_result).
    pub fn access(&mut self, device: usize, bar: u8, offset: u64, access: MmioAccess) -> MmioToken {
        let token = MmioToken(self.next_token);
        self.next_token += 1;
        self.accesses.push_back(HostOutput::Mmio { token, device, bar, offset, access });
        token
    }

    /// The oldest result of an access that nobody has taken. Only so many are kept.
    pub fn take_result(&mut self) -> Option<(MmioToken, Result<Payload, DmaError>)> {
        self.results.pop_front()
    }

    /// The oldest interrupt that nobody has taken. Only so many are kept.
    pub fn take_interrupt(&mut self) -> Option<HostInterrupt> {
        self.interrupts.pop_front()
    }

    fn holds(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let high_end = HIGH_START + self.size.saturating_sub(LOW_END);
        end <= self.size.min(LOW_END) || address >= HIGH_START && end <= high_end
    }
}

/// A range that is not all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{bytes} B at {address:#x} are not all memory: its {size:#x} B lie from 0 to 0x80000000, and the rest from 0x100000000"
)]
pub struct NotMemory {
    address: u64,
    bytes: u64,
    size: u64,
}

impl Host for MemoryHost {
    fn read(&mut self, now: Time, request: HostRead) -> Answer {
        let mut data = vec![0; request.bytes as usize];
        self.pages.read(request.address, &mut data);
        if self.latency.is_zero() {
            return Answer::Now(Ok(data.into()));
        }
        self.reads.push_back((now + self.latency, request.id, data.into()));
        Answer::Later
    }

    fn write(&mut self, _: Time, write: HostWrite) {
        if let Some(data) = write.data.bytes() {
            self.pages.write(write.address, data);
        }
    }

    fn interrupt(&mut self, _: Time, interrupt: HostInterrupt) {
        if self.interrupts.len() == RESULTS {
            self.interrupts.pop_front();
        }
        self.interrupts.push_back(interrupt);
    }

    fn claims(&self, address: u64, bytes: u32) -> bool {
        self.holds(address, u64::from(bytes.max(1)))
    }

    fn poll(&mut self, now: Time) -> Option<HostOutput> {
        if self.reads.front().is_none_or(|(at, ..)| *at > now) {
            return self.accesses.pop_front();
        }
        self.reads.pop_front().map(|(_, id, data)| HostOutput::ReadDone { id, result: Ok(data) })
    }

    fn mmio_done(&mut self, _: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        if self.results.len() == RESULTS {
            self.results.pop_front();
        }
        self.results.push_back((token, result));
    }

    fn deadline(&self) -> Option<Time> {
        match self.accesses.is_empty() {
            true => self.reads.front().map(|(at, ..)| *at),
            false => Some(Time::ZERO),
        }
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn rebase(&mut self, by: Duration) {
        for (at, ..) in &mut self.reads {
            *at = at.earlier(by);
        }
    }
}
