//! DMA that waits.

use std::ffi::c_void;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};

use crate::context::{Context, Nettlp, at};
use crate::errno::{self, Result};
use crate::guard::or_errno;

/// No request crosses this.
const PAGE: usize = 4096;

/// A buffer of the program's.
///
/// # Safety
/// `buffer` points to `count` bytes, unless there are none.
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, count: usize) -> Result<&'a [u8]> {
    match count {
        0 => Ok(&[]),
        _ if buffer.is_null() => Err(Errno::EFAULT),
        _ if isize::try_from(count).is_err() => Err(Errno::EINVAL),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), count) }),
    }
}

/// The same, to be written to.
///
/// # Safety
/// As [`bytes`], and nobody else uses them meanwhile.
pub(crate) unsafe fn bytes_mut<'a>(buffer: *mut c_void, count: usize) -> Result<&'a mut [u8]> {
    match count {
        0 => Ok(&mut []),
        _ if buffer.is_null() => Err(Errno::EFAULT),
        _ if isize::try_from(count).is_err() => Err(Errno::EINVAL),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), count) }),
    }
}

fn read(nettlp: &Nettlp, address: usize, buffer: &mut [u8]) -> Result<()> {
    let context = Context::of(nettlp)?;
    context.with_dma(nettlp.issuer(), |dma| {
        let _reading = context.traffic.reading();
        dma.dma_read(address as u64, buffer).map_err(|failure| errno::of_failure(&failure))
    })
}

fn write(nettlp: &Nettlp, address: usize, data: &[u8]) -> Result<()> {
    // Nothing to write, and nobody to tell.
    if data.is_empty() {
        return Ok(());
    }
    let context = Context::of(nettlp)?;
    context.with_dma(nettlp.issuer(), |dma| {
        dma.dma_write(address as u64, data).map_err(|failure| errno::of_failure(&failure))
    })?;
    // A write that nobody takes is told by the network at best: of this one at once if it is near, else when the next one is sent.
    match context.traffic.take_undelivered() {
        Some(why) => Err(errno::of_undelivered(why)),
        None if context.traffic.is_reading() => Ok(()),
        None => match getsockopt(&context.socket(), sockopt::SocketError)? {
            0 => Ok(()),
            error => Err(Errno::from_raw(error)),
        },
    }
}

/// The number of `bytes` bytes at `address` that one request of at most `limit` bytes carries. What counts against the limit are whole
/// doublewords (PCIe 5.0 §2.2.2).
fn first_request(address: usize, bytes: usize, limit: usize) -> usize {
    let whole = limit.max(4) / 4 * 4;
    bytes.min(limit).min(whole - address % 4).min(PAGE - address % PAGE)
}

/// The pieces of a transfer in requests of at most `limit` bytes: address, and place in the buffer.
fn pieces(
    address: usize,
    bytes: usize,
    limit: usize,
) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    let mut done = 0;
    let mut first = true;
    std::iter::from_fn(move || {
        if done == bytes && !std::mem::take(&mut first) {
            return None;
        }
        first = false;
        let at = address.wrapping_add(done);
        let end = done + first_request(at, bytes - done, limit);
        Some((at, std::mem::replace(&mut done, end)..end))
    })
}

/// A limit that the program gives; 4096 is as far as it matters.
fn limit(given: usize) -> Result<usize> {
    if given == 0 { Err(Errno::EINVAL) } else { Ok(given.min(PAGE)) }
}

/// `libtlp.h`.
///
/// # Safety
/// `nettlp` points to an initialised context, `buffer` to `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_read(
    nettlp: *const Nettlp,
    address: usize,
    buffer: *mut c_void,
    count: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, buffer) = unsafe { (at(nettlp)?, bytes_mut(buffer, count)?) };
        read(nettlp, address, buffer)?;
        Ok(count as isize)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`dma_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_write(
    nettlp: *const Nettlp,
    address: usize,
    buffer: *const c_void,
    count: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, data) = unsafe { (at(nettlp)?, bytes(buffer, count)?) };
        write(nettlp, address, data)?;
        Ok(count as isize)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`dma_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_read_aligned(
    nettlp: *const Nettlp,
    address: usize,
    buffer: *mut c_void,
    count: usize,
    mrrs: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, buffer) = unsafe { (at(nettlp)?, bytes_mut(buffer, count)?) };
        for (address, part) in pieces(address, count, limit(mrrs)?) {
            read(nettlp, address, &mut buffer[part])?;
        }
        Ok(count as isize)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`dma_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dma_write_aligned(
    nettlp: *const Nettlp,
    address: usize,
    buffer: *const c_void,
    count: usize,
    mps: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, data) = unsafe { (at(nettlp)?, bytes(buffer, count)?) };
        for (address, part) in pieces(address, count, limit(mps)?) {
            write(nettlp, address, &data[part])?;
        }
        Ok(count as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_keep_to_the_limit_and_to_pages() {
        for address in (0x0FC0..0x1040).chain(0x1FF0..0x2000) {
            for bytes in [0, 1, 3, 4, 5, 127, 128, 129, 1000, 5000] {
                for limit in [1, 2, 4, 100, 128, 256, 4096] {
                    let mut next = 0;
                    for (at, part) in pieces(address, bytes, limit) {
                        assert_eq!((at, part.start), (address + next, next));
                        let dwords = (at % 4 + part.len()).div_ceil(4);
                        assert!(dwords * 4 <= limit.max(4), "{dwords} DW at {at:#x} for {limit}");
                        assert!(part.len() <= limit);
                        assert!(at % 4096 + part.len() <= 4096, "{} B at {at:#x}", part.len());
                        assert!(!part.is_empty() || bytes == 0);
                        next = part.end;
                    }
                    assert_eq!(next, bytes);
                    assert!(pieces(address, bytes, limit).count() > 0, "a flush is a request, too");
                }
            }
        }
    }
}
