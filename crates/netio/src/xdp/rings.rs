//! The memory that an `AF_XDP` socket shares with the kernel: chunks that frames stand in, and four rings through which the chunks are handed
//! to and fro (Linux, Documentation/networking/af_xdp.rst).
//!
//! ```text
//!          fill ──▶ kernel ──▶ receive        chunks for what comes: 0 .. RECEIVE
//!          send ──▶ kernel ──▶ completion     chunks for what goes: RECEIVE .. RECEIVE + SEND
//! ```
#![allow(
    unsafe_code,
    reason = "memory that is shared with the kernel, and socket options that no library sets"
)]

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use nix::sys::socket::{MsgFlags, send};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a chunk.
const CHUNK: usize = 4096;
/// The bytes that the kernel keeps free before a frame (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: usize = 256;
/// The largest frame.
pub(super) const LARGEST: usize = CHUNK - KERNEL_HEADROOM;
/// Chunks, and entries of the rings, for what comes and what goes.
const RECEIVE: u32 = 2048;
const SEND: u32 = 512;

/// Memory that was mapped, for as long as this lives.
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and who points into it owns it.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// One end of a ring of entries `T`: of the producer's, or of the consumer's.
struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    /// Entries less one.
    mask: u32,
    kind: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Makes a ring of the socket and maps it.
    fn map(
        fd: &OwnedFd,
        option: c_int,
        count: u32,
        page: i64,
        offsets: &libc::xdp_ring_offset,
    ) -> nix::Result<Self> {
        set_option(fd, option, &count)?;
        let bytes = offsets.desc as usize + count as usize * size_of::<T>();
        let (protection, flags) =
            (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE);
        let length = NonZeroUsize::new(bytes).expect("it has entries");
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { mmap(None, length, protection, flags, fd, page) }?;
        let mapping = Mapping { start, bytes };
        let [producer, consumer, entries] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|at| at as usize);
        Ok(Self { mapping, producer, consumer, entries, mask: count - 1, kind: PhantomData })
    }

    fn index(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that an aligned 32-bit index stands there, inside the mapping; both sides use it atomically.
        unsafe { self.mapping.start.byte_add(offset).cast::<AtomicU32>().as_ref() }
    }
    fn entry(&self, at: u32) -> NonNull<T> {
        // SAFETY: masked, so inside the mapping, which has `mask + 1` entries from here on.
        unsafe { self.mapping.start.byte_add(self.entries).cast::<T>().add((at & self.mask) as usize) }
    }

    /// As the producer: how many entries are free.
    fn free(&self) -> u32 {
        self.mask + 1 - self.pending()
    }
    /// The number of entries that the consumer has not taken.
    fn pending(&self) -> u32 {
        let consumed = self.index(self.consumer).load(Ordering::Acquire);
        self.index(self.producer).load(Ordering::Acquire).wrapping_sub(consumed)
    }
    /// As the producer: adds an entry, which must be free.
    fn push(&mut self, entry: T) {
        debug_assert!(self.free() > 0);
        let at = self.index(self.producer).load(Ordering::Relaxed);
        // SAFETY: the entry is free, so the kernel does not look at it before the index says so.
        unsafe { self.entry(at).write(entry) };
        self.index(self.producer).store(at.wrapping_add(1), Ordering::Release);
    }
    /// As the consumer: takes an entry, if there is one.
    fn pop(&mut self) -> Option<T> {
        if self.pending() == 0 {
            return None;
        }
        let at = self.index(self.consumer).load(Ordering::Relaxed);
        // SAFETY: the kernel has written the entry and does not touch it before the index says so.
        let entry = unsafe { self.entry(at).read() };
        self.index(self.consumer).store(at.wrapping_add(1), Ordering::Release);
        Some(entry)
    }
}

/// An `AF_XDP` socket with its rings and chunks.
pub(super) struct Rings {
    receive: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    send: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    /// Chunks for what goes that are ours.
    free: Vec<u64>,
    chunks: Mapping,
    fd: OwnedFd,
}

// SAFETY: nothing in it belongs to a thread; whoever has it has it alone.
unsafe impl Send for Rings {}

impl AsFd for Rings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Rings {
    /// Opens a socket for a queue of the interface with this index.
    pub(super) fn open(interface: usize, queue: u32) -> nix::Result<Self> {
        // SAFETY: a new descriptor, which nobody else has.
        let fd = unsafe {
            let fd = Errno::result(libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))?;
            OwnedFd::from_raw_fd(fd)
        };
        let bytes = (RECEIVE + SEND) as usize * CHUNK;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let length = NonZeroUsize::new(bytes).expect("there are chunks");
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe {
            mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE | MapFlags::MAP_POPULATE)
        }?;
        let chunks = Mapping { start, bytes };
        let region = libc::xdp_umem_reg {
            addr: start.as_ptr() as u64,
            len: bytes as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&fd, libc::XDP_UMEM_REG, &region)?;
        let offsets: libc::xdp_mmap_offsets = option(&fd, libc::XDP_MMAP_OFFSETS)?;
        let [of_receive, of_send] = [libc::XDP_PGOFF_RX_RING, libc::XDP_PGOFF_TX_RING];
        let [of_fill, of_completion] =
            [libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING].map(|at| at as i64);
        let receive = Ring::map(&fd, libc::XDP_RX_RING, RECEIVE, of_receive, &offsets.rx)?;
        // Twice as long as there are chunks: the kernel shows a frame before it says that it has taken the chunk from here.
        let mut fill = Ring::map(&fd, libc::XDP_UMEM_FILL_RING, 2 * RECEIVE, of_fill, &offsets.fr)?;
        let send = Ring::map(&fd, libc::XDP_TX_RING, SEND, of_send, &offsets.tx)?;
        let completion = Ring::map(&fd, libc::XDP_UMEM_COMPLETION_RING, SEND, of_completion, &offsets.cr)?;
        let chunk = |number: u32| u64::from(number) * CHUNK as u64;
        (0..RECEIVE).for_each(|number| fill.push(chunk(number)));
        let free = (RECEIVE..RECEIVE + SEND).map(chunk).collect();
        let rings = Self { receive, fill, send, completion, free, chunks, fd };
        rings.bind(interface, queue)?;
        Ok(rings)
    }

    fn bind(&self, interface: usize, queue: u32) -> nix::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: interface as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the kernel reads `size` bytes of `address`, which live here.
        Errno::result(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
    }

    /// Shows up to `most` frames that have come, in order.
    pub(super) fn receive(&mut self, most: usize, mut each: impl FnMut(&[u8])) {
        for _ in 0..most {
            let Some(frame) = self.receive.pop() else { return };
            let (at, len) = (frame.addr as usize, frame.len as usize);
            if at + len <= RECEIVE as usize * CHUNK {
                // SAFETY: inside the chunks for what comes; the kernel gave this one away until it is in the fill ring again.
                each(unsafe {
                    std::slice::from_raw_parts(self.chunks.start.byte_add(at).cast().as_ptr(), len)
                });
            }
            self.fill.push(frame.addr - frame.addr % CHUNK as u64);
        }
    }

    /// Puts a frame of at most [`LARGEST`] bytes behind those to be sent; false if there is no room.
    pub(super) fn put(&mut self, frame: &[u8]) -> bool {
        assert!(frame.len() <= LARGEST, "the link takes no such frame");
        while let Some(chunk) = self.completion.pop() {
            self.free.push(chunk);
        }
        let Some(chunk) = self.free.pop() else { return false };
        // SAFETY: the chunk is ours, its bytes are inside the mapping, and `frame` is not: nothing outside this file points there.
        unsafe {
            let to = self.chunks.start.byte_add(chunk as usize).cast::<u8>();
            to.copy_from_nonoverlapping(NonNull::from(frame).cast(), frame.len());
        }
        // There are as many entries as chunks.
        self.send.push(libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 });
        true
    }

    /// Lets the kernel send; true if nothing is left.
    ///
    /// # Errors
    /// The kernel's. What is left can be sent later.
    pub(super) fn flush(&mut self) -> nix::Result<bool> {
        if self.send.pending() > 0 {
            send(self.fd.as_raw_fd(), &[], MsgFlags::MSG_DONTWAIT)?;
        }
        Ok(self.send.pending() == 0)
    }

    /// Frames for us for which a ring had no room or no chunk was free (`XDP_STATISTICS`, since Linux 5.9).
    pub(super) fn dropped(&self) -> Option<u64> {
        let counted: libc::xdp_statistics = option(&self.fd, libc::XDP_STATISTICS).ok()?;
        Some(counted.rx_dropped + counted.rx_ring_full)
    }
}

fn set_option<T>(fd: &OwnedFd, option: c_int, value: &T) -> nix::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes of `value`.
    let status = unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, std::ptr::from_ref(value).cast(), size)
    };
    Errno::result(status).map(drop)
}

/// A structure of the kernel, which holds numbers only.
trait Told {}
impl Told for libc::xdp_mmap_offsets {}
impl Told for libc::xdp_statistics {}

fn option<T: Told>(fd: &OwnedFd, option: c_int) -> nix::Result<T> {
    // SAFETY: numbers only.
    let mut told: T = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&told) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `told`.
    let status = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, (&raw mut told).cast(), &raw mut size)
    };
    Errno::result(status)?;
    Ok(told)
}
