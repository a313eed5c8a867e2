//! One register of a function in this process's memory, to be read and never written.
#![allow(unsafe_code, reason = "memory that belongs to a device is mapped, and read as it is")]

use super::Failure;
use super::register::Register;
use super::sysfs::Function;
use nix::libc::c_void;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;

/// A page of a base address, mapped for reading.
pub(super) struct Mapping {
    page: NonNull<c_void>,
    length: NonZeroUsize,
    register: NonNull<u32>,
}

impl Mapping {
    /// Maps the page of the register.
    pub(super) fn open(function: &Function, register: Register) -> Result<Self, Failure> {
        let path = function.folder.join(format!("resource{}", register.bar));
        let file = File::open(&path).map_err(|e| explain(&path, &e))?;
        let page = sysconf(SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(4096);
        // The file begins with the page in which the base address is.
        let from_page = register.base % page + register.offset;
        let (start, within) = ((from_page - from_page % page) as i64, (from_page % page) as usize);
        let length = NonZeroUsize::new(page as usize).expect("pages have bytes");
        // SAFETY: a new mapping where the kernel likes; without PROT_WRITE nothing can be written through it.
        let mapped = unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, start) };
        let mapped = mapped.map_err(|e| explain(&path, &e.into()))?;
        // SAFETY: `within` is a multiple of 4 below the length of the mapping, which begins on a page.
        let register = unsafe { mapped.byte_add(within) }.cast();
        Ok(Self { page: mapped, length, register })
    }

    /// One load of 32 bits, which the processor makes as one read of a double word.
    #[inline(always)]
    pub(super) fn read(&self) -> u32 {
        // SAFETY: the register is inside the mapping, which lives as long as `self`, and is aligned.
        unsafe { self.register.read_volatile() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nothing reads it any more. Failing would leave it mapped, which hurts nobody.
        let _ = unsafe { munmap(self.page, self.length.get()) };
    }
}

/// The meaning of the kernel's refusals here.
fn explain(path: &Path, error: &io::Error) -> Failure {
    use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
    let means = match error.kind() {
        PermissionDenied if nix::unistd::geteuid().is_root() => {
            "the kernel is locked down (Secure Boot, see /sys/kernel/security/lockdown) or the container lacks CAP_SYS_RAWIO"
        }
        PermissionDenied => "mapping registers needs root; configuration registers do not",
        InvalidInput => {
            "a driver has claimed these registers (CONFIG_IO_STRICT_DEVMEM); unbind it or boot with iomem=relaxed"
        }
        NotFound => "the function has no such BAR, or the kernel refuses to map it",
        _ => "the registers cannot be mapped",
    };
    Failure::Machine(format!("{}: {error}: {means}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file stands in for the base address: each register is read at its offset, on pages after the first, too.
    #[test]
    fn registers_are_read_at_their_offset_on_every_page() {
        let folder = tempfile::tempdir().unwrap();
        let words: Vec<u8> = (0..4096_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(folder.path().join("resource2"), words).unwrap();
        let function = Function {
            address: "0000:02:00.0".into(),
            parent: None,
            identity: 0,
            class: 0,
            link: None,
            sleeps: false,
            folder: folder.path().into(),
        };
        let register = |bar, offset, base| Register { function: 0, bar, offset, base };
        for (offset, base, word) in
            [(0, 0, 0), (4, 0, 1), (4092, 0x8000_0000, 1023), (4096, 0, 1024), (12, 0xfe00_0200, 131)]
        {
            let mapping = Mapping::open(&function, register(2, offset, base)).unwrap();
            assert_eq!(mapping.read(), word);
        }
        let missing = Mapping::open(&function, register(3, 0, 0));
        assert!(missing.is_err_and(|e| e.to_string().contains("no such BAR")));
    }
}
