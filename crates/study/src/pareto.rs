//! The points of which no other is better by one figure and as good by all.

use crate::expression::Mistake;
use crate::metrics::{self, Better};
use crate::study::{Named, split};
use std::cmp::Ordering;

/// A figure, and which way it is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The figure.
    pub figure: Named,
    /// More of it is better; otherwise less.
    pub more: bool,
}

impl Objective {
    /// Reads `throughput,latency.p99,min:lanes*generation`: of a metric it is known which way it is better, of what is computed it is said.
    ///
    /// # Errors
    /// The mistake, and its place in the text.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Mistake> {
        split(text).into_iter().map(|(at, part)| Self::parse(at, part)).collect()
    }

    fn parse(at: usize, text: &str) -> Result<Self, Mistake> {
        let begin = text.len() - text.trim_start().len();
        let said = [("max:", true), ("min:", false)];
        let said = said.into_iter().find(|(word, _)| text[begin..].starts_with(word));
        let skipped = begin + said.map_or(0, |(word, _)| word.len());
        let figure = Named::parse(&text[skipped..])
            .map_err(|mistake| Mistake { column: mistake.column + at + skipped, ..mistake })?;
        if let Some((_, more)) = said {
            return Ok(Self { figure, more });
        }
        let metric = figure.expression.as_name().and_then(|name| metrics::find(name).ok());
        match metric.map_or(Better::Unknown, |metric| metric.better) {
            Better::More => Ok(Self { figure, more: true }),
            Better::Less => Ok(Self { figure, more: false }),
            Better::Unknown => Err(Mistake {
                column: at + skipped + 1,
                message: format!("the better direction of {} is not known", figure.name),
                hint: Some(format!("write max:{0} or min:{0}", figure.expression)),
            }),
        }
    }
}

/// For each point, whether it is on the front. A point of which a figure is missing is not.
pub fn front(points: &[Vec<Option<f64>>], more: &[bool]) -> Vec<bool> {
    // Turned so that less is better everywhere.
    let turn = |values: &Vec<Option<f64>>| {
        let turned = values
            .iter()
            .zip(more)
            .map(|(value, more)| value.map(|value| if *more { -value } else { value }));
        turned.collect::<Option<Vec<f64>>>()
    };
    let mut sorted: Vec<(usize, Vec<f64>)> =
        points.iter().map(turn).enumerate().filter_map(|(n, point)| Some((n, point?))).collect();
    // Nothing is dominated by what comes behind it in this order.
    let compare = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    sorted.sort_by(|(_, a), (_, b)| compare(a, b));
    let dominates =
        |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b);
    let (mut on_front, mut best) = (vec![false; points.len()], Vec::<Vec<f64>>::new());
    for (n, point) in sorted {
        if !best.iter().any(|other| dominates(other, &point)) {
            on_front[n] = true;
            if best.last() != Some(&point) {
                best.push(point);
            }
        }
    }
    on_front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_front_holds_the_undominated_points() {
        let point = |a: f64, b: f64| vec![Some(a), Some(b)];
        let points = [
            point(1.0, 1.0),
            point(2.0, 2.0),
            point(2.0, 3.0),
            point(0.5, 2.0),
            vec![Some(9.0), None],
            point(2.0, 2.0),
        ];
        assert_eq!(front(&points, &[true, false]), [true, true, false, false, false, true]);
    }

    proptest! {
        /// By the definition: for each pair.
        #[test]
        fn it_is_the_front_by_definition(
            points in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, (0..5).prop_map(f64::from)), 3), 0..40),
            more in prop::array::uniform3(any::<bool>()),
        ) {
            let better = |a: f64, b: f64, more: bool| if more { a > b } else { a < b };
            let whole = |point: &Vec<Option<f64>>| point.iter().copied().collect::<Option<Vec<f64>>>();
            let beaten = |point: &[f64]| points.iter().filter_map(whole).any(|other| {
                let pairs = || other.iter().zip(point).zip(more);
                !pairs().any(|((a, b), more)| better(*b, *a, more)) && pairs().any(|((a, b), more)| better(*a, *b, more))
            });
            let expected: Vec<bool> = points.iter().map(|point| whole(point).is_some_and(|point| !beaten(&point))).collect();
            prop_assert_eq!(front(&points, &more), expected);
        }
    }

    #[test]
    fn the_direction_of_an_objective_is_known_or_required() {
        let ways = |text: &str| {
            Objective::parse_list(text).map(|all| all.into_iter().map(|one| one.more).collect::<Vec<_>>())
        };
        assert_eq!(ways("throughput, latency.p99,lanes").unwrap(), [true, false, false]);
        assert_eq!(ways("max:min(throughput, 9 Gb/s),min:latency.max").unwrap(), [true, false]);
        let told = ways("throughput, throughput/lanes").unwrap_err();
        assert_eq!(told.column, 13);
        assert_eq!(told.hint.unwrap(), "write max:throughput/lanes or min:throughput/lanes");
        assert_eq!(ways("throughput,min: nic.thruput").unwrap_err().column, 17);
    }
}
