//! Points of a study that a program chooses, and figures that it asks for by their text.

use crate::sweep::{into_python, unit, wrong};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tlplab_study::axis::{Axis, Column, Span};
use tlplab_study::comparison::Comparison;
use tlplab_study::expect::Expectation;
use tlplab_study::{Named, Points, Record, Study};

/// Points other than all that axes cross to.
#[derive(FromPyObject)]
pub(crate) enum Chosen {
    /// The steps of each point.
    Steps(Vec<Vec<usize>>),
    /// Along one axis or none, with axes that stay at a step.
    Around(Option<usize>, Vec<(usize, usize)>),
}

/// True for a range; name, unit and values of its columns.
pub(crate) type Parameter = (bool, Vec<(String, Option<String>, Vec<Py<PyAny>>)>);

impl Chosen {
    pub(crate) fn of(self, study: Study) -> PyResult<(Study, Points)> {
        let study = study.opened();
        match self {
            Self::Steps(steps) => {
                let points = study.choose(&steps).map_err(PyValueError::new_err)?;
                Ok((study, points))
            }
            Self::Around(along, at) => {
                let study = study.around(along, &at);
                let points = study.points();
                Ok((study, points))
            }
        }
    }
}

pub(crate) fn parameters(py: Python<'_>, study: &Study) -> Vec<Parameter> {
    let column = |column: &Column| {
        let values = column.values.iter().map(|value| into_python(py, value)).collect();
        (column.name.clone(), unit(&column.values), values)
    };
    let of = |axis: &Axis| (axis.span == Span::Range, axis.columns.iter().map(column).collect());
    study.clone().opened().axes.iter().map(of).collect()
}

/// Name and unit of each figure in a list.
#[pyfunction]
pub(crate) fn figures(py: Python<'_>, text: &str) -> PyResult<Vec<(String, String)>> {
    let named = Named::parse_list(text).map_err(|mistake| wrong(py, text, &mistake))?;
    Ok(named.into_iter().map(|one| (one.name, one.unit.to_string())).collect())
}

/// A comparison of two figures: the left one, the sign, the right one, and their unit.
#[pyfunction]
pub(crate) fn comparison(py: Python<'_>, text: &str) -> PyResult<(String, String, String, String)> {
    let Comparison { left, sign, right } =
        Comparison::parse(text).map_err(|mistake| wrong(py, text, &mistake))?;
    let text = |side: &Named| side.expression.text().to_owned();
    Ok((text(&left), sign.to_owned(), text(&right), left.unit.to_string()))
}

/// Of what is expected of a run: whether it holds, its figures (name, value, unit), and what may be meant by one that is not there.
#[pyfunction]
#[allow(clippy::type_complexity)] // a tuple in Python
pub(crate) fn expect(
    py: Python<'_>,
    record: &[u8],
    text: &str,
) -> PyResult<(bool, Vec<(String, Option<f64>, String)>, Option<String>)> {
    let expectation = Expectation::read(text).map_err(|mistake| wrong(py, text, &mistake))?;
    let record = Record::read(record).ok_or_else(|| PyValueError::new_err("this is not a record"))?;
    let judged = expectation.judge(&record.metrics);
    let figures = judged.figures.into_iter().map(|(name, value, unit)| (name, value, unit.to_string()));
    Ok((judged.holds, figures.collect(), judged.meant))
}
