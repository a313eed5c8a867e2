//! The registers of tlpdma in BAR 0, and what lies in host memory: descriptors and write-back records. All little-endian.

use crate::kit::bytes::{get, put};

/// Vendor and device ID.
pub const IDS: (u16, u16) = (tlplab_cfgspace::VENDOR_ID, 0x7D0A);
/// The BAR of the registers, and its size.
pub const BAR: (u8, u64) = (0, 64 << 10);
/// The BAR of the window into the card's memory, and its size.
pub const WINDOW_BAR: (u8, u64) = (2, 1 << 20);

/// The value of [`ID`].
pub const ID_VALUE: u32 = 0x544C_5044;
/// The value of [`VERSION`].
pub const VERSION_VALUE: u32 = 0x0001_0000;

crate::registers! {
    /// Read-only: [`ID_VALUE`].
    pub ID: u32 = 0x000, ro.reset(ID_VALUE as u64);
    /// Read-only: version of the registers.
    pub VERSION: u32 = 0x004, ro.reset(VERSION_VALUE as u64);
    /// Bit 0: enabled; bit 1: reset of the whole card, reads 1 until it is over.
    pub CONTROL: u32 = 0x008, rw.masked(1);
    /// Read-only. Bit 0: nothing is under way; bit 1: may master the bus; bit 2: MSI-X is enabled.
    pub STATUS: u32 = 0x00C, ro;
    /// Read-only: log2 of the tags, MPS and MRRS codes from bits 8 and 12 on, MSI-X vectors from bit 16 on.
    pub CONFIG: u32 = 0x010, ro;
    /// Causes of interrupts, cleared by writing ones: bit 0 to the card, bit 1 from the card, bit 2 an error.
    pub IRQ_STATUS: u32 = 0x014, rw1c;
    /// The causes that interrupt.
    pub IRQ_ENABLE: u32 = 0x018, rw;
    /// Interrupt moderation.
    pub IRQ_MODERATION: u32 = 0x01C, rw;
    /// Time since reset, in cycles of the user clock; low half.
    pub CYCLES: u32 = 0x030, ro;
    /// A register that only remembers.
    pub SCRATCH: u32 = 0x040, rw;
    /// Base of the window in the card's memory, MiB.
    pub WINDOW: u32 = 0x044, rw;
    /// Read-only: the card's memory, MiB.
    pub MEM_MIB: u32 = 0x048, ro;
}

/// The start of the registers of the channel to the card.
pub const TO_CARD: u64 = 0x100;
/// Registers of the channel from the card.
pub const FROM_CARD: u64 = 0x180;

/// Registers of either channel.
pub(crate) const fn channel(to_card: bool) -> u64 {
    if to_card { TO_CARD } else { FROM_CARD }
}
/// Bytes of a channel's registers.
pub const CHANNEL_BYTES: u64 = 0x80;

/// Registers of a channel, from [`TO_CARD`] or [`FROM_CARD`] on.
pub mod ch {
    /// Of [`CONTROL`]: the channel works.
    pub const RUN: u32 = 1;
    /// Of [`CONTROL`]: resets the channel; reads 1 until that is over.
    pub const RESET: u32 = 2;
    /// Of [`CONTROL`]: descriptors come by PIO, there is no ring.
    pub const PIO: u32 = 4;

    crate::registers! {
        /// Address of the ring.
        pub BASE: u64 = 0x00, rw;
        /// log2 of its descriptors.
        pub LOG2: u32 = 0x08, rw;
        /// Doorbell: descriptors ever posted, modulo 2^32.
        pub TAIL: u32 = 0x0C, rw;
        /// Read-only: descriptors ever done.
        pub HEAD: u32 = 0x10, ro;
        /// Read-only: descriptors ever fetched.
        pub FETCHED: u32 = 0x14, ro;
        /// The address of the write-back record; 0: none.
        pub WRITE_BACK: u64 = 0x18, rw;
        /// [`RUN`], [`RESET`], [`PIO`].
        pub CONTROL: u32 = 0x20, rw.masked((RUN | PIO) as u64);
        /// Read-only: as in the write-back record; bit 8: a descriptor was pushed into a full buffer.
        pub STATUS: u32 = 0x24, ro;
        /// Four doublewords of a descriptor; writing the last pushes it.
        pub PIO_DESCRIPTOR: u32 = 0x30, rw.times(4);
        /// Read-only: descriptors for which there is room.
        pub PIO_ROOM: u32 = 0x40, ro;
    }
}

/// A descriptor: so many bytes between host memory and the card's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Address in host memory.
    pub host: u64,
    /// Address in the card's memory.
    pub local: u32,
    /// Length, 1 to 2^24 - 1.
    pub bytes: u32,
    /// Raise the channel's interrupt when it is done.
    pub interrupt: bool,
    /// Write the record back when it is done.
    pub write_back: bool,
}

impl Descriptor {
    /// Size in memory.
    pub const BYTES: usize = 16;
    /// The longest that one can be, bytes.
    pub const LONGEST: u32 = (1 << 24) - 1;

    /// As in memory.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let flags = u32::from(self.interrupt) | u32::from(self.write_back) << 1;
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, self.host);
        put(&mut bytes, 8, self.local);
        put(&mut bytes, 12, self.bytes & Self::LONGEST | flags << 24);
        bytes
    }
    /// From memory.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let last: u32 = get(bytes, 12);
        Self {
            host: get(bytes, 0),
            local: get(bytes, 8),
            bytes: last & Self::LONGEST,
            interrupt: last & 1 << 24 != 0,
            write_back: last & 2 << 24 != 0,
        }
    }
}

/// The card's record in host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Descriptors ever done, modulo 2^32.
    pub head: u32,
    /// [`Record::ERROR`], [`Record::HALTED`].
    pub status: u32,
}

impl Record {
    /// Size in memory.
    pub const BYTES: usize = 8;
    /// The reason that the channel halted: one of [`error_name`]'s codes.
    pub const ERROR: u32 = 7;
    /// The channel halted at its head.
    pub const HALTED: u32 = 8;

    /// As in memory.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        (u64::from(self.head) | u64::from(self.status) << 32).to_le_bytes()
    }
    /// From memory.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let both = u64::from_le_bytes(bytes);
        Self { head: both as u32, status: (both >> 32) as u32 }
    }
}

/// The meaning of an error code of a record.
pub fn error_name(status: u32) -> &'static str {
    match status & Record::ERROR {
        0 => "no error",
        1 => "unsupported request",
        2 => "completer abort",
        3 => "poisoned data",
        4 => "a completion that does not match its request",
        5 => "completion timeout",
        6 => "no bus mastering",
        _ => "reset",
    }
}
