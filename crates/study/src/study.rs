//! The file of a study, and its points.
//!
//! ```toml
//! title = "How wide the uplink has to be"
//! experiment = "../../experiments/quickstart.toml"
//! metrics = ["throughput", "share = ssd.throughput / throughput"]
//!
//! [[axis]]
//! key = "switch.sw0.link"
//! name = "uplink"
//! values = ["gen4 x4", "gen4 x8"]
//!
//! [[axis]]
//! key = "load.nic.rate"
//! from = "5Gb/s"
//! to = "40Gb/s"
//! by = "5Gb/s"
//!
//! [[filter]]
//! name = "the NIC is slower than its link"
//! keep = "load.nic.rate <= 40 Gb/s"
//!
//! [repeats]
//! seeds = 10
//! until = "latency.p99 within 2%"
//! ```

use crate::axis::{self, Axis};
use crate::expression::{Expression, Kind, Mistake, Value};
use crate::figures::Metrics;
use crate::finding::{self, Finding};
use crate::metrics;
use crate::options;
use crate::place::{self, Place};
use crate::repeats::{Narrow, Repeats};
use crate::subject::{self, Ask, Subject};
use crate::unit::Unit;
use serde::Deserialize;
use std::collections::BTreeMap;
use tlplab_experiment::Error;
use toml::Spanned;

/// A study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// Its file, as the caller named it.
    pub file: String,
    /// Its subject.
    pub subject: Subject,
    /// The settings of all points, before those of the axes: `key=value` each.
    pub set: Vec<String>,
    /// The axes, the first changing slowest.
    pub axes: Vec<Axis>,
    /// Conditions on points.
    pub filters: Vec<Filter>,
    /// The number of runs of a point, each with another seed.
    pub repeats: Repeats,
    /// The figures that are shown, and further columns of the data set.
    pub metrics: Vec<Named>,
    /// The limit of each point is found by runs, too.
    pub verdict: bool,
    /// Its finding.
    pub finding: Option<Finding>,
}

/// A figure with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its expression.
    pub expression: Expression,
    /// Its unit.
    pub unit: Unit,
}

/// A condition on points.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Its name.
    pub name: String,
    /// True of the points that are kept.
    pub keep: Expression,
}

/// A point: one step of each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number among all that the axes make, from 0.
    pub number: usize,
    /// The step of each axis.
    pub steps: Vec<usize>,
}

/// The points of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Points that are kept, by their numbers.
    pub kept: Vec<Point>,
    /// Each filter, and how many points it was the first to leave out.
    pub left_out: Vec<(String, usize)>,
}

/// More points than this are a mistake.
const MOST_POINTS: usize = 10_000_000;
/// Columns that every data set has.
pub(crate) const OWN_COLUMNS: [&str; 7] = ["point", "repeat", "seed", "kind", "message", "limit", "verdict"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Option<String>,
    experiment: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
    model: Option<Spanned<options::Written>>,
    bench: Option<Spanned<options::Written>>,
    #[serde(default)]
    set: Vec<Spanned<String>>,
    #[serde(default)]
    metrics: Vec<Spanned<String>>,
    verdict: Option<Spanned<bool>>,
    #[serde(default)]
    axis: Vec<Spanned<axis::Written>>,
    #[serde(default)]
    filter: Vec<WrittenFilter>,
    repeats: Option<WrittenRepeats>,
    finding: Option<finding::Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFilter {
    name: Spanned<String>,
    keep: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRepeats {
    seeds: Spanned<i64>,
    #[serde(default = "one")]
    first: u64,
    until: Option<Spanned<String>>,
}

fn one() -> u64 {
    1
}

impl Study {
    /// Reads the study at `path`; `read` brings its text, and that of tables of points.
    ///
    /// # Errors
    /// The first mistake: where it is, what is wrong, what would be right.
    pub fn read(path: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Self, Error> {
        let text =
            read(path).map_err(|why| place::whole(path, "", format!("cannot read it: {why}"), None))?;
        let place = Place { file: path, text: &text };
        let written: Written = toml::from_str(&text)
            .map_err(|error| an_experiment(path, &text).unwrap_or_else(|| place.syntax(&error)))?;
        let folder = path.rfind('/').map_or("", |n| &path[..=n]);
        let join =
            |file: &str| if file.starts_with('/') { file.to_owned() } else { format!("{folder}{file}") };
        let axis = |one: &Spanned<axis::Written>| {
            axis::Reader { place, at: one.span().start, read, join: &join }.axis(one.get_ref())
        };
        let Written { experiment, load, model, bench, .. } = &written;
        let named = subject::Named {
            experiment: experiment.as_ref(),
            load: load.as_ref(),
            model: model.as_ref(),
            bench: bench.as_ref(),
        };
        if named.is_none()
            && let Some(mistake) = an_experiment(path, &text)
        {
            return Err(mistake);
        }
        let subject = Subject::read(place, &named, &join)?;
        let axes = written.axis.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
        check_keys(place, &subject, &written, &axes)?;
        check_columns(place, &subject, &written.axis, &axes)?;
        let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.steps.len()));
        if count.is_none_or(|count| count > MOST_POINTS) {
            let at = written.axis.last().map_or(0, |axis| axis.span().start);
            let hint = "use fewer values, or a Latin hypercube of some of the axes: latin = 1000".to_owned();
            return Err(place.mistake(
                at..at,
                "axis",
                "the axes cross to more than ten million points",
                Some(hint),
            ));
        }
        let metrics = written.metrics.iter().map(|one| {
            Named::parse(one.get_ref()).map_err(|mistake| in_text(place, one, "metrics", &mistake))
        });
        let metrics = metrics.collect::<Result<Vec<_>, _>>()?;
        let study = Self {
            title: written.title.unwrap_or_else(|| {
                path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml").to_owned()
            }),
            file: path.to_owned(),
            verdict: subject.tells_limit(),
            subject,
            set: written.set.iter().map(|set| set.get_ref().clone()).collect(),
            filters: Vec::new(),
            repeats: repeats(place, written.repeats.as_ref())?,
            metrics,
            axes,
            finding: None,
        };
        let mut study = study;
        if let Some(verdict) = written.verdict.filter(|verdict| *verdict.get_ref()) {
            let refuse =
                |mistake: Error| place.mistake(verdict.span(), "verdict", mistake.message, mistake.hint);
            study.ask_verdict().map_err(refuse)?;
        }
        if let Some(written) = written.repeats.as_ref().filter(|_| !study.subject.has_seed()) {
            let hint = Some("leave [repeats] out".to_owned());
            let message = "a closed form gives the same result with every seed";
            return Err(place.mistake(written.seeds.span(), "repeats.seeds", message, hint));
        }
        let finding = written.finding.as_ref().map(|one| finding::read(place, one, &study)).transpose()?;
        let filters = written.filter.iter().map(|one| study.filter(place, one)).collect::<Result<_, _>>()?;
        Ok(Self { filters, finding, ..study })
    }

    /// The experiment that it runs, and the file with its loads; `None` if it is of something else.
    pub fn experiment(&self) -> Option<(&str, Option<&str>)> {
        match &self.subject {
            Subject::Experiment { path, load } => Some((path, load.as_deref())),
            Subject::Model(_) | Subject::Bench(_) => None,
        }
    }

    /// The limit of each point is found by runs, too.
    ///
    /// # Errors
    /// That cannot be of this subject.
    pub fn ask_verdict(&mut self) -> Result<(), Error> {
        if !self.subject.has_verdict() {
            let hint = Some("a verdict needs further runs of an experiment".into());
            return Err(place::whole("--verdict", "", "this study has no experiment", hint));
        }
        self.verdict = true;
        Ok(())
    }

    /// Sets more at all points: `key=value` each, as somebody gave it with the command; and takes loads from a file.
    ///
    /// # Errors
    /// There is no such key, or the study has no loads.
    pub fn set_more(&mut self, set: Vec<String>, load: Option<String>) -> Result<(), Error> {
        for one in &set {
            let (key, _) = split_set(one);
            let refuse = |(message, hint)| place::whole("--set", key, message, hint);
            self.subject.check_key(key).map_err(refuse)?;
        }
        self.set.extend(set);
        match (&mut self.subject, load) {
            (Subject::Experiment { load: of, .. }, Some(load)) => *of = Some(load),
            (_, Some(_)) => {
                let hint = Some("leave it out".into());
                return Err(place::whole(
                    "--load",
                    "",
                    "this study has no experiment, and so no loads",
                    hint,
                ));
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// The request to the subject at a point, for one of its repeats.
    pub(crate) fn ask(&self, point: &Point, repeat: usize) -> Ask {
        Ask { set: self.overrides(point), seed: self.repeats.seed(repeat), verdict: self.verdict }
    }

    fn filter(&self, place: Place<'_>, written: &WrittenFilter) -> Result<Filter, Error> {
        let keep = self.condition(written.keep.get_ref());
        let keep = keep.map_err(|mistake| in_text(place, &written.keep, "filter.keep", &mistake))?;
        Ok(Filter { name: written.name.get_ref().clone(), keep })
    }

    /// One more filter, which somebody gave with the command.
    ///
    /// # Errors
    /// The mistake, and its place.
    pub fn keep_where(&mut self, text: &str) -> Result<(), Error> {
        let refuse = |Mistake { column, message, hint }| {
            place::whole("--where", "", format!("in \"{text}\", column {column}: {message}"), hint)
        };
        let keep = self.condition(text).map_err(refuse)?;
        self.filters.push(Filter { name: format!("where {}", text.trim()), keep });
        Ok(())
    }

    /// A condition on the points.
    pub(crate) fn condition(&self, text: &str) -> Result<Expression, Mistake> {
        let keep = Expression::parse(text)?;
        let kind_of = |name: &str| {
            self.column(name).map(|column| kind_of(&column.values)).ok_or_else(|| {
                let known: Vec<&str> = self.columns().map(|column| column.name.as_str()).collect();
                let hint = match metrics::nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("a filter knows the names of the axes: {}", known.join(", ")),
                };
                (format!("no axis is called {name}"), Some(hint))
            })
        };
        match keep.kind(&kind_of)? {
            Kind::Truth => Ok(keep),
            kind => Err(Mistake {
                column: 1,
                message: format!("a filter must be a condition, but this is {kind}"),
                hint: Some("compare something, as in mps <= 256 B".into()),
            }),
        }
    }

    /// The columns of each point, in the order of the axes.
    pub fn columns(&self) -> impl Iterator<Item = &axis::Column> {
        self.axes.iter().flat_map(|axis| &axis.columns)
    }

    fn column(&self, name: &str) -> Option<&axis::Column> {
        self.columns().find(|column| column.name == name)
    }

    /// A value of each column, at a point.
    pub fn values(&self, point: &Point) -> Vec<Value> {
        let of = |(axis, step): (&Axis, &usize)| {
            axis.columns.iter().map(|column| column.values[*step].clone()).collect()
        };
        self.axes.iter().zip(&point.steps).flat_map(|pair| -> Vec<Value> { of(pair) }).collect()
    }

    /// The settings of a point: `key=value` each.
    pub fn overrides(&self, point: &Point) -> Vec<String> {
        let of_axes = self.axes.iter().zip(&point.steps).flat_map(|(axis, step)| &axis.steps[*step]);
        self.set.iter().cloned().chain(of_axes.map(|(key, value)| format!("{key}={value}"))).collect()
    }

    /// The points that the axes make and the filters keep.
    pub fn points(&self) -> Points {
        let count: usize = self.axes.iter().map(|axis| axis.steps.len()).product();
        let mut points = Points {
            kept: Vec::new(),
            left_out: self.filters.iter().map(|filter| (filter.name.clone(), 0)).collect(),
        };
        for number in 0..count {
            let point = Point { number, steps: self.steps(number) };
            match self.filters.iter().position(|filter| !self.keeps(filter, &point)) {
                Some(filter) => points.left_out[filter].1 += 1,
                None => points.kept.push(point),
            }
        }
        points
    }

    /// The number that a point has among all that the axes cross to, whoever has chosen it; `None` if it cannot be counted.
    pub(crate) fn crossed(&self, point: &Point) -> Option<u64> {
        let along = self.axes.iter().zip(&point.steps);
        along.into_iter().try_fold(0u64, |number, (axis, step)| {
            number.checked_mul(axis.steps.len() as u64)?.checked_add(*step as u64)
        })
    }

    fn steps(&self, number: usize) -> Vec<usize> {
        let mut rest = number;
        let mut steps: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let step = rest % axis.steps.len();
                rest /= axis.steps.len();
                step
            })
            .collect();
        steps.reverse();
        steps
    }

    pub(crate) fn keeps(&self, filter: &Filter, point: &Point) -> bool {
        let names: BTreeMap<&str, Value> =
            self.columns().map(|column| column.name.as_str()).zip(self.values(point)).collect();
        filter.keep.evaluate(&|name| names.get(name).cloned()) == Some(Value::Truth(true))
    }
}

impl Named {
    /// Reads `name = expression`, or an expression that is its own name.
    ///
    /// # Errors
    /// The mistake, and its place in the text.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let (name, written, skipped) = match text.split_once('=') {
            Some((name, rest)) if is_name(name.trim()) && !rest.starts_with('=') => {
                (Some(name.trim()), rest, name.chars().count() + 1)
            }
            _ => (None, text, 0),
        };
        let moved = |mistake: Mistake| Mistake { column: mistake.column + skipped, ..mistake };
        let expression = Expression::parse(written).map_err(moved)?;
        let kind_of = |name: &str| metrics::find(name).map(|metric| Kind::Number(metric.unit));
        match expression.kind(&kind_of).map_err(moved)? {
            Kind::Number(unit) => {
                Ok(Self { name: name.unwrap_or(expression.text()).to_owned(), expression, unit })
            }
            kind => Err(Mistake {
                column: skipped + 1,
                message: format!("a metric must be a number, but this is {kind}"),
                hint: None,
            }),
        }
    }

    /// Reads several, with commas between them; commas within parentheses are of functions.
    ///
    /// # Errors
    /// The mistake, and its place in the text.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Mistake> {
        let parts = split(text).into_iter();
        parts
            .map(|(at, part)| {
                Self::parse(part).map_err(|mistake| Mistake { column: mistake.column + at, ..mistake })
            })
            .collect()
    }

    /// Its value at a point with these metrics; `None` where one of them is missing.
    pub fn of(&self, metrics: &Metrics) -> Option<f64> {
        if let Some(name) = self.expression.as_name() {
            return metrics.get(name);
        }
        let value_of = |name: &str| {
            let unit = metrics::find(name).ok()?.unit;
            metrics.get(name).map(|value| Value::Number(value, unit))
        };
        self.expression.evaluate(&value_of)?.number()
    }
}

/// The parts of a list, each with the characters before it.
pub(crate) fn split(text: &str) -> Vec<(usize, &str)> {
    let (mut parts, mut depth, mut begin, mut at) = (Vec::new(), 0i32, 0, 0);
    for (n, (byte, c)) in text.char_indices().enumerate() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push((at, &text[begin..byte]));
                (begin, at) = (byte + 1, n + 1);
            }
            _ => {}
        }
    }
    parts.push((at, &text[begin..]));
    parts
}

/// The key in `key=value`, and the value.
fn split_set(set: &str) -> (&str, &str) {
    let (key, value) = set.split_once('=').unwrap_or((set, ""));
    (key.trim(), value.trim())
}

/// Every key that is set is one of the subject's.
fn check_keys(place: Place<'_>, subject: &Subject, written: &Written, axes: &[Axis]) -> Result<(), Error> {
    for set in &written.set {
        let refuse = |(message, hint)| place.mistake(set.span(), "set", message, hint);
        subject.check_key(split_set(set.get_ref()).0).map_err(refuse)?;
    }
    for (written, axis) in written.axis.iter().zip(axes) {
        for (key, _) in axis.steps.first().into_iter().flatten() {
            let refuse = |(message, hint)| {
                let span = written.get_ref().place_of_keys().unwrap_or_else(|| written.span());
                place.mistake(span, "axis.key", message, hint)
            };
            subject.check_key(key).map_err(refuse)?;
        }
    }
    Ok(())
}

/// The mistake, if somebody gave an experiment where a study is meant.
fn an_experiment(path: &str, text: &str) -> Option<Error> {
    const THEIRS: [&str; 8] = ["device", "switch", "load", "stop", "host", "bus", "machine", "include"];
    const OURS: [&str; 4] = ["experiment", "model", "bench", "axis"];
    let table = toml::from_str::<toml::Table>(text).ok()?;
    let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
    let hint = format!("run it with `tlplab run {path}`, or name it in a study: experiment = \"…\"");
    (has(&THEIRS) && !has(&OURS))
        .then(|| place::whole(path, "", "this is an experiment, not a study", Some(hint)))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn kind_of(values: &[Value]) -> Kind {
    match values.first() {
        Some(Value::Number(_, unit)) => Kind::Number(*unit),
        Some(Value::Truth(_)) => Kind::Truth,
        Some(Value::Text(_)) | None => Kind::Text,
    }
}

/// A mistake in an expression, where the study's file has it.
fn in_text(place: Place<'_>, text: &Spanned<String>, key: &str, mistake: &Mistake) -> Error {
    let Mistake { column, message, hint } = mistake;
    place.mistake(
        text.span(),
        key,
        format!("in \"{}\", column {column}: {message}", text.get_ref()),
        hint.clone(),
    )
}

/// Every column has a name of its own, and every key is set by one axis.
fn check_columns(
    place: Place<'_>,
    subject: &Subject,
    written: &[Spanned<axis::Written>],
    axes: &[Axis],
) -> Result<(), Error> {
    let of_experiment = matches!(subject, Subject::Experiment { .. });
    let (mut names, mut keys) = (Vec::new(), Vec::new());
    for (written, axis) in written.iter().zip(axes) {
        let refuse = |message: String, hint: &str| {
            Err(place.mistake(written.span(), "axis", message, Some(hint.into())))
        };
        for column in &axis.columns {
            // No key of an experiment is a metric, though some look like one: load.nic.rate.
            let is_key = of_experiment && axis.steps.iter().flatten().any(|(key, _)| *key == column.name);
            if OWN_COLUMNS.contains(&column.name.as_str()) || !is_key && metrics::find(&column.name).is_ok() {
                return refuse(
                    format!("\"{}\" is already a column of every data set", column.name),
                    "give the axis another name",
                );
            }
            if names.contains(&&column.name) {
                return refuse(
                    format!("two columns are called \"{}\"", column.name),
                    "give one of them a name",
                );
            }
            names.push(&column.name);
        }
        for (key, _) in axis.steps.first().into_iter().flatten() {
            if keys.contains(&key) {
                return refuse(
                    format!("{key} is set twice"),
                    "one axis sets a key; values that go together are zipped: keys = […]",
                );
            }
            keys.push(key);
        }
    }
    Ok(())
}

fn repeats(place: Place<'_>, written: Option<&WrittenRepeats>) -> Result<Repeats, Error> {
    let Some(written) = written else { return Ok(Repeats::default()) };
    let seeds = u32::try_from(*written.seeds.get_ref()).ok().filter(|seeds| (1..=100_000).contains(seeds));
    let seeds = seeds.ok_or_else(|| {
        let hint = Some("expected 1 to 100000".into());
        place.mistake(written.seeds.span(), "repeats.seeds", "the number of seeds is out of range", hint)
    })?;
    let narrow = written.until.as_ref().map(|until| {
        let refuse = |message: String| {
            let hint = Some("write \"latency.p99 within 2%\"".to_owned());
            place.mistake(until.span(), "repeats.until", message, hint)
        };
        let (metric, within) = until
            .get_ref()
            .rsplit_once(" within ")
            .ok_or_else(|| refuse("the width of the interval is missing".into()))?;
        let metric =
            Named::parse(metric).map_err(|mistake| in_text(place, until, "repeats.until", &mistake))?;
        let share = within.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let share = share.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0);
        Ok(Narrow {
            metric,
            within: share.ok_or_else(|| refuse(format!("{within} is not a percentage of the mean")))?,
        })
    });
    Ok(Repeats { seeds: Some((written.first, seeds)), until: narrow.transpose()? })
}
