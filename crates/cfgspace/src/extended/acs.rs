//! Access control services: what a port lets its peers have (PCIe 5.0 §6.12, §7.7.11).

use crate::layout::{Block, LayoutError};
use crate::registers::acs;
use crate::space::ConfigSpace;
use core::ops::BitOr;

/// A set of controls, as the bits 0 to 6 of the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcsControls(u8);

impl AcsControls {
    /// No control.
    pub const NONE: Self = Self(0);
    /// Requests from below must come from a bus below (V).
    pub const SOURCE_VALIDATION: Self = Self(1 << 0);
    /// Memory requests from below whose address is, or is to be, translated are refused (B).
    pub const TRANSLATION_BLOCKING: Self = Self(1 << 1);
    /// Requests to a peer go up to the root complex first (R).
    pub const REQUEST_REDIRECT: Self = Self(1 << 2);
    /// Completions to a peer go up to the root complex first, unless their order is relaxed (C).
    pub const COMPLETION_REDIRECT: Self = Self(1 << 3);
    /// TLPs from below that are for what is below the same port go up (U).
    pub const UPSTREAM_FORWARDING: Self = Self(1 << 4);
    /// Requests to the peers of a vector are refused or, with request redirect, go up; those to other peers go straight (E).
    pub const EGRESS_CONTROL: Self = Self(1 << 5);
    /// Requests with translated addresses go straight to a peer, whatever request redirect and egress control say (T).
    pub const DIRECT_TRANSLATED: Self = Self(1 << 6);
    /// All of them.
    pub const ALL: Self = Self(0x7F);
    /// The four that Linux turns on for devices behind an IOMMU (`pci_enable_acs`).
    pub const ISOLATION: Self = Self(0b1_1101);

    /// The controls of a register's bits 0 to 6.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }
    /// As the bits 0 to 6 of the registers.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// True if all of `controls` are among them.
    pub const fn contains(self, controls: Self) -> bool {
        self.0 & controls.0 == controls.0
    }
}

impl BitOr for AcsControls {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Access control services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acs {
    /// The controls there are.
    pub controls: AcsControls,
    /// Controls that are on after a reset, as a switch's configuration memory or firmware leaves them.
    pub enabled: AcsControls,
    /// Bits of the egress control vector, one for each port number; 0 without egress control.
    pub ports: u8,
    /// The vector after a reset: bit n forbids requests to port n.
    pub forbidden: u64,
}

impl Acs {
    /// These controls, all off after a reset. Egress control needs [`ports`](Self::ports) besides.
    pub const fn new(controls: AcsControls) -> Self {
        Self { controls, enabled: AcsControls::NONE, ports: 0, forbidden: 0 }
    }

    pub(crate) fn bytes(self) -> u16 {
        8 + 4 * u16::from(self.ports.div_ceil(32))
    }

    pub(crate) fn place(self, block: &mut Block<'_>) -> Result<(), LayoutError> {
        let Self { controls, enabled, ports, forbidden } = self;
        let egress = controls.contains(AcsControls::EGRESS_CONTROL);
        let right = if egress { (1..=64).contains(&ports) } else { ports == 0 };
        block.require(right, "ports", ports, "1 to 64 with egress control, 0 without")?;
        block.require(
            controls.contains(enabled),
            "enabled controls",
            enabled.0,
            "a subset of the controls",
        )?;
        let inside = ports >= 64 || forbidden >> ports == 0;
        block.require(inside, "egress control vector", forbidden, "a subset of the ports")?;
        block.set(acs::CAPABILITIES, u16::from(controls.0) | u16::from(ports) << 8);
        block.set(acs::CONTROL, enabled.0);
        block.writable(acs::CONTROL, controls.0);
        for (at, first) in (acs::VECTOR..).step_by(4).zip((0..u32::from(ports)).step_by(32)) {
            let bits = (u32::from(ports) - first).min(32);
            block.set(at, (forbidden >> first) as u32);
            block.writable(at, u32::MAX >> (32 - bits));
        }
        Ok(())
    }
}

/// The controls of access that a port obeys now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessControl {
    /// It has the capability.
    pub present: bool,
    /// The controls that are on.
    pub enabled: AcsControls,
    /// The egress control vector: bit n is that of port n.
    pub forbidden: u64,
}

impl AccessControl {
    /// A port without the capability.
    pub const ABSENT: Self = Self { present: false, enabled: AcsControls::NONE, forbidden: 0 };
}

impl ConfigSpace {
    /// The controls of access that are on.
    pub fn access_control(&self) -> AccessControl {
        let Some(span) = self.positions.acs else { return AccessControl::ABSENT };
        let enabled = AcsControls::from_bits((self.read(span.start + acs::CAPABILITIES) >> 16) as u8);
        let word = |at: u16| if at < span.bytes { u64::from(self.read(span.start + at)) } else { 0 };
        let forbidden = word(acs::VECTOR) | word(acs::VECTOR + 4) << 32;
        AccessControl { present: true, enabled, forbidden }
    }
}
