//! Memory that two processes see.

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Part of a file that is mapped, for reading and, unless it was not to be, for writing.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
    writable: bool,
}

// SAFETY: the pointer is used only by the methods, which need `&self` to read and `&mut self` to write.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` of `file` from `offset` on.
    ///
    /// # Errors
    /// The system's: there must be at least a byte, the offset be a multiple of a page, and the file allow it.
    #[allow(unsafe_code)]
    pub fn new(file: impl AsFd, offset: u64, bytes: u64, writable: bool) -> io::Result<Self> {
        let invalid = || io::Error::from(nix::Error::EINVAL);
        let length = usize::try_from(bytes).ok().and_then(NonZeroUsize::new).ok_or_else(invalid)?;
        let offset = i64::try_from(offset).map_err(|_| invalid())?;
        let write = if writable { ProtFlags::PROT_WRITE } else { ProtFlags::PROT_NONE };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start =
            unsafe { mmap(None, length, ProtFlags::PROT_READ | write, MapFlags::MAP_SHARED, file, offset)? };
        Ok(Self { start, bytes: length.get(), writable })
    }

    /// The address of `bytes` from `at` on, if all of them are here.
    #[allow(unsafe_code)]
    fn place(&self, at: u64, bytes: usize) -> Option<NonNull<u8>> {
        let first = usize::try_from(at).ok()?;
        let end = first.checked_add(bytes)?;
        // SAFETY: `first` is within the mapping.
        (end <= self.bytes).then(|| unsafe { self.start.cast::<u8>().add(first) })
    }

    /// Reads from `at` on. False if not all of it is here.
    #[allow(unsafe_code)]
    pub fn read(&self, at: u64, out: &mut [u8]) -> bool {
        let Some(place) = self.place(at, out.len()) else { return false };
        // SAFETY: the bytes are within the mapping, and `out` is not. Were the other process to write meanwhile, the bytes would be some
        // of the old and some of the new, which any are.
        unsafe { std::ptr::copy_nonoverlapping(place.as_ptr(), out.as_mut_ptr(), out.len()) };
        true
    }

    /// Writes from `at` on. False if not all of it is here, or it must not be written.
    #[allow(unsafe_code)]
    pub fn write(&mut self, at: u64, data: &[u8]) -> bool {
        let Some(place) = self.place(at, data.len()).filter(|_| self.writable) else { return false };
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place.as_ptr(), data.len()) };
        true
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nobody has a pointer into it. That it cannot be removed helps nobody.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::unistd::ftruncate;

    #[test]
    fn two_mappings_of_a_file_are_one_memory() {
        let file = memfd_create(c"memory", MFdFlags::MFD_CLOEXEC).expect("a file in memory");
        ftruncate(&file, 8192).expect("it grows");
        let mut here = Mapping::new(&file, 0, 8192, true).expect("it can be mapped");
        let mut there = Mapping::new(&file, 4096, 4096, false).expect("it can be mapped");
        let mut out = [0; 2];
        assert!(here.write(4097, &[1, 2]) && there.read(1, &mut out));
        assert_eq!(out, [1, 2]);
        assert!(!there.write(0, &[1]), "it is mapped for reading");
        for at in [8191, 8192, u64::MAX] {
            assert!(!here.read(at, &mut out) && !here.write(at, &[1, 2]), "{at}");
        }
        assert!(Mapping::new(&file, 0, 0, true).is_err());
        assert!(Mapping::new(&file, 1, 4096, true).is_err());
    }
}
