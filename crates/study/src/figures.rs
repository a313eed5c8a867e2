//! The figures of one run, by name. Runs of one study have the same names, which they share: a million runs hold them once.

use std::ops::Index;
use std::sync::Arc;
use tlplab_experiment::result::causes;

/// Figures with their names, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    names: Names,
    values: Vec<f64>,
}

/// Names in their order, each once.
pub type Names = Arc<[String]>;

impl Metrics {
    /// Figures of these names, which are in order.
    pub(crate) fn of_names(names: Names, values: Vec<f64>) -> Self {
        debug_assert!(names.len() == values.len() && names.is_sorted());
        Self { names, values }
    }

    /// A figure. A cause that took none of a flow's time has a share of 0.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.place(name).map(|at| self.values[at]).or_else(|| {
            let (flow, cause) = name.split_once(".share.")?;
            let known = causes().iter().any(|one| one.0.name().replace(' ', "_") == cause);
            (known && self.place(&format!("{flow}.latency.mean")).is_some()).then_some(0.0)
        })
    }

    /// The index of a figure among the values.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).ok()
    }

    /// The names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Has the names of another one instead of its own, if they are the same.
    pub(crate) fn share_names(&mut self, with: &Self) {
        if self.names == with.names {
            self.names = with.names.clone();
        }
    }

    /// The values, in the order of the names.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.names.iter().map(String::as_str).zip(self.values.iter().copied())
    }
}

/// Of a name that comes twice, the first value counts.
impl FromIterator<(String, f64)> for Metrics {
    fn from_iter<T: IntoIterator<Item = (String, f64)>>(figures: T) -> Self {
        let mut figures: Vec<(String, f64)> = figures.into_iter().collect();
        figures.sort_by(|(a, _), (b, _)| a.cmp(b));
        figures.dedup_by(|(a, _), (b, _)| a == b);
        let (names, values): (Vec<_>, Vec<_>) = figures.into_iter().unzip();
        Self { names: names.into(), values }
    }
}

impl<const N: usize> From<[(String, f64); N]> for Metrics {
    fn from(figures: [(String, f64); N]) -> Self {
        figures.into_iter().collect()
    }
}

impl Index<&str> for Metrics {
    type Output = f64;

    /// # Panics
    /// There is no such figure.
    fn index(&self, name: &str) -> &f64 {
        let at = self.place(name);
        &self.values[at.unwrap_or_else(|| panic!("no figure is called {name}"))]
    }
}
