//! A small language for the frames that are shown.
//!
//! ```text
//! type=MRd tag=0-15                    both (`and` may stand between)
//! type=CplD or type=Cpl                either
//! not (requester=1b:00 or errors)      the others
//! address=0xa0000000-0xa0000fff        touches a range
//! status!=SC                           the same as not status=SC
//! ```
//! A value is a list, `tag=3,7,16-31`. Numbers are decimal, or hexadecimal with `0x`.

use super::super::decode::{Decoded, End, What};
use std::fmt;
use std::net::Ipv4Addr;
use tlplab_units::Bdf;
use tlplab_wire::dllp;
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// A filter that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Option<Expression>);

/// The reason that words are not a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The word that is wrong; empty at the end.
    pub word: String,
    /// The fact and the fix.
    pub problem: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.word.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{:?}: {}", self.word, self.problem)
        }
    }
}

impl std::error::Error for FilterError {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Test(Test),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Errors,
    Malformed,
    Poisoned,
    Type(Vec<String>),
    Status(Vec<CompletionStatus>),
    Requester(Vec<Id>),
    Completer(Vec<Id>),
    Source(Vec<String>),
    Destination(Vec<String>),
    Host(Vec<String>),
    Number(Number, Ranges),
    /// Touches one of these, first and last byte.
    Address(Ranges),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Tag,
    Port,
    Vlan,
    Bytes,
    Frame,
    TrafficClass,
    Sequence,
}

/// First and last of each.
type Ranges = Vec<(u64, u64)>;

/// A function, or all of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    bdf: Bdf,
    mask: u16,
}

/// The keys before `=`, and their values.
pub const KEYS: &[(&str, &str)] = &[
    (
        "type",
        "MRd, MWr, CplD, CfgRd0, Msg, Ack, UpdateFC, …; tlp, dllp, flit, control, config, message, registers",
    ),
    ("tag", "tags of TLPs"),
    ("requester", "bus:device, or bus:device.function"),
    ("completer", "bus:device, or bus:device.function, of completions"),
    ("status", "SC, UR, CRS or CA"),
    ("address", "one address, first-last, or first+bytes: requests that touch it"),
    ("bytes", "bytes that a request asks for or carries, or a completion carries"),
    ("port", "UDP ports of either end"),
    ("host", "IP addresses or names of either end"),
    ("src", "IP addresses or names of the sender"),
    ("dst", "IP addresses or names of the receiver"),
    ("vlan", "802.1Q numbers"),
    ("tc", "traffic classes"),
    ("seq", "sequence numbers of NetTLP"),
    ("frame", "numbers of frames"),
];

/// Words that are tests alone.
pub const WORDS: &[(&str, &str)] = &[
    ("malformed", "frames that are not TLPs, with the reason"),
    ("errors", "malformed, poisoned, corrupted, bad ECRC, completions that are not successful"),
    ("poisoned", "poisoned TLPs"),
];

impl Filter {
    /// Reads words, which may hold several tests each; none at all lets everything through.
    ///
    /// # Errors
    /// The first word that is not understood.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, FilterError> {
        let text = words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut tokens = spaced.split_whitespace().peekable();
        if tokens.peek().is_none() {
            return Ok(Self(None));
        }
        let expression = any(&mut tokens, 0)?;
        match tokens.next() {
            None => Ok(Self(Some(expression))),
            Some(word) => Err(wrong(word, "the opening ( is missing")),
        }
    }

    /// True if this frame is to be shown.
    pub fn matches(&self, decoded: &Decoded<'_>) -> bool {
        self.0.as_ref().is_none_or(|expression| expression.holds(decoded))
    }
}

fn wrong(word: &str, problem: impl Into<String>) -> FilterError {
    FilterError { word: word.into(), problem: problem.into() }
}

type Tokens<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;
/// Parentheses within parentheses.
const DEEPEST: usize = 50;

fn any(tokens: &mut Tokens<'_>, depth: usize) -> Result<Expression, FilterError> {
    let mut parts = vec![all(tokens, depth)?];
    while tokens.next_if_eq(&"or").is_some() {
        parts.push(all(tokens, depth)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
}

fn all(tokens: &mut Tokens<'_>, depth: usize) -> Result<Expression, FilterError> {
    let mut parts = vec![one(tokens, depth)?];
    while tokens.peek().is_some_and(|word| !matches!(*word, "or" | ")")) {
        let _ = tokens.next_if_eq(&"and");
        parts.push(one(tokens, depth)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
}

fn one(tokens: &mut Tokens<'_>, depth: usize) -> Result<Expression, FilterError> {
    match tokens.next() {
        None => Err(wrong("", "the filter ends where a test is expected, such as type=MRd")),
        Some(word @ ("and" | "or" | ")")) => Err(wrong(word, "a test is expected here, such as type=MRd")),
        Some("(") if depth == DEEPEST => Err(wrong("(", "parentheses are nested too deeply")),
        Some("(") => {
            let inside = any(tokens, depth + 1)?;
            match tokens.next() {
                Some(")") => Ok(inside),
                _ => Err(wrong("(", "the closing ) is missing")),
            }
        }
        Some("not") if depth == DEEPEST => Err(wrong("not", "nested too deeply")),
        Some("not") => Ok(Expression::Not(Box::new(one(tokens, depth + 1)?))),
        Some(word) => test(word),
    }
}

fn test(word: &str) -> Result<Expression, FilterError> {
    let Some((key, value)) = word.split_once('=') else {
        return Ok(Expression::Test(match word {
            "malformed" => Test::Malformed,
            "errors" => Test::Errors,
            "poisoned" => Test::Poisoned,
            _ => return Err(wrong(word, format!("expected key=value or one of {}", list(WORDS)))),
        }));
    };
    let (key, negated) = key.strip_suffix('!').map_or((key, false), |key| (key, true));
    let numbers = |number: Number| {
        let ranges = ranges(word, value)?;
        match number.most() {
            Some(most) if ranges.iter().any(|range| range.1 > most) => {
                Err(wrong(word, format!("{key} is too large; expected at most {most}")))
            }
            _ => Ok(Test::Number(number, ranges)),
        }
    };
    let names = || value.split(',').map(|text| host(word, text)).collect::<Result<Vec<_>, _>>();
    let test = match key {
        "type" => Test::Type(types(word, value)?),
        "tag" => numbers(Number::Tag)?,
        "port" => numbers(Number::Port)?,
        "vlan" => numbers(Number::Vlan)?,
        "bytes" => numbers(Number::Bytes)?,
        "frame" => numbers(Number::Frame)?,
        "tc" => numbers(Number::TrafficClass)?,
        "seq" => numbers(Number::Sequence)?,
        "address" => Test::Address(ranges(word, value)?),
        "requester" => Test::Requester(ids(word, value)?),
        "completer" => Test::Completer(ids(word, value)?),
        "status" => Test::Status(statuses(word, value)?),
        "host" => Test::Host(names()?),
        "src" => Test::Source(names()?),
        "dst" => Test::Destination(names()?),
        _ => return Err(wrong(word, format!("unknown key; expected one of {}", list(KEYS)))),
    };
    let test = Expression::Test(test);
    Ok(if negated { Expression::Not(Box::new(test)) } else { test })
}

fn list(names: &[(&str, &str)]) -> String {
    names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Names of TLPs and DLLPs as this program writes them, whatever their case.
fn types(word: &str, value: &str) -> Result<Vec<String>, FilterError> {
    let known = |name: &str| {
        let name = name.to_ascii_lowercase();
        let groups = ["tlp", "dllp", "flit", "control", "config", "message", "registers"];
        let tlps = [
            "mrd", "mrdlk", "mwr", "dmwr", "iord", "iowr", "cfgrd0", "cfgrd1", "cfgwr0", "cfgwr1", "msg",
            "msgd", "cpl", "cpld", "cpllk", "cpldlk", "fetchadd", "swap", "cas",
        ];
        // Of all classes, as [`has_type`] takes them.
        let credits = ["initfc", "initfc1", "initfc2", "updatefc"];
        let mut dllps = (0..=255).filter_map(|byte| dllp::Repr::from_content([byte, 0, 0, 0]).ok());
        let known = [&groups[..], &tlps, &credits].iter().any(|names| names.contains(&name.as_str()))
            || dllps.any(|repr| repr.name().eq_ignore_ascii_case(&name));
        known.then_some(name)
    };
    value
        .split(',')
        .map(|name| {
            known(name)
                .ok_or_else(|| wrong(word, format!("unknown type {name:?}; expected one of {}", KEYS[0].1)))
        })
        .collect()
}

/// An address, or the name of an end. What looks like an address is to be one.
fn host(word: &str, text: &str) -> Result<String, FilterError> {
    let looks = text.contains('.') && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if text.is_empty() || looks && text.parse::<Ipv4Addr>().is_err() {
        return Err(wrong(
            word,
            format!("{text:?} is not valid; expected an address such as 10.0.0.1, or a name"),
        ));
    }
    Ok(text.into())
}

fn statuses(word: &str, value: &str) -> Result<Vec<CompletionStatus>, FilterError> {
    let status = |name: &str| {
        let all = (0..8).filter_map(CompletionStatus::from_bits);
        all.into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    };
    let wanted = || wrong(word, "unknown status; expected SC, UR, CRS or CA");
    value.split(',').map(|name| status(name).ok_or_else(wanted)).collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn ranges(word: &str, value: &str) -> Result<Ranges, FilterError> {
    let range = |text: &str| {
        if let Some((first, bytes)) = text.split_once('+') {
            let (first, bytes) = (number(first)?, number(bytes)?);
            return Some((first, first.checked_add(bytes.checked_sub(1)?)?));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some((first, last))
    };
    let wanted = || {
        wrong(word, "not a number; expected numbers such as 3, 0x1f, 0-15 or 0x1000+64, separated by commas")
    };
    value.split(',').map(|text| range(text).ok_or_else(wanted)).collect()
}

fn ids(word: &str, value: &str) -> Result<Vec<Id>, FilterError> {
    let id = |text: &str| {
        let (bus, rest) = text.split_once(':')?;
        let (device, function) = rest.split_once('.').map_or((rest, None), |(d, f)| (d, Some(f)));
        let (bus, device) = (u8::from_str_radix(bus, 16).ok()?, u8::from_str_radix(device, 16).ok()?);
        let bdf = Bdf::new(bus, device, function.map_or(Some(0), |f| f.parse().ok())?)?;
        Some(Id { bdf, mask: if function.is_some() { 0xffff } else { 0xfff8 } })
    };
    let wanted = || {
        wrong(
            word,
            "expected a function such as 1b:00.0, or a device such as 1b:00 (hexadecimal, device number below 20)",
        )
    };
    value.split(',').map(|text| id(text).ok_or_else(wanted)).collect()
}

impl Expression {
    fn holds(&self, decoded: &Decoded<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(decoded)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(decoded)),
            Self::Not(part) => !part.holds(decoded),
            Self::Test(test) => test.holds(decoded),
        }
    }
}

impl Test {
    fn holds(&self, decoded: &Decoded<'_>) -> bool {
        let repr = match &decoded.content {
            Ok(What::Tlp(tlp)) => Some(&tlp.repr),
            _ => None,
        };
        let completion = repr.and_then(|repr| match repr.kind() {
            Kind::Completion(completion) => Some(completion),
            _ => None,
        });
        match self {
            Self::Malformed => decoded.content.is_err(),
            Self::Poisoned => repr.is_some_and(|repr| repr.attributes().poisoned),
            Self::Errors => is_error(decoded),
            Self::Type(names) => names.iter().any(|name| has_type(decoded, name)),
            Self::Status(all) => completion.is_some_and(|completion| all.contains(&completion.status())),
            Self::Requester(all) => {
                repr.is_some_and(|repr| all.iter().any(|id| id.holds(repr.transaction_id().requester)))
            }
            Self::Completer(all) => {
                completion.is_some_and(|completion| all.iter().any(|id| id.holds(completion.completer())))
            }
            Self::Source(names) => is_one_of(decoded.ends().0, names),
            Self::Destination(names) => is_one_of(decoded.ends().1, names),
            Self::Host(names) => is_one_of(decoded.ends().0, names) || is_one_of(decoded.ends().1, names),
            Self::Number(number, ranges) => {
                number.of(decoded).iter().flatten().any(|value| within(ranges, *value))
            }
            Self::Address(ranges) => repr
                .and_then(touched)
                .is_some_and(|(first, last)| ranges.iter().any(|range| first <= range.1 && range.0 <= last)),
        }
    }
}

fn within(ranges: &Ranges, value: u64) -> bool {
    ranges.iter().any(|range| (range.0..=range.1).contains(&value))
}

impl Id {
    fn holds(self, bdf: Bdf) -> bool {
        bdf.0 & self.mask == self.bdf.0 & self.mask
    }
}

impl Number {
    /// The largest there can be.
    const fn most(self) -> Option<u64> {
        Some(match self {
            Self::Tag => (1 << 14) - 1,
            Self::Port | Self::Sequence => u16::MAX as u64,
            Self::Vlan => (1 << 12) - 1,
            Self::TrafficClass => 7,
            Self::Bytes | Self::Frame => return None,
        })
    }

    /// Its values in a frame: two ends have two ports.
    fn of(self, decoded: &Decoded<'_>) -> [Option<u64>; 2] {
        let tlp = match &decoded.content {
            Ok(What::Tlp(tlp)) => Some(tlp),
            _ => None,
        };
        let ends = decoded.endpoints;
        let value = match self {
            Self::Tag => tlp.map(|tlp| tlp.repr.transaction_id().tag.value().into()),
            Self::Port => return [ends.map(|e| e.source_port.into()), ends.map(|e| e.port.into())],
            Self::Vlan => ends.and_then(|ends| ends.vlan).map(u64::from),
            Self::Bytes => tlp.and_then(|tlp| bytes(&tlp.repr)).map(u64::from),
            Self::Frame => Some(decoded.frame),
            Self::TrafficClass => tlp.map(|tlp| tlp.repr.attributes().tc.value().into()),
            Self::Sequence => tlp.map(|tlp| tlp.header.sequence.into()),
        };
        [value, None]
    }
}

/// Bytes that a memory request asks for or carries, or a completion carries.
fn bytes(repr: &Repr) -> Option<u32> {
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            Some(if span.is_zero_length() { 0 } else { span.byte_count() })
        }
        Kind::Completion(completion) => Some(completion.data_bytes()),
        _ => None,
    }
}

/// First and last byte that a request is about.
fn touched(repr: &Repr) -> Option<(u64, u64)> {
    let (first, bytes) = match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            (span.first_byte(), u64::from(span.byte_count()))
        }
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => (port.address().into(), 4),
        Kind::AtomicOp { target, .. } => (target.address(), target.operand_bytes().into()),
        _ => return None,
    };
    Some((first, first.saturating_add(bytes.max(1) - 1)))
}

fn is_error(decoded: &Decoded<'_>) -> bool {
    match &decoded.content {
        Err(_) => true,
        Ok(_) if decoded.flags.bad => true,
        Ok(What::Tlp(tlp)) => {
            let failed =
                matches!(tlp.repr.kind(), Kind::Completion(c) if c.status() != CompletionStatus::Success);
            failed || tlp.repr.attributes().poisoned || tlp.ecrc == Some(false)
        }
        Ok(_) => false,
    }
}

/// True if this frame has the type `name`, in small letters.
fn has_type(decoded: &Decoded<'_>, name: &str) -> bool {
    match &decoded.content {
        Ok(What::Tlp(tlp)) => name == "tlp" || tlp.repr.name().eq_ignore_ascii_case(name),
        Ok(What::Dllp(repr)) => {
            let ours = repr.name().to_ascii_lowercase();
            // UpdateFC is all its classes.
            name == "dllp"
                || ours == name
                || (name.ends_with("fc") || name.ends_with("fc1") || name.ends_with("fc2"))
                    && ours.starts_with(name)
        }
        Ok(What::Flit { .. }) => name == "flit",
        Ok(What::Control(control)) => name == "control" || name == control.channel().name(),
        Ok(What::Other) | Err(_) => false,
    }
}

fn is_one_of(end: End<'_>, names: &[String]) -> bool {
    names.iter().any(|name| match end {
        End::Name(known) => known == name,
        End::Address(address) => name.parse::<Ipv4Addr>().is_ok_and(|wanted| wanted == address),
    })
}
