//! The frames of a capture that are not TLPs, with the reason.

use std::fmt;

/// A frame that could not be read, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The frame, counted from 1 as Wireshark does; the line in a trace table.
    pub frame: u64,
    /// The reason that it is not a TLP.
    pub reason: Reason,
}

/// The reason that a frame is not a TLP, outermost layer first. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The file ends, or turns into something else, within this frame; nothing after it can be read.
    FileCut,
    /// The packet block contradicts itself.
    Block,
    /// The frame names an interface that the section does not describe.
    NoInterface(u32),
    /// The interface's time resolution does not fit 64 bits.
    Resolution,
    /// A packet block without a time stamp.
    NoTime,
    /// More than 5.1 hours after the first record: simulated time does not reach so far.
    TooLate,
    /// Earlier than frames that were summed up already: 16 384 frames before it are later.
    OutOfOrder,
    /// The link type (LINKTYPE_ number) is not one that carries IPv4 or units of a PCIe link.
    LinkType(i32),
    /// So little was captured that the headers are not all there.
    HeadersCut {
        /// The header.
        header: &'static str,
        /// Bytes captured.
        captured: usize,
    },
    /// The IPv4 header contradicts itself.
    Ipv4(&'static str),
    /// A fragment of an IPv4 datagram; NetTLP sends none.
    Fragment,
    /// UDP and IPv4 disagree on the length.
    UdpLength {
        /// Length in the UDP header.
        udp: usize,
        /// The bytes that the IPv4 header leaves for it.
        ip: usize,
    },
    /// The frame is longer or shorter than its IPv4 datagram, and not by Ethernet padding.
    FrameLength {
        /// Length of the frame on the wire.
        frame: usize,
        /// The end of the datagram.
        datagram: usize,
    },
    /// Too few bytes for the NetTLP header and the smallest TLP.
    TooShort {
        /// Length of the UDP payload.
        datagram: usize,
    },
    /// On a port of configuration space, messages or registers, but none of their datagrams.
    Control(tlplab_wire::Error),
    /// NetTLP, but its payload is no valid TLP.
    Tlp(tlplab_wire::Error),
    /// The header of a TLP, of which not all was captured, and the datagram disagree on its length.
    TlpLength {
        /// Length that the header states.
        header: usize,
        /// Length that the datagram leaves.
        datagram: usize,
    },
    /// The checksum of a TLP on an acknowledged link does not fit, or there is none.
    Seal,
    /// A DLLP that is not valid.
    Dllp(tlplab_wire::Error),
    /// A unit of a PCIe link with a kind byte that this program does not know.
    UnitKind(u8),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}: {}", self.frame, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FileCut => {
                f.write_str("the file ends within it, or is damaged here; the rest was not read")
            }
            Self::Block => f.write_str("the lengths in its packet block are inconsistent"),
            Self::NoInterface(id) => write!(f, "it names interface {id}, which the file does not describe"),
            Self::Resolution => f.write_str("the time resolution of its interface does not fit 64 bits"),
            Self::NoTime => f.write_str("it has no time stamp (only enhanced packet blocks have one)"),
            Self::TooLate => {
                f.write_str("it is more than 5.1 hours after the first record, the limit of time stamps")
            }
            Self::OutOfOrder => {
                f.write_str("16384 frames before it have later time stamps; sort the file with `reordercap`")
            }
            Self::LinkType(id) => {
                write!(
                    f,
                    "unsupported link type {id}; expected Ethernet (1), raw IP (101), Linux cooked (113, 276) or user 0 (147)"
                )
            }
            Self::HeadersCut { header, captured } => {
                write!(f, "the {header} header is cut: only {captured} bytes were captured")
            }
            Self::Ipv4(why) => write!(f, "IPv4: {why}"),
            Self::Fragment => f.write_str("an IPv4 fragment; NetTLP datagrams are never fragmented"),
            Self::UdpLength { udp, ip } => {
                write!(f, "the UDP length is {udp} bytes, but the IPv4 header leaves {ip}")
            }
            Self::FrameLength { frame, datagram } if frame > datagram => {
                write!(f, "{} bytes follow the datagram, more than Ethernet padding", frame - datagram)
            }
            Self::FrameLength { frame, datagram } => {
                write!(f, "the datagram should end at byte {datagram}, but the frame has only {frame} bytes")
            }
            Self::TooShort { datagram } => {
                write!(
                    f,
                    "the datagram has {datagram} bytes, but the NetTLP header and the smallest TLP take 18"
                )
            }
            Self::Control(error) => write!(f, "not a register access of the adapter: {error}"),
            Self::Tlp(error) => write!(f, "not a TLP: {error}"),
            Self::TlpLength { header, datagram } => {
                write!(f, "the TLP length is {header} bytes, but the datagram holds {datagram}")
            }
            Self::Seal => f.write_str("a damaged TLP on an acknowledged link"),
            Self::Dllp(error) => write!(f, "not a DLLP: {error}"),
            Self::UnitKind(kind) => write!(f, "unknown kind {kind:#04x} of link unit"),
        }
    }
}
