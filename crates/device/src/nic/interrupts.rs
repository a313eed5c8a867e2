//! From causes to interrupts, in the three ways software can choose.
//!
//! A cause is a bit of `ICR`; the mask `IMS` lets it interrupt. With the pin, the level is "any cause in the mask"; with MSI, a message goes
//! when that becomes true; with MSI-X, each of five groups of causes has a vector in `IVAR` and a message goes for each cause that
//! appears; while a message waits to leave, causes of its vector raise no other ([`Device::merges_messages`]). After an interrupt, `ITR` or the vector's `EITR` holds the next back.

use super::registers::Registers;
use super::regs::{self, cause, ctrl_ext};
use super::{WRITES, timer};
use crate::contract::Context;
#[cfg(doc)]
use crate::contract::Device;
use tlplab_cfgspace::InterruptMode;
use tlplab_units::{Duration, Time};

/// MSI-X vectors.
pub const VECTORS: u16 = 5;

/// Causes with an MSI-X vector and where `IVAR` says which.
const GROUPS: [(u32, u32); 5] =
    [(cause::RXQ0, 0), (1 << 21, 4), (cause::TXQ0, 8), (1 << 23, 12), (cause::OTHER, 16)];
/// In `IVAR`: this group has a vector.
const VALID: u32 = 1 << 3;
/// The causes that count as [`cause::OTHER`].
const OTHERS: u32 = cause::LSC | cause::RXO | cause::MDAC | cause::SRPD | cause::ACK | cause::MNG;

/// The time at which the next interrupt may go, of each vector; the last is of the pin and MSI.
#[derive(Clone, Copy, Debug, Default)]
struct Throttle {
    next: Time,
    armed: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    causes: u32,
    mask: u32,
    /// Groups whose message went, and whose cause has been there and in the mask ever since.
    told: u32,
    /// The pin is asserted, or the MSI message went.
    asserted: bool,
    throttles: [Throttle; VECTORS as usize + 1],
    /// Interrupts since software last asked.
    count: u32,
}

impl Interrupts {
    pub(super) fn rebase(&mut self, by: Duration) {
        self.throttles.iter_mut().for_each(|throttle| throttle.next = throttle.next.earlier(by));
    }
    /// Interrupts since the last call.
    pub(super) fn take_count(&mut self) -> u32 {
        std::mem::take(&mut self.count)
    }

    /// Causes appear.
    pub(super) fn raise(&mut self, cx: &mut Context<'_>, file: &Registers, causes: u32) {
        self.causes |= causes;
        if causes & OTHERS != 0 {
            self.causes |= cause::OTHER;
        }
        self.update(cx, file);
    }
    pub(super) fn unmask(&mut self, cx: &mut Context<'_>, file: &Registers, causes: u32) {
        self.mask |= causes;
        self.update(cx, file);
    }
    pub(super) fn mask_off(&mut self, cx: &mut Context<'_>, file: &Registers, causes: u32) {
        self.mask &= !causes;
        self.update(cx, file);
    }
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    /// A read of `ICR`. It clears the causes when nothing is in the mask, when they interrupt, and always unless MSI-X is in use; with
    /// `CTRL_EXT.IAME` it also takes `IAM` out of the mask when they interrupt.
    pub(super) fn read(&mut self, cx: &mut Context<'_>, file: &Registers) -> u32 {
        let pending = self.causes & self.mask != 0;
        let value = self.causes | if pending { cause::ASSERTED } else { 0 };
        if self.mask == 0 || pending || cx.interrupt_mode() != InterruptMode::MsiX {
            self.causes = 0;
        }
        if pending && file.has(regs::CTRL_EXT, ctrl_ext::IAME) {
            self.mask &= !file.get(regs::IAM);
        }
        self.update(cx, file);
        value
    }
    /// A write to `ICR`: ones clear.
    pub(super) fn clear(&mut self, cx: &mut Context<'_>, file: &Registers, causes: u32) {
        if self.causes & self.mask != 0 && file.has(regs::CTRL_EXT, ctrl_ext::IAME) {
            self.mask &= !file.get(regs::IAM);
        }
        self.causes &= !causes;
        self.update(cx, file);
    }

    /// The time that a vector was held back for has come.
    pub(super) fn released(&mut self, cx: &mut Context<'_>, file: &Registers, vector: u64) {
        if let Some(throttle) = self.throttles.get_mut(vector as usize) {
            throttle.armed = false;
            self.update(cx, file);
        }
    }

    /// A reset of the function's logic: causes and mask are gone, the pin is deasserted.
    pub(super) fn reset(&mut self, cx: &mut Context<'_>) {
        if self.asserted && by_pin(cx) {
            cx.deassert_intx(WRITES);
        }
        *self = Self::default();
    }

    /// Does what follows from causes and mask.
    fn update(&mut self, cx: &mut Context<'_>, file: &Registers) {
        match cx.interrupt_mode() {
            InterruptMode::MsiX => self.update_msix(cx, file),
            InterruptMode::Msi | InterruptMode::Intx | InterruptMode::Disabled => {
                self.update_single(cx, file);
            }
        }
    }

    fn update_msix(&mut self, cx: &mut Context<'_>, file: &Registers) {
        self.told &= self.causes & self.mask;
        for (bit, shift) in GROUPS {
            let vector = file.get(regs::IVAR) >> shift & 0xF;
            let new = self.causes & self.mask & !self.told & bit != 0;
            let exists = vector & VALID != 0 && vector & 7 < u32::from(VECTORS);
            let number = vector & 7;
            if !(new && exists && self.passes(cx, number as usize, file.get(regs::EITR + 4 * number))) {
                continue;
            }
            cx.msix(WRITES, number as u16);
            self.told |= bit;
            if file.has(regs::CTRL_EXT, ctrl_ext::EIAME) {
                self.mask &= !(file.get(regs::IAM) & bit);
            }
            self.causes &= !(file.get(regs::EIAC) & bit);
            self.told &= self.causes & self.mask;
        }
    }

    fn update_single(&mut self, cx: &mut Context<'_>, file: &Registers) {
        let pending = self.causes & self.mask != 0;
        if !pending && self.asserted {
            self.asserted = false;
            if by_pin(cx) {
                cx.deassert_intx(WRITES);
            }
        } else if pending && !self.asserted && self.passes(cx, VECTORS.into(), file.get(regs::ITR)) {
            self.asserted = true;
            match by_pin(cx) {
                true => cx.assert_intx(WRITES),
                false => cx.msix(WRITES, 0),
            }
        }
    }

    /// True if this vector may interrupt now. If not, a timer brings us back.
    fn passes(&mut self, cx: &mut Context<'_>, vector: usize, interval: u32) -> bool {
        let throttle = &mut self.throttles[vector];
        if cx.now() >= throttle.next {
            throttle.next = cx.now() + Duration::from_ns(256 * u64::from(interval));
            self.count = self.count.saturating_add(1);
            return true;
        }
        if !std::mem::replace(&mut throttle.armed, true) {
            cx.timer(throttle.next, timer::THROTTLE + vector as u64);
        }
        false
    }
}

/// True if the pin follows the causes. Its level is set even while the pin is disabled: configuration space shows it (PCIe 5.0 §7.5.1.1.4).
fn by_pin(cx: &Context<'_>) -> bool {
    matches!(cx.interrupt_mode(), InterruptMode::Intx | InterruptMode::Disabled)
}

/// A cause that is raised late, so that one interrupt serves several frames: so long after the last event, but not later than so
/// long after the first. The times are registers, in units of 1.024 µs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    /// Events that were not told yet, and since when.
    since: Option<Time>,
    until: Time,
}

impl Delay {
    pub(super) fn rebase(&mut self, by: Duration) {
        self.since = self.since.map(|since| since.earlier(by));
        self.until = self.until.earlier(by);
    }
    /// An event; true if the cause must be raised now.
    pub(super) fn event(&mut self, cx: &mut Context<'_>, delay: u32, limit: u32, id: u64) -> bool {
        if delay == 0 {
            *self = Self::default();
            return true;
        }
        let ticks = |n: u32| Duration::from_ns(1024 * u64::from(n));
        let first = *self.since.get_or_insert(cx.now());
        let last = cx.now() + ticks(delay);
        self.until = if limit == 0 { last } else { last.min(first + ticks(limit)) };
        cx.timer(self.until, id);
        false
    }
    /// Its timer, or software that does not want to wait (`flush`); true if the cause must be raised now.
    pub(super) fn due(&mut self, now: Time, flush: bool) -> bool {
        let due = self.since.is_some() && (flush || now >= self.until);
        if due {
            *self = Self::default();
        }
        due
    }
}
