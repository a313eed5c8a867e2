//! Events in the order of their times: files need not be in order, but nearly are.

use std::collections::VecDeque;

/// The number held back, for one that is earlier.
const HELD: usize = 16_384;

/// Sorts what comes, as far as it can while it holds a part of it.
pub(super) struct InOrder<T> {
    /// With their times in femtoseconds.
    held: VecDeque<(i128, T)>,
    /// The time of the last one that was let go.
    passed: Option<i128>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { held: VecDeque::new(), passed: None }
    }
}

/// It happened before something that was let go already.
pub(super) struct TooEarly;

impl<T> InOrder<T> {
    /// Takes what happened at `fs`, and lets the earliest go if there are enough behind it.
    pub(super) fn push(&mut self, fs: i128, what: T) -> Result<Option<(i128, T)>, TooEarly> {
        if self.passed.is_some_and(|passed| fs < passed) {
            return Err(TooEarly);
        }
        let later = self.held.iter().rev().take_while(|(time, _)| *time > fs).count();
        self.held.insert(self.held.len() - later, (fs, what));
        Ok(if self.held.len() > HELD { self.pop() } else { None })
    }

    /// The earliest; for the end.
    pub(super) fn pop(&mut self) -> Option<(i128, T)> {
        let first = self.held.pop_front()?;
        self.passed = Some(first.0);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slightly_late_frames_are_sorted_in() {
        let mut order = InOrder::default();
        let mut out: Vec<i128> = Vec::new();
        // Pairs are swapped: 1, 0, 3, 2, …
        for fs in 0..40_000 {
            out.extend(order.push(fs ^ 1, ()).ok().flatten().map(|(fs, ())| fs));
        }
        assert_eq!(out.len(), 40_000 - HELD);
        out.extend(std::iter::from_fn(|| order.pop()).map(|(fs, ())| fs));
        assert!(out.into_iter().eq(0..40_000));
        assert!(order.push(39_998, ()).is_err());
    }
}
