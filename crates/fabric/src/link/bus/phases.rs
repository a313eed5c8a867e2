//! The phases of a transaction, in clocks.
//!
//! ```text
//! address   1, a second one for addresses of 64 bits; PCI-X: 1 for the attributes, and for configuration 4 in which the address is
//!           driven before FRAME# (PCI-X 1.0a §2.7.2.1)
//! select    1, 2 or 3 until a fast, medium or slow target claims; 4 if nobody does
//! turn      1 in which the lines change hands, before the data of a conventional read; PCI-X has the attribute phase for that
//! wait      until the target is ready
//! data      1 for each 4 or 8 bytes; a target that refuses, or that splits, says so in 1
//! turn      1 until the bus is idle
//! ```

use crate::packet::attribution::Cause;
use arrayvec::ArrayVec;
use tlplab_units::Duration;

/// The request of a transaction to the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Configuration space.
    pub(super) config: bool,
    /// The target gives the data.
    pub(super) read: bool,
    /// The address does not fit 32 bits.
    pub(super) wide: bool,
    /// First byte of data.
    pub(super) first: u64,
    /// Bytes of data; 0 takes a data phase, too.
    pub(super) bytes: u32,
}

/// The rules of the bus that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) cycle: Duration,
    pub(super) pci_x: bool,
    /// Bytes per data phase.
    pub(super) width: u32,
}

/// Clocks nobody claims a transaction in, until the master gives up.
const MASTER_ABORT: u32 = 4;

/// Phases in order: what each is, and its clocks.
pub(super) type Phases = ArrayVec<(Cause, u32), 6>;

impl Rules {
    /// Until a target claims (after `select` clocks), or none does.
    pub(super) fn opening(self, access: Access, select: Option<u32>) -> Phases {
        let attributes = u32::from(self.pci_x);
        let driven_before = if self.pci_x && access.config { 4 } else { 0 };
        let address = 1 + u32::from(access.wide) + attributes + driven_before;
        Phases::from_iter([(Cause::Address, address), (Cause::DeviceSelect, select.unwrap_or(MASTER_ABORT))])
    }

    /// From the claim to the idle bus, with data after `wait` clocks.
    pub(super) fn closing(self, access: Access, wait: u32) -> Phases {
        let mut phases = Phases::new();
        if access.read && !self.pci_x {
            phases.push((Cause::Turnaround, 1));
        }
        if wait > 0 {
            phases.push((Cause::WaitState, wait));
        }
        phases.push((Cause::DataPhase, self.data_phases(access)));
        phases.push((Cause::Turnaround, 1));
        phases
    }

    /// From the claim to the idle bus, without data: the target refuses, or will answer later.
    pub(super) fn closing_without_data(self) -> Phases {
        Phases::from_iter([(Cause::DataPhase, 1), (Cause::Turnaround, 1)])
    }

    fn data_phases(self, access: Access) -> u32 {
        // A single doubleword uses the lower lines only.
        let width = if access.bytes <= 4 { 4 } else { self.width };
        let before = (access.first % u64::from(width)) as u32;
        (before + access.bytes).div_ceil(width).max(1)
    }
}

/// Clocks of all phases.
pub(super) fn clocks(phases: &[(Cause, u32)]) -> u32 {
    phases.iter().map(|(_, clocks)| clocks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCI: Rules = Rules { cycle: Duration::from_ns(30), pci_x: false, width: 4 };
    const PCI_X: Rules = Rules { cycle: Duration::from_ps(7500), pci_x: true, width: 8 };

    fn access(read: bool, bytes: u32) -> Access {
        Access { config: false, read, wide: false, first: 0x100, bytes }
    }

    fn whole(rules: Rules, access: Access, select: u32, wait: u32) -> u32 {
        clocks(&rules.opening(access, Some(select))) + clocks(&rules.closing(access, wait))
    }

    /// Reads of a doubleword take 5, 6 and 7 clocks on either bus (Miller et al. 2009, Table 4).
    #[test]
    fn a_doubleword_read_takes_four_clocks_and_device_select() {
        for rules in [PCI, PCI_X] {
            assert_eq!([1, 2, 3].map(|select| whole(rules, access(true, 4), select, 0)), [5, 6, 7]);
        }
        let config = Access { config: true, ..access(true, 4) };
        assert_eq!(whole(PCI_X, config, 3, 0), 7 + 4);
        assert_eq!(whole(PCI, config, 3, 0), 7);
    }

    #[test]
    fn waits_width_and_length_add_up() {
        // Writes of conventional PCI need no clock for the lines to change hands.
        assert_eq!(whole(PCI, access(false, 4), 1, 0), 4);
        assert_eq!(whole(PCI_X, access(false, 4), 1, 0), 5);
        assert_eq!(whole(PCI, access(true, 4), 2, 5), 6 + 5);
        assert_eq!(whole(PCI, access(false, 64), 1, 0), 3 + 16);
        assert_eq!(whole(PCI_X, access(false, 64), 1, 0), 4 + 8);
        // A start in the middle of 8 bytes takes a phase more.
        let odd = Access { first: 0x104, ..access(false, 64) };
        assert_eq!(whole(PCI_X, odd, 1, 0), 4 + 9);
        let wide = Access { wide: true, ..access(true, 4) };
        assert_eq!(whole(PCI_X, wide, 1, 0), 6);
        assert_eq!(clocks(&PCI_X.opening(access(true, 4), None)), 2 + 4);
        assert_eq!(clocks(&PCI.closing_without_data()), 2);
    }
}
