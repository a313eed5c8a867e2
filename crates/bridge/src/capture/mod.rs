//! Captures: what happened on real links, and on simulated ones.
//!
//! [`read`] takes pcap (microseconds or nanoseconds, either byte order), pcapng (any resolution, also what
//! [`crate::pcapng::Writer`] writes) and the [trace table](table), and gives a [`Capture`]: every TLP with its time and
//! direction, and for every frame that is none the reason. [`requests`] takes from it what a workload replays,
//! [`Statistics`] what the requester got in reply.
//!
//! A malformed frame is reported with its number and never ends the reading; a damaged file is read up to the damage.

mod container;
mod frame;
mod problem;
mod requests;
pub mod table;

pub use problem::{Problem, Reason};
pub use requests::{Latencies, Operation, Statistics, TraceRequest, busiest_direction, requests, statistics};

use crate::Error;
use crate::linkunit::{self, Flags};
use container::Frame;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;
use tlplab_units::Time;
use tlplab_wire::dllp;
use tlplab_wire::nettlp::Header;
use tlplab_wire::tlp::{Packet, ParseOptions, Repr};

/// The file formats that [`read`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format.
    Pcap,
    /// The block format.
    Pcapng,
    /// A table of requests, one a line: [`table`].
    Table,
}

/// A capture, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The format it came in.
    pub format: Format,
    /// Where the data come from, if the file says so (trace tables do).
    pub source: Option<String>,
    /// Femtoseconds from 1970 (or from the start of a simulation) to the first record.
    pub start_fs: i128,
    /// Who sent to whom; records refer to them by index.
    pub directions: Vec<Direction>,
    /// What could be read, in the order of the file.
    pub records: Vec<Record>,
    /// What could not be read, in the order of the file.
    pub problems: Vec<Problem>,
    /// All frames of the file: records, problems and others.
    pub frames: u64,
    /// Frames that are something else than NetTLP: ARP, TCP, other ports. Neither records nor problems.
    pub others: u64,
    payloads: Vec<u8>,
}

/// A direction of travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// The sender: a node's name, or an IP address.
    pub from: String,
    /// The receiver.
    pub to: String,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// Something that was on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The frame, counted from 1; the line of a trace table.
    pub frame: u64,
    /// Time since the capture's first record.
    pub time: Time,
    /// Index into [`Capture::directions`].
    pub direction: u16,
    /// What it was.
    pub unit: Unit,
    /// Corrupted, replayed or nullified, as captures of simulated links tell.
    pub flags: Flags,
}

/// What was on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A TLP in NetTLP encapsulation.
    Tlp {
        /// The TLP; its payload is given by [`Capture::payload`].
        repr: Repr,
        /// Running number and clock, as NetTLP carries them.
        header: Header,
        /// UDP destination port.
        port: u16,
        /// Captured bytes of payload: position and length in the capture's store.
        payload: (usize, u16),
    },
    /// A DLLP.
    Dllp(dllp::Repr),
    /// A flit.
    Flit {
        /// Its sequence number.
        sequence: u16,
    },
}

impl Capture {
    /// The payload bytes of a TLP that were kept: fewer than [`Repr::payload_bytes`] where the capture was cut.
    pub fn payload(&self, record: &Record) -> &[u8] {
        match record.unit {
            Unit::Tlp { payload: (at, length), .. } => &self.payloads[at..at + usize::from(length)],
            _ => &[],
        }
    }

    /// The TLPs, with the records they come from.
    pub fn tlps(&self) -> impl Iterator<Item = (&Record, &Repr)> {
        self.records.iter().filter_map(|record| match &record.unit {
            Unit::Tlp { repr, .. } => Some((record, repr)),
            _ => None,
        })
    }

    fn new(format: Format) -> Self {
        Self {
            format,
            source: None,
            start_fs: 0,
            directions: Vec::new(),
            records: Vec::new(),
            problems: Vec::new(),
            frames: 0,
            others: 0,
            payloads: Vec::new(),
        }
    }
}

/// Reads a capture from memory.
///
/// # Errors
/// The bytes are none of the formats. What is wrong within one of them is reported in [`Capture::problems`], except
/// for trace tables, which people write: there the first wrong line is the error.
pub fn read(bytes: &[u8]) -> Result<Capture, Error> {
    match container::sniff(bytes) {
        Some(format) => read_frames(format, bytes),
        None if table::is_table(bytes) => table::read(bytes),
        None => Err(Error::content(
            String::new(),
            "it is no capture",
            format!("pcap, pcapng and trace tables (first line {:?}) can be read", table::HEADER),
        )),
    }
}

/// Reads a capture from `path`; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is none of the formats.
pub fn read_file(path: impl AsRef<Path>) -> Result<Capture, Error> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    let result = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|content| bytes = content)
    };
    result.map_err(|error| Error::io(path, "read", error))?;
    read(&bytes).map_err(|error| error.in_file(path))
}

/// Reads the trace at `path` for a replay: the memory requests of its busiest direction, from the first one's time on.
///
/// # Errors
/// The file cannot be read, is none of the formats, or holds no memory request.
pub fn read_trace(path: impl AsRef<Path>) -> Result<Vec<tlplab_device::Record>, Error> {
    let path = path.as_ref();
    let capture = read_file(path)?;
    let direction = busiest_direction(&capture).ok_or_else(|| {
        let (frames, bad) = (capture.frames, capture.problems.len());
        let problem = format!("none of its {frames} frames is a memory request ({bad} are malformed)");
        let wanted = "a replay needs MRd or MWr in NetTLP encapsulation";
        Error::content(String::new(), problem, wanted).in_file(path)
    })?;
    let requests = requests(&capture, Some(direction));
    let start = requests.first().map_or(Time::ZERO, |request| request.time);
    let record = |request: &TraceRequest| tlplab_device::Record {
        at: request.time - start,
        write: request.operation == Operation::Write,
        address: request.address,
        bytes: request.bytes,
    };
    Ok(requests.iter().map(record).collect())
}

fn read_frames(format: Format, bytes: &[u8]) -> Result<Capture, Error> {
    let mut collector = Collector { capture: Capture::new(format), times: Vec::new() };
    let frames = match format {
        Format::Pcap => container::pcap(bytes, &mut collector)?,
        _ => container::pcapng(bytes, &mut collector)?,
    };
    collector.capture.frames = frames;
    Ok(collector.finish())
}

/// Reads a TLP of which `kept` is the beginning, `length` bytes on the wire: what it means, and what there is of its payload.
fn tlp(kept: &[u8], length: usize) -> Result<(Repr, &[u8]), Reason> {
    let packet = Packet::new(kept);
    let options = ParseOptions { truncated: kept.len() < length, ..ParseOptions::default() };
    let repr = Repr::parse_with(&packet, options).map_err(Reason::Tlp)?;
    let header = repr.wire_bytes() as usize;
    if header != length {
        return Err(Reason::TlpLength { header, datagram: length });
    }
    Ok((repr, packet.payload()))
}

/// Gathers records; times become relative once the earliest one is known, since files need not be in order.
struct Collector {
    capture: Capture,
    /// Absolute time of each record, in femtoseconds.
    times: Vec<i128>,
}

impl container::Sink for Collector {
    fn frame(&mut self, frame: Frame<'_>) {
        let unit =
            if frame.link_type == linkunit::LINK_TYPE { self.link_unit(&frame) } else { self.nettlp(&frame) };
        match unit {
            Ok(Some((direction, unit))) => {
                let flags = frame.comment.map(Flags::from_comment).unwrap_or_default();
                let (number, time) = (frame.number, Time::ZERO);
                self.capture.records.push(Record { frame: number, time, direction, unit, flags });
                self.times.push(frame.fs);
            }
            Ok(None) => self.capture.others += 1,
            Err(reason) => self.capture.problems.push(Problem { frame: frame.number, reason }),
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.capture.problems.push(problem);
    }
}

impl Collector {
    fn nettlp(&mut self, frame: &Frame<'_>) -> Result<Option<(u16, Unit)>, Reason> {
        let Some(datagram) = frame::datagram(frame.link_type, frame.data, frame.length)? else {
            return Ok(None);
        };
        let (repr, payload) = tlp(datagram.tlp, datagram.length)?;
        let at = self.capture.payloads.len();
        self.capture.payloads.extend_from_slice(payload);
        let direction = match frame.interface.and_then(linkunit::split_name) {
            Some((from, to)) => self.direction(from, to),
            None => self.direction_of(datagram.source, datagram.destination),
        };
        let unit = Unit::Tlp {
            repr,
            header: datagram.header,
            port: datagram.port,
            payload: (at, payload.len() as u16),
        };
        Ok(Some((direction, unit)))
    }

    fn link_unit(&mut self, frame: &Frame<'_>) -> Result<Option<(u16, Unit)>, Reason> {
        let unit = linkunit::parse(frame.data)?;
        let (from, to) = frame.interface.and_then(linkunit::split_name).unwrap_or(("?", "?"));
        Ok(Some((self.direction(from, to), unit)))
    }

    fn direction_of(&mut self, from: Ipv4Addr, to: Ipv4Addr) -> u16 {
        self.direction(&from.to_string(), &to.to_string())
    }

    fn direction(&mut self, from: &str, to: &str) -> u16 {
        let known = self.capture.directions.iter().position(|d| d.from == from && d.to == to);
        let index = known.unwrap_or_else(|| {
            self.capture.directions.push(Direction { from: from.into(), to: to.into() });
            self.capture.directions.len() - 1
        });
        u16::try_from(index).unwrap_or(u16::MAX)
    }

    fn finish(self) -> Capture {
        let Self { mut capture, times } = self;
        let start = times.iter().copied().min().unwrap_or(0);
        capture.start_fs = start;
        let mut late = Vec::new();
        let mut times = times.into_iter();
        capture.records.retain_mut(|record| {
            let since = times.next().unwrap_or(start) - start;
            match u64::try_from(since) {
                Ok(fs) if fs < u64::MAX => record.time = Time::from_fs(fs),
                _ => {
                    late.push(Problem { frame: record.frame, reason: Reason::TooLate });
                    return false;
                }
            }
            true
        });
        if !late.is_empty() {
            capture.problems.append(&mut late);
            capture.problems.sort_by_key(|problem| problem.frame);
        }
        capture
    }
}
