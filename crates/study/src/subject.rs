//! The subject of a study: runs of an experiment, a closed form, or a benchmark.
//!
//! Each says which keys points may set, and makes a point ready to run: its key, the files that it names, and what is to be done.

use crate::bench::Bench;
use crate::files::Files;
use crate::model::Model;
use crate::options::Written;
use crate::place::{Place, whole};
use crate::run::{Build, Prepared, Refused, experiment};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tlplab_experiment::Error;
use toml::Spanned;

/// The subject of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Runs of an experiment.
    Experiment {
        /// Its path.
        path: String,
        /// A file whose loads take the place of the experiment's.
        load: Option<String>,
    },
    /// A closed form.
    Model(Model),
    /// A benchmark.
    Bench(Bench),
}

/// A request to a subject at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The settings: `key=value` each.
    pub(crate) set: Vec<String>,
    /// The seed; `None`: the subject's own.
    pub(crate) seed: Option<u64>,
    /// The limit of the point is found by runs, too.
    pub(crate) verdict: bool,
}

/// A subject as a study's file names it.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    pub(crate) experiment: Option<&'a Spanned<String>>,
    pub(crate) load: Option<&'a Spanned<String>>,
    pub(crate) model: Option<&'a Spanned<Written>>,
    pub(crate) bench: Option<&'a Spanned<Written>>,
}

impl Named<'_> {
    /// True if there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.experiment.is_none() && self.model.is_none() && self.bench.is_none()
    }
}

impl Subject {
    /// The one subject that a file names.
    pub(crate) fn read(
        place: Place<'_>,
        named: &Named<'_>,
        join: &dyn Fn(&str) -> String,
    ) -> Result<Self, Error> {
        const ONE: &str = "name one subject: experiment = \"one.toml\", [model] or [bench]";
        let mistake = |span: Range<usize>, key: &str, message: &str| {
            Err(place.mistake(span, key, message, Some(ONE.into())))
        };
        let load = named.load.map(|load| join(load.get_ref()));
        let subject = match (named.experiment, named.model, named.bench) {
            (Some(path), None, None) => return Ok(Self::Experiment { path: join(path.get_ref()), load }),
            (None, Some(model), None) => Self::Model(Model::read(place, model, join(""))?),
            (None, None, Some(bench)) => Self::Bench(Bench::read(place, bench, join(""))?),
            (None, None, None) => {
                return Err(whole(place.file, "", "this study has no subject", Some(ONE.into())));
            }
            (_, _, Some(bench)) => return mistake(bench.span(), "bench", "this study has two subjects"),
            (_, Some(model), _) => return mistake(model.span(), "model", "this study has two subjects"),
        };
        match named.load {
            Some(load) => mistake(load.span(), "load", "only experiments have loads"),
            None => Ok(subject),
        }
    }

    /// Checks that points may set a key; of an experiment it is known only when the experiment is read.
    ///
    /// # Errors
    /// They may not: a message, and what may be meant.
    pub(crate) fn check_key(&self, key: &str) -> Result<(), (String, Option<String>)> {
        match self {
            Self::Experiment { .. } => Ok(()),
            Self::Model(model) => model.check_key(key),
            Self::Bench(bench) => bench.check_key(key),
        }
    }

    /// True if what limits a point can be found by runs.
    pub(crate) fn has_verdict(&self) -> bool {
        matches!(self, Self::Experiment { .. })
    }

    /// True if what limits a point comes with its figures.
    pub(crate) fn tells_limit(&self) -> bool {
        matches!(self, Self::Model(model) if model.tells_limit())
    }

    /// True if another seed can make a difference.
    pub(crate) fn has_seed(&self) -> bool {
        !matches!(self, Self::Model(_))
    }

    /// Makes the run of a point ready.
    ///
    /// # Errors
    /// The reason that it cannot be run.
    pub(crate) fn prepare(&self, ask: &Ask, files: &Files, build: &Build) -> Result<Prepared, Refused> {
        let now = |why| Refused { why, lasting: false };
        match self {
            Self::Experiment { path, load } => experiment(path, load.as_deref(), ask, files, build),
            Self::Model(model) => model.prepare(ask, files, build).map_err(now),
            Self::Bench(bench) => bench.prepare(ask, files, build).map_err(now),
        }
    }
}
