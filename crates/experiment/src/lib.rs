//! An experiment file becomes a fabric, a run becomes a result document.
//!
//! ```
//! use tlplab_experiment::{Experiment, run};
//!
//! let text = r#"
//!     title = "One writer"
//!     stop = "20us"
//!     [device.ssd]
//!     under = "host.rp0"
//!     link = "gen3 x4"
//!     [load]
//!     ssd = { op = "write", size = "4KiB" }
//! "#;
//! let experiment = Experiment::parse(&|_path| Ok(text.to_owned()), "one.toml")?;
//! let document = run::run(experiment, run::Inputs::default())?;
//! assert!(document.verdict.sentence.starts_with("The link ssd → host.rp0 limits the run"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **The way in.** [`Experiment::parse`] reads TOML that keeps the place of every value (`tree`), merges includes, load files and
//! `--set` overrides, checks it against [`tables`] (`check`, which words the error of an unknown key) and turns it into plain data: links ([`link`]), the host ([`hosts`]), switches and
//! devices ([`topology`], [`device_models`]), faults, loads ([`load`]), the end ([`stop`]). [`tables`] is the one place that says which keys
//! there are; known keys and the nearest of them, defaults, the JSON Schema and the reference of keys ([`schema`]) come from it.
//! Every mistake is an [`Error`] with file, line, key, what is wrong and what would be right. Nothing here opens a file: the
//! caller brings the text of included files, and the contents of [`Experiment::files`].
//!
//! **The run.** [`run::Run`] builds a fabric, goes on step by step (so that a caller can show progress, stop, or drive devices and
//! drivers from outside, which [`outside`] stands for), and says when and why it ends.
//!
//! **The way out.** [`run::Run::document`] fills in the [`result::Document`], which is JSON of the schema `tlplab/result/1` and the only
//! thing that summaries and report pages read. [`ladder`] keeps a window of packets for it, [`verdict`] finds the sentence that names
//! what limits the run and what would limit next by its figures; [`whatif`] finds it by runs in which one resource is relaxed.
//! [`transactions`] keeps all transactions with their causes, for questions about single ones.
//!
//! **What software sees.** [`lspci`] enumerates the fabric and tells functions, addresses and links, and gives the dump that the real
//! tool reads.

mod access;
mod assemble;
mod bus;
mod card;
mod check;
mod choices;
mod config_spaces;
mod dd;
pub mod detail;
pub mod device_models;
mod document;
mod domains;
pub mod error;
pub mod experiment;
mod fault;
pub mod guest;
mod host_memory;
mod host_use;
pub mod hosts;
mod issuer;
pub mod keys;
pub mod ladder;
pub mod latest;
pub mod link;
pub mod load;
pub mod lspci;
pub mod machines;
mod network;
pub mod nvme;
pub mod outside;
mod overrides;
pub mod result;
mod room;
pub mod run;
pub mod schema;
mod section;
pub mod settings;
mod stages;
pub mod stop;
pub mod tables;
pub mod topology;
pub mod transactions;
mod transfer;
mod translation;
mod tree;
pub mod verdict;
mod view;
pub mod whatif;

pub use error::Error;
pub use experiment::{Expected, Experiment, FileKind, NeededFile, Options};
pub use stop::StopReason;
