//! The tests of tlplab-study, in one program.
//!
//! * [`axes`]: What axes make, and what is said of those that make nothing.
//! * [`choosing`]: Points that somebody chooses, and what is around one.
//! * [`grammar`]: Expressions: what they give, and where a mistake is.
//! * [`content`]: A changed file is a changed point, and another point is not.
//! * [`expecting`]: What an experiment says that its figures have to be.
//! * [`elsewhere`]: What is made elsewhere is what would be made here, or it is refused.
//! * [`running`]: Threads, parts, repeats and interruptions make no difference to the rows.
//! * [`subjects`]: Closed forms and benchmarks: their keys, figures and results.

mod axes;
mod choosing;
mod content;
mod elsewhere;
mod expecting;
mod grammar;
mod running;
mod subjects;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tlplab_experiment::Error;
use tlplab_study::runner::{Came, Row};
use tlplab_study::{Build, Files, Outcome, Store, Study, Sweep};

/// A folder with an experiment and a study of it.
struct Bench {
    folder: tempfile::TempDir,
}

const EXPERIMENT: &str = r#"
title = "one"
stop = "20us"
[device.ssd]
under = "host.rp0"
link = "gen3 x4"
[load]
ssd = { op = "write", size = "4KiB" }
"#;

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        bench.write("one.toml", EXPERIMENT);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn study(&self, text: &str) -> Study {
        self.read(&format!("experiment = \"one.toml\"\n{text}")).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A study of whatever its text names.
    fn read(&self, text: &str) -> Result<Study, Error> {
        self.write("study.toml", text);
        let path = self.path("study.toml");
        Study::read(path.to_str().unwrap(), &|path| std::fs::read_to_string(path).map_err(|e| e.to_string()))
    }

    fn sweep(&self, text: &str) -> Sweep {
        self.sweep_of(self.study(text))
    }

    fn sweep_of(&self, study: Study) -> Sweep {
        Sweep {
            points: study.points(),
            study,
            store: Store::new(self.path("store")),
            build: Build { simulator: "this".into(), python: "that".into() },
            shard: (0, 1),
            files: Files::default(),
            all_elsewhere: false,
            refused: BTreeMap::new(),
        }
    }

    /// Runs a study to its end.
    fn run(&self, text: &str) -> Outcome {
        run(&self.sweep(text), 2)
    }
}

fn run(sweep: &Sweep, threads: usize) -> Outcome {
    let outcome = sweep.run(threads, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
    assert!(!outcome.interrupted);
    outcome
}

/// A figure of a row.
fn figure(row: &Row, name: &str) -> f64 {
    match &row.came {
        Came::Ran(record) => record.metrics[name],
        Came::Refused(why) => panic!("{why}"),
    }
}

/// How many results a store holds.
fn count(store: &Path) -> usize {
    Store::new(store).count()
}
