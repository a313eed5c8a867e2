//! Sequence numbers: those of TLPs have 12 bits, those of flits run from 1 to 1 023.

/// A ring of numbers.
pub(crate) trait Numbers {
    /// The first one used after link up.
    const FIRST: u16;
    /// The number of them.
    const COUNT: u16;
    /// The most that may be unacknowledged, so that old and new can be told apart.
    const WINDOW: u16;

    /// `a - b` around the ring.
    fn distance(a: u16, b: u16) -> u16 {
        (a + Self::COUNT - b) % Self::COUNT
    }
    /// The number `n` (less than [`COUNT`](Self::COUNT)) after `a`.
    fn after(a: u16, n: u16) -> u16 {
        Self::FIRST + (a - Self::FIRST + n) % Self::COUNT
    }
    /// The number before `a`.
    fn before(a: u16) -> u16 {
        Self::after(a, Self::COUNT - 1)
    }
}

/// TLPs (PCIe 5.0 §3.6.1): 0 to 4 095, at most 2 048 unacknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlpNumbers {}
impl Numbers for TlpNumbers {
    const FIRST: u16 = 0;
    const COUNT: u16 = 4096;
    const WINDOW: u16 = 2048;
}

/// Flits (PCIe 6.0 §4.2.3.4.2): 1 to 1 023, at most 511 unacknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FlitNumbers {}
impl Numbers for FlitNumbers {
    const FIRST: u16 = 1;
    const COUNT: u16 = 1023;
    const WINDOW: u16 = 511;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_close() {
        assert_eq!((TlpNumbers::after(4095, 1), TlpNumbers::before(0)), (0, 4095));
        assert_eq!((FlitNumbers::after(1023, 1), FlitNumbers::before(1)), (1, 1023));
        assert_eq!((TlpNumbers::distance(3, 4090), FlitNumbers::distance(3, 1020)), (9, 6));
    }
}
