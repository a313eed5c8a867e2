//! `host.iommu.map`: what the tables of the IOMMU say; `ats` of a device: what it keeps of that; and what became of both in a run.

use crate::choices::{choice, choices};
use crate::error::{Error, Problem, suggest};
use crate::keys::Kind;
use crate::result;
use crate::section::{Section, Set, row};
use crate::topology::Topology;
use crate::view::View;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::{AtsConfig, HostConfig, MapConfig, MapError, MapTarget, TablesConfig};
use tlplab_units::Time;

/// A page of the tables.
#[derive(Clone, Copy, Debug)]
struct MapPage(u64);

/// The accesses that devices may make.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    read: bool,
    write: bool,
}

choices! {
    MapPage { "4KiB" => Self(4 << 10), "2MiB" => Self(2 << 20), "1GiB" => Self(1 << 30), }
    Allowed {
        "read-write" => Self { read: true, write: true },
        "read" => Self { read: true, write: false },
        "write" => Self { read: false, write: true },
    }
}

/// `host.iommu.map.NAME`
pub(crate) static MAP: Section<Said> = Section {
    title: "a mapping",
    extra: None,
    rows: &[
        row(
            ("device", Kind::Text, "", r#""nic""#),
            "The device whose requests it translates. Absent: all devices. A device with a mapping may access only its mappings; addresses of other devices stay unchanged.",
            Set::Text(|said, it| said.map.device = Some(it)),
        ),
        row(
            ("from", Kind::Address, "", r#""0x40000000""#),
            "Its start, as the device sees it. Required.",
            Set::Address(|said, it| said.map.from = it),
        ),
        row(
            ("size", Kind::Size, "", r#""2MiB""#),
            "Its size. Required.",
            Set::Bytes(|said, it| said.map.bytes = it),
        ),
        row(
            ("to", Kind::Address, "", r#""0x100000000""#),
            "Its destination: an address of the host or, with `bar`, an offset in it. Default with `bar`: 0; required without.",
            Set::Address(|said, it| said.to = Some(it)),
        ),
        row(
            ("bar", Kind::Text, "", r#""ssd""#),
            "It leads to the first BAR of this device.",
            Set::Text(|said, it| said.bar = Some(it)),
        ),
        row(
            ("page", choice::<MapPage>(), r#""4KiB""#, r#""2MiB""#),
            "Size that one entry of the tables and one cached translation cover; `from`, `size` and `to` are multiples of it.",
            Set::Read(|said, v| v.chosen().map(|MapPage(bytes)| said.map.page = bytes)),
        ),
        row(
            ("access", choice::<Allowed>(), r#""read-write""#, r#""read""#),
            "Accesses that the device may make there.",
            Set::Read(|said, v| {
                v.chosen().map(|Allowed { read, write }| (said.map.read, said.map.write) = (read, write))
            }),
        ),
        row(
            ("since", Kind::Time, r#""0s""#, r#""20us""#),
            "It is in the tables from this time on.",
            Set::Instant(|said, it| said.map.since = it),
        ),
        row(
            ("until", Kind::Time, "", r#""20us""#),
            "At this time software removes it from the tables, and invalidates it in the IOMMU and in devices that keep translations. Absent: it stays.",
            Set::Instant(|said, it| said.map.until = Some(it)),
        ),
    ],
};

/// `host.iommu.tables`
pub(crate) static TABLES: Section<TablesConfig> = Section {
    title: "page tables",
    extra: None,
    rows: &[
        row(
            ("levels", Kind::Integer { min: 3, max: 5 }, "4", "5"),
            "Levels of tables: 3 for addresses of 39 bits, 4 for 48, 5 for 57.",
            Set::U8(|tables, it| tables.levels = it),
        ),
        row(
            ("nested", Kind::Integer { min: 0, max: 5 }, "0", "4"),
            "Levels of the second stage, which translates the addresses of the tables and their results, as for a virtual machine. 0: none.",
            Set::U8(|tables, it| tables.nested = it),
        ),
        row(
            ("step", Kind::Time, "", r#""60ns""#),
            "Time of reading one entry. Required.",
            Set::Time(|tables, it| tables.step = it),
        ),
        row(
            ("entries", Kind::Integer { min: 1, max: 4096 }, "16", "32"),
            "Entries of each level above the last that are kept.",
            Set::U16(|tables, it| tables.entries = it),
        ),
        row(
            ("nested_entries", Kind::Integer { min: 1, max: 4096 }, "64", "128"),
            "Translations of the second stage that are kept.",
            Set::U16(|tables, it| tables.nested_entries = it),
        ),
    ],
};

/// `ats` of a device
pub(crate) static ATS: Section<AtsConfig> = Section {
    title: "address translation services",
    extra: None,
    rows: &[
        row(
            ("entries", Kind::Integer { min: 1, max: 4096 }, "", "64"),
            "Translations that it keeps, of which the least recently used one makes room. Required.",
            Set::U16(|ats, it| ats.entries = it),
        ),
        row(
            ("outstanding", Kind::Integer { min: 1, max: 256 }, "", "8"),
            "Translations that it asks for at once, at most as many as it keeps. Required.",
            Set::U16(|ats, it| ats.outstanding = it),
        ),
    ],
};

/// `ats` of a device.
pub(crate) fn ats(view: &View<'_>) -> Result<AtsConfig, Error> {
    let config = ATS.read_into(view, AtsConfig::default())?;
    config.check().map_err(|error| view.at("outstanding").error(error.to_string()))?;
    Ok(config)
}

/// The mappings of the IOMMU, in the order of their names.
pub(crate) fn read(root: &View<'_>, host: &HostConfig, topology: &Topology) -> Result<Vec<MapConfig>, Error> {
    let iommu = root.get("host").and_then(|host| host.get("iommu"));
    let Some(all) = iommu.and_then(|iommu| iommu.get("map")) else { return Ok(Vec::new()) };
    if host.iommu.is_none() {
        let problem = Problem::new("an IOMMU that is off maps nothing");
        return Err(all.key_error(problem.hint("remove mode = \"off\", or the mappings")));
    }
    let mut maps: Vec<(&str, MapConfig)> = Vec::new();
    for (name, own) in all.entries() {
        let map = mapping(&own, topology)?;
        check_place(&own, &map, host, topology)?;
        if let Some((other, address)) =
            maps.iter().find_map(|(other, before)| Some((other, map.clash(before)?)))
        {
            let problem = Problem::new(format!("\"{other}\" maps {address:#x} at the same time"));
            let hint = "mappings of a device must not overlap; since and until limit their time";
            return Err(own.key_error(problem.hint(hint)));
        }
        maps.push((name, map));
    }
    Ok(maps.into_iter().map(|(_, map)| map).collect())
}

/// A mapping as its table says it: where it leads is in two keys.
pub(crate) struct Said {
    pub(crate) map: MapConfig,
    pub(crate) to: Option<u64>,
    pub(crate) bar: Option<String>,
}

impl Said {
    const BLANK: Self = Self {
        map: MapConfig {
            device: None,
            from: 0,
            bytes: 0,
            to: MapTarget::Address(0),
            page: 0,
            read: false,
            write: false,
            since: Time::ZERO,
            until: None,
        },
        to: None,
        bar: None,
    };
}

fn mapping(own: &View<'_>, topology: &Topology) -> Result<MapConfig, Error> {
    let said = MAP.read_into(own, Said::BLANK)?;
    for key in ["device", "bar"] {
        let Some(said) = own.get(key) else { continue };
        let names = || topology.devices.iter().map(|device| device.name.as_str());
        if !names().any(|name| name == said.text()) {
            let problem = Problem::new(format!("there is no device \"{}\"", said.text()));
            return Err(said.problem(problem.hint(suggest(said.text(), names(), "devices"))));
        }
    }
    let to = match (said.bar, said.to) {
        (Some(device), offset) => MapTarget::Bar { device, offset: offset.unwrap_or_default() },
        (None, Some(to)) => MapTarget::Address(to),
        (None, None) => {
            let problem = Problem::new("the mapping has no destination");
            return Err(own.key_error(problem.hint("add to = \"0x…\" or bar = \"…\"")));
        }
    };
    let map = MapConfig { to, ..said.map };
    map.check().map_err(|error| {
        let key = match error {
            MapError::Alignment { what: "offset" | "to", .. } => "to",
            MapError::Alignment { what: "size", .. } | MapError::Empty => "size",
            MapError::Times { .. } => "until",
            _ => "from",
        };
        own.at(key).error(error.to_string())
    })?;
    Ok(map)
}

/// A mapping is of addresses that the tables translate, and leads to memory or stays within its BAR.
fn check_place(own: &View<'_>, map: &MapConfig, host: &HostConfig, topology: &Topology) -> Result<(), Error> {
    map.check_in(host).map_err(|(key, error)| {
        let hint = match error {
            MapError::Levels { .. } => "choose a lower from, or more levels in host.iommu.tables",
            MapError::Registers { .. } => "write bar = \"…\" to lead to a BAR, or another to or size",
            MapError::BeyondMemory { .. } => "choose a lower to or a smaller size, or set host.memory.size",
            _ => "choose another address or a smaller size",
        };
        own.at(key).problem(Problem::new(error.to_string()).hint(hint))
    })?;
    let MapTarget::Bar { device, offset } = &map.to else { return Ok(()) };
    let target = topology.specs.iter().find(|spec| spec.name == *device);
    match target.and_then(|spec| spec.model.bar()) {
        Some(bar) if offset + map.bytes > bar => {
            let problem = Problem::new(format!(
                "{} B from offset {offset:#x} onwards do not fit into the BAR of \"{device}\" ({bar} B)",
                map.bytes
            ));
            let key = if *offset < bar { "size" } else { "to" };
            Err(own.at(key).problem(problem.hint("choose a smaller size or offset, or a larger bar")))
        }
        _ => Ok(()),
    }
}

/// The first address of a range that no mapping of a device covers at any time; `None`: all are covered, or the device has no mappings.
pub(crate) fn unmapped(maps: &[MapConfig], device: &str, from: u64, bytes: u64) -> Option<u64> {
    let mut own: Vec<&MapConfig> = of_device(maps, device).collect();
    own.sort_by_key(|map| map.from);
    let end = from.saturating_add(bytes);
    let covered =
        own.iter().fold(from, |at, map| if map.from <= at { at.max(map.from + map.bytes) } else { at });
    (!own.is_empty() && covered < end).then_some(covered)
}

/// The mappings that concern a device; none concern the host.
pub(crate) fn of_device<'m>(maps: &'m [MapConfig], device: &str) -> impl Iterator<Item = &'m MapConfig> {
    maps.iter().filter(move |map| device != "host" && map.device.as_deref().is_none_or(|of| of == device))
}

/// The accesses that the IOMMU refused.
pub(crate) fn faults(fabric: &Fabric) -> Vec<result::TranslationFault> {
    let nodes = &fabric.topology().nodes;
    let name = |id| nodes.iter().find(|node| node.id == id).map(|node| node.name.clone());
    let fault = |fault: &tlplab_fabric::TranslationFault| result::TranslationFault {
        device: name(fault.requester).unwrap_or_else(|| fault.requester.to_string()),
        requester: fault.requester.to_string(),
        reason: fault.reason.into(),
        operation: if fault.write { result::Access::Write } else { result::Access::Read },
        address: format!("{:#x}", fault.address),
        count: fault.count,
        first_fs: fault.first.as_fs(),
    };
    fabric.translation_faults().map(fault).collect()
}

/// The translations that devices requested from the IOMMU.
pub(crate) fn answered(fabric: &Fabric) -> Option<result::AnsweredTranslations> {
    let answered = fabric.answered_translations()?;
    let count = answered.invalidations;
    Some(result::AnsweredTranslations {
        given: answered.given,
        denied: answered.denied,
        invalidations: count.sent,
        invalidated: count.completed,
        invalidation_mean_ns: count.waited.as_fs() as f64 / 1e6 / count.completed.max(1) as f64,
        invalidation_max_ns: count.longest.as_fs() as f64 / 1e6,
    })
}

/// The translations of devices.
pub(crate) fn of_devices(fabric: &Fabric) -> Vec<result::DeviceTranslations> {
    let nodes = &fabric.topology().nodes;
    let of_device = |(node, count): (tlplab_fabric::NodeId, tlplab_fabric::DeviceTranslations)| {
        result::DeviceTranslations {
            device: nodes[node.index()].name.clone(),
            hits: count.hits,
            waited: count.waited,
            asked: count.asked,
            denied: count.denied,
            evicted: count.evicted,
            invalidations: count.invalidations,
            invalidated: count.invalidated,
        }
    };
    fabric.device_translations().map(of_device).collect()
}
