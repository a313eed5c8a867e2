//! The software interface of a simple NIC: registers in BAR 4 and descriptors in memory, little-endian.

use super::SimpleNicConfig;
use crate::kit::RegisterFile;

crate::registers! {
    /// Address of the ring of frames to send. A write starts the ring anew.
    pub TX_DESC_BASE: u64 = 0x00, rw;
    /// Address of the ring of receive buffers. A write starts the ring anew.
    pub RX_DESC_BASE: u64 = 0x08, rw;
    /// Doorbell: descriptors ever posted, modulo 2^32; in a ring of size 0 the number of the descriptor to send.
    pub TX_IDX: u32 = 0x10, rw;
    /// Doorbell: buffers ever posted, modulo 2^32; in a ring of size 0 the number of the descriptor with the next buffer.
    pub RX_IDX: u32 = 0x14, rw;
    /// Bit 0: the driver is there. Nothing is fetched, sent or received before.
    pub ENABLED: u32 = 0x18, rw;
    // What the published device does not have.

    /// Remembers what is written, and has no meaning.
    RESERVED: u32 = 0x1C, rw;
    /// Descriptors in the transmit ring, at most 32 768; 0 for the published protocol. A write starts the ring anew.
    pub TX_SIZE: u32 = 0x20, rw;
    /// Descriptors in the receive ring, as [`TX_SIZE`].
    pub RX_SIZE: u32 = 0x24, rw;
    /// The address where the device writes [`TX_HEAD`] and [`RX_HEAD`] before each interrupt; 0 for none.
    pub HEADS: u64 = 0x28, rw;
    /// Least time between two interrupts of a vector in nanoseconds.
    pub MODERATION: u32 = 0x30, rw;
    /// Bytes of the longest frame.
    pub MAX_FRAME: u32 = 0x34, ro;
    /// Descriptors sent, modulo 2^32.
    pub TX_HEAD: u32 = 0x38, ro;
    /// Buffers filled, modulo 2^32.
    pub RX_HEAD: u32 = 0x3C, ro;
    /// The address of the port: 6 bytes.
    pub MAC: u64 = 0x40, ro;
    /// Frames given to the port.
    pub TX_FRAMES: u64 = 0x48, ro;
    /// Descriptors whose frame could not be read, or has a length that none has.
    pub TX_ERRORS: u64 = 0x50, ro;
    /// Frames written to memory.
    pub RX_FRAMES: u64 = 0x58, ro;
    /// Frames longer than the buffer that was next, dropped.
    pub RX_TOO_LONG: u64 = 0x60, ro;
    /// Receive descriptors that could not be read; they are given back with length 0.
    pub RX_ERRORS: u64 = 0x68, ro;
    /// Doorbells that go back or post more than the ring has room for.
    pub REFUSED_DOORBELLS: u64 = 0x70, ro;
}

/// The registers after power-on.
pub(super) fn registers(config: &SimpleNicConfig) -> RegisterFile {
    let [a, b, c, d, e, f] = config.mac;
    let mut file = RegisterFile::new(TABLE);
    file.set(MAX_FRAME, config.longest());
    file.set(MAC, u64::from_le_bytes([a, b, c, d, e, f, 0, 0]));
    file
}

/// Most descriptors in a ring.
pub const LARGEST_RING: u32 = 32_768;

crate::record! {
    /// A descriptor: 16 bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Descriptor [16] {
        /// The buffer.
        pub address: u64 = 0,
        /// Its length in bytes; after reception that of the frame.
        pub length: u64 = 8,
    }
}

impl Descriptor {
    /// The place of the length in it.
    pub const LENGTH: u64 = 8;
}
