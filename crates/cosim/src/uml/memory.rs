//! The memory that a guest shares: host memory of the fabric, and where the guest's virtqueues lie.

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_device::{HostMemory, OutOfMemory};
use tlplab_uml::GuestMemory;
use tlplab_uml::vhost::Region;

/// A guest's memory, once it has shared it; everyone who has a copy of this sees the same.
#[derive(Clone, Debug, Default)]
pub struct SharedMemory(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    mappings: Vec<Mapping>,
    /// The first access of a device to what the guest does not share.
    missed: Option<(u64, usize)>,
}

/// A range of memory that two processes see.
#[derive(Debug)]
struct Mapping {
    region: Region,
    start: NonNull<c_void>,
}

// SAFETY: the mapping is accessed through the pointer only, within `Inner`, which one thread holds at a time.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    #[allow(unsafe_code)]
    fn new(region: Region, file: &OwnedFd) -> nix::Result<Self> {
        let invalid = nix::Error::EINVAL;
        let bytes = usize::try_from(region.bytes).ok().and_then(NonZeroUsize::new).ok_or(invalid)?;
        let offset = i64::try_from(region.offset).map_err(|_| invalid)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, file, offset)? };
        Ok(Self { region, start })
    }

    /// Where `bytes` at `address` are, if all of them are here.
    #[allow(unsafe_code)]
    fn place(&self, address: u64, bytes: usize) -> Option<NonNull<u8>> {
        let first = address.checked_sub(self.region.address)?;
        let end = first.checked_add(bytes as u64)?;
        // SAFETY: `first` is within the mapping.
        (end <= self.region.bytes).then(|| unsafe { self.start.cast::<u8>().add(first as usize) })
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nobody has a pointer into it. That it cannot be removed helps nobody.
        let _ = unsafe { munmap(self.start, self.region.bytes as usize) };
    }
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
    pub fn map(&self, regions: &[Region], files: &[OwnedFd]) -> nix::Result<()> {
        let mappings = regions.iter().zip(files).map(|(region, file)| Mapping::new(*region, file));
        let mappings = mappings.collect::<nix::Result<_>>()?;
        self.with(|inner| inner.mappings = mappings);
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

impl GuestMemory for SharedMemory {
    #[allow(unsafe_code)]
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.with(|inner| {
            let place = inner.mappings.iter().find_map(|mapping| mapping.place(address, out.len()));
            let Some(place) = place else { return false };
            // SAFETY: the bytes are within the mapping, and `out` is not. The guest stands still; were it to write meanwhile, the bytes
            // would be some of the old and some of the new, which any are.
            unsafe { std::ptr::copy_nonoverlapping(place.as_ptr(), out.as_mut_ptr(), out.len()) };
            true
        })
    }

    #[allow(unsafe_code)]
    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.with(|inner| {
            let place = inner.mappings.iter().find_map(|mapping| mapping.place(address, data.len()));
            let Some(place) = place else { return false };
            // SAFETY: as in `read`.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place.as_ptr(), data.len()) };
            true
        })
    }
}

/// What devices read where nothing is shared is zero, and what they write there is gone; [`SharedMemory::missed`] tells of it.
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
