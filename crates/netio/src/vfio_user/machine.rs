//! Memory and interrupts of a client.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use tlplab_ipc::Mapping;
use tlplab_vfio::{DmaRange, Host, Irq};

/// What a client shares.
#[derive(Default)]
pub(super) struct Machine {
    /// By first address.
    ranges: BTreeMap<u64, Mapping>,
    triggers: BTreeMap<(Irq, u32), File>,
    /// Those of the message at hand.
    descriptors: Vec<Option<OwnedFd>>,
}

impl Machine {
    /// The descriptors of the message that is handled now.
    pub(super) fn hand_over(&mut self, descriptors: Vec<OwnedFd>) {
        self.descriptors = descriptors.into_iter().map(Some).collect();
    }

    fn take(&mut self, file: usize) -> Option<OwnedFd> {
        self.descriptors.get_mut(file)?.take()
    }
}

impl Host for Machine {
    fn map(&mut self, range: &DmaRange, file: usize) -> bool {
        let Some(file) = self.take(file) else { return false };
        let mapping = Mapping::new(file, range.offset, range.bytes, range.writable);
        mapping.map(|mapping| self.ranges.insert(range.address, mapping)).is_ok()
    }

    fn unmap(&mut self, range: &DmaRange) {
        self.ranges.remove(&range.address);
    }

    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let range = self.ranges.range(..=address).next_back();
        range.is_some_and(|(first, mapping)| mapping.read(address - first, out))
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let range = self.ranges.range_mut(..=address).next_back();
        range.is_some_and(|(first, mapping)| mapping.write(address - first, data))
    }

    fn set_trigger(&mut self, irq: Irq, vector: u32, file: Option<usize>) {
        match file.and_then(|file| self.take(file)) {
            Some(event) => drop(self.triggers.insert((irq, vector), event.into())),
            None => drop(self.triggers.remove(&(irq, vector))),
        }
    }

    fn trigger(&mut self, irq: Irq, vector: u32) -> bool {
        // An eventfd takes a number of eight bytes.
        self.triggers
            .get_mut(&(irq, vector))
            .is_some_and(|event| event.write_all(&1_u64.to_ne_bytes()).is_ok())
    }
}
