//! `tlp.h`: the functions that read headers in memory, all of them by `wire`'s codec.

use std::ffi::{c_int, c_void};

use tlplab_wire::tlp::{ByteEnables, Packet, Span};

use crate::guard::no_panic;

/// `struct tlp_mr_hdr`, of which only the address is used: fields are `wire`'s business.
#[repr(C, packed)]
pub struct TlpMrHdr([u8; 8]);

/// `struct tlp_cpl_hdr`.
#[repr(C, packed)]
pub struct TlpCplHdr([u8; 12]);

/// The byte enables of `count` bytes at `address`. They depend on the last two bits of both ends only, once there are two DWs for
/// sure; so lengths that no request may have, which programs do ask for, need no case of their own.
fn enables(address: usize, count: usize) -> ByteEnables {
    let few = if count < 8 { count } else { 8 + count % 4 };
    let span = Span::new((address % 4) as u64, few as u32).expect("at most 14 bytes at the start of a page");
    span.enables()
}

/// `tlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tlp_calculate_lstdw(address: usize, count: usize) -> c_int {
    no_panic(0, || enables(address, count).last().into())
}

/// `tlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tlp_calculate_fstdw(address: usize, count: usize) -> c_int {
    no_panic(0, || enables(address, count).first().into())
}

/// `tlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tlp_calculate_length(address: usize, count: usize) -> c_int {
    let dwords = (address % 4).saturating_add(count).div_ceil(4).max(1);
    c_int::try_from(dwords).unwrap_or(c_int::MAX)
}

/// The header of a request, with its address.
///
/// # Safety
/// `header` points to a whole header: 16 bytes if its Fmt says so, else 12.
pub(crate) unsafe fn request<'a>(header: *const TlpMrHdr) -> Packet<'a> {
    // SAFETY: the caller's promise covers twelve bytes at least, of which this is the first.
    let fmt_type = unsafe { header.cast::<u8>().read() };
    let bytes = if fmt_type & 0x20 == 0 { 12 } else { 16 };
    // SAFETY: the caller's promise.
    Packet::new(unsafe { std::slice::from_raw_parts(header.cast(), bytes) })
}

/// The first byte that a request enables.
fn first_byte(packet: &Packet<'_>) -> u64 {
    let first = packet.byte7().map_or(0, |byte| ByteEnables::from_byte(byte).first());
    let skipped = if first == 0 { 0 } else { first.trailing_zeros() };
    packet.address().unwrap_or(0) + u64::from(skipped)
}

/// Bytes from the first enabled one to the last; `None` if the enables or the length break the rules.
fn enabled_bytes(packet: &Packet<'_>) -> Option<u32> {
    let span =
        Span::with_enables(packet.address()?, packet.length()?, ByteEnables::from_byte(packet.byte7()?))
            .ok()?;
    let is_write = packet.has_data()?;
    Some(if is_write && span.is_zero_length() { 0 } else { span.byte_count() })
}

/// `tlp.h`.
///
/// # Safety
/// `header` points to a whole header of a memory request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_mr_addr(header: *const TlpMrHdr) -> usize {
    // SAFETY: the caller's promise.
    no_panic(0, || first_byte(&unsafe { request(header) }) as usize)
}

/// `tlp.h`.
///
/// # Safety
/// `header` points to a whole header of a memory request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_mr_data_length(header: *const TlpMrHdr) -> c_int {
    // SAFETY: the caller's promise.
    no_panic(0, || enabled_bytes(&unsafe { request(header) }).map_or(0, |bytes| bytes as c_int))
}

/// `tlp.h`.
///
/// # Safety
/// `header` points to a whole memory write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_mwr_data(header: *mut TlpMrHdr) -> *mut c_void {
    no_panic(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let packet = unsafe { request(header) };
        let skipped = (first_byte(&packet) & 3) as usize;
        // SAFETY: the data follow the header, and one DW of them at least.
        unsafe { header.cast::<u8>().add(packet.bytes().len() + skipped).cast() }
    })
}

/// The header of a completion.
///
/// # Safety
/// `header` points to the twelve bytes of one.
unsafe fn completion<'a>(header: *const TlpCplHdr) -> Packet<'a> {
    // SAFETY: the caller's promise.
    Packet::new(unsafe { std::slice::from_raw_parts(header.cast(), size_of::<TlpCplHdr>()) })
}

/// `tlp.h`.
///
/// # Safety
/// `header` points to a header of a completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_cpld_data_length(header: *const TlpCplHdr) -> c_int {
    no_panic(0, || {
        // SAFETY: the caller's promise.
        let packet = unsafe { completion(header) };
        let field = (packet.length(), packet.lower_address(), packet.byte_count());
        let (Some(length), Some(lower), Some(remaining)) = field else { return 0 };
        // What the last completion holds behind the bytes that were asked for is padding.
        (length.bytes() - u32::from(lower & 3)).min(remaining) as c_int
    })
}

/// `tlp.h`.
///
/// # Safety
/// `header` points to a whole completion with data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_cpld_data(header: *mut TlpCplHdr) -> *mut c_void {
    no_panic(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let skipped = unsafe { completion(header) }.lower_address().unwrap_or(0) & 3;
        // SAFETY: the data follow the header, and one DW of them at least.
        unsafe { header.cast::<u8>().add(size_of::<TlpCplHdr>() + usize::from(skipped)).cast() }
    })
}
