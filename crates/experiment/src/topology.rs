//! Switches, buses and devices: who is under whom.

use crate::access;
use crate::bus;
use crate::choices::RoundRobin;
use crate::device_models::{self, ModelSpec, PythonObject};
use crate::error::{Error, Problem, suggest};
use crate::keys::Keys;
use crate::link;
use crate::tables;
use crate::view::View;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_datalink::CreditKind;
use tlplab_fabric::config::{
    Arbitration, Buffers, BusConfig, BusDevice, DeviceConfig, Forwarding, FunctionOf, HostConfig, LinkConfig,
    MpsPolicy, Payloads, PortConfig, SwitchConfig, payloads,
};
use tlplab_units::{Generation, LinkMode, Width};

/// Root ports a host may have: bus 0 has 32 device numbers, and the host bridge is the first.
const ROOT_PORTS: u8 = 31;

/// A device's behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// The component's name.
    pub name: String,
    /// Its model.
    pub model: ModelSpec,
    /// The host's side of it.
    pub driver: Option<PythonObject>,
}

/// Everything below the host, sorted by name.
pub(crate) struct Topology {
    pub(crate) switches: Vec<SwitchConfig>,
    pub(crate) buses: Vec<BusConfig>,
    pub(crate) devices: Vec<DeviceConfig>,
    pub(crate) specs: Vec<DeviceSpec>,
}

impl Topology {
    /// All links, by the component below.
    fn links(&self) -> BTreeMap<&str, &LinkConfig> {
        let switches = self.switches.iter().map(|switch| (switch.name.as_str(), &switch.uplink));
        let buses = self.buses.iter().map(|bus| (bus.name.as_str(), &bus.uplink));
        let devices = self.devices.iter().filter(|device| device.function_of.is_none());
        let devices = devices.map(|device| (device.name.as_str(), &device.link));
        switches.chain(buses).chain(devices).collect()
    }

    fn add_device(&mut self, device: DeviceConfig, view: &View<'_>) -> Result<(), Error> {
        let model = device_models::spec(view)?;
        let driver =
            view.get("driver").and_then(|d| device_models::python_object(d.text(), |path| d.beside(path)));
        self.specs.push(DeviceSpec { name: device.name.clone(), model, driver });
        self.devices.push(device);
        Ok(())
    }
}

/// Reads `switch`, `bus` and `device`, above which there is `host`.
pub(crate) fn read(root: &View<'_>, host: &HostConfig) -> Result<Topology, Error> {
    let components = components(root)?;
    check_parents(&components)?;
    check_link_names(root, &components)?;
    let mut topology =
        Topology { switches: Vec::new(), buses: Vec::new(), devices: Vec::new(), specs: Vec::new() };
    for (name, component) in &components {
        let view = &component.view;
        if let Some((of, number)) = function_of(component.under.text()) {
            let function_of = Some(FunctionOf { device: of.into(), number });
            let blank = DeviceConfig { function_of, ..DeviceConfig::new(name, shared_link(component, of)?) };
            topology.add_device(device(view, blank)?, view)?;
            continue;
        }
        if let Some(parent) = component.its_bus(&components) {
            let link = no_link(component)?;
            let mode = bus::config(component.under.text(), &parent.view, link.clone())?.mode;
            let blank = DeviceConfig { bus: Some(BusDevice::default()), ..DeviceConfig::new(name, link) };
            let device = device(view, blank)?;
            bus::check_device(view, &device, mode)?;
            topology.add_device(device, view)?;
            continue;
        }
        bus::check_no_bus(view)?;
        let gathered = link::gather(root, name, view)?;
        let link_view = view.require(component.section(), "link")?;
        let link = link::config(component.under.text(), &link_view.with(&gathered))
            .map_err(|error| link::relocate(error, root, name))?;
        link::check_effects(root, name, view, &link)?;
        match component.kind {
            ComponentKind::Switch => {
                topology.switches.push(switch(view, SwitchConfig::new(name, link), &components)?)
            }
            ComponentKind::Bus => topology.buses.push(bus::config(name, view, link)?),
            ComponentKind::Device => {
                topology.add_device(device(view, DeviceConfig::new(name, link))?, view)?
            }
        }
    }
    access::complete(root, &mut topology)?;
    check_buffers(root, host.payloads, &topology, &components)?;
    check_forwarding(root, &topology, &components)?;
    Ok(topology)
}

/// `nic.fn1`: a further function of a device.
fn function_of(under: &str) -> Option<(&str, u8)> {
    let (device, number) = under.rsplit_once(".fn")?;
    Some((device, number.parse().ok()?))
}

/// The stand-in for the link of a further function, which has none of its own.
fn shared_link(component: &Component<'_>, of: &str) -> Result<LinkConfig, Error> {
    for key in ["link", "mps"] {
        if let Some(said) = component.view.get(key) {
            let problem = Problem::new("a further function has no link of its own");
            return Err(
                said.key_error(problem.hint(format!("it shares that of \"{of}\": leave this key out")))
            );
        }
    }
    Ok(LinkConfig::new(of, Generation::FIRST, Width::ALL[0]))
}

/// The stand-in for the link of a device on a bus, which has none.
fn no_link(component: &Component<'_>) -> Result<LinkConfig, Error> {
    let under = component.under.text();
    for key in ["link", "mps"] {
        if let Some(said) = component.view.get(key) {
            let problem = Problem::new("a device on a bus has no link");
            return Err(said.key_error(problem.hint(format!("\"{under}\" is a bus: leave this key out"))));
        }
    }
    Ok(LinkConfig::new(under, Generation::FIRST, Width::ALL[0]))
}

struct Component<'a> {
    view: View<'a>,
    under: View<'a>,
    kind: ComponentKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ComponentKind {
    Switch,
    Bus,
    Device,
}

impl ComponentKind {
    /// With its table in the file.
    const ALL: [(&'static str, Self); 3] =
        [("switch", Self::Switch), ("bus", Self::Bus), ("device", Self::Device)];
}

impl Component<'_> {
    fn section(&self) -> &'static dyn Keys {
        match self.kind {
            ComponentKind::Switch => &tables::SWITCH,
            ComponentKind::Bus => &tables::BUS,
            ComponentKind::Device => &tables::DEVICE,
        }
    }

    /// Of a device on a bus: the bus.
    fn its_bus<'c, 'a>(&self, components: &'c Components<'a>) -> Option<&'c Component<'a>> {
        components.get(self.under.text()).filter(|parent| parent.kind == ComponentKind::Bus)
    }
}

type Components<'a> = BTreeMap<&'a str, Component<'a>>;

fn components<'a>(root: &View<'a>) -> Result<Components<'a>, Error> {
    let mut all = Components::new();
    for (table, kind) in ComponentKind::ALL {
        for (name, view) in root.get(table).iter().flat_map(View::entries) {
            if name == "host" {
                return Err(view.key_error(Problem::new("\"host\" is the name of the host")));
            }
            if let Some(other) = all.get(name) {
                let place = view.sources.place(other.view.key_at);
                let other = if other.kind == ComponentKind::Bus { "bus" } else { "switch" };
                let problem = Problem::new(format!("\"{name}\" is also a {other} ({place})"));
                return Err(view.key_error(problem.hint("names of components are unique")));
            }
            let under = view.require(&tables::SWITCH, "under")?;
            all.insert(name, Component { view, under, kind });
        }
    }
    if all.values().all(|c| c.kind != ComponentKind::Device) {
        let hint = "for example [device.ssd] with under = \"host.rp0\" and link = \"gen4 x4\"";
        return Err(root.key_error(Problem::new("there is no device").hint(hint)));
    }
    Ok(all)
}

fn check_parents(components: &Components<'_>) -> Result<(), Error> {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, component) in in_file_order(components) {
        let under = component.under.text();
        match components.get(under) {
            Some(parent) if parent.kind == ComponentKind::Switch => {}
            Some(parent) if parent.kind == ComponentKind::Bus => check_on_bus(component)?,
            Some(_) => {
                let problem = Problem::new(format!("\"{under}\" is a device, which has no ports below it"));
                return Err(component.under.problem(problem.hint("name a root port or a switch")));
            }
            None if function_of(under).is_some() => check_function(name, component, components, &mut taken)?,
            None => {
                check_root_port(component, components)?;
                if let Some(other) = taken.insert(under, name) {
                    let problem = Problem::new(format!("{under} already has \"{other}\" on its link"));
                    let hint = format!("use another root port, such as \"{}\"", next_port(components));
                    return Err(component.under.problem(problem.hint(hint)));
                }
            }
        }
    }
    for (name, component) in in_file_order(components) {
        check_loop(name, component, components)?;
    }
    Ok(())
}

fn check_function<'a>(
    name: &'a str,
    component: &Component<'a>,
    components: &Components<'a>,
    taken: &mut BTreeMap<&'a str, &'a str>,
) -> Result<(), Error> {
    let Some((of, number)) = function_of(component.under.text()) else { return Ok(()) };
    let is_device =
        |c: &Component<'_>| c.kind == ComponentKind::Device && function_of(c.under.text()).is_none();
    if component.kind != ComponentKind::Device || !components.get(of).is_some_and(is_device) {
        let devices = components.iter().filter(|(_, c)| is_device(c)).map(|(name, _)| *name);
        let hint = suggest(of, devices, "devices");
        let problem = Problem::new(format!("there is no device \"{of}\" that this could be a function of"));
        return Err(component.under.problem(problem.hint(hint)));
    }
    if number == 0 {
        let problem = Problem::new(format!("{number} is not the number of a further function"));
        return Err(component.under.problem(problem.hint(format!("write {of}.fn1 to {of}.fn255"))));
    }
    match taken.insert(component.under.text(), name) {
        Some(other) => Err(component.under.error(format!("\"{other}\" has that number already"))),
        None => Ok(()),
    }
}

fn check_on_bus(component: &Component<'_>) -> Result<(), Error> {
    let what = match component.kind {
        ComponentKind::Device => return Ok(()),
        ComponentKind::Switch => "a switch",
        ComponentKind::Bus => "another bus",
    };
    let problem = Problem::new(format!("\"{}\" is a bus, on which {what} cannot be", component.under.text()));
    Err(component.under.problem(problem.hint("name a root port or a switch")))
}

fn in_file_order<'c, 'a>(components: &'c Components<'a>) -> Vec<(&'a str, &'c Component<'a>)> {
    let mut list: Vec<_> = components.iter().map(|(name, component)| (*name, component)).collect();
    list.sort_by_key(|(_, component)| component.view.key_at);
    list
}

fn root_port(under: &str) -> Option<u8> {
    let digits = under.strip_prefix("host.rp")?;
    let number: u8 = digits.parse().ok()?;
    (digits == number.to_string() && number < ROOT_PORTS).then_some(number)
}

fn next_port(components: &Components<'_>) -> String {
    let used: BTreeSet<u8> = components.values().filter_map(|c| root_port(c.under.text())).collect();
    let free = (0..ROOT_PORTS).find(|n| !used.contains(n)).unwrap_or(0);
    format!("host.rp{free}")
}

fn check_root_port(component: &Component<'_>, components: &Components<'_>) -> Result<(), Error> {
    let under = component.under.text();
    if root_port(under).is_some() {
        return Ok(());
    }
    if let Some((of, number)) = under.rsplit_once(".fn").filter(|(of, _)| components.contains_key(of)) {
        let problem = Problem::new(format!("unknown function \"fn{number}\" of \"{of}\""));
        return Err(component.under.problem(problem.hint(format!("write {of}.fn1 to {of}.fn255"))));
    }
    if under == "host" || under.starts_with("host.") {
        let problem = Problem::new(format!("\"{under}\" is not a root port"));
        return Err(component.under.problem(problem.hint("root ports are host.rp0 to host.rp30")));
    }
    let switches = components.iter().filter(|(_, c)| c.kind != ComponentKind::Device).map(|(name, _)| *name);
    let hint = suggest(under, switches.chain(["host.rp0"]), "parents");
    Err(component
        .under
        .problem(Problem::new(format!("there is no switch, bus or root port \"{under}\"")).hint(hint)))
}

fn check_loop(name: &str, component: &Component<'_>, components: &Components<'_>) -> Result<(), Error> {
    let mut way = vec![name];
    let mut under = component.under.text();
    while let Some(parent) = components.get(under) {
        way.push(under);
        if under == name {
            let problem = Problem::new(format!("this makes a loop: {}", way.join(" under ")));
            return Err(component.under.problem(problem.hint("one of them belongs under a root port")));
        }
        if way.len() > components.len() {
            break;
        }
        under = parent.under.text();
    }
    Ok(())
}

fn check_link_names(root: &View<'_>, components: &Components<'_>) -> Result<(), Error> {
    for (name, view) in root.get("link").iter().flat_map(View::entries) {
        let has_link = |c: &Component<'_>| c.its_bus(components).is_none();
        if !components.get(name).is_some_and(has_link) {
            let with_links = components.iter().filter(|(_, c)| has_link(c)).map(|(name, _)| *name);
            let hint = suggest(name, with_links, "components");
            let problem = Problem::new(format!("there is no component \"{name}\" with a link above it"));
            return Err(view.key_error(problem.hint(hint)));
        }
    }
    Ok(())
}

fn switch(view: &View<'_>, blank: SwitchConfig, components: &Components<'_>) -> Result<SwitchConfig, Error> {
    for (child, weight) in view.get("arbitration").iter().flat_map(View::entries) {
        let name = blank.name.as_str();
        let children = components.iter().filter(|(_, c)| c.under.text() == name).map(|(name, _)| *name);
        if !children.clone().any(|c| c == child) {
            let hint = suggest(child, children, &format!("the components under {name}"));
            return Err(
                weight.key_error(Problem::new(format!("\"{child}\" is not under \"{name}\"")).hint(hint))
            );
        }
    }
    tables::SWITCH.read_into(view, blank)
}

/// Shares of a switch's egresses.
pub(crate) fn arbitration(view: &View<'_>) -> Result<Arbitration, Error> {
    let Some(table) = view.node.as_table() else {
        return view.chosen().map(|RoundRobin| Arbitration::RoundRobin);
    };
    if table.is_empty() {
        return Ok(Arbitration::RoundRobin);
    }
    let weights = view.entries().map(|(child, weight)| Ok((child.to_owned(), weight.whole()?)));
    weights.collect::<Result<_, _>>().map(Arbitration::Weighted)
}

fn device(view: &View<'_>, blank: DeviceConfig) -> Result<DeviceConfig, Error> {
    let device = tables::DEVICE.read_into(view, blank)?;
    let tags = device.tags;
    if tags > 768 && device.link.mode == LinkMode::NonFlit {
        let problem = Problem::new(format!("{tags} tags need 14-bit tags, which exist in flit mode only"));
        return Err(view.at("tags").problem(problem.hint("10-bit tags allow 768")));
    }
    if device.completion_timeout.is_zero() {
        return Err(view.at("completion_timeout").error("with a completion timeout of 0 every read fails"));
    }
    Ok(device)
}

/// A port says how what comes in by it is forwarded, if it is one of a switch: whose headers have checksums, or have none.
fn check_forwarding(root: &View<'_>, topology: &Topology, components: &Components<'_>) -> Result<(), Error> {
    for (name, link) in topology.links() {
        for (end, port, node) in [("upper", &link.upper, link.under.as_str()), ("lower", &link.lower, name)] {
            let Some(forwarding) = port.forwarding else { continue };
            let at = link::find(root, name, &components[name].view, &[end, "forwarding"]);
            let Some(switch) = topology.switches.iter().find(|switch| switch.name == node) else {
                let problem = Problem::new(format!("{node} does not forward TLPs"));
                return Err(at.key_error(problem.hint("only ports of switches have this key")));
            };
            if [forwarding, switch.forwarding].contains(&Forwarding::HeaderChecked) {
                let problem = Problem::new(format!("either all ports of {node} check headers, or none"));
                return Err(at.key_error(problem.hint(format!("set it once, in switch.{node}.forwarding"))));
            }
        }
    }
    Ok(())
}

/// A receiver must be able to hold one TLP of its MPS, or the link stands still for ever (PCIe 5.0 §2.6.1).
fn check_buffers(
    root: &View<'_>,
    policy: MpsPolicy,
    topology: &Topology,
    components: &Components<'_>,
) -> Result<(), Error> {
    let links = topology.links();
    let set = payloads(policy, &links);
    let deferrable = above_deferrable_writes(&topology.devices, &links);
    for (name, link) in &links {
        let Payloads { upper, lower } = set[name];
        let buffers = link.upper.buffers.filter(|_| deferrable.contains(name));
        if let Some(problem) = buffers.and_then(holds_no_deferrable_write) {
            return Err(
                link::find(root, name, &components[name].view, &["upper", "buffers"]).problem(problem)
            );
        }
        for (end, port, mps) in [("upper", &link.upper, upper), ("lower", &link.lower, lower)] {
            if let Err(problem) =
                holds_one_tlp(port, mps.bytes()).and_then(|()| can_be_advertised(port, link.generation))
            {
                return Err(
                    link::find(root, name, &components[name].view, &[end, "buffers"]).problem(problem)
                );
            }
        }
    }
    Ok(())
}

/// Ports below 16 GT/s cannot scale their credits (PCIe 5.0 §3.4.2): more than they can advertise would have no effect.
fn can_be_advertised(port: &PortConfig, generation: Generation) -> Result<(), Problem> {
    let Some(buffers) = port.buffers.filter(|_| generation < Generation::Gen4) else { return Ok(()) };
    let [headers, data] = [CreditKind::Header, CreditKind::Data].map(|kind| kind.most(false));
    for (key, credits, most) in [
        ("posted_headers", buffers.posted_headers, headers),
        ("posted_data", buffers.posted_data, data),
        ("non_posted_headers", buffers.non_posted_headers, headers),
        ("non_posted_data", buffers.non_posted_data, data),
        ("completion_headers", buffers.completion_headers, headers),
        ("completion_data", buffers.completion_data, data),
    ] {
        if credits > most {
            let problem = format!("{key} = {credits} is more than a port below 16 GT/s can advertise");
            return Err(Problem::new(problem).hint(format!("write at most {most}, or 0 for infinite")));
        }
    }
    Ok(())
}

/// The components above whose links are devices that write by deferrable writes, or that are such devices.
fn above_deferrable_writes<'t>(
    devices: &'t [DeviceConfig],
    links: &BTreeMap<&'t str, &'t LinkConfig>,
) -> BTreeSet<&'t str> {
    let mut above = BTreeSet::new();
    for device in devices.iter().filter(|device| !device.posted_writes) {
        let of = device.function_of.as_ref();
        let mut at = of.map_or(device.name.as_str(), |of| of.device.as_str());
        while let Some(link) = links.get(at).filter(|_| above.insert(at)) {
            at = &link.under;
        }
    }
    above
}

/// A deferrable write carries up to 128 bytes, and takes non-posted credits (PCIe 6.0 §7.7.9.2).
fn holds_no_deferrable_write(buffers: Buffers) -> Option<Problem> {
    let credits = buffers.non_posted_data;
    (1..8).contains(&credits).then(|| {
        let have = credits * 16;
        Problem::new(format!(
            "non_posted_data = {credits} ({have} B) cannot hold one deferrable write of 128 B"
        ))
        .hint("write at least 8, or 0 for infinite")
    })
}

fn holds_one_tlp(port: &PortConfig, mps: u32) -> Result<(), Problem> {
    let Some(buffers) = port.buffers else { return Ok(()) };
    for (key, credits) in [("posted_data", buffers.posted_data), ("completion_data", buffers.completion_data)]
    {
        let need = mps / 16;
        if credits != 0 && credits < need {
            let have = credits * 16;
            return Err(Problem::new(format!("{key} = {credits} ({have} B) cannot hold one TLP of {mps} B"))
                .hint(format!("write at least {need}, or 0 for infinite")));
        }
    }
    Ok(())
}
