//! The four wires of legacy interrupts, as every bridge sees them.

use tlplab_cfgspace::ConfigSpace;

/// The asserted wires of INTA to INTD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wires(u8);

impl Wires {
    pub(crate) const NONE: Self = Self(0);

    /// The wire that the function asserts, if it does.
    pub(crate) fn of(space: &ConfigSpace) -> Self {
        space.asserted_intx().map_or(Self::NONE, |pin| Self(1 << (pin - 1)))
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn set(&mut self, wire: u8, asserted: bool) {
        self.0 = self.0 & !(1 << wire) | u8::from(asserted) << wire;
    }

    /// As they arrive on the bus of the bridge above, coming from `device` there (PCIe 5.0 §2.2.8.1).
    pub(crate) fn turned(self, device: u8) -> Self {
        let by = device % 4;
        Self((self.0 << by | self.0 >> (4 - by)) & 0b1111)
    }

    pub(crate) fn is_asserted(self, wire: u8) -> bool {
        self.0 >> wire & 1 == 1
    }

    /// The wires that differ, and how they are now.
    pub(crate) fn changes_since(self, before: Self) -> impl Iterator<Item = (u8, bool)> {
        let differs = move |wire: &u8| (self.0 ^ before.0) >> wire & 1 == 1;
        (0..4).filter(differs).map(move |wire| (wire, self.is_asserted(wire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_turn_by_the_number_of_the_device() {
        for device in 0..32 {
            for pin in 0..4 {
                assert_eq!(Wires(1 << pin).turned(device), Wires(1 << ((pin + device) % 4)));
            }
        }
    }
}
