//! Values of axes: as the experiment is given them, and as data.

use crate::expression::Value;
use crate::unit::Unit;
use tlplab_units::quantity;

/// Writes a value as TOML, on one line.
pub(crate) fn toml_text(value: &toml::Value) -> String {
    match value {
        // JSON's strings are TOML's.
        toml::Value::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(x) if x.is_finite() => format!("{x:?}"),
        toml::Value::Float(x) => x.to_string().to_lowercase(),
        toml::Value::Boolean(b) => b.to_string(),
        toml::Value::Datetime(date) => date.to_string(),
        toml::Value::Array(items) => {
            format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        toml::Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| {
                format!("{} = {}", serde_json::Value::from(key.as_str()), toml_text(value))
            });
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The values of an axis as data: numbers of one unit if they are that, true or false, or texts as they were written.
pub(crate) fn as_data(values: &[toml::Value]) -> Vec<Value> {
    type Read = fn(&toml::Value) -> Option<Value>;
    let readings: [Read; 5] = [
        |value| match value {
            toml::Value::Integer(n) => Some(Value::Number(*n as f64, Unit::NONE)),
            toml::Value::Float(x) => Some(Value::Number(*x, Unit::NONE)),
            _ => None,
        },
        |value| value.as_bool().map(Value::Truth),
        |value| Some(Value::Number(quantity::size(value.as_str()?).ok()? as f64, Unit::SIZE)),
        |value| Some(Value::Number(quantity::rate(value.as_str()?).ok()? as f64, Unit::RATE)),
        |value| Some(Value::Number(quantity::time(value.as_str()?).ok()?.as_fs() as f64 / 1e6, Unit::TIME)),
    ];
    let read_all = |read: &Read| values.iter().map(read).collect::<Option<Vec<_>>>();
    readings.iter().find_map(read_all).unwrap_or_else(|| {
        let text = |value: &toml::Value| value.as_str().map_or_else(|| toml_text(value), str::to_owned);
        values.iter().map(text).map(Value::Text).collect()
    })
}

/// The unit of a range, and its number in that: whole numbers, bytes, bits per second, femtoseconds; or a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    Whole(i64),
    Fraction(f64),
    Size(u64),
    Rate(u64),
    Time(u64),
}

const SIZES: &[(&str, u64)] = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const RATES: &[(&str, u64)] =
    &[("Tb/s", 1_000_000_000_000), ("Gb/s", 1_000_000_000), ("Mb/s", 1_000_000), ("kb/s", 1_000), ("b/s", 1)];
const TIMES: &[(&str, u64)] = &[
    ("s", 1_000_000_000_000_000),
    ("ms", 1_000_000_000_000),
    ("us", 1_000_000_000),
    ("ns", 1_000_000),
    ("ps", 1_000),
    ("fs", 1),
];

impl Amount {
    /// Reads one end of a range.
    pub(crate) fn read(value: &toml::Value) -> Option<Self> {
        match value {
            toml::Value::Integer(n) => Some(Self::Whole(*n)),
            toml::Value::Float(x) if x.is_finite() => Some(Self::Fraction(*x)),
            toml::Value::String(text) => quantity::size(text)
                .map(Self::Size)
                .or_else(|_| quantity::rate(text).map(Self::Rate))
                .or_else(|_| quantity::time(text).map(|time| Self::Time(time.as_fs())))
                .ok(),
            _ => None,
        }
    }

    /// As a number of what it counts in.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Fraction(x) => x,
            Self::Size(n) | Self::Rate(n) | Self::Time(n) => n as f64,
        }
    }

    /// True if both count in the same.
    pub(crate) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// So much of what it counts in: rounded, but for fractions.
    pub(crate) fn of_number(self, number: f64) -> Self {
        let whole = number.round().max(0.0) as u64;
        match self {
            Self::Whole(_) => Self::Whole(number.round() as i64),
            Self::Fraction(_) => Self::Fraction(number),
            Self::Size(_) => Self::Size(whole),
            Self::Rate(_) => Self::Rate(whole),
            Self::Time(_) => Self::Time(whole),
        }
    }

    /// As a value of an experiment, with the largest unit that tells it exactly.
    pub(crate) fn write(self) -> toml::Value {
        let with = |n: u64, units: &[(&str, u64)]| {
            let fits = |(_, of): &&(&str, u64)| n > 0 && n.is_multiple_of(*of);
            let (unit, of) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
            toml::Value::String(format!("{}{unit}", n / of))
        };
        match self {
            Self::Whole(n) => toml::Value::Integer(n),
            Self::Fraction(x) => toml::Value::Float(x),
            Self::Size(n) => with(n, SIZES),
            Self::Rate(n) => with(n, RATES),
            Self::Time(n) => with(n, TIMES),
        }
    }
}
