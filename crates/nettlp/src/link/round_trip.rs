//! The round-trip time, and the retransmission timeout derived from it (RFC 6298, in integers).

use tlplab_units::Duration;

/// The shortest and the longest wait, and the wait before anything is known. The shortest is longer than an acknowledgement is put off, and
/// than a busy machine often lets a thread wait.
const SHORTEST: Duration = Duration::from_ms(1);
const LONGEST: Duration = Duration::from_ms(250);
const UNKNOWN: Duration = Duration::from_ms(20);

/// An estimate that follows what is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// SRTT and RTTVAR in femtoseconds; none before the first measurement.
    known: Option<(u64, u64)>,
    /// The number of times that the timeout has been doubled since the last answer.
    doubled: u32,
}

impl RoundTrip {
    /// A round trip took so long. Not to be told of what was sent twice: nobody knows which of the two was answered (Karn).
    pub(crate) fn measured(&mut self, trip: Duration) {
        let trip = trip.as_fs();
        let (smoothed, variation) = match self.known {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => {
                let error = smoothed.abs_diff(trip);
                (smoothed - smoothed / 8 + trip / 8, variation - variation / 4 + error / 4)
            }
        };
        self.known = Some((smoothed, variation));
    }

    /// Something new was acknowledged.
    pub(crate) fn heard(&mut self) {
        self.doubled = 0;
    }

    /// The wait was in vain: the next one is twice as long.
    pub(crate) fn in_vain(&mut self) {
        self.doubled = (self.doubled + 1).min(16);
    }

    /// Waits in vain since the last answer.
    pub(crate) fn waits_in_vain(&self) -> u32 {
        self.doubled
    }

    /// The wait for an acknowledgement before the TLP is sent again.
    pub(crate) fn limit(&self) -> Duration {
        let limit = match self.known {
            None => UNKNOWN.as_fs(),
            Some((smoothed, variation)) => smoothed.saturating_add(variation.saturating_mul(4)),
        };
        let limit = limit.clamp(SHORTEST.as_fs(), LONGEST.as_fs());
        Duration::from_fs((limit << self.doubled.min(8)).min(LONGEST.as_fs()))
    }

    /// The least age of a TLP that counts as lost when a later one has arrived.
    pub(crate) fn overdue(&self) -> Duration {
        let smoothed = self.known.map_or(UNKNOWN.as_fs(), |(smoothed, _)| smoothed);
        Duration::from_fs(smoothed.saturating_add(smoothed / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Duration {
        Duration::from_us(n)
    }

    /// By hand, after RFC 6298 section 2: 8 ms, then 16 ms.
    #[test]
    fn the_first_two_measurements() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.limit(), UNKNOWN);
        trip.measured(us(8000));
        assert_eq!(trip.limit(), us(8000 + 4 * 4000));
        trip.measured(us(16_000));
        // RTTVAR = 3/4 · 4 + 1/4 · 8 = 5 ms, SRTT = 7/8 · 8 + 1/8 · 16 = 9 ms.
        assert_eq!(trip.limit(), us(9000 + 4 * 5000));
        assert_eq!(trip.overdue(), us(9000 + 2250));
    }

    #[test]
    fn it_follows_and_backs_off() {
        let mut trip = RoundTrip::default();
        (0..100).for_each(|_| trip.measured(us(100_000)));
        assert!(trip.limit() >= us(99_000) && trip.limit() < us(110_000), "{}", trip.limit());
        (0..200).for_each(|_| trip.measured(us(2000)));
        assert!(trip.limit() > us(1990) && trip.limit() < us(2200), "{}", trip.limit());
        let before = trip.limit();
        trip.in_vain();
        assert_eq!(trip.limit().as_fs(), 2 * before.as_fs());
        (0..100).for_each(|_| trip.in_vain());
        assert_eq!(trip.limit(), LONGEST);
        trip.heard();
        assert_eq!(trip.limit(), before);
        (0..200).for_each(|_| trip.measured(us(20)));
        assert_eq!(trip.limit(), SHORTEST);
    }
}
