//! Wall time as the engines know it.

use std::time::{Instant, SystemTime};
use tlplab_units::{Duration, Time};

/// The interval at which the origin moves on: [`Time`] ends after 5.1 hours.
const LEAP: Duration = Duration::from_ms(3_600_000);

/// Time since an origin that moves.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Begins now, at the time that has passed since the last full hour: programs that run one after the other do not all begin at 0, so
    /// that time stamps tell their datagrams apart.
    pub fn start() -> Self {
        let now = Instant::now();
        let seconds = LEAP.as_ns() / 1_000_000_000;
        let hour = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(std::time::Duration::ZERO, |time| {
                std::time::Duration::new(time.as_secs() % seconds, time.subsec_nanos())
            });
        Self { origin: now.checked_sub(hour).unwrap_or(now) }
    }

    /// The present time. When an hour has passed since the origin, that moves, and everybody who keeps instants hears it by `rebase`.
    pub fn now(&mut self, mut rebase: impl FnMut(Duration)) -> Time {
        self.at(Instant::now(), &mut rebase)
    }

    fn at(&mut self, now: Instant, rebase: &mut impl FnMut(Duration)) -> Time {
        let leap = std::time::Duration::from_nanos(LEAP.as_ns());
        let mut since = now.saturating_duration_since(self.origin);
        while since >= leap {
            self.origin += leap;
            since -= leap;
            rebase(LEAP);
        }
        // Less than an hour: 3.6e12 ns, 3.6e18 fs.
        Time::from_fs(since.as_nanos() as u64 * 1_000_000)
    }

    /// The instant at which it will be `time`.
    pub fn instant(&self, time: Time) -> Instant {
        self.origin + std::time::Duration::from_nanos(time.as_fs().div_ceil(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration as Wall;

    #[test]
    fn days_pass() {
        let mut clock = Clock::start();
        let (mut moved, begin) = (Duration::from_ns(0), clock.origin);
        let mut last = 0;
        for minutes in (0..4 * 24 * 60).step_by(7) {
            let wall = begin + Wall::from_secs(minutes * 60);
            let mut hours = 0;
            let now = clock.at(wall, &mut |by| (moved, hours) = (by, hours + 1));
            assert!(now.as_fs() < LEAP.as_fs(), "after {minutes} minutes");
            assert_eq!(clock.instant(now), wall);
            last += hours;
        }
        assert_eq!((moved, last), (LEAP, 4 * 24 - 1));
    }
}
