//! A capture read in steps, to be summed up.

use super::{Filter, called};
use crate::Error;
use crate::capture::container::Reader;
use crate::capture::decode::What;
use crate::capture::{Capture, Collector, open};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Frames that one step reads.
const STEP: usize = 100_000;

/// A capture that is being read, without payloads.
pub struct Loading {
    path: PathBuf,
    reader: Reader<Box<dyn Read + Send>>,
    collector: Collector,
    filter: Filter,
    bytes: u64,
}

impl Loading {
    /// Opens the capture at `path`; `-` is standard input. Frames that `filter` does not match are left out.
    ///
    /// # Errors
    /// The file cannot be read, or is no pcap or pcapng.
    pub fn new(path: impl AsRef<Path>, filter: Filter) -> Result<Self, Error> {
        let path = path.as_ref();
        let reader = super::reader(open(path)?, called(path))?;
        let collector = Collector::without_payloads(reader.format());
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(Self { path: called(path).into(), reader, collector, filter, bytes })
    }

    /// Reads some more frames; false at the end.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn step(&mut self) -> Result<bool, Error> {
        for _ in 0..STEP {
            match self.reader.next().map_err(|stop| stop.in_file(&self.path))? {
                None => return Ok(false),
                Some(item) => {
                    let decoded = item.decode();
                    if matches!(decoded.content, Ok(What::Other)) || self.filter.matches(&decoded) {
                        self.collector.frame(&decoded);
                    }
                }
            }
        }
        Ok(true)
    }

    /// How much of the file has been read, from 0 to 1; `None` where its length is not known.
    pub fn fraction(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.reader.position() as f64 / self.bytes as f64).min(1.0))
    }

    /// What has been read.
    pub fn finish(self) -> Capture {
        self.collector.finish()
    }
}
