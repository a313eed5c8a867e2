//! The host: profiles that come with the crate, and what a table adds to them.

use crate::check;
use crate::error::{At, Error, Problem, Sources, suggest};
use crate::host_memory;
use crate::keys::{Kind, Word};
use crate::tables;
use crate::tree::{self, Entry, Node, Table, Value};
use crate::view::View;
use tlplab_fabric::config::{
    EnumerationTime, HostConfig, HostStageConfig, InterruptPolicy, MemoryConfig, PeerToPeer,
};
use tlplab_transaction::CompletionPolicy;
use tlplab_units::{Rcb, quantity};

/// A host that comes with tlplab.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What `host = "…"` says.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// Every host that comes with tlplab.
pub const PROFILES: &[Profile] = &[
    Profile { name: "ideal", text: include_str!("../profiles/ideal.toml") },
    Profile { name: "server", text: include_str!("../profiles/server.toml") },
    Profile { name: "xeon-e5-2620v2", text: include_str!("../profiles/xeon-e5-2620v2.toml") },
    Profile { name: "xeon-e5-2620v3", text: include_str!("../profiles/xeon-e5-2620v3.toml") },
    Profile { name: "xeon-e5-2630", text: include_str!("../profiles/xeon-e5-2630.toml") },
    Profile { name: "xeon-e5-2637v3", text: include_str!("../profiles/xeon-e5-2637v3.toml") },
];

/// `host = "…"`
pub static PROFILE: Word = Word {
    what: "the name of a host profile, or a file that ends in .toml",
    pattern: r"^(ideal|server|xeon-e5-26(20v2|20v3|30|37v3)|.+\.toml)$",
    check: check_profile,
};

/// `p2p = "…"`
pub static PEER_TO_PEER: Word = Word {
    what: "\"forward\", \"off\" or \"split 64B\"",
    pattern: r"^(forward|off|split .+)$",
    check: |text| peer_to_peer(text).map(drop),
};

/// `root_ports = ["…"]`
pub static IDS: Word = Word {
    what: "a vendor and a device ID, such as \"8086:9c90\"",
    pattern: r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{4}$",
    check: |text| match ids(text) {
        Some((vendor, _)) if vendor != 0xFFFF => Ok(()),
        _ => Err(Problem::new(format!("\"{text}\" is not {}", IDS.what))),
    },
};

fn ids(text: &str) -> Option<(u16, u16)> {
    let (vendor, device) = text.split_once(':')?;
    Some((self::vendor(vendor)?, self::vendor(device)?))
}

/// `vendor = "…"`
pub static VENDOR: Word = Word {
    what: "a vendor ID, such as \"8086\"",
    pattern: r"^[0-9a-fA-F]{4}$",
    check: |text| match vendor(text) {
        None | Some(0xFFFF) => Err(Problem::new(format!("\"{text}\" is not {}", VENDOR.what))),
        Some(_) => Ok(()),
    },
};

pub(crate) fn vendor(text: &str) -> Option<u16> {
    (text.len() == 4).then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

fn check_profile(name: &str) -> Result<(), Problem> {
    let names = PROFILES.iter().map(|p| p.name);
    if name.ends_with(".toml") || names.clone().any(|n| n == name) {
        return Ok(());
    }
    Err(Problem::new(format!("there is no host profile \"{name}\"")).hint(suggest(
        name,
        names,
        "files end in .toml; host profiles",
    )))
}

fn peer_to_peer(text: &str) -> Result<PeerToPeer, Problem> {
    match text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim())) {
        ("forward", "") => Ok(PeerToPeer::Forward),
        ("off", "") => Ok(PeerToPeer::Refuse),
        ("split", size) => {
            let size = quantity::size(size).map_err(|e| Problem::new(e.to_string()))?;
            let fits = size.is_power_of_two() && (64..=4096).contains(&size);
            fits.then_some(PeerToPeer::Split(size as u32)).ok_or_else(|| {
                Problem::new(format!("pieces of {size} B cannot be"))
                    .hint("write a power of two from 64B to 4096B, as in \"split 64B\"")
            })
        }
        _ => Err(Problem::new(format!("\"{text}\" is not {}", PEER_TO_PEER.what)).hint(suggest(
            text,
            ["forward", "off", "split 64B"],
            "the choices",
        ))),
    }
}

/// A `host` value in its long form: a table.
pub(crate) fn expand(node: &mut Node) {
    if let Value::String(name) = &node.value {
        let at = node.at;
        let entry = Entry { key_at: at, node: Node::string(at, name.clone()) };
        node.value = Value::Table(Table::from([("profile".to_owned(), entry)]));
    }
}

/// The host table with everything its profile says, laid on `ideal`.
pub(crate) fn resolve(
    sources: &mut Sources,
    host: Node,
    profile_at: (At, &str),
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Node, Error> {
    let mut whole = load(sources, "ideal", PROFILES[0].text)?;
    let (at, name) = profile_at;
    if name != "ideal" {
        let over = match PROFILES.iter().find(|p| p.name == name) {
            Some(profile) => load(sources, profile.name, profile.text)?,
            None => {
                let text = read(name).map_err(|why| {
                    sources.error(at, "host", Problem::new(format!("cannot read \"{name}\": {why}")))
                })?;
                load(sources, name, &text)?
            }
        };
        tree::merge(&mut whole, over);
    }
    tree::merge(&mut whole, host);
    Ok(whole)
}

fn load(sources: &mut Sources, name: &str, text: &str) -> Result<Node, Error> {
    let file = if name.ends_with(".toml") {
        sources.add(name, text)
    } else {
        sources.add_hidden(&format!("host profile {name}"), text)
    };
    let node = tree::parse(sources, file, text)?;
    if let Some(error) = check::check(sources, &node, &Kind::Table(&tables::PROFILE_FILE)).into_iter().next()
    {
        return Err(error);
    }
    let view = View::root(sources, &node);
    for key in ["title", "source"] {
        view.require(&tables::PROFILE_FILE, key)?;
    }
    let host = view.require(&tables::PROFILE_FILE, "host")?;
    if let Some(profile) = host.get("profile") {
        return Err(profile.key_error(Problem::new("a profile cannot start from another profile")));
    }
    Ok(host.node.clone())
}

/// A stage of the host that a table describes.
fn stage(host: &View<'_>, key: &str) -> Option<HostStageConfig> {
    let stage = host.get(key)?;
    Some(HostStageConfig {
        latency: stage.duration("latency").unwrap_or_default(),
        rate: stage.rate("rate"),
        entries: stage.integer("entries").map(|n| n as u16),
    })
}

/// Bits per second of host memory; `None` without a limit.
fn bandwidth(memory: Option<&View<'_>>) -> Result<Option<u64>, Error> {
    let Some(said) = memory.and_then(|memory| memory.get("bandwidth")) else { return Ok(None) };
    if said.text() == "unlimited" {
        return Ok(None);
    }
    quantity::rate(said.text()).map(Some).map_err(|error| said.error(error.to_string()))
}

/// A resolved table as plain data.
pub(crate) fn config(host: &View<'_>) -> Result<HostConfig, Error> {
    let default = HostConfig::default();
    let memory = host.get("memory");
    let of_memory = |key: &str| memory.as_ref().and_then(|m| m.get(key).map(|_| m));
    Ok(HostConfig {
        name: default.name,
        latency: host.duration("latency").unwrap_or(default.latency),
        memory: MemoryConfig {
            latency: of_memory("latency")
                .and_then(|m| m.duration("latency"))
                .unwrap_or(default.memory.latency),
            bandwidth: bandwidth(memory.as_ref())?,
            size: of_memory("size").and_then(|m| m.size("size")).unwrap_or(default.memory.size),
        },
        cache: host_memory::cache(host)?,
        numa: host_memory::numa(host)?,
        iommu: host_memory::iommu(host)?,
        jitter: host_memory::jitter(host)?,
        sleep: host_memory::sleep(host)?,
        stall: host_memory::stall(host)?,
        write_interval: host.duration("write_interval").unwrap_or_default(),
        write_turnaround: host.duration("write_turnaround"),
        commit: host.duration("commit").unwrap_or_default(),
        line_interval: host.duration("line_interval"),
        reads: host.integer("reads").map(|n| n as u16),
        io_cache: stage(host, "io_cache"),
        memory_bus: stage(host, "memory_bus"),
        bridge: stage(host, "bridge"),
        rcb: host.size("rcb").and_then(|b| Rcb::new(b as u32)).unwrap_or(default.rcb),
        completions: host.choice("completions")?.unwrap_or(CompletionPolicy::Max),
        peer_to_peer: match host.get("p2p") {
            Some(view) => peer_to_peer(view.text()).map_err(|problem| view.problem(problem))?,
            None => default.peer_to_peer,
        },
        // They name what is below root ports, which is read later.
        domains: Vec::new(),
        memory_domain: None,
        maps: Vec::new(),
        tags: host.integer("tags").map_or(default.tags, |n| n as u16),
        completion_timeout: host.duration("completion_timeout").unwrap_or(default.completion_timeout),
        ecrc: host.boolean("ecrc").unwrap_or(default.ecrc),
        error_reporting: host.boolean("error_reporting").unwrap_or(default.error_reporting),
        port_buffer: host.integer("port_buffer").map(|n| n as u16),
        enumeration: host.choice("enumeration")?.unwrap_or(EnumerationTime::Before),
        interrupts: host.choice("interrupts")?.unwrap_or(InterruptPolicy::MsiX),
        payloads: host.choice("payloads")?.unwrap_or_default(),
        root_port_ids: host
            .get("root_ports")
            .iter()
            .flat_map(View::items)
            .map(|id| {
                ids(id.text()).ok_or_else(|| id.error(format!("\"{}\" is not {}", id.text(), IDS.what)))
            })
            .collect::<Result<_, _>>()?,
        addresses: default.addresses,
    })
}
