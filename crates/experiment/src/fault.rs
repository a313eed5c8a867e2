//! Faults: `[[fault]]` tables go to the links they name.

use crate::error::{Error, Problem, suggest};
use crate::tables;
use crate::topology::Topology;
use crate::view::View;
use tlplab_fabric::config::{
    CompletionStatus, Damage, Direction, Fault, FaultKind, FaultUnit, Forgery, LinkConfig, Malformation,
    Tamper,
};
use tlplab_units::{LinkMode, Time};

/// The keys of which a fault has exactly one.
const KINDS: [&str; 5] = ["ber", "tlp", "dllp", "flit", "down"];

/// Names of TLPs and DLLPs that a fault may be limited to.
pub(crate) const NAMES: [&str; 16] = [
    "MRd", "MWr", "CfgRd0", "CfgWr0", "CfgRd1", "CfgWr1", "IORd", "IOWr", "Msg", "Cpl", "CplD", "Ack", "Nak",
    "UpdateFC", "InitFC1", "InitFC2",
];

/// The first DLLP in [`NAMES`]; those before it are TLPs.
const FIRST_DLLP: &str = "Ack";

/// All values of `damage`: on the wire, then what is done to TLPs, then to DLLPs.
pub(crate) const DAMAGES: [&str; 19] = [
    "corrupt",
    "drop",
    "poison",
    "ecrc",
    "type",
    "length",
    "payload",
    "boundary",
    "tag",
    "requester",
    "byte-count",
    "address",
    "abort",
    "refuse",
    "retry",
    "lose",
    "take-back",
    "overgrant",
    "unsent",
];

/// What `damage` says in the tables.
pub(crate) const DAMAGE_TEXT: &str = "What happens to it. On the wire: a bad CRC (corrupt, the default), or nothing arrives (drop). To a \
    TLP: marked as bad (poison), a wrong digest (ecrc), malformed (type, length, payload larger than MPS, 4 KiB boundary), a completion \
    with a wrong tag, requester or byte count, an address nobody claims, a request that is answered with CA (abort), UR (refuse) or RRS \
    (retry), or lost for good (lose). To a DLLP: an UpdateFC that takes credits back or overgrants them, an Ack of what was unsent.";

fn tamper(damage: &str) -> Option<Tamper> {
    Some(match damage {
        "poison" => Tamper::Poison,
        "ecrc" => Tamper::Ecrc,
        "type" => Tamper::Malform(Malformation::Type),
        "length" => Tamper::Malform(Malformation::Length),
        "payload" => Tamper::Malform(Malformation::Payload),
        "boundary" => Tamper::Malform(Malformation::Boundary),
        "tag" => Tamper::Tag,
        "requester" => Tamper::Requester,
        "byte-count" => Tamper::ByteCount,
        "address" => Tamper::Address,
        "abort" => Tamper::Refuse(CompletionStatus::CompleterAbort),
        "refuse" => Tamper::Refuse(CompletionStatus::UnsupportedRequest),
        "retry" => Tamper::Refuse(CompletionStatus::RetryStatus),
        "lose" => Tamper::Lose,
        _ => return None,
    })
}

fn forgery(damage: &str) -> Option<Forgery> {
    Some(match damage {
        "take-back" => Forgery::TakeBack,
        "overgrant" => Forgery::Overgrant(16),
        "unsent" => Forgery::AckUnsent,
        _ => return None,
    })
}

/// Adds every fault to its link.
pub(crate) fn read(root: &View<'_>, topology: &mut Topology) -> Result<(), Error> {
    for fault in root.get("fault").iter().flat_map(View::items) {
        let name = fault.require(&tables::FAULT, "link")?;
        let Some(link) = link_of(topology, name.text()) else {
            let names = topology
                .switches
                .iter()
                .map(|s| s.name.as_str())
                .chain(topology.buses.iter().map(|b| b.name.as_str()))
                .chain(topology.devices.iter().filter(|d| d.bus.is_none()).map(|d| d.name.as_str()));
            let hint = suggest(name.text(), names, "components");
            let problem =
                Problem::new(format!("there is no component \"{}\" with a link above it", name.text()));
            return Err(name.problem(problem.hint(hint)));
        };
        let kind = kind(&fault, link.mode)?;
        for direction in directions(&fault, &kind)? {
            link.faults.push(Fault { direction, kind });
        }
    }
    Ok(())
}

fn link_of<'t>(topology: &'t mut Topology, name: &str) -> Option<&'t mut LinkConfig> {
    let switch = topology.switches.iter_mut().find(|s| s.name == name).map(|s| &mut s.uplink);
    let bus = topology.buses.iter_mut().find(|b| b.name == name).map(|b| &mut b.uplink);
    let mut devices = topology.devices.iter_mut().filter(|d| d.bus.is_none());
    let device = devices.find(|d| d.name == name).map(|d| &mut d.link);
    switch.or(bus).or(device)
}

fn kind(fault: &View<'_>, mode: LinkMode) -> Result<FaultKind, Error> {
    let given: Vec<View<'_>> = KINDS.iter().filter_map(|key| fault.get(key)).collect();
    let [one] = given.as_slice() else {
        let problem = Problem::new(match given.len() {
            0 => "this fault does nothing",
            _ => "this fault does several things",
        });
        return Err(fault.key_error(problem.hint("say one of ber, tlp, dllp, flit, down")));
    };
    let key = one.path.rsplit('.').next().unwrap_or_default();
    if key == "down" {
        return down(fault);
    }
    if let Some(until) = fault.get("until") {
        return Err(until.key_error(Problem::new("until belongs to down")));
    }
    if key == "ber" {
        for key in ["damage", "of", "count"] {
            if let Some(extra) = fault.get(key) {
                return Err(extra.key_error(Problem::new(format!("{key} belongs to tlp, dllp and flit"))));
            }
        }
        // 2^64 as a float is exact; probabilities below 2^-64 become the smallest there is.
        let numerator = (fault.number("ber").unwrap_or(0.0) * 18_446_744_073_709_551_616.0) as u64;
        return Ok(FaultKind::BitErrors { numerator: numerator.max(1) });
    }
    counted(fault, one, key, mode)
}

/// A fault of the n-th TLP, DLLP or flit.
fn counted(fault: &View<'_>, one: &View<'_>, key: &str, mode: LinkMode) -> Result<FaultKind, Error> {
    let (n, count) = (fault.integer(key).unwrap_or(1), fault.integer("count").unwrap_or(1));
    let only = only(fault, key)?;
    let damage = fault.text_of("damage").unwrap_or("corrupt");
    let wrong = |what: &str| {
        let view = fault.get("damage").unwrap_or_else(|| fault.clone());
        Err(view.error(format!("\"{damage}\" cannot be done to a {what}")))
    };
    match (tamper(damage), forgery(damage), key) {
        (Some(how), _, "tlp") => return Ok(FaultKind::Tamper { only, n, count, how }),
        (Some(_), _, "flit") => return wrong("flit"),
        (Some(_), _, _) => return wrong("DLLP"),
        (_, Some(_), "tlp") => return wrong("TLP"),
        (_, Some(_), "flit") => return wrong("flit"),
        _ => {}
    }
    let unit = match (key, mode) {
        ("flit", LinkMode::Flit) => FaultUnit::Flit,
        ("tlp", LinkMode::NonFlit) => only.map_or(FaultUnit::Tlp, FaultUnit::Called),
        ("dllp", LinkMode::NonFlit) => only.map_or(FaultUnit::Dllp, FaultUnit::Called),
        ("flit", _) => {
            let problem = Problem::new("this link is not in flit mode and carries no flits");
            return Err(one.key_error(problem.hint("count tlp or dllp")));
        }
        ("tlp", _) => {
            let problem = Problem::new("in flit mode CRCs protect flits, not TLPs");
            return Err(one.key_error(problem.hint("count flit")));
        }
        _ => {
            let problem = Problem::new("this link is in flit mode and carries no separate DLLPs");
            return Err(one.key_error(problem.hint("count flit or tlp")));
        }
    };
    if let Some(how) = forgery(damage) {
        return Ok(FaultKind::Forge { n, count, how });
    }
    let damage = if damage == "drop" { Damage::Drop } else { Damage::Corrupt };
    Ok(FaultKind::Nth { unit, n, count, damage })
}

/// The name that `of` limits the fault to, which must be one of what is counted.
fn only(fault: &View<'_>, key: &str) -> Result<Option<&'static str>, Error> {
    let Some(of) = fault.get("of") else { return Ok(None) };
    let place = NAMES.iter().position(|name| *name == of.text());
    let dllps = NAMES.iter().position(|name| *name == FIRST_DLLP);
    let what = if place < dllps { "tlp" } else { "dllp" };
    if what != key {
        let problem = Problem::new(format!("\"{}\" is no name of a {key}", of.text()));
        return Err(of.problem(problem.hint(format!("count {what}"))));
    }
    Ok(place.map(|place| NAMES[place]))
}

fn down(fault: &View<'_>) -> Result<FaultKind, Error> {
    for key in ["damage", "direction", "of", "count"] {
        if let Some(extra) = fault.get(key) {
            return Err(extra.key_error(Problem::new(format!("a link that is down has no {key}"))));
        }
    }
    let at = fault.instant("down").unwrap_or(Time::ZERO);
    let until = fault.instant("until");
    if let Some(up) = until
        && up <= at
    {
        let view = fault.get("until").unwrap_or_else(|| fault.clone());
        return Err(view.error(format!("the link cannot be up again at {up} when it goes down at {at}")));
    }
    Ok(FaultKind::Down { at, until })
}

fn directions(fault: &View<'_>, kind: &FaultKind) -> Result<Vec<Direction>, Error> {
    Ok(match (kind, fault.text_of("direction")) {
        (FaultKind::Down { .. }, _) | (_, Some("up")) => vec![Direction::Up],
        (_, Some("down")) => vec![Direction::Down],
        _ => vec![Direction::Up, Direction::Down],
    })
}
