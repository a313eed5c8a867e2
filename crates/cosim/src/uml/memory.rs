//! The memory that a guest shares: host memory of the fabric, and where the guest's virtqueues lie.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_device::{HostMemory, OutOfMemory};
use tlplab_ipc::Mapping;
use tlplab_uml::GuestMemory;
use tlplab_uml::vhost::Region;

/// A guest's memory, once it has shared it; everyone who has a copy of this sees the same.
#[derive(Clone, Debug, Default)]
pub struct SharedMemory(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    ranges: Vec<Shared>,
    /// The first access of a device to what the guest does not share.
    missed: Option<(u64, usize)>,
}

/// A range of memory, and where the guest has it.
#[derive(Debug)]
struct Shared {
    region: Region,
    mapping: Mapping,
}

impl SharedMemory {
    /// Memory that nobody has shared yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The guest shares these ranges, each of the file beside it.
    ///
    /// # Errors
    /// The system's.
    pub fn map(&self, regions: &[Region], files: &[OwnedFd]) -> io::Result<()> {
        let ranges = regions.iter().zip(files).map(|(region, file)| {
            let mapping = Mapping::new(file, region.offset, region.bytes, true)?;
            Ok(Shared { region: *region, mapping })
        });
        let ranges = ranges.collect::<io::Result<_>>()?;
        self.with(|inner| inner.ranges = ranges);
        Ok(())
    }

    /// The first access of a device to memory that the guest has, but does not share: where its kernel's own code and data are.
    pub fn missed(&self) -> Option<(u64, usize)> {
        self.with(|inner| inner.missed)
    }

    fn miss(&self, address: u64, bytes: usize) {
        self.with(|inner| inner.missed = inner.missed.or(Some((address, bytes))));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    /// Tries an access at `address` in each range that begins before; `act` says whether all of it was there.
    fn access(&mut self, address: u64, mut act: impl FnMut(&mut Mapping, u64) -> bool) -> bool {
        self.ranges.iter_mut().any(|Shared { region, mapping }| {
            address.checked_sub(region.address).is_some_and(|at| act(mapping, at))
        })
    }
}

impl GuestMemory for SharedMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.with(|inner| inner.access(address, |mapping, at| mapping.read(at, out)))
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.with(|inner| inner.access(address, |mapping, at| mapping.write(at, data)))
    }
}

/// Devices read zeros where nothing is shared, and their writes there are lost; [`SharedMemory::missed`] counts them.
impl HostMemory for SharedMemory {
    fn read(&self, address: u64, out: &mut [u8]) {
        if !GuestMemory::read(self, address, out) {
            out.fill(0);
            self.miss(address, out.len());
        }
    }
    fn write(&mut self, address: u64, data: &[u8]) {
        if !GuestMemory::write(self, address, data) {
            self.miss(address, data.len());
        }
    }
    fn alloc(&mut self, bytes: u64, _: u64) -> Result<u64, OutOfMemory> {
        Err(OutOfMemory { bytes }) // all of it is the guest's
    }
}
