//! The clock by which a device takes timestamps.

use tlplab_units::{Duration, Time};

/// A counter of `hz` cycles per second whose timestamps count every `cycles_per_tick` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Cycles per second.
    pub hz: u64,
    /// Cycles from one timestamp to the next.
    pub cycles_per_tick: u32,
}

const FS_PER_SECOND: u128 = 1_000_000_000_000_000;

impl Clock {
    /// The timestamp at an instant: ticks since time 0, rounded down.
    pub fn ticks(&self, at: Time) -> u64 {
        (self.cycles(at) / u128::from(self.cycles_per_tick)) as u64
    }

    /// Cycles of so many ticks.
    pub fn cycles_of(&self, ticks: u64) -> u64 {
        ticks * u64::from(self.cycles_per_tick)
    }

    /// From one timestamp to the next, rounded down to a femtosecond.
    pub fn tick(&self) -> Duration {
        let fs = FS_PER_SECOND * u128::from(self.cycles_per_tick) / u128::from(self.hz);
        Duration::from_fs(fs as u64)
    }

    fn cycles(&self, at: Time) -> u128 {
        u128::from(at.as_fs()) * u128::from(self.hz) / FS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 cycles of 1.2 GHz are 40/3 ns: no whole number of femtoseconds, so that ticks would drift if they were added up.
    #[test]
    fn ticks_do_not_drift() {
        let clock = Clock { hz: 1_200_000_000, cycles_per_tick: 16 };
        let at = |fs| clock.ticks(Time::from_fs(fs));
        assert_eq!([at(0), at(13_333_333), at(13_333_334), at(26_666_667), at(40_000_000)], [0, 0, 1, 2, 3]);
        assert_eq!(at(40_000_000 * 1_000_000 - 1), 3_000_000 - 1);
        assert_eq!(at(40_000_000 * 1_000_000), 3_000_000);
        assert_eq!((clock.tick(), clock.cycles_of(35)), (Duration::from_fs(13_333_333), 560));
    }
}
