//! The register file: words that only keep what is written, and where the others rest.

use super::regs::*;

/// Registers that software may write without more happening.
#[derive(Clone)]
struct Plain {
    at: u32,
    count: u32,
    reset: u32,
    writable: u32,
}

const fn rw(at: u32, count: u32) -> Plain {
    Plain { at, count, reset: 0, writable: u32::MAX }
}
const fn word(at: u32, reset: u32, writable: u32) -> Plain {
    Plain { at, count: 1, reset, writable }
}

/// In the order of their addresses. What is not here and not special reads as zero and ignores writes.
static PLAIN: &[Plain] = &[
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
    Plain { at: EITR, count: 5, reset: 0, writable: 0xFFFF },
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
    rw(RAL, 32),
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
];

const END: u32 = 0xB640;

/// Address, what it is compared with, and whether it is valid: the rest of a Receive Address High is reserved.
const RAH_WRITABLE: u32 = 0x8003_FFFF;

fn is_rah(at: u32) -> bool {
    (RAL..RAL + 4 * 32).contains(&at) && at % 8 == 4
}

#[derive(Clone, Debug)]
pub(super) struct Registers(Vec<u32>);

impl Registers {
    pub(super) fn new() -> Self {
        let mut words = vec![0; END as usize / 4];
        for plain in PLAIN {
            let first = plain.at as usize / 4;
            words[first..first + plain.count as usize].fill(plain.reset);
        }
        Self(words)
    }

    /// What the word at `at` holds; 0 where there is none.
    pub(super) fn get(&self, at: u32) -> u32 {
        self.0.get(at as usize / 4).copied().unwrap_or(0)
    }
    pub(super) fn has(&self, at: u32, bits: u32) -> bool {
        self.get(at) & bits != 0
    }
    /// The device's own change.
    pub(super) fn set(&mut self, at: u32, value: u32) {
        self.0[at as usize / 4] = value;
    }
    /// Software's write: only writable bits change.
    pub(super) fn write(&mut self, at: u32, value: u32) {
        let place = PLAIN.partition_point(|plain| plain.at <= at);
        let Some(plain) = place.checked_sub(1).map(|i| &PLAIN[i]) else { return };
        if at < plain.at + 4 * plain.count {
            let writable = if is_rah(at) { RAH_WRITABLE } else { plain.writable };
            self.set(at, self.get(at) & !writable | value & writable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_inside() {
        assert!(PLAIN.windows(2).all(|two| two[0].at + 4 * two[0].count <= two[1].at));
        assert!(PLAIN.iter().all(|plain| plain.at % 4 == 0 && plain.at + 4 * plain.count <= END));
    }

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
