//! Axes: each is a list of steps, each step sets one key or several. A study crosses its axes.

use crate::expression::Value;
use crate::place::{self, Place};
use crate::values::{Amount, as_data, toml_text};
use serde::Deserialize;
use tlplab_device::random::Random;
use tlplab_experiment::Error;
use toml::Spanned;

/// An axis of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The columns of each step: a name, and a value for each step. Mostly the key that is set.
    pub columns: Vec<Column>,
    /// The settings of each step: keys, and their values as TOML.
    pub steps: Vec<Vec<(String, String)>>,
    /// The source of the steps.
    pub span: Span,
}

/// The source of the steps of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Values that were written one by one, or a table of points.
    Values,
    /// A range: the steps ascend.
    Range,
    /// The axes of a Latin hypercube's keys; a range has as many steps as the hypercube has points.
    Latin(Vec<Axis>),
}

/// A value for each step of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The values: all of one kind, and of one unit.
    pub values: Vec<Value>,
}

/// An axis as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    key: Option<Spanned<String>>,
    keys: Option<Spanned<Vec<String>>>,
    name: Option<Spanned<String>>,
    names: Option<Spanned<Vec<String>>>,
    values: Option<Spanned<Vec<toml::Value>>>,
    from: Option<Spanned<toml::Value>>,
    to: Option<Spanned<toml::Value>>,
    steps: Option<Spanned<i64>>,
    by: Option<Spanned<toml::Value>>,
    factor: Option<Spanned<f64>>,
    scale: Option<Spanned<String>>,
    csv: Option<Spanned<String>>,
    latin: Option<Spanned<i64>>,
    #[serde(default = "one")]
    seed: u64,
    of: Option<Vec<Spanned<Written>>>,
}

fn one() -> u64 {
    1
}

impl Written {
    /// The place of the keys that it sets.
    pub(crate) fn place_of_keys(&self) -> Option<std::ops::Range<usize>> {
        let spans = [
            self.key.as_ref().map(Spanned::span),
            self.keys.as_ref().map(Spanned::span),
            self.csv.as_ref().map(Spanned::span),
            self.latin.as_ref().map(Spanned::span),
        ];
        spans.into_iter().flatten().next()
    }
}

/// More steps than this is a mistake.
const MOST_STEPS: usize = 1_000_000;

/// The inputs of an axis: the place of its table, and a way to files beside the study.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) at: usize,
    pub(crate) read: &'a dyn Fn(&str) -> Result<String, String>,
    pub(crate) join: &'a dyn Fn(&str) -> String,
}

impl Reader<'_> {
    fn mistake(&self, message: impl Into<String>, hint: &str) -> Error {
        self.place.mistake(self.at..self.at, "axis", message, Some(hint.into()))
    }

    fn at<T>(&self, value: &Spanned<T>, key: &str, message: impl Into<String>, hint: &str) -> Error {
        self.place.mistake(value.span(), key, message, Some(hint.into()))
    }

    /// The axis that is written.
    pub(crate) fn axis(&self, written: &Written) -> Result<Axis, Error> {
        if let Some(csv) = &written.csv {
            return self.table(csv);
        }
        if let Some(points) = &written.latin {
            return self.latin(written, points);
        }
        let keys = self.keys(written)?;
        let (values, place) = self.values(written)?;
        let zipped = keys.len() > 1 && values.iter().any(|value| value.is_array());
        if let Some(names) =
            written.names.as_ref().filter(|names| !zipped || names.get_ref().len() != keys.len())
        {
            let hint =
                "give one name to each of the keys that change together; an empty name hides its column";
            return Err(self.at(names, "axis.names", "the names do not match the keys", hint));
        }
        if !zipped {
            let name = written.name.as_ref().map_or_else(|| keys[0].clone(), |name| name.get_ref().clone());
            let set = |value: &toml::Value| keys.iter().map(|key| (key.clone(), toml_text(value))).collect();
            let steps = values.iter().map(set).collect();
            let span = if written.values.is_some() { Span::Values } else { Span::Range };
            return Ok(Axis { columns: vec![Column { name, values: as_data(&values) }], steps, span });
        }
        let rows: Option<Vec<&Vec<toml::Value>>> = values.iter().map(toml::Value::as_array).collect();
        let rows = rows.filter(|rows| rows.iter().all(|row| row.len() == keys.len())).ok_or_else(|| {
            let hint = format!("as in [{}]", keys.iter().map(|_| "…").collect::<Vec<_>>().join(", "));
            let message = format!("each value is an array of {}, one for each key", keys.len());
            self.place.mistake(place..place, "axis.values", message, Some(hint))
        })?;
        if let Some(name) = &written.name {
            return Err(self.at(
                name,
                "axis.name",
                "keys that change together have no common name",
                "leave it out: each column has the name of its key",
            ));
        }
        let names = written.names.as_ref().map_or(&keys, Spanned::get_ref);
        let column = |(n, name): (usize, &String)| {
            let values: Vec<_> = rows.iter().map(|row| row[n].clone()).collect();
            Column { name: name.clone(), values: as_data(&values) }
        };
        let columns = names.iter().enumerate().filter(|(_, name)| !name.is_empty()).map(column).collect();
        let set = |row: &&Vec<toml::Value>| keys.iter().cloned().zip(row.iter().map(toml_text)).collect();
        Ok(Axis { columns, steps: rows.iter().map(set).collect(), span: Span::Values })
    }

    fn keys(&self, written: &Written) -> Result<Vec<String>, Error> {
        match (&written.key, &written.keys) {
            (Some(key), None) => Ok(vec![key.get_ref().clone()]),
            (None, Some(keys)) if !keys.get_ref().is_empty() => Ok(keys.get_ref().clone()),
            (None, Some(keys)) => {
                Err(self.at(keys, "axis.keys", "it is empty", "name a key, such as \"switch.sw0.link\""))
            }
            (Some(_), Some(keys)) => {
                Err(self.at(keys, "axis.keys", "key and keys are both set", "set one of them"))
            }
            (None, None) => Err(self.mistake(
                "this axis sets no key",
                "write key = \"switch.sw0.link\", keys = [\"…\", \"…\"], csv = \"points.csv\" or latin = 100",
            )),
        }
    }

    /// The values of an axis, and where they stand.
    fn values(&self, written: &Written) -> Result<(Vec<toml::Value>, usize), Error> {
        match (&written.values, &written.from, &written.to) {
            (Some(values), None, None) if values.get_ref().is_empty() => {
                Err(self.at(values, "axis.values", "the list is empty", "give at least one value"))
            }
            (Some(values), None, None) => Ok((values.get_ref().clone(), values.span().start)),
            (None, Some(from), Some(to)) => {
                let range = self.range(written, from, to)?;
                Ok((range.into_iter().map(Amount::write).collect(), from.span().start))
            }
            (Some(values), _, _) => {
                Err(self.at(values, "axis.values", "values and a range are both set", "set one of them"))
            }
            _ => Err(self.mistake(
                "this axis has no values",
                "write values = [\"gen4 x4\", \"gen4 x8\"], or from, to and steps",
            )),
        }
    }

    fn ends(
        &self,
        from: &Spanned<toml::Value>,
        to: &Spanned<toml::Value>,
    ) -> Result<(Amount, Amount), Error> {
        const NUMBER: &str = "write a number, or a size, rate or time such as \"4KiB\"";
        let first = Amount::read(from.get_ref())
            .ok_or_else(|| self.at(from, "axis.from", "this is not a number", NUMBER))?;
        let last = Amount::read(to.get_ref())
            .ok_or_else(|| self.at(to, "axis.to", "this is not a number", NUMBER))?;
        if !first.is_like(last) {
            return Err(self.at(
                to,
                "axis.to",
                "from and to are of different kinds",
                "both must be sizes, rates, times, or plain numbers",
            ));
        }
        if first.number() >= last.number() {
            return Err(self.at(
                to,
                "axis.to",
                "this is not above from",
                "from is the lower end of the range",
            ));
        }
        Ok((first, last))
    }

    fn is_logarithmic(&self, written: &Written, first: Amount) -> Result<bool, Error> {
        let scale = written.scale.as_ref().map_or("linear", |scale| scale.get_ref());
        match (scale, &written.scale) {
            ("linear", _) => Ok(false),
            ("log", Some(scale)) if first.number() <= 0.0 => {
                Err(self.at(scale, "axis.scale", "a logarithmic range cannot begin at 0", "begin at 1"))
            }
            ("log", _) => Ok(true),
            (_, scale) => {
                let at = scale.as_ref().map_or(self.at, |scale| scale.span().start);
                let hint = Some("expected \"linear\" or \"log\"".into());
                Err(self.place.mistake(at..at, "axis.scale", "unknown scale", hint))
            }
        }
    }

    fn range(
        &self,
        written: &Written,
        from: &Spanned<toml::Value>,
        to: &Spanned<toml::Value>,
    ) -> Result<Vec<Amount>, Error> {
        let (first, last) = self.ends(from, to)?;
        let (low, high) = (first.number(), last.number());
        match (&written.steps, &written.by, &written.factor) {
            (Some(steps), None, None) => {
                let logarithmic = self.is_logarithmic(written, first)?;
                let count =
                    usize::try_from(*steps.get_ref()).ok().filter(|count| (2..=MOST_STEPS).contains(count));
                let count = count.ok_or_else(|| {
                    self.at(
                        steps,
                        "axis.steps",
                        "the number of steps is out of range",
                        "give the number of values, both ends included, from 2 to a million",
                    )
                })?;
                let value = |n: usize| match n {
                    0 => first,
                    n if n == count - 1 => last,
                    n => first.of_number(between(low, high, n as f64 / (count - 1) as f64, logarithmic)),
                };
                let values: Vec<_> = (0..count).map(value).collect();
                if values.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(self.at(
                        steps,
                        "axis.steps",
                        "this many steps repeat values",
                        "use fewer steps",
                    ));
                }
                Ok(values)
            }
            (None, Some(by), None) => {
                let step =
                    Amount::read(by.get_ref()).filter(|step| step.is_like(first) && step.number() > 0.0);
                let step = step.ok_or_else(|| {
                    self.at(
                        by,
                        "axis.by",
                        "this is not a step between values",
                        "use a step above 0, of the same kind as from and to",
                    )
                })?;
                self.until(high, by, |n| first.of_number(low + n as f64 * step.number()))
            }
            (None, None, Some(factor)) => {
                let times = *factor.get_ref();
                if times.is_nan() || times <= 1.0 || low <= 0.0 {
                    return Err(self.at(
                        factor,
                        "axis.factor",
                        "from is not above 0, or factor is not above 1",
                        "each value is the one before times the factor",
                    ));
                }
                self.until(high, factor, |n| first.of_number(low * times.powi(n)))
            }
            _ => Err(self.mistake(
                "a range needs one of steps, by and factor",
                "write steps = 8, by = \"5Gb/s\" or factor = 2",
            )),
        }
    }

    /// Values one after the other, none above `high`.
    fn until<T>(
        &self,
        high: f64,
        place: &Spanned<T>,
        value: impl Fn(i32) -> Amount,
    ) -> Result<Vec<Amount>, Error> {
        let mut values: Vec<Amount> = Vec::new();
        for n in 0.. {
            let next = value(n);
            if next.number() > high * (1.0 + 1e-12) {
                break;
            }
            if values.last() == Some(&next) || values.len() == MOST_STEPS {
                return Err(self.at(
                    place,
                    "axis",
                    "the steps are too small",
                    "neighbouring values must differ, and a range has at most a million",
                ));
            }
            values.push(next);
        }
        Ok(values)
    }

    fn table(&self, csv: &Spanned<String>) -> Result<Axis, Error> {
        let path = (self.join)(csv.get_ref());
        let refuse = |why: String| {
            self.at(
                csv,
                "axis.csv",
                format!("cannot use \"{path}\": {why}"),
                "its first line must have the keys, each other line the values of a point",
            )
        };
        let text = (self.read)(&path).map_err(refuse)?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let broken = |error: csv::Error| match error.position() {
            Some(position) => place::whole(
                &path,
                "",
                format!("line {}: the number of values differs from the number of keys", position.line()),
                None,
            ),
            None => refuse(error.to_string()),
        };
        let keys: Vec<String> = reader.headers().map_err(broken)?.iter().map(str::to_owned).collect();
        if keys.iter().any(String::is_empty) {
            return Err(refuse("a key is empty".into()));
        }
        let mut rows: Vec<Vec<toml::Value>> = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(broken)?.iter().map(cell).collect());
        }
        if rows.is_empty() {
            return Err(refuse("it has no points".into()));
        }
        let column = |(n, key): (usize, &String)| {
            let values: Vec<_> = rows.iter().map(|row| row[n].clone()).collect();
            Column { name: key.clone(), values: as_data(&values) }
        };
        let set = |row: &Vec<toml::Value>| keys.iter().cloned().zip(row.iter().map(toml_text)).collect();
        Ok(Axis {
            columns: keys.iter().enumerate().map(column).collect(),
            steps: rows.iter().map(set).collect(),
            span: Span::Values,
        })
    }

    /// A Latin hypercube: of each key, as many strata as there are points, and each stratum in one point.
    fn latin(&self, written: &Written, points: &Spanned<i64>) -> Result<Axis, Error> {
        let count = usize::try_from(*points.get_ref()).ok().filter(|count| (1..=MOST_STEPS).contains(count));
        let count = count.ok_or_else(|| {
            self.at(points, "axis.latin", "the number of points is out of range", "expected 1 to a million")
        })?;
        let of = written.of.as_deref().filter(|of| !of.is_empty()).ok_or_else(|| {
            self.at(
                points,
                "axis.latin",
                "its keys are missing",
                "write of = [{ key = \"…\", from = 1, to = 64 }, { key = \"…\", values = [\"…\", \"…\"] }]",
            )
        })?;
        let (mut columns, mut axes, mut steps) = (Vec::new(), Vec::new(), vec![Vec::new(); count]);
        for dimension in of {
            let reader = Self { at: dimension.span().start, ..*self };
            let keys = reader.keys(dimension.get_ref())?;
            let mut random = Random::keyed(written.seed, &keys[0], "latin hypercube");
            let values = reader.strata(dimension.get_ref(), &mut random, count)?;
            let name = dimension
                .get_ref()
                .name
                .as_ref()
                .map_or_else(|| keys[0].clone(), |name| name.get_ref().clone());
            let set = |value: &toml::Value| -> Vec<(String, String)> {
                keys.iter().map(|key| (key.clone(), toml_text(value))).collect()
            };
            for (step, value) in steps.iter_mut().zip(&values) {
                step.extend(set(value));
            }
            columns.push(Column { name: name.clone(), values: as_data(&values) });
            let (all, span) = reader.whole(dimension.get_ref(), count)?;
            let columns = vec![Column { name, values: as_data(&all) }];
            axes.push(Axis { columns, steps: all.iter().map(set).collect(), span });
        }
        Ok(Axis { columns, steps, span: Span::Latin(axes) })
    }

    /// All values of a key of a Latin hypercube: those that are written, or its range in `count` steps.
    fn whole(&self, written: &Written, count: usize) -> Result<(Vec<toml::Value>, Span), Error> {
        if let Some(values) = &written.values {
            return Ok((values.get_ref().clone(), Span::Values));
        }
        let (Some(from), Some(to)) = (&written.from, &written.to) else {
            return Ok((Vec::new(), Span::Range));
        };
        let (first, last) = self.ends(from, to)?;
        let logarithmic = self.is_logarithmic(written, first)?;
        let part = |n: usize| n as f64 / (count - 1).max(1) as f64;
        let value = |n| first.of_number(between(first.number(), last.number(), part(n), logarithmic));
        let mut values: Vec<Amount> = (0..count).map(value).collect();
        // Whole numbers have fewer values than there may be steps.
        values.dedup();
        Ok((values.into_iter().map(Amount::write).collect(), Span::Range))
    }

    /// A value out of each stratum, in a random order.
    fn strata(
        &self,
        written: &Written,
        random: &mut Random,
        count: usize,
    ) -> Result<Vec<toml::Value>, Error> {
        let mut order: Vec<usize> = (0..count).collect();
        for n in (1..count).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
        // 53 random bits are what a fraction has.
        let mut part = |stratum: usize| {
            (stratum as f64 + (random.next() >> 11) as f64 / (1u64 << 53) as f64) / count as f64
        };
        if let Some(values) =
            written.values.as_ref().map(Spanned::get_ref).filter(|values| !values.is_empty())
        {
            let place = |part: f64| ((part * values.len() as f64) as usize).min(values.len() - 1);
            return Ok(order.into_iter().map(|stratum| values[place(part(stratum))].clone()).collect());
        }
        let (Some(from), Some(to)) = (&written.from, &written.to) else {
            return Err(self.mistake("this key has no values", "write from and to, or values = […]"));
        };
        let (first, last) = self.ends(from, to)?;
        let logarithmic = self.is_logarithmic(written, first)?;
        let value = |part| first.of_number(between(first.number(), last.number(), part, logarithmic)).write();
        Ok(order.into_iter().map(|stratum| value(part(stratum))).collect())
    }
}

/// A cell of a table: TOML, or a text as it is.
fn cell(text: &str) -> toml::Value {
    let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let value = read.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| toml::Value::String(text.into()))
}

/// A part of the way from `low` to `high`.
fn between(low: f64, high: f64, part: f64, logarithmic: bool) -> f64 {
    if logarithmic { low * (high / low).powf(part) } else { low + (high - low) * part }
}
