//! Studies, as Python runs them and asks for what they came to.

use crate::table::Table;
use crate::watching::Watch;
use crate::{error, files};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tlplab_experiment::Error;
use tlplab_study::expression::Value;
use tlplab_study::metrics::{Better, CATALOGUE, find};
use tlplab_study::pareto::{self, Objective};
use tlplab_study::rows::Summary;
use tlplab_study::runner::{Came, Row};
use tlplab_study::{Build, Elsewhere, Files, Mistake, Named, Outcome, Progress, Record, Store, Study};

/// A study, and what its points are run with.
#[pyclass(frozen, module = "tlplab._core")]
pub(crate) struct Sweep {
    sweep: Arc<tlplab_study::Sweep>,
}

/// What came of a study.
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
        shard = (0, 1), verdict = false, refused = BTreeMap::new()))]
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
        refused: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let read = py.detach(|| Study::read(study, &files::read_text));
        let mut study = read.map_err(|mistake| error::experiment(py, &[mistake]))?;
        study.set.extend(overrides);
        study.load = load.or(study.load);
        study.verdict |= verdict;
        let kept = r#where.iter().try_for_each(|text| study.keep_where(text));
        kept.map_err(|mistake| error::experiment(py, &[mistake]))?;
        let (simulator, python) = builds;
        let sweep = tlplab_study::Sweep {
            points: py.detach(|| study.points()),
            study,
            store: Store::new(store),
            build: Build { simulator, python },
            shard,
            files: Files::default(),
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

    /// With which a point is run by itself: the experiment, what all points set, and what each sets beyond that, by its number.
    #[getter]
    fn inputs(&self) -> (String, Vec<String>, BTreeMap<usize, Vec<String>>) {
        let study = &self.sweep.study;
        let own = |point: &tlplab_study::study::Point| study.overrides(point).split_off(study.set.len());
        let points = self.sweep.points.kept.iter().map(|point| (point.number, own(point)));
        (study.experiment.clone(), study.set.clone(), points.collect())
    }

    /// The file whose loads replace those of the experiment.
    #[getter]
    fn load(&self) -> Option<&str> {
        self.sweep.study.load.as_deref()
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

    /// Keeps what a run came to that was made elsewhere.
    fn keep(&self, py: Python<'_>, run: ElsewhereTuple, record: &str) -> PyResult<()> {
        let (key, experiment, set, load, seed, files) = run;
        let run = Elsewhere { key, experiment, set, load, seed, files };
        py.detach(|| self.sweep.keep(&run, record)).map_err(PyOSError::new_err)
    }
}

type ElsewhereTuple = (String, String, Vec<String>, Option<String>, u64, Vec<String>);

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

    /// Runs that are to be made in processes.
    #[getter]
    fn elsewhere(&self) -> Vec<ElsewhereTuple> {
        let tuple = |run: &Elsewhere| {
            let run = run.clone();
            (run.key, run.experiment, run.set, run.load, run.seed, run.files)
        };
        self.outcome.elsewhere.iter().map(tuple).collect()
    }

    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Table::of_rows(py.detach(|| self.sweep.table(&self.outcome.rows)))
    }

    /// Name and unit of each figure in a list.
    fn figures(&self, py: Python<'_>, figures: &str) -> PyResult<Vec<(String, String)>> {
        let named = self.named(py, figures)?;
        Ok(named.into_iter().map(|one| (one.name, one.unit.to_string())).collect())
    }

    /// What each point came to, with these figures.
    fn summaries<'py>(&self, py: Python<'py>, figures: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let named = self.named(py, figures)?;
        let found = py.detach(|| self.sweep.summaries(&self.outcome.rows, &named));
        found.iter().map(|summary| as_dict(py, summary)).collect()
    }

    /// Name, unit and whether more is better of each objective; what each point came to, with these as figures; and whether nothing
    /// beats it.
    #[allow(clippy::type_complexity)] // a tuple in Python
    fn front<'py>(
        &self,
        py: Python<'py>,
        objectives: &str,
    ) -> PyResult<(Vec<(String, String, bool)>, Vec<Bound<'py, PyDict>>, Vec<bool>)> {
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
        let summaries = summaries.iter().map(|one| as_dict(py, one)).collect::<PyResult<_>>()?;
        Ok((told.collect(), summaries, front))
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

    /// How many rows came to what: done, failed, refused.
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

/// What a run came to that failed, as studies keep it.
#[pyfunction]
pub(crate) fn failed_record(message: String) -> String {
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
    told.map(|one| (one.full_name(), format!("{}; {}", one.unit, one.doc))).collect()
}

/// The same as a table in Markdown.
#[pyfunction]
pub(crate) fn metric_reference() -> String {
    tlplab_study::metrics::reference()
}

/// A mistake in a list of figures that was given on the command line or by a program.
fn wrong(py: Python<'_>, text: &str, mistake: &Mistake) -> PyErr {
    let Mistake { column, message, hint } = mistake.clone();
    let message = format!("in \"{text}\", column {column}: {message}");
    let mistake = Error { file: "figures".into(), line: 0, column: 0, key: String::new(), message, hint };
    error::experiment(py, &[mistake])
}

fn into_python(py: Python<'_>, value: &Value) -> Py<PyAny> {
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

fn unit(values: &[Value]) -> Option<String> {
    values
        .iter()
        .find_map(|value| if let Value::Number(_, unit) = value { Some(unit.to_string()) } else { None })
}

fn as_dict<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("point", summary.point)?;
    told.set_item("values", summary.values.iter().map(|value| into_python(py, value)).collect::<Vec<_>>())?;
    told.set_item("runs", summary.runs)?;
    told.set_item("trouble", summary.trouble.clone())?;
    told.set_item("means", summary.means.clone())?;
    told.set_item("limit", summary.limit.clone())?;
    Ok(told)
}
