//! Faults: `[[fault]]` tables go to the links they name.

use crate::choices::{Choice, choices};
use crate::error::{Error, Problem, suggest};
use crate::result::{FaultDamage, FaultOf, Struck, Way};
use crate::tables;
use crate::topology::Topology;
use crate::view::View;
use tlplab_fabric::config::{
    CompletionStatus, Damage, Direction, FabricConfig, Fault, FaultKind, FaultUnit, Forgery, LinkConfig,
    Malformation, Tamper,
};
use tlplab_fabric::{Fabric, LinkId};
use tlplab_units::{LinkMode, Time, Width};

/// Names of TLPs and DLLPs that a fault may be limited to.
pub(crate) const NAMES: [&str; 16] = [
    "MRd", "MWr", "CfgRd0", "CfgWr0", "CfgRd1", "CfgWr1", "IORd", "IOWr", "Msg", "Cpl", "CplD", "Ack", "Nak",
    "UpdateFC", "InitFC1", "InitFC2",
];

/// The first DLLP in [`NAMES`]; those before it are TLPs.
const FIRST_DLLP: &str = "Ack";

/// What is done to a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    /// Damage on the wire.
    Wire(Damage),
    /// A TLP is changed.
    Tamper(Tamper),
    /// A TLP comes late: `by` says how much.
    Late,
    /// Its data are others: `byte` and `flip` say where and how.
    Data,
    /// A DLLP is.
    Forge(Forgery),
}

/// Which directions of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Directions {
    /// Towards the root complex.
    Up,
    /// Away from it.
    Down,
    /// Both.
    Both,
}

/// The key that says what a fault is, of which it has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Ber,
    Tlp,
    Dllp,
    Flit,
    Down,
    Reset,
    Narrow,
}

choices! {
    Harm {
        "corrupt" => Self::Wire(Damage::Corrupt),
        "drop" => Self::Wire(Damage::Drop),
        "poison" => Self::Tamper(Tamper::Poison),
        "ecrc" => Self::Tamper(Tamper::Ecrc),
        "type" => Self::Tamper(Tamper::Malform(Malformation::Type)),
        "length" => Self::Tamper(Tamper::Malform(Malformation::Length)),
        "payload" => Self::Tamper(Tamper::Malform(Malformation::Payload)),
        "boundary" => Self::Tamper(Tamper::Malform(Malformation::Boundary)),
        "tag" => Self::Tamper(Tamper::Tag),
        "requester" => Self::Tamper(Tamper::Requester),
        "byte-count" => Self::Tamper(Tamper::ByteCount),
        "address" => Self::Tamper(Tamper::Address),
        "abort" => Self::Tamper(Tamper::Refuse(CompletionStatus::CompleterAbort)),
        "refuse" => Self::Tamper(Tamper::Refuse(CompletionStatus::UnsupportedRequest)),
        "retry" => Self::Tamper(Tamper::Refuse(CompletionStatus::RetryStatus)),
        "lose" => Self::Tamper(Tamper::Lose),
        "late" => Self::Late,
        "twice" => Self::Tamper(Tamper::Twice),
        "ones" => Self::Tamper(Tamper::Ones),
        "data" => Self::Data,
        "take-back" => Self::Forge(Forgery::TakeBack),
        "overgrant" => Self::Forge(Forgery::Overgrant(16)),
        "unsent" => Self::Forge(Forgery::AckUnsent),
    }
    Directions { "up" => Self::Up, "down" => Self::Down, "both" => Self::Both, }
    Of {
        "ber" => Self::Ber, "tlp" => Self::Tlp, "dllp" => Self::Dllp, "flit" => Self::Flit, "down" => Self::Down,
        "reset" => Self::Reset, "narrow" => Self::Narrow,
    }
}

/// What `damage` says in the tables.
pub(crate) const DAMAGE_TEXT: &str = "What happens to it. On the wire: a bad CRC (corrupt, the default), or nothing arrives (drop). To a \
    TLP: marked as bad (poison), a wrong digest (ecrc), malformed (type, length, payload larger than MPS, 4 KiB boundary), a completion \
    with a wrong tag, requester or byte count, an address nobody claims, a request that is answered with CA (abort), UR (refuse) or RRS \
    (retry), lost for good (lose), come late by `by` while others pass (late), come twice (twice), a completion whose data are all ones \
    (ones), or data of which bits are inverted (data, with `byte` and `flip`). To a DLLP: an UpdateFC that takes credits back or overgrants them, an Ack of what was unsent.";

/// Adds every fault to its link; `digests`: TLPs have one.
pub(crate) fn read(root: &View<'_>, digests: bool, topology: &mut Topology) -> Result<(), Error> {
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
        let kind = kind(&fault, link.mode, link.width)?;
        if !digests && matches!(kind, FaultKind::Tamper { how: Tamper::Ecrc, .. }) {
            let problem =
                Problem::new("no TLP has a digest (ECRC) that could be wrong").hint("set host.ecrc = true");
            return Err(fault.get("damage").unwrap_or_else(|| fault.clone()).problem(problem));
        }
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

fn kind(fault: &View<'_>, mode: LinkMode, width: Width) -> Result<FaultKind, Error> {
    let given: Vec<_> = Of::WORDS.iter().filter_map(|(key, of)| Some((*of, fault.get(key)?))).collect();
    let [(of, one)] = given.as_slice() else {
        let problem = Problem::new(match given.len() {
            0 => "this fault does nothing",
            _ => "this fault does several things",
        });
        return Err(fault.key_error(problem.hint("say one of ber, tlp, dllp, flit, down, reset, narrow")));
    };
    if matches!(of, Of::Down | Of::Reset) {
        return away(fault, *of == Of::Reset);
    }
    if let Some(until) = fault.get("until") {
        return Err(until.key_error(Problem::new("until belongs to down and reset")));
    }
    if *of == Of::Narrow {
        return narrow(fault, width);
    }
    if let Some(lanes) = fault.get("lanes") {
        return Err(lanes.key_error(Problem::new("lanes belongs to narrow")));
    }
    if *of == Of::Ber {
        for key in ["damage", "of", "count", "by", "byte", "flip"] {
            if let Some(extra) = fault.get(key) {
                return Err(extra.key_error(Problem::new(format!("{key} belongs to tlp, dllp and flit"))));
            }
        }
        // 2^64 as a float is exact; probabilities below 2^-64 become the smallest there is.
        let numerator = (fault.number("ber").unwrap_or(0.0) * 18_446_744_073_709_551_616.0) as u64;
        return Ok(FaultKind::BitErrors { numerator: numerator.max(1) });
    }
    counted(fault, one, *of, mode)
}

/// A fault of the n-th TLP, DLLP or flit.
fn counted(fault: &View<'_>, one: &View<'_>, of: Of, mode: LinkMode) -> Result<FaultKind, Error> {
    let key = one.path.rsplit('.').next().unwrap_or_default();
    let (n, count) = (fault.integer(key).unwrap_or(1), fault.integer("count").unwrap_or(1));
    let only = only(fault, of)?;
    let harm = harm(fault)?;
    let wrong = |what: &str| {
        let view = fault.get("damage").unwrap_or_else(|| fault.clone());
        Err(view.error(format!("\"{}\" cannot be done to a {what}", view.text())))
    };
    match (harm, of) {
        (Harm::Tamper(how), Of::Tlp) => match only {
            Some(name) if !can_be_done(how, name) => return wrong(&format!("TLP named {name}")),
            _ => return Ok(FaultKind::Tamper { only, n, count, how }),
        },
        (Harm::Tamper(_), Of::Flit) | (Harm::Forge(_), Of::Flit) => return wrong("flit"),
        (Harm::Tamper(_), _) => return wrong("DLLP"),
        (Harm::Forge(_), Of::Tlp) => return wrong("TLP"),
        (Harm::Forge(_) | Harm::Wire(_) | Harm::Late | Harm::Data, _) => {}
    }
    let unit = match (of, mode) {
        (Of::Flit, LinkMode::Flit) => FaultUnit::Flit,
        (Of::Tlp, LinkMode::NonFlit) => only.map_or(FaultUnit::Tlp, FaultUnit::Called),
        (Of::Dllp | Of::Ber | Of::Down | Of::Reset | Of::Narrow, LinkMode::NonFlit) => {
            only.map_or(FaultUnit::Dllp, FaultUnit::Called)
        }
        (Of::Flit, LinkMode::NonFlit) => {
            let problem = Problem::new("this link is not in flit mode and carries no flits");
            return Err(one.key_error(problem.hint("count tlp or dllp")));
        }
        (Of::Tlp, LinkMode::Flit) => {
            let problem = Problem::new("in flit mode CRCs protect flits, not TLPs");
            return Err(one.key_error(problem.hint("count flit")));
        }
        (Of::Dllp | Of::Ber | Of::Down | Of::Reset | Of::Narrow, LinkMode::Flit) => {
            let problem = Problem::new("this link is in flit mode and carries no separate DLLPs");
            return Err(one.key_error(problem.hint("count flit or tlp")));
        }
    };
    Ok(match harm {
        Harm::Forge(how) => FaultKind::Forge { n, count, how },
        Harm::Wire(damage) => FaultKind::Nth { unit, n, count, damage },
        Harm::Tamper(how) => FaultKind::Tamper { only, n, count, how },
        Harm::Late | Harm::Data => return wrong(key),
    })
}

/// What is done to the unit, with what the other keys say of it.
fn harm(fault: &View<'_>) -> Result<Harm, Error> {
    let missing =
        |what: &str, add: &str| Err(fault.key_error(Problem::new(format!("{what} missing")).hint(add)));
    let harm = fault.choice("damage")?.unwrap_or(Harm::Wire(Damage::Corrupt));
    for (key, belongs, word) in [
        ("by", matches!(harm, Harm::Late), "late"),
        ("byte", matches!(harm, Harm::Data), "data"),
        ("flip", matches!(harm, Harm::Data), "data"),
    ] {
        if let Some(extra) = fault.get(key).filter(|_| !belongs) {
            return Err(extra.key_error(Problem::new(format!("{key} belongs to damage = \"{word}\""))));
        }
    }
    match harm {
        Harm::Late => match fault.duration("by") {
            Some(by) => Ok(Harm::Tamper(Tamper::Late(by))),
            None => missing("the time by which it is late is", "add by = \"10us\""),
        },
        Harm::Data => match fault.integer("flip").and_then(|flip| u32::try_from(flip).ok()) {
            Some(flip) => {
                let byte = fault.integer("byte").and_then(|byte| u16::try_from(byte).ok()).unwrap_or(0);
                Ok(Harm::Tamper(Tamper::Data { byte, flip }))
            }
            None => missing("the bits that are inverted are", "add flip = 0x1"),
        },
        harm => Ok(harm),
    }
}

/// The faults that hit units, in the order of links, and how many they have hit.
pub(crate) fn struck(fabric: &Fabric, config: &FabricConfig) -> Vec<Struck> {
    let of_link = |(link, place, hits): (LinkId, usize, u64)| {
        let link = &fabric.topology().links[link.index()].name;
        let fault = config.link_above(link)?.faults.get(place)?;
        let (damage, of, first) = in_words(&fault.kind)?;
        Some(Struck {
            link: link.clone(),
            direction: if fault.direction == Direction::Up { Way::Up } else { Way::Down },
            damage,
            of,
            first,
            struck: hits,
        })
    };
    fabric.fault_strikes().filter_map(of_link).collect()
}

/// What a fault of units does, as `damage` says it, what it counts, and which is the first; `None`, if it has a time instead.
fn in_words(kind: &FaultKind) -> Option<(FaultDamage, Option<FaultOf>, u64)> {
    Some(match *kind {
        FaultKind::BitErrors { .. } => (FaultDamage::Ber, None, 1),
        FaultKind::Nth { unit, n, damage, .. } => {
            let of = match unit {
                FaultUnit::Called(name) => FaultOf::named(name),
                FaultUnit::Tlp => Some(FaultOf::Tlp),
                FaultUnit::Dllp => Some(FaultOf::Dllp),
                FaultUnit::Flit => Some(FaultOf::Flit),
            };
            (if damage == Damage::Drop { FaultDamage::Drop } else { FaultDamage::Corrupt }, of, n)
        }
        FaultKind::Tamper { only, n, how, .. } => (tamper_in_words(how), only.and_then(FaultOf::named), n),
        FaultKind::Forge { n, how, .. } => {
            let word = match how {
                Forgery::TakeBack => FaultDamage::TakeBack,
                Forgery::Overgrant(_) => FaultDamage::Overgrant,
                Forgery::AckUnsent => FaultDamage::Unsent,
            };
            (word, None, n)
        }
        FaultKind::Down { .. } | FaultKind::Reset { .. } | FaultKind::Narrow { .. } => return None,
    })
}

fn tamper_in_words(how: Tamper) -> FaultDamage {
    match how {
        Tamper::Poison => FaultDamage::Poison,
        Tamper::Ecrc => FaultDamage::Ecrc,
        Tamper::Malform(Malformation::Type) => FaultDamage::Type,
        Tamper::Malform(Malformation::Length) => FaultDamage::Length,
        Tamper::Malform(Malformation::Payload) => FaultDamage::Payload,
        Tamper::Malform(Malformation::Boundary) => FaultDamage::Boundary,
        Tamper::Tag => FaultDamage::Tag,
        Tamper::Requester => FaultDamage::Requester,
        Tamper::ByteCount => FaultDamage::ByteCount,
        Tamper::Address => FaultDamage::Address,
        Tamper::Refuse(CompletionStatus::UnsupportedRequest) => FaultDamage::Refuse,
        Tamper::Refuse(CompletionStatus::RetryStatus) => FaultDamage::Retry,
        Tamper::Refuse(_) => FaultDamage::Abort,
        Tamper::Lose => FaultDamage::Lose,
        Tamper::Late(_) => FaultDamage::Late,
        Tamper::Twice => FaultDamage::Twice,
        Tamper::Ones => FaultDamage::Ones,
        Tamper::Data { .. } => FaultDamage::Data,
    }
}

/// Whether any TLP of this name has the field that is changed.
fn can_be_done(how: Tamper, name: &str) -> bool {
    let completion = matches!(name, "Cpl" | "CplD");
    match how {
        Tamper::Poison
        | Tamper::Data { .. }
        | Tamper::Malform(Malformation::Length | Malformation::Payload) => {
            matches!(name, "MWr" | "CfgWr0" | "CfgWr1" | "IOWr" | "CplD")
        }
        Tamper::Malform(Malformation::Boundary) | Tamper::Address => matches!(name, "MRd" | "MWr"),
        Tamper::Refuse(CompletionStatus::RetryStatus) => {
            matches!(name, "CfgRd0" | "CfgRd1" | "CfgWr0" | "CfgWr1")
        }
        Tamper::Refuse(_) => !completion && name != "Msg",
        Tamper::Tag | Tamper::Requester | Tamper::ByteCount => completion,
        Tamper::Ones => name == "CplD",
        Tamper::Malform(Malformation::Type)
        | Tamper::Ecrc
        | Tamper::Lose
        | Tamper::Late(_)
        | Tamper::Twice => true,
    }
}

/// The name that `of` limits the fault to, which must be one of what is counted.
fn only(fault: &View<'_>, counted: Of) -> Result<Option<&'static str>, Error> {
    let Some(of) = fault.get("of") else { return Ok(None) };
    let place = NAMES.iter().position(|name| *name == of.text());
    let place = place.ok_or_else(|| of.problem(crate::keys::no_choice(&NAMES, of.text())))?;
    let dllps = NAMES.iter().position(|name| *name == FIRST_DLLP);
    let (what, is) = if Some(place) < dllps { (Of::Tlp, "tlp") } else { (Of::Dllp, "dllp") };
    if what != counted {
        let key = Of::WORDS.iter().find(|(_, of)| *of == counted).map_or("", |(word, _)| word);
        let problem = Problem::new(format!("\"{}\" is no name of a {key}", of.text()));
        return Err(of.problem(problem.hint(format!("count {is}"))));
    }
    Ok(Some(NAMES[place]))
}

/// What hits units, and not the link as a whole.
fn refuse_unit_keys(fault: &View<'_>, what: &str) -> Result<(), Error> {
    for key in ["damage", "direction", "of", "count", "by", "byte", "flip"] {
        if let Some(extra) = fault.get(key) {
            return Err(extra.key_error(Problem::new(format!("a link that is {what} has no {key}"))));
        }
    }
    Ok(())
}

/// Lanes of a link of `width` fail.
fn narrow(fault: &View<'_>, width: Width) -> Result<FaultKind, Error> {
    refuse_unit_keys(fault, "narrower")?;
    let at = fault.instant("narrow").unwrap_or(Time::ZERO);
    let Some(lanes) = fault.get("lanes") else {
        let problem = Problem::new("the lanes that are left are missing");
        return Err(fault.key_error(problem.hint("add lanes = 1")));
    };
    match fault.integer("lanes").and_then(|lanes| Width::new(u8::try_from(lanes).ok()?)) {
        Some(left) if left < width => Ok(FaultKind::Narrow { at, width: left }),
        _ => {
            let less: Vec<_> = Width::ALL
                .into_iter()
                .filter(|left| *left < width)
                .map(|left| left.lanes().to_string())
                .collect();
            let problem =
                Problem::new(format!("a link of {} lanes cannot be narrowed to this", width.lanes()));
            Err(lanes.problem(problem.hint(if less.is_empty() {
                "it has one lane".to_owned()
            } else {
                format!("lanes is one of {}", less.join(" "))
            })))
        }
    }
}

/// The link goes down, or what is below it is held in reset.
fn away(fault: &View<'_>, reset: bool) -> Result<FaultKind, Error> {
    refuse_unit_keys(fault, "down")?;
    if let Some(lanes) = fault.get("lanes") {
        return Err(lanes.key_error(Problem::new("lanes belongs to narrow")));
    }
    let at = fault.instant(if reset { "reset" } else { "down" }).unwrap_or(Time::ZERO);
    let until = fault.instant("until");
    if let Some(up) = until
        && up <= at
    {
        let view = fault.get("until").unwrap_or_else(|| fault.clone());
        return Err(view.error(format!("the link cannot be up again at {up} when it goes down at {at}")));
    }
    Ok(if reset { FaultKind::Reset { at, until } } else { FaultKind::Down { at, until } })
}

fn directions(fault: &View<'_>, kind: &FaultKind) -> Result<Vec<Direction>, Error> {
    if kind.takes_down() || matches!(kind, FaultKind::Narrow { .. }) {
        return Ok(vec![Direction::Up]);
    }
    Ok(match fault.choice("direction")?.unwrap_or(Directions::Both) {
        Directions::Up => vec![Direction::Up],
        Directions::Down => vec![Direction::Down],
        Directions::Both => vec![Direction::Up, Direction::Down],
    })
}
