//! The limit on datagrams of one peer that are processed.

use tlplab_units::{Duration, Time};

/// So many datagrams in a second, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Datagrams per second, at least 1.
    pub per_second: u64,
    /// Datagrams at once, at least 1.
    pub burst: u32,
}

impl Default for RateLimit {
    /// A million in a second, more than a device in software sends; 4096 at once.
    fn default() -> Self {
        Self { per_second: 1_000_000, burst: 4096 }
    }
}

/// A token bucket, kept as one instant: when it would be full again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    full_at: Time,
    /// The time of one token.
    token: Duration,
    /// The time from empty to full.
    depth: Duration,
}

impl Bucket {
    pub(super) fn new(limit: RateLimit) -> Self {
        let token = Duration::from_fs(1_000_000_000_000_000 / limit.per_second.max(1));
        let depth = Duration::from_fs(token.as_fs().saturating_mul(limit.burst.max(1).into()));
        Self { full_at: Time::ZERO, token, depth }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let full_at = self.full_at.max(now) + self.token;
        let admitted = full_at.saturating_since(now) <= self.depth;
        if admitted {
            self.full_at = full_at;
        }
        admitted
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.full_at = self.full_at.earlier(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::new(RateLimit { per_second: 1000, burst: 3 });
        let ms = |n| Time::ZERO + Duration::from_ms(n);
        let admitted = |bucket: &mut Bucket, at, n| (0..n).filter(|_| bucket.take(at)).count();
        assert_eq!(admitted(&mut bucket, ms(0), 10), 3);
        assert_eq!(admitted(&mut bucket, ms(1), 10), 1);
        assert_eq!(admitted(&mut bucket, ms(3), 10), 2);
        bucket.rebase(Duration::from_ms(3));
        assert_eq!(admitted(&mut bucket, ms(0), 10), 0);
        // A pause fills it to its depth and no further.
        assert_eq!(admitted(&mut bucket, ms(1000), 10), 3);
    }
}
