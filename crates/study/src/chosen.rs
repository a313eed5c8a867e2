//! Points that somebody chooses, and what is around one: for searches, which do not run all that axes cross to.

use crate::axis::Span;
use crate::runner::{Keys, Looked, Sweep};
use crate::study::{Point, Points, Study};

impl Study {
    /// The same with a Latin hypercube's keys as axes of their own: what its points are samples of.
    #[must_use]
    pub fn opened(mut self) -> Self {
        let open = |axis: crate::axis::Axis| match axis.span {
            Span::Latin(axes) => axes,
            Span::Values | Span::Range => vec![axis],
        };
        self.axes = self.axes.into_iter().flat_map(open).collect();
        self
    }

    /// The points of these steps, one of each axis; each has its place in the list for a number. Filters leave out what they leave out
    /// of a sweep.
    ///
    /// # Errors
    /// There is no such step.
    pub fn choose(&self, steps: &[Vec<usize>]) -> Result<Points, String> {
        let left_out = self.filters.iter().map(|filter| (filter.name.clone(), 0)).collect();
        let mut points = Points { kept: Vec::new(), left_out };
        for (number, steps) in steps.iter().enumerate() {
            let fits = |(axis, step): (&crate::axis::Axis, &usize)| *step < axis.steps.len();
            if steps.len() != self.axes.len() || !self.axes.iter().zip(steps).all(fits) {
                return Err(format!("the axes have no steps {steps:?}"));
            }
            let point = Point { number, steps: steps.clone() };
            match self.filters.iter().position(|filter| !self.keeps(filter, &point)) {
                Some(filter) => points.left_out[filter].1 += 1,
                None => points.kept.push(point),
            }
        }
        Ok(points)
    }

    /// The same along one axis, or along none: the axes of `at` stay at these steps, and the others set nothing. A filter that needs what
    /// is not set leaves out nothing.
    #[must_use]
    pub fn around(mut self, along: Option<usize>, at: &[(usize, usize)]) -> Self {
        let mut axes = Vec::new();
        for (number, mut axis) in self.axes.into_iter().enumerate() {
            let stays = at.iter().find(|(axis, _)| *axis == number).map(|(_, step)| *step);
            if Some(number) == along {
                axes.push(axis);
            } else if let Some(step) = stays.filter(|step| *step < axis.steps.len()) {
                axis.steps = vec![axis.steps.swap_remove(step)];
                axis.columns
                    .iter_mut()
                    .for_each(|column| column.values = vec![column.values.swap_remove(step)]);
                axes.push(axis);
            }
        }
        let known = |name: &str| axes.iter().flat_map(|axis| &axis.columns).any(|column| column.name == name);
        self.filters.retain(|filter| filter.keep.names().into_iter().all(|(name, _)| known(name)));
        self.axes = axes;
        self
    }
}

impl Sweep {
    /// True if nothing would have to be run: every run of every point is known, or cannot be. `goes_on` is asked before each point.
    pub fn knows_all(&self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let keys = self.keys();
        self.points.kept.iter().all(|point| goes_on() && self.knows(point, &keys))
    }

    fn knows(&self, point: &Point, keys: &Keys) -> bool {
        let repeats = &self.study.repeats;
        let mut came = Vec::new();
        for repeat in 0..repeats.most() {
            match self.look_up(point, repeat, keys) {
                Looked::Refused(..) => return true,
                Looked::Found(_, record) => came.push(record.metrics),
                Looked::New(..) => return false,
            }
            if repeats.is_enough(&came.iter().collect::<Vec<_>>()) {
                break;
            }
        }
        true
    }
}
