//! Errors with a file, for the person who named it.

use std::io;
use std::path::Path;

/// A file that cannot be read or written. The message names the file, what is wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file, as the user named it; `standard output` for `-`.
        path: String,
        /// The attempted action.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The file was read, but is not what is expected there.
    #[error("{path}{place}: {problem}; {wanted}")]
    Content {
        /// The file, as the user named it.
        path: String,
        /// The place in the file, such as `, line 7`; empty where the whole file is meant.
        place: String,
        /// The fact.
        problem: String,
        /// The expected content.
        wanted: String,
    },
}

impl Error {
    /// A refusal by the operating system: `action` on the file at `path`.
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: display(path), action, source }
    }

    /// Content that is not what is expected, at a place in a file that is not named yet.
    pub fn content(place: String, problem: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::Content { path: "input".into(), place, problem: problem.into(), wanted: wanted.into() }
    }

    /// The same error, about the file at `path`.
    pub fn in_file(self, at: &Path) -> Self {
        match self {
            Self::Io { action, source, .. } => Self::Io { path: display(at), action, source },
            Self::Content { place, problem, wanted, .. } => {
                Self::Content { path: display(at), place, problem, wanted }
            }
        }
    }
}

fn display(path: &Path) -> String {
    if path == Path::new("-") { "standard output".into() } else { path.display().to_string() }
}
