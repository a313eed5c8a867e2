//! Runs that are made elsewhere: in another process, because part of them is in Python, or on another machine.
//!
//! Whoever makes a run gets ready what it is told of, with the files that it sees itself, and holds the key against that which was
//! asked for. So a result is kept only under what it follows from, whatever the other machine has under the same names.

use crate::files::Files;
use crate::key::Key;
use crate::record::Record;
use crate::run::{Build, InPython, Prepared, Went};
use crate::runner::{Sweep, changed};
use crate::study::Point;
use crate::subject::{Ask, Subject};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;

/// A run that is made elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Its key.
    pub key: String,
    /// The point's number.
    pub point: usize,
    /// Python's part of it, if it has one.
    pub in_python: Option<InPython>,
    /// The hash of what runs it.
    build: String,
    subject: Subject,
    ask: Ask,
    /// The files that it names, by the hashes of what is in them.
    files: Vec<(String, String)>,
    /// The files among them that its maker opens.
    opened: Vec<String>,
}

/// The fate of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// It ran: to its end, or it failed.
    Ran(Record),
    /// It cannot be, and why.
    Refused(String),
    /// It would be another run here than was asked for, and why.
    Differs(String),
}

/// Makes runs that somebody elsewhere asks for.
#[derive(Debug)]
pub struct Maker {
    build: Build,
    files: Files,
}

impl Elsewhere {
    /// As text.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From text.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl Maker {
    /// With this build, and the files as they are now.
    pub fn new(build: Build) -> Self {
        Self { build, files: Files::default() }
    }

    /// Makes a run.
    pub fn make(&self, run: &Elsewhere) -> Made {
        let prepared = match self.prepare(run) {
            Ok(prepared) => prepared,
            Err(why) => return Made::Differs(why),
        };
        match prepared.run(&self.files, &AtomicBool::new(false), run.ask.verdict) {
            Went::Done(record) => Made::Ran(record),
            Went::Refused(why) => Made::Refused(why),
            Went::Changed(path) => Made::Differs(changed(&path)),
            Went::Cancelled => Made::Differs("it was cancelled".into()),
        }
    }

    /// The reason that a run would differ here from the requested one, if it does.
    pub fn differs(&self, run: &Elsewhere) -> Option<String> {
        self.prepare(run).err()
    }

    fn prepare(&self, run: &Elsewhere) -> Result<Prepared, String> {
        let prepared = run.subject.prepare(&run.ask, &self.files, &self.build);
        match prepared {
            Ok(prepared) if prepared.key.to_string() == run.key => Ok(prepared),
            prepared => Err(self.difference(run, prepared.err().map(|refused| refused.why))),
        }
    }

    /// The reason that it differs: the build, a file, or the settings of the experiment.
    fn difference(&self, run: &Elsewhere, refused: Option<String>) -> String {
        let by = if run.in_python.is_some() { &self.build.python } else { &self.build.simulator };
        if *by != run.build {
            return "its build of tlplab differs".into();
        }
        for (path, there) in &run.files {
            match self.files.key(path) {
                Ok(key) if key.to_string() == *there => {}
                Ok(_) => return format!("{path} is a different file there"),
                Err(why) => return format!("{path}: {why}"),
            }
        }
        refused.unwrap_or_else(|| "the experiment resolves to different settings there".into())
    }
}

impl Sweep {
    pub(crate) fn elsewhere(&self, point: &Point, ask: Ask, prepared: Prepared) -> Elsewhere {
        let Build { simulator, python } = &self.build;
        Elsewhere {
            build: if prepared.in_python.is_some() { python.clone() } else { simulator.clone() },
            key: prepared.key.to_string(),
            point: point.number,
            in_python: prepared.in_python,
            subject: self.study.subject.clone(),
            ask,
            files: prepared.files.into_iter().map(|(path, key)| (path, key.to_string())).collect(),
            opened: prepared.opened,
        }
    }

    /// Keeps what a run came to that was made elsewhere; the run of its point that comes next, if its repeats depend on each other.
    ///
    /// # Errors
    /// It cannot be kept, it is no record, or one of its files is another than before.
    pub fn keep(&self, run: &Elsewhere, record: &[u8]) -> Result<Option<Elsewhere>, String> {
        if let Some(path) = run.opened.iter().find(|path| !self.files.is_unchanged(path)) {
            return Err(changed(path));
        }
        let (key, record) = (Key::read(&run.key), Record::read(record));
        let (key, record) = key.zip(record).ok_or_else(|| format!("{}: this is not a record", run.key))?;
        self.store.put(&key, &record)?;
        Ok(self.study.repeats.until.as_ref().and_then(|_| self.next_of(run.point)))
    }
}
