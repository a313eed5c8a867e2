//! The interrupts of the controller for completions (NVMe 1.4 §7.5).

use super::dma::WRITES;
use crate::contract::Context;
use crate::kit::Pin;
use std::collections::BTreeMap;
use tlplab_cfgspace::InterruptMode;

/// Interrupts that are coalesced: how many completions make one, and that a timer runs.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    completions: u32,
    timed: bool,
}

/// The state of all interrupts.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    /// Vectors that are masked by INTMS; MSI-X has masks of its own.
    mask: u32,
    pin: Pin,
    /// Vectors of MSI that had something to tell while they were masked.
    pending: u32,
    held: BTreeMap<u16, Held>,
}

/// The fate of a completion's interrupt.
#[derive(Clone)]
pub(super) enum Coalesced {
    /// It goes out.
    Now,
    /// It waits for others.
    Held,
    /// It waits for others, but not longer than the aggregation time, which begins.
    HeldAndTimed,
}

impl Interrupts {
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    /// Masks or unmasks vectors; what has waited for that goes out.
    pub(super) fn set_mask(&mut self, cx: &mut Context<'_>, mask: u32) {
        self.mask = mask;
        let due = std::mem::take(&mut self.pending);
        self.pending = due & mask;
        for vector in (0..32).filter(|vector| (due & !mask) >> vector & 1 == 1) {
            self.message(cx, vector);
        }
    }

    /// A completion of `vector` is in memory, and its interrupt is not held back.
    pub(super) fn message(&mut self, cx: &mut Context<'_>, vector: u16) {
        match cx.interrupt_mode() {
            InterruptMode::MsiX => cx.msix(WRITES, vector),
            InterruptMode::Msi if self.mask >> (vector % 32) & 1 == 1 => self.pending |= 1 << (vector % 32),
            InterruptMode::Msi => cx.msix(WRITES, vector),
            // The level follows what is in the queues.
            InterruptMode::Intx | InterruptMode::Disabled => {}
        }
    }

    /// One more completion of `vector`; true if it interrupts. `threshold` completions make one.
    pub(super) fn coalesce(&mut self, vector: u16, threshold: u32) -> Coalesced {
        let held = self.held.entry(vector).or_default();
        held.completions += 1;
        if held.completions >= threshold {
            held.completions = 0;
            Coalesced::Now
        } else if std::mem::replace(&mut held.timed, true) {
            Coalesced::Held
        } else {
            Coalesced::HeldAndTimed
        }
    }

    /// The aggregation time of `vector` is over.
    pub(super) fn aggregated(&mut self, cx: &mut Context<'_>, vector: u16) {
        let Some(held) = self.held.remove(&vector) else { return };
        if held.completions > 0 {
            self.message(cx, vector);
        }
    }

    /// The pin follows the queues: `wanted` tells by mask whether one of them has something to tell.
    pub(super) fn level(&mut self, cx: &mut Context<'_>, wanted: impl Fn(u32) -> bool) {
        let by_pin = matches!(cx.interrupt_mode(), InterruptMode::Intx | InterruptMode::Disabled);
        self.pin.set(cx, WRITES, by_pin && wanted(self.mask));
    }

    /// The controller was reset: nothing is masked or held. The pin follows by [`level`](Self::level).
    pub(super) fn reset(&mut self) {
        *self = Self { pin: self.pin, ..Self::default() };
    }
}
