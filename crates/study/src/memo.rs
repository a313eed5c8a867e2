//! The keys of a study's runs, kept beside the results.
//!
//! To know the key of a run its experiment has to be read, which takes longer than to fetch its result. So keys are kept with the hash of
//! every file that was read for them: while those files are as they were, the same run has the same key.

use crate::bytes::{put_text, take, take_text};
use crate::files::Files;
use crate::key::Key;
use crate::run::Build;
use crate::study::Study;
use std::fs;
use std::path::{Path, PathBuf};
use tlplab_trace::output;

/// The result of reading the experiment of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Its key, and its seed, if one makes a difference.
    Key(Key, Option<u64>),
    /// It cannot be, and why.
    Refused(String),
}

/// Point and repeat of a run.
pub(crate) type RunNumber = (u64, u32);

/// The runs of a study whose experiments were read, by their numbers.
#[derive(Debug)]
pub(crate) struct Memo {
    path: PathBuf,
    runs: Vec<(RunNumber, Known)>,
}

const MAGIC: &[u8] = b"tlplab/keys/1\n";
const KEY: u8 = b'K';
const REFUSED: u8 = b'R';
const FILE: u8 = b'F';

impl Memo {
    /// The memo of a study in the folder of a store. It is empty if there is none, or if a file is another than it was.
    pub(crate) fn read(folder: &Path, study: &Study, build: &Build, files: &Files) -> Self {
        let path = folder.join(format!("{}.keys", identity(study, build)));
        let runs = fs::read(&path).ok().and_then(|bytes| runs_of(&bytes, files)).unwrap_or_default();
        Self { path, runs }
    }

    /// The known facts of a run. In the memo of a whole study without repeats each run stands at its number.
    pub(crate) fn get(&self, run: RunNumber) -> Option<&Known> {
        let number = |known: &(RunNumber, Known)| known.0;
        let there =
            usize::try_from(run.0).ok().and_then(|at| self.runs.get(at)).filter(|known| number(known) == run);
        let known =
            there.or_else(|| self.runs.binary_search_by_key(&run, number).ok().map(|at| &self.runs[at]));
        known.map(|(_, known)| known)
    }

    /// Keeps what was found, too. A memo that cannot be written is one that is missing: nothing depends on it.
    pub(crate) fn keep(mut self, found: Vec<(RunNumber, Known)>, files: &Files) {
        if found.is_empty() {
            return;
        }
        self.runs.extend(found);
        self.runs.sort_by_key(|(number, _)| *number);
        self.runs.dedup_by_key(|(number, _)| *number);
        let mut bytes = MAGIC.to_vec();
        for (path, is_text, key) in files.all() {
            bytes.push(FILE);
            bytes.push(u8::from(is_text));
            bytes.extend(key.map_or([0; 32], |key| *key.bytes()));
            put_text(&mut bytes, &path);
        }
        for ((point, repeat), known) in &self.runs {
            bytes.push(if matches!(known, Known::Key(..)) { KEY } else { REFUSED });
            bytes.extend(point.to_le_bytes());
            bytes.extend(repeat.to_le_bytes());
            match known {
                Known::Key(key, seed) => {
                    bytes.extend(key.bytes());
                    bytes.push(u8::from(seed.is_some()));
                    bytes.extend(seed.unwrap_or(0).to_le_bytes());
                }
                Known::Refused(why) => put_text(&mut bytes, why),
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let _ = output::write(&self.path, &bytes);
    }
}

/// The inputs that the keys of a study follow from, but for the content of files.
fn identity(study: &Study, build: &Build) -> Key {
    let Study { subject, set, repeats, verdict, axes, .. } = study;
    let steps: Vec<_> = axes.iter().map(|axis| &axis.steps).collect();
    let text = format!("{:?}", (subject, set, repeats.seeds, verdict, steps, build));
    Key::of(text.as_bytes())
}

fn runs_of(bytes: &[u8], files: &Files) -> Option<Vec<(RunNumber, Known)>> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let mut rest = content.strip_prefix(MAGIC)?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut runs = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        if *kind == FILE {
            let is_text = take::<1>(&mut rest)? == [1];
            let key = Some(take::<32>(&mut rest)?).filter(|key| *key != [0; 32]).map(Key::from_bytes);
            let path = take_text(&mut rest)?;
            let now = if is_text { files.key_of_text(path) } else { files.key(path) };
            if now.ok() != key {
                return None;
            }
            continue;
        }
        let run = (u64::from_le_bytes(take(&mut rest)?), u32::from_le_bytes(take(&mut rest)?));
        let known = match *kind {
            KEY => {
                let (key, seeded) = (Key::from_bytes(take(&mut rest)?), take::<1>(&mut rest)? == [1]);
                let seed = u64::from_le_bytes(take(&mut rest)?);
                Known::Key(key, seeded.then_some(seed))
            }
            REFUSED => Known::Refused(take_text(&mut rest)?.to_owned()),
            _ => return None,
        };
        runs.push((run, known));
    }
    Some(runs)
}
