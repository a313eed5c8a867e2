//! What is noted of a run: probes, series over time, samples.

pub mod probe;
pub(crate) mod sample;
pub(crate) mod timeline;
