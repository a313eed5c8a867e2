//! Keys of closed forms and benchmarks: which there are, what each may hold, and what it holds where nobody says.

use crate::metrics::nearest;
use crate::place::Place;
use crate::values::toml_text;
use std::collections::BTreeMap;
use std::fmt;
use tlplab_experiment::Error;
use tlplab_units::{Generation, Width, quantity};
use toml::Spanned;

/// A table of keys as a study's file has it.
pub(crate) type Written = BTreeMap<String, Spanned<toml::Value>>;

/// A key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    form: Form,
    /// Its default, as TOML; empty for none.
    default: &'static str,
}

/// A row of a table of keys.
pub(crate) const fn key(name: &'static str, form: Form, default: &'static str) -> Key {
    Key { name, form, default }
}

/// The values that a key may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
    /// A time.
    Time,
    /// A link: `gen4 x8`, `gen5 x16 flit`.
    Link,
    /// A whole number, not below this.
    Whole(u64),
    /// True or false.
    Truth,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words.
    Words(&'static [&'static str]),
    /// Any text.
    Text,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Bytes, bits per second, femtoseconds, or how many.
    Number(u64),
    Link {
        generation: Generation,
        width: Width,
        flit: bool,
    },
    Truth(bool),
    Text(String),
    Words(Vec<String>),
}

/// As it counts in the key of a result.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Link { generation, width, flit } => {
                write!(f, "gen{} x{}{}", generation.number(), width.lanes(), if *flit { " flit" } else { "" })
            }
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Words(words) => write!(f, "{words:?}"),
        }
    }
}

/// A refusal: the fact and the fix.
pub(crate) type Refusal = (String, Option<String>);

impl Form {
    fn read(self, given: &toml::Value) -> Result<Value, Refusal> {
        let wanted = |what: &str| (format!("{} is not {what}", toml_text(given)), None);
        let quantity = |read: &dyn Fn(&str) -> Result<u64, quantity::QuantityError>, what, unit| match given {
            toml::Value::String(text) => {
                read(text).map(Value::Number).map_err(|error| (error.to_string(), None))
            }
            toml::Value::Integer(n) => {
                Err((format!("{n} is not {what}"), Some(format!("the unit is missing, as in \"{n}{unit}\""))))
            }
            _ => Err(wanted(what)),
        };
        match self {
            Self::Size => quantity(&|text| quantity::size(text), "a size such as \"256B\"", "B"),
            Self::Rate => quantity(&|text| quantity::rate(text), "a rate such as \"25Gb/s\"", "Gb/s")
                .and_then(|rate| if rate == Value::Number(0) { Err(wanted("above 0")) } else { Ok(rate) }),
            Self::Time => {
                quantity(&|text| Ok(quantity::time(text)?.as_fs()), "a time such as \"150ns\"", "ns")
            }
            Self::Link => given.as_str().ok_or_else(|| wanted("a link such as \"gen4 x8\"")).and_then(link),
            Self::Whole(least) => given
                .as_integer()
                .and_then(|n| u64::try_from(n).ok())
                .filter(|n| *n >= least)
                .map(Value::Number)
                .ok_or_else(|| wanted(&format!("a whole number of at least {least}"))),
            Self::Truth => given.as_bool().map(Value::Truth).ok_or_else(|| wanted("true or false")),
            Self::Word(words) => {
                let word = given.as_str().ok_or_else(|| wanted(&one_of(words)))?;
                known(word, words).map(|()| Value::Text(word.to_owned()))
            }
            Self::Words(words) => {
                let given: Option<Vec<&str>> = match given {
                    toml::Value::String(word) => Some(vec![word.as_str()]),
                    toml::Value::Array(items) => items.iter().map(toml::Value::as_str).collect(),
                    _ => None,
                };
                let given = given.ok_or_else(|| wanted("an array of words"))?;
                given.iter().try_for_each(|word| known(word, words))?;
                Ok(Value::Words(given.into_iter().map(str::to_owned).collect()))
            }
            Self::Text => {
                given.as_str().map(|text| Value::Text(text.to_owned())).ok_or_else(|| wanted("a text"))
            }
        }
    }
}

fn one_of(words: &[&str]) -> String {
    format!("one of {}", words.join(", "))
}

fn known(word: &str, words: &[&str]) -> Result<(), Refusal> {
    if words.contains(&word) {
        return Ok(());
    }
    let near = nearest(word, words.iter().copied()).map(|near| format!("did you mean \"{near}\"?"));
    Err((format!("\"{word}\" is not {}", one_of(words)), near))
}

fn link(text: &str) -> Result<Value, Refusal> {
    let refuse = || (format!("\"{text}\" is not a link such as \"gen4 x8\" or \"gen5 x16 flit\""), None);
    let words: Vec<&str> = text.split_whitespace().collect();
    let (first, second, flit) = match words[..] {
        [first, second] => (first, second, false),
        [first, second, "flit"] => (first, second, true),
        _ => return Err(refuse()),
    };
    let number = |word: &str, prefix: &str| -> Option<u8> { word.strip_prefix(prefix)?.parse().ok() };
    let generation = number(first, "gen").ok_or_else(refuse)?;
    let width = number(second, "x").ok_or_else(refuse)?;
    Ok(Value::Link {
        generation: Generation::new(generation).ok_or_else(|| {
            (
                format!("unsupported generation \"gen{generation}\""),
                Some(format!("expected {} to {}", Generation::FIRST, Generation::LAST)),
            )
        })?,
        width: Width::new(width).ok_or_else(|| {
            let widths: Vec<String> = Width::ALL.iter().map(ToString::to_string).collect();
            (format!("unsupported width \"x{width}\""), Some(format!("expected one of {}", widths.join(" "))))
        })?,
        flit,
    })
}

/// The keys of a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// Their owner, for messages: `the model bw`.
    pub(crate) of: &'static str,
    /// The keys.
    pub(crate) keys: &'static [&'static [Key]],
}

impl Keys {
    fn all(self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().copied().flatten()
    }

    /// Their names.
    pub(crate) fn names(self) -> Vec<&'static str> {
        self.all().map(|key| key.name).collect()
    }

    /// Checks that the key exists.
    pub(crate) fn check(self, name: &str) -> Result<(), Refusal> {
        if self.all().any(|key| key.name == name) {
            return Ok(());
        }
        let names = self.names();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("its keys are {}", names.join(", ")),
        };
        Err((format!("{} has no key {name}", self.of), Some(hint)))
    }

    /// The values that a study's file gives to keys, as TOML.
    pub(crate) fn read(
        self,
        place: Place<'_>,
        table: &str,
        written: &Written,
        besides: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut read = BTreeMap::new();
        for (name, value) in written.iter().filter(|(name, _)| *name != besides) {
            let checked = self.check(name).and_then(|()| self.value(name, value.get_ref()).map(drop));
            checked.map_err(|(message, hint)| {
                place.mistake(value.span(), &format!("{table}.{name}"), message, hint)
            })?;
            read.insert(name.clone(), toml_text(value.get_ref()));
        }
        Ok(read)
    }

    fn value(self, name: &str, given: &toml::Value) -> Result<Value, Refusal> {
        self.check(name)?;
        let key = self.all().find(|key| key.name == name);
        key.map_or_else(|| Ok(Value::Truth(true)), |key| key.form.read(given))
    }

    /// The values of all keys: defaults, those of a file, and upon them those set at a point (`key=value` each).
    pub(crate) fn resolve(
        self,
        given: &BTreeMap<String, String>,
        set: &[String],
    ) -> Result<Resolved, String> {
        let mut values = BTreeMap::new();
        for key in self.all().filter(|key| !key.default.is_empty()) {
            values.insert(key.name, self.set(key.name, key.default)?);
        }
        let pairs = given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let set = set.iter().map(|set| set.split_once('=').unwrap_or((set, "")));
        for (name, text) in pairs.chain(set) {
            let value = self.set(name.trim(), text.trim())?;
            values.extend(self.all().find(|key| key.name == name.trim()).map(|key| (key.name, value)));
        }
        Ok(Resolved { values })
    }

    fn set(self, name: &str, text: &str) -> Result<Value, String> {
        self.value(name, &parse(text)).map_err(|(message, hint)| {
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{name}: {message}{hint}")
        })
    }
}

/// A value as TOML, or a bare text: `link=gen4 x8`.
fn parse(text: &str) -> toml::Value {
    let table = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
    let value = table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// The values of all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    values: BTreeMap<&'static str, Value>,
}

/// As it counts in the key of a result: the same however it was said.
impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.iter().try_for_each(|(name, value)| writeln!(f, "{name} = {value}"))
    }
}

impl Resolved {
    /// A number, if there is one.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        if let Some(Value::Number(number)) = self.values.get(name) { Some(*number) } else { None }
    }

    /// True if anybody says what a key holds.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A number that has a default.
    pub(crate) fn whole(&self, name: &str) -> i64 {
        i64::try_from(self.number(name).unwrap_or_default()).unwrap_or(i64::MAX)
    }

    /// Seconds, of a time that has a default.
    pub(crate) fn seconds(&self, name: &str) -> f64 {
        self.number(name).unwrap_or_default() as f64 / 1e15
    }

    /// True if something is so.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Truth(true))
    }

    /// A text, if there is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.values.get(name) { Some(text) } else { None }
    }

    /// A word that has a default.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// Words.
    pub(crate) fn words(&self, name: &str) -> &[String] {
        if let Some(Value::Words(words)) = self.values.get(name) { words } else { &[] }
    }

    /// Generation, lanes, and whether flit mode is asked for.
    pub(crate) fn link(&self) -> Option<(Generation, Width, bool)> {
        match self.values.get("link") {
            Some(Value::Link { generation, width, flit }) => Some((*generation, *width, *flit)),
            _ => None,
        }
    }

    /// The seed of repeats takes the place of the subject's own.
    pub(crate) fn seed(&mut self, seed: Option<u64>) {
        self.values.extend(seed.map(|seed| ("seed", Value::Number(seed))));
    }
}
