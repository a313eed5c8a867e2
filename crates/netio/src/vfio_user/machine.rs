//! Memory and interrupts of a client.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_ipc::Mapping;
use tlplab_vfio::{DmaRange, Host, Irq};

/// The mapped memory of a client, as its function sees it; everybody who has a copy of this sees the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedRanges(Arc<Mutex<Ranges>>);

/// By first address.
type Ranges = BTreeMap<u64, (DmaRange, Mapping)>;

impl SharedRanges {
    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the function may read or write `bytes` at `address`, all of which are in one range.
    pub(crate) fn grants(&self, address: u64, bytes: u64, writes: bool) -> bool {
        let ranges = self.ranges();
        let range = ranges.range(..=address).next_back();
        range.is_some_and(|(first, (range, _))| {
            let fits = (address - first).checked_add(bytes.max(1)).is_some_and(|end| end <= range.bytes);
            fits && if writes { range.writable } else { range.readable }
        })
    }

    /// Reads within one range. False if it is not there.
    pub(crate) fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let ranges = self.ranges();
        let range = ranges.range(..=address).next_back();
        range.is_some_and(|(first, (_, mapping))| mapping.read(address - first, out))
    }

    /// Writes within one range. False if it is not there.
    pub(crate) fn write(&self, address: u64, data: &[u8]) -> bool {
        let mut ranges = self.ranges();
        let range = ranges.range_mut(..=address).next_back();
        range.is_some_and(|(first, (_, mapping))| mapping.write(address - first, data))
    }
}

/// The memory and interrupts that a client shares.
#[derive(Default)]
pub(super) struct Machine {
    pub(super) ranges: SharedRanges,
    /// Addresses at which it can have no memory.
    pub(super) taken: Range<u64>,
    triggers: BTreeMap<(Irq, u32), File>,
    /// Descriptors of the present message.
    descriptors: Vec<Option<OwnedFd>>,
}

impl Machine {
    /// The client is gone, and what it shared.
    pub(super) fn forget(&mut self) {
        self.ranges.ranges().clear();
        self.triggers.clear();
        self.descriptors.clear();
    }

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
        if range.address < self.taken.end && self.taken.start < range.address + range.bytes {
            return false;
        }
        let mapping = Mapping::new(file, range.offset, range.bytes, range.writable);
        mapping.map(|mapping| self.ranges.ranges().insert(range.address, (*range, mapping))).is_ok()
    }

    fn unmap(&mut self, range: &DmaRange) {
        self.ranges.ranges().remove(&range.address);
    }

    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.ranges.read(address, out)
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.ranges.write(address, data)
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
