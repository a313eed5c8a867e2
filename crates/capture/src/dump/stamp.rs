//! Times before the lines, as tcpdump prints them.

use chrono::{DateTime, Local, TimeZone};
use std::fmt::Write;

const FS_PER_SECOND: i128 = 1_000_000_000_000_000;
const FS_DIGITS: u8 = 15;

/// The form of the time of a frame; tcpdump's `-t`, `-tt` and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeStyle {
    /// The time of the day, in the local time zone.
    #[default]
    Clock,
    /// Not at all: `-t`.
    None,
    /// Seconds since 1970: `-tt`.
    Epoch,
    /// Since the line before: `-ttt`.
    Delta,
    /// Date and time of the day: `-tttt`.
    Date,
    /// Since the first line: `-ttttt`.
    Relative,
}

impl TimeStyle {
    /// The style that so many `t` stand for, up to five.
    pub const fn of_count(count: usize) -> Option<Self> {
        Some(match count {
            0 => Self::Clock,
            1 => Self::None,
            2 => Self::Epoch,
            3 => Self::Delta,
            4 => Self::Date,
            5 => Self::Relative,
            _ => return None,
        })
    }
}

/// Writes times; remembers the first and the last one.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    style: TimeStyle,
    first: Option<i128>,
    last: Option<i128>,
    /// The last second and its text, which hundreds of thousands of frames may share.
    second: Option<(i64, String)>,
}

impl Stamps {
    pub(super) fn new(style: TimeStyle) -> Self {
        Self { style, ..Self::default() }
    }

    /// Writes `fs` since 1970 with `digits` decimals, six at least, and a space.
    pub(super) fn write(&mut self, out: &mut String, fs: i128, digits: u8) {
        let first = *self.first.get_or_insert(fs);
        let last = self.last.replace(fs).unwrap_or(fs);
        match self.style {
            TimeStyle::None => return,
            TimeStyle::Epoch => seconds(out, fs, digits.max(6)),
            TimeStyle::Delta => duration(out, fs - last, digits),
            TimeStyle::Relative => duration(out, fs - first, digits),
            TimeStyle::Clock | TimeStyle::Date => {
                let second = i64::try_from(fs.div_euclid(FS_PER_SECOND)).unwrap_or(i64::MAX);
                if self.second.as_ref().is_none_or(|(known, _)| *known != second) {
                    self.second = Some((second, second_text(self.style, second)));
                }
                out.push_str(self.second.as_ref().map_or("", |(_, text)| text));
                fraction(out, fs.rem_euclid(FS_PER_SECOND), digits.max(6));
            }
        }
        out.push(' ');
    }
}

fn second_text(style: TimeStyle, second: i64) -> String {
    let format = if style == TimeStyle::Date { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" };
    let zoned = |utc: DateTime<chrono::Utc>| Local.from_utc_datetime(&utc.naive_utc());
    DateTime::from_timestamp(second, 0)
        .map_or_else(|| second.to_string(), |utc| zoned(utc).format(format).to_string())
}

/// ` 00:00:00.000123`, with a sign if the file is not in order.
fn duration(out: &mut String, fs: i128, digits: u8) {
    let (sign, fs) = if fs < 0 { ("-", -fs) } else { (" ", fs) };
    let second = fs / FS_PER_SECOND;
    let (hours, minutes, rest) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "{sign}{hours:02}:{minutes:02}:{rest:02}"); // a String takes everything
    fraction(out, fs % FS_PER_SECOND, digits.max(6));
}

/// Seconds with `digits` decimals.
pub(super) fn seconds(out: &mut String, fs: i128, digits: u8) {
    let (sign, fs) = if fs < 0 { ("-", -fs) } else { ("", fs) };
    let _ = write!(out, "{sign}{}", fs / FS_PER_SECOND);
    fraction(out, fs % FS_PER_SECOND, digits);
}

fn fraction(out: &mut String, fs: i128, digits: u8) {
    let digits = digits.min(FS_DIGITS);
    let ticks = fs / 10i128.pow(u32::from(FS_DIGITS - digits));
    let _ = write!(out, ".{ticks:0width$}", width = usize::from(digits));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stamps: &mut Stamps, fs: i128, digits: u8) -> String {
        let mut out = String::new();
        stamps.write(&mut out, fs, digits);
        out
    }

    #[test]
    fn time_styles_match_tcpdump() {
        let second = FS_PER_SECOND;
        let mut epoch = Stamps::new(TimeStyle::Epoch);
        assert_eq!(text(&mut epoch, 1_563_187_421 * second + 1_234_567, 9), "1563187421.000000001 ");
        assert_eq!(text(&mut epoch, -second / 2, 6), "-0.500000 ");
        let mut delta = Stamps::new(TimeStyle::Delta);
        assert_eq!(text(&mut delta, 10 * second, 3), " 00:00:00.000000 ");
        assert_eq!(text(&mut delta, 3_610 * second, 9), " 01:00:00.000000000 ");
        assert_eq!(text(&mut delta, 3_609 * second, 6), "-00:00:01.000000 ");
        let mut relative = Stamps::new(TimeStyle::Relative);
        text(&mut relative, 5, 15);
        assert_eq!(text(&mut relative, 12, 15), " 00:00:00.000000000000007 ");
        assert_eq!(text(&mut Stamps::new(TimeStyle::None), 12, 15), "");
        assert_eq!([0, 4].map(TimeStyle::of_count), [Some(TimeStyle::Clock), Some(TimeStyle::Date)]);
        assert_eq!(TimeStyle::of_count(6), None);
    }

    #[test]
    fn a_second_is_written_again_only_when_it_changes() {
        let mut clock = Stamps::new(TimeStyle::Clock);
        let (a, b) = (text(&mut clock, 59 * FS_PER_SECOND, 6), text(&mut clock, 60 * FS_PER_SECOND - 1, 9));
        assert!(a.ends_with(":59.000000 ") && b.ends_with(":59.999999999 "), "{a}{b}");
        assert!(text(&mut clock, 60 * FS_PER_SECOND, 6).ends_with(":00.000000 "));
    }
}
