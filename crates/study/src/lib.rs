//! Studies: many points of an experiment, a closed form or a benchmark, their results, and questions about them.
//!
//! **The way of the data.** A [`Study`] is read from its file ([`study`]): [`axis`] makes steps of lists, ranges, tables and Latin
//! hypercubes; crossed, and filtered by expressions, they are [`Points`], unless somebody chooses some (`chosen.rs`). What runs is the study's [`Subject`]: an experiment ([`run`](mod@run)),
//! a closed form ([`model`]) or a benchmark ([`bench`]). A [`Sweep`] runs the points ([`runner`]): the subject makes each run ready, which gives
//! a [`Key`], the hash of all that its result follows from ([`key`], [`files`]), which `memo` keeps; what the [`Store`] does not hold is
//! simulated, here or [elsewhere](Elsewhere), and what it came to is a [`Record`] of [`figures`], which [`metrics`] names. [`rows`] makes the data set of them, a row for each run, and a summary for each point;
//! [`pareto`] finds those that nothing beats, and a [`finding`] is a sentence with figures that is held against them.
//!
//! **Figures.** [`metrics`] names everything that a point can be asked for, with its [`unit`]; an [`expression`] computes with them. The
//! same grammar serves columns, filters, objectives, the question whether repeats are enough ([`repeats`]), and what an experiment says that
//! its figures have to be ([`expect`]), and the [`comparison`]s that a search is subject to.
//!
//! **The same everywhere.** A row follows from its key alone, and rows are in the order of the points: how many threads there are, in which
//! part of a study a point is and what was known before makes no difference, to the last bit. Nothing here knows what time it is.

pub mod axis;
pub mod bench;
mod bytes;
mod chosen;
pub mod comparison;
pub mod elsewhere;
pub mod expect;
pub mod expression;
pub mod figures;
pub mod files;
pub mod finding;
pub mod key;
mod memo;
pub mod metrics;
pub mod model;
mod options;
pub mod pareto;
mod place;
pub mod record;
pub mod repeats;
pub mod rows;
pub mod run;
pub mod runner;
pub mod store;
pub mod study;
pub mod subject;
pub mod unit;
mod values;

pub use elsewhere::{Elsewhere, Made, Maker};
pub use expression::{Expression, Mistake};
pub use files::Files;
pub use key::Key;
pub use record::Record;
pub use run::{Build, InPython};
pub use runner::{Outcome, Progress, Sweep};
pub use store::Store;
pub use study::{Named, Points, Study};
pub use subject::Subject;
