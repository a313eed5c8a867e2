//! Every key of the tables has an effect: none is documented and then forgotten.

use std::collections::BTreeSet;
use tlplab_experiment::keys::Keys;
use tlplab_experiment::{Experiment, Options, device_models, tables};
use tlplab_units::{Generation, Width};

const BASE: &str = r#"
title = "Base"
stop = { time = "1ms" }
[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
[device.dma]
under = "sw0"
link = { generation = 4, width = 4 }
[device.ssd]
under = "sw0"
link = "gen4 x4"
model = "dma"
[device.nic]
under = "host.rp1"
link = "gen6 x4 flit"
model = "memory"
[device.ring]
under = "host.rp2"
link = "gen4 x4"
model = "ring"
[device.copier]
under = "host.rp3"
link = "gen4 x4"
model = "copier"
[device.storage]
under = "host.rp4"
link = "gen4 x4"
model = "storage"
[device.nvme]
under = "host.rp12"
link = "gen4 x4"
model = "nvme"
[device.ethernet]
under = "host.rp7"
link = "gen4 x4"
model = "nic"
[device.nettlp-card]
under = "host.rp9"
link = "gen4 x4"
model = "nettlp-card"
[device.simple-nic]
under = "host.rp8"
link = "gen4 x4"
model = "simple-nic"
[device.tlpdma]
under = "host.rp10"
link = "gen2 x4"
model = "tlpdma"
[bus.pci]
under = "host.rp11"
link = "gen1 x8"
[device.target]
under = "pci"
model = "memory"
[link.ssd.upper.buffers]
[[fault]]
link = "sw0"
tlp = 9
damage = "poison"
[[fault]]
link = "sw0"
down = "1us"
[load]
ssd = { op = "read", size = "64B" }
trace = { device = "ssd", replay = "t.csv", timing = "captured" }
"#;

/// What stands in [`BASE`] for names in dotted keys of tables.
const NAMED: [(&str, &str); 8] = [
    ("host.iommu.map.NAME", "host.iommu.map.m"),
    ("host.domain.NAME", "host.domain.q0"),
    ("switch.NAME", "switch.sw0"),
    ("bus.NAME", "bus.pci"),
    ("device.NAME", "device.ssd"),
    ("link.NAME", "link.ssd"),
    ("load.NAME", "load.ssd"),
    ("fault", "fault.0"),
];

/// Tables whose keys are tried elsewhere: all of a machine stand in tables of the file, too, and cables lead from one machine to another.
const TRIED_ELSEWHERE: [&str; 2] = ["machine.NAME", "cable.NAME"];

/// Every table of the grammar and where one of it is in [`BASE`].
fn places() -> Vec<(String, &'static dyn Keys)> {
    let mut places = vec![("defaults.link".to_owned(), section("link.NAME"))];
    for (paths, section) in tables::ALL.iter().filter(|(path, _)| !TRIED_ELSEWHERE.contains(path)) {
        for path in paths.split(", ") {
            let named = NAMED.iter().find_map(|(name, at)| Some(format!("{at}{}", path.strip_prefix(name)?)));
            places.push((named.unwrap_or_else(|| path.to_owned()), *section));
        }
    }
    // Some stages are of lower ends only.
    places.retain(|(path, _)| path != "link.ssd.upper.stages");
    places
}

fn section(path: &str) -> &'static dyn Keys {
    tables::ALL.iter().find(|(paths, _)| paths.split(", ").any(|one| one == path)).unwrap().1
}

/// What the examples need, or where they stand instead, so that they can be tried. A path that ends in a point is that of a table.
const COMPANIONS: &[(&str, &[&str])] = &[
    (
        "host.domain.q0.under",
        &["host.domain={ q0 = { latency = \"1ns\" }, socket0 = { latency = \"1ns\" } }"],
    ),
    ("host.domain.q0.", &["host.domain.q0={ }"]),
    ("host.memory.domain", &["host.domain.socket0={ }"]),
    ("switch.sw0.core.", &["switch.sw0.core={ }"]),
    ("link.ssd.upper.acs_forbids", &["device.nic.under=sw0", "link.ssd.upper.acs=[\"egress-control\"]"]),
    ("guest.", &["guest.run=\"x.sh\""]),
    ("host.cache.", &["host.cache={ size = \"10MiB\", ways = 16, ddio_ways = 1, hit = \"1ns\" }"]),
    ("host.numa.", &["host.numa={ hop = \"1ns\" }"]),
    ("device.ssd.ats.", &["device.ssd.ats={ entries = 32, outstanding = 2 }"]),
    ("host.iommu.tables.", &["host.iommu={ entries = 1, tables = { step = \"1ns\" } }"]),
    ("host.iommu.map.m.device", &[MAPPED]),
    ("host.iommu.map.m.bar", &[MAPPED, "device.ssd.bar=4MiB"]),
    ("host.iommu.map.m.until", &[MAPPED]),
    ("host.iommu.map.m.", &[MAPPED]),
    ("host.iommu.", &["host.iommu={ entries = 1, walk = \"1ns\" }"]),
    ("host.sleep.", &["host.sleep={ after = \"1ns\", wake = [\"0% 1ns\", \"100% 2ns\"] }"]),
    ("host.stall.", &["host.stall={ every = \"1s\", lasts = \"1ns\" }"]),
    ("link.ssd.generation", &["device.ssd.link={ width = 4 }"]),
    ("link.ssd.width", &["device.ssd.link={ generation = 4 }"]),
    ("defaults.link.generation", &["device.ssd.link={ width = 4 }"]),
    ("defaults.link.width", &["device.ssd.link={ generation = 4 }"]),
    ("link.ssd.lower.stages.", &["link.ssd.lower.stages={ tx_physical = 3 }"]),
    ("link.ssd.skp.length", &["link.ssd.skp={ interval = 1538 }"]),
    ("link.ssd.skp.interval", &["link.ssd.skp={ length = 5 }"]),
    ("switch.sw0.arbitration", &["device.nic.under=sw0", "device.nic.mrrs=128B"]),
    ("switch.sw0.under", &["device.nic.under=host.rp5", "switch.sw0.under=host.rp6"]),
    ("bus.pci.under", &["device.nic.under=host.rp5", "switch.sw0.under=host.rp6"]),
    ("device.ssd.under", &["device.nic.under=host.rp5", "switch.sw0.under=host.rp6"]),
    ("device.ssd.link", &["device.ssd.link=gen3 x1"]),
    ("switch.sw0.link", &["switch.sw0.link=gen3 x1"]),
    ("fault.0.ber", &["fault=[{ link = \"sw0\" }]"]),
    ("fault.0.tlp", &["fault=[{ link = \"sw0\" }]"]),
    ("fault.0.dllp", &["fault=[{ link = \"sw0\" }]"]),
    ("fault.0.flit", &["fault=[{ link = \"nic\" }]"]),
    ("fault.0.down", &["fault=[{ link = \"sw0\" }]"]),
    ("fault.0.until", &["fault=[{ link = \"sw0\", down = \"5us\" }]"]),
    ("fault.0.reset", &["fault=[{ link = \"sw0\" }]"]),
    ("fault.0.narrow", &["fault=[{ link = \"sw0\", lanes = 1 }]"]),
    ("fault.0.lanes", &["fault=[{ link = \"sw0\", narrow = \"5us\", lanes = 2 }]"]),
    ("fault.0.by", &["fault=[{ link = \"sw0\", tlp = 2, damage = \"late\", by = \"1us\" }]"]),
    ("fault.0.byte", &["fault=[{ link = \"sw0\", tlp = 2, damage = \"data\", flip = 1 }]"]),
    ("fault.0.flip", &["fault=[{ link = \"sw0\", tlp = 2, damage = \"data\", flip = 1 }]"]),
    ("device.ssd.model", &["load.ssd.device=dma", "load.trace.device=dma"]),
    ("load.ssd.cache", &["host.cache={ size = \"10MiB\", ways = 16, ddio_ways = 1, hit = \"1ns\" }"]),
    ("load.ssd.node", &["host.numa={ hop = \"1ns\" }"]),
    ("load.ssd.device", &["load.ssd.device=dma"]),
    ("load.ssd.replay", &["load.ssd={}"]),
    ("load.ssd.timing", &["load.ssd={ replay = \"x.csv\" }"]),
    ("load.ssd.request", DD),
    ("load.ssd.host_cost", DD),
    ("load.ssd.host_ahead", DD),
    ("load.ssd.page_list", DD),
    ("load.ssd.card_offset", TRANSFER),
    ("load.ssd.pages", TRANSFER),
    ("load.ssd.descriptors", TRANSFER),
    ("load.ssd.entries", TRANSFER),
    ("load.ssd.wait", TRANSFER),
    ("load.ssd.interrupt_delay", TRANSFER),
    ("load.ssd.call_cost", TRANSFER),
    ("load.ssd.verify", TRANSFER),
    (
        "load.ssd.store_interval",
        &[
            "load.ssd={ device = \"host\", target = \"tlpdma\", op = \"to-card\", size = \"1MiB\", descriptors = \"pio\" }",
        ],
    ),
    ("defaults.link.skp", &["switch.sw0.latency=1ns"]),
    ("defaults.link.crossbar", &["link.ssd.upper={ }"]),
    ("link.ssd.crossbar", &["link.ssd.upper={ }"]),
    ("defaults.link.flow_control", &["device.nic.link=gen3 x4"]),
];

const MAPPED: &str = "host.iommu={ entries = 1, walk = \"1ns\", map = { m = { device = \"copier\", from = 0, size = \"4MiB\", to = 0 } } }";

const DD: &[&str] =
    &["load.ssd={ device = \"host\", target = \"storage\", op = \"dd-read\", size = \"1MiB\" }"];

const TRANSFER: &[&str] =
    &["load.ssd={ device = \"host\", target = \"tlpdma\", op = \"to-card\", size = \"1MiB\" }"];

/// Keys of the upper end of a link, or of a switch's port, only.
const OF_UPPER_ENDS: [&str; 3] = ["acs", "acs_forbids", "forwarding"];

/// Keys of devices that only one on a bus can have.
const ON_BUS: [&str; 4] = ["devsel", "wait_states", "completion", "overhead"];

fn path_of(place: &str, key: &str) -> String {
    match place {
        "" => key.to_owned(),
        "link.ssd.lower" if OF_UPPER_ENDS.contains(&key) => path_of("link.ssd.upper", key),
        "device.ssd" if ON_BUS.contains(&key) => format!("device.target.{key}"),
        _ => format!("{place}.{key}"),
    }
}

/// Keys without an example to try: tables of names, and files.
const NOT_HERE: [&str; 1] = ["include"];

fn read(sets: &[String]) -> Result<String, String> {
    let read = |path: &str| match path {
        "t.toml" => Ok(BASE.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let options = Options { set: sets.to_vec(), ..Options::default() };
    let e = Experiment::parse_with(&read, "t.toml", &options).map_err(|e| e.to_string())?;
    let all = (&e.title, &e.stop, &e.fabric, &e.devices, &e.guest, &e.loads, &e.ladder);
    Ok(format!("{all:?}"))
}

fn companions(path: &str) -> Vec<String> {
    let found =
        COMPANIONS.iter().find(|(key, _)| *key == path || key.ends_with('.') && path.starts_with(key));
    found.map_or(Vec::new(), |(_, sets)| sets.iter().map(|s| (*s).to_owned()).collect())
}

#[test]
fn every_key_has_an_effect() {
    let mut failures = Vec::new();
    for (place, section) in places() {
        for key in section.keys().iter().filter(|k| !k.example.is_empty() && !NOT_HERE.contains(&k.name)) {
            let path = path_of(&place, key.name);
            let mut sets = companions(&path);
            let before = read(&sets);
            sets.push(format!("{path}={}", key.example));
            match (before, read(&sets)) {
                (before, Ok(after)) if before.as_ref() == Ok(&after) => {
                    failures.push(format!("{path} = {} changes nothing", key.example));
                }
                (_, Ok(_)) => {}
                (_, Err(message)) => failures.push(format!("{path} = {}: {message}", key.example)),
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_parameter_of_a_model_has_an_effect_and_its_default_has_none() {
    for model in device_models::MODELS {
        let device = match model.name {
            "memory" => "nic",
            "nic" => "ethernet",
            name => name,
        };
        for key in model.keys.keys() {
            let sets = |value| [format!("device.{device}.{}={value}", key.name)];
            let none = read(&[]).unwrap();
            assert_ne!(none, read(&sets(key.example)).unwrap(), "{}: {}", model.name, key.name);
            if !key.default.is_empty() {
                assert_eq!(none, read(&sets(key.default)).unwrap(), "{}: {}", model.name, key.name);
            }
        }
    }
}

#[test]
fn stated_defaults_equal_absent_keys() {
    for (place, section) in places() {
        // A default is not the same as nothing where it lies upon the host's profile, or upon what holds for all links.
        let upon_others = ["host", "defaults.link"].contains(&place.as_str());
        for key in section.keys().iter().filter(|k| !k.default.is_empty() && !upon_others) {
            let path = path_of(&place, key.name);
            let without = companions(&path);
            let with = [without.clone(), vec![format!("{path}={}", key.default)]].concat();
            assert_eq!(read(&without), read(&with), "{path}");
        }
    }
}

#[test]
fn the_schema_knows_every_key() {
    let schema = tlplab_experiment::schema::schema();
    let text = schema.to_string();
    for (_, section) in places() {
        for key in section.keys() {
            assert!(text.contains(&format!("\"{}\":", key.name)), "{}", key.name);
            assert!(text.contains(&serde_json::to_string(key.doc).unwrap()), "{}", key.doc);
        }
    }
    assert_eq!(schema["definitions"]["switch"]["additionalProperties"], false);
    let link = &schema["definitions"]["switch"]["properties"]["link"]["anyOf"][1]["allOf"][0]["$ref"];
    assert_eq!(link, "#/definitions/link");
    let mut refs = text.split("#/definitions/").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert!(refs.all(|name| schema["definitions"][name].is_object()));
    assert_eq!(schema["required"], serde_json::json!(["title"]));
}

#[test]
fn the_reference_knows_every_key() {
    let text = tlplab_experiment::schema::reference();
    for key in places().iter().flat_map(|(_, section)| section.keys()) {
        assert!(text.contains(&format!("| `{}` |", key.name)), "{}", key.name);
    }
}

#[test]
fn no_two_rows_of_a_table_are_of_one_key() {
    for (path, section) in tables::ALL {
        let names: Vec<&str> = section.keys().iter().map(|key| key.name).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{path}: {names:?}");
    }
}

/// What editors and messages know of generations and widths is all that there are.
#[test]
fn every_generation_and_width_is_known_to_editors() {
    let schema = tlplab_experiment::schema::schema();
    let link = &schema["definitions"]["link"]["properties"];
    assert_eq!(link["generation"]["maximum"], Generation::LAST.number());
    assert_eq!(link["width"]["enum"], serde_json::json!(Width::ALL.map(Width::lanes)));
    let widths: Vec<String> = Width::ALL.iter().map(|width| width.lanes().to_string()).collect();
    let pattern = format!("^gen[1-{}] x({})( flit)?$", Generation::LAST.number(), widths.join("|"));
    assert_eq!(tlplab_experiment::link::LINK.pattern, pattern);
    let generation = &link["generation"]["description"];
    assert_eq!(*generation, format!("1 to {}.", Generation::LAST.number()));
}
