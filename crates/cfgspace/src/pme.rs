//! Power management events: a function that sleeps asks to be woken, and a root port tells software (PCIe 5.0 §5.3.3, §6.7.3.4, §7.5.3.14).

use crate::registers::{pcie, power};
use crate::space::ConfigSpace;
use crate::view::PowerState;
use tlplab_units::Bdf;

impl ConfigSpace {
    /// True if this port sleeps and an event of the slot below wants it to be woken. The interrupt of the slot need not be enabled for it.
    pub fn slot_wakes(&self) -> bool {
        let enabled = self
            .positions
            .power
            .is_some_and(|span| self.read16(span.start + power::CONTROL) & power::PME_ENABLE != 0);
        enabled && self.power_state() != PowerState::D0 && self.slot_has_event()
    }

    /// The function has sent a power management event.
    pub fn set_pme_status(&mut self) {
        if let Some(span) = self.positions.power {
            self.update16(span.start + power::CONTROL, power::PME_STATUS, power::PME_STATUS);
        }
    }

    /// A root port shows an event that has come from `requester`; false, if it shows another still, and this one has to wait.
    pub fn show_pme(&mut self, requester: Bdf) -> bool {
        let Some(span) = self.positions.pcie else { return true };
        let status = span.start + pcie::ROOT_STATUS;
        let waits = self.pme_is_shown();
        if waits {
            self.update16(status + 2, pcie::PME_PENDING, pcie::PME_PENDING);
        } else {
            self.update16(status, 0xFFFF, requester.0);
            self.update16(status + 2, pcie::PME_STATUS | pcie::PME_PENDING, pcie::PME_STATUS);
        }
        !waits
    }

    /// True if a root port shows an event that software has not cleared.
    pub fn pme_is_shown(&self) -> bool {
        (self.pcie_register(pcie::ROOT_STATUS) >> 16) as u16 & pcie::PME_STATUS != 0
    }

    /// True if a root port shows an event whose interrupt is enabled.
    pub fn pme_interrupt(&self) -> bool {
        self.pcie_register(pcie::ROOT_CONTROL) as u16 & pcie::PME_INTERRUPT != 0 && self.pme_is_shown()
    }
}
