//! The device's side of a descriptor ring in host memory, in units of 16 bytes.
//!
//! Software owns what lies from the tail to the head; the device fetches what lies from the head to the tail, ahead of need as far as the
//! thresholds in `RXDCTL` and `TXDCTL` say.

use super::FETCH;
use super::registers::Registers;
use super::regs::{self, ctrl};
use crate::contract::{Context, DmaError, OpId};
use std::collections::VecDeque;
use tlplab_transaction::Payload;

/// Bytes of a unit.
pub(super) const UNIT: u64 = 16;
/// Units that the device holds at most.
const CACHE: u32 = 64;

/// The places of the registers of a ring, from its base register on: the same in both directions.
const LENGTH: u32 = 0x08;
const HEAD: u32 = 0x10;
const TAIL: u32 = 0x18;
const CONTROL: u32 = 0x28;

#[derive(Clone, Debug)]
pub(super) struct Ring {
    registers: u32,
    /// Next unit to fetch.
    next: u32,
    /// Next unit to take out of the cache.
    taken: u32,
    cache: VecDeque<[u8; UNIT as usize]>,
    fetch: Option<(OpId, u32)>,
    /// A fetch failed; nothing more is fetched until software sets the ring up again.
    halted: bool,
}

impl Ring {
    pub(super) fn new(registers: u32) -> Self {
        Self { registers, next: 0, taken: 0, cache: VecDeque::new(), fetch: None, halted: false }
    }

    fn get(&self, file: &Registers, register: u32) -> u32 {
        file.get(self.registers + register)
    }
    /// Units in the ring.
    pub(super) fn units(&self, file: &Registers) -> u32 {
        self.get(file, LENGTH) / UNIT as u32
    }
    /// Units from `from` to the tail.
    fn until_tail(&self, file: &Registers, from: u32) -> u32 {
        let units = self.units(file);
        if units == 0 || from >= units {
            return 0;
        }
        (self.get(file, TAIL) % units + units - from) % units
    }
    /// Units that software gave and the device is not done with.
    pub(super) fn given(&self, file: &Registers) -> u32 {
        self.until_tail(file, self.get(file, HEAD))
    }
    /// Units at hand.
    pub(super) fn cached(&self) -> u32 {
        self.cache.len() as u32
    }
    pub(super) fn is_busy(&self) -> bool {
        self.fetch.is_some()
    }
    fn address(&self, file: &Registers, unit: u32) -> u64 {
        let base = u64::from(self.get(file, 4)) << 32 | u64::from(self.get(file, 0));
        base.wrapping_add(UNIT * u64::from(unit))
    }

    /// Software wrote the head: what was fetched counts no more.
    pub(super) fn restart(&mut self, file: &Registers) {
        *self = Self::new(self.registers);
        self.next = self.get(file, HEAD);
        self.taken = self.next;
    }

    /// Fetches what is there, if `needed` units are not at hand or the thresholds allow it.
    pub(super) fn fetch(&mut self, cx: &mut Context<'_>, file: &Registers, needed: u32) {
        let there = self.until_tail(file, self.next);
        if self.halted || self.fetch.is_some() || there == 0 || file.has(regs::CTRL, ctrl::GIO_MASTER_DISABLE)
        {
            return;
        }
        let control = self.get(file, CONTROL);
        // Thresholds count descriptors, or cache lines of four.
        let scale = if control & 1 << 24 != 0 { 1 } else { 4 };
        let (few, enough) = ((control & 0x3F) * scale, (control >> 8 & 0x3F) * scale);
        if self.cached() >= needed && !(self.cached() < few && there >= enough) {
            return;
        }
        let count = there.min(CACHE - self.cached()).min(self.units(file) - self.next);
        if count > 0 {
            let op = cx.dma_read_control(FETCH, self.address(file, self.next), UNIT * u64::from(count));
            self.fetch = Some((op, count));
        }
    }

    /// A read is over; true if it was a fetch of this ring.
    pub(super) fn fetched(&mut self, file: &Registers, op: OpId, result: &Result<Payload, DmaError>) -> bool {
        let Some((_, count)) = self.fetch.take_if(|(fetch, _)| *fetch == op) else { return false };
        match result.as_ref().ok().and_then(Payload::bytes) {
            Some(bytes) => {
                let (units, _) = bytes.as_chunks();
                self.cache.extend(units);
                self.next = (self.next + count) % self.units(file).max(1);
            }
            None => self.halted = true,
        }
        true
    }

    /// Takes a unit; with it the address it came from.
    pub(super) fn take(&mut self, file: &Registers) -> Option<(u64, [u8; UNIT as usize])> {
        let unit = self.cache.pop_front()?;
        let address = self.address(file, self.taken);
        self.taken = (self.taken + 1) % self.units(file).max(1);
        Some((address, unit))
    }

    /// The device is done with so many units: the head moves on.
    pub(super) fn done(&self, file: &mut Registers, count: u32) {
        let units = self.units(file).max(1);
        file.set(self.registers + HEAD, (self.get(file, HEAD) + count) % units);
    }
}
