//! Benchmarks as the subject of a study: what `tlplab bench` takes are its keys, and those of the host.

use crate::figures::Metrics;
use crate::files::{Files, KnownMachine};
use crate::key::Key as Hash;
use crate::options::{Form, Keys, Refusal, Resolved, Written, key};
use crate::place::Place;
use crate::record::Record;
use crate::run::{Build, InPython, Prepared, Went, Work};
use crate::subject::Ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tlplab_bench::{Case, ClosedForm, Machine, MeasureError, Measured, Setup, Simulator, Target};
use tlplab_experiment::Error;
use tlplab_units::{Mps, Mrrs};
use toml::Spanned;

/// A benchmark, and what its keys hold at all points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// The folder of the study: files are beside it.
    folder: String,
    keys: BTreeMap<String, String>,
}

const KEYS: Keys = Keys {
    of: "a benchmark",
    keys: &[&[
        key("test", Form::Word(&["lat_rd", "lat_wrrd", "bw_rd", "bw_wr", "bw_rdwr"]), ""),
        key("on", Form::Text, "simulator"),
        key("host", Form::Text, "server"),
        key("device", Form::Text, ""),
        key("link", Form::Text, "\"gen3 x8\""),
        key("iommu", Form::Word(&["off", "on", "nosp"]), ""),
        key("mps", Form::Size, ""),
        key("mrrs", Form::Size, ""),
        key("size", Form::Size, "64B"),
        key("window", Form::Size, "8KiB"),
        key("offset", Form::Size, "0B"),
        key("device_offset", Form::Size, "0B"),
        key("pattern", Form::Word(&["sequential", "random"]), "sequential"),
        key("cache", Form::Word(&["cold", "host-warm", "device-warm", "device-thrash"]), "host-warm"),
        key("node", Form::Word(&["local", "remote"]), "local"),
        key("at_once", Form::Whole(1), ""),
        key("interface", Form::Word(&["command", "dma"]), "dma"),
        key("count", Form::Whole(1), ""),
        key("seed", Form::Whole(0), "1"),
    ]],
};
/// Keys that begin so are of the host.
const HOST: &str = "host.";
/// The device that is measured if nobody says.
const DEVICE: &str = "nfp6000";

/// The keys, but for those of the host.
pub fn keys() -> Vec<&'static str> {
    KEYS.names()
}

/// A benchmark whose device is in Python, as whoever makes it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnDevice {
    /// The case.
    pub case: Case,
    /// `file.py:Class`.
    pub target: String,
    /// The host's profile.
    pub host: String,
    /// Keys of the host.
    pub host_keys: Vec<(String, String)>,
    /// The link.
    pub link: String,
    /// Its lanes.
    pub lanes: u8,
}

impl Bench {
    pub(crate) fn read(place: Place<'_>, written: &Spanned<Written>, folder: String) -> Result<Self, Error> {
        let table = written.get_ref();
        let bench = Self { folder, keys: KEYS.read(place, "bench", table, "")? };
        if let Some(on) = table.get("on") {
            target(on.get_ref().as_str().unwrap_or_default())
                .map_err(|(message, hint)| place.mistake(on.span(), "bench.on", message, hint))?;
        }
        Ok(bench)
    }

    #[allow(clippy::unused_self)] // as other subjects are asked
    pub(crate) fn check_key(&self, name: &str) -> Result<(), Refusal> {
        if name.starts_with(HOST) { Ok(()) } else { KEYS.check(name) }
    }

    pub(crate) fn prepare(&self, ask: &Ask, files: &Files, build: &Build) -> Result<Prepared, String> {
        let (of_host, set): (Vec<String>, Vec<String>) =
            ask.set.iter().cloned().partition(|set| set.trim().starts_with(HOST));
        let mut options = KEYS.resolve(&self.keys, &set)?;
        options.seed(ask.seed);
        let case = case(&options)?;
        let setup = self.setup(&options, &of_host)?;
        let on = target(options.word("on")).map_err(|(message, _)| message)?;
        let known = files.machine(&setup)?;
        let mut keys = known.files.clone();
        let (mut opened, mut in_python) = (Vec::new(), None);
        if let On::Device { file, class } = on {
            if let Some(key) = ["device", "mps", "mrrs"].into_iter().find(|key| options.has(key)) {
                return Err(format!("{key}: the device in Python replaces the profile; leave this key out"));
            }
            let path = self.join(&file);
            keys.push((path.clone(), files.key(&path).map_err(|why| format!("on: {path}: {why}"))?));
            in_python = Some(InPython::Bench(OnDevice {
                case: case.clone(),
                target: format!("{path}:{class}"),
                host: setup.host.clone(),
                host_keys: setup.host_keys.clone(),
                link: setup.link.clone(),
                lanes: lanes(&known.machine),
            }));
            opened.push(path);
        }
        let of_host = format!("{:?}", setup.host_keys);
        let resolved = options.to_string();
        let by = if in_python.is_some() { &build.python } else { &build.simulator };
        let parts: Vec<(&str, &[u8])> =
            vec![("build", by.as_bytes()), ("bench", resolved.as_bytes()), ("host", of_host.as_bytes())];
        let key = Hash::of_run(parts, &keys);
        let seed = Some(case.seed);
        let work = Work::Bench(Box::new(Ready { known, case, by_model: options.word("on") == "model" }));
        Ok(Prepared { key, seed, in_python, files: keys, opened, work })
    }

    fn join(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}{path}", self.folder) }
    }

    fn setup(&self, options: &Resolved, of_host: &[String]) -> Result<Setup, String> {
        let file = |name: &str| if name.ends_with(".toml") { self.join(name) } else { name.to_owned() };
        let bytes = |name: &str| -> Result<Option<u32>, String> {
            let bytes = options.number(name).map(u32::try_from).transpose();
            bytes.map_err(|_| format!("{name} must be a power of two from 128 to 4096 bytes"))
        };
        let wrong = |name: &str| format!("{name} must be a power of two from 128 to 4096 bytes");
        let (mps, mrrs) = (bytes("mps")?, bytes("mrrs")?);
        let mut host_keys: Vec<(String, String)> = Vec::new();
        for set in of_host {
            let (name, value) = set.split_once('=').unwrap_or((set, ""));
            host_keys.push((name.trim()[HOST.len()..].to_owned(), value.trim().to_owned()));
        }
        let modes = [("off", "off"), ("on", "superpages"), ("nosp", "4KiB")];
        let mode = options.text("iommu").and_then(|word| modes.iter().find(|(name, _)| *name == word));
        host_keys.extend(mode.map(|(_, mode)| ("iommu.mode".to_owned(), (*mode).to_owned())));
        Ok(Setup {
            host: file(options.word("host")),
            host_keys,
            device: file(options.text("device").unwrap_or(DEVICE)),
            link: options.word("link").to_owned(),
            mps: mps.map(|bytes| Mps::new(bytes).ok_or_else(|| wrong("mps"))).transpose()?,
            mrrs: mrrs.map(|bytes| Mrrs::new(bytes).ok_or_else(|| wrong("mrrs"))).transpose()?,
        })
    }
}

/// The target of a benchmark.
enum On {
    /// The simulator, or the closed form.
    Core,
    /// A device in Python, in the simulator.
    Device { file: String, class: String },
}

/// The target of a name. What is measured in wall time is none: it never repeats, and results are kept by what they follow from.
fn target(name: &str) -> Result<On, Refusal> {
    if matches!(name, "simulator" | "model") {
        return Ok(On::Core);
    }
    if name.split(':').next() == Some("cuda") {
        let message = "measurements on a GPU do not repeat, and a study keeps results by their inputs";
        let hint = "use `tlplab bench … --on cuda --json FILE`";
        return Err((message.into(), Some(hint.into())));
    }
    match name.rsplit_once(':') {
        Some((file, class)) if file.ends_with(".py") => {
            Ok(On::Device { file: file.into(), class: class.into() })
        }
        _ => Err((
            format!("unknown target \"{name}\""),
            Some("expected simulator, model or FILE.py:CLASS".into()),
        )),
    }
}

fn case(options: &Resolved) -> Result<Case, String> {
    let test = options.text("test").ok_or("test is missing; set one, such as lat_rd")?;
    let at_once = options.number("at_once").map(u32::try_from).transpose();
    let case = serde_json::json!({
        "test": test,
        "interface": options.word("interface"),
        "pattern": options.word("pattern"),
        "cache": options.word("cache"),
        "node": options.word("node"),
        "host_offset": options.number("offset"),
        "device_offset": options.number("device_offset"),
        "window": options.number("window"),
        "size": options.number("size"),
        "count": options.number("count"),
        "seed": options.number("seed"),
        "at_once": at_once.map_err(|_| "at_once is out of range; expected 1 to 65536")?,
    });
    let case: Case = serde_json::from_value(case).map_err(|error| error.to_string())?;
    case.check().map_err(|error| error.to_string())?;
    Ok(case)
}

fn lanes(machine: &Machine) -> u8 {
    machine.fabric.devices[0].link.width.lanes()
}

/// A benchmark that is about to be run.
pub(crate) struct Ready {
    known: Arc<KnownMachine>,
    case: Case,
    by_model: bool,
}

impl Ready {
    pub(crate) fn run(self, cancel: &AtomicBool) -> Went {
        let machine = &self.known.machine;
        let lanes = lanes(machine);
        let target: Box<dyn Target> = if self.by_model {
            Box::new(ClosedForm::new(machine.clone()))
        } else {
            Box::new(Simulator::new(machine.clone()))
        };
        let run = target.run(&self.case, &mut |_| !cancel.load(Ordering::Relaxed));
        match run {
            Ok(measured) if !measured.complete => Went::Cancelled,
            Ok(measured) => Went::Done(record(&measured, lanes)),
            Err(error @ MeasureError::Failed(_)) => {
                Went::Done(Record { failure: Some(error.to_string()), ..Record::default() })
            }
            Err(error) => Went::Refused(error.to_string()),
        }
    }
}

/// The record of a measurement, on a link of this many lanes.
pub fn record(measured: &Measured, lanes: u8) -> Record {
    let mut figures = vec![
        ("transactions", measured.operations as f64),
        ("span", measured.elapsed.as_fs() as f64 / 1e6),
        ("lanes", f64::from(lanes)),
    ];
    let ns = |ticks: Option<u64>| ticks.map(|ticks| measured.nanoseconds(ticks as f64));
    if measured.case.test.is_latency() {
        let of = &measured.latency;
        let told = [
            ("latency.min", ns(of.min())),
            ("latency.mean", of.mean().map(|ticks| measured.nanoseconds(ticks))),
            ("latency.p50", ns(of.quantile(500))),
            ("latency.p90", ns(of.quantile(900))),
            ("latency.p95", ns(of.quantile(950))),
            ("latency.p99", ns(of.quantile(990))),
            ("latency.p999", ns(of.quantile(999))),
            ("latency.max", ns(of.max())),
        ];
        figures.extend(told.into_iter().filter_map(|(name, value)| Some((name, value?))));
    } else if !measured.elapsed.is_zero() {
        let seconds = measured.elapsed.as_fs() as f64 * 1e-15;
        figures.push(("throughput", measured.bandwidth()));
        figures.push(("rate", measured.operations as f64 / seconds));
    }
    let metrics: Metrics = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Record { metrics, ..Record::default() }
}
