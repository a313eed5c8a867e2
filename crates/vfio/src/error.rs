//! Mistakes of a client.

/// A message after which nothing of the stream can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The size in a header is none that a message can have.
    #[error(
        "vfio-user: a message of {0} B; expected a header of 16 B and the fields of one command with at most 1 MiB of data"
    )]
    Size(u32),
    /// The first message is none that agrees on a version.
    #[error("vfio-user: command {0} came before the version was negotiated")]
    NoVersion(u16),
    /// The client speaks another protocol.
    #[error("vfio-user: the client speaks version {0}.{1}, but this server speaks 0.x")]
    Version(u16, u16),
    /// A reply to nothing.
    #[error("vfio-user: a reply to message {0}, which was not sent, or has been answered")]
    Reply(u16),
}

/// The reason that a command fails, as its reply states it: numbers of `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Refused {
    /// ENOENT
    NotThere = 2,
    /// EEXIST
    Overlaps = 17,
    /// EINVAL
    Invalid = 22,
    /// ENOTSUP
    Unsupported = 95,
}
