//! The files that a study's points name: each read once, whatever happens to it meanwhile, and known by what is in it.

use crate::key::Key;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_bench::{Machine, Setup};
use tlplab_device::Record;

/// The files of a study.
#[derive(Debug, Default)]
pub struct Files {
    texts: Kept<Arc<(String, Key)>>,
    digests: Kept<(Key, Stamp)>,
    traces: Kept<Arc<Vec<Record>>>,
    machines: Kept<Arc<KnownMachine>>,
}

/// A machine that benchmarks measure, and the files that it is made of.
#[derive(Debug)]
pub(crate) struct KnownMachine {
    pub(crate) machine: Machine,
    pub(crate) files: Vec<(String, Key)>,
}

type Kept<T> = Mutex<BTreeMap<String, Result<T, String>>>;

/// The properties that change with a file: its device and number, its length, its time of modification, in seconds and nanoseconds.
type Stamp = (u64, u64, u64, i64, i64);

impl Files {
    /// The text of a file, or in words why it cannot be had.
    ///
    /// # Errors
    /// The reason that it cannot be read.
    pub fn text(&self, path: &str) -> Result<String, String> {
        Ok(self.known_text(path)?.0.clone())
    }

    fn known_text(&self, path: &str) -> Result<Arc<(String, Key)>, String> {
        once(&self.texts, path, || {
            let text = fs::read_to_string(path).map_err(in_words)?;
            let key = Key::of(text.as_bytes());
            Ok(Arc::new((text, key)))
        })
    }

    /// The hash of what is in a text that was read.
    pub(crate) fn key_of_text(&self, path: &str) -> Result<Key, String> {
        Ok(self.known_text(path)?.1)
    }

    /// The hash of what is in a file.
    pub(crate) fn key(&self, path: &str) -> Result<Key, String> {
        let digest = || {
            let stamp = stamp(path)?;
            Ok((Key::of(&fs::read(path).map_err(in_words)?), stamp))
        };
        Ok(once(&self.digests, path, digest)?.0)
    }

    /// Every file that was asked for: its path, whether it is a text, and the hash of what is in it, if it can be read.
    pub(crate) fn all(&self) -> Vec<(String, bool, Option<Key>)> {
        let key_of = |text: &Arc<(String, Key)>| text.1;
        let texts = look(&self.texts);
        let texts = texts.iter().map(|(path, text)| (path.clone(), true, text.as_ref().ok().map(key_of)));
        let mut all: Vec<_> = texts.collect();
        let digests = look(&self.digests);
        all.extend(
            digests
                .iter()
                .map(|(path, digest)| (path.clone(), false, digest.as_ref().ok().map(|(key, _)| *key))),
        );
        all
    }

    /// True if a file is as it was when it was hashed.
    pub(crate) fn is_unchanged(&self, path: &str) -> bool {
        let known = look(&self.digests).get(path).cloned();
        known.is_none_or(|known| known.ok().map(|(_, stamp)| stamp) == stamp(path).ok())
    }

    /// The machine of a setup, which many points have in common.
    pub(crate) fn machine(&self, setup: &Setup) -> Result<Arc<KnownMachine>, String> {
        once(&self.machines, &format!("{setup:?}"), || {
            let named = Mutex::new(Vec::new());
            let read = |path: &str| {
                named.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
                self.text(path)
            };
            let machine = Machine::new(setup, &read).map_err(|error| error.to_string())?;
            let named = named.into_inner().unwrap_or_else(PoisonError::into_inner);
            let known = |path: String| Ok((path.clone(), self.key_of_text(&path)?));
            let files = named.into_iter().map(known).collect::<Result<_, String>>()?;
            Ok(Arc::new(KnownMachine { machine, files }))
        })
    }

    /// The requests of a captured trace.
    pub(crate) fn trace(&self, path: &str) -> Result<Arc<Vec<Record>>, String> {
        once(&self.traces, path, || {
            tlplab_capture::read_trace(path).map(Arc::new).map_err(|failure| failure.to_string())
        })
    }
}

fn look<T>(kept: &Kept<T>) -> MutexGuard<'_, BTreeMap<String, Result<T, String>>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of the first time. Others wait meanwhile: a file is read once, not once by each thread.
fn once<T: Clone>(kept: &Kept<T>, path: &str, find: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    look(kept).entry(path.to_owned()).or_insert_with(find).clone()
}

fn stamp(path: &str) -> Result<Stamp, String> {
    let found = fs::metadata(path).map_err(in_words)?;
    Ok((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

fn in_words(failure: std::io::Error) -> String {
    match failure.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::PermissionDenied => "you are not permitted to read it".into(),
        ErrorKind::InvalidData => "it is not text (UTF-8)".into(),
        _ => failure.to_string(),
    }
}
