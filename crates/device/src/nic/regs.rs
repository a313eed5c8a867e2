//! The registers of BAR 0 by name, as the 82574's data sheet and its Linux driver call them. All are 32 bits wide.

/// Device control; `ctrl` has its bits.
pub const CTRL: u32 = 0x0000;
/// Device status, read-only; `status` has its bits.
pub const STATUS: u32 = 0x0008;
/// NVM control.
pub const EECD: u32 = 0x0010;
/// NVM read: word address from bit 2 on, bit 0 starts, bit 1 tells that the data in the upper half are there.
pub const EERD: u32 = 0x0014;
/// Extended device control.
pub const CTRL_EXT: u32 = 0x0018;
/// PHY access; `mdic` has its bits.
pub const MDIC: u32 = 0x0020;
/// EtherType of VLAN tags.
pub const VET: u32 = 0x0038;
/// Causes of interrupts. A read clears them, and may mask them: see `interrupts.rs`.
pub const ICR: u32 = 0x00C0;
/// Least time between interrupts, in 256 ns.
pub const ITR: u32 = 0x00C4;
/// Sets causes.
pub const ICS: u32 = 0x00C8;
/// Lets causes interrupt: ones set.
pub const IMS: u32 = 0x00D0;
/// Ones take causes out of the mask again.
pub const IMC: u32 = 0x00D8;
/// Causes that an MSI-X message clears.
pub const EIAC: u32 = 0x00DC;
/// Causes that leave the mask by themselves.
pub const IAM: u32 = 0x00E0;
/// MSI-X vector of each cause.
pub const IVAR: u32 = 0x00E4;
/// Least time between interrupts of each of the five MSI-X vectors, in 256 ns.
pub const EITR: u32 = 0x00E8;
/// Receive control; `rctl` has its bits.
pub const RCTL: u32 = 0x0100;
/// Transmit control; `tctl` has its bits.
pub const TCTL: u32 = 0x0400;
/// The owner of the PHY and the NVM.
pub const EXTCNF_CTRL: u32 = 0x0F00;
/// Packet buffer: KiB for reception (low half, writable) and for transmission.
pub const PBA: u32 = 0x1000;
/// NVM write, as [`EERD`] with the data in the upper half.
pub const EEWR: u32 = 0x102C;
/// Sizes of the buffers of a packet-split descriptor.
pub const PSRCTL: u32 = 0x2170;
/// Receive ring: address, low and high half; bytes; head; tail.
pub const RDBAL: u32 = 0x2800;
/// Receive ring's head: descriptors before it are done.
pub const RDH: u32 = 0x2810;
/// Receive ring's tail, the doorbell: descriptors before it are the device's.
pub const RDT: u32 = 0x2818;
/// Delay of the receive interrupt behind the last frame, in 1.024 µs.
pub const RDTR: u32 = 0x2820;
/// The thresholds for fetching receive descriptors.
pub const RXDCTL: u32 = 0x2828;
/// Delay of the receive interrupt behind the first frame, in 1.024 µs.
pub const RADV: u32 = 0x282C;
/// Transmit ring: as [`RDBAL`].
pub const TDBAL: u32 = 0x3800;
/// Transmit ring's head.
pub const TDH: u32 = 0x3810;
/// Transmit ring's tail, the doorbell.
pub const TDT: u32 = 0x3818;
/// Delay of the transmit interrupt behind the last write-back, in 1.024 µs.
pub const TIDV: u32 = 0x3820;
/// The thresholds for fetching transmit descriptors.
pub const TXDCTL: u32 = 0x3828;
/// Delay of the transmit interrupt behind the first write-back, in 1.024 µs.
pub const TADV: u32 = 0x382C;
/// Receive checksum control.
pub const RXCSUM: u32 = 0x5000;
/// Receive filter control; bit 15 selects extended descriptors.
pub const RFCTL: u32 = 0x5008;
/// Multicast table: 4096 bits.
pub const MTA: u32 = 0x5200;
/// Receive addresses: 16 pairs of low and high half; bit 31 of the high half makes one valid.
pub const RAL: u32 = 0x5400;
/// VLAN filter table: 4096 bits.
pub const VFTA: u32 = 0x5600;
/// Software's and firmware's semaphore.
pub const SWSM: u32 = 0x5B50;
/// System time of IEEE 1588, low and high half.
pub const SYSTIML: u32 = 0xB600;
/// Its increment: bits 31:24 periods of 40 ns, by bits 23:0.
pub const TIMINCA: u32 = 0xB608;

/// Bits of [`CTRL`].
pub mod ctrl {
    /// No new requests: [`STATUS`](super::STATUS) tells when the last has ended.
    pub const GIO_MASTER_DISABLE: u32 = 1 << 2;
    /// Set link up.
    pub const SLU: u32 = 1 << 6;
    /// Reset; clears itself.
    pub const RST: u32 = 1 << 26;
    /// VLAN tags are taken out and put in.
    pub const VME: u32 = 1 << 30;
    /// Reset of the PHY, as long as it is set.
    pub const PHY_RST: u32 = 1 << 31;
}
/// Bits of [`STATUS`].
pub mod status {
    /// Full duplex.
    pub const FD: u32 = 1;
    /// Link up.
    pub const LU: u32 = 1 << 1;
    /// 1000 Mb/s.
    pub const SPEED_1000: u32 = 2 << 6;
    /// 1000 Mb/s as the automatic detection sees it.
    pub const ASDV_1000: u32 = 2 << 8;
    /// The PHY was reset; written with 0 to clear.
    pub const PHYRA: u32 = 1 << 10;
    /// Requests may be issued or are under way.
    pub const GIO_MASTER_ENABLE: u32 = 1 << 19;
}
/// Bits of [`EECD`].
pub mod eecd {
    /// Software asks for the NVM.
    pub const REQ: u32 = 1 << 6;
    /// And has it.
    pub const GNT: u32 = 1 << 7;
    /// There is one.
    pub const PRES: u32 = 1 << 8;
    /// It was read after the reset.
    pub const AUTO_RD: u32 = 1 << 9;
}
/// Bits of [`EERD`] and [`EEWR`].
pub mod eerd {
    /// Go.
    pub const START: u32 = 1;
    /// Done.
    pub const DONE: u32 = 1 << 1;
}
/// Bits of [`CTRL_EXT`].
pub mod ctrl_ext {
    /// Reads the NVM again, as after a reset; clears itself.
    pub const EE_RST: u32 = 1 << 13;
    /// A message takes its causes in [`IAM`](super::IAM) out of the mask.
    pub const EIAME: u32 = 1 << 24;
    /// So does a read of [`ICR`](super::ICR).
    pub const IAME: u32 = 1 << 27;
}
/// Bits of [`MDIC`].
pub mod mdic {
    /// Write the data in bits 15:0.
    pub const WRITE: u32 = 1 << 26;
    /// Read.
    pub const READ: u32 = 2 << 26;
    /// Done.
    pub const READY: u32 = 1 << 28;
    /// There is no such PHY.
    pub const ERROR: u32 = 1 << 30;
}
/// Causes in [`ICR`] and its kin.
pub mod cause {
    /// A transmit descriptor was written back.
    pub const TXDW: u32 = 1;
    /// The transmit ring is empty.
    pub const TXQE: u32 = 1 << 1;
    /// The link changed.
    pub const LSC: u32 = 1 << 2;
    /// Few receive descriptors are left.
    pub const RXDMT0: u32 = 1 << 4;
    /// A frame was lost for want of room.
    pub const RXO: u32 = 1 << 6;
    /// A frame was received.
    pub const RXT0: u32 = 1 << 7;
    /// The PHY access is over.
    pub const MDAC: u32 = 1 << 9;
    /// A small frame was received.
    pub const SRPD: u32 = 1 << 16;
    /// A TCP acknowledgement was received.
    pub const ACK: u32 = 1 << 17;
    /// Manageability.
    pub const MNG: u32 = 1 << 18;
    /// Receive queue 0, for MSI-X.
    pub const RXQ0: u32 = 1 << 20;
    /// Transmit queue 0, for MSI-X.
    pub const TXQ0: u32 = 1 << 22;
    /// Anything else, for MSI-X.
    pub const OTHER: u32 = 1 << 24;
    /// Bit 31 of [`ICR`](super::ICR): the function interrupts.
    pub const ASSERTED: u32 = 1 << 31;
}
/// Bits of [`RCTL`].
pub mod rctl {
    /// Receive.
    pub const EN: u32 = 1 << 1;
    /// Frames to any single address.
    pub const UPE: u32 = 1 << 3;
    /// Frames to any group.
    pub const MPE: u32 = 1 << 4;
    /// Frames of more than 1522 bytes.
    pub const LPE: u32 = 1 << 5;
    /// Loopback in the MAC.
    pub const LBM_MAC: u32 = 1 << 6;
    /// Packet-split descriptors.
    pub const DTYP_PS: u32 = 1 << 10;
    /// Broadcasts.
    pub const BAM: u32 = 1 << 15;
    /// The VLAN filter table decides on tagged frames.
    pub const VFE: u32 = 1 << 18;
    /// Buffer sizes are 16 times larger.
    pub const BSEX: u32 = 1 << 25;
    /// The check sequence at the end of a frame is not stored.
    pub const SECRC: u32 = 1 << 26;
}
/// Bits of [`TCTL`].
pub mod tctl {
    /// Transmit.
    pub const EN: u32 = 1 << 1;
    /// Short frames are padded to 60 bytes.
    pub const PSP: u32 = 1 << 3;
}
/// Bits of [`EXTCNF_CTRL`].
pub mod extcnf {
    /// Software owns the PHY's wires.
    pub const MDIO_SW_OWNERSHIP: u32 = 1 << 5;
}
