//! The functions that C calls.

use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use tlplab_transaction::Payload;

use super::{Operation, TlpAsync, TlpAsyncConfig, TlpAsyncDone};
use crate::context::at;
use crate::counters::NettlpCounters;
use crate::dma::{bytes, bytes_mut};
use crate::errno::Result;
use crate::guard::or_errno;

/// `libtlp.h`.
///
/// # Safety
/// `config` points to a `struct tlp_async_config`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_open(config: *const TlpAsyncConfig) -> *mut TlpAsync {
    or_errno(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let opened = TlpAsync::open(unsafe { at(config) }?)?;
        Ok(Box::into_raw(Box::new(opened)))
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` is null or comes from [`tlp_async_open`], and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_close(context: *mut TlpAsync) {
    or_errno((), || {
        if !context.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(context) });
        }
        Ok(())
    });
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`]; `buffer` points to `count` bytes that are the library's until the operation is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_read(
    context: *const TlpAsync,
    address: usize,
    buffer: *mut c_void,
    count: usize,
    user: *mut c_void,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promises; the buffer is only checked here.
        let context = unsafe { (at(context)?, bytes_mut(buffer, count)?.len()) }.0;
        let operation = Operation { user, buffer, count, cancelled: false };
        context.submit(operation, |driven, token| {
            let now = driven.now();
            driven.engine.read(now, token, address as u64, count as u64).map_err(|_| Errno::EINVAL)
        })?;
        Ok(0)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`]; `buffer` points to `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_write(
    context: *const TlpAsync,
    address: usize,
    buffer: *const c_void,
    count: usize,
    user: *mut c_void,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (context, data) = unsafe { (at(context)?, bytes(buffer, count)?) };
        let operation = Operation { user, buffer: std::ptr::null_mut(), count, cancelled: false };
        context.submit(operation, |driven, token| {
            let now = driven.now();
            driven.engine.write(now, token, address as u64, Payload::from(data)).map_err(|_| Errno::EINVAL)
        })?;
        Ok(0)
    })
}

/// Room for `most` results.
///
/// # Safety
/// `done` points to as many.
unsafe fn room<'a>(
    done: *mut TlpAsyncDone,
    most: c_int,
) -> Result<&'a mut [std::mem::MaybeUninit<TlpAsyncDone>]> {
    let most = usize::try_from(most).ok().filter(|&most| most > 0).ok_or(Errno::EINVAL)?;
    if done.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(done.cast(), most) })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`]; `done` points to `most` results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_poll(
    context: *const TlpAsync,
    done: *mut TlpAsyncDone,
    most: c_int,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (context, done) = unsafe { (at(context)?, room(done, most)?) };
        Ok(context.poll(done)? as c_int)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`tlp_async_poll`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_wait(
    context: *const TlpAsync,
    done: *mut TlpAsyncDone,
    most: c_int,
    milliseconds: c_int,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (context, done) = unsafe { (at(context)?, room(done, most)?) };
        let until = u64::try_from(milliseconds).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
        Ok(context.wait(done, until)? as c_int)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_cancel(context: *const TlpAsync, user: *mut c_void) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        Ok(unsafe { at(context) }?.cancel(user)? as c_int)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_pending(context: *const TlpAsync) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        Ok(unsafe { at(context) }?.lock()?.pending() as c_int)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_fd(context: *const TlpAsync) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        Ok(unsafe { at(context) }?.front.0.as_raw_fd())
    })
}

/// `libtlp.h`.
///
/// # Safety
/// `context` comes from [`tlp_async_open`], `counters` points to a `struct nettlp_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlp_async_get_counters(
    context: *const TlpAsync,
    counters: *mut NettlpCounters,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promise.
        let seen = unsafe { at(context) }?.lock()?.driven.engine.counters();
        if counters.is_null() {
            return Err(Errno::EFAULT);
        }
        // SAFETY: the caller's promise.
        unsafe { counters.write(seen.into()) };
        Ok(0)
    })
}
