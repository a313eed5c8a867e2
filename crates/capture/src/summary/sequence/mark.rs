//! A numbered datagram, and how two of them lie to each other.

use tlplab_wire::nettlp::Header;

/// Ticks of a sender's clock, of 6.4 ns, in a second.
pub(super) const SECOND: i64 = 156_250_000;
/// After so many the time stamp begins again.
const ROUND: i64 = 1 << 32;
/// The drift of two clocks between two datagrams that still count as of one clock: delays on a busy machine, …
const APART: i64 = SECOND;
/// … and one part in so many of the time that passed.
pub(super) const DRIFT: i64 = 50;

/// A datagram that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its number, continued beyond 16 bits by whoever counts.
    pub(super) number: u64,
    pub(super) stamp: u32,
    /// The time of its capture, in ticks.
    pub(super) at: i64,
}

impl Mark {
    /// A datagram captured at `fs`, whose number is known by its last 16 bits.
    pub(super) fn new(header: Header, fs: i128) -> Self {
        // Ticks since 1970 are 58 bits.
        let at = (fs / i128::from(Header::TICK.as_fs())) as i64;
        Self { number: header.sequence.into(), stamp: header.timestamp, at }
    }

    /// The 16 bits that the datagram has.
    pub(super) const fn sequence(self) -> u16 {
        self.number as u16
    }

    /// Ticks that passed on the sender's clock until `later` was stamped: its stamp tells them but for whole rounds of 27.5 s, which the times of
    /// capture decide.
    pub(super) const fn until(self, later: Self) -> i64 {
        let (told, captured) = (later.stamp.wrapping_sub(self.stamp) as i64, later.at - self.at);
        told + (captured - told + ROUND / 2).div_euclid(ROUND) * ROUND
    }

    /// By how much more time passed on the sender's clock than on that of the capture.
    pub(super) const fn shift(self, later: Self) -> i64 {
        self.until(later) - (later.at - self.at)
    }

    /// True if both may be stamped by one clock.
    pub(super) const fn agrees(self, later: Self) -> bool {
        self.shift(later).abs() <= APART + (later.at - self.at).abs() / DRIFT
    }
}
