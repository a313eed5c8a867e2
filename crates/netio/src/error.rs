//! Errors between here and the peer, before a TLP is even looked at.

use std::io;
use std::net::Ipv4Addr;

/// A transport that cannot be opened or does not work. The message says what was tried, and where it can be known what would be right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action.
        action: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A port of NetTLP is taken.
    #[error(
        "UDP port {port} at {address} is in use: another program serves the same tag there; choose other tags or another address"
    )]
    InUse {
        /// The local address.
        address: Ipv4Addr,
        /// The port.
        port: u16,
    },
    /// The address is no address of this machine.
    #[error("{address} is not an address of this machine: `ip address` lists them")]
    NotLocal {
        /// The address.
        address: Ipv4Addr,
    },
    /// The privilege is missing.
    #[error(
        "cannot {action}: not permitted; packet sockets need CAP_NET_RAW: run as root, or use `--transport udp`"
    )]
    Privilege {
        /// The attempted action.
        action: String,
    },
    /// Nobody answered.
    #[error("{message}")]
    Silent {
        /// The request, and its destination.
        message: String,
        /// The network says that nobody listens there.
        refused: bool,
    },
    /// The requested setup is impossible.
    #[error("{0}")]
    Setup(String),
}

impl Error {
    pub(crate) fn io(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { action: action.into(), source: source.into() }
    }

    /// The meaning of a refused `bind`.
    pub fn bind(address: Ipv4Addr, port: u16, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address, port },
            io::ErrorKind::AddrNotAvailable => Self::NotLocal { address },
            _ => Self::io(format!("bind UDP port {port} at {address}"), source),
        }
    }
}
