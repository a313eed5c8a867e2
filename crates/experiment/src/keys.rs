//! The values that a key may hold: the vocabulary in which [`crate::tables`] is written.
//!
//! A key stands in one row, from which come: that it is known (and is nearest to a misspelt one), what its value must look like, the
//! default where it is absent, the JSON Schema and the reference, and where its value goes in the configuration ([`crate::section`]).

use crate::error::{At, Error, Problem, Sources, nearest};
use crate::link;
use crate::tree::{self, Node, Table, Value};
use std::fmt;
use tlplab_units::{Generation, quantity};

/// The keys of a table of an experiment file, whatever its values become.
pub trait Keys: fmt::Debug + Sync {
    /// The subject of the table, with its article: `a switch`.
    fn title(&self) -> &'static str;
    /// Its keys, in the order in which they are explained.
    fn keys(&self) -> Vec<&'static Key>;
    /// Further keys that depend on what the table's `model` says; `None` where there are none.
    fn extra(&self) -> Option<fn(&str) -> Extra>;
}

/// Keys beyond a table's own, given what its `model` says.
#[derive(Clone, Copy, Debug)]
pub enum Extra {
    /// These and no others.
    Keys(&'static dyn Keys),
    /// Any key at all: parameters that only the model itself knows.
    Any,
}

/// One key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// The values that it may hold.
    pub kind: Kind,
    /// The value where the key is absent, as TOML; empty if there is none.
    pub default: &'static str,
    /// A value other than the default, as TOML.
    pub example: &'static str,
    /// Its meaning.
    pub doc: &'static str,
}

/// The form of a key: its name, the values that it may hold, its default or nothing, and an example, the latter two as TOML.
pub(crate) type Form = (&'static str, Kind, &'static str, &'static str);

/// A key and what it means.
pub(crate) const fn key((name, kind, default, example): Form, doc: &'static str) -> Key {
    Key { name, kind, default, example, doc }
}

impl Key {
    /// True if the table cannot do without it.
    pub(crate) fn is_required(&self) -> bool {
        self.doc.ends_with("Required.")
    }
    /// The value where it is absent.
    pub(crate) fn default(&self, sources: &Sources) -> Result<Option<Node>, Error> {
        let some = (!self.default.is_empty()).then_some(self.default);
        some.map(|toml| tree::parse_value(sources, At::DEFAULT.file, toml)).transpose()
    }
}

/// The values that a key may hold.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any string.
    Text,
    /// A whole number.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A probability between 0 and 1, both excluded.
    Probability,
    /// `true` or `false`.
    Boolean,
    /// A time with its unit.
    Time,
    /// A size in bytes with its unit.
    Size,
    /// A size that the specification limits to a few values.
    SizeOf {
        /// The subject of the size.
        what: &'static str,
        /// The values allowed, in bytes.
        bytes: &'static [u32],
    },
    /// A rate with its unit.
    Rate,
    /// An address: an integer, `"0x…"` or a size.
    Address,
    /// A link generation, by its number.
    Generation,
    /// A link width in lanes.
    Width,
    /// One of a few strings.
    Choice(&'static [&'static str]),
    /// A string with a form of its own.
    Word(&'static Word),
    /// A table with known keys.
    Table(&'static dyn Keys),
    /// A table whose keys are names.
    Map {
        /// The subject of the names: `switch`.
        what: &'static str,
        /// The value under each name.
        of: &'static Kind,
    },
    /// Figures of a run, in tables of any depth, and what each has to be.
    Expected,
    /// An array.
    List(&'static Kind),
    /// Several forms, told apart by their TOML type.
    OneOf(&'static [Kind]),
}

/// A string with a form of its own.
#[derive(Debug)]
pub struct Word {
    /// Its subject, with its article.
    pub what: &'static str,
    /// A regular expression for editors.
    pub pattern: &'static str,
    /// Judges a string.
    pub(crate) check: fn(&str) -> Result<(), Problem>,
}

impl dyn Keys + '_ {
    /// The keys for a table, and whether others are allowed.
    pub(crate) fn keys_for(&self, table: &Table) -> (Vec<&'static Key>, bool) {
        let mut keys = self.keys();
        let mut open = false;
        if let Some(extra) = self.extra() {
            match extra(self.model(table)) {
                Extra::Keys(more) => keys.extend(more.keys()),
                Extra::Any => open = true,
            }
        }
        (keys, open)
    }

    /// The `model` that a table says, or else the usual one.
    pub(crate) fn model<'t>(&self, table: &'t Table) -> &'t str {
        let said = table.get("model").and_then(|entry| entry.node.as_str());
        said.unwrap_or_else(|| {
            let default = self.keys().iter().find(|key| key.name == "model").map_or("", |key| key.default);
            default.trim_matches('"')
        })
    }
}

impl Kind {
    /// The expected value, with its article, for messages about wrong types.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Integer { min, max: i64::MAX } => format!("an integer from {min}"),
            Self::Integer { min, max } => format!("an integer from {min} to {max}"),
            Self::Probability => "a probability such as 1e-9".into(),
            Self::Boolean => "true or false".into(),
            Self::Time => "a time such as \"150ns\"".into(),
            Self::Size | Self::SizeOf { .. } => "a size such as \"256B\"".into(),
            Self::Rate => "a rate such as \"25Gb/s\"".into(),
            Self::Address => "an address such as \"0x1000\"".into(),
            Self::Generation => format!("a generation from 1 to {}", Generation::LAST.number()),
            Self::Width => "a number of lanes".into(),
            Self::Choice(words) => format!("one of {}", quoted(words)),
            Self::Word(word) => word.what.into(),
            Self::Table(section) => format!("a table ({})", section.title()),
            Self::Map { what, .. } => format!("a table with a key for each {what}"),
            Self::Expected => "a table of figures, each with a comparison such as \">= 90 Gb/s\"".into(),
            Self::List(_) => "an array".into(),
            Self::OneOf(kinds) => kinds.iter().map(Self::wanted).collect::<Vec<_>>().join(", or "),
        }
    }

    /// True if a value of this TOML type could be meant.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        match self {
            Self::Text | Self::Time | Self::Size | Self::SizeOf { .. } | Self::Rate => {
                matches!(value, Value::String(_))
            }
            Self::Choice(_) | Self::Word(_) => matches!(value, Value::String(_)),
            Self::Integer { .. } | Self::Generation | Self::Width => matches!(value, Value::Integer(_)),
            Self::Probability => matches!(value, Value::Float(_) | Value::Integer(_)),
            Self::Boolean => matches!(value, Value::Boolean(_)),
            Self::Address => matches!(value, Value::String(_) | Value::Integer(_)),
            Self::Table(_) | Self::Map { .. } | Self::Expected => matches!(value, Value::Table(_)),
            Self::List(_) => matches!(value, Value::Array(_)),
            Self::OneOf(kinds) => kinds.iter().any(|kind| kind.takes(value)),
        }
    }

    /// Judges a value that is not made of others.
    pub(crate) fn check_scalar(&self, node: &Node) -> Result<(), Problem> {
        if !self.takes(&node.value) {
            return Err(self.wrong_type(node));
        }
        let text = node.as_str().unwrap_or_default();
        match self {
            Self::Integer { min, max } => match node.value {
                Value::Integer(n) if (*min..=*max).contains(&n) => Ok(()),
                _ => Err(Problem::new(format!("expected {}, not {}", self.wanted(), node.describe()))),
            },
            Self::Generation | Self::Width => match (self, &node.value) {
                (Self::Generation, Value::Integer(n)) => link::generation_of(*n).map(drop),
                (_, Value::Integer(n)) => link::width_of(*n).map(drop),
                _ => Ok(()),
            },
            Self::Probability => match node.value {
                Value::Float(x) if x > 0.0 && x < 1.0 => Ok(()),
                _ => Err(Problem::new(format!("{} is not a probability between 0 and 1", node.describe()))),
            },
            Self::Time => quantity::time(text).map(drop).map_err(|e| Problem::new(e.to_string())),
            Self::Size => quantity::size(text).map(drop).map_err(|e| Problem::new(e.to_string())),
            Self::Rate => check_rate(text),
            Self::SizeOf { what, bytes } => check_size_of(what, bytes, text),
            Self::Address => address(node).map(drop),
            Self::Choice(words) => check_choice(words, text),
            Self::Word(word) => (word.check)(text),
            _ => Ok(()),
        }
    }

    pub(crate) fn wrong_type(&self, node: &Node) -> Problem {
        let problem = Problem::new(format!("expected {}, not {}", self.wanted(), node.describe()));
        let unit = match self {
            Self::Time => "ns",
            Self::Size | Self::SizeOf { .. } => "B",
            // Nobody means 25 bits per second.
            Self::Rate if !matches!(node.value, Value::Integer(1_000_000..)) => "Gb/s",
            Self::Rate => "b/s",
            _ => return problem,
        };
        match &node.value {
            Value::Integer(n) => {
                let near = match self {
                    Self::SizeOf { bytes, .. } => {
                        bytes.iter().copied().map(i64::from).min_by_key(|b| n.abs_diff(*b))
                    }
                    _ => None,
                };
                problem.hint(format!("the unit is missing, as in \"{}{unit}\"", near.unwrap_or(*n)))
            }
            Value::Float(x) => problem.hint(format!("the unit is missing, as in \"{x}{unit}\"")),
            _ => problem,
        }
    }
}

fn check_choice(words: &[&str], text: &str) -> Result<(), Problem> {
    if words.contains(&text) {
        return Ok(());
    }
    Err(no_choice(words, text))
}

/// None of these words.
pub(crate) fn no_choice(words: &[&str], text: &str) -> Problem {
    let problem = Problem::new(format!("\"{text}\" is not one of {}", quoted(words)));
    match nearest(text, words.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
        None => problem,
    }
}

/// The lowest rate that may be said, in bits per second: nothing is slower, and times of transfers stay within what can be counted.
const LOWEST_RATE: u64 = 1_000;

fn check_rate(text: &str) -> Result<(), Problem> {
    match quantity::rate(text) {
        Ok(LOWEST_RATE..) => Ok(()),
        Ok(_) => Err(Problem::new(format!("a rate of \"{text}\" is too low"))
            .hint("the lowest rate is 1 kb/s; a usual one is \"25Gb/s\"")),
        Err(error) => Err(Problem::new(error.to_string())),
    }
}

fn check_size_of(what: &str, bytes: &[u32], text: &str) -> Result<(), Problem> {
    let size = quantity::size(text).map_err(|e| Problem::new(e.to_string()))?;
    if bytes.iter().any(|&b| u64::from(b) == size) {
        return Ok(());
    }
    let list: Vec<String> = bytes.iter().map(|b| format!("{b}B")).collect();
    Err(Problem::new(format!("unsupported {what} of {size} B"))
        .hint(format!("expected one of {}", list.join(" "))))
}

/// An address as a number.
pub(crate) fn address(node: &Node) -> Result<u64, Problem> {
    let parsed = match &node.value {
        Value::Integer(n) => u64::try_from(*n).ok(),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16).ok(),
            None => quantity::size(text).ok(),
        },
        _ => None,
    };
    parsed.ok_or_else(|| {
        Problem::new(format!("{} is not an address", node.describe()))
            .hint("write 0x1000, \"0x1_0000_0000\" or \"4GiB\"")
    })
}

/// `"a", "b"`
pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ")
}
