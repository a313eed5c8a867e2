//! pcap and pcapng: files to frames with a time.

use super::problem::Reason;
use super::{Format, Problem};
use crate::Error;
use pcap_parser::parse_pcap_header;
use pcap_parser::pcapng::{
    parse_enhancedpacketblock_be, parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le,
};
use pcap_parser::{
    OptionCode, PcapNGOption, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
};

const FS_PER_SECOND: i128 = 1_000_000_000_000_000;

/// One frame of a capture file.
pub(super) struct Frame<'a> {
    /// 1 for the first, as Wireshark counts.
    pub(super) number: u64,
    /// Femtoseconds since 1970 (or since the start of a simulation).
    pub(super) fs: i128,
    /// LINKTYPE_ of the interface.
    pub(super) link_type: i32,
    /// Name of the interface, where the file states one.
    pub(super) interface: Option<&'a str>,
    /// The bytes that were kept.
    pub(super) data: &'a [u8],
    /// Length on the wire, of which `data` may be the beginning.
    pub(super) length: usize,
    /// Comment option of the frame.
    pub(super) comment: Option<&'a str>,
}

/// Where frames and what could not be read go.
pub(super) trait Sink {
    fn frame(&mut self, frame: Frame<'_>);
    fn problem(&mut self, problem: Problem);
}

/// Is this a pcap or pcapng file?
pub(super) fn sniff(bytes: &[u8]) -> Option<Format> {
    match bytes.get(..4)? {
        [0x0a, 0x0d, 0x0d, 0x0a] => Some(Format::Pcapng),
        [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] => Some(Format::Pcap),
        [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(Format::Pcap),
        [0x34, 0xcd, 0xb2, 0xa1] => Some(Format::Pcap),
        _ => None,
    }
}

/// Hands every frame of a pcap file to `sink`. Returns the number of frames, readable or not.
pub(super) fn pcap(bytes: &[u8], sink: &mut impl Sink) -> Result<u64, Error> {
    let Ok((mut rest, header)) = parse_pcap_header(bytes) else {
        return Err(Error::content(String::new(), "the pcap header is cut short", "it takes 24 bytes"));
    };
    let parse = match (header.is_modified_format(), header.is_bigendian()) {
        (true, _) => parse_pcap_frame_modified,
        (false, true) => parse_pcap_frame_be,
        (false, false) => parse_pcap_frame,
    };
    let tick = if header.is_nanosecond_precision() { 1_000_000 } else { 1_000_000_000 };
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let Ok((after, block)) = parse(rest) else {
            sink.problem(Problem { frame: number, reason: Reason::FileCut });
            break;
        };
        let seconds = i128::from(block.ts_sec) * FS_PER_SECOND;
        let data = block.data.get(..block.caplen as usize).unwrap_or(block.data);
        sink.frame(Frame {
            number,
            fs: seconds + i128::from(block.ts_usec) * tick,
            // The upper bits tell the length of the frame check sequence.
            link_type: header.network.0 & 0xffff,
            interface: None,
            data,
            length: (block.origlen as usize).max(data.len()),
            comment: None,
        });
        rest = after;
    }
    Ok(number)
}

/// An interface of a pcapng section.
struct Interface {
    link_type: i32,
    name: Option<String>,
    units_per_second: Option<u64>,
    offset_seconds: i64,
}

/// Block types of pcapng.
mod block {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OBSOLETE_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const ENHANCED_PACKET: u32 = 6;
}

/// A pcapng block that is whole: its two lengths agree.
struct Block<'a> {
    kind: u32,
    bytes: &'a [u8],
}

/// Cuts the next block off `rest`; a section header sets the byte order of what follows. `None`: damaged, or the end is missing.
///
/// Blocks are framed here and only those of interest go to the library, whose parser for all types at once overflows on some
/// lengths that it should refuse.
fn next_block<'a>(rest: &mut &'a [u8], big_endian: &mut bool) -> Option<Block<'a>> {
    let raw = |at: usize| rest.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    if raw(0)? == block::SECTION.to_be_bytes() {
        *big_endian = match raw(8)? {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return None,
        };
    }
    let word = |at| raw(at).map(if *big_endian { u32::from_be_bytes } else { u32::from_le_bytes });
    let (kind, length) = (word(0)?, usize::try_from(word(4)?).ok()?);
    if length < 12 || !length.is_multiple_of(4) || length > rest.len() || word(length - 4)? as usize != length
    {
        return None;
    }
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    Some(Block { kind, bytes })
}

/// Hands every frame of a pcapng file to `sink`. Returns the number of frames, readable or not.
pub(super) fn pcapng(bytes: &[u8], sink: &mut impl Sink) -> Result<u64, Error> {
    let mut rest = bytes;
    let (mut number, mut big_endian) = (0, false);
    let mut interfaces: Vec<Option<Interface>> = Vec::new();
    while !rest.is_empty() {
        let Some(block) = next_block(&mut rest, &mut big_endian) else {
            if rest.len() == bytes.len() {
                let problem = "the section header is damaged or cut short";
                return Err(Error::content(String::new(), problem, "a pcapng file begins with one"));
            }
            sink.problem(Problem { frame: number + 1, reason: Reason::FileCut });
            return Ok(number + 1);
        };
        match block.kind {
            block::SECTION => interfaces.clear(),
            block::INTERFACE => {
                let parse = if big_endian {
                    parse_interfacedescriptionblock_be
                } else {
                    parse_interfacedescriptionblock_le
                };
                interfaces.push(parse(block.bytes).ok().map(|(_, found)| interface(&found, big_endian)));
            }
            block::ENHANCED_PACKET => {
                number += 1;
                if let Err(reason) = packet(number, block.bytes, big_endian, &interfaces, sink) {
                    sink.problem(Problem { frame: number, reason });
                }
            }
            // No time, or none that can be trusted.
            block::SIMPLE_PACKET | block::OBSOLETE_PACKET => {
                number += 1;
                sink.problem(Problem { frame: number, reason: Reason::NoTime });
            }
            _ => {}
        }
    }
    Ok(number)
}

/// Hands the frame of an enhanced packet block to `sink`.
fn packet(
    number: u64,
    bytes: &[u8],
    big_endian: bool,
    interfaces: &[Option<Interface>],
    sink: &mut impl Sink,
) -> Result<(), Reason> {
    let parse = if big_endian { parse_enhancedpacketblock_be } else { parse_enhancedpacketblock_le };
    let (_, packet) = parse(bytes).map_err(|_| Reason::Block)?;
    let interface = interfaces.get(packet.if_id as usize).and_then(Option::as_ref);
    let interface = interface.ok_or(Reason::NoInterface(packet.if_id))?;
    let units = interface.units_per_second.ok_or(Reason::Resolution)?;
    let ticks = i128::from(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
    let offset = i128::from(interface.offset_seconds) * FS_PER_SECOND;
    let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
    sink.frame(Frame {
        number,
        fs: ticks * FS_PER_SECOND / i128::from(units) + offset,
        link_type: interface.link_type,
        interface: interface.name.as_deref(),
        data,
        length: (packet.origlen as usize).max(data.len()),
        comment: text(&packet.options, OptionCode::Comment),
    });
    Ok(())
}

fn interface(found: &pcap_parser::InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
    let option = |code| found.options.iter().find(|o| o.code == code).map(PcapNGOption::value);
    let offset_seconds = option(OptionCode::IfTsoffset)
        .and_then(|value| value.get(..8)?.try_into().ok())
        .map_or(0, |raw| if big_endian { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) });
    // if_tsresol: the high bit chooses between powers of ten and of two (pcapng §4.2); 10^-6 if it is absent.
    let units_per_second = match option(OptionCode::IfTsresol).and_then(|value| value.first().copied()) {
        None => Some(1_000_000),
        Some(binary) if binary & 0x80 != 0 => 1u64.checked_shl(u32::from(binary & 0x7f)),
        Some(decimal) => 10u64.checked_pow(u32::from(decimal)),
    };
    let name = text(&found.options, OptionCode::IfName).map(String::from);
    Interface { link_type: found.linktype.0, name, units_per_second, offset_seconds }
}

fn text<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a str> {
    options.iter().find(|o| o.code == code).and_then(|o| o.as_str().ok())
}
