//! The store of a namespace's data.

use crate::pages::Pages;

/// The medium did not take data, or lost them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the medium: {0}")]
pub struct MediumError(pub String);

/// The holder of a namespace's data when power is off. What was written is there after the next [`flush`](Self::flush); before
/// that, whoever implements it may hold it back.
pub trait Medium: Send {
    /// Copies what is at byte `at` into `out`. What was never written, or was discarded, reads as zero.
    fn read(&self, at: u64, out: &mut [u8]);
    /// Copies `data` to byte `at`. The device writes whole blocks.
    fn write(&mut self, at: u64, data: &[u8]);
    /// These bytes are zero from now on.
    fn discard(&mut self, at: u64, bytes: u64);
    /// Returns when all that was written is where it is not lost.
    ///
    /// # Errors
    /// Some of it is not. The command that asked fails with Write Fault.
    fn flush(&mut self) -> Result<(), MediumError>;
    /// A copy; none, if the data are elsewhere: in a file.
    fn snapshot(&self) -> Option<Box<dyn Medium>> {
        None
    }
}

/// A medium in memory: pages exist where something was written.
#[derive(Clone, Debug, Default)]
pub struct SparseMedium(Pages);

impl SparseMedium {
    /// A medium on which nothing was written.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Medium for SparseMedium {
    fn read(&self, at: u64, out: &mut [u8]) {
        self.0.read(at, out);
    }
    fn write(&mut self, at: u64, data: &[u8]) {
        self.0.write(at, data);
    }
    fn discard(&mut self, at: u64, bytes: u64) {
        self.0.clear(at, bytes);
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
    fn snapshot(&self) -> Option<Box<dyn Medium>> {
        Some(Box::new(self.clone()))
    }
}
