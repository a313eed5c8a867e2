//! The finding of a study: a sentence with figures in it, and whether it holds.
//!
//! ```toml
//! [finding]
//! says = "Twice the lanes carry {more %} more, and {wide} is all that there is."
//! holds = "more > 60 % and wide < 48 Gb/s"
//! [finding.figures]
//! wide = { of = "throughput", where = "uplink == 'gen4 x8' and nic_rate == 40 Gb/s" }
//! narrow = { of = "throughput", where = "uplink == 'gen4 x4' and nic_rate == 40 Gb/s" }
//! more = { from = "wide / narrow - 1" }
//! ```

use crate::expression::{Expression, Kind, Mistake, Value};
use crate::metrics::nearest;
use crate::place::Place;
use crate::rows::Summary;
use crate::runner::{Row, Sweep};
use crate::study::{Named, Study};
use crate::unit::Unit;
use serde::Deserialize;
use std::collections::BTreeMap;
use tlplab_experiment::Error;
use toml::Spanned;

/// A sentence, the figures in it, and what has to be true of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The sentence; figures stand in it by their names in braces: `{wide}`, or `{more %}` for a share in per cent.
    pub says: String,
    /// The condition of the sentence.
    pub holds: Expression,
    /// The figures, each after those that it is computed from.
    figures: Vec<(String, Figure)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Figure {
    /// Of the points where something is true.
    OfPoints { of: Named, condition: Expression, take: Take },
    /// Computed from other figures.
    From { expression: Expression, unit: Unit },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    One,
    Least,
    Most,
}

/// The result of a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The figures, with their units.
    pub figures: BTreeMap<String, (f64, Unit)>,
    /// True if the sentence holds.
    pub holds: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    says: Spanned<String>,
    holds: Spanned<String>,
    figures: BTreeMap<String, Spanned<WrittenFigure>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFigure {
    of: Option<Spanned<String>>,
    r#where: Option<Spanned<String>>,
    take: Option<Spanned<String>>,
    from: Option<Spanned<String>>,
}

pub(crate) fn read(place: Place<'_>, written: &Written, study: &Study) -> Result<Finding, Error> {
    let in_text = |text: &Spanned<String>, key: &str, mistake: Mistake| {
        let Mistake { column, message, hint } = mistake;
        place.mistake(
            text.span(),
            key,
            format!("in \"{}\", column {column}: {message}", text.get_ref()),
            hint,
        )
    };
    let mut figures: Vec<(String, Figure)> = Vec::new();
    let mut units: BTreeMap<String, Unit> = BTreeMap::new();
    // Figures of points come first; what is computed may be of them, and of what is computed before by its name.
    let (of_points, computed): (Vec<_>, Vec<_>) =
        written.figures.iter().partition(|(_, one)| one.get_ref().from.is_none());
    for (name, one) in of_points {
        let key = format!("finding.figures.{name}");
        let WrittenFigure { of: Some(of), r#where: Some(condition), take, .. } = one.get_ref() else {
            let hint = "write { of = \"throughput\", where = \"uplink == 'gen4 x8'\" }, or { from = \"wide / narrow\" }";
            return Err(place.mistake(
                one.span(),
                &key,
                "the points of this figure are missing",
                Some(hint.into()),
            ));
        };
        let named = Named::parse(of.get_ref()).map_err(|mistake| in_text(of, &key, mistake))?;
        let told =
            study.condition(condition.get_ref()).map_err(|mistake| in_text(condition, &key, mistake))?;
        let take = match take.as_ref().map(|take| (take, take.get_ref().as_str())) {
            None => Take::One,
            Some((_, "least")) => Take::Least,
            Some((_, "most")) => Take::Most,
            Some((take, _)) => {
                let hint = Some(
                    "expected \"least\" or \"most\"; leave take out where a single point matches".to_owned(),
                );
                return Err(place.mistake(take.span(), &key, "unknown value of take", hint));
            }
        };
        units.insert(name.clone(), named.unit);
        figures.push((name.clone(), Figure::OfPoints { of: named, condition: told, take }));
    }
    let kind_of = |units: &BTreeMap<String, Unit>, name: &str| match units.get(name) {
        Some(unit) => Ok(Kind::Number(*unit)),
        None => {
            let near =
                nearest(name, units.keys().map(String::as_str)).map(|near| format!("did you mean {near}?"));
            Err((format!("no figure is called {name}"), near))
        }
    };
    for (name, one) in computed {
        let key = format!("finding.figures.{name}");
        let Some(text) = &one.get_ref().from else { continue };
        let refuse = |mistake| in_text(text, &key, mistake);
        let expression = Expression::parse(text.get_ref()).map_err(refuse)?;
        let unit = match expression.kind(&|name| kind_of(&units, name)).map_err(refuse)? {
            Kind::Number(unit) => unit,
            kind => {
                return Err(place.mistake(
                    text.span(),
                    &key,
                    format!("a figure must be a number, but this is {kind}"),
                    None,
                ));
            }
        };
        units.insert(name.clone(), unit);
        figures.push((name.clone(), Figure::From { expression, unit }));
    }
    let refuse = |mistake| in_text(&written.holds, "finding.holds", mistake);
    let holds = Expression::parse(written.holds.get_ref()).map_err(refuse)?;
    let kind = holds.kind(&|name| kind_of(&units, name)).map_err(refuse)?;
    if kind != Kind::Truth {
        let hint = Some("compare a figure with something".to_owned());
        return Err(place.mistake(
            written.holds.span(),
            "finding.holds",
            format!("this is {kind}, not a condition"),
            hint,
        ));
    }
    for name in braced(written.says.get_ref()) {
        if !units.contains_key(name) {
            let hint = nearest(name, units.keys().map(String::as_str))
                .map(|near| format!("did you mean {{{near}}}?"));
            return Err(place.mistake(
                written.says.span(),
                "finding.says",
                format!("no figure is called {name}"),
                hint,
            ));
        }
    }
    Ok(Finding { says: written.says.get_ref().clone(), holds, figures })
}

/// The names in braces, with or without a sign for shares in per cent.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name));
    names.map(|name| name.strip_suffix(" %").unwrap_or(name))
}

impl Sweep {
    /// The figures of the study's finding, and whether it holds. `None` if the study has none.
    ///
    /// # Errors
    /// A figure is of no point that ran, or of several.
    pub fn finding(&self, rows: &[Row]) -> Option<Result<Found, Error>> {
        let finding = self.study.finding.as_ref()?;
        let mut values: BTreeMap<String, (f64, Unit)> = BTreeMap::new();
        for (name, figure) in &finding.figures {
            let found = match figure {
                Figure::OfPoints { of, condition, take } => {
                    self.of_points(rows, of, condition, *take).map(|value| (value, of.unit))
                }
                Figure::From { expression, unit } => number(expression, &values)
                    .map(|value| (value, *unit))
                    .ok_or_else(|| "it cannot be computed".to_owned()),
            };
            match found {
                Ok(value) => values.insert(name.clone(), value),
                Err(why) => {
                    return Some(Err(crate::place::whole(
                        &self.study.file,
                        &format!("finding.figures.{name}"),
                        why,
                        None,
                    )));
                }
            };
        }
        let value_of = |name: &str| values.get(name).map(|(value, unit)| Value::Number(*value, *unit));
        let holds = finding.holds.evaluate(&value_of) == Some(Value::Truth(true));
        Some(Ok(Found { figures: values, holds }))
    }

    fn of_points(&self, rows: &[Row], of: &Named, condition: &Expression, take: Take) -> Result<f64, String> {
        let is_meant = |one: &Summary| {
            let names = self.study.columns().map(|column| column.name.as_str());
            let values: BTreeMap<&str, Value> = names.zip(self.values_at(one.point)).collect();
            condition.evaluate(&|name| values.get(name).cloned()) == Some(Value::Truth(true))
        };
        let summaries = self.summaries(rows, std::slice::from_ref(of));
        let means: Vec<f64> = summaries
            .iter()
            .filter(|one| is_meant(one))
            .filter_map(|one| one.means[0].map(|(mean, _)| mean))
            .collect();
        match (take, means.as_slice()) {
            (_, []) => Err(format!("no point that matches {condition} has {}", of.name)),
            (Take::One, [one]) => Ok(*one),
            (Take::One, several) => {
                Err(format!("{} points match {condition}; add take = \"least\" or \"most\"", several.len()))
            }
            (Take::Least, several) => Ok(several.iter().copied().fold(f64::INFINITY, f64::min)),
            (Take::Most, several) => Ok(several.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        }
    }
}

fn number(expression: &Expression, values: &BTreeMap<String, (f64, Unit)>) -> Option<f64> {
    expression.evaluate(&|name| values.get(name).map(|(value, unit)| Value::Number(*value, *unit)))?.number()
}
