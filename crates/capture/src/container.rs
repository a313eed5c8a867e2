//! pcap and pcapng: files to frames with a time, one after the other.

use super::decode::{Decoded, decode};
use super::problem::Reason;
use super::{Format, Problem};
use pcap_parser::pcapng::{
    parse_enhancedpacketblock_be, parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le,
};
use pcap_parser::{OptionCode, PcapHeader, PcapNGOption, parse_pcap_header};
use std::io::{self, Read};
use std::path::Path;
use tlplab_trace::Error;

const FS_PER_SECOND: i128 = 1_000_000_000_000_000;
/// A record that claims more is damage: snap lengths end at 256 KiB.
const LARGEST: usize = 16 << 20;
const CHUNK: usize = 256 << 10;
/// Decimals of a second at the finest.
const FEMTOSECONDS: u8 = 15;

/// One frame of a capture file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// 1 for the first, as Wireshark counts.
    pub(super) number: u64,
    /// Femtoseconds since 1970 (or since the start of a simulation).
    pub(super) fs: i128,
    /// Decimals of a second that the time is given with.
    pub(super) digits: u8,
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
    /// Bytes of the frame check sequence that the file says ends the frame; part of `length`.
    pub(super) check: usize,
}

/// The next item of a file.
pub(super) enum Item<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// A frame that cannot be read.
    Problem(Problem),
}

impl<'a> Item<'a> {
    /// Its content.
    pub(super) fn decode(&self) -> Decoded<'a> {
        match self {
            Self::Frame(frame) => decode(frame),
            Self::Problem(problem) => Decoded::from(*problem),
        }
    }
}

/// The reason that a file cannot be read on.
pub(super) enum Stop {
    /// The operating system refused.
    Io(io::Error),
    /// It is no such file.
    Content(Error),
}

impl Stop {
    /// The same about the file at `path`.
    pub(super) fn in_file(self, path: &Path) -> Error {
        match self {
            Self::Io(error) => Error::io(path, "read", error),
            Self::Content(error) => error.in_file(path),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The format of a pcap or pcapng file; `None` for others.
pub(super) fn sniff(bytes: &[u8]) -> Option<Format> {
    match bytes.get(..4)? {
        [0x0a, 0x0d, 0x0d, 0x0a] => Some(Format::Pcapng),
        [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] => Some(Format::Pcap),
        [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(Format::Pcap),
        [0x34, 0xcd, 0xb2, 0xa1] => Some(Format::Pcap),
        _ => None,
    }
}

/// Reads a file's frames one by one, as they come; keeps one of them in memory.
pub(super) struct Reader<R> {
    input: Input<R>,
    container: Container,
    /// Frames so far, readable or not.
    pub(super) frames: u64,
    ended: bool,
}

/// The formats, and what their frames depend on.
enum Container {
    Pcap(PcapHeader),
    Pcapng { big_endian: bool, interfaces: Vec<Option<Interface>>, begun: bool },
}

impl<R: Read> Reader<R> {
    /// Looks at the beginning of `input`. `Ok(Err(input))`, with what was read of it: it is neither pcap nor pcapng.
    pub(super) fn new(input: R) -> Result<Result<Self, Input<R>>, Stop> {
        let mut input = Input { source: input, buffer: Vec::new(), start: 0, read: 0, ended: false };
        input.fill(24)?;
        let container = match sniff(input.ahead()) {
            None => return Ok(Err(input)),
            Some(Format::Pcapng) => {
                Container::Pcapng { big_endian: false, interfaces: Vec::new(), begun: false }
            }
            Some(_) => match parse_pcap_header(input.ahead()).map(|(_, header)| header) {
                Ok(header) => {
                    input.start += 24;
                    Container::Pcap(header)
                }
                Err(_) => {
                    let problem = "the pcap header is cut short";
                    return Err(Stop::Content(Error::content(String::new(), problem, "it takes 24 bytes")));
                }
            },
        };
        Ok(Ok(Self { input, container, frames: 0, ended: false }))
    }

    /// Bytes of the file that have been read.
    pub(super) fn position(&self) -> u64 {
        self.input.read
    }

    /// The format of the file.
    pub(super) fn format(&self) -> Format {
        match self.container {
            Container::Pcap(_) => Format::Pcap,
            Container::Pcapng { .. } => Format::Pcapng,
        }
    }

    /// The next frame; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Item<'_>>, Stop> {
        let Self { input, container, frames, ended } = self;
        if *ended {
            return Ok(None);
        }
        match container {
            Container::Pcap(header) => pcap_frame(input, header, frames, ended),
            Container::Pcapng { big_endian, interfaces, begun } => loop {
                let Some(length) = block_length(input, big_endian)? else {
                    *ended = true;
                    if input.ahead().is_empty() && *begun {
                        return Ok(None);
                    }
                    if !*begun {
                        let problem = "the section header is damaged or cut short";
                        let wanted = "a pcapng file begins with one";
                        return Err(Stop::Content(Error::content(String::new(), problem, wanted)));
                    }
                    *frames += 1;
                    return Ok(Some(Item::Problem(Problem { frame: *frames, reason: Reason::FileCut })));
                };
                *begun = true;
                let at = input.start;
                input.start += length;
                let kind = word(&input.buffer[at..], *big_endian);
                if !is_packet(kind) {
                    describe(kind, &input.buffer[at..at + length], *big_endian, interfaces);
                    continue;
                }
                *frames += 1;
                let bytes = &input.buffer[at..at + length];
                let reason = match kind {
                    block::ENHANCED_PACKET => match packet(*frames, bytes, *big_endian, interfaces) {
                        Ok(frame) => return Ok(Some(Item::Frame(frame))),
                        Err(reason) => reason,
                    },
                    // No time, or none that can be trusted.
                    _ => Reason::NoTime,
                };
                return Ok(Some(Item::Problem(Problem { frame: *frames, reason })));
            },
        }
    }
}

/// Bytes of a file, of which the first have been seen.
pub(super) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// Up to here the buffer has been used.
    start: usize,
    /// Bytes read so far.
    read: u64,
    ended: bool,
}

impl<R: Read> Input<R> {
    /// The bytes that have been read and not yet used.
    fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads until `bytes` are there, or the input ends; takes no more than there is. True if they are there.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.ahead().len() < bytes && !self.ended {
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            let have = self.buffer.len();
            self.buffer.resize(have + CHUNK, 0);
            let got = match self.source.read(&mut self.buffer[have..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                other => other.map(Some),
            };
            self.buffer.truncate(have + got.as_ref().ok().and_then(|got| *got).unwrap_or(0));
            let got = got?;
            self.read += got.unwrap_or(0) as u64;
            self.ended = got == Some(0);
        }
        Ok(self.ahead().len() >= bytes)
    }

    /// Everything, from the beginning.
    pub(super) fn read_all(mut self) -> io::Result<Vec<u8>> {
        self.source.read_to_end(&mut self.buffer)?;
        Ok(self.buffer)
    }
}

fn pcap_frame<'a, R: Read>(
    input: &'a mut Input<R>,
    header: &PcapHeader,
    frames: &mut u64,
    ended: &mut bool,
) -> Result<Option<Item<'a>>, Stop> {
    // The modified format has eight bytes more before the frame.
    let fixed = if header.is_modified_format() { 24 } else { 16 };
    let there = input.fill(fixed)?;
    if input.ahead().is_empty() {
        *ended = true;
        return Ok(None);
    }
    *frames += 1;
    let field = |ahead: &[u8], at: usize| word(&ahead[at..], header.is_bigendian());
    let kept = if there { field(input.ahead(), 8) as usize } else { LARGEST };
    if kept >= LARGEST || !input.fill(fixed + kept)? {
        *ended = true;
        return Ok(Some(Item::Problem(Problem { frame: *frames, reason: Reason::FileCut })));
    }
    let at = input.start;
    input.start += fixed + kept;
    let (head, data) = input.buffer[at..at + fixed + kept].split_at(fixed);
    let nanoseconds = header.is_nanosecond_precision();
    let tick = if nanoseconds { 1_000_000 } else { 1_000_000_000 };
    Ok(Some(Item::Frame(Frame {
        number: *frames,
        fs: i128::from(field(head, 0)) * FS_PER_SECOND + i128::from(field(head, 4)) * tick,
        digits: if nanoseconds { 9 } else { 6 },
        // The upper bits tell the length of the frame check sequence.
        link_type: header.network.0 & 0xffff,
        interface: None,
        data,
        length: (field(head, 12) as usize).max(data.len()),
        check: check_bytes(header.network.0),
        comment: None,
    })))
}

/// The length of the frame check sequence, if a pcap header tells it: bit 26 says so, the upper four bits count half words.
fn check_bytes(network: i32) -> usize {
    let network = network as u32;
    if network & 0x0400_0000 != 0 { (network >> 28) as usize * 2 } else { 0 }
}

/// An option of pcapng that the library has no name for.
const IF_FCSLEN: OptionCode = OptionCode(13);

/// An interface of a pcapng section.
struct Interface {
    link_type: i32,
    name: Option<String>,
    units_per_second: Option<u64>,
    digits: u8,
    offset_seconds: i64,
    /// Bytes of the frame check sequence.
    check: usize,
}

/// Block types of pcapng.
mod block {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OBSOLETE_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const ENHANCED_PACKET: u32 = 6;
}

/// The first four bytes.
fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let raw = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
}

fn is_packet(kind: u32) -> bool {
    matches!(kind, block::OBSOLETE_PACKET | block::SIMPLE_PACKET | block::ENHANCED_PACKET)
}

/// The length of the next block, which is there and whole: its two lengths agree. A section header sets the byte order of what
/// follows. `None`: damaged, or the end is missing.
///
/// Blocks are framed here and only those of interest go to the library, whose parser for all types at once overflows on some
/// lengths that it should refuse.
fn block_length<R: Read>(input: &mut Input<R>, big_endian: &mut bool) -> io::Result<Option<usize>> {
    if !input.fill(12)? {
        return Ok(None);
    }
    let ahead = input.ahead();
    if word(ahead, false) == block::SECTION {
        *big_endian = match ahead[8..12] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Ok(None),
        };
    }
    let length = word(&ahead[4..], *big_endian) as usize;
    if length < 12 || !length.is_multiple_of(4) || length > LARGEST || !input.fill(length)? {
        return Ok(None);
    }
    let end = word(&input.ahead()[length - 4..], *big_endian) as usize;
    Ok((end == length).then_some(length))
}

/// Takes notice of sections and interfaces.
fn describe(kind: u32, bytes: &[u8], big_endian: bool, interfaces: &mut Vec<Option<Interface>>) {
    match kind {
        block::SECTION => interfaces.clear(),
        block::INTERFACE => {
            let parse = if big_endian {
                parse_interfacedescriptionblock_be
            } else {
                parse_interfacedescriptionblock_le
            };
            interfaces.push(parse(bytes).ok().map(|(_, found)| interface(&found, big_endian)));
        }
        _ => {}
    }
}

/// The frame of an enhanced packet block.
fn packet<'a>(
    number: u64,
    bytes: &'a [u8],
    big_endian: bool,
    interfaces: &'a [Option<Interface>],
) -> Result<Frame<'a>, Reason> {
    let parse = if big_endian { parse_enhancedpacketblock_be } else { parse_enhancedpacketblock_le };
    let (_, packet) = parse(bytes).map_err(|_| Reason::Block)?;
    let interface = interfaces.get(packet.if_id as usize).and_then(Option::as_ref);
    let interface = interface.ok_or(Reason::NoInterface(packet.if_id))?;
    let units = interface.units_per_second.ok_or(Reason::Resolution)?;
    let ticks = i128::from(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
    let offset = i128::from(interface.offset_seconds) * FS_PER_SECOND;
    let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
    Ok(Frame {
        number,
        fs: ticks * FS_PER_SECOND / i128::from(units) + offset,
        digits: interface.digits,
        link_type: interface.link_type,
        interface: interface.name.as_deref(),
        data,
        length: (packet.origlen as usize).max(data.len()),
        comment: text(&packet.options, OptionCode::Comment),
        check: interface.check,
    })
}

fn interface(found: &pcap_parser::InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
    let option = |code| found.options.iter().find(|o| o.code == code).map(PcapNGOption::value);
    let offset_seconds = option(OptionCode::IfTsoffset)
        .and_then(|value| value.get(..8)?.try_into().ok())
        .map_or(0, |raw| if big_endian { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) });
    // if_tsresol: the high bit chooses between powers of ten and of two (pcapng §4.2); 10^-6 if it is absent.
    let (units_per_second, digits) =
        match option(OptionCode::IfTsresol).and_then(|value| value.first().copied()) {
            None => (Some(1_000_000), 6),
            Some(binary) if binary & 0x80 != 0 => {
                let bits = binary & 0x7f;
                // 2^-10 is about 10^-3.
                (1u64.checked_shl(u32::from(bits)), (bits.div_ceil(10) * 3).min(FEMTOSECONDS))
            }
            Some(decimal) => (10u64.checked_pow(u32::from(decimal)), decimal.min(FEMTOSECONDS)),
        };
    let name = text(&found.options, OptionCode::IfName).map(String::from);
    // if_fcslen counts bits.
    let check = option(IF_FCSLEN).and_then(|value| value.first().copied());
    let check = check.map_or(0, |bits| usize::from(bits / 8));
    Interface { link_type: found.linktype.0, name, units_per_second, digits, offset_seconds, check }
}

/// A borrow of the option's value that outlives the parsed block.
fn text<'a>(options: &[PcapNGOption<'a>], code: OptionCode) -> Option<&'a str> {
    options.iter().find(|o| o.code == code).and_then(|o| {
        let std::borrow::Cow::Borrowed(bytes) = o.value else { return None };
        std::str::from_utf8(bytes.get(..usize::from(o.len))?).ok()
    })
}
