//! The names that experiments can use, and the content of an experiment file.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tlplab_experiment::{
    device_models as experiment_models, hosts as experiment_hosts, result as experiment_result,
    schema as experiment_schema,
};
use tlplab_units::{Generation, Width, quantity};

/// The host profiles: name and TOML text.
#[pyfunction]
pub(crate) fn hosts() -> Vec<(&'static str, &'static str)> {
    experiment_hosts::PROFILES.iter().map(|profile| (profile.name, profile.text)).collect()
}

/// The device models: name and what it does.
#[pyfunction]
pub(crate) fn models() -> Vec<(&'static str, &'static str)> {
    experiment_models::MODELS.iter().map(|model| (model.name, model.doc)).collect()
}

/// The generations of PCIe: number, transfers per second and lane in GT/s, and whether there are links in flit mode only.
#[pyfunction]
pub(crate) fn generations() -> Vec<(u8, f64, bool)> {
    let row = |generation: Generation| {
        let rate = f64::from(generation.mega_transfers()) / 1e3;
        (generation.number(), rate, generation.requires_flit_mode())
    };
    Generation::ALL.into_iter().map(row).collect()
}

/// The lanes that a link may have.
#[pyfunction]
pub(crate) fn widths() -> Vec<u16> {
    Width::ALL.into_iter().map(|width| width.lanes().into()).collect()
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub(crate) fn schema() -> String {
    format!("{:#}", experiment_schema::schema())
}

/// The JSON Schema of result documents.
#[pyfunction]
pub(crate) fn result_schema() -> String {
    format!("{:#}", experiment_result::schema())
}

/// Every key of an experiment file with its meaning, as Markdown.
#[pyfunction]
pub(crate) fn reference() -> String {
    experiment_schema::reference()
}

/// Bytes of a size such as "4KiB".
#[pyfunction]
pub(crate) fn size(text: &str) -> PyResult<u64> {
    quantity::size(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Femtoseconds of a time such as "1.5us".
#[pyfunction]
pub(crate) fn duration_fs(text: &str) -> PyResult<u64> {
    let duration = quantity::time(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(duration.as_fs())
}

/// Bits per second of a rate such as "25Gb/s".
#[pyfunction]
pub(crate) fn rate(text: &str) -> PyResult<u64> {
    quantity::rate(text).map_err(|error| PyValueError::new_err(error.to_string()))
}
