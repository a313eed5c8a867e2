//! pcapng files of simulated links, for Wireshark, tshark and the tools of NetTLP.
//!
//! Each link and direction is an interface named `ssd → sw0`, number `2 · link + direction`. Its TLPs are Ethernet frames in NetTLP
//! encapsulation: IPv4, UDP from and to port 0x3000 + tag\[3:0\], sequence number (counted per interface), time in ticks of
//! 6.4 ns, TLP. The port scheme is the one of the NetTLP paper (§4.1) and of its published captures; later adapters use 0x4000 for
//! requests of the host, but the Wireshark plugin in the field decodes 0x3000 to 0x3100 only. Each node has one address from
//! 10.0.0.0/8, whatever link it is on: the file maps it to the node's name, and by it the dissector tells which way a TLP travels and so
//! which completion answers which request. The IPv4 identification is the data link sequence number.
//!
//! DLLPs and flits are on a second interface per link and direction, `ssd → sw0 (link layer)`, of LINKTYPE_USER0, behind a byte that
//! tells their kind: 1 DLLP (6 bytes with its CRC), 2 flit (a sequence number of 2 bytes; its content is not kept).
//!
//! A frame's time is that of its unit's first symbol, as fine as Wireshark can compute it: it multiplies the fraction of a second by
//! 10^9 in 64 bits, which is right for any time at 10^-10 s, and at finer resolutions for short runs only (up to 18.4 ms at
//! 10^-12 s, 18.4 µs at 10^-15 s). Where [`Settings::horizon`] bounds the run, the finest that fits is taken. A TLP without payload
//! (length-only runs) is cut behind its header with its true length stated, as snap lengths do it. A comment marks what was
//! `corrupted` on the wire, sent again (`replay`) or `nullified`; the bytes are those that were sent. Frames also carry the CRC error
//! flag if they arrived corrupted.
//!
//! Nothing is left out: what cannot be written ([`Unwritable`]) ends the capture, as a full disk does.

mod block;
mod frames;
mod unwritable;

pub use frames::{FrameWriter, RawFrame};
pub use unwritable::{Reason, Unwritable};

use crate::linkunit::{DLLP, FLIT, LINK_TYPE, SUFFIX};
use crate::record::{Content, Flags, Flit, Link, Tlp, Unit};
use block::{Blocks, NAME_RESOLUTION, PACKET, option, pad};
use std::io::{self, Write};
use tlplab_transaction::lay_out;
use tlplab_units::Time;
use tlplab_wire::nettlp::{self, Header, Issuer, PortScheme};
use tlplab_wire::tlp::emit::MAX_HEADER_BYTES;
use tlplab_wire::{Error, crc, dllp};

const ETHERNET: u16 = 1;
/// Digits of a femtosecond, the finest if_tsresol there is a use for.
const FEMTOSECONDS: u8 = 15;
/// The finest if_tsresol at which Wireshark's arithmetic cannot overflow: (10^10 − 1) · 10^9 fits 64 bits.
const ALWAYS_RIGHT: u8 = 10;
/// Ethernet, IPv4, UDP and NetTLP headers.
const ENCAPSULATION: usize = 14 + 20 + 8 + nettlp::HEADER_BYTES;
/// Encapsulation, prefixes and header, payload, digest.
const LARGEST: usize = ENCAPSULATION + MAX_HEADER_BYTES + 4096 + 4;
/// The ports of the NetTLP paper and of the published captures, which every tool in the field decodes.
const PORTS: PortScheme = PortScheme::FourBits;

/// The content of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// DLLPs and flits too, or TLPs only.
    pub link_layer: bool,
    /// Bytes of payload to keep of each TLP at most.
    pub payload: u32,
    /// No unit starts later than this: lets times be finer than 100 ps.
    pub horizon: Option<Time>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { link_layer: true, payload: 4096, horizon: None }
    }
}

/// Writes a capture while the run goes on; it keeps nothing in memory.
///
/// The first error of the sink, or the first unit that cannot be written, ends the writing and is given by [`Writer::finish`], so that the
/// simulation need not care.
pub struct Writer<W: Write> {
    blocks: Blocks<W>,
    settings: Settings,
    /// if_tsresol: ticks are 10^-this seconds.
    resolution: u8,
    directions: Vec<Ends>,
    frame: Box<[u8; LARGEST]>,
}

/// A link's direction: its name, the nodes by number, and the next NetTLP sequence number.
struct Ends {
    name: String,
    from: u32,
    to: u32,
    sequence: u16,
}

impl<W: Write> Writer<W> {
    /// Begins a capture of `links`, in the order of their indices.
    pub fn new(sink: W, links: &[Link], settings: Settings) -> Self {
        let mut writer = Self {
            blocks: Blocks::new(sink, LARGEST),
            settings,
            resolution: resolution(settings.horizon),
            directions: Vec::new(),
            frame: Box::new([0; LARGEST]),
        };
        let directions = || links.iter().flat_map(|link| [(link, 0), (link, 1)]);
        for (link, direction) in directions() {
            writer.blocks.interface(ETHERNET, &link.name(direction), writer.resolution);
        }
        if settings.link_layer {
            for (link, direction) in directions() {
                let name = link.name(direction) + SUFFIX;
                writer.blocks.interface(LINK_TYPE as u16, &name, writer.resolution);
            }
        }
        writer.nodes(links);
        writer
    }

    /// A unit was put on a wire.
    pub fn unit(&mut self, unit: &Unit<'_>) {
        let index = usize::from(unit.link) * 2 + usize::from(unit.direction & 1);
        if index >= self.directions.len() {
            return self.stop(&format!("link {}", unit.link), unit, Reason::UnknownLink);
        }
        match &unit.content {
            Content::Tlp(tlp) => self.tlp(index, unit, tlp),
            Content::Dllp(repr) if self.settings.link_layer => self.dllp(index, unit, repr),
            Content::Flit(flit) if self.settings.link_layer => self.flit(index, unit, flit),
            _ => {}
        }
    }

    /// Ends the capture and gives the sink back, flushed.
    ///
    /// # Errors
    /// The first error the sink gave, or [`Unwritable`], as the error's source, for the first unit that could not be written.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }

    /// Ends the writing.
    fn stop(&mut self, place: &str, unit: &Unit<'_>, reason: Reason) {
        self.blocks.fail(|| {
            let what = match &unit.content {
                Content::Tlp(tlp) => tlp.repr.to_string(),
                Content::Dllp(dllp) => dllp.to_string(),
                Content::Flit(flit) => format!("flit {}", flit.sequence),
            };
            io::Error::other(Unwritable { place: place.into(), time: unit.start, what, reason })
        });
    }

    fn tlp(&mut self, index: usize, unit: &Unit<'_>, tlp: &Tlp<'_>) {
        let length = ENCAPSULATION + tlp.repr.wire_bytes() as usize;
        let ends = &self.directions[index];
        let written = put_tlp(&mut self.frame[ENCAPSULATION..], tlp, self.settings.payload as usize)
            .and_then(|kept| encapsulate(&mut self.frame, ends, unit.start, tlp, length).map(|()| kept));
        match written {
            Ok(kept) => {
                self.directions[index].sequence = ends.sequence.wrapping_add(1);
                self.packet(index as u32, unit, ENCAPSULATION + kept, length);
            }
            Err(error) => {
                let wide = tlp.repr.transaction_id().tag.value() > 0x3ff;
                let place = ends.name.clone();
                self.stop(&place, unit, if wide { Reason::Tag } else { Reason::Tlp(error) });
            }
        }
    }

    fn dllp(&mut self, index: usize, unit: &Unit<'_>, repr: &dllp::Repr) {
        self.frame[0] = DLLP;
        let bytes = repr.emit();
        self.frame[1..=bytes.len()].copy_from_slice(&bytes);
        let interface = (self.directions.len() + index) as u32;
        self.packet(interface, unit, 1 + bytes.len(), 1 + bytes.len());
    }

    fn flit(&mut self, index: usize, unit: &Unit<'_>, flit: &Flit) {
        self.frame[0] = FLIT;
        self.frame[1..3].copy_from_slice(&flit.sequence.to_be_bytes());
        let interface = (self.directions.len() + index) as u32;
        self.packet(interface, unit, 3, 3 + 256);
    }

    /// Numbers the nodes in the order in which the links name them, and maps their addresses to their names.
    fn nodes(&mut self, links: &[Link]) {
        let mut nodes: Vec<&str> = Vec::new();
        let mut number = |name| {
            let known = nodes.iter().position(|&node| node == name);
            known.unwrap_or_else(|| {
                nodes.push(name);
                nodes.len() - 1
            }) as u32
        };
        for link in links {
            let (lower, upper) = (number(&link.lower), number(&link.upper));
            let ends = |direction, from, to| Ends { name: link.name(direction), from, to, sequence: 0 };
            self.directions.extend([ends(0, lower, upper), ends(1, upper, lower)]);
        }
        let body = &mut self.blocks.body;
        for (number, name) in (0..).zip(&nodes) {
            body.extend_from_slice(&1u16.to_le_bytes());
            body.extend_from_slice(&(4 + name.len() as u16 + 1).to_le_bytes());
            body.extend_from_slice(&address(number));
            body.extend_from_slice(name.as_bytes());
            body.push(0);
            pad(body);
        }
        body.extend_from_slice(&[0; 4]);
        self.blocks.end(NAME_RESOLUTION);
    }

    /// Writes `kept` bytes of the frame as an enhanced packet of `length`.
    fn packet(&mut self, interface: u32, unit: &Unit<'_>, kept: usize, length: usize) {
        let ticks = unit.start.as_fs() / fs_per_tick(self.resolution);
        self.blocks.packet(interface, ticks, &self.frame[..kept], length);
        if let Some(comment) = unit.flags.comment() {
            option(&mut self.blocks.body, 1, comment.as_bytes());
            option(&mut self.blocks.body, 2, &packet_flags(unit.flags).to_le_bytes());
            option(&mut self.blocks.body, 0, &[]);
        }
        self.blocks.end(PACKET);
    }
}

/// The finest resolution at which Wireshark computes times up to `horizon` right.
fn resolution(horizon: Option<Time>) -> u8 {
    let fits = |digits: &u8| {
        horizon.is_some_and(|time| time.as_fs() / fs_per_tick(*digits) <= u64::MAX / 1_000_000_000)
    };
    (ALWAYS_RIGHT + 1..=FEMTOSECONDS).rev().find(fits).unwrap_or(ALWAYS_RIGHT)
}

const fn fs_per_tick(digits: u8) -> u64 {
    10u64.pow((FEMTOSECONDS - digits) as u32)
}

/// epb_flags: bit 24 is a CRC error.
const fn packet_flags(flags: Flags) -> u32 {
    (flags.bad as u32) << 24
}

/// 10.0.0.1 for the first node.
const fn address(node: u32) -> [u8; 4] {
    (0x0a00_0001 + node).to_be_bytes()
}

/// Writes a TLP with at most `most` bytes of its payload; gives the bytes that were kept.
fn put_tlp(room: &mut [u8], tlp: &Tlp<'_>, most: usize) -> Result<usize, Error> {
    let start = tlp.repr.emit_header(room)?;
    let end = start + tlp.repr.payload_bytes() as usize;
    let Some(data) = tlp.payload.filter(|_| end > start) else {
        // Without its payload it is cut: the digest, which covers everything, goes with the end.
        return Ok(start + if end == start { put_digest(room, tlp, start) } else { 0 });
    };
    lay_out(tlp.repr, data, &mut room[start..end])?;
    Ok(if end - start > most { start + most } else { end + put_digest(room, tlp, end) })
}

/// Writes the digest behind what it covers, if there is one; gives its bytes.
fn put_digest(room: &mut [u8], tlp: &Tlp<'_>, end: usize) -> usize {
    if !tlp.repr.attributes().digest {
        return 0;
    }
    let digest = crc::ecrc(&room[..end]).to_le_bytes();
    room[end..end + digest.len()].copy_from_slice(&digest);
    digest.len()
}

/// Fills in the headers before a TLP; the whole frame takes `length` bytes.
fn encapsulate(
    frame: &mut [u8; LARGEST],
    ends: &Ends,
    at: Time,
    tlp: &Tlp<'_>,
    length: usize,
) -> Result<(), Error> {
    // In this scheme it does not matter who issued the request.
    let port = PORTS.port(Issuer::Device, tlp.repr.transaction_id().tag)?.to_be_bytes();
    let (from, to) = (address(ends.from), address(ends.to));
    // Locally administered MAC addresses, made of the IPv4 ones.
    frame[..2].copy_from_slice(&[2, 0]);
    frame[2..6].copy_from_slice(&to);
    frame[6..8].copy_from_slice(&[2, 0]);
    frame[8..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[14..34];
    ip[..2].copy_from_slice(&[0x45, 0]);
    ip[2..4].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    ip[4..6].copy_from_slice(&tlp.sequence.to_be_bytes());
    // Do not fragment; time to live 64; UDP.
    ip[6..12].copy_from_slice(&[0x40, 0, 64, 17, 0, 0]);
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let checksum = checksum(ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame[34..36].copy_from_slice(&port);
    frame[36..38].copy_from_slice(&port);
    frame[38..40].copy_from_slice(&(length as u16 - 34).to_be_bytes());
    // No UDP checksum, as the adapter sends it.
    frame[40..42].copy_from_slice(&[0, 0]);
    let timestamp = (at.as_fs() / Header::TICK.as_fs()) as u32;
    let header = Header { sequence: ends.sequence, timestamp };
    frame[42..ENCAPSULATION].copy_from_slice(&header.emit());
    Ok(())
}

/// The checksum of an IPv4 header whose checksum field is zero (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks_exact(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
