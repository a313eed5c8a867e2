//! Captures: the traffic of real links, and of simulated ones.
//!
//! [`read`] takes pcap (microseconds or nanoseconds, either byte order), pcapng (any resolution, also what
//! [`tlplab_trace::pcapng::Writer`] writes) and the [trace table](table), and gives a [`Capture`]: every TLP with its time and
//! direction, and for every frame that is none the reason. [`requests`] takes from it what a workload replays,
//! [`Statistics`] what the requester got in reply, [`mod@summary`] all that is to be said about it. [`dump`] shows frames as lines.
//!
//! On the way from bytes to meaning: `container` (files), `frame` (Ethernet to UDP), `decode` (what it carries), `matching` (which
//! completion answers which request).
//!
//! A malformed frame is reported with its number and never ends the reading; a damaged file is read up to the damage.

mod container;
mod control;
mod decode;
mod direction;
pub mod dissector;
pub mod dump;
mod frame;
mod link_layer;
mod matching;
mod problem;
mod replays;
mod requests;
pub mod summary;
pub mod table;

pub(crate) use control::control_names;
pub use control::{Channel, Control};
pub use decode::{Decoded, End, Tlp, What};
pub use direction::Direction;
pub use frame::Endpoints;
pub use problem::{Problem, Reason};
pub use requests::{Latencies, Operation, Statistics, TraceRequest, busiest_direction, requests, statistics};

use container::{Reader, Stop};
use direction::Directions;
use std::io::Read;
use std::path::Path;
use tlplab_trace::Error;
use tlplab_trace::linkunit::Flags;
use tlplab_units::Time;
use tlplab_wire::dllp;
use tlplab_wire::nettlp::Header;
use tlplab_wire::tlp::Repr;

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
    /// The source of the data, if the file states it (trace tables do).
    pub source: Option<String>,
    /// Femtoseconds from 1970 (or from the start of a simulation) to the first record.
    pub start_fs: i128,
    /// The senders and receivers; records refer to them by index.
    pub directions: Vec<Direction>,
    /// The records that could be read, in the order of the file.
    pub records: Vec<Record>,
    /// The frames that could not be read, in the order of the file.
    pub problems: Vec<Problem>,
    /// All frames of the file: records, problems and others.
    pub frames: u64,
    /// Frames that are something else than NetTLP: ARP, TCP, other ports. Neither records nor problems.
    pub others: u64,
    payloads: Vec<u8>,
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
    /// Its unit.
    pub unit: Unit,
    /// Corrupted, replayed or nullified, as captures of simulated links tell.
    pub flags: Flags,
}

/// A unit on the link.
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
    /// Configuration space, the driver's messages, the adapter's registers.
    Control(Control),
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
    read_from(bytes).map_err(|stop| stop.in_file(Path::new("input")))
}

/// Reads a capture from `path`; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is none of the formats.
pub fn read_file(path: impl AsRef<Path>) -> Result<Capture, Error> {
    let path = path.as_ref();
    read_from(open(path)?).map_err(|stop| stop.in_file(path))
}

/// Opens a file to read; `-` is standard input.
fn open(path: &Path) -> Result<Box<dyn Read + Send>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = std::fs::File::open(path).map_err(|error| Error::io(path, "read", error))?;
    Ok(Box::new(file))
}

fn read_from(input: impl Read) -> Result<Capture, Stop> {
    let mut reader = match Reader::new(input)? {
        Ok(reader) => reader,
        Err(other) => {
            let bytes = other.read_all()?;
            if table::is_table(&bytes) {
                return table::read(&bytes).map_err(Stop::Content);
            }
            return Err(Stop::Content(no_capture()));
        }
    };
    let mut collector = Collector::new(reader.format());
    while let Some(item) = reader.next()? {
        collector.frame(&item.decode());
    }
    Ok(collector.finish())
}

fn no_capture() -> Error {
    let wanted = format!("expected pcap, pcapng or a trace table (first line {:?})", table::HEADER);
    Error::content(String::new(), "it is not a capture", wanted)
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

/// Gathers records; times become relative once the earliest one is known, since files need not be in order.
struct Collector {
    capture: Capture,
    /// Absolute time of each record, in femtoseconds.
    times: Vec<i128>,
    directions: Directions,
}

impl Collector {
    fn new(format: Format) -> Self {
        Self { capture: Capture::new(format), times: Vec::new(), directions: Directions::default() }
    }

    fn frame(&mut self, decoded: &Decoded<'_>) {
        self.capture.frames += 1;
        let unit = match decoded.content {
            Ok(What::Tlp(tlp)) => self.tlp(&tlp, decoded.endpoints),
            Ok(What::Dllp(repr)) => Unit::Dllp(repr),
            Ok(What::Flit { sequence }) => Unit::Flit { sequence },
            Ok(What::Control(control)) => Unit::Control(control),
            Ok(What::Other) => {
                self.capture.others += 1;
                return;
            }
            Err(reason) => {
                self.capture.problems.push(Problem { frame: decoded.frame, reason });
                return;
            }
        };
        let direction = self.directions.of(decoded);
        let (frame, time, flags) = (decoded.frame, Time::ZERO, decoded.flags);
        self.capture.records.push(Record { frame, time, direction, unit, flags });
        self.times.push(decoded.fs);
    }

    fn tlp(&mut self, tlp: &Tlp<'_>, endpoints: Option<Endpoints>) -> Unit {
        let at = self.capture.payloads.len();
        self.capture.payloads.extend_from_slice(tlp.payload);
        Unit::Tlp {
            repr: tlp.repr,
            header: tlp.header,
            port: endpoints.map_or(0, |ends| ends.port),
            payload: (at, tlp.payload.len() as u16),
        }
    }

    fn finish(self) -> Capture {
        let Self { mut capture, times, directions, .. } = self;
        capture.directions = directions.all;
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
