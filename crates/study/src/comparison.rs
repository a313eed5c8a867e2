//! A comparison of two figures, which a search is subject to: `nic.throughput >= 90 Gb/s`.

use crate::expression::{Expression, Kind, Mistake};
use crate::metrics;
use crate::study::Named;

/// Two figures of one unit, and how they are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The figure on the left.
    pub left: Named,
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub sign: &'static str,
    /// The figure on the right.
    pub right: Named,
}

impl Comparison {
    /// Reads one.
    ///
    /// # Errors
    /// The mistake, and its place in the text.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let whole = Expression::parse(text)?;
        let kind = whole.kind(&|name| metrics::find(name).map(|metric| Kind::Number(metric.unit)))?;
        let refuse = |message: String| {
            Mistake {
            column: 1,
            message,
            hint: Some(
                "write a comparison such as nic.throughput >= 90 Gb/s; a second condition is another comparison".into(),
            ),
        }
        };
        let (sign, at) = whole
            .comparison()
            .ok_or_else(|| refuse(format!("this is {kind}, not a comparison of two figures")))?;
        let characters: Vec<char> = text.chars().collect();
        let part = |characters: &[char], before: usize| {
            let text: String = characters.iter().collect();
            Named::parse(text.trim())
                .map_err(|mistake| Mistake { column: mistake.column + before, ..mistake })
        };
        let behind = at + sign.len();
        let left = part(&characters[..at], 0);
        let right = part(&characters[behind..], behind);
        match (left, right) {
            (Ok(left), Ok(right)) => Ok(Self { left, sign, right }),
            // Each side is right by itself, so what is wrong is around both.
            _ => Err(refuse("this comparison is in parentheses".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_and_a_sign() {
        let read = Comparison::parse(" nic.throughput / lanes >=  2 * (40 Gb/s - throughput)").unwrap();
        assert_eq!(read.sign, ">=");
        assert_eq!(read.left.expression.text(), "nic.throughput / lanes");
        assert_eq!(read.right.expression.text(), "2 * (40 Gb/s - throughput)");
        assert_eq!(read.left.unit, read.right.unit);
        for sign in ["<", "<=", ">", ">=", "==", "!="] {
            assert_eq!(Comparison::parse(&format!("lanes{sign}4")).unwrap().sign, sign);
        }
    }

    #[test]
    fn expressions_other_than_comparisons_are_refused() {
        for (text, why) in [
            ("throughput", "this is a number of b/s, not a comparison"),
            ("lanes < 4 and lanes > 2", "this is true or false, not a comparison of two figures"),
            ("not lanes < 4", "not a comparison of two figures"),
            ("(lanes < 4)", "this comparison is in parentheses"),
            ("throughput < 4", "< cannot combine a number of b/s and a plain number"),
            ("true == false", "this comparison is in parentheses"),
            ("trouhput < 4 b/s", "unknown metric trouhput"),
        ] {
            let mistake = Comparison::parse(text).unwrap_err();
            assert!(mistake.message.contains(why), "{text}: {mistake}");
        }
    }
}
