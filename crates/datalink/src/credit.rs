//! Credit counters: the transmitter's credits, the receiver's grants (PCIe 5.0 §2.6.1).
//!
//! Counters count since initialisation, modulo 2^F, and only differences have meaning; at most 2^F / 2 may be outstanding.
//! An infinite counter has a mask of 0: every difference is 0, and the same arithmetic says "go" without a branch.

use crate::config::{CreditBatch, Credits};
use crate::event::CreditKind;
use tlplab_wire::dllp::Scale;

/// The largest value of a counter: 8, 10, 12 bits for headers, 12, 14, 16 for data (PCIe 4.0 §3.4.2).
const fn mask(kind: CreditKind, scale: Scale) -> u32 {
    let bits = match kind {
        CreditKind::Header => 8,
        CreditKind::Data => 12,
    };
    (1 << (bits + scale.shift())) - 1
}

/// The most that may be outstanding: 127, 508, 2 032 header or 2 047, 8 188, 32 752 data credits.
pub(crate) const fn most(kind: CreditKind, scale: Scale) -> u32 {
    let unscaled = match kind {
        CreditKind::Header => 127,
        CreditKind::Data => 2047,
    };
    unscaled << scale.shift()
}

impl CreditKind {
    /// The most credits of this kind that a port can advertise, with scaled flow control or without (PCIe 5.0 §3.4.2).
    pub const fn most(self, scaled: bool) -> u32 {
        most(self, if scaled { Scale::By16 } else { Scale::Off })
    }
}

/// The smallest scale that can advertise `count`, of those a scaled link has.
fn smallest(kind: CreditKind, count: u32) -> Scale {
    [Scale::By1, Scale::By4].into_iter().find(|&scale| count <= most(kind, scale)).unwrap_or(Scale::By16)
}

/// CREDITS_CONSUMED and CREDIT_LIMIT of one class and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmit {
    consumed: u32,
    limit: u32,
    mask: u32,
    scale: Scale,
}

impl Transmit {
    /// Before initialisation: nothing is granted.
    pub(crate) const NONE: Self =
        Self { consumed: 0, limit: 0, mask: mask(CreditKind::Header, Scale::Off), scale: Scale::Off };

    /// From the value of an InitFC; 0 is infinite.
    pub(crate) const fn granted(kind: CreditKind, scale: Scale, field: u16) -> Self {
        let mask = if field == 0 { 0 } else { mask(kind, scale) };
        Self { consumed: 0, limit: ((field as u32) << scale.shift()) & mask, mask, scale }
    }
    #[inline]
    const fn half(&self) -> u32 {
        self.mask.div_ceil(2)
    }
    /// True if `credits` are left.
    #[inline]
    pub(crate) const fn admits(&self, credits: u32) -> bool {
        self.limit.wrapping_sub(self.consumed.wrapping_add(credits)) & self.mask <= self.half()
    }
    #[inline]
    pub(crate) const fn consume(&mut self, credits: u32) {
        self.consumed = self.consumed.wrapping_add(credits) & self.mask;
    }
    /// Credits left; `None` is infinite.
    pub(crate) const fn available(&self) -> Option<u32> {
        if self.mask == 0 { None } else { Some(self.limit.wrapping_sub(self.consumed) & self.mask) }
    }
    /// Takes the value of an UpdateFC; true if the limit moved.
    pub(crate) const fn update(&mut self, field: u16) -> Result<bool, LimitError> {
        if self.mask == 0 {
            return if field == 0 { Ok(false) } else { Err(LimitError::Infinite) };
        }
        let limit = ((field as u32) << self.scale.shift()) & self.mask;
        if limit.wrapping_sub(self.consumed) & self.mask > self.half() {
            return Err(LimitError::Range);
        }
        let moved = limit != self.limit;
        self.limit = limit;
        Ok(moved)
    }
}

/// The fault in the value of an UpdateFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitError {
    /// It was advertised as infinite.
    Infinite,
    /// More than half the counter's range, or less than what is consumed.
    Range,
}

/// CREDITS_ALLOCATED and CREDITS_RECEIVED of one class and kind, and the value that the peer was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receive {
    allocated: u32,
    granted: u32,
    received: u32,
    mask: u32,
    scale: Scale,
    /// `allocated` when an UpdateFC was last due. Batches begin here and not where the UpdateFC left: while it waits for the wire more is
    /// freed, and if that were of no batch, the last ones of a full buffer would wait for TLPs that they are to make room for.
    batch_from: u32,
    /// Freed credits that make an UpdateFC due are more than `initial / parts` with those of one more TLP.
    initial: u32,
    parts: u32,
    /// Credits of the TLP released last.
    step: u32,
    /// In the receive buffer: delivered and not released.
    held: u32,
    /// Part of `held` that arrived before the link went down: its release grants nothing.
    stale: u32,
}

impl Receive {
    pub(crate) const NONE: Self = Self {
        allocated: 0,
        granted: 0,
        received: 0,
        mask: 0,
        scale: Scale::Off,
        batch_from: 0,
        initial: 0,
        parts: 0,
        step: 0,
        held: 0,
        stale: 0,
    };

    /// Advertises `credits` from scratch. Credits still held are of TLPs that came over a link that is gone.
    pub(crate) fn advertise(&mut self, kind: CreditKind, credits: Credits, scaled: bool, batch: CreditBatch) {
        let held = self.held;
        *self = Self { held, stale: held, ..Self::NONE };
        let (scale, initial) = initial(kind, credits, scaled);
        self.scale = scale;
        if let Some(initial) = initial {
            self.mask = mask(kind, scale);
            self.allocated = initial;
            self.granted = initial;
            self.batch_from = initial;
            self.initial = initial;
            self.parts = match batch {
                CreditBatch::EachTlp => initial,
                CreditBatch::Part(parts) => parts.into(),
                CreditBatch::Unlimited => 0,
            };
        }
    }
    #[inline]
    pub(crate) const fn is_infinite(&self) -> bool {
        self.mask == 0
    }
    pub(crate) const fn scale(&self) -> Scale {
        self.scale
    }
    /// A TLP arrived; `false` is a receiver overflow: it had no credit.
    #[inline]
    pub(crate) const fn receive(&mut self, credits: u32) -> bool {
        self.held += credits;
        self.received = self.received.wrapping_add(credits) & self.mask;
        self.granted.wrapping_sub(self.received) & self.mask <= self.mask / 2
    }
    #[inline]
    pub(crate) fn release(&mut self, credits: u32) {
        debug_assert!(credits <= self.held, "released {credits} credits of {}", self.held);
        self.held = self.held.saturating_sub(credits);
        if credits > 0 {
            self.step = credits;
        }
        let stale = self.stale.min(credits);
        self.stale -= stale;
        self.allocated = self.allocated.wrapping_add(credits - stale) & self.mask;
    }
    /// True if an UpdateFC is due. `largest`: credits of the largest TLP, below which the peer may be blocked.
    #[inline]
    pub(crate) const fn wants_update(&self, largest: u32, unblock: bool) -> bool {
        let batch = self.allocated.wrapping_sub(self.batch_from) & self.mask;
        let peer_has = self.granted.wrapping_sub(self.received) & self.mask;
        self.has_news()
            && ((batch + self.step) * self.parts > self.initial || (unblock && peer_has < largest))
    }
    /// An UpdateFC is due: the next batch begins.
    #[inline]
    pub(crate) const fn begin_batch(&mut self) {
        self.batch_from = self.allocated;
    }
    /// True if an UpdateFC can say more than the last one.
    #[inline]
    pub(crate) const fn has_news(&self) -> bool {
        (self.allocated.wrapping_sub(self.granted) & self.mask) >> self.scale.shift() > 0
    }
    /// Everything allocated so far, for an UpdateFC: the peer counts it as granted, as far as the scale can say it.
    pub(crate) const fn grant(&mut self) -> u32 {
        self.granted = self.allocated >> self.scale.shift() << self.scale.shift();
        self.granted
    }
}

/// Scale and size of a first advertisement; `None` is infinite.
pub(crate) fn initial(kind: CreditKind, credits: Credits, scaled: bool) -> (Scale, Option<u32>) {
    let Credits::Finite(count) = credits else {
        return (if scaled { Scale::By1 } else { Scale::Off }, None);
    };
    let count = u32::from(count);
    let scale = if scaled { smallest(kind, count) } else { Scale::Off };
    (scale, Some(count.min(most(kind, scale)) >> scale.shift() << scale.shift()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use CreditKind::{Data, Header};

    #[test]
    fn the_limit_is_reached_exactly_and_wraps() {
        let mut tx = Transmit::granted(Header, Scale::By1, 3);
        let mut limit = 3u32;
        for _ in 0..1000 {
            assert!(tx.admits(1) && tx.admits(3) && !tx.admits(4));
            tx.consume(3);
            assert_eq!(tx.available(), Some(0));
            assert!(!tx.admits(1));
            limit += 3;
            assert_eq!(tx.update((limit & 255) as u16), Ok(true));
        }
        assert_eq!(tx.update((limit & 255) as u16), Ok(false));
    }

    #[test]
    fn the_largest_advertisement_of_each_scale_is_usable() {
        for (kind, scale, most) in [
            (Header, Scale::By1, 127),
            (Header, Scale::By4, 508),
            (Header, Scale::By16, 2032),
            (Data, Scale::By1, 2047),
            (Data, Scale::By4, 8188),
            (Data, Scale::By16, 32752),
        ] {
            assert_eq!(super::most(kind, scale), most);
            assert_eq!(smallest(kind, most), scale);
            let mut tx = Transmit::granted(kind, scale, (most >> scale.shift()) as u16);
            assert!(tx.admits(most) && !tx.admits(most + 1));
            tx.consume(most);
            assert_eq!(tx.update((((2 * most) & tx.mask) >> scale.shift()) as u16), Ok(true));
            assert_eq!(tx.available(), Some(most));
        }
    }

    #[test]
    fn infinite_never_blocks_and_refuses_a_value() {
        let mut tx = Transmit::granted(Data, Scale::By1, 0);
        for _ in 0..100 {
            assert!(tx.admits(256));
            tx.consume(256);
        }
        assert_eq!(tx.available(), None);
        assert_eq!(tx.update(0), Ok(false));
        assert_eq!(tx.update(7), Err(LimitError::Infinite));
    }

    #[test]
    fn an_update_may_not_take_back_nor_grant_more_than_half() {
        let mut tx = Transmit::granted(Header, Scale::By1, 10);
        tx.consume(5);
        assert_eq!(tx.update(4), Err(LimitError::Range));
        assert_eq!(tx.update(5 + 129), Err(LimitError::Range));
        assert_eq!(tx.update(5 + 128), Ok(true));
        assert_eq!(Transmit::NONE.available(), Some(0));
        assert!(!Transmit::NONE.admits(1));
    }

    /// A TLP without data between two with data does not make the next batch one TLP longer.
    #[test]
    fn a_tlp_without_data_does_not_lengthen_the_credit_batch() {
        let mut rx = Receive::NONE;
        rx.advertise(Data, Credits::Finite(8), false, CreditBatch::Part(2));
        assert!(rx.receive(3) && rx.receive(0));
        rx.release(3);
        assert!(rx.wants_update(1, false), "another 3 would be more than half");
        rx.release(0);
        assert!(rx.wants_update(1, false));
    }

    #[test]
    fn overflow_is_seen_and_a_batch_is_half() {
        let mut rx = Receive::NONE;
        rx.advertise(Header, Credits::Finite(5), false, CreditBatch::Part(2));
        for _ in 0..5 {
            assert!(rx.receive(1));
        }
        assert!(!rx.receive(1), "six TLPs on five credits");
        rx.advertise(Header, Credits::Finite(5), false, CreditBatch::Part(2));
        assert!(rx.receive(1) && rx.receive(1) && rx.receive(1));
        for due in [false, false, false, false, false, false] {
            rx.release(1);
            assert_eq!(rx.wants_update(1, true), due, "releases from before the reset grant nothing");
        }
        for due in [false, true, true] {
            rx.release(1);
            assert_eq!(rx.wants_update(1, true), due, "two of five are a batch");
        }
        assert_eq!(rx.grant(), 8);
        assert!(!rx.wants_update(1, true));
    }

    #[test]
    fn a_peer_that_may_be_blocked_hears_at_once() {
        let mut rx = Receive::NONE;
        rx.advertise(Data, Credits::Finite(100), false, CreditBatch::Part(2));
        for _ in 0..5 {
            assert!(rx.receive(16));
        }
        rx.release(16);
        assert!(rx.wants_update(32, true) && !rx.wants_update(32, false) && !rx.wants_update(16, true));
    }

    #[test]
    fn scaled_grants_are_rounded_down_to_the_unit() {
        let mut rx = Receive::NONE;
        rx.advertise(Data, Credits::Finite(8190), true, CreditBatch::Part(2));
        assert_eq!(rx.grant(), 8176);
        assert!(rx.receive(32));
        rx.release(32);
        assert_eq!(rx.grant(), 8208);
        rx.advertise(Data, Credits::Finite(8190), false, CreditBatch::Part(2));
        assert_eq!(rx.grant(), 2047, "capped where the link does not scale");
    }
}
