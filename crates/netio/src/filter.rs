//! Programs for the kernel (classic BPF): what it hands to a packet socket, and to which of a port's sockets.

use socket2::SockFilter;
use std::net::Ipv4Addr;

/// Socket filters (classic BPF) that let nothing through.
pub(super) const NOTHING: [SockFilter; 1] = [SockFilter::new(RETURN, 0, 0, 0)];

// linux/bpf_common.h, linux/filter.h
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_BEHIND_X: u16 = 0x48;
const LOAD_X_IP_HEADER_BYTES: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;
/// The place where the kernel shows the kind of packet (`SKF_AD_OFF + SKF_AD_PKTTYPE`).
const PACKET_TYPE: u32 = 0xffff_f000 + 4;
const OUTGOING: u32 = 4;

/// The place where the kernel shows the sender's address of a datagram at a UDP socket (`SKF_NET_OFF` + its place in the IP header).
const SENDER: u32 = 0xfff0_0000 + 12;

/// Of sockets with one port: the number of the sender in `peers`; of all others, how many peers there are.
pub(super) fn by_sender(peers: &[Ipv4Addr]) -> Vec<SockFilter> {
    let mut program = vec![SockFilter::new(LOAD_WORD, 0, 0, SENDER)];
    for (number, peer) in (0..).zip(peers) {
        program.push(SockFilter::new(JUMP_EQUAL, 0, 1, peer.to_bits()));
        program.push(SockFilter::new(RETURN, 0, 0, number));
    }
    program.push(SockFilter::new(RETURN, 0, 0, peers.len() as u32));
    program
}

/// Frames that come in with IPv4 and UDP, to `local` and one of `ports` (ascending, each once). What a fragment has at the place of the port is judged
/// later.
pub(super) fn to_ports(local: Ipv4Addr, ports: &[u16]) -> Vec<SockFilter> {
    let load = |code, k| SockFilter::new(code, 0, 0, k);
    let give_up = || SockFilter::new(RETURN, 0, 0, 0);
    let require = |k| [SockFilter::new(JUMP_EQUAL, 1, 0, k), give_up()];
    let mut program = vec![load(LOAD_WORD, PACKET_TYPE)];
    program.extend([SockFilter::new(JUMP_EQUAL, 0, 1, OUTGOING), give_up()]);
    program.push(load(LOAD_HALF, 12));
    program.extend(require(0x0800));
    program.push(load(LOAD_BYTE, 23));
    program.extend(require(17));
    program.push(load(LOAD_WORD, 30));
    program.extend(require(local.to_bits()));
    program.push(load(LOAD_X_IP_HEADER_BYTES, 14));
    program.push(load(LOAD_HALF_BEHIND_X, 16));
    for (first, last) in ranges(ports) {
        program.push(SockFilter::new(JUMP_GREATER, 2, 0, last.into()));
        program.push(SockFilter::new(JUMP_GREATER_OR_EQUAL, 0, 1, first.into()));
        program.push(SockFilter::new(RETURN, 0, 0, u32::MAX));
    }
    program.push(give_up());
    program
}

/// Runs of consecutive ports.
pub(super) fn ranges(ports: &[u16]) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &port in ports {
        match ranges.last_mut() {
            Some((_, last)) if u32::from(*last) + 1 == u32::from(port) => *last = port,
            _ => ranges.push((port, port)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_ports_are_joined() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[5, 6, 7, 9, 0xfffe, 0xffff]), [(5, 7), (9, 9), (0xfffe, 0xffff)]);
    }
}
