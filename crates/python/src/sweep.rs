//! Studies, as Python runs them and asks for what they came to.

use crate::chosen::{self, Chosen, Parameter};
use crate::table::Table;
use crate::watching::Watch;
use crate::{error, files};
use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice, PyString};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tlplab_experiment::Error;
use tlplab_study::expression::Value;
use tlplab_study::metrics::{Better, CATALOGUE, Scope, find};
use tlplab_study::pareto::{self, Objective};
use tlplab_study::rows::Summary;
use tlplab_study::runner::{Came, Row};
use tlplab_study::{
    Build, Elsewhere, Files, InPython, Made, Maker, Mistake, Named, Outcome, Progress, Record, Store, Study,
};

/// A study, and what its points are run with.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Sweep {
    sweep: Arc<tlplab_study::Sweep>,
}

/// The outcome of a study.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Swept {
    sweep: Arc<tlplab_study::Sweep>,
    outcome: Outcome,
}

#[pymethods]
impl Sweep {
    /// `builds` are hashes of what runs points: the simulator, and with it what carries devices in Python.
    #[new]
    #[pyo3(signature = (study, store, builds, *, overrides = Vec::new(), load = None, r#where = Vec::new(),
        shard = (0, 1), verdict = false, all_elsewhere = false, refused = BTreeMap::new(), chosen = None))]
    #[allow(clippy::too_many_arguments)] // each is a keyword in Python
    fn new(
        py: Python<'_>,
        study: &str,
        store: PathBuf,
        builds: (String, String),
        overrides: Vec<String>,
        load: Option<String>,
        r#where: Vec<String>,
        shard: (usize, usize),
        verdict: bool,
        all_elsewhere: bool,
        refused: BTreeMap<String, String>,
        chosen: Option<Chosen>,
    ) -> PyResult<Self> {
        let read = py.detach(|| Study::read(study, &files::read_text));
        let mut study = read.map_err(|mistake| error::experiment(py, &[mistake]))?;
        let mut set = study.set_more(overrides, load);
        if verdict {
            set = set.and_then(|()| study.ask_verdict());
        }
        let kept = set.and_then(|()| r#where.iter().try_for_each(|text| study.keep_where(text)));
        kept.map_err(|mistake| error::experiment(py, &[mistake]))?;
        let (simulator, python) = builds;
        let (study, points) = match chosen {
            Some(chosen) => chosen.of(study)?,
            None => {
                let points = py.detach(|| study.points());
                (study, points)
            }
        };
        let sweep = tlplab_study::Sweep {
            points,
            study,
            store: Store::new(store),
            build: Build { simulator, python },
            shard,
            files: Files::default(),
            all_elsewhere,
            refused,
        };
        Ok(Self { sweep: Arc::new(sweep) })
    }

    #[getter]
    fn title(&self) -> &str {
        &self.sweep.study.title
    }

    #[getter]
    fn left_out(&self) -> Vec<(String, usize)> {
        self.sweep.points.left_out.clone()
    }

    #[getter]
    fn axes(&self) -> Vec<(String, Option<String>, Vec<Py<PyAny>>)> {
        Python::attach(|py| {
            let of = |column: &tlplab_study::axis::Column| {
                let values = column.values.iter().map(|value| into_python(py, value)).collect();
                (column.name.clone(), unit(&column.values), values)
            };
            self.sweep.study.columns().map(of).collect()
        })
    }

    #[getter]
    fn metrics(&self) -> Vec<String> {
        let written = |one: &Named| {
            let text = one.expression.text();
            if one.name == text { text.to_owned() } else { format!("{} = {text}", one.name) }
        };
        self.sweep.study.metrics.iter().map(written).collect()
    }

    /// Of each axis whether it is a range, and its columns: name, unit, values. A Latin hypercube's keys are axes.
    #[getter]
    fn parameters(&self, py: Python<'_>) -> Vec<Parameter> {
        chosen::parameters(py, &self.sweep.study)
    }

    /// True if no point would have to be run; `progress` receives the number of points looked at. False, too, if it was interrupted.
    fn knows_all(&self, py: Python<'_>, progress: Py<PyAny>) -> PyResult<bool> {
        let (mut watch, mut looked) = (Watch::new(progress), 0);
        let mut go_on = || {
            looked += 1;
            watch.goes_on(looked)
        };
        let known = py.detach(|| self.sweep.knows_all(&mut go_on));
        watch.into_error(py).map_or(Ok(known), Err)
    }

    /// The number of points.
    fn __len__(&self) -> usize {
        self.sweep.points.kept.len()
    }

    /// With which a point is run by itself: the experiment and a file with its loads, if the study is of one, what all points set, and what each sets
    /// beyond that, by its number.
    #[getter]
    fn inputs(&self) -> Inputs {
        let study = &self.sweep.study;
        let own = |point: &tlplab_study::study::Point| study.overrides(point).split_off(study.set.len());
        let points = self.sweep.points.kept.iter().map(|point| (point.number, own(point)));
        let (path, load) = study.experiment().unzip();
        let load = load.flatten().map(str::to_owned);
        (path.map(str::to_owned), load, study.set.clone(), points.collect())
    }

    /// The seed of the first run of each point, if the study says one.
    #[getter]
    fn first_seed(&self) -> Option<u64> {
        self.sweep.study.repeats.seed(0)
    }

    /// Runs what is not known; `progress` is told how many runs are over, of how many, and how many of them were known.
    fn run(&self, py: Python<'_>, threads: usize, progress: Py<PyAny>) -> PyResult<Swept> {
        let mut watch = Watch::new(progress);
        let tell = |far: Progress, watch: &mut Watch| watch.goes_on((far.done, far.of, far.known));
        let outcome = py.detach(|| self.sweep.run(threads, &mut |far| tell(far, &mut watch)));
        if let Some(raised) = watch.into_error(py) {
            return Err(raised);
        }
        Ok(Swept { sweep: self.sweep.clone(), outcome: outcome.map_err(PyOSError::new_err)? })
    }

    /// Keeps what a run came to that was made elsewhere; the run of its point that comes next, if its repeats depend on each other.
    fn keep(&self, py: Python<'_>, run: &str, record: &[u8]) -> PyResult<Option<ElsewhereTuple>> {
        let run = read_run(run)?;
        let next = py.detach(|| self.sweep.keep(&run, record)).map_err(PyOSError::new_err)?;
        Ok(next.as_ref().map(told))
    }
}

/// An experiment, a file with its loads, what all points set, and what each sets.
type Inputs = (Option<String>, Option<String>, Vec<String>, BTreeMap<usize, Vec<String>>);

/// A run that is made elsewhere: its key, whether Python has a part in it, and all that there is to know.
type ElsewhereTuple = (String, bool, String);

fn told(run: &Elsewhere) -> ElsewhereTuple {
    (run.key.clone(), run.in_python.is_some(), run.write())
}

fn read_run(text: &str) -> PyResult<Elsewhere> {
    Elsewhere::read(text).ok_or_else(|| PyValueError::new_err("this is not a run"))
}

/// Makes runs that somebody elsewhere asks for.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct RunMaker {
    maker: Maker,
}

#[pymethods]
impl RunMaker {
    #[new]
    fn new(builds: (String, String)) -> Self {
        let (simulator, python) = builds;
        Self { maker: Maker::new(Build { simulator, python }) }
    }

    /// Makes a run: `ran` and what it came to, `refused` and why, or `differs` and why: here it would be another run.
    fn make<'py>(&self, py: Python<'py>, run: &str) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let run = read_run(run)?;
        Ok(match py.detach(|| self.maker.make(&run)) {
            Made::Ran(record) => ("ran", PyBytes::new(py, &record.write()).into_any()),
            Made::Refused(why) => ("refused", PyString::new(py, &why).into_any()),
            Made::Differs(why) => ("differs", PyString::new(py, &why).into_any()),
        })
    }

    /// The reason that a run would differ here, if it would.
    fn differs(&self, py: Python<'_>, run: &str) -> PyResult<Option<String>> {
        let run = read_run(run)?;
        Ok(py.detach(|| self.maker.differs(&run)))
    }

    /// Python's part of a run, as JSON.
    #[staticmethod]
    fn in_python(run: &str) -> PyResult<String> {
        let part: Option<InPython> = read_run(run)?.in_python;
        let part = part.ok_or_else(|| PyValueError::new_err("nothing of this run is in Python"))?;
        serde_json::to_string(&part).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Swept {
    #[getter]
    fn interrupted(&self) -> bool {
        self.outcome.interrupted
    }

    /// Runs that are over, all of them, those that were known, and those that were made.
    #[getter]
    fn progress(&self) -> (usize, usize, usize, usize) {
        let Progress { done, of, known, made } = self.outcome.progress;
        (done, of, known, made)
    }

    /// Runs that are to be made elsewhere.
    #[getter]
    fn elsewhere(&self) -> Vec<ElsewhereTuple> {
        self.outcome.elsewhere.iter().map(told).collect()
    }

    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Table::of_rows(py.detach(|| self.sweep.table(&self.outcome.rows)))
    }

    /// Name and unit of each figure in a list.
    fn figures(&self, py: Python<'_>, figures: &str) -> PyResult<Vec<(String, String)>> {
        let named = self.named(py, figures)?;
        Ok(named.into_iter().map(|one| (one.name, one.unit.to_string())).collect())
    }

    /// The summary of each point, with these figures.
    fn summaries(&self, py: Python<'_>, figures: &str) -> PyResult<Summaries> {
        let named = self.named(py, figures)?;
        let summaries = py.detach(|| self.sweep.summaries(&self.outcome.rows, &named));
        Ok(Summaries { sweep: self.sweep.clone(), summaries })
    }

    /// Name, unit and whether more is better of each objective; what each point came to, with these as figures; and whether nothing
    /// beats it.
    #[allow(clippy::type_complexity)] // a tuple in Python
    fn front(
        &self,
        py: Python<'_>,
        objectives: &str,
    ) -> PyResult<(Vec<(String, String, bool)>, Summaries, Vec<bool>)> {
        let objectives =
            Objective::parse_list(objectives).map_err(|mistake| wrong(py, objectives, &mistake))?;
        let figures: Vec<Named> = objectives.iter().map(|one| one.figure.clone()).collect();
        let checked = self.sweep.check_figures(&self.outcome.rows, &figures);
        checked.map_err(|mistake| error::experiment(py, &[mistake]))?;
        let more: Vec<bool> = objectives.iter().map(|one| one.more).collect();
        let summaries = self.sweep.summaries(&self.outcome.rows, &figures);
        let means = |one: &Summary| one.means.iter().map(|mean| mean.map(|(mean, _)| mean)).collect();
        let points: Vec<Vec<Option<f64>>> = summaries.iter().map(means).collect();
        let front = py.detach(|| pareto::front(&points, &more));
        let told = objectives.into_iter().map(|one| (one.figure.name, one.figure.unit.to_string(), one.more));
        Ok((told.collect(), Summaries { sweep: self.sweep.clone(), summaries }, front))
    }

    /// The study's finding: its sentence, the figures in it with their units, and whether it holds.
    #[allow(clippy::type_complexity)] // a tuple in Python
    fn finding(&self, py: Python<'_>) -> PyResult<Option<(String, BTreeMap<String, (f64, String)>, bool)>> {
        let Some(found) = self.sweep.finding(&self.outcome.rows) else { return Ok(None) };
        let found = found.map_err(|mistake| error::experiment(py, &[mistake]))?;
        let says = self.sweep.study.finding.as_ref().map_or("", |finding| &finding.says).to_owned();
        let figures =
            found.figures.into_iter().map(|(name, (value, unit))| (name, (value, unit.to_string())));
        Ok(Some((says, figures.collect(), found.holds)))
    }

    /// The numbers of rows: done, failed, refused.
    fn counts(&self) -> (usize, usize, usize) {
        let of = |wanted: fn(&Row) -> bool| self.outcome.rows.iter().filter(|row| wanted(row)).count();
        (
            of(|row| matches!(&row.came, Came::Ran(record) if record.failure.is_none())),
            of(|row| matches!(&row.came, Came::Ran(record) if record.failure.is_some())),
            of(|row| matches!(&row.came, Came::Refused(_))),
        )
    }
}

impl Swept {
    fn named(&self, py: Python<'_>, figures: &str) -> PyResult<Vec<Named>> {
        let named = Named::parse_list(figures).map_err(|mistake| wrong(py, figures, &mistake))?;
        let checked = self.sweep.check_figures(&self.outcome.rows, &named);
        checked.map_err(|mistake| error::experiment(py, &[mistake]))?;
        Ok(named)
    }
}

/// The summaries of the points of a study: a sequence of dictionaries, made as they are requested.
#[pyclass(frozen, sequence, module = "tlplab._core")]
pub(crate) struct Summaries {
    sweep: Arc<tlplab_study::Sweep>,
    summaries: Vec<Summary>,
}

#[pymethods]
impl Summaries {
    fn __len__(&self) -> usize {
        self.summaries.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Index<'py>) -> PyResult<Bound<'py, PyAny>> {
        let length = self.summaries.len();
        match index {
            Index::One(index) => {
                let at =
                    if index < 0 { length.checked_add_signed(index) } else { usize::try_from(index).ok() };
                let one = at.and_then(|at| self.summaries.get(at));
                let one = one.ok_or_else(|| PyIndexError::new_err("the index is beyond the last point"))?;
                Ok(self.as_dict(py, one)?.into_any())
            }
            Index::Some(slice) => {
                let meant = slice.indices(length.try_into()?)?;
                let places = (0..meant.slicelength).map(|n| meant.start + n as isize * meant.step);
                let chosen = places.filter_map(|at| self.summaries.get(usize::try_from(at).ok()?));
                let chosen = chosen.map(|one| self.as_dict(py, one)).collect::<PyResult<Vec<_>>>()?;
                chosen.into_pyobject(py)
            }
        }
    }

    /// The refusals and failures: kind, message, and the number of points with it; the most first.
    #[getter]
    fn troubles(&self) -> Vec<(&'static str, String, usize)> {
        let mut counts: BTreeMap<(&'static str, &str), usize> = BTreeMap::new();
        for (kind, message) in self.summaries.iter().filter_map(|one| one.trouble.as_ref()) {
            *counts.entry((*kind, message)).or_default() += 1;
        }
        let told = counts.into_iter().map(|((kind, message), count)| (kind, message.to_owned(), count));
        let mut told: Vec<_> = told.collect();
        told.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        told
    }

    /// True if it is said of a point what limits it.
    #[getter]
    fn limited(&self) -> bool {
        self.summaries.iter().any(|one| one.limit.is_some())
    }

    /// The mean of a figure at each point, and half of its confidence interval: NaN where there is none.
    fn means<'py>(
        &self,
        py: Python<'py>,
        figure: usize,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let of = |one: &Summary| one.means.get(figure).copied().flatten();
        let means = self.summaries.iter().map(|one| of(one).map_or(f64::NAN, |(mean, _)| mean));
        let halves = self.summaries.iter().map(|one| of(one).and_then(|(_, half)| half).unwrap_or(f64::NAN));
        (PyArray1::from_vec(py, means.collect()), PyArray1::from_vec(py, halves.collect()))
    }

    /// The step of each point on a column of the axes.
    fn steps<'py>(&self, py: Python<'py>, column: usize) -> Bound<'py, PyArray1<u32>> {
        let points = self.summaries.iter().map(|one| one.point);
        PyArray1::from_vec(py, self.sweep.steps_at(column, points))
    }
}

impl Summaries {
    fn as_dict<'py>(&self, py: Python<'py>, one: &Summary) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(py);
        let values = self.sweep.values_at(one.point);
        told.set_item("point", one.point)?;
        told.set_item("values", values.iter().map(|value| into_python(py, value)).collect::<Vec<_>>())?;
        told.set_item("runs", one.runs)?;
        told.set_item("trouble", one.trouble.clone())?;
        told.set_item("means", one.means.clone())?;
        told.set_item("limit", one.limit.clone())?;
        Ok(told)
    }
}

/// One of a sequence, or some.
#[derive(FromPyObject)]
enum Index<'py> {
    One(isize),
    Some(Bound<'py, PySlice>),
}

/// The number of results in a store.
#[pyfunction]
pub(crate) fn count_results(py: Python<'_>, store: PathBuf) -> usize {
    py.detach(|| Store::new(store).count())
}

/// The figures of what a run came to.
#[pyfunction]
pub(crate) fn record_figures(record: &[u8]) -> PyResult<BTreeMap<String, f64>> {
    let record = Record::read(record).ok_or_else(|| PyValueError::new_err("this is not a record"))?;
    Ok(record.metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The record of a run that failed, as studies keep it.
#[pyfunction]
pub(crate) fn failed_record(message: String) -> Vec<u8> {
    Record { failure: Some(message), ..Record::default() }.write()
}

/// A metric: its unit, and whether more is better, where that is known. `None` if there is no such metric.
#[pyfunction]
pub(crate) fn metric(name: &str) -> Option<(String, Option<bool>)> {
    let found = find(name).ok()?;
    let more = match found.better {
        Better::More => Some(true),
        Better::Less => Some(false),
        Better::Unknown => None,
    };
    Some((found.unit.to_string(), more))
}

/// The metrics: what has it, name, unit and meaning of each.
#[pyfunction]
pub(crate) fn metrics() -> Vec<(String, String)> {
    let told = CATALOGUE.iter().filter(|one| !one.doc.is_empty());
    let of = |scope| match scope {
        Scope::Model => "of a closed form: ",
        Scope::Bench => "of a benchmark: ",
        _ => "",
    };
    told.map(|one| (one.full_name(), format!("{}; {}{}", one.unit, of(one.scope), one.doc))).collect()
}

/// The keys of each model that studies know, by its name; those of benchmarks by `bench`.
#[pyfunction]
pub(crate) fn study_keys() -> BTreeMap<&'static str, Vec<&'static str>> {
    let models = tlplab_study::model::keys().into_iter();
    models.chain([("bench", tlplab_study::bench::keys())]).collect()
}

/// The metrics as tables in Markdown.
#[pyfunction]
pub(crate) fn metric_reference() -> String {
    tlplab_study::metrics::reference()
}

/// A mistake in a list of figures that was given on the command line or by a program.
pub(crate) fn wrong(py: Python<'_>, text: &str, mistake: &Mistake) -> PyErr {
    let Mistake { column, message, hint } = mistake.clone();
    let message = format!("in \"{text}\", column {column}: {message}");
    let mistake = Error { file: "figures".into(), line: 0, column: 0, key: String::new(), message, hint };
    error::experiment(py, &[mistake])
}

pub(crate) fn into_python(py: Python<'_>, value: &Value) -> Py<PyAny> {
    let made = match value {
        Value::Number(number, _) if number.fract() == 0.0 && number.abs() < 9e15 => {
            (*number as i64).into_pyobject(py).map(|number| number.into_any().unbind()).map_err(PyErr::from)
        }
        Value::Number(number, _) => {
            number.into_pyobject(py).map(|number| number.into_any().unbind()).map_err(PyErr::from)
        }
        Value::Truth(truth) => Ok(pyo3::types::PyBool::new(py, *truth).to_owned().into_any().unbind()),
        Value::Text(text) => text.into_pyobject(py).map(|text| text.into_any().unbind()).map_err(PyErr::from),
    };
    made.unwrap_or_else(|_| py.None())
}

pub(crate) fn unit(values: &[Value]) -> Option<String> {
    values
        .iter()
        .find_map(|value| if let Value::Number(_, unit) = value { Some(unit.to_string()) } else { None })
}
