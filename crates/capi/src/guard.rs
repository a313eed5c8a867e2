//! The boundary between C and Rust: panics end here, errors become `errno`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;

use crate::errno::Result;

/// The result of `body`, or `otherwise` if it panics: unwinding into C would be undefined. The panic's message is on stderr by then;
/// whatever was locked is poisoned, so that its next user fails, too, and does not go on with half a state.
pub(crate) fn no_panic<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// The result of `body`, or `failed` with `errno` set.
pub(crate) fn or_errno<T>(failed: T, body: impl FnOnce() -> Result<T>) -> T {
    no_panic(Err(Errno::ENOTRECOVERABLE), body).unwrap_or_else(|errno| {
        errno.set();
        failed
    })
}
