//! Simulated time: integer femtoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant: femtoseconds since the start of the run. Arithmetic panics on overflow (after 5.1 hours) rather than wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in femtoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The start of a run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `fs` femtoseconds after the start.
    pub const fn from_fs(fs: u64) -> Self {
        Self(fs)
    }
    /// Femtoseconds since the start.
    pub const fn as_fs(self) -> u64 {
        self.0
    }
    /// The same instant where the origin of time has moved on `by`; at the origin if it lies before that.
    pub const fn earlier(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.0))
    }
    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// `fs` femtoseconds.
    pub const fn from_fs(fs: u64) -> Self {
        Self(fs)
    }
    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps * 1_000)
    }
    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000_000)
    }
    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000_000)
    }
    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000_000)
    }
    /// Femtoseconds.
    pub const fn as_fs(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000_000
    }
    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// True if this is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

const TOO_LONG: &str = "simulated time is limited to 5.1 hours (2^64 femtoseconds)";

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.checked_add(d.0).expect(TOO_LONG))
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.checked_sub(d.0).expect("an instant before the start of the run"))
    }
}
impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("a span that ends before it starts"))
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.checked_add(d.0).expect(TOO_LONG))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, d: Self) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        Self(self.0.checked_sub(d.0).expect("a negative span"))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Self) {
        *self = *self - d;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.checked_mul(n).expect(TOO_LONG))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

/// Prints in the largest unit that keeps the number at 1 or more, exactly: `3.046875ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, digits) = match self.0 {
            0 => return f.write_str("0s"),
            1..1_000 => return write!(f, "{}fs", self.0),
            1_000..1_000_000 => ("ps", 3),
            1_000_000..1_000_000_000 => ("ns", 6),
            1_000_000_000..1_000_000_000_000 => ("us", 9),
            1_000_000_000_000..1_000_000_000_000_000 => ("ms", 12),
            _ => ("s", 15),
        };
        let one = 10u64.pow(digits);
        write!(f, "{}", self.0 / one)?;
        let mut fraction = self.0 % one;
        if fraction > 0 {
            let mut width = digits as usize;
            while fraction.is_multiple_of(10) {
                fraction /= 10;
                width -= 1;
            }
            write!(f, ".{fraction:0width$}")?;
        }
        f.write_str(unit)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER { f.write_str("never") } else { Duration(self.0).fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn prints_exactly() {
        for (fs, text) in [
            (0, "0s"),
            (999, "999fs"),
            (3_046_875, "3.046875ns"),
            (176_000_000, "176ns"),
            (200_000_000_000, "200us"),
            (1_500_000_000_000, "1.5ms"),
        ] {
            assert_eq!(Duration(fs).to_string(), text);
        }
    }

    #[test]
    #[should_panic(expected = "5.1 hours")]
    fn overflow_is_loud() {
        let _ = Time::from_fs(u64::MAX - 1) + Duration::from_fs(2);
    }
}
