//! The 4 KiB of one function: the result of a read and the effect of a write, bit by bit.

use crate::layout::{Layout, LayoutError, Positions};
use crate::shown::Shown;
use crate::written::Written;

/// The behaviour of the bits of one dword (PCIe 5.0 §7.4). Bits in no mask are read-only, hardware-initialised or reserved: writes do
/// not change them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// RW: takes what is written.
    pub(crate) writable: u32,
    /// RW1C: cleared by writing one.
    pub(crate) clearable: u32,
    /// Read-only, set by hardware, and cleared by a reset: logs and pending bits.
    pub(crate) logged: u32,
    /// Survives a hot and a function-level reset (RWS, RW1CS, ROS).
    pub(crate) sticky: u32,
    /// Survives a function-level reset only, because it belongs to the link (PCIe 5.0 §6.6.2).
    pub(crate) kept: u32,
    /// The value after a reset.
    pub(crate) initial: u32,
}

/// The resets a function knows (PCIe 5.0 §6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Power was off: everything starts again.
    Cold,
    /// The link was reset or went down: sticky bits stay.
    Hot,
    /// Software reset this function: sticky bits and those of the link stay.
    FunctionLevel,
}

/// The configuration space of one function.
///
/// Bits that hardware owns, such as the negotiated width, are changed by the methods of [`crate::hardware`]; the meaning of the
/// registers is read by those of [`crate::view`].
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    pub(crate) bytes: Box<[u8; 4096]>,
    pub(crate) rules: Box<[Rules]>,
    pub(crate) positions: Positions,
    pub(crate) shown: Shown,
}

impl ConfigSpace {
    /// The space of a function that is laid out so, after a cold reset.
    ///
    /// # Errors
    /// If capabilities overlap or do not fit, or a register cannot hold what is asked of it.
    pub fn new(layout: &Layout) -> Result<Self, LayoutError> {
        layout.build()
    }

    /// The dword at `offset` (its two low bits are ignored, and only twelve bits count), as the function obeys it; software reads
    /// [what it shows](Self::shown).
    pub fn read(&self, offset: u16) -> u32 {
        let at = usize::from(offset & 0xFFC);
        u32::from_le_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }

    /// All of it as the function obeys it, in the order of addresses: little-endian registers.
    pub fn bytes(&self) -> &[u8; 4096] {
        &self.bytes
    }

    /// Writes those bytes of the dword at `offset` that `enables` (bit 0: the lowest byte) selects, and returns the registers that the owner
    /// must look at again.
    pub fn write(&mut self, offset: u16, enables: u8, value: u32) -> Written {
        let offset = offset & 0xFFC;
        let rules = self.rules[usize::from(offset / 4)];
        let lanes =
            (0..4).filter(|lane| enables >> lane & 1 == 1).fold(0, |mask, lane| mask | 0xFF << (8 * lane));
        let (old, ones) = (self.read(offset), value & lanes);
        let writable = rules.writable & lanes;
        let new = (old & !writable | value & writable) & !(ones & rules.clearable);
        self.store(offset, new);
        self.consequences(offset, old ^ new, ones)
    }

    /// Brings registers to their initial values as far as `reset` reaches; the state that hardware reports about links and slots stays.
    pub fn reset(&mut self, reset: Reset) {
        for word in 0..self.rules.len() {
            let (rules, offset) = (self.rules[word], 4 * word as u16);
            let survives = match reset {
                Reset::Cold => 0,
                Reset::Hot => rules.sticky,
                Reset::FunctionLevel => rules.sticky | rules.kept,
            };
            let starts = (rules.writable | rules.clearable | rules.logged) & !survives;
            self.store(offset, self.read(offset) & !starts | rules.initial & starts);
        }
        self.apply_bar_sizes();
        if reset == Reset::Cold {
            self.shown = Shown::default();
        }
    }

    /// The register at `offset`, which is even.
    pub(crate) fn read16(&self, offset: u16) -> u16 {
        let at = usize::from(offset & 0xFFE);
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Changes bits as hardware does, whatever software may do with them.
    pub(crate) fn store(&mut self, offset: u16, value: u32) {
        let at = usize::from(offset & 0xFFC);
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Sets the field under `mask`, which is aligned with `value`, in the 16-bit register at `offset`.
    pub(crate) fn update16(&mut self, offset: u16, mask: u16, value: u16) {
        let new = self.read16(offset) & !mask | value & mask;
        let at = usize::from(offset & 0xFFE);
        self.bytes[at..at + 2].copy_from_slice(&new.to_le_bytes());
    }

    /// Sets the field under `mask` in the dword at `offset`.
    pub(crate) fn update32(&mut self, offset: u16, mask: u32, value: u32) {
        self.store(offset, self.read(offset) & !mask | value & mask);
    }
}
