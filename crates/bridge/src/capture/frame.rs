//! Ethernet, 802.1Q, IPv4, UDP and NetTLP: frames to the bytes of a TLP.

use super::problem::Reason;
use std::net::Ipv4Addr;
use tlplab_wire::nettlp::{HEADER_BYTES, Header, is_tlp_port};

/// LINKTYPE_ numbers (tcpdump.org/linktypes.html).
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;
const LINUX_COOKED: i32 = 113;
const IPV4: i32 = 228;
const LINUX_COOKED_2: i32 = 276;

/// A TLP header has at least three DW; shorter datagrams on the ports of NetTLP are configuration requests and the like.
const SMALLEST_TLP: usize = 12;

/// The NetTLP datagram of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) port: u16,
    pub(super) header: Header,
    /// What was captured of the TLP.
    pub(super) tlp: &'a [u8],
    /// The TLP's length on the wire.
    pub(super) length: usize,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Takes the headers off a frame whose length on the wire is `length`. `Ok(None)`: traffic that is not NetTLP.
pub(super) fn datagram(link_type: i32, data: &[u8], length: usize) -> Result<Option<Datagram<'_>>, Reason> {
    let cut = |header| Reason::HeadersCut { header, captured: data.len() };
    let (ethertype, at, padded) = match link_type {
        ETHERNET => {
            let (ethertype, at) = ethernet(data).ok_or(cut("Ethernet"))?;
            // 60 bytes is the smallest frame; a tag is inserted after padding.
            (ethertype, at, 60 + (at - 14))
        }
        LINUX_COOKED => (be16(data, 14).ok_or(cut("Linux cooked"))?, 16, 62),
        LINUX_COOKED_2 => (be16(data, 0).ok_or(cut("Linux cooked"))?, 20, 66),
        RAW_IP | IPV4 => (0x0800, 0, 0),
        other => return Err(Reason::LinkType(other)),
    };
    if ethertype != 0x0800 {
        return Ok(None);
    }
    let Some(ip) = ipv4(&data[at.min(data.len())..]).map_err(|why| why.unwrap_or(cut("IPv4")))? else {
        return Ok(None);
    };
    let udp = at + ip.header;
    let port = be16(data, udp + 2).ok_or(cut("UDP"))?;
    let udp_length = usize::from(be16(data, udp + 4).ok_or(cut("UDP"))?);
    if !is_tlp_port(port) {
        return Ok(None);
    }
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
    if udp_length < 8 + HEADER_BYTES + SMALLEST_TLP {
        return Ok(None);
    }
    let header = data.get(udp + 8..).and_then(|rest| Header::parse(rest).ok()).ok_or(cut("NetTLP"))?;
    let start = udp + 8 + HEADER_BYTES;
    Ok(Some(Datagram {
        source: ip.source,
        destination: ip.destination,
        port,
        header,
        tlp: &data[start..data.len().min(end)],
        length: end - start,
    }))
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
    Ok(Some(Ipv4 {
        header,
        total,
        // More fragments, or not the first one.
        fragment: (u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff) != 0,
        source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
        destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
    }))
}
