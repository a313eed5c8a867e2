//! From the text of an experiment to plain data.

use crate::check;
use crate::device_models::ModelSpec;
use crate::domains;
use crate::error::{At, Error, Problem, Sources, join_path};
use crate::fault;
use crate::guest::{self, GuestKind, GuestSpec};
use crate::hosts;
use crate::keys::{Keys, Kind};
use crate::ladder::Trigger;
use crate::load::{self, LoadSpec, Work};
use crate::machines::{self, Machines};
use crate::overrides;
use crate::settings::{self, Settings};
use crate::stop::{self, Stop};
use crate::tables;
use crate::topology::{self, DeviceSpec};
use crate::translation;
use crate::tree::{self, Entry, Node, Value};
use crate::view::View;
use std::collections::BTreeMap;
use tlplab_fabric::config::FabricConfig;

/// An experiment: everything a run needs, except the contents of [`Experiment::files`].
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its title.
    pub title: String,
    /// The end of the run.
    pub stop: Stop,
    /// The fabric.
    pub fabric: FabricConfig,
    /// The model of each device, sorted by name as `fabric.devices` is.
    pub devices: Vec<DeviceSpec>,
    /// The device whose driver is outside; see [`Options::driven`].
    pub driven: Option<String>,
    /// A program that is outside reads registers; see [`Options::reader`].
    pub reader: bool,
    /// The Linux that is the host's software, if one is to be.
    pub guest: Option<GuestSpec>,
    /// It is, in this run; see [`Options::guest`].
    pub guest_runs: bool,
    /// The loads of devices and of the host, sorted by name.
    pub loads: Vec<LoadSpec>,
    /// The packets that the report shows one by one.
    pub ladder: LadderSpec,
    /// The conditions on figures of the run.
    pub expected: Vec<Expected>,
    /// Files that the caller has to bring.
    pub files: Vec<NeededFile>,
    /// The place that describes each component, and under no name the whole.
    places: BTreeMap<String, Error>,
    /// The text that was read: the file, its includes, and overrides, each under its name.
    pub source: String,
    /// The resolved keys: every key with its value, those of the host's profile and defaults included, whichever file or override set it.
    pub resolved: String,
    /// The same key by key, without what makes no difference to a run.
    pub settings: Settings,
}

/// The packets that the report shows one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LadderSpec {
    /// The start of the window; `None`: half of the run.
    pub trigger: Option<Trigger>,
    /// Packets that are kept.
    pub packets: usize,
}

/// A condition on a figure of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The figure, or what is computed from figures.
    pub figure: String,
    /// A comparison: `>= 90 Gb/s`.
    pub comparison: String,
    /// A mistake that points at it.
    place: Error,
}

impl Expected {
    /// A mistake in it.
    pub fn mistake(&self, message: String, hint: Option<String>) -> Error {
        Error { message, hint, ..self.place.clone() }
    }
}

/// A file that an experiment names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededFile {
    /// Its path, joined with the folder of the file that names it.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
    /// The device or load that names it, and by which key.
    named_by: (String, &'static str),
    /// A mistake that points at that key; [`NeededFile::missing`] completes it.
    place: Error,
}

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A captured trace.
    Trace,
    /// A device or a driver in Python.
    Python,
    /// A library with a device.
    Library,
    /// A library with a device made of RTL.
    Rtl,
    /// The script of a guest, or a file for it.
    Guest,
    /// The data of a storage device.
    Medium,
}

impl NeededFile {
    /// True if the device or load `name` names it by `key`.
    pub fn is_named_by(&self, name: &str, key: &str) -> bool {
        self.named_by.0 == name && self.named_by.1 == key
    }
    /// The mistake to report when the file cannot be used, and why.
    pub fn missing(&self, why: &str) -> Error {
        Error { message: format!("cannot use \"{}\": {why}", self.path), ..self.place.clone() }
    }
}

/// Additions of the command line to a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `key=value` each, applied in order.
    pub set: Vec<String>,
    /// A file whose loads take the place of the experiment's.
    pub load: Option<String>,
    /// Takes the place of the experiment's seed.
    pub seed: Option<u64>,
    /// A device that somebody outside drives: neither its own driver nor the host's loads on it run, and it is enough to happen.
    pub driven: Option<String>,
    /// Somebody outside reads registers, as one more program of the host; it is enough to happen.
    pub reader: bool,
    /// The machine to use of a file that describes several.
    pub machine: Option<String>,
    /// A guest is the host's software: nobody else enumerates, drives devices or makes loads, and the guest is enough to happen.
    pub guest: Option<GuestKind>,
}

/// Gives the text of a file, or the reason why it cannot be had.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

impl Experiment {
    /// A mistake in a component; in the whole, if there is none of this name.
    pub(crate) fn mistake(&self, component: &str, message: String, hint: Option<String>) -> Error {
        let of = component.rsplit_once('.').map_or(component, |(of, _)| of);
        let found = [component, of, ""].into_iter().find_map(|name| self.places.get(name));
        let place = found.cloned().expect("the whole has a place");
        Error { message, hint, ..place }
    }

    /// Its host's software is a guest, which does not run here: what is to be said to who runs it all the same.
    pub fn lacks_guest(&self) -> Option<Error> {
        let lacks = self.guest.is_some() && !self.guest_runs;
        let hint =
            || Some("boot it with tlplab guest uml, or inspect it with tlplab check or lspci".to_owned());
        lacks.then(|| self.mistake("guest", "the software of this host is a Linux guest".into(), hint()))
    }

    /// Reads the experiment at `path`; `read` brings the text of it and of what it includes.
    ///
    /// # Errors
    /// The first mistake, in the order of the file.
    pub fn parse(read: ReadFile<'_>, path: &str) -> Result<Self, Error> {
        Self::parse_with(read, path, &Options::default())
    }

    /// As [`Experiment::parse`], with overrides.
    ///
    /// # Errors
    /// The first mistake, in the order of the file, then of the overrides.
    pub fn parse_with(read: ReadFile<'_>, path: &str, options: &Options) -> Result<Self, Error> {
        Self::parse_all(read, path, options).map_err(|mut errors| errors.swap_remove(0))
    }

    /// As [`Experiment::parse_with`], and keeps looking after the first mistake where that can be done.
    ///
    /// # Errors
    /// Every misspelt key and wrong value of the first file that has any; otherwise the first mistake in what they mean.
    /// There is at least one.
    pub fn parse_all(read: ReadFile<'_>, path: &str, options: &Options) -> Result<Self, Vec<Error>> {
        let (sources, mut root) = read_whole(read, path, options)?;
        let one = |error| vec![error];
        machines::select(&sources, &mut root, options.machine.as_deref()).map_err(one)?;
        build(sources, root, read, path, options).map_err(one)
    }

    /// As [`Experiment::parse_all`], of a file that may describe several machines; `options` choose none of them.
    ///
    /// # Errors
    /// As [`Experiment::parse_all`].
    pub fn parse_machines(read: ReadFile<'_>, path: &str, options: &Options) -> Result<Machines, Vec<Error>> {
        let (sources, root) = read_whole(read, path, options)?;
        let machines = machines::names(&root).into_iter().map(|name| {
            let of = Options { machine: Some(name.clone()), ..options.clone() };
            Ok((name, Self::parse_all(read, path, &of)?))
        });
        let machines = machines.collect::<Result<Vec<_>, Vec<Error>>>()?;
        let cables = machines::cables(&sources, &root, &machines).map_err(|error| vec![error])?;
        Ok(Machines { machines, cables })
    }
}

/// The tree of a file and all that it includes, with overrides; its keys and values are what they may be.
fn read_whole(read: ReadFile<'_>, path: &str, options: &Options) -> Result<(Sources, Node), Vec<Error>> {
    let mut sources = Sources::default();
    let mut root = read_file(&mut sources, read, path, &tables::EXPERIMENT, &mut Vec::new(), None)?;
    if let Some(load) = &options.load {
        let loads = read_file(&mut sources, read, load, &tables::LOAD_FILE, &mut Vec::new(), None)?;
        replace_loads(&mut root, loads);
    }
    let one = |error| vec![error];
    for set in &options.set {
        let (key, value) = set.split_once('=').ok_or_else(|| {
            one(Error {
                file: "--set".into(),
                line: 0,
                column: 0,
                key: set.clone(),
                message: "there is no value".into(),
                hint: Some("write key=value, as in switch.sw0.link=\"gen4 x8\"".into()),
            })
        })?;
        overrides::apply(&mut sources, &mut root, key.trim(), value).map_err(one)?;
    }
    let mistakes = check::check(&sources, &root, &Kind::Table(&tables::EXPERIMENT));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok((sources, root))
}

/// Reads a file and everything it includes, and lays it upon what it includes.
fn read_file(
    sources: &mut Sources,
    read: ReadFile<'_>,
    path: &str,
    section: &'static dyn Keys,
    way: &mut Vec<String>,
    named_at: Option<At>,
) -> Result<Node, Vec<Error>> {
    let refuse = |sources: &Sources, message: String| match named_at {
        Some(at) => vec![sources.error(at, "include", Problem::new(message))],
        None => {
            vec![Error { file: path.into(), line: 0, column: 0, key: String::new(), message, hint: None }]
        }
    };
    if way.iter().any(|p| p == path) {
        return Err(refuse(sources, format!("\"{path}\" includes itself")));
    }
    let text = read(path).map_err(|why| refuse(sources, format!("cannot read \"{path}\": {why}")))?;
    let file = sources.add(path, &text);
    let node = tree::parse(sources, file, &text).map_err(|e| vec![e])?;
    if let Some(mistake) = a_study(path, &node) {
        return Err(vec![mistake]);
    }
    let mistakes = check::check(sources, &node, &Kind::Table(section));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    way.push(path.into());
    let mut base: Option<Node> = None;
    for (at, include) in includes(&node) {
        let inner = read_file(sources, read, &join_path(path, &include), section, way, Some(at))?;
        match &mut base {
            None => base = Some(inner),
            Some(base) => {
                if let Some((key, first, second)) = tree::conflict(base, &inner, "") {
                    let there = sources.place(first);
                    let problem =
                        Problem::new(format!("this key is also set at {there}, and both files are included"));
                    return Err(vec![sources.error(second, &key, problem.hint("set it once"))]);
                }
                tree::merge(base, inner);
            }
        }
    }
    way.pop();
    Ok(match base {
        None => node,
        Some(mut base) => {
            tree::merge(&mut base, node);
            base
        }
    })
}

/// The mistake, if somebody gave a study where an experiment is meant.
fn a_study(path: &str, node: &Node) -> Option<Error> {
    const STUDIES: [&str; 4] = ["experiment", "model", "bench", "axis"];
    let table = if let Value::Table(table) = &node.value { table } else { return None };
    STUDIES.iter().any(|key| table.contains_key(*key)).then(|| Error {
        file: path.into(),
        line: 0,
        column: 0,
        key: String::new(),
        message: "this is a study of many points, not an experiment".into(),
        hint: Some(format!("run it with `tlplab sweep {path}`")),
    })
}

fn includes(node: &Node) -> Vec<(At, String)> {
    let one = |n: &Node| n.as_str().map(|text| (n.at, text.to_owned()));
    match node.get("include") {
        Some(Node { value: Value::Array(items), .. }) => items.iter().filter_map(one).collect(),
        Some(node) => one(node).into_iter().collect(),
        None => Vec::new(),
    }
}

fn replace_loads(root: &mut Node, mut loads: Node) {
    let (Some(table), Some(new)) = (root.as_table_mut(), loads.as_table_mut()) else { return };
    table.remove("load");
    if let (Some(old), Some(entry)) = (table.get("title"), new.get_mut("title"))
        && let (Some(old), Some(more)) = (old.node.as_str(), entry.node.as_str())
    {
        entry.node = Node::string(entry.node.at, format!("{old}: {more}"));
    }
    for key in ["stop", "warmup"] {
        if new.contains_key(key) {
            table.remove(key);
        }
    }
    tree::merge(root, loads);
}

fn build(
    mut sources: Sources,
    mut root: Node,
    read: ReadFile<'_>,
    path: &str,
    options: &Options,
) -> Result<Experiment, Error> {
    check::fill(&sources, &mut root, &tables::EXPERIMENT)?;
    resolve_host(&mut sources, &mut root, read, path)?;
    let resolved = resolved(&root);
    let mut settings = settings::settings(&sources, &root)?;
    settings.extend(options.seed.map(|seed| ("seed".to_owned(), seed.into())));
    let view = View::root(&sources, &root);
    let mut fabric = tables::EXPERIMENT.read_into(&view, FabricConfig::new())?;
    let title = view.require(&tables::EXPERIMENT, "title")?.text().to_owned();
    fabric.seed = options.seed.unwrap_or(fabric.seed);
    if let Some(said) = view.get("host") {
        tables::HOST.read(&said, &mut fabric.host)?;
    }
    let host = &mut fabric.host;
    let mut topology = topology::read(&view, host)?;
    host.domains = domains::read(&view, host, &topology)?;
    host.memory_domain = domains::of_memory(&view, host)?;
    host.maps = translation::read(&view, host, &topology)?;
    fault::read(&view, host.ecrc, &mut topology)?;
    let mut loads = load::read(&view, host, &topology.specs)?;
    let stop = stop::read(&view, &loads, fabric.warmup)?;
    let guest = guest::read(&view)?;
    let guest = if options.guest.is_some() { Some(guest.unwrap_or_default()) } else { guest };
    if let Some(kind) = options.guest {
        loads.clear();
        guest::take_over(host, guest.as_ref().expect("it runs"), kind);
    }
    let driven = options.driven.clone();
    loads.retain(|load| load.device != "host" || driven.as_ref() != Some(&load.target));
    if driven.is_none() && !options.reader && guest.is_none() {
        check_something_happens(&view, &loads, &topology.specs)?;
    }
    let ladder = tables::LADDER.read_under(&view, "ladder", LadderSpec { trigger: None, packets: 0 })?;
    let mut expected = Vec::new();
    view.get("expect").map_or(Ok(()), |figures| expectations(&figures, "", &mut expected))?;
    expected.sort_by_key(|one| (one.place.line, one.place.column));
    let files = files(&view, &loads, &topology.specs, guest.as_ref());
    (fabric.switches, fabric.buses, fabric.devices) = (topology.switches, topology.buses, topology.devices);
    let mut places = BTreeMap::from([(String::new(), view.key_error(Problem::new("")))]);
    places.extend(view.get("guest").map(|guest| ("guest".to_owned(), guest.key_error(Problem::new("")))));
    for table in ["switch", "bus", "device"] {
        let components = view.get(table);
        let components = components.iter().flat_map(View::entries);
        places.extend(
            components.map(|(name, component)| (name.to_owned(), component.key_error(Problem::new("")))),
        );
    }
    let source = source_text(&sources);
    let (devices, reader) = (topology.specs, options.reader);
    let guest_runs = options.guest.is_some();
    Ok(Experiment {
        title,
        stop,
        fabric,
        devices,
        driven,
        reader,
        guest,
        guest_runs,
        loads,
        ladder,
        expected,
        files,
        places,
        source,
        resolved,
        settings,
    })
}

/// The content of the tree, without keys that make no difference to a run.
fn resolved(root: &Node) -> String {
    let mut root = root.clone();
    if let Some(table) = root.as_table_mut() {
        table.retain(|key, _| !matches!(key.as_str(), "title" | "expect" | "include"));
    }
    tree::canonical(&root)
}

/// Figures and their comparisons; of tables in each other the keys are joined by dots.
fn expectations(table: &View<'_>, before: &str, found: &mut Vec<Expected>) -> Result<(), Error> {
    for (name, entry) in table.entries() {
        let figure = tree::join(before, name);
        let mut add = |one: &View<'_>| match one.node.as_str() {
            Some(text) => {
                let place = one.error("");
                found.push(Expected { figure: figure.clone(), comparison: text.trim().to_owned(), place });
                Ok(())
            }
            None => {
                let problem = Problem::new(format!("{} is not a comparison", one.node.describe()));
                Err(one.problem(problem.hint("write it in quotes, as in \">= 90 Gb/s\"")))
            }
        };
        match &entry.node.value {
            Value::Table(_) => expectations(&entry, &figure, found)?,
            Value::Array(_) => entry.items().iter().try_for_each(&mut add)?,
            _ => add(&entry)?,
        }
    }
    Ok(())
}

fn resolve_host(sources: &mut Sources, root: &mut Node, read: ReadFile<'_>, path: &str) -> Result<(), Error> {
    let Some(entry) = root.as_table_mut().and_then(|t| t.get_mut("host")) else { return Ok(()) };
    let mut host = entry.node.clone();
    hosts::expand(&mut host);
    let said = host.get("profile").cloned();
    let (at, name) =
        said.as_ref().map_or((entry.key_at, "ideal"), |node| (node.at, node.as_str().unwrap_or("ideal")));
    let from = sources.name(at.file);
    let from = if from.ends_with(".toml") { from.to_owned() } else { path.to_owned() };
    let name = if name.ends_with(".toml") { join_path(&from, name) } else { name.to_owned() };
    let node = hosts::resolve(sources, host, (at, &name), read)?;
    *entry = Entry { key_at: entry.key_at, node };
    Ok(())
}

fn check_something_happens(root: &View<'_>, loads: &[LoadSpec], devices: &[DeviceSpec]) -> Result<(), Error> {
    let acts = |d: &DeviceSpec| d.driver.is_some() || !d.model.takes_loads() && !d.model.waits_for_a_load();
    if !loads.is_empty() || devices.iter().any(acts) {
        return Ok(());
    }
    let hint = format!("for example [load] {} = {{ op = \"write\", size = \"4KiB\" }}", devices[0].name);
    Err(root.key_error(Problem::new("nothing happens: there is no load").hint(hint)))
}

fn files(
    root: &View<'_>,
    loads: &[LoadSpec],
    devices: &[DeviceSpec],
    guest: Option<&GuestSpec>,
) -> Vec<NeededFile> {
    let needed = |table: &str, name: &str, key: &'static str, path: &str, kind| {
        let view = root.get(table)?.get(name)?.get(key)?;
        let named_by = (name.to_owned(), key);
        Some(NeededFile { path: path.to_owned(), kind, named_by, place: view.error("") })
    };
    let traces = loads.iter().filter_map(|load| match &load.work {
        Work::Replay { file, .. } => needed("load", &load.name, "replay", file, FileKind::Trace),
        Work::Generate(_) | Work::Dd(_) | Work::Transfer(_) => None,
    });
    let models = devices.iter().filter_map(|device| match &device.model {
        ModelSpec::Python { object, .. } => {
            needed("device", &device.name, "model", &object.file, FileKind::Python)
        }
        ModelSpec::Library(library) => {
            needed("device", &device.name, "model", &library.file, FileKind::Library)
        }
        ModelSpec::Rtl(rtl) => needed("device", &device.name, "model", &rtl.file, FileKind::Rtl),
        ModelSpec::Nvme(nvme) => {
            needed("device", &device.name, "file", nvme.file.as_ref()?, FileKind::Medium)
        }
        _ => None,
    });
    let drivers = devices.iter().filter_map(|device| {
        let object = device.driver.as_ref()?;
        needed("device", &device.name, "driver", &object.file, FileKind::Python)
    });
    let of_guest = |key: &'static str, path: &str| {
        let place = root.get("guest")?.get(key)?.error("");
        let named_by = ("guest".to_owned(), key);
        Some(NeededFile { path: path.to_owned(), kind: FileKind::Guest, named_by, place })
    };
    let script = guest.and_then(|guest| of_guest("run", guest.run.as_ref()?));
    let for_guest = guest.iter().flat_map(|guest| &guest.files).filter_map(|path| of_guest("files", path));
    traces.chain(models).chain(drivers).chain(script).chain(for_guest).collect()
}

/// One file as it is; several with a comment line before each.
fn source_text(sources: &Sources) -> String {
    let texts: Vec<_> = sources.texts().collect();
    match texts.as_slice() {
        [(_, text)] => (*text).to_owned(),
        texts => texts
            .iter()
            .map(|(name, text)| match *name {
                "--set" => format!("# --set {text}\n"),
                name => format!("# {name}\n{text}\n"),
            })
            .collect(),
    }
}
