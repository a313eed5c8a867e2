//! The host: profiles that come with the crate, and what a table adds to them.

use crate::check;
use crate::choices::choices;
use crate::error::{At, Error, Problem, Sources, suggest};
use crate::keys::{Kind, Word};
use crate::tables;
use crate::tree::{self, Entry, Node, Table, Value};
use crate::view::View;
use tlplab_fabric::config::PeerToPeer;
use tlplab_units::quantity;

/// A host that comes with tlplab.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The value of `host = "…"`.
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
    check: |text| ids(text).map(drop),
};

pub(crate) fn ids(text: &str) -> Result<(u16, u16), Problem> {
    let ids = text.split_once(':').and_then(|(vendor, device)| Some((id(vendor)?, id(device)?)));
    ids.filter(|(vendor, _)| *vendor != NOBODY)
        .ok_or_else(|| Problem::new(format!("\"{text}\" is not {}", IDS.what)))
}

/// `vendor = "…"`
pub static VENDOR: Word = Word {
    what: "a vendor ID, such as \"8086\"",
    pattern: r"^[0-9a-fA-F]{4}$",
    check: |text| vendor(text).map(drop),
};

pub(crate) fn vendor(text: &str) -> Result<u16, Problem> {
    id(text)
        .filter(|vendor| *vendor != NOBODY)
        .ok_or_else(|| Problem::new(format!("\"{text}\" is not {}", VENDOR.what)))
}

/// The vendor ID of what is not there.
const NOBODY: u16 = 0xFFFF;

/// Four hexadecimal digits.
fn id(text: &str) -> Option<u16> {
    (text.len() == 4).then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

/// The word for a memory without a bandwidth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlimited;

choices! {
    Unlimited { "unlimited" => Self, }
}

/// Bits per second of host memory; `None` without a limit.
pub(crate) fn bandwidth(view: &View<'_>) -> Result<Option<u64>, Error> {
    match view.choice() {
        Some(Unlimited) => Ok(None),
        None => view.rate().map(Some),
    }
}

fn check_profile(name: &str) -> Result<(), Problem> {
    let names = PROFILES.iter().map(|p| p.name);
    if name.ends_with(".toml") || names.clone().any(|n| n == name) {
        return Ok(());
    }
    Err(Problem::new(format!("unknown host profile \"{name}\"")).hint(suggest(
        name,
        names,
        "files end in .toml; host profiles",
    )))
}

pub(crate) fn peer_to_peer(text: &str) -> Result<PeerToPeer, Problem> {
    match text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim())) {
        ("forward", "") => Ok(PeerToPeer::Forward),
        ("off", "") => Ok(PeerToPeer::Refuse),
        ("split", size) => {
            let size = quantity::size(size).map_err(|e| Problem::new(e.to_string()))?;
            let fits = size.is_power_of_two() && (64..=4096).contains(&size);
            fits.then_some(PeerToPeer::Split(size as u32)).ok_or_else(|| {
                Problem::new(format!("pieces of {size} B are not supported"))
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
    tables::PROFILE_FILE.read(&view, &mut ())?;
    let host = view.require(&tables::PROFILE_FILE, "host")?;
    if let Some(profile) = host.get("profile") {
        return Err(profile.key_error(Problem::new("a profile cannot start from another profile")));
    }
    Ok(host.node.clone())
}
