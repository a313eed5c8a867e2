//! One direction of a link's physical side: serialisation, ordered sets, flight, and the faults wrapped around it.

use crate::config::{Damage, SkpPolicy};
use crate::link::channel_model::{CustomChannel, Passage};
use crate::link::fault::Faults;
use std::collections::VecDeque;
use tlplab_datalink::{Integrity, OrderedSets, Unit};
use tlplab_units::{Duration, LinkRate, Time, link::Encoding};

/// A unit on its way to the receiver.
#[derive(Clone)]
pub(crate) struct InFlight<H> {
    pub(crate) unit: Unit<H>,
    pub(crate) integrity: Integrity,
    pub(crate) arrives: Time,
    /// Time its own bytes take on the wire.
    pub(crate) on_wire: Duration,
    /// So much longer than others it travels.
    pub(crate) late: Duration,
    /// A switch has begun to forward it.
    pub(crate) forwarded: bool,
}

/// The time of the bytes of a unit on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireTime {
    pub(crate) starts: Time,
    pub(crate) ends: Time,
}

#[derive(Clone)]
pub(crate) struct Channel<H> {
    rate: LinkRate,
    pub(crate) flight: Duration,
    /// From the last byte on the wire to the peer's data link layer: the flight, and what stages add.
    pub(crate) delay: Duration,
    skp: Option<Skp>,
    wire_free: Time,
    faults: Faults,
    in_flight: VecDeque<InFlight<H>>,
    /// The arrival of the latest unit.
    last_arrives: Time,
    /// A custom model, which decides about each unit after the faults.
    pub(crate) own: Option<CustomChannel>,
}

impl<H> Channel<H> {
    pub(crate) fn new(
        rate: LinkRate,
        encoding: Encoding,
        flight: Duration,
        skp: SkpPolicy,
        faults: Faults,
    ) -> Self {
        let skp = ordered_sets(rate, encoding, skp).map(Skp::new);
        Self {
            rate,
            flight,
            delay: flight,
            skp,
            wire_free: Time::ZERO,
            faults,
            in_flight: VecDeque::new(),
            last_arrives: Time::ZERO,
            own: None,
        }
    }

    pub(crate) fn rate(&self) -> LinkRate {
        self.rate
    }

    /// The link has other lanes. Ordered sets go over all of them at once and keep their times.
    pub(crate) fn set_rate(&mut self, rate: LinkRate) {
        self.rate = rate;
    }

    /// The number of units that each fault has hit, by its place among those of the link.
    pub(crate) fn struck(&self) -> impl Iterator<Item = (usize, u64)> {
        self.faults.struck()
    }

    /// The wire is free from here on (after ordered sets that are due).
    pub(crate) fn occupy(&mut self, now: Time, bytes: u32) -> WireTime {
        debug_assert!(now >= self.wire_free);
        let starts = match &mut self.skp {
            Some(skp) => skp.delay(self.wire_free, now),
            None => now,
        };
        let ends = starts + self.rate.time_of(u64::from(bytes));
        self.wire_free = ends;
        WireTime { starts, ends }
    }

    /// True if a refresh of credits on this wire may tell the other end something, or counts for a fault.
    pub(crate) fn concerns_refreshes(&self) -> bool {
        self.own.is_some() || self.faults.concern_refreshes()
    }

    /// Applies the faults to a unit; `name` is a TLP's.
    pub(crate) fn strike(&mut self, unit: &mut Unit<H>, name: Option<&'static str>) -> Option<Damage> {
        self.faults.strike(unit, name)
    }

    /// So much later than after the delay a unit is there that is to be late: none overtakes the one before it, nor comes faster than the wire carries.
    #[cold]
    pub(crate) fn lateness(&mut self, wire: WireTime, passage: Passage) -> Duration {
        let by = if let Passage::Late(by) = passage { by } else { Duration::ZERO };
        let usual = wire.ends + self.delay;
        let arrives = (usual + by).max(self.last_arrives + (wire.ends - wire.starts));
        self.last_arrives = arrives;
        arrives - usual
    }

    /// Puts a unit on its way; false if a fault swallowed it.
    pub(crate) fn launch(
        &mut self,
        unit: Unit<H>,
        wire: WireTime,
        damage: Option<Damage>,
        late: Duration,
    ) -> bool {
        let integrity = match damage {
            None => Integrity::Good,
            Some(Damage::Corrupt) => Integrity::Bad,
            Some(Damage::Drop) => return false,
        };
        let (arrives, on_wire) = (wire.ends + self.delay + late, wire.ends - wire.starts);
        self.in_flight.push_back(InFlight { unit, integrity, arrives, on_wire, late, forwarded: false });
        true
    }

    pub(crate) fn first_in_flight(&mut self) -> Option<&mut InFlight<H>> {
        self.in_flight.front_mut()
    }

    /// True if nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(crate) fn arrive(&mut self, now: Time) -> Option<InFlight<H>> {
        // A link that went down took what was in flight with it; its arrival events find nothing or something later.
        if self.in_flight.front()?.arrives == now { self.in_flight.pop_front() } else { None }
    }

    /// The link goes down: everything in flight is lost.
    pub(crate) fn cut(&mut self, now: Time) -> impl Iterator<Item = InFlight<H>> {
        (self.wire_free, self.last_arrives) = (now, now);
        self.in_flight.drain(..)
    }

    /// Total time ordered sets have had the wire until `now`.
    pub(crate) fn ordered_set_time(&mut self, now: Time) -> Duration {
        match &mut self.skp {
            Some(skp) => {
                if now >= self.wire_free {
                    skp.delay(self.wire_free, now);
                }
                skp.sent * skp.count
            }
            None => Duration::ZERO,
        }
    }
}

/// The ordered sets on a wire by a policy.
pub(crate) fn ordered_sets(rate: LinkRate, encoding: Encoding, policy: SkpPolicy) -> Option<OrderedSets> {
    let (length, interval) = match (policy, encoding) {
        (SkpPolicy::Off, _) => return None,
        (SkpPolicy::Custom { length, interval }, _) => (u64::from(length), u64::from(interval)),
        // PCIe 5.0 §4.2.7.3: every 1180 to 1538 symbol times; COM and three SKP.
        (_, Encoding::B8b10b) => (4, 1538),
        // PCIe 5.0 §4.2.7.3: every 370 to 375 blocks of 16 symbols; the ordered set is a block.
        (_, Encoding::B128b130b) => (16, 376 * 16),
        // 1b/1b ordered sets replace whole flits at intervals that depend on clocking; the published budgets leave them out.
        (_, Encoding::B1b1b) => return None,
    };
    Some(OrderedSets { length: rate.symbol_times(length), interval: rate.symbol_times(interval) })
}

/// SKP ordered sets: due at a fixed interval, sent when the wire is free, never dropped.
#[derive(Clone)]
struct Skp {
    sent: Duration,
    interval: Duration,
    due: Time,
    count: u64,
}

impl Skp {
    fn new(sets: OrderedSets) -> Self {
        let OrderedSets { length, interval } = sets;
        Self { sent: length, interval, due: Time::ZERO + interval, count: 0 }
    }

    /// Sends what is due on a wire that is free since `free`; returns from when on it is free for a packet that waits at `now`.
    fn delay(&mut self, free: Time, now: Time) -> Time {
        if self.due > now {
            return now;
        }
        let count = (now - self.due).as_fs() / self.interval.as_fs() + 1;
        // Those that became due while a unit was on the wire follow it, one after the other.
        let waited = match free >= self.due {
            true => (free - self.due).as_fs() / self.interval.as_fs() + 1,
            false => 0,
        };
        // On a wire idle for long, all others but the last have gone without disturbing anybody.
        let mut end = free + self.sent * waited;
        if count > waited {
            end = end.max(self.due + self.interval * (count - 1)) + self.sent;
        }
        self.count += count;
        self.due += self.interval * count;
        now.max(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_units::{Generation, Width};

    fn skp(generation: Generation) -> Skp {
        let rate = LinkRate::new(generation, Width::new(1).unwrap());
        Skp::new(ordered_sets(rate, generation.encoding(), SkpPolicy::Standard).unwrap())
    }

    #[test]
    fn skp_takes_one_block_in_376() {
        let mut skp = skp(Generation::Gen3);
        let packet = Duration::from_ns(100);
        let mut now = Time::ZERO;
        let mut packets = 0u64;
        while now < Time::from_fs(10_000_000_000_000) {
            let start = skp.delay(now, now);
            now = start + packet;
            packets += 1;
        }
        let share = packets * packet.as_fs() * 376 / now.as_fs();
        assert_eq!(share, 375, "375/376 of the time carries packets");
    }

    #[test]
    fn all_that_became_due_under_a_long_packet_follow_it() {
        let mut skp = skp(Generation::Gen1);
        let (symbol, packet) = (Duration::from_ns(4), Duration::from_ns(4 * 4120));
        let (mut now, mut packets) = (Time::ZERO, 0u64);
        while packets < 10_000 {
            now = skp.delay(now, now) + packet;
            packets += 1;
        }
        // 4 of 1538 symbols, however long the packets are.
        let symbols = (now - Time::ZERO).as_fs() / symbol.as_fs();
        assert!((packets * 4120 * 1538).abs_diff(symbols * 1534) < 5 * 4120 * 1538, "{symbols}");
        assert_eq!(skp.count, (symbols - 4120) / 1538);
    }

    #[test]
    fn an_idle_wire_sends_skp_ordered_sets_without_delay() {
        let mut skp = skp(Generation::Gen1);
        let interval = Duration::from_ns(4 * 1538);
        let now = Time::ZERO + interval * 1000 + Duration::from_ns(100);
        assert_eq!(skp.delay(Time::ZERO, now), now);
        assert_eq!(skp.count, 1000);
        let collides = Time::ZERO + interval * 1001 + Duration::from_ns(5);
        assert_eq!(skp.delay(now, collides) - collides, Duration::from_ns(11));
    }
}
