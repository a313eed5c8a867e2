//! The part of a function's configuration space that a platform keeps for itself, where a guest has the rest: the addresses of the function and of its interrupts.

use crate::registers::{header, pcie};
use crate::space::ConfigSpace;
use core::ops::Range;

impl ConfigSpace {
    /// The registers with addresses of the platform, as bytes of configuration space: base addresses, that of the ROM, address and data of MSI.
    pub fn platform_registers(&self) -> Vec<Range<u16>> {
        let mut registers = vec![header::BARS..header::BARS + 24, header::ROM_TYPE0..header::ROM_TYPE0 + 4];
        registers.extend(self.msi_message_registers());
        registers
    }

    /// Device Control and its place, if the function has PCI Express' registers.
    pub fn device_control(&self) -> Option<(u16, u16)> {
        let at = self.positions.pcie?.start + pcie::DEVICE_CONTROL;
        Some((at, self.read16(at)))
    }

    /// The byte of configuration space whose highest bit begins a function-level reset (PCIe 5.0 §7.5.3.4); `None` without one.
    pub fn reset_register(&self) -> Option<u16> {
        let capable = self.pcie_register(pcie::DEVICE_CAPABILITIES) & pcie::FLR_CAPABLE != 0;
        self.device_control().filter(|_| capable).map(|(at, _)| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ConfigSpace, Identity, Layout, LinkPart, Msi, Pcie, PortType, Type0};
    use tlplab_units::{Generation, Width};

    #[test]
    fn a_function_keeps_its_addresses_and_has_a_register_for_its_reset() {
        let bare = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)));
        let space = ConfigSpace::new(&bare).expect("it fits");
        assert_eq!((space.platform_registers().len(), space.reset_register()), (2, None));
        let msi = Msi { vectors: 4, wide: true, masking: false };
        let link = LinkPart::new(Generation::Gen3, Width::ALL[0]);
        let layout = bare.capability_at(0x50, msi).capability_at(0x70, Pcie::new(PortType::EndPoint, link));
        let space = ConfigSpace::new(&layout).expect("it fits");
        assert_eq!(space.platform_registers(), [0x10..0x28, 0x30..0x34, 0x54..0x5E]);
        assert_eq!(
            (space.device_control().map(|(at, _)| at), space.reset_register()),
            (Some(0x78), Some(0x79))
        );
    }
}
