//! All points of a study, in threads.
//!
//! A thread takes the next run, looks whether its result is known, and makes it otherwise. Nothing depends on which thread makes which
//! run, or when: rows are in the order of the points, and whether a point has been run often enough follows from its own repeats.

use crate::elsewhere::Elsewhere;
use crate::figures::Metrics;
use crate::files::Files;
use crate::memo::{Known, Memo, RunNumber};
use crate::record::Record;
use crate::run::{Build, Prepared, Went};
use crate::store::Store;
use crate::study::{Point, Points, Study};
use crate::subject::Ask;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Whoever watches is told at least so often.
const LOOK: Duration = Duration::from_millis(50);

/// A run of a point, and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The point's number.
    pub point: usize,
    /// The number of the run among its repeats, from 0.
    pub repeat: usize,
    /// The seed; `None` where the experiment cannot be read.
    pub seed: Option<u64>,
    /// Its result.
    pub came: Came,
}

/// The result of a run of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// It ran: to its end, or it failed.
    Ran(Record),
    /// It cannot be, and why.
    Refused(String),
}

/// The progress of a study, in points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are over, or known.
    pub done: usize,
    /// All, if every point is run as often as it may be.
    pub of: usize,
    /// The number of them that were known.
    pub known: usize,
    /// The number of them that were made.
    pub made: usize,
}

/// The outcome of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By points and repeats.
    pub rows: Vec<Row>,
    /// Runs that are to be made elsewhere; afterwards the study is run again.
    pub elsewhere: Vec<Elsewhere>,
    /// Its progress.
    pub progress: Progress,
    /// Somebody ended it: rows are missing.
    pub interrupted: bool,
}

/// A study, and what its points are run with.
#[derive(Debug)]
pub struct Sweep {
    /// The study.
    pub study: Study,
    /// Its points.
    pub points: Points,
    /// The store of results.
    pub store: Store,
    /// The build that runs them.
    pub build: Build,
    /// One part of so many, from 0.
    pub shard: (usize, usize),
    /// Its files.
    pub files: Files,
    /// True if all runs are made elsewhere, and not only what has a part in Python.
    pub all_elsewhere: bool,
    /// Runs that were to be made elsewhere and cannot be, by their keys, and why.
    pub refused: BTreeMap<String, String>,
}

/// The known facts of a run before it is made.
pub(crate) enum Looked {
    /// It was made before, with this seed.
    Found(Option<u64>, Record),
    /// It cannot be; the seed, where the experiment can be read.
    Refused(Option<u64>, String),
    /// Nothing.
    New(Ask, Box<Prepared>),
}

/// The keys that were known when a study began, and those that were found since.
pub(crate) struct Keys {
    memo: Memo,
    found: Mutex<Vec<(RunNumber, Known)>>,
}

/// A message of a thread.
enum Told {
    Row {
        row: Row,
        known: bool,
    },
    Elsewhere(Box<Elsewhere>),
    /// So many repeats need not be made.
    Spared(usize),
    Failed(String),
}

impl Sweep {
    /// The points of this part.
    fn mine(&self) -> Vec<&Point> {
        let (part, parts) = self.shard;
        self.points
            .kept
            .iter()
            .enumerate()
            .filter(|(n, _)| n % parts == part)
            .map(|(_, point)| point)
            .collect()
    }

    /// Runs what is not known yet, in `threads`; `watch` is told how far it is, and whether to go on is what it says.
    ///
    /// # Errors
    /// A result cannot be kept, or a file changed meanwhile.
    pub fn run(&self, threads: usize, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, String> {
        let points = self.mine();
        let most = self.study.repeats.most();
        // Repeats are one after the other only where each says whether there is another.
        let units: Vec<(&Point, std::ops::Range<usize>)> = if self.study.repeats.until.is_some() {
            points.iter().map(|point| (*point, 0..most)).collect()
        } else {
            points
                .iter()
                .flat_map(|point| (0..most).map(move |repeat| (*point, repeat..repeat + 1)))
                .collect()
        };
        let mut outcome = Outcome {
            progress: Progress { of: points.len() * most, ..Progress::default() },
            ..Outcome::default()
        };
        let keys = self.keys();
        let (cancel, next) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut failure = None;
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            for _ in 0..threads.clamp(1, units.len().max(1)) {
                let (tell, units, keys, cancel, next) = (tell.clone(), &units, &keys, &cancel, &next);
                scope.spawn(move || {
                    while !cancel.load(Ordering::Relaxed)
                        && let Some((point, repeats)) = units.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        self.point(point, repeats.clone(), keys, cancel, &tell);
                    }
                });
            }
            drop(tell);
            loop {
                match told.recv_timeout(LOOK) {
                    Ok(told) => take(&mut outcome, &mut failure, told),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if !watch(outcome.progress) {
                    outcome.interrupted = true;
                }
                if outcome.interrupted || failure.is_some() {
                    cancel.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        keys.memo.keep(keys.found.into_inner().unwrap_or_else(PoisonError::into_inner), &self.files);
        outcome.interrupted &= outcome.progress.done + outcome.elsewhere.len() < outcome.progress.of;
        outcome.rows.sort_by_key(|row| (row.point, row.repeat));
        // What cannot be is told once, however many seeds it has.
        outcome.rows.dedup_by(|row, before| {
            row.point == before.point
                && matches!((&row.came, &before.came), (Came::Refused(_), Came::Refused(_)))
        });
        outcome.elsewhere.sort_by(|a, b| a.key.cmp(&b.key));
        outcome.elsewhere.dedup();
        Ok(outcome)
    }

    /// Makes some repeats of a point.
    fn point(
        &self,
        point: &Point,
        repeats: std::ops::Range<usize>,
        keys: &Keys,
        cancel: &AtomicBool,
        tell: &Sender<Told>,
    ) {
        // Whoever listens has gone only if all is over.
        let say = |told| drop(tell.send(told));
        let mut came: Vec<Metrics> = Vec::new();
        for repeat in repeats.clone() {
            let row = |seed, came, known| {
                say(Told::Row { row: Row { point: point.number, repeat, seed, came }, known });
            };
            let spare_the_rest = || say(Told::Spared(repeats.end - repeat - 1));
            let record = match self.look_up(point, repeat, keys) {
                Looked::Refused(seed, why) => {
                    row(seed, Came::Refused(why), false);
                    // It cannot be with another seed, either.
                    return spare_the_rest();
                }
                Looked::Found(seed, record) => {
                    row(seed, Came::Ran(record.clone()), true);
                    record
                }
                Looked::New(ask, prepared) if self.all_elsewhere || prepared.in_python.is_some() => {
                    return say(Told::Elsewhere(Box::new(self.elsewhere(point, ask, *prepared))));
                }
                Looked::New(_, prepared) => {
                    let (key, seed) = (prepared.key, prepared.seed);
                    match prepared.run(&self.files, cancel, self.study.verdict) {
                        Went::Done(record) => {
                            if let Err(why) = self.store.put(&key, &record) {
                                return say(Told::Failed(why));
                            }
                            row(seed, Came::Ran(record.clone()), false);
                            record
                        }
                        Went::Refused(why) => {
                            row(seed, Came::Refused(why), false);
                            return spare_the_rest();
                        }
                        Went::Cancelled => return,
                        Went::Changed(path) => return say(Told::Failed(changed(&path))),
                    }
                }
            };
            if self.study.repeats.until.is_some() {
                came.push(record.metrics);
                if self.study.repeats.is_enough(&came.iter().collect::<Vec<_>>()) {
                    return spare_the_rest();
                }
            }
        }
    }

    /// Looks whether the result of a run is known, and reads its experiment if not.
    pub(crate) fn look_up(&self, point: &Point, repeat: usize, keys: &Keys) -> Looked {
        let number = self.study.crossed(point).zip(u32::try_from(repeat).ok());
        match number.and_then(|number| keys.memo.get(number)) {
            Some(Known::Refused(why)) => return Looked::Refused(None, why.clone()),
            Some(Known::Key(key, seed)) => {
                if let Some(record) = self.store.get(key) {
                    return Looked::Found(*seed, record);
                }
            }
            None => {}
        }
        let found = |known| {
            let mut found = keys.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(number.map(|number| (number, known)));
        };
        let ask = self.study.ask(point, repeat);
        let prepared = match self.study.subject.prepare(&ask, &self.files, &self.build) {
            Ok(prepared) => prepared,
            Err(refusal) => {
                if refusal.lasting {
                    found(Known::Refused(refusal.why.clone()));
                }
                return Looked::Refused(None, refusal.why);
            }
        };
        let (key, seed) = (prepared.key, prepared.seed);
        found(Known::Key(key, seed));
        if let Some(why) = self.refused.get(&key.to_string()) {
            return Looked::Refused(seed, why.clone());
        }
        match self.store.get(&key) {
            Some(record) => Looked::Found(seed, record),
            None => Looked::New(ask, Box::new(prepared)),
        }
    }

    /// The next run of a point that is not known, if its repeats are not enough yet.
    pub(crate) fn next_of(&self, number: usize) -> Option<Elsewhere> {
        let at = self.points.kept.binary_search_by_key(&number, |point| point.number).ok()?;
        let (tell, told) = mpsc::channel();
        let all = 0..self.study.repeats.most();
        self.point(&self.points.kept[at], all, &self.keys(), &AtomicBool::new(false), &tell);
        told.try_iter().find_map(|told| if let Told::Elsewhere(one) = told { Some(*one) } else { None })
    }

    pub(crate) fn keys(&self) -> Keys {
        let memo = Memo::read(self.store.folder(), &self.study, &self.build, &self.files);
        Keys { memo, found: Mutex::default() }
    }
}

pub(crate) fn changed(path: &str) -> String {
    format!("{path} changed while the study ran; run it again")
}

fn take(outcome: &mut Outcome, failure: &mut Option<String>, told: Told) {
    match told {
        Told::Row { mut row, known } => {
            outcome.progress.done += 1;
            outcome.progress.known += usize::from(known);
            outcome.progress.made += usize::from(!known && matches!(row.came, Came::Ran(_)));
            if let (Came::Ran(record), Some(Row { came: Came::Ran(before), .. })) =
                (&mut row.came, outcome.rows.last())
            {
                record.metrics.share_names(&before.metrics);
            }
            outcome.rows.push(row);
        }
        Told::Elsewhere(one) => outcome.elsewhere.push(*one),
        Told::Spared(count) => outcome.progress.of -= count,
        Told::Failed(why) => *failure = Some(why),
    }
}
