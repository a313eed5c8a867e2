//! The effects of a write to configuration space.

use crate::layout::Span;
use crate::registers::{aer, command, header, pcie};
use crate::space::ConfigSpace;

/// The registers that the owner of a function must look at again after a write. Registers count when their value changed; requests such as a
/// function-level reset count when they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The command register: decoding, bus mastering, INTx, SERR#.
    pub command: bool,
    /// A base address, the expansion ROM's, or a BAR's size.
    pub bars: bool,
    /// Bus numbers or windows of a bridge.
    pub bridge: bool,
    /// The bridge control register, with the reset of the secondary bus.
    pub bridge_control: bool,
    /// Message control, masks, addresses or data of MSI or MSI-X, or INTx disable.
    pub interrupts: bool,
    /// Device Control or Device Control 2: sizes, tags, timeouts, error reporting.
    pub device_control: bool,
    /// A function-level reset was requested, and the function has one.
    pub function_level_reset: bool,
    /// Link Control or Link Control 2.
    pub link_control: bool,
    /// Training of the link was requested.
    pub retrain_link: bool,
    /// Slot Control, or events of the slot were cleared.
    pub slot: bool,
    /// Root Control, or the root's error command and status.
    pub root: bool,
    /// The power state.
    pub power: bool,
    /// The control of virtual functions.
    pub virtual_functions: bool,
    /// The controls of access between peers, or the egress control vector.
    pub access_control: bool,
    /// The control of address translation services.
    pub translation: bool,
}

impl Written {
    /// True if there is anything to look at.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

impl ConfigSpace {
    /// The effects of a write that changed the bits `changed` of the dword at `offset` and wrote the bits `ones` as ones.
    pub(crate) fn consequences(&mut self, offset: u16, changed: u32, ones: u32) -> Written {
        let mut written = Written::default();
        match offset {
            header::COMMAND => {
                written.command = changed & 0xFFFF != 0;
                written.interrupts = changed & u32::from(command::INTX_DISABLE) != 0;
            }
            0x10..0x40 if !self.is_bridge() => written.bars = changed != 0 && offset != header::INTERRUPT,
            0x10..0x18 | header::ROM_TYPE1 => written.bars = changed != 0,
            0x18..0x34 => written.bridge = changed != 0,
            header::INTERRUPT => written.bridge_control = changed >> 16 != 0,
            _ => self.capability_consequences(offset, changed, ones, &mut written),
        }
        written
    }

    fn capability_consequences(&mut self, offset: u16, changed: u32, ones: u32, written: &mut Written) {
        let positions = self.positions;
        let within = |span: Option<Span>| span.and_then(|span| span.register(offset));
        if let Some(register) = within(positions.pcie) {
            self.pcie_consequences(register, changed, ones, written);
        } else if within(positions.msi).or(within(positions.msix)).is_some() {
            written.interrupts = changed != 0;
        } else if within(positions.power).is_some() {
            written.power = changed != 0;
        } else if within(positions.aer).is_some_and(|register| register >= aer::ROOT_COMMAND) {
            written.root = changed != 0;
        } else if within(positions.sriov).is_some() {
            written.virtual_functions = changed != 0;
        } else if within(positions.acs).is_some() {
            written.access_control = changed != 0;
        } else if within(positions.ats).is_some() {
            written.translation = changed != 0;
        } else if within(positions.resizable).is_some() {
            written.bars = self.resize_bar(offset, changed);
        }
    }

    fn pcie_consequences(&self, register: u16, changed: u32, ones: u32, written: &mut Written) {
        match register {
            pcie::DEVICE_CONTROL => {
                written.device_control = changed & 0xFFFF != 0;
                let capable = self.pcie_register(pcie::DEVICE_CAPABILITIES) & pcie::FLR_CAPABLE != 0;
                written.function_level_reset = capable && ones & pcie::INITIATE_FLR != 0;
            }
            pcie::DEVICE_CONTROL_2 => written.device_control = changed != 0,
            pcie::LINK_CONTROL => {
                written.link_control = changed & 0xFFFF != 0;
                written.retrain_link = self.is_downstream_port() && ones & pcie::RETRAIN_LINK != 0;
            }
            pcie::LINK_CONTROL_2 => written.link_control = changed != 0,
            pcie::SLOT_CONTROL => written.slot = changed != 0,
            pcie::ROOT_CONTROL | pcie::ROOT_STATUS => written.root = changed != 0,
            _ => {}
        }
    }
}
