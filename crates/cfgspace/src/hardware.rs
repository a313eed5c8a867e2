//! The changes that a function's hardware makes in its registers.

use crate::registers::{exponent, header, pcie, status};
use crate::space::ConfigSpace;
use tlplab_units::{Generation, Mps, Mrrs, Width};

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Its speed.
    pub speed: Generation,
    /// Its width.
    pub width: Width,
    /// The data link layer is up: packets can pass.
    pub active: bool,
    /// It is training.
    pub training: bool,
}

impl ConfigSpace {
    /// Shows the state of the link of this port. If it came up or went down, that is an event of the slot.
    pub fn set_link(&mut self, link: LinkState) {
        let Some(span) = self.positions.pcie else { return };
        let downstream = self.is_downstream_port();
        let status = span.start + pcie::LINK_STATUS;
        self.update16(status, 0x00F, link.speed.number().into());
        self.update16(status, 0x3F0, u16::from(link.width.lanes()) << 4);
        if !downstream {
            return; // the other bits are reserved in an upstream port
        }
        let training = if link.training { pcie::LINK_TRAINING } else { 0 };
        let active = if link.active { pcie::DLL_ACTIVE } else { 0 };
        let was = self.pcie_register(pcie::LINK_STATUS) as u16 & pcie::DLL_ACTIVE;
        self.update16(status, pcie::LINK_TRAINING, training);
        self.update16(status, pcie::DLL_ACTIVE, active);
        if was != active {
            self.slot_event(pcie::DLL_CHANGED);
        }
    }

    /// Shows the presence of a card in the slot below. If it came or went, that is an event of the slot.
    pub fn set_presence(&mut self, present: bool) {
        let Some(span) = self.positions.pcie.filter(|_| self.has_slot()) else { return };
        let was = self.pcie_register(pcie::SLOT_STATUS) as u16 & pcie::PRESENT;
        let is = if present { pcie::PRESENT } else { 0 };
        self.update16(span.start + pcie::SLOT_STATUS, pcie::PRESENT, is);
        if was != is {
            self.slot_event(pcie::PRESENCE_CHANGED);
        }
    }

    /// Max_Payload_Size and Max_Read_Request_Size as firmware leaves them to whoever boots next (PCIe 5.0 §7.5.3.4).
    pub fn set_request_sizes(&mut self, mps: Mps, mrrs: Mrrs) {
        let Some(span) = self.positions.pcie else { return };
        let sizes = exponent(mps.bytes()) << 5 | exponent(mrrs.bytes()) << 12;
        self.update16(span.start + pcie::DEVICE_CONTROL, 0x70E0, sizes);
    }

    /// Records an event of the slot (PCIe 5.0 §6.7.3.4).
    fn slot_event(&mut self, event: u16) {
        let capable = self.has_slot() && self.pcie_register(pcie::SLOT_CAPABILITIES) >> 6 & 1 == 1;
        if let Some(span) = self.positions.pcie.filter(|_| capable) {
            self.update16(span.start + pcie::SLOT_STATUS, event, event);
        }
    }

    /// True if the slot has an event whose interrupt is enabled: the level of a legacy interrupt.
    pub fn slot_interrupt(&self) -> bool {
        self.pcie_register(pcie::SLOT_CONTROL) as u16 & pcie::HOT_PLUG_INTERRUPT != 0 && self.slot_has_event()
    }

    /// True if the slot has an event that is enabled.
    pub(crate) fn slot_has_event(&self) -> bool {
        let control = self.pcie_register(pcie::SLOT_CONTROL) as u16;
        let status = self.pcie_register(pcie::SLOT_STATUS) as u16;
        let link = control & pcie::DLL_CHANGED_ENABLE != 0 && status & pcie::DLL_CHANGED != 0;
        let presence = control & status & pcie::PRESENCE_CHANGED != 0;
        link || presence
    }

    /// Sets Interrupt Status: the function wants its legacy interrupt, or does not.
    pub fn set_interrupt_status(&mut self, wanted: bool) {
        let bit = if wanted { status::INTERRUPT } else { 0 };
        self.update16(header::STATUS, status::INTERRUPT, bit);
    }

    fn has_slot(&self) -> bool {
        self.pcie_register(pcie::CAPABILITIES) >> 8 & 1 == 1
    }
}
