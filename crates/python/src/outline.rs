//! An experiment, read and checked, as data: what it is made of.

use crate::{error, files};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::load::{Op, Pace, Work};
use tlplab_experiment::{Experiment, FileKind, Options};
use tlplab_fabric::config::LinkConfig;

/// Reads an experiment without running it, and looks whether there is room for what it describes; its outline as JSON. It may have no
/// load if `loads_follow`; `text` takes the place of what is at `path`.
#[pyfunction]
#[pyo3(signature = (path, *, text = None, overrides = Vec::new(), load = None, loads_follow = false))]
pub(crate) fn check(
    py: Python<'_>,
    path: &str,
    text: Option<&str>,
    overrides: Vec<String>,
    load: Option<String>,
    loads_follow: bool,
) -> PyResult<String> {
    let options = Options { set: overrides, load, reader: loads_follow, ..Options::default() };
    let experiment = parse(py, path, text, &options)?;
    look_closer(py, &experiment)?;
    Ok(outline(&experiment).to_string())
}

/// Checks that the experiment's fabric has room for its components, and that the files for its guest exist.
fn look_closer(py: Python<'_>, experiment: &Experiment) -> PyResult<()> {
    let for_guest = experiment.files.iter().filter(|file| file.kind == FileKind::Guest);
    let absent = for_guest.filter(|file| !Path::new(&file.path).is_file());
    let mut mistakes: Vec<_> = absent.map(|file| file.missing("there is no such file")).collect();
    mistakes.extend(py.detach(|| experiment.without_room()));
    if mistakes.is_empty() { Ok(()) } else { Err(error::experiment(py, &mistakes)) }
}

/// Reads the experiment of a guest, or of several; its outline, or that of each machine with the cables between them, as JSON.
#[pyfunction]
#[pyo3(signature = (path, *, overrides = Vec::new()))]
pub(crate) fn check_guests(py: Python<'_>, path: &str, overrides: Vec<String>) -> PyResult<String> {
    let options = Options { set: overrides.clone(), guest: Some(GuestKind::UserMode), ..Options::default() };
    let read = |wanted: &str| files::read_text(wanted);
    let found = py.detach(|| Experiment::parse_machines(&read, path, &options));
    let found = found.map_err(|mistakes| error::experiment(py, &mistakes))?;
    let machines = found.machines.iter().map(|(name, experiment)| {
        look_closer(py, experiment)?;
        Ok(json!({ "name": name, "outline": outline(experiment) }))
    });
    let machines = machines.collect::<PyResult<Vec<_>>>()?;
    let cables = found.cables.iter().map(|cable| {
        let ends = cable.ends.each_ref().map(|(machine, device)| json!([machine, device]));
        json!({ "name": cable.name, "ends": ends, "delay_fs": cable.delay.as_fs() })
    });
    let cables: Vec<_> = cables.collect();
    let one = if machines.is_empty() { Some(check(py, path, None, overrides, None, false)?) } else { None };
    let one: Option<Value> = one.and_then(|text| serde_json::from_str(&text).ok());
    Ok(json!({ "outline": one, "machines": machines, "cables": cables }).to_string())
}

/// Reads an experiment and everything it includes; `text` takes the place of what is at `path`.
pub(crate) fn parse(
    py: Python<'_>,
    path: &str,
    text: Option<&str>,
    options: &Options,
) -> PyResult<Experiment> {
    let read = |wanted: &str| match text {
        Some(text) if wanted == path => Ok(text.to_owned()),
        _ => files::read_text(wanted),
    };
    py.detach(|| Experiment::parse_all(&read, path, options))
        .map_err(|mistakes| error::experiment(py, &mistakes))
}

fn outline(experiment: &Experiment) -> Value {
    let fabric = &experiment.fabric;
    let switches = fabric.switches.iter().map(
        |s| json!({ "name": s.name, "under": s.uplink.under, "link": link(&s.uplink), "model": "switch" }),
    );
    let buses = fabric.buses.iter().map(
        |b| json!({ "name": b.name, "under": b.uplink.under, "link": link(&b.uplink), "model": b.label() }),
    );
    let devices = fabric.devices.iter().zip(&experiment.devices).map(|(device, spec)| {
        // A device on a bus has no link.
        let link = device.bus.is_none().then(|| link(&device.link));
        json!({ "name": device.name, "under": device.link.under, "link": link, "model": spec.model.name() })
    });
    let loads = experiment.loads.iter().map(|load| {
        json!({ "name": load.name, "device": load.device, "target": load.target, "work": work(&load.work) })
    });
    json!({
        "title": experiment.title,
        "seed": fabric.seed,
        "host": fabric.host.name,
        "settings": experiment.settings,
        "components": switches.chain(buses).chain(devices).collect::<Vec<_>>(),
        "loads": loads.collect::<Vec<_>>(),
        "guest": experiment.guest.as_ref().map(|guest| json!({ "run": guest.run, "files": guest.files })),
        "files": experiment.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
    })
}

fn link(link: &LinkConfig) -> String {
    format!("{} {}", link.generation, link.width)
}

/// The work of a load, in a few words: `write 4096 B, 32 outstanding`.
fn work(work: &Work) -> String {
    let load = match work {
        Work::Replay { file, .. } => return format!("replay {file}"),
        Work::Dd(dd) => {
            let op = if dd.write { "dd write" } else { "dd read" };
            return format!("{op} {} x {} B, {} B a request", dd.count, dd.block, dd.request);
        }
        Work::Transfer(load) => {
            let way = if load.to_card { "to" } else { "from" };
            return format!(
                "{} x {} B {way} the card, {} outstanding",
                load.count, load.bytes, load.outstanding
            );
        }
        Work::Generate(load) => load,
    };
    let op = match load.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Both => "read and write",
        Op::MmioRead => "MMIO read",
        Op::MmioWrite => "MMIO write",
    };
    let pace = match load.pace {
        Pace::Outstanding(n) => format!("{n} outstanding"),
        Pace::Rate(rate) => in_words(rate),
    };
    format!("{op} {} B, {pace}", load.size)
}

/// A rate in the largest unit of which it is at least one: `25 Gb/s`.
fn in_words(rate: u64) -> String {
    let units = [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")];
    let found = units.into_iter().find(|(factor, _)| rate as f64 >= *factor);
    let (factor, unit) = found.unwrap_or((1.0, "b/s"));
    format!("{} {unit}", rate as f64 / factor)
}
