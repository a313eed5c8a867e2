//! The policies that decide how many DLLPs share the wire with the TLPs.

use crate::link::Link;
use tlplab_units::{Generation, Mps, Width};

/// One end of a link as a receiver: when it acknowledges, and when it returns credits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiver {
    /// An Ack is due this many seconds after the first TLP that the one before did not cover.
    pub ack_latency: f64,
    /// Or when so many TLPs wait for one.
    pub ack_every: Option<f64>,
    /// Buffers for posted, non-posted and completion; `None` if infinite, which need no UpdateFC.
    pub buffers: [Option<Buffer>; 3],
    /// An UpdateFC is due when one part in so many of the advertised headers or data is free again, rounded down to whole TLPs.
    pub batches: f64,
    /// Every finite class sends an UpdateFC at least this often, in seconds; `None` for never.
    pub refresh: Option<f64>,
}

/// Credits advertised for a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// TLPs; infinite if `None`.
    pub headers: Option<f64>,
    /// Units of 16 bytes of payload; infinite if `None`.
    pub data: Option<f64>,
}

impl Receiver {
    /// The specification's limits: Acks as late as allowed, UpdateFC when an eighth is free and every 30 µs, finite buffers of `headers`
    /// TLPs and `data` units of 16 bytes for every class that has one.
    pub fn new(link: &Link, mps: Mps, headers: f64, data: f64, infinite_completions: bool) -> Self {
        let buffer = Some(Buffer { headers: Some(headers), data: Some(data) });
        Self {
            ack_latency: ack_latency_symbols(link.generation, link.width, mps) / link.symbol_rate(),
            ack_every: None,
            buffers: [buffer, buffer, if infinite_completions { None } else { buffer }],
            batches: 8.0,
            refresh: Some(30e-6),
        }
    }
}

/// The longest an Ack may wait, in symbol times (PCIe 3.0 §3.5.3.1): ((MPS + 28) · AckFactor) / width + internal delay, rounded down.
pub fn ack_latency_symbols(generation: Generation, width: Width, mps: Mps) -> f64 {
    let internal_delay = match generation {
        Generation::Gen1 => 19.0,
        Generation::Gen2 => 70.0,
        Generation::Gen3 | Generation::Gen4 | Generation::Gen5 | Generation::Gen6 | Generation::Gen7 => 115.0,
    };
    let factor = match (mps.bytes(), width.lanes()) {
        (128 | 256, 1..=4) => 1.4,
        (128 | 256, 8) => 2.5,
        (128 | 256, _) => 3.0,
        (_, 1..=8) => 1.0,
        (_, _) => 2.0,
    };
    ((f64::from(mps.bytes()) + 28.0) * factor / f64::from(width.lanes()) + 1e-9).floor() + internal_delay
}

/// A stream of TLPs that arrives at a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrivals {
    /// TLPs per second.
    pub(crate) rate: f64,
    /// TLPs that come together: only the gap to the next group counts.
    pub(crate) group: f64,
    /// Payload of a TLP in bytes.
    pub(crate) payload: f64,
    /// Class: 0 posted, 1 non-posted, 2 completion.
    pub(crate) class: usize,
}

/// The wire that an Ack has to wait for, while it is busy. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Busy {
    /// Length of the units on it; if they differ, that of one met at random: ∑c²/∑c.
    pub(crate) unit: f64,
    /// They differ.
    pub(crate) mixed: bool,
    /// Length of the Ack.
    pub(crate) ack: f64,
    /// Arrivals keep step with the units, because they are caused by them; `None`: they fall anywhere.
    pub(crate) step: Option<Step>,
}

/// The synchronisation of arrivals with the units on a wire. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// From the end of a pattern to the arrival that it causes.
    pub(crate) after: f64,
    /// Lengths of the units that follow each other again and again; the second may be 0.
    pub(crate) pattern: [f64; 2],
    /// Patterns from arrival to arrival.
    pub(crate) patterns: f64,
}

impl Step {
    /// From an arrival to the first end of a unit that is at least `due` later.
    fn wait(&self, due: f64) -> f64 {
        let [first, second] = self.pattern;
        let period = first + second;
        let target = self.after % period + due - 1e-9 * period;
        let before = (target / period).floor() * period;
        let ends = [before, before + first, before + period];
        let end = ends.into_iter().find(|end| *end >= target).unwrap_or(before + period);
        end - self.after % period
    }

    /// Arrivals that an Ack covers. (DLLPs stretch the pattern, and the gaps between arrivals with it.)
    fn covered(&self, due: f64) -> f64 {
        let gap = self.patterns * (self.pattern[0] + self.pattern[1]);
        (self.wait(due) / gap + 1e-9).floor() + 1.0
    }
}

impl Busy {
    /// A wire that is idle whenever an Ack is due.
    pub(crate) const IDLE: Self = Self { unit: 0.0, mixed: false, ack: 0.0, step: None };
}

/// Mean of ⌊x⌋ for x between `from` and `to`.
fn mean_floor(from: f64, to: f64) -> f64 {
    if to <= from {
        return from.floor();
    }
    let area = |x: f64| x.floor() * (x.floor() - 1.0) / 2.0 + x.floor() * (x - x.floor());
    (area(to) - area(from)) / (to - from)
}

impl Receiver {
    /// Acks per second for these arrivals, sent on `wire`.
    ///
    /// The timer starts with the first uncovered arrival; at its end the unit under way is waited for; the Ack covers all that has
    /// arrived. With arrivals every `gap`, an Ack that starts `t` after the first covers ⌊t / gap⌋ + 1 of them.
    pub(crate) fn acks(&self, arrivals: &[Arrivals], wire: Busy) -> f64 {
        let rate: f64 = arrivals.iter().map(|stream| stream.rate).sum();
        if rate <= 0.0 {
            return 0.0;
        }
        let groups: f64 = arrivals.iter().map(|stream| stream.rate / stream.group).sum();
        let (gap, tlps) = (1.0 / groups, rate / groups);
        let every = self.ack_every.map_or(f64::INFINITY, |every| ((every - 1.0) / tlps).floor() * gap);
        let due = self.ack_latency.min(every);
        if due.is_infinite() {
            return 0.0;
        }
        let Busy { unit, mixed, ack, step } = wire;
        let period = match step {
            Some(step) => gap * step.covered(due),
            // Arrivals are dense: units follow the Ack at once, and the first arrival comes anywhere within the gap.
            _ if unit > 0.0 && !mixed && gap < 0.95 * unit => {
                let (from, to) = ((due - ack) / unit, (due + gap - ack) / unit);
                ack + unit * (mean_floor(from, to) + 1.0).max(0.0)
            }
            // The remainder of a unit met at random is half of it.
            _ if mixed && gap < due => due + (unit + gap) / 2.0,
            // Arrivals are sparse: the end of the timer falls anywhere within a unit.
            _ => gap * (mean_floor(due / gap, (due + unit) / gap) + 1.0),
        };
        1.0 / period
    }

    /// UpdateFCs per second for these arrivals, each freed as it comes, and for the classes nothing arrives in.
    pub(crate) fn updates(&self, arrivals: &[Arrivals]) -> f64 {
        let of_class = |class: usize| {
            let Some(buffer) = self.buffers[class] else { return 0.0 };
            let refresh = self.refresh.map_or(0.0, |interval| 1.0 / interval);
            let Some(stream) = arrivals.iter().find(|stream| stream.class == class) else { return refresh };
            let units = (stream.payload / 16.0).ceil();
            let headers = buffer.headers.map_or(f64::INFINITY, |credits| (credits / self.batches).floor());
            let data = match buffer.data {
                Some(credits) if units > 0.0 => (credits / (self.batches * units)).floor(),
                _ => f64::INFINITY,
            };
            (stream.rate / headers.min(data).max(1.0)).max(refresh)
        };
        (0..3).map(of_class).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wire that is never idle sends units of `unit`, and an Ack of 8 first when one is due at the end of a unit.
    fn simulate(latency: f64, gap: f64, unit: f64) -> f64 {
        let (mut now, mut first, mut count) = (0.0, 0.0, 0u32);
        while now < 200_000.0 * gap {
            if now >= first + latency {
                count += 1;
                first = gap * ((now / gap).floor() + 1.0);
                now += 8.0;
            } else {
                now += unit;
            }
        }
        f64::from(count) / now
    }

    #[test]
    fn ack_rate_agrees_with_a_simulation_of_the_rule() {
        for (latency, gap, unit) in [
            (100.0, 7.123, 276.0),
            (1711.0, 552.37, 276.0),
            (1711.0, 24.71, 536.0),
            (900.0, 1471.3, 84.0),
            (520.0, 304.9, 304.1),
            (4000.0, 610.1, 84.0),
        ] {
            let buffers = [None; 3];
            let receiver =
                Receiver { ack_latency: latency, ack_every: None, buffers, batches: 2.0, refresh: None };
            let arrivals = Arrivals { rate: 1.0 / gap, group: 1.0, payload: 0.0, class: 1 };
            let wire = Busy { unit, mixed: false, ack: 8.0, step: None };
            let (ours, simulated) = (receiver.acks(&[arrivals], wire), simulate(latency, gap, unit));
            let share = 8.0 * (ours - simulated).abs();
            assert!(share < 0.0003, "{latency} {gap} {unit}: {ours} {simulated}");
        }
    }

    #[test]
    fn acks_by_hand() {
        let receiver =
            Receiver { ack_latency: 655.0, ack_every: None, buffers: [None; 3], batches: 2.0, refresh: None };
        let acks = |receiver: Receiver, gap: f64, wire| {
            1.0 / receiver.acks(&[Arrivals { rate: 1.0 / gap, group: 1.0, payload: 0.0, class: 1 }], wire)
        };
        // An idle wire: the Ack leaves 655 after the first of arrivals every 200; those at 200, 400 and 600 are covered, too.
        assert_eq!(acks(receiver, 200.0, Busy::IDLE).round(), 800.0);
        // Each arrival has an Ack of its own.
        assert_eq!(acks(receiver, 1000.0, Busy::IDLE).round(), 1000.0);
        // Arrivals 24 after the end of each unit of 532: due at 679, next end 1064, 1040 after the arrival: one more is covered.
        let locked = Busy {
            unit: 532.0,
            mixed: false,
            ack: 8.0,
            step: Some(Step { after: 24.0, pattern: [532.0, 0.0], patterns: 1.0 }),
        };
        assert_eq!(acks(receiver, 532.0, locked).round(), 1064.0);
        // Units of 536 and 24 in turn, arrivals 532 after each pair: due at 1187, next end 1656, so 1124 after the arrival.
        let pair = Step { after: 532.0, pattern: [536.0, 24.0], patterns: 1.0 };
        assert_eq!((pair.wait(655.0).round(), pair.covered(655.0)), (1124.0, 3.0));
        let every = Receiver { ack_every: Some(3.0), ..receiver };
        assert_eq!(acks(every, 100.0, Busy::IDLE).round(), 300.0);
    }

    #[test]
    fn update_rates_by_hand() {
        let buffer = |headers, data| Some(Buffer { headers: Some(headers), data: Some(data) });
        let buffers = [buffer(127.0, 2047.0), buffer(32.0, 8.0), None];
        let receiver =
            Receiver { ack_latency: 0.0, ack_every: Some(1.0), buffers, batches: 2.0, refresh: Some(1.0) };
        let arrivals = |class, payload| Arrivals { rate: 6400.0, group: 1.0, payload, class };
        // 63 headers come before 1023 units of 16 bytes, and 31 TLPs of 32 units before those; reads: 16 headers; a refresh for what is
        // unused; nothing if infinite.
        assert_eq!(receiver.updates(&[arrivals(0, 128.0)]), 6400.0 / 63.0 + 1.0);
        assert_eq!(receiver.updates(&[arrivals(0, 512.0)]), 6400.0 / 31.0 + 1.0);
        assert_eq!(receiver.updates(&[arrivals(1, 0.0)]), 400.0 + 1.0);
        assert_eq!(receiver.updates(&[arrivals(2, 256.0)]), 2.0);
        assert_eq!(receiver.acks(&[arrivals(0, 128.0)], Busy::IDLE), 6400.0);
    }
}
