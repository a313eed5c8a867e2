//! Ethernet, IPv4 and UDP headers, for transports that see whole frames.

use std::net::Ipv4Addr;

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

const ETHERNET: usize = 14;
const IP: usize = 20;
const UDP: usize = 8;
/// Bytes of the headers that [`write`] writes: Ethernet, IPv4 without options, UDP.
pub(super) const HEADERS: usize = ETHERNET + IP + UDP;
/// Of those, what counts against the MTU of a link.
pub(super) const IP_HEADERS: usize = IP + UDP;

const ETHERTYPE_IPV4: u16 = 0x0800;
const PROTOCOL_UDP: u8 = 17;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// More fragments follow, or an offset that is not zero.
const FRAGMENT: u16 = 0x3fff;

/// The sender and receiver of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) from_mac: Mac,
    pub(super) to_mac: Mac,
    pub(super) from: Ipv4Addr,
    pub(super) to: Ipv4Addr,
    pub(super) from_port: u16,
    pub(super) to_port: u16,
}

/// Writes the headers of a frame with `len` bytes of UDP payload. There is no UDP checksum, as NetTLP's adapter sends none.
pub(super) fn write(headers: &mut [u8; HEADERS], way: &Way, len: usize) {
    let half = |value: usize| u16::try_from(value).expect("a datagram fits IPv4").to_be_bytes();
    let (ethernet, rest) = headers.split_at_mut(ETHERNET);
    let (ip, udp) = rest.split_at_mut(IP);
    ethernet[..6].copy_from_slice(&way.to_mac);
    ethernet[6..12].copy_from_slice(&way.from_mac);
    ethernet[12..].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    ip.fill(0);
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&half(IP + UDP + len));
    ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    (ip[8], ip[9]) = (64, PROTOCOL_UDP);
    ip[12..16].copy_from_slice(&way.from.octets());
    ip[16..].copy_from_slice(&way.to.octets());
    let checksum = !sum(ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    udp[..2].copy_from_slice(&way.from_port.to_be_bytes());
    udp[2..4].copy_from_slice(&way.to_port.to_be_bytes());
    udp[4..6].copy_from_slice(&half(UDP + len));
    udp[6..].fill(0);
}

/// A UDP datagram in a frame, with its payload at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) from_mac: Mac,
    pub(super) from: Ipv4Addr,
    pub(super) to: Ipv4Addr,
    pub(super) from_port: u16,
    pub(super) to_port: u16,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// The reason that a frame is not a whole UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reject {
    /// Not IPv4, or not UDP.
    Other,
    /// A part of a datagram: NetTLP's are never cut into fragments.
    Fragment,
    /// Lengths that contradict each other, or a wrong checksum of the IP header.
    Malformed,
}

/// Reads the headers of a frame, which may be padded behind the datagram.
///
/// The UDP checksum is not verified: a frame that did not leave the machine has none yet, and one that did was checked by the
/// receiving interface, or was sent without by the adapter.
pub(super) fn parse(frame: &[u8]) -> Result<Datagram, Reject> {
    let (ethernet, ip) = frame.split_at_checked(ETHERNET).ok_or(Reject::Malformed)?;
    if half(ethernet, 12) != ETHERTYPE_IPV4 {
        return Err(Reject::Other);
    }
    let ip_bytes = 4 * usize::from(ip.first().ok_or(Reject::Malformed)? & 15);
    let header = ip.get(..ip_bytes).filter(|header| header.len() >= IP).ok_or(Reject::Malformed)?;
    let total = usize::from(half(header, 2));
    if header[0] >> 4 != 4 || total > ip.len() || total < ip_bytes + UDP || sum(header) != 0xffff {
        return Err(Reject::Malformed);
    }
    if header[9] != PROTOCOL_UDP {
        return Err(Reject::Other);
    }
    if half(header, 6) & FRAGMENT != 0 {
        return Err(Reject::Fragment);
    }
    let udp = &ip[ip_bytes..total];
    if usize::from(half(udp, 4)) != udp.len() {
        return Err(Reject::Malformed);
    }
    let address = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&header[at..at + 4]).expect("four bytes"));
    Ok(Datagram {
        from_mac: ethernet[6..12].try_into().expect("six bytes"),
        from: address(12),
        to: address(16),
        from_port: half(udp, 0),
        to_port: half(udp, 2),
        start: ETHERNET + ip_bytes + UDP,
        len: udp.len() - UDP,
    })
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The ones' complement sum of the Internet checksum (RFC 1071) over an even number of bytes.
fn sum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(half(pair, 0))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello` from 10.0.0.1 to 10.0.0.2, port 12288, written down by hand.
    fn frame() -> Vec<u8> {
        let hex = "02000000000202000000000108004500002100004000401126ca0a0000010a00000230003000000d0000";
        let mut bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        bytes.extend(b"hello");
        bytes
    }

    fn way() -> Way {
        Way {
            from_mac: [2, 0, 0, 0, 0, 1],
            to_mac: [2, 0, 0, 0, 0, 2],
            from: [10, 0, 0, 1].into(),
            to: [10, 0, 0, 2].into(),
            from_port: 0x3000,
            to_port: 0x3000,
        }
    }

    #[test]
    fn headers_are_the_kernels() {
        let mut headers = [0xaa; HEADERS];
        write(&mut headers, &way(), 5);
        assert_eq!(headers, frame()[..HEADERS]);
        let read = parse(&frame()).unwrap();
        let way = way();
        assert_eq!((read.from_mac, read.from, read.to), (way.from_mac, way.from, way.to));
        assert_eq!((read.from_port, read.to_port, read.start, read.len), (0x3000, 0x3000, HEADERS, 5));
    }

    #[test]
    fn malformed_frames_are_refused() {
        type Change = fn(&mut Vec<u8>);
        /// Changes a frame and makes its IP checksum right again.
        fn with_checksum(frame: &mut [u8], change: impl FnOnce(&mut [u8])) {
            change(frame);
            frame[24..26].fill(0);
            let checksum = !sum(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        let cases: [(&str, Change, Reject); 12] = [
            ("empty", |f| f.clear(), Reject::Malformed),
            ("Ethernet only", |f| f.truncate(14), Reject::Malformed),
            ("cut in the IP header", |f| f.truncate(30), Reject::Malformed),
            ("cut in the payload", |f| f.truncate(f.len() - 1), Reject::Malformed),
            ("ARP", |f| f[13] = 6, Reject::Other),
            ("TCP", |f| with_checksum(f, |f| f[23] = 6), Reject::Other),
            ("IPv6 behind the type of IPv4", |f| with_checksum(f, |f| f[14] = 0x65), Reject::Malformed),
            ("a header of 16 bytes", |f| f[14] = 0x44, Reject::Malformed),
            ("wrong IP checksum", |f| f[24] ^= 1, Reject::Malformed),
            ("first fragment", |f| with_checksum(f, |f| f[20] |= 0x20), Reject::Fragment),
            ("later fragment", |f| with_checksum(f, |f| f[21] = 7), Reject::Fragment),
            ("UDP length differs", |f| f[39] ^= 1, Reject::Malformed),
        ];
        for (what, change, reject) in cases {
            let mut bytes = frame();
            change(&mut bytes);
            assert_eq!(parse(&bytes), Err(reject), "{what}");
        }
    }

    #[test]
    fn padding_and_options_are_passed_over() {
        let mut padded = frame();
        padded.resize(60, 0xee);
        assert_eq!(parse(&padded), parse(&frame()));
        let mut options = frame();
        options.splice(34..34, [1; 4]);
        options[14] = 0x46;
        options[17] += 4;
        options[24..26].fill(0);
        let checksum = !sum(&options[14..38]);
        options[24..26].copy_from_slice(&checksum.to_be_bytes());
        let read = parse(&options).unwrap();
        assert_eq!(&options[read.start..read.start + read.len], b"hello");
    }
}
