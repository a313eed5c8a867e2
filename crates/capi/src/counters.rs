//! The counters of contexts.

use std::ffi::c_int;

use nix::errno::Errno;
use tlplab_nettlp::endpoint::Counters;

use crate::context::{Context, Nettlp, at};
use crate::guard::or_errno;

/// `struct nettlp_counters`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NettlpCounters {
    datagrams_in: u64,
    datagrams_out: u64,
    completions: u64,
    host_reads: u64,
    host_writes: u64,
    other: u64,
    refused: u64,
    malformed: u64,
    mismatched: u64,
    unexpected: u64,
    late: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    timeouts: u64,
    undelivered: u64,
}

impl From<Counters> for NettlpCounters {
    fn from(counters: Counters) -> Self {
        Self {
            datagrams_in: counters.datagrams_in,
            datagrams_out: counters.datagrams_out,
            completions: counters.completions,
            host_reads: counters.host_reads,
            host_writes: counters.host_writes,
            other: counters.other,
            refused: counters.refused,
            malformed: counters.malformed(),
            mismatched: counters.mismatched,
            unexpected: counters.unexpected + counters.wrong_port,
            late: counters.late,
            lost: counters.lost(),
            duplicates: counters.duplicates,
            reordered: counters.reordered,
            timeouts: counters.timeouts,
            undelivered: counters.undelivered,
        }
    }
}

/// `libtlp.h`.
///
/// # Safety
/// `contexts` points to `count` pointers to initialised contexts, `counters` to a `struct nettlp_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_get_counters(
    contexts: *const *const Nettlp,
    count: c_int,
    counters: *mut NettlpCounters,
) -> c_int {
    or_errno(-1, || {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        if contexts.is_null() || counters.is_null() {
            return Err(Errno::EFAULT);
        }
        let mut sum = Counters::default();
        // SAFETY: the caller's promise.
        for &nettlp in unsafe { std::slice::from_raw_parts(contexts, count) } {
            // SAFETY: the caller's promise.
            sum.add(&Context::of(unsafe { at(nettlp) }?)?.counters());
        }
        // SAFETY: the caller's promise.
        unsafe { counters.write(sum.into()) };
        Ok(0)
    })
}
