//! Faults: `[[fault]]` tables go to the links they name.

use crate::error::{Error, Problem, suggest};
use crate::tables;
use crate::topology::Topology;
use crate::view::View;
use tlplab_fabric::config::{Damage, Direction, Fault, FaultKind, FaultUnit, LinkConfig};
use tlplab_units::{LinkMode, Time};

/// The keys of which a fault has exactly one.
const KINDS: [&str; 5] = ["ber", "tlp", "dllp", "flit", "down"];

/// Adds every fault to its link.
pub(crate) fn read(root: &View<'_>, topology: &mut Topology) -> Result<(), Error> {
    for fault in root.get("fault").iter().flat_map(View::items) {
        let name = fault.require(&tables::FAULT, "link")?;
        let Some(link) = link_of(topology, name.text()) else {
            let names = topology
                .switches
                .iter()
                .map(|s| s.name.as_str())
                .chain(topology.devices.iter().map(|d| d.name.as_str()));
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
    match topology.switches.iter_mut().find(|s| s.name == name) {
        Some(switch) => Some(&mut switch.uplink),
        None => topology.devices.iter_mut().find(|d| d.name == name).map(|d| &mut d.link),
    }
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
        if let Some(damage) = fault.get("damage") {
            return Err(damage.key_error(Problem::new("damage belongs to tlp, dllp and flit")));
        }
        // 2^64 as a float is exact; probabilities below 2^-64 become the smallest there is.
        let numerator = (fault.number("ber").unwrap_or(0.0) * 18_446_744_073_709_551_616.0) as u64;
        return Ok(FaultKind::BitErrors { numerator: numerator.max(1) });
    }
    let unit = match (key, mode) {
        ("flit", LinkMode::Flit) => FaultUnit::Flit,
        ("tlp", _) => FaultUnit::Tlp,
        ("dllp", LinkMode::NonFlit) => FaultUnit::Dllp,
        ("flit", _) => {
            let problem = Problem::new("this link is not in flit mode and carries no flits");
            return Err(one.key_error(problem.hint("count tlp or dllp")));
        }
        _ => {
            let problem = Problem::new("this link is in flit mode and carries no separate DLLPs");
            return Err(one.key_error(problem.hint("count flit or tlp")));
        }
    };
    let damage = match fault.text_of("damage") {
        Some("drop") => Damage::Drop,
        _ => Damage::Corrupt,
    };
    Ok(FaultKind::Nth { unit, n: fault.integer(key).unwrap_or(1), damage })
}

fn down(fault: &View<'_>) -> Result<FaultKind, Error> {
    for key in ["damage", "direction"] {
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
