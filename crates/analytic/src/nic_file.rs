//! A NIC's TOML file.
//!
//! ```toml
//! title = "Mine"
//!
//! [[transmit]]            # in the order in which it happens; [[receive]] likewise
//! what  = "descriptors"
//! by    = "device"        # who asks: "device" or "host"
//! op    = "read"          # or "write"
//! size  = "256B"          # at once; "packet" is the packet without Ethernet's check sequence
//! batch = 16              # once for so many packets; 1 unless given
//! offset = "2B"           # where it starts in its page, or in the packet's buffer; 0 unless given
//! ```

use crate::connection::{Access, Party};
use crate::nic::{Nic, Size, Transaction};
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use tlplab_units::quantity;
use toml::Spanned;

/// A mistake in a NIC's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The key, such as `transmit[2].size`; empty for a syntax error.
    pub key: String,
    /// The fact and the fix.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, message } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        write!(f, "{file}:{line}:{column}: {key}{colon}{message}")
    }
}

impl std::error::Error for Mistake {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    transmit: Vec<Step>,
    #[serde(default)]
    receive: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    what: String,
    by: Spanned<String>,
    op: Spanned<String>,
    size: Spanned<String>,
    batch: Option<Spanned<i64>>,
    offset: Option<Spanned<String>>,
}

/// The most that one transaction moves.
const LARGEST: u64 = 1 << 30;

impl Nic {
    /// Reads the text of a NIC's file; `file` is its name, for mistakes.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        let place = Place { file, text };
        let read: File = toml::from_str(text).map_err(|error| place.syntax(&error))?;
        let steps = |list: &str, steps: Vec<Step>| -> Result<Vec<Transaction>, Mistake> {
            let numbered = steps.into_iter().enumerate();
            numbered.map(|(n, step)| place.transaction(&format!("{list}[{}]", n + 1), step)).collect()
        };
        let nic = Self {
            title: read.title,
            transmit: steps("transmit", read.transmit)?,
            receive: steps("receive", read.receive)?,
        };
        for (list, steps) in [("transmit", &nic.transmit), ("receive", &nic.receive)] {
            if !steps.iter().any(|step| step.size == Size::Packet) {
                let message = format!("no [[{list}]] moves the packet; give one of them size = \"packet\"");
                return Err(place.mistake(0..0, list, message));
            }
        }
        Ok(nic)
    }
}

struct Place<'a> {
    file: &'a str,
    text: &'a str,
}

impl Place<'_> {
    fn mistake(&self, span: Range<usize>, key: &str, message: String) -> Mistake {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let line = before.matches('\n').count() as u32 + 1;
        let column = before[start..].chars().count() as u32 + 1;
        Mistake { file: self.file.into(), line, column, key: key.into(), message }
    }

    /// The message of the TOML reader.
    fn syntax(&self, error: &toml::de::Error) -> Mistake {
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        self.mistake(error.span().unwrap_or_default(), "", message)
    }

    fn transaction(&self, path: &str, step: Step) -> Result<Transaction, Mistake> {
        let word = |key: &str, value: &Spanned<String>, first: &str, second: &str| match value.get_ref() {
            text if text == first => Ok(true),
            text if text == second => Ok(false),
            text => {
                let message = format!("unknown value {text:?}; expected \"{first}\" or \"{second}\"");
                Err(self.mistake(value.span(), &format!("{path}.{key}"), message))
            }
        };
        let by = if word("by", &step.by, "device", "host")? { Party::Device } else { Party::Host };
        let access = if word("op", &step.op, "read", "write")? { Access::Read } else { Access::Write };
        let size = match step.size.get_ref().as_str() {
            "packet" => Size::Packet,
            _ => match self.size(path, "size", &step.size)? {
                bytes @ 1..=LARGEST => Size::Bytes(bytes),
                bytes => {
                    let message = format!("{bytes} bytes at once; expected 1 to {LARGEST}");
                    return Err(self.mistake(step.size.span(), &format!("{path}.size"), message));
                }
            },
        };
        let batch = match &step.batch {
            None => 1,
            Some(batch) => u64::try_from(*batch.get_ref()).ok().filter(|n| *n > 0).ok_or_else(|| {
                let message = format!("{} packets to a transaction; expected 1 or more", batch.get_ref());
                self.mistake(batch.span(), &format!("{path}.batch"), message)
            })?,
        };
        let offset = step.offset.map_or(Ok(0), |offset| self.size(path, "offset", &offset))?;
        Ok(Transaction { what: step.what, by, access, size, batch, offset: offset % 4096 })
    }

    fn size(&self, path: &str, key: &str, value: &Spanned<String>) -> Result<u64, Mistake> {
        quantity::size(value.get_ref())
            .map_err(|error| self.mistake(value.span(), &format!("{path}.{key}"), error.to_string()))
    }
}
