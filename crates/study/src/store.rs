//! Results by their keys: each in a file of its own, which is whole or not there.
//!
//! The name of a file is the hash of all that its content follows from. So it never changes, two processes that write it write the
//! same, and a folder is joined with another by copying. A file is written beside its place and renamed, which is safe on the file
//! systems that clusters share, too, where appending to one file is not.

use crate::key::Key;
use crate::record::Record;
use std::fs;
use std::path::{Path, PathBuf};
use tlplab_trace::output;

/// A folder with results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in a folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a result is or will be: 256 folders hold all.
    fn place(&self, key: &Key) -> PathBuf {
        let name = key.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// The result of a key. One that is not whole counts as none.
    pub fn get(&self, key: &Key) -> Option<Record> {
        Record::read(&fs::read_to_string(self.place(key)).ok()?)
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// The folder cannot be made, or the file cannot be written.
    pub fn put(&self, key: &Key, record: &Record) -> Result<(), String> {
        let place = self.place(key);
        let folder = place.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)
            .map_err(|error| format!("{}: cannot make the folder: {error}", folder.display()))?;
        output::write(&place, record.write().as_bytes()).map_err(|error| error.to_string())
    }
}
