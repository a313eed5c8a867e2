//! The trace table: the requests of a device, one a line, for people to read and write.
//!
//! ```text
//! # tlplab trace 1
//! # source: an Intel X520 sending 32 packets of 1024 bytes, …
//! time_ns,op,address,bytes,requester,tag,attributes
//! 0,read,0x90000000,512,19:00.0,2,RO
//! 4313.25,write,0x90000200,64,19:00.0,3,
//! ```
//! Times are nanoseconds with up to six decimals, which is exact to the femtosecond. Numbers are decimal, or hexadecimal with
//! `0x`. Attributes are `RO`, `IDO` and `NS`, joined by `+`; the column may be left out. Lines that begin with `#` are comments; one of them may name the source.

use super::{Capture, Direction, Format, Record, TraceRequest, Unit};
use std::io::{self, Write};
use tlplab_trace::Error;
use tlplab_trace::linkunit::Flags;
use tlplab_units::{Bdf, Tag, Time};
use tlplab_wire::nettlp::Header;
use tlplab_wire::tlp::{Attributes, Repr, TransactionId};

/// The columns, which also begin every table (after comments).
pub const HEADER: &str = "time_ns,op,address,bytes,requester,tag,attributes";
/// The same without the last column, which may be left out.
const SHORT_HEADER: &str = "time_ns,op,address,bytes,requester,tag";
const MAGIC: &str = "# tlplab trace 1";
const SOURCE: &str = "# source:";

/// True if this looks like a trace table.
pub(super) fn is_table(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes()) || bytes.starts_with(b"time_ns,")
}

/// Writes `requests` as a table, with a line for each line of `source`.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, source: &str, requests: &[TraceRequest]) -> io::Result<()> {
    writeln!(out, "{MAGIC}")?;
    for line in source.lines() {
        writeln!(out, "{SOURCE} {}", line.trim())?;
    }
    writeln!(out, "{HEADER}")?;
    for request in requests {
        let TraceRequest { time, operation, address, bytes, requester, tag, .. } = request;
        let (operation, tag) = (operation.name(), tag.value());
        write!(out, "{},{operation},{address:#x},{bytes},{requester},{tag},", Nanoseconds(*time))?;
        writeln!(out, "{}", attribute_names(&request.attributes))?;
    }
    Ok(())
}

fn attribute_names(attributes: &Attributes) -> String {
    let all = [
        (attributes.relaxed_ordering, "RO"),
        (attributes.id_based_ordering, "IDO"),
        (attributes.no_snoop, "NS"),
    ];
    all.into_iter().filter_map(|(set, name)| set.then_some(name)).collect::<Vec<_>>().join("+")
}

fn attributes(names: &str) -> Option<Attributes> {
    let mut attributes = Attributes::default();
    for name in names.split('+').filter(|_| !names.is_empty()) {
        match name {
            "RO" => attributes.relaxed_ordering = true,
            "IDO" => attributes.id_based_ordering = true,
            "NS" => attributes.no_snoop = true,
            _ => return None,
        }
    }
    Some(attributes)
}

/// Prints a time in nanoseconds, exactly.
struct Nanoseconds(Time);

impl std::fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0.as_fs() / 1_000_000, self.0.as_fs() % 1_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// Reads a table. The requests become TLPs of one direction, `device → host`.
pub(super) fn read(bytes: &[u8]) -> Result<Capture, Error> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::content(String::new(), "the trace table is not UTF-8", "expected plain text"))?;
    let mut capture = Capture::new(Format::Table);
    capture.directions.push(Direction { from: "device".into(), to: "host".into() });
    let mut sources = Vec::new();
    let mut header = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(source) = line.strip_prefix(SOURCE) {
            sources.push(source.trim());
        } else if line.is_empty() || line.starts_with('#') {
            continue;
        } else if !header {
            if line != HEADER && line != SHORT_HEADER {
                let problem = format!("the columns are {line:?}");
                return Err(Error::content(place(number), problem, format!("expected {HEADER:?}")));
            }
            header = true;
        } else {
            capture.records.push(row(number, line)?);
        }
    }
    if !header {
        return Err(Error::content(String::new(), "the line with the columns is missing", HEADER));
    }
    if !sources.is_empty() {
        capture.source = Some(sources.join("\n"));
    }
    capture.frames = capture.records.len() as u64;
    Ok(capture)
}

fn place(line: u64) -> String {
    format!(", line {line}")
}

fn row(line: u64, text: &str) -> Result<Record, Error> {
    let wrong = |column: &str, value: &str, wanted: &str| {
        Error::content(place(line), format!("{column} is {value:?}"), format!("expected {wanted}"))
    };
    let mut fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let found = fields.len();
    if found == 6 {
        fields.push("");
    }
    let &[time, operation, address, bytes, requester, tag, names] = fields.as_slice() else {
        let problem = format!("the line has {found} columns");
        return Err(Error::content(place(line), problem, format!("expected seven: {HEADER}")));
    };
    let at = nanoseconds(time).ok_or_else(|| wrong("time_ns", time, "nanoseconds, such as 4313.25"))?;
    let id = TransactionId::new(
        bdf(requester)
            .ok_or_else(|| wrong("requester", requester, "bus:device.function, such as 19:00.0"))?,
        integer(tag)
            .and_then(|value| Tag::new(u16::try_from(value).ok()?))
            .ok_or_else(|| wrong("tag", tag, "a number below 16384"))?,
    );
    let to = integer(address).ok_or_else(|| wrong("address", address, "an address, such as 0x90000000"))?;
    let length = integer(bytes)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| wrong("bytes", bytes, "a number from 0 to 4096"))?;
    let repr = match operation {
        "read" => Repr::mem_read(id, to, length),
        "write" => Repr::mem_write(id, to, length),
        other => return Err(wrong("op", other, "\"read\" or \"write\"")),
    };
    let attributes =
        attributes(names).ok_or_else(|| wrong("attributes", names, "RO, IDO and NS joined by +"))?;
    let repr = repr.and_then(|repr| repr.with_attributes(attributes)).map_err(|error| {
        let wanted = "expected at most 4096 bytes that cross no 4 KiB boundary";
        Error::content(place(line), error.to_string(), wanted)
    })?;
    let unit = Unit::Tlp { repr, header: Header::default(), port: 0, payload: (0, 0) };
    Ok(Record { frame: line, time: at, direction: 0, unit, flags: Flags::default() })
}

fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn nanoseconds(text: &str) -> Option<Time> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = if part.is_empty() { 0 } else { format!("{part:0<6}").parse().ok()? };
    whole.checked_mul(1_000_000)?.checked_add(part).map(Time::from_fs)
}

fn bdf(text: &str) -> Option<Bdf> {
    let (bus, rest) = text.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    Bdf::new(u8::from_str_radix(bus, 16).ok()?, u8::from_str_radix(device, 16).ok()?, function.parse().ok()?)
}
