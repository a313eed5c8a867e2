//! Ethernet, 802.1Q, IPv4, UDP and NetTLP: frames to the bytes of a TLP or of a control datagram.

use super::control::Channel;
use super::problem::Reason;
use std::net::Ipv4Addr;
use tlplab_wire::crc::Crc32;
use tlplab_wire::nettlp::{HEADER_BYTES, Header, is_tlp_port};

/// LINKTYPE_ numbers (tcpdump.org/linktypes.html).
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;
const LINUX_COOKED: i32 = 113;
const IPV4: i32 = 228;
/// Bytes of Ethernet's frame check sequence.
const CHECK_BYTES: usize = 4;
const LINUX_COOKED_2: i32 = 276;

/// A TLP header has at least three DW.
const SMALLEST_TLP: usize = 12;

/// The source and destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Sender.
    pub source: Ipv4Addr,
    /// Receiver.
    pub destination: Ipv4Addr,
    /// The sender's UDP port.
    pub source_port: u16,
    /// The receiver's UDP port, the one that NetTLP looks at.
    pub port: u16,
    /// Number of the outermost 802.1Q tag.
    pub vlan: Option<u16>,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// A TLP behind a NetTLP header.
    Tlp {
        header: Header,
        /// The captured part of the TLP.
        kept: &'a [u8],
        /// The TLP's length on the wire.
        length: usize,
    },
    /// A datagram of one of the interfaces beside the TLPs.
    Control { channel: Channel, kept: &'a [u8], length: usize },
    /// Something else.
    Other,
}

/// A frame with its headers taken off.
pub(super) struct Opened<'a> {
    /// As far as the headers could be read.
    pub(super) endpoints: Option<Endpoints>,
    pub(super) content: Result<Content<'a>, Reason>,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Takes the headers off a frame whose length on the wire is `length`, a check sequence of `check` bytes included.
pub(super) fn open(link_type: i32, data: &[u8], length: usize, check: usize) -> Opened<'_> {
    let mut endpoints = None;
    // Where the file does not tell that there is one, it shows by being right.
    let check = if check == 0 && has_check_sequence(link_type, data, length) { CHECK_BYTES } else { check };
    let length = length.saturating_sub(check);
    let data = &data[..data.len().min(length)];
    let content = content(link_type, data, length, &mut endpoints);
    Opened { endpoints, content }
}

/// Do the last four bytes of an Ethernet frame check the others (IEEE 802.3 §3.2.9)? If they were not captured, it is enough that they are
/// just four behind the datagram.
fn has_check_sequence(link_type: i32, data: &[u8], length: usize) -> bool {
    let end = if link_type == ETHERNET { datagram_end(data) } else { None };
    let Some(end) = end else { return false };
    if data.len() < length {
        return length == end + CHECK_BYTES;
    }
    let Some((frame, check)) = data.split_last_chunk::<CHECK_BYTES>() else { return false };
    // Frames that end with their datagram, or are padded with zeros, need not be looked at.
    *check != [0; CHECK_BYTES]
        && end <= frame.len()
        && Crc32::new().update(frame).finish().to_le_bytes() == *check
}

/// The end of the IPv4 datagram in an Ethernet frame.
fn datagram_end(frame: &[u8]) -> Option<usize> {
    let (_, at) = ethernet(frame)?;
    Some(at + usize::from(be16(frame, at + 2)?))
}

fn content<'a>(
    link_type: i32,
    data: &'a [u8],
    length: usize,
    endpoints: &mut Option<Endpoints>,
) -> Result<Content<'a>, Reason> {
    let cut = |header| Reason::HeadersCut { header, captured: data.len() };
    let mut vlan = None;
    let (ethertype, at, padded) = match link_type {
        ETHERNET => {
            let (ethertype, at) = ethernet(data).ok_or(cut("Ethernet"))?;
            vlan = be16(data, 14).filter(|_| at > 14).map(|tag| tag & 0xfff);
            // 60 bytes is the smallest frame; a tag is inserted after padding.
            (ethertype, at, 60 + (at - 14))
        }
        LINUX_COOKED => (be16(data, 14).ok_or(cut("Linux cooked"))?, 16, 62),
        LINUX_COOKED_2 => (be16(data, 0).ok_or(cut("Linux cooked"))?, 20, 66),
        RAW_IP | IPV4 => (0x0800, 0, 0),
        other => return Err(Reason::LinkType(other)),
    };
    if ethertype != 0x0800 {
        return Ok(Content::Other);
    }
    let Some(ip) = ipv4(&data[at.min(data.len())..]).map_err(|why| why.unwrap_or(cut("IPv4")))? else {
        return Ok(Content::Other);
    };
    let udp = at + ip.header;
    if ip.later_fragment {
        return Ok(Content::Other);
    }
    let source_port = be16(data, udp).ok_or(cut("UDP"))?;
    let port = be16(data, udp + 2).ok_or(cut("UDP"))?;
    let udp_length = usize::from(be16(data, udp + 4).ok_or(cut("UDP"))?);
    let channel = Channel::of_ports(source_port, port);
    if !is_tlp_port(port) && channel.is_none() {
        return Ok(Content::Other);
    }
    *endpoints = Some(Endpoints { source: ip.source, destination: ip.destination, source_port, port, vlan });
    if ip.fragment {
        return Err(Reason::Fragment);
    }
    if udp_length != ip.total - ip.header || udp_length < 8 {
        return Err(Reason::UdpLength { udp: udp_length, ip: ip.total - ip.header });
    }
    let end = udp + udp_length;
    if length < end || (length > end && length > padded) {
        return Err(Reason::FrameLength { frame: length, datagram: end });
    }
    let kept = &data[(udp + 8).min(data.len())..data.len().min(end)];
    payload(port, channel, kept, end - udp - 8)
}

/// The content of a UDP payload of `length` bytes, of which `kept` were captured.
fn payload(port: u16, channel: Option<Channel>, kept: &[u8], length: usize) -> Result<Content<'_>, Reason> {
    match channel {
        Some(channel) if !is_tlp_port(port) || channel.claims(kept, length) => {
            return Ok(Content::Control { channel, kept, length });
        }
        _ => {}
    }
    if length < HEADER_BYTES + SMALLEST_TLP {
        return Err(Reason::TooShort { datagram: length });
    }
    let cut = Reason::HeadersCut { header: "NetTLP", captured: kept.len() };
    let header = Header::parse(kept).map_err(|_| cut)?;
    Ok(Content::Tlp { header, kept: &kept[HEADER_BYTES..], length: length - HEADER_BYTES })
}

/// The Ethertype behind any 802.1Q tags, and where its payload begins.
fn ethernet(data: &[u8]) -> Option<(u16, usize)> {
    let mut at = 12;
    loop {
        match be16(data, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            ethertype => return Some((ethertype, at + 2)),
        }
    }
}

struct Ipv4 {
    header: usize,
    total: usize,
    fragment: bool,
    later_fragment: bool,
    source: Ipv4Addr,
    destination: Ipv4Addr,
}

/// The IPv4 header, `None` if it carries something else than UDP. `Err(None)`: not all of it was captured.
fn ipv4(data: &[u8]) -> Result<Option<Ipv4>, Option<Reason>> {
    let fixed: &[u8; 20] = data.get(..20).and_then(|bytes| bytes.try_into().ok()).ok_or(None)?;
    if fixed[0] >> 4 != 4 {
        return Err(Some(Reason::Ipv4("the version is not 4")));
    }
    if fixed[9] != 17 {
        return Ok(None);
    }
    let header = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < 20 {
        return Err(Some(Reason::Ipv4("the header length is below 20 bytes")));
    }
    if total < header {
        return Err(Some(Reason::Ipv4("the total length is below the header's")));
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    Ok(Some(Ipv4 {
        header,
        total,
        // More fragments, or not the first one.
        fragment: fragment & 0x3fff != 0,
        // Its ports were in the first one.
        later_fragment: fragment & 0x1fff != 0,
        source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
        destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
    }))
}
