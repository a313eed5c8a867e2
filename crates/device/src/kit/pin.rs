use crate::contract::Context;

/// The level of a legacy interrupt as the device last set it. Only changes are told.
///
/// ```
/// use tlplab_device::{Action, Context, kit::Pin};
/// use tlplab_units::Time;
///
/// let (mut next_op, mut actions) = (0, Vec::new());
/// let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
/// let mut pin = Pin::default();
/// pin.set(&mut cx, 0, true);
/// pin.set(&mut cx, 0, true);
/// assert!(pin.is_asserted());
/// assert_eq!(actions, [Action::Intx { stream: 0, asserted: true }]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pin(bool);

impl Pin {
    /// True if it is asserted.
    pub fn is_asserted(self) -> bool {
        self.0
    }
    /// Asserts or deasserts it, behind the earlier writes of `stream`; true if that is a change.
    #[inline]
    pub fn set(&mut self, cx: &mut Context<'_>, stream: u16, asserted: bool) -> bool {
        let changes = self.0 != asserted;
        self.0 = asserted;
        if changes {
            cx.set_intx(stream, asserted);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Action;
    use tlplab_units::Time;

    #[test]
    fn a_pin_sends_each_change_once() {
        let (mut next_op, mut actions) = (0, Vec::new());
        let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
        let mut pin = Pin::default();
        assert!(!pin.is_asserted());
        let changes = [false, true, true, false, false, true].map(|level| {
            let changes = pin.set(&mut cx, 5, level);
            assert_eq!(pin.is_asserted(), level);
            changes
        });
        assert_eq!(changes, [false, true, false, true, false, true]);
        assert_eq!(actions, [true, false, true].map(|asserted| Action::Intx { stream: 5, asserted }));
    }
}
