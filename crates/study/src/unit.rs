//! Units of metrics, axes and what is computed from them.

use std::fmt;
use tlplab_units::quantity;

/// A product of powers of the units that metrics have. They are kept apart as they are: nothing is converted, so nothing is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Power of bits per second.
    rate: i8,
    /// Power of nanoseconds.
    time: i8,
    /// Power of bytes.
    size: i8,
    /// Power of events per second.
    frequency: i8,
}

impl Unit {
    /// A plain number.
    pub const NONE: Self = Self { rate: 0, time: 0, size: 0, frequency: 0 };
    /// Bits per second.
    pub const RATE: Self = Self { rate: 1, ..Self::NONE };
    /// Nanoseconds.
    pub const TIME: Self = Self { time: 1, ..Self::NONE };
    /// Bytes.
    pub const SIZE: Self = Self { size: 1, ..Self::NONE };
    /// Events per second.
    pub const FREQUENCY: Self = Self { frequency: 1, ..Self::NONE };

    /// The unit of a product; `None` where a power would be absurd.
    pub fn times(self, other: Self) -> Option<Self> {
        Some(Self {
            rate: self.rate.checked_add(other.rate)?,
            time: self.time.checked_add(other.time)?,
            size: self.size.checked_add(other.size)?,
            frequency: self.frequency.checked_add(other.frequency)?,
        })
    }

    /// The unit of one divided by this; `None` where a power would be absurd.
    pub fn inverse(self) -> Option<Self> {
        Some(Self {
            rate: self.rate.checked_neg()?,
            time: self.time.checked_neg()?,
            size: self.size.checked_neg()?,
            frequency: self.frequency.checked_neg()?,
        })
    }

    /// A number with this word behind it, in the units of metrics; `None` if the word is no unit.
    pub fn read(number: &str, word: &str) -> Option<(f64, Self)> {
        if word == "%" {
            return Some((number.parse::<f64>().ok()? / 100.0, Self::NONE));
        }
        let word = if word == "µs" { "us" } else { word };
        let text = format!("{number}{word}");
        if let Ok(time) = quantity::time(&text) {
            return Some((time.as_fs() as f64 / 1e6, Self::TIME));
        }
        if let Ok(size) = quantity::size(&text) {
            return Some((size as f64, Self::SIZE));
        }
        if let Ok(rate) = quantity::rate(&text) {
            return Some((rate as f64, Self::RATE));
        }
        quantity::frequency(&text).ok().map(|frequency| (frequency as f64, Self::FREQUENCY))
    }
}

impl fmt::Display for Unit {
    /// `b/s`, `ns`, `B`, `1/s`, products and quotients of them, `1` for a plain number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FREQUENCY {
            return f.write_str("1/s");
        }
        let units = [("b/s", self.rate), ("ns", self.time), ("B", self.size), ("(1/s)", self.frequency)];
        let write = |(name, power): &(&str, i8)| match power.unsigned_abs() {
            1 => (*name).to_owned(),
            power if name.contains('/') && !name.starts_with('(') => format!("({name})^{power}"),
            power => format!("{name}^{power}"),
        };
        let above: Vec<_> = units.iter().filter(|(_, power)| *power > 0).map(write).collect();
        f.write_str(if above.is_empty() { "1" } else { "" })?;
        f.write_str(&above.join("·"))?;
        units.iter().filter(|(_, power)| *power < 0).try_for_each(|one| {
            let name = write(one);
            if name == "b/s" { f.write_str("/(b/s)") } else { write!(f, "/{name}") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_written_as_people_write_them() {
        let over = |a: Unit, b: Unit| a.times(b.inverse().unwrap()).unwrap();
        assert_eq!(Unit::NONE.to_string(), "1");
        assert_eq!(Unit::RATE.to_string(), "b/s");
        assert_eq!(Unit::FREQUENCY.to_string(), "1/s");
        assert_eq!(over(Unit::SIZE, Unit::TIME).to_string(), "B/ns");
        assert_eq!(over(Unit::TIME, Unit::RATE).to_string(), "ns/(b/s)");
        assert_eq!(over(Unit::NONE, Unit::TIME).to_string(), "1/ns");
        assert_eq!(Unit::RATE.times(Unit::RATE).unwrap().to_string(), "(b/s)^2");
        assert_eq!(over(Unit::RATE, Unit::RATE), Unit::NONE);
    }

    #[test]
    fn numbers_with_units_are_in_the_units_of_metrics() {
        assert_eq!(Unit::read("90", "Gb/s"), Some((90e9, Unit::RATE)));
        assert_eq!(Unit::read("1.5", "us"), Some((1500.0, Unit::TIME)));
        assert_eq!(Unit::read("1.5", "µs"), Some((1500.0, Unit::TIME)));
        assert_eq!(Unit::read("4", "KiB"), Some((4096.0, Unit::SIZE)));
        assert_eq!(Unit::read("2", "MHz"), Some((2e6, Unit::FREQUENCY)));
        assert_eq!(Unit::read("2", "%"), Some((0.02, Unit::NONE)));
        assert_eq!(Unit::read("2", "parsec"), None);
    }
}
