//! The PHY behind `MDIC`: an integrated gigabit transceiver of the Marvell kind, at address 1, with pages.
//!
//! It negotiates 1000 Mb/s full duplex with whatever is plugged in. Registers 0 to 15 are IEEE 802.3's (clause 22) and are seen from each page.

use super::regs::mdic;
use std::collections::BTreeMap;

/// The PHY's address.
const ADDRESS: u32 = 1;
/// Its identifier, registers 2 and 3.
const ID: u32 = 0x0141_0CB1;

const CONTROL: u8 = 0;
const STATUS: u8 = 1;
const PARTNER: u8 = 5;
const EXPANSION: u8 = 6;
const GIGABIT_STATUS: u8 = 10;
const EXTENDED_STATUS: u8 = 15;
const SPECIFIC_STATUS: u8 = 17;
const PAGE_SELECT: u8 = 22;

/// Bits of the control register: reset, loop-back, power down, restart of the negotiation. The first and the last clear themselves.
mod control {
    pub(super) const RESET: u16 = 1 << 15;
    pub(super) const LOOP_BACK: u16 = 1 << 14;
    pub(super) const POWER_DOWN: u16 = 1 << 11;
    pub(super) const RESTART: u16 = 1 << 9;
}

#[derive(Clone, Debug)]
pub(super) struct Phy {
    /// By (page, register); what was never written is zero.
    words: BTreeMap<(u16, u8), u16>,
    page: u16,
    link: bool,
    /// The link was down since the status was last read: that bit latches low.
    fell: bool,
    /// The value of `MDIC`.
    access: u32,
}

/// The request of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    /// Negotiate the link anew.
    Negotiate,
}

impl Phy {
    pub(super) fn new() -> Self {
        let mut phy = Self { words: BTreeMap::new(), page: 0, link: false, fell: true, access: mdic::READY };
        phy.reset();
        phy
    }

    /// Registers back to their reset values; the link is down until it is negotiated.
    pub(super) fn reset(&mut self) {
        // Negotiate, full duplex, 1000; all abilities, no pause; 1000 full; automatic crossover.
        self.words = [(CONTROL, 0x1140), (4, 0x01E1), (9, 0x0E00), (16, 0x0068)]
            .map(|(register, value)| ((0, register), value))
            .into();
        self.page = 0;
        self.set_link(false);
    }

    pub(super) fn set_link(&mut self, link: bool) {
        self.fell |= !link;
        self.link = link;
    }
    pub(super) fn loops_back(&self) -> bool {
        self.words[&(0, CONTROL)] & control::LOOP_BACK != 0
    }
    pub(super) fn is_on(&self) -> bool {
        self.words[&(0, CONTROL)] & control::POWER_DOWN == 0
    }

    pub(super) fn access(&self) -> u32 {
        self.access
    }

    /// A write to `MDIC`: the access is over at once.
    pub(super) fn command(&mut self, command: u32) -> Wish {
        let register = (command >> 16 & 0x1F) as u8;
        let rest = command & !(mdic::READY | mdic::ERROR);
        if command >> 21 & 0x1F != ADDRESS {
            self.access = rest | mdic::READY | mdic::ERROR;
            return Wish::Nothing;
        }
        let mut wish = Wish::Nothing;
        let data = if command & mdic::READ != 0 {
            self.read(register)
        } else {
            wish = self.write(register, command as u16);
            command as u16
        };
        self.access = rest & !0xFFFF | u32::from(data) | mdic::READY;
        wish
    }

    fn key(&self, register: u8) -> (u16, u8) {
        (if register < 16 { 0 } else { self.page }, register)
    }

    fn read(&mut self, register: u8) -> u16 {
        let link = self.link;
        let when = |value: u16| if link { value } else { 0 };
        match self.key(register) {
            (_, STATUS) => {
                let up = link && !std::mem::take(&mut self.fell);
                self.fell = !link;
                // 10 and 100 of each kind, extended status, negotiates; negotiated; up.
                0x7949 | when(1 << 5) | u16::from(up) << 2
            }
            (_, 2) => (ID >> 16) as u16,
            (_, 3) => ID as u16,
            (_, PARTNER) => when(0x41E1),
            (_, EXPANSION) => when(0x000F),
            (_, GIGABIT_STATUS) => when(0x3C00), // partner full and half, both receivers fine
            (_, EXTENDED_STATUS) => 0x3000,      // 1000BASE-T full and half
            (0, SPECIFIC_STATUS) => 0x0080 | when(0xAC00), // up to 80 m; 1000, full, resolved, up
            (_, PAGE_SELECT) => self.page,
            key => self.words.get(&key).copied().unwrap_or(0),
        }
    }

    fn write(&mut self, register: u8, value: u16) -> Wish {
        match self.key(register) {
            (_, CONTROL) => {
                let was_on = self.is_on();
                if value & control::RESET != 0 {
                    // A software reset keeps the abilities and negotiates with them.
                    self.set_link(false);
                }
                self.words.insert((0, CONTROL), value & !(control::RESET | control::RESTART));
                let anew = value & (control::RESET | control::RESTART) != 0 || self.is_on() != was_on;
                if anew { Wish::Negotiate } else { Wish::Nothing }
            }
            (_, 1..=3 | PARTNER | EXPANSION | GIGABIT_STATUS | EXTENDED_STATUS) | (0, SPECIFIC_STATUS) => {
                Wish::Nothing
            }
            (_, PAGE_SELECT) => {
                self.page = value;
                Wish::Nothing
            }
            key => {
                self.words.insert(key, value);
                Wish::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(phy: &mut Phy, register: u32) -> u32 {
        phy.command(mdic::READ | ADDRESS << 21 | register << 16);
        assert_eq!(phy.access() >> 16, (mdic::READ | mdic::READY | ADDRESS << 21 | register << 16) >> 16);
        phy.access() & 0xFFFF
    }
    fn write(phy: &mut Phy, register: u32, value: u32) -> Wish {
        phy.command(mdic::WRITE | ADDRESS << 21 | register << 16 | value)
    }

    #[test]
    fn link_status_latches_low() {
        let mut phy = Phy::new();
        assert_eq!((read(&mut phy, 2) << 16 | read(&mut phy, 3), read(&mut phy, 1)), (ID, 0x7949));
        assert_eq!(write(&mut phy, 0, 0x1340), Wish::Negotiate);
        assert_eq!(read(&mut phy, 0), 0x1140, "the restart clears itself");
        phy.set_link(true);
        assert_eq!((read(&mut phy, 1), read(&mut phy, 1)), (0x7969, 0x796D));
        phy.set_link(false);
        phy.set_link(true);
        assert_eq!((read(&mut phy, 1), read(&mut phy, 1)), (0x7969, 0x796D));
        assert_eq!((read(&mut phy, 10), read(&mut phy, 17) & 0xC000), (0x3C00, 0x8000));
    }

    #[test]
    fn pages_and_strangers() {
        let mut phy = Phy::new();
        write(&mut phy, 22, 769);
        write(&mut phy, 17, 0x1234);
        assert_eq!((read(&mut phy, 17), read(&mut phy, 22), read(&mut phy, 3)), (0x1234, 769, ID & 0xFFFF));
        write(&mut phy, 22, 0);
        assert_eq!(read(&mut phy, 17), 0x0080);
        phy.command(mdic::READ | 2 << 21);
        assert_eq!(phy.access(), mdic::READ | 2 << 21 | mdic::READY | mdic::ERROR);
        assert_eq!(write(&mut phy, 0, 0x1940), Wish::Negotiate);
        assert!(!phy.is_on() && !phy.loops_back());
    }
}
