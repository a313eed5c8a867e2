//! The memory that a guest shares.

use tlplab_uml::GuestMemory;

/// Where it begins; before it are the kernel's own code and data, which are not shared.
pub(crate) const BASE: u64 = 0x0060_0000;
pub(crate) const BYTES: usize = 1 << 20;

pub(crate) struct Memory(Vec<u8>);

impl Memory {
    pub(crate) fn new() -> Self {
        Self(vec![0xA5; BYTES])
    }

    fn range(address: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let first = usize::try_from(address.checked_sub(BASE)?).ok()?;
        let end = first.checked_add(bytes)?;
        (end <= BYTES).then_some(first..end)
    }

    /// What the kernel itself stores.
    pub(crate) fn store(&mut self, address: u64, data: &[u8]) {
        self.0[Self::range(address, data.len()).expect("the kernel's own memory")].copy_from_slice(data);
    }

    /// What the kernel itself loads.
    pub(crate) fn load(&self, address: u64, bytes: usize) -> &[u8] {
        &self.0[Self::range(address, bytes).expect("the kernel's own memory")]
    }

    pub(crate) fn load_half(&self, address: u64) -> u16 {
        u16::from_le_bytes(self.load(address, 2).try_into().expect("2 B"))
    }

    pub(crate) fn load_word(&self, address: u64) -> u32 {
        u32::from_le_bytes(self.load(address, 4).try_into().expect("4 B"))
    }
}

impl GuestMemory for Memory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let Some(range) = Self::range(address, out.len()) else { return false };
        out.copy_from_slice(&self.0[range]);
        true
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let Some(range) = Self::range(address, data.len()) else { return false };
        self.0[range].copy_from_slice(data);
        true
    }
}
