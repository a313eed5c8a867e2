//! One frame: what it carries, and who sent it to whom.

use super::container::Frame;
use super::control::Control;
use super::frame::{self, Content, Endpoints};
use super::{Problem, Reason};
use crate::link_layer;
use std::fmt;
use std::net::Ipv4Addr;
use tlplab_trace::linkunit::{Flags, LINK_TYPE};
use tlplab_wire::dllp;
use tlplab_wire::nettlp::Header;
use tlplab_wire::nettlp::link::{self, Numbers};
use tlplab_wire::tlp::{Packet, ParseOptions, Repr};

/// A frame that was read.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// Counted from 1.
    pub frame: u64,
    /// Femtoseconds since 1970, or since the start of a simulation.
    pub fs: i128,
    /// Decimals of a second that the time is given with.
    pub digits: u8,
    /// Sender and receiver by name, in captures of simulated links.
    pub names: Option<(&'a str, &'a str)>,
    /// Sender and receiver, of datagrams.
    pub endpoints: Option<Endpoints>,
    /// The NetTLP header, as far as it could be read, also of what is no TLP behind it.
    pub header: Option<Header>,
    /// Its content, or the reason that it has none.
    pub content: Result<What<'a>, Reason>,
    /// Corrupted, replayed or nullified, as captures of simulated links tell.
    pub flags: Flags,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A TLP in NetTLP encapsulation.
    Tlp(Tlp<'a>),
    /// A DLLP.
    Dllp(dllp::Repr),
    /// A flit.
    Flit {
        /// Its sequence number.
        sequence: u16,
    },
    /// Configuration space, the driver's messages, the adapter's registers.
    Control(Control),
    /// Other traffic: ARP, TCP, other ports.
    Other,
}

/// A TLP and what carried it.
#[derive(Clone, Copy, Debug)]
pub struct Tlp<'a> {
    /// The decoded packet.
    pub repr: Repr,
    /// Running number and clock, as NetTLP carries them.
    pub header: Header,
    /// The captured part of its payload.
    pub payload: &'a [u8],
    /// True if the digest matches. `None` without one, or if the end was not captured.
    pub ecrc: Option<bool>,
    /// Its numbers on an acknowledged link.
    pub numbers: Option<Numbers>,
}

impl Decoded<'_> {
    /// Sender and receiver: names, or IP addresses.
    pub fn ends(&self) -> (End<'_>, End<'_>) {
        match (self.names, &self.endpoints) {
            (Some((from, to)), _) => (End::Name(from), End::Name(to)),
            (None, Some(ends)) => (End::Address(ends.source), End::Address(ends.destination)),
            (None, None) => (End::Name("?"), End::Name("?")),
        }
    }
}

/// A sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End<'a> {
    /// A node of a simulated fabric.
    Name(&'a str),
    /// A host.
    Address(Ipv4Addr),
}

impl fmt::Display for End<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A frame that cannot be read at all.
impl From<Problem> for Decoded<'_> {
    fn from(Problem { frame, reason }: Problem) -> Self {
        let (names, endpoints, header, flags) = (None, None, None, Flags::default());
        Self { frame, fs: 0, digits: 6, names, endpoints, header, content: Err(reason), flags }
    }
}

/// Reads a frame.
pub(super) fn decode<'a>(frame: &Frame<'a>) -> Decoded<'a> {
    let (mut endpoints, mut header) = (None, None);
    let content = if frame.link_type == LINK_TYPE {
        link_layer::parse(frame.data)
    } else {
        let opened = frame::open(frame.link_type, frame.data, frame.length, frame.check);
        endpoints = opened.endpoints;
        if let Ok(Content::Tlp { header: read, .. }) = opened.content {
            header = Some(read);
        }
        opened.content.and_then(what)
    };
    Decoded {
        frame: frame.number,
        fs: frame.fs,
        digits: frame.digits,
        names: frame.interface.and_then(link_layer::split_name),
        endpoints,
        header,
        content,
        flags: frame.comment.map(Flags::from_comment).unwrap_or_default(),
    }
}

fn what(content: Content<'_>) -> Result<What<'_>, Reason> {
    match content {
        Content::Other => Ok(What::Other),
        Content::Control { channel, kept, length } => {
            Control::parse(channel, kept, length).map(What::Control).map_err(Reason::Control)
        }
        Content::Tlp { header, kept, length } if kept.first() == Some(&link::MARK) => {
            sealed(header, kept, length).map(What::Tlp)
        }
        Content::Tlp { header, kept, length } => tlp(header, kept, length).map(What::Tlp),
    }
}

/// Reads a TLP of which `kept` is the beginning, `length` bytes on the wire.
fn tlp(header: Header, kept: &[u8], length: usize) -> Result<Tlp<'_>, Reason> {
    let packet = Packet::new(kept);
    let truncated = kept.len() < length;
    let options = ParseOptions { truncated, ..ParseOptions::default() };
    let repr = Repr::parse_with(&packet, options).map_err(Reason::Tlp)?;
    let states = repr.wire_bytes() as usize;
    if states != length {
        return Err(Reason::TlpLength { header: states, datagram: length });
    }
    let ecrc = if truncated { None } else { packet.ecrc_matches() };
    Ok(Tlp { repr, header, payload: packet.payload(), ecrc, numbers: None })
}

/// Reads a sealed TLP: numbers before it, a checksum behind it, which was captured if all was.
fn sealed(header: Header, kept: &[u8], length: usize) -> Result<Tlp<'_>, Reason> {
    let inner = length.saturating_sub(link::SEAL_BYTES);
    let (numbers, tlp_kept) = link::numbers(kept).ok_or(Reason::Seal)?;
    if inner == 0 || kept.len() == length && !link::is_whole(header, kept) {
        return Err(Reason::Seal);
    }
    let tlp = tlp(header, &tlp_kept[..tlp_kept.len().min(inner)], inner)?;
    Ok(Tlp { numbers: Some(numbers), ..tlp })
}
