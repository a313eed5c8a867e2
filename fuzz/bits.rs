//! What each bit of a function's configuration space may do, written down from the specification (PCIe 5.0 §7.5 to §7.9, §9.3),
//! without a look at how `tlplab_cfgspace` does it.

use tlplab_cfgspace::*;

/// The bits of a dword that something can change. All others are read-only or reserved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bits {
    /// RW.
    pub(crate) rw: u32,
    /// RW1C.
    pub(crate) rw1c: u32,
    /// Of those, the ones that a hot reset leaves alone.
    pub(crate) sticky: u32,
    /// Of those, the ones that only a function-level reset leaves alone.
    pub(crate) link: u32,
}

/// The bits of each of the 1024 dwords.
pub(crate) fn of(layout: &Layout, space: &ConfigSpace) -> Vec<Bits> {
    let mut all = Table(vec![Bits::default(); 1024]);
    all.rw(0x04, 0x0547);
    all.rw1c(0x04, 0xF900_0000);
    all.rw(0x0C, 0xFF);
    all.rw(0x3C, 0xFF);
    match &layout.header {
        Header::Type0(header) => {
            all.bars(0x10, &header.bars);
            all.rom(0x30, header.rom);
        }
        Header::Type1(header) => all.bridge(header),
    }
    let mut at = (space.read(0x34) & 0xFF) as u16;
    for (_, capability) in &layout.capabilities {
        all.capability(at, capability);
        at = (space.read(at) >> 8 & 0xFF) as u16;
    }
    let mut at = 0x100;
    for (_, capability) in &layout.extended {
        all.extended(at, capability);
        at = (space.read(at) >> 20) as u16;
    }
    all.0
}

struct Table(Vec<Bits>);

impl Table {
    fn at(&mut self, offset: u16) -> &mut Bits {
        &mut self.0[usize::from(offset / 4)]
    }
    fn rw(&mut self, offset: u16, mask: u32) {
        self.at(offset).rw |= mask;
    }
    fn rw1c(&mut self, offset: u16, mask: u32) {
        self.at(offset).rw1c |= mask;
    }

    fn bars(&mut self, start: u16, bars: &[Option<Bar>]) {
        for (at, bar) in (start..).step_by(4).zip(bars) {
            let Some(bar) = bar else { continue };
            let mask = (bar.size - 1) ^ u64::MAX;
            self.rw(at, mask as u32);
            if bar.kind.is_wide() {
                self.rw(at + 4, (mask >> 32) as u32);
            }
        }
    }

    fn rom(&mut self, at: u16, size: Option<u64>) {
        let mask = size.map_or(0, |size| (size as u32).wrapping_neg() | 1);
        self.rw(at, mask);
    }

    fn bridge(&mut self, header: &Type1) {
        self.bars(0x10, &header.bars);
        self.rw(0x18, 0x00FF_FFFF);
        self.rw(0x1C, if header.io.is_some() { 0xF0F0 } else { 0 });
        self.rw1c(0x1C, 0xF900_0000);
        self.rw(0x20, 0xFFF0_FFF0);
        if header.prefetchable {
            self.rw(0x24, 0xFFF0_FFF0);
            self.rw(0x28, u32::MAX);
            self.rw(0x2C, u32::MAX);
        }
        self.rw(0x30, if header.io == Some(IoWindow::Bits32) { u32::MAX } else { 0 });
        self.rom(0x38, header.rom);
        self.rw(0x3C, 0x005F_0000);
    }

    fn capability(&mut self, at: u16, capability: &Capability) {
        match capability {
            Capability::PowerManagement(power) => {
                self.rw(at + 4, 0b11);
                if power.wakes_from != 0 {
                    self.rw(at + 4, 1 << 8);
                    self.rw1c(at + 4, 1 << 15);
                }
                // What wakes from D3cold survives what D3cold does.
                self.at(at + 4).sticky = if power.wakes_from >> 4 == 1 { 1 << 8 | 1 << 15 } else { 0 };
            }
            Capability::Msi(msi) => {
                self.rw(at, 0x0071_0000);
                self.rw(at + 4, 0xFFFF_FFFC);
                if msi.wide {
                    self.rw(at + 8, u32::MAX);
                }
                let data = at + if msi.wide { 12 } else { 8 };
                self.rw(data, 0xFFFF);
                if msi.masking {
                    self.rw(data + 4, u32::MAX >> (32 - msi.vectors));
                }
            }
            Capability::MsiX(_) => self.rw(at, 0xC000_0000),
            Capability::Pcie(pcie) => self.pcie(at, pcie),
            Capability::SubsystemId { .. } | Capability::Vendor(_) => {}
        }
    }

    fn pcie(&mut self, at: u16, pcie: &Pcie) {
        let downstream = matches!(pcie.port, PortType::RootPort | PortType::Downstream);
        let bridge = downstream || pcie.port == PortType::Upstream;
        // Whoever reads nothing may have a fixed Max_Read_Request_Size (§7.5.3.4).
        let reads = if matches!(pcie.port, PortType::Upstream | PortType::Downstream) { 0 } else { 0x7000 };
        self.rw(at + 0x08, reads | 0x08FF | if pcie.extended_tag { 0x100 } else { 0 });
        self.rw1c(at + 0x08, 0x000F_0000);
        self.at(at + 0x08).link = 0x00E0; // Max_Payload_Size
        if pcie.link.is_some() {
            // ASPM, read completion boundary, link disable, common clock, extended synch.
            self.rw(at + 0x10, 0x00C3 | if bridge { 0 } else { 0x08 } | if downstream { 0x10 } else { 0 });
            self.at(at + 0x10).link = 0x00CB;
        }
        if pcie.slot.is_some_and(|slot| slot.hot_plug) {
            self.rw(at + 0x18, 0x1028);
            self.rw1c(at + 0x18, 0x0108_0000);
        }
        if pcie.port == PortType::RootPort {
            self.rw(at + 0x1C, 0x1F);
            self.rw1c(at + 0x20, 1 << 16);
        }
        if pcie.version == PcieVersion::V1 {
            return;
        }
        let options = [(pcie.ari_forwarding, 5), (pcie.ltr, 10), (pcie.ten_bit_requester, 12)];
        let options = options.iter().filter(|(has, _)| *has).fold(0, |bits, (_, bit)| bits | 1 << bit);
        self.rw(at + 0x28, 0x031F | options);
        if pcie.link.is_some() {
            self.rw(at + 0x30, 0x2F);
            self.at(at + 0x30).sticky = 0x2F;
        }
    }

    fn extended(&mut self, at: u16, capability: &ExtendedCapability) {
        match capability {
            ExtendedCapability::Aer(aer) => {
                self.rw1c(at + 0x04, 0x007F_F030);
                self.rw(at + 0x08, 0x007F_F030);
                self.rw(at + 0x0C, 0x007F_F030);
                self.rw1c(at + 0x10, 0xF1C1);
                self.rw(at + 0x14, 0xF1C1);
                self.rw(at + 0x18, if aer.ecrc { 0x140 } else { 0 });
                for register in (0x04..0x1C).step_by(4) {
                    self.at(at + register).sticky = u32::MAX;
                }
                if aer.root {
                    self.rw(at + 0x2C, 0b111);
                    self.rw1c(at + 0x30, 0x7F);
                    self.at(at + 0x30).sticky = u32::MAX;
                }
            }
            ExtendedCapability::Acs(acs) => {
                self.rw(at + 4, u32::from(acs.controls.bits()) << 16);
                let vector = if acs.ports < 64 { (1u64 << acs.ports) - 1 } else { u64::MAX };
                self.rw(at + 8, vector as u32);
                self.rw(at + 12, (vector >> 32) as u32);
            }
            ExtendedCapability::SrIov(sriov) => {
                self.rw(at + 0x08, 0b11001);
                self.rw(at + 0x10, 0xFFFF);
                self.rw(at + 0x20, 0x553);
                self.bars(at + 0x24, &sriov.bars);
            }
            ExtendedCapability::Ats { .. } => self.rw(at + 4, 0x801F_0000),
            ExtendedCapability::Pasid { .. } => self.rw(at + 4, 0x0007_0000),
            ExtendedCapability::Ltr => self.rw(at + 4, 0x1FFF_1FFF),
            ExtendedCapability::ResizableBar(bars) => {
                for control in (8..).step_by(8).take(bars.bars.len()) {
                    self.rw(at + control, 0x3F00);
                }
            }
            ExtendedCapability::SecondaryPcie { lanes } => {
                self.rw(at + 4, 0b11);
                self.rw1c(at + 8, u32::MAX >> (32 - lanes));
                self.at(at + 8).sticky = u32::MAX;
            }
            ExtendedCapability::SerialNumber(_)
            | ExtendedCapability::Ari { .. }
            | ExtendedCapability::VendorSpecific { .. } => {}
        }
    }
}
