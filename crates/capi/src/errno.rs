//! Errors as C has them: one `errno` for each kind, so that a program can tell what happened.

use std::ffi::{CStr, c_char, c_int};

use nix::errno::Errno;
use tlplab_device::DmaError;
use tlplab_transaction::{CompletionError, Undeliverable};

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// The meaning of each number to which this library gives its own. `docs/libtlp.md` has the same table.
const MEANINGS: [(Errno, &CStr); 14] = [
    (Errno::EOPNOTSUPP, c"Unsupported Request (UR): no component claims that address"),
    (Errno::ECONNABORTED, c"Completer Abort (CA): the completer aborted the request"),
    (Errno::EAGAIN, c"too many operations are outstanding: try again later"),
    (Errno::EHWPOISON, c"the data are poisoned (EP)"),
    (Errno::ETIME, c"completion timeout: no answer within the time limit"),
    (Errno::ECONNREFUSED, c"no program listens on the peer's UDP port"),
    (Errno::EHOSTUNREACH, c"no route to the peer's address"),
    (Errno::EBADMSG, c"malformed completion: it does not match the request"),
    (Errno::ECANCELED, c"the operation was cancelled"),
    (Errno::EINVAL, c"an argument is out of range"),
    (Errno::EFAULT, c"a pointer is null"),
    (Errno::EBADF, c"the context has no socket: it was not initialised, or was closed"),
    (Errno::EADDRINUSE, c"another context already serves this tag and direction"),
    (Errno::ENOTRECOVERABLE, c"internal error of libtlp: see stderr for details"),
];

/// The failure of an operation.
pub(crate) fn of_dma(error: &DmaError) -> Errno {
    match error {
        DmaError::Completion(error) => of_completion(error),
        DmaError::Request(_) => Errno::EINVAL,
        DmaError::BusMasterDisabled => Errno::EPERM,
        DmaError::Unacknowledged => Errno::ENOLINK,
    }
}

fn of_completion(error: &CompletionError) -> Errno {
    match error {
        CompletionError::UnsupportedRequest { .. } => Errno::EOPNOTSUPP,
        CompletionError::CompleterAbort { .. } => Errno::ECONNABORTED,
        CompletionError::Poisoned { .. } => Errno::EHWPOISON,
        CompletionError::Timeout { .. } => Errno::ETIME,
        CompletionError::Undelivered { why, .. } => of_undelivered(*why),
        // Only configuration requests may be told to come again.
        CompletionError::RetryStatus | CompletionError::Mismatch { .. } => Errno::EBADMSG,
    }
}

pub(crate) fn of_undelivered(why: Undeliverable) -> Errno {
    match why {
        Undeliverable::PortRefused => Errno::ECONNREFUSED,
        Undeliverable::HostUnreachable => Errno::EHOSTUNREACH,
    }
}

/// The error of the system.
pub(crate) fn of_io(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// The reason that there is no path for datagrams.
pub(crate) fn of_transport(error: &tlplab_netio::Error) -> Errno {
    match error {
        tlplab_netio::Error::Io { source, .. } => of_io(source),
        tlplab_netio::Error::InUse { .. } => Errno::EADDRINUSE,
        tlplab_netio::Error::NotLocal { .. } => Errno::EADDRNOTAVAIL,
        tlplab_netio::Error::Privilege { .. } => Errno::EPERM,
        tlplab_netio::Error::Silent { refused: true, .. } => Errno::ECONNREFUSED,
        tlplab_netio::Error::Silent { refused: false, .. } => Errno::ETIME,
        tlplab_netio::Error::Setup(_) => Errno::EINVAL,
    }
}

pub(crate) fn of_failure(failure: &tlplab_netio::Failure) -> Errno {
    match failure {
        tlplab_netio::Failure::Dma(error) => of_dma(error),
        tlplab_netio::Failure::Transport(error) => of_transport(error),
    }
}

/// `libtlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tlp_strerror(number: c_int) -> *const c_char {
    let errno = Errno::from_raw(number);
    match MEANINGS.iter().find(|(known, _)| *known == errno) {
        Some((_, meaning)) => meaning.as_ptr(),
        // SAFETY: it takes any number; what it returns stays until the thread's next call.
        None => unsafe { libc::strerror(number) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table in the documentation.
    fn documented() -> Vec<(String, String)> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/libtlp.md");
        let text = std::fs::read_to_string(page).expect("docs/libtlp.md");
        let rows = text.lines().filter_map(|line| {
            let (name, meaning) = line.strip_prefix("| `E")?.split_once("` | ")?;
            Some((format!("E{name}"), meaning.strip_suffix(" |")?.to_owned()))
        });
        rows.collect()
    }

    #[test]
    fn the_documentation_has_every_error() {
        let mut known: Vec<(String, String)> = MEANINGS
            .iter()
            .map(|(errno, meaning)| (format!("{errno:?}"), meaning.to_str().expect("UTF-8").to_owned()))
            .collect();
        let mut documented = documented();
        known.sort();
        documented.sort();
        assert_eq!(documented, known);
    }

    #[test]
    fn every_failure_has_a_number_of_its_own() {
        let tag = tlplab_units::Tag::from(0);
        let failures = [
            CompletionError::UnsupportedRequest { address: 0 },
            CompletionError::CompleterAbort { address: 0 },
            CompletionError::Poisoned { address: 0 },
            CompletionError::Timeout { address: 0, tag, after: tlplab_units::Duration::from_ms(1) },
            CompletionError::Undelivered { address: 0, tag, why: Undeliverable::PortRefused },
            CompletionError::Undelivered { address: 0, tag, why: Undeliverable::HostUnreachable },
            CompletionError::RetryStatus,
        ];
        let mut numbers: Vec<i32> = failures.iter().map(|failure| of_completion(failure) as i32).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), failures.len());
    }
}
