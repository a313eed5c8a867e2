//! The card's own registers, in BAR 0 and behind a UDP port of their own.

use std::net::Ipv4Addr;
use tlplab_units::Bdf;
use tlplab_wire::nettlp::registers::{MAGIC, Register};

/// Bytes of BAR 0.
pub(super) const BAR0_BYTES: u64 = 16 << 10;

/// The port that the card starts with.
const PORT: u32 = 0x3776;

/// The registers of one card. The software that stands for it is told its peers when it starts, so what a peer writes here can be read
/// again, but sends its traffic nowhere else.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// By their numbers, up to the source port.
    words: [u32; 9],
    id: Bdf,
}

impl Registers {
    pub(super) fn new(local: Ipv4Addr, peer: Ipv4Addr, id: Bdf) -> Self {
        let (destination, source) = (u32::from(peer), u32::from(local));
        // MAC addresses as the card has them after power-on.
        let words = [MAGIC, u32::MAX, 0xFFFF, 0x2233_4455, 0x0011, destination, source, PORT, PORT];
        Self { words, id }
    }

    pub(super) fn read(&self, register: Register) -> u32 {
        self.words.get(register as usize).copied().unwrap_or(self.id.0.into())
    }

    /// The register at that dword of BAR 0; zero where there is none.
    pub(super) fn read_dword(&self, dword: u64) -> u32 {
        let at = Register::ALL.into_iter().find(|register| *register as u64 == dword);
        at.map_or(0, |register| self.read(register))
    }

    /// Software writes a register. The magic number, the addresses and the ID stay.
    pub(super) fn write(&mut self, register: Register, value: u32) {
        use Register::{
            DestinationMacHigh, DestinationMacLow, DestinationPort, SourceMacHigh, SourceMacLow, SourcePort,
        };
        let writable = match register {
            DestinationMacLow | SourceMacLow => u32::MAX,
            DestinationMacHigh | SourceMacHigh | DestinationPort | SourcePort => 0xFFFF,
            _ => return,
        };
        self.words[register as usize] = value & writable;
    }
}
