//! The data set of a study: one row for each run of a point, in their order. And what is told of each point.

use crate::expression::Value;
use crate::figures::{Metrics, Names};
use crate::metrics;
use crate::repeats::confidence;
use crate::runner::{Came, Row, Sweep};
use crate::study::{Named, Point};
use crate::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tlplab_experiment::Error;

/// Columns of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// Facts about the whole.
    pub about: Vec<(String, String)>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its unit, if it is a figure.
    pub unit: Option<String>,
    /// Its values.
    pub data: Data,
}

/// Values of one kind; `None` where there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// True or false.
    Truth(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// The summary of the runs of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The point's number.
    pub point: usize,
    /// The number of runs that went to their end.
    pub runs: usize,
    /// The reason that there are no figures: refused or failed, and the message.
    pub trouble: Option<(&'static str, String)>,
    /// Of each figure that was asked for: the mean, and half of its 95 % confidence interval.
    pub means: Vec<Option<(f64, Option<f64>)>>,
    /// The limit, as its first run states it.
    pub limit: Option<String>,
}

/// The kind of a row, in a word.
fn kind(row: &Row) -> &'static str {
    match &row.came {
        Came::Ran(record) if record.failure.is_some() => "failed",
        Came::Ran(_) => "done",
        Came::Refused(_) => "refused",
    }
}

fn message(row: &Row) -> Option<&String> {
    match &row.came {
        Came::Ran(record) => record.failure.as_ref(),
        Came::Refused(why) => Some(why),
    }
}

fn metrics_of(row: &Row) -> Option<&Metrics> {
    if let Came::Ran(record) = &row.came { Some(&record.metrics) } else { None }
}

impl Sweep {
    /// The data set of these rows.
    pub fn table(&self, rows: &[Row]) -> Table {
        let mut columns = vec![whole("point", rows.iter().map(|row| Some(row.point as u64)))];
        for (at, column) in self.study.columns().enumerate() {
            let values: Vec<Value> =
                rows.iter().map(|row| self.values_at(row.point).swap_remove(at)).collect();
            columns.push(of_values(&column.name, values));
        }
        columns.push(whole("repeat", rows.iter().map(|row| Some(row.repeat as u64))));
        columns.push(whole("seed", rows.iter().map(|row| row.seed)));
        columns.push(text("kind", rows.iter().map(|row| Some(kind(row).to_owned()))));
        columns.push(text("message", rows.iter().map(|row| message(row).cloned())));
        if self.study.verdict {
            let said =
                |row: &Row| if let Came::Ran(record) = &row.came { record.verdict.clone() } else { None };
            columns.push(text("limit", rows.iter().map(|row| Some(said(row)?.0))));
            columns.push(text("verdict", rows.iter().map(|row| Some(said(row)?.1))));
        }
        for named in self.study.metrics.iter().filter(|named| named.expression.as_name() != Some(&named.name))
        {
            let values = rows.iter().map(|row| named.of(metrics_of(row)?)).collect();
            columns.push(TableColumn {
                name: named.name.clone(),
                unit: Some(named.unit.to_string()),
                data: Data::Number(values),
            });
        }
        for name in names_of(rows.iter().filter_map(metrics_of)) {
            let unit = metrics::find(name).map_or(Unit::NONE, |metric| metric.unit);
            let mut values_of = Finder::of(name);
            let values = rows.iter().map(|row| values_of.value(metrics_of(row)?)).collect();
            columns.push(TableColumn {
                name: name.clone(),
                unit: Some(unit.to_string()),
                data: Data::Number(values),
            });
        }
        let left_out: BTreeMap<&String, usize> =
            self.points.left_out.iter().map(|(name, count)| (name, *count)).collect();
        let about = [
            ("tlplab.schema", "tlplab/sweep/1".to_owned()),
            ("tlplab.title", self.study.title.clone()),
            ("tlplab.left_out", serde_json::json!(left_out).to_string()),
        ];
        Table { columns, about: about.map(|(key, value)| (key.to_owned(), value)).into() }
    }

    /// A value of each column of the axes, at a point.
    pub fn values_at(&self, number: usize) -> Vec<Value> {
        self.point_of(number).map_or_else(Vec::new, |point| self.study.values(point))
    }

    /// The step of each of these points on the axis of a column.
    pub fn steps_at(&self, column: usize, points: impl Iterator<Item = usize>) -> Vec<u32> {
        let mut axes =
            self.study.axes.iter().enumerate().flat_map(|(at, axis)| axis.columns.iter().map(move |_| at));
        let Some(axis) = axes.nth(column) else { return points.map(|_| 0).collect() };
        let step = |number| self.point_of(number).map_or(0, |point| point.steps[axis]);
        points.map(|number| u32::try_from(step(number)).unwrap_or(u32::MAX)).collect()
    }

    /// A point by its number, at which it stands unless points before it were left out.
    fn point_of(&self, number: usize) -> Option<&Point> {
        let kept = &self.points.kept;
        let there = kept.get(number).filter(|point| point.number == number);
        there.or_else(|| kept.binary_search_by_key(&number, |point| point.number).ok().map(|at| &kept[at]))
    }

    /// The summary of each point of these rows.
    pub fn summaries(&self, rows: &[Row], figures: &[Named]) -> Vec<Summary> {
        rows.chunk_by(|a, b| a.point == b.point).map(|rows| self.summary(rows, figures)).collect()
    }

    fn summary(&self, rows: &[Row], figures: &[Named]) -> Summary {
        let done: Vec<&Metrics> =
            rows.iter().filter(|row| kind(row) == "done").filter_map(metrics_of).collect();
        let mean = |named: &Named| {
            let values: Vec<f64> = done.iter().filter_map(|metrics| named.of(metrics)).collect();
            match values.as_slice() {
                [] => None,
                [one] => Some((*one, None)),
                several => confidence(several).map(|(mean, half)| (mean, Some(half))),
            }
        };
        let trouble = rows.iter().find_map(|row| Some((kind(row), message(row)?.clone())));
        let limit = rows.iter().find_map(|row| match &row.came {
            Came::Ran(record) => record.verdict.as_ref().map(|(resource, _)| resource.clone()),
            Came::Refused(_) => None,
        });
        Summary {
            point: rows[0].point,
            runs: done.len(),
            trouble,
            means: figures.iter().map(mean).collect(),
            limit,
        }
    }

    /// Checks that the figures are of something: each name in them is a metric of a run that went to its end.
    ///
    /// # Errors
    /// The first that is not, and what may be meant.
    pub fn check_figures(&self, rows: &[Row], figures: &[Named]) -> Result<(), Error> {
        let done = || rows.iter().filter(|row| kind(row) == "done").filter_map(metrics_of);
        if done().next().is_none() {
            return Ok(());
        }
        for (named, name, column) in figures.iter().flat_map(|named| {
            named.expression.names().into_iter().map(move |(name, column)| (named, name, column))
        }) {
            if done().any(|metrics| metrics.get(name).is_some()) {
                continue;
            }
            let known = names_of(done());
            let hint = match metrics::nearest(name, known.iter().map(|name| name.as_str())) {
                Some(near) => format!("did you mean {near}?"),
                None => "`tlplab list metrics` lists the names".into(),
            };
            let message = format!("in \"{}\", column {column}: no point has {name}", named.expression);
            return Err(crate::place::whole(&self.study.file, "metrics", message, Some(hint)));
        }
        Ok(())
    }
}

/// The names that any of these have.
fn names_of<'a>(metrics: impl Iterator<Item = &'a Metrics>) -> BTreeSet<&'a String> {
    let mut names = BTreeSet::new();
    let mut before: Option<&Names> = None;
    for metrics in metrics {
        // Results that were kept share their names.
        if before.is_none_or(|before| !Arc::ptr_eq(before, metrics.names())) {
            names.extend(metrics.names().iter());
        }
        before = Some(metrics.names());
    }
    names
}

/// Looks for one figure in many results, whose names are mostly the same.
struct Finder<'a> {
    name: &'a str,
    before: Option<(Names, Option<usize>)>,
}

impl<'a> Finder<'a> {
    fn of(name: &'a str) -> Self {
        Self { name, before: None }
    }

    fn value(&mut self, metrics: &Metrics) -> Option<f64> {
        let place = match &self.before {
            Some((names, place)) if Arc::ptr_eq(names, metrics.names()) => *place,
            _ => {
                let place = metrics.place(self.name);
                self.before = Some((metrics.names().clone(), place));
                place
            }
        };
        place.map(|at| metrics.values()[at]).or_else(|| metrics.get(self.name))
    }
}

fn whole(name: &str, values: impl Iterator<Item = Option<u64>>) -> TableColumn {
    TableColumn { name: name.to_owned(), unit: None, data: Data::Whole(values.collect()) }
}

fn text(name: &str, values: impl Iterator<Item = Option<String>>) -> TableColumn {
    TableColumn { name: name.to_owned(), unit: None, data: Data::Text(values.collect()) }
}

/// A column of an axis: whole numbers stay whole.
fn of_values(name: &str, values: Vec<Value>) -> TableColumn {
    let unit = values
        .iter()
        .find_map(|value| if let Value::Number(_, unit) = value { Some(unit.to_string()) } else { None });
    let is_whole =
        |value: &Value| value.number().is_some_and(|x| x.fract() == 0.0 && (0.0..9e15).contains(&x));
    let data = if values.iter().all(is_whole) {
        Data::Whole(values.iter().map(|value| value.number().map(|x| x as u64)).collect())
    } else if unit.is_some() {
        Data::Number(values.iter().map(Value::number).collect())
    } else if values.iter().all(|value| matches!(value, Value::Truth(_))) {
        Data::Truth(
            values
                .iter()
                .map(|value| if let Value::Truth(truth) = value { Some(*truth) } else { None })
                .collect(),
        )
    } else {
        let words = |value: &Value| if let Value::Text(text) = value { Some(text.clone()) } else { None };
        Data::Text(values.iter().map(words).collect())
    };
    TableColumn { name: name.to_owned(), unit, data }
}
