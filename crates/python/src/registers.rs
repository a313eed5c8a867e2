//! The values of the registers of a function, as the dictionary that `tlplab.scan` keeps.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tlplab_cfgspace::facts::{Express, Facts, Found, Link, port_name};
use tlplab_cfgspace::lspci::class_name;
use tlplab_units::Generation;

/// The values of the dumped registers of a function; registers outside the dump are absent.
#[pyfunction]
pub(crate) fn registers<'py>(py: Python<'py>, dumped: &[u8]) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(facts) = Facts::new(dumped) else { return Ok(None) };
    let dict = PyDict::new(py);
    let (vendor, device) = facts.ids();
    dict.set_item("vendor", vendor)?;
    dict.set_item("device", device)?;
    dict.set_item("class_code", facts.class() >> 8)?;
    dict.set_item("class_name", class_name(facts.class()))?;
    dict.set_item("revision", facts.revision())?;
    dict.set_item("header", facts.header_type())?;
    dict.set_item("bus_master", facts.bus_master())?;
    if let Some([primary, secondary, subordinate]) = facts.buses() {
        dict.set_item("primary", primary)?;
        dict.set_item("secondary", secondary)?;
        dict.set_item("subordinate", subordinate)?;
    }
    dict.set_item("capabilities_known", facts.capabilities_known)?;
    dict.set_item("extended_known", facts.extended_known)?;
    let chain = |found: &[Found]| -> Vec<_> { found.iter().map(|c| (c.offset, c.version, c.id)).collect() };
    dict.set_item("capabilities", chain(&facts.capabilities))?;
    dict.set_item("extended", chain(&facts.extended))?;
    if let Some(state) = facts.power_state() {
        dict.set_item("power_state", format!("D{state}"))?;
    }
    if let Some((there, on)) = facts.access_control() {
        dict.set_item("access_control_bits", (there, on))?;
    }
    if let Some(forbidden) = facts.egress_forbidden() {
        dict.set_item("egress_forbidden", forbidden)?;
    }
    if let Some((enabled, unit)) = facts.address_translation() {
        dict.set_item("ats_enabled", enabled)?;
        dict.set_item("ats_unit", unit)?;
    }
    if let Some((uncorrectable, correctable)) = facts.errors() {
        dict.set_item("error_bits", (uncorrectable, correctable))?;
    }
    if let Some(counts) = facts.virtual_functions() {
        dict.set_item("virtual_functions", counts.to_vec())?;
    }
    if let Some(found) = facts.express() {
        express(&dict, &found)?;
    }
    Ok(Some(dict))
}

fn express(dict: &Bound<'_, PyDict>, found: &Express) -> PyResult<()> {
    dict.set_item("express_version", found.version)?;
    dict.set_item("port", port_name(found.kind))?;
    dict.set_item("slot", found.slot)?;
    dict.set_item("mps_supported", found.mps_supported)?;
    dict.set_item("mps", found.mps)?;
    dict.set_item("mrrs", found.mrrs)?;
    dict.set_item("extended_tags_supported", found.extended_tags_supported)?;
    dict.set_item("extended_tags", found.extended_tags)?;
    dict.set_item("relaxed_ordering", found.relaxed_ordering)?;
    dict.set_item("no_snoop", found.no_snoop)?;
    dict.set_item("ten_bit_tags", found.ten_bit_tags)?;
    dict.set_item("detected_bits", found.detected)?;
    found.link.map_or(Ok(()), |found| link(dict, &found))
}

fn link(dict: &Bound<'_, PyDict>, found: &Link) -> PyResult<()> {
    // What names no speed is unknown.
    let speed = |generation: u8| Generation::new(generation).map(Generation::number);
    dict.set_item("speed_possible", speed(found.speed_possible))?;
    dict.set_item("width_possible", found.width_possible)?;
    dict.set_item("port_number", found.port_number)?;
    dict.set_item("aspm_supported_bits", found.aspm_supported)?;
    dict.set_item("aspm_bits", found.aspm)?;
    dict.set_item("rcb", found.rcb)?;
    dict.set_item("link_disabled", found.disabled)?;
    dict.set_item("speed", speed(found.speed))?;
    dict.set_item("width", found.width)?;
    dict.set_item("training", found.training)?;
    dict.set_item("link_active", found.active)?;
    dict.set_item("bandwidth_changed", found.bandwidth_changed)?;
    dict.set_item("autonomous_changed", found.autonomous_changed)?;
    dict.set_item("target_speed", found.target_speed.and_then(speed))
}
