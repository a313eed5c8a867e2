//! The conditions of an experiment on the figures of its run: `[expect] nic.throughput = ">= 90 Gb/s"`.

use crate::expression::{Expression, Kind, Mistake, Value};
use crate::figures::Metrics;
use crate::metrics::{self, nearest};
use crate::unit::Unit;
use tlplab_experiment::{Error, Experiment};

/// An expectation that can be judged.
#[derive(Clone, Debug)]
pub struct Expectation {
    expression: Expression,
}

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// As it is written: the figure and the comparison.
    pub text: String,
    /// True if it holds.
    pub holds: bool,
    /// The figures in it, each once, with their units; `None`: the run has no such figure.
    pub figures: Vec<(String, Option<f64>, Unit)>,
    /// Of a figure that the run does not have: what may be meant.
    pub meant: Option<String>,
}

/// Reads what an experiment expects.
///
/// # Errors
/// Everything that is no comparison of figures.
pub fn read(experiment: &Experiment) -> Result<Vec<Expectation>, Vec<Error>> {
    let (mut read, mut mistakes) = (Vec::new(), Vec::new());
    for one in &experiment.expected {
        let plain = one.figure.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let text = if plain {
            format!("{} {}", one.figure, one.comparison)
        } else {
            format!("({}) {}", one.figure, one.comparison)
        };
        match parse(&text) {
            Ok((Kind::Truth, expression)) => read.push(Expectation { expression }),
            Ok((kind, _)) => {
                let hint = Some("begin with < <= > >= == or !=, as in \">= 90 Gb/s\"".into());
                mistakes.push(one.mistake(format!("\"{text}\" is {kind}, not a comparison"), hint));
            }
            Err(mistake) => {
                let message = format!("in \"{text}\", column {}: {}", mistake.column, mistake.message);
                mistakes.push(one.mistake(message, mistake.hint));
            }
        }
    }
    if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
}

/// The kind of an expression over figures, and the expression.
fn parse(text: &str) -> Result<(Kind, Expression), Mistake> {
    let expression = Expression::parse(text)?;
    let kind = expression.kind(&|name| metrics::find(name).map(|metric| Kind::Number(metric.unit)))?;
    Ok((kind, expression))
}

impl Expectation {
    /// Reads one that stands by itself, as in `nic.latency.p99 < 2 us`.
    ///
    /// # Errors
    /// The mistake, and its place in the text.
    pub fn read(text: &str) -> Result<Self, Mistake> {
        match parse(text)? {
            (Kind::Truth, expression) => Ok(Self { expression }),
            (kind, _) => Err(Mistake {
                column: 1,
                message: format!("this is {kind}, not a comparison"),
                hint: Some("compare a figure with something, as in throughput >= 90 Gb/s".into()),
            }),
        }
    }

    /// Judges it by the figures of a run. A figure that the run does not have fulfils nothing.
    pub fn judge(&self, of: &Metrics) -> Judged {
        let unit = |name: &str| metrics::find(name).map_or(Unit::NONE, |metric| metric.unit);
        let value_of = |name: &str| of.get(name).map(|value| Value::Number(value, unit(name)));
        let mut figures: Vec<(String, Option<f64>, Unit)> = Vec::new();
        for (name, _) in self.expression.names() {
            if !figures.iter().any(|(known, _, _)| known == name) {
                figures.push((name.to_owned(), of.get(name), unit(name)));
            }
        }
        let missing = figures.iter().find(|(_, value, _)| value.is_none()).map(|(name, _, _)| name.as_str());
        Judged {
            text: self.expression.text().to_owned(),
            holds: self.expression.evaluate(&value_of) == Some(Value::Truth(true)),
            meant: missing
                .and_then(|name| nearest(name, of.names().iter().map(String::as_str)))
                .map(str::to_owned),
            figures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_took_no_time_has_a_share_of_0() {
        let of = Metrics::from([("a.latency.mean".into(), 5.0), ("a.share.flight".into(), 1.0)]);
        let judge = |text: &str| Expectation::read(text).unwrap().judge(&of);
        assert!(judge("a.share.tag_wait < 5 %").holds && judge("a.share.flight == 1").holds);
        assert!(!judge("a.share.tag_wait > 0").holds);
        for none in ["a.share.tag_wiat < 5 %", "b.share.tag_wait < 5 %"] {
            let judged = judge(none);
            assert_eq!((judged.holds, judged.figures[0].1), (false, None), "{none}");
        }
    }
}
