//! Studies: many points of an experiment, what each came to, and questions about them.
//!
//! **The way of the data.** A [`Study`] is read from its file ([`study`]): [`axis`] makes steps of lists, ranges, tables and Latin
//! hypercubes; crossed, and filtered by expressions, they are [`Points`], unless somebody chooses some (`chosen.rs`). A [`Sweep`] runs them ([`runner`]): of each run, [`run`](mod@run) reads the
//! experiment and works out a [`Key`], the hash of all that its result follows from ([`key`], [`files`]); what the [`Store`] does not hold is
//! simulated, and what it came to is a [`Record`] of [`metrics`]. [`rows`] makes the data set of them, a row for each run, and a summary for each point;
//! [`pareto`] finds those that nothing beats, and a [`finding`] is a sentence with figures that is held against them.
//!
//! **Figures.** [`metrics`] names everything that a point can be asked for, with its [`unit`]; an [`expression`] computes with them. The
//! same grammar serves columns, filters, objectives, the question whether repeats are enough ([`repeats`]), and what an experiment says that
//! its figures have to be ([`expect`]), and the [`comparison`]s that a search is subject to.
//!
//! **The same everywhere.** A row follows from its key alone, and rows are in the order of the points: how many threads there are, in which
//! part of a study a point is and what was known before makes no difference, to the last bit. Nothing here knows what time it is.

pub mod axis;
mod chosen;
pub mod comparison;
pub mod expect;
pub mod expression;
pub mod files;
pub mod finding;
pub mod key;
pub mod metrics;
pub mod pareto;
mod place;
pub mod record;
pub mod repeats;
pub mod rows;
pub mod run;
pub mod runner;
pub mod store;
pub mod study;
pub mod unit;
mod values;

pub use expression::{Expression, Mistake};
pub use files::Files;
pub use key::Key;
pub use record::Record;
pub use run::Build;
pub use runner::{Elsewhere, Outcome, Progress, Sweep};
pub use store::Store;
pub use study::{Named, Points, Study};
