//! An experiment file becomes a fabric, a run becomes a result document.
mod check;
mod document;
pub mod error;
pub mod experiment;
mod fault;
pub mod hosts;
mod issuer;
pub mod keys;
pub mod ladder;
pub mod link;
pub mod load;
pub mod models;
mod overrides;
pub mod result;
pub mod run;
pub mod schema;
pub mod stop;
pub mod tables;
pub mod topology;
mod tree;
pub mod verdict;
mod view;

pub use error::Error;
pub use experiment::{Experiment, FileKind, NeededFile, Options};
