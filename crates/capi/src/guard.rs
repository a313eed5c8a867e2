//! What stands between C and Rust: panics end here, errors become `errno`.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `body` returns, or `otherwise` if it panics: unwinding into C would be undefined. The panic's message is on stderr by then;
/// whatever was locked is poisoned, so that its next user fails, too, and does not go on with half a state.
pub(crate) fn no_panic<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
