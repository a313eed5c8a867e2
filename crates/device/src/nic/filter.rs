//! The frames that the receiver accepts.

use super::registers::Registers;
use super::regs::{self, rctl};

/// The reason that a frame was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// One of the receive addresses, or all are taken.
    Exact,
    /// A bit of the multicast table, which several groups share.
    Hashed,
}

/// The match by which the receiver takes a frame to `destination` with this VLAN tag, if it does.
pub(super) fn accept(file: &Registers, destination: [u8; 6], tag: Option<u16>) -> Option<Match> {
    let control = file.get(regs::RCTL);
    if control & rctl::VFE != 0 && tag.is_some_and(|tag| !bit(file, regs::VFTA, tag & 0xFFF)) {
        return None;
    }
    let group = destination[0] & 1 != 0;
    let all = control & if group { rctl::MPE } else { rctl::UPE } != 0;
    let broadcast = control & rctl::BAM != 0 && destination == [0xFF; 6];
    if all || broadcast || is_own(file, destination) {
        return Some(Match::Exact);
    }
    (group && bit(file, regs::MTA, hash(destination, control >> 12 & 3))).then_some(Match::Hashed)
}

fn bit(file: &Registers, table: u32, index: u16) -> bool {
    file.get(table + 4 * u32::from(index >> 5)) >> (index & 31) & 1 != 0
}

fn is_own(file: &Registers, destination: [u8; 6]) -> bool {
    let [a, b, c, d, e, f] = destination;
    let low = u32::from_le_bytes([a, b, c, d]);
    let high = 1 << 31 | u32::from_le_bytes([e, f, 0, 0]);
    (0..16).any(|pair| {
        let at = regs::RAL + 8 * pair;
        file.get(at) == low && file.get(at + 4) & 0x8000_FFFF == high
    })
}

/// The twelve bits of the address that `RCTL.MO` selects: from bit 47, 46, 45 or 43 down.
fn hash(destination: [u8; 6], offset: u32) -> u16 {
    let top = u16::from_le_bytes([destination[4], destination[5]]);
    (top >> [4, 3, 2, 0][offset as usize & 3]) & 0xFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_groups_and_tags() {
        let own = [0x02, 1, 2, 3, 4, 5];
        let group = [0x01, 0, 0x5E, 0, 0x34, 0x12];
        let mut file = Registers::new();
        file.write(regs::RAL + 8, 0x0302_0102);
        file.write(regs::RAL + 12, 0x8000_0504);
        let all = [own, group, [0xFF; 6], [0x02, 1, 2, 3, 4, 6]];
        let taken = |file: &Registers| all.map(|destination| accept(file, destination, None));
        let (exact, hashed) = (Some(Match::Exact), Some(Match::Hashed));
        assert_eq!(taken(&file), [exact, None, None, None]);
        for (control, expected) in [
            (rctl::BAM, [exact, None, exact, None]),
            (rctl::UPE, [exact, None, None, exact]),
            (rctl::MPE, [exact, exact, exact, None]),
        ] {
            file.write(regs::RCTL, control);
            assert_eq!(taken(&file), expected);
        }
        // Bits 47:36 of the group's address are 123h: word 9, bit 3.
        file.write(regs::RCTL, 0);
        file.write(regs::MTA + 4 * 9, 1 << 3);
        assert_eq!(taken(&file), [exact, hashed, None, None]);
        file.write(regs::RCTL, 3 << 12);
        assert_eq!(taken(&file), [exact, None, None, None]);
        file.write(regs::MTA + 4 * (0x234 >> 5), 1 << (0x234 & 31));
        assert_eq!(taken(&file), [exact, hashed, None, None]);
        file.write(regs::RCTL, rctl::VFE);
        file.write(regs::VFTA + 4 * 3, 1 << 4); // VLAN 100
        let tagged = |tag| accept(&file, own, Some(tag));
        assert_eq!([tagged(0x2064), tagged(0x0065)], [exact, None]);
        // An address that is no longer valid.
        file.write(regs::RAL + 12, 0x0000_0504);
        assert_eq!(accept(&file, own, None), None);
    }
}
