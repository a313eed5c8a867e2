//! Builders of capture files, independent of the writers under test.
#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

use tlplab_units::{Bdf, Tag};
use tlplab_wire::tlp::TransactionId;

/// Requester 19:00.0 with `tag`.
pub fn id(tag: u8) -> TransactionId {
    TransactionId::new(Bdf::new(0x19, 0, 0).unwrap(), Tag::from(tag))
}

/// MRd of 512 bytes at 0x90000000 with tag 2, as the X520 of the published captures sent it.
pub const READ: [u8; 12] = [0x00, 0x00, 0x20, 0x80, 0x19, 0x00, 0x02, 0xff, 0x90, 0x00, 0x00, 0x00];

/// An Ethernet frame with `tags` 802.1Q tags around a NetTLP datagram, padded to the smallest length.
pub fn frame(tags: usize, port: u16, tlp: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for _ in 0..tags {
        frame.extend([0x81, 0x00, 0x00, 0x05]);
    }
    frame.extend([0x08, 0x00]);
    let udp = 8 + 6 + tlp.len() as u16;
    frame.extend([0x45, 0]);
    frame.extend((20 + udp).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 168, 10, 1, 192, 168, 10, 3]);
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(udp.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend([0x02, 0x56, 0x99, 0x4e, 0x03, 0xe1]);
    frame.extend(tlp);
    let smallest = 60 + 4 * tags;
    if frame.len() < smallest {
        frame.resize(smallest, 0);
    }
    frame
}

/// Byte order and resolution of a pcap file.
#[derive(Clone, Copy, Debug)]
pub struct Pcap {
    pub big_endian: bool,
    pub nanoseconds: bool,
    pub link_type: u32,
}

impl Pcap {
    pub const NANO: Self = Self { big_endian: false, nanoseconds: true, link_type: 1 };

    fn word(self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// A file of frames: seconds, fraction, bytes kept, frame.
    pub fn file(self, frames: &[(u32, u32, usize, &[u8])]) -> Vec<u8> {
        let magic = if self.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let version = if self.big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let mut file = [self.word(magic), version, [0; 4], [0; 4], self.word(65535)].concat();
        file.extend(self.word(self.link_type));
        for &(seconds, fraction, kept, frame) in frames {
            let words = [seconds, fraction, kept as u32, frame.len() as u32];
            file.extend(words.iter().flat_map(|&word| self.word(word)));
            file.extend(&frame[..kept]);
        }
        file
    }
}

/// A pcapng file under construction.
pub struct Pcapng {
    pub bytes: Vec<u8>,
    big_endian: bool,
}

impl Pcapng {
    /// A section header.
    pub fn new(big_endian: bool) -> Self {
        let mut file = Self { bytes: Vec::new(), big_endian };
        let body =
            [file.word(0x1a2b_3c4d).to_vec(), file.half(1).to_vec(), vec![0, 0], vec![0xff; 8]].concat();
        file.block(0x0a0d_0d0a, &body);
        file
    }
    fn word(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }
    fn half(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }
    /// A block with its lengths.
    pub fn block(&mut self, block_type: u32, body: &[u8]) {
        let padded = body.len().next_multiple_of(4);
        let length = self.word(padded as u32 + 12);
        let head = [self.word(block_type), length].concat();
        self.bytes.extend(head);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(length);
    }
    /// An interface with if_tsresol and if_tsoffset, where given.
    pub fn interface(&mut self, link_type: u16, resolution: Option<u8>, offset: Option<i64>) {
        let mut body = [self.half(link_type).to_vec(), vec![0; 6]].concat();
        if let Some(resolution) = resolution {
            body.extend([self.half(9), self.half(1)].concat());
            body.extend([resolution, 0, 0, 0]);
        }
        if let Some(offset) = offset {
            body.extend([self.half(14), self.half(8)].concat());
            body.extend(if self.big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() });
        }
        body.extend([0; 4]);
        self.block(1, &body);
    }
    /// An enhanced packet block.
    pub fn packet(&mut self, interface: u32, ticks: u64, frame: &[u8]) {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, frame.len() as u32, frame.len() as u32];
        let mut body: Vec<u8> = words.iter().flat_map(|&word| self.word(word)).collect();
        body.extend(frame);
        self.block(6, &body);
    }
}
