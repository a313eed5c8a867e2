//! What software sees of a simple NIC: registers in BAR 4 and descriptors in memory, little-endian.

use super::SimpleNicConfig;

/// Address of the ring of frames to send, 64 bits. A write starts the ring anew.
pub const TX_DESC_BASE: u64 = 0x00;
/// Address of the ring of receive buffers, 64 bits. A write starts the ring anew.
pub const RX_DESC_BASE: u64 = 0x08;
/// Doorbell, 32 bits: descriptors ever posted, modulo 2^32; in a ring of size 0 the number of the descriptor to send.
pub const TX_IDX: u64 = 0x10;
/// Doorbell, 32 bits: buffers ever posted, modulo 2^32; in a ring of size 0 the number of the descriptor with the next buffer.
pub const RX_IDX: u64 = 0x14;
/// Bit 0: the driver is there. Nothing is fetched, sent or received before.
pub const ENABLED: u64 = 0x18;

// What the published device does not have.

/// Descriptors in the transmit ring, 32 bits, at most 32 768; 0 for the published protocol. A write starts the ring anew.
pub const TX_SIZE: u64 = 0x20;
/// Descriptors in the receive ring, as [`TX_SIZE`].
pub const RX_SIZE: u64 = 0x24;
/// Where the device writes [`TX_HEAD`] and [`RX_HEAD`] before each interrupt, 64 bits; 0 for nowhere.
pub const HEADS: u64 = 0x28;
/// Least time between two interrupts of a vector in nanoseconds, 32 bits.
pub const MODERATION: u64 = 0x30;
/// What is behind this is read-only.
const WRITABLE: u64 = 0x34;
/// Bytes of the longest frame, 32 bits.
pub const MAX_FRAME: u64 = 0x34;
/// Descriptors sent, modulo 2^32.
pub const TX_HEAD: u64 = 0x38;
/// Buffers filled, modulo 2^32.
pub const RX_HEAD: u64 = 0x3C;
/// The address of the port: 6 bytes.
pub const MAC: u64 = 0x40;
/// Frames given to the port, 64 bits.
pub const TX_FRAMES: u64 = 0x48;
/// Descriptors whose frame could not be read, or has a length that none has.
pub const TX_ERRORS: u64 = 0x50;
/// Frames written to memory.
pub const RX_FRAMES: u64 = 0x58;
/// Frames longer than the buffer that was next, dropped.
pub const RX_TOO_LONG: u64 = 0x60;
/// Receive descriptors that could not be read; they are given back with length 0.
pub const RX_ERRORS: u64 = 0x68;
/// Doorbells that go back or post more than the ring has room for.
pub const REFUSED_DOORBELLS: u64 = 0x70;
/// Size of the register file.
pub const END: u64 = 0x78;

/// Most descriptors in a ring.
pub const LARGEST_RING: u32 = 32_768;

/// A descriptor: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The buffer.
    pub address: u64,
    /// Its length in bytes; after reception that of the frame.
    pub length: u64,
}

impl Descriptor {
    /// Size in memory.
    pub const BYTES: u64 = 16;
    /// Where the length is in it.
    pub const LENGTH: u64 = 8;

    /// As in memory.
    pub fn to_bytes(self) -> [u8; Self::BYTES as usize] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
    /// From memory.
    pub fn from_bytes(bytes: &[u8; Self::BYTES as usize]) -> Self {
        let both = u128::from_le_bytes(*bytes);
        Self { address: both as u64, length: (both >> 64) as u64 }
    }
}

/// What is kept for software. The heads are the queues' to know.
#[derive(Clone, Debug)]
pub(super) struct Registers([u8; END as usize]);

impl Registers {
    pub(super) fn new(config: &SimpleNicConfig) -> Self {
        let mut file = Self([0; END as usize]);
        file.set(MAX_FRAME, &config.longest().to_le_bytes());
        file.set(MAC, &config.mac);
        file
    }

    fn set(&mut self, at: u64, bytes: &[u8]) {
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Takes what may be written; true if a register of so many bytes was touched.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> impl Fn(u64, u64) -> bool + use<> {
        let end = offset.saturating_add(data.len() as u64).min(WRITABLE);
        for (at, byte) in (offset..end).zip(data) {
            self.0[at as usize] = *byte;
        }
        move |register, bytes| offset < register + bytes && register < end
    }

    pub(super) fn word(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.0[at as usize..][..4].try_into().expect("4 bytes"))
    }
    pub(super) fn long(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.0[at as usize..][..8].try_into().expect("8 bytes"))
    }
    pub(super) fn enabled(&self) -> bool {
        self.word(ENABLED) & 1 != 0
    }
    pub(super) fn count(&mut self, counter: u64, events: u64) {
        self.set(counter, &self.long(counter).wrapping_add(events).to_le_bytes());
    }
    pub(super) fn image(&self, sent: u32, received: u32) -> [u8; END as usize] {
        let mut file = self.clone();
        file.set(TX_HEAD, &sent.to_le_bytes());
        file.set(RX_HEAD, &received.to_le_bytes());
        file.0
    }
}
