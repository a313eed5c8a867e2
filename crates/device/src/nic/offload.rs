//! Checksums and segmentation: what the NIC does to frames on behalf of the network stack (RFC 791, 793, 768, 1071, 8200).

/// The information of a context descriptor about the frames behind it. Places are byte offsets in the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Network header: first byte, where its checksum is, last byte (0: to the end).
    pub ip: Span,
    /// Transport header and data: likewise.
    pub transport: Span,
    /// Bytes of headers that each segment repeats.
    pub header: u8,
    /// Bytes of data in a segment at most.
    pub mss: u16,
    /// The transport is TCP, otherwise UDP.
    pub tcp: bool,
    /// The network is IPv4, otherwise IPv6.
    pub ipv4: bool,
}

/// The bytes that a checksum covers and its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u8,
    /// The place of the checksum.
    pub at: u8,
    /// Last byte; 0 for the frame's.
    pub last: u16,
}

/// The checksums to insert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insert {
    /// The network header's.
    pub ip: bool,
    /// The transport's.
    pub transport: bool,
}

/// The ones' complement sum (RFC 1071) of bytes, an odd last one padded with zero.
fn sum(bytes: &[u8]) -> u16 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    fold(pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + last)
}
fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// The meaning of a checksum field of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// The checksum is zero: IPv4, TCP.
    Sum,
    /// There is no checksum, and one of zero is sent as all ones: UDP (RFC 768).
    NoChecksum,
}

/// Writes a checksum. What stands in its place counts: zero, or the sum of a pseudo-header. A span outside the frame changes nothing.
pub fn insert(frame: &mut [u8], span: Span, zero: Zero) {
    let end = if span.last == 0 { frame.len() } else { usize::from(span.last) + 1 };
    let (start, at) = (usize::from(span.start), usize::from(span.at));
    let Some(covered) = frame.get(start..end.min(frame.len())) else { return };
    let checksum = match !sum(covered) {
        0 if zero == Zero::NoChecksum => 0xFFFF,
        checksum => checksum,
    };
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Inserts the checksums that are asked for.
pub fn finish(frame: &mut [u8], offload: &Offload, insert_into: Insert) {
    if insert_into.ip {
        insert(frame, offload.ip, Zero::Sum);
    }
    if insert_into.transport {
        insert(frame, offload.transport, if offload.tcp { Zero::Sum } else { Zero::NoChecksum });
    }
}

/// Cuts a frame into segments of at most `mss` bytes of data behind a copy of its headers each, with lengths, numbers and checksums put
/// right. A frame that is too short for its headers stays as it is.
pub fn segment(frame: Vec<u8>, offload: &Offload, insert_into: Insert) -> Vec<Vec<u8>> {
    let least = usize::from(offload.ip.start).max(usize::from(offload.transport.start)) + 20;
    let header = usize::from(offload.header);
    if offload.mss == 0 || header < least || frame.len() <= header {
        return vec![frame];
    }
    let (headers, data) = frame.split_at(header);
    let count = data.len().div_ceil(offload.mss.into());
    let cut = |(number, data): (usize, &[u8])| {
        let mut segment = [headers, data].concat();
        renumber(&mut segment, offload, number, number + 1 == count);
        if insert_into.transport {
            // The pseudo-header in the checksum's place lacks the length.
            let length = segment.len() - usize::from(offload.transport.start);
            let at = usize::from(offload.transport.at);
            if let Some(place) = segment.get_mut(at..at + 2) {
                let without = u16::from_be_bytes([place[0], place[1]]);
                place.copy_from_slice(&fold(u64::from(without) + length as u64).to_be_bytes());
            }
        }
        finish(&mut segment, offload, insert_into);
        segment
    };
    data.chunks(offload.mss.into()).enumerate().map(cut).collect()
}

/// Lengths and numbers of segment `number`.
fn renumber(segment: &mut [u8], offload: &Offload, number: usize, last: bool) {
    let (ip, transport) = (usize::from(offload.ip.start), usize::from(offload.transport.start));
    let total = segment.len();
    let word = |segment: &[u8], at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let mut put = |at: usize, value: u16| segment[at..at + 2].copy_from_slice(&value.to_be_bytes());
    if offload.ipv4 {
        put(ip + 2, (total - ip) as u16);
        let id = word(segment, ip + 4).wrapping_add(number as u16);
        segment[ip + 4..ip + 6].copy_from_slice(&id.to_be_bytes());
    } else {
        put(ip + 4, total.saturating_sub(ip + 40) as u16);
    }
    if offload.tcp {
        let sequence = &mut segment[transport + 4..transport + 8];
        let first = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        let offset = number * usize::from(offload.mss);
        sequence.copy_from_slice(&first.wrapping_add(offset as u32).to_be_bytes());
        if !last {
            segment[transport + 13] &= !0x09; // FIN and PSH belong to the last
        }
    } else {
        segment[transport + 4..transport + 6].copy_from_slice(&((total - transport) as u16).to_be_bytes());
    }
}

/// The result of a receiver's check of a frame's checksums; `None` without one, or if it cannot check it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The IPv4 header is right.
    pub ip: Option<bool>,
    /// TCP is right.
    pub tcp: Option<bool>,
    /// UDP is right.
    pub udp: Option<bool>,
}

/// Looks at the packet behind an EtherType: at `start` in the frame.
pub fn check(frame: &[u8], ethertype: u16, start: usize) -> Checked {
    let Some(packet) = frame.get(start..) else { return Checked::default() };
    match (ethertype, packet) {
        (0x0800, [first, ..]) if first >> 4 == 4 => check_ipv4(packet).unwrap_or_default(),
        (0x86DD, [first, ..]) if first >> 4 == 6 => check_ipv6(packet).unwrap_or_default(),
        _ => Checked::default(),
    }
}

fn check_ipv4(packet: &[u8]) -> Option<Checked> {
    let header = packet.get(..usize::from(packet[0] & 0xF) * 4).filter(|header| header.len() >= 20)?;
    let ip = Some(sum(header) == 0xFFFF);
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let data = packet.get(header.len()..total);
    let fragment = (u16::from_be_bytes([header[6], header[7]]) & 0x3FFF) != 0;
    let transport = match data {
        Some(data) if !fragment => check_transport(header[9], &header[12..20], data),
        _ => Checked::default(),
    };
    Some(Checked { ip, ..transport })
}

fn check_ipv6(packet: &[u8]) -> Option<Checked> {
    let header = packet.get(..40)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    Some(check_transport(header[6], &header[8..40], packet.get(40..40 + length)?))
}

fn check_transport(protocol: u8, addresses: &[u8], data: &[u8]) -> Checked {
    let whole = [sum(addresses).into(), u64::from(protocol), data.len() as u64, sum(data).into()];
    let right = Some(fold(whole.into_iter().sum()) == 0xFFFF);
    match (protocol, data) {
        (6, [_, ..]) if data.len() >= 20 => Checked { tcp: right, ..Checked::default() },
        (17, [_, _, _, _, _, _, 0, 0, ..]) => Checked::default(),
        (17, [_, ..]) if data.len() >= 8 => Checked { udp: right, ..Checked::default() },
        _ => Checked::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_sum_of_the_rfc() {
        assert_eq!(sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]), 0xDDF2);
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    /// An IPv4 header whose checksum is published widely (B861h).
    #[test]
    fn a_known_header() {
        let mut frame = vec![0; 14];
        frame.extend([0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0]);
        frame.extend([192, 168, 0, 1, 192, 168, 0, 199]);
        insert(&mut frame, Span { start: 14, at: 24, last: 33 }, Zero::Sum);
        assert_eq!(frame[24..26], [0xB8, 0x61]);
        assert_eq!(check(&frame, 0x0800, 14).ip, Some(true));
        frame[14 + 8] ^= 1;
        assert_eq!(check(&frame, 0x0800, 14).ip, Some(false));
    }

    /// A TCP frame of so many bytes of data as a network stack hands it over for segmentation.
    fn tcp(ipv4: bool, data: usize) -> (Vec<u8>, Offload) {
        let ip_bytes = if ipv4 { 20 } else { 40 };
        let mut ip = vec![0; ip_bytes];
        let addresses = if ipv4 { 12..20 } else { 8..40 };
        ip[addresses.clone()].iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 29) as u8);
        let pseudo = fold(u64::from(sum(&ip[addresses])) + 6);
        if ipv4 {
            (ip[0], ip[4], ip[5], ip[8], ip[9]) = (0x45, 0xFF, 0xFE, 64, 6);
        } else {
            (ip[0], ip[6], ip[7]) = (0x60, 6, 64);
        }
        let mut transport = vec![0; 20];
        transport[4..8].copy_from_slice(&0xFFFF_FC00_u32.to_be_bytes());
        (transport[12], transport[13]) = (0x50, 0x19); // ACK, PSH, FIN
        transport[16..18].copy_from_slice(&pseudo.to_be_bytes());
        let mut frame = vec![0; 14];
        frame.extend(ip);
        frame.extend(transport);
        frame.extend((0..data).map(|i| (i * 7) as u8));
        let at = 14 + ip_bytes as u8;
        let offload = Offload {
            ip: Span { start: 14, at: 24, last: u16::from(at) - 1 },
            transport: Span { start: at, at: at + 16, last: 0 },
            header: at + 20,
            mss: 1000,
            tcp: true,
            ipv4,
        };
        (frame, offload)
    }

    #[test]
    fn segments_are_right() {
        for (ipv4, ethertype) in [(true, 0x0800), (false, 0x86DD)] {
            let (frame, offload) = tcp(ipv4, 2500);
            let data = frame[offload.header.into()..].to_vec();
            let segments = segment(frame, &offload, Insert { ip: ipv4, transport: true });
            let headers = usize::from(offload.header);
            assert_eq!(segments.iter().map(|s| s.len() - headers).collect::<Vec<_>>(), [1000, 1000, 500]);
            assert_eq!(segments.iter().flat_map(|s| s[headers..].to_vec()).collect::<Vec<_>>(), data);
            for (number, segment) in segments.iter().enumerate() {
                // The receiver's check knows nothing of the sender's fields.
                let checked = check(segment, ethertype, 14);
                assert_eq!((checked.ip, checked.tcp), (ipv4.then_some(true), Some(true)), "{number}");
                let at = usize::from(offload.transport.start);
                let sequence = u32::from_be_bytes(segment[at + 4..at + 8].try_into().unwrap());
                assert_eq!(sequence, 0xFFFF_FC00_u32.wrapping_add(1000 * number as u32));
                assert_eq!(segment[at + 13], if number == 2 { 0x19 } else { 0x10 });
                if ipv4 {
                    assert_eq!(segment[18..20], 0xFFFE_u16.wrapping_add(number as u16).to_be_bytes());
                }
            }
        }
    }

    #[test]
    fn nonsense_is_left_alone() {
        let (frame, offload) = tcp(true, 100);
        let all = Insert { ip: true, transport: true };
        for offload in [
            Offload { mss: 0, ..offload },
            Offload { header: 20, ..offload },
            Offload { header: 255, ..offload },
            Offload { transport: Span { start: 250, ..offload.transport }, ..offload },
        ] {
            assert_eq!(segment(frame.clone(), &offload, all), std::slice::from_ref(&frame));
        }
        let mut short = vec![0; 10];
        finish(&mut short, &offload, all);
        assert_eq!(short, [0; 10]);
        for cut in 0..frame.len() {
            assert_eq!(check(&frame[..cut], 0x0800, 14).tcp, None);
        }
    }
}
