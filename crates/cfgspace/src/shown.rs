//! Registers that a function shows software changed: the device behind it changes registers of its own.
//!
//! Vendor ID, class, serial numbers and the fields of capabilities are constant on most devices, and of a device's making on all. A change
//! is seen by software alone: BARs decode, interrupts go and capabilities are obeyed as they were laid out, since what reads them
//! here is the hardware, which has not become another.

use crate::space::ConfigSpace;
use std::collections::BTreeMap;

/// Bits that read otherwise, by the offset of their dword: which, and as what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(BTreeMap<u16, Bits>);

#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    mask: u32,
    value: u32,
}

/// The reason that a device cannot change bytes of its configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShowError {
    /// They are not all there.
    #[error(
        "it changes {bytes} bytes of its configuration space at {offset:#x}; expected one or more bytes within its 4096"
    )]
    Range {
        /// The first.
        offset: u16,
        /// Their number.
        bytes: usize,
    },
    /// A byte is written by software, or by what reports errors, and not by the device.
    #[error(
        "it changes the byte at {0:#x} of its configuration space, which software or error reporting writes, as they do Command, Status and the addresses in BARs; a device may change only the other bytes"
    )]
    NotItsOwn(u16),
}

impl ConfigSpace {
    /// From now on software reads `data` at `offset`. Bits that software writes or clears and those that log errors stay as they are; bytes of
    /// nothing else are refused. A function-level and a hot reset do not end it: what software cannot write they do not change.
    ///
    /// # Errors
    /// The bytes are not there, or not the device's. None is changed then.
    pub fn show(&mut self, offset: u16, data: &[u8]) -> Result<(), ShowError> {
        let end = usize::from(offset) + data.len();
        if data.is_empty() || end > self.bytes.len() {
            return Err(ShowError::Range { offset, bytes: data.len() });
        }
        let bytes = || (offset..).zip(data);
        if let Some((at, _)) = bytes().find(|(at, _)| self.own_bits(*at) == 0) {
            return Err(ShowError::NotItsOwn(at));
        }
        for (at, byte) in bytes() {
            let (own, shift) = (u32::from(self.own_bits(at)), 8 * u32::from(at % 4));
            let bits = self.shown.0.entry(at & 0xFFC).or_default();
            bits.mask |= own << shift;
            bits.value = bits.value & !(0xFF << shift) | (own & u32::from(*byte)) << shift;
        }
        Ok(())
    }

    /// The dword at `offset` that software reads.
    pub fn shown(&self, offset: u16) -> u32 {
        let own = self.read(offset);
        self.shown.0.get(&(offset & 0xFFC)).map_or(own, |bits| own & !bits.mask | bits.value)
    }

    /// The bytes that software reads, in the order of addresses.
    pub fn shown_bytes(&self) -> [u8; 4096] {
        let mut bytes = *self.bytes;
        for offset in self.shown.0.keys() {
            bytes[usize::from(*offset)..][..4].copy_from_slice(&self.shown(*offset).to_le_bytes());
        }
        bytes
    }

    /// The bits of a byte that neither software nor the reporting of errors changes.
    fn own_bits(&self, at: u16) -> u8 {
        let rules = self.rules[usize::from(at / 4)];
        let others = rules.writable | rules.clearable | rules.logged;
        !(others >> (8 * u32::from(at % 4))) as u8
    }
}
