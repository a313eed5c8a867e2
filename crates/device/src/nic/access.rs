//! Accesses by software: BARs, and the registers that do more than keep a value.

use super::Nic;
use super::phy::Wish;
use super::regs::{self, cause, ctrl, ctrl_ext, eecd, status};
use super::statistics::{self, Statistics};
use crate::contract::Context;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// A period of the clock behind `SYSTIM`.
const CLOCK: Duration = Duration::from_ns(40);

impl Nic {
    fn read(&mut self, cx: &mut Context<'_>, at: u32) -> u32 {
        match at {
            regs::STATUS => {
                let off = self.file.has(regs::CTRL, ctrl::GIO_MASTER_DISABLE)
                    && !self.receiver.is_busy()
                    && !self.transmitter.is_busy();
                let value = self.file.get(at);
                if off { value & !status::GIO_MASTER_ENABLE } else { value }
            }
            regs::EERD => self.nvm.read(),
            regs::EEWR => self.nvm.written(),
            regs::MDIC => self.phy.access(),
            regs::ICR => self.interrupts.read(cx, &self.file),
            regs::ICS | regs::IMS => self.interrupts.mask(),
            regs::SWSM => {
                // Whoever reads the semaphore free has taken it.
                let value = self.file.get(at);
                self.file.set(at, value | 1);
                value
            }
            regs::SYSTIML => self.system_time(cx.now()) as u32,
            at if at == regs::SYSTIML + 4 => (self.system_time(cx.now()) >> 32) as u32,
            statistics::INTERRUPTS => self.interrupts.take_count(),
            at if Statistics::has(at) => self.counters.read(at),
            _ => self.file.get(at),
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, at: u32, value: u32) {
        match at {
            regs::CTRL => self.write_control(cx, value),
            regs::STATUS => {
                let kept = self.file.get(at) & (value | !status::PHYRA);
                self.file.set(at, kept);
            }
            regs::EECD => {
                self.file.write(at, value);
                let granted = if value & eecd::REQ != 0 { eecd::GNT } else { 0 };
                self.file.set(at, self.file.get(at) & !eecd::GNT | granted);
            }
            regs::EERD => self.nvm.read_command(value),
            regs::EEWR => self.nvm.write_command(value),
            regs::CTRL_EXT => {
                self.file.write(at, value);
                if value & ctrl_ext::EE_RST != 0 {
                    self.load_address();
                }
            }
            regs::MDIC => {
                if self.phy.command(value) == Wish::Negotiate {
                    self.negotiate(cx);
                }
                self.raise(cx, cause::MDAC & value >> 20);
            }
            regs::ICR => self.interrupts.clear(cx, &self.file, value),
            regs::ICS => self.raise(cx, value & !cause::ASSERTED),
            regs::IMS => self.interrupts.unmask(cx, &self.file, value),
            regs::IMC => self.interrupts.mask_off(cx, &self.file, value),
            regs::PBA => {
                // 40 KiB in all: what reception does not take is for transmission.
                let receive = (value & 0xFFFF).min(40);
                self.file.set(at, (40 - receive) << 16 | receive);
            }
            regs::SYSTIML => self.clock = (cx.now(), self.clock.1 & !0xFFFF_FFFF | u64::from(value)),
            at if at == regs::SYSTIML + 4 => {
                self.clock = (cx.now(), self.clock.1 & 0xFFFF_FFFF | u64::from(value) << 32);
            }
            regs::TIMINCA => {
                self.clock = (cx.now(), self.system_time(cx.now()));
                self.file.write(at, value);
            }
            _ => self.write_rings(cx, at, value),
        }
    }

    fn write_control(&mut self, cx: &mut Context<'_>, value: u32) {
        if value & ctrl::RST != 0 {
            return self.reset(cx);
        }
        let before = self.file.get(regs::CTRL);
        self.file.write(regs::CTRL, value);
        if value & ctrl::PHY_RST != 0 {
            self.phy.reset();
            self.file.set(regs::STATUS, self.file.get(regs::STATUS) | status::PHYRA);
        }
        if value & ctrl::PHY_RST != 0 || (before ^ value) & ctrl::SLU != 0 {
            self.negotiate(cx);
        }
        self.pump(cx);
    }

    /// Registers that the engines look at.
    fn write_rings(&mut self, cx: &mut Context<'_>, at: u32, value: u32) {
        self.file.write(at, value);
        match at {
            regs::RDH => self.receiver.ring.restart(&self.file),
            regs::TDH => self.transmitter.ring.restart(&self.file),
            regs::RDT | regs::TDT | regs::TCTL => self.pump(cx),
            regs::RCTL => {
                self.listen(cx);
                self.pump(cx);
            }
            // Bit 31: what waits to be told is told now.
            regs::RDTR if value >> 31 != 0 => {
                let causes = self.receiver.delayed(cx, true);
                self.raise(cx, causes);
            }
            regs::TIDV if value >> 31 != 0 => {
                let causes = self.transmitter.delayed(cx, true);
                self.raise(cx, causes);
            }
            _ => {}
        }
    }

    pub(super) fn system_time(&self, now: Time) -> u64 {
        let (since, value) = self.clock;
        let (period, step) = (self.file.get(regs::TIMINCA) >> 24, self.file.get(regs::TIMINCA) & 0xFF_FFFF);
        let periods = now.saturating_since(since).as_fs() / (CLOCK.as_fs() * u64::from(period.max(1)));
        value.wrapping_add(periods.wrapping_mul(step.into()))
    }

    /// A word of a BAR.
    fn read_bar(&mut self, cx: &mut Context<'_>, bar: u8, at: u32) -> u32 {
        match (bar, at) {
            (0, at) => self.read(cx, at),
            (1, _) => u32::MAX, // no flash behind it
            (2, 0) => self.window,
            (2, 4) => self.read(cx, self.window),
            _ => 0,
        }
    }
    fn write_bar(&mut self, cx: &mut Context<'_>, bar: u8, at: u32, value: u32) {
        match (bar, at) {
            (0, at) => self.write(cx, at, value),
            (2, 0) => self.window = value & 0x1_FFFC,
            (2, 4) => self.write(cx, self.window, value),
            _ => {}
        }
    }

    pub(super) fn mmio_read(&mut self, cx: &mut Context<'_>, bar: u8, offset: u64, bytes: u32) -> Payload {
        let (first, end) = (offset & !3, offset + u64::from(bytes));
        let words = (first..end).step_by(4).flat_map(|at| self.read_bar(cx, bar, at as u32).to_le_bytes());
        let data: Vec<u8> = words.collect();
        let skip = (offset - first) as usize;
        data[skip..skip + bytes as usize].into()
    }

    /// Registers are written as whole words; the bytes that a narrower write leaves out keep what they had.
    pub(super) fn mmio_write(&mut self, cx: &mut Context<'_>, bar: u8, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        for at in (offset & !3..end).step_by(4) {
            let old = if bar == 0 { self.file.get(at as u32) } else { 0 };
            let mut word = old.to_le_bytes();
            for (place, byte) in word.iter_mut().enumerate() {
                let from = (at + place as u64).checked_sub(offset);
                *byte = from.and_then(|from| data.get(from as usize)).copied().unwrap_or(*byte);
            }
            self.write_bar(cx, bar, at as u32, u32::from_le_bytes(word));
        }
    }
}
