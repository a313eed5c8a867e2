//! Quantities as people write them: an exact decimal and a unit.
//!
//! Times `fs ps ns us ms s`; sizes `B KiB MiB GiB kB MB GB`; rates `b/s kb/s Mb/s Gb/s Tb/s B/s kB/s MB/s GB/s`.

use crate::time::Duration;
use alloc::string::{String, ToString};

/// The reason that a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}: {why}")]
pub struct QuantityError {
    text: String,
    wanted: &'static str,
    why: &'static str,
}

const TIMES: &[(&str, u64)] = &[
    ("fs", 1),
    ("ps", 1_000),
    ("ns", 1_000_000),
    ("us", 1_000_000_000),
    ("µs", 1_000_000_000),
    ("ms", 1_000_000_000_000),
    ("s", 1_000_000_000_000_000),
];
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];
const RATES: &[(&str, u64)] = &[
    ("b/s", 1),
    ("kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
];

const CLOCKS: &[(&str, u64)] = &[("clocks", 1_000_000), ("clock", 1_000_000)];
const FREQUENCIES: &[(&str, u64)] = &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];

/// Reads a time, such as `"1.5us"`. Errors name the text and what would be right.
pub fn time(text: &str) -> Result<Duration, QuantityError> {
    parse(text, TIMES, "a time such as \"150ns\" or \"1.5us\"").map(Duration::from_fs)
}

/// Reads a size in bytes, such as `"4KiB"` or `"1500B"`.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    parse(text, SIZES, "a size such as \"1500B\" or \"4KiB\"")
}

/// Reads a rate in bits per second, such as `"25Gb/s"`.
pub fn rate(text: &str) -> Result<u64, QuantityError> {
    parse(text, RATES, "a rate such as \"25Gb/s\" or \"3.2GB/s\"")
}

/// Reads a number of clocks in millionths, such as `"10.5 clocks"`.
pub fn clocks(text: &str) -> Result<u64, QuantityError> {
    parse(text, CLOCKS, "a number of clocks such as \"10.5 clocks\"")
}

/// Reads a frequency in hertz, such as `"250MHz"`.
pub fn frequency(text: &str) -> Result<u64, QuantityError> {
    parse(text, FREQUENCIES, "a frequency such as \"250MHz\"")
}

fn parse(text: &str, units: &[(&str, u64)], wanted: &'static str) -> Result<u64, QuantityError> {
    let error = |why| QuantityError { text: text.to_string(), wanted, why };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || ".+-_".contains(c))).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
    if number.starts_with('-') {
        return Err(error("it may not be negative"));
    }
    if unit.is_empty() {
        return Err(error("the unit is missing"));
    }
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| error("unknown unit"))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 18 || number.ends_with('.')
    {
        return Err(error("the number is not a decimal"));
    }
    let scale = u128::from(scale);
    let one = 10u128.pow(fraction.len() as u32);
    let whole: u128 = whole.parse().map_err(|_| error("it is too large"))?;
    let part: u128 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| error("it is too long"))? };
    let scaled = whole
        .checked_mul(one)
        .and_then(|w| w.checked_add(part))
        .and_then(|w| w.checked_mul(scale))
        .ok_or_else(|| error("it is too large"))?;
    if !scaled.is_multiple_of(one) {
        return Err(error("it is finer than the smallest unit"));
    }
    u64::try_from(scaled / one).map_err(|_| error("it is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exact_decimals() {
        assert_eq!(time("1.5us").unwrap(), Duration::from_ns(1500));
        assert_eq!(time("200 us").unwrap(), Duration::from_us(200));
        assert_eq!(time("1.5µs").unwrap(), Duration::from_ns(1500));
        assert_eq!(size("4KiB").unwrap(), 4096);
        assert_eq!(size("0.5KiB").unwrap(), 512);
        assert_eq!(rate("25Gb/s").unwrap(), 25_000_000_000);
        assert_eq!(clocks("10.5 clocks").unwrap(), 10_500_000);
        assert_eq!(frequency("31.25MHz").unwrap(), 31_250_000);
    }

    #[test]
    fn refuses_with_a_reason() {
        for (text, why) in [
            ("-5ns", "negative"),
            ("5", "unit is missing"),
            ("5 parsecs", "unknown unit"),
            ("1.2.3ns", "not a decimal"),
            (".5ns", "not a decimal"),
            ("0.5fs", "finer than"),
            ("99999999999999999s", "too large"),
            ("", "unit is missing"),
        ] {
            let message = time(text).unwrap_err().to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
