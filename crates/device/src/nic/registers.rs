//! The register file: words that only keep what is written, and where the others rest.

use super::regs::*;
use crate::kit::{Register, RegisterEntry, RegisterFile, table};

const fn rw(at: u32, count: u32) -> RegisterEntry {
    Register::<u32>::at(at).rw().times(count)
}
const fn word(at: u32, reset: u32, writable: u32) -> RegisterEntry {
    rw(at, 1).reset(reset as u64).masked(writable as u64)
}

/// Registers that software may write without more happening. What is not here and not special reads as zero and ignores writes.
const PLAIN: &[RegisterEntry] = table(&[
    word(CTRL, 0x0014_0241, 0x7BFF_FFFF),
    word(STATUS, 0x0008_0280, 0),
    word(EECD, eecd::PRES | eecd::AUTO_RD, 0x0000_004F),
    word(CTRL_EXT, 0x0010_0000, !ctrl_ext::EE_RST),
    rw(0x0024, 1),           // SCTL
    rw(0x0028, 1),           // FCAL
    word(0x002C, 0, 0xFFFF), // FCAH
    word(0x0030, 0, 0xFFFF), // FCT
    word(VET, 0x8100, 0xFFFF),
    word(ITR, 0, 0xFFFF),
    word(EIAC, 0, 0x01F0_0000),
    rw(IAM, 1),
    word(IVAR, 0, 0x800F_FFFF),
    word(EITR, 0, 0xFFFF).times(5),
    word(RCTL, 0, 0x87FF_FFFE),
    word(0x0170, 0, 0xFFFF),             // FCTTV
    word(0x0178, 0, 0xC000_FFFF),        // TXCW
    rw(TCTL, 2),                         // and TCTL_EXT
    word(0x0410, 0x0060_2006, u32::MAX), // TIPG
    rw(0x0458, 1),                       // AIT
    word(0x0E00, 0x0706_1302, u32::MAX), // LEDCTL
    word(EXTCNF_CTRL, 0, 0xFFFF_FFFF),
    rw(0x0F08, 3), // EXTCNF_SIZE, -, PHY_CTRL
    word(PBA, 0x0014_0014, 0xFFFF),
    rw(0x1008, 1),                // PBS
    word(0x1010, 0x8000_0000, 0), // EEMNGCTL: the NVM was read for the manageability
    rw(0x1100, 1),                // PBA_ECC
    rw(0x2008, 1),                // ERT
    rw(0x2160, 3),                // FCRTL, -, FCRTH
    word(PSRCTL, 0x0004_0402, u32::MAX),
    word(RDBAL, 0, !0xF),
    rw(RDBAL + 4, 1),
    word(RDBAL + 8, 0, 0x000F_FF80),
    word(RDH, 0, 0xFFFF),
    word(RDT, 0, 0xFFFF),
    word(RDTR, 0, 0xFFFF),
    word(RXDCTL, 0x0001_0000, u32::MAX),
    word(RADV, 0, 0xFFFF),
    rw(0x2900, 12), // the second receive queue
    rw(0x2C00, 3),  // RSRPD, -, RAID
    rw(0x3000, 2),
    word(TDBAL, 0, !0xF),
    rw(TDBAL + 4, 1),
    word(TDBAL + 8, 0, 0x000F_FF80),
    word(TDH, 0, 0xFFFF),
    word(TDT, 0, 0xFFFF),
    word(TIDV, 0, 0xFFFF),
    rw(TXDCTL, 1),
    word(TADV, 0, 0xFFFF),
    word(0x3840, 0x0000_0403, u32::MAX), // TARC0
    rw(0x3900, 12),                      // the second transmit queue
    word(0x3940, 0x0000_0403, u32::MAX), // TARC1
    rw(RXCSUM, 1),
    rw(RFCTL, 1),
    rw(MTA, 128),
    Register::<u64>::at(RAL).rw().times(16).masked(0x8003_FFFF_FFFF_FFFF), // the rest is reserved
    rw(VFTA, 128),
    rw(0x5800, 1),  // WUC
    rw(0x5808, 1),  // WUFC
    rw(0x5810, 1),  // WUS
    rw(0x5818, 1),  // MRQC
    rw(0x5820, 1),  // MANC
    rw(0x5838, 10), // IPAV, IP4AT
    rw(0x5860, 1),  // MANC2H
    rw(0x5880, 4),  // IP6AT
    rw(0x5B00, 1),  // GCR
    rw(0x5B30, 1),  // FACTPS
    rw(SWSM, 1),
    rw(0x5B58, 1),  // SWSM2
    rw(0x5B64, 2),  // GCR2, PBACLR
    rw(0x5C00, 32), // RETA
    rw(0x5C80, 10), // RSSRK
    rw(0x5F40, 1),  // FCRTV
    rw(TIMINCA, 1),
    rw(0xB614, 1), // TSYNCTXCTL
    rw(0xB620, 1), // TSYNCRXCTL
    rw(0xB634, 2), // RXMTRL, RXUDP
]);

/// The end of the last of them.
const END: u32 = 0xB63C;

#[derive(Clone, Debug)]
pub(super) struct Registers(RegisterFile);

impl Registers {
    pub(super) fn new() -> Self {
        Self(RegisterFile::new(PLAIN))
    }

    /// The value of the word at `at`; 0 if there is none.
    #[inline]
    pub(super) fn get(&self, at: u32) -> u32 {
        if at < END { self.0.get(Register::at(at)) } else { 0 }
    }
    #[inline]
    pub(super) fn has(&self, at: u32, bits: u32) -> bool {
        self.get(at) & bits != 0
    }
    /// The device's own change.
    pub(super) fn set(&mut self, at: u32, value: u32) {
        self.0.set(Register::at(at), value);
    }
    /// Software's write: only writable bits change.
    pub(super) fn write(&mut self, at: u32, value: u32) {
        self.0.write_bytes(at.into(), &value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writable_bits_change() {
        let mut file = Registers::new();
        file.write(STATUS, !0);
        file.write(0x0004, !0);
        file.write(0xFFFF_FFFC, !0);
        file.write(MTA + 4 * 127, 7);
        assert_eq!((file.get(STATUS), file.get(0x0004), file.get(MTA + 4 * 127)), (0x0008_0280, 0, 7));
        assert_eq!((file.get(MTA + 4 * 128), file.get(0xFFFF_FFFC)), (0, 0));
        // As the self test of Linux's e1000e expects.
        for (at, kept) in [
            (0x002C, 0xFFFF),
            (0x0030, 0xFFFF),
            (0x0178, 0xC000_FFFF),
            (RAL, !0),
            (RAL + 4, 0x8003_FFFF),
            (RAL + 8 * 15 + 4, 0x8003_FFFF),
        ] {
            file.write(at, !0);
            assert_eq!(file.get(at), kept, "{at:#x}");
        }
    }
}
