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
use tlplab_units::{Duration, LinkMode, Time, Width};

/// A name of TLPs or DLLPs that a fault may be limited to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    name: &'static str,
    of: Of,
}

impl Called {
    const fn tlp(name: &'static str) -> Self {
        Self { name, of: Of::Tlp }
    }
    const fn dllp(name: &'static str) -> Self {
        Self { name, of: Of::Dllp }
    }
}

/// The damage to a unit.
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

/// The directions of a link.
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
pub(crate) enum Of {
    Ber,
    Tlp,
    Dllp,
    Flit,
    Down,
    Reset,
    Narrow,
}

impl Of {
    fn key(self) -> &'static str {
        Self::WORDS.iter().find(|(_, of)| *of == self).map_or("", |(key, _)| key)
    }
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
    Called {
        "MRd" => Self::tlp("MRd"),
        "MWr" => Self::tlp("MWr"),
        "CfgRd0" => Self::tlp("CfgRd0"),
        "CfgWr0" => Self::tlp("CfgWr0"),
        "CfgRd1" => Self::tlp("CfgRd1"),
        "CfgWr1" => Self::tlp("CfgWr1"),
        "IORd" => Self::tlp("IORd"),
        "IOWr" => Self::tlp("IOWr"),
        "Msg" => Self::tlp("Msg"),
        "Cpl" => Self::tlp("Cpl"),
        "CplD" => Self::tlp("CplD"),
        "Ack" => Self::dllp("Ack"),
        "Nak" => Self::dllp("Nak"),
        "UpdateFC" => Self::dllp("UpdateFC"),
        "InitFC1" => Self::dllp("InitFC1"),
        "InitFC2" => Self::dllp("InitFC2"),
    }
    Directions { "up" => Self::Up, "down" => Self::Down, "both" => Self::Both, }
    Of {
        "ber" => Self::Ber, "tlp" => Self::Tlp, "dllp" => Self::Dllp, "flit" => Self::Flit, "down" => Self::Down,
        "reset" => Self::Reset, "narrow" => Self::Narrow,
    }
}

/// A fault as its table says it.
pub(crate) struct Said {
    pub(crate) link: String,
    pub(crate) direction: Directions,
    pub(crate) ber: f64,
    /// The first TLP, DLLP or flit that is hit.
    pub(crate) n: u64,
    pub(crate) only: Option<Called>,
    pub(crate) count: u64,
    pub(crate) harm: Harm,
    /// The time at which the link goes down, is reset or narrows.
    pub(crate) at: Time,
    pub(crate) lanes: Option<u8>,
    pub(crate) by: Option<Duration>,
    pub(crate) byte: u16,
    pub(crate) flip: Option<u32>,
    pub(crate) until: Option<Time>,
}

impl Said {
    /// A fault of one unit in both directions, that does not say of which.
    const BLANK: Self = Self {
        link: String::new(),
        direction: Directions::Both,
        ber: 0.0,
        n: 1,
        only: None,
        count: 1,
        harm: Harm::Wire(Damage::Corrupt),
        at: Time::ZERO,
        lanes: None,
        by: None,
        byte: 0,
        flip: None,
        until: None,
    };
}

/// The description of `damage` in the tables.
pub(crate) const DAMAGE_TEXT: &str = "Damage. On the wire: a bad CRC (corrupt, the default), or nothing arrives (drop). To a TLP: marked as bad (poison), a wrong digest (ecrc), malformed (type, length, payload larger than MPS, 4 KiB boundary), a completion with a wrong tag, requester or byte count, an address that no component claims, a request that is answered with CA (abort), UR (refuse) or RRS (retry), lost for good (lose), delivered late by `by` while others pass (late), delivered twice (twice), a completion whose data are all ones (ones), or data of which bits are inverted (data, with `byte` and `flip`). To a DLLP: an UpdateFC that takes credits back or overgrants them, an Ack of a unit that was not sent.";

/// Adds every fault to its link; `digests`: TLPs have one.
pub(crate) fn read(root: &View<'_>, digests: bool, topology: &mut Topology) -> Result<(), Error> {
    for fault in root.get("fault").iter().flat_map(View::items) {
        let said = tables::FAULT.read_into(&fault, Said::BLANK)?;
        let Some(link) = link_of(topology, &said.link) else {
            let names = topology
                .switches
                .iter()
                .map(|s| s.name.as_str())
                .chain(topology.buses.iter().map(|b| b.name.as_str()))
                .chain(topology.devices.iter().filter(|d| d.bus.is_none()).map(|d| d.name.as_str()));
            let hint = suggest(&said.link, names, "components");
            let problem =
                Problem::new(format!("there is no component \"{}\" with a link above it", said.link));
            return Err(fault.at("link").problem(problem.hint(hint)));
        };
        let kind = kind(&fault, &said, link)?;
        if !digests && matches!(kind, FaultKind::Tamper { how: Tamper::Ecrc, .. }) {
            let problem =
                Problem::new("no TLP has a digest (ECRC) that could be wrong").hint("set host.ecrc = true");
            return Err(fault.at("damage").problem(problem));
        }
        for &direction in directions(&said, &kind) {
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

fn kind(fault: &View<'_>, said: &Said, link: &LinkConfig) -> Result<FaultKind, Error> {
    let mode = link.mode;
    let given: Vec<_> = Of::WORDS.iter().filter_map(|(key, of)| Some((*of, fault.get(key)?))).collect();
    let [(of, one)] = given.as_slice() else {
        let problem = Problem::new(match given.len() {
            0 => "this fault does nothing",
            _ => "this fault does several things",
        });
        return Err(fault.key_error(problem.hint("set one of ber, tlp, dllp, flit, down, reset, narrow")));
    };
    if matches!(of, Of::Down | Of::Reset) {
        return away(fault, said, *of == Of::Reset);
    }
    if let Some(until) = fault.get("until") {
        return Err(until.key_error(Problem::new("until belongs to down and reset")));
    }
    if *of == Of::Narrow {
        return narrow(fault, said, link);
    }
    if let Some(lanes) = fault.get("lanes") {
        return Err(lanes.key_error(Problem::new("lanes belongs to narrow")));
    }
    if *of == Of::Ber {
        for key in OF_UNITS.into_iter().filter(|key| *key != "direction") {
            if let Some(extra) = fault.get(key) {
                return Err(extra.key_error(Problem::new(format!("{key} belongs to tlp, dllp and flit"))));
            }
        }
        // 2^64 as a float is exact; probabilities below 2^-64 become the smallest there is.
        let numerator = (said.ber * 18_446_744_073_709_551_616.0) as u64;
        return Ok(FaultKind::BitErrors { numerator: numerator.max(1) });
    }
    counted(fault, said, one, *of, mode)
}

/// A fault of the n-th TLP, DLLP or flit.
fn counted(
    fault: &View<'_>,
    said: &Said,
    one: &View<'_>,
    of: Of,
    mode: LinkMode,
) -> Result<FaultKind, Error> {
    let Said { n, count, .. } = *said;
    let only = only(fault, said, of)?;
    let harm = harm(fault, said)?;
    let wrong = |what: &str| {
        let view = fault.at("damage");
        Err(view.error(format!("\"{}\" does not apply to a {what}", view.text())))
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
        Harm::Late | Harm::Data => return wrong(one.name()),
    })
}

/// The damage to the unit, with the values of the other keys.
fn harm(fault: &View<'_>, said: &Said) -> Result<Harm, Error> {
    let missing =
        |what: &str, add: &str| Err(fault.key_error(Problem::new(format!("{what} missing")).hint(add)));
    let Said { harm, .. } = *said;
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
        Harm::Late => match said.by {
            Some(by) => Ok(Harm::Tamper(Tamper::Late(by))),
            None => missing("the delay of the late TLP is", "add by = \"10us\""),
        },
        Harm::Data => match said.flip {
            Some(flip) => Ok(Harm::Tamper(Tamper::Data { byte: said.byte, flip })),
            None => missing("the bits to invert are", "add flip = 0x1"),
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

/// The damage of a fault of units, as `damage` names it, the units that it counts, and the first; `None`, if it has a time instead.
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

/// True if any TLP of this name has the field that is changed.
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
fn only(fault: &View<'_>, said: &Said, counted: Of) -> Result<Option<&'static str>, Error> {
    let Some(Called { name, of }) = said.only else { return Ok(None) };
    if of != counted {
        let problem = Problem::new(format!("\"{name}\" is not the name of a {}", counted.key()));
        return Err(fault.at("of").problem(problem.hint(format!("count {}", of.key()))));
    }
    Ok(Some(name))
}

/// Keys of what hits units, and not the link as a whole.
pub(crate) const OF_UNITS: [&str; 7] = ["damage", "direction", "of", "count", "by", "byte", "flip"];

fn refuse_unit_keys(fault: &View<'_>, what: &str) -> Result<(), Error> {
    for key in OF_UNITS {
        if let Some(extra) = fault.get(key) {
            return Err(extra.key_error(Problem::new(format!("a link that is {what} has no {key}"))));
        }
    }
    Ok(())
}

/// Lanes of a link fail, some of which may have failed before.
fn narrow(fault: &View<'_>, said: &Said, link: &LinkConfig) -> Result<FaultKind, Error> {
    refuse_unit_keys(fault, "narrower")?;
    let others = link.faults.iter().filter_map(|other| match other.kind {
        FaultKind::Narrow { at, width } => Some((at, width)),
        _ => None,
    });
    let earlier = others.clone().filter(|(at, _)| *at <= said.at).map(|(_, width)| width);
    let width = earlier.min().unwrap_or(link.width);
    let Some(lanes) = fault.get("lanes") else {
        let problem = Problem::new("the lanes that are left are missing");
        return Err(fault.key_error(problem.hint("add lanes = 1")));
    };
    match said.lanes.and_then(Width::new) {
        Some(left) if left < width => {
            let mut later = others.filter(|(at, _)| *at > said.at);
            if let Some((at, width)) = later.find(|(_, width)| *width >= left) {
                let lanes_then = width.lanes();
                let problem =
                    Problem::new(format!("the fault at {at} leaves {lanes_then} lanes, which failed before"));
                return Err(lanes.problem(problem.hint("lanes that have failed do not come back")));
            }
            Ok(FaultKind::Narrow { at: said.at, width: left })
        }
        _ => {
            let less: Vec<_> = Width::ALL
                .into_iter()
                .filter(|left| *left < width)
                .map(|left| left.lanes().to_string())
                .collect();
            let lanes_left = match width.lanes() {
                1 => "one lane".to_owned(),
                several => format!("{several} lanes"),
            };
            let problem = Problem::new(format!("a link of {lanes_left} cannot be narrowed to this"));
            Err(lanes.problem(problem.hint(if less.is_empty() {
                "it has one lane".to_owned()
            } else {
                format!("lanes is one of {}", less.join(" "))
            })))
        }
    }
}

/// The link goes down, or what is below it is held in reset.
fn away(fault: &View<'_>, said: &Said, reset: bool) -> Result<FaultKind, Error> {
    refuse_unit_keys(fault, "down")?;
    if let Some(lanes) = fault.get("lanes") {
        return Err(lanes.key_error(Problem::new("lanes belongs to narrow")));
    }
    let Said { at, until, .. } = *said;
    if let Some(up) = until
        && up <= at
    {
        return Err(fault
            .at("until")
            .error(format!("the link cannot be up again at {up} when it goes down at {at}")));
    }
    Ok(if reset { FaultKind::Reset { at, until } } else { FaultKind::Down { at, until } })
}

fn directions(said: &Said, kind: &FaultKind) -> &'static [Direction] {
    if kind.takes_down() || matches!(kind, FaultKind::Narrow { .. }) {
        return &[Direction::Up];
    }
    match said.direction {
        Directions::Up => &[Direction::Up],
        Directions::Down => &[Direction::Down],
        Directions::Both => &[Direction::Up, Direction::Down],
    }
}
