//! The time at which the host accepts a request of a device: it may be asleep, it may stall, and it may limit the rate of posted writes.
//!
//! Hosts that save power fall asleep while devices leave them alone. How long they take to wake depends on how long that was; now and then
//! they are away for much longer, which is an event in time: however many requests come meanwhile, all wait for the same end. Neither
//! happens while reads are under way, so a device that keeps the host busy sees nothing of it. Posted writes neither wake the host nor
//! wait for it: on the measured host that sleeps, a write and a read behind it take as much longer as the read alone. No request passes
//! another here.

use super::jitter::Jitter;
use crate::config::{HostConfig, StallConfig};
use crate::packet::attribution::Place;
use tlplab_device::Random;
use tlplab_units::{Duration, Time};

/// The conditions that hold requests back before they are translated.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) place: Place,
    sleep: Option<Sleep>,
    stall: Option<Stall>,
    write_interval: Duration,
    /// As long after it went on a request is under way at least.
    served: Duration,
    /// The time at which the last request so far is accepted.
    last: Time,
    /// Until then the host has something to do.
    busy: Time,
    /// Before that no posted write goes on.
    next_write: Time,
}

/// The wait of the first read after a pause.
#[derive(Clone, Debug)]
struct Sleep {
    doze_after: Duration,
    after: Duration,
    wake: Option<Jitter>,
    doze: Option<Jitter>,
}

/// The stalls of the host.
#[derive(Clone, Debug)]
struct Stall {
    config: StallConfig,
    /// The next one is due.
    next: Time,
    random: Random,
}

impl Gate {
    /// The gate of a host; `None` if it has none.
    pub(super) fn new(host: &HostConfig, seed: u64, place: Place) -> Option<Self> {
        let stream = |purpose| Random::keyed(seed, &host.name, purpose);
        let sleep = host.sleep.as_ref().map(|config| Sleep {
            doze_after: config.doze_after,
            after: config.after,
            wake: Jitter::new(&config.wake, stream("wake")),
            doze: Jitter::new(&config.doze, stream("doze")),
        });
        let stall = host.stall.map(|config| Stall::new(config, stream("stall")));
        (sleep.is_some() || stall.is_some() || !host.write_interval.is_zero()).then(|| Self {
            place,
            sleep,
            stall,
            write_interval: host.write_interval,
            served: host.latency + host.memory.latency,
            last: Time::ZERO,
            busy: Time::ZERO,
            next_write: Time::ZERO,
        })
    }

    /// A request comes: when it goes on, and whether nothing is before it at this moment.
    pub(super) fn passes(&mut self, now: Time, posted: bool) -> (Time, bool) {
        let alone = self.last < now;
        let mut goes = now.max(self.last);
        if posted {
            goes = goes.max(self.next_write);
            self.next_write = goes + self.write_interval;
        } else if alone {
            goes = self.awake(now);
        }
        self.last = goes;
        (goes, alone && goes == now)
    }

    /// The request that was let on last goes on to memory, translated.
    pub(super) fn goes_on(&mut self, at: Time, posted: bool) {
        if !posted {
            self.busy = self.busy.max(at + self.served);
        }
    }

    /// The answer to a request leaves.
    pub(super) fn answers(&mut self, now: Time) {
        self.busy = self.busy.max(now);
    }

    /// The time at which the host serves a read that comes now, behind no other request.
    fn awake(&mut self, now: Time) -> Time {
        let idle_from = self.busy + self.sleep.as_ref().map_or(Duration::ZERO, |sleep| sleep.doze_after);
        if now <= idle_from {
            return now;
        }
        if let Some(end) = self.stall.as_mut().and_then(|stall| stall.end(now, idle_from)) {
            return end;
        }
        let Some(sleep) = &mut self.sleep else { return now };
        let deep = now - self.busy > sleep.after;
        let wait = if deep { &mut sleep.wake } else { &mut sleep.doze };
        now + wait.as_mut().map_or(Duration::ZERO, Jitter::draw)
    }
}

impl Stall {
    fn new(config: StallConfig, mut random: Random) -> Self {
        let next = Time::ZERO + Duration::from_fs(random.below(config.every.as_fs()));
        Self { config, next, random }
    }

    /// The end of the stall that a request meets which comes now, where the host has been idle for a while.
    fn end(&mut self, now: Time, idle_from: Time) -> Option<Time> {
        let begins = self.next.max(idle_from);
        if begins >= now {
            return None;
        }
        let (end, every) = (begins + self.config.lasts, self.config.every);
        if end > now {
            self.next = end + every / 2 + Duration::from_fs(self.random.below(every.as_fs()));
            return Some(end);
        }
        // It passed, perhaps with others behind it, and nothing came to see it.
        self.next = now + Duration::from_fs(self.random.below(every.as_fs()));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SleepConfig, WHOLE};

    fn at(ns: u64) -> Time {
        Time::ZERO + Duration::from_ns(ns)
    }

    fn always(ns: u64) -> Vec<(u32, Duration)> {
        vec![(0, Duration::from_ns(ns)), (WHOLE, Duration::from_ns(ns))]
    }

    fn gate(host: HostConfig) -> Gate {
        let latency = Duration::from_ns(100);
        Gate::new(&HostConfig { latency, ..host }, 1, Place(0)).unwrap()
    }

    /// A request is served 200 ns after it went on; the host dozes 100 ns later, and sleeps 300 ns later.
    #[test]
    fn the_longer_the_pause_the_longer_the_wait() {
        let sleep = SleepConfig {
            after: Duration::from_ns(300),
            wake: always(700),
            doze_after: Duration::from_ns(100),
            doze: always(50),
        };
        let mut gate = gate(HostConfig {
            sleep: Some(sleep),
            memory: crate::config::MemoryConfig { latency: Duration::from_ns(100), ..Default::default() },
            ..HostConfig::default()
        });
        let cases = [
            (1000, 1700), // asleep
            (1200, 1700), // behind it
            (2000, 2000), // served since 1900, awake
            (2301, 2351), // it dozes since 2300
            (2851, 2901), // 300 ns after the last was served
            (3402, 4102), // 301 ns: asleep
        ];
        for (now, goes) in cases {
            assert_eq!(gate.passes(at(now), false), (at(goes), now == goes), "at {now} ns");
            gate.goes_on(at(goes), false);
        }
        // Its answer took longer to leave.
        gate.answers(at(5000));
        assert_eq!(gate.passes(at(5100), false), (at(5100), true));
        gate.goes_on(at(5100), false);
        // A write neither wakes nor waits.
        assert_eq!(gate.passes(at(6000), true), (at(6000), true));
        gate.goes_on(at(6000), true);
        assert_eq!(gate.passes(at(6001), false).0, at(6701));
    }

    /// A stall is in time: what comes in it waits for its end, whatever comes; under load it never begins.
    #[test]
    fn a_stall_is_met_once_and_not_under_load() {
        let stall = StallConfig { every: Duration::from_us(100), lasts: Duration::from_us(20) };
        let host = HostConfig { stall: Some(stall), ..HostConfig::default() };
        // One request at a time, each 1 us after the one before was answered, for a second.
        let (mut one, mut now, mut waits) = (gate(host.clone()), at(0), Vec::new());
        while now < at(1_000_000_000) {
            let (goes, _) = one.passes(now, false);
            one.goes_on(goes, false);
            if goes > now {
                waits.push(goes - now);
            }
            now = goes + Duration::from_us(1);
        }
        let count = waits.len() as u64;
        assert!((8000..=8700).contains(&count), "{count} stalls in a second, of 120 us each with the pause");
        assert!(waits.iter().all(|wait| (19_000..=20_000).contains(&wait.as_ns())));
        // A request each 90 ns, before the one before is served.
        let mut busy = gate(host);
        assert!((1..100_000).all(|n| {
            let (goes, at_once) = busy.passes(at(90 * n), false);
            busy.goes_on(goes, false);
            at_once
        }));
    }

    #[test]
    fn posted_writes_keep_their_distance_and_reads_behind_them_their_place() {
        let write_interval = Duration::from_ns(28);
        let mut gate = gate(HostConfig { write_interval, ..HostConfig::default() });
        let cases = [(10, true, 10), (12, true, 38), (14, false, 38), (15, true, 66), (100, false, 100)];
        for (now, posted, goes) in cases {
            assert_eq!(gate.passes(at(now), posted).0, at(goes), "at {now} ns");
        }
        assert!(Gate::new(&HostConfig::default(), 1, Place(0)).is_none());
    }
}
