//! `acs`: the access control services of root ports and of the downstream ports of switches, and the TLPs that they refused in a run.

use crate::choices::{AcsPreset, choice};
use crate::error::{Error, Problem, suggest};
use crate::keys::{Key, Kind, key};
use crate::link;
use crate::result;
use crate::settings::Settings;
use crate::topology::Topology;
use crate::tree::Value;
use crate::view::View;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::{AcsConfig, AcsControls, LinkConfig};

const CONTROLS: Kind = Kind::OneOf(&[choice::<AcsPreset>(), Kind::List(&choice::<AcsControls>())]);

/// Of a switch or the host: of all its ports with a link below.
pub(crate) const ACS: Key = key(
    ("acs", CONTROLS, "", r#"["request-redirect", "upstream-forwarding"]"#),
    "Access control services (ACS) of the ports with a link below: they have the capability, and these controls are on after a reset; \"off\": none; \"isolation\": the four that Linux turns on for an IOMMU, source validation, request and completion redirect, upstream forwarding. Absent: no capability. link.NAME.upper overrides this for the port above NAME.",
);

/// Of one port.
pub(crate) const ACS_OF_PORT: Key = key(
    ("acs", CONTROLS, "", r#""isolation""#),
    "Upper end only: access control services of this port, as `acs` of a switch or the host; absent: the value there.",
);

/// Of one port.
pub(crate) const ACS_FORBIDS: Key = key(
    ("acs_forbids", Kind::List(&Kind::Text), "", r#"["nic"]"#),
    "Upper end only: the egress control vector, as names of components below the same switch or host; requests from below this port to them are refused or, with request-redirect, go up, and others go straight. Needs egress-control in acs of this port, or of its switch or host.",
);

/// The controls that `acs` turns on.
pub(crate) fn controls(view: &View<'_>) -> Result<AcsControls, Error> {
    if !matches!(view.node.value, Value::Array(_)) {
        return view.chosen().map(|AcsPreset(controls)| controls);
    }
    view.items().iter().try_fold(AcsControls::NONE, |sum, word| Ok(sum | word.chosen()?))
}

/// A port's own access control: the controls that are on, and the egress control vector.
pub(crate) fn of_port(
    port: &View<'_>,
    upper: bool,
    controls: Option<AcsControls>,
    forbidden: Vec<String>,
) -> Result<Option<AcsConfig>, Error> {
    let forbids = port.get("acs_forbids");
    if let Some(view) = port.get("acs").as_ref().or(forbids.as_ref()).filter(|_| !upper) {
        let problem =
            Problem::new("access control is at the upper end of a link: a root port's or a switch's");
        return Err(view.key_error(problem.hint("write it in upper")));
    }
    // Of a port with a vector alone, `complete` reads the controls that its switch or host says.
    let enabled = controls.or((!forbidden.is_empty()).then_some(AcsControls::NONE));
    Ok(enabled.map(|enabled| AcsConfig { enabled, forbidden }))
}

/// Gives ports that say nothing what their switch or the host says, and checks the vectors of all.
pub(crate) fn complete(root: &View<'_>, topology: &mut Topology) -> Result<(), Error> {
    let switches = root.get("switch");
    let of_parent = |under: &str| -> Result<Option<AcsControls>, Error> {
        let switch = switches.as_ref().and_then(|switches| switches.get(under));
        let parent = if under.starts_with("host.") { root.get("host") } else { switch };
        parent.and_then(|parent| parent.get("acs")).map(|acs| controls(&acs)).transpose()
    };
    // The parents with their ports: root ports are of one.
    let node = |under: &str| under.split('.').next().unwrap_or(under).to_owned();
    let parents: Vec<(String, String)> =
        links(topology).map(|(name, link)| (name.to_owned(), node(&link.under))).collect();
    for (name, link) in links(topology) {
        let here = node(&link.under);
        let said = |key: &str| link::said(root, name, &["upper", key]);
        let forbidden = link.upper.acs.as_ref().map_or(Vec::new(), |acs| acs.forbidden.clone());
        if said("acs").is_none() {
            let enabled = of_parent(&link.under)?;
            if let (None, Some(view)) = (enabled, said("acs_forbids").filter(|_| !forbidden.is_empty())) {
                let problem = Problem::new(format!("acs_forbids without acs at this port or in {here}"));
                return Err(view.key_error(problem.hint("for example acs = [\"egress-control\"]")));
            }
            link.upper.acs = enabled.map(|enabled| AcsConfig { enabled, forbidden });
        }
        let Some(acs) = &link.upper.acs else { continue };
        if let Some(view) = said("acs_forbids").filter(|_| !acs.forbidden.is_empty())
            && !acs.enabled.contains(AcsControls::EGRESS_CONTROL)
        {
            let problem = Problem::new("acs_forbids has no effect: this port's \"egress-control\" is not on");
            return Err(view.key_error(problem.hint("add \"egress-control\" to acs, or remove acs_forbids")));
        }
        let beside = parents.iter().filter(|(_, parent)| *parent == here).map(|(name, _)| name.as_str());
        for peer in &acs.forbidden {
            if beside.clone().any(|other| other == peer) {
                continue;
            }
            let at = said("acs_forbids");
            let hint = suggest(peer, beside, &format!("the components under {here}"));
            let problem = Problem::new(format!("\"{peer}\" is not under \"{here}\"")).hint(hint);
            return Err(at.unwrap_or_else(|| root.clone()).problem(problem));
        }
    }
    Ok(())
}

/// All links, with the names of the components below.
fn links(topology: &mut Topology) -> impl Iterator<Item = (&str, &mut LinkConfig)> {
    let switches = topology.switches.iter_mut().map(|switch| (switch.name.as_str(), &mut switch.uplink));
    let buses = topology.buses.iter_mut().map(|bus| (bus.name.as_str(), &mut bus.uplink));
    let devices =
        topology.devices.iter_mut().filter(|device| device.function_of.is_none() && device.bus.is_none());
    switches.chain(buses).chain(devices.map(|device| (device.name.as_str(), &mut device.link)))
}

/// The TLPs that ports refused their way to a peer, by port and reason.
pub(crate) fn refused(fabric: &Fabric, settings: &Settings) -> Vec<result::RefusedPeers> {
    let topology = fabric.topology();
    let one = |refused: &tlplab_fabric::errors::RefusedPeers| {
        let port = &topology.ports[refused.port.index()];
        let below = &topology.links[port.link.index()].name;
        let sender = topology.nodes.iter().find(|node| node.id == refused.sender);
        let reason = refused.reason.into();
        result::RefusedPeers {
            port: topology.direction_name(refused.port),
            reason,
            key: key_of(reason, &topology.nodes[port.node.index()].name, below, settings),
            device: sender.map_or_else(|| refused.sender.to_string(), |node| node.name.clone()),
            requests: refused.requests,
            completions: refused.completions,
            first_fs: refused.first.as_fs(),
        }
    };
    let mut all: Vec<_> = fabric.refused_peers().map(one).collect();
    all.sort_by_key(|refused| refused.first_fs);
    all
}

/// The key that makes the port of `node` above `below` refuse what it refuses: its own, or that of all ports of its switch or host.
fn key_of(reason: result::PeerRefusal, node: &str, below: &str, settings: &Settings) -> String {
    let own = format!("link.{below}.upper.acs");
    match reason {
        result::PeerRefusal::RootComplex => return "host.p2p".into(),
        result::PeerRefusal::EgressControl => return format!("{own}_forbids"),
        _ => {}
    }
    let of_all = if settings.contains_key(&format!("switch.{node}.acs")) {
        format!("switch.{node}.acs")
    } else {
        format!("{node}.acs")
    };
    if settings.contains_key(&own) || !settings.contains_key(&of_all) { own } else { of_all }
}
