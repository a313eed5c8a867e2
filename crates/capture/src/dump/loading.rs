//! A capture read in steps, to be summed up.

use super::{Filter, called};
use crate::container::Reader;
use crate::decode::What;
use crate::open;
use crate::summary::{Summary, Summing, points::Points};
use std::io::Read;
use std::path::{Path, PathBuf};
use tlplab_trace::Error;

/// Frames that one step reads.
const STEP: usize = 100_000;

/// A capture that is being read and summed up.
pub struct Loading {
    path: PathBuf,
    reader: Reader<Box<dyn Read + Send>>,
    summing: Summing,
    filter: Filter,
    bytes: u64,
}

impl Loading {
    /// Opens the capture at `path`; `-` is standard input. Frames that `filter` does not match are left out.
    ///
    /// # Errors
    /// The file cannot be read, or is no pcap or pcapng.
    pub fn new(path: impl AsRef<Path>, filter: Filter, with_points: bool) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(Self { bytes, ..Self::reading(open(path)?, called(path), filter, with_points)? })
    }

    /// Reads a capture from `input`, which errors call `name`.
    ///
    /// # Errors
    /// As [`Loading::new`].
    pub fn reading(
        input: impl Read + Send + 'static,
        name: impl AsRef<Path>,
        filter: Filter,
        with_points: bool,
    ) -> Result<Self, Error> {
        let path = name.as_ref();
        let reader = super::reader(Box::new(input) as Box<dyn Read + Send>, path)?;
        Ok(Self { path: path.into(), reader, summing: Summing::new(with_points), filter, bytes: 0 })
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
                        self.summing.frame(&decoded);
                    } else {
                        self.summing.left_out(&decoded);
                    }
                }
            }
        }
        Ok(true)
    }

    /// The part of the file that has been read, from 0 to 1; `None` where its length is not known.
    pub fn fraction(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.reader.position() as f64 / self.bytes as f64).min(1.0))
    }

    /// Reads what is left, and gives what there is to say, and the points if they were asked for.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn finish(mut self) -> Result<(Summary, Points), Error> {
        while self.step()? {}
        Ok(self.summing.finish())
    }
}
