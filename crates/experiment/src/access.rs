//! `acs`: the access control services of root ports and of the downstream ports of switches.

use crate::choices::{AcsPreset, choice};
use crate::error::{Error, Problem, suggest};
use crate::keys::{Key, Kind, key};
use crate::topology::Topology;
use crate::tree::Value;
use crate::view::View;
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
    "Upper end only: the egress control vector, as names of components below the same switch or host; with egress-control requests from below this port to them are refused or, with request-redirect, go up, and others go straight.",
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
    match (controls, forbids) {
        (Some(enabled), _) => Ok(Some(AcsConfig { enabled, forbidden })),
        (None, Some(view)) => Err(view.key_error(
            Problem::new("acs_forbids without acs").hint("for example acs = [\"egress-control\"]"),
        )),
        (None, None) => Ok(None),
    }
}

/// Gives ports that say nothing what their switch or the host says, and checks the names in the vectors of all.
pub(crate) fn complete(root: &View<'_>, topology: &mut Topology) -> Result<(), Error> {
    let switches = root.get("switch");
    let of_parent = |under: &str| -> Result<Option<AcsConfig>, Error> {
        let switch = switches.as_ref().and_then(|switches| switches.get(under));
        let parent = if under.starts_with("host.") { root.get("host") } else { switch };
        let Some(acs) = parent.and_then(|parent| parent.get("acs")) else { return Ok(None) };
        Ok(Some(AcsConfig { enabled: controls(&acs)?, forbidden: Vec::new() }))
    };
    // The parents with their ports: root ports are of one.
    let node = |under: &str| under.split('.').next().unwrap_or(under).to_owned();
    let parents: Vec<(String, String)> =
        links(topology).map(|(name, link)| (name.to_owned(), node(&link.under))).collect();
    for (name, link) in links(topology) {
        let own = link.upper.acs.take();
        link.upper.acs = match own {
            Some(acs) => Some(acs),
            None => of_parent(&link.under)?,
        };
        let Some(acs) = &link.upper.acs else { continue };
        let here = node(&link.under);
        let beside = parents.iter().filter(|(_, parent)| *parent == here).map(|(name, _)| name.as_str());
        for peer in &acs.forbidden {
            if beside.clone().any(|other| other == peer) {
                continue;
            }
            let at = root.get("link").and_then(|links| links.get(name)?.get("upper")?.get("acs_forbids"));
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
